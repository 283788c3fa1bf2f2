package harness

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// answeredBefore has an earlier process ask p1 in the call c1 of the turn t1, and a person answer. The next process has
// the session then, and has adopted nothing. Nothing is written until the caller receives from s.writing.
func (x *inside) answeredBefore() (s *Session) {
	x.t.Helper()
	x.turn(StartOptions{ID: "t1"})
	asked := prompted("t1", events.DeliverCallback)
	asked.Call, asked.OnOwnerLoss = "c1", events.LossKeep
	x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask"}, asked)
	x.appendUnnudged(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada",
		Answers: []events.Answer{{Question: "q", Text: "red"}}})
	h, err := Connect(x.ctx, x.h.cfg)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(h.Abandon)
	if s, err = h.Claim(x.ctx, "s"); err != nil {
		x.t.Fatal(err)
	}
	s.writing <- struct{}{}
	return s
}

// adoptsSettled adopts p1 and its items. The adoption waits in the queue, as the nth write.
func (x *inside) adoptsSettled(s *Session, nth int) (out chan error) {
	x.t.Helper()
	out = make(chan error, 1)
	go func() { out <- s.adoptSettled(x.ctx, "p1") }()
	natstest.Until(x.t, "the adoption to wait", func() bool { return Waiting(s) == nth })
	return out
}

// starts counts the starts of the turn t1 in the log.
func (x *inside) starts() (n int) {
	x.t.Helper()
	cs, err := x.peer.Log.Read(x.ctx, x.s.ref, 0)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, c := range cs {
		for _, e := range c.Events {
			if f, ok := e.Fact.(events.TurnStarted); ok && f.Turn == "t1" {
				n++
			}
		}
	}
	return n
}

// TestAskOfWhatEndsMeanwhile: recovery ends the call and the turn of a settled prompt while an Ask of the next process
// is about to adopt them. Nothing is adopted then, and that is no error: the decision is still the agent's.
func TestAskOfWhatEndsMeanwhile(t *testing.T) {
	x := newInside(t)
	s := x.answeredBefore()
	out := x.adoptsSettled(s, 1)
	x.appendIn(2, events.WriterReconciler, events.TurnInterrupted{Turn: "t1", Reason: "owner-lost"})
	if err := s.catchUp(x.ctx); err != nil {
		t.Fatal(err)
	}
	if st := s.State(); st.Turn != nil || st.Tools["c1"] != nil || st.Prompts["p1"] == nil {
		t.Fatalf("turn %+v, call %+v, prompt %+v", st.Turn, st.Tools["c1"], st.Prompts["p1"])
	}
	<-s.writing
	if err := <-out; err != nil {
		t.Errorf("the Ask fails: %v", err)
	}
	if st := s.State(); st.Turn != nil || st.Tools["c1"] != nil {
		t.Errorf("open again: turn %+v, call %+v", st.Turn, st.Tools["c1"])
	}
}

// TestTwoAsksAdoptOnce: two Asks of a process are about to adopt the same settled prompt. Its items are adopted once: a
// turn that was adopted often without a result is left to recovery.
func TestTwoAsksAdoptOnce(t *testing.T) {
	x := newInside(t)
	s := x.answeredBefore()
	first := x.adoptsSettled(s, 1)
	second := x.adoptsSettled(s, 2)
	<-s.writing
	for _, out := range []chan error{first, second} {
		if err := <-out; err != nil {
			t.Error(err)
		}
	}
	if n := x.starts(); n != 2 {
		t.Errorf("the turn was started %d times, want once by each process", n)
	}
}
