package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

func config(t testing.TB, js jetstream.JetStream, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(within(t, patience), stream)
	if err != nil {
		t.Fatalf("%s: %v", stream, err)
	}
	return s.CachedInfo().Config
}

// TestLayout holds the contract's table against what a broker has after Ensure.
func TestLayout(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	_, js := outsider(t, s)
	log := config(t, js, "HF_LOG")
	if log.Discard != jetstream.DiscardNew || log.Storage != jetstream.FileStorage ||
		log.Retention != jetstream.LimitsPolicy || log.MaxMsgSize != 512<<10 ||
		log.MaxAge != 0 || log.AllowRollup || log.AllowDirect || log.AllowMsgTTL || log.AllowMsgSchedules ||
		log.MaxBytes != -1 || log.MaxMsgs != -1 || log.MaxConsumers != 100_000 {
		t.Errorf("log = %+v", log)
	}
	for _, name := range []string{"KV_hf_state", "KV_hf_leases"} {
		c := config(t, js, name)
		if c.MaxMsgsPerSubject != 1 || c.MaxConsumers != 100_000 || !c.AllowMsgTTL ||
			c.SubjectDeleteMarkerTTL < time.Second || c.MaxAge != 0 {
			t.Errorf("%s = %+v", name, c)
		}
	}
	for name, most := range map[string]int32{"KV_hf_state": 1 << 20, "KV_hf_leases": 16 << 10,
		"OBJ_hf_objects": 256 << 10, "HF_TIMERS": 64 << 10} {
		if c := config(t, js, name); c.MaxMsgSize != most {
			t.Errorf("%s: a message may take %d bytes, want %d", name, c.MaxMsgSize, most)
		}
	}
	if c := config(t, js, "HF_TIMERS"); !c.AllowMsgSchedules || c.Discard != jetstream.DiscardOld || c.MaxAge != 0 ||
		c.MaxBytes != -1 {
		t.Errorf("timers = %+v", c)
	}
	if c := config(t, js, "HF_FEED"); c.MaxAge != 72*time.Hour {
		t.Errorf("feed = %+v", c)
	}
	if c := config(t, js, "HF_PARKED"); c.MaxAge != 30*24*time.Hour {
		t.Errorf("parked = %+v", c)
	}
}

// TestAnyKVClientSeesTheBucket: a screen in another language has nothing but the KV conventions.
func TestAnyKVClientSeesTheBucket(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	rev := mustStore(t, b, key, "one", 0)
	ctx := within(t, patience)
	kv, err := js.KeyValue(ctx, "hf_state")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(ctx, key); err != nil || string(e.Value()) != "one" || e.Revision() != rev {
		t.Fatalf("get = %v, %v", e, err)
	}
	w, err := kv.Watch(ctx, "session.>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Stop() }()
	if e := <-w.Updates(); e == nil || e.Key() != key {
		t.Fatalf("watched %v", e)
	}
	if e := <-w.Updates(); e != nil {
		t.Fatalf("watched %v, want the end of the beginning", e)
	}
	if err := b.Delete(ctx, bus.State, key, rev); err != nil {
		t.Fatal(err)
	}
	if e := <-w.Updates(); e.Operation() != jetstream.KeyValuePurge {
		t.Errorf("watched %v, want a deletion", e.Operation())
	}
	if _, err := kv.Get(ctx, key); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("get of a deleted key: %v", err)
	}
}

