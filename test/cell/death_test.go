package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const (
	noticedMax = 10 * time.Second       // from the death of a process until its turn is closed; a lease lives for 15 s
	standstill = 300 * time.Millisecond // of the machine: a longer one may spoil a measurement
)

// TestADeadProcessIsNoticed: in a cell with users the reconciler sees the connections of all accounts, so a process
// that ended is noticed long before its lease ends.
func TestADeadProcessIsNoticed(t *testing.T) {
	w := start(t)
	for range 3 {
		natstest.RetryStalled(t, standstill, func() error {
			took := w.noticed(t)
			t.Logf("the death was noticed after %s", took)
			if took > noticedMax {
				return fmt.Errorf("the death was noticed after %s, want at most %s", took, noticedMax)
			}
			return nil
		})
	}
}
