package session_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// feeder appends facts of the owner and of services to one session.
type feeder struct {
	by    string // the person in whose name facts are said
	t     *testing.T
	s     *session.State
	log   []*events.Commit
	chunk int // facts in a commit
}

func newFeeder(t *testing.T) *feeder {
	f := &feeder{t: t, s: session.New(storyRef), chunk: 100}
	f.append(events.WriterHarness, events.SessionOpened{Incarnation: "17"})
	return f
}

// append appends facts, in as many commits as they need.
func (f *feeder) append(by events.Writer, facts ...events.Fact) {
	f.t.Helper()
	for len(facts) > 0 {
		n := min(len(facts), f.chunk)
		f.commit(by, facts[:n])
		facts = facts[n:]
	}
}

// person appends facts that a service says in a person's name.
func (f *feeder) person(by events.Writer, name string, facts ...events.Fact) {
	f.t.Helper()
	f.by = name
	f.append(by, facts...)
	f.by = ""
}

func (f *feeder) commit(by events.Writer, facts []events.Fact) {
	f.t.Helper()
	source := events.ServiceSource(string(by), "a")
	switch {
	case f.by != "":
		source = events.PersonSource(f.by)
	case by == events.WriterHarness:
		source = events.HarnessSource(storyRef.Harness, cmp.Or(f.s.Incarnation, "17"))
	}
	c := &events.Commit{Ref: storyRef, Writer: by, Seq: f.s.Seq + 1, Guard: f.s.Seq, Guarded: true,
		At: storyBegin.Add(time.Duration(f.s.Seq) * time.Second)}
	evs := make([]events.Event, len(facts))
	for i, fact := range facts {
		evs[i] = events.New(fmt.Sprintf("e%d-%d", c.Seq, i), source, storyRef, max(f.s.Epoch, 1), c.At, fact)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		f.t.Fatal(err)
	}
	c.Events, c.Err = events.DecodeBatch(storyRef, body)
	f.s.Fold(c)
	f.log = append(f.log, c)
}

func (f *feeder) mustIgnore(n uint64, why string) {
	f.t.Helper()
	if f.s.Ignored.Count != n || f.s.Ignored.Last == nil || f.s.Ignored.Last.Why != why {
		f.t.Errorf("ignored: %+v %+v, want %d, the last because of %s", f.s.Ignored, f.s.Ignored.Last, n, why)
	}
}

func (f *feeder) src(seq uint64) (*events.Commit, error) { return sourceOf(f.log)(seq) }

func many(n int, fact func(i int) events.Fact) []events.Fact {
	facts := make([]events.Fact, n)
	for i := range facts {
		facts[i] = fact(i)
	}
	return facts
}

func call(i int) events.Fact {
	return events.ToolStarted{Call: fmt.Sprintf("call-%d", i), Turn: "t1", Name: "bash", Title: "go test ./..."}
}

func TestLimitCalls(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	f.append(events.WriterHarness, many(session.OpenCallsMax+2, call)...)
	if n := len(f.s.Tools); n != session.OpenCallsMax {
		t.Errorf("%d calls are open, want %d", n, session.OpenCallsMax)
	}
	f.mustIgnore(2, "limit")
	f.append(events.WriterHarness, events.ToolCompleted{Call: "call-0"}, call(session.OpenCallsMax+5))
	if f.s.Tools[fmt.Sprintf("call-%d", session.OpenCallsMax+5)] == nil {
		t.Error("there is room again, and the call was not opened")
	}
}

