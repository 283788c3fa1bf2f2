package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// chained reads a message whose body is the guard; an empty one has none.
func chained(m bus.Message) events.Commit {
	c := events.Commit{Seq: m.Seq}
	n, err := fmt.Sscan(string(m.Body), &c.Guard)
	c.Guarded = n == 1 && err == nil
	return c
}

func TestTailKnowsWhatItMisses(t *testing.T) {
	a, b := events.Ref{Harness: "h", Session: "a"}, events.Ref{Harness: "h", Session: "b"}
	full := newTail(chained, 1<<20)
	for _, m := range []struct {
		ref   events.Ref
		seq   uint64
		guard string
	}{{a, 11, "7"}, {b, 12, "0"}, {a, 13, "11"}, {a, 14, "13"}, {b, 15, ""}, {b, 16, "15"}} {
		full.add(m.ref, bus.Message{Seq: m.seq, Body: []byte(m.guard)})
	}
	for _, c := range []struct {
		name string
		ref  events.Ref
		seq  uint64
		want []uint64
		gap  bool
	}{
		{"all that is beyond", a, 7, []uint64{11, 13, 14}, false},
		{"some are known", a, 13, []uint64{14}, false},
		{"all are known", a, 14, nil, false},
		{"it is known further than it came here", a, 20, nil, false},
		{"one before the first is missing", a, 6, nil, true},
		{"the first of all is missing", a, 0, nil, true},
		{"a new session, then a commit without a guard", b, 0, nil, true},
		{"behind a commit without a guard", b, 15, []uint64{16}, false},
		{"nothing of it came", events.Ref{Harness: "h", Session: "c"}, 3, nil, false},
	} {
		cs, gap := full.after(c.ref, c.seq)
		var seqs []uint64
		for i := range cs {
			seqs = append(seqs, cs[i].Seq)
		}
		if gap != c.gap || fmt.Sprint(seqs) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, gap %v; want %v, %v", c.name, seqs, gap, c.want, c.gap)
		}
	}
	if c := full.commit(13); c == nil || c.Guard != 11 || full.commit(17) != nil {
		t.Errorf("by place: %v", c)
	}
	full.clear()
	if cs, gap := full.after(a, 7); cs != nil || gap || full.commit(13) != nil {
		t.Errorf("cleared: %v, %v", cs, gap)
	}
}

func TestTailIsBounded(t *testing.T) {
	const size, most = 100, 5_000
	kept := newTail(chained, most)
	r := func(i int) events.Ref { return events.Ref{Harness: "h", Session: fmt.Sprint(i % 7)} }
	for i := range 10_000 {
		kept.add(r(i), bus.Message{Seq: uint64(i + 1), Body: fmt.Appendf(make([]byte, 0, size), "%*d", size, i-6)})
		if kept.bytes > most || len(kept.order) > most/size || len(kept.bySeq) != len(kept.order) {
			t.Fatalf("after %d: %d bytes, %d in order, %d by place", i, kept.bytes, len(kept.order), len(kept.bySeq))
		}
	}
	if n := len(kept.byRef); n != 7 {
		t.Errorf("%d sessions", n)
	}
	if cs, gap := kept.after(r(9_999), 9_993); len(cs) != 1 || gap {
		t.Errorf("the newest: %v, %v", cs, gap)
	}
	if _, gap := kept.after(r(9_999), 1_000); !gap {
		t.Error("what was forgotten is not missed")
	}
	small := newTail(chained, 1<<30)
	for i := range tailCommitsMax + 10 {
		small.add(r(0), bus.Message{Seq: uint64(i + 1)})
	}
	if len(small.order) != tailCommitsMax {
		t.Errorf("%d commits without a body are kept, want %d", len(small.order), tailCommitsMax)
	}
	kept.add(r(1), bus.Message{Seq: 10_001, Body: make([]byte, 2*most)})
	if len(kept.order) != 0 || len(kept.byRef) != 0 || kept.bytes != 0 {
		t.Errorf("one that is too large: %d in order, %d bytes", len(kept.order), kept.bytes)
	}
}

