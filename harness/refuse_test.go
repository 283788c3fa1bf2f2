package harness_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestUnreadableDocuments checks that Sessions reports documents that it cannot read apart from those that it can (V6).
func TestUnreadableDocuments(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	for _, id := range []string{"a", "b c", "d"} {
		must[*harness.Session](t)(h.Open(w.ctx, id, harness.OpenOptions{}))
		w.show(id)
	}
	w.put(events.SessionKey(ref("newer")), []byte(`{"v":2}`))
	w.put(events.SessionKey(ref("b c")), []byte(`{"v":1,"harness":`))
	// no id is encoded so
	odd := "session." + me + ".=ZZ"
	w.put(odd, []byte(`no JSON`))
	all, unreadable, err := h.Sessions(w.ctx)
	check(t, err)
	ids := map[string]bool{}
	for _, st := range all {
		ids[st.Session] = true
	}
	if len(all) != 2 || !ids["a"] || !ids["d"] {
		t.Errorf("readable: %v", ids)
	}
	why := map[string]error{}
	for _, u := range unreadable {
		why[u.Session] = u.Err
	}
	if len(why) != 3 || !errors.Is(why["newer"], session.ErrNewerLayout) || why["b c"] == nil || why[odd] == nil {
		t.Errorf("unreadable: %v", why)
	}
	if errors.Is(why["b c"], session.ErrNewerLayout) {
		t.Errorf("a damaged document is reported as newer: %v", why["b c"])
	}
	_, err = h.Claim(w.ctx, "newer")
	wantErr(t, err, session.ErrNewerLayout)
	w.server.Shutdown()
	none, cancel := short(w.ctx)
	defer cancel()
	if all, unreadable, err = h.Sessions(none); !errors.Is(err, harness.ErrUnreachable) || all != nil ||
		unreadable != nil {
		t.Errorf("without a broker: %v, %v, %v", all, unreadable, err)
	}
}

// TestNil checks that a nil fact, no facts at all, and a nil error are refused, and that nothing is stored for them.
func TestNil(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	before := w.state("s").Seq
	var none []events.Fact
	for name, err := range map[string]error{
		"Append(nil)":       s.Append(w.ctx, nil),
		"Append()":          s.Append(w.ctx, none...),
		"Append(fact, nil)": s.Append(w.ctx, events.TurnCompleted{Turn: "t1"}, nil),
		"Relay(nil)":        s.Relay(w.ctx, nil),
		"Relay()":           s.Relay(w.ctx, none...),
		"FailWith(nil)":     turn.FailWith(w.ctx, nil),
	} {
		if !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if st := w.state("s"); st.Seq != before || st.Turn == nil {
		t.Errorf("stored: commit %d after %d, turn %v", st.Seq, before, st.Turn)
	}
}

// TestUsageOfAFencedSession checks that a report that would be held back is refused once the session is not this
// process's.
func TestUsageOfAFencedSession(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	check(t, turn.Usage(w.ctx, input(50_000)))
	// held back
	check(t, turn.Usage(w.ctx, input(50_001)))
	two := w.connect()
	must[*harness.Session](t)(two.Claim(w.ctx, "s"))
	wantErr(t, ended(t, s.Context()), harness.ErrFenced)
	wantErr(t, turn.Usage(w.ctx, input(50_002)), harness.ErrFenced)
}

// TestNoJSON checks that a value which cannot be written as JSON is refused to the caller that gave it, wherever the
// client takes one, and that nothing is stored for it.
func TestNoJSON(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	call := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "bash"}))
	w.released(h, "free")
	before, free := w.state("s").Seq, w.state("free").Seq
	no := func() {}
	last := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"Open": last(h.Open(w.ctx, "new", harness.OpenOptions{Native: no})),
		"Claim": last(h.Claim(w.ctx, "free",
			harness.Adopt{Prompts: []harness.Prompt{{ID: "p1", Native: no}}})),
		"StartTurn, content": last(s.StartTurn(w.ctx, harness.StartOptions{Content: no})),
		"StartTurn, options": last(s.StartTurn(w.ctx, harness.StartOptions{Options: no})),
		"Tool":               last(turn.Tool(w.ctx, harness.ToolOptions{Name: "bash", Input: no})),
		"Call.Complete":      call.Complete(w.ctx, no),
		"Ask":                last(turn.Ask(w.ctx, harness.Prompt{Native: no})),
		"Send":               last(h.Send(w.ctx, harness.Message{Session: "s", Content: no})),
	} {
		if _, ok := errors.AsType[*json.UnsupportedTypeError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if st := w.state("s"); st.Seq != before || w.state("free").Seq != free || w.state("new").Opened() {
		t.Errorf("something was stored: commit %d after %d", st.Seq, before)
	}
}

// TestKindOfAPrompt checks that a prompt without a kind is a question, and that an agent waits for it unless it says
// otherwise.
func TestKindOfAPrompt(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	ask(w.ctx, turn, harness.Prompt{ID: "p2", Questions: question(), NonBlocking: true})
	w.awaiting("s", "p2")
	p1, p2 := w.state("s").Prompts["p1"], w.state("s").Prompts["p2"]
	if p1.Kind != events.PromptQuestion || !p1.Blocking || p2.Blocking {
		t.Errorf("kind %q, blocking %t and %t", p1.Kind, p1.Blocking, p2.Blocking)
	}
}

// TestLargeOptions checks that options beyond the limit are refused to the caller that gave them.
func TestLargeOptions(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	before := w.state("s").Seq
	large := strings.Repeat("x", events.OptionsBytesMax)
	_, err := s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x", Options: large})
	wantErr(t, err, events.ErrMalformed)
	if err == nil || !strings.Contains(err.Error(), "options") ||
		!strings.Contains(err.Error(), fmt.Sprint(events.OptionsBytesMax)) {
		t.Errorf("the error does not say what is too large: %v", err)
	}
	if st := w.state("s"); st.Seq != before {
		t.Error("something was stored")
	}
	// two bytes are the quotes
	fits := strings.Repeat("x", events.OptionsBytesMax-2)
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2", Content: "x", Options: fits}))
	if got := len(w.state("s").Turn.Options); got != events.OptionsBytesMax {
		t.Errorf("%d bytes of options", got)
	}
	check(t, turn.Complete(w.ctx, ""))
}