func TestLimitPrompts(t *testing.T) {
	f := newFeeder(t)
	ask := func(i int) events.Fact {
		return events.PromptRequested{Prompt: fmt.Sprintf("p%03d", i), PromptKind: events.PromptQuestion,
			Delivery: events.DeliverCallback}
	}
	f.append(events.WriterHarness, many(session.OpenPromptsMax+1, ask)...)
	f.mustIgnore(1, "limit")
	// open: asked again
	f.append(events.WriterHarness, ask(3))
	f.mustIgnore(1, "limit")
	answer := func(i int) events.Fact { return events.PromptAnswered{Prompt: fmt.Sprintf("p%03d", i), By: "ada"} }
	f.append(events.WriterLedger, many(session.OpenPromptsMax, answer)...)
	f.append(events.WriterHarness, many(3, func(i int) events.Fact { return ask(500 + i) })...)
	f.append(events.WriterLedger, many(2, func(i int) events.Fact { return answer(500 + i) })...)
	const decided = session.OpenPromptsMax + 2
	if n := len(f.s.Prompts); n != decided+1 || f.s.Prompts["p000"] == nil {
		t.Errorf("%d prompts are kept, want %d decisions and one that awaits", n, decided)
	}
	f.append(events.WriterHarness, many(90, func(i int) events.Fact {
		return events.PromptRequested{Prompt: fmt.Sprintf("k%03d", i), PromptKind: events.PromptQuestion,
			Delivery: events.DeliverMessage}
	})...)
	f.append(events.WriterCompaction, events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"x"`)})
	f.append(events.WriterHarness, many(20, func(i int) events.Fact {
		return events.PromptRequested{Prompt: fmt.Sprintf("l%03d", i), PromptKind: events.PromptQuestion,
			Delivery: events.DeliverMessage}
	})...)
	f.append(events.WriterCompaction, events.MessageAccepted{Message: "m2", Content: json.RawMessage(`"x"`)})
	if n := len(f.s.Prompts); n != decided+1+session.UndeliveredMax || f.s.Prompts["k009"] != nil ||
		f.s.Prompts["k010"] == nil || f.s.Prompts["p000"] == nil {
		t.Errorf("%d prompts are kept, want the decisions and %d that were superseded", n, session.UndeliveredMax)
	}
}

// TestNoDecisionIsDropped: a harness takes no decision in. None is dropped, the document stays small enough, and in the
// end its writer is refused further questions. With the decisions delivered it can ask again.
func TestNoDecisionIsDropped(t *testing.T) {
	f := newFeeder(t)
	decided := map[string]bool{}
	for i := 0; f.s.Ignored.Count == 0; i++ {
		if i > session.QueuedMax {
			t.Fatal("there is no bound")
		}
		id := worst("p", i)
		f.append(events.WriterHarness, events.PromptRequested{Prompt: id, PromptKind: events.PromptQuestion,
			Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
		if f.s.Ignored.Count == 0 {
			decided[id] = true
			f.append(events.WriterLedger, events.PromptRejected{Prompt: id, Owed: true, By: "ada",
				Text: strings.Repeat("x", session.TextBytesMax)})
		}
	}
	f.mustIgnore(1, "limit")
	body, err := f.s.Encode()
	if err != nil || len(body) > session.DocumentBytesMax {
		t.Fatalf("a document of %d bytes, %v", len(body), err)
	}
	t.Logf("%d decisions, %d bytes", len(decided), len(body))
	if len(decided) <= 2*session.OpenPromptsMax {
		t.Errorf("only %d questions were asked", len(decided))
	}
	for id := range decided {
		if p := f.s.Prompts[id]; p == nil || p.Status != session.Rejected {
			t.Fatalf("the decision about %s is dropped", id)
		}
	}
	for id := range decided {
		f.append(events.WriterHarness, events.PromptDelivered{Prompt: id})
	}
	f.append(events.WriterHarness, events.PromptRequested{Prompt: "next", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverCallback})
	if f.s.Prompts["next"] == nil || len(f.s.Prompts) != 1 {
		t.Errorf("%d prompts", len(f.s.Prompts))
	}
}

// TestLimitTextsOfDecisions: of long texts of rejections the oldest go, and no decision does. The views and the turn
// that brings the decision read the text in the log.
func TestLimitTextsOfDecisions(t *testing.T) {
	f := newFeeder(t)
	const rejected = 40
	text := func(i int) string { return fmt.Sprintf("%02d %s", i, strings.Repeat("x", session.TextBytesMax-3)) }
	for i := range rejected {
		id := fmt.Sprintf("p%02d", i)
		f.append(events.WriterHarness, events.PromptRequested{Prompt: id, PromptKind: events.PromptQuestion,
			Delivery: events.DeliverCallback})
		f.append(events.WriterLedger, events.PromptRejected{Prompt: id, Text: text(i), By: "ada", Owed: true})
	}
	f.append(events.WriterCompaction, events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"x"`)})
	first, last := f.s.Prompts["p00"], f.s.Prompts["p39"]
	if n := len(f.s.Prompts); n != rejected || first.Reason != "" || last.Reason != text(39) {
		t.Fatalf("%d prompts are kept, want %d; the first has the text %q", n, rejected, first.Reason)
	}
	w, err := f.s.Work(f.src)
	if err != nil {
		t.Fatal(err)
	}
	if p := w.Prompts["p00"]; p == nil || p.Text != text(0) || p.Reason != text(0) {
		t.Errorf("the owner's view of the first: %+v", p)
	}
	b, err := f.s.Blocker("p00", f.src)
	if err != nil || b.Status != session.Rejected || b.Reason != text(0) {
		t.Errorf("people's view of the first: %+v, %v", b, err)
	}
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17"})
	if ids := f.s.Carry(); len(ids) != rejected || ids[0] != "p00" {
		t.Errorf("the next turn names %v", ids)
	}
}

