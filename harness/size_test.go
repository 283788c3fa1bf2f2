package harness_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// waiting has many facts wait in a session at once, then lets them go. It returns what each append came to.
func waiting(t *testing.T, w *world, s *harness.Session, facts []events.Fact) []error {
	t.Helper()
	release := harness.Mute(s)
	before := harness.Waiting(s)
	errs := make([]error, len(facts))
	var wg sync.WaitGroup
	for i, f := range facts {
		wg.Go(func() { errs[i] = s.Append(w.ctx, f) })
		// in about this order
		if i%100 == 0 || i == len(facts)-1 {
			natstest.Until(t, "the facts to wait", func() bool { return harness.Waiting(s) == before+i+1 })
		}
	}
	release()
	wg.Wait()
	return errs
}

// TestLongIDs checks that facts which wait together fill commits up to the limit in bytes, and not beyond, however long
// the ids in their envelopes are.
func TestLongIDs(t *testing.T) {
	const facts = 3_000
	w := newWorld(t)
	id, long := strings.Repeat("h", 91), events.Ref{Harness: strings.Repeat("h", 91), Session: strings.Repeat("s", 91)}
	h := w.connect(func(c *harness.Config) { c.ID, c.TTL = id, time.Minute })
	s := must[*harness.Session](t)(h.Open(w.ctx, long.Session, harness.OpenOptions{}))
	all := make([]events.Fact, facts)
	for i := range all {
		all[i] = events.TurnStarted{Turn: fmt.Sprint("t", i), Cause: events.CauseMessage}
	}
	refused := 0
	for _, err := range waiting(t, w, s, all) {
		if err != nil {
			if refused++; refused == 1 {
				t.Errorf("the first refusal: %v", err)
			}
		}
	}
	commits := must[[]events.Commit](t)(w.bus.Log.Read(w.ctx, long, 1))
	st, stored, bytes := session.New(long), 0, 0
	for i := range commits {
		st.Fold(&commits[i])
		stored += len(commits[i].Events)
		bytes += len(must[[]byte](t)(events.EncodeBatch(commits[i].Events)))
	}
	if refused != 0 || stored != 1+facts || st.Ignored.Count != 0 {
		t.Errorf("%d of %d facts were refused, %d are stored, %d ignored", refused, facts, stored, st.Ignored.Count)
	}
	if most := 1 + bytes/events.CommitBodyMax + 1; len(commits) > most {
		t.Errorf("%d commits for %d bytes, want at most %d", len(commits), bytes, most)
	}
}

// TestAcknowledgedFactsCount checks that near the limit in bytes of what a session may have open, each call whose start
// returned nil is open, and each other one got ErrLimit: the client judges a commit exactly as the fold does.
func TestAcknowledgedFactsCount(t *testing.T) {
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.TTL = time.Minute })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	call := func(i int) string { return fmt.Sprintf("%s-%04d", strings.Repeat("c", 123), i) }
	var all []events.Fact
	for i := range session.OpenCallsMax {
		all = append(all, events.ToolStarted{Call: call(i), Name: "bash"})
	}
	open := 0
	for _, err := range waiting(t, w, s, all) {
		if err == nil {
			open++
		} else {
			wantErr(t, err, harness.ErrLimit)
		}
	}
	if st := w.state("s"); open == session.OpenCallsMax || len(st.Tools) != open || st.Ignored.Count != 0 {
		t.Fatalf("%d calls were acknowledged, %d are open, %d ignored", open, len(st.Tools), st.Ignored.Count)
	}
	all = nil
	held := w.state("s").Tools
	// each end makes room for one start
	for id := range held {
		n := len(all)
		all = append(all, events.ToolCompleted{Call: id}, events.ToolStarted{Call: call(5_000 + n), Name: "bash"})
	}
	errs := waiting(t, w, s, all)
	st := w.state("s")
	for i, f := range all {
		started, ok := f.(events.ToolStarted)
		if ok && (errs[i] == nil) != (st.Tools[started.Call] != nil) {
			t.Fatalf("call %d: start returned %v, open: %t", i, errs[i], st.Tools[started.Call] != nil)
		}
		if errs[i] != nil {
			wantErr(t, errs[i], harness.ErrLimit)
		}
	}
	if st.Ignored.Count != 0 {
		t.Errorf("%d acknowledged facts were ignored, the last: %+v", st.Ignored.Count, st.Ignored.Last)
	}
}

