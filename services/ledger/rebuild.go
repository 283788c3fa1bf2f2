package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a rebuild.
const (
	rebuildMax        = 10 * time.Minute // for one request: it reads the whole log
	rebuildsAtOnceMax = 16               // sessions
	failedMax         = 100              // that are named in the reply; the others are in the service's log
)

type rebuildReply struct {
	Sessions int      `json:"sessions"`
	Changed  int      `json:"changed"` // documents that were not what the log says
	Removed  int      `json:"removed"` // documents without a log
	Views    int      `json:"views"`   // entries written or removed
	Failed   []string `json:"failed,omitempty"`
	TookMS   int64    `json:"took_ms"`
}

// rebuild makes documents and views from the log alone, while everything goes on: each document is stored against the
// revision it replaces, so a fold that is faster wins and is right as well. It feeds nothing.
func (l *Ledger) rebuild(ctx context.Context, body []byte) ([]byte, error) {
	var only events.Ref
	if err := events.ReadRequest(body, &only); err != nil {
		return nil, err
	}
	start := time.Now()
	refs, err := l.inLog(ctx, only)
	if err != nil {
		return nil, err
	}
	reply := rebuildReply{Sessions: len(refs)}
	if err := l.removeStrays(ctx, only, refs, &reply); err != nil {
		return nil, err
	}
	if err := l.rebuildAll(ctx, refs, &reply); err != nil {
		return nil, err
	}
	reply.TookMS = time.Since(start).Milliseconds()
	return json.Marshal(reply)
}

// rebuildAll rebuilds sessions several at once. One that cannot be rebuilt is told and does not stop the others.
func (l *Ledger) rebuildAll(ctx context.Context, refs map[events.Ref]bool, reply *rebuildReply) error {
	var mu sync.Mutex
	return each(ctx, rebuildsAtOnceMax, slices.Collect(maps.Keys(refs)), func(ctx context.Context, r events.Ref) error {
		if ctx.Err() != nil {
			return fmt.Errorf("ledger: rebuild: not finished: %w", ctx.Err())
		}
		changed, views, err := l.rebuildSession(ctx, r)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			l.log.Error().Str("session", r.String()).Err(err).Msg("rebuild")
			if len(reply.Failed) < failedMax {
				reply.Failed = append(reply.Failed, fmt.Sprintf("%s: %v", r, err))
			}
			return nil
		case changed:
			reply.Changed++
		}
		reply.Views += views
		return nil
	})
}

