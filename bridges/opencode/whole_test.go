package opencode

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// TestANamedDecisionEndsNoCall: while the lease of the bridge is overdue, a turn only names its decisions. OpenCode
// does not get such a one as a dismissal.
func TestANamedDecisionEndsNoCall(t *testing.T) {
	const question = `{"type":"tool","id":"p1","tool":"question","callID":"call_1","state":{"status":"running",` +
		`"input":{"questions":[{"question":"Which?","header":"h","options":[{"label":"a","description":""}]}]}}}`
	messages := decodeMessages(&Snapshot{Messages: []Message{{
		Info:  json.RawMessage(`{"id":"msg_1","role":"assistant"}`),
		Parts: []json.RawMessage{json.RawMessage(question)}}}})
	st := fold.New(events.Ref{Harness: "h", Session: "ses_1"})
	st.Prompts = map[string]*fold.Prompt{"que_1": {Call: ident("call", "call_1")}}
	r := &follower{translator: NewTranslator()}
	named := []fold.TurnPrompt{{Prompt: "que_1", Seq: 5, Omitted: true}}
	if at, _ := findCall(messages, &named[0], ident("call", "call_1"), false, map[string]bool{}); at < 0 {
		t.Fatal("the call that waits is not found")
	}
	some, err := r.settlePrompts(t.Context(), &process{}, stored{ID: "ses_1"}, messages, named, st)
	if some || err != nil {
		t.Errorf("the call was ended: %v, %v", some, err)
	}
}
