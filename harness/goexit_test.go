package harness_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestHandlersThatEndTheirGoroutine: each handler of a Work with one place ends its goroutine. Its turn, or its
// compaction, fails, and the next turn is run.
func TestHandlersThatEndTheirGoroutine(t *testing.T) {
	for name, do := range map[string]func(w *world, k *harness.Worker){
		"Turn": func(w *world, k *harness.Worker) {
			next := k.Turn
			k.Turn = func(ctx context.Context, t *harness.Turn) error {
				if t.ID() == "t1" {
					runtime.Goexit()
				}
				return next(ctx, t)
			}
		},
		"Options": func(w *world, k *harness.Worker) {
			k.Options = func(_ *harness.Session, t session.WorkTurn) any {
				if t.Turn == "t1" {
					runtime.Goexit()
				}
				return nil
			}
		},
		"Compact": func(w *world, k *harness.Worker) {
			k.Compact = func(context.Context, *harness.Session, session.WorkCompaction) (int64, error) {
				runtime.Goexit()
				return 0, nil
			}
			w.append("s", events.WriterCompaction, events.CompactionRequested{Compaction: "k1",
				Reason: events.CompactManual})
		},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w := newWorld(t)
			h := w.connect()
			must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			check(t, h.Ready(w.ctx))
			worker := harness.Worker{TurnsMax: 1,
				Turn: func(ctx context.Context, t *harness.Turn) error { return t.Complete(ctx, "stop") }}
			do(w, &worker)
			if name != "Compact" {
				w.request("s", "t1", "x")
			}
			ctx, cancel := context.WithCancel(w.ctx)
			worked := make(chan error, 1)
			go func() { worked <- h.Work(ctx, worker) }()
			w.show("s")
			w.until("s", "the failure", func(st *session.State) bool {
				if name == "Compact" {
					return st.LastCompaction != nil && st.LastCompaction.Error != nil
				}
				l := st.LastTurn
				return l != nil && l.ID == "t1" && l.Outcome == session.OutcomeFailed &&
					strings.Contains(l.Error.Text, "ended its goroutine")
			})
			w.request("s", "t2", "x")
			w.show("s")
			w.until("s", "the next turn", func(st *session.State) bool {
				return st.LastTurn != nil && st.LastTurn.ID == "t2" && st.LastTurn.Outcome == session.OutcomeCompleted
			})
			cancel()
			check(t, <-worked)
		})
	}
}

// TestAHandlerThatPanics: a handler panics. The process ends, and shows where.
func TestAHandlerThatPanics(t *testing.T) {
	if os.Getenv("HF_PANICS") != "" {
		_ = harness.Handled(func() error { panic("in the handler") })
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestAHandlerThatPanics$")
	cmd.Env = append(os.Environ(), "HF_PANICS=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "in the handler") ||
		!strings.Contains(string(out), "TestAHandlerThatPanics.func") {
		t.Errorf("%v: %s", err, out)
	}
}
