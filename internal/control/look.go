package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// documents decides on newest documents as they come.
type documents struct{ l *Loop }

// Takeover implements [bus.Handler].
func (h documents) Takeover(ctx context.Context) error {
	if h.l.cfg.Takeover == nil {
		return nil
	}
	return h.l.cfg.Takeover(ctx)
}

// Batch implements [bus.Handler]. All of a batch is decided at once; it is done when each of it is, or has failed so
// often that it is left to the slow walk.
func (h documents) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	var all sync.WaitGroup
	for i := range ms {
		if ms[i].Deleted {
			continue
		}
		if !h.l.enter(ctx, &all, func() { h.l.document(ctx, ms[i].Subject, ms[i].Body, h.l.cfg.Decide) }) {
			break
		}
	}
	all.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return len(ms), nil
}

// alarms looks at the sessions whose timers have gone off.
type alarms struct{ l *Loop }

// Takeover implements [bus.Handler].
func (alarms) Takeover(context.Context) error { return nil }

// Batch implements [bus.Handler].
func (h alarms) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	var all sync.WaitGroup
	for i := range ms {
		_, r, err := h.l.bus.Cell().ParseDue(ms[i].Subject)
		if err != nil || ms[i].Deleted {
			continue // nobody's session
		}
		h.l.mu.Lock()
		delete(h.l.timers, r)
		h.l.mu.Unlock()
		if !h.l.enter(ctx, &all, func() { h.l.Look(ctx, r) }) {
			break
		}
	}
	all.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return len(ms), nil
}

// enter does something on a goroutine of its own once there is a slot; false when ctx ended first.
func (l *Loop) enter(ctx context.Context, all *sync.WaitGroup, do func()) bool {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	all.Go(func() {
		defer func() { <-l.slots }()
		do()
	})
	return true
}

// Each calls do for each number below n, several at once, and returns when all are done or ctx has ended. It is how a
// service works on many sessions of its own choice. do must not call it again.
func (l *Loop) Each(ctx context.Context, n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		if !l.enter(ctx, &all, func() { do(i) }) {
			break
		}
	}
	all.Wait()
}

// document decides on one document.
func (l *Loop) document(ctx context.Context, key string, doc []byte, decide Decide) {
	r, err := events.ParseSessionKey(key)
	if err != nil {
		return // nobody's session
	}
	l.try(ctx, r, func() error {
		s, err := session.Decode(doc)
		if err != nil {
			return err
		}
		if l.outdated(s) {
			return nil
		}
		_, _, err = l.SettleBy(ctx, s, decide)
		return err
	})
}

// Look decides on a session's newest document now. What fails is tried again, and at last left to the slow walk.
func (l *Loop) Look(ctx context.Context, r events.Ref) {
	l.try(ctx, r, func() error {
		s, err := l.Load(ctx, r)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		_, _, err = l.Settle(ctx, s)
		return err
	})
}

// lookSoon is Look on a goroutine of its own.
func (l *Loop) lookSoon(ctx context.Context, all *sync.WaitGroup, r events.Ref) {
	l.enter(ctx, all, func() { l.Look(ctx, r) })
}

// Load reads a session's document from the leader; [bus.ErrNotFound] when there is none.
func (l *Loop) Load(ctx context.Context, r events.Ref) (*session.State, error) {
	e, err := l.bus.Load(ctx, bus.State, events.SessionKey(r))
	if err != nil {
		return nil, err
	}
	return session.Decode(e.Value)
}

// Try does something about a session under the loop's rule for failures: three attempts, then it is a suspect. It says
// whether it succeeded.
func (l *Loop) Try(ctx context.Context, r events.Ref, do func() error) bool { return l.try(ctx, r, do) }

func (l *Loop) try(ctx context.Context, r events.Ref, do func() error) bool {
	for pause := attemptPauseMS * time.Millisecond; ; pause *= 2 {
		err := do()
		if err == nil {
			l.succeeded(r)
			return true
		}
		if l.failed(ctx, r, err) || !wait(ctx, pause) {
			return false
		}
	}
}
