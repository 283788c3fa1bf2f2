package harness_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// counter is the function of a step that counts how often it runs.
type counter struct{ runs atomic.Int64 }

func (c *counter) run(context.Context) (string, error) { return fmt.Sprint("run ", c.runs.Add(1)), nil }

// wants checks how often the function has run.
func (c *counter) wants(t *testing.T, runs int64) {
	t.Helper()
	if got := c.runs.Load(); got != runs {
		t.Fatalf("the step ran %d times, want %d", got, runs)
	}
}

// begins opens session s with turn t1, which takes message m1.
func (w *world) begins(h *harness.Harness) *harness.Turn {
	w.t.Helper()
	s := must[*harness.Session](w.t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	return must[*harness.Turn](w.t)(s.StartTurn(w.ctx,
		harness.StartOptions{ID: "t1", Message: "m1", Content: "deploy"}))
}

// continues starts a turn that continues another one of message m1.
func (w *world) continues(s *harness.Session, id, of string, cause events.Cause) *harness.Turn {
	w.t.Helper()
	return must[*harness.Turn](w.t)(s.StartTurn(w.ctx, harness.StartOptions{ID: id, OfTurn: of, Message: "m1",
		Cause: cause, Attempt: 2}))
}

// after is the next process of the harness, which claims session s with its open turn, while the first still believes
// that it has it.
func (w *world) after() (*harness.Session, *harness.Turn) {
	w.t.Helper()
	s := must[*harness.Session](w.t)(w.connect().Claim(w.ctx, "s", harness.Adopt{Turn: true}))
	return s, s.OpenTurn()
}

// wantKept checks that a step returns a result that was kept.
func wantKept(t *testing.T, ctx context.Context, turn *harness.Turn, c *counter, want string) {
	t.Helper()
	runs := c.runs.Load()
	if got, err := harness.Step(ctx, turn, "deploy", c.run); err != nil || got != want {
		t.Fatalf("got %q, %v, want the kept %q", got, err, want)
	}
	c.wants(t, runs)
}

// TestStepKeepsItsResult: a step runs once for a message: in the same turn, in a retry after a failure, after a
// compaction, and in the next process. For another message it runs again.
func TestStepKeepsItsResult(t *testing.T) {
	w := newWorld(t)
	var c counter
	turn := w.begins(w.connect())
	s := turn.Session()
	if got, err := harness.Step(w.ctx, turn, "deploy", c.run); err != nil || got != "run 1" {
		t.Fatalf("got %q, %v", got, err)
	}
	wantKept(t, w.ctx, turn, &c, "run 1")
	check(t, turn.FailWith(w.ctx, errors.New("no luck")))
	turn = w.continues(s, "t2", "t1", events.CauseRetry)
	wantKept(t, w.ctx, turn, &c, "run 1")

	w.append("s", events.WriterCompaction,
		events.CompactionRequested{Compaction: "k1", Reason: events.CompactMidStream, FollowUp: events.FollowContinue})
	check(t, turn.Stop(w.ctx, events.ActorCompaction, ""))
	check(t, s.Append(w.ctx, events.CompactionStarted{Compaction: "k1"}))
	check(t, s.Append(w.ctx, events.CompactionCompleted{Compaction: "k1"}))
	turn = w.continues(s, "t3", "t2", events.CauseFollowUp)
	wantKept(t, w.ctx, turn, &c, "run 1")

	s, turn = w.after()
	wantKept(t, w.ctx, turn, &c, "run 1")
	check(t, turn.Complete(w.ctx, ""))
	next := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{Message: "m2", Content: "once more"}))
	if got, err := harness.Step(w.ctx, next, "deploy", c.run); err != nil || got != "run 2" {
		t.Errorf("for another message: got %q, %v", got, err)
	}
}

// TestStepOfATurnWithoutAMessage: the first turn of a chain without a message gives its steps their ids, also after
// the turns in between are forgotten.
func TestStepOfATurnWithoutAMessage(t *testing.T) {
	w := newWorld(t)
	var c counter
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	of := ""
	for i := range 4 {
		id := fmt.Sprint("t", i)
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: id, OfTurn: of}))
		if got, err := harness.Step(w.ctx, turn, "deploy", c.run); err != nil || got != "run 1" {
			t.Fatalf("turn %s: got %q, %v", id, got, err)
		}
		check(t, turn.FailWith(w.ctx, errors.New("no luck")))
		of = id
	}
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "other"}))
	if got, err := harness.Step(w.ctx, turn, "deploy", c.run); err != nil || got != "run 2" {
		t.Errorf("in a turn of its own: got %q, %v", got, err)
	}
}