// TestLimitReasons: ids of messages that superseded questions take less than the bound of all reasons.
func TestLimitReasons(t *testing.T) {
	f := newFeeder(t)
	for i := range session.UndeliveredMax {
		f.append(events.WriterHarness, events.PromptRequested{Prompt: fmt.Sprintf("p%02d", i), Blocking: new(true),
			PromptKind: events.PromptQuestion, Delivery: events.DeliverMessage, OnOwnerLoss: events.LossKeep})
		f.append(events.WriterCompaction,
			events.MessageAccepted{Message: worst("m", i), Content: json.RawMessage(`1`)})
	}
	size := 0
	for _, p := range f.s.Prompts {
		body, err := json.Marshal(p.Reason)
		if err != nil {
			t.Fatal(err)
		}
		size += len(body) - len(`""`)
	}
	if size > 32<<10 || len(f.s.Prompts) != session.UndeliveredMax {
		t.Errorf("%d prompts with %d bytes of reasons", len(f.s.Prompts), size)
	}
}

func TestLimitQueue(t *testing.T) {
	f := newFeeder(t)
	accept := func(i int) events.Fact {
		return events.MessageAccepted{Message: fmt.Sprintf("m%d", i), Content: json.RawMessage(`"x"`)}
	}
	f.append(events.WriterCompaction, many(session.QueuedMax+3, accept)...)
	if n := len(f.s.Queue); n != session.QueuedMax {
		t.Errorf("%d messages are queued, want %d", n, session.QueuedMax)
	}
	f.mustIgnore(3, "limit")
}

// TestLimitRecent: an id stays closed for as long as its ending is kept, the last 50.
func TestLimitRecent(t *testing.T) {
	f := newFeeder(t)
	for i := range session.RecentMax + 1 {
		f.append(events.WriterHarness, call(i), events.ToolCompleted{Call: fmt.Sprintf("call-%d", i)})
	}
	if n := len(f.s.Recent); n != session.RecentMax {
		t.Fatalf("%d endings are kept, want %d", n, session.RecentMax)
	}
	f.append(events.WriterHarness, call(1))
	f.mustIgnore(1, "closed-id")
	f.append(events.WriterHarness, call(0))
	if f.s.Tools["call-0"] == nil {
		t.Error("an id whose ending is no longer kept was not opened")
	}
	if e, ok := f.s.Ended(session.EntityTool, "call-50"); !ok || e.Outcome != session.OutcomeCompleted {
		t.Errorf("call-50 ended as %+v", e)
	}
	if _, ok := f.s.Ended(session.EntityTool, "call-0"); ok {
		t.Error("call-0 is still said to have ended")
	}
}