// inLog is every session that the log knows, or those asked for.
func (l *Ledger) inLog(ctx context.Context, only events.Ref) (map[events.Ref]bool, error) {
	refs := map[events.Ref]bool{}
	if only.Harness != "" && only.Session != "" {
		if err := only.Validate(); err != nil {
			return nil, events.BadRequest(err)
		}
		refs[only] = true
		return refs, nil
	}
	err := l.bus.Scan(ctx, 0, func(c events.Commit) error {
		if c.Ref.Validate() == nil && (only.Harness == "" || only.Harness == c.Ref.Harness) {
			refs[c.Ref] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ledger: rebuild: %w", err)
	}
	return refs, nil
}

// removeStrays removes documents, with their views, of sessions that the log does not know.
func (l *Ledger) removeStrays(ctx context.Context, only events.Ref, refs map[events.Ref]bool, reply *rebuildReply) error {
	if only.Session != "" {
		return nil
	}
	var strays []bus.Entry
	err := l.bus.List(ctx, bus.State, events.SessionKeys(only.Harness), func(e bus.Entry) error {
		r, err := events.ParseSessionKey(e.Key)
		if err == nil && !refs[r] {
			strays = append(strays, e)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ledger: rebuild: %w", err)
	}
	for _, e := range strays {
		if err := l.bus.Delete(ctx, bus.State, e.Key, e.Rev); err != nil && !errors.Is(err, bus.ErrLostRace) {
			return fmt.Errorf("ledger: rebuild: %w", err)
		}
		reply.Removed++
	}
	return nil
}

// rebuildSession folds one session's log and makes its document and views what it says. It begins again when somebody
// stored a document meanwhile.
func (l *Ledger) rebuildSession(ctx context.Context, r events.Ref) (changed bool, views int, err error) {
	for range racesMax {
		changed, views, err = l.rebuildOnce(ctx, r)
		if !errors.Is(err, bus.ErrLostRace) {
			return changed, views, err
		}
	}
	return false, 0, err
}

func (l *Ledger) rebuildOnce(ctx context.Context, r events.Ref) (bool, int, error) {
	e, err := l.bus.Load(ctx, bus.State, events.SessionKey(r)) // before the log is read, so that what is newer wins
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return false, 0, err
	}
	commits, err := l.bus.Read(ctx, r, 0)
	if err != nil {
		return false, 0, err
	}
	st := session.New(r)
	for i := range commits {
		st.Fold(&commits[i])
	}
	if st.Seq == 0 || st.Closed != nil && st.Closed.Purged {
		return false, 0, nil // only a tombstone is left: its document went before, or goes with the retention
	}
	doc, err := st.Encode()
	if err != nil {
		return false, 0, err
	}
	rev, changed := e.Rev, !bytes.Equal(doc, e.Value)
	if changed {
		if rev, err = l.bus.Store(ctx, bus.State, events.SessionKey(r), doc, e.Rev); err != nil {
			return false, 0, err
		}
	}
	views, err := l.rebuildViews(ctx, st, rev, commits)
	return changed, views, err
}

// rebuildViews writes every entry that differs and removes those that should not be. What was settled so long ago that
// the session no longer knows it is left to expire.
func (l *Ledger) rebuildViews(ctx context.Context, st *session.State, rev uint64, commits []events.Commit) (int, error) {
	now, err := l.bus.Now(ctx)
	if err != nil {
		return 0, err
	}
	src := l.fold.commitSource(ctx, commits)
	want, err := blockerViews(st, st.BlockerPrompts(time.Time{}), l.cfg.ClosedFor, now, src)
	if err != nil {
		return 0, err
	}
	work, err := workView(st, src)
	if err != nil {
		return 0, err
	}
	have, err := l.presentViews(ctx, st)
	if err != nil {
		return 0, err
	}
	var writes []bus.View
	for _, v := range append(want, work) {
		if !bytes.Equal(have[v.Key], v.Value) && !sameWork(have[v.Key], v.Value) {
			writes = append(writes, v)
		}
		delete(have, v.Key)
	}
	for key, entry := range have {
		if settled(st, entry) {
			continue
		}
		writes = append(writes, bus.View{Key: key})
	}
	_, err = l.bus.StoreDocs(ctx, []bus.Doc{{Key: events.SessionKey(st.Ref()), Rev: rev, Views: writes}})
	return len(writes), err
}

// sameWork says whether two entries of the harness's view ask for the same: the place in the log alone is no difference, so
// the ledger does not write an entry again for it.
func sameWork(a, b []byte) bool {
	var x, y session.Work
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x.Epoch == 0 {
		return false // other entries have no epoch
	}
	x.Seq = y.Seq
	a, errA := json.Marshal(x)
	b, errB := json.Marshal(y)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// settled says whether an entry is of a prompt that is over.
func settled(st *session.State, entry []byte) bool {
	var b session.Blocker
	if err := json.Unmarshal(entry, &b); err != nil {
		return false
	}
	return b.Status != "" && b.Status != session.Awaiting && st.Prompts[b.Prompt] == nil
}

// presentViews are the entries of a session's views as they are stored.
func (l *Ledger) presentViews(ctx context.Context, st *session.State) (map[string][]byte, error) {
	have := map[string][]byte{}
	keep := func(e bus.Entry) error { have[e.Key] = e.Value; return nil }
	for _, filter := range []string{events.BlockerSessionKeys(st.Harness, st.Root, st.Session), events.WorkKey(st.Ref())} {
		if err := l.bus.List(ctx, bus.State, filter, keep); err != nil {
			return nil, fmt.Errorf("ledger: views of %s: %w", st.Ref(), err)
		}
	}
	return have, nil
}
