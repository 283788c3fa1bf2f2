package reconciler

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// sec returns an instant of a test, in seconds since its start.
func sec(n float64) time.Time { return began.Add(time.Duration(n * float64(time.Second))) }

func TestLiveness(t *testing.T) {
	margins := Margins{Grace: 2 * time.Second, Adoption: 5 * time.Second, AdoptionMax: 60 * time.Second,
		Unknown: 15 * time.Second}
	ready := func(since float64) *Seen {
		return &Seen{Exclusive: true, State: "ready", TTL: 5 * time.Second, Since: sec(since), Renewed: sec(since)}
	}
	with := func(l *Seen, change func(*Seen)) *Seen { change(l); return l }
	ended := func(renewed, at float64) *Seen {
		return with(ready(0), func(l *Seen) { l.Renewed, l.Ended = sec(renewed), sec(at) })
	}
	// starting has claimed nothing in the log up to the judged instant.
	starting := func(since float64) *Seen {
		return with(ready(since), func(l *Seen) { l.State, l.Checked = lease.Starting, sec(100) })
	}
	claiming := func(since, claimed, checked float64) *Seen {
		return with(starting(since), func(l *Seen) { l.Claimed, l.Checked = sec(claimed), sec(checked) })
	}
	unread := func(since, checked float64) *Seen {
		return with(starting(since), func(l *Seen) { l.Checked = sec(checked) })
	}
	readable := func(since, readable float64) *Seen {
		return with(starting(since), func(l *Seen) { l.Readable = sec(readable) })
	}
	pooled := func(l *Seen) *Seen { l.Exclusive = false; return l }
	for name, c := range map[string]struct {
		leases   map[string]*Seen
		gaps     []Gap
		start    float64
		shared   bool    // the session's owner is one of a pool
		now      float64 // and of the own lease's last renewal
		renewed  float64 // of the own lease, if it differs
		liveness Liveness
		by       string
		check    float64
	}{
		"a lease that lives": {leases: map[string]*Seen{"17": ready(0)}, now: 100, liveness: Alive},
		"starting within the adoption grace": {leases: map[string]*Seen{"17": starting(98)}, now: 100,
			liveness: Starting, check: 103},
		"starting for longer": {leases: map[string]*Seen{"17": starting(90)}, now: 100, liveness: Alive},
		"ended by itself, within the grace": {leases: map[string]*Seen{"17": ended(94, 99)}, now: 100, liveness: Alive,
			check: 101},
		"ended by itself, grace over": {leases: map[string]*Seen{"17": ended(94, 99)}, now: 101, liveness: Dead},
		"ended early, within another TTL": {leases: map[string]*Seen{"17": with(ended(94, 95), func(l *Seen) {
			l.Early = true
		})}, now: 101, liveness: Alive, check: 102},
		"ended early, another TTL over": {leases: map[string]*Seen{"17": with(ended(94, 95), func(l *Seen) {
			l.Early = true
		})}, now: 102, liveness: Dead},
		"given back": {leases: map[string]*Seen{"17": with(ended(94, 99.9), func(l *Seen) {
			l.Released = true
		})}, now: 100, liveness: Dead},
		"a newer one is ready": {leases: map[string]*Seen{"17": ready(0), "18": ready(99)}, now: 100,
			liveness: Dead, by: "18"},
		"the newest of several": {leases: map[string]*Seen{"17": ready(0), "9": ready(1), "18": ready(92),
			"19": ready(93), "20": ready(94), "21": ready(95), "22": ready(96),
			"23": ready(97), "24": ready(98), "101": ready(99)}, now: 100, liveness: Dead, by: "101"},
		"several newer ones are starting": {leases: map[string]*Seen{"17": ready(0), "18": starting(99),
			"19": starting(98.5), "20": starting(96), "21": starting(98), "22": starting(97),
			"23": starting(96.5), "24": starting(97.5)}, now: 100, liveness: Alive, check: 101},
		"ready a moment ago": {leases: map[string]*Seen{"17": ready(99)}, now: 100,
			liveness: Alive},
		"starting, and a newer one for longer": {leases: map[string]*Seen{"17": starting(98),
			"18": starting(96)}, now: 100, liveness: Starting, check: 101},
		"starting, and a newer one since": {leases: map[string]*Seen{"17": starting(96),
			"18": starting(98)}, now: 100, liveness: Starting, check: 101},
		"grace over, and a newer one is starting": {leases: map[string]*Seen{"17": ended(92, 97),
			"18": starting(98)}, now: 100, liveness: Dead},
		"a newer one is starting": {leases: map[string]*Seen{"17": ready(0), "18": starting(98)},
			now: 100, liveness: Alive, check: 103},
		"a newer one has started for long": {leases: map[string]*Seen{"17": ready(0), "18": starting(95)},
			now: 100, liveness: Dead, by: "18"},
		"a newer one came and went": {leases: map[string]*Seen{"17": ready(0), "18": ended(1, 2)},
			now: 100, liveness: Alive},
		"a newer one is one of a pool": {leases: map[string]*Seen{"17": ready(0),
			"18": pooled(ready(99))}, now: 100, liveness: Alive},
		"an older one is ready": {leases: map[string]*Seen{"17": ready(0), "16": ready(99)},
			now: 100, liveness: Alive},
		"one of a pool, a newer one is ready": {leases: map[string]*Seen{"17": pooled(ready(0)),
			"18": ready(99)}, shared: true, now: 100, liveness: Alive},
		"one of a pool, its lease ended": {leases: map[string]*Seen{"17": pooled(ended(90, 95)),
			"18": ready(99)}, shared: true, now: 100, liveness: Dead},
		"ended, and a newer one is starting": {leases: map[string]*Seen{"17": ended(94, 99),
			"18": starting(95.5)}, now: 100, liveness: Alive, check: 100.5},
		"never seen, the watch is young": {start: 90, now: 100, liveness: Alive, check: 107},
		"never seen, the watch is old":   {start: 80, now: 100, liveness: Dead},
		"never seen, and a newer one is ready": {leases: map[string]*Seen{"18": ready(99)}, start: 99,
			now: 100, liveness: Dead, by: "18"},
		"the broker was away while it should have": {leases: map[string]*Seen{"17": ended(50, 55)},
			gaps: []Gap{{sec(51), sec(95)}}, now: 100, liveness: Alive, check: 102},
		"it had a whole TTL after the broker came": {leases: map[string]*Seen{"17": ended(50, 55)},
			gaps: []Gap{{sec(51), sec(95)}}, now: 102, liveness: Dead},
		"it was renewed after the broker came": {leases: map[string]*Seen{"17": ended(93, 98)},
			gaps: []Gap{{sec(51), sec(92)}}, now: 100, liveness: Dead},
		"the broker's absence was short": {leases: map[string]*Seen{"17": ended(93, 98)},
			gaps: []Gap{{sec(94), sec(96)}}, now: 100, liveness: Dead},
		"the broker is away at this moment": {leases: map[string]*Seen{"17": ended(90, 95)}, now: 100,
			renewed: 93, liveness: Alive, check: 107},
		"the broker went away when it was over": {leases: map[string]*Seen{"17": ended(90, 95)}, now: 100,
			renewed: 97, liveness: Dead},
		"all were away, this one did not return": {leases: map[string]*Seen{"17": ended(50, 96)}, start: 95,
			now: 100, liveness: Alive, check: 102},
		"it had a whole TTL after all were back": {leases: map[string]*Seen{"17": ended(50, 96)}, start: 95,
			now: 102, liveness: Dead},
		"it claimed a session lately": {leases: map[string]*Seen{"17": claiming(50, 97, 100)},
			now: 100, liveness: Starting, check: 102},
		"it claimed a session, and no other since": {leases: map[string]*Seen{"17": claiming(50, 95, 100)},
			now: 100, liveness: Alive},
		"it may have claimed a session lately": {leases: map[string]*Seen{"17": unread(90, 94)}, now: 100,
			liveness: Starting, check: 95},
		"it claims for too long": {leases: map[string]*Seen{"17": claiming(40, 99, 100)},
			now: 100, liveness: Alive},
		"a newer one claimed a session lately": {leases: map[string]*Seen{"17": ready(0),
			"18": claiming(50, 97, 100)}, now: 100, liveness: Alive, check: 102},
		"a newer one claimed none since": {leases: map[string]*Seen{"17": ready(0),
			"18": claiming(50, 95, 100)}, now: 100, liveness: Dead, by: "18"},
		"a newer one may have claimed a session lately": {leases: map[string]*Seen{"17": ready(0),
			"18": unread(90, 94)}, now: 100, liveness: Alive, check: 95},
		"a newer one claims for too long": {leases: map[string]*Seen{"17": ready(0),
			"18": claiming(40, 99, 100)}, now: 100, liveness: Dead, by: "18"},
		"a newer one's time is up, however it claims": {leases: map[string]*Seen{"17": ready(0),
			"18": claiming(40, 96, 97)}, now: 100, liveness: Dead, by: "18"},
		"grace over, and a newer one claims": {leases: map[string]*Seen{"17": ended(92, 97),
			"18": claiming(90, 98, 100)}, now: 100, liveness: Alive, check: 103},
		"grace over, a newer one claimed long ago": {leases: map[string]*Seen{"17": ended(92, 97),
			"18": claiming(90, 94, 100)}, now: 100, liveness: Dead, by: "18"},
		"grace over, and a newer one may claim": {leases: map[string]*Seen{"17": ended(92, 97),
			"18": unread(98, 98)}, now: 100, liveness: Alive, check: 99},
		"given back, and a newer one claims": {leases: map[string]*Seen{"17": with(ended(92, 97), func(l *Seen) {
			l.Released = true
		}), "18": claiming(90, 98, 100)}, now: 100, liveness: Alive, check: 103},
		"never seen, and a newer one claims": {leases: map[string]*Seen{"18": claiming(90, 98, 100)},
			start: 80, now: 100, liveness: Alive, check: 103},
		"the log could be read again a moment ago": {leases: map[string]*Seen{"17": readable(50, 97)}, now: 100,
			liveness: Starting, check: 102},
		"a newer one could not claim until now": {leases: map[string]*Seen{"17": ready(0),
			"18": readable(50, 97)}, now: 100, liveness: Alive, check: 102},
		"a newer one could claim for long": {leases: map[string]*Seen{"17": ready(0),
			"18": readable(50, 95)}, now: 100, liveness: Dead, by: "18"},
		"a newer one could not claim for too long": {leases: map[string]*Seen{"17": ready(0),
			"18": readable(40, 99)}, now: 100, liveness: Dead, by: "18"},
		"grace over, a newer one could not claim": {leases: map[string]*Seen{"17": ended(92, 97),
			"18": readable(90, 98)}, now: 100, liveness: Alive, check: 103},
		"grace over, an older one claims": {leases: map[string]*Seen{"17": ended(92, 97),
			"16": claiming(90, 98, 100)}, now: 100, liveness: Dead},
		"one of a pool, grace over, a newer one claims": {leases: map[string]*Seen{"17": pooled(ended(92, 97)),
			"18": claiming(90, 98, 100)}, shared: true, now: 100, liveness: Dead},
		"the broker's absence was half a TTL": {leases: map[string]*Seen{"17": ended(93, 98)},
			gaps: []Gap{{sec(94), sec(96.5)}}, now: 101, liveness: Alive, check: 103.5},
		"the broker's absence was almost a TTL": {leases: map[string]*Seen{"17": ended(93, 98)},
			gaps: []Gap{{sec(93.1), sec(98)}}, now: 101, liveness: Alive, check: 105},
		"the broker's absence was almost half a TTL": {leases: map[string]*Seen{"17": ended(93, 98)},
			gaps: []Gap{{sec(94), sec(96.4)}}, now: 101, liveness: Dead},
		"only the reconciler was away": {leases: map[string]*Seen{"17": ended(94, 99)}, start: 96,
			now: 101, liveness: Dead},
		"never seen, the broker was away": {start: 10, gaps: []Gap{{sec(50), sec(90)}}, now: 100,
			liveness: Alive, check: 107},
	} {
		t.Run(name, func(t *testing.T) {
			s := session.New(events.Ref{Harness: "h", Session: "s"})
			s.Incarnation, s.Exclusive, s.Owned, s.Epoch = "17", !c.shared, true, 1
			v := &LeaseView{Start: sec(c.start), Renewed: sec(c.now), Gaps: c.gaps,
				Leases: map[string]map[string]*Seen{"h": c.leases}}
			if c.renewed > 0 {
				v.Renewed = sec(c.renewed)
			}
			want := Owner{Liveness: c.liveness, SupersededBy: c.by}
			if c.check > 0 {
				want.CheckAt = sec(c.check)
			}
			// for every order of the leases
			for range 20 {
				got := CheckOwner(v, margins, s, sec(c.now))
				if got.Liveness != want.Liveness || got.SupersededBy != want.SupersededBy ||
					!got.CheckAt.Equal(want.CheckAt) {
					t.Fatalf("got %s by %q, look %v\nwant %s by %q, look %v", got.Liveness, got.SupersededBy,
						got.CheckAt.Sub(began), want.Liveness, want.SupersededBy, want.CheckAt.Sub(began))
				}
			}
		})
	}
}