// TestTurnsWithoutAMessageReadTheLogOnce: a session has more endings than its state keeps. A turn without a message
// that continues none reads nothing of its log before its own steps are that many. Turns that continue others read the
// log once together.
func TestTurnsWithoutAMessageReadTheLogOnce(t *testing.T) {
	w := newWorld(t)
	var c counter
	s := must[*harness.Session](t)(w.connect().Open(w.ctx, "s", harness.OpenOptions{}))
	start := func(of string) *harness.Turn {
		return must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{OfTurn: of}))
	}
	turn := start("")
	for i := range session.RecentMax + 1 {
		must[string](t)(harness.Step(w.ctx, turn, fmt.Sprint("filler ", i), c.run))
	}
	wantKeptAs(t, w.ctx, turn, "filler 0", "run 1")
	before := harness.Index(s)
	for range 2 {
		check(t, turn.Complete(w.ctx, ""))
		turn = start("")
		runs := c.runs.Load()
		if got, err := harness.Step(w.ctx, turn, "deploy", c.run); err != nil || got != fmt.Sprint("run ", runs+1) {
			t.Errorf("got %q, %v", got, err)
		}
		wantKeptAs(t, w.ctx, turn, "deploy", fmt.Sprint("run ", runs+1))
	}
	if before == nil || harness.Index(s) != before {
		t.Error("the log is read again, want what the first turn has read")
	}
	other := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s", harness.Adopt{Turn: true}))
	s, turn = other, other.OpenTurn()
	check(t, turn.Complete(w.ctx, ""))
	turn = start("")
	kept := must[string](t)(harness.Step(w.ctx, turn, "deploy", c.run))
	if harness.Index(s) != nil {
		t.Error("a turn that continues none has read the log")
	}
	for i := range session.RecentMax + 1 {
		must[string](t)(harness.Step(w.ctx, turn, fmt.Sprint("filler ", i), c.run))
	}
	var read any
	for range 3 {
		check(t, turn.FailWith(w.ctx, errors.New("no luck")))
		turn = start(turn.ID())
		wantKeptAs(t, w.ctx, turn, "deploy", kept)
		if now := harness.Index(s); now == nil || read != nil && now != read {
			t.Error("the log is read again")
		} else {
			read = now
		}
	}
}

// wantKeptAs checks that a step returns a result that was kept.
func wantKeptAs(t *testing.T, ctx context.Context, turn *harness.Turn, name, want string) {
	t.Helper()
	got, err := harness.Step(ctx, turn, name, func(context.Context) (string, error) {
		return "", errors.New("it runs again")
	})
	if err != nil || got != want {
		t.Errorf("step %s: got %q, %v, want %q", name, got, err, want)
	}
}

// stuck is a step that runs until it is released, in a process that the next one takes the session from.
func (w *world) stuck(turn *harness.Turn) (release func() error) {
	w.t.Helper()
	runs, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := harness.Step(context.WithoutCancel(w.ctx), turn, "deploy", func(context.Context) (string, error) {
			close(runs)
			<-free
			return "too late", nil
		})
		ended <- err
	}()
	<-runs
	return func() error {
		close(free)
		return <-ended
	}
}

// wantUnknown checks that a step that was cut off is not run again.
func wantUnknown(t *testing.T, ctx context.Context, turn *harness.Turn, reason string) {
	t.Helper()
	var c counter
	_, err := harness.Step(ctx, turn, "deploy", c.run)
	wantErr(t, err, harness.ErrOutcomeUnknown)
	unknown, ok := errors.AsType[*harness.UnknownOutcomeError](err)
	if !ok || unknown.Step != "deploy" || unknown.Reason != reason {
		t.Fatalf("got %v, want the reason %s", err, reason)
	}
	c.wants(t, 0)
}

// TestStepCutOffByADeath: a step that ran when its process was taken from is unknown for the next one, before recovery
// has closed it and after. The process that lost the session stores no result. A step that is declared idempotent runs.
func TestStepCutOffByADeath(t *testing.T) {
	for _, first := range []string{"the next process", "recovery"} {
		t.Run(first+" closes it", func(t *testing.T) {
			w := newWorld(t)
			turn := w.begins(w.connect())
			release := w.stuck(turn)
			s, turn := w.after()
			if first == "recovery" {
				w.append("s", events.WriterReconciler, events.ToolInterrupted{Call: harness.StepCall("m1", "deploy"),
					Reason: events.ReasonOwnerLost, Outcome: events.OutcomeUnknown})
			}
			wantUnknown(t, w.ctx, turn, events.ReasonOwnerLost)
			wantUnknown(t, w.ctx, turn, events.ReasonOwnerLost)
			wantErr(t, release(), harness.ErrFenced)
			check(t, turn.FailWith(w.ctx, errors.New("no luck")))
			turn = w.continues(s, "t2", "t1", events.CauseRetry)
			wantUnknown(t, w.ctx, turn, events.ReasonOwnerLost)
			var c counter
			got, err := harness.Step(w.ctx, turn, "deploy", c.run, harness.Idempotent())
			if err != nil || got != "run 1" {
				t.Fatalf("idempotent: got %q, %v", got, err)
			}
			wantKept(t, w.ctx, turn, &c, "run 1")
			if st := w.state("s"); len(st.Tools) > 0 || st.Ignored.Count != 0 {
				t.Errorf("open: %v, ignored: %+v", st.Tools, st.Ignored.Last)
			}
		})
	}
}

