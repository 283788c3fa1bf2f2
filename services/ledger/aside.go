package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits for sessions that are set aside.
const (
	asideAtOnceMax = 3      // sessions that are folded apart at the same time
	asideOfOneMax  = 2      // of them, sessions of one harness
	asidePassesMax = 5      // of one attempt over commits that arrive meanwhile: then other sessions have their turn
	servedMax      = 10_000 // harnesses whose turns are remembered; beyond it all are forgotten
	asidePauseMin  = time.Second
	asidePauseMax  = time.Minute
	asideReasonMax = 500      // bytes of an error in a note
	pastMax        = 10_000   // sessions remembered as folded beyond the delivered commits; beyond it all are forgotten
	lostInARowMax  = 3        // races lost by whole batches before the sessions are folded one by one
	inlineReadMax  = 2_000    // commits that one batch reads back from the log; a session that needs more is set aside
	documentsOfOne = 8 << 20  // bytes of documents of one harness that a batch stores, beside small ones
	documentSmall  = 16 << 10 // bytes of a document that is stored whatever else its harness has in the batch
	asideFedAtOnce = 500      // facts that are fed before waiting for them
	asideEndedMax  = 10_000   // ended prompts whose entries are checked again
	showAttempts   = 10       // of writing the views of a session that is folded with the others meanwhile
)

// errBusy means that commits of a session arrive as fast as they are folded apart.
var errBusy = errors.New("its commits arrive as fast as they are folded")

// errLong means that a session needs more of the log than a batch may read.
var errLong = errors.New("too far behind its log to be folded in passing")

// errHeavy means that the documents of one harness would take too much of a batch.
var errHeavy = errors.New("the documents of its harness are too large to be stored in passing")

// readings counts the commits that a batch reads back from the log. Its methods may be called concurrently.
type readings struct{ commits atomic.Int64 }

// begin begins another batch.
func (r *readings) begin() { r.commits.Store(0) }

// reserve returns false if the batch may not read so many commits more.
func (r *readings) reserve(n int) bool {
	if r.commits.Add(int64(n)) <= inlineReadMax {
		return true
	}
	r.commits.Add(-int64(n))
	return false
}

// weight has the bytes of documents of a batch, by harness. A small commit can change a document of several hundred
// kilobytes: the sessions of one harness that are beyond its part are folded apart, where many commits are one write.
type weight map[string]int

// add adds a document, or returns errHeavy.
func (w weight) add(harness string, bytes int) error {
	if bytes > documentSmall && w[harness]+bytes > documentsOfOne {
		return errHeavy
	}
	w[harness] += bytes
	return nil
}

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

	under  map[string]int    // attempts that run, by harness
	served map[string]uint64 // the last turn of each harness
	turns  uint64
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
		news: make(chan struct{}, 1), under: map[string]int{}, served: map[string]uint64{}}
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
		note.add(w.note)
	}
	f.apart.mu.Unlock()
	if rev, err = f.storeNote(ctx, &note, rev); err != nil {
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

// storeNote stores a note over the present one, with what that one says is owed.
func (f *folder) storeNote(ctx context.Context, note *Aside, rev uint64) (uint64, error) {
	key := events.AsideKey(note.Ref)
	for {
		body, err := note.encode()
		if err != nil {
			return 0, err
		}
		at, err := f.bus.KV.Store(ctx, kv.State, key, body, rev)
		if !errors.Is(err, bus.ErrLostRace) {
			return at, err
		}
		e, err := f.bus.KV.Load(ctx, kv.State, key)
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return 0, err
		}
		if rev = e.Rev; err == nil {
			if was, ok := readNote(note.Ref, e); ok {
				note.add(was)
			}
		}
	}
}

// add adds what another note of the session says is owed.
func (n *Aside) add(was Aside) {
	n.From, n.To, n.Behind = min(n.From, was.From), max(n.To, was.To), n.Behind || was.Behind
	n.Since, n.Failures = was.Since, was.Failures
}