// TestAnUnseenOwnerThatWritesIsAlive: a commit proves that its session's owner was alive a moment ago.
func TestAnUnseenOwnerThatWritesIsAlive(t *testing.T) {
	margins := Margins{Grace: 2 * time.Second, Unknown: 15 * time.Second}
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Incarnation, s.Owned, s.Epoch, s.UpdatedAt = "17", true, 1, sec(90)
	v := &LeaseView{Start: sec(0), Renewed: sec(100)}
	if got := CheckOwner(v, margins, s, sec(100)); got.Liveness != Alive || !got.CheckAt.Equal(sec(107)) {
		t.Errorf("got %s, look %v", got.Liveness, got.CheckAt.Sub(began))
	}
	v.Renewed = sec(107)
	if got := CheckOwner(v, margins, s, sec(107)); got.Liveness != Dead {
		t.Errorf("got %s", got.Liveness)
	}
}

// renewsOnly renews two leases each second, of an owner that is ready and of a newer incarnation that is starting and
// claims nothing. look does what a pass does with the incarnations that are adopting. The newer one supersedes the
// owner at the second dead, and not before.
func renewsOnly(t *testing.T, seconds, dead int, check func(k *leaseBook, n int, now time.Time)) {
	t.Helper()
	k := newLeaseBook(Margins{Grace: 2 * time.Second, Adoption: 5 * time.Second, AdoptionMax: time.Minute,
		Unknown: 15 * time.Second})
	k.start(sec(0))
	for n := range seconds {
		now := sec(float64(n))
		k.renewed(now)
		for incarnation, state := range map[string]string{"17": lease.Ready, "18": lease.Starting} {
			k.seen("h", incarnation, kv.Entry{Key: "harness.h." + incarnation, Value: leaseBody(t, incarnation, state),
				At: now}, both(now))
		}
		check(k, n, now)
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		s.Incarnation, s.Exclusive, s.Owned, s.Epoch = "17", true, true, 1
		o, _ := k.checkOwner(s, both(now))
		if is := o.Liveness == Dead && o.SupersededBy == "18"; is != (n >= dead) {
			t.Errorf("at %d s: %s by %q", n, o.Liveness, o.SupersededBy)
		}
	}
}

