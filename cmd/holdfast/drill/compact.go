package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Size of the conversations in the compaction act.
const (
	contextLimit = 1_000 // tokens
	contextUsed  = 900   // before
	contextAfter = 100   // after compaction
	// Seconds until all messages are delivered: a failed compaction and an interrupted turn are retried after 2 s.
	compactMaxS   = 20
	actCompactPre = "compact-"
)

// queued are the messages in the order in which they are sent.
var queued = []string{"m1", "m2", "m3"}

// step is a point of a compaction at which its agent is killed.
type step struct {
	name string
	when string // for people
	in   string // the same in the words of the promise
	at   func(*session.State) bool
}

// steps are all steps in their order.
var steps = []step{
	{"ask", "before it begins", "before it", func(s *session.State) bool {
		return s.Pending.Compaction != nil && len(s.Queue) == len(queued)
	}},
	{"start", "while it compacts", "in it", func(s *session.State) bool {
		return s.Compaction.Running() && len(s.Queue) == len(queued)
	}},
	{"done", "when it has compacted", "after it", func(s *session.State) bool {
		return s.LastCompaction != nil && s.LastCompaction.Outcome == session.OutcomeCompleted &&
			len(s.Queue) == len(queued)
	}},
	{"turn", "with the first message in hand", "in a turn", func(s *session.State) bool {
		return s.Turn != nil && s.Turn.Message == queued[0] && len(s.Queue) == len(queued)-1
	}},
}

// compact kills an agent at each step of a compaction with three messages behind it. The steps run concurrently.
func (d *drill) compact(ctx context.Context) error {
	d.report(actCompactPre+steps[0].name, "", "%s", headingCompact)
	verdicts, errs := make([]Verdict, len(steps)), make([]error, len(steps))
	var all sync.WaitGroup
	for i := range steps {
		all.Go(func() { verdicts[i], errs[i] = d.compactAt(ctx, &steps[i]) })
	}
	all.Wait()
	for _, v := range verdicts {
		d.verify(v)
	}
	return errors.Join(errs...)
}

// promiseCompact begins the promises of these acts.
const promiseCompact = "compaction, killed "

// headingCompact is the heading of these acts.
const headingCompact = "SIGKILL at each step of a compaction, with three messages behind it"

// compactAt runs the act for one step.
func (d *drill) compactAt(ctx context.Context, at *step) (Verdict, error) {
	act := actCompactPre + at.name
	v := Verdict{Act: act, Promise: promiseCompact + at.in,
		Expected: strings.Join(queued, " ") + ", once", TookMS: -1}
	c, err := d.onStage(ctx, act, roleFull, func(s *session.State) bool {
		return s.Turn == nil && s.Usage != nil &&
			s.Usage.Used == contextUsed
	})
	if err != nil {
		return v, err
	}
	if _, _, err := c.expect(ctx, wordReady, startMaxS*time.Second); err != nil {
		return v, err
	}
	for _, id := range queued {
		if err := d.send(ctx, act, id); err != nil {
			v.Seen = err.Error()
			return v, ctx.Err()
		}
	}
	began := time.Now()
	if _, _, err := d.world.until(ctx, act, "killed "+at.when, startMaxS*time.Second, at.at); err != nil {
		v.Seen = err.Error()
		return v, ctx.Err()
	}
	if err := c.signal(syscall.SIGKILL, at.when); err != nil {
		return v, err
	}
	next, err := d.start(act, roleGoesOn)
	if err != nil {
		return v, err
	}
	s, _, err := d.world.until(ctx, act, "everything handed out", compactMaxS*time.Second, func(s *session.State) bool {
		return len(s.Queue) == 0 && s.Turn == nil && s.Pending == session.Pending{} && s.LastTurn != nil &&
			s.LastTurn.Outcome == session.OutcomeCompleted &&
			s.LastCompaction != nil && s.Retry.State == ""
	})
	v.TookMS = time.Since(began).Milliseconds()
	if err != nil {
		v.Seen = err.Error()
		return v, ctx.Err()
	}
	v.Seen = handedOut(s)
	v.OK = v.Seen == v.Expected
	return v, d.dismiss(ctx, next)
}

// send sends a message as a person does.
func (d *drill) send(ctx context.Context, act, id string) error {
	d.report(act, whoDrill, "sends message %s", id)
	content, err := json.Marshal("message " + id)
	if err != nil {
		return fmt.Errorf("message %s: %w", id, err)
	}
	_, err = rpc.Call(ctx, d.bus.Services, request.CompactionSend, request.Send{
		Ref: events.Ref{Harness: d.names[act], Session: act}, Message: id, Content: content, By: person})
	return err
}

// handedOut returns the delivered messages in their order, and how often their conversation was compacted.
func handedOut(s *session.State) string {
	var seen []string
	compacted := 0
	// oldest first
	for i := range s.Recent {
		switch e := &s.Recent[i]; {
		case e.Entity == session.EntityMessage && strings.HasPrefix(e.ID, "m") && len(e.ID) == len(queued[0]):
			seen = append(seen, e.ID)
			if e.Outcome != session.OutcomeDelivered {
				seen = append(seen, "("+e.Outcome+")")
			}
		case e.Entity == session.EntityCompaction && e.Outcome == session.OutcomeCompleted:
			compacted++
		}
	}
	times := "once"
	if compacted != 1 {
		times = fmt.Sprintf("%d times", compacted)
	}
	return strings.Join(seen, " ") + ", " + times
}
