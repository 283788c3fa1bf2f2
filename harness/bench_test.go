package harness_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// BenchmarkAsk has many sessions ask and be answered, every write synced: answer-p50 is from the moment the answer is
// given until Ask has returned.
func BenchmarkAsk(b *testing.B) {
	for _, concurrent := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(concurrent), func(b *testing.B) { benchmarkAsk(b, concurrent) })
	}
}

func benchmarkAsk(b *testing.B, concurrent int) {
	s := natstest.Start(b, natstest.Synced())
	w := &world{t: b, server: s, bus: natstest.Bus(b, s), ctx: context.Background(),
		folded: map[string]*session.State{}}
	h := w.connect(func(c *harness.Config) { c.TTL = time.Minute })
	turns := make([]*harness.Turn, concurrent)
	var wg sync.WaitGroup
	for i := range turns {
		wg.Go(func() {
			s := must[*harness.Session](b)(h.Open(w.ctx, fmt.Sprint(i), harness.OpenOptions{}))
			turns[i] = must[*harness.Turn](b)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t", Content: "x"}))
		})
	}
	wg.Wait()
	p := &people{w: w, given: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	go func() {
		if err := w.bus.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "people",
			BatchMax: 256},
			p); err != nil {
			b.Error(err)
		}
	}()
	var rounds atomic.Int64
	took := make([][]time.Duration, concurrent)
	b.ResetTimer()
	for i, turn := range turns {
		wg.Go(func() {
			for n := rounds.Add(1); n <= int64(b.N); n = rounds.Add(1) {
				id := fmt.Sprint("p", n)
				a, err := turn.Ask(w.ctx, harness.Prompt{ID: id, Questions: question()})
				back := time.Now()
				if err != nil || a.Status != session.Answered {
					b.Error(a, err)
				}
				took[i] = append(took[i], back.Sub(p.at(id)))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "answer-p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "answer-p99-µs")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
}

// people answer every prompt as soon as it is in the log, as through the ledger: append, nudge.
type people struct {
	w     *world
	mu    sync.Mutex
	given map[string]time.Time
}

func (p *people) at(prompt string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.given[prompt]
}

func (p *people) Takeover(context.Context) error { return nil }

func (p *people) Batch(_ context.Context, ms []bus.Message) (int, error) {
	for _, m := range ms {
		r, _, err := p.w.bus.Cell().ParseLog(m.Subject)
		if err != nil {
			return 0, err
		}
		evs, err := events.DecodeBatch(r, m.Body)
		if err != nil {
			return 0, err
		}
		for _, e := range evs {
			if f, ok := e.Fact.(events.PromptRequested); ok {
				go p.answer(r, f.Prompt, e.Epoch, m.Seq)
			}
		}
	}
	return len(ms), nil
}

func (p *people) answer(r events.Ref, prompt string, epoch, seq uint64) {
	p.mu.Lock()
	p.given[prompt] = time.Now()
	p.mu.Unlock()
	fact := events.PromptAnswered{Prompt: prompt, By: "ada", Answers: []events.Answer{{Question: "q", Text: "x"}}}
	for {
		ev := events.New(p.w.bus.NewID(), events.PersonSource("ada"), r, epoch, time.Now(), fact)
		at, err := p.w.bus.Log.Append(p.w.ctx, r, events.WriterLedger, seq, []events.Event{ev})
		if err == nil {
			p.w.bus.Hints.Nudge(r, at)
			return
		}
		if !errors.Is(err, bus.ErrLostRace) {
			p.w.t.Error(err)
			return
		}
		cs, err := p.w.bus.Log.Read(p.w.ctx, r, seq+1)
		if err != nil {
			p.w.t.Error(err)
			return
		}
		seq = cs[len(cs)-1].Seq
	}
}

// BenchmarkRestart is a process with 10,000 open questions that dies, and the next one that claims them all, each with
// its question, and waits for the answers again. Nothing is synced, to see what the client takes.
func BenchmarkRestart(b *testing.B) {
	const prompts, atOnce = 10_000, 256
	w := &world{t: b, server: natstest.Start(b), ctx: context.Background(), folded: map[string]*session.State{}}
	w.bus = natstest.Bus(b, w.server)
	long := func(c *harness.Config) { c.TTL = time.Minute }
	everywhere := func(fn func(i int)) {
		var all errgroup.Group
		all.SetLimit(atOnce)
		for i := range prompts {
			all.Go(func() error {
				fn(i)
				return nil
			})
		}
		_ = all.Wait()
	}
	p := harness.Prompt{ID: "p", Kind: events.PromptQuestion, Questions: question(), OnOwnerLoss: events.LossKeep}
	one := w.connect(long)
	turns := make([]*harness.Turn, prompts)
	everywhere(func(i int) {
		s := must[*harness.Session](b)(one.Open(w.ctx, fmt.Sprint(i), harness.OpenOptions{}))
		turns[i] = must[*harness.Turn](b)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t", Content: "x"}))
	})
	before := heap()
	everywhere(func(i int) {
		ask(w.ctx, turns[i], p)
	})
	everywhere(func(i int) { w.awaiting(fmt.Sprint(i), "p") })
	perAsk := float64(heap()-before) / prompts
	for b.Loop() {
		h := w.connect(long)
		everywhere(func(i int) {
			s := must[*harness.Session](b)(h.Claim(w.ctx, fmt.Sprint(i), harness.Adopt{Prompts: []harness.Prompt{p}}))
			ask(w.ctx, s.OpenTurn(), p)
		})
	}
	b.ReportMetric(perAsk, "B/ask")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