// TestARenewalIsNoClaim: a lease that is renewed in state starting, and claims nothing, gets the adoption grace once.
func TestARenewalIsNoClaim(t *testing.T) {
	renewsOnly(t, 20, 5, func(k *leaseBook, n int, now time.Time) {
		ids, since := k.adopting("h", both(now))
		if want := n <= 5; (len(ids) == 1) != want || want && since.Before(sec(float64(max(n-1, 0))-1)) {
			t.Errorf("at %d s: %v is asked for its claims since %v", n, ids, since.Sub(began))
		}
		k.claims("h", ids, nil, now)
	})
}

// TestAnOutageOfTheLogIsNoTimeToAdopt: an incarnation that starts while the log cannot be read gets the adoption grace
// when it can be read again. A renewal of its lease does not change that.
func TestAnOutageOfTheLogIsNoTimeToAdopt(t *testing.T) {
	const readable = 20
	renewsOnly(t, 30, readable+5, func(k *leaseBook, n int, now time.Time) {
		ids, _ := k.adopting("h", both(now))
		if n < readable {
			k.unread("h", ids)
		} else {
			k.claims("h", ids, nil, now)
		}
	})
}

// TestInstantsOfOneClock: the adoption grace is measured by this process's clock. Stamps of the broker are converted:
// claims are read since the broker's instant, and count from this process's.
func TestInstantsOfOneClock(t *testing.T) {
	// the broker's clock
	const ahead = time.Hour
	k := newLeaseBook(Margins{Grace: 2 * time.Second, Adoption: 5 * time.Second, AdoptionMax: time.Minute,
		Unknown: 15 * time.Second})
	at := func(n float64) moment { return moment{events.Clock{Now: sec(n).Add(ahead)}, sec(n)} }
	k.start(sec(0))
	k.renewed(sec(0))
	for id, state := range map[string]string{"17": lease.Ready, "18": lease.Starting} {
		k.seen("h", id, kv.Entry{Key: "harness.h." + id, Value: leaseBody(t, id, state), At: at(0).Now}, at(0))
	}
	ids, since := k.adopting("h", at(5))
	if want := at(0).Now; len(ids) != 1 || !since.Before(want) || since.Before(want.Add(-time.Second)) {
		t.Errorf("claims of %v are read since %s, want a little before %s", ids, since, want)
	}
	k.claims("h", ids, map[string]time.Time{"18": sec(4)}, sec(5))
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Incarnation, s.Exclusive, s.Owned, s.Epoch, s.UpdatedAt = "17", true, true, 1, at(0).Now
	if o, _ := k.checkOwner(s, at(5)); o.Liveness != Alive || !o.CheckAt.Equal(at(9).Now) {
		t.Errorf("%s by %q, look %s, want at %s", o.Liveness, o.SupersededBy, o.CheckAt, at(9).Now)
	}
}

