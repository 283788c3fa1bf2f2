package reconciler

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// leaseStarting is the state of a lease whose process has not said yet what it adopts.
const leaseStarting = "starting"

// Life is what is known of an owner.
type Life int

// Lives. Only of the dead is anything taken.
const (
	Alive    Life = iota // or may be
	Starting             // alive, and has not said yet what it adopts
	Dead
)

// String is the life for people.
func (l Life) String() string { return [...]string{"alive", "starting", "dead"}[l] }

// Owner is the verdict about a session's owner.
type Owner struct {
	Life         Life
	SupersededBy string    // the incarnation that took the place of a dead one
	Look         time.Time // when the verdict may change by itself; zero: with the leases only
}

// Margins are what liveness is judged with.
type Margins struct {
	Grace       time.Duration // from the end of a lease that ended by itself to the owner's being called dead
	Adoption    time.Duration // how long a new incarnation that does not say ready may adopt, from its start or its last claim
	AdoptionMax time.Duration // how long it may adopt at most, from its start, however many sessions it claims
	Unknown     time.Duration // the TTL of a lease that was never seen
}

// Seen is a lease as it was seen. All instants are this process's, on its monotonic clock: the broker's may be set.
type Seen struct {
	Exclusive bool
	State     string
	TTL       time.Duration
	Since     time.Time     // first seen, or created
	Renewed   time.Time     // last renewal
	Ended     time.Time     // zero: alive
	Released  bool          // given back by its owner, who thereby says that it is gone
	Early     bool          // the broker ended it before its TTL had passed: the broker's clock was set forward
	Heard     time.Time     // when this process was told of the last renewal
	Rev       uint64        // of the last renewal
	Kept      time.Duration // how long after the last renewal the broker ends it
	Claimed   time.Time     // starting: the last claim of a session that the log shows; zero: none
	Checked   time.Time     // starting: up to when the log was read for claims; zero: not yet
	Unread    bool          // starting: the last attempt to read the log for claims failed
	Readable  time.Time     // starting: when the log could be read again after it could not be; zero: it always could
}

// Gap is a stretch in which the reconciler could not renew its own lease: for so long nobody else may have been able to.
type Gap struct{ Began, End time.Time }

// LeaseView is what the reconciler knows of leases. All instants are of the leases' clock.
type LeaseView struct {
	Start   time.Time                   // since when leases have been watched
	Renewed time.Time                   // the own lease
	Gaps    []Gap                       // of the own lease, oldest first
	Leases  map[string]map[string]*Seen // by harness and incarnation
}

// Judge says what is known of the owner of a session that is owned. Nothing is declared dead that could not have renewed.
//
//	a newer exclusive incarnation says ready (or may not adopt any more)       dead at once
//	the lease was given back                                                   dead at once
//	the lease ended by itself                                                  dead after the grace
//	the broker ended it before its TTL had passed                              dead after another TTL and the grace
//	no such lease was ever seen                                                dead after a TTL of the unknown and the grace,
//	                                                                           from the start of the watch or the last commit
//
// A gap in the reconciler's own lease that is long enough to have cost this one starts the clock over: a TTL and the
// grace from the gap's end. So does the time before the watch, for a lease that was not renewed since.
//
// A newer incarnation that does not say ready may adopt for the adoption grace, from its start, from the last claim of a
// session that the log shows, or from the end of an outage of the log, up to a bound. Before it is called settled the log
// must have been read for its claims. While it claims, a session of a dead owner is left to it as well.
func Judge(v *LeaseView, m Margins, s *session.State, now time.Time) Owner {
	leases := v.Leases[s.Harness]
	own := leases[s.Incarnation]
	var look time.Time
	if s.Exclusive {
		var by string
		if by, look = superseder(leases, m, s.Incarnation, now); by != "" {
			return Owner{Life: Dead, SupersededBy: by}
		}
	}
	if own != nil && own.Ended.IsZero() {
		return own.life(m, now, look)
	}
	dead := v.deadFrom(m, s, own, now)
	if now.Before(dead) {
		return Owner{Life: Alive, Look: dead}.sooner(look)
	}
	if s.Exclusive {
		if until := leftTo(leases, m, s.Incarnation, dead); !until.IsZero() {
			return Owner{Life: Alive, Look: until}.sooner(look)
		}
	}
	return Owner{Life: Dead}
}