func TestLimitTexts(t *testing.T) {
	long := strings.Repeat("ä", 4000)
	f := newFeeder(t)
	f.s = session.New(storyRef)
	f.append(events.WriterHarness, events.SessionOpened{Incarnation: "17", Title: long, Agent: long, Model: long},
		events.TurnStarted{Turn: "t1", Cause: events.Cause(long)},
		events.ToolStarted{Call: "c1", Name: long, Title: long},
		events.PromptRequested{Prompt: "p1", PromptKind: events.PromptKind(long), Delivery: events.Delivery(long)},
		events.PromptRequested{Prompt: "p2", PromptKind: "note"},
		events.PromptRejected{Prompt: "p2", Text: long, By: long},
		events.ToolFailed{Call: "c1", Error: events.Failure{Kind: long, Text: long}},
		events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: long, Text: long}})
	failed := f.s.LastTurn
	f.append(events.WriterHarness, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage},
		events.TurnCompleted{Turn: "t2", Finish: long})
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17", SupersededBy: "99" + long})
	for what, got := range map[string]struct {
		text string
		max  int
	}{
		"title": {f.s.Title, session.TitleBytesMax}, "agent": {f.s.Agent, session.NameBytesMax},
		"model": {f.s.Model, session.NameBytesMax},
		"cause": {string(failed.Cause), session.NameBytesMax}, "error": {failed.Error.Text, session.TextBytesMax},
		"finish":        {f.s.LastTurn.Reason, session.TextBytesMax},
		"error kind":    {failed.Error.Kind, session.NameBytesMax},
		"prompt kind":   {string(f.s.Prompts["p1"].Kind), session.NameBytesMax},
		"delivery":      {string(f.s.Prompts["p1"].Delivery), session.NameBytesMax},
		"superseded_by": {f.s.SupersededBy, session.NameBytesMax},
		"rejection":     {ending(f.s, session.EntityPrompt).Reason, session.TextBytesMax},
		"tool name":     {ending(f.s, session.EntityTool).Name, session.NameBytesMax},
		"tool error":    {ending(f.s, session.EntityTool).Reason, session.TextBytesMax},
	} {
		if len(got.text) > got.max || len(got.text) < got.max-4 || !strings.HasSuffix(got.text, "…") ||
			!strings.HasPrefix(strings.TrimPrefix(got.text, "99"), "ää") {
			t.Errorf("%s: %d bytes %.20q…, want at most %d, cut with …", what, len(got.text), got.text, got.max)
		}
	}
}

func ending(s *session.State, entity string) session.Ending {
	for _, e := range s.Recent {
		if e.Entity == entity {
			return e
		}
	}
	return session.Ending{}
}

// worst is an id as long as a token can be, which takes the most bytes in JSON.
func worst(prefix string, i int) string {
	id := fmt.Sprintf("%s%04d", prefix, i)
	for {
		longer := id + "\x01"
		if _, err := events.Token(longer); err != nil {
			return id
		}
		id = longer
	}
}

// TestLimitDocument: whatever is said, a document can be stored, and a session with ordinary ids reaches all limits.
func TestLimitDocument(t *testing.T) {
	for name, c := range map[string]struct {
		id   func(prefix string, i int) string
		text string
		all  bool // nothing but the limits of numbers is felt
	}{
		"ordinary": {func(prefix string, i int) string { return fmt.Sprintf("%s_01JD5ZK3Q2W8%04d", prefix, i) },
			strings.Repeat("title ", 500), true},
		"long ids": {func(prefix string, i int) string { return fmt.Sprintf("%s%0124d", prefix, i) },
			strings.Repeat("x", 5000), false},
		"escapes": {worst, strings.Repeat("\x1b\"<&>\u2028", 1000), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.chunk = 5
			f.fill(c.id, c.text, c.all)
			doc, err := f.s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes: %d calls, %d prompts, %d queued, %d held, %d endings", len(doc), len(f.s.Tools),
				len(f.s.Prompts), len(f.s.Queue), len(f.s.WaitsFor), len(f.s.Recent))
			if len(doc) >= session.DocumentBytesMax {
				t.Errorf("the document takes %d bytes, want less than %d", len(doc), session.DocumentBytesMax)
			}
			if c.all && (len(f.s.Tools) != session.OpenCallsMax || len(f.s.Queue) != session.QueuedMax ||
				len(f.s.PendingPrompts()) != session.OpenPromptsMax) {
				t.Error("a session with ordinary ids does not reach its limits")
			}
			if _, err := session.Decode(doc); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLimitCarried: a document in which every list of prompts that a turn carries is full can be stored.
func TestLimitCarried(t *testing.T) {
	for name, id := range map[string]func(string, int) string{
		"long ids": func(prefix string, i int) string { return fmt.Sprintf("%s%0124d", prefix, i) },
		"escapes":  worst,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.chunk = 5
			f.fill(id, strings.Repeat("x", 5000), false)
			for _, p := range f.s.PendingPrompts() {
				f.append(events.WriterLedger, events.PromptAnswered{Prompt: p, By: "ada"})
			}
			f.append(events.WriterLedger, f.s.Continue("", f.s.Turn.ID, ""))
			doc, err := f.s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			carried, asked := len(f.s.Turn.Prompts), len(f.s.Pending.Turn.Prompts)
			t.Logf("%d bytes: %d prompts carried, %d asked for", len(doc), carried, asked)
			if carried < len(f.s.Prompts)/2 || asked < carried {
				t.Errorf("%d prompts carried, %d asked for, %d settled: the lists are not full", carried, asked,
					len(f.s.Prompts))
			}
			if len(doc) >= session.DocumentBytesMax {
				t.Errorf("the document takes %d bytes, want less than %d", len(doc), session.DocumentBytesMax)
			}
		})
	}
}

