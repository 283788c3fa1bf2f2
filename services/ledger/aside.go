package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits for sessions that are set aside.
const (
	asideAtOnceMax = 2 // sessions that are folded apart at the same time
	asidePauseMin  = time.Second
	asidePauseMax  = time.Minute
	asideReasonMax = 500    // bytes of an error in a note
	pastMax        = 10_000 // sessions remembered as folded beyond the delivered commits; beyond it all are forgotten
	lostInARowMax  = 3      // races lost by whole batches before the sessions are folded one by one
	inlineReadMax  = 2_000  // commits that one batch reads back from the log; a session that needs more is set aside
	asideFedAtOnce = 500    // facts that are fed before waiting for them
	asideEndedMax  = 10_000 // ended prompts whose entries are checked again
	showAttempts   = 10     // of writing the views of a session that is folded with the others meanwhile
)

// errLong means that a session needs more of the log than a batch may read.
var errLong = errors.New("ledger: too far behind its log to be folded in passing")

// Aside is the note of a session that was set aside: its messages are acknowledged, and it is folded apart from the
// others, from the log. The note is stored under [events.AsideKey] before the acknowledgement, so that it outlives the
// process.
type Aside struct {
	events.Ref
	Behind   bool      `json:"behind"` // the document is not kept up to date meanwhile
	From     uint64    `json:"from"`   // commits from here
	To       uint64    `json:"to"`     // up to here: the feed may lack them
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`
	Failures int       `json:"failures"` // attempts that failed since
}

// apart is one process's list of sessions that were set aside.
type apart struct {
	mu   sync.Mutex
	of   map[events.Ref]*waiting
	past map[events.Ref]uint64 // folded up to here when it came back: later deliveries up to here are skipped
	owed map[events.Ref]*owedViews
	news chan struct{}
}

// owedViews are the views of a session that may be missing, after facts before its document were fed again. The next
// batch that folds the session writes all of them.
type owedViews struct {
	ended   []string // prompts
	lenient bool     // as in [touched]
}

// waiting is one session that was set aside.
type waiting struct {
	note Aside
	rev  uint64    // of the note
	last uint64    // the last commit that was delivered meanwhile
	next time.Time // the next attempt, by this process's clock
	busy bool
}

func newApart() *apart {
	return &apart{of: map[events.Ref]*waiting{}, past: map[events.Ref]uint64{}, owed: map[events.Ref]*owedViews{},
		news: make(chan struct{}, 1)}
}

func (a *apart) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of, a.past = map[events.Ref]*waiting{}, map[events.Ref]uint64{}
}

// owes returns the owed views of a session; nil for none.
func (a *apart) owes(r events.Ref) *owedViews {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owed[r]
}

// shown records that owed views were written.
func (a *apart) shown(r events.Ref, v *owedViews) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owed[r] == v {
		delete(a.owed, r)
	}
}

// show writes owed views with store, again after each lost race, until they are written: by store, or by a batch that
// folds the session. A batch that began later than this call writes them, so few races are lost against this process.
func (a *apart) show(r events.Ref, v *owedViews, store func() error) (err error) {
	a.mu.Lock()
	a.owed[r] = v
	a.mu.Unlock()
	defer a.shown(r, v)
	for range showAttempts {
		if err = store(); err == nil || !errors.Is(err, bus.ErrLostRace) || a.owes(r) != v {
			break
		}
	}
	if a.owes(r) != v && errors.Is(err, bus.ErrLostRace) {
		return nil
	}
	return err
}

func (a *apart) notify() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// without removes from a batch the sessions that are folded apart.
func (a *apart) without(ts []*touched) []*touched {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.of)+len(a.past) == 0 {
		return ts
	}
	left := ts[:0]
	for _, t := range ts {
		last := t.commits[len(t.commits)-1].Seq
		if w := a.of[t.ref]; w != nil && w.note.Behind {
			w.last = max(w.last, last)
			continue
		}
		if done := a.past[t.ref]; done > 0 {
			if done >= last {
				continue
			}
			delete(a.past, t.ref)
			for t.commits[0].Seq <= done {
				t.msgs, t.commits = t.msgs[1:], t.commits[1:]
			}
		}
		left = append(left, t)
	}
	return left
}

// general reports whether an error concerns all sessions: then no session can be folded.
func general(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	for _, kind := range []error{bus.ErrUnreachable, bus.ErrForbidden, bus.ErrFull, bus.ErrNoJetStream} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// oneByOne folds the halves of a failed batch, and their halves, until each failing session is alone, and sets it
// aside. It returns an error only if that concerns all sessions.
func (f *folder) oneByOne(ctx context.Context, ts []*touched, why error) error {
	if len(ts) == 1 {
		return f.setAside(ctx, ts[0], why)
	}
	for _, half := range [][]*touched{ts[:len(ts)/2], ts[len(ts)/2:]} {
		for _, t := range half {
			f.cache.drop(t.ref)
			*t = touched{ref: t.ref, msgs: t.msgs, commits: t.commits}
		}
		err := f.batch(ctx, half, nil)
		if err != nil && !general(ctx, err) {
			err = f.oneByOne(ctx, half, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setAside folds a failing session apart from the others.
func (f *folder) setAside(ctx context.Context, t *touched, why error) error {
	f.cache.drop(t.ref)
	from, to := t.commits[0].Seq, t.commits[len(t.commits)-1].Seq
	*t = touched{ref: t.ref, msgs: t.msgs, commits: t.commits}
	if err := f.owe(ctx, Aside{Ref: t.ref, Behind: true, From: from, To: to, Reason: why.Error()}); err != nil {
		return err
	}
	f.count.aside.Add(1)
	f.log.Error().Str("session", t.ref.String()).Uint64("seq", from).AnErr("err",
		why).Msg("set aside: the others go on, and it is tried again")
	return nil
}

// owe stores a note, merged with the stored note of the session, and schedules the work.
func (f *folder) owe(ctx context.Context, note Aside) error {
	now, err := f.bus.Clock.Now(ctx)
	if err != nil {
		return err
	}
	note.Since = now
	f.apart.mu.Lock()
	rev := uint64(0)
	if w := f.apart.of[note.Ref]; w != nil {
		rev = w.rev
		note.From, note.To, note.Behind = min(note.From, w.note.From), max(note.To, w.note.To), note.Behind ||
			w.note.Behind
		note.Since, note.Failures = w.note.Since, w.note.Failures
	}
	f.apart.mu.Unlock()
	if rev, err = f.storeNote(ctx, note, rev); err != nil {
		return err
	}
	f.apart.mu.Lock()
	w := f.apart.of[note.Ref]
	if w == nil {
		w = &waiting{}
		f.apart.of[note.Ref] = w
	}
	w.note, w.rev, w.last = note, rev, max(w.last, note.To)
	delete(f.apart.past, note.Ref)
	f.apart.mu.Unlock()
	f.apart.notify()
	return nil
}

// storeNote stores a note over the present one.
func (f *folder) storeNote(ctx context.Context, note Aside, rev uint64) (uint64, error) {
	note.Reason = note.Reason[:min(len(note.Reason), asideReasonMax)]
	body, err := json.Marshal(note)
	if err != nil {
		return 0, fmt.Errorf("ledger: note of %s: %w", note.Ref, err)
	}
	key := events.AsideKey(note.Ref)
	for {
		at, err := f.bus.KV.Store(ctx, kv.State, key, body, rev)
		if !errors.Is(err, bus.ErrLostRace) {
			return at, err
		}
		e, err := f.bus.KV.Load(ctx, kv.State, key)
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return 0, err
		}
		rev = e.Rev
	}
}

// learnAside reads which sessions other processes have set aside, when this process becomes the active one.
func (f *folder) learnAside(ctx context.Context) error {
	f.apart.clear()
	err := f.bus.KV.List(ctx, kv.State, events.AsideKeys(), func(e kv.Entry) error {
		var note Aside
		r, err := events.ParseAsideKey(e.Key)
		if err != nil || json.Unmarshal(e.Value, &note) != nil || note.Ref != r {
			return nil // not written by a ledger
		}
		f.apart.mu.Lock()
		defer f.apart.mu.Unlock()
		f.apart.of[r] = &waiting{note: note, rev: e.Rev, last: note.To}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ledger: sessions set aside: %w", err)
	}
	f.apart.notify()
	return nil
}

// workApart folds what was set aside, a few sessions at a time, until ctx ends.
func (f *folder) workApart(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, asideAtOnceMax)
	for {
		next := asidePauseMax
		now := time.Now() // only schedules attempts
		for _, w := range f.apart.due(now, &next) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			all.Go(func() {
				defer func() { <-slots }()
				f.tryApart(ctx, w)
			})
		}
		rest := time.NewTimer(next)
		select {
		case <-ctx.Done():
			rest.Stop()
			return nil
		case <-f.apart.news:
			rest.Stop()
		case <-rest.C:
		}
	}
}

// due removes and returns the sessions to try now, and shortens next to the next instant.
func (a *apart) due(now time.Time, next *time.Duration) []events.Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	var due []events.Ref
	for r, w := range a.of {
		switch {
		case w.busy:
		case w.next.After(now):
			*next = min(*next, w.next.Sub(now))
		default:
			w.busy = true
			due = append(due, r)
		}
	}
	return due
}

// tryApart folds one session that was set aside, and schedules another attempt if that fails.
func (f *folder) tryApart(ctx context.Context, r events.Ref) {
	err := f.comeBack(ctx, r)
	if err == nil || ctx.Err() != nil {
		return
	}
	f.apart.mu.Lock()
	w := f.apart.of[r]
	if w == nil {
		f.apart.mu.Unlock()
		return
	}
	w.busy = false
	w.note.Failures++
	w.note.Reason = err.Error()
	pause := asidePauseMax
	if n := w.note.Failures - 1; n < 6 {
		pause = asidePauseMin << n
	}
	w.next = time.Now().Add(pause)
	note, rev := w.note, w.rev
	f.apart.mu.Unlock()
	f.apart.notify()
	f.log.Warn().Str("session", r.String()).AnErr("err", err).Msg("still set aside")
	if rev, err = f.storeNote(ctx, note, rev); err == nil {
		f.apart.mu.Lock()
		if w := f.apart.of[r]; w != nil {
			w.rev = rev
		}
		f.apart.mu.Unlock()
	}
}
