package compaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestBadRequests: a request that cannot be carried out is refused with its code and the wrong field; nothing is
// appended.
func TestBadRequests(t *testing.T) {
	c := start(t)
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	before := c.state(r).Seq
	fits := strings.Repeat("x", events.ContentBytesMax-len(`""`))
	for _, x := range []struct {
		name, verb, body string
		code             int
		want             string
	}{
		{"no object", "send", `[]`, 400, "not JSON"},
		{"no session", "send", `{"harness":"h","message":"m","content":"x","by":"ada"}`, 400, "session"},
		{"no id", "send", `{"harness":"h","session":"s","content":"x","by":"ada"}`, 400, "message"},
		{"an id that is too long", "send",
			`{"harness":"h","session":"s","message":"` + strings.Repeat("m", 129) + `","content":"x","by":"ada"}`, 400,
			"message"},
		{"no asker", "send", `{"harness":"h","session":"s","message":"m","content":"x"}`, 400, "by"},
		{"nothing is said", "send", `{"harness":"h","session":"s","message":"m","by":"ada"}`, 400, "content or ref"},
		{"null is said", "send", `{"harness":"h","session":"s","message":"m","content":null,"by":"ada"}`, 400,
			"content or ref"},
		{"said twice", "send", `{"harness":"h","session":"s","message":"m","content":"x","ref":"o","by":"ada"}`, 400,
			"content or ref"},
		{"synthetic is no text", "send",
			`{"harness":"h","session":"s","message":"m","content":"x","synthetic":"no","by":"ada"}`, 400, "synthetic"},
		{"more than fits", "send", `{"harness":"h","session":"s","message":"m","content":"x` + fits + `","by":"ada"}`,
			413, "store it as an object"},
		{"an object that is not there", "send",
			`{"harness":"h","session":"s","message":"m","ref":"no such object","by":"ada"}`, 404, "object"},
		{"an object's name too long", "send",
			`{"harness":"h","session":"s","message":"m","ref":"` + strings.Repeat("o", 257) + `","by":"ada"}`, 400,
			"ref"},
		{"no such session", "send", `{"harness":"h","session":"none","message":"m","content":"x","by":"ada"}`, 404,
			"no such session"},
		{"no such message", "withdraw", `{"harness":"h","session":"s","message":"m","by":"ada"}`, 404,
			"no such message"},
		{"no message", "withdraw", `{"harness":"h","session":"s","by":"ada"}`, 400, "message"},
		{"no asker of a compaction", "compact", `{"harness":"h","session":"s"}`, 400, "by"},
		{"force is no word", "compact", `{"harness":"h","session":"s","by":"ada","force":"yes"}`, 400, "force"},
		{"negative use", "check", `{"harness":"h","session":"s","used":-1}`, 400, "used"},
		{"use beyond numbers", "check", `{"harness":"h","session":"s","used":1e99}`, 400, "used"},
		{"use that is no number", "check", `{"harness":"h","session":"s","used":"many"}`, 400, "used"},
		{"nothing at all", "check", `{}`, 400, "harness"},
	} {
		t.Run(x.name, func(t *testing.T) {
			err := c.b.Services.Request(c.ctx, Name, x.verb, json.RawMessage(x.body), nil)
			refusal, ok := errors.AsType[*events.Refusal](err)
			if !ok || refusal.Code != x.code || !strings.Contains(refusal.Error()+string(refusal.Body()), x.want) {
				t.Errorf("%v, want %d about %q", err, x.code, x.want)
			}
		})
	}
	if after := c.state(r).Seq; after != before {
		t.Errorf("something was appended: %d, was %d", after, before)
	}
	if _, err := c.ask("send",
		request.Send{Ref: r, Message: "m1", Content: json.RawMessage(`"` + fits + `"`), By: "ada"}); err != nil {
		t.Errorf("the most that fits: %v", err)
	}
}

// TestByReference: content that is stored as an object is accepted by its name; the same message again with that name
// is a success, with another it is refused.
func TestByReference(t *testing.T) {
	c := start(t)
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	name, err := c.b.Objects.Put(c.ctx, r, []byte(`"large"`))
	c.check(err)
	other, err := c.b.Objects.Put(c.ctx, r, []byte(`"another"`))
	c.check(err)
	w := request.Send{Ref: r, Message: "m1", Object: name, By: "ada"}
	first, err := c.ask("send", w)
	c.check(err)
	if again, err := c.ask("send", w); err != nil || again != first {
		t.Errorf("again: %d %v, want %d", again, err, first)
	}
	w.Object = other
	if _, err := c.ask("send", w); code(err) != 409 {
		t.Errorf("another content: %v", err)
	}
	st := c.state(r)
	work, err := st.Work(func(seq uint64) (*events.Commit, error) {
		x, err := c.b.Log.Commit(c.ctx, seq)
		return &x,
			err
	})
	if err != nil || work.Turn.Ref != name || work.Turn.Content != nil {
		t.Errorf("the harness is shown %+v, %v", work.Turn, err)
	}
}

func code(err error) int {
	if refusal, ok := errors.AsType[*events.Refusal](err); ok {
		return refusal.Code
	}
	return 0
}

