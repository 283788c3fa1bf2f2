package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of the search for wrong documents.
const (
	inspectAgainMin = time.Minute           // least time between two surveys, however often the active process changes
	walkPause       = 50 * time.Millisecond // between two sessions of the slow walk
	walkCommitsMax  = 20_000                // the slow walk skips longer sessions, which a rebuild folds
	namedMax        = 5                     // sessions that a log line names
	documentCopyMax = 768 << 10             // bytes of a document that a note of a loss holds
)

// survey compares documents with the log at the start and after each take-over. It rebuilds wrong ones and reports what
// the log has lost.
func (l *Ledger) survey(ctx context.Context) error {
	return onTakeOver(ctx, l.fold.surveyDue, l.surveyOnce)
}

// onTakeOver calls survey once, then for each value of due until ctx ends, at most once in inspectAgainMin. A value
// that arrives meanwhile waits in due, which holds one.
func onTakeOver(ctx context.Context, due <-chan struct{}, survey func(context.Context)) error {
	for {
		survey(ctx)
		if !wait(ctx, inspectAgainMin) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-due:
		}
	}
}

func (l *Ledger) surveyOnce(ctx context.Context) {
	found, err := Inspect(ctx, l.bus)
	if err != nil {
		if ctx.Err() == nil {
			l.log.Warn().AnErr("err", err).Msg("documents were not compared with the log: the slow walk does the same")
		}
		return
	}
	var lost []string
	for i := range found.Lost {
		x := &found.Lost[i]
		healed, err := l.mendLost(ctx, x.Ref)
		switch {
		case err != nil && ctx.Err() == nil:
			l.log.Warn().Str("session", x.Ref.String()).AnErr("err", err).Msg("survey")
		case !healed:
			lost = append(lost, x.String())
		}
	}
	_ = each(ctx, rebuildsAtOnceMax, found.Wrong, func(ctx context.Context, r events.Ref) error {
		if _, err := l.mend(ctx, r); err != nil && ctx.Err() == nil {
			l.log.Warn().Str("session", r.String()).AnErr("err", err).Msg("survey")
		}
		return nil
	})
	if len(lost) > 0 {
		l.log.Error().Strs("id",
			lost[:min(len(lost), namedMax)]).Msgf("the log has lost commits of %d sessions that documents have "+
			"folded: "+
			"keep what is left with `holdfast rescue`, and see `holdfast doctor`", len(lost))
	}
}

// mendLost checks a session with a noted or found loss. healed: the log has everything.
func (l *Ledger) mendLost(ctx context.Context, r events.Ref) (healed bool, err error) {
	x, err := l.mend(ctx, r)
	if err != nil || x != nil {
		return false, err
	}
	e, err := l.bus.KV.Load(ctx, kv.State, events.LostKey(r))
	if errors.Is(err, bus.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	var note Lost
	if err := json.Unmarshal(e.Value, &note); err != nil || note.Ref != r {
		return true, l.bus.KV.Delete(ctx, kv.State, e.Key, e.Rev)
	}
	g, err := l.logged(ctx, r)
	if err != nil {
		return false, err
	}
	was := session.New(r)
	was.Seq = note.Known
	if g.lost(was) != nil {
		return false, nil
	}
	l.log.Info().Str("session", r.String()).Uint64("seq", note.Known).Msg("the log has again what it had lost")
	return true, l.bus.KV.Delete(ctx, kv.State, e.Key, e.Rev)
}

// mend compares one document with the log, commit by commit, and rebuilds it if it differs. If the document is ahead of
// the log, that is noted. Then the document is rebuilt, too, if the log has the session's beginning: only then can the
// session continue; the note keeps the old document. Otherwise it is kept: it is the last copy.
func (l *Ledger) mend(ctx context.Context, r events.Ref) (*loss, error) {
	for range racesMax {
		x, err := l.mendOnce(ctx, r)
		if !errors.Is(err, bus.ErrLostRace) {
			return x, err
		}
	}
	// written all the time, by a process that folds
	return nil, nil
}

func (l *Ledger) mendOnce(ctx context.Context, r events.Ref) (*loss, error) {
	acked, err := l.bus.Consumers.Acked(ctx, Source(l.cfg))
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return nil, err
	}
	e, err := l.bus.KV.Load(ctx, kv.State, events.SessionKey(r))
	none := errors.Is(err, bus.ErrNotFound)
	if err != nil && !none {
		return nil, err
	}
	if _, err := session.Decode(e.Value); !none && errors.Is(err, session.ErrNewerLayout) {
		return nil, nil
	}
	g, err := l.logged(ctx, r)
	if err != nil {
		return nil, err
	}
	doc := storedDocument(r, e)
	if x := g.lost(doc); x != nil {
		return x, l.mendLoss(ctx, e, g, x)
	}
	switch {
	case g.state.Seq == 0 || isTombstone(g.state) || doc != nil && l.agrees(e, doc, g, acked):
		return nil, nil
	case doc == nil && g.state.Seq > acked:
		// it is about to be folded for the first time
		return nil, nil
	}
	l.log.Warn().Str("session", r.String()).Uint64("seq",
		g.state.Seq).Msg("the document was missing, damaged or not what the log says: rebuilt")
	l.fold.count.mended.Add(1)
	_, _, err = l.storeFolded(ctx, e, g)
	return nil, err
}

