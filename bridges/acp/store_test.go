package acp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

const patience = time.Minute // for events that must happen

// stored is a store on a broker of its own.
type stored struct {
	*store
	t   *testing.T
	bus *bus.Bus
	srv *embed.Server
}

// newStored returns a store that is not connected.
func newStored(t *testing.T) *stored {
	t.Helper()
	srv := natstest.Start(t, natstest.Lazy())
	st := newStore(harness.Config{ID: "h", URL: srv.URL(), Pool: true, TTL: 10 * time.Minute}, patience,
		func(s string) { t.Log(s) })
	return &stored{st, t, natstest.Bus(t, srv), srv}
}

func (s *stored) connects() {
	s.t.Helper()
	if err := s.connect(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.leave(patience, "") })
}

// opens appends facts in a step that takes the session.
func (s *stored) opens(id string, facts ...events.Fact) (unsettled []events.Fact) {
	return s.append(&Step{Session: id, Open: &events.SessionOpened{}, Facts: facts})
}

func (s *stored) adds(id string, facts ...events.Fact) (unsettled []events.Fact) {
	return s.append(&Step{Session: id, Facts: facts})
}

func (s *stored) state(id string) *fold.State {
	s.t.Helper()
	return natstest.Session(s.t, s.bus, events.Ref{Harness: "h", Session: id})
}

func (s *stored) until(id, what string, ok func(*fold.State) bool) *fold.State {
	s.t.Helper()
	return natstest.UntilSession(s.t, s.bus, events.Ref{Harness: "h", Session: id}, what, ok)
}

// decides returns the next decision.
func (s *stored) decides() decision {
	s.t.Helper()
	select {
	case d := <-s.decided:
		return d
	case <-time.After(patience):
		s.t.Fatal("no decision")
		return decision{}
	}
}

func starts(turn string) []events.Fact {
	return []events.Fact{
		events.MessageAccepted{Message: "m-" + turn, Content: encode("go"), By: byEditor},
		events.TurnStarted{Turn: turn, Cause: events.CauseMessage, Message: "m-" + turn}}
}

func permission(id, turn string) events.PromptRequested {
	return events.PromptRequested{Prompt: id, Turn: turn, PromptKind: events.PromptPermission, Title: "rm",
		Questions: []events.Question{{ID: events.PermissionQuestion, Question: "rm?",
			Options: []events.Option{{Label: "yes"}}}},
		Delivery: events.DeliverToolResult, OnOwnerLoss: events.LossKeep}
}

func answered(id string) events.Fact {
	return events.PromptAnswered{Prompt: id, By: byEditor,
		Answers: []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"yes"}}}}
}

// TestTooMuchWaits: a session for which too many facts wait, or too many bytes, is not stored any more, and the others
// are. A step that takes it stores it again.
func TestTooMuchWaits(t *testing.T) {
	t.Parallel()
	long := events.TurnCompleted{Turn: "t", Finish: strings.Repeat("x", behindBytesMax)}
	for what, facts := range map[string][]events.Fact{
		"facts": slices.Repeat([]events.Fact{events.TurnCompleted{Turn: "t"}}, behindFactsMax+1),
		"bytes": {long},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStored(t)
			s.down = true
			s.opens("other", starts("t1")...)
			if left := s.opens("s1", facts...); len(left) != len(facts) {
				t.Errorf("%d facts are not stored", len(left))
			}
			if left := s.adds("s1", starts("t1")...); len(left) != 2 {
				t.Errorf("a lost session stores: %v", left)
			}
			s.connects()
			s.until("other", "a turn", func(st *fold.State) bool { return st.Turn != nil })
			if left := s.opens("s1", starts("t2")...); len(left) > 0 {
				t.Errorf("not stored: %v", left)
			}
			if st := s.state("s1"); st.Turn == nil || st.Turn.ID != "t2" {
				t.Errorf("the turn is %+v", st.Turn)
			}
		})
	}
}

