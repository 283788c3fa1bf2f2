package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// A turn with a call and a question, from beginning to end: all of it is in the log, in order, and nothing is ignored.
func TestATurn(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{Title: "a title", Model: "m"}))
	check(t, h.Ready(w.ctx))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "paint it", By: "ada"}))
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask",
		Input: map[string]int{"a": 1}}))
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Call: "c1", Questions: question()})
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "red")
	a := got(t, out)
	if a.err != nil || a.answer.Status != session.Answered || a.answer.By != "ada" || len(a.answer.Answers) != 1 ||
		a.answer.Answers[0].Text != "red" {
		t.Fatalf("%+v", a)
	}
	if p := w.state("s").Prompts["p1"]; p == nil || p.Status != session.Answered {
		t.Fatalf("the answer is delivered by the end of its call, not before: %+v", p)
	}
	check(t, call.Complete(w.ctx, a.answer.Answers))
	check(t, turn.Usage(w.ctx, harness.Usage{Model: "m2", Tokens: events.Tokens{Input: 7}}))
	check(t, turn.Complete(w.ctx, "stop"))
	wantErr(t, ended(t, turn.Context()), harness.ErrEnded)

	st := w.state("s")
	if st.Ignored.Count != 0 || st.Parked != 0 || st.Phase != session.Idle ||
		st.LastTurn.Outcome != session.OutcomeCompleted || len(st.Prompts) != 0 {
		t.Errorf("%+v", st)
	}
	mine := s.State()
	if mine.Seq != st.Seq || mine.Commits != st.Commits || mine.Phase != st.Phase || mine.Model != "m2" {
		t.Errorf("folded here: %+v, from the log: %+v", mine, st)
	}
}

// Each refusal says what the caller should do.
func TestResultsOfLostRacesAreTrue(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))

	// The reconciler closes the call, and this process notices it by losing the race.
	if _, err := w.decide("s", events.WriterReconciler, func(st *session.State) ([]events.Fact, error) {
		return []events.Fact{events.ToolInterrupted{Call: "c1", Reason: "gone", Outcome: events.OutcomeUnknown}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	err := call.Complete(w.ctx, "late")
	var e *harness.EndedError
	if !errors.As(err, &e) || !errors.Is(err, harness.ErrEnded) || e.Stands.Outcome != session.OutcomeInterrupted ||
		e.Stands.ID != "c1" || e.Stands.Reason != "gone" {
		t.Fatalf("%v", err)
	}
	if n := w.state("s").Ignored.Count; n != 0 {
		t.Errorf("%d facts were stored that do not count", n)
	}
	_, err = turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"})
	wantErr(t, err, harness.ErrClosedID)
	wantErr(t, s.Call("never").Complete(w.ctx, 1), harness.ErrUnknown)
	wantErr(t, s.Append(w.ctx, events.ToolInterrupted{Call: "c1"}), events.ErrOutOfRole)
	wantErr(t, s.Append(w.ctx, events.SessionClaimed{Incarnation: "1"}), events.ErrOutOfRole)
	wantErr(t, s.Append(w.ctx, events.ToolStarted{}), events.ErrMalformed)

	// A fact that is still lawful is stored although another writer was first.
	w.append("s", events.WriterLedger, events.SessionConfigured{ProviderChanged: true, By: "ada"})
	call2 := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c2", Name: "bash"}))
	w.append("s", events.WriterRetry, events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: "stalled"}})
	wantErr(t, ended(t, turn.Context()), harness.ErrEnded)
	wantErr(t, call2.Complete(w.ctx, 1), harness.ErrEnded)
	wantErr(t, turn.Complete(w.ctx, ""), harness.ErrEnded)
	_, err = turn.Tool(w.ctx, harness.ToolOptions{ID: "c3", Name: "bash"})
	wantErr(t, err, harness.ErrEnded)
	_, err = s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "again"})
	wantErr(t, err, harness.ErrClosedID)
}

