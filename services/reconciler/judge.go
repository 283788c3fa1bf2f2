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
	Grace    time.Duration // from the end of a lease that ended by itself to the owner's being called dead
	Adoption time.Duration // how long a new incarnation that does not say ready may adopt
	Unknown  time.Duration // the TTL of a lease that was never seen
}

// Seen is a lease as it was seen. All instants are this process's, on its monotonic clock: the broker's may be set.
type Seen struct {
	Exclusive bool
	State     string
	TTL       time.Duration
	Since     time.Time // first seen, or created
	Renewed   time.Time // last renewal
	Ended     time.Time // zero: alive
	Released  bool      // given back by its owner, who thereby says that it is gone
	Early     bool      // the broker ended it before its TTL had passed: the broker's clock was set forward
	Heard     time.Time // when this process was told of the last renewal
	Rev       uint64    // of the last renewal
	Stamp     time.Time // of the last renewal, by the broker's clock
}

// Gap is a stretch in which the reconciler could not renew its own lease: for so long nobody else may have been able to.
type Gap struct{ Began, End time.Time }

// LeaseView is what the reconciler knows of leases.
type LeaseView struct {
	Start   time.Time                   // since when leases have been watched
	Renewed time.Time                   // the own lease
	Gaps    []Gap                       // of the own lease, oldest first
	Leases  map[string]map[string]*Seen // by harness and incarnation
}

// Judge says what is known of the owner of a session that is owned. Nothing is declared dead that could not have renewed.
//
//	a newer exclusive incarnation says ready (or the adoption grace is over)   dead at once
//	the lease was given back                                                   dead at once
//	the lease ended by itself                                                  dead after the grace
//	the broker ended it before its TTL had passed                              dead after another TTL and the grace
//	no such lease was ever seen                                                dead after a TTL of the unknown and the grace,
//	                                                                           from the start of the watch or the last commit
//
// A gap in the reconciler's own lease that is long enough to have cost this one starts the clock over: a TTL and the
// grace from the gap's end. So does the time before the watch, for a lease that was not renewed since.
func Judge(v *LeaseView, m Margins, s *session.State, now time.Time) Owner {
	leases := v.Leases[s.Harness]
	own := leases[s.Incarnation]
	if s.Exclusive {
		if by, look := superseder(leases, m, s.Incarnation, now); by != "" {
			return Owner{Life: Dead, SupersededBy: by}
		} else if own != nil && own.Ended.IsZero() {
			return own.life(m, now, look)
		} else {
			return v.gone(m, s, own, now).sooner(look)
		}
	}
	if own != nil && own.Ended.IsZero() {
		return own.life(m, now, time.Time{})
	}
	return v.gone(m, s, own, now)
}

// superseder is the newest incarnation that has taken the place of this one; else, when the first may.
func superseder(leases map[string]*Seen, m Margins, incarnation string, now time.Time) (by string, look time.Time) {
	for id, l := range leases {
		if !l.Exclusive || !l.Ended.IsZero() || !session.Older(incarnation, id) {
			continue
		}
		settled := l.Since.Add(m.Adoption)
		switch {
		case l.State != leaseStarting || !now.Before(settled):
			if by == "" || session.Older(by, id) {
				by = id
			}
		case look.IsZero() || settled.Before(look):
			look = settled
		}
	}
	return by, look
}

// life is what a lease that has not ended tells.
func (l *Seen) life(m Margins, now, look time.Time) Owner {
	o := Owner{Life: Alive, Look: look}
	if settled := l.Since.Add(m.Adoption); l.State == leaseStarting && now.Before(settled) {
		o.Life = Starting
		return o.sooner(settled)
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

// gone is the verdict about an owner without a lease (nil: never seen).
func (v *LeaseView) gone(m Margins, s *session.State, own *Seen, now time.Time) Owner {
	if own != nil && own.Released {
		return Owner{Life: Dead}
	}
	l := Seen{TTL: m.Unknown, Renewed: v.Start, Ended: now}
	from := later(v.Start, s.UpdatedAt).Add(m.Unknown)
	if own != nil {
		l, from = *own, own.Ended
		if own.Early { // its owner could have renewed, and learns only when it tries that it has to start over
			from = from.Add(own.TTL)
		}
	}
	at := later(from, v.excuse(&l, now)).Add(m.Grace)
	if now.Before(at) {
		return Owner{Life: Alive, Look: at}
	}
	return Owner{Life: Dead}
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
