package crash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/child"
)

// Rates and limits of a worker.
const (
	pauseMaxMS  = 60               // between two steps
	askMaxMS    = 2_500            // how long it usually waits for a person
	patientAsks = 25               // percent of questions that it waits for until the turn is over
	turnMax     = 20 * time.Second // for one turn; a broker may be away for a part of it
	deadlineMax = 1_500            // ms until the deadline of a question
	depthMax    = 2                // of sub-agents
	workMax     = 6 * time.Second  // for one Work, after which the next one begins
	callbackMax = time.Second      // for what a callback asks the client
	workSeed    = 1 << 32          // of the agent that runs Work
	stepsMax    = 5                // of a turn
	// of the earlier process's sessions that are continued; the others are left to recovery
	claimPercent = 60
)

// expected are the errors that a harness must handle.
var expected = []error{
	harness.ErrFenced, harness.ErrEnded, harness.ErrUnread, harness.ErrClosedID, harness.ErrUnknown,
	harness.ErrSessionClosed, harness.ErrReleased, harness.ErrOwned,
	harness.ErrLeaseLost, harness.ErrStopped, harness.ErrPending, harness.ErrUnreachable, harness.ErrClosed,
	context.Canceled, context.DeadlineExceeded,
}

// worker is one process of a harness: it works in several sessions at once, and records what was acknowledged.
type worker struct {
	h    *harness.Harness
	s    settings
	j    *journal
	rest <-chan struct{}
	made atomic.Uint64 // number of ids made
	pids string        // makes ids unique over all processes
}

// agent drives one session, with its own random source.
type agent struct {
	*worker
	rnd   *rand.Rand
	depth int
}

func playHarness(ctx context.Context, s settings, log *slog.Logger, rest <-chan struct{}) error {
	j, err := openJournal(s.Journal, s.Name)
	if err != nil {
		return err
	}
	h, err := harness.Connect(ctx, harness.Config{ID: s.ID, URL: s.URL, Pool: s.Pool, TTL: leaseTTL, Log: log})
	if err != nil {
		return err
	}
	w := &worker{h: h, s: s, j: j, rest: rest, pids: fmt.Sprintf("%s-%s", s.Name, h.Incarnation())}
	first := w.agent(0)
	owned := first.resume(ctx)
	if err := h.Ready(ctx); err != nil {
		w.unexpected("ready", err)
	}
	if err := child.Print(lineReady); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { w.agent(workSeed).works(ctx) })
	var drivers sync.WaitGroup
	for i := range s.Sessions {
		a := w.agent(uint64(i) + 1)
		var mine *harness.Session
		if i < len(owned) {
			mine = owned[i]
		}
		drivers.Go(func() { a.drive(ctx, mine) })
	}
	drivers.Wait()
	if err := child.Print(lineIdle); err != nil {
		return err
	}
	first.endTurns(ctx)
	all.Wait()
	return nil
}

// works runs Work until ctx ends. While the world does not rest, each Work ends after a while, and the next one begins.
func (a *agent) works(ctx context.Context) {
	for ctx.Err() == nil {
		short, cancel := context.WithCancel(ctx)
		again := time.AfterFunc(time.Duration(a.rnd.Int64N(int64(workMax))), func() {
			if !a.resting() {
				cancel()
			}
		})
		err := a.h.Work(short, harness.Worker{Turn: a.asked, Compact: a.compact, Options: a.options})
		again.Stop()
		cancel()
		if err != nil {
			a.unexpected("work", err)
			return
		}
	}
}

// options calls the client from a callback.
func (w *worker) options(s *harness.Session, t session.WorkTurn) any {
	ctx, cancel := context.WithTimeout(s.Context(), callbackMax)
	defer cancel()
	s.Progress()
	if _, err := s.Answer(ctx, "none"); err == nil {
		w.unexpected("options", errors.New("a question that was never asked has an answer"))
	}
	return map[string]string{"message": t.Message, "epoch": strconv.FormatUint(s.State().Epoch, 10)}
}

// endTurns ends the open turns of this process's sessions, until ctx ends.
func (a *agent) endTurns(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		all, _, err := a.h.Sessions(ctx)
		if err != nil {
			a.unexpected("sessions", err)
		}
		for _, st := range all {
			if !st.Owned || st.Turn == nil || st.Incarnation != a.h.Incarnation() {
				continue
			}
			// the process owns it already
			s, err := a.h.Claim(ctx, st.Session)
			if err != nil {
				a.unexpected("claim", err)
			} else if t := s.OpenTurn(); t != nil {
				a.acked(s, t.Complete(ctx, "stop"), events.TurnCompleted{Turn: t.ID()})
			}
		}
	}
}

func (w *worker) agent(n uint64) *agent {
	return &agent{worker: w, rnd: rand.New(rand.NewPCG(w.s.Seed, n))}
}

// resting reports whether no new work may begin.
func (w *worker) resting() bool {
	select {
	case <-w.rest:
		return true
	default:
		return false
	}
}

// unexpected records an unexpected error.
func (w *worker) unexpected(what string, err error) {
	for _, e := range expected {
		if errors.Is(err, e) {
			return
		}
	}
	w.j.write(note{Wrong: what + ": " + err.Error()})
}