// TestConcurrentFactsTravelTogether: facts of many goroutines about one session are stored in few commits, and each
// caller gets its own result.
func TestConcurrentFactsTravelTogether(t *testing.T) {
	const calls = 200
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	var wg, begun sync.WaitGroup
	errs, on := make(chan error, 3*calls), make(chan struct{})
	// all of them wait before the first is stored
	atOnce := func(begin func()) {
		release := harness.Mute(s)
		begin()
		natstest.Until(t, "all to wait", func() bool { return harness.Waiting(s) == calls })
		release()
	}
	begun.Add(calls)
	call := func(i int) {
		wg.Go(func() {
			c, err := turn.Tool(w.ctx, harness.ToolOptions{ID: fmt.Sprint("c", i), Name: "bash"})
			begun.Done()
			errs <- err
			<-on
			errs <- c.Complete(w.ctx, i)
			if err := c.Complete(w.ctx, i); !errors.Is(err, harness.ErrEnded) && !errors.Is(err, harness.ErrUnknown) {
				errs <- fmt.Errorf("completed twice: %v", err)
			}
		})
	}
	atOnce(func() {
		for i := range calls {
			call(i)
		}
	})
	begun.Wait()
	atOnce(func() { close(on) })
	wg.Wait()
	close(errs)
	for err := range errs {
		check(t, err)
	}
	st := w.state("s")
	if len(st.Tools) != 0 || st.Ignored.Count != 0 {
		t.Errorf("%d calls open, %d facts ignored", len(st.Tools), st.Ignored.Count)
	}
	if st.Commits > calls/10 {
		t.Errorf("%d commits for %d facts", st.Commits, 2*calls)
	}
}

// TestLargeFactsTravelApart: facts that do not fit into one commit are sent in several, in order.
func TestLargeFactsTravelApart(t *testing.T) {
	const calls = 12
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			c, err := turn.Tool(w.ctx, harness.ToolOptions{ID: fmt.Sprint("c", i), Name: "bash"})
			if err == nil {
				err = c.Complete(w.ctx, strings.Repeat("x", 200<<10))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if st := w.state("s"); len(st.Tools) != 0 || st.Ignored.Count != 0 {
		t.Errorf("%+v", st)
	}
	wantErr(t, s.Append(w.ctx,
		events.MessageAccepted{Message: "m", Content: json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)}),
		events.ErrMalformed)
}

// A bridge's facts are stored as they come, also those that do not count; ownership is all that is checked.
func TestRelay(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, s.Relay(w.ctx, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
		events.ToolCompleted{Call: "never"}, events.ToolStarted{Call: "c1", Turn: "t1"}))
	if st := w.state("s"); st.Ignored.Count != 1 || st.Tools["c1"] == nil || s.State().Ignored.Count != 1 {
		t.Errorf("%+v", st)
	}
	w.append("s", events.WriterReconciler,
		events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: h.Incarnation()})
	wantErr(t, s.Relay(w.ctx, events.ToolCompleted{Call: "c1"}), harness.ErrFenced)
	if st := w.state("s"); st.Ignored.Count != 1 {
		t.Errorf("stored after the fence: %+v", st.Ignored)
	}
}

// TestLimits: an error of the call names the session's limit.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	facts := []events.Fact{events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}}
	for i := range session.OpenPromptsMax {
		facts = append(facts, events.PromptRequested{Prompt: fmt.Sprint("p", i), Turn: "t1",
			PromptKind: events.PromptPlan, Delivery: events.DeliverCallback})
	}
	check(t, s.Append(w.ctx, facts...))
	_, err := s.OpenTurn().Ask(w.ctx, harness.Prompt{Questions: question()})
	wantErr(t, err, harness.ErrLimit)
	wantErr(t, s.Append(w.ctx, events.PromptWithdrawn{Prompt: "p0"}, events.PromptWithdrawn{Prompt: "never"}),
		harness.ErrUnknown)
	if st := w.state("s"); len(st.Prompts) != session.OpenPromptsMax || st.Ignored.Count != 0 {
		t.Errorf("facts that belong together were stored apart: %d prompts, %d ignored", len(st.Prompts),
			st.Ignored.Count)
	}
}

