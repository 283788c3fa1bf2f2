package reconciler

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestLeftTurn: the open turn was left behind if its epoch's process is gone, unless the present owner has adopted a
// call that this turn waits for.
func TestLeftTurn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*session.State)
		want   bool
	}{
		"of an epoch before":              {func(*session.State) {}, true},
		"none is open":                    {func(s *session.State) { s.Turn = nil }, false},
		"of this epoch":                   {func(s *session.State) { s.Turn.Epoch = 2 }, false},
		"of this epoch, without an owner": {func(s *session.State) { s.Turn.Epoch, s.Owned = 2, false }, true},
		"its call was adopted":            {func(s *session.State) { s.Tools["task"].Epoch = 2 }, false},
		"a call of another turn was": {func(s *session.State) {
			s.Tools["task"].Epoch, s.Tools["task"].Turn = 2, "t0"
		}, true},
		"its call in the background was, with its prompt": {func(s *session.State) {
			s.Tools["task"].Epoch, s.Tools["task"].Background = 2, true
			s.Prompts = map[string]*session.Prompt{"p": {Turn: "t1", Call: "task", Epoch: 2}}
		}, true},
		"its prompt was not": {func(s *session.State) {
			s.Prompts = map[string]*session.Prompt{"p": {Turn: "t1", Epoch: 1}}
		}, true},
		"a prompt of no turn was adopted": {func(s *session.State) {
			s.Prompts = map[string]*session.Prompt{"p": {Epoch: 2}}
		}, true},
	} {
		d := parent()
		d.Epoch, d.Owned = 2, true
		c.change(d.State)
		if got := d.leftTurn(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestStopping: recovery carries out a stop of the open turn that no live owner will.
func TestStopping(t *testing.T) {
	for name, c := range map[string]struct {
		turn   string
		change func(*draft)
		want   bool
	}{
		"without an owner":    {"t1", func(*draft) {}, true},
		"owned by the living": {"t1", func(d *draft) { d.Owned, d.in.Owner.Liveness = true, Alive }, false},
		"owned by the dead":   {"t1", func(d *draft) { d.Owned, d.in.Owner.Liveness = true, Dead }, true},
		"left by an epoch before": {"t1", func(d *draft) { d.Owned, d.Epoch, d.in.Owner.Liveness = true, 2, Alive },
			true},
		"without a stop":           {"t1", func(d *draft) { d.Pending.Stop = nil }, false},
		"another one is to stop":   {"t1", func(d *draft) { d.Pending.Stop.Turn = "t0" }, false},
		"another one is open":      {"t1", func(d *draft) { d.Turn.ID = "t2" }, false},
		"none is open":             {"t1", func(d *draft) { d.Turn = nil }, false},
		"of a call without a turn": {"", func(d *draft) { d.Pending.Stop.Turn, d.Turn.ID = "", "" }, false},
	} {
		d := parent()
		d.Pending.Stop = &session.PendingStop{Turn: "t1", Actor: events.ActorPerson}
		c.change(d)
		if got := d.stopping(c.turn); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestExpiryAtTheBound: an agent asks a question with a deadline in each turn that recovery requests, and people do not
// answer. Recovery requests turns for that up to the bound on turns for decisions. Then the turn is interrupted like
// any other, and a person's act begins again.
func TestExpiryAtTheBound(t *testing.T) {
	y := newScript(t)
	y.append("s", "session.opened", `{"incarnation":"1"}`)
	asked := 0
	asks := func(i int) string {
		id := strconv.Itoa(i)
		if i > 1 {
			y.append("s", "session.claimed", `{"incarnation":"`+id+`"}`)
		}
		turn := "t" + id
		if p := y.State("s").Pending.Turn; p != nil {
			turn = p.ID
		}
		y.append("s", "turn.started", `{"turn":"`+turn+`","cause":"message","synthetic":true}`)
		deadline := y.Now.Add(time.Minute)
		y.append("s", "prompt.requested",
			`{"prompt":"p`+id+`","turn":"`+turn+`","kind":"question","delivery":"callback",`+
				`"on_owner_loss":"keep","deadline":"`+deadline.Format(time.RFC3339)+
				`","questions":[{"id":"q","question":"?"}]}`)
		y.owner("s", "dead")
		y.Now = deadline
		decided := y.decide()
		asked += strings.Count(decided, "turn.requested")
		return decided
	}
	last := ""
	for i := range session.ContinuationsMax + 1 {
		last = asks(i + 1)
	}
	if asked != session.ContinuationsMax || !strings.Contains(last, "prompt.expired") ||
		!strings.Contains(last, "turn.interrupted") {
		t.Fatalf("%d turns were requested; the last decision:\n%s", asked, last)
	}
	y.facts("s", strconv.FormatUint(y.Last+1, 10)+` by=compaction message.accepted {"message":"m","content":"x"}`)
	if decided := asks(2 * session.ContinuationsMax); !strings.Contains(decided, "turn.requested") {
		t.Errorf("a person has sent a message since:\n%s", decided)
	}
}

// TestSettleReadsTheText: a text of a rejection that the document no longer has is read in the log, and is the result
// of the call.
func TestSettleReadsTheText(t *testing.T) {
	ref := events.Ref{Harness: "h", Session: "s"}
	s := session.New(ref)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	text := strings.Repeat("x", session.TextBytesMax)
	var log []*events.Commit
	add := func(by events.Writer, facts ...events.Fact) {
		c := &events.Commit{Ref: ref, Writer: by, Seq: s.Seq + 1, Guard: s.Seq, Guarded: true, At: at}
		for i, f := range facts {
			c.Events = append(c.Events, events.New(strconv.Itoa(i), events.HarnessSource(ref.Harness, "17"), ref,
				max(s.Epoch, 1), at, f))
		}
		s.Fold(c)
		log = append(log, c)
	}
	add(events.WriterHarness, events.SessionOpened{Incarnation: "17"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	const calls = 20
	for i := range calls {
		n := strconv.Itoa(i)
		add(events.WriterHarness, events.ToolStarted{Call: "c" + n, Turn: "t1", Name: "ask"},
			events.PromptRequested{Prompt: "p" + n, Turn: "t1", Call: "c" + n, PromptKind: events.PromptQuestion,
				Delivery: events.DeliverToolResult})
		add(events.WriterLedger,
			events.PromptRejected{Prompt: "p" + n, Text: n + text[len(n):], By: "ada", Owed: true})
	}
	if s.Prompts["p0"].Reason != "" {
		t.Fatal("the document has the text of the first")
	}
	d, err := Decide(s, Input{Now: at, Owner: Owner{Liveness: Dead}}, func(seq uint64) (*events.Commit, error) {
		return log[seq-1], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := map[string]string{}
	for _, f := range d.Facts {
		if f, ok := f.(events.ToolFailed); ok {
			ended[f.Call] = f.Error.Text
		}
	}
	if len(ended) != calls || ended["c0"] != "0"+text[1:] {
		t.Errorf("%d calls end, the first with %q", len(ended), ended["c0"])
	}
}