// acked records an acknowledged fact, or judges the error. It reports whether the fact was acknowledged.
func (a *agent) acked(s *harness.Session, err error, facts ...events.Fact) bool {
	if err != nil {
		a.unexpected(string(facts[0].Kind()), err)
		return false
	}
	for _, f := range facts {
		a.j.write(note{Ref: a.ref(s), Kind: string(f.Kind()), ID: f.Subject(), Seq: s.State().Seq})
	}
	return true
}

func (w *worker) ref(s *harness.Session) events.Ref {
	return events.Ref{Harness: w.s.ID, Session: s.ID()}
}

// id returns a new id.
func (w *worker) id(kind string) string { return fmt.Sprintf("%s-%s-%d", kind, w.pids, w.made.Add(1)) }

func (a *agent) chance(percent int) bool { return a.rnd.IntN(100) < percent }

// pause waits for a short random time, or until ctx ends.
func (a *agent) pause(ctx context.Context) {
	t := time.NewTimer(time.Duration(a.rnd.IntN(pauseMaxMS*1000)) * time.Microsecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// resume continues some sessions of the earlier process, and adopts some of their open items.
func (a *agent) resume(ctx context.Context) (owned []*harness.Session) {
	before, _, err := a.h.Sessions(ctx)
	if err != nil {
		a.unexpected("sessions", err)
		return nil
	}
	for _, st := range before {
		if st.Closed != nil || !a.chance(claimPercent) || len(owned) >= a.s.Sessions {
			continue
		}
		s, err := a.h.Claim(ctx, st.Session, a.adopts(st))
		if err != nil {
			a.unexpected("claim", err)
			continue
		}
		a.owns(s)
		owned = append(owned, s)
	}
	return owned
}

// adopts names some of the open items of a session. Nothing asks again for the prompts among them.
func (a *agent) adopts(st *session.State) (adopt harness.Adopt) {
	adopt.Turn = a.chance(50)
	for _, id := range slices.Sorted(maps.Keys(st.Prompts)) {
		if a.chance(50) {
			adopt.Prompts = append(adopt.Prompts, harness.Prompt{ID: id})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(st.Tools)) {
		if a.chance(50) {
			adopt.Calls = append(adopt.Calls, id)
		}
	}
	return adopt
}

// owns records that this process owns a session: opened, claimed, or owned already.
func (a *agent) owns(s *harness.Session) {
	st := s.State()
	a.j.write(note{Ref: a.ref(s), Kind: kindOwned, ID: st.Incarnation, Seq: st.Seq})
}

// drive works in one session after the other until it is time to rest.
func (a *agent) drive(ctx context.Context, s *harness.Session) {
	for ctx.Err() == nil && !a.resting() {
		if s == nil || s.Context().Err() != nil {
			s = a.another(ctx, s)
		}
		if s != nil {
			a.turn(ctx, s)
		}
		switch {
		case s == nil || ctx.Err() != nil:
		case a.chance(4):
			a.acked(s, s.Close(ctx, "finished"), events.SessionClosed{})
			s = nil
		case a.chance(2):
			a.acked(s, s.Release(ctx, "enough"), events.SessionReleased{})
			s = nil
		}
		a.pause(ctx)
	}
}

// another returns the lost session, claimed again, or a new one; nil if both fail.
func (a *agent) another(ctx context.Context, lost *harness.Session) *harness.Session {
	short, cancel := context.WithTimeout(ctx, turnMax)
	defer cancel()
	if lost != nil && a.chance(50) {
		s, err := a.h.Claim(short, lost.ID(), a.adopts(lost.State()))
		if err != nil {
			a.unexpected("claim", err)
			return nil
		}
		a.owns(s)
		return s
	}
	s, err := a.h.Open(short, a.id("s"), harness.OpenOptions{Title: "work", Policy: a.policy()})
	if err != nil {
		a.unexpected("open", err)
		return nil
	}
	a.owns(s)
	return s
}

// policy returns limits so small that the run reaches them.
func (a *agent) policy() *events.PolicyPatch {
	p := &events.PolicyPatch{RetryMax: events.Set(1 + a.rnd.IntN(3)), ResumeMax: events.Set(a.rnd.IntN(4))}
	if a.chance(20) {
		p.Resume = events.Set(events.ResumeHold)
	}
	if a.chance(30) {
		p.IdleCompactionAfterS = events.Set(int64(1))
	}
	return p
}

// settled records the settlement that an Ask returned.
func (a *agent) settled(s *harness.Session, prompt string, x harness.Answer) {
	n := note{Ref: a.ref(s), Prompt: prompt, Status: string(x.Status), Received: true, Owner: a.h.Incarnation(),
		At: time.Now()}
	switch {
	case x.Status == session.Answered && len(x.Answers) > 0:
		n.Text = choiceOf(x.Answers)
	case x.Status == session.Rejected:
		n.Text = x.Text
	}
	a.j.write(n)
}

// choiceOf joins the answers to a worker's question into one text.
func choiceOf(answers []events.Answer) string {
	text := ""
	for _, x := range answers {
		for _, label := range x.Selected {
			text += label
		}
		text += x.Text
	}
	return text
}
