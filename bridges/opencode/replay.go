package opencode

import (
	"context"
	_ "embed" // for RecordedCrash
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// RecordedCrash is a recording at hand: an OpenCode server that was killed with one command done, one running, and one
// that waited for a permission.
//
//go:embed testdata/h-kill9-parallel.jsonl
var RecordedCrash []byte

// Limits of a replay.
const (
	recoveryMaxS   = 15 // seconds that a new process waits for what became of the one before it
	recoveryPollMS = 25 // milliseconds between two looks
	leaveMaxS      = 10 // seconds that leaving in good order may take
)

// Player plays recordings through real leases: it opens and claims sessions, appends what was said in them, dies where
// the recorded process died, and starts again where it did.
type Player struct {
	// Connect makes the next process of the harness. Required.
	Connect func(ctx context.Context) (*harness.Harness, error)
	// Fast leaves out the pauses. Default: everything happens as long after the first step as it was recorded.
	Fast bool
	// Told, if given, is called after each step that was played, and, with no session, when a process died.
	Told func(s Step)
}

// Play plays the steps of one recording; dead is its [Report]'s. It ends as the recording ended: with the process gone
// and what it held left open, or having left in good order. When ctx ends, or a step cannot be played, it leaves in
// good order and returns why; errors are those of the harness.
func (p *Player) Play(ctx context.Context, steps []Step, dead bool) error {
	if len(steps) == 0 {
		return nil
	}
	h, err := p.begin(ctx)
	if err != nil {
		return fmt.Errorf("opencode: replay: %w", err)
	}
	l := &play{Player: p, h: h, sessions: map[string]*harness.Session{}, from: steps[0].At, began: time.Now()}
	for i := range steps {
		last := i == len(steps)-1
		if err = l.step(ctx, &steps[i], last); err != nil {
			return l.leave(ctx, fmt.Errorf("opencode: replay: step %d of %d: %w", i+1, len(steps), err))
		}
	}
	switch {
	case l.gone:
		return nil
	case dead: // it was recorded up to the death, not beyond
		l.die(Step{Restart: true, At: steps[len(steps)-1].At, Died: steps[len(steps)-1].At})
		return nil
	default:
		return l.leave(ctx, nil)
	}
}

// begin connects a process that goes on with nothing of an earlier one: OpenCode forgets what it held.
func (p *Player) begin(ctx context.Context) (*harness.Harness, error) {
	h, err := p.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.Ready(ctx); err != nil {
		h.Abandon()
		return nil, err
	}
	return h, nil
}

// play is one recording being played.
type play struct {
	*Player
	h        *harness.Harness
	sessions map[string]*harness.Session // of this process
	from     time.Time                   // of the first step
	began    time.Time                   // when that was played
	gone     bool                        // the process is dead, and there is no other
}

// step does what one step says. A restart as the last step is a death: the new process says nothing.
func (l *play) step(ctx context.Context, s *Step, last bool) error {
	if s.Restart {
		if err := l.wait(ctx, s.Died); err != nil {
			return err
		}
		l.die(*s)
		if last {
			return nil
		}
		return l.restart(ctx, s)
	}
	if err := l.wait(ctx, s.At); err != nil {
		return err
	}
	if err := l.enter(ctx, s); err != nil {
		return fmt.Errorf("session %s: %w", s.Session, err)
	}
	if len(s.Facts) > 0 {
		if err := l.sessions[s.Session].Relay(ctx, s.Facts...); err != nil {
			return err
		}
	}
	l.tell(*s)
	return nil
}

// enter makes the process the session's owner, if the step says so.
func (l *play) enter(ctx context.Context, s *Step) (err error) {
	switch {
	case s.Open != nil:
		o := s.Open
		l.sessions[s.Session], err = l.h.Open(ctx, s.Session,
			harness.Opening{Parent: o.Parent, ParentCall: o.ParentCall, Root: o.Root,
				Title: o.Title, Agent: o.Agent, Model: o.Model, ContextLimit: o.ContextLimit, Policy: o.Policy,
				Native: o.Native})
	case s.Claim, l.sessions[s.Session] == nil:
		l.sessions[s.Session], err = l.h.Claim(ctx, s.Session)
	}
	return err
}

// wait returns when it is time for what was recorded at this instant.
func (l *play) wait(ctx context.Context, at time.Time) error {
	if l.Fast {
		return context.Cause(ctx)
	}
	pause := time.NewTimer(time.Until(l.began.Add(at.Sub(l.from))))
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *play) die(s Step) {
	l.h.Abandon()
	l.gone = true
	l.tell(Step{Restart: true, At: s.Died, Died: s.Died})
}

func (l *play) tell(s Step) {
	if l.Told != nil {
		l.Told(s)
	}
}

// restart has the next process begin, and waits until what the dead one held is recovered: the recorded process had
// nothing of it either. A cell in which nobody recovers is not waited for.
func (l *play) restart(ctx context.Context, s *Step) error {
	if err := l.wait(ctx, s.At); err != nil {
		return err
	}
	dead, lost := l.h.Incarnation(), l.sessions
	h, err := l.begin(ctx)
	if err != nil {
		return err
	}
	l.h, l.gone, l.sessions = h, false, map[string]*harness.Session{}
	poll := time.NewTicker(recoveryPollMS * time.Millisecond)
	defer poll.Stop()
	late := time.NewTimer(recoveryMaxS * time.Second)
	defer late.Stop()
	for {
		held, err := l.held(ctx, dead, lost)
		if err != nil || held == 0 {
			return err
		}
		select {
		case <-poll.C:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// held is how many sessions the stored documents still show as the dead process's. One without a document has not been
// folded yet.
func (l *play) held(ctx context.Context, dead string, lost map[string]*harness.Session) (int, error) {
	docs, _, err := l.h.Sessions(ctx) // a document that cannot be read counts as not recovered yet
	if err != nil {
		return 0, err
	}
	free := 0
	for _, d := range docs {
		if lost[d.Session] != nil && (d.Closed != nil || !d.Owned || d.Incarnation != dead) {
			free++
		}
	}
	return len(lost) - free, nil
}

// leave ends the process in good order, also when ctx has ended, and returns why together with what went wrong in that.
func (l *play) leave(ctx context.Context, why error) error {
	if l.gone {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveMaxS*time.Second)
	defer cancel()
	if err := l.h.Close(ctx); err != nil && why == nil {
		return fmt.Errorf("opencode: replay: %w", err)
	}
	return why
}
