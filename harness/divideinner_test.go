package harness

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// together queues facts of two callers, which are sent as one commit when release is called.
func (x *inside) together() (writes []*write, errs chan error, release func()) {
	x.t.Helper()
	release, errs = Mute(x.s), make(chan error, 2)
	for i, id := range []string{"m1", "m2"} {
		go func() {
			errs <- x.s.Append(x.ctx, events.MessageAccepted{Message: id, Synthetic: true, Content: []byte(`"x"`)})
		}()
		natstest.Until(x.t, "it to wait", func() bool { return Waiting(x.s) == i+1 })
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return append(writes, x.s.queue...), errs, release
}

// TestACommitOfUnknownOutcomeIsNotDivided: the facts of a commit may be stored. They are not sent again, each as a
// commit of its own.
func TestACommitOfUnknownOutcomeIsNotDivided(t *testing.T) {
	x := newInside(t)
	writes, errs, release := x.together()
	x.h.bus.Close()
	release()
	for range writes {
		if err := <-errs; !errors.Is(err, ErrUnreachable) {
			t.Errorf("%v, want %v", err, ErrUnreachable)
		}
	}
	for _, o := range writes {
		if o.alone {
			t.Error("the commit was divided")
		}
	}
}

// TestACommitOfALostSessionIsNotDivided: the session is lost while the broker refuses a commit. All callers have their
// error, and nothing is under way.
func TestACommitOfALostSessionIsNotDivided(t *testing.T) {
	x := newInside(t)
	writes, errs, release := x.together()
	defer release()
	x.s.drop(ErrFenced)
	x.s.divide()
	for _, o := range writes {
		if err := <-errs; !errors.Is(err, ErrFenced) || o.alone {
			t.Errorf("%v; to be sent again: %t", err, o.alone)
		}
	}
}
