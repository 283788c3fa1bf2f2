package harness

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// answeredInside has p1 asked in the turn t1, outside of any call, and answered; seq is the commit with the answer.
func (x *inside) answeredInside() (turn *Turn, seq uint64) {
	x.t.Helper()
	turn = x.turn(StartOptions{ID: "t1"})
	asked := prompted("t1", events.DeliverCallback)
	asked.OnOwnerLoss = events.LossKeep
	x.mustRelay(asked)
	seq = x.appendUnnudged(events.WriterLedger, events.PromptAnswered{Prompt: "p1", By: "ada",
		Answers: []events.Answer{{Question: "q", Text: "red"}}})
	if err := x.s.catchUp(x.ctx); err != nil {
		x.t.Fatal(err)
	}
	return turn, seq
}

// TestAskOfAPromptThatCannotBeAdopted: an earlier process asked. The broker refuses what this process adopts, or the
// question cannot be read: the Ask says so, and returns no answer.
func TestAskOfAPromptThatCannotBeAdopted(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		x := newInside(t)
		turn, _ := x.answeredInside()
		x.mustRelay(events.ToolStarted{Call: "c1", Turn: "t1", Name: "ask"})
		x.s.writing <- struct{}{}
		x.s.mu.Lock()
		// as a later process sees it
		x.s.st.Epoch++
		x.s.epoch, x.s.st.Prompts["p1"].Call = x.s.st.Epoch, "c1"
		x.s.mu.Unlock()
		out := ask1(x.ctx, turn)
		fail := func(o *write) {
			x.s.mu.Lock()
			defer x.s.mu.Unlock()
			x.s.unacked = &unacked{writes: []*write{o}}
			x.s.settleUnacked(ErrFull)
		}
		natstest.Until(t, "the Ask to look at the prompt", func() bool { return Waiting(x.s) == 1 })
		x.s.mu.Lock()
		head := x.s.queue[0]
		x.s.queue = nil
		_, err := head.check(x.s.st)
		x.s.finish(head, err)
		x.s.mu.Unlock()
		natstest.Until(t, "the adoption to wait", func() bool { return Waiting(x.s) == 1 })
		x.s.mu.Lock()
		adoption := x.s.queue[0]
		x.s.mu.Unlock()
		fail(adoption)
		<-x.s.writing
		if err := <-out; !errors.Is(err, ErrFull) {
			t.Errorf("%v, want %v", err, ErrFull)
		}
	})
	t.Run("unreadable", func(t *testing.T) {
		x := newInside(t)
		turn := x.turn(StartOptions{ID: "t1"})
		x.mustRelay(prompted("t1", events.DeliverCallback))
		x.s.mu.Lock()
		x.s.st.Epoch++
		x.s.epoch, x.s.st.Prompts["p1"].Seq = x.s.st.Epoch, unstored
		x.s.mu.Unlock()
		ctx, cancel := brief(x.ctx)
		defer cancel()
		a, err := turn.Ask(ctx, Prompt{ID: "p1"})
		if err == nil || errors.Is(err, events.ErrMalformed) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

// ask1 asks p1 by its id.
func ask1(ctx context.Context, turn *Turn) chan error {
	out := make(chan error, 1)
	go func() {
		_, err := turn.Ask(ctx, Prompt{ID: "p1", Call: "c1", Questions: prompted("", "").Questions})
		out <- err
	}()
	return out
}

// TestPromptOverAnother: a prompt that is named by its id keeps what the asker does not replace, and a replacement that
// is no JSON is refused.
func TestPromptOverAnother(t *testing.T) {
	was := prompted("t1", events.DeliverCallback)
	was.Native = json.RawMessage(`"mine"`)
	if f, err := (Prompt{ID: "p1"}).over(was); err != nil || string(f.Native) != `"mine"` {
		t.Errorf("got %s, %v", f.Native, err)
	}
	if f, err := (Prompt{ID: "p1", Native: 1}).over(was); err != nil || string(f.Native) != `1` {
		t.Errorf("replaced: got %s, %v", f.Native, err)
	}
	if f, err := (Prompt{ID: "p1", Native: func() {}}).over(was); err == nil {
		t.Errorf("no JSON: got %s", f.Native)
	}
}

// TestOutputThatIsAnObject: the output of a call is an object that is gone, or that cannot be read: neither is empty
// output. Small output is no object.
func TestOutputThatIsAnObject(t *testing.T) {
	x := newInside(t)
	ref, err := json.Marshal(outputRef{events.ObjectName(x.s.ref, []byte("gone"))})
	if err != nil {
		t.Fatal(err)
	}
	f := events.ToolCompleted{Call: "c1", Output: ref}
	if out, err := x.s.output(x.ctx, "c1", f); !errors.Is(err, ErrUnknown) {
		t.Errorf("an object that is gone: %s, %v", out, err)
	}
	if out, err := x.s.outputOf(x.ctx, json.RawMessage(`"small"`)); err != nil || string(out) != `"small"` {
		t.Errorf("output that a fact holds: %s, %v", out, err)
	}
	x.h.bus.Close()
	ctx, cancel := brief(x.ctx)
	defer cancel()
	if out, err := x.s.output(ctx, "c1", f); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("an object that cannot be read: %s, %v", out, err)
	}
}

// TestValuesInTheLog: a number is logged as it is, also one that a float does not hold, and so is a bool.
func TestValuesInTheLog(t *testing.T) {
	for text, want := range map[string]slog.Value{
		"18446744073709551615": slog.Uint64Value(math.MaxUint64),
		"-9223372036854775808": slog.Int64Value(math.MinInt64),
		"1.5":                  slog.Float64Value(1.5),
		"true":                 slog.BoolValue(true),
	} {
		if got := valueOf(json.RawMessage(text)); !got.Equal(want) {
			t.Errorf("%s: got %v (%s), want %v", text, got, got.Kind(), want)
		}
	}
}

// TestWorkWithoutATurnHandler: a Work that runs no turns leaves an adopted turn to one that does, and a compaction
// that it gives back does not take the place of that turn.
func TestWorkWithoutATurnHandler(t *testing.T) {
	x := newInside(t)
	x.turn(StartOptions{ID: "t1"})
	x.s.forWork = "t1"
	if more, err := x.workLoopOf(nil).serveOnce(x.ctx, "s"); more || err != nil || x.s.forWork != "t1" {
		t.Errorf("more %v, %v; left to Work is %q", more, err, x.s.forWork)
	}
	x.s.handOnTaken(&workItem{compaction: &session.WorkCompaction{Compaction: "k1"}})
	if x.s.forWork != "t1" || x.s.took != nil {
		t.Errorf("left to Work is %q, the request %+v", x.s.forWork, x.s.took)
	}
}

// drawing is a context that is over until an incarnation is drawn.
type drawing struct {
	context.Context
	h    *Harness
	over chan struct{}
}

func (c *drawing) drawn() bool {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	return c.h.drawn == "0"
}

func (c *drawing) Done() <-chan struct{} {
	if c.drawn() {
		return c.Context.Done()
	}
	return c.over
}

func (c *drawing) Err() error {
	if c.drawn() {
		return nil
	}
	return context.Canceled
}

// TestNoIncarnationWithoutATicket: no ticket can be drawn, and the lease could be taken. A process without a number of
// its own does not begin: every other one is newer.
func TestNoIncarnationWithoutATicket(t *testing.T) {
	x := newInside(t)
	over := make(chan struct{})
	close(over)
	if l, err := x.h.begin(&drawing{Context: x.ctx, h: x.h, over: over}); err == nil {
		t.Errorf("it is incarnation %q", l.incarnation)
	}
}

// TestCommitOfASessionThatIsNotOwned: the follower of the log brings a commit of a session that is about to be read for
// the first time, or that waits for a new lease. The commit changes nothing here: the session is read before it is
// claimed.
func TestCommitOfASessionThatIsNotOwned(t *testing.T) {
	x := newInside(t)
	fresh := newSession(x.h, x.s.ref)
	before := x.s.State().Seq
	x.s.suspend(x.h.term)
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	last := uint64(0)
	err := x.peer.Log.Follow(ctx, "laptop", func(from uint64) {
		// it is followed, and this commit is brought
		if from != 0 {
			last = x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"})
		}
	}, func(m bus.Message) {
		fresh.receive(m)
		x.s.receive(m)
		cancel()
	})
	if err != nil {
		t.Fatal(err)
	}
	if LogSeen(fresh) != last || LogSeen(x.s) != last {
		t.Errorf("the log is known up to %d and %d, want %d", LogSeen(fresh), LogSeen(x.s), last)
	}
	if st := x.s.State(); st.Seq != before {
		t.Errorf("a suspended session is at %d, want %d", st.Seq, before)
	}
}

// TestKindOfAHandlersError: an error of a handler that says what it is keeps its kind, which decides how often the turn
// is tried again. Any other is a mistake in the agent, or an unknown outcome.
func TestKindOfAHandlersError(t *testing.T) {
	odd := failure.Raw{Text: "something odd"}
	unknown := &UnknownOutcomeError{Step: "deploy"}
	for want, errs := range map[string][]error{
		failure.Unknown: {
			&ProviderError{Raw: odd},
			&FailureError{Failure: events.Failure{Kind: failure.Unknown}},
			errors.Join(unknown, &ProviderError{Raw: odd}),
		},
		failure.OutcomeUnknown: {unknown, errors.Join(errNothing, unknown)},
		failure.HandlerError:   {errors.New(odd.Text)},
	} {
		for _, err := range errs {
			if f, _ := failureOfHandler(err); f.Kind != want {
				t.Errorf("%v: %s, want %s", err, f.Kind, want)
			}
		}
	}
}

// TestLeaveATurnThatHasEnded: a Work ends, and the turn whose handler it cut off has ended meanwhile. Nothing is left
// to the next Work, and the decisions that the turn had count as returned.
func TestLeaveATurnThatHasEnded(t *testing.T) {
	x := newInside(t)
	turn := x.turn(StartOptions{ID: "t1"})
	if err := turn.Complete(x.ctx, ""); err != nil {
		t.Fatal(err)
	}
	x.s.returned["p1"] = "t1"
	if x.s.handOnTurn("t1"); x.s.forWork != "" || x.s.returned["p1"] != "t1" || x.s.gaveUp["p1"] {
		t.Errorf("left to Work is %q; returned are %v, given up %v", x.s.forWork, x.s.returned, x.s.gaveUp)
	}
}

// TestLastWordThatCannotBe: the fact that says how work ended is refused where no fact can be made of it.
func TestLastWordThatCannotBe(t *testing.T) {
	x := newInside(t)
	if err := x.s.appendLast(x.ctx, nil, nil); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("nil: %v", err)
	}
}