func TestEnsureNeverNarrows(t *testing.T) {
	s := natstest.Start(t)
	_, js := outsider(t, s)
	ctx := within(t, patience)
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
	if err := b.Ensure(ctx); err != nil {
		t.Fatalf("a second time: %v", err)
	}
	if c := config(t, js, "HF_FEED"); c.MaxAge != 100*time.Hour || len(c.Subjects) != 2 || c.Duplicates != time.Hour {
		t.Errorf("feed = %+v", c)
	}
	if c := config(t, js, "HF_PARKED"); c.MaxAge != 0 {
		t.Errorf("parked = %+v", c)
	}
	if c := config(t, js, "HF_LOG"); c.MaxBytes != 1<<30 || c.MaxMsgSize != 1<<20 || c.MaxAge != 0 ||
		c.Discard != jetstream.DiscardNew || c.AllowRollup || c.AllowDirect {
		t.Errorf("log = %+v", c)
	}
	if c := config(t, js, "KV_hf_state"); c.MaxMsgsPerSubject != 5 || c.MaxConsumers != 100_000 || !c.AllowMsgTTL ||
		!c.AllowRollup {
		t.Errorf("state = %+v", c)
	}
	if c := config(t, js, "KV_hf_leases"); c.MaxConsumers != 200_000 || c.Metadata["theirs"] != "kept" ||
		c.Metadata["hf.layout"] != "1" {
		t.Errorf("leases = %+v", c)
	}
}

func TestEnsureRefusesANewerLayoutUnchanged(t *testing.T) {
	s := natstest.Start(t)
	nc, js := outsider(t, s)
	ctx := within(t, patience)
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
	if err := b.Ensure(ctx); !errors.Is(err, bus.ErrNewerLayout) || !strings.Contains(err.Error(), "HF_PARKED") {
		t.Fatalf("Ensure = %v, want ErrNewerLayout naming the stream", err)
	}
	if _, err := js.Stream(ctx, "HF_LOG"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the log was made all the same: %v", err)
	}
}

func TestEnsureSaysWhatTheBrokerRefuses(t *testing.T) {
	s := natstest.Start(t)
	b, err := bus.Open(within(t, patience), bus.Config{URL: s.URL(), Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Ensure(within(t, patience)); err == nil || !strings.Contains(err.Error(), "HF_LOG") ||
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
			b, err := bus.Open(within(t, patience), bus.Config{URL: s.URL(), FeedAge: time.Duration(i+1) * time.Hour})
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Close()
			if err := b.Ensure(within(t, patience)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	natstest.Bus(t, s, func(c *bus.Config) { c.FeedAge = services * time.Hour })
	_, js := outsider(t, s)
	if c := config(t, js, "HF_FEED"); c.MaxAge != services*time.Hour {
		t.Errorf("feed keeps %s, want %s", c.MaxAge, services*time.Hour)
	}
}

// TestFullLog fills the log, sees it refuse, and raises its limit once.
func TestFullLog(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.LogBytesMax = 64 << 10 })
	ctx := within(t, patience)
	fill := func(after uint64) (uint64, error) {
		for {
			seq, err := b.Append(ctx, session, events.WriterHarness, after, facts(b.NewID()))
			if err != nil {
				return after, err
			}
			after = seq
		}
	}
	last, err := fill(0)
	if !errors.Is(err, bus.ErrFull) {
		t.Fatalf("append to a full log: %v, want ErrFull", err)
	}
	used, most, err := b.LogUsage(ctx)
	if err != nil || most != 64<<10 || used > most || used < most*9/10 {
		t.Errorf("usage = %d of %d, %v", used, most, err)
	}
	if raised, err := b.RaiseLogLimit(ctx); err != nil || !raised {
		t.Fatalf("raise = %t, %v", raised, err)
	}
	if err := b.Ensure(ctx); err != nil { // which has the old limit in its configuration
		t.Fatal(err)
	}
	next, err := fill(last)
	if next == last || !errors.Is(err, bus.ErrFull) {
		t.Errorf("after the raise: %d after %d, %v", next, last, err)
	}
	if raised, err := b.RaiseLogLimit(ctx); err != nil || raised {
		t.Errorf("a second raise = %t, %v", raised, err)
	}
	if cs := mustRead(t, b, session, last); len(cs) < 2 {
		t.Errorf("%d commits from %d on", len(cs), last)
	}
}

// TestServicesHaveRoomInAFullLog: the limit of a log that others filled is raised once for recovery and closing.
func TestServicesHaveRoomInAFullLog(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.LogBytesMax = 64 << 10 })
	ctx := within(t, patience)
	fill := func(w events.Writer, after uint64) (uint64, error) {
		for {
			seq, err := b.Append(ctx, session, w, after, facts(b.NewID()))
			if err != nil {
				return after, err
			}
			after = seq
		}
	}
	last, err := fill(events.WriterHarness, 0)
	if !errors.Is(err, bus.ErrFull) {
		t.Fatalf("a harness fills the log: %v, want ErrFull", err)
	}
	next, err := fill(events.WriterReconciler, last)
	if next == last || !errors.Is(err, bus.ErrFull) {
		t.Errorf("a service has got from %d to %d, %v", last, next, err)
	}
	if _, most, err := b.LogUsage(ctx); err != nil || most != 128<<10 {
		t.Errorf("limit = %d, %v; want it raised once", most, err)
	}
}

