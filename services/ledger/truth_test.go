package ledger

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestARequestForASessionThatTheLogLostIsRefusedOnce: a request is decided on the document; the log does not have the commit
// that the document ends with, so the append is refused as what it is, and not repeated as a lost race.
func TestARequestForASessionThatTheLogLostIsRefusedOnce(t *testing.T) {
	w := newWorld(t)
	w.open(ref)
	lost := events.Ref{Harness: "h1", Session: "lost"}
	l := w.settle(Default())
	st, _, err := loadDoc(t.Context(), w.bus, ref)
	if err != nil {
		t.Fatal(err)
	}
	w.forge(lost, func(doc *session.State) {
		*doc = *st
		doc.Session, doc.Root, doc.Seq = lost.Session, lost.Session, 1000
	})
	w.run(Default())
	req := answer("a")
	req.Ref = lost
	refusal := w.ask("answer", req, nil)
	if refusal == nil || refusal.Code != http.StatusConflict || refusal.Stands == nil || refusal.Stands.Status != "log-behind" ||
		!strings.Contains(refusal.Stands.Reason, "doctor") {
		t.Fatalf("%+v; want a 409 that says what is wrong and what to do", refusal)
	}
	if left, err := l.logged(t.Context(), lost); err != nil || left.state.Seq != 0 {
		t.Errorf("the log has %d, %v", left.state.Seq, err)
	}
}
