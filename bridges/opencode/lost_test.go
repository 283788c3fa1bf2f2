package opencode

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// once is a decision of a person.
func (st *stage) once() { st.answer("ses_1", "per_1", events.PermissionQuestion, "once") }

// isReplied waits until OpenCode has a decision, once.
func (st *stage) isReplied(id, reply string) {
	st.t.Helper()
	natstest.Until(st.t, id+" has its reply", func() bool {
		return len(st.made("permission/"+id+"/reply", `"`+reply+`"`)) == 1
	})
}

// waitsFor has a call that waits for the permission per_1.
func (st *stage) waitsFor() {
	st.t.Helper()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.permission("ses_1", "per_1", "msg_1", "call_1")
	st.until("ses_1", "a permission waits", awaits(1))
}

// becomes changes the state of call_1 in the store of OpenCode, of which no bridge hears.
func (st *stage) becomes(state object) {
	st.set(func() {
		for _, m := range st.messages["ses_1"] {
			for _, p := range m.Parts {
				if p["callID"] == "call_1" {
					for k, v := range state {
						p["state"].(object)[k] = v
					}
				}
			}
		}
	})
}

// hasWords waits until OpenCode has these words as the end of call_1, and no other words about the decision.
func (st *stage) hasWords(words string) {
	st.t.Helper()
	natstest.Until(st.t, "the decision is the end of its call", func() bool {
		return len(st.made("PATCH", "p-call_1", textNoResult)) > 0
	})
	st.until("ses_1", "the turn completed", completed)
	if got := st.made("PATCH", "p-call_1", textNoResult); len(got) != len(st.made("PATCH", "p-call_1", words)) {
		st.t.Errorf("stored %q", got)
	}
}

// A decision that a process of OpenCode has, or may have, is not said to have come too late for it: the call may have
// run before the process died.
func TestLivePermissionOfACallThatMayHaveRun(t *testing.T) {
	t.Run("OpenCode dies with it", func(t *testing.T) {
		st := newStage(t)
		st.plays()
		st.bridge()
		st.waitsFor()
		st.once()
		st.isReplied("per_1", "once")
		st.kill()
		st.start()
		st.hasWords(textMayHaveRun)
	})
	t.Run("the bridge and OpenCode die with it", func(t *testing.T) {
		st := newStage(t)
		st.plays()
		stop := st.bridge()
		st.waitsFor()
		st.once()
		st.isReplied("per_1", "once")
		stop()
		st.kill()
		st.start()
		st.bridge()
		st.hasWords(textMayHaveRun)
	})
	// while the bridge was gone, a person has decided in OpenCode itself: the metadata of the call shows it
	t.Run("it reports", func(t *testing.T) {
		st := newStage(t)
		st.plays()
		stop := st.bridge()
		st.waitsFor()
		stop()
		st.becomes(object{"metadata": object{"output": ""}})
		st.kill()
		st.recover("ses_1")
		st.once()
		st.start()
		st.bridge()
		st.hasWords(textMayHaveRun)
	})
	// the next bridge brought it to the process that asked
	t.Run("a later bridge has brought it", func(t *testing.T) {
		st := newStage(t)
		st.plays()
		stop := st.bridge()
		st.waitsFor()
		stop()
		st.recover("ses_1")
		st.once()
		stop = st.bridge()
		st.isReplied("per_1", "once")
		stop()
		st.kill()
		st.start()
		st.bridge()
		st.until("ses_1", "the turn is over", ended)
		natstest.Until(t, "the call is closed", func() bool { return len(st.made("PATCH", "p-call_1")) > 0 })
		if got := st.made("PATCH", "p-call_1", textPermitted); len(got) != 0 {
			t.Errorf("stored %q", got)
		}
	})
}