// TestLimitCarriedAfterCalls: what turns carry is weighed also when a service has ended the calls of its prompts, so a
// document with full lists and with new prompts, calls and messages can be stored. No decision is let go of.
func TestLimitCarriedAfterCalls(t *testing.T) {
	for name, c := range map[string]struct {
		id   func(prefix string, i int) string
		text string
	}{
		"long ids": {func(prefix string, i int) string { return fmt.Sprintf("%s%0124d", prefix, i) },
			strings.Repeat("x", 5000)},
		"escapes": {worst, strings.Repeat("\x1b\"<&>\u2028", 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.chunk = 5
			f.fillOnce(c.id, c.text)
			f.decideInCalls(c.id, c.id("t", 2), "a", c.text)
			f.e(events.TurnFailed{Turn: c.id("t", 2), Error: events.Failure{Kind: c.text, Text: c.text}})
			f.e(events.TurnStarted{Turn: c.id("t", 4), Cause: events.CauseMessage, Synthetic: true})
			f.decideInCalls(c.id, c.id("t", 4), "b", c.text)
			if n, m := len(f.s.LastTurn.Prompts), len(f.s.Turn.Prompts); n != events.PromptsNamedMax || n != m {
				t.Fatalf("%d prompts are carried by the last turn, and %d by the open one", n, m)
			}
			f.fillOpen(c.id, c.id("t", 4), c.text)
			f.append(events.WriterLedger, f.s.Continue("", f.s.Turn.ID, ""))
			doc, err := f.s.Encode()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes: %d calls, %d prompts, %d queued, %d asked for", len(doc), len(f.s.Tools),
				len(f.s.Prompts), len(f.s.Queue), len(f.s.Pending.Turn.Prompts))
			// carried prompts leave less room for open ones
			const want = 600_000
			if len(doc) > want {
				t.Errorf("the document takes %d bytes, want at most %d", len(doc), want)
			}
		})
	}
}

// decideInCalls asks as many questions in calls of the open turn as a turn can carry. Each time the process dies, a
// person rejects the question, the ledger ends the call, and the next process adopts the turn.
func (f *feeder) decideInCalls(id func(string, int) string, turn, prefix, text string) {
	for i := range events.PromptsNamedMax {
		call, prompt := id(prefix+"c", i), id(prefix+"p", i)
		f.e(events.ToolStarted{Call: call, Turn: turn, Name: "ask"})
		f.e(events.PromptRequested{Prompt: prompt, Turn: turn, Call: call, PromptKind: events.PromptQuestion,
			Delivery: events.DeliverToolResult})
		f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: f.s.Incarnation})
		f.append(events.WriterLedger, events.PromptRejected{Prompt: prompt, Text: text, By: "ada", Owed: true},
			events.ToolFailed{Call: call, Error: events.Failure{Kind: "rejected"}, Synthetic: true})
		f.claim()
		f.e(events.TurnStarted{Turn: turn, Cause: events.CauseMessage})
	}
}

