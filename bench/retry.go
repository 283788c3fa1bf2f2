package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

const (
	syncedEnv     = "HOLDFAST_BENCH_SYNCED"
	alarmName     = "bench" // of raw message schedules
	retryCount    = 100_000
	retrySpan     = 10 * time.Second // in which all of them are due
	retrySynced   = 10_000           // as in Restate's measurement, every write synced
	retryLead     = 12 * time.Second // before the first is due
	retryPerS     = 1_500            // armed per second, at the least
	retryLateMax  = 90 * time.Second // for the last one to fire
	retryAtOnce   = 4_096            // concurrent commits while they are armed
	retryFar      = 13 * time.Minute // longer than any run; a provider's Retry-After is followed for at most 15 minutes
	retrySoon     = 20 * time.Second // until the retries that come due while the process is down
	retryDown     = 20               // the number of these
	retryWaiting  = 100_000          // other retries that wait for retryFar
	retryP99MS    = 50.0
	syncedP50MS   = 2.0 // 10,000 in 10 s, every write synced
	syncedP99MS   = 20.0
	failoverMS    = 2_000.0 // the pin's timeout: no service is active for so long after a kill
	failoverMore  = 250.0
	failoverCount = 10_000
)

// retries is part f.
func retries(ctx context.Context, r *report, size float64) error {
	for _, x := range []struct {
		n      int
		synced bool
	}{{scaled(retryCount, size, 1_000), false}, {scaled(retrySynced, size, 500), true}} {
		if err := retriesAt(ctx, r, x.n, x.synced); err != nil {
			return err
		}
	}
	if err := retryRestart(ctx, r, scaled(retryWaiting, size, 1_000)); err != nil {
		return err
	}
	return retryFailOver(ctx, r, scaled(failoverCount, size, 500))
}

// retriesAt measures how late retries fire that are due within ten seconds, and the same for raw message schedules.
func retriesAt(ctx context.Context, r *report, n int, synced bool) error {
	what := fmt.Sprintf("%d due in %.0f s, %s: ", n, retrySpan.Seconds(),
		map[bool]string{true: "every write synced", false: "not synced"}[synced])
	c, err := upRetrying(ctx, synced, "retrying")
	if err != nil {
		return err
	}
	late, armed, err := c.retries(ctx, n, retrySpan)
	memory := memoryMB(c.process.cmd.Process.Pid)
	c.close()
	if err != nil {
		return err
	}
	if c, err = upRetrying(ctx, synced, "broker"); err != nil {
		return err
	}
	raw, _, err := c.schedules(ctx, n, retrySpan)
	floor := memoryMB(c.process.cmd.Process.Pid)
	c.close()
	if err != nil {
		return err
	}
	r.add("f", what+"armed", float64(n)/armed.Seconds(), "/s")
	if synced {
		r.atMost("f", what+"lateness p50", percentile(late, 0.50), "ms", syncedP50MS)
		r.atMost("f", what+"lateness p99", percentile(late, 0.99), "ms", syncedP99MS)
	} else {
		r.add("f", what+"lateness p50", percentile(late, 0.50), "ms")
		r.atMost("f", what+"lateness p99", percentile(late, 0.99), "ms", retryP99MS)
	}
	r.add("f", what+"lateness max", percentile(late, 1), "ms")
	r.add("f", what+"raw schedules p50", percentile(raw, 0.50), "ms")
	r.add("f", what+"raw schedules p99", percentile(raw, 0.99), "ms")
	r.add("f", what+"raw schedules max", percentile(raw, 1), "ms")
	r.add("f", what+"memory of everything", memory, "MB")
	r.add("f", what+"memory of a broker with raw schedules", floor, "MB")
	return nil
}

// retrying is a process with a broker, and optionally services, and a connection to it.
type retrying struct {
	process *process
	dir     string
	role    string
	listen  string
	bus     *bus.Bus
	living  living // the harnesses whose turns fail; nil: not created yet
}

func upRetrying(ctx context.Context, synced bool, role string) (*retrying, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	if err := os.Setenv(syncedEnv, fmt.Sprint(synced)); err != nil {
		return nil, err
	}
	c := &retrying{dir: dir, role: role}
	return c, c.start(ctx, "127.0.0.1:0")
}

func (c *retrying) start(ctx context.Context, listen string) (err error) {
	if c.process, err = spawn(c.role, c.dir, listen, 0); err != nil {
		return err
	}
	url, err := c.process.expect("url")
	c.listen = strings.TrimPrefix(url, "nats://")
	if err != nil || c.bus != nil {
		return err
	}
	if c.bus, err = bus.Open(ctx, bus.Config{URL: url}); err != nil {
		return err
	}
	return c.bus.Layout.Ensure(ctx)
}

