package reconciler

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// childRest is how long a failed child may wait for a retry before its parent continues.
const childRest = 2 * time.Second

// childrenOf returns the sessions that a call waits for, in a fixed order.
func childrenOf(children []*session.State, call string) []*session.State {
	var of []*session.State
	for _, c := range children {
		if c.ParentCall == call && call != "" {
			of = append(of, c)
		}
	}
	slices.SortFunc(of, func(a, b *session.State) int {
		switch {
		case a.Session < b.Session:
			return -1
		case a.Session > b.Session:
			return 1
		}
		return 0
	})
	return of
}

// Unsettled reports whether a session still has work: an awaiting prompt, an open turn, pending work, a retry, a
// compaction, or its follow-up.
func Unsettled(s *session.State) bool {
	switch {
	case s.Closed != nil:
		return false
	case s.Turn != nil || s.Pending != (session.Pending{}) || len(s.PendingPrompts()) > 0:
		return true
	case s.RetryPlanned():
		return true
	}
	return s.CompactionFirst()
}

// unsettled returns the children that a call is held for, sorted.
func (d *draft) unsettled(call string) []string {
	var ids []string
	for _, c := range childrenOf(d.in.Children, call) {
		if Unsettled(c) && !d.fallen(c) || d.resting(call, c) {
			ids = append(ids, c.Session)
		}
	}
	return ids
}

// held reports whether a call is held for a child; it sets the next check if that depends on time.
func (d *draft) held(call string) bool {
	for _, c := range childrenOf(d.in.Children, call) {
		if !Unsettled(c) && d.resting(call, c) {
			d.CheckAt(c.LastTurn.At.Add(childRest))
		}
	}
	return len(d.unsettled(call)) > 0
}

// holds reports whether a call of this turn is held for a child.
func (d *draft) holds(turn string) bool {
	for id, c := range d.Tools {
		if c.Turn == turn && !d.Owns(c.Epoch) && len(d.unsettled(id)) > 0 {
			return true
		}
	}
	return false
}

// waited reports whether the log has a call as held, for a child that may be purged since.
func (d *draft) waited(call string) bool {
	return slices.ContainsFunc(d.WaitsFor, func(w events.WaitFor) bool { return w.Call == call })
}

// resting reports whether a settled child failed so recently that retry may not have read it yet.
func (d *draft) resting(call string, c *session.State) bool {
	l := c.LastTurn
	if l == nil || c.Closed != nil || c.Retry.State != "" || !c.Policy.AutoRetry || !d.waited(call) || d.fellWith(c) {
		return false
	}
	lost := l.Outcome == session.OutcomeFailed || l.Outcome == session.OutcomeInterrupted
	return lost && d.in.Now.Before(l.At.Add(childRest))
}

// fellWith reports whether a child was interrupted together with this session: by the loss of the same process.
func (d *draft) fellWith(c *session.State) bool {
	l := c.LastTurn
	return l != nil && l.Outcome == session.OutcomeInterrupted && c.Incarnation == d.Incarnation && !c.Owned
}

// fallen reports whether a child was interrupted together with this session and has nothing else open or requested than
// a retry. Its retry does not hold the parent, which is retried, too. Other requested work, such as a person's answer
// or message, does.
func (d *draft) fallen(c *session.State) bool {
	asked := c.Pending
	if t := asked.Turn; t != nil && t.By == "" && (t.Cause == events.CauseRetry || t.Cause == events.CauseResume) {
		asked.Turn = nil
	}
	return d.fellWith(c) && c.Turn == nil && asked == session.Pending{} && len(c.PendingPrompts()) == 0 &&
		!c.CompactionFirst()
}

// childOutput is the output of a parent's call about its child.
type childOutput struct {
	Child   string `json:"child"`
	Outcome string `json:"outcome"`
	Turn    string `json:"turn,omitempty"` // the child's last one: its messages have the details
}

// becameOf returns how a call ends whose children have settled: like the child that changed last. whole is false if
// that child was interrupted together with its parent, or never worked: then the conversation was interrupted and has
// not waited for anything.
func (d *draft) becameOf(call string, kids []*session.State) (result events.Fact, whole bool) {
	var last *session.State
	for _, c := range kids {
		if c.LastTurn != nil && (last == nil || c.LastTurn.Seq > last.LastTurn.Seq) {
			last = c
		}
	}
	interrupted := events.ToolInterrupted{Call: call, Reason: d.reason(), Outcome: events.OutcomeUnknown}
	if last == nil {
		// held for a child that was purged since
		return interrupted, d.waited(call) && len(kids) == 0
	}
	name := "child session " + last.Session
	switch l := last.LastTurn; l.Outcome {
	case session.OutcomeCompleted:
		return events.ToolCompleted{Call: call, Output: encode(childOutput{last.Session, l.Outcome, l.ID}),
			Synthetic: true}, true
	case session.OutcomeFailed:
		text := name + " failed"
		if l.Error != nil {
			text += ": " + l.Error.Kind + " " + l.Error.Text
		}
		return events.ToolFailed{Call: call, Error: events.Failure{Kind: events.ReasonChildEnded, Text: text},
			Synthetic: true}, true
	case session.OutcomeStopped:
		return events.ToolFailed{Call: call,
			Error: events.Failure{Kind: events.ReasonChildEnded, Text: name + " was stopped"}, Synthetic: true}, true
	}
	if !d.waited(call) || d.fellWith(last) {
		return interrupted, false
	}
	interrupted.Reason = events.ReasonChildEnded
	return interrupted, true
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	// texts always encode
	if err != nil {
		return json.RawMessage(`null`)
	}
	return b
}