// TestLimitCarriedByName: a harness that names prompts of before does not make the lists grow: what is delivered is
// carried up to its own bound.
func TestLimitCarriedByName(t *testing.T) {
	f := newFeeder(t)
	for turn := range 4 {
		var names []string
		for i := range 20 {
			id := fmt.Sprintf("p%d-%d", turn, i)
			names = append(names, id)
			f.append(events.WriterHarness,
				events.PromptRequested{Prompt: id, PromptKind: events.PromptQuestion, Delivery: events.DeliverCallback},
				events.PromptAnswered{Prompt: id, By: "ada"})
		}
		f.append(events.WriterHarness, events.TurnStarted{Turn: fmt.Sprintf("t%d", turn), Cause: events.CauseMessage,
			OfTurn: fmt.Sprintf("t%d", turn-1), Prompts: names})
	}
	const want = 16
	if n := len(f.s.Turn.Prompts); n != want {
		t.Errorf("%d prompts of before are carried, want %d", n, want)
	}
}

// TestLimitInOneCommit: what is opened in one commit is weighed together, and so is what is held for children.
func TestLimitInOneCommit(t *testing.T) {
	long := func(prefix string, i int) string { return fmt.Sprintf("%s%0124d", prefix, i) }
	f := newFeeder(t)
	f.append(events.WriterHarness, events.ToolStarted{Call: "c", Name: "task"})
	var held []events.WaitFor
	for i := range 800 {
		held = append(held, events.WaitFor{Call: "c", Child: long("s", i)})
	}
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: "17", WaitsFor: held})
	// as after a claim by a process whose commits are left out here
	f.s.Epoch++
	f.s.Owned = true
	f.chunk = 400
	f.append(events.WriterCompaction, many(session.QueuedMax, func(i int) events.Fact {
		return events.MessageAccepted{Message: long("m", i), Content: json.RawMessage(`1`), Synthetic: true}
	})...)
	f.append(events.WriterHarness, many(session.OpenCallsMax,
		func(i int) events.Fact { return events.ToolStarted{Call: long("c", i), Name: "bash"} })...)
	doc, err := f.s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	// each call has room for a hold, which none of them uses
	const want = 415_000
	t.Logf("%d bytes: %d calls, %d queued, %d held", len(doc), len(f.s.Tools), len(f.s.Queue), len(f.s.WaitsFor))
	if len(doc) > want || len(f.s.WaitsFor) != 800 || len(f.s.Queue) != session.QueuedMax {
		t.Errorf("the document takes %d bytes, want at most %d", len(doc), want)
	}
}

// TestLimitEscapes: a text counts as long as it becomes in JSON.
func TestLimitEscapes(t *testing.T) {
	for _, char := range []string{"x", "\"", "\\", "\x01", "\u2028", "<", "ä"} {
		f := newFeeder(t)
		f.append(events.WriterHarness, events.ToolStarted{Call: "c1", Title: strings.Repeat(char, 1000)})
		body, err := session.EncodeView(f.s.Tools["c1"].Title)
		if n := len(body) - 2; err != nil || n > session.TitleBytesMax || n < session.TitleBytesMax/2 {
			t.Errorf("%q: %d bytes of JSON are kept, want at most %d", char, n, session.TitleBytesMax)
		}
	}
}

// fillOnce takes what a document has once to its limits, with these ids and texts, and leaves a turn open.
func (f *feeder) fillOnce(id func(string, int) string, text string) {
	options := json.RawMessage(`"` + strings.Repeat("<", events.OptionsBytesMax-2) + `"`)
	fail := events.Failure{Kind: text, Text: text}
	h := events.WriterHarness
	f.append(h, events.TurnStarted{Turn: id("t", 1), Cause: events.CauseMessage, Options: options},
		events.TurnFailed{Turn: id("t", 1), Error: fail})
	f.append(events.WriterRetry, events.RetryScheduled{Turn: id("t", 1), Attempt: 1, DueAt: storyBegin, Error: fail})
	f.append(events.WriterCompaction, events.CompactionRequested{Compaction: id("k", 1), Reason: text, FollowUp: text,
		Message: id("m", 1)})
	f.append(h, events.CompactionFailed{Compaction: id("k", 1), Error: fail})
	f.append(events.WriterCompaction, events.CompactionRequested{Compaction: id("k", 2), Reason: text, FollowUp: text,
		Message: id("m", 1)})
	f.append(h, events.TurnStarted{Turn: id("t", 2), Cause: events.CauseRetry, Options: options})
	f.append(events.WriterLedger, events.TurnStopRequested{Turn: id("t", 2), Actor: events.ActorCompaction, By: text,
		Reason: text})
	f.append(events.WriterRetry, events.TurnRequested{Turn: id("t", 3), Cause: events.CauseRetry, Options: options,
		Message: id("m", 2), Prompt: id("p", 1)})
}

