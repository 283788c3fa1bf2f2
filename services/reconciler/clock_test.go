package reconciler

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// at returns a moment: this process's clock, and the broker's, which is this much ahead.
func at(n float64, ahead time.Duration) moment {
	return moment{events.Clock{Now: sec(n).Add(ahead)}, sec(n)}
}

// TestEndedByTheClock: a lease that the broker ended too early was ended by a clock step; one that ended in time was
// not.
func TestEndedByTheClock(t *testing.T) {
	value := []byte(`{"exclusive":true,"state":"ready","ttl_ms":5000}`)
	for name, c := range map[string]struct {
		ends  float64
		early bool
	}{"at once": {10, true}, "early": {13.9, true}, "about in time": {14.1, false}, "in time": {15, false}} {
		k := newLeaseBook(Margins{Unknown: 15 * time.Second})
		k.start(sec(0))
		k.seen("h", "17", kv.Entry{Value: value, Rev: 1, At: sec(10), TTL: 5 * time.Second}, at(10, 0))
		k.seen("h", "17", kv.Entry{Deleted: true, Expired: true}, at(c.ends, 2*time.Hour))
		if l := k.view.Leases["h"]["17"]; l.Early != c.early || l.Ended != sec(c.ends) {
			t.Errorf("%s: early %v, ended %s", name, l.Early, l.Ended.Sub(began))
		}
	}
}

// TestOverdue: a lease that the broker keeps beyond its TTL counts as ended, unless it was renewed; one without a TTL
// does not.
func TestOverdue(t *testing.T) {
	value := []byte(`{"exclusive":true,"state":"ready","ttl_ms":5000}`)
	k := newLeaseBook(Margins{Unknown: 15 * time.Second})
	k.start(sec(0))
	k.seen("h", "17", kv.Entry{Value: value, Rev: 7, At: sec(10).Add(time.Hour), TTL: 5 * time.Second}, at(10, 0))
	k.seen("h", "18", kv.Entry{Value: value, Rev: 8, At: sec(10), TTL: 0}, at(10, 0))
	if all := k.overdue(sec(17)); len(all) > 0 {
		t.Fatalf("overdue: %+v", all)
	}
	all := k.overdue(sec(17.1))
	if len(all) != 1 || all[0] != (overdueLease{"h", "17", 7}) {
		t.Fatalf("overdue: %+v", all)
	}
	if k.end(all[0], 9) || !k.view.Leases["h"]["17"].Ended.IsZero() {
		t.Error("ended, though it was renewed")
	}
	if !k.end(all[0], 7) || !k.view.Leases["h"]["17"].Ended.Equal(sec(15)) || len(k.overdue(sec(17.1))) > 0 {
		t.Errorf("ended %s", k.view.Leases["h"]["17"].Ended)
	}
	k.seen("h", "17", kv.Entry{Value: value, Rev: 9, At: sec(18), TTL: 5 * time.Second}, at(18, 0))
	if !k.view.Leases["h"]["17"].Ended.IsZero() {
		t.Error("renewed, and still ended")
	}
}

// TestLivenessByTheOwnClock: a step of the broker's clock changes nothing about an owner; a commit with a future stamp
// counts as one of now.
func TestLivenessByTheOwnClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour} {
		k := newLeaseBook(Margins{Grace: 2 * time.Second, Unknown: 15 * time.Second})
		k.start(sec(0))
		for n := range 101 {
			k.renewed(sec(float64(n)))
		}
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		s.Incarnation, s.Owned, s.Epoch, s.UpdatedAt = "17", true, 1, sec(90).Add(ahead)
		o, known := k.checkOwner(s, at(100, ahead))
		if o.Liveness != Alive || known || !o.CheckAt.Equal(sec(107).Add(ahead)) {
			t.Errorf("%s ahead: %s, look in %s", ahead, o.Liveness, o.CheckAt.Sub(sec(100).Add(ahead)))
		}
		if got := at(100, ahead).local(o.CheckAt); !got.Equal(sec(107)) {
			t.Errorf("%s ahead: looked at again in %s", ahead, got.Sub(sec(100)))
		}
	}
}

