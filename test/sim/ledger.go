package sim

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// stage is where a ledger is in its batch: it can be killed or paused between any two.
type stage int

const (
	fetching stage = iota
	storing
	viewing
	acking
)

// ledger folds in steps. Two of them run; one is pinned, the other may believe that it still is.
type ledger struct {
	w      *world
	n      int
	active bool // believes that it is pinned
	paused bool
	stage  stage
	cursor uint64 // last seq delivered to it
	batch  []*events.Commit
	todo   []*folded
	cache  map[events.Ref]*folded
}

// folded is a session as a ledger holds it.
type folded struct {
	st     *session.State
	before *session.State
	rev    uint64
}

func newLedger(w *world, n int) *ledger {
	return &ledger{w: w, n: n, active: n == w.pinned, cursor: w.ackFloor, cache: map[events.Ref]*folded{}}
}

// trouble: a ledger dies, or is paused and the other takes over, or the paused one wakes, with what it was about to
// write.
func (l *ledger) trouble() {
	other := l.w.ledgers[1-l.n]
	switch {
	case l.paused || other.paused:
		if l.w.chance(8) {
			l.paused, other.paused = false, false
		}
	case l.w.chance(4):
		l.w.report.Kills++
		l.w.takeOver(other.n)
		l.w.ledgers[l.n] = newLedger(l.w, l.n)
		l.w.ledgers[l.n].active = false
	case l.stage == viewing || l.w.chance(4):
		l.paused = true
		l.w.takeOver(other.n)
	}
}

// takeOver pins a ledger: it forgets what it knew and begins at the acknowledged floor.
func (w *world) takeOver(n int) {
	w.pinned = n
	w.ledgers[n] = newLedger(w, n)
	w.ledgers[n].active = true
}

const batchMax = 8

func (l *ledger) step() {
	if l.paused || l.w.away || !l.active {
		return
	}
	switch l.stage {
	case fetching:
		l.fetch()
	case storing:
		l.store()
	case viewing:
		l.views()
	case acking:
		l.ack()
	}
}

// fetch takes what comes next; now and then something is delivered again.
func (l *ledger) fetch() {
	if l.n != l.w.pinned {
		// it hears that it is not pinned any more
		l.active = false
		return
	}
	from := l.cursor
	if l.w.chance(15) && from > l.w.ackFloor {
		from = l.w.ackFloor
	}
	end := min(from+uint64(1+l.w.rng.IntN(batchMax)), uint64(len(l.w.log.commits)))
	if from >= end {
		return
	}
	l.batch = nil
	for seq := from; seq < end; seq++ {
		l.batch = append(l.batch, &l.w.log.commits[seq])
	}
	l.cursor = max(l.cursor, end)
	if l.w.cfg.Bug == AckBeforeStore {
		l.w.ackFloor = max(l.w.ackFloor, l.cursor)
	}
	l.stage = storing
}

// store folds the batch and stores a document a session, against the revision it came from.
func (l *ledger) store() {
	touched := map[events.Ref]*folded{}
	l.todo = nil
	for _, c := range l.batch {
		f := touched[c.Ref]
		if f == nil {
			f = l.load(c.Ref)
			touched[c.Ref] = f
			l.todo = append(l.todo, f)
		}
		seq := f.st.Seq
		res := l.w.cfg.Bug.Fold(f.st, c)
		if l.w.cfg.Bug == ParkedKeepsSeq && len(res.Parked) > 0 {
			f.st.Seq = seq
		}
	}
	for _, f := range l.todo {
		r := f.st.Ref()
		stored := l.w.docs[r]
		if stored != nil && stored.rev != f.rev || stored == nil && f.rev != 0 {
			l.again()
			return
		}
		body, err := f.st.Encode()
		if err != nil {
			l.w.fail("a state does not encode: %v", err)
			return
		}
		l.w.docs[r] = &doc{bytes: body, rev: f.rev + 1, parent: f.st.Parent, incarnation: f.st.Incarnation,
			owned: f.st.Owned, asks: len(f.st.PendingPrompts()) > 0, rare: rare(f.st)}
		f.rev++
		l.cache[r] = f
	}
	l.stage = viewing
}

// again handles a lost race: the cache is dropped, and the messages are delivered again.
func (l *ledger) again() {
	l.cache, l.cursor, l.stage = map[events.Ref]*folded{}, l.w.ackFloor, fetching
}

func (l *ledger) load(r events.Ref) *folded {
	f := l.cache[r]
	if f == nil {
		f = &folded{st: session.New(r)}
		if d := l.w.docs[r]; d != nil {
			f.st, f.rev = d.state(), d.rev
		}
		f.before = nil
		return f
	}
	f.before = f.st.ViewClone()
	return f
}

// views writes what may have changed, unless the document has moved on since.
func (l *ledger) views() {
	for _, f := range l.todo {
		if d := l.w.docs[f.st.Ref()]; d.rev != f.rev && l.w.cfg.Bug != ViewUnguarded {
			l.again()
			return
		}
		prompts, work := f.st.BlockerPrompts(time.Time{}), true
		if f.before != nil {
			prompts, work = session.BlockersChanged(f.before, f.st), session.WorkChanged(f.before, f.st)
		}
		for _, id := range prompts {
			l.w.views[f.st.BlockerKey(id)] = &view{l.w.renderBlocker(f.st, id), f.st.Ref()}
		}
		if work {
			l.w.views[events.WorkKey(f.st.Ref())] = &view{l.w.renderWork(f.st), f.st.Ref()}
		}
	}
	l.stage = acking
}

func (l *ledger) ack() {
	if l.n == l.w.pinned {
		l.w.ackFloor = max(l.w.ackFloor, l.batch[len(l.batch)-1].Seq)
	}
	l.stage = fetching
}

func (w *world) renderBlocker(st *session.State, id string) string {
	b, err := st.Blocker(id, w.log.source)
	if err != nil || b == nil {
		w.fail("view of %s: %v", id, err)
		return ""
	}
	return render(b)
}

// renderWork is "" when there is nothing to do. Where in the log it was rendered is no part of what it says.
func (w *world) renderWork(st *session.State) string {
	x, err := st.Work(w.log.source)
	if err != nil {
		w.fail("work of %s: %v", st.Ref(), err)
	}
	if x == nil {
		return ""
	}
	x.Seq = 0
	return render(x)
}

func render(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sim: a view does not encode: " + err.Error())
	}
	return string(b)
}