// agrees reports whether a document is the fold of the log up to its place, and not older than what was acknowledged.
func (l *Ledger) agrees(e kv.Entry, doc *session.State, g logged, acked uint64) bool {
	if doc.Seq < g.state.Seq && g.state.Seq <= acked {
		return false
	}
	st := session.New(doc.Ref())
	for i := range g.commits {
		if g.commits[i].Seq <= doc.Seq {
			st.Fold(&g.commits[i])
		}
	}
	want, err := st.Encode()
	return err == nil && bytes.Equal(want, e.Value)
}

// mendLoss notes a loss, and then rebuilds the document if the session can continue from the log.
func (l *Ledger) mendLoss(ctx context.Context, e kv.Entry, g logged, x *loss) error {
	if err := l.keepDocument(ctx, e, x); err != nil || !replaceable(e, x) {
		return err
	}
	l.fold.count.mended.Add(1)
	_, _, err := l.storeFolded(ctx, e, g)
	return err
}

// replaceable reports whether a document that is ahead of the log can be rebuilt: the log has the session's beginning,
// and a note can keep the document.
func replaceable(e kv.Entry, x *loss) bool { return x.shorter() && len(e.Value) <= documentCopyMax }

// keepDocument stores the document in a note before it is replaced. A document that is kept needs no copy.
func (l *Ledger) keepDocument(ctx context.Context, e kv.Entry, x *loss) error {
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return err
	}
	note := Lost{Ref: x.ref, Known: x.known, Last: x.last, Missing: x.missing, At: now}
	if replaceable(e, x) {
		note.Document = e.Value
		l.log.Error().Str("session", x.ref.String()).Uint64("seq", x.last).AnErr("err",
			x).Msg("the document is rebuilt from the shorter log; the note of the loss keeps it as it was")
	}
	return l.recordLoss(ctx, note)
}

// recordLoss stores a note, unless a stored one has as much.
func (l *Ledger) recordLoss(ctx context.Context, note Lost) error {
	key := events.LostKey(note.Ref)
	e, err := l.bus.KV.Load(ctx, kv.State, key)
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return err
	}
	var old Lost
	if err == nil && json.Unmarshal(e.Value, &old) == nil && old.Known >= note.Known &&
		(len(old.Document) > 0 || len(note.Document) == 0) {
		return nil
	}
	body, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("note of the loss in %s: %w", note.Ref, err)
	}
	_, err = l.bus.KV.Store(ctx, kv.State, key, body, e.Rev)
	return err
}

// forgetLoss removes the note of an accepted loss.
func (l *Ledger) forgetLoss(ctx context.Context, r events.Ref) error {
	e, err := l.bus.KV.Load(ctx, kv.State, events.LostKey(r))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return l.bus.KV.Delete(ctx, kv.State, e.Key, e.Rev)
}

// walk compares every document with the log, slowly and continuously, in the active process, or in any while none is
// active: a document can be damaged while its session has no writes.
func (l *Ledger) walk(ctx context.Context) error {
	for {
		if l.mayWalk(ctx) {
			if err := l.walkOnce(ctx); err != nil && ctx.Err() == nil {
				l.log.Warn().AnErr("err", err).Msg("the slow walk did not come to its end")
			}
		}
		if !wait(ctx, l.cfg.WalkEvery) {
			return nil
		}
	}
}

// mayWalk reports whether no other process is active. Two concurrent walks do no harm: their stores are guarded.
func (l *Ledger) mayWalk(ctx context.Context) bool {
	if l.fold.active.Load() {
		return true
	}
	_, active, err := l.bus.Consumers.Lag(ctx, Source(l.cfg))
	return err != nil && ctx.Err() == nil || active == ""
}

func (l *Ledger) walkOnce(ctx context.Context) error {
	refs, err := l.bus.Log.Heads(ctx, "")
	if err != nil {
		return err
	}
	long := map[events.Ref]bool{}
	err = l.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		r, err := events.ParseSessionKey(e.Key)
		if err != nil {
			return nil
		}
		if doc := storedDocument(r, e); doc != nil && doc.Commits > walkCommitsMax {
			long[r] = true
		}
		// also sessions without a log
		refs[r] = max(refs[r], 0)
		return nil
	})
	if err != nil {
		return err
	}
	for r := range refs {
		if long[r] {
			continue
		}
		if _, err := l.mend(ctx, r); err != nil && ctx.Err() == nil {
			l.log.Warn().Str("session", r.String()).AnErr("err", err).Msg("slow walk")
		}
		if !wait(ctx, walkPause) {
			return nil
		}
	}
	return nil
}

// wait returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
