package harness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestConfirmReadsTheLog: Confirm finds what recovery has just written, before this process has heard of it.
func TestConfirmReadsTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.connect()
	// now and then the process has heard of it already
	const often = 20
	for n := range often {
		id := fmt.Sprint("s", n)
		s := must[*harness.Session](t)(h.Open(w.ctx, id, harness.OpenOptions{}))
		check(t, s.Confirm(w.ctx))
		evs := []events.Event{events.New(w.bus.NewID(), events.ServiceSource("reconciler", "test"), ref(id), 1,
			time.Now(), events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: h.Incarnation()})}
		if _, err := w.bus.Log.Append(w.ctx, ref(id), events.WriterReconciler, w.state(id).Seq, evs); err != nil {
			t.Fatal(err)
		}
		wantErr(t, s.Confirm(w.ctx), harness.ErrFenced)
		if s.State().Owned {
			t.Error("the state is older than the answer")
		}
	}
}
