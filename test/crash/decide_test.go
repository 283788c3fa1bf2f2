package crash

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/retry"
)

const (
	clockSlack = 20 * time.Millisecond // by which a service's estimate of the broker's time may be ahead
	logTextMax = 24                    // commits of a session that a finding prints
)

// undecided returns what retry or compaction would still append to a session, or what they wait for; "" for nothing.
func undecided(st *session.State) string {
	now := time.Now()
	r := retry.Decide(st, retry.Input{Now: now, Progress: now})
	c := compaction.Decide(st, compaction.Input{Now: now, Progress: now, Idle: true})
	switch {
	case len(r.Facts) > 0:
		return fmt.Sprintf("retry would say %s %s", r.Facts[0].Kind(), asJSON(r.Facts))
	case len(c.Facts) > 0:
		return fmt.Sprintf("compaction would say %s %s", c.Facts[0].Kind(), asJSON(c.Facts))
	case !r.CheckAt.IsZero() && !r.Watch:
		return fmt.Sprintf("retry waits until %s", r.CheckAt)
	case !c.CheckAt.IsZero() && !c.Watch:
		return fmt.Sprintf("compaction waits until %s", c.CheckAt)
	}
	return ""
}

// checkDecided: retry and compaction have nothing more to append (V3), and nothing waits without a reason (V10, V11,
// V14).
func (p *picture) checkDecided(r events.Ref) {
	st := p.folded[r].st
	if why := undecided(st); why != "" {
		p.fail("V3", r, "all is settled, and %s", why)
	}
	if why := p.folded[r].rules.Stuck(st, p.alive(st)); why != "" {
		v, what, _ := strings.Cut(why, ": ")
		p.fail(v, r, "%s%s", what, logText(p.commits[r]))
	}
}

// logText returns the end of a session's log as text.
func logText(cs []events.Commit) string {
	var text strings.Builder
	for _, c := range cs[max(0, len(cs)-logTextMax):] {
		fmt.Fprintf(&text, "\n%8d %s %s", c.Seq, c.At.Format("15:04:05.000"), c.Writer)
		for _, e := range c.Events {
			data, err := json.Marshal(e.Fact)
			if err != nil {
				data = []byte(err.Error())
			}
			fmt.Fprintf(&text, " · %s@%d %s", e.Kind, e.Epoch, data)
		}
	}
	return text.String()
}