// A call that has ended with an error of its own while no bridge was there keeps that error, and the log says that its
// agent had another decision.
func TestLivePermissionOfACallThatFailed(t *testing.T) {
	for name, x := range map[string]struct {
		error  string
		reason string
	}{
		"it ran":           {"exit 1", ""},
		"rejected earlier": {rejectedText + " to use this tool call.", "refused: " + reasonLate},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.plays()
			stop := st.bridge()
			st.waitsFor()
			stop()
			st.becomes(object{"status": "error", "error": x.error})
			st.set(func() { delete(st.prompts, "per_1") })
			st.kill()
			st.recover("ses_1")
			st.once()
			st.start()
			st.bridge()
			s := st.until("ses_1", "the turn completed", completed)
			if got := st.made("PATCH", "p-call_1"); len(got) != 0 {
				t.Errorf("stored %q", got)
			}
			if e, _ := s.Ended(fold.EntityPrompt, "per_1"); e.Reason != x.reason {
				t.Errorf("the permission is %+v", e)
			}
		})
	}
}

// lost is a session whose owner of epoch 3 was lost with a permission that waited, and about which a person has decided
// in commit 7. The owner of epoch 4 has the turn that brings the decision.
func lost() *fold.State {
	return &fold.State{Epoch: 4, Owned: true, Turn: &fold.Turn{ID: "t2", Cause: events.CauseAnswer,
		Prompts: []fold.Carried{{Prompt: "p", Status: fold.Answered, Seq: 7, Asked: 3}}},
		Recent: []fold.Ending{
			{Entity: fold.EntityPrompt, ID: "p", Name: string(events.PromptPermission), Call: "c", Seq: 7, Epoch: 3},
			{Entity: fold.EntityTool, ID: "c", Outcome: fold.OutcomeCompleted, Seq: 7}}}
}

