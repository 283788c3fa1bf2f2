package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// decided fails the test unless the turn brings the answer red to p1.
func decided(t *testing.T, all []session.TurnPrompt, err error) {
	t.Helper()
	check(t, err)
	if len(all) != 1 || all[0].Prompt != "p1" || all[0].Status != session.Answered || all[0].Omitted ||
		len(all[0].Answers) != 1 || all[0].Answers[0].Text != "red" || len(all[0].Questions) != 1 {
		t.Fatalf("the turn brings %+v", all)
	}
}

// TestDecisionsWhileALeaseIsOverdue (R6): a handler that begins while the lease of its process is overdue gets the
// decisions when the session is its own again, and nothing before. Its request only names them.
func TestDecisionsWhileALeaseIsOverdue(t *testing.T) {
	w := newWorld(t)
	w.bringsAnAnswer(events.DeliverCallback)
	h := w.connect(pool)
	check(t, h.Ready(w.ctx))
	turns, end := make(chan *harness.Turn, 1), make(chan struct{})
	w.work(h, harness.Worker{Turn: func(_ context.Context, t *harness.Turn) error {
		turns <- t
		<-end
		return nil
	}})
	defer close(end)
	turn := <-turns
	before := turn.Session().State().Seq
	all, err := turn.Decisions(w.ctx)
	decided(t, all, err)
	if seq := turn.Session().State().Seq; seq != before {
		t.Errorf("to read the decisions wrote commit %d", seq)
	}
	lose, overdue, err := harness.Unkept(w.ctx, h, time.Second)
	check(t, err)
	natstest.Until(t, "the lease to be overdue", overdue)
	soon, cancel := short(w.ctx)
	defer cancel()
	_, err = turn.Decisions(soon)
	wantErr(t, err, context.DeadlineExceeded)
	lose()
	all, err = turn.Decisions(w.ctx)
	decided(t, all, err)
}

// TestNoDecisionsForAFencedProcess (R6): a process that has lost the session gets no decision.
func TestNoDecisionsForAFencedProcess(t *testing.T) {
	w := newWorld(t)
	w.bringsAnAnswer(events.DeliverCallback)
	h := w.connect(pool)
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{Content: "x"}))
	losses["fenced"](w, h, s)
	_, err := turn.Decisions(w.ctx)
	wantErr(t, err, harness.ErrFenced)
}

// TestDecisionsOfAStartedTurn: the request of a turn that the program began only names what it brings. The decisions
// are read from the log, until the turn has ended.
func TestDecisionsOfAStartedTurn(t *testing.T) {
	w := newWorld(t)
	w.bringsAnAnswer(events.DeliverCallback)
	s := must[*harness.Session](t)(w.connect(pool).Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2", Prompts: []string{"p1"}}))
	if named := turn.Request().Prompts; len(named) != 1 || !named[0].Omitted {
		t.Fatalf("the request has %+v", named)
	}
	all, err := turn.Decisions(w.ctx)
	decided(t, all, err)
	check(t, turn.Complete(w.ctx, ""))
	_, err = turn.Decisions(w.ctx)
	wantErr(t, err, harness.ErrUnknown)
}
