package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/test/child"
)

// lookupEvery is how often a process that waits for an answer also looks for the end of the call that waits for it.
const lookupEvery = 200 * time.Millisecond

// TestFencedWhileItAsks (R6): processes are stopped while their Asks wait, and while they look for the ends of their
// calls, for longer than a lease and its grace; some questions are answered before the session is fenced, some after.
// After SIGCONT the processes receive none of the answers.
func TestFencedWhileItAsks(t *testing.T) {
	const processes, asks = 3, 20
	w := newCell(t, drawn(t), 1)
	var askers []*actor
	for i := range processes {
		name := fmt.Sprintf("asker-%d", i)
		w.add(roleAsker, settings{Name: name, ID: name, Sessions: asks})
		askers = append(askers, w.others[len(w.others)-1])
	}
	for _, a := range askers {
		w.idle(a)
		a.p.Stop()
	}
	refs := func(a *actor) (all []events.Ref) {
		for i := range asks {
			all = append(all, events.Ref{Harness: a.ID, Session: fmt.Sprint("s", i)})
		}
		return all
	}
	for _, a := range askers {
		for i, r := range refs(a) {
			// the answer may be in the process's socket, with the fence behind it
			if i%2 == 0 {
				w.answerOnce(r)
			}
		}
	}
	for _, a := range askers {
		for i, r := range refs(a) {
			if !until(livelyMax, func() bool { return !w.stateOf(r).Owned }) {
				t.Fatalf("%s is not fenced: its process is stopped for longer than %s", r, leaseTTL+grace)
			}
			if i%2 != 0 {
				w.answerOnce(r)
			}
		}
	}
	for _, a := range askers {
		a.p.Continue()
		w.idle(a)
		w.knowsItsLoss(a, refs(a)[0])
	}
	notes, err := readJournals(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	fenced, handed := 0, 0
	for _, n := range notes {
		switch {
		case n.Wrong != "":
			t.Errorf("%s received: %s", n.Ref, n.Wrong)
		case n.Status != "":
			handed++
			t.Errorf("%s was handed the answer to %s after it was fenced: %s", n.By, n.Ref, n.Text)
		default:
			fenced++
		}
	}
	if fenced+handed != processes*asks {
		t.Errorf("%d Asks have returned, want %d", fenced+handed, processes*asks)
	}
	t.Logf("%d Asks waited, %d were fenced, %d answers were handed to fenced processes", processes*asks, fenced, handed)
}

// knowsItsLoss waits until the log of a harness, as the other tests read it, says that the process lost the lease with
// which it owned a session.
func (w *world) knowsItsLoss(a *actor, r events.Ref) {
	was := w.stateOf(r).Incarnation
	if !until(livelyMax, func() bool {
		lost, err := readLost(w.dir)
		if err != nil {
			w.t.Fatal(err)
		}
		return lost[was]
	}) {
		w.t.Errorf("the log of %s does not say that it lost the lease of its incarnation %s", a.Name, was)
	}
}

// playAsker is a process that asks in many sessions at once. It reports when all questions are open, and when all Asks
// have returned.
func playAsker(ctx context.Context, s settings, log *slog.Logger) error {
	j, err := openJournal(s.Journal, s.Name)
	if err != nil {
		return err
	}
	h, err := harness.Connect(ctx, harness.Config{ID: s.ID, URL: s.URL, TTL: leaseTTL, Log: log})
	if err != nil {
		return err
	}
	var asks sync.WaitGroup
	for i := range s.Sessions {
		x, err := h.Open(ctx, fmt.Sprint("s", i), harness.OpenOptions{})
		if err != nil {
			return err
		}
		t, err := x.StartTurn(ctx, harness.StartOptions{Content: "go"})
		if err != nil {
			return err
		}
		call, err := t.Tool(ctx, harness.ToolOptions{Name: "rm"})
		if err != nil {
			return err
		}
		asks.Go(func() { askOnce(ctx, j, s.ID, t, call) })
		asks.Go(func() { waitForEnd(ctx, j, s.ID, x, call.ID()) })
		for x.State().Prompts["p"] == nil {
			// behind the question
			if err := x.Append(ctx, events.UsageReported{Turn: t.ID(), Model: "m"}); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(h.Ready(ctx), child.Print(lineIdle)); err != nil {
		return err
	}
	asks.Wait()
	if err := child.Print(lineIdle); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// askOnce asks, and records the outcome.
func askOnce(ctx context.Context, j *journal, id string, t *harness.Turn, call *harness.Call) {
	n := note{Ref: events.Ref{Harness: id, Session: t.Session().ID()}, Prompt: "p"}
	a, err := t.Ask(ctx, harness.Prompt{ID: "p", Call: call.ID(), Questions: ask()})
	switch {
	case err == nil:
		n.Status, n.Text = string(a.Status), choiceOf(a.Answers)
	case !errors.Is(err, harness.ErrFenced):
		n.Wrong = err.Error()
	}
	j.write(n)
}

// waitForEnd looks for the end of a call, which is the answer to its question, until the process is fenced. It records
// what it gets.
func waitForEnd(ctx context.Context, j *journal, id string, s *harness.Session, call string) {
	pace := time.NewTicker(lookupEvery)
	defer pace.Stop()
	for {
		r, err := s.Result(ctx, call)
		switch {
		case err == nil:
			j.write(note{Ref: events.Ref{Harness: id, Session: s.ID()}, Prompt: "p", Status: r.Outcome,
				Text: string(r.Output)})
			return
		case !errors.Is(err, harness.ErrUnknown):
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
	}
}

// stateOf returns the fold of a session's log.
func (w *world) stateOf(r events.Ref) *session.State {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), checkMax)
	defer cancel()
	cs, err := w.bus.Log.Read(ctx, r, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	st := session.New(r)
	for i := range cs {
		st.Fold(&cs[i])
	}
	return st
}

// answerOnce answers a session's question.
func (w *world) answerOnce(r events.Ref) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), checkMax)
	defer cancel()
	req := request.Answer{Ref: r, Prompt: "p", By: "ada", Answers: []events.Answer{{Question: "q", Text: "yes"}}}
	ok := until(checkMax, func() bool {
		err := w.bus.Services.Request(ctx, ledger.Name, "answer", req, nil)
		refusal, refused := errors.AsType[*events.Refusal](err)
		if err != nil && !(refused && refusal.Code == 503) && !errors.Is(err, bus.ErrUnreachable) {
			w.t.Fatalf("%s: %v", r, err)
		}
		return err == nil
	})
	if !ok {
		w.t.Fatalf("%s is not answered", r)
	}
}
