package reconciler

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestContendersAreThoseOfAllLeases: after any changes the kept order of the incarnations that contend is that of a
// search in all leases, and so is the verdict on an owner.
func TestContendersAreThoseOfAllLeases(t *testing.T) {
	const seed, rounds, ids = 20261123, 3000, 12
	rnd := rand.New(rand.NewPCG(seed, seed))
	margins := Margins{Grace: 2 * time.Second, Adoption: 5 * time.Second, AdoptionMax: time.Minute,
		Unknown: 15 * time.Second}
	k := newLeaseBook(margins)
	name := func() string {
		if n := rnd.IntN(ids); n < ids-2 {
			// also of another number of digits
			return strconv.Itoa(90 + n)
		}
		// no number
		return "x" + strconv.Itoa(rnd.IntN(2))
	}
	verdicts := map[bool]int{}
	for round := range rounds {
		now := sec(float64(round))
		l := &Seen{Exclusive: rnd.IntN(4) > 0, State: []string{lease.Ready, lease.Starting}[rnd.IntN(2)],
			TTL: 15 * time.Second, Since: now, Renewed: now, Checked: now}
		switch rnd.IntN(5) {
		case 0, 1:
			l.Ended = now
		case 2:
			l = nil
		}
		k.view.put("h", name(), l)
		all := LeaseView{Start: k.view.Start, Leases: k.view.Leases}
		if got, want := k.view.contenders("h"), all.contenders("h"); !slices.Equal(got, want) {
			t.Fatalf("seed %d round %d: %v, want %v", seed, round, got, want)
		}
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		s.Incarnation, s.Exclusive, s.Owned = name(), true, true
		by, next := k.view.superseder(margins, s, now)
		wantBy, wantNext := searched(k.view.Leases["h"], margins, s.Incarnation, now)
		if by != wantBy || by == "" && !next.Equal(wantNext) {
			t.Fatalf("seed %d round %d: %s is superseded by %q, look at %s; want %q, %s", seed, round, s.Incarnation,
				by, next, wantBy, wantNext)
		}
		verdicts[by != ""]++
	}
	if verdicts[true] < rounds/10 || verdicts[false] < rounds/10 {
		t.Errorf("verdicts: %v", verdicts)
	}
}

// searched returns what superseder returns, by a search in all leases.
func searched(leases map[string]*Seen, m Margins, incarnation string, now time.Time) (by string, next time.Time) {
	for id, l := range leases {
		switch {
		case !l.contends() || !session.Older(incarnation, id):
		case !l.adopting(m, now):
			if by == "" || newestFirst(id, by) < 0 {
				by = id
			}
		case next.IsZero() || l.adopts(m).Before(next):
			next = l.adopts(m)
		}
	}
	return by, next
}

// TestAnOwnerIsCheckedWithoutASearch: the time of a check does not grow with the number of leases of the harness.
func TestAnOwnerIsCheckedWithoutASearch(t *testing.T) {
	const few, many, checks, most = 10, 10_000, 500, 50
	took := func(leases int) time.Duration {
		k := newLeaseBook(Margins{Grace: 2 * time.Second, Unknown: 15 * time.Second})
		k.start(sec(0))
		for n := range leases {
			l := &Seen{Exclusive: true, State: lease.Ready, TTL: time.Minute, Since: sec(0), Renewed: sec(0)}
			if n%2 == 0 {
				l.Ended = sec(1)
			}
			k.view.put("h", strconv.Itoa(n), l)
		}
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		s.Incarnation, s.Exclusive, s.Owned, s.Epoch = "1", true, true, 1
		best := time.Hour
		for range 5 {
			began := time.Now()
			for range checks {
				if o, _ := k.checkOwner(s, both(sec(2))); o.SupersededBy != strconv.Itoa(leases-1) {
					t.Fatalf("%s by %q", o.Liveness, o.SupersededBy)
				}
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if short, long := took(few), took(many); long > most*short {
		t.Errorf("%d checks take %s with %d leases, and %s with %d", checks, short, few, long, many)
	} else {
		t.Logf("%d checks take %s with %d leases, and %s with %d", checks, short, few, long, many)
	}
}