// TestUsageThatCannotBe: a report with negative or absurd numbers is parked and changes nothing; one without numbers,
// or without a model, has no effect. A threshold out of range is refused with the policy.
func TestUsageThatCannotBe(t *testing.T) {
	for _, tokens := range []string{`{"input":-1}`, `{"input":1e30}`, `{"input":"many"}`,
		`{"cache_read":-5,"input":900}`, `"none"`} {
		y := newScript(t)
		y.facts(`1 session.opened {"incarnation":"17","context_limit":1000}`)
		y.facts(`2 turn.started {"turn":"t1","cause":"message"}`)
		y.facts(`3 usage.reported {"turn":"t1","model":"m","tokens":{"input":100}}`)
		y.facts(`4 usage.reported {"turn":"t1","model":"m","tokens":` + tokens + `}`)
		if y.s.Parked != 1 || y.s.Usage.Used != 100 {
			t.Errorf("%s: parked %d, usage %+v", tokens, y.s.Parked, y.s.Usage)
		}
		if d := Decide(y.s, Input{Now: y.Now}); len(d.Facts) > 0 {
			t.Errorf("%s: %v", tokens, d.Facts)
		}
	}
	for _, threshold := range []float64{-1, 0, 0.09, 1.01, 70} {
		p := events.DefaultPolicy()
		p.CompactionThreshold = threshold
		if err := p.Validate(); err == nil {
			t.Errorf("a threshold of %v is taken", threshold)
		}
	}
}

// TestLimitsOfTheQueue: a message beyond the limit of the queue is refused with that reason; one more fits after one is
// taken.
func TestLimitsOfTheQueue(t *testing.T) {
	y := newScript(t)
	y.facts(`1 session.opened {"incarnation":"17"}`)
	y.facts(`2 turn.started {"turn":"t1","cause":"message"}`)
	send := func(id string) error {
		o, err := Send(y.s, request.Send{Ref: y.s.Ref(), Message: id, Content: text("x"), By: "ada"}, y.Now, y.Source)
		y.commit(o.Facts...)
		return err
	}
	for i := range session.QueuedMax {
		if err := send(fmt.Sprint("m", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := send("more"); code(err) != 503 || !strings.Contains(err.Error(), "1000 messages wait") {
		t.Errorf("one more: %v", err)
	}
	o, err := Withdraw(y.s, request.Withdraw{Ref: y.s.Ref(), Message: "m5", By: "ada"}, y.Now)
	if err != nil {
		t.Fatal(err)
	}
	y.commit(o.Facts...)
	if err := send("more"); err != nil {
		t.Errorf("when there is room: %v", err)
	}
}

// TestNearlyFull: when the log is nine tenths full no new message is accepted; one can still be withdrawn, and existing
// work continues.
func TestNearlyFull(t *testing.T) {
	const logBytes = 256 << 10
	c := newCell(t, natstest.Bus(t, natstest.Start(t), func(cfg *bus.Config) { cfg.LogBytesMax = logBytes }))
	c.compaction(c.b, Default())
	h := c.harness("h")
	r := h.open("s", 100, nil)
	h.append("s", events.TurnStarted{Turn: "t2", Cause: events.CauseMessage})
	refused := ""
	natstest.Until(t, "a message to be refused", func() bool {
		w := message(r, c.b.NewID())
		w.Content = text(strings.Repeat("x", 8<<10))
		_, err := c.ask("send", w)
		refused = fmt.Sprint(err)
		return code(err) == 503
	})
	used, most, err := c.b.Log.Usage(c.ctx)
	if err != nil || used < most/10*9 || most != logBytes || !strings.Contains(refused, "nearly full") {
		t.Errorf("%d of %d bytes, %v: %s", used, most, err, refused)
	}
	if _, err := c.ask("withdraw", request.Withdraw{Ref: r, Message: c.state(r).Queue[0].ID, By: "ada"}); err != nil {
		t.Errorf("taking one back: %v", err)
	}
	h.append("s", events.TurnCompleted{Turn: "t2"})
	c.until(r, "the next message", func(s *session.State) bool { return s.Pending.Turn != nil })
}

// TestLongAfterItWasSent: a turn with more calls than listed endings still has its message: sending it again returns
// its place (V10), and a withdrawal is refused as handed out (C18).
func TestLongAfterItWasSent(t *testing.T) {
	var calls strings.Builder
	for i := range session.RecentMax + 1 {
		fmt.Fprintf(&calls, "4 tool.started {\"call\":\"c%d\",\"turn\":\"$turn\",\"name\":\"bash\"}\n4 "+
			"tool.completed {\"call\":\"c%d\"}\n", i, i)
	}
	request := func(verb, body string) string {
		return "-- request --\n" + verb + " " + body + "\n-- result --\n"
	}
	begun := "A long turn.\n\n-- facts --\n1 session.opened {\"incarnation\":\"17\"}\n" +
		request("send", `{"message":"m1","content":"hello","by":"ada"}`) +
		"-- facts --\n3 turn.started {\"turn\":\"$requested\"}\n" + calls.String()
	for _, x := range []struct{ what, request, result string }{
		{"again", request("send", `{"message":"m1","content":"hello","by":"ada"}`), "nothing to append, see 2"},
		{"another", request("send", `{"message":"m1","content":"bye","by":"ada"}`),
			"409 message m1 was sent with another content: choose another id\n  {\"status\":\"delivered\",\"seq\":2}"},
		{"taken back", request("withdraw", `{"message":"m1","by":"ada"}`),
			"409 message m1 was handed out already: stop the turn instead\n  {\"status\":\"delivered\",\"seq\":2}"},
		{"no such", request("withdraw", `{"message":"m2","by":"ada"}`),
			"404 no such message: m2\n  {\"what\":\"message\"}"},
	} {
		t.Run(x.what, func(t *testing.T) {
			y := newScript(t)
			if got := y.Run(begun + x.request); !strings.HasSuffix(got, x.result+"\n") {
				t.Errorf("the result is %q, want %q", got[max(len(got)-200, 0):], x.result)
			}
			if _, kept := y.s.Ended(session.EntityMessage, "m1"); kept {
				t.Error("the message's end is still kept: this shows nothing")
			}
		})
	}
}