// TestAnAbandonedLease: its owner is dead from then on, with the detail, also if its process was leaving already.
// Neither a later renewal, nor the end of the key, nor a newer incarnation changes that.
func TestAnAbandonedLease(t *testing.T) {
	k := newLeaseBook(Margins{Grace: time.Hour, Adoption: time.Hour, AdoptionMax: time.Hour, Unknown: time.Hour})
	at := func(n float64) moment { return moment{events.Clock{Now: sec(n)}, sec(n)} }
	k.start(sec(0))
	k.renewed(sec(0))
	see := func(n float64, l lease.Record, e kv.Entry) time.Time {
		body, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		e.Value = body
		k.renewed(sec(n))
		return k.seen("h", "17", e, at(n))
	}
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Incarnation, s.Exclusive, s.Owned, s.Epoch, s.UpdatedAt = "17", true, true, 1, at(0).Now
	record := lease.Record{ID: "h", Incarnation: "17", Exclusive: true, State: "ready", TTLMS: 15_000}
	see(1, record, kv.Entry{})
	if o, _ := k.checkOwner(s, at(2)); o.Liveness != Alive {
		t.Errorf("before: %s", o.Liveness)
	}
	dead := record
	dead.State = "draining"
	see(2, dead, kv.Entry{})
	dead.Abandoned = "exit status 1"
	if next := see(3, dead, kv.Entry{}); !next.Equal(sec(3)) {
		t.Errorf("passed over at %s, want at once", next)
	}
	check := func(when, by string) {
		t.Helper()
		o, known := k.checkOwner(s, at(4))
		if o.Liveness != Dead || o.Detail != "exit status 1" || o.SupersededBy != by || !known {
			t.Errorf("%s: %s by %q, detail %q", when, o.Liveness, o.SupersededBy, o.Detail)
		}
	}
	check("abandoned", "")
	see(4, record, kv.Entry{})
	check("renewed afterwards", "")
	see(4, record, kv.Entry{Deleted: true, Expired: true})
	check("the key has ended", "")
	k.view.put("h", "18", &Seen{Exclusive: true, State: "ready", TTL: time.Minute, Since: sec(3), Renewed: sec(3)})
	check("a newer one is ready", "18")
}

