package ledger

import (
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

// shown has the fields of a view's entry that the document can confirm.
type shown struct {
	Harness string         `json:"harness"`
	Session string         `json:"session"`
	Prompt  string         `json:"prompt"`
	Status  session.Status `json:"status"`
	Epoch   uint64         `json:"epoch"`
	Owned   bool           `json:"owned"`
	// When it was settled, and when the harness took it: the entry expires some time after the later one.
	ClosedAt    time.Time `json:"closed_at"`
	DeliveredAt time.Time `json:"delivered_at"`

	rev uint64 // of the entry
}

// compareViews compares views with documents in the background, at the start and after each take-over by this process:
// a take-over itself must be short.
func (l *Ledger) compareViews(ctx context.Context) error {
	return onTakeOver(ctx, l.fold.tookOver, l.compareOnce)
}

func (l *Ledger) compareOnce(ctx context.Context) {
	n, err := l.compare(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.log.Warn().AnErr("err", err).Msg("views were not compared with documents: `holdfast rebuild` does the same")
	case n > 0:
		l.log.Warn().Msgf("views differed from their documents and were rebuilt: sessions: %d", n)
	}
}

// compare finds sessions whose views differ from their documents, and renders them again. A crash of a ledger does not
// cause this, but a crash of a rebuild, or another client's write, does. Entries without a document are removed. It
// returns the number of sessions. An entry that changes meanwhile may be found wrong, and is then written unchanged.
func (l *Ledger) compare(ctx context.Context) (int, error) {
	have := map[events.Ref]map[string]shown{}
	for _, filter := range []string{events.BlockerKeys("", ""), events.WorkKeys("")} {
		err := l.bus.KV.List(ctx, kv.State, filter, func(e kv.Entry) error {
			r, err := events.ParseViewKey(e.Key)
			if err != nil {
				// not an entry of a view
				return nil
			}
			v := shown{rev: e.Rev}
			if json.Unmarshal(e.Value, &v) != nil || v.Harness != r.Harness || v.Session != r.Session {
				v = shown{Status: unreadable, rev: e.Rev}
			}
			if have[r] == nil {
				have[r] = map[string]shown{}
			}
			have[r][e.Key] = v
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("compare: %w", err)
		}
	}
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return 0, err
	}
	var wrong []events.Ref
	documents := map[events.Ref]bool{}
	err = l.bus.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		r, err := events.ParseSessionKey(e.Key)
		if err == nil && have[r] != nil {
			documents[r] = true
		}
		if err != nil {
			// not a session
			return nil
		}
		h, err := session.ReadHead(e.Value)
		if err != nil || have[r] == nil && !h.Views {
			// nearly all: they have no entry, and need none
			return nil
		}
		st, err := session.Decode(e.Value)
		if err == nil && st.Ref() == r && !agree(st, have[r], l.cfg.SettledKeptFor, now) {
			wrong = append(wrong, r)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("compare: %w", err)
	}
	removed, err := l.removeOrphans(ctx, have, documents)
	if err != nil {
		return removed, err
	}
	return removed + len(wrong), each(ctx, rebuildsAtOnceMax, wrong, func(ctx context.Context, r events.Ref) error {
		_, _, err := l.rebuildSession(ctx, r)
		if errors.Is(err, errLost) {
			// the survey reports it
			return nil
		}
		return err
	})
}

// unreadable is the status of an entry that cannot be decoded.
const unreadable session.Status = "unreadable"

// removeOrphans removes the entries of sessions without a document and without a log: nothing else would. It returns
// the number of sessions. For a session with a log the survey makes the document, and with it the views.
func (l *Ledger) removeOrphans(ctx context.Context, have map[events.Ref]map[string]shown,
	documents map[events.Ref]bool) (int, error) {
	n := 0
	for r, entries := range have {
		if documents[r] {
			continue
		}
		// it may have been stored since
		_, err := l.bus.KV.Load(ctx, kv.State, events.SessionKey(r))
		if err == nil {
			continue
		}
		if !errors.Is(err, bus.ErrNotFound) {
			return n, fmt.Errorf("compare: %w", err)
		}
		if logged, err := hasLog(ctx, l.bus.Log, r); err != nil || logged {
			if err != nil {
				return n, err
			}
			continue
		}
		for key, v := range entries {
			if err := l.bus.KV.Delete(ctx, kv.State, key, v.rev); err != nil && !errors.Is(err, bus.ErrLostRace) {
				return n, fmt.Errorf("compare: %w", err)
			}
		}
		n++
	}
	return n, nil
}

// agree reports whether a session's entries can be the views of its document. Settled entries may have expired.
func agree(st *session.State, have map[string]shown, settledKeptFor time.Duration, now time.Time) bool {
	w, working := have[events.WorkKey(st.Ref())]
	if working != st.HasWork() || working && (w.Epoch != st.Epoch || w.Owned != st.Owned) {
		return false
	}
	for id, p := range st.Prompts {
		v, ok := have[st.BlockerKey(id)]
		if !ok && !p.Awaits() && now.Sub(p.UpdatedAt) >= settledKeptFor-ttlMin {
			continue
		}
		if !ok || v.Status != p.Status || v.Owned != st.Owned {
			return false
		}
	}
	for _, v := range have {
		if v.Status == unreadable || v.Status == session.Awaiting && st.Prompts[v.Prompt] == nil ||
			v.overdue(settledKeptFor, now) {
			return false
		}
	}
	return true
}

// overdue reports whether an entry of the people's view should have expired.
func (v *shown) overdue(settledKeptFor time.Duration, now time.Time) bool {
	since := v.ClosedAt
	if v.DeliveredAt.After(since) {
		since = v.DeliveredAt
	}
	return !since.IsZero() && now.Sub(since) > settledKeptFor+goneSlack
}
