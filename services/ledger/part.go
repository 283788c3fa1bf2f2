package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// Limits of a part of a rebuild.
const (
	partReadMax  = 50_000   // commits of the log that one part reads
	partBytesMax = 64 << 20 // of these commits, or of the documents; the last of them may be beyond it
)

// A rebuild in parts goes over the log, and then over the documents. Its place is all that it remembers, and the asker
// has it: each part may be done by another ledger, and done again. The beginning of a place says which of both it is.
const (
	placeInLog       = "log."
	placeInDocuments = "documents."
)

// errPartFull ends the reading of a part.
var errPartFull = errors.New("the part is full")

// rebuildPart does one part of a rebuild.
func (l *Ledger) rebuildPart(ctx context.Context, q request.Rebuild) (request.Rebuilt, error) {
	phase, at, err := parsePlace(q.After)
	if err != nil {
		return request.Rebuilt{}, err
	}
	if q.Limit == 0 {
		q.Limit = request.RebuildMax
	}
	if phase == placeInLog {
		return l.rebuildLogged(ctx, q, at)
	}
	return l.removeUnlogged(ctx, q, at)
}

// parsePlace returns the place of a rebuild behind which the next part begins.
func parsePlace(after string) (phase string, at uint64, err error) {
	if after == "" {
		return placeInLog, 0, nil
	}
	for _, phase := range []string{placeInLog, placeInDocuments} {
		number, ok := strings.CutPrefix(after, phase)
		if !ok {
			continue
		}
		if at, err := strconv.ParseUint(number, 10, 64); err == nil {
			return phase, at, nil
		}
	}
	return "", 0, events.BadRequest(&events.FieldError{Field: "after",
		Err: fmt.Errorf("%w: %q: want the next of the part before", events.ErrMalformed, after)})
}

// checkPlace refuses a place behind the end: it is of another cell, or of a log that has lost its end since.
func checkPlace(phase string, at, end uint64) error {
	if at <= end {
		return nil
	}
	return events.BadRequest(&events.FieldError{Field: "after", Err: fmt.Errorf("%w: %s is beyond the end, %d: begin "+
		"again without after", events.ErrMalformed, place(phase, at), end)})
}

func place(phase string, at uint64) string { return phase + strconv.FormatUint(at, 10) }

// part is what one part of a rebuild reads, while entries are added in the order of their places.
type part struct {
	limit  int                 // sessions
	end    uint64              // of the log, or of the documents, when the part began
	met    map[events.Ref]bool // the sessions
	read   int                 // entries
	bytes  int                 // of them
	last   uint64              // the place of the last one
	beyond bool                // the next one is newer than the part
}

// add adds an entry of a session, if it is wanted. errPartFull: there is no room for it, or it is newer than the part.
func (p *part) add(r events.Ref, wanted bool, at uint64, size int) error {
	p.beyond = at > p.end
	if p.beyond || p.read == partReadMax || p.bytes > partBytesMax || wanted && !p.met[r] && len(p.met) == p.limit {
		return errPartFull
	}
	if wanted {
		p.met[r] = true
	}
	p.read, p.bytes, p.last = p.read+1, p.bytes+size, at
	return nil
}

// more reports whether there is another part, from the error that has ended the reading. Another error is returned.
func (p *part) more(err error) (bool, error) {
	if err != nil && !errors.Is(err, errPartFull) {
		return false, fmt.Errorf("rebuild: %w", err)
	}
	return err != nil && !p.beyond, nil
}

// rebuildLogged rebuilds the sessions whose last commit is in the next part of the log. A session with later commits
// belongs to a later part. The last part ends where the log ended when it began: it has all sessions that it meets,
// also those that are written meanwhile. So a rebuild ends, although sessions are written without a pause, if parts
// read faster than the cell writes.
func (l *Ledger) rebuildLogged(ctx context.Context, q request.Rebuild, after uint64) (request.Rebuilt, error) {
	end, err := l.bus.Log.LastSeq(ctx)
	if err != nil {
		return request.Rebuilt{}, fmt.Errorf("rebuild: %w", err)
	}
	if err := checkPlace(placeInLog, after, end); err != nil {
		return request.Rebuilt{}, err
	}
	p := part{limit: q.Limit, end: end, met: map[events.Ref]bool{}}
	more, err := p.more(l.bus.Log.Scan(ctx, after+1, func(c events.Commit) error {
		return p.add(c.Ref, isAskedFor(c.Ref, q.Harness), c.Seq, sizeOf(&c))
	}))
	if err != nil {
		return request.Rebuilt{}, err
	}
	refs, reply := p.met, request.Rebuilt{Next: place(placeInDocuments, 0)}
	if more {
		if refs, err = l.endUpTo(ctx, p.met, p.last); err != nil {
			return request.Rebuilt{}, err
		}
		reply.Next, reply.Percent = place(placeInLog, p.last), int(p.last*100/end)
	}
	reply.Sessions = len(refs)
	err = l.rebuildAll(ctx, refs, q.AcceptLoss, &reply)
	return reply, err
}

// endUpTo returns the sessions whose last commit in the log is at this place or before.
func (l *Ledger) endUpTo(ctx context.Context, met map[events.Ref]bool, last uint64) (map[events.Ref]bool, error) {
	ended := map[events.Ref]bool{}
	var mu sync.Mutex
	err := each(ctx, headsAtOnceMax, slices.Collect(maps.Keys(met)), func(ctx context.Context, r events.Ref) error {
		head, err := l.bus.Log.Head(ctx, r)
		if err != nil {
			return fmt.Errorf("rebuild: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if head <= last {
			ended[r] = true
		}
		return nil
	})
	return ended, err
}

// removeUnlogged removes, of the next documents in the order of their revisions, those of sessions without a log. A
// document that changes meanwhile has a higher revision, so a later part reads it. One that is newer than the last part
// was just folded from its log.
func (l *Ledger) removeUnlogged(ctx context.Context, q request.Rebuild, after uint64) (request.Rebuilt, error) {
	end, err := l.bus.KV.Mark(ctx, kv.State)
	if err != nil {
		return request.Rebuilt{}, fmt.Errorf("rebuild: %w", err)
	}
	if err := checkPlace(placeInDocuments, after, end.Rev); err != nil {
		return request.Rebuilt{}, err
	}
	p := part{limit: q.Limit, end: end.Rev, met: map[events.Ref]bool{}}
	more, err := p.more(l.bus.KV.ListAfter(ctx, kv.State, events.SessionKeys(q.Harness), after,
		func(e kv.Entry) error {
			r, err := events.ParseSessionKey(e.Key)
			return p.add(r, err == nil, e.Rev, len(e.Value))
		}))
	if err != nil {
		return request.Rebuilt{}, err
	}
	// no commit is at place 0
	strays, err := l.endUpTo(ctx, p.met, 0)
	if err != nil {
		return request.Rebuilt{}, err
	}
	reply := request.Rebuilt{Percent: 100}
	if more {
		reply.Next, reply.Percent = place(placeInDocuments, p.last), int(p.last*100/end.Rev)
	}
	err = l.removeEach(ctx, slices.Collect(maps.Keys(strays)), q.AcceptLoss, &reply)
	return reply, err
}
