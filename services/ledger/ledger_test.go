package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// patience is the time limit of events that must happen.
const patience = 90 * time.Second

// world is one broker with a connection, and sessions that the test writes.
type world struct {
	t      *testing.T
	server *embed.Server
	bus    *bus.Bus
	seq    map[events.Ref]uint64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := natstest.Start(t)
	return &world{t: t, server: s, bus: natstest.Bus(t, s), seq: map[events.Ref]uint64{}}
}

// run starts a ledger and stops it with the test.
func (w *world) run(cfg Config) *Ledger {
	w.t.Helper()
	l, err := New(w.bus, cfg, zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
	})
	return l
}

// during runs a ledger while do runs.
func (w *world) during(cfg Config, do func()) {
	w.t.Helper()
	l, err := New(w.bus, cfg, zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	do()
	stop()
	if err := <-done; err != nil {
		w.t.Errorf("run: %v", err)
	}
}

// append appends facts of a harness as one commit.
func (w *world) append(r events.Ref, facts ...events.Fact) uint64 {
	w.t.Helper()
	return w.appendAs(r, events.WriterHarness, events.HarnessSource(r.Harness, "1"), facts...)
}

func (w *world) appendAs(r events.Ref, writer events.Writer, source string, facts ...events.Fact) uint64 {
	w.t.Helper()
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(w.bus.NewID(), source, r, 1, time.Unix(0, 0), f)
	}
	seq, err := w.bus.Log.Append(w.t.Context(), r, writer, w.seq[r], evs)
	if err != nil {
		w.t.Fatalf("append: %v", err)
	}
	w.seq[r] = seq
	return seq
}

// open opens a session with a turn, a call and a question that the owner's death would not end.
func (w *world) open(r events.Ref) {
	w.t.Helper()
	w.append(r, events.SessionOpened{Incarnation: "1", Title: "a session"})
	w.append(r, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.ToolStarted{Call: "c1", Turn: "t1", Name: "question"},
		events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptQuestion, Title: "Which?",
			Delivery: events.DeliverToolResult,
			Questions: []events.Question{{ID: "q", Question: "Which?",
				Options: []events.Option{{Label: "a"}, {Label: "b"}}}}})
}

// await waits until an entry of the state bucket satisfies ok.
func (w *world) await(key string, ok func(kv.Entry) bool) kv.Entry {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var found kv.Entry
	err := w.bus.KV.Watch(ctx, kv.State, []string{key}, func(u kv.Update) error {
		if !u.Ready && ok(u.Entry) {
			found = u.Entry
			return errFound
		}
		return nil
	})
	if !errors.Is(err, errFound) {
		w.t.Fatalf("%s: not seen in time: %v", key, err)
	}
	return found
}

var errFound = errors.New("found")

// gone waits until a key does not exist. A watch would not report a key that is gone already.
func (w *world) gone(key string) {
	w.t.Helper()
	natstest.Until(w.t, key+" is gone", func() bool {
		_, err := w.bus.KV.Load(w.t.Context(), kv.State, key)
		return errors.Is(err, bus.ErrNotFound)
	})
}

