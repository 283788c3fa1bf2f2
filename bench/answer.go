package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// The figures of Restate 1.7 on such a machine with the same durability. Each one is to be exceeded.
var restate = map[int]struct{ p50, rounds float64 }{1: {1.2, 203}, 64: {0, 772}, 512: {0, 1220}}

const (
	answerSeconds = 10 // per number of concurrent prompts
	answerWarm    = 2  // seconds at the start that are not measured
	answerersMax  = 64 // concurrent answers
)

// answers is part c.
func answers(ctx context.Context, r *report, size float64) error {
	for _, n := range []int{1, 64, 512} {
		took, rate, err := askAndAnswer(ctx, n, time.Duration(max(answerSeconds*size, 3)*float64(time.Second)))
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%d at once: answer → Ask returns, ", n)
		want := restate[n]
		if want.p50 > 0 {
			r.atMost("c", what+"p50", percentile(took, 0.50), "ms", want.p50)
		} else {
			r.add("c", what+"p50", percentile(took, 0.50), "ms")
		}
		r.add("c", what+"p99", percentile(took, 0.99), "ms")
		r.atLeast("c", fmt.Sprintf("%d at once: ask, answer, receive", n), rate, "rounds/s", want.rounds)
	}
	return crashed(ctx, r, size)
}

var yesNo = []events.Question{{ID: "q", Question: "Go on?", Options: []events.Option{{Label: "yes"}, {Label: "no"}}}}

// people answer each prompt as soon as it is in the log, with a request to the ledger.
type people struct {
	bus   *bus.Bus
	open  chan asked
	begun sync.Map // the instant of each prompt's answer, by id
}

// asked is an open prompt.
type asked struct {
	ref    events.Ref
	prompt string
}

// Takeover implements [consumer.Handler].
func (p *people) Takeover(context.Context) error { return nil }

// Batch implements [consumer.Handler].
func (p *people) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	for _, m := range ms {
		c := p.bus.Log.Decode(m)
		for i := range c.Events {
			f, ok := c.Events[i].Fact.(events.PromptRequested)
			if !ok {
				continue
			}
			select {
			case p.open <- asked{c.Ref, f.Prompt}:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}
	return len(ms), nil
}

// answer answers open prompts until ctx ends.
func (p *people) answer(ctx context.Context) error {
	for {
		select {
		case a := <-p.open:
			p.begun.Store(a.prompt, time.Now())
			if err := postAnswer(ctx, p.bus, a); err != nil && ctx.Err() == nil {
				return fmt.Errorf("answer %s: %w", a.prompt, err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func postAnswer(ctx context.Context, b *bus.Bus, a asked) error {
	return b.Services.Request(ctx, ledger.Name, "answer", request.Answer{Ref: a.ref, Prompt: a.prompt, By: "ada",
		Answers: []events.Answer{{Question: "q", Selected: []string{"yes"}}}}, nil)
}

// askAndAnswer keeps n prompts open in n sessions of one harness. Everything runs in one process, like `holdfast up`,
// and every write is synced.
func askAndAnswer(ctx context.Context, n int, long time.Duration) (took []time.Duration, rate float64, err error) {
	s, err := start(ctx, true)
	if err != nil {
		return nil, 0, err
	}
	defer s.close()
	if err := s.services(ctx); err != nil {
		return nil, 0, err
	}
	p := &people{open: make(chan asked, n)}
	if p.bus, err = s.open(ctx); err != nil {
		return nil, 0, err
	}
	defer p.bus.Close()
	if err := s.run(ctx, func(ctx context.Context, b *bus.Bus) error {
		return b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "people", BatchMax: 256},
			p)
	}); err != nil {
		return nil, 0, err
	}
	for range min(n, answerersMax) {
		s.wg.Go(func() {
			if err := p.answer(s.ctx); err != nil {
				s.stop()
			}
		})
	}
	turns, leave, err := s.turns(ctx, n)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	return p.measure(s.ctx, turns, long)
}

func (s *suite) services(ctx context.Context) error {
	if err := s.ledger(ctx); err != nil {
		return err
	}
	return s.reconciler(ctx, reconciler.Default())
}

// turns opens n sessions with a turn each.
func (s *suite) turns(ctx context.Context, n int) (turns []*harness.Turn, leave func(), err error) {
	h, err := harness.Connect(ctx, harness.Config{ID: "bench", InProcess: s.server})
	if err != nil {
		return nil, nil, err
	}
	leave = func() {
		end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.Close(end); err != nil {
			fmt.Println("bench: leave:", err)
		}
	}
	turns = make([]*harness.Turn, n)
	for i := range turns {
		se, err := h.Open(ctx, fmt.Sprintf("s%d", i), harness.OpenOptions{})
		if err != nil {
			return nil, leave, err
		}
		if turns[i], err = se.StartTurn(ctx, harness.StartOptions{ID: "t", Content: "go"}); err != nil {
			return nil, leave, err
		}
	}
	return turns, leave, h.Ready(ctx)
}

// measure asks in every turn in a loop. Prompts that begin during the warm-up do not count.
func (p *people) measure(ctx context.Context, turns []*harness.Turn,
	long time.Duration) ([]time.Duration, float64, error) {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		took   []time.Duration
		failed atomic.Pointer[error]
		warm   = time.Now().Add(answerWarm * time.Second)
		end    = warm.Add(long)
	)
	for i, t := range turns {
		wg.Go(func() {
			for k := 0; time.Now().Before(end) && failed.Load() == nil; k++ {
				id := fmt.Sprintf("p%d-%d", i, k)
				_, err := t.Ask(ctx, harness.Prompt{ID: id, Kind: events.PromptQuestion, Questions: yesNo})
				back := time.Now()
				if err != nil {
					failed.Store(&err)
					return
				}
				begun, _ := p.begun.LoadAndDelete(id)
				if back.After(warm) {
					mu.Lock()
					took = append(took, back.Sub(begun.(time.Time)))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nil, 0, *err
	}
	return took, float64(len(took)) / time.Since(warm).Seconds(), nil
}
