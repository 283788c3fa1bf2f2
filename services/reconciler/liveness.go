package reconciler

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Liveness is the liveness of an owner.
type Liveness int

// Values of [Liveness]. Only sessions of dead owners are recovered.
const (
	Alive    Liveness = iota // or possibly alive
	Starting                 // alive, and it may still adopt
	Dead
)

// String returns the liveness as a word.
func (l Liveness) String() string { return [...]string{"alive", "starting", "dead"}[l] }

// Owner is the verdict on a session's owner.
type Owner struct {
	Liveness     Liveness
	SupersededBy string    // the incarnation that superseded a dead one
	Detail       string    // how a dead one ended, if its supervisor saw it
	CheckAt      time.Time // when the verdict may change without a change of the leases; zero: never
}

// Margins are the times of the liveness rules.
type Margins struct {
	Grace time.Duration // from the expiry of a lease to the death of its owner
	// how long a new incarnation that is not ready may adopt, from its start or its last claim
	Adoption    time.Duration
	AdoptionMax time.Duration // how long it may adopt at most, from its start, with any number of claims
	Unknown     time.Duration // the TTL of a lease that was never seen
}

// Seen is a lease with its history. All instants are this process's, on its monotonic clock: the broker's may be set.
type Seen struct {
	Exclusive bool
	State     string
	TTL       time.Duration
	Since     time.Time           // first seen, or created
	Renewed   time.Time           // last renewal
	Ended     time.Time           // zero: alive
	Released  bool                // deleted by its owner, or because its connection ended; or abandoned
	Abandoned string              // how the process ended, as its supervisor said
	Early     bool                // the broker ended it before its TTL: its clock was set forward
	Received  time.Time           // when this process received the last renewal
	Rev       uint64              // of the last renewal
	Connected presence.Connection // the connection that the last renewal names
	Name      string              // which all connections of its process have; empty: not known
	Kept      time.Duration       // how long after the last renewal the broker ends it
	Claimed   time.Time           // starting: the last claim of a session that the log shows; zero: none
	Checked   time.Time           // starting: up to when the log was read for claims; zero: not yet
	Unread    bool                // starting: the last attempt to read the log for claims failed
	Readable  time.Time           // starting: when the log could be read again after a failure; zero: it never failed
	PutOff    bool                // it would have been ended with its connection, but the own lease had a gap
}

// Gap is a time in which the reconciler could not renew its own lease: other processes may not have been able to
// either.
type Gap struct{ Began, End time.Time }

// LeaseView is the reconciler's knowledge of leases. All instants are of this process's clock.
type LeaseView struct {
	Start   time.Time                   // since when leases have been watched
	Renewed time.Time                   // the last renewal of the own lease
	Gaps    []Gap                       // of the own lease, oldest first
	Leases  map[string]map[string]*Seen // by harness and incarnation

	// the incarnations of each harness that contend, newest first; nil: they are found in Leases at each call
	ranks map[string][]string
}

// contends reports whether a lease belongs to a living exclusive incarnation: it can supersede older ones.
func (l *Seen) contends() bool { return l != nil && l.Exclusive && l.Ended.IsZero() }

// newestFirst orders incarnations.
func newestFirst(a, b string) int {
	switch {
	case session.Older(b, a):
		return -1
	case session.Older(a, b):
		return 1
	}
	return strings.Compare(a, b)
}

// contenders returns the incarnations of a harness that contend, newest first.
func (v *LeaseView) contenders(harness string) []string {
	if v.ranks != nil {
		return v.ranks[harness]
	}
	var ids []string
	for id, l := range v.Leases[harness] {
		if l.contends() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, newestFirst)
	return ids
}

// put stores the lease of an incarnation, or removes it with nil. It keeps the order of those that contend: a check of
// an owner must not look at all leases of its harness.
func (v *LeaseView) put(harness, incarnation string, l *Seen) {
	leases := v.Leases[harness]
	if was := leases[incarnation].contends(); was != l.contends() {
		ids := v.ranks[harness]
		at, _ := slices.BinarySearchFunc(ids, incarnation, newestFirst)
		if was {
			ids = slices.Delete(ids, at, at+1)
		} else {
			ids = slices.Insert(ids, at, incarnation)
		}
		if v.ranks[harness] = ids; len(ids) == 0 {
			delete(v.ranks, harness)
		}
	}
	switch {
	case l == nil:
		if delete(leases, incarnation); len(leases) == 0 {
			delete(v.Leases, harness)
		}
	case leases == nil:
		v.Leases[harness] = map[string]*Seen{incarnation: l}
	default:
		leases[incarnation] = l
	}
}