// TestStepOfADeadProcessRunsIfIdempotent: the step is open when the next process reaches it.
func TestStepOfADeadProcessRunsIfIdempotent(t *testing.T) {
	w := newWorld(t)
	release := w.stuck(w.begins(w.connect()))
	_, turn := w.after()
	var c counter
	if got, err := harness.Step(w.ctx, turn, "deploy", c.run, harness.Idempotent()); err != nil || got != "run 1" {
		t.Fatalf("got %q, %v", got, err)
	}
	wantErr(t, release(), harness.ErrFenced)
	wantKept(t, w.ctx, turn, &c, "run 1")
	e, ok := w.state("s").Ended(session.EntityTool, harness.StepCall("m1", "deploy"))
	if !ok || e.Outcome != session.OutcomeFailed || e.Reason != events.ReasonOwnerLost {
		t.Errorf("the call of the dead process: %+v", e)
	}
}

// TestStepThatRecoveryClosesFirst: recovery closes the call of a dead process after an idempotent step has looked, and
// before it begins.
func TestStepThatRecoveryClosesFirst(t *testing.T) {
	w := newWorld(t)
	release := w.stuck(w.begins(w.connect()))
	s, turn := w.after()
	var c counter
	write := harness.Mute(s)
	ended := make(chan error, 1)
	go func() {
		_, err := harness.Step(w.ctx, turn, "deploy", c.run, harness.Idempotent())
		ended <- err
	}()
	natstest.Until(t, "the step to be looked at", func() bool { return harness.Waiting(s) == 1 })
	w.whisperAs("s", events.WriterReconciler, events.ServiceSource("reconciler", "r"),
		events.ToolInterrupted{Call: harness.StepCall("m1", "deploy"), Reason: events.ReasonOwnerLost,
			Outcome: events.OutcomeUnknown})
	write()
	check(t, <-ended)
	c.wants(t, 1)
	wantErr(t, release(), harness.ErrFenced)
	if st := w.state("s"); st.Ignored.Count != 0 {
		t.Errorf("ignored: %+v", st.Ignored.Last)
	}
}

// TestStepFailed: a step whose function returned an error keeps no result, and runs again: in the same turn and in the
// next attempt.
func TestStepFailed(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	noLuck := errors.New("no luck")
	for range 2 {
		_, err := harness.Step(w.ctx, turn, "deploy", func(context.Context) (int, error) { return 0, noLuck })
		wantErr(t, err, noLuck)
	}
	check(t, turn.FailWith(w.ctx, noLuck))
	turn = w.continues(turn.Session(), "t2", "t1", events.CauseRetry)
	var c counter
	if got, err := harness.Step(w.ctx, turn, "deploy", c.run); err != nil || got != "run 1" {
		t.Fatalf("got %q, %v", got, err)
	}
	wantKept(t, w.ctx, turn, &c, "run 1")
}

