package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Headings of the acts.
var headings = map[string]string{
	actCrash:   "SIGKILL: an agent dies while it works",
	actPause:   "SIGSTOP: an agent freezes for longer than its lease, and wakes",
	actRestart: "Restart: an agent dies and is started again at once",
	actSteady:  "SIGTERM: an agent that has lived through all of this leaves",
}

// onStage starts an agent and waits until its work is in the session's document.
func (d *drill) onStage(ctx context.Context, act, role string, ok func(*session.State) bool) (*child, error) {
	c, err := d.start(act, role)
	if err != nil {
		return nil, err
	}
	if _, _, err = d.world.until(ctx, act, "the agent at work", startMaxS*time.Second, ok); err != nil {
		select {
		// The agent may have reported why.
		case r := <-c.reports:
			return nil, fmt.Errorf("act %s: %s %s: %w", act, r.Word, r.Text, err)
		default:
			return nil, fmt.Errorf("act %s: %w: do the services run? (`holdfast doctor`)", act, err)
		}
	}
	return c, nil
}

// crash kills an agent that has calls, prompts and a turn open, answers the kept prompt, and starts the next process.
func (d *drill) crash(ctx context.Context) error {
	d.report(actCrash, "", "%s", headings[actCrash])
	c, err := d.onStage(ctx, actCrash, roleWorks,
		func(s *session.State) bool { return len(s.PendingPrompts()) == 2 && len(s.Tools) == 3 })
	if err != nil {
		return err
	}
	if err := c.signal(syscall.SIGKILL, "no time to say anything"); err != nil {
		return err
	}
	_, took, err := d.world.until(ctx, actCrash, "orphaned", d.Within+soonMax,
		func(s *session.State) bool { return !s.Owned })
	d.inTime(actCrash, "a killed agent is noticed", "orphaned", "orphaned", took, d.Within, err)
	if err != nil {
		return ctx.Err()
	}
	interrupted := func(s *session.State) bool {
		return ended(s, session.EntityTool, callCompile, session.OutcomeInterrupted, events.ReasonOwnerLost) &&
			ended(s, session.EntityTool, callDeploy, session.OutcomeInterrupted, events.ReasonOwnerLost)
	}
	s, more, err := d.world.until(ctx, actCrash, "calls closed", soonMax, interrupted)
	d.inTime(actCrash, "its calls are closed", "interrupted", "interrupted", took+more, d.Within, err)
	if err != nil {
		return ctx.Err()
	}
	expired := ended(s, session.EntityPrompt, promptMay, string(session.Expired), events.ReasonOwnerLost)
	d.verify(Verdict{Act: actCrash, Promise: "what only it could use expires", Expected: "expired",
		Seen: seenPrompt(s, promptMay, events.ReasonOwnerLost), TookMS: -1, OK: expired})
	p := s.Prompts[promptWhich]
	kept := p.Awaits() && s.Tools[callAsk] != nil && s.Phase == session.Waiting
	d.verify(Verdict{Act: actCrash, Promise: "a question to a person is kept", Expected: OutcomeKept,
		Seen: seenPrompt(s, promptWhich, reasonCanAnswer), TookMS: -1, OK: kept})
	d.refused(ctx, actCrash, promptMay, "once", "a late answer is refused", http.StatusGone)
	if err := d.answerKept(ctx); err != nil {
		return err
	}
	return d.resume(ctx)
}

// seenPrompt returns the status of a prompt as a text, with its reason if it is not the expected one.
func seenPrompt(s *session.State, id, expected string) string {
	b := Whereabouts(s, nil, session.EntityPrompt, id)
	if b.Reason == expected || b.Reason == "" {
		return b.Outcome
	}
	return b.Outcome + " (" + b.Reason + ")"
}

// answer answers a prompt as a person does.
func (d *drill) answer(ctx context.Context, act, prompt, question, option string) (seq uint64, err error) {
	d.report(act, whoDrill, "answers %q to %s", option, prompt)
	reply, err := rpc.Call(ctx, d.bus.Services, request.LedgerAnswer,
		request.Answer{Ref: events.Ref{Harness: d.names[act], Session: act}, Prompt: prompt,
			Answers: []events.Answer{{Question: question, Selected: []string{option}}}, By: person})
	return reply.Seq, err
}

