package layout_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestLayout holds the contract's table against what a broker has after Ensure.
func TestLayout(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	log := bustest.Config(t, js, "HF_LOG")
	if log.Discard != jetstream.DiscardNew || log.Storage != jetstream.FileStorage ||
		log.Retention != jetstream.LimitsPolicy || log.MaxMsgSize != 512<<10 ||
		log.MaxAge != 0 || log.AllowRollup || log.AllowDirect || log.AllowMsgTTL || log.AllowMsgSchedules ||
		log.MaxBytes != -1 || log.MaxMsgs != -1 || log.MaxConsumers != 100_000 {
		t.Errorf("log = %+v", log)
	}
	for _, name := range []string{"KV_hf_state", "KV_hf_leases"} {
		c := bustest.Config(t, js, name)
		if c.MaxMsgsPerSubject != 1 || c.MaxConsumers != 100_000 || !c.AllowMsgTTL ||
			c.SubjectDeleteMarkerTTL < time.Second || c.MaxAge != 0 {
			t.Errorf("%s = %+v", name, c)
		}
	}
	for name, most := range map[string]int32{"KV_hf_state": 1 << 20, "KV_hf_leases": 16 << 10,
		"OBJ_hf_objects": 256 << 10, "HF_TIMERS": 64 << 10} {
		if c := bustest.Config(t, js, name); c.MaxMsgSize != most {
			t.Errorf("%s: a message may take %d bytes, want %d", name, c.MaxMsgSize, most)
		}
	}
	for name, window := range map[string]time.Duration{"HF_LOG": 100 * time.Millisecond,
		"KV_hf_state": 100 * time.Millisecond, "KV_hf_leases": 100 * time.Millisecond,
		"OBJ_hf_objects": 100 * time.Millisecond, "HF_TIMERS": 100 * time.Millisecond, "HF_FEED": 2 * time.Minute,
		"HF_PARKED": 24 * time.Hour} {
		if c := bustest.Config(t, js, name); c.Duplicates != window {
			t.Errorf("%s: message ids are remembered for %s, want %s", name, c.Duplicates, window)
		}
	}
	if c := bustest.Config(t, js, "HF_TIMERS"); !c.AllowMsgSchedules || c.Discard != jetstream.DiscardOld ||
		c.MaxAge != 0 ||
		c.MaxBytes != -1 {
		t.Errorf("timers = %+v", c)
	}
	if c := bustest.Config(t, js, "HF_FEED"); c.MaxAge != 72*time.Hour {
		t.Errorf("feed = %+v", c)
	}
	if c := bustest.Config(t, js, "HF_PARKED"); c.MaxAge != 30*24*time.Hour {
		t.Errorf("parked = %+v", c)
	}
}

// TestAnyKVClientSeesTheBucket: a screen in another language has nothing but the KV conventions.
func TestAnyKVClientSeesTheBucket(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	rev := bustest.MustStore(t, b, bustest.Key, "one", 0)
	ctx := bustest.Within(t, bustest.Patience)
	plain, err := js.KeyValue(ctx, "hf_state")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := plain.Get(ctx, bustest.Key); err != nil || string(e.Value()) != "one" || e.Revision() != rev {
		t.Fatalf("get = %v, %v", e, err)
	}
	w, err := plain.Watch(ctx, "session.>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Stop() }()
	if e := <-w.Updates(); e == nil || e.Key() != bustest.Key {
		t.Fatalf("watched %v", e)
	}
	if e := <-w.Updates(); e != nil {
		t.Fatalf("watched %v, want the end of the beginning", e)
	}
	if err := b.KV.Delete(ctx, kv.State, bustest.Key, rev); err != nil {
		t.Fatal(err)
	}
	if e := <-w.Updates(); e.Operation() != jetstream.KeyValuePurge {
		t.Errorf("watched %v, want a deletion", e.Operation())
	}
	if _, err := plain.Get(ctx, bustest.Key); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("get of a deleted key: %v", err)
	}
}