// TestStepThatDoesNotReturn: a function that panics, or whose context ends while it runs, leaves no open call and an
// unknown outcome. The panic reaches the caller.
func TestStepThatDoesNotReturn(t *testing.T) {
	t.Run("panic", func(t *testing.T) {
		w := newWorld(t)
		turn := w.begins(w.connect())
		func() {
			defer func() {
				if got := recover(); got != "out of paint" {
					t.Errorf("recovered %v", got)
				}
			}()
			_, err := harness.Step(w.ctx, turn, "deploy", func(context.Context) (int, error) { panic("out of paint") })
			t.Errorf("the step returned %v", err)
		}()
		wantUnknown(t, w.ctx, turn, "panic")
		if st := w.state("s"); len(st.Tools) > 0 {
			t.Errorf("open: %v", st.Tools)
		}
	})
	t.Run("context", func(t *testing.T) {
		w := newWorld(t)
		turn := w.begins(w.connect())
		ctx, cancel := context.WithCancel(w.ctx)
		_, err := harness.Step(ctx, turn, "deploy", func(ctx context.Context) (int, error) {
			cancel()
			<-ctx.Done()
			return 0, ctx.Err()
		})
		wantErr(t, err, context.Canceled)
		wantErr(t, err, harness.ErrOutcomeUnknown)
		wantUnknown(t, w.ctx, turn, "cut-off")
	})
	t.Run("a result in spite of the context", func(t *testing.T) {
		w := newWorld(t)
		turn := w.begins(w.connect())
		ctx, cancel := context.WithCancel(w.ctx)
		var c counter
		got, err := harness.Step(ctx, turn, "deploy", func(ctx context.Context) (string, error) {
			cancel()
			return c.run(ctx)
		})
		if err != nil || got != "run 1" {
			t.Fatalf("got %q, %v", got, err)
		}
		wantKept(t, w.ctx, turn, &c, "run 1")
	})
	t.Run("the turn ends", func(t *testing.T) {
		w := newWorld(t)
		turn := w.begins(w.connect())
		_, err := harness.Step(w.ctx, turn, "deploy", func(ctx context.Context) (int, error) {
			w.append("s", events.WriterRetry, events.TurnStopRequested{Turn: "t1", Actor: events.ActorStall},
				events.TurnFailed{Turn: "t1", Error: events.Failure{Kind: failure.Stalled}})
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		wantErr(t, err, harness.ErrEnded)
		turn = w.continues(turn.Session(), "t2", "t1", events.CauseRetry)
		wantUnknown(t, w.ctx, turn, events.ReasonTurnEnded)
	})
}

// TestStepLargeResult: a result that is too large for an event is kept, and so is one that looks like the name of an
// object. [harness.Session.Result] returns it, too.
func TestStepLargeResult(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	large := strings.Repeat("x", 3*events.CommitBytesMax)
	refs := map[string]string{"$ref": events.ObjectName(ref("s"), []byte("not there"))}
	_, err := harness.Step(w.ctx, turn, "large", func(context.Context) (string, error) { return large, nil })
	check(t, err)
	_, err = harness.Step(w.ctx, turn, "looks", func(context.Context) (map[string]string, error) { return refs, nil })
	check(t, err)
	s, turn := w.after()
	var c counter
	if got, err := harness.Step(w.ctx, turn, "large", c.run); err != nil || got != large {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(large))
	}
	got, err := harness.Step(w.ctx, turn, "looks", func(ctx context.Context) (map[string]string, error) {
		_, err := c.run(ctx)
		return nil, err
	})
	if err != nil || got["$ref"] != refs["$ref"] {
		t.Errorf("got %v, %v", got, err)
	}
	c.wants(t, 0)
	if r, err := s.Result(w.ctx, harness.StepCall("m1", "large")); err != nil || len(r.Output) != len(large)+2 {
		t.Errorf("its call has %d bytes, %v", len(r.Output), err)
	}
	check(t, must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "x"})).Complete(w.ctx, large))
	if r, err := s.Result(w.ctx, "c1"); err != nil || len(r.Output) != len(large)+2 {
		t.Errorf("a call has %d bytes, %v", len(r.Output), err)
	}
}

// TestStepResultThatCannotBeStored: a type that is no JSON is refused before the function runs. A value without a
// JSON form has an unknown outcome: the function ran.
func TestStepResultThatCannotBeStored(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	var c counter
	_, err := harness.Step(w.ctx, turn, "channel", func(ctx context.Context) (chan int, error) {
		_, err := c.run(ctx)
		return nil, err
	})
	wantErr(t, err, events.ErrMalformed)
	c.wants(t, 0)
	_, err = harness.Step(w.ctx, turn, "deploy", func(context.Context) (float64, error) { return math.NaN(), nil })
	if err == nil {
		t.Error("NaN was stored")
	}
	wantUnknown(t, w.ctx, turn, "result-not-kept")
	_, err = harness.Step(w.ctx, turn, "", c.run)
	wantErr(t, err, events.ErrMalformed)
	if _, err := harness.Step(w.ctx, turn, "text", c.run); err != nil {
		t.Fatal(err)
	}
	_, err = harness.Step(w.ctx, turn, "text", func(context.Context) (int, error) { return 0, nil })
	wantErr(t, err, events.ErrMalformed)
}

