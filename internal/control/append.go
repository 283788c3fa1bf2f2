package control

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits under which a commit is not measured before it is appended.
const (
	unmeasuredFactsMax = 400 // this many facts without content always fit: each takes at most a kilobyte
	unmeasuredWaitsMax = 4   // the most calls of a SessionOrphaned that counts as small
	envelopeBytesMore  = 8   // bytes of commas and brackets for each event
	batchBytesMax      = events.CommitBytesMax - 2<<10
)

// Append appends facts to a session in as few commits as possible, with compare-and-set, and folds them. It returns the
// session after the last commit that was written. On [bus.ErrLostRace] that is the session before the other writer's
// commit.
func (l *Loop) Append(ctx context.Context, s *session.State, facts []events.Fact) (*session.State, error) {
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return s, err
	}
	s, _, err = l.append(ctx, s, Decision{Facts: facts}, now)
	return s, err
}

// append also returns the facts that are in the log.
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
		seq, err := l.bus.Log.Append(ctx, r, l.cfg.Writer, s.Seq, evs)
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
		if seq, err = l.bus.Log.Append(ctx, r, l.cfg.Writer, s.Seq, part); err != nil {
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

// events wraps facts for a session in envelopes and reuses the slice evs.
func (l *Loop) events(evs []events.Event, s *session.State, facts []events.Fact, now time.Time) []events.Event {
	r := s.Ref()
	evs = slices.Grow(evs, len(facts))
	for _, f := range facts {
		evs = append(evs, events.New(l.bus.NewID(), l.source, r, s.Epoch, now, f))
	}
	return evs
}

// appended records a commit of this process at seq and calls [Config.Decided].
func (l *Loop) appended(ctx context.Context, s *session.State, seq uint64, d Decision) {
	if len(d.Facts) == 0 {
		return
	}
	l.recordCommit(s.Ref(), seq, d.Facts, d.Rest)
	if l.cfg.Decided != nil {
		l.cfg.Decided(ctx, s, d.Facts)
	}
}

// recordCommit counts a commit, remembers its place, sends the nudge and logs it. rest: the session needs nothing else.
func (l *Loop) recordCommit(r events.Ref, seq uint64, facts []events.Fact, rest bool) {
	l.count.decisions.Add(1)
	l.count.facts.Add(uint64(len(facts)))
	l.mu.Lock()
	if len(l.own) >= ownAppendsMax {
		clear(l.own)
	}
	l.own[r] = own{seq, rest}
	l.mu.Unlock()
	l.bus.Hints.Nudge(r, seq)
	if line := l.cfg.Log.Info(); line.Enabled() {
		line.Str("session", r.String()).Uint64("seq", seq).Str("entity", string(facts[0].Kind())).Msg("decided")
	}
}

// own is the last commit of this process to a session.
type own struct {
	seq  uint64
	rest bool // the session needs nothing else after it
}

// outdated reports whether a document with this seq is older than the last commit of this process. A newer document
// follows.
func (l *Loop) outdated(r events.Ref, seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.own[r]
	if ok && seq >= own.seq {
		delete(l.own, r)
		return false
	}
	return ok
}

// fitting returns how many of the first events fit into one commit.
func fitting(evs []events.Event) (int, error) {
	n := min(len(evs), events.CommitFactsMax)
	if n <= unmeasuredFactsMax && certainlyFits(evs) {
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

// certainlyFits reports whether all facts are of small, limited size.
func certainlyFits(evs []events.Event) bool {
	for i := range evs {
		switch f := evs[i].Fact.(type) {
		case events.ToolInterrupted, events.PromptExpired, events.PromptWithdrawn, events.TurnInterrupted,
			events.CompactionFailed:
		case events.SessionOrphaned:
			// its detail is short
			if len(f.WaitsFor) > unmeasuredWaitsMax {
				return false
			}
		default:
			return false
		}
	}
	return true
}
