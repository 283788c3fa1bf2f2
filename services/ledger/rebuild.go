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
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a rebuild.
const (
	rebuildsAtOnceMax = 16  // sessions
	failedMax         = 200 // that are named in the reply; the others are in the service's log
)

// rebuild makes documents and views from the log alone, while everything runs: each document is stored against the
// revision it replaces, so a faster fold wins and is correct as well. It feeds nothing. A document that is ahead of a
// log with losses is the last copy: its note keeps it if the log can rebuild the session, and the document is kept if
// the log cannot, unless the request accepts the loss.
func (l *Ledger) rebuild(ctx context.Context, q request.Rebuild) (request.Rebuilt, error) {
	start := time.Now()
	if (q.Limit > 0 || q.After != "") && q.Session == "" {
		reply, err := l.rebuildPart(ctx, q)
		reply.TookMS = time.Since(start).Milliseconds()
		return reply, err
	}
	refs, err := l.inLog(ctx, events.Ref{Harness: q.Harness, Session: q.Session})
	if err != nil {
		return request.Rebuilt{}, err
	}
	reply := request.Rebuilt{Sessions: len(refs)}
	if err := l.removeStrays(ctx, q, refs, &reply); err != nil {
		return request.Rebuilt{}, err
	}
	if err := l.rebuildAll(ctx, refs, q.AcceptLoss, &reply); err != nil {
		return request.Rebuilt{}, err
	}
	reply.TookMS = time.Since(start).Milliseconds()
	return reply, nil
}

// rebuildAll rebuilds several sessions at once. One that fails is reported and does not stop the others.
func (l *Ledger) rebuildAll(ctx context.Context, refs map[events.Ref]bool, accept bool, reply *request.Rebuilt) error {
	var mu sync.Mutex
	return each(ctx, rebuildsAtOnceMax, slices.Collect(maps.Keys(refs)), func(ctx context.Context, r events.Ref) error {
		if ctx.Err() != nil {
			return fmt.Errorf("rebuild: not finished: %w", ctx.Err())
		}
		changed, views, err := l.rebuildWith(ctx, r, accept)
		if err == nil && accept {
			err = l.forgetLoss(ctx, r)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, errLost):
			l.log.Error().Str("session", r.String()).AnErr("err", err).Msg("rebuild: the document stands")
			reply.Lost++
			return nil
		case err != nil:
			l.reportFailed(reply, r, err)
			return nil
		case changed:
			reply.Changed++
		}
		reply.Views += views
		return nil
	})
}

// reportFailed reports a session that was not rebuilt.
func (l *Ledger) reportFailed(reply *request.Rebuilt, r events.Ref, err error) {
	l.log.Error().Str("session", r.String()).AnErr("err", err).Msg("rebuild")
	if len(reply.Failed) < failedMax {
		reply.Failed = append(reply.Failed, fmt.Sprintf("%s: %v", r, err))
	}
}