// document waits for a document with this seq.
func (w *world) document(r events.Ref, seq uint64) *session.State {
	w.t.Helper()
	e := w.await(events.SessionKey(r), func(e kv.Entry) bool {
		st, err := session.Decode(e.Value)
		return err == nil && st.Seq >= seq
	})
	st, err := session.Decode(e.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

func (w *world) blocker(st *session.State, prompt string, status session.Status) session.Blocker {
	w.t.Helper()
	var b session.Blocker
	w.await(st.BlockerKey(prompt), func(e kv.Entry) bool {
		return json.Unmarshal(e.Value, &b) == nil && b.Status == status
	})
	return b
}

// ask sends a request and returns the refusal, if there is one.
func (w *world) ask(verb string, req, reply any) *events.Refusal {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		err := w.bus.Services.Request(ctx, Name, verb, req, reply)
		refusal, ok := errors.AsType[*events.Refusal](err)
		switch {
		case err == nil:
			return nil
		case ok && refusal.Code == 503 && ctx.Err() == nil:
			// the service is starting
			continue
		case ok:
			return refusal
		}
		w.t.Fatalf("%s: %v", verb, err)
	}
}

var ref = events.Ref{Harness: "h1", Session: "s1"}

func TestFactsBecomeDocumentViewsAndFeed(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.open(ref)
	st := w.document(ref, w.seq[ref])
	if st.Phase != session.Waiting || st.Title != "a session" || st.Tools["c1"] == nil {
		t.Errorf("document: %+v", st)
	}
	b := w.blocker(st, "p1", session.Awaiting)
	if b.Title != "Which?" || len(b.Questions) != 1 || b.Tool == nil || b.Tool.Name != "question" || !b.Owned {
		t.Errorf("blocker: %+v", b)
	}
	var reply request.Changed
	if refusal := w.ask("answer", answer("a"), &reply); refusal != nil {
		t.Fatal(refusal)
	}
	w.seq[ref] = reply.Seq
	b = w.blocker(st, "p1", session.Answered)
	if b.By != "ada" || len(b.Answers) != 1 || b.Answers[0].Selected[0] != "a" || !b.DeliveredAt.IsZero() {
		t.Errorf("answered: %+v", b)
	}
	var work session.Work
	w.await(events.WorkKey(ref), func(e kv.Entry) bool {
		return json.Unmarshal(e.Value, &work) == nil && len(work.Prompts) == 1
	})
	if p := work.Prompts["p1"]; p.Status != session.Answered || p.By != "ada" {
		t.Errorf("work: %+v", p)
	}
	w.append(ref, events.ToolCompleted{Call: "c1"})
	w.gone(events.WorkKey(ref))
	w.await(st.BlockerKey("p1"), func(e kv.Entry) bool {
		return json.Unmarshal(e.Value, &b) == nil && !b.DeliveredAt.IsZero()
	})
}

func answer(labels ...string) request.Answer {
	return request.Answer{Ref: ref, Prompt: "p1", By: "ada",
		Answers: []events.Answer{{Question: "q", Selected: labels}}}
}

func TestRequestsAreRefusedClearly(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.open(ref)
	tests := []struct {
		name, verb string
		req        any
		code       int
		has        string
	}{
		{"not JSON but text", "answer", "x", 400, "body"},
		{"a number for an id", "answer", map[string]any{"harness": "h1", "session": 7}, 400, "session"},
		{"no harness", "get", map[string]any{"session": "s1"}, 400, "harness"},
		{"no by", "answer", map[string]any{"harness": "h1", "session": "s1", "prompt": "p1", "answers": []any{}}, 400,
			"by"},
		{"an id that is too long", "answer",
			map[string]any{"harness": "h1", "session": "s1", "by": "ada", "prompt": strings.Repeat("x", 129)}, 400,
			"prompt"},
		{"an unknown session", "stop", map[string]any{"harness": "h1", "session": "nope", "by": "ada"}, 404, "session"},
		{"an unknown prompt", "reject", map[string]any{"harness": "h1", "session": "s1", "by": "ada", "prompt": "nope"},
			404, "prompt"},
		{"too many choices", "answer", answer("a", "b"), 422, "several"},
		{"what is not offered", "answer", answer("c"), 422, "not offered"},
		{"no text", "answer", map[string]any{"harness": "h1", "session": "s1", "by": "ada", "prompt": "p1",
			"answers": []any{map[string]any{"question": "q", "selected": []any{7}}}}, 422, "not text"},
		{"too few answers", "answer",
			map[string]any{"harness": "h1", "session": "s1", "by": "ada", "prompt": "p1", "answers": []any{}}, 422,
			"not answered"},
		{"stop while a question is open", "stop", map[string]any{"harness": "h1", "session": "s1", "by": "ada"}, 409,
			"p1"},
		{"a policy out of range", "configure",
			map[string]any{"harness": "h1", "session": "s1", "by": "ada",
				"policy": map[string]any{"compaction_threshold": 7}}, 400, "policy.compaction_threshold"},
		{"an unknown phase", "list", map[string]any{"phase": "nope"}, 400, "phase"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			refusal := w.ask(tt.verb, tt.req, nil)
			if refusal == nil || refusal.Code != tt.code ||
				!strings.Contains(refusal.Message+refusal.Field+string(refusal.Body()), tt.has) {
				t.Errorf("got %v (body %s), want %d with %q", refusal, refusal.Body(), tt.code, tt.has)
			}
		})
	}
	w.t = t
	if st := w.document(ref, w.seq[ref]); st.Prompts["p1"].Status != session.Awaiting {
		t.Error("a refused answer closed the prompt")
	}
}

