package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// manyMax is how many prompts a test opens: more than the endings that a session lists.
const manyMax = session.RecentMax + 10

// askMany opens a session in whose turn more questions wait than endings are listed.
func (w *world) askMany() {
	w.t.Helper()
	w.append(ref, events.SessionOpened{Incarnation: "1"}, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	facts := make([]events.Fact, manyMax)
	for i := range facts {
		facts[i] = events.PromptRequested{Prompt: fmt.Sprintf("p%02d", i), Turn: "t1",
			PromptKind: events.PromptQuestion, Title: "Which?", Delivery: events.DeliverCallback}
	}
	w.append(ref, facts...)
}

// entries counts the session's entries in the people's view, by status.
func (w *world) entries() map[session.Status]int {
	w.t.Helper()
	count := map[session.Status]int{}
	err := w.bus.KV.List(w.t.Context(), kv.State, events.BlockerSessionKeys("h1", "s1", "s1"), func(e kv.Entry) error {
		var b session.Blocker
		err := json.Unmarshal(e.Value, &b)
		count[b.Status]++
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return count
}

func TestWhatEndsWithMuchElseNoLongerWaitsInTheView(t *testing.T) {
	for name, ledgerDies := range map[string]bool{"at once": false,
		"by the successor of a ledger that died between document and views": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.askMany()
			w.append(ref, events.TurnCompleted{Turn: "t1"})
			all := w.delivered(3)
			f := w.folder()
			w.fold(f, all[:2]...)
			if n := w.entries(); n[session.Awaiting] != manyMax {
				t.Fatalf("%v: all %d wait", n, manyMax)
			}
			if ledgerDies {
				w.storeDocument(all)
				f = w.folder()
			}
			w.fold(f, all[2])
			if n := w.entries(); n[session.Awaiting] != 0 || n[session.Withdrawn] != session.RecentMax-1 {
				t.Errorf("%v: no prompt waits, and the last ended ones are shown", n)
			}
		})
	}
}

// storeDocument does the first half of a ledger's work for these messages.
func (w *world) storeDocument(ms []bus.Message) {
	w.t.Helper()
	st := session.New(ref)
	for _, m := range ms {
		c := w.bus.Log.Decode(m)
		st.Fold(&c)
	}
	doc, err := st.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := w.bus.KV.Load(w.t.Context(), kv.State, events.SessionKey(ref))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.bus.KV.Store(w.t.Context(), kv.State, e.Key, doc, e.Rev); err != nil {
		w.t.Fatal(err)
	}
}

func TestRebuildHasTimeForManySessions(t *testing.T) {
	w := newWorld(t)
	l, err := New(w.bus, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for _, ep := range l.endpoints() {
		if ep.Verb == "rebuild" && ep.TimeMax < 10*time.Minute {
			t.Errorf("it is cut off after %s (0: the default of 10 s)", ep.TimeMax)
		}
	}
	const many = 3 * rebuildsAtOnceMax
	for i := range many {
		w.open(events.Ref{Harness: "h1", Session: fmt.Sprintf("s%d", i)})
	}
	reply, err := l.rebuild(t.Context(), request.Rebuild{})
	if err != nil || reply.Sessions != many || reply.Changed != many || len(reply.Failed) > 0 {
		t.Errorf("%v: %+v", err, reply)
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if reply, err := l.rebuild(short, request.Rebuild{}); err == nil {
		t.Errorf("cut off, and it says: %+v", reply)
	}
}

// TestARebuildNamesAPartOfWhatFailed: the reply fits into a message, whatever the number of sessions.
func TestARebuildNamesAPartOfWhatFailed(t *testing.T) {
	w := newWorld(t)
	b := natstest.Bus(t, w.server)
	l, err := New(b, Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	refs := map[events.Ref]bool{}
	for i := range failedMax + 1 {
		refs[events.Ref{Harness: "h1", Session: fmt.Sprint("s", i)}] = true
	}
	var reply request.Rebuilt
	if err := l.rebuildAll(t.Context(), refs, false, &reply); err != nil || len(reply.Failed) != failedMax {
		t.Errorf("%d of %d are named, %v", len(reply.Failed), len(refs), err)
	}
}

func TestRebuildLeavesWorkThatIsTheSame(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.open(ref)
	w.document(ref, w.seq[ref])
	if r := w.ask("answer", answer("a"), nil); r != nil {
		t.Fatal(r)
	}
	w.await(events.WorkKey(ref), func(e kv.Entry) bool { return !e.Deleted })
	// the answer
	w.seq[ref]++
	w.append(ref, events.ToolStarted{Call: "c2", Turn: "t1", Name: "bash"})
	w.document(ref, w.seq[ref])
	before := w.load(events.WorkKey(ref))
	var reply request.Rebuilt
	if r := w.ask("rebuild", map[string]any{}, &reply); r != nil || reply.Changed+reply.Views != 0 {
		t.Errorf("%v: a rebuild changed something: %+v", r, reply)
	}
	if after := w.load(events.WorkKey(ref)); before == nil || !bytes.Equal(before, after) {
		t.Errorf("the work is %s\nit was %s", after, before)
	}
	other := []byte(strings.Replace(string(before), "answered", "rejected", 1))
	e, err := w.bus.KV.Load(t.Context(), kv.State, events.WorkKey(ref))
	if err == nil {
		_, err = w.bus.KV.Store(t.Context(), kv.State, e.Key, other, e.Rev)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := w.ask("rebuild", map[string]any{}, &reply); r != nil || reply.Views != 1 {
		t.Errorf("%v: a rebuild left what is not so: %+v", r, reply)
	}
}

func TestRebuildKeepsClosedSessionsInRetention(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.open(ref)
	w.append(ref, events.PromptWithdrawn{Prompt: "p1", Reason: "no longer needed"})
	w.blocker(w.document(ref, w.seq[ref]), "p1", session.Withdrawn)
	for i := range session.RecentMax {
		call := fmt.Sprintf("c-%d", i)
		w.append(ref, events.ToolStarted{Call: call, Turn: "t1", Name: "bash"}, events.ToolCompleted{Call: call})
	}
	st := w.document(ref, w.seq[ref])
	if _, kept := st.Ended(session.EntityPrompt, "p1"); kept {
		t.Fatal("the prompt's ending is still kept")
	}
	before := w.load(blockerKey)
	var reply request.Rebuilt
	if r := w.ask("rebuild", map[string]any{}, &reply); r != nil || reply.Changed+reply.Removed+reply.Views != 0 ||
		len(reply.Failed) > 0 {
		t.Errorf("%v: a rebuild changed something: %+v", r, reply)
	}
	if after := w.load(blockerKey); !bytes.Equal(before, after) {
		t.Errorf("the entry is %s\nit was %s", after, before)
	}
}

// A message of the largest size, with characters that HTML would escape, still fits into the harness's view.
func TestViewsDoNotGrowByEscaping(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	content := strings.Repeat("<", 200<<10)
	w.append(ref, events.SessionOpened{Incarnation: "1"},
		events.MessageAccepted{Message: "m1", Content: []byte(`"` + content + `"`)})
	w.appendAs(ref, events.WriterCompaction, events.ServiceSource("compaction", "x"),
		events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	e := w.await(events.WorkKey(ref), func(e kv.Entry) bool { return !e.Deleted })
	if !strings.Contains(string(e.Value), content) {
		t.Errorf("a view of %d bytes", len(e.Value))
	}
}

// TestACommitWritesOnlyTheViewsThatItChanges: the views of a session with many open questions are not all written again
// with each commit.
func TestACommitWritesOnlyTheViewsThatItChanges(t *testing.T) {
	const prompts = 30
	w := newWorld(t)
	begin := []events.Fact{events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage}}
	ask := func(i int) events.Fact {
		return events.PromptRequested{Prompt: fmt.Sprint("p", i), Turn: "t", PromptKind: events.PromptQuestion,
			Title: "Which?", Delivery: events.DeliverCallback,
			Questions: []events.Question{{ID: "q", Question: "Which?",
				Options: []events.Option{{Label: "a"}, {Label: "b"}}}}}
	}
	for i := range prompts {
		begin = append(begin, ask(i))
	}
	w.append(ref, begin...)
	w.append(ref, ask(prompts))
	ms := w.delivered(2)
	f := w.folder()
	w.fold(f, ms[0])
	ts, _ := f.group(ms[1:])
	if err := errors.Join(f.load(t.Context(), ts), f.foldAll(t.Context(), ts)); err != nil {
		t.Fatal(err)
	}
	d, err := f.render(t.Context(), ts[0])
	if err != nil || len(ts[0].state.Prompts) != prompts+1 || len(d.Value) == 0 {
		t.Fatalf("%v: %d prompts", err, len(ts[0].state.Prompts))
	}
	of := 0
	for _, v := range d.Views {
		if v.Key == ts[0].state.BlockerKey(fmt.Sprint("p", prompts)) {
			of++
		} else if v.Key != events.WorkKey(ref) {
			t.Errorf("%s is written again", v.Key)
		}
	}
	if of != 1 {
		t.Errorf("the new question is written %d times", of)
	}
}