// fill takes a session to all its limits, with these ids and texts. Either the harness has the decisions of before, or
// they wait for it.
func (f *feeder) fill(id func(string, int) string, text string, delivered bool) {
	h := events.WriterHarness
	f.fillOnce(id, text)
	f.fillQueue(id)
	for _, e := range f.asks(id, "q", id("t", 2), text) {
		f.append(h, e)
		f.append(events.WriterLedger, events.PromptRejected{Prompt: e.Subject(), Text: text, By: "ada"})
		if delivered {
			f.append(h, events.PromptDelivered{Prompt: e.Subject()})
		}
	}
	f.append(h, f.asks(id, "p", id("t", 2), text)...)
	f.fillCalls(id, id("t", 2), text)
	f.hold(id, session.OpenCallsMax/4)
}

func (f *feeder) fillQueue(id func(string, int) string) {
	f.append(events.WriterCompaction, many(session.QueuedMax, func(i int) events.Fact {
		return events.MessageAccepted{Message: id("m", i), Content: json.RawMessage(`1`), Synthetic: true}
	})...)
}

func (f *feeder) fillCalls(id func(string, int) string, turn, text string) {
	f.append(events.WriterHarness, many(session.OpenCallsMax, func(i int) events.Fact {
		return events.ToolStarted{Call: id("c", i), Turn: turn, Name: text[:8], Title: text[:300]}
	})...)
}

// fillOpen takes what a turn opens to its limits: the queue, prompts, calls, and calls that wait for children.
func (f *feeder) fillOpen(id func(string, int) string, turn, text string) {
	f.fillQueue(id)
	f.append(events.WriterHarness, f.asks(id, "q", turn, text)...)
	f.fillCalls(id, turn, text)
	f.hold(id, len(f.s.Tools))
}

// asks returns as many prompts of calls of a turn as can be open.
func (f *feeder) asks(id func(string, int) string, prefix, turn, text string) []events.Fact {
	return many(session.OpenPromptsMax, func(i int) events.Fact {
		return events.PromptRequested{Prompt: id(prefix, i), Turn: turn, Call: id("c", i),
			PromptKind: events.PromptKind(text), Title: text,
			Delivery: events.Delivery(text[:20]), Deadline: time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC)}
	})
}

// hold has calls wait for children, and the owner lost.
func (f *feeder) hold(id func(string, int) string, calls int) {
	var held []events.WaitFor
	for i := range calls {
		held = append(held, events.WaitFor{Call: id("c", i), Child: id("s", i)})
	}
	f.append(events.WriterReconciler, events.SessionOrphaned{Incarnation: f.s.Incarnation, WaitsFor: held})
}

// TestLimitWork: what was decided is handed out as far as one entry can hold it, the oldest first, and the rest
// follows.
func TestLimitWork(t *testing.T) {
	f := newFeeder(t)
	const answered = 30
	for i := range answered {
		f.append(events.WriterHarness, events.PromptRequested{Prompt: fmt.Sprintf("p%02d", i),
			PromptKind: events.PromptQuestion, Delivery: events.DeliverCallback})
		f.append(events.WriterLedger, events.PromptAnswered{Prompt: fmt.Sprintf("p%02d", i),
			Answers: []events.Answer{{Question: "q", Text: strings.Repeat("<", 60<<10)}}})
	}
	w, err := f.s.Work(f.src)
	if err != nil {
		t.Fatal(err)
	}
	body, err := session.EncodeView(w)
	if err != nil || len(body) > session.WorkBytesMax+(64<<10) {
		t.Errorf("the entry takes %d bytes, %v", len(body), err)
	}
	if w.Prompts["p00"] == nil || len(w.Prompts) == answered {
		t.Errorf("%d of %d are handed out", len(w.Prompts), answered)
	}
	before := f.s.Clone()
	f.append(events.WriterHarness, events.PromptDelivered{Prompt: "p00"})
	next, err := f.s.Work(f.src)
	if err != nil || len(next.Prompts) != len(w.Prompts) || next.Prompts["p00"] != nil ||
		!session.WorkChanged(before, f.s) {
		t.Errorf("the rest does not follow: %d, %v", len(next.Prompts), err)
	}
}