// large is a question of about this many bytes.
func large(bytes int) []events.Question {
	return []events.Question{{ID: "q", Question: strings.Repeat("x", bytes), Custom: true}}
}

// largePrompts opens the session s in a process of its own, asks n large questions in it, and returns their adoption.
func (w *world) largePrompts(n int) harness.Adopt {
	w.t.Helper()
	s := must[*harness.Session](w.t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	var adopt harness.Adopt
	for i := range n {
		p := harness.Prompt{ID: fmt.Sprint("p", i), Questions: large(60 << 10)}
		ask(w.ctx, turn, p)
		w.awaiting("s", p.ID)
		adopt.Prompts = append(adopt.Prompts, harness.Prompt{ID: p.ID})
	}
	return adopt
}

// TestLargeAdoption checks that a claim adopts more than one commit can hold, in several, and that one which names what
// no commit can hold is refused before anything is sent.
func TestLargeAdoption(t *testing.T) {
	const prompts = 20
	w := newWorld(t)
	adopt := w.largePrompts(prompts)
	two := w.connect()
	before := w.state("s")
	// beyond the first commit
	last := harness.Prompt{ID: "p15", Title: "x", Native: json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)}
	tooLarge := harness.Adopt{Prompts: append(slices.Clone(adopt.Prompts[:12]), last)}
	_, err := two.Claim(w.ctx, "s", tooLarge)
	wantErr(t, err, events.ErrMalformed)
	if st := w.state("s"); st.Epoch != 1 {
		t.Fatalf("claimed as epoch %d, though the adoption was refused", st.Epoch)
	}
	must[*harness.Session](t)(two.Claim(w.ctx, "s", adopt))
	st := w.state("s")
	for i := range prompts {
		if p := st.Prompts[fmt.Sprint("p", i)]; p == nil || p.Epoch != 2 {
			t.Errorf("prompt p%d was not adopted: %+v", i, p)
		}
	}
	const bytes = prompts * 60 << 10
	if n := st.Commits - before.Commits; n != bytes/events.CommitBodyMax+1 {
		t.Errorf("%d commits", n)
	}
	if st.Ignored.Count != 0 {
		t.Errorf("ignored: %+v", st.Ignored.Last)
	}
}

// TestLargeAppend checks that a batch which no commit can hold is refused to its caller, and that nothing of it is
// sent.
func TestLargeAppend(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	before := w.state("s").Seq
	content := json.RawMessage(`"` + strings.Repeat("x", 200<<10) + `"`)
	three := []events.Fact{events.MessageAccepted{Message: "m1", Content: content},
		events.MessageAccepted{Message: "m2", Content: content},
		events.MessageAccepted{Message: "m3", Content: content}}
	wantErr(t, s.Append(w.ctx, three...), events.ErrMalformed)
	wantErr(t, s.Relay(w.ctx, three...), events.ErrMalformed)
	// Of this one only the envelope decides: as a commit it is beyond the limit by one byte.
	evs := harness.Wrapped(s, events.MessageAccepted{Message: "m1", Content: content},
		events.MessageAccepted{Message: "m2", Content: content},
		events.MessageAccepted{Message: "m3", Content: json.RawMessage(`""`)})
	room := events.CommitBodyMax - evs
	fits := func(n int) []events.Fact {
		return []events.Fact{events.MessageAccepted{Message: "m1", Content: content},
			events.MessageAccepted{Message: "m2", Content: content},
			events.MessageAccepted{Message: "m3", Content: json.RawMessage(`"` + strings.Repeat("x", n) + `"`)}}
	}
	// bytes: the digits of an instant after its seconds
	const instantVaries = 10
	wantErr(t, s.Append(w.ctx, fits(room+3*instantVaries+1)...), events.ErrMalformed)
	if st := w.state("s"); st.Seq != before {
		t.Error("something was stored")
	}
	check(t, s.Append(w.ctx, fits(room-3*instantVaries)...))
}