func leaseBody(t *testing.T, incarnation, state string) []byte {
	t.Helper()
	body, err := json.Marshal(lease.Record{ID: "h", Incarnation: incarnation, Exclusive: true, State: state,
		TTLMS: (15 * time.Second).Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestNoProcessIsDeclaredDeadTooEarly: no owner is dead before all existing leases have been read, for any age of its
// session; after that the leases decide.
func TestNoProcessIsDeclaredDeadTooEarly(t *testing.T) {
	k := newLeaseBook(Margins{Grace: 2 * time.Second, Unknown: 15 * time.Second})
	s := session.New(events.Ref{Harness: "h", Session: "s"})
	s.Incarnation, s.Owned, s.Epoch, s.UpdatedAt = "17", true, 1, sec(0)
	now := sec(10_000)
	if o, known := k.checkOwner(s, both(now)); o.Liveness != Alive || !o.CheckAt.Equal(now.Add(tooEarly)) || !known {
		t.Errorf("before they are seen: %s, look %v, known %v", o.Liveness, o.CheckAt, known)
	}
	k.renewed(sec(9_000))
	k.start(sec(9_000))
	for n := 9_000; n <= 10_000; n++ {
		k.renewed(sec(float64(n)))
	}
	if o, known := k.checkOwner(s, both(now)); o.Liveness != Dead || known {
		t.Errorf("when none of his was seen: %s, known %v", o.Liveness, known)
	}
}

// TestGapsAreRecorded: a long time between two renewals of the own lease is a gap; the newest ones are kept.
func TestGapsAreRecorded(t *testing.T) {
	k := newLeaseBook(Margins{})
	now := sec(0)
	k.renewed(now)
	k.renewed(now.Add(gapMin - time.Millisecond))
	if n := len(k.view.Gaps); n > 0 {
		t.Fatalf("%d gaps", n)
	}
	now = now.Add(gapMin - time.Millisecond)
	for i := range gapsMax + 3 {
		began := now
		now = now.Add(gapMin)
		k.renewed(now)
		if g := k.view.Gaps; len(g) != min(i+1, gapsMax) || g[len(g)-1] != (Gap{Began: began, End: now}) {
			t.Fatalf("after %d: %d gaps, the last %v", i+1, len(g), g[len(g)-1])
		}
	}
	if !k.view.Renewed.Equal(now) {
		t.Errorf("renewed at %s", k.view.Renewed)
	}
}

// Every key that a harness stores counts, also a deletion of a lease that never was and a key that cannot be read. A
// renewal counts only after a check that removed keys.
func TestEveryStoredKeyCounts(t *testing.T) {
	const filter = "harness.h.*"
	for name, write := range map[string]func(i int) kv.Update{
		"leases": func(i int) kv.Update { return kv.Update{Entry: kv.Entry{Key: fmt.Sprint("harness.h.", i)}} },
		"deletions": func(i int) kv.Update {
			return kv.Update{Entry: kv.Entry{Key: fmt.Sprint("harness.h.", i), Deleted: true}, Unseen: true}
		},
		"unreadable keys": func(i int) kv.Update {
			return kv.Update{Entry: kv.Entry{Key: fmt.Sprint("harness.h.a!", i)}}
		},
	} {
		k := newLeaseBook(Margins{})
		k.view.put("h", "known", &Seen{})
		renewal := kv.Update{Entry: kv.Entry{Key: "harness.h.known"}}
		for i := range checkEvery - 1 {
			k.wrote(write(i))
			k.wrote(renewal)
		}
		if found := k.surplus(); len(found) != 0 {
			t.Errorf("%s: checked too early: %v", name, found)
		}
		k.wrote(write(checkEvery))
		if found := k.surplus(); found[filter] != checkEvery {
			t.Fatalf("%s: not checked: %v", name, found)
		}
		k.wrote(write(0))
		k.checked(filter, checkEvery, 5)
		if found := k.surplus(); found[filter] != 1 {
			t.Errorf("%s: written during the check: %v", name, found)
		}
		k.checked(filter, 1, 5)
		if found := k.surplus(); len(found) != 0 {
			t.Errorf("%s: nothing is written: %v", name, found)
		}
		k.wrote(renewal)
		if found := k.surplus(); found[filter] != 1 {
			t.Errorf("%s: renewed after keys were removed: %v", name, found)
		}
		k.checked(filter, 1, 0)
		k.wrote(renewal)
		if len(k.written) != 0 {
			t.Errorf("%s: remembered: %v", name, k.written)
		}
	}
	k := newLeaseBook(Margins{})
	for range 2 * checkEvery {
		k.wrote(kv.Update{Entry: kv.Entry{Key: "service.ledger.x"}})
	}
	if len(k.written) != 0 {
		t.Errorf("a service counts: %v", k.written)
	}
}

// Of a harness with too many leases the newest ones stay. Other harnesses keep theirs.
func TestKeepNewest(t *testing.T) {
	k := newLeaseBook(Margins{Unknown: time.Second})
	for rev := range uint64(leasesMax + 3) {
		k.view.put("flood", fmt.Sprint(rev), &Seen{Rev: rev})
	}
	k.view.put("other", "1", &Seen{Rev: 1})
	if _, found := k.surplus()["harness.flood.*"]; !found || len(k.surplus()) != 1 {
		t.Fatalf("too many leases of %v", k.surplus())
	}
	if n := k.keepNewest("flood", leasesMax); n != 3 || len(k.surplus()) != 0 || len(k.view.Leases["other"]) != 1 {
		t.Errorf("%d leases are forgotten; too many of %v; %v", n, k.surplus(), k.view.Leases["other"])
	}
	for rev, want := range map[int]bool{0: false, 2: false, 3: true, leasesMax + 2: true} {
		if _, kept := k.view.Leases["flood"][fmt.Sprint(rev)]; kept != want {
			t.Errorf("lease %d is kept: %v, want %v", rev, kept, want)
		}
	}
}

// TestCountsOfHarnessesAreBounded: changes are counted for a number of harnesses. Beyond it some are checked before
// they have many changes, and their counts are forgotten.
func TestCountsOfHarnessesAreBounded(t *testing.T) {
	k := newLeaseBook(Margins{})
	for n := range writtenMax + 3*writtenAtOnce/2 {
		k.wrote(kv.Update{Entry: kv.Entry{Key: fmt.Sprintf("harness.h%d.1", n)}})
		if n == writtenMax-1 && len(k.surplus()) > 0 {
			t.Errorf("%d are checked early", len(k.surplus()))
		}
	}
	for _, want := range []int{writtenAtOnce, writtenAtOnce / 2, 0} {
		found := k.surplus()
		if len(found) != want {
			t.Errorf("%d are checked early, want %d", len(found), want)
		}
		for filter, since := range found {
			k.checked(filter, since, 0)
		}
	}
	if len(k.written) != writtenMax {
		t.Errorf("%d are counted, want %d", len(k.written), writtenMax)
	}
}