// refused returns the verdict about an answer that must be refused.
func (d *drill) refused(ctx context.Context, act, prompt, option, promise string, code int) {
	question := "target"
	if prompt == promptMay && act == actCrash {
		question = events.PermissionQuestion
	}
	_, err := d.answer(ctx, act, prompt, question, option)
	v := Verdict{Act: act, Promise: promise, Expected: fmt.Sprintf("refused, %d", code), Seen: "accepted", TookMS: -1}
	if refusal, ok := errors.AsType[*events.Refusal](err); ok {
		v.Seen, v.OK = fmt.Sprintf("refused, %d", refusal.Code), refusal.Code == code
		d.report(act, whoHoldfast, "refuses that with %d: %s", refusal.Code, refusal.Message)
	} else if err != nil {
		v.Seen = err.Error()
	}
	d.verify(v)
}

// answerKept answers the kept question of the dead agent.
func (d *drill) answerKept(ctx context.Context) error {
	began := time.Now()
	seq, err := d.answer(ctx, actCrash, promptWhich, "target", optionYes)
	took := time.Since(began)
	var seen string
	whole := false
	if err == nil {
		seen, whole, err = d.together(ctx, seq)
	}
	const expected = "one commit"
	if whole {
		seen = expected
	}
	d.inTime(actCrash, "an answer after death counts", expected, seen, took, soonMax, err)
	if d.verdicts[len(d.verdicts)-1].OK = whole && err == nil && took <= soonMax; !whole {
		return ctx.Err()
	}
	d.refused(ctx, actCrash, promptWhich, optionNo, "a second answer is refused",
		http.StatusConflict)
	return ctx.Err()
}

// together reports whether one commit answers the prompt, closes the call and requests a turn.
func (d *drill) together(ctx context.Context, seq uint64) (seen string, whole bool, err error) {
	c, err := d.bus.Log.Commit(ctx, seq)
	if err != nil {
		return "", false, err
	}
	answered, closed, wanted := false, false, false
	for i := range c.Events {
		switch f := c.Events[i].Fact.(type) {
		case events.PromptAnswered:
			answered = f.Prompt == promptWhich
		case events.ToolCompleted:
			closed = f.Call == callAsk && f.Synthetic
		case events.TurnRequested:
			wanted = f.Cause == events.CauseAnswer
		}
		seen += fmt.Sprintf("%s ", c.Events[i].Kind)
	}
	return seen, answered && closed && wanted, nil
}

// resume starts the dead agent again: it takes the turn that the answer requested, once.
func (d *drill) resume(ctx context.Context) error {
	c, err := d.start(actCrash, roleResumes)
	if err != nil {
		return err
	}
	r, took, err := c.expect(ctx, wordTook, startMaxS*time.Second)
	d.inTime(actCrash, "the next agent takes the turn", wordTook, r.Word, took, startMaxS*time.Second, err)
	if err != nil {
		return ctx.Err()
	}
	s, _, err := d.world.until(ctx, actCrash, "turn completed", soonMax, func(s *session.State) bool {
		return s.Turn == nil && s.Pending.Turn == nil && s.LastTurn != nil && s.LastTurn.Cause == events.CauseAnswer
	})
	if err != nil {
		d.inTime(actCrash, "that turn is completed", "completed", "", 0, soonMax, err)
		return ctx.Err()
	}
	started, err := d.starts(ctx, s)
	d.verify(Verdict{Act: actCrash, Promise: "exactly once", Expected: "1 start",
		Seen:   terminal.Plural(started, "start"),
		TookMS: -1, OK: started == 1 && err == nil})
	return d.dismiss(ctx, c)
}

// starts returns the number of turns in the log that were started because of an answer.
func (d *drill) starts(ctx context.Context, s *session.State) (n int, err error) {
	commits, err := d.bus.Log.Read(ctx, s.Ref(), 0)
	for i := range commits {
		for j := range commits[i].Events {
			if f, ok := commits[i].Events[j].Fact.(events.TurnStarted); ok && f.Cause == events.CauseAnswer {
				n++
			}
		}
	}
	return n, err
}