// CheckOwner returns the verdict on the owner of an owned session. It never returns dead for a process that could not
// have renewed its lease.
//
//	a newer exclusive incarnation is ready (or may not adopt any more)   dead at once
//	the lease was released, or abandoned                                 dead at once
//	the lease expired                                                    dead after the grace
//	the broker ended it before its TTL had passed                        dead after another TTL and the grace
//	the lease was never seen                                             dead after the TTL of the unknown and the
//	                                                                     grace, from the start of the watch or the
//	                                                                     last commit
//
// A gap in the reconciler's own lease that is long enough to have cost this lease restarts its time: a TTL and the
// grace from the gap's end. The same holds for the time before the watch, for a lease that was not renewed since.
//
// A newer incarnation that is not ready may adopt for the adoption grace, from its start, from its last claim in the
// log, or from the end of an outage of the log, up to a limit. Its adoption counts as finished only after the log was
// read for its claims. While it claims, sessions of a dead owner are left to it as well.
func CheckOwner(v *LeaseView, m Margins, s *session.State, now time.Time) Owner {
	own := v.Leases[s.Harness][s.Incarnation]
	detail := ""
	if own != nil {
		detail = own.Abandoned
	}
	var checkAt time.Time
	if s.Exclusive {
		var by string
		if by, checkAt = v.superseder(m, s, now); by != "" {
			return Owner{Liveness: Dead, SupersededBy: by, Detail: detail}
		}
	}
	if own != nil && own.Ended.IsZero() {
		return own.liveness(m, now, checkAt)
	}
	dead := v.deadFrom(m, s, own, now)
	if now.Before(dead) {
		return Owner{Liveness: Alive, CheckAt: dead}.sooner(checkAt)
	}
	if s.Exclusive {
		if until := v.leftTo(m, s, dead); !until.IsZero() {
			return Owner{Liveness: Alive, CheckAt: until}.sooner(checkAt)
		}
	}
	return Owner{Liveness: Dead, Detail: detail}
}

// adopts returns until when an incarnation that is not ready may adopt, according to its known claims.
func (l *Seen) adopts(m Margins) time.Time {
	until, most := later(later(l.Since, l.Readable), l.Claimed).Add(m.Adoption), l.Since.Add(m.AdoptionMax)
	if most.Before(until) {
		return most
	}
	return until
}

// adopting reports whether an incarnation is not ready and may still adopt. It is true as long as the log was not read
// for its claims, up to the limit.
func (l *Seen) adopting(m Margins, now time.Time) bool {
	until := l.adopts(m)
	unknown := l.Checked.Before(until) && until.Before(l.Since.Add(m.AdoptionMax))
	return l.State == lease.Starting && (unknown || now.Before(until))
}

// newer calls do for the incarnations that contend and are newer than a session's owner, newest first, until do returns
// false.
func (v *LeaseView) newer(s *session.State, do func(id string, l *Seen) bool) {
	for _, id := range v.contenders(s.Harness) {
		if !session.Older(s.Incarnation, id) || !do(id, v.Leases[s.Harness][id]) {
			return
		}
	}
}

// superseder returns the newest incarnation that has superseded a session's owner; else, when the first one may.
func (v *LeaseView) superseder(m Margins, s *session.State, now time.Time) (by string, checkAt time.Time) {
	v.newer(s, func(id string, l *Seen) bool {
		if !l.adopting(m, now) {
			by = id
			return false
		}
		if settled := l.adopts(m); checkAt.IsZero() || settled.Before(checkAt) {
			checkAt = settled
		}
		return true
	})
	return by, checkAt
}

// leftTo returns until when the sessions of an owner that is dead since an instant are left to newer incarnations that
// claim sessions, or that an outage of the log kept from it; zero if there are none. If their claims are unknown, it
// returns that instant. None of them has superseded the owner.
func (v *LeaseView) leftTo(m Margins, s *session.State, dead time.Time) (until time.Time) {
	v.newer(s, func(_ string, l *Seen) bool {
		if l.Checked.Before(dead) {
			until = dead
			return false
		}
		if !l.Claimed.IsZero() || !l.Readable.IsZero() {
			until = later(until, l.adopts(m))
		}
		return true
	})
	return until
}

// liveness returns the verdict of a lease that has not ended.
func (l *Seen) liveness(m Margins, now, checkAt time.Time) Owner {
	o := Owner{Liveness: Alive, CheckAt: checkAt}
	if l.adopting(m, now) {
		o.Liveness = Starting
		return o.sooner(l.adopts(m))
	}
	return o
}

// sooner moves the next check to an instant that is earlier.
func (o Owner) sooner(checkAt time.Time) Owner {
	if o.Liveness != Dead && !checkAt.IsZero() && (o.CheckAt.IsZero() || checkAt.Before(o.CheckAt)) {
		o.CheckAt = checkAt
	}
	return o
}

// deadFrom returns from when on an owner without a lease (nil: never seen) is dead.
func (v *LeaseView) deadFrom(m Margins, s *session.State, own *Seen, now time.Time) time.Time {
	if own != nil && own.Released {
		return own.Ended
	}
	l := Seen{TTL: m.Unknown, Renewed: v.Start, Ended: now}
	from := later(v.Start, s.UpdatedAt).Add(m.Unknown)
	if own != nil {
		l, from = *own, own.Ended
		// its owner could have renewed, and notices its loss only at the next renewal
		if own.Early {
			from = from.Add(own.TTL)
		}
	}
	return later(from, v.excuse(&l, now)).Add(m.Grace)
}

// excuse returns until when this lease's owner may have been kept from renewing: a TTL after the last gap that could
// have cost the lease. A lease is renewed at a third of its TTL, so a gap of half of it could; one that began after the
// lease's end could not.
func (v *LeaseView) excuse(l *Seen, now time.Time) time.Time {
	var until time.Time
	gaps := append(v.Gaps[:len(v.Gaps):len(v.Gaps)], Gap{Began: v.Renewed, End: now})
	// unknown before the watch: the broker may have been away as well
	if l.Renewed.Before(v.Start) {
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