func (c *retrying) close() {
	if c.bus != nil {
		c.bus.Close()
	}
	c.process.kill()
	if err := os.RemoveAll(c.dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// playRetrying runs the broker with all services in one process, like `holdfast up`. playBroker runs only the broker.
func playRetrying(ctx context.Context, services bool) error {
	server, err := embed.Start(ctx, embed.Config{Dir: os.Getenv(dirEnv), Listen: os.Getenv(listenEnv),
		SyncAlways: os.Getenv(syncedEnv) == "true"})
	if err != nil {
		return err
	}
	s := &suite{server: server, ctx: ctx}
	if s.bus, err = s.open(ctx); err != nil {
		return err
	}
	if err := s.bus.Layout.Ensure(ctx); err != nil {
		return err
	}
	if services {
		for _, run := range []func(context.Context, *bus.Bus) error{runLedger, runReconciler, runRetry, runCompaction} {
			if err := s.run(ctx, run); err != nil {
				return err
			}
		}
	}
	fmt.Println("url", server.URL())
	<-server.Done()
	return nil
}

func runReconciler(ctx context.Context, b *bus.Bus) error {
	r, err := reconciler.New(b, reconciler.Default(), zerolog.Nop())
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func runRetry(ctx context.Context, b *bus.Bus) error {
	r, err := retry.New(b, retry.Default(), zerolog.Nop())
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func runCompaction(ctx context.Context, b *bus.Bus) error {
	c, err := compaction.New(b, compaction.Default(), zerolog.Nop())
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// retries arms n retries that are due within a span, and returns how late they fired: from the instant in
// retry.scheduled to the broker's time of turn.requested. armed is the time until every retry had its alarm.
func (c *retrying) retries(ctx context.Context, n int,
	span time.Duration) (late []time.Duration, armed time.Duration, err error) {
	began := time.Now()
	first := began.Add(retryLead + time.Duration(n/retryPerS)*time.Second)
	from, err := c.fail(ctx, n, first, span)
	if err != nil {
		return nil, 0, err
	}
	if err := c.armed(ctx, n, first); err != nil {
		return nil, 0, err
	}
	armed = time.Since(began)
	wait(ctx, time.Until(first.Add(span)))
	late, err = c.allFired(ctx, from, n)
	return late, armed, err
}

// allFired waits until n retries have fired, and returns how late each one was.
func (c *retrying) allFired(ctx context.Context, from uint64, n int) (late []time.Duration, err error) {
	for end := time.Now().Add(retryLateMax); len(late) < n && time.Now().Before(end); wait(ctx, time.Second) {
		if late, err = c.fired(ctx, from); err != nil {
			return nil, err
		}
	}
	if len(late) != n {
		return late, fmt.Errorf("%d of %d retries fired", len(late), n)
	}
	return late, nil
}

// fail opens n sessions whose only turn fails. The providers' Retry-After spreads the retries evenly over the span.
func (c *retrying) fail(ctx context.Context, n int, first time.Time, span time.Duration) (from uint64, err error) {
	if from, err = c.bus.Log.LastSeq(ctx); err != nil {
		return 0, err
	}
	if c.living == nil {
		if c.living, err = live(ctx, c.bus); err != nil {
			return 0, err
		}
	}
	p := pipeline{bus: c.bus, depth: retryAtOnce}
	for i := range n {
		r := c.living.session(i, from)
		due := first.Add(span * time.Duration(i) / time.Duration(n))
		event := func(f events.Fact) events.Event { return c.living.event(c.bus, r, i, f) }
		err := p.append(ctx, r, events.WriterHarness, 0,
			[]events.Event{event(events.SessionOpened{Incarnation: c.living[i%len(c.living)]}),
				event(events.TurnStarted{Turn: "t", Cause: events.CauseMessage, Options: []byte(`{"model":"big"}`)}),
				event(events.TurnFailed{Turn: "t", Error: events.Failure{Kind: "rate_limit", Text: "slow down",
					RetryAfterMS: time.Until(due).Milliseconds()}})})
		if err != nil {
			return 0, err
		}
	}
	_, err = p.flush(ctx)
	return from + 1, err
}

// timers returns the number of alarms that wait, or that have fired.
func (c *retrying) timers(ctx context.Context) (uint64, error) {
	found, err := c.bus.Layout.Inspect(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range found.Streams {
		if s.Name == c.bus.Cell().TimerStream() {
			return s.Msgs, nil
		}
	}
	return 0, fmt.Errorf("no stream of timers")
}

// fired returns how late each retry fired. It returns an error if one fired twice.
func (c *retrying) fired(ctx context.Context, from uint64) (late []time.Duration, err error) {
	due := map[events.Ref]time.Time{}
	err = c.bus.Log.Scan(ctx, from, func(x events.Commit) error {
		for i := range x.Events {
			switch f := x.Events[i].Fact.(type) {
			case events.RetryScheduled:
				due[x.Ref] = f.DueAt
			case events.TurnRequested:
				at, ok := due[x.Ref]
				if !ok {
					return fmt.Errorf("%s fired twice", x.Ref)
				}
				delete(due, x.Ref)
				late = append(late, x.At.Sub(at))
			}
		}
		return nil
	})
	return late, err
}
