package ledger

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// An operator sees how much was folded, stored, fed and parked.
func TestCounts(t *testing.T) {
	w := newWorld(t)
	r := events.Ref{Harness: "h", Session: "s"}
	w.open(r)
	seq := w.sayAs(r, events.WriterRetry, "/service/retry/x", events.ToolCompleted{Call: "c1"}) // not for it to say
	l := w.run(Default())
	w.document(r, seq)
	want := map[string]uint64{"batches": 1, "batches_failed": 0, "takeovers": 1, "commits": 3, "documents": 1, "facts_fed": 4, "parked": 1}
	natstest.Until(t, "the batch is counted", func() bool { return l.Counts()["batches"] > 0 })
	for name, n := range l.Counts() {
		if n != want[name] {
			t.Errorf("%s: %d, want %d", name, n, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not counted: %v", want)
	}
}
