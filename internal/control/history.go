package control

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	// HistoryMax is how many ids a service keeps of all sessions, about 16 bytes of each.
	HistoryMax = 1 << 18
	hadSession = 256 // what a session counts for beside its ids
)

// History keeps which ids of one kind sessions have had, those of prompts or of messages: of sessions that were asked
// about an id that they do not list. Otherwise a service would read the whole session for each new id.
type History struct {
	id func(events.Fact) string // that a fact brings; "": none
	// each calls fn with the commits of a session from a place of its log on, as [log.Log.Each] does.
	each func(ctx context.Context, r events.Ref, from uint64, fn func(events.Commit) error) error
	max  int // ids of all sessions
	seed maphash.Seed

	mu   sync.Mutex
	of   map[events.Ref]*sessionHistory
	old  []events.Ref // of the keys of of, the one that was asked about first
	kept int          // ids of all of them
}

// sessionHistory is what one session has had.
type sessionHistory struct {
	last log.Last            // what was read up to
	ids  map[uint64]struct{} // hashes of ids: two ids with the same hash cost a read of the session, and nothing else
}

// NewHistory returns a table that keeps at most most ids. each calls fn with the commits of a session from a place of
// its log on. id returns the id that a fact brings, "" for a fact that brings none.
func NewHistory(each func(context.Context, events.Ref, uint64, func(events.Commit) error) error,
	id func(events.Fact) string, most int) *History {
	return &History{each: each, id: id, max: most, seed: maphash.MakeSeed(), of: map[events.Ref]*sessionHistory{}}
}

// Never reports whether no commit of the session has a fact that brings this id. It reads the log from the last commit
// that was read. A log that has another commit in that place, because it was purged or restored, is read whole.
func (a *History) Never(ctx context.Context, r events.Ref, id string) (bool, error) {
	in := a.take(r)
	same, err := a.read(ctx, r, in)
	if err == nil && !same {
		in = &sessionHistory{}
		_, err = a.read(ctx, r, in)
	}
	if err != nil {
		return false, err
	}
	_, had := in.ids[maphash.String(a.seed, id)]
	a.keep(r, in)
	return !had, nil
}

// read adds what the log has from the last commit that was read. It reports false if the log has another commit in the
// place of that one.
func (a *History) read(ctx context.Context, r events.Ref, in *sessionHistory) (same bool, err error) {
	last := in.last
	same = last.Seq == 0
	if in.ids == nil {
		in.ids = map[uint64]struct{}{}
	}
	err = a.each(ctx, r, last.Seq, func(c events.Commit) error {
		if !same {
			if log.LastOf(&c) != last {
				return errNotSame
			}
			same = true
		}
		for i := range c.Events {
			if id := a.id(c.Events[i].Fact); id != "" {
				in.ids[maphash.String(a.seed, id)] = struct{}{}
			}
		}
		in.last = log.LastOf(&c)
		return nil
	})
	if errors.Is(err, errNotSame) {
		return false, nil
	}
	return same, err
}

// take removes what is kept of a session, so that no two requests add to it. A request beside another one of the same
// session reads the session whole.
func (a *History) take(r events.Ref) *sessionHistory {
	a.mu.Lock()
	defer a.mu.Unlock()
	in := a.of[r]
	if in == nil {
		return &sessionHistory{}
	}
	a.drop(r)
	return in
}

// keep keeps what a session has had, and drops others that were asked about longer ago, for its room. A session with
// more ids than there is room for is not kept.
func (a *History) keep(r events.Ref, in *sessionHistory) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[r] != nil {
		a.drop(r)
	}
	if in.room() > a.max || in.last.Seq == 0 {
		return
	}
	a.of[r], a.old, a.kept = in, append(a.old, r), a.kept+in.room()
	for a.kept > a.max {
		a.drop(a.old[0])
	}
}

// drop drops what is kept of a session. The table is locked.
func (a *History) drop(r events.Ref) {
	at := slices.Index(a.old, r)
	a.old, a.kept = slices.Delete(a.old, at, at+1), a.kept-a.of[r].room()
	delete(a.of, r)
}

// room returns how many ids a session counts for: a session without ids takes memory, too.
func (in *sessionHistory) room() int { return len(in.ids) + hadSession }

// errNotSame says that the log has another commit in the place of the last one that was read.
var errNotSame = errors.New("another log")
