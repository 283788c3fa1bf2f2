package harness_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// fullFor is a session of a process whose log, or whose store of objects, is about to be full: fill has it refuse what
// is large, and room makes room again.
func fullFor(t *testing.T, objects bool) (w *world, s *harness.Session, fill, room func()) {
	t.Helper()
	server := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	b := natstest.Bus(t, server, func(c *bus.Config) {
		if objects {
			c.ObjectBytesMax = 3 * events.DataBytesMax
		} else {
			c.LogBytesMax = 128 << 10
		}
	})
	w = &world{t: t, server: server, bus: b, ctx: ctx, folded: map[string]*session.State{}}
	h := w.connect(pool)
	s = must[*harness.Session](t)(h.Open(ctx, "session", harness.OpenOptions{}))
	if objects {
		var name string
		return w, s, func() {
			name = must[string](t)(b.Objects.Put(ctx, ref("f"), make([]byte, 2*events.DataBytesMax)))
		}, func() { check(t, b.Objects.Delete(ctx, name)) }
	}
	f := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	return w, s, func() {
		for range 4 {
			check(t, f.Append(ctx, events.MessageAccepted{Message: b.NewID(),
				Content: []byte(`"` + strings.Repeat("x", 24<<10) + `"`)}))
		}
	}, func() { must[bool](t)(b.Log.RaiseLimit(ctx)) }
}

// TestLargeResultWithoutRoom: the broker has room for small facts, and none for the result of a step that ran. Other
// facts are stored meanwhile. Each call of the step gets the error of the broker: its outcome is not stored as unknown,
// and its function does not run again. Once the broker has room, the call returns the result.
func TestLargeResultWithoutRoom(t *testing.T) {
	for name, c := range map[string]struct {
		options []harness.StepOption
		objects bool
		bytes   int
	}{
		"a fact":                    {nil, false, 40 << 10},
		"a fact, idempotent":        {[]harness.StepOption{harness.Idempotent()}, false, 40 << 10},
		"larger than a fact can be": {nil, true, 2 * events.DataBytesMax},
		"an object, idempotent":     {[]harness.StepOption{harness.Idempotent()}, true, 2 * events.DataBytesMax},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, fill, room := fullFor(t, c.objects)
			turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
			runs, want := 0, strings.Repeat("r", c.bytes)
			step := func() (string, error) {
				return harness.Step(w.ctx, turn, "build", func(context.Context) (string, error) {
					runs++
					fill()
					return want, nil
				}, c.options...)
			}
			for range 3 {
				_, err := step()
				wantErr(t, err, harness.ErrFull)
				if !c.objects {
					natstest.Until(t, "the result to be kept once", func() bool { return harness.Kept(s) == 1 })
				}
				check(t, s.Append(w.ctx, events.MessageAccepted{Message: w.bus.NewID(), Synthetic: true,
					Content: []byte(`"small"`)}))
			}
			room()
			if out, err := step(); err != nil || out != want || runs != 1 {
				t.Errorf("%d bytes, %v; the function ran %d times", len(out), err, runs)
			}
			st := w.state("session")
			if len(st.Tools) > 0 || st.Ignored.Count != 0 {
				t.Errorf("open %v, ignored %+v", st.Tools, st.Ignored)
			}
		})
	}
}

// TestAFactIsRefusedForItselfOnly: facts of several callers wait, and are sent together. The log has space for the
// small ones and not for the large one. Only the caller of the large one gets an error, wherever it stands among them.
func TestAFactIsRefusedForItselfOnly(t *testing.T) {
	const small, large = 10, 40 << 10
	for name, sizes := range map[string][]int{
		"first": {large, small, small}, "between": {small, large, small}, "last": {small, small, large},
		"two": {large, small, large, small}, "alone": {large}, "none": {small, small, small},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			w, s, fill, _ := fullFor(t, false)
			fill()
			resume := harness.Mute(s)
			errs := make([]chan error, len(sizes))
			for i, n := range sizes {
				errs[i] = make(chan error, 1)
				go func() {
					errs[i] <- s.Append(w.ctx, events.MessageAccepted{Message: w.bus.NewID(), Synthetic: true,
						Content: []byte(`"` + strings.Repeat("x", n) + `"`)})
				}()
				natstest.Until(t, "it to wait", func() bool { return harness.Waiting(s) == i+1 })
			}
			had := w.state("session").Commits
			resume()
			stored := 0
			for i, n := range sizes {
				err := <-errs[i]
				if n == small {
					stored++
					check(t, err)
					continue
				}
				wantErr(t, err, harness.ErrFull)
			}
			if name == "none" {
				stored = 1
			}
			if st := w.state("session"); int(st.Commits-had) != stored {
				t.Errorf("%d commits, want %d", st.Commits-had, stored)
			}
		})
	}
}