// newer says whether a lease is of a living exclusive incarnation that is newer than this one.
func (l *Seen) newer(id, incarnation string) bool {
	return l.Exclusive && l.Ended.IsZero() && session.Older(incarnation, id)
}

// adopts is until when an incarnation that does not say ready may adopt, as far as its claims are known.
func (l *Seen) adopts(m Margins) time.Time {
	until, most := later(later(l.Since, l.Readable), l.Claimed).Add(m.Adoption), l.Since.Add(m.AdoptionMax)
	if most.Before(until) {
		return most
	}
	return until
}

// adopting says whether an incarnation does not say ready and may still adopt: also when it is not known whether it has
// claimed a session lately, because the log was not read for that. Beyond the bound that does not matter.
func (l *Seen) adopting(m Margins, now time.Time) bool {
	until := l.adopts(m)
	unknown := l.Checked.Before(until) && until.Before(l.Since.Add(m.AdoptionMax))
	return l.State == leaseStarting && (unknown || now.Before(until))
}

// superseder is the newest incarnation that has taken the place of this one; else, when the first may.
func superseder(leases map[string]*Seen, m Margins, incarnation string, now time.Time) (by string, look time.Time) {
	for id, l := range leases {
		if !l.newer(id, incarnation) {
			continue
		}
		settled := l.adopts(m)
		switch {
		case !l.adopting(m, now):
			if by == "" || session.Older(by, id) {
				by = id
			}
		case look.IsZero() || settled.Before(look):
			look = settled
		}
	}
	return by, look
}

// leftTo is until when the sessions of an owner that is dead since an instant are left to newer incarnations which are
// claiming sessions, or which an outage of the log kept from it; zero if there are none. Where it is not known whether
// they claim, that is the instant itself. None of
// them has taken the owner's place.
func leftTo(leases map[string]*Seen, m Margins, incarnation string, dead time.Time) (until time.Time) {
	for id, l := range leases {
		switch {
		case !l.newer(id, incarnation):
		case l.Checked.Before(dead):
			return dead
		case !l.Claimed.IsZero() || !l.Readable.IsZero():
			until = later(until, l.adopts(m))
		}
	}
	return until
}

// life is what a lease that has not ended tells.
func (l *Seen) life(m Margins, now, look time.Time) Owner {
	o := Owner{Life: Alive, Look: look}
	if l.adopting(m, now) {
		o.Life = Starting
		return o.sooner(l.adopts(m))
	}
	return o
}

// sooner looks at an instant if that is before the one there is.
func (o Owner) sooner(look time.Time) Owner {
	if o.Life != Dead && !look.IsZero() && (o.Look.IsZero() || look.Before(o.Look)) {
		o.Look = look
	}
	return o
}

// deadFrom is from when on an owner without a lease (nil: never seen) is dead.
func (v *LeaseView) deadFrom(m Margins, s *session.State, own *Seen, now time.Time) time.Time {
	if own != nil && own.Released {
		return own.Ended
	}
	l := Seen{TTL: m.Unknown, Renewed: v.Start, Ended: now}
	from := later(v.Start, s.UpdatedAt).Add(m.Unknown)
	if own != nil {
		l, from = *own, own.Ended
		if own.Early { // its owner could have renewed, and learns only when it tries that it has to start over
			from = from.Add(own.TTL)
		}
	}
	return later(from, v.excuse(&l, now)).Add(m.Grace)
}

// excuse is until when this lease's owner may have been kept from having one: a TTL after the last gap that could have
// cost it. A lease is renewed at a third of its TTL, so a gap of half of it could; one that began when the lease was over
// could not.
func (v *LeaseView) excuse(l *Seen, now time.Time) time.Time {
	var until time.Time
	gaps := append(v.Gaps[:len(v.Gaps):len(v.Gaps)], Gap{Began: v.Renewed, End: now})
	if l.Renewed.Before(v.Start) { // what was before the watch is not known: the broker may have been away as well
		gaps = append(gaps, Gap{Began: l.Renewed, End: v.Start})
	}
	for _, g := range gaps {
		if g.End.After(l.Renewed) && g.Began.Before(l.Ended) && g.End.Sub(g.Began) >= l.TTL/2 {
			until = later(until, g.End.Add(l.TTL))
		}
	}
	return until
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