// TestStepFoundLongAfter: results, decisions and unknown outcomes are found in the log when the state of the session
// keeps their endings no longer, also by the next process. Nothing is run or asked again.
func TestStepFoundLongAfter(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	var kept, failed counter
	must[string](t)(harness.Step(w.ctx, turn, "kept", kept.run))
	noLuck := errors.New("no luck")
	_, err := harness.Step(w.ctx, turn, "failed", func(context.Context) (int, error) { return 0, noLuck })
	if err == nil {
		t.Fatal("no error")
	}
	ctx, cancel := context.WithCancel(w.ctx)
	_, err = harness.Step(ctx, turn, "deploy", func(context.Context) (int, error) { cancel(); return 0, ctx.Err() })
	wantErr(t, err, context.Canceled)
	w.decides(turn, "colour", "red")
	for i := range session.RecentMax + 5 {
		must[string](t)(harness.Step(w.ctx, turn, fmt.Sprint("filler ", i), failed.run))
	}
	fenced := turn
	_, next := w.after()
	// the second time from what was read
	for _, turn := range []*harness.Turn{next, next.Session().OpenTurn()} {
		runs := failed.runs.Load()
		if got, err := harness.Step(w.ctx, turn, "kept", kept.run); err != nil || got != "run 1" {
			t.Errorf("got %q, %v", got, err)
		}
		wantUnknown(t, w.ctx, turn, "cut-off")
		if a, err := turn.AskOnce(w.ctx, "colour", colourful()); err != nil || a.Answers[0].Text != "red" {
			t.Errorf("got %+v, %v", a, err)
		}
		if got, err := harness.Step(w.ctx, turn, "filler 0", failed.run); err != nil || got != "run 1" {
			t.Errorf("got %q, %v", got, err)
		}
		failed.wants(t, runs)
	}
	if got, err := harness.Step(w.ctx, next, "failed", failed.run); err != nil || got != "run 56" {
		t.Errorf("a step that failed: got %q, %v", got, err)
	}
	kept.wants(t, 1)
	_, err = harness.Step(w.ctx, fenced, "new", kept.run)
	wantErr(t, err, harness.ErrFenced)
	kept.wants(t, 1)
}

// TestStepNames: a name that runs is refused, so that a step cannot run itself. Another input under a name is refused.
func TestStepNames(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	var c counter
	_, err := harness.Step(w.ctx, turn, "outer", func(ctx context.Context) (string, error) {
		return harness.Step(ctx, turn, "outer", c.run)
	})
	wantErr(t, err, harness.ErrRunning)
	for _, command := range []string{"ls", "ls", "rm -rf /"} {
		_, err = harness.Step(w.ctx, turn, "command", c.run, harness.StepInput(command))
	}
	wantErr(t, err, harness.ErrNameTaken)
	c.wants(t, 1)
	must[string](t)(harness.Step(w.ctx, turn, "a name: mit Leerzeichen und Ä", c.run))
	must[string](t)(harness.Step(w.ctx, turn, strings.Repeat("ß", 300), c.run))
	c.wants(t, 3)
}

// TestStepInAnOutage: a result waits until the broker is back.
func TestStepInAnOutage(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	var c counter
	var restarting sync.WaitGroup
	// the step can be stored before the restart has returned
	defer restarting.Wait()
	got, err := harness.Step(w.ctx, turn, "deploy", func(ctx context.Context) (string, error) {
		w.server.Shutdown()
		restarting.Go(w.back)
		return c.run(ctx)
	})
	if err != nil || got != "run 1" {
		t.Fatalf("got %q, %v", got, err)
	}
	wantKept(t, w.ctx, turn, &c, "run 1")
}

// begunInDoubt calls a step, and ends its context when the beginning was sent and its outcome is not known.
func (w *world) begunInDoubt(turn *harness.Turn, c *counter) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := harness.Step(ctx, turn, "deploy", c.run)
		failed <- err
	}()
	natstest.Until(w.t, "the beginning to be sent", func() bool { return harness.HandedOver(turn.Session()) == 1 })
	cancel()
	wantErr(w.t, <-failed, harness.ErrPending)
	c.wants(w.t.(*testing.T), 0)
}

// TestStepEndsInAnOutage: the context of a step ends while its function runs and the broker is away. The error says
// that the outcome is not stored yet. It is stored when the broker is back, and the next call returns the result.
func TestStepEndsInAnOutage(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.TTL = time.Minute })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	ran := 0
	pay := func(context.Context) (string, error) { ran++; return "paid", nil }
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	_, err := harness.Step(ctx, turn, "pay", func(ctx context.Context) (string, error) {
		w.server.Shutdown()
		w.sendsFirst(s)
		cancel()
		return pay(ctx)
	})
	wantErr(t, err, harness.ErrPending)
	w.back()
	got, err := harness.Step(w.ctx, turn, "pay", pay)
	if err != nil || got != "paid" || ran != 1 {
		t.Errorf("got %q, %v, ran %d times", got, err, ran)
	}
	check(t, turn.Complete(w.ctx, "stop"))
}

