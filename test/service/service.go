// Package service runs the services of a cell in the process of a test.
package service

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// Run runs all services with their defaults until the test ends or stop is called. An error of a service fails the
// test. The function stop returns when they have ended, and may be called more than once.
func Run(t testing.TB, b *bus.Bus) (stop func()) {
	t.Helper()
	led, ledgerErr := ledger.New(b, ledger.Default(), zerolog.Nop())
	ret, retryErr := retry.New(b, retry.Default(), zerolog.Nop())
	com, compactionErr := compaction.New(b, compaction.Default(), zerolog.Nop())
	rec, reconcilerErr := reconciler.New(b, reconciler.Default(), zerolog.Nop())
	if err := errors.Join(ledgerErr, retryErr, compactionErr, reconcilerErr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{led.Run, ret.Run, com.Run, rec.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return stop
}