// dismiss asks an agent to leave and waits until its process has ended.
func (d *drill) dismiss(ctx context.Context, c *child) error {
	if err := c.leave("thank you"); err != nil {
		return err
	}
	return c.awaitGone(ctx)
}

// awaitGone waits until the process has ended by itself. A process that takes too long is ended with the drill.
func (c *child) awaitGone(ctx context.Context) error {
	late := time.NewTimer(endMaxS * time.Second)
	defer late.Stop()
	select {
	case <-c.gone:
	case <-late.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// pause suspends an agent until it is fenced, and resumes its process.
func (d *drill) pause(ctx context.Context) error {
	d.report(actPause, "", "%s", headings[actPause])
	if !canSuspend {
		d.report(actPause, "", "left out: this system has no signals to suspend a process")
		return nil
	}
	c, err := d.onStage(ctx, actPause, roleRuns, func(s *session.State) bool { return len(s.Tools) == 1 })
	if err != nil {
		return err
	}
	if _, _, err := c.expect(ctx, wordReady, startMaxS*time.Second); err != nil {
		return err
	}
	if err := c.signal(suspendProcess, "as when a machine sleeps"); err != nil {
		return err
	}
	fence, took, err := d.world.until(ctx, actPause, "fenced", d.Within+soonMax, func(s *session.State) bool {
		return !s.Owned && ended(s, session.EntityTool, callCompile, session.OutcomeInterrupted, events.ReasonOwnerLost)
	})
	d.inTime(actPause, "a frozen agent is fenced", "orphaned", "orphaned", took, d.Within,
		err)
	if err := errors.Join(c.send(lineFinish), c.signal(resumeProcess,
		"it wants to say that its call is complete")); err != nil {
		return err
	}
	if fence == nil {
		return ctx.Err()
	}
	r, took, err := c.expect(ctx, wordRefused, d.Within)
	if !r.Fenced && err == nil {
		err = errors.New("refused, but not as fenced: " + r.Text)
	}
	d.inTime(actPause, "awake, it finds out and stops", "fenced", "fenced", took, d.Within, err)
	if err := c.awaitGone(ctx); err != nil {
		return err
	}
	return d.nothingCounts(ctx, fence)
}

// nothingCounts returns the verdict about the changes of a resumed process after the fence.
func (d *drill) nothingCounts(ctx context.Context, fence *session.State) error {
	v := Verdict{Act: actPause, Promise: "nothing it says counts", Expected: session.OutcomeInterrupted, TookMS: -1}
	commits, err := d.bus.Log.Read(ctx, fence.Ref(), 0)
	s := session.New(fence.Ref())
	slipped := 0
	for i := range commits {
		s.Fold(&commits[i])
		if commits[i].Seq > fence.Seq && commits[i].Writer == events.WriterHarness {
			slipped++
		}
	}
	call := Whereabouts(s, nil, session.EntityTool, callCompile)
	if v.Seen = call.Outcome; slipped > 0 {
		v.Seen += ", then " + terminal.Plural(slipped, "commit")
	}
	v.OK = err == nil && call.Outcome == session.OutcomeInterrupted && call.Ending.Late == nil &&
		s.Epoch == fence.Epoch && !s.Owned
	d.verify(v)
	return err
}

// restart kills an agent that waits for an answer and starts it again at once.
func (d *drill) restart(ctx context.Context) error {
	d.report(actRestart, "", "%s", headings[actRestart])
	c, err := d.onStage(ctx, actRestart, roleAsks,
		func(s *session.State) bool { return len(s.PendingPrompts()) == 1 && len(s.Tools) == 2 })
	if err != nil {
		return err
	}
	before, _, err := d.world.until(ctx, actRestart, "asked", soonMax, func(*session.State) bool { return true })
	if err != nil {
		return err
	}
	if err := c.signal(syscall.SIGKILL, "while it waits for your answer"); err != nil {
		return err
	}
	next, err := d.start(actRestart, roleAdopts)
	if err != nil {
		return err
	}
	s, took, err := d.world.until(ctx, actRestart, "taken over", startMaxS*time.Second,
		func(s *session.State) bool { return s.Owned && s.Epoch > before.Epoch })
	if err == nil {
		p, was := s.Prompts[promptMay], before.Prompts[promptMay]
		if !p.Awaits() || p.Epoch != s.Epoch || !p.Since.Equal(was.Since) {
			err = errors.New(seenPrompt(s, promptMay, ""))
		}
	}
	d.inTime(actRestart, "a restart keeps its question", "the same", "the same", took,
		startMaxS*time.Second, err)
	if s == nil {
		return ctx.Err()
	}
	_, took, err = d.world.until(ctx, actRestart, "closed", d.Within, func(s *session.State) bool {
		return ended(s, session.EntityTool, callCompile, session.OutcomeInterrupted, events.ReasonOwnerLost)
	})
	d.inTime(actRestart, "what it leaves is closed", "interrupted", "interrupted", took, soonMax, err)
	return d.answerAdopted(ctx, next)
}

// answerAdopted answers the adopted question.
func (d *drill) answerAdopted(ctx context.Context, c *child) error {
	if _, _, err := c.expect(ctx, wordReady, startMaxS*time.Second); err != nil {
		return err
	}
	began := time.Now()
	_, err := d.answer(ctx, actRestart, promptMay, "target", optionYes)
	var r Report
	if err == nil {
		r, _, err = c.expect(ctx, wordAnswered, startMaxS*time.Second)
	}
	if err == nil && r.Text != optionYes {
		err = errors.New(r.Text)
	}
	d.inTime(actRestart, "the answer reaches the new one", optionYes, r.Text, time.Since(began), soonMax, err)
	return errors.Join(ctx.Err(), c.awaitGone(ctx))
}

// enterSteady starts the agent that must not be affected.
func (d *drill) enterSteady(ctx context.Context) (*child, error) {
	d.report(actSteady, "", "An agent that shall live")
	return d.onStage(ctx, actSteady, roleAsks,
		func(s *session.State) bool { return len(s.PendingPrompts()) == 1 && len(s.Tools) == 2 })
}

// leaveSteady checks that the agent was not affected, and asks it to leave.
func (d *drill) leaveSteady(ctx context.Context, c *child) error {
	d.report(actSteady, "", "%s", headings[actSteady])
	s, _, err := d.world.until(ctx, actSteady, "there", soonMax, func(*session.State) bool { return true })
	if err != nil {
		return err
	}
	alone := s.Owned && s.Epoch == 1 && len(s.Tools) == 2 && len(s.PendingPrompts()) == 1
	d.verify(Verdict{Act: actSteady, Promise: "a living agent is left alone", Expected: "3 open, epoch 1",
		Seen:   fmt.Sprintf("%d open, epoch %d", len(s.Tools)+len(s.PendingPrompts()), s.Epoch),
		TookMS: -1, OK: alone})
	if err := c.leave("please leave"); err != nil {
		return err
	}
	s, took, err := d.world.until(ctx, actSteady, "released and closed", d.Within,
		func(s *session.State) bool { return !s.Owned && s.Turn == nil })
	d.inTime(actSteady, "a clean end waits for no grace", "closed", "closed", took, d.TTL,
		err)
	if err != nil {
		return ctx.Err()
	}
	withdrawn := ended(s, session.EntityPrompt, promptMay, string(session.Withdrawn), events.ReasonShutdown) &&
		s.Left == session.LeftReleased
	d.verify(Verdict{Act: actSteady, Promise: "a shutdown withdraws questions", Expected: "withdrawn",
		Seen: seenPrompt(s, promptMay, events.ReasonShutdown), TookMS: -1, OK: withdrawn})
	if err := c.awaitGone(ctx); err != nil {
		return err
	}
	_, err = d.bus.KV.Load(ctx, kv.Leases, events.HarnessLeaseKey(s.Harness, s.Incarnation))
	gone := errors.Is(err, bus.ErrNotFound)
	d.verify(Verdict{Act: actSteady, Promise: "it gives its lease back", Expected: "gone",
		Seen: map[bool]string{true: "gone", false: "there"}[gone], TookMS: -1, OK: gone})
	return nil
}
