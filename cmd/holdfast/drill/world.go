package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// world has the present documents of the drill's sessions, as a board has them.
type world struct {
	d       *drill
	mu      sync.Mutex
	docs    map[string]*session.State // by act
	changed chan struct{}             // closed at the next change
}

func newWorld(d *drill) *world {
	return &world{d: d, docs: map[string]*session.State{}, changed: make(chan struct{})}
}

// watch follows the documents until ctx ends.
func (w *world) watch(ctx context.Context) error {
	var filters []string
	acts := map[string]string{}
	for act, name := range w.d.names {
		filters = append(filters, events.SessionKeys(name))
		acts[name] = act
	}
	slices.Sort(filters)
	return w.d.bus.KV.Watch(ctx, kv.State, filters, func(u kv.Update) error {
		if u.Ready || u.Deleted {
			return nil
		}
		s, err := session.Decode(u.Value)
		if err != nil {
			return fmt.Errorf("document %s: %w", u.Key, err)
		}
		w.apply(acts[s.Harness], s, u.At)
		return nil
	})
}

func (w *world) apply(act string, s *session.State, at time.Time) {
	w.mu.Lock()
	before := w.docs[act]
	w.docs[act] = s
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	if s.Closed != nil {
		return
	}
	// Messages are reported only in the compaction act.
	for _, line := range terminal.Changes(before, s, at) {
		aboutMessages := strings.HasPrefix(line, session.EntityMessage+" ")
		if !strings.HasPrefix(line, "– →") && (!aboutMessages || strings.HasPrefix(act, actCompactPre)) {
			w.report(act, whoHoldfast, line)
		}
	}
}

func (w *world) report(act, who, what string) {
	if w.d.OnMoment == nil {
		return
	}
	w.d.reporting.Lock()
	defer w.d.reporting.Unlock()
	w.d.OnMoment(Moment{AtMS: time.Since(w.d.began).Milliseconds(), Act: act, Who: who, What: what})
}

// until waits until a session meets the condition, and returns the duration. The error has the condition that is not
// met.
func (w *world) until(ctx context.Context, act, what string, limit time.Duration,
	ok func(*session.State) bool) (*session.State, time.Duration, error) {
	began := time.Now()
	late := time.NewTimer(limit)
	defer late.Stop()
	for {
		w.mu.Lock()
		s, changed := w.docs[act], w.changed
		w.mu.Unlock()
		if s != nil && ok(s) {
			return s, time.Since(began), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, time.Since(began), context.Cause(ctx)
		case <-late.C:
			return nil, time.Since(began), fmt.Errorf("%w: %s: %s", errLate, what, state(s))
		}
	}
}

// errLate is the error for a condition that was not met in time.
var errLate = errors.New("not in time")

// state returns a session's state in a few words.
func state(s *session.State) string {
	if s == nil {
		return "no document"
	}
	words := []string{string(s.Phase)}
	if open := Stranded(s, nil); len(open) > 0 {
		words = append(words, open...)
	}
	return strings.Join(words, ", ")
}

// ended reports whether an entity ended like this.
func ended(s *session.State, entity, id, outcome, reason string) bool {
	e, ok := s.Ended(entity, id)
	return ok && e.Outcome == outcome && (reason == "" || e.Reason == reason)
}
