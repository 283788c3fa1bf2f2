package kv_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// docs are n documents of their own, each with two entries of views, in place of these revisions.
func docs(n int, text string, revs []uint64) []kv.Doc {
	ds := make([]kv.Doc, n)
	for i := range ds {
		ds[i] = kv.Doc{Key: fmt.Sprintf("session.h.%d", i), Value: []byte(text), Views: []kv.View{
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
	found := map[string]kv.Entry{}
	if err := b.KV.List(bustest.Within(t, bustest.Patience), kv.State, ">",
		func(e kv.Entry) error { found[e.Key] = e; return nil }); err != nil {
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

// TestStoreDocs: whether documents travel together or one by one, and also when the broker takes no batches, they come
// to the same.
func TestStoreDocs(t *testing.T) {
	// with their entries more than one batch holds
	const many = 400
	for _, c := range []struct {
		name    string
		opt     natstest.BusOption
		refused bool // the broker takes no batches
		n       int
		batches bool
	}{
		{"one by one", func(*bus.Config) {}, false, 40, false},
		{"together", bustest.Together, false, many, true},
		{"too few to go together", bustest.Together, false, 3, false},
		{"batches refused", bustest.Together, true, 40, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s, c.opt)
			_, js := bustest.Outsider(t, s)
			if c.refused {
				cfg := bustest.Config(t, js, "KV_hf_state")
				cfg.AllowAtomicPublish = false
				if _, err := js.UpdateStream(bustest.Within(t, bustest.Patience), cfg); err != nil {
					t.Fatal(err)
				}
			}
			revs, err := b.KV.StoreDocs(bustest.Within(t, bustest.Patience), docs(c.n, "one", nil))
			if err != nil {
				t.Fatal(err)
			}
			check(t, b, c.n, "one", revs)
			if revs, err = b.KV.StoreDocs(bustest.Within(t, bustest.Patience), docs(c.n, "two", revs)); err != nil {
				t.Fatal(err)
			}
			check(t, b, c.n, "two", revs)
			if n := bustest.Batches(t, js, "KV_hf_state"); n > 0 != c.batches {
				t.Errorf("%d messages came in batches, want some: %v", n, c.batches)
			}
			views := docs(c.n, "three", revs)
			for i := range views {
				// the document stands
				views[i].Value = nil
				views[i].Views[0].Value = nil
			}
			same, err := b.KV.StoreDocs(bustest.Within(t, bustest.Patience), views)
			if err != nil {
				t.Fatal(err)
			}
			for i := range same {
				if same[i] != revs[i] {
					t.Fatalf("a document that stands was at %d, now %d", revs[i], same[i])
				}
			}
			if _, err := b.KV.Load(bustest.Within(t, bustest.Patience), kv.State, "work.h.0"); !errors.Is(err,
				bus.ErrNotFound) {
				t.Errorf("an entry that was removed: %v, want ErrNotFound", err)
			}
		})
	}
}

// TestStoreDocsThatLostARace: no entry is written of a document that another process has replaced; the others are
// unharmed.
func TestStoreDocsThatLostARace(t *testing.T) {
	for name, opt := range map[string]natstest.BusOption{"one by one": func(*bus.Config) {},
		"together": bustest.Together} {
		t.Run(name, func(t *testing.T) {
			const n = 40
			b := natstest.Bus(t, natstest.Start(t), opt)
			revs, err := b.KV.StoreDocs(bustest.Within(t, bustest.Patience), docs(n, "one", nil))
			if err != nil {
				t.Fatal(err)
			}
			theirs := bustest.MustStore(t, b, "session.h.7", "theirs", revs[7])
			if _, err := b.KV.StoreDocs(bustest.Within(t, bustest.Patience), docs(n, "two", revs)); !errors.Is(err,
				bus.ErrLostRace) {
				t.Fatalf("a lost race: %v, want ErrLostRace", err)
			}
			for key, want := range map[string]string{"session.h.7": "theirs", "work.h.7": "one",
				"blocker.h.7.7.p": "one"} {
				if e, err := b.KV.Load(bustest.Within(t, bustest.Patience), kv.State, key); err != nil ||
					string(e.Value) != want {
					t.Errorf("%s = %q, %v; want %q", key, e.Value, err, want)
				}
			}
			// as the loser of a race reads them again
			for i := range revs {
				e, err := b.KV.Load(bustest.Within(t, bustest.Patience), kv.State, fmt.Sprintf("session.h.%d", i))
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
			if _, err := b.KV.StoreDocs(bustest.Within(t, bustest.Patience), views); !errors.Is(err, bus.ErrLostRace) {
				t.Errorf("entries of an older document: %v, want ErrLostRace", err)
			}
			if e, err := b.KV.Load(bustest.Within(t, bustest.Patience), kv.State, "work.h.7"); err != nil ||
				string(e.Value) != "one" {
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
	p := bustest.NewProxy(t, s)
	b, err := bus.Open(bustest.Background(t), bus.Config{URL: p.Addr, Synced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Abort)
	p.Hold(false, true)
	type result struct {
		revs []uint64
		err  error
	}
	done := make(chan result, 1)
	go func() {
		revs, err := b.KV.StoreDocs(bustest.Within(t, bustest.Patience), docs(n, "one", nil))
		done <- result{revs, err}
	}()
	natstest.Until(t, "the batch to land", func() bool {
		_, err := witness.KV.Load(bustest.Within(t, bustest.Patience), kv.State, fmt.Sprintf("work.h.%d", n-1))
		return err == nil
	})
	p.Cut()
	p.Hold(false, false)
	r := bustest.Receive(t, done, "the result of the write")
	if r.err != nil {
		t.Fatal(r.err)
	}
	check(t, witness, n, "one", r.revs)
}
