package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// suite is an embedded broker with services.
type suite struct {
	dir    string
	server *embed.Server
	bus    *bus.Bus
	stop   context.CancelFunc
	wg     sync.WaitGroup
	ctx    context.Context
}

// start runs a broker in its own directory. If synced is set, every write is on disk before it is acknowledged.
func start(ctx context.Context, synced bool) (*suite, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	s := &suite{dir: dir}
	s.ctx, s.stop = context.WithCancel(ctx)
	if s.server, err = embed.Start(ctx, embed.Config{Dir: dir, Listen: "127.0.0.1:0", SyncAlways: synced}); err != nil {
		return nil, err
	}
	if s.bus, err = s.open(ctx); err != nil {
		return nil, err
	}
	return s, s.bus.Layout.Ensure(ctx)
}

// open returns another connection to the broker, in the same process, like `holdfast up`.
func (s *suite) open(ctx context.Context) (*bus.Bus, error) {
	return bus.Open(ctx, bus.Config{Server: s.server})
}

func (s *suite) close() {
	s.stop()
	s.wg.Wait()
	s.bus.Close()
	s.server.Shutdown()
	if err := os.RemoveAll(s.dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// run runs a function until the suite is closed, on its own connection.
func (s *suite) run(ctx context.Context, fn func(context.Context, *bus.Bus) error) error {
	b, err := s.open(ctx)
	if err != nil {
		return err
	}
	s.wg.Go(func() {
		defer b.Close()
		if err := fn(s.ctx, b); err != nil && s.ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	})
	return nil
}

func (s *suite) ledger(ctx context.Context) error { return s.run(ctx, runLedger) }

func runLedger(ctx context.Context, b *bus.Bus) error {
	l, err := ledger.New(b, ledger.Default(), zerolog.Nop())
	if err != nil {
		return err
	}
	return l.Run(ctx)
}

func (s *suite) reconciler(ctx context.Context, cfg reconciler.Config) error {
	return s.run(ctx, func(ctx context.Context, b *bus.Bus) error {
		r, err := reconciler.New(b, cfg, zerolog.Nop())
		if err != nil {
			return err
		}
		return r.Run(ctx)
	})
}

func (s *suite) services(ctx context.Context) error {
	if err := s.ledger(ctx); err != nil {
		return err
	}
	return s.reconciler(ctx, reconciler.Default())
}

// pipeline appends many commits, with at most depth commits unacknowledged.
type pipeline struct {
	bus   *bus.Bus
	under []bus.Pending
	depth int
	seqs  []uint64 // of all flushed commits, in order
}

func (p *pipeline) append(ctx context.Context, r events.Ref, w events.Writer, after uint64, evs []events.Event) error {
	p.under = append(p.under, p.bus.Log.AppendAsync(ctx, r, w, after, evs))
	if len(p.under) < p.depth {
		return nil
	}
	_, err := p.flush(ctx)
	return err
}

// flush waits for all acknowledgements and returns the seqs, in order.
func (p *pipeline) flush(ctx context.Context) ([]uint64, error) {
	seqs := make([]uint64, len(p.under))
	var errs []error
	for i, u := range p.under {
		var err error
		seqs[i], err = u.Wait(ctx)
		errs = append(errs, err)
	}
	p.under, p.seqs = p.under[:0], append(p.seqs, seqs...)
	return seqs, errors.Join(errs...)
}

// event returns an event of the first incarnation of a harness.
func event(b *bus.Bus, r events.Ref, f events.Fact) events.Event {
	return events.New(b.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, time.Now(), f)
}

// percentile returns a percentile of durations in milliseconds. The durations need not be sorted.
func percentile(ds []time.Duration, p float64) float64 {
	ds = slices.Clone(ds)
	slices.Sort(ds)
	if len(ds) == 0 {
		return 0
	}
	return float64(ds[min(int(float64(len(ds))*p), len(ds)-1)].Microseconds()) / 1000
}

func scaled(n int, size float64, least int) int { return max(int(float64(n)*size), least) }
