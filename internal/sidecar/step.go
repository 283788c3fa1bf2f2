package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/harness"
)

// step is a step that runs in the agent. The client's Step waits in its function for the agent.
type step struct {
	end    chan stepEnd  // what the agent says
	done   chan struct{} // closed when the client's Step has returned
	result json.RawMessage
	err    error
}

// stepEnd is what the function of a step returns.
type stepEnd struct {
	result json.RawMessage
	err    error
}

// stepFailed is the error of a function in the agent.
type stepFailed struct{ text string }

// Error implements error.
func (e *stepFailed) Error() string { return e.text }

// stepBegin begins a step: it replies when the function is to run, or when it is not.
func (a *agent) stepBegin(ctx context.Context, p StepBegin) (StepBegun, error) {
	j, err := a.job(p.Session, p.Turn)
	if err != nil {
		return StepBegun{}, err
	}
	options := []harness.StepOption{harness.StepInput(given(p.Input))}
	if p.Idempotent {
		options = append(options, harness.Idempotent())
	}
	// The step outlives this request, which can be cancelled until the function is to run.
	run, cancel := context.WithCancelCause(a.ctx)
	within, release := j.within(run)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	s := &step{end: make(chan stepEnd, 1), done: make(chan struct{})}
	begun := make(chan string, 1)
	go func() {
		defer cancel(nil)
		defer release()
		defer close(s.done)
		s.result, s.err = harness.Step(within, j.t, p.Name, func(context.Context) (json.RawMessage, error) {
			stop()
			id := a.addStep(s)
			defer a.dropStep(id)
			begun <- id
			select {
			case e := <-s.end:
				return e.result, e.err
			case <-a.gone:
				return nil, ErrGone
			}
		}, options...)
	}()
	select {
	case id := <-begun:
		return StepBegun{Run: true, Step: id}, nil
	case <-s.done:
		stop()
		return StepBegun{Result: s.result}, s.err
	}
}

func (a *agent) addStep(s *step) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun++
	id := strconv.FormatUint(a.begun, 10)
	a.steps[id] = s
	return id
}

func (a *agent) dropStep(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.steps, id)
}

// stepEnd ends a step, and replies when its result is stored. A step ends once.
func (a *agent) stepEnd(_ context.Context, p StepEnd) (Nothing, error) {
	end := stepEnd{result: p.Result}
	if p.Error != nil {
		end.err = &stepFailed{p.Error.Message}
	}
	a.mu.Lock()
	s := a.steps[p.Step]
	delete(a.steps, p.Step)
	a.mu.Unlock()
	if s == nil {
		return Nothing{}, fmt.Errorf("step %s: %w: it does not run", clip(p.Step), harness.ErrUnknown)
	}
	s.end <- end
	<-s.done
	if _, alone := any(s.err).(*stepFailed); alone {
		// its failure is stored: nothing was joined to it
		return Nothing{}, nil
	}
	return Nothing{}, s.err
}
