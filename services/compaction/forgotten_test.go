package compaction

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// visit is called with each commit that is read.
type visit = func(events.Commit) error

// TestSentAgainLongAgo: a message is sent again after fifty later endings have displaced its own from the document. It
// is taken once: the reply has its place, other content under its id is refused, and nothing is appended. A message
// under a new id reads what is new since the last look, and not the whole log. A withdrawal of such a message has the
// reply that it had before.
// The last turn and the pending turn are those of m2, another message.
func TestSentAgainLongAgo(t *testing.T) {
	c := start(t)
	s, _ := c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	sent := map[string]uint64{}
	send := func(m request.Send) uint64 {
		t.Helper()
		seq, err := c.ask("send", m)
		c.check(err)
		return seq
	}
	takes := func(id string) {
		t.Helper()
		sent[id] = send(message(r, id))
		p := c.state(r).Pending.Turn
		if p == nil || p.Message != id {
			t.Fatalf("%s has %+v", id, p)
		}
		h.append("s", events.TurnStarted{Turn: p.ID, Cause: p.Cause, Message: id})
		for i := range session.RecentMax {
			call := fmt.Sprint(id, "-", i)
			h.append("s", events.ToolStarted{Call: call, Turn: p.ID, Name: "read"}, events.ToolCompleted{Call: call})
		}
		h.append("s", events.TurnCompleted{Turn: p.ID})
	}
	takes("m1")
	send(message(r, "m0"))
	withdraw := func(m string) (uint64, error) {
		return c.ask("withdraw", request.Withdraw{Ref: r, Message: m, By: "ada"})
	}
	withdrawn, err := withdraw("m0")
	c.check(err)
	takes("m2")
	reads := 0
	s.had = control.NewHistory(func(ctx context.Context, r events.Ref, from uint64, fn visit) error {
		return c.b.Log.Each(ctx, r, from, func(c events.Commit) error {
			reads++
			return fn(c)
		})
	}, messageOf, control.HistoryMax)
	before := c.state(r)
	if lists(before, "m0") || lists(before, "m1") {
		t.Fatal("the document still lists the messages")
	}
	if seq := send(message(r, "m1")); seq != sent["m1"] {
		t.Errorf("sent again: %d, want %d", seq, sent["m1"])
	}
	_, err = c.ask("send", request.Send{Ref: r, Message: "m1", Content: text("other"), By: "ada"})
	if refusal, ok := errors.AsType[*events.Refusal](err); !ok || refusal.Code != 409 {
		t.Errorf("with other content: %v", err)
	}
	if seq, err := withdraw("m0"); err != nil || seq != withdrawn {
		t.Errorf("withdrawn again: %d, %v, want %d", seq, err, withdrawn)
	}
	_, err = withdraw("m1")
	if refusal, ok := errors.AsType[*events.Refusal](err); !ok || refusal.Code != 409 {
		t.Errorf("withdrawn after it was handed out: %v", err)
	}
	if after := c.state(r); after.Seq != before.Seq {
		t.Errorf("the log has %d after %d", after.Seq, before.Seq)
	}
	whole := reads
	if seq := send(message(r, "m3")); seq <= before.Seq {
		t.Errorf("a new message has the place %d", seq)
	}
	if more := reads - whole; more > 2 || whole < session.RecentMax {
		t.Errorf("a new message read %d commits after %d", more, whole)
	}
}