// TestContexts: a context that ends takes back a fact that was not sent; a fact under an ended context is never sent.
func TestContexts(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	over, cancel := context.WithCancelCause(w.ctx)
	cancel(errors.New("enough"))
	for range 50 {
		if _, err := s.StartTurn(over, harness.StartOptions{}); err == nil || errors.Is(err, harness.ErrPending) {
			t.Fatalf("handed over under a context that had ended: %v", err)
		}
	}
	if w.state("s").Commits != 1 {
		t.Error("stored under a context that had ended")
	}
	check(t, s.Close(w.ctx, "finished"))
	wantErr(t, ended(t, s.Context()), harness.ErrSessionClosed)
	_, err := s.StartTurn(w.ctx, harness.StartOptions{})
	wantErr(t, err, harness.ErrSessionClosed)
	_, err = h.Claim(w.ctx, "s")
	wantErr(t, err, harness.ErrSessionClosed)
	_, err = h.Claim(w.ctx, "none")
	wantErr(t, err, harness.ErrNotFound)
}

// TestTheProcessFoldsWhatIsStored: the spaces in a JSON value are left out when a fact is stored. This process has the
// same bytes in its state as all that read the log.
func TestTheProcessFoldsWhatIsStored(t *testing.T) {
	w := newWorld(t)
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{Options: json.RawMessage(`{ "model": "m" }`)}))
	own, stored := s.State().Turn, w.state("s").Turn
	if own == nil || stored == nil || string(own.Options) != string(stored.Options) {
		t.Errorf("this process has %+v, and the log %+v", own, stored)
	}
}

// TestContextsInAnOutage: a context ends while the broker is away: facts that were sent may be stored yet, waiting ones
// never are.
func TestContextsInAnOutage(t *testing.T) {
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.TTL = time.Minute })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	w.server.Shutdown()
	errs := make(chan error, 2)
	ctx, cancel := context.WithCancel(w.ctx)
	for i := range 2 {
		go func() {
			_, err := turn.Tool(ctx, harness.ToolOptions{ID: fmt.Sprint("c", i), Name: "bash"})
			errs <- err
		}()
		natstest.Until(t, "the call to wait", func() bool { return harness.Waiting(s) == i+1 })
	}
	natstest.Until(t, "the first to be handed over", func() bool { return harness.HandedOver(s) == 1 })
	cancel()
	pending := 0
	for range 2 {
		err := <-errs
		wantErr(t, err, context.Canceled)
		if errors.Is(err, harness.ErrPending) {
			pending++
		}
	}
	w.back()
	check(t, s.Append(w.ctx, events.UsageReported{Turn: turn.ID(), Tokens: events.Tokens{Input: 1}}))
	if st := w.state("s"); pending != 1 || len(st.Tools) != 1 || st.Tools["c0"] == nil {
		t.Errorf("%d pending, %d stored", pending, len(st.Tools))
	}
	check(t, h.Close(w.ctx))
}

// TestStops: a stop reaches the turn's context, also without Work; the stop of a turn that has ended is confirmed.
func TestStops(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	w.append("s", events.WriterLedger,
		events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada", Reason: "no"})
	cause := ended(t, turn.Context())
	var stop *harness.StopError
	if !errors.Is(cause, harness.ErrStopped) || !errors.As(cause, &stop) || stop.By != "ada" || stop.Reason != "no" ||
		stop.Actor != events.ActorPerson {
		t.Fatalf("%v", cause)
	}
	check(t, turn.Stop(w.ctx, stop.Actor, stop.Reason))
	if l := w.state("s").LastTurn; l.Outcome != session.OutcomeStopped || l.Actor != events.ActorPerson {
		t.Errorf("%+v", l)
	}
	turn = must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2", Content: "x"}))
	check(t, turn.Complete(w.ctx, ""))
	w.append("s", events.WriterLedger, events.TurnStopRequested{Turn: "t2", Actor: events.ActorPerson, By: "ada"})
	w.until("s", "the receipt", func(st *session.State) bool { return st.Pending.Stop == nil })
}

// TestActorsOfStops: a turn is stopped by one of the actors of the contract, or by that of its request, which a newer
// service may have made. Another one ends nothing.
func TestActorsOfStops(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	for _, actor := range []string{events.ActorPerson, events.ActorCompaction, events.ActorStall, "quota"} {
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{Content: "x"}))
		wrong := []string{"", "Person", "quota"}
		if actor == "quota" {
			w.append("s", events.WriterLedger, events.TurnStopRequested{Turn: turn.ID(), Actor: actor})
			wrong = []string{"", "Person", "budget"}
			wantErr(t, ended(t, turn.Context()), harness.ErrStopped)
		}
		for _, other := range wrong {
			wantErr(t, turn.Stop(w.ctx, other, ""), events.ErrMalformed)
		}
		if st := w.state("s"); st.Turn == nil || st.Turn.ID != turn.ID() {
			t.Fatalf("%+v", st.Turn)
		}
		check(t, turn.Stop(w.ctx, actor, ""))
		if l := w.state("s").LastTurn; l.ID != turn.ID() || l.Outcome != session.OutcomeStopped || l.Actor != actor {
			t.Errorf("%+v", l)
		}
	}
}

