package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// together is a connection that sends what is written together as one batch.
func together(c *bus.Config) { c.Synced = true }

// docs are n documents of their own, each with two entries of views, in place of these revisions.
func docs(n int, text string, revs []uint64) []bus.Doc {
	ds := make([]bus.Doc, n)
	for i := range ds {
		ds[i] = bus.Doc{Key: fmt.Sprintf("session.h.%d", i), Value: []byte(text), Views: []bus.View{
			{Key: fmt.Sprintf("work.h.%d", i), Value: []byte(text)},
			{Key: fmt.Sprintf("blocker.h.%d.%d.p", i, i), Value: []byte(text), TTL: time.Hour}}}
		if revs != nil {
			ds[i].Rev = revs[i]
		}
	}
	return ds
}

// check looks whether documents and entries say text, and the documents are at these revisions.
func check(t *testing.T, b *bus.Bus, n int, text string, revs []uint64) {
	t.Helper()
	found := map[string]bus.Entry{}
	if err := b.List(within(t, patience), bus.State, ">",
		func(e bus.Entry) error { found[e.Key] = e; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, d := range docs(n, text, nil) {
		if e := found[d.Key]; string(e.Value) != text || e.Rev != revs[i] {
			t.Errorf("%s = %q at %d, want %q at %d", d.Key, e.Value, e.Rev, text, revs[i])
		}
		for _, v := range d.Views {
			if e := found[v.Key]; string(e.Value) != text {
				t.Errorf("%s = %q, want %q", v.Key, e.Value, text)
			}
		}
	}
}

// batches is how many messages of a stream came as part of a batch.
func batches(t *testing.T, js jetstream.JetStream, stream string) (n int) {
	t.Helper()
	ctx := within(t, patience)
	st, err := js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	state := st.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		if m, err := st.GetMsg(ctx, seq); err == nil && m.Header.Get("Nats-Batch-Id") != "" {
			n++
		}
	}
	return n
}

// TestStoreDocs: whether documents travel together or one by one, and also when the broker takes no batches, they come
// to the same.
func TestStoreDocs(t *testing.T) {
	const many = 400 // with their entries more than one batch holds
	for _, c := range []struct {
		name    string
		opt     natstest.BusOption
		refused bool // the broker takes no batches
		n       int
		batches bool
	}{
		{"one by one", func(*bus.Config) {}, false, 40, false},
		{"together", together, false, many, true},
		{"too few to go together", together, false, 3, false},
		{"batches refused", together, true, 40, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s, c.opt)
			_, js := outsider(t, s)
			if c.refused {
				cfg := config(t, js, "KV_hf_state")
				cfg.AllowAtomicPublish = false
				if _, err := js.UpdateStream(within(t, patience), cfg); err != nil {
					t.Fatal(err)
				}
			}
			revs, err := b.StoreDocs(within(t, patience), docs(c.n, "one", nil))
			if err != nil {
				t.Fatal(err)
			}
			check(t, b, c.n, "one", revs)
			if revs, err = b.StoreDocs(within(t, patience), docs(c.n, "two", revs)); err != nil {
				t.Fatal(err)
			}
			check(t, b, c.n, "two", revs)
			if n := batches(t, js, "KV_hf_state"); n > 0 != c.batches {
				t.Errorf("%d messages came in batches, want some: %v", n, c.batches)
			}
			views := docs(c.n, "three", revs)
			for i := range views {
				views[i].Value = nil // the document stands
				views[i].Views[0].Value = nil
			}
			same, err := b.StoreDocs(within(t, patience), views)
			if err != nil {
				t.Fatal(err)
			}
			for i := range same {
				if same[i] != revs[i] {
					t.Fatalf("a document that stands was at %d, now %d", revs[i], same[i])
				}
			}
			if _, err := b.Load(within(t, patience), bus.State, "work.h.0"); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("an entry that was removed: %v, want ErrNotFound", err)
			}
		})
	}
}