func (n *Aside) encode() ([]byte, error) {
	n.Reason = n.Reason[:min(len(n.Reason), asideReasonMax)]
	body, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("note of %s: %w", n.Ref, err)
	}
	return body, nil
}

// readNote reads the note of a session. ok is false for one that no ledger wrote, or that is damaged.
func readNote(r events.Ref, e kv.Entry) (note Aside, ok bool) {
	err := json.Unmarshal(e.Value, &note)
	return note, err == nil && note.Ref == r
}

// errNote is the reason in place of a note that cannot be read.
var errNote = errors.New("its note cannot be read")

// noteOf reads the note of a session. If it cannot be read, the session is folded and fed again from its first commit:
// the commits that the note was about are acknowledged.
func (f *folder) noteOf(ctx context.Context, r events.Ref, e kv.Entry) (Aside, error) {
	if note, ok := readNote(r, e); ok {
		return note, nil
	}
	head, err := f.bus.Log.Head(ctx, r)
	if err != nil {
		return Aside{}, err
	}
	return Aside{Ref: r, Behind: true, To: head, Reason: errNote.Error(), Since: e.At, Failures: 1}, nil
}

// listNotes calls fn with each note of a session that was set aside.
func (f *folder) listNotes(ctx context.Context, fn func(events.Ref, kv.Entry) error) error {
	err := f.bus.KV.List(ctx, kv.State, events.AsideKeys(), func(e kv.Entry) error {
		r, err := events.ParseAsideKey(e.Key)
		if err != nil {
			// not written by a ledger
			return nil
		}
		return fn(r, e)
	})
	if err != nil {
		return fmt.Errorf("sessions set aside: %w", err)
	}
	return nil
}

// learnAside reads which sessions other processes have set aside, when this process becomes the active one.
func (f *folder) learnAside(ctx context.Context) error {
	f.apart.clear()
	acked, err := f.bus.Consumers.Acked(ctx, Source(f.cfg))
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return err
	}
	err = f.listNotes(ctx, func(r events.Ref, e kv.Entry) error {
		note, err := f.noteOf(ctx, r, e)
		if err != nil {
			return err
		}
		// no note has the deliveries to the process before
		if note.Behind {
			note.To = max(note.To, acked)
		}
		f.apart.mu.Lock()
		defer f.apart.mu.Unlock()
		f.apart.of[r] = &waiting{note: note, rev: e.Rev, last: note.To}
		return nil
	})
	f.apart.notify()
	return err
}

// findNotes adds the notes that this process does not know, once they were found twice at the same revision: a process
// that was the active one before may store a note after this one has learned them, and a note may stand because its
// deletion failed. It returns the unknown notes for the next call, by session.
func (f *folder) findNotes(ctx context.Context, before map[events.Ref]uint64) (map[events.Ref]uint64, error) {
	unknown := map[events.Ref]uint64{}
	err := f.listNotes(ctx, func(r events.Ref, e kv.Entry) error {
		if _, _, known := f.apart.recorded(r); known {
			return nil
		}
		if before[r] != e.Rev {
			unknown[r] = e.Rev
			return nil
		}
		note, err := f.noteOf(ctx, r, e)
		if err != nil {
			return err
		}
		f.apart.mu.Lock()
		defer f.apart.mu.Unlock()
		if f.apart.of[r] == nil && f.active.Load() {
			f.apart.of[r] = &waiting{note: note, rev: e.Rev, last: note.To}
			// its document changes
			f.cache.drop(r)
			f.log.Warn().Str("session", r.String()).Msg("a note of another process: the session is folded apart")
		}
		return nil
	})
	return unknown, err
}

