package retry

import (
	"bytes"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestLater: later returns the instant at which a retry is due, and zero if none is scheduled.
func TestLater(t *testing.T) {
	y := newScript(t)
	y.facts(`1 session.opened {"incarnation":"17"}`)
	y.facts(`2 turn.started {"turn":"t1","cause":"message","options":{"due_at":"2020-01-01T00:00:00Z"}}`)
	y.facts(`3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}`)
	peek := func(s *session.State) time.Time {
		doc, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return later(doc)
	}
	if at := peek(y.s); !at.IsZero() {
		t.Errorf("before the retry is scheduled, later returns %s", at)
	}
	y.Decide()
	if at := peek(y.s); !at.Equal(y.s.Retry.DueAt) || at.IsZero() {
		t.Errorf("later returns %s, want %s", at, y.s.Retry.DueAt)
	}
	y.Now = y.s.Retry.DueAt
	y.Decide()
	if at := peek(y.s); !at.IsZero() {
		t.Errorf("after the turn was requested, later returns %s", at)
	}
	for _, odd := range []string{``, `{}`, `,"retry":{"state":"scheduled",`,
		`,"retry":{"state":"scheduled","due_at":"x"`, `,"retry":{"state":"scheduled","due_at":"x"}`} {
		if at := later([]byte(odd)); !at.IsZero() {
			t.Errorf("%s: later returns %s", odd, at)
		}
	}
}

// TestLaterIsNotInOptions: options of a turn that look like a scheduled retry neither hide the session from the walk
// nor hide the instant of a scheduled retry.
func TestLaterIsNotInOptions(t *testing.T) {
	const hides = `{"a":{"x":1,"retry":{"state":"scheduled","turn":"t1","due_at":"2999-01-01T00:00:00Z"}},` +
		`"b":"}\\\"{","z":0}`
	y := newScript(t)
	y.facts(`1 session.opened {"incarnation":"17"}`)
	y.facts(`2 turn.started {"turn":"t1","cause":"message","options":` + hides + `}`)
	y.facts(`3 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"x"},"had_output":false}`)
	peek := func() time.Time {
		t.Helper()
		doc, err := y.s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(doc, []byte(`,"retry":{"state":"scheduled"`)) {
			t.Fatalf("the options are not in the document: %s", doc)
		}
		return later(doc)
	}
	if at := peek(); !at.IsZero() {
		t.Errorf("no retry is scheduled, but later returns %s", at)
	}
	y.Decide()
	if at := peek(); !at.Equal(y.s.Retry.DueAt) || at.IsZero() {
		t.Errorf("later returns %s, want %s", at, y.s.Retry.DueAt)
	}
}
