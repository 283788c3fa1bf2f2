package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	noticedMax = 10 * time.Second       // from the death of a process until its turn is closed; a lease lives for 15 s
	standstill = 300 * time.Millisecond // of the machine: a longer one may spoil a measurement
)

// TestADeadProcessIsNoticed: in a cell with users the reconciler sees the connections of all accounts, so a process
// that ended is noticed long before its lease ends.
func TestADeadProcessIsNoticed(t *testing.T) {
	w := start(t)
	f, tries := w.folder("harness-"+victim), 0
	for range 3 {
		natstest.RetryStalled(t, standstill, func() error {
			tries++
			h, err := harness.Connect(t.Context(), harness.Config{ID: victim, URL: w.urlOf("harness-" + victim),
				PasswordFile: f + "/password", TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key"})
			if err != nil {
				t.Fatal(err)
			}
			r := events.Ref{Harness: victim, Session: fmt.Sprint("s", tries)}
			s, err := h.Open(t.Context(), r.Session, harness.OpenOptions{})
			if err == nil {
				_, err = s.StartTurn(t.Context(), harness.StartOptions{Content: "go"})
			}
			if err == nil {
				err = h.Ready(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			natstest.UntilSession(t, w.victim, r, "the turn", func(st *session.State) bool { return st.Turn != nil })
			began := time.Now()
			h.Abandon()
			natstest.UntilSession(t, w.victim, r, "its end", func(st *session.State) bool { return st.Turn == nil })
			took := time.Since(began)
			t.Logf("the death was noticed after %s", took)
			if took > noticedMax {
				return fmt.Errorf("the death was noticed after %s, want at most %s", took, noticedMax)
			}
			return nil
		})
	}
}
