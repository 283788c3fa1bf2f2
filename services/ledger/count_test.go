package ledger

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The counters have the number of folded, stored, fed and parked items.
func TestCounts(t *testing.T) {
	// a shorter pause proves nothing
	const deliveredAgain = 500 * time.Millisecond
	natstest.RetryStalled(t, deliveredAgain, func() error {
		w := newWorld(t)
		r := events.Ref{Harness: "h", Session: "s"}
		w.open(r)
		// a kind that this writer may not append
		w.appendAs(r, events.WriterRetry, "/service/retry/x", events.ToolCompleted{Call: "c1"})
		l := w.run(Default())
		natstest.Until(t, "the last of it is counted", func() bool {
			return l.Counts()["commits"] >= 3 && l.Counts()["parked"] >= 1
		})
		got := l.Counts()
		// depends on the delivery
		batches := got["batches"]
		want := map[string]uint64{"batches": batches, "batches_failed": 0, "takeovers": 1, "commits": 3,
			"documents": batches, "facts_fed": 4, "parked": 1, "parked_late": 0, "park_failed": 0,
			"set_aside": 0, "set_aside_back": 0, "documents_mended": 0, "clock_steps": 0}
		if !maps.Equal(got, want) || batches < 1 || batches > 3 {
			return fmt.Errorf("counted %v, want %v", got, want)
		}
		return nil
	})
}
