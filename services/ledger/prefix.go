package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of requests about the past. Each folds a session from its first commit.
const (
	prefixesMax     = 2   // at the same time in one process, and one for each person
	prefixYieldEach = 256 // commits between two places where it yields to time-critical work
)

// statusPurged is the status of a refusal about commits that were purged.
const statusPurged = "purged"

// errEnough ends the reading of a log.
var errEnough = errors.New("enough was read")

// prefixes limits the requests that fold a whole session. A request without a place is refused at once: one that waited
// would hold one of the places that all requests of the service share.
type prefixes struct {
	mu      sync.Mutex
	running map[string]bool // by person
}

// begin takes a place for a person, and reports whether there was one. Call end when the request is done.
func (p *prefixes) begin(by string) (end func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[by] || len(p.running) >= prefixesMax {
		return nil, false
	}
	if p.running == nil {
		p.running = map[string]bool{}
	}
	p.running[by] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, by)
	}, true
}

// At returns a session as it was at a place of the log: the fold of its commits up to and with this one. The refusals:
// 404 for a place beyond the end of the log or before the session's first commit, 410 for a session whose first commits
// were purged. [bus.ErrLogBehind]: the log has lost commits of the session before this place.
func At(ctx context.Context, b *bus.Bus, r events.Ref, at uint64) (*session.State, error) {
	if err := within(ctx, b.Log, at); err != nil {
		return nil, err
	}
	return prefix(ctx, b, r, at)
}

// within refuses a place that the log does not have yet. It has to be called before the session is read: what is read
// later has all commits up to this place.
func within(ctx context.Context, commits *log.Log, at uint64) error {
	last, err := commits.LastSeq(ctx)
	if err != nil {
		return fmt.Errorf("end of the log: %w", err)
	}
	if at > last {
		return events.NotFound("commit", fmt.Sprintf("%d: the log ends with %d", at, last))
	}
	return nil
}

// prefix folds a session's commits up to a place that the log has.
func prefix(ctx context.Context, b *bus.Bus, r events.Ref, at uint64) (*session.State, error) {
	st, first := session.New(r), uint64(0)
	err := b.Log.Each(ctx, r, 0, func(c events.Commit) error {
		switch {
		case first == 0 && c.Guarded && c.Guard > 0:
			return purgedBefore(r, c.Seq)
		case first == 0:
			first = c.Seq
		}
		switch {
		case c.Guarded && c.Guard > st.Seq && c.Guard <= at:
			// also if this commit itself is behind the place
			return fmt.Errorf("%w: %s: commit %d is missing", bus.ErrLogBehind, r, c.Guard)
		case c.Seq > at:
			return errEnough
		}
		if st.Fold(&c); st.Commits%prefixYieldEach == 0 {
			b.Priority().Yield(ctx)
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return nil, err
	}
	switch {
	case first == 0:
		return nil, events.NotFound("session", r.String())
	case st.Seq == 0:
		return nil, events.NotFound("session", fmt.Sprintf("%s at %d: it begins with commit %d", r, at, first))
	}
	return st, nil
}

// purgedBefore refuses a place of a session whose commits before seq were purged.
func purgedBefore(r events.Ref, seq uint64) error {
	return events.Gone(fmt.Sprintf("the commits of %s before %d were purged", r, seq),
		events.Standing{Status: statusPurged, Seq: seq})
}

// at answers with the session's document as it was at a place of the log.
func (l *Ledger) at(ctx context.Context, q request.Get) (request.Document, error) {
	if err := within(ctx, l.bus.Log, q.At); err != nil {
		return request.Document{}, err
	}
	st, _, err := l.current(ctx, q.Ref, true)
	if err != nil {
		return request.Document{}, err
	}
	switch {
	case st.Seq == 0:
		return request.Document{}, events.NotFound("session", q.Ref.String())
	case isTombstone(st):
		// the document was removed, too
		return request.Document{}, purgedBefore(q.Ref, st.Closed.Seq)
	}
	if st.Seq > q.At {
		if st, err = l.earlier(ctx, q); err != nil {
			return request.Document{}, err
		}
	}
	doc, err := st.Encode()
	return request.Document{Document: doc}, err
}

// earlier folds a session up to a place that the log has, if there is a place for the request.
func (l *Ledger) earlier(ctx context.Context, q request.Get) (*session.State, error) {
	end, ok := l.prefixes.begin(q.By)
	if !ok {
		return nil, events.Unavailable("other requests about the past run: ask again")
	}
	defer end()
	st, err := prefix(ctx, l.bus, q.Ref, q.At)
	if err != nil && ctx.Err() != nil {
		err = events.Unavailable(fmt.Sprintf("%s is too long to be folded up to %d in time: "+
			"`holdfast show %s --at %d` has no such limit", q.Ref, q.At, q.Ref, q.At))
	}
	return st, err
}