func TestUnlimitedLogIsNotRaised(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := within(t, patience)
	if raised, err := b.RaiseLogLimit(ctx); err != nil || raised {
		t.Errorf("raise = %t, %v", raised, err)
	}
	if _, most, err := b.LogUsage(ctx); err != nil || most != 0 {
		t.Errorf("limit = %d, %v; want none", most, err)
	}
}

func TestFullDisk(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t,
		`accounts { A { jetstream: {max_disk: 100KB}, users: [{user: a, password: a}] } }`))
	b := natstest.Bus(t, s, func(c *bus.Config) { c.URL = as(s, "a") })
	ctx, after := within(t, patience), uint64(0)
	if err := b.Park(ctx, bus.Parked{Why: "malformed", Ref: session, Seq: 1}); err != nil {
		t.Errorf("park where the broker has little room: %v", err)
	}
	var err error
	for err == nil {
		after, err = b.Append(ctx, session, events.WriterHarness, after, facts(b.NewID()))
	}
	if !errors.Is(err, bus.ErrFull) {
		t.Errorf("append to a full account: %v, want ErrFull", err)
	}
}

func TestWithoutALog(t *testing.T) {
	b, err := bus.Open(within(t, patience), bus.Config{URL: natstest.Start(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx := within(t, patience)
	for name, call := range map[string]func() error{
		"append": func() error { _, err := b.Append(ctx, session, events.WriterHarness, 0, facts("a")); return err },
		"store":  func() error { _, err := b.Store(ctx, bus.State, key, []byte("x"), 0); return err },
		"scan":   func() error { return b.Scan(ctx, 0, func(events.Commit) error { return nil }) },
		"usage":  func() error { _, _, err := b.LogUsage(ctx); return err },
	} {
		if err := call(); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("%s in a cell that was not set up: %v, want ErrNotFound", name, err)
		}
	}
}

// foreign puts a message into the log as a program does that does not know this package.
func foreign(t testing.TB, js jetstream.JetStream, subject, body string, header nats.Header) uint64 {
	t.Helper()
	ack, err := js.PublishMsg(within(t, patience), &nats.Msg{Subject: subject, Data: []byte(body), Header: header})
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

// TestForeignCommitsDoNotBreakReaders: an unreadable commit comes with its reason, and the later ones come too.
func TestForeignCommitsDoNotBreakReaders(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	noToken := foreign(t, js, "hf.log.h.ü.harness", commitBody(t, "x", session), nil)
	noBatch := foreign(t, js, "hf.log.h.s.harness", "not a batch", nil)
	oddGuard := foreign(t, js, "hf.log.h.s.harness", "[]", nats.Header{"Nats-Expected-Last-Subject-Sequence": {"2"}})
	if cs := mustRead(t, b, session, 0); len(cs) != 2 {
		t.Errorf("%d commits of the session, want both, though neither names the one before", len(cs))
	}
	mustAppend(t, b, session, oddGuard, "a")
	var got []events.Commit
	if err := b.Scan(within(t, patience), 0,
		func(c events.Commit) error { got = append(got, c); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 {
		t.Fatalf("%d commits, want 4", len(got))
	}
	if got[0].Seq != noToken || !errors.Is(got[0].Err, events.ErrMalformed) {
		t.Errorf("a subject that is none: %+v", got[0])
	}
	if got[1].Seq != noBatch || !errors.Is(got[1].Err, events.ErrMalformed) || got[1].Ref != session || got[1].Guarded {
		t.Errorf("a body that is none: %+v", got[1])
	}
	if got[2].Guarded {
		t.Errorf("a guard on one writer only passes for a guard on the session: %+v", got[2])
	}
	if got[3].Err != nil || !got[3].Guarded || got[3].Guard != oddGuard {
		t.Errorf("what follows: %+v", got[3])
	}
}

func TestParkKeepsWhatCameOnce(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	ctx := within(t, patience)
	p := bus.Parked{Why: "malformed", Ref: session, Reason: "line one\nline two", Seq: 7, Body: []byte("\x00junk"),
		Header: map[string][]string{"Content-Type": {"text/plain"}, "Nats-Expected-Last-Subject-Sequence": {"99"},
			"nats-rollup": {"all"}}}
	other := p
	other.Why, other.Facts, other.Header = "out-of-role", "0-3,7", map[string][]string{"a key": {"with a space"}}
	for _, p := range []bus.Parked{p, p, other, p} {
		if err := b.Park(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	st, err := js.Stream(ctx, "HF_PARKED")
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 2 {
		t.Errorf("%d parked, want 2", n)
	}
	m, err := st.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "hf.parked.malformed.h.s" || string(m.Data) != "\x00junk" ||
		m.Header.Get("Hf-Parked-Reason") != "line one line two" ||
		m.Header.Get("Content-Type") != "text/plain" ||
		m.Header.Get("Hf-Original-Nats-Expected-Last-Subject-Sequence") != "99" {
		t.Errorf("parked = %s %q %v", m.Subject, m.Data, m.Header)
	}
	m, err = st.GetMsg(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if m.Header.Get("Hf-Parked-Facts") != "0-3,7" || m.Header.Get("Hf-Unreadable-Header") != `"a key: with a space"` {
		t.Errorf("parked with a key that cannot be sent: %v", m.Header)
	}
	if c := st.CachedInfo().Config; c.MaxBytes <= 0 || c.MaxAge <= 0 {
		t.Errorf("parked input has no limit: %d bytes, %s", c.MaxBytes, c.MaxAge)
	}
}

func TestFeed(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	ctx := within(t, patience)
	odd := fact("b", session)
	odd.Kind, odd.Foreign, odd.Fact = "some body else's.*.thing", true, nil
	for range 2 { // the second time is recognised
		if _, err := b.Feed(ctx,
			bus.Fed{Ref: session, Seq: 7, Events: []events.Event{fact("a", session), odd}}).Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	st, err := js.Stream(ctx, "HF_FEED")
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 2 {
		t.Errorf("%d fed, want 2", n)
	}
	m, err := st.GetLastMsgForSubject(ctx, "hf.feed.tool.started")
	if err != nil {
		t.Fatal(err)
	}
	e := events.DecodeEvent(m.Data)
	if e.Err != nil || e.ID != "a" || m.Header.Get("Hf-Harness") != "h" || m.Header.Get("Hf-Session") != "s" ||
		m.Header.Get("Hf-Seq") != "7" {
		t.Errorf("fed %+v %v", e, m.Header)
	}
	if m, err := st.GetLastMsgForSubject(ctx, "hf.feed.other.other"); err != nil || !json.Valid(m.Data) {
		t.Errorf("a kind that is no subject: %v, %v", m, err)
	}
	off := natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.FeedAge = -1 })
	if seq, err := off.Feed(ctx,
		bus.Fed{Ref: session, Seq: 7, Events: facts("a")}).Wait(context.Background()); seq != 0 || err != nil {
		t.Errorf("without a feed: %d, %v", seq, err)
	}
}
