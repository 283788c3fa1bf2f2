package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// Part i: what `holdfast up` costs while nothing happens. Half of the sessions have an owner that lives, the others
// were released; each has had one turn. The services walk over the sessions about four times in the measured time.
const (
	restCount  = 100_000
	restSettle = 70 * time.Second  // after the last commit, before it is measured
	restFor    = 120 * time.Second // of measuring
	restGoal   = 2                 // percent of a core at restCount sessions
)

func atRest(ctx context.Context, r *report, size float64) error {
	for _, program := range r.programs {
		if isRestate(program) {
			continue
		}
		for _, n := range []int{0, scaled(restCount, size, 1000)} {
			percent, mb, err := restOf(ctx, program, n)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%s at rest, %d sessions", filepath.Base(program), n)
			r.atMost("i", what+": CPU", percent, "% of a core", restGoal)
			r.add("i", what+": memory", mb, "MB")
		}
	}
	return nil
}

// restOf returns the share of a core, in percent, and the memory of a cell with n idle sessions.
func restOf(ctx context.Context, program string, n int) (percent, mb float64, err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := startCell(ctx, program, dir, "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	defer c.kill()
	b, err := bus.Open(ctx, bus.Config{URL: c.url})
	if err != nil {
		return 0, 0, err
	}
	defer b.Close()
	if err := fillIdle(ctx, b, n); err != nil {
		return 0, 0, err
	}
	if err := sleep(ctx, restSettle); err != nil {
		return 0, 0, err
	}
	before, err := c.cpu()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := sleep(ctx, restFor); err != nil {
		return 0, 0, err
	}
	after, err := c.cpu()
	return 100 * (after - before).Seconds() / time.Since(began).Seconds(), memoryMB(c.cmd.Process.Pid), err
}

// fillIdle stores n sessions that have had a turn, and waits until all services have handled them.
func fillIdle(ctx context.Context, b *bus.Bus, n int) error {
	if n == 0 {
		return nil
	}
	owners, err := live(ctx, b)
	if err != nil {
		return err
	}
	p := &pipeline{bus: b, depth: pipelineDepth}
	for i := range n {
		ref := owners.session(i, 0)
		incarnation := owners[i%len(owners)]
		facts := []events.Fact{events.SessionOpened{Incarnation: incarnation, Title: "Fix the flaky test"},
			events.TurnStarted{Turn: "t", Cause: events.CauseMessage},
			events.ToolStarted{Call: "c", Turn: "t", Name: "bash"}, events.ToolCompleted{Call: "c"},
			events.TurnCompleted{Turn: "t"}}
		if i/len(owners)%2 == 1 {
			facts = append(facts, events.SessionReleased{Reason: "done"})
		}
		evs := wrap(b, ref, events.HarnessSource(ref.Harness, incarnation), facts)
		if err := p.append(ctx, ref, events.WriterHarness, 0, evs); err != nil {
			return err
		}
	}
	if _, err := p.flush(ctx); err != nil {
		return err
	}
	for _, src := range []consumer.Source{ledger.Source(ledger.Default()), control.Documents(retry.Name),
		control.Documents(compaction.Name), control.Documents(reconciler.Name)} {
		if err := drained(ctx, b, src); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits, or returns the error of ctx if it ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