// TestNudgeWhileASessionIsTaken: a nudge arrives in a process that follows no log, after its claim was stored and
// before it knows that. The session is read up to there once the claim is known: an Ask may wait for that commit.
func TestNudgeWhileASessionIsTaken(t *testing.T) {
	x := newInside(t, inPool)
	begin := Hold(x.s)
	seq := x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"})
	x.h.nudged("s", seq)
	if st := x.s.State(); st.Seq == seq {
		t.Fatal("a session that is not owned was read")
	}
	begin()
	natstest.Until(t, "the commit to be read", func() bool { return x.s.State().Seq == seq })
	// nothing was read of it yet
	newSession(x.h, x.s.ref).readUpTo(seq)
}

// TestAProcessEndsOnce: a process that leaves, or has ended, does not end once more because it was replaced.
func TestAProcessEndsOnce(t *testing.T) {
	replace := func(h *Harness) {
		h.mu.Lock()
		h.newer = "18446744073709551615"
		clear(h.sessions)
		h.mu.Unlock()
		h.endIfReplaced()
	}
	x := newInside(t)
	x.h.mu.Lock()
	// Close has begun
	x.h.state = buslease.Draining
	x.h.mu.Unlock()
	if replace(x.h); x.h.ctx.Err() != nil {
		t.Errorf("it leaves, and ended with %v", context.Cause(x.h.ctx))
	}
	var logged strings.Builder
	y := newInside(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	for range 2 {
		replace(y.h)
	}
	if _, ok := errors.AsType[*ReplacedError](context.Cause(y.h.ctx)); !ok {
		t.Errorf("ended with %v", context.Cause(y.h.ctx))
	}
	y.h.lines.flush(y.ctx)
	if n := strings.Count(logged.String(), "superseded"); n != 1 {
		t.Errorf("it ended %d times:\n%s", n, logged.String())
	}
}
