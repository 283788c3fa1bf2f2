package harness_test

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// watched is a context that reports when a call has seen its end.
type watched struct {
	context.Context
	seen chan struct{}
	once *sync.Once
}

func watch(ctx context.Context) (watched, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	return watched{ctx, make(chan struct{}), new(sync.Once)}, cancel
}

// Err implements [context.Context]. An ended context is asked why it has ended.
func (c watched) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.once.Do(func() { close(c.seen) })
	}
	return err
}

// Value hides the context inside, so that [context.Cause] calls Err.
func (c watched) Value(any) any { return nil }

// TestAskWaitsForItsReceipt: a process claims its session again after a lost lease, and the claim has the receipt for
// an answer that an Ask waits for. The context of that Ask ends before the outcome of the claim is known. The log says
// that this process has the answer, so the Ask returns it.
func TestAskWaitsForItsReceipt(t *testing.T) {
	for name, c := range map[string]struct {
		asksLater bool // the answer was read before the Ask began
		lostAgain bool // the lease of the claim is lost before its outcome is known
	}{
		"while it asks": {}, "before it asks": {asksLater: true}, "in doubt": {lostAgain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			w := newWorld(t)
			l := newLine(t, w.server.URL())
			h := w.connect(pool, func(cfg *harness.Config) { cfg.URL = l.url })
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			ctx, cancel := watch(w.ctx)
			defer cancel()
			p := harness.Prompt{ID: "p1", Questions: question(), OnOwnerLoss: events.LossKeep}
			var out chan asked
			if c.asksLater {
				check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
					Questions: question(), Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep}))
				w.mustAnswer("s", "p1", "red")
				natstest.Until(t, "the answer to be read", func() bool {
					return s.State().Prompts["p1"].Status == session.Answered
				})
			} else {
				out = ask(ctx, s, p)
				w.awaiting("s", "p1")
				w.answerSilently("s", "p1")
			}
			release := harness.Mute(s)
			l.ends.Store(true) // with the claim
			w.dropLease(h)
			natstest.Until(t, "the lease to be lost", func() bool { return harness.Suspended(s) })
			if c.asksLater {
				out = ask(ctx, s, p)
				natstest.Until(t, "the Ask to wait", func() bool { return harness.Waiting(s) == 1 })
			}
			release()
			w.until("s", "the receipt to be stored", func(st *session.State) bool {
				return st.Epoch == 2 && st.Prompts["p1"] == nil
			})
			cancel()
			<-ctx.seen
			if c.lostAgain {
				harness.Mute(s)() // the attempt to claim ends with its lease
			}
			l.cut()
			l.deaf.Store(false)
			if a := got(t, out); a.err != nil || a.answer.Answers[0].Text != "red" {
				t.Errorf("the log has the receipt, and the Ask returned %+v", a)
			}
			if epoch := s.State().Epoch; c.lostAgain && epoch < 3 {
				t.Errorf("the answer was returned under epoch %d, before the session was claimed again", epoch)
			}
		})
	}
}