// idle returns a ledger that neither folds nor follows, with the session's first commits in its cache.
func (w *world) idle(commits int) *Ledger {
	w.t.Helper()
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	cs, err := w.bus.Log.Read(w.t.Context(), ref, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	st := session.New(ref)
	for i := range cs[:commits] {
		st.Fold(&cs[i])
	}
	l.fold.cache.put(ref, cached{st, 1, 0})
	return l
}

// request calls an endpoint without the wire.
func (w *world) request(l *Ledger, verb string, req any) (request.Changed, *events.Refusal) {
	w.t.Helper()
	body, err := json.Marshal(req)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range l.endpoints() {
		if e.Verb != verb {
			continue
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		defer cancel()
		var reply request.Changed
		raw, err := e.Handle(ctx, body)
		if refusal, ok := errors.AsType[*events.Refusal](err); ok {
			return reply, refusal
		}
		if err == nil {
			err = json.Unmarshal(raw, &reply)
		}
		if err != nil {
			w.t.Fatalf("%s: %v", verb, err)
		}
		return reply, nil
	}
	w.t.Fatalf("no such verb: %s", verb)
	return request.Changed{}, nil
}

// TestRepliesAreVerifiedByTheLog: this process's cache of the session may be old. It may try to append on that
// basis, but its reply is what the log has.
func TestRepliesAreVerifiedByTheLog(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	if reply, refusal := w.request(w.idle(1), "answer", answer("a")); refusal != nil || reply.Seq != 3 {
		t.Errorf("a prompt that this ledger has not heard of: %v, %v", reply, refusal)
	}
	if reply, refusal := w.request(w.idle(2), "answer", answer("a")); refusal != nil || reply.Seq != 3 {
		t.Errorf("the same answer, of which it has not heard: %v, %v", reply, refusal)
	}
	_, refusal := w.request(w.idle(2), "answer", answer("b"))
	if refusal == nil || refusal.Code != 409 || refusal.Stands == nil || refusal.Stands.Seq != 3 ||
		refusal.Stands.Answers[0].Selected[0] != "a" {
		t.Errorf("another answer: %v", refusal)
	}
	stop := map[string]any{"harness": ref.Harness, "session": ref.Session, "by": "ada"}
	if reply, refusal := w.request(w.idle(2), "stop", stop); refusal != nil || reply.Seq != 4 {
		t.Errorf("a stop that no prompt is in the way of any more: %v, %v", reply, refusal)
	}
	body, err := w.idle(1).get(t.Context(), request.Get{Ref: events.Ref{Harness: "h1", Session: "s1"}})
	var got session.State
	if err := errors.Join(err, json.Unmarshal(body.Document, &got)); err != nil || got.Seq != 4 {
		t.Errorf("get: seq %d, %v", got.Seq, err)
	}
}

// TestAPurgedSessionIsClosed: its last commit is the first that arrives here, and names a predecessor that no stream
// has.
func TestAPurgedSessionIsClosed(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	last := w.append(ref, events.SessionClosed{Reason: "finished"})
	if err := w.bus.Log.PurgeSession(t.Context(), ref, last); err != nil {
		t.Fatal(err)
	}
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- w.bus.Log.Follow(ctx, "", func(uint64) {}, func(m bus.Message) { l.fold.tail.add(ref, m) })
	}()
	natstest.Until(t, "something to be kept", func() bool {
		w.append(ref, events.SessionClosed{Reason: "archived"})
		l.fold.tail.mu.Lock()
		defer l.fold.tail.mu.Unlock()
		return len(l.fold.tail.order) > 0
	})
	if _, refusal := w.request(l, "answer", answer("a")); refusal == nil || refusal.Code != 409 {
		t.Errorf("an answer: %v, want 409", refusal)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