func TestEnsureNeverNarrows(t *testing.T) {
	s := natstest.Start(t)
	_, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	for _, c := range []jetstream.StreamConfig{
		{Name: "HF_FEED", Subjects: []string{"hf.feed.>", "more.>"}, MaxAge: 100 * time.Hour, Duplicates: time.Hour},
		{Name: "HF_PARKED", Subjects: []string{"hf.parked.>"}},
		{Name: "HF_LOG", Subjects: []string{"hf.log.*.*.*"}, MaxBytes: 1 << 30, MaxMsgSize: 1 << 20, MaxAge: time.Hour,
			Discard: jetstream.DiscardOld, AllowRollup: true, AllowDirect: true},
		{Name: "KV_hf_state", Subjects: []string{"$KV.hf_state.>"}, MaxMsgsPerSubject: 5, MaxConsumers: -1,
			DenyDelete: true},
		{Name: "KV_hf_leases", Subjects: []string{"$KV.hf_leases.>"}, MaxMsgsPerSubject: 1, MaxConsumers: 200_000,
			Metadata: map[string]string{"theirs": "kept"}},
	} {
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	b := natstest.Bus(t, s)
	if err := b.Layout.Ensure(ctx); err != nil {
		t.Fatalf("a second time: %v", err)
	}
	if c := bustest.Config(t, js, "HF_FEED"); c.MaxAge != 100*time.Hour || len(c.Subjects) != 2 ||
		c.Duplicates != time.Hour {
		t.Errorf("feed = %+v", c)
	}
	if c := bustest.Config(t, js, "HF_PARKED"); c.MaxAge != 0 {
		t.Errorf("parked = %+v", c)
	}
	// the broker keeps message ids in memory, and no writer has one
	if c := bustest.Config(t, js, "HF_LOG"); c.MaxBytes != 1<<30 || c.MaxMsgSize != 1<<20 || c.MaxAge != 0 ||
		c.Discard != jetstream.DiscardNew || c.AllowRollup || c.AllowDirect ||
		c.Duplicates != 100*time.Millisecond {
		t.Errorf("log = %+v", c)
	}
	if c := bustest.Config(t, js, "KV_hf_state"); c.MaxMsgsPerSubject != 5 || c.MaxConsumers != 100_000 ||
		!c.AllowMsgTTL ||
		!c.AllowRollup {
		t.Errorf("state = %+v", c)
	}
	if c := bustest.Config(t, js, "KV_hf_leases"); c.MaxConsumers != 200_000 || c.Metadata["theirs"] != "kept" ||
		c.Metadata["hf.layout"] != "1" {
		t.Errorf("leases = %+v", c)
	}
}

func TestEnsureRefusesANewerLayoutUnchanged(t *testing.T) {
	s := natstest.Start(t)
	nc, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	newer := jetstream.StreamConfig{Name: "HF_PARKED", Subjects: []string{"hf.parked.>"},
		Metadata: map[string]string{"hf.layout": "2"}}
	if _, err := js.CreateStream(ctx, newer); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(ctx, bus.Config{URL: nc.ConnectedUrl()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Layout.Ensure(ctx); !errors.Is(err, bus.ErrNewerLayout) || !strings.Contains(err.Error(), "HF_PARKED") {
		t.Fatalf("Ensure = %v, want ErrNewerLayout naming the stream", err)
	}
	if _, err := js.Stream(ctx, "HF_LOG"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the log was made all the same: %v", err)
	}
}

func TestEnsureReportsWhatTheBrokerRefuses(t *testing.T) {
	s := natstest.Start(t)
	b, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: s.URL(), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Layout.Ensure(bustest.Within(t, bustest.Patience)); err == nil ||
		!strings.Contains(err.Error(), "HF_LOG") ||
		!strings.Contains(err.Error(), "replicas") {
		t.Errorf("three replicas on one node: %v", err)
	}
}

// TestManyEnsureAtOnce lets services with different ideas of the feed's age start together. None may fail, and a later
// look of the one that wants most gives it that.
func TestManyEnsureAtOnce(t *testing.T) {
	const services = 8
	s := natstest.Start(t)
	var wg sync.WaitGroup
	for i := range services {
		wg.Go(func() {
			b, err := bus.Open(bustest.Within(t, bustest.Patience),
				bus.Config{URL: s.URL(), FeedKeptFor: time.Duration(i+1) * time.Hour})
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Close()
			if err := b.Layout.Ensure(bustest.Within(t, bustest.Patience)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	natstest.Bus(t, s, func(c *bus.Config) { c.FeedKeptFor = services * time.Hour })
	_, js := bustest.Outsider(t, s)
	if c := bustest.Config(t, js, "HF_FEED"); c.MaxAge != services*time.Hour {
		t.Errorf("feed keeps %s, want %s", c.MaxAge, services*time.Hour)
	}
}

func TestFullDisk(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t,
		`accounts { A { jetstream: {max_disk: 100KB}, users: [{user: a, password: a}] } }`))
	b := natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
	ctx, after := bustest.Within(t, bustest.Patience), uint64(0)
	if err := b.Parking.Park(ctx, park.Parked{Why: "malformed", Ref: bustest.Session, Seq: 1}); err != nil {
		t.Errorf("park where the broker has little room: %v", err)
	}
	var err error
	for err == nil {
		after, err = b.Log.Append(ctx, bustest.Session, events.WriterHarness, after, bustest.Facts(b.NewID()))
	}
	if !errors.Is(err, bus.ErrFull) {
		t.Errorf("append to a full account: %v, want ErrFull", err)
	}
}

// In a cell with users one message of a user cannot remove what others have: the buckets that several write take no
// roll-ups, also when they were made otherwise.
func TestNoRollUpsWhereOthersDataLie(t *testing.T) {
	s, all := bustest.WithUsers(t, "ann")
	_, js := bustest.LoggedIn(t, s)
	for range 2 {
		for _, name := range []string{"KV_hf_leases", "OBJ_hf_objects", "HF_LOG"} {
			c := bustest.Config(t, js, name)
			if c.AllowRollup || c.SubjectDeleteMarkerTTL != 0 {
				t.Errorf("%s: roll-ups %v, markers for %s", name, c.AllowRollup, c.SubjectDeleteMarkerTTL)
			}
			c.AllowRollup = true
			if name != "HF_LOG" {
				c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, time.Minute
			}
			if _, err := js.UpdateStream(bustest.Background(t), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := all[0].Layout.Ensure(bustest.Background(t)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := all[1].Leases.Acquire(bustest.Background(t), "harness.h.1", []byte("{}"), time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"all", "sub"} {
		for _, subject := range []string{"$KV.hf_leases.harness.o.1", "$O.hf_objects.C.person.ann.x",
			"$O.hf_objects.M.person.ann.x"} {
			_, err := js.PublishMsg(bustest.Background(t),
				&nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {how}}})
			if err == nil || !strings.Contains(err.Error(), "rollup not permitted") {
				t.Errorf("%s: roll-up %s: %v", subject, how, err)
			}
		}
	}
}