// TestStopConfirmedDuringTheStart: a person stops a turn while the process is about to end it as stopped, and then to
// start another one. The end is the receipt for the stop, so that the stop cannot move to the next turn: the start is
// refused, once.
func TestStopConfirmedDuringTheStart(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	s := turn.Session()
	next := harness.StartOptions{ID: "t2", Synthetic: true}
	write := harness.Mute(s)
	stopped, started := make(chan error, 1), make(chan error, 1)
	go func() { stopped <- turn.Stop(w.ctx, events.ActorPerson, "") }()
	natstest.Until(t, "the end to wait", func() bool { return harness.Waiting(s) == 1 })
	go func() {
		_, err := s.StartTurn(w.ctx, next)
		started <- err
	}()
	natstest.Until(t, "the start to wait", func() bool { return harness.Waiting(s) == 2 })
	w.whisper("s", events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
	write()
	check(t, <-stopped)
	wantErr(t, <-started, harness.ErrStopped)
	if st := w.state("s"); st.Turn != nil {
		t.Errorf("the turn %s has begun", st.Turn.ID)
	}
	must[*harness.Turn](t)(s.StartTurn(w.ctx, next))
}

// TestStartAgainKeepsTheRequest: a turn that is open is started again, with other words. It has the request that it was
// started with.
func TestStartAgainKeepsTheRequest(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	again := must[*harness.Turn](t)(turn.Session().StartTurn(w.ctx, harness.StartOptions{ID: "t1", Message: "m2",
		Content: "other", Prompts: []string{"p1"}, Attempt: 7}))
	r := again.Request()
	if again != turn || r.Message != "m1" || string(r.Content) != `"deploy"` || r.Attempt != 1 || len(r.Prompts) > 0 {
		t.Errorf("got %+v", r)
	}
}

// TestStopMovesToTheNextTurn: a person stops a turn, and the process starts its next turn before it has read the stop.
// That turn is stopped, and the stop is confirmed for it. Of a turn that had completed, the process may have confirmed
// the stop first.
func TestStopMovesToTheNextTurn(t *testing.T) {
	for _, over := range []bool{false, true} {
		w := newWorld(t)
		h := w.connect()
		s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
		of := "t1"
		if over {
			check(t, turn.Complete(w.ctx, ""))
			of = ""
		}
		w.append("s", events.WriterLedger, events.TurnStopRequested{Turn: "t1", Actor: events.ActorPerson, By: "ada"})
		next := harness.StartOptions{ID: "t2", Synthetic: true, OfTurn: of}
		turn, err := s.StartTurn(w.ctx, next)
		// the receipt was stored during the call
		if over && errors.Is(err, harness.ErrStopped) {
			turn, err = s.StartTurn(w.ctx, next)
		}
		check(t, err)
		if !over {
			if cause := ended(t, turn.Context()); !errors.Is(cause, harness.ErrStopped) {
				t.Errorf("the next turn's context ended by %v", cause)
			}
		}
		check(t, turn.Complete(w.ctx, ""))
		w.until("s", "the receipt", func(st *session.State) bool {
			return st.Pending.Stop == nil && st.StoppedSeq != 0
		})
	}
}
