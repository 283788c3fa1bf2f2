package layout_test

import (
	"errors"
	"fmt"
	"maps"
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

// limits are what a stream of a cell may hold and take, in words: an entry of the table of TestLayout.
func limits(c jetstream.StreamConfig) string {
	words := []string{c.Storage.String(), c.Retention.String(), "discard=" + c.Discard.String(),
		fmt.Sprint("bytes=", c.MaxBytes), fmt.Sprint("msgs=", c.MaxMsgs),
		fmt.Sprint("per-subject=", c.MaxMsgsPerSubject), fmt.Sprint("size=", c.MaxMsgSize),
		fmt.Sprint("consumers=", c.MaxConsumers), fmt.Sprint("age=", c.MaxAge), fmt.Sprint("ids=", c.Duplicates),
		fmt.Sprint("markers=", c.SubjectDeleteMarkerTTL)}
	for _, x := range []struct {
		name string
		set  bool
	}{{"no-delete", c.DenyDelete}, {"no-purge", c.DenyPurge}, {"direct", c.AllowDirect}, {"roll-up", c.AllowRollup},
		{"ttl", c.AllowMsgTTL}, {"batch", c.AllowAtomicPublish}, {"schedules", c.AllowMsgSchedules},
		{"counters", c.AllowMsgCounter}, {"no-ack", c.NoAck}, {"sealed", c.Sealed}} {
		if x.set {
			words = append(words, x.name)
		}
	}
	return strings.Join(words, " ")
}

// TestLayout holds the contract's table against what a broker has after Ensure: without limits of its own and without
// users, and with both.
func TestLayout(t *testing.T) {
	const all = "File Limits "
	plain := map[string]string{
		"HF_LOG": all + "discard=DiscardNew bytes=-1 msgs=-1 per-subject=-1 size=524288 consumers=100000 age=0s " +
			"ids=100ms markers=0s",
		"KV_hf_state": all + "discard=DiscardNew bytes=-1 msgs=-1 per-subject=1 size=1048576 consumers=100000 " +
			"age=0s ids=100ms markers=1h0m0s no-delete direct roll-up ttl batch",
		"KV_hf_leases": all + "discard=DiscardNew bytes=-1 msgs=-1 per-subject=1 size=16384 consumers=100000 " +
			"age=0s ids=100ms markers=1h0m0s no-delete direct roll-up ttl",
		"OBJ_hf_objects": all + "discard=DiscardNew bytes=-1 msgs=-1 per-subject=-1 size=262144 consumers=-1 " +
			"age=0s ids=100ms markers=0s direct roll-up",
		"HF_TIMERS": all + "discard=DiscardOld bytes=-1 msgs=-1 per-subject=-1 size=65536 consumers=-1 age=0s " +
			"ids=100ms markers=0s direct roll-up ttl schedules",
		"HF_FEED": all + "discard=DiscardOld bytes=-1 msgs=-1 per-subject=-1 size=-1 consumers=-1 age=72h0m0s " +
			"ids=2m0s markers=0s direct batch",
		"HF_PARKED": all + "discard=DiscardOld bytes=67108864 msgs=-1 per-subject=-1 size=-1 consumers=-1 " +
			"age=720h0m0s ids=24h0m0s markers=0s direct",
	}
	limited := maps.Clone(plain)
	limited["HF_LOG"] = strings.Replace(plain["HF_LOG"], "bytes=-1", "bytes=8388608", 1)
	limited["HF_FEED"] = strings.Replace(plain["HF_FEED"], "bytes=-1", "bytes=2097152", 1)
	limited["OBJ_hf_objects"] = strings.Replace(strings.Replace(plain["OBJ_hf_objects"], "bytes=-1",
		"bytes=4194304", 1), " roll-up", "", 1)
	limited["KV_hf_leases"] = strings.Replace(strings.Replace(plain["KV_hf_leases"], "markers=1h0m0s", "markers=0s", 1),
		" roll-up", "", 1)
	open, secured := natstest.Start(t), natstest.Start(t, natstest.Settings(t,
		`accounts { A { jetstream: enabled, users: [{user: a, password: a}] } }`))
	natstest.Bus(t, open)
	natstest.Bus(t, secured, func(c *bus.Config) {
		c.URL, c.LogBytesMax, c.ObjectBytesMax = bustest.As(secured, "a"), 8<<20, 4<<20
	})
	for url, want := range map[string]map[string]string{open.URL(): plain, bustest.As(secured, "a"): limited} {
		nc, err := nats.Connect(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for s := range js.ListStreams(bustest.Within(t, bustest.Patience)).Info() {
			got[s.Config.Name] = limits(s.Config)
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%s is\n%s, want\n%s", name, got[name], want[name])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d streams, want %d", len(got), len(want))
		}
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
		{Name: "HF_TIMERS", Subjects: []string{"hf.timer.>"}, MaxMsgsPerSubject: 3, MaxMsgSize: 1 << 10},
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
	if c := bustest.Config(t, js, "HF_TIMERS"); c.MaxMsgsPerSubject != -1 || c.MaxMsgSize != 64<<10 ||
		len(c.Subjects) != 2 {
		t.Errorf("timers = %+v", c)
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
	nc, err := nats.Connect(bustest.As(s, "a"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	// for a limit in bytes the broker would reserve them
	if c := bustest.Config(t, js, "HF_PARKED"); c.MaxBytes != -1 || c.MaxMsgs != 128 {
		t.Errorf("parked = %+v", c)
	}
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
