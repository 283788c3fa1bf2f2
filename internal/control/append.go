package control

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Sizes that decide whether a commit is measured before it is appended.
const (
	plainFactsMax     = 400 // so many facts without content of their own always fit: none is larger than a kilobyte
	plainWaitsMax     = 4   // calls that an orphaning may name to be one of these
	envelopeBytesMore = 8   // a list's commas and brackets, for each
	batchBytesMax     = events.CommitBytesMax - 2<<10
)

// Append appends facts to a session in as few commits as they fit, under the compare-and-set, and folds them. It returns
// the session as it is then; with [bus.ErrLostRace], as it was when another one wrote first.
func (l *Loop) Append(ctx context.Context, s *session.State, facts []events.Fact) (*session.State, error) {
	now, err := l.bus.Now(ctx)
	if err != nil {
		return s, err
	}
	s, _, err = l.append(ctx, s, Decision{Facts: facts}, now)
	return s, err
}

// append also says which of the facts are in the log.
func (l *Loop) append(
	ctx context.Context,
	s *session.State,
	d Decision,
	now time.Time,
) (*session.State, []events.Fact, error) {
	if len(d.Facts) == 0 {
		return s, nil, nil
	}
	r, evs := s.Ref(), l.events(nil, s, d.Facts, now)
	n, err := fitting(evs)
	if err != nil {
		return s, nil, err
	}
	if n == len(evs) && d.After != nil && d.After != s {
		seq, err := l.bus.Append(ctx, r, l.cfg.Writer, s.Seq, evs)
		if err != nil {
			return s, nil, err
		}
		s, d.After.Seq = d.After, seq
		l.appended(ctx, s, seq, d)
		return s, d.Facts, nil
	}
	s = s.Clone()
	done := 0
	for done < len(evs) {
		if n, err = fitting(evs[done:]); err != nil {
			break
		}
		part := evs[done : done+n]
		var seq uint64
		if seq, err = l.bus.Append(ctx, r, l.cfg.Writer, s.Seq, part); err != nil {
			break
		}
		s.Fold(
			&events.Commit{Ref: r, Writer: l.cfg.Writer, Seq: seq, Guard: s.Seq, Guarded: true, At: now, Events: part},
		)
		done += n
	}
	l.appended(ctx, s, s.Seq, Decision{Facts: d.Facts[:done], Rest: d.Rest && done == len(d.Facts)})
	return s, d.Facts[:done], err
}

// events wraps facts for a session, in this space if it has room.
func (l *Loop) events(evs []events.Event, s *session.State, facts []events.Fact, now time.Time) []events.Event {
	r := s.Ref()
	evs = slices.Grow(evs, len(facts))
	for _, f := range facts {
		evs = append(evs, events.New(l.bus.NewID(), l.source, r, s.Epoch, now, f))
	}
	return evs
}

// appended counts, remembers and tells what was appended at this place in the log.
func (l *Loop) appended(ctx context.Context, s *session.State, seq uint64, d Decision) {
	if len(d.Facts) == 0 {
		return
	}
	l.noted(s.Ref(), seq, d.Facts, d.Rest)
	if l.cfg.Decided != nil {
		l.cfg.Decided(ctx, s, d.Facts)
	}
}

// noted counts, remembers and tells that facts are in the log; rest: nothing else is called for.
func (l *Loop) noted(r events.Ref, seq uint64, facts []events.Fact, rest bool) {
	l.count.decisions.Add(1)
	l.count.facts.Add(uint64(len(facts)))
	l.mu.Lock()
	if len(l.own) >= ownAppendsMax {
		clear(l.own)
	}
	l.own[r] = own{seq, rest}
	l.mu.Unlock()
	l.bus.Nudge(r, seq)
	if line := l.cfg.Log.Info(); line.Enabled() {
		line.Str("session", r.String()).Uint64("seq", seq).Str("entity", string(facts[0].Kind())).Msg("decided")
	}
}

// own is what this process has appended to a session last.
type own struct {
	seq  uint64
	rest bool // nothing is called for after it
}

// outdated says whether a document is older than what this process has appended itself: a newer one is under way.
func (l *Loop) outdated(s *session.State) bool {
	r := s.Ref()
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.own[r]
	if ok && s.Seq >= own.seq {
		delete(l.own, r)
		return false
	}
	return ok
}

// fitting is how many of the events, from the first, fit into one commit.
func fitting(evs []events.Event) (int, error) {
	n := min(len(evs), events.CommitFactsMax)
	if n <= plainFactsMax && plain(evs) {
		return n, nil
	}
	size := 0
	for i := range evs[:n] {
		body, err := events.EncodeEvent(&evs[i])
		if err != nil {
			return 0, err
		}
		// The first event always fits: one fact takes at most half of a batch.
		if size += len(body) + envelopeBytesMore; size > batchBytesMax {
			return i, nil
		}
	}
	return n, nil
}

// plain says whether none of the facts has content of its own.
func plain(evs []events.Event) bool {
	for i := range evs {
		switch f := evs[i].Fact.(type) {
		case events.ToolInterrupted, events.PromptExpired, events.PromptWithdrawn, events.TurnInterrupted,
			events.CompactionFailed:
		case events.SessionOrphaned:
			if len(f.WaitsFor) > plainWaitsMax {
				return false
			}
		default:
			return false
		}
	}
	return true
}
