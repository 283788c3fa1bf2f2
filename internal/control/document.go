package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// documents decides on the newest documents as they arrive.
type documents struct{ l *Loop }

// Takeover implements [consumer.Handler]. A walk finds what the previous active process kept in memory.
func (h documents) Takeover(ctx context.Context) error {
	if h.l.cfg.Takeover != nil {
		if err := h.l.cfg.Takeover(ctx); err != nil {
			return err
		}
	}
	h.l.active.Store(true)
	h.l.queue.signal()
	h.l.WalkSoon()
	return nil
}

// LeadershipLost implements [consumer.LeadershipObserver].
func (h documents) LeadershipLost() { h.l.active.Store(false) }

// Batch implements [consumer.Handler]. The documents of a batch are decided concurrently. The batch is done when each
// of them is decided or left to the slow walk, or after [batchPatience].
func (h documents) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	// nil: the clock cannot be read, so that no session rests
	var now *events.Clock
	if c, err := h.l.Now(ctx); err == nil {
		now = &c
	}
	return h.l.batch(ctx, len(ms), func(i int) func() {
		if ms[i].Deleted || h.l.done(ms[i].Subject, ms[i].Body, now) {
			return nil
		}
		return func() { h.l.document(ctx, ms[i].Subject, ms[i].Body, h.l.cfg.Decide) }
	})
}

// batch handles n messages concurrently. todo returns what to do about a message, nil for nothing. The batch does not
// wait longer than [batchPatience] for its slowest session. It returns n, or 0 and the error if ctx has ended.
func (l *Loop) batch(ctx context.Context, n int, todo func(i int) func()) (int, error) {
	var all sync.WaitGroup
	for i := range n {
		if do := todo(i); do != nil && !l.enter(ctx, &all, do) {
			break
		}
	}
	done := make(chan struct{})
	l.slow.Go(func() {
		all.Wait()
		close(done)
	})
	patience := time.NewTimer(batchPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	case <-ctx.Done():
		<-done
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return n, nil
}

// done reports whether a new document needs no check: it shows only the last commit of this process, and the session
// needs nothing else, or the session rests. It does not decode the document.
func (l *Loop) done(key string, doc []byte, now *events.Clock) bool {
	r, err := events.ParseSessionKey(key)
	if err != nil {
		// not a session
		return true
	}
	h, err := session.ReadHead(doc)
	if err != nil {
		// the check reports it
		return false
	}
	if l.lastOwn(r, h.Seq) {
		return true
	}
	if now == nil || h.Timer || !l.rests(r, &h, *now) {
		return false
	}
	if !l.outdated(r, h.Seq) {
		l.queue.drop(&check{ref: r, seq: h.Seq})
		l.succeeded(r)
	}
	return true
}

// lastOwn reports whether seq is the last commit of this process to a session, and the session needs nothing else.
func (l *Loop) lastOwn(r events.Ref, seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.own[r]
	if !ok || !own.rest || own.seq != seq {
		return false
	}
	delete(l.own, r)
	return true
}

// enter runs do on a goroutine when a slot is free. It returns false if ctx ended first.
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

// Each calls do for each number below n, concurrently, and returns when all calls have returned or ctx has ended. A
// service uses it to work on sessions that it selects. do must not call Each.
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
		// not a session
		return
	}
	l.try(ctx, r, func() error {
		l.reading <- struct{}{}
		s, err := session.Decode(doc)
		<-l.reading
		if err != nil {
			return err
		}
		// the ledger rebuilds what older rules have folded
		if l.outdated(s.Ref(), s.Seq) || s.Outdated() {
			return nil
		}
		_, _, err = l.SettleBy(ctx, s, decide)
		return err
	})
}

// Check decides on a session's newest document now. After [attemptsMax] failures the session is left to the slow walk.
func (l *Loop) Check(ctx context.Context, r events.Ref) {
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

// Load reads a session's document from the leader. It returns [bus.ErrNotFound] if there is no document. In place of a
// document that older rules have folded it folds the log.
func (l *Loop) Load(ctx context.Context, r events.Ref) (*session.State, error) {
	e, err := l.bus.KV.Load(ctx, kv.State, events.SessionKey(r))
	if err != nil {
		return nil, err
	}
	s, err := session.Decode(e.Value)
	if err != nil || !s.Outdated() {
		return s, err
	}
	return l.CatchUp(ctx, session.New(r))
}

// Try calls do up to three times, with the loop's pauses. Then the session is a suspect. Try reports whether do
// succeeded.
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