func TestTheSameAnswerAgainIsASuccess(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.open(ref)
	var first, again request.Changed
	if r := w.ask("answer", answer(" a "), &first); r != nil {
		t.Fatal(r)
	}
	if r := w.ask("answer", answer("a"), &again); r != nil || again != first {
		t.Errorf("again: %v %v, want %v", again, r, first)
	}
	r := w.ask("answer", answer("b"), nil)
	if r == nil || r.Code != 409 || r.Stands == nil || r.Stands.By != "ada" || r.Stands.Seq != first.Seq ||
		r.Stands.Answers[0].Selected[0] != "a" {
		t.Errorf("another answer: %v", r)
	}
	w.seq[ref] = first.Seq
	w.append(ref, events.TurnCompleted{Turn: "t1"}, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage},
		events.PromptRequested{Prompt: "p2", Turn: "t2", PromptKind: events.PromptQuestion,
			Delivery: events.DeliverCallback}, events.TurnCompleted{Turn: "t2"})
	late := answer("a")
	late.Prompt = "p2"
	if r := w.ask("answer", late, nil); r == nil || r.Code != 410 || r.Stands.Status != "withdrawn" ||
		r.Stands.Reason != "turn-ended" {
		t.Errorf("a withdrawn prompt: %v", r)
	}
}

// TestAnAnswerTakenBackLongAgo: a person takes an answer back after the turn that asked. The commit removes the first
// ending of the prompt and ends it as withdrawn. A late answer gets that last state, also when the session no longer
// lists the prompt (P11, P13).
func TestAnAnswerTakenBackLongAgo(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.append(ref, events.SessionOpened{Incarnation: "1"})
	asked := w.append(ref, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion,
			Delivery: events.DeliverMessage, OnOwnerLoss: events.LossKeep,
			Questions: []events.Question{{ID: "q", Question: "Which?",
				Options: []events.Option{{Label: "a"}, {Label: "b"}}}}})
	message := events.DeriveID("answer", ref.Session, "p1", fmt.Sprint(asked))
	w.appendAs(ref, events.WriterLedger, events.PersonSource("ada"),
		events.PromptAnswered{Prompt: "p1", Answers: answer("a").Answers, By: "ada", Owed: true},
		events.MessageAccepted{Message: message, Content: []byte(`"a"`), Synthetic: true})
	w.append(ref, events.TurnCompleted{Turn: "t1"})
	w.appendAs(ref, events.WriterCompaction, events.PersonSource("ada"),
		events.MessageWithdrawn{Message: message, By: "ada"})
	withdrawn := w.ask("answer", answer("a"), nil)
	if withdrawn == nil || withdrawn.Code != 410 || withdrawn.Stands.Seq != w.seq[ref] {
		t.Fatalf("the same answer while the prompt is listed: %v", withdrawn)
	}
	w.append(ref, events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	for i := range session.RecentMax {
		w.append(ref, events.ToolStarted{Call: fmt.Sprint("x", i), Turn: "t2", Name: "bash"},
			events.ToolCompleted{Call: fmt.Sprint("x", i)})
	}
	if st := w.document(ref, w.seq[ref]); len(st.Prompts) > 0 || len(st.Recent) != session.RecentMax {
		t.Fatalf("%d prompts, %d endings", len(st.Prompts), len(st.Recent))
	}
	r := w.ask("answer", answer("a"), nil)
	if r == nil || r.Code != 410 || r.Stands == nil || r.Stands.Status != withdrawn.Stands.Status ||
		r.Stands.Reason != withdrawn.Stands.Reason || r.Stands.Seq != withdrawn.Stands.Seq {
		t.Errorf("the same answer again: %v, want %v", r, withdrawn)
	}
}