// inLog returns every session of the log, or the requested ones.
func (l *Ledger) inLog(ctx context.Context, only events.Ref) (map[events.Ref]bool, error) {
	refs := map[events.Ref]bool{}
	if only.Harness != "" && only.Session != "" {
		refs[only] = true
		return refs, nil
	}
	err := l.bus.Log.Scan(ctx, 0, func(c events.Commit) error {
		if isAskedFor(c.Ref, only.Harness) {
			refs[c.Ref] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rebuild: %w", err)
	}
	return refs, nil
}

// isAskedFor reports whether a commit in the log is that of a session to rebuild; harness: of all, if it is empty.
func isAskedFor(r events.Ref, harness string) bool {
	return r.Validate() == nil && (harness == "" || harness == r.Harness)
}

// removeStrays removes documents, with their views, of sessions without a log. A document that has folded commits is
// kept unless the request accepts the loss.
func (l *Ledger) removeStrays(ctx context.Context, req request.Rebuild, refs map[events.Ref]bool,
	reply *request.Rebuilt) error {
	if req.Session != "" {
		return nil
	}
	var strays []events.Ref
	err := l.bus.KV.List(ctx, kv.State, events.SessionKeys(req.Harness), func(e kv.Entry) error {
		r, err := events.ParseSessionKey(e.Key)
		if err == nil && !refs[r] {
			strays = append(strays, r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return l.removeEach(ctx, strays, req.AcceptLoss, reply)
}

// removeEach removes the documents of sessions without a log.
func (l *Ledger) removeEach(ctx context.Context, strays []events.Ref, accept bool, reply *request.Rebuilt) error {
	for _, r := range strays {
		changed, views, err := l.rebuildWith(ctx, r, accept)
		switch {
		case errors.Is(err, errLost):
			reply.Lost++
			continue
		case errors.Is(err, session.ErrNewerLayout):
			l.reportFailed(reply, r, err)
			continue
		case err != nil:
			return fmt.Errorf("rebuild: %w", err)
		case changed:
			reply.Removed++
		}
		reply.Views += views
		if accept {
			if err := l.forgetLoss(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebuildSession rebuilds one session's document and views from the log. It fails with [errLost], and keeps the
// document, if the document is ahead of the log and the log cannot rebuild it.
func (l *Ledger) rebuildSession(ctx context.Context, r events.Ref) (changed bool, views int, err error) {
	return l.rebuildWith(ctx, r, false)
}

// rebuildWith starts again if another process stored a document meanwhile. accept: also rebuild a document that is
// ahead of the log.
func (l *Ledger) rebuildWith(ctx context.Context, r events.Ref, accept bool) (changed bool, views int, err error) {
	for range racesMax {
		changed, views, err = l.rebuildOnce(ctx, r, accept)
		if !errors.Is(err, bus.ErrLostRace) {
			return changed, views, err
		}
	}
	return false, 0, err
}

func (l *Ledger) rebuildOnce(ctx context.Context, r events.Ref, accept bool) (bool, int, error) {
	// before the log is read, so that newer writes win
	e, err := l.bus.KV.Load(ctx, kv.State, events.SessionKey(r))
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return false, 0, err
	}
	// it may know commits that the log has lost, and this build cannot read which
	if _, err := session.Decode(e.Value); !accept && errors.Is(err, session.ErrNewerLayout) {
		return false, 0, fmt.Errorf("its document stands: %w", err)
	}
	g, err := l.logged(ctx, r)
	if err != nil {
		return false, 0, err
	}
	doc := storedDocument(r, e)
	x := g.lost(doc)
	switch {
	case x != nil && !accept && !replaceable(e, x):
		return false, 0, x
	case x != nil && !accept:
		if err := l.keepDocument(ctx, e, x); err != nil {
			return false, 0, err
		}
	case g.state.Seq == 0 || x != nil && isTombstone(g.state):
		return l.removeDocument(ctx, r, e, doc)
	case isTombstone(g.state):
		// its document went before, or goes with retention
		return false, 0, nil
	}
	return l.storeFolded(ctx, e, g)
}

// storeFolded stores the fold of a log in place of the document that was read before.
func (l *Ledger) storeFolded(ctx context.Context, e kv.Entry, g logged) (bool, int, error) {
	doc, err := g.state.Encode()
	if err != nil {
		return false, 0, err
	}
	rev, changed := e.Rev, !bytes.Equal(doc, e.Value)
	if changed {
		if rev, err = l.bus.KV.Store(ctx, kv.State, events.SessionKey(g.state.Ref()), doc, e.Rev); err != nil {
			return false, 0, err
		}
		// it belongs to the revision before
		l.fold.cache.drop(g.state.Ref())
	}
	views, err := l.rebuildViews(ctx, g.state, rev, g.commits)
	return changed, views, err
}

// removeDocument removes a document without a log, and the entries of its views.
func (l *Ledger) removeDocument(ctx context.Context, r events.Ref, e kv.Entry, doc *session.State) (bool, int, error) {
	if e.Rev == 0 {
		return false, 0, nil
	}
	if err := l.bus.KV.Delete(ctx, kv.State, events.SessionKey(r), e.Rev); err != nil {
		return false, 0, err
	}
	if doc == nil {
		// compareViews finds entries of views without a document
		return true, 0, nil
	}
	have, err := l.presentViews(ctx, doc)
	if err != nil {
		return true, 0, err
	}
	n := 0
	for _, v := range have {
		if err := l.bus.KV.Delete(ctx, kv.State, v.Key, v.Rev); err != nil && !errors.Is(err, bus.ErrLostRace) {
			return true, n, err
		}
		n++
	}
	return true, n, nil
}

// rebuildViews writes every entry that differs and removes superfluous ones. An old settled entry that the session no
// longer lists is left to expire.
func (l *Ledger) rebuildViews(ctx context.Context, st *session.State, rev uint64, commits []events.Commit) (int,
	error) {
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return 0, err
	}
	src := l.fold.commitSource(ctx, commits)
	want, err := blockerViews(st, st.BlockerPrompts(time.Time{}), l.cfg.SettledKeptFor, now, src)
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
	var writes []kv.View
	for _, v := range append(want, work) {
		if !bytes.Equal(have[v.Key].Value, v.Value) && !sameWork(have[v.Key].Value, v.Value) {
			writes = append(writes, v)
		}
		delete(have, v.Key)
	}
	for key, entry := range have {
		if l.expires(st, entry.Value, now) {
			continue
		}
		writes = append(writes, kv.View{Key: key})
	}
	_, err = l.bus.KV.StoreDocs(ctx, []kv.Doc{{Key: events.SessionKey(st.Ref()), Rev: rev, Views: writes}})
	return len(writes), err
}

// sameWork reports whether two entries of the harness's view request the same: entries may differ in the place in the
// log alone, which the ledger does not write again.
func sameWork(a, b []byte) bool {
	var x, y session.Work
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x.Epoch == 0 {
		// other entries have no epoch
		return false
	}
	x.Seq = y.Seq
	a, errA := json.Marshal(x)
	b, errB := json.Marshal(y)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// expires reports whether an entry of the people's view that the session no longer lists may stay until its TTL ends:
// it was settled, more recently than settled entries are shown.
func (l *Ledger) expires(st *session.State, entry []byte, now time.Time) bool {
	var b session.Blocker
	if err := json.Unmarshal(entry, &b); err != nil || b.Status == "" || b.Awaits() ||
		st.Prompts[b.Prompt] != nil {
		return false
	}
	_, gone := blockerTTL(&b, l.cfg.SettledKeptFor+goneSlack, now)
	return !b.ClosedAt.IsZero() && !gone
}

// goneSlack is how long the broker may take to remove an entry after its TTL.
const goneSlack = time.Minute

// presentViews returns the stored entries of a session's views.
func (l *Ledger) presentViews(ctx context.Context, st *session.State) (map[string]kv.Entry, error) {
	have := map[string]kv.Entry{}
	keep := func(e kv.Entry) error { have[e.Key] = e; return nil }
	for _, filter := range []string{events.BlockerSessionKeys(st.Harness, st.Root, st.Session),
		events.WorkKey(st.Ref())} {
		if err := l.bus.KV.List(ctx, kv.State, filter, keep); err != nil {
			return nil, fmt.Errorf("views of %s: %w", st.Ref(), err)
		}
	}
	return have, nil
}
