package opencode

import (
	"context"
	_ "embed" // for RecordedCrash
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// RecordedCrash is a sample recording: an OpenCode server was killed with one command done, one running, and one
// waiting for a permission.
//
//go:embed testdata/h-kill9-parallel.jsonl
var RecordedCrash []byte

// Limits of a replay.
const (
	recoveryMaxS   = 15 // seconds that a new process waits for the recovery of the old one's sessions
	recoveryPollMS = 25 // milliseconds between two polls
	leaveMaxS      = 10 // seconds for a graceful leave
)

// Player plays recordings with real leases: it opens and claims sessions and appends their facts. It ends its process
// where the recorded process died, and starts another one where that restarted.
type Player struct {
	// Connect returns the next process of the harness. Required.
	Connect func(ctx context.Context) (*harness.Harness, error)
	// Fast omits the pauses. Default: each step has its recorded distance from the first one.
	Fast bool
	// If it is set, Play calls it after each step. A step without a session reports the death of a process.
	OnStep func(s Step)
}

// Play plays the steps of one recording. dead is Dead of the recording's [Report]. If dead is set, the process ends as
// if killed and leaves its work open. Otherwise it leaves gracefully. If ctx ends or a step fails, Play leaves
// gracefully and returns the reason. Errors are those of the harness.
func (p *Player) Play(ctx context.Context, steps []Step, dead bool) error {
	if len(steps) == 0 {
		return nil
	}
	h, err := p.begin(ctx)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	l := &play{Player: p, h: h, sessions: map[string]*harness.Session{}, from: steps[0].At, began: time.Now()}
	for i := range steps {
		last := i == len(steps)-1
		if err = l.step(ctx, &steps[i], last); err != nil {
			return l.leave(ctx, fmt.Errorf("replay: step %d of %d: %w", i+1, len(steps), err))
		}
	}
	switch {
	case l.gone:
		return nil
	case dead:
		// the recording ends with the death
		l.die(Step{Restart: true, At: steps[len(steps)-1].At, Died: steps[len(steps)-1].At})
		return nil
	default:
		return l.leave(ctx, nil)
	}
}

// begin connects a process that continues nothing of an earlier one: OpenCode forgets what it held.
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

// play is one recording in progress.
type play struct {
	*Player
	h        *harness.Harness
	sessions map[string]*harness.Session // of this process
	from     time.Time                   // of the first step
	began    time.Time                   // the instant at which the first step was played
	gone     bool                        // the process is dead and has no successor
}

// step plays one step. A restart as the last step is a death without a successor.
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
	l.print(*s)
	return nil
}

// enter opens or claims the session, if the step says so.
func (l *play) enter(ctx context.Context, s *Step) (err error) {
	switch {
	case s.Open != nil:
		o := s.Open
		l.sessions[s.Session], err = l.h.Open(ctx, s.Session,
			harness.OpenOptions{Parent: o.Parent, ParentCall: o.ParentCall, Root: o.Root,
				Title: o.Title, Agent: o.Agent, Model: o.Model, ContextLimit: o.ContextLimit, Policy: o.Policy,
				Native: o.Native})
	case s.Claim, l.sessions[s.Session] == nil:
		l.sessions[s.Session], err = l.h.Claim(ctx, s.Session)
	}
	return err
}

// wait returns when the recorded instant is due.
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
	l.print(Step{Restart: true, At: s.Died, Died: s.Died})
}

func (l *play) print(s Step) {
	if l.OnStep != nil {
		l.OnStep(s)
	}
}

// restart begins the next process. It waits until the sessions of the dead one are recovered, because the recorded
// process held nothing of them either. The wait is bounded, for a cell without a reconciler.
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

// held returns the number of sessions whose documents still show the dead process as owner. A session without a
// document is not folded yet, and counts.
func (l *play) held(ctx context.Context, dead string, lost map[string]*harness.Session) (int, error) {
	// a document that cannot be decoded counts as not recovered
	docs, _, err := l.h.Sessions(ctx)
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

// leave ends the process gracefully, even if ctx has ended, and joins why with the error of leaving.
func (l *play) leave(ctx context.Context, why error) error {
	if l.gone {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveMaxS*time.Second)
	defer cancel()
	if err := l.h.Close(ctx); err != nil && why == nil {
		return fmt.Errorf("replay: %w", err)
	}
	return why
}