// TestAPromptOfAnEndedTurn: a permission that is asked in a turn which the log has ended stands in the log with its
// question, outside of the turn, and can be answered. The end of the turn, as the agent sees it, withdraws it.
func TestAPromptOfAnEndedTurn(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	s.connects()
	s.opens("s1", starts("t1")...)
	ended := events.TurnCompleted{Turn: "t1"}
	s.adds("s1", ended)
	for _, id := range []string{"p1", "p2"} {
		s.adds("s1", permission(id, "t1"))
		st := s.until("s1", "the prompt", func(st *fold.State) bool { return st.Prompts[id] != nil })
		if q := st.Prompts[id]; q.Turn != "" || q.Status != fold.Awaiting {
			t.Errorf("%+v", q)
		}
	}
	commits, err := s.bus.Log.Read(t.Context(), events.Ref{Harness: "h", Session: "s1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range commits {
		for _, e := range commits[i].Events {
			if f, ok := e.Fact.(events.PromptRequested); ok && len(f.Questions) != 1 {
				t.Errorf("without its question: %+v", f)
			}
		}
	}
	if left := s.adds("s1", answered("p1")); len(left) > 0 {
		t.Errorf("not decided in the log: %v", left)
	}
	if d := s.decides(); d.prompt != "p1" || d.err != nil || d.answer.Status != fold.Answered {
		t.Errorf("%+v", d)
	}
	s.adds("s1", ended)
	if q := s.state("s1").Prompts["p2"]; q != nil && q.Status == fold.Awaiting {
		t.Errorf("it waits, although the agent does not: %+v", q)
	}
}

// TestAnAnswerThatTheLogDoesNotTake: an answer to a prompt that the session does not know counts as it is, because no
// decision follows. Of two answers in one step, the one that the log has already does not hold up the other one.
func TestAnAnswerThatTheLogDoesNotTake(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	s.connects()
	s.opens("s1", starts("t1")...)
	if left := s.adds("s1", answered("unknown")); len(left) != 1 || left[0].Subject() != "unknown" {
		t.Errorf("no decision follows to %v", left)
	}
	s.adds("s1", permission("p1", "t1"))
	s.adds("s1", permission("p2", "t1"))
	withdrawn := func(id string) events.Fact { return events.PromptWithdrawn{Prompt: id, Reason: "r"} }
	s.adds("s1", answered("p1"))
	if d := s.decides(); d.prompt != "p1" || d.err != nil {
		t.Errorf("%+v", d)
	}
	if left := s.adds("s1", withdrawn("p1"), withdrawn("unknown"), withdrawn("p2")); len(left) != 1 ||
		left[0].Subject() != "unknown" {
		t.Errorf("no decision follows to %v", left)
	}
	if d := s.decides(); d.prompt != "p2" || d.err != nil || d.answer.Status != fold.Withdrawn {
		t.Errorf("%+v", d)
	}
}

// TestLeaveWaits: facts that are under way are stored before the lease ends, also if another session is behind.
func TestLeaveWaits(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	s.connects()
	s.opens("s1", starts("t1")...)
	held := make(chan struct{})
	s.mu.Lock()
	s.records["behind"] = &record{id: "behind", behind: true, works: true,
		queue: []*entryOf{{facts: starts("t1"), done: held}}}
	r := s.records["s1"]
	e := &entryOf{facts: []events.Fact{events.TurnCompleted{Turn: "t1"}}, done: make(chan struct{})}
	r.works, r.queue = true, append(r.queue, e)
	s.up = make(chan struct{})
	s.mu.Unlock()
	s.working.Go(func() { s.work(r) })
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.leave(patience, "")
	}()
	select {
	case <-left:
		t.Error("the lease ends before the fact is stored")
	case <-time.After(100 * time.Millisecond):
		// a leave that does not wait takes less
	}
	close(s.up)
	<-left
	if st := s.state("s1"); st.Turn != nil {
		t.Errorf("the turn is open: %+v", st.Turn)
	}
}

// TestLeaveWaitsForReceipts: a decision that the agent has counts as delivered before the lease ends. Recovery would
// have the next process bring it.
func TestLeaveWaitsForReceipts(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	s.connects()
	s.opens("s1", starts("t1")...)
	s.mu.Lock()
	r := s.records["s1"]
	s.mu.Unlock()
	// without an Ask, so there is no receipt by itself
	add := func(f events.Fact) {
		if err := r.s.Relay(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	add(permission("p1", "t1"))
	ref, at := events.Ref{Harness: "h", Session: "s1"}, s.state("s1")
	evs := []events.Event{events.New(s.bus.NewID(), events.ServiceSource(string(events.WriterLedger), "test"), ref,
		at.Epoch, time.Now(), answered("p1"))}
	seq, err := s.bus.Log.Append(t.Context(), ref, events.WriterLedger, at.Seq, evs)
	if err != nil {
		t.Fatal(err)
	}
	s.bus.Hints.Nudge(ref, seq)
	natstest.Until(t, "the answer", func() bool {
		q := r.s.State().Prompts["p1"]
		return q != nil && q.Status == fold.Answered
	})
	s.stands(decision{r: r, s: r.s, prompt: "p1"})
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.leave(patience, "killed")
	}()
	select {
	case <-left:
		t.Error("the lease ends before the receipt is stored")
	case <-time.After(100 * time.Millisecond):
		// a leave that does not wait takes less
		add(events.PromptDelivered{Prompt: "p1"})
	}
	<-left
	if q := s.state("s1").Prompts["p1"]; q != nil {
		t.Errorf("not delivered: %+v", q)
	}
}