// TestADecisionLongAfter: a late decision gets the state of a prompt that the session no longer lists; an unknown
// prompt is not found (P11).
func TestADecisionLongAfter(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.open(ref)
	w.append(ref, events.PromptRequested{Prompt: "p2", Turn: "t1", PromptKind: events.PromptPermission,
		Delivery: events.DeliverCallback})
	w.append(ref, events.PromptWithdrawn{Prompt: "p2", Reason: "never mind"})
	var first, again request.Changed
	w.document(ref, w.seq[ref])
	if refusal := w.ask("answer", answer("a"), &first); refusal != nil {
		t.Fatal(refusal)
	}
	w.seq[ref] = first.Seq
	w.append(ref, events.PromptDelivered{Prompt: "p1"})
	for i := range session.RecentMax {
		w.append(ref, events.ToolStarted{Call: fmt.Sprint("x", i), Turn: "t1", Name: "bash"},
			events.ToolCompleted{Call: fmt.Sprint("x", i)})
	}
	if st := w.document(ref, w.seq[ref]); len(st.Prompts) > 0 || len(st.Recent) != session.RecentMax {
		t.Fatalf("%d prompts, %d endings", len(st.Prompts), len(st.Recent))
	}
	if refusal := w.ask("answer", answer("a"), &again); refusal != nil || again != first {
		t.Errorf("the same answer again: %v, at %d, was at %d", refusal, again.Seq, first.Seq)
	}
	standing := func(refusal *events.Refusal) string {
		if refusal == nil {
			return "done"
		}
		if refusal.Stands == nil {
			return fmt.Sprint(refusal.Code)
		}
		return fmt.Sprint(refusal.Code, " ", refusal.Stands.Status, " ", refusal.Stands.By, refusal.Stands.Reason)
	}
	for _, c := range []struct {
		want    string
		refusal *events.Refusal
	}{
		{"409 answered ada", w.ask("answer", answer("b"), nil)},
		{"409 answered ada", w.ask("dismiss", request.Dismiss{Ref: ref, Prompt: "p1", By: "bob"}, nil)},
		{"410 withdrawn never mind", w.ask("reject", request.Reject{Ref: ref, Prompt: "p2", By: "bob"}, nil)},
		{"404", w.ask("dismiss", request.Dismiss{Ref: ref, Prompt: "p9", By: "bob"}, nil)},
	} {
		if got := standing(c.refusal); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if last, err := w.bus.Log.LastSeq(t.Context()); err != nil || last != w.seq[ref] {
		t.Errorf("%v: %d is in the log, %d was the last", err, last, w.seq[ref])
	}
}

// A decision about another question than the one that was shown is refused; also if the place of the log that it names
// is of another session, or was purged.
func TestADecisionAboutAnotherQuestion(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	other := events.Ref{Harness: ref.Harness, Session: "other"}
	purged := w.append(other, events.SessionOpened{Incarnation: "1"})
	w.append(other, events.SessionClosed{Reason: "finished"})
	w.open(ref)
	shown := w.seq[ref]
	body := events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion, Title: "Delete it?",
		Delivery: events.DeliverCallback, Questions: []events.Question{{ID: "q", Question: "Delete it?",
			Options: []events.Option{{Label: "a"}}}}}
	w.append(ref, body)
	elsewhere := w.append(events.Ref{Harness: ref.Harness, Session: "third"}, events.SessionOpened{Incarnation: "1"},
		body)
	newest := w.append(ref, body)
	w.document(ref, newest)
	w.document(other, w.seq[other])
	if err := w.bus.Log.PurgeSession(t.Context(), other, w.seq[other]); err != nil {
		t.Fatal(err)
	}
	for name, asked := range map[string]uint64{"an earlier question": shown, "another session": elsewhere,
		"a purged place": purged} {
		q := answer("a")
		q.Asked = asked
		if r := w.ask("answer", q, nil); r == nil || r.Code != 409 || r.Stands.Status != string(session.Awaiting) ||
			r.Stands.Seq != newest {
			t.Errorf("%s: %v", name, r)
		}
	}
	var reply request.Changed
	q := answer("a")
	q.Asked = newest
	if r := w.ask("answer", q, &reply); r != nil || reply.Seq <= newest {
		t.Errorf("the question that is open: %v, %d", r, reply.Seq)
	}
}

