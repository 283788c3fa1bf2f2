package terminal

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestShortNumber: a table shows the end of a long incarnation. Other texts are not cut.
func TestShortNumber(t *testing.T) {
	for is, want := range map[string]string{
		"": "", "7": "7", "12345678": "12345678", "123456789": "…456789", "1795483645962315": "…962315",
		"a long incarnation": "a long incarnation", "…79548364596231": "…79548364596231",
	} {
		if got := shortNumber(is); got != want {
			t.Errorf("%q is shown as %q, want %q", is, got, want)
		}
	}
}

// TestUnknownOutcomesAreShown: a call of an unknown outcome is shown as one, also when many things have ended since.
func TestUnknownOutcomesAreShown(t *testing.T) {
	s := &session.State{Recent: []session.Ending{
		{Entity: session.EntityTool, ID: "first", Name: "lint", Outcome: session.OutcomeFailed},
		{Entity: session.EntityTool, ID: "cut", Name: "deploy", Outcome: session.OutcomeFailed, Reason: "owner-lost"},
		{Entity: session.EntityMessage, ID: "cut", Outcome: session.OutcomeDelivered},
	}}
	for range recentShownMax {
		s.Recent = append(s.Recent, session.Ending{Entity: session.EntityTurn, ID: "t"})
	}
	const line, note = "tool   cut  deploy  unknown  owner-lost  –\n", "\nunknown: the call was cut off"
	text := Session(s.WithUnknown(map[string]bool{"cut": true}), nil, at(0), Style{Width: 80})
	if !strings.Contains(text, line) || !strings.Contains(text, note) || strings.Contains(text, "lint") ||
		strings.Contains(text, "message") {
		t.Errorf("want %q and %q, and nothing else that is old, in\n%s", line, note, text)
	}
	if text := Session(s, nil, at(0), Style{}); strings.Contains(text, "unknown") {
		t.Errorf("nothing is unknown in\n%s", text)
	}
}
