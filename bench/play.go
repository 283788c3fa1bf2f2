package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

const (
	agentID    = "agent"
	warmS      = 2 // seconds at the start that are not measured
	openAtOnce = 64
)

// Lines that an agent prints.
const (
	lineWarm   = "warm"   // the measurement begins
	lineCool   = "cool"   // the measurement has ended
	lineResult = "result" // a tally in JSON
)

// tally is what an agent has measured after the warm-up.
type tally struct {
	Count   int       `json:"count"`     // rounds, or turns
	Seconds float64   `json:"seconds"`   // of the measurement
	MS      []float64 `json:"answer_ms"` // of each answer: from the person's request to the return of Ask
}

var yesNo = []events.Question{{ID: "q", Question: "Go on?", Options: []events.Option{{Label: "yes"}, {Label: "no"}},
	Custom: true}}

// asked is an open prompt.
type asked struct {
	ref    events.Ref
	prompt string
}

// postAnswer answers a prompt. The answer has the instant at which it was given, for the process that asked.
func postAnswer(ctx context.Context, b *bus.Bus, a asked) error {
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	return b.Services.Request(ctx, ledger.Name, "answer", request.Answer{Ref: a.ref, Prompt: a.prompt, By: "ada",
		Answers: []events.Answer{{Question: "q", Text: now}}}, nil)
}

// playPerson watches the people's view and answers each prompt as soon as it is there, with as many requests at once
// as are expected to be open.
func playPerson(ctx context.Context) error {
	b, err := bus.Open(ctx, bus.Config{URL: os.Getenv(listenEnv)})
	if err != nil {
		return err
	}
	defer b.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	open := make(chan asked, count())
	for range count() {
		go func() {
			for a := range open {
				if err := postAnswer(ctx, b, a); err != nil {
					stop(fmt.Errorf("answer %s of %s: %w", a.prompt, a.ref, err))
				}
			}
		}()
	}
	err = b.KV.Watch(ctx, kv.State, []string{events.BlockerKeys(agentID, "")}, func(u kv.Update) error {
		if u.Ready {
			fmt.Println("ready")
			return nil
		}
		if u.Deleted {
			return nil
		}
		var entry session.Blocker
		if err := json.Unmarshal(u.Value, &entry); err != nil {
			return err
		}
		if entry.Status == session.Awaiting {
			select {
			case open <- asked{events.Ref{Harness: entry.Harness, Session: entry.Session}, entry.Prompt}:
			case <-ctx.Done():
			}
		}
		return nil
	})
	return errors.Join(err, context.Cause(ctx))
}

// worker is a session of an agent: do is one round, or one turn, and returns how long its answer took.
type worker struct {
	do func(ctx context.Context, k int) (time.Duration, error)
}

// playAgent works in many sessions at once, in rounds or in turns, and prints a [tally].
func playAgent(ctx context.Context, begin func(context.Context, *harness.Session) (worker, error)) error {
	long, err := time.ParseDuration(os.Getenv(longEnv))
	if err != nil {
		return err
	}
	h, err := harness.Connect(ctx, harness.Config{ID: agentID, URL: os.Getenv(listenEnv)})
	if err != nil {
		return err
	}
	workers, err := openWorkers(ctx, h, begin)
	if err != nil {
		return err
	}
	if err := h.Ready(ctx); err != nil {
		return err
	}
	t, err := measure(ctx, workers, long)
	if err != nil {
		return err
	}
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	fmt.Println(lineResult, string(body))
	return h.Close(ctx)
}

// openWorkers opens the sessions, several at once.
func openWorkers(ctx context.Context, h *harness.Harness,
	begin func(context.Context, *harness.Session) (worker, error)) ([]worker, error) {
	workers := make([]worker, count())
	errs := make([]error, len(workers))
	var group errgroup.Group
	group.SetLimit(openAtOnce)
	for i := range workers {
		group.Go(func() error {
			s, err := h.Open(ctx, fmt.Sprintf("s%d", i), harness.OpenOptions{})
			if err == nil {
				workers[i], err = begin(ctx, s)
			}
			errs[i] = err
			return nil
		})
	}
	// errs has the errors of all
	_ = group.Wait()
	return workers, errors.Join(errs...)
}

// measure runs all workers for a time. It does not count rounds that end during the warm-up or afterwards.
func measure(ctx context.Context, workers []worker, long time.Duration) (tally, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var (
		wg sync.WaitGroup
		mu sync.Mutex
		t  tally
		// 0 warm-up, 1 measured, 2 over
		state atomic.Int32
	)
	for _, w := range workers {
		wg.Go(func() {
			for k := 0; state.Load() < 2; k++ {
				took, err := w.do(ctx, k)
				if err != nil {
					stop(err)
					return
				}
				if state.Load() == 1 {
					mu.Lock()
					t.Count, t.MS = t.Count+1, append(t.MS, float64(took.Microseconds())/1000)
					mu.Unlock()
				}
			}
		})
	}
	pause := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	pause(warmS * time.Second)
	fmt.Println(lineWarm)
	state.Store(1)
	begun := time.Now()
	pause(long)
	state.Store(2)
	t.Seconds = time.Since(begun).Seconds()
	fmt.Println(lineCool)
	wg.Wait()
	return t, context.Cause(ctx)
}

// ask asks a question, and returns how long the answer took from the person to here.
func ask(ctx context.Context, t *harness.Turn, p harness.Prompt) (time.Duration, error) {
	p.Kind, p.Questions = events.PromptQuestion, yesNo
	a, err := t.Ask(ctx, p)
	back := time.Now()
	if err != nil {
		return 0, err
	}
	if a.Status != session.Answered || len(a.Answers) != 1 {
		return 0, fmt.Errorf("prompt %s became %s", p.ID, a.Status)
	}
	begun, err := strconv.ParseInt(a.Answers[0].Text, 10, 64)
	return back.Sub(time.Unix(0, begun)), err
}

// rounds is a session whose turn asks one question after the other.
func rounds(ctx context.Context, s *harness.Session) (worker, error) {
	t, err := s.StartTurn(ctx, harness.StartOptions{ID: "t", Content: "go"})
	return worker{do: func(ctx context.Context, k int) (time.Duration, error) {
		return ask(ctx, t, harness.Prompt{ID: fmt.Sprintf("p%d", k)})
	}}, err
}

// turns is a session that runs one turn after the other: a tool, a second tool that asks a question, the end.
func turns(_ context.Context, s *harness.Session) (worker, error) {
	return worker{do: func(ctx context.Context, k int) (took time.Duration, err error) {
		t, err := s.StartTurn(ctx, harness.StartOptions{ID: fmt.Sprintf("t%d", k), Content: "go"})
		if err != nil {
			return 0, err
		}
		list, err := t.Tool(ctx, harness.ToolOptions{Name: "bash", Input: "ls"})
		if err != nil {
			return 0, err
		}
		if err := list.Complete(ctx, "README.md"); err != nil {
			return 0, err
		}
		question, err := t.Tool(ctx, harness.ToolOptions{Name: "ask_user"})
		if err != nil {
			return 0, err
		}
		took, err = ask(ctx, t, harness.Prompt{ID: fmt.Sprintf("p%d", k), Call: question.ID()})
		if err != nil {
			return 0, err
		}
		if err := question.Complete(ctx, "yes"); err != nil {
			return 0, err
		}
		return took, t.Complete(ctx, "stop")
	}}, nil
}