// TestStoreDocsThatLostARace: no entry is written of a document that another process has replaced; the others are
// unharmed.
func TestStoreDocsThatLostARace(t *testing.T) {
	for name, opt := range map[string]natstest.BusOption{"one by one": func(*bus.Config) {}, "together": together} {
		t.Run(name, func(t *testing.T) {
			const n = 40
			b := natstest.Bus(t, natstest.Start(t), opt)
			revs, err := b.StoreDocs(within(t, patience), docs(n, "one", nil))
			if err != nil {
				t.Fatal(err)
			}
			theirs := mustStore(t, b, "session.h.7", "theirs", revs[7])
			if _, err := b.StoreDocs(within(t, patience), docs(n, "two", revs)); !errors.Is(err, bus.ErrLostRace) {
				t.Fatalf("a lost race: %v, want ErrLostRace", err)
			}
			for key, want := range map[string]string{"session.h.7": "theirs", "work.h.7": "one",
				"blocker.h.7.7.p": "one"} {
				if e, err := b.Load(within(t, patience), bus.State, key); err != nil || string(e.Value) != want {
					t.Errorf("%s = %q, %v; want %q", key, e.Value, err, want)
				}
			}
			for i := range revs { // as the loser of a race reads them again
				e, err := b.Load(within(t, patience), bus.State, fmt.Sprintf("session.h.%d", i))
				if err != nil {
					t.Fatal(err)
				}
				revs[i] = e.Rev
			}
			if revs[7] != theirs {
				t.Fatalf("their document is at %d, was %d", revs[7], theirs)
			}
			views := docs(n, "three", revs)
			for i := range views {
				views[i].Value = nil
			}
			views[7].Rev--
			if _, err := b.StoreDocs(within(t, patience), views); !errors.Is(err, bus.ErrLostRace) {
				t.Errorf("entries of an older document: %v, want ErrLostRace", err)
			}
			if e, err := b.Load(within(t, patience), bus.State, "work.h.7"); err != nil || string(e.Value) != "one" {
				t.Errorf("an entry of an older document: %q, %v", e.Value, err)
			}
		})
	}
}

