package harness

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// ofWork makes the session one that Work took in a pool, and is to release.
func (x *inside) ofWork() *workLoop {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.works = true
	return x.workLoopOf(func(context.Context, *Turn) error { return nil })
}

// TestASessionWithUnreadableWorkIsKept: what a session is asked to do cannot be read. That is an error, and the session
// is not released as one with nothing to do.
func TestASessionWithUnreadableWorkIsKept(t *testing.T) {
	x := newInside(t, inPool)
	x.appendUnnudged(events.WriterCompaction,
		events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"x"`), By: "ada"},
		events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	last := x.appendUnnudged(events.WriterLedger, events.SessionConfigured{By: "ada"})
	if err := errors.Join(x.s.catchUp(x.ctx), x.peer.Log.PurgeSession(x.ctx, x.s.ref, last)); err != nil {
		t.Fatal(err)
	}
	if more, err := x.ofWork().serveOnce(x.ctx, "s"); more || err == nil {
		t.Errorf("%t, %v", more, err)
	}
	if st := x.s.State(); x.s.isApart() || st.Seq != last {
		t.Errorf("it is at %d, want %d; gone: %t", st.Seq, last, x.s.isApart())
	}
}

// TestGoneAfterARelease: a session is gone if it was released, or taken from this process. It is not gone if the
// program has it meanwhile, or if its release is not stored. After a handler, Work looks at it again only if it has it.
func TestGoneAfterARelease(t *testing.T) {
	for name, c := range map[string]struct {
		before     func(x *inside) // nil: the program is given it while its release waits
		gone, more bool
		want       error
	}{
		"released":              {func(*inside) {}, true, false, nil},
		"taken meanwhile":       {func(x *inside) { x.s.drop(ErrFenced) }, true, false, nil},
		"the broker is away":    {func(x *inside) { x.h.bus.Close() }, false, false, ErrUnreachable},
		"the program has it":    {func(x *inside) { x.s.works = false }, false, true, nil},
		"given to it meanwhile": {nil, false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for what, do := range map[string]func(k *workLoop, x *inside) (bool, error){
				"gone": func(k *workLoop, x *inside) (bool, error) { return k.releaseTaken(x.ctx, x.s) },
				"more": func(k *workLoop, x *inside) (bool, error) { return k.afterHandler(x.ctx, x.s, nil) },
			} {
				x := newInside(t, inPool)
				k := x.ofWork()
				call := func() (bool, error) { return do(k, x) }
				if c.before == nil {
					now := call
					call = func() (bool, error) { return x.givenMeanwhile(now) }
				} else {
					c.before(x)
				}
				want := c.gone
				if what == "more" {
					want = c.more
				}
				if got, err := call(); got != want || !errors.Is(err, c.want) {
					t.Errorf("%s: %t, %v; want %t, %v", what, got, err, want, c.want)
				}
			}
		})
	}
}

// givenMeanwhile gives the session to the program when its release waits to be stored.
func (x *inside) givenMeanwhile(do func() (bool, error)) (result bool, err error) {
	release, done := Mute(x.s), make(chan struct{})
	go func() {
		defer close(done)
		result, err = do()
	}()
	natstest.Until(x.t, "the release to wait", func() bool { return Waiting(x.s) > 0 })
	x.s.mu.Lock()
	x.s.works = false
	x.s.mu.Unlock()
	release()
	<-done
	return result, err
}