// TestStepBegunInDoubt: the context of a step ends while its beginning is in doubt. The function did not run, and the
// client knows that, so the next call runs it: in this turn, in the next one, and in the next process. If the process
// is gone before it has said so, the outcome is unknown.
func TestStepBegunInDoubt(t *testing.T) {
	for name, next := range map[string]func(*world, *harness.Turn) *harness.Turn{
		"this turn": func(_ *world, turn *harness.Turn) *harness.Turn { return turn },
		"the next turn": func(w *world, turn *harness.Turn) *harness.Turn {
			check(w.t, turn.FailWith(w.ctx, errors.New("no luck")))
			return w.continues(turn.Session(), "t2", "t1", events.CauseRetry)
		},
		"the next process": func(w *world, turn *harness.Turn) *harness.Turn {
			check(w.t, turn.Session().Append(w.ctx, events.MessageAccepted{Message: "behind it", Synthetic: true}))
			_, turn = w.after()
			return turn
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			turn := w.begins(w.connect(func(c *harness.Config) { c.TTL = time.Minute }))
			var c counter
			w.server.Shutdown()
			w.begunInDoubt(turn, &c)
			w.back()
			if got, err := harness.Step(w.ctx, next(w, turn), "deploy", c.run); err != nil || got != "run 1" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	t.Run("the process is gone", func(t *testing.T) {
		// it mostly waits
		t.Parallel()
		w := newWorld(t)
		h, l, _ := deaf(w)
		turn := w.begins(h)
		var c counter
		l.ends.Store(true)
		w.begunInDoubt(turn, &c)
		w.until("s", "the beginning to be stored", func(st *session.State) bool { return len(st.Tools) == 1 })
		_, turn = w.after()
		wantUnknown(t, w.ctx, turn, events.ReasonOwnerLost)
	})
}

// orphan finds the owner of session s dead, as recovery does.
func (w *world) orphan() {
	w.t.Helper()
	w.append("s", events.WriterReconciler, events.SessionOrphaned{Incarnation: w.state("s").Incarnation,
		Reason: events.ReasonOwnerLost})
}

// colourful is a question.
func colourful() harness.Prompt { return harness.Prompt{Questions: question(), Title: "The wall"} }

// decides asks a question and answers it.
func (w *world) decides(turn *harness.Turn, name, text string) {
	w.t.Helper()
	out := w.askOnce(turn, name, colourful())
	id := harness.QuestionID("m1", name, 1)
	w.awaiting("s", id)
	w.mustAnswer("s", id, text)
	if a := got(w.t, out); a.err != nil || a.answer.Answers[0].Text != text {
		w.t.Fatalf("got %+v", a)
	}
}

func (w *world) askOnce(turn *harness.Turn, name string, p harness.Prompt) chan asked {
	out := make(chan asked, 1)
	go func() {
		a, err := turn.AskOnce(w.ctx, name, p)
		out <- asked{a, err}
	}()
	return out
}

// wantAsked checks how many prompts were asked in session s, and that nothing is open.
func (w *world) wantAsked(prompts int) {
	w.t.Helper()
	cs, err := w.bus.Log.Read(w.ctx, ref("s"), 1)
	check(w.t, err)
	asked := map[string]bool{}
	for i := range cs {
		for n := range cs[i].Events {
			if f, ok := cs[i].Events[n].Fact.(events.PromptRequested); ok {
				asked[f.Prompt] = true
			}
		}
	}
	if st := w.state("s"); len(asked) != prompts || len(st.Prompts) > 0 || len(st.Tools) > 0 {
		w.t.Fatalf("asked %v, want %d; open are %v and %v", asked, prompts, st.Prompts, st.Tools)
	}
}

// TestAskOnce: a decision is kept for the turn, for the next attempt and for the next process, and no other question
// gets it.
func TestAskOnce(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	w.decides(turn, "colour", "red")
	kept := func(turn *harness.Turn) {
		t.Helper()
		a, err := turn.AskOnce(w.ctx, "colour", colourful())
		if err != nil || a.Answers[0].Text != "red" || a.By != "ada" {
			t.Fatalf("got %+v, %v", a, err)
		}
	}
	kept(turn)
	check(t, turn.FailWith(w.ctx, errors.New("no luck")))
	turn = w.continues(turn.Session(), "t2", "t1", events.CauseRetry)
	kept(turn)
	_, turn = w.after()
	kept(turn)
	_, err := turn.AskOnce(w.ctx, "colour", harness.Prompt{Questions: question(), Title: "The floor"})
	wantErr(t, err, harness.ErrNameTaken)
	w.wantAsked(1)
	check(t, turn.Complete(w.ctx, ""))
	if st := w.state("s"); st.Pending.Turn != nil || st.Ignored.Count != 0 {
		t.Errorf("pending %+v, ignored %+v", st.Pending.Turn, st.Ignored.Last)
	}
}

// TestAskOnceFoundLongAfter: the ending of a question is forgotten before that of its call, and then both are. The
// decision stays the one that the person made.
func TestAskOnceFoundLongAfter(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	w.decides(turn, "colour", "red")
	var c counter
	for i := range session.RecentMax + 3 {
		must[string](t)(harness.Step(w.ctx, turn, fmt.Sprint("filler ", i), c.run))
		if i < session.RecentMax-4 {
			continue
		}
		if a, err := turn.AskOnce(w.ctx, "colour", colourful()); err != nil || a.Answers[0].Text != "red" {
			t.Fatalf("after %d steps: got %+v, %v", i+1, a, err)
		}
	}
	w.wantAsked(1)
}

// TestForgets: a list of endings that lacks one may have been full, because an answer that is taken back removes one.
func TestForgets(t *testing.T) {
	for n, want := range map[int]bool{session.RecentMax: true, session.RecentMax - 1: true,
		session.RecentMax - 2: false} {
		st := &session.State{Recent: make([]session.Ending, n)}
		st.Recent[0].Seq = 7
		if got := harness.Forgets(st, 6); got != want {
			t.Errorf("%d endings: %v, want %v", n, got, want)
		}
		if harness.Forgets(st, 7) {
			t.Errorf("%d endings: what is kept is not forgotten", n)
		}
	}
}

// TestAskOnceOfAnotherText: a decision about a question that is still open does not become one about another question
// under its name: in the process that asked, and when the answer comes while the next process begins to ask.
func TestAskOnceOfAnotherText(t *testing.T) {
	other := harness.Prompt{Questions: question(), Title: "The floor"}
	t.Run("still open", func(t *testing.T) {
		w := newWorld(t)
		turn := w.begins(w.connect())
		ctx, cancel := context.WithCancel(w.ctx)
		first := make(chan error, 1)
		go func() {
			_, err := turn.AskOnce(ctx, "colour", colourful())
			first <- err
		}()
		id := harness.QuestionID("m1", "colour", 1)
		w.awaiting("s", id)
		cancel()
		wantErr(t, <-first, context.Canceled)
		_, err := turn.AskOnce(w.ctx, "colour", other)
		wantErr(t, err, harness.ErrNameTaken)
		again := w.askOnce(turn, "colour", colourful())
		w.mustAnswer("s", id, "red")
		if a := got(t, again); a.err != nil || a.answer.Answers[0].Text != "red" {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("answered meanwhile", func(t *testing.T) {
		w := newWorld(t)
		w.askOnce(w.begins(w.connect()), "colour", colourful())
		id := harness.QuestionID("m1", "colour", 1)
		w.awaiting("s", id)
		s, turn := w.after()
		write := harness.Mute(s)
		asked := w.askOnce(turn, "colour", other)
		natstest.Until(t, "the question to be looked at", func() bool { return harness.Waiting(s) == 1 })
		w.whisper("s", events.PromptAnswered{Prompt: id, By: "ada",
			Answers: []events.Answer{{Question: question()[0].ID, Text: "red"}}})
		write()
		wantErr(t, got(t, asked).err, harness.ErrNameTaken)
	})
}

// TestAskOnceOfBytesThatAreNoText: a title that was cut within a letter is the same question in the next process.
func TestAskOnceOfBytesThatAreNoText(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	p := colourful()
	p.Title, p.Questions = "W\xc3\x28nde\xff\xfe", question()
	p.Questions[0].Question = "Farbe \xe2\x82"
	first := w.askOnce(turn, "colour", p)
	id := harness.QuestionID("m1", "colour", 1)
	w.awaiting("s", id)
	w.mustAnswer("s", id, "red")
	check(t, got(t, first).err)
	_, turn = w.after()
	if a, err := turn.AskOnce(w.ctx, "colour", p); err != nil || a.Answers[0].Text != "red" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// TestAskOnceOpenAtADeath: the next process waits for the question that the first one asked.
func TestAskOnceOpenAtADeath(t *testing.T) {
	w := newWorld(t)
	first := w.askOnce(w.begins(w.connect()), "colour", colourful())
	id := harness.QuestionID("m1", "colour", 1)
	w.awaiting("s", id)
	_, turn := w.after()
	second := w.askOnce(turn, "colour", colourful())
	w.until("s", "the question to be this process's", func(st *session.State) bool {
		p := st.Prompts[id]
		return p != nil && p.Epoch == st.Epoch && st.Tools[id] != nil && st.Tools[id].Epoch == st.Epoch
	})
	w.mustAnswer("s", id, "red")
	if a := got(t, second); a.err != nil || a.answer.Answers[0].Text != "red" {
		t.Fatalf("got %+v", a)
	}
	wantErr(t, got(t, first).err, harness.ErrFenced)
	w.wantAsked(1)
}

// TestAskOnceAnsweredWhileDead: a question is answered while no process runs. The turn that is requested for it gets
// the answer: before and after the process that asked was found dead.
func TestAskOnceAnsweredWhileDead(t *testing.T) {
	for _, claimed := range []bool{false, true} {
		t.Run(fmt.Sprintf("claimed before recovery: %v", claimed), func(t *testing.T) {
			w := newWorld(t)
			w.askOnce(w.begins(w.connect()), "colour", colourful())
			id := harness.QuestionID("m1", "colour", 1)
			w.awaiting("s", id)
			if !claimed {
				w.orphan()
			}
			w.mustAnswer("s", id, "red")
			w.show("s")
			h := w.connect()
			if claimed {
				s := must[*harness.Session](t)(h.Claim(w.ctx, "s", harness.Adopt{Turn: true}))
				a := got(t, w.askOnce(s.OpenTurn(), "colour", colourful()))
				if a.err != nil || a.answer.Answers[0].Text != "red" {
					t.Fatalf("got %+v", a)
				}
				check(t, s.OpenTurn().Complete(w.ctx, ""))
			} else {
				w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
					a, err := turn.AskOnce(ctx, "colour", colourful())
					if err == nil && a.Answers[0].Text != "red" {
						return fmt.Errorf("got %+v", a)
					}
					return err
				}})
			}
			st := w.until("s", "the turn to be over", func(st *session.State) bool {
				return st.Turn == nil && st.LastTurn != nil && st.Pending.Turn == nil
			})
			if l := st.LastTurn; l.Outcome != session.OutcomeCompleted || len(l.Prompts) > 0 || st.Ignored.Count != 0 {
				t.Errorf("%+v", st.LastTurn)
			}
			w.wantAsked(1)
		})
	}
}

// TestAskOnceWithoutADecision: a question that ended with its turn, or that was never asked because the process died
// after its call had begun, is asked again.
func TestAskOnceWithoutADecision(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	s := turn.Session()
	first := w.askOnce(turn, "colour", colourful())
	w.awaiting("s", harness.QuestionID("m1", "colour", 1))
	check(t, turn.FailWith(w.ctx, errors.New("no luck")))
	wantErr(t, got(t, first).err, harness.ErrEnded)

	turn = w.continues(s, "t2", "t1", events.CauseRetry)
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: harness.QuestionID("m1", "colour", 2)}))
	w.append("s", events.WriterReconciler, events.ToolInterrupted{Call: call.ID(), Reason: events.ReasonOwnerLost})
	natstest.Until(t, "the process to know that the call was cut off", func() bool {
		return s.State().Tools[call.ID()] == nil
	})
	third := w.askOnce(turn, "colour", colourful())
	id := harness.QuestionID("m1", "colour", 3)
	w.awaiting("s", id)
	w.mustAnswer("s", id, "red")
	if a := got(t, third); a.err != nil || a.answer.Answers[0].Text != "red" {
		t.Fatalf("got %+v", a)
	}
	w.wantAsked(2)
}

