package race

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/retry"
)

const (
	aimed      = 10                    // retries of each session, one after the other: each aims better
	firstDelay = 2 * time.Second       // the delay before the first attempt
	aimBefore  = 12 * time.Millisecond // the first cancels are sent this long before the instant
	aimSteps   = 24                    // the number of steps to as long after it
	aimStepMax = 2 * time.Second
	// The next cancel is earlier if the last one was late, and later if it was in time.
	aimStepMin = 200 * time.Microsecond
)

// services runs a ledger, a retry and a compaction service until the test ends.
func services(t *testing.T, b *bus.Bus) {
	t.Helper()
	led, err := ledger.New(b, ledger.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ret, err := retry.New(b, retry.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	com, err := compaction.New(b, compaction.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{led.Run, ret.Run, com.Run} {
		all.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { stop(); all.Wait() })
	ready(t, b)
}

// TestCancelAndFire: a cancel and the retry meet at the retry's instant. The log has exactly one of them, and the
// caller gets that result (T16, V9).
func TestCancelAndFire(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	services(t, b)
	var cancelled, fired atomic.Int64
	var all sync.WaitGroup
	// sessions with a retry at the same time
	lanes := max(*rounds/aimed, 1)
	for n := range lanes {
		l := open(t, b, fmt.Sprintf("r%d", n))
		all.Go(func() {
			aim := aiming{at: time.Duration(n%aimSteps)*aimBefore*2/aimSteps - aimBefore, step: aimStepMin}
			for i := range aimed {
				was, err := l.cancelAtTheInstant(t, fmt.Sprintf("t%d", i), aim.at)
				switch {
				case err != nil:
					t.Errorf("%s: %v", l.ref, err)
					return
				case was:
					cancelled.Add(1)
				default:
					fired.Add(1)
				}
				aim.next(was)
			}
		})
	}
	all.Wait()
	t.Logf("%d cancelled, %d fired", cancelled.Load(), fired.Load())
	if cancelled.Load() == 0 || fired.Load() == 0 {
		t.Error("there was no race")
	}
}

// aiming searches the instant at which the two requests meet, however slow the machine is. Its step grows while the
// same one wins, and shrinks when the other one does.
type aiming struct {
	at, step time.Duration
	last     bool
	begun    bool
}

func (a *aiming) next(cancelled bool) {
	switch {
	case a.begun && cancelled == a.last:
		a.step *= 2
	case a.begun:
		a.step = a.step / 4
	}
	a.step = min(max(a.step, aimStepMin), aimStepMax)
	a.begun, a.last = true, cancelled
	if cancelled {
		a.at += a.step
	} else {
		a.at -= a.step
	}
}

// hold delays the first of two requests, or the second, so that they meet.
func (a *aiming) hold(i int) {
	if wait := []time.Duration{a.at, -a.at}[i]; wait > 0 {
		<-time.After(wait)
	}
}

// cancelAtTheInstant lets a turn fail and cancels its retry at about its instant. It reports whether the cancel won,
// and returns an error if the log differs from the caller's reply.
func (l *lane) cancelAtTheInstant(t *testing.T, turn string, aim time.Duration) (cancelled bool, err error) {
	ctx := t.Context()
	if err := l.append(ctx, events.WriterHarness, 1, events.TurnStarted{Turn: turn, Cause: events.CauseMessage},
		events.TurnFailed{Turn: turn, Error: events.Failure{Kind: "server_error"}}); err != nil {
		return false, err
	}
	at := l.st.LastTurn.At.Add(firstDelay + aim)
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	from := l.st.Seq + 1
	err = l.bus.Services.Request(ctx, retry.Name, "cancel", request.Retry{Ref: l.ref, By: "ada"}, nil)
	refusal, refused := errors.AsType[*events.Refusal](err)
	switch {
	case err == nil:
		cancelled = true
	case !refused || refusal.Code != 409 || refusal.Stands == nil || refusal.Stands.Status != session.RetryStarting:
		return false, fmt.Errorf("the reply is %w", err)
	}
	tail, err := l.bus.Log.Read(ctx, l.ref, from)
	if err != nil {
		return false, err
	}
	var gone, asked int
	for i := range tail {
		for _, e := range tail[i].Events {
			switch e.Fact.(type) {
			case events.RetryAbandoned:
				gone++
			case events.TurnRequested:
				asked++
			}
		}
		l.st.Fold(&tail[i])
	}
	if gone+asked != 1 || cancelled != (gone == 1) || l.st.Ignored.Count > 0 {
		return false, fmt.Errorf(
			"cancel succeeded: %v; in the log: abandoned %d times, requested %d times, ignored %+v",
			cancelled, gone, asked, l.st.Ignored.Last)
	}
	return cancelled, nil
}