// TestLivenessAfterAStep: the last commit of an owner that was never seen is from before a step of the broker's clock.
// Its age counts as without the step.
func TestLivenessAfterAStep(t *testing.T) {
	for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour, 5 * time.Second, -5 * time.Second} {
		k := newLeaseBook(Margins{Grace: 2 * time.Second, Unknown: 15 * time.Second})
		k.start(sec(0))
		for n := range 101 {
			k.renewed(sec(float64(n)))
		}
		s := session.New(events.Ref{Harness: "h", Session: "s"})
		s.Incarnation, s.Owned, s.Epoch, s.Seq, s.UpdatedAt = "17", true, 1, 7, sec(90)
		now := at(100, by)
		now.Steps = events.Steps{{Seq: s.Seq, ByMS: by.Milliseconds(), At: now.Now}}
		if o, _ := k.checkOwner(s, now); o.Liveness != Alive || !o.CheckAt.Equal(sec(107).Add(by)) {
			t.Errorf("a step of %s: %s, checked again in %s", by, o.Liveness, o.CheckAt.Sub(now.Now))
		}
	}
}

// TestNowKnowsTheSteps: the parts that decide beside the loop have the steps of the clock that the cell has stored,
// from the first instant on.
func TestNowKnowsTheSteps(t *testing.T) {
	server := natstest.Start(t)
	steps := events.Steps{{Seq: 7, ByMS: (2 * time.Hour).Milliseconds(), At: sec(1)}}
	body, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := natstest.Bus(t, server).KV.Store(t.Context(), kv.Leases, events.ClockKey(), body, 0); err != nil {
		t.Fatal(err)
	}
	r, err := New(natstest.Bus(t, server), quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if now, err := r.now(t.Context()); err != nil || !slices.Equal(now.Steps, steps) {
		t.Errorf("the steps are %+v, want %+v: %v", now.Steps, steps, err)
	}
}

// TestAnInstantOfTheFutureIsNow: the stamp of a broker whose clock was set back can be of the future.
func TestAnInstantOfTheFutureIsNow(t *testing.T) {
	for _, ahead := range []time.Duration{0, 2 * time.Hour} {
		now := at(100, ahead)
		for stamp, want := range map[float64]float64{90: 90, 100: 100, 7_300: 100} {
			if got := now.ago(sec(stamp).Add(ahead)); !got.Equal(sec(want)) {
				t.Errorf("%s ahead: %.0f s counts as %s, want %.0f s", ahead, stamp, got.Sub(began), want)
			}
		}
	}
}

// TestClaimsFromBeforeAStep: the age of a claim in the log counts as without a step of the broker's clock after it.
func TestClaimsFromBeforeAStep(t *testing.T) {
	for _, by := range []time.Duration{0, -time.Hour} {
		server := natstest.Start(t)
		b := natstest.Bus(t, server)
		natstest.Append(t, b, events.Ref{Harness: "h", Session: "s"}, "17", events.SessionOpened{Incarnation: "17"},
			events.SessionClaimed{Incarnation: "17"})
		body, err := json.Marshal(events.Steps{{Seq: 1, ByMS: by.Milliseconds(), At: time.Now()}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.KV.Store(t.Context(), kv.Leases, events.ClockKey(), body, 0); err != nil {
			t.Fatal(err)
		}
		r, err := New(b, quick(), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		present := time.Now()
		r.leases.start(present.Add(-time.Minute))
		r.leases.view.put("h", "17", &Seen{Exclusive: true, State: lease.Starting, TTL: time.Minute,
			Since: present.Add(-time.Second), Renewed: present})
		if err := r.learnClaims(t.Context(), "h"); err != nil {
			t.Fatal(err)
		}
		l := r.leases.view.Leases["h"]["17"]
		if off := l.Claimed.Sub(present.Add(by)).Abs(); off > time.Minute || l.Checked.Before(present) {
			t.Errorf("a step of %s: claimed %s ago, checked %s ago", by, present.Sub(l.Claimed), present.Sub(l.Checked))
		}
	}
}

// TestABrokerWhoseClockIsBehind: the instants at which the leases were read, and the log for claims, are of the clock
// of this process.
func TestABrokerWhoseClockIsBehind(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	r, err := New(b, quick(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	present := time.Now()
	now := moment{events.Clock{Now: present.Add(-time.Hour)}, present}
	r.leaseChanged(kv.Update{Ready: true}, now)
	if !r.leases.view.Start.Equal(present) {
		t.Errorf("the leases were read %s ago", present.Sub(r.leases.view.Start))
	}
	r.leases.view.put("h", "17", &Seen{Exclusive: true, State: lease.Starting, TTL: time.Minute,
		Since: present.Add(-time.Second), Renewed: present})
	if err := r.learnClaimsAt(t.Context(), "h", now); err != nil {
		t.Fatal(err)
	}
	if l := r.leases.view.Leases["h"]["17"]; !l.Checked.Equal(present) {
		t.Errorf("the log was read %s ago", present.Sub(l.Checked))
	}
}
