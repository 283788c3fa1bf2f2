package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// longAgo decides on the session as it was when it still listed a prompt that has since been displaced by later
// endings: so a late asker gets the prompt's state, too (P11). Nothing is appended: an ended prompt stays ended. For a
// prompt that never existed it returns the same refusal; that reads what is new since the last such request.
func (l *Ledger) longAgo(ctx context.Context, who whom, unknown error, decide decide) (session.Decision, error) {
	done, err := l.longAgos.enter(ctx)
	if err != nil {
		return session.Decision{}, err
	}
	defer done()
	never, err := l.asked.never(ctx, who.ref, who.prompt)
	switch {
	case err != nil:
		return session.Decision{}, fmt.Errorf("read %s: %w", who.ref, err)
	case never:
		return session.Decision{}, unknown
	}
	st, seen := session.New(who.ref), uint64(0)
	var then *session.State // just after its end
	err = l.bus.Log.Each(ctx, who.ref, 0, func(c events.Commit) error {
		st.Fold(&c)
		// one commit ends a prompt again whose answer is taken back after its turn
		if e, ended := st.Ended(session.EntityPrompt, who.prompt); ended && e.Seq != seen {
			then, seen = st.Clone(), e.Seq
		}
		return nil
	})
	switch {
	case err != nil:
		return session.Decision{}, fmt.Errorf("read %s: %w", who.ref, err)
	case then == nil:
		return session.Decision{}, unknown
	}
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return session.Decision{}, err
	}
	return decide(then, l.fold.commitSource(ctx, nil), now)
}

const (
	askedMax     = 1 << 18 // prompts that are kept of all sessions, about 16 bytes of each
	askedSession = 256     // what a session counts for beside its prompts
)

// asked keeps which prompts sessions have had: those of sessions that were asked about a prompt that they do not list.
// A program that asks about a prompt before the prompt is stored would make the ledger read the whole session each
// time.
type asked struct {
	// each calls fn with the commits of a session from a place of its log on, as [log.Log.Each] does.
	each func(ctx context.Context, r events.Ref, from uint64, fn func(events.Commit) error) error
	max  int // prompts of all sessions
	seed maphash.Seed

	mu   sync.Mutex
	of   map[events.Ref]*askedIn
	old  []events.Ref // of the keys of of, the one that was asked about first
	kept int          // prompts of all of them
}

// askedIn is what one session has had.
type askedIn struct {
	last log.Last            // what was read up to
	ids  map[uint64]struct{} // hashes of ids: two ids with the same hash cost a read of the session, and nothing else
}

func newAsked(each func(context.Context, events.Ref, uint64, func(events.Commit) error) error, most int) *asked {
	return &asked{each: each, max: most, seed: maphash.MakeSeed(), of: map[events.Ref]*askedIn{}}
}

// never reports whether no commit of the session requests a prompt with this id. It reads the log from the last commit
// that was read. A log that has another commit in that place, because it was purged or restored, is read whole.
func (a *asked) never(ctx context.Context, r events.Ref, prompt string) (bool, error) {
	in := a.take(r)
	same, err := a.read(ctx, r, in)
	if err == nil && !same {
		in = &askedIn{}
		_, err = a.read(ctx, r, in)
	}
	if err != nil {
		return false, err
	}
	_, had := in.ids[maphash.String(a.seed, prompt)]
	a.keep(r, in)
	return !had, nil
}

// read adds what the log has from the last commit that was read. It reports false if the log has another commit in the
// place of that one.
func (a *asked) read(ctx context.Context, r events.Ref, in *askedIn) (same bool, err error) {
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
			if f, ok := c.Events[i].Fact.(events.PromptRequested); ok {
				in.ids[maphash.String(a.seed, f.Prompt)] = struct{}{}
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
func (a *asked) take(r events.Ref) *askedIn {
	a.mu.Lock()
	defer a.mu.Unlock()
	in := a.of[r]
	if in == nil {
		return &askedIn{}
	}
	a.drop(r)
	return in
}

// keep keeps what a session has had, and drops others that were asked about longer ago, for its room. A session with
// more prompts than there is room for is not kept.
func (a *asked) keep(r events.Ref, in *askedIn) {
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
func (a *asked) drop(r events.Ref) {
	at := slices.Index(a.old, r)
	a.old, a.kept = slices.Delete(a.old, at, at+1), a.kept-a.of[r].room()
	delete(a.of, r)
}

// room returns how many prompts a session counts for: a session without prompts takes memory, too.
func (in *askedIn) room() int { return len(in.ids) + askedSession }

// errNotSame says that the log has another commit in the place of the last one that was read.
var errNotSame = errors.New("another log")
