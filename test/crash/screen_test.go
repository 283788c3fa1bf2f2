package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// queueMax is how many messages people leave in a session's queue.
const queueMax = 6

// seen is what people see of a session.
type seen struct {
	Harness string
	Session string
	Phase   session.Phase
	Queue   []struct{ Message string }
}

// showSession applies one change of a document.
func (s *screen) showSession(u kv.Update) error {
	if u.Deleted {
		return nil
	}
	var x seen
	if err := json.Unmarshal(u.Value, &x); err != nil {
		return err
	}
	at, ok := s.known[u.Key]
	if !ok {
		at = len(s.seen)
		s.known[u.Key], s.seen = at, append(s.seen, x)
	}
	s.seen[at] = x
	return nil
}

// session returns one of the sessions that are not closed, most often a late one: the earlier ones are rarely used any
// more.
func (s *screen) session(rnd *rand.Rand) (x seen, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range len(s.seen) {
		n := len(s.seen)
		x = s.seen[max(rnd.IntN(n), rnd.IntN(n))]
		if x.Phase != session.Closed {
			return x, true
		}
	}
	return x, false
}

// service returns the service of a verb.
func service(verb string) string {
	switch verb {
	case "send", "withdraw", "compact":
		return compaction.Name
	case "now", "cancel", "resume":
		return retry.Name
	}
	return ledger.Name
}

// speak sends a request about a session.
func (p *person) speak(ctx context.Context, x seen) {
	r := events.Ref{Harness: x.Harness, Session: x.Session}
	switch n := p.rnd.IntN(100); {
	case n < 55 && len(x.Queue) < queueMax:
		p.send(ctx, r)
	case n < 65 && len(x.Queue) > 0:
		m := x.Queue[p.rnd.IntN(len(x.Queue))].Message
		p.ask(ctx, "withdraw", "message.withdrawn", note{Ref: r, ID: m},
			request.Withdraw{Ref: r, Message: m, By: p.name})
	case n < 72:
		p.ask(ctx, "compact", "", note{Ref: r}, request.Compact{Ref: r, By: p.name, Force: p.rnd.IntN(4) == 0})
	case n < 80:
		p.ask(ctx, "now", "", note{Ref: r}, request.Retry{Ref: r, By: p.name})
	case n < 88:
		p.ask(ctx, "resume", "", note{Ref: r}, request.Retry{Ref: r, By: p.name})
	case n < 92:
		p.ask(ctx, "cancel", "", note{Ref: r}, request.Retry{Ref: r, By: p.name})
	case n < 97:
		p.configure(ctx, r)
	default:
		p.ask(ctx, "stop", "", note{Ref: r}, request.Stop{Ref: r, By: p.name})
	}
}

// send sends a message that contains its own id, sometimes twice.
func (p *person) send(ctx context.Context, r events.Ref) {
	p.sent++
	m := fmt.Sprintf("m-%s-%d", p.name, p.sent)
	w := request.Send{Ref: r, Message: m, Content: json.RawMessage(quoted(m)), Synthetic: p.rnd.IntN(5) == 0,
		By: p.name}
	for range 1 + p.rnd.IntN(6)/5 {
		p.ask(ctx, "send", "message.accepted", note{Ref: r, ID: m}, w)
	}
}

func (p *person) configure(ctx context.Context, r events.Ref) {
	w := request.Configure{Ref: r, Policy: &events.PolicyPatch{AutoRetry: events.Set(p.rnd.IntN(2) == 0)},
		ProviderChanged: p.rnd.IntN(3) == 0, By: p.name}
	p.ask(ctx, "configure", "", note{Ref: r}, w)
}