// workApart folds what was set aside, a few sessions at a time, until ctx ends.
func (f *folder) workApart(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	var unknown map[events.Ref]uint64
	readAt := time.Now().Add(f.readNotesEvery)
	for {
		// only schedules attempts
		now := time.Now()
		if f.active.Load() && !readAt.After(now) {
			found, err := f.findNotes(ctx, unknown)
			if err != nil && ctx.Err() == nil {
				f.log.Warn().AnErr("err", err).Msg("notes of sessions set aside were not read: again in a minute")
			}
			unknown, readAt = found, now.Add(f.readNotesEvery)
		}
		next := f.readNotesEvery
		for _, r := range f.apart.due(now, &next) {
			all.Go(func() {
				defer f.apart.leave(r.Harness)
				f.tryApart(ctx, r)
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

// due returns the sessions to try now, as many as there is room for, and shortens next to the next instant. Harnesses
// take turns, and none has all places: a harness with many sessions, or long ones, delays its own.
func (a *apart) due(now time.Time, next *time.Duration) []events.Ref {
	a.mu.Lock()
	defer a.mu.Unlock()
	running := 0
	for _, n := range a.under {
		running += n
	}
	var due []events.Ref
	for ; running < asideAtOnceMax; running++ {
		r, ok := a.first(now, next)
		if !ok {
			break
		}
		a.of[r].busy = true
		a.under[r.Harness]++
		if len(a.served) >= servedMax {
			clear(a.served)
		}
		a.turns++
		a.served[r.Harness] = a.turns
		due = append(due, r)
	}
	return due
}

// first returns the session to try first: of the harness whose turn was longest ago, the one that is due the longest.
func (a *apart) first(now time.Time, next *time.Duration) (first events.Ref, ok bool) {
	for r, w := range a.of {
		switch {
		case w.busy || a.under[r.Harness] >= asideOfOneMax:
			// the end of an attempt is news
		case w.next.After(now):
			*next = min(*next, w.next.Sub(now))
		case !ok || a.served[r.Harness] < a.served[first.Harness],
			a.served[r.Harness] == a.served[first.Harness] && w.next.Before(a.of[first].next):
			first, ok = r, true
		}
	}
	return first, ok
}

// leave ends an attempt.
func (a *apart) leave(harness string) {
	a.mu.Lock()
	if a.under[harness]--; a.under[harness] == 0 {
		delete(a.under, harness)
	}
	a.mu.Unlock()
	a.notify()
}

// tryApart folds one session that was set aside, and schedules another attempt if that fails.
func (f *folder) tryApart(ctx context.Context, r events.Ref) {
	if err := f.comeBack(ctx, r); err != nil && ctx.Err() == nil {
		f.retry(ctx, r, err)
	}
}

// retry schedules another attempt, and stores why the last one failed.
func (f *folder) retry(ctx context.Context, r events.Ref, err error) {
	f.apart.mu.Lock()
	w := f.apart.of[r]
	if w == nil {
		f.apart.mu.Unlock()
		return
	}
	w.busy = false
	w.note.Reason = err.Error()
	if w.note.Failures++; errors.Is(err, errBusy) {
		// the document was made from the log
		w.note.Failures = 0
	}
	pause := asidePauseMax
	if n := max(w.note.Failures-1, 0); n < 6 {
		pause = asidePauseMin << n
	}
	w.next = time.Now().Add(pause)
	note, rev := w.note, w.rev
	f.apart.mu.Unlock()
	f.log.Warn().Str("session", r.String()).AnErr("err", err).Msg("still set aside")
	body, err := note.encode()
	if err != nil {
		return
	}
	// only over the note that is there: another process may have removed it
	rev, err = f.bus.KV.Store(ctx, kv.State, events.AsideKey(r), body, rev)
	// or an earlier write had an unknown outcome
	if errors.Is(err, bus.ErrLostRace) {
		var e kv.Entry
		e, err = f.bus.KV.Load(ctx, kv.State, events.AsideKey(r))
		rev = e.Rev
	}
	if err != nil {
		return
	}
	f.apart.mu.Lock()
	defer f.apart.mu.Unlock()
	if w := f.apart.of[r]; w != nil {
		w.rev = rev
	}
}
