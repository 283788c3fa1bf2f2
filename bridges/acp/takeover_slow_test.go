package acp

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestTakesOverSlowly: the broker is far away while a process takes over the turn that was requested for decisions, and
// the editor is not kept waiting: in one case after each request that is sent for it. The decisions still reach the
// proxy.
func TestTakesOverSlowly(t *testing.T) {
	t.Parallel()
	const oneWay = 10 * time.Millisecond
	for n := range 20 {
		// between two replies
		wait := oneWay + 2*oneWay*time.Duration(n)
		t.Run(wait.String(), func(t *testing.T) {
			t.Parallel()
			s := leaves(t)
			s.person("s1", "p2", events.Answer{Question: "q1", Text: "this"})
			s.person("s1", "p1", events.Answer{Question: events.PermissionQuestion, Selected: []string{"yes"}})
			cfg := s.cfg
			cfg.URL = natstest.Far(t, s.srv, oneWay)
			slow := &stored{newStore(cfg, wait, func(text string) { t.Log(text) }), t, s.bus, s.srv}
			slow.connects()
			slow.takes("s1")
			if in := slow.given(); len(in.Decisions) != 2 {
				t.Errorf("%+v", in)
			}
		})
	}
}