// TestStoreDocsAckLost: the batch is stored, only its acknowledgement is lost.
func TestStoreDocsAckLost(t *testing.T) {
	const n = 40
	s := natstest.Start(t)
	witness := natstest.Bus(t, s)
	p := newProxy(t, s)
	b, err := bus.Open(background(t), bus.Config{URL: p.addr, Synced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	p.hold(false, true)
	type result struct {
		revs []uint64
		err  error
	}
	done := make(chan result, 1)
	go func() {
		revs, err := b.StoreDocs(within(t, patience), docs(n, "one", nil))
		done <- result{revs, err}
	}()
	natstest.Until(t, "the batch to land", func() bool {
		_, err := witness.Load(within(t, patience), bus.State, fmt.Sprintf("work.h.%d", n-1))
		return err == nil
	})
	p.cut()
	p.hold(false, false)
	r := receive(t, done, "the writer to be told")
	if r.err != nil {
		t.Fatal(r.err)
	}
	check(t, witness, n, "one", r.revs)
}

// TestFeedTogether: a batch of which some is there already is fed all the same, each once, and in order.
func TestFeedTogether(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s, together)
	_, js := outsider(t, s)
	feed := func(from, to int) {
		t.Helper()
		var fs []bus.Fed
		for i := from; i < to; i++ {
			fs = append(fs, bus.Fed{Ref: session, Seq: uint64(i + 1),
				Events: []events.Event{fact(fmt.Sprint(i), session)}})
		}
		if _, err := b.Feed(within(t, patience), fs...).Wait(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}
	feed(0, 1500)
	feed(1490, 1530)
	if n := batches(t, js, "HF_FEED"); n != 1500 {
		t.Errorf("%d messages came in batches, want 1500", n)
	}
	st, err := js.Stream(within(t, patience), "HF_FEED")
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 1530 {
		t.Errorf("%d fed, want 1530", n)
	}
	for i := range 1530 {
		m, err := st.GetMsg(within(t, patience), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Header.Get("Hf-Seq"); got != fmt.Sprint(i+1) {
			t.Fatalf("message %d is of commit %s", i+1, got)
		}
	}
}

// TestFollow: everything from now on, of one harness, in order, across a restart of the broker, and also from a log
// that was made again.
func TestFollow(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	mustAppend(t, b, session, 0, "before")
	ctx, stop := context.WithCancel(background(t))
	defer stop()
	lives, got, ended := make(chan uint64, 100), make(chan events.Commit, 100), make(chan error, 1)
	go func() {
		ended <- b.Follow(ctx, session.Harness, func(from uint64) { lives <- from }, func(m bus.Message) {
			got <- b.Decode(m)
		})
	}()
	next := func(id string) {
		t.Helper()
		if c := receive(t, got, id); c.Err != nil || len(c.Events) != 1 || c.Events[0].ID != id || c.Ref != session ||
			!c.Guarded {
			t.Fatalf("got %+v, want %s", c, id)
		}
	}
	if from := receive(t, lives, "a beginning"); from != 2 {
		t.Errorf("it began at %d, want 2", from)
	}
	seq := mustAppend(t, b, session, 1, "one")
	mustAppend(t, b, events.Ref{Harness: "another", Session: "s"}, 0, "theirs")
	seq = mustAppend(t, b, session, seq, "two")
	next("one")
	next("two")

	s.Shutdown()
	if from := receive(t, lives, "the interruption"); from != 0 {
		t.Errorf("interrupted: %d, want 0", from)
	}
	s = natstest.Restart(t, s)
	other := natstest.Bus(t, s)
	mustAppend(t, other, session, seq, "three") // perhaps before it is followed again
	next("three")
	for from := uint64(0); from == 0; {
		if from = receive(t, lives, "going on"); from != 0 && from != 2 {
			t.Errorf("goes on from %d, want 2: nothing was left out", from)
		}
	}

	_, js := outsider(t, s)
	if err := js.DeleteStream(within(t, patience), "HF_LOG"); err != nil {
		t.Fatal(err)
	}
	if from := receive(t, lives, "the interruption"); from != 0 {
		t.Errorf("interrupted: %d, want 0", from)
	}
	if err := other.Ensure(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	for from := uint64(0); from != 1; { // the old one may have been interrupted, and gone on with, more than once
		if from = receive(t, lives, "going on from 1"); from > 2 {
			t.Errorf("in a new log it begins at %d, want 1", from)
		}
	}
	mustAppend(t, other, session, 0, "anew")
	next("anew")
	stop()
	if err := receive(t, ended, "its end"); err != nil {
		t.Errorf("follow ended with %v", err)
	}
}

// doubled stores two commits of a session in one batch, both under the guard after, with one of another session between
// them. It returns what the broker says of it.
func doubled(t *testing.T, s *embed.Server, after uint64) error {
	t.Helper()
	nc, _ := outsider(t, s)
	var last *nats.Msg
	for i, r := range []events.Ref{session, {Harness: "h", Session: "between"}, session} {
		guard := after
		if r != session {
			guard = 0
		}
		body, err := events.EncodeBatch([]events.Event{fact(fmt.Sprint("batch-", i), r)})
		if err != nil {
			t.Fatal(err)
		}
		last = &nats.Msg{Subject: fmt.Sprintf("hf.log.%s.%s.harness", r.Harness, r.Session), Data: body,
			Header: nats.Header{
				"Content-Type": {events.BatchContentType}, "Nats-Batch-Id": {"x"},
				"Nats-Batch-Sequence":                   {fmt.Sprint(i + 1)},
				jetstream.ExpectedLastSubjSeqHeader:     {fmt.Sprint(guard)},
				jetstream.ExpectedLastSubjSeqSubjHeader: {fmt.Sprintf("hf.log.%s.%s.*", r.Harness, r.Session)}}}
		if i < 2 {
			if err := nc.PublishMsg(last); err != nil {
				t.Fatal(err)
			}
		}
	}
	last.Header.Set("Nats-Batch-Commit", "1")
	m, err := nc.RequestMsgWithContext(within(t, patience), last)
	if err != nil {
		t.Fatal(err)
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		t.Fatal(err)
	}
	if ack.Error != nil {
		return ack.Error
	}
	return nil
}

// TestTwoCommitsUnderOneGuard: the broker takes two commits of a session under one guard when they are in one batch.
// Where the log takes batches at all, every way of reading it finds both, in the same order.
func TestTwoCommitsUnderOneGuard(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s, together)
	after := mustAppend(t, b, session, 0, "a")
	if err := doubled(t, s, after); err != nil {
		t.Fatal(err)
	}
	last := mustAppend(t, b, session, after+3, "z")
	var want []uint64
	if err := b.Scan(within(t, patience), 0, func(c events.Commit) error {
		if c.Ref == session {
			want = append(want, c.Seq)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(want) != 4 || want[3] != last {
		t.Fatalf("the log has %v", want)
	}
	for i, from := range want {
		var got []uint64
		for _, c := range mustRead(t, b, session, from) {
			got = append(got, c.Seq)
		}
		if !slices.Equal(got, want[i:]) {
			t.Errorf("read from %d: %v, want %v", from, got, want[i:])
		}
	}
	if _, err := b.Append(within(t, patience), session, events.WriterHarness, after, facts("late")); !errors.Is(err,
		bus.ErrLostRace) {
		t.Errorf("a third under the same guard: %v, want ErrLostRace", err)
	}
}

// TestTheLogOfAClusterTakesNoBatches: also one that did before.
func TestTheLogOfAClusterTakesNoBatches(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	if err := doubled(t, s, 0); err == nil {
		t.Error("a new log takes batches")
	}
	_, js := outsider(t, s)
	cfg := config(t, js, "HF_LOG")
	cfg.AllowAtomicPublish = true
	if _, err := js.UpdateStream(within(t, patience), cfg); err != nil {
		t.Fatal(err)
	}
	if err := b.Ensure(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if err := doubled(t, s, 0); err == nil {
		t.Error("a log that did before takes batches still")
	}
	if cs := mustRead(t, b, session, 0); len(cs) != 0 {
		t.Errorf("stored: %+v", cs)
	}
	if state := config(t, js, "KV_hf_state"); !state.AllowAtomicPublish {
		t.Error("documents and views can no longer be stored together")
	}
}