// Only the log shows that no owner could bring a decision to the process that asked: without that it counts as brought.
func TestFollowsLoss(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		change func(*fold.State)
		want   bool
	}{
		"no owner had the call":         {func(*fold.State) {}, true},
		"another owner came in between": {func(st *fold.State) { st.Epoch = 5 }, false},
		"the owner that asked has it":   {func(st *fold.State) { st.Epoch = 3 }, false},
		"the call ended later":          {func(st *fold.State) { st.Recent[1].Seq = 9 }, false},
		"the call ended earlier":        {func(st *fold.State) { st.Recent[1].Seq = 6 }, false},
		"decided again":                 {func(st *fold.State) { st.Recent[0].Seq = 9 }, false},
		"an agent has it":               {func(st *fold.State) { st.Turn.Prompts[0].Had = 4 }, false},
		"the call is forgotten":         {func(st *fold.State) { st.Recent = st.Recent[:1] }, false},
		"the prompt is forgotten":       {func(st *fold.State) { st.Recent = st.Recent[1:] }, false},
		"without a call": {func(st *fold.State) {
			st.Recent[0].Call, st.Recent[1].ID = "", ""
		}, false},
		"not of this turn": {func(st *fold.State) { st.Turn.Prompts = nil }, false},
		"no turn":          {func(st *fold.State) { st.Turn = nil }, false},
	} {
		st := lost()
		x.change(st)
		if got := followsLoss(st, "p"); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A decision that this process may have sent is not unsent, whatever the log says: OpenCode can lose a run without the
// end of its process.
func TestUnsent(t *testing.T) {
	t.Parallel()
	m := decodeMessages(&Snapshot{Messages: []Message{{Info: json.RawMessage(`{"role":"assistant"}`),
		Parts: []json.RawMessage{json.RawMessage(`{"type":"tool","callID":"c","state":{"status":"running"}}`)}}}})[0]
	l := &process{asked: map[string]*asking{}, sent: map[string]bool{}}
	if !l.unsent(lost(), "p", &m, 0) {
		t.Error("it was not sent")
	}
	if !l.decides("p", "s") {
		t.Fatal("another caller brings it")
	}
	// it is not there, as far as the bridge knows
	delete(l.asked, "p")
	if l.unsent(lost(), "p", &m, 0) {
		t.Error("it may have been sent")
	}
}

// The stored state of a call shows that it may have run.
func TestWaitedOnly(t *testing.T) {
	t.Parallel()
	repaired := func(text, metadata string) string {
		return `{"status":"error","error":"` + text + `","metadata":` + metadata + `}`
	}
	const waited = `{"interrupted":true,"reported":false}`
	for state, want := range map[string]bool{
		`{"status":"pending"}`:                                                          true,
		`{"status":"running"}`:                                                          true,
		`{"status":"running","metadata":{"output":""}}`:                                 false,
		`{"status":"running","metadata":{}}`:                                            false,
		repaired(repairCall, waited):                                                    true,
		repaired(repairWaited, waited):                                                  true,
		repaired(repairCall, `{"interrupted":true,"reported":true}`):                    false,
		repaired(repairCall, `{"interrupted":true}`):                                    false,
		repaired(repairCall, `{"reported":false}`):                                      false,
		repaired(textMayHaveRun, waited):                                                false,
		repaired("Tool execution aborted", waited):                                      false,
		`{"status":"completed","error":"` + repairCall + `","metadata":` + waited + `}`: false,
		`{"status":"running","metadata":"x"}`:                                           false,
	} {
		raw := json.RawMessage(`{"type":"tool","state":` + state + `}`)
		var c part
		if err := json.Unmarshal(raw, &c); err != nil && !misshapen(err) {
			t.Fatal(err)
		}
		if got := waitedOnly(raw, &c); got != want {
			t.Errorf("%s: %v", state, got)
		}
	}
}

// A call that has ended keeps its end. A question has no effect: an answer takes the place of its error.
func TestFindCallThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		state      string
		permission bool
		found      bool
	}{
		{`{"status":"running"}`, true, true}, {`{"status":"completed"}`, true, false},
		{`{"status":"error","error":"exit 1"}`, true, false}, {`{"status":"error","error":"exit 1"}`, false, true},
		{`{"status":"error","error":"x","metadata":{"interrupted":true}}`, true, true},
		{`{"status":"completed"}`, false, false},
	} {
		messages := decodeMessages(&Snapshot{Messages: []Message{{Info: json.RawMessage(`{"role":"assistant"}`),
			Parts: []json.RawMessage{json.RawMessage(`{"type":"tool","callID":"c","state":` + x.state + `}`)}}}})
		at, _ := findCall(messages, &fold.TurnPrompt{}, ident("call", "c"), x.permission, map[string]bool{})
		if found := at >= 0; found != x.found {
			t.Errorf("%+v: %v", x, found)
		}
	}
}

// Words of a decision that no process had are said once, and stay: a later bridge knows less.
func TestIsTold(t *testing.T) {
	t.Parallel()
	granted := fold.TurnPrompt{WorkPrompt: fold.WorkPrompt{Status: fold.Answered}}
	rejected := fold.TurnPrompt{WorkPrompt: fold.WorkPrompt{Status: fold.Rejected, Text: "no"}}
	for _, x := range []struct {
		p    fold.TurnPrompt
		text string
		want bool
	}{
		{granted, textPermitted, true}, {rejected, textNotAllowed + ": no", true},
		{granted, textMayHaveRun, false}, {granted, repairWaited, false}, {granted, textNotAllowed, false},
		{rejected, textNotAllowed, false}, {rejected, textRejectedBefore + ": no", false},
		{rejected, textPermitted, false}, {granted, textPermitted + ": more", false},
	} {
		c := part{State: toolState{Status: partError, Error: x.text}}
		c.State.Metadata.Interrupted = true
		if got := isTold(&c, &x.p); got != x.want {
			t.Errorf("%q for %s: %v", x.text, x.p.Status, got)
		}
		if c.State.Metadata.Interrupted = false; isTold(&c, &x.p) {
			t.Errorf("%q: a tool can say it, too", x.text)
		}
		c.State.Metadata.Interrupted, c.State.Status = true, partCompleted
		if isTold(&c, &x.p) {
			t.Errorf("%q: it has a result", x.text)
		}
	}
}
