package session_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// kindsOfRules is how many kinds of events the fold knows, by the number of its rules.
var kindsOfRules = map[int]int{10: 36}

// TestANewKindRaisesTheRules: a build that does not know a kind ignores its events. The document that it has folded
// lacks what they say, and has the same layout. Only a greater number of the rules lets a build that knows the kind
// fold the log again.
func TestANewKindRaisesTheRules(t *testing.T) {
	if n, want := len(events.Table()), kindsOfRules[session.FoldRules]; n != want {
		t.Errorf("rules %d of the fold have %d kinds of events, and there are %d: raise FoldRules in state.go by one, "+
			"say there what the fold keeps from now on, and add the number here", session.FoldRules, want, n)
	}
}