// TestLimitTitles: of very many calls only the first keep long titles, also when they are reported again.
func TestLimitTitles(t *testing.T) {
	f := newFeeder(t)
	long := func(i int) events.Fact {
		return events.ToolStarted{Call: fmt.Sprintf("c%d", i), Name: strings.Repeat("n", 90),
			Title: strings.Repeat("t", 190)}
	}
	f.append(events.WriterHarness, many(130, long)...)
	f.append(events.WriterHarness, long(0), long(129))
	if a, b := f.s.Tools["c0"], f.s.Tools["c129"]; len(a.Title) != 190 || len(a.Name) != 90 || len(b.Title) > 40 ||
		len(b.Name) > 40 {
		t.Errorf("the first is %+v, the last %+v", a, b)
	}
}

// TestDeliveredLongAfter: a receipt that comes when the ending is no longer kept takes the prompt away all the same.
func TestDeliveredLongAfter(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverCallback})
	f.append(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada"})
	f.append(events.WriterHarness, many(session.RecentMax, call)...)
	f.append(events.WriterHarness, many(session.RecentMax,
		func(i int) events.Fact { return events.ToolCompleted{Call: fmt.Sprintf("call-%d", i)} })...)
	if b, err := f.s.Blocker("p1", f.src); err != nil || b.Status != session.Answered || b.ClosedAt.IsZero() {
		t.Errorf("%+v %v", b, err)
	}
	f.append(events.WriterHarness, events.PromptDelivered{Prompt: "p1", Refused: "too late"})
	if f.s.Prompts["p1"] != nil || f.s.Ignored.Count > 0 {
		t.Errorf("it is still there: %+v, ignored %+v", f.s.Prompts["p1"], f.s.Ignored)
	}
}

// TestManyEndAtOnce: if more ends at once than is kept, the endings that people look for are kept; the feed has all.
func TestManyEndAtOnce(t *testing.T) {
	for name, end := range map[string]events.Fact{"turn": events.TurnCompleted{Turn: "t1"},
		"session": events.SessionClosed{Reason: "finished"}} {
		t.Run(name, func(t *testing.T) {
			f := newFeeder(t)
			f.append(events.WriterHarness, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
			f.append(events.WriterHarness, many(session.RecentMax*2, call)...)
			f.append(events.WriterCompaction, many(session.RecentMax, func(i int) events.Fact {
				return events.MessageAccepted{Message: fmt.Sprintf("m%d", i), Content: json.RawMessage(`"x"`),
					Synthetic: true}
			})...)
			f.append(events.WriterHarness, many(60, func(i int) events.Fact {
				return events.PromptRequested{Prompt: fmt.Sprintf("p%02d", i), Turn: "t1",
					PromptKind: events.PromptQuestion, Delivery: events.DeliverCallback}
			})...)
			before := f.s.Clone()
			f.append(events.WriterHarness, end)
			if e, ok := f.s.Ended(session.EntityTurn, "t1"); !ok || e.Seq != f.s.Seq {
				t.Errorf("the turn's ending is not kept: %+v", e)
			}
			changed := session.BlockersChanged(before, f.s)
			if len(changed) != 60 {
				t.Errorf("%d changed entries are reported, want 60", len(changed))
			}
			closed, gone := 0, 0
			for _, id := range changed {
				b, err := f.s.Blocker(id, f.src)
				switch {
				case err != nil:
					t.Fatal(err)
				case b == nil:
					gone++
				case b.Status == session.Withdrawn:
					closed++
				}
			}
			if closed != session.RecentMax-1 || gone != 60-closed {
				t.Errorf("%d entries are shown as withdrawn and %d are to be removed", closed, gone)
			}
		})
	}
}