// TestAskOnceOfAPermission: a permission outlives its process, and a rejection is kept as well.
func TestAskOnceOfAPermission(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	may := harness.Prompt{Kind: events.PromptPermission, Title: "Run make deploy"}
	first := w.askOnce(turn, "may-deploy", may)
	id := harness.QuestionID("m1", "may-deploy", 1)
	w.awaiting("s", id)
	if p := w.state("s").Prompts[id]; p.OnOwnerLoss != events.LossKeep {
		t.Errorf("%+v", p)
	}
	w.append("s", events.WriterLedger, events.PromptRejected{Prompt: id, By: "ada", Text: "not on a Friday"})
	for _, a := range []asked{got(t, first), got(t, w.askOnce(turn, "may-deploy", may))} {
		if a.err != nil || a.answer.Status != session.Rejected || a.answer.Text != "not on a Friday" {
			t.Errorf("got %+v", a)
		}
	}
	_, turn = w.after()
	if a := got(t, w.askOnce(turn, "may-deploy", may)); a.err != nil || a.answer.Status != session.Rejected {
		t.Errorf("the next process: got %+v", a)
	}
	w.wantAsked(1)
}

// TestResultHasOneShape: a call that an answer ended has the answers as its output, whether its process or the ledger
// ended it.
func TestResultHasOneShape(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Call: must[*harness.Call](t)(turn.Tool(w.ctx,
		harness.ToolOptions{ID: "c1", Name: "ask"})).ID(), Questions: question()})
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "red")
	check(t, turn.Session().Call("c1").Complete(w.ctx, got(t, out).answer.Answers))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c2", Name: "ask"}))
	ask(w.ctx, turn, harness.Prompt{ID: "p2", Call: "c2", Questions: question()})
	w.awaiting("s", "p2")
	w.orphan()
	w.mustAnswer("s", "p2", "red")
	s := must[*harness.Session](t)(w.connect().Claim(w.ctx, "s"))
	alive, dead := must[harness.Result](t)(s.Result(w.ctx, "c1")), must[harness.Result](t)(s.Result(w.ctx, "c2"))
	if string(alive.Output) != string(dead.Output) || alive.Synthetic || !dead.Synthetic {
		t.Errorf("ended by its process: %s, ended by the ledger: %s", alive.Output, dead.Output)
	}
}
