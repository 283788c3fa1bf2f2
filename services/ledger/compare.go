package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// shown is what an entry of a view says, as far as the document alone can tell whether it is right.
type shown struct {
	Harness string         `json:"harness"`
	Session string         `json:"session"`
	Prompt  string         `json:"prompt"`
	Status  session.Status `json:"status"`
	Epoch   uint64         `json:"epoch"`
	Owned   bool           `json:"owned"`
	// When it was settled, and when the harness took it: it is shown for a while from the later one on.
	ClosedAt    time.Time `json:"closed_at"`
	DeliveredAt time.Time `json:"delivered_at"`

	rev uint64 // of the entry
}

// compareViews compares views with documents at the start, because no process may become active for long, and after each
// take-over by this process.
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
		l.log.Warn().Msgf("views of %d sessions were not what their documents say: made anew", n)
	}
}

// compare finds the sessions whose views are not what their document says, which no crash of a ledger brings about but
// that of a rebuild or another client's write can, and makes them again. Entries that no document stands for are removed. It
// returns how many sessions there were. What changes meanwhile may be found wrong, and is then written as it is.
func (l *Ledger) compare(ctx context.Context) (int, error) {
	have := map[events.Ref]map[string]shown{}
	for _, filter := range []string{events.BlockerKeys("", ""), events.WorkKeys("")} {
		err := l.bus.List(ctx, bus.State, filter, func(e bus.Entry) error {
			r, err := events.ParseViewKey(e.Key)
			if err != nil {
				return nil // of no view
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
			return 0, fmt.Errorf("ledger: compare: %w", err)
		}
	}
	now, err := l.bus.Now(ctx)
	if err != nil {
		return 0, err
	}
	var wrong []events.Ref
	documents := map[events.Ref]bool{}
	err = l.bus.List(ctx, bus.State, events.SessionKeys(""), func(e bus.Entry) error {
		r, err := events.ParseSessionKey(e.Key)
		if err == nil && have[r] != nil {
			documents[r] = true
		}
		if err != nil || have[r] == nil && !bytes.Contains(e.Value, []byte(`"prompts":`)) && !bytes.Contains(e.Value, []byte(`"pending":`)) {
			return nil // nearly all: nothing is shown of them, nor should it be
		}
		st, err := session.Decode(e.Value)
		if err == nil && st.Ref() == r && !agree(st, have[r], l.cfg.ClosedFor, now) {
			wrong = append(wrong, r)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("ledger: compare: %w", err)
	}
	removed, err := l.removeOrphans(ctx, have, documents)
	if err != nil {
		return removed, err
	}
	return removed + len(wrong), each(ctx, rebuildsAtOnceMax, wrong, func(ctx context.Context, r events.Ref) error {
		_, _, err := l.rebuildSession(ctx, r)
		if errors.Is(err, errLost) {
			return nil // the survey reports it
		}
		return err
	})
}

// unreadable is the status of an entry that says nothing of its session.
const unreadable session.Status = "unreadable"

// removeOrphans removes the entries of sessions that have no document and no log: nothing else ever would. It returns how
// many sessions there were. Of a session with a log the survey makes the document, and the views with it.
func (l *Ledger) removeOrphans(ctx context.Context, have map[events.Ref]map[string]shown, documents map[events.Ref]bool) (int, error) {
	n := 0
	for r, entries := range have {
		if documents[r] {
			continue
		}
		_, err := l.bus.Load(ctx, bus.State, events.SessionKey(r)) // it may have been stored since
		if err == nil {
			continue
		}
		if !errors.Is(err, bus.ErrNotFound) {
			return n, fmt.Errorf("ledger: compare: %w", err)
		}
		if logged, err := hasLog(ctx, l.bus, r); err != nil || logged {
			if err != nil {
				return n, err
			}
			continue
		}
		for key, v := range entries {
			if err := l.bus.Delete(ctx, bus.State, key, v.rev); err != nil && !errors.Is(err, bus.ErrLostRace) {
				return n, fmt.Errorf("ledger: compare: %w", err)
			}
		}
		n++
	}
	return n, nil
}

// agree says whether a session's entries can be what its document says. What was settled may have expired.
func agree(st *session.State, have map[string]shown, closedFor time.Duration, now time.Time) bool {
	w, working := have[events.WorkKey(st.Ref())]
	if working != st.HasWork() || working && (w.Epoch != st.Epoch || w.Owned != st.Owned) {
		return false
	}
	for id, p := range st.Prompts {
		v, ok := have[st.BlockerKey(id)]
		if !ok && p.Status != session.Awaiting && now.Sub(p.UpdatedAt) >= closedFor-ttlMin {
			continue
		}
		if !ok || v.Status != p.Status || v.Owned != st.Owned {
			return false
		}
	}
	for _, v := range have {
		if v.Status == unreadable || v.Status == session.Awaiting && st.Prompts[v.Prompt] == nil || v.overdue(closedFor, now) {
			return false
		}
	}
	return true
}

// overdue is whether an entry of the people's view should have expired.
func (v *shown) overdue(closedFor time.Duration, now time.Time) bool {
	since := v.ClosedAt
	if v.DeliveredAt.After(since) {
		since = v.DeliveredAt
	}
	return !since.IsZero() && now.Sub(since) > closedFor+goneSlack
}