// TestListPages: the pages together have each document once.
func TestListPages(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	for i := range 25 {
		w.append(events.Ref{Harness: "h1", Session: fmt.Sprintf("s%02d", i)}, events.SessionOpened{Incarnation: "1"})
	}
	w.open(ref)
	w.document(ref, w.seq[ref])
	var names []string
	for after := ""; ; {
		var page struct {
			Documents []session.State `json:"documents"`
			Next      string          `json:"next"`
		}
		if r := w.ask("list", map[string]any{"harness": "h1", "limit": 10, "after": after}, &page); r != nil {
			t.Fatal(r)
		}
		for _, d := range page.Documents {
			names = append(names, d.Session)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	slices.Sort(names)
	if len(names) != 26 || len(slices.Compact(names)) != 26 {
		t.Errorf("got %d: %v", len(names), names)
	}
	var waiting request.Documents
	if r := w.ask("list", map[string]any{"waiting": true}, &waiting); r != nil || len(waiting.Documents) != 1 {
		t.Errorf("waiting: %v %d", r, len(waiting.Documents))
	}
}

// TestAStopBeforeTheFirstTurn: a session has had no turn, and a message is about to start. The stop is stored with the
// request of the turn that it names. The person is the author of the stop, the ledger that of the request (R15).
func TestAStopBeforeTheFirstTurn(t *testing.T) {
	w := newWorld(t)
	w.run(Default())
	w.append(ref, events.SessionOpened{Incarnation: "1"},
		events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"hello"`)})
	var stopped request.Changed
	stop := map[string]any{"harness": ref.Harness, "session": ref.Session, "by": "ada"}
	if refusal := w.ask("stop", stop, &stopped); refusal != nil || stopped.Seq <= w.seq[ref] {
		t.Fatalf("%+v, %v", stopped, refusal)
	}
	var got []string
	commits, err := w.bus.Log.Read(t.Context(), ref, 0)
	if err != nil || len(commits) != 2 {
		t.Fatalf("%d commits, %v", len(commits), err)
	}
	for _, e := range commits[1].Events {
		by, _ := events.Person(e.Source)
		got = append(got, fmt.Sprintf("%s by %q", e.Kind, by))
	}
	if want := []string{`turn.requested by ""`, `turn.stop_requested by "ada"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if st := w.document(ref, stopped.Seq); st.QueueMoves() || len(st.Queue) != 1 || st.Pending.Turn != nil {
		t.Errorf("held %d, queue %v, requested %+v", st.HeldSeq, st.Queue, st.Pending.Turn)
	}
	var again request.Changed
	if refusal := w.ask("stop", stop, &again); refusal != nil || again != stopped {
		t.Errorf("again: %+v, %v, want %+v", again, refusal, stopped)
	}
}
