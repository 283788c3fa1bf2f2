package opencode

import (
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// questionEnds is the rest of the run of ses_1 after OpenCode has an answer to its question; state is the end of the
// call.
func (st *stage) questionEnds(status string, state object) {
	state["input"] = object{"questions": []object{{"question": "Which?", "header": "W", "options": []object{
		{"label": "Postgres"}, {"label": "SQLite"}}}}}
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", status, state))
	st.put("ses_1", assistant("a-msg_1", "msg_1", object{"finish": finishCalls,
		"time": object{"created": 1, "completed": 2}}))
	st.put("ses_1", assistant("b-msg_1", "msg_1", nil))
	st.put("ses_1", assistant("b-msg_1", "msg_1", object{"finish": "stop",
		"time": object{"created": 1, "completed": 2}}))
	st.status("ses_1", false)
}

// result is the end of a question's call with these answers.
func result(answers ...[]string) object {
	return object{"output": "User has answered.", "metadata": object{"answers": answers}}
}

// heldReplies has the server reply to decisions once reply is called.
func (st *stage) heldReplies() (reply func()) {
	seen := make(chan struct{})
	reply = sync.OnceFunc(func() { close(seen) })
	st.t.Cleanup(reply)
	st.set(func() { st.onReply = func() { <-seen } })
	return reply
}

// outcome checks how the log has the question of ses_1, whose turn has completed.
func (st *stage) outcome(reason string) {
	st.t.Helper()
	s := st.until("ses_1", "the turn completed", completed)
	e, _ := s.Ended(fold.EntityPrompt, "que_1")
	if e.Outcome != string(fold.Answered) || e.Reason != reason || e.DeliveredAt.IsZero() {
		st.t.Errorf("the question is %s, %q, delivered at %s", e.Outcome, e.Reason, e.DeliveredAt)
	}
}

// A person answers on the board, and another one in OpenCode a moment earlier. Its run continues and ends before the
// bridge has the reply. The end of the call has the other answer, so the log says that the agent does not have the one
// of the board.
func TestLiveAnotherAnswerTookEffect(t *testing.T) {
	for name, c := range map[string]struct {
		first  object // of the person in OpenCode who is quicker; nil: none is
		status string
		state  object
		want   string
	}{
		"another answer": {object{"answers": [][]string{{"Postgres"}}}, "completed", result([]string{"Postgres"}),
			"refused: " + reasonLate},
		"an own text": {object{"answers": [][]string{{"neither"}}}, "completed", result([]string{"neither"}),
			"refused: " + reasonLate},
		"skipped": {object{"answers": [][]string{{}}}, "completed", result([]string{}), "refused: " + reasonLate},
		"dismissed": {object{}, "error", object{"error": "The user dismissed this question"},
			"refused: " + reasonLate},
		"the same answer": {object{"answers": [][]string{{"SQLite"}}}, "completed", result([]string{"SQLite"}),
			""},
		"that of the board":    {nil, "completed", result([]string{"SQLite"}), ""},
		"a result that is mum": {nil, "completed", object{"output": "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "question")
			st.question("ses_1", "que_1", "msg_1", "call_1")
			st.until("ses_1", "a question waits", awaits(1))
			reply := st.heldReplies()
			if c.first != nil {
				st.set(func() { st.first = map[string]object{"que_1": c.first} })
			}
			st.answer("ses_1", "que_1", "q1", "SQLite")
			natstest.Until(t, "the answer is sent", func() bool { return len(st.made("que_1/reply", "SQLite")) == 1 })
			st.questionEnds(c.status, c.state)
			st.outcome(c.want)
			reply()
		})
	}
}

// The same, when the stream is lost meanwhile: the bridge reads the end of the call.
func TestLiveAnotherAnswerUnseen(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() { st.deaf = "que_1/reply" })
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the answer was sent in vain", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.unheard > 0
	})
	st.set(func() { st.down = true })
	st.cut()
	st.set(func() { delete(st.prompts, "que_1") })
	st.questionEnds("completed", result([]string{"Postgres"}))
	st.start()
	st.outcome("refused: " + reasonLate)
}

// A question whose call has ended unseen is withdrawn: a person who answers a moment later gets 410, and nothing is
// marked as delivered.
func TestLiveCallEndsUnseen(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() { delete(st.prompts, "que_1") })
	st.questionEnds("completed", result([]string{"Postgres"}))
	s := st.until("ses_1", "the turn completed", completed)
	if e, _ := s.Ended(fold.EntityPrompt, "que_1"); e.Outcome != string(fold.Withdrawn) {
		t.Errorf("the question is %s", e.Outcome)
	}
	if got := st.kinds("ses_1"); slices.Index(got, "prompt.withdrawn") < 0 ||
		slices.Index(got, "prompt.withdrawn") > slices.Index(got, "tool.completed") {
		t.Errorf("a decision can come between: %v", got)
	}
}

// While no bridge renews the lease, recovery takes a session. A person answers on the board, and another one has
// answered in OpenCode. The turn that brings the first answer finds the other one in the result of the call.
func TestLiveSettledBeforeTheTurn(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"another answer":  {"Postgres", "refused: " + reasonLate},
		"the same answer": {"SQLite", ""},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "question")
			st.question("ses_1", "que_1", "msg_1", "call_1")
			st.until("ses_1", "a question waits", awaits(1))
			st.set(func() {
				st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
				// answered there
				delete(st.prompts, "que_1")
			})
			st.recover("ses_1")
			st.answer("ses_1", "que_1", "q1", "SQLite")
			st.questionEnds("completed", result([]string{c.answer}))
			st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
			st.outcome(c.want)
			if got := st.made("que_1"); len(got) != 0 {
				t.Errorf("the server got %q", got)
			}
		})
	}
}

// A turn brings a decision to a run that waits. The reply is lost, and a person in OpenCode was quicker: the second
// attempt says nothing, and the result of the call does.
func TestLiveAnotherAnswerAfterALostReply(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() {
		st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
		st.first = map[string]object{"que_1": {"answers": [][]string{{"Postgres"}}}}
		st.mute = "que_1/reply"
	})
	st.recover("ses_1")
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
	natstest.Until(t, "the answer was sent again", func() bool { return len(st.made("que_1/reply", "SQLite")) == 2 })
	st.questionEnds("completed", result([]string{"Postgres"}))
	st.outcome("refused: " + reasonLate)
}

// A permission is decided on the board and in OpenCode at once. The call shows whose decision took effect.
func TestLiveAnotherPermissionTookEffect(t *testing.T) {
	rejected := "The user rejected permission to use this specific tool call"
	for name, c := range map[string]struct {
		board  object // reply, message
		first  object
		status string
		text   string
		want   string
	}{
		"rejected, and it ran": {object{"reply": "reject"}, object{"reply": "once"}, "completed", "",
			"refused: " + reasonLate},
		"permitted, and rejected": {object{"reply": "once"}, object{"reply": "reject"}, "error", rejected + ".",
			"refused: " + reasonLate},
		"rejected with a text, and without": {object{"reply": "reject", "message": "not here"},
			object{"reply": "reject"}, "error", rejected + ".", "refused: " + reasonLate},
		"rejected with a text, and it has it": {object{"reply": "reject", "message": "not here"}, nil, "error",
			rejected + " with the following feedback: not here", "not here"},
		"permitted, and it failed":     {object{"reply": "once"}, nil, "error", "exit status 1", ""},
		"permitted once, and for ever": {object{"reply": "once"}, object{"reply": "always"}, "completed", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "bash")
			st.permission("ses_1", "per_1", "msg_1", "call_1")
			st.until("ses_1", "a permission waits", awaits(1))
			reply := st.heldReplies()
			if c.first != nil {
				st.set(func() { st.first = map[string]object{"per_1": c.first} })
			}
			if c.board["reply"] == "reject" {
				text, _ := c.board["message"].(string)
				natstest.Until(t, "rejected", func() bool {
					return st.ask("reject", request.Reject{Ref: ref("ses_1"), Prompt: "per_1", By: "ada", Text: text})
				})
			} else {
				st.answer("ses_1", "per_1", events.PermissionQuestion, "once")
			}
			natstest.Until(t, "the decision is sent", func() bool { return len(st.made("per_1/reply")) == 1 })
			st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "bash", c.status,
				object{"output": "done", "error": c.text}))
			st.put("ses_1", assistant("a-msg_1", "msg_1", object{"finish": "stop",
				"time": object{"created": 1, "completed": 2}}))
			st.status("ses_1", false)
			s := st.until("ses_1", "the turn completed", completed)
			e, _ := s.Ended(fold.EntityPrompt, "per_1")
			if e.Reason != c.want || e.DeliveredAt.IsZero() {
				t.Errorf("the permission is %s, %q", e.Outcome, e.Reason)
			}
			reply()
		})
	}
}

// A call asks for two permissions. The first one is granted on the board, and the second one rejected in OpenCode: the
// error of the call says nothing of the first one, which the agent has.
func TestLiveTwoPermissionsOfACall(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.permission("ses_1", "per_1", "msg_1", "call_1")
	st.until("ses_1", "a permission waits", awaits(1))
	st.answer("ses_1", "per_1", events.PermissionQuestion, "once")
	natstest.Until(t, "granted", func() bool { return len(st.made("per_1/reply", "once")) == 1 })
	st.permission("ses_1", "per_2", "msg_1", "call_1")
	st.until("ses_1", "the next permission waits", awaits(1))
	st.set(func() { st.settle("permission", "per_2", "reply", object{"reply": "reject"}) })
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "bash", "error",
		object{"error": "The user rejected permission to use this specific tool call."}))
	st.put("ses_1", assistant("a-msg_1", "msg_1", object{"finish": "stop",
		"time": object{"created": 1, "completed": 2}}))
	st.status("ses_1", false)
	s := st.until("ses_1", "the turn completed", completed)
	if e, _ := s.Ended(fold.EntityPrompt, "per_1"); e.Outcome != string(fold.Answered) || e.Reason != "" {
		t.Errorf("the first permission is %s, %q", e.Outcome, e.Reason)
	}
	if e, _ := s.Ended(fold.EntityPrompt, "per_2"); e.Outcome != string(fold.Rejected) {
		t.Errorf("the second permission is %s, %q", e.Outcome, e.Reason)
	}
}

// A turn brings a decision to a run that waits, the reply is lost, and a person in OpenCode has dismissed the question.
// Either the answer takes the place of the dismissal, or the log says that the agent does not have it.
func TestLiveDismissedAfterALostReply(t *testing.T) {
	st := newStage(t)
	st.plays()
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() {
		st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
		st.first = map[string]object{"que_1": {}}
		st.mute = "que_1/reply"
	})
	st.recover("ses_1")
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
	natstest.Until(t, "the answer was sent again", func() bool { return len(st.made("que_1/reply", "SQLite")) == 2 })
	st.set(func() { st.deaf, st.unheard = "/part/p-call_1", 0 })
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "error",
		object{"error": "The user dismissed this question"}))
	st.put("ses_1", assistant("a-msg_1", "msg_1", object{"finish": finishCalls,
		"time": object{"created": 1, "completed": 2}}))
	st.status("ses_1", false)
	// the answer is on its way to its place, which takes a while
	is := st.until("ses_1", "the answer has come twice, or is refused", func(s *fold.State) bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		e, _ := s.Ended(fold.EntityPrompt, "que_1")
		return e.Reason != "" || st.unheard > 1 || completed(s)
	})
	if e, _ := is.Ended(fold.EntityPrompt, "que_1"); e.Reason == "" && is.Turn == nil {
		t.Error("the turn has ended while its answer was on its way")
	}
	st.set(func() { st.deaf = "" })
	s := st.until("ses_1", "the turn completed", completed)
	e, _ := s.Ended(fold.EntityPrompt, "que_1")
	refused, brought := e.Reason == "refused: "+reasonLate, len(st.made("PATCH", "SQLite")) == 1
	if refused == brought {
		t.Errorf("refused %t, brought %t: %+v", refused, brought, e)
	}
}

// The end of a call shows whether its agent has a decision.
func TestLacks(t *testing.T) {
	input := encode(object{"questions": []object{{"question": "Which?", "options": []object{{"label": "red"},
		{"label": "blue"}}}, {"question": "Why?"}}})
	blue := harness.Answer{Status: fold.Answered, Answers: []events.Answer{{Question: "q1",
		Selected: []string{"blue"}}}}
	numbered := harness.Answer{Status: fold.Answered, Answers: []events.Answer{{Question: "q1",
		Selected: []string{"option 2"}}}}
	once := harness.Answer{Status: fold.Answered, Answers: []events.Answer{{Question: events.PermissionQuestion,
		Selected: []string{"once"}}}}
	no := harness.Answer{Status: fold.Rejected}
	with := harness.Answer{Status: fold.Rejected, Text: " not here "}
	ran := callEnd{state: toolState{Status: partCompleted}}
	failed := func(text, reply string) callEnd {
		return callEnd{state: toolState{Status: partError, Error: text}, replies: map[string]string{"p": reply}}
	}
	ended := func(input []byte, answers ...[]string) callEnd {
		e := callEnd{state: toolState{Status: partCompleted, Input: input}}
		e.state.Metadata.Answers = answers
		return e
	}
	for name, c := range map[string]struct {
		end               callEnd
		permission, final bool
		a                 harness.Answer
		want              bool
	}{
		"the same":                    {ended(input, []string{"blue"}, nil), false, true, blue, false},
		"the same, shorter":           {ended(input, []string{"blue"}), false, true, blue, false},
		"by its number":               {ended(input, []string{"blue"}), false, true, numbered, false},
		"another":                     {ended(input, []string{"red"}), false, true, blue, true},
		"one more":                    {ended(input, []string{"blue"}, []string{"so"}), false, true, blue, true},
		"another, of a turn":          {ended(input, []string{"red"}), false, false, blue, true},
		"dismissed, and answered":     {ended(input, []string{"red"}), false, true, no, true},
		"rejected, and answered":      {ended(input, []string{"red"}), false, true, with, true},
		"rejected, it has the text":   {ended(input, []string{textRejected + "not here"}), false, true, with, false},
		"rejected, and dismissed":     {failed(textDismissed, ""), false, true, with, true},
		"the text replaces its error": {failed(textDismissed, ""), false, false, with, false},
		"the text is in its error":    {failed(textDismissed+": not here", ""), false, true, with, false},
		"nothing is known":            {ran, false, true, blue, false},
		"its questions are not known": {ended(nil, []string{"red"}), false, true, blue, false},
		"answered, and dismissed":     {failed(textDismissed, ""), false, true, blue, true},
		"to be replaced":              {failed(textDismissed, ""), false, false, blue, false},
		"both dismissed":              {failed(textDismissed, ""), false, true, no, false},
		"it ran":                      {ran, true, true, once, false},
		"it ran in spite of that":     {ran, true, false, no, true},
		"it failed":                   {failed("exit status 1", "once"), true, true, once, false},
		"it was rejected":             {failed(rejectedText, replyReject), true, true, once, true},
		"rejected, to be replaced":    {failed(rejectedText, replyReject), true, false, once, false},
		"both rejected":               {failed(rejectedText, replyReject), true, true, no, false},
		"the text is not there":       {failed(rejectedText+".", replyReject), true, true, with, true},
		"another text":                {failed(rejectedText+" "+feedbackMark+"no", ""), true, true, with, true},
		"its text":                    {failed(rejectedText+" "+feedbackMark+"not here", ""), true, true, with, false},
		"another error":               {failed("Tool execution aborted", ""), true, true, with, false},
	} {
		if got := c.end.lacks("p", c.permission, c.final, c.a); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// document returns the document of a session.
func (st *stage) document(id string) []byte {
	st.t.Helper()
	var e kv.Entry
	natstest.Until(st.t, "a document", func() (ok bool) {
		var err error
		e, err = st.bus.KV.Load(st.t.Context(), kv.State, events.SessionKey(ref(id)))
		return err == nil
	})
	return e.Value
}

// restore puts an older document in the place of the one that is up to date.
func (st *stage) restore(id string, doc []byte) {
	st.t.Helper()
	key, head := events.SessionKey(ref(id)), natstest.Session(st.t, st.bus, ref(id)).Seq
	natstest.Until(st.t, "the document is older", func() bool {
		e, err := st.bus.KV.Load(st.t.Context(), kv.State, key)
		if s, bad := fold.Decode(e.Value); err != nil || bad != nil || s.Seq < head {
			return false
		}
		_, err = st.bus.KV.Store(st.t.Context(), kv.State, key, doc, e.Rev)
		return err == nil
	})
}

// The same without a bridge: the next one finds that the run has an answer, and still works or has ended.
func TestLiveSettledWithoutABridge(t *testing.T) {
	for name, c := range map[string]struct {
		works, old   bool // old: the bridge finds the document from before recovery took the session
		answer, want string
	}{
		"another answer, and the run works":     {true, false, "Postgres", "refused: " + reasonLate},
		"another answer, and the run has ended": {false, false, "Postgres", "refused: " + reasonLate},
		"another answer, and an old document":   {true, true, "Postgres", "refused: " + reasonLate},
		"the same answer":                       {true, false, "SQLite", ""},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			stop := st.bridge()
			st.run("ses_1", "msg_1", "call_1", "question")
			st.question("ses_1", "que_1", "msg_1", "call_1")
			st.until("ses_1", "a question waits", awaits(1))
			stop()
			before := st.document("ses_1")
			st.recover("ses_1")
			st.answer("ses_1", "que_1", "q1", "SQLite")
			st.until("ses_1", "a turn is requested", func(s *fold.State) bool { return s.Pending.Turn != nil })
			if c.old {
				st.restore("ses_1", before)
			}
			st.set(func() { delete(st.prompts, "que_1") })
			if c.works {
				st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "completed",
					result([]string{c.answer})))
				st.bridge()
				st.until("ses_1", "a turn runs", func(s *fold.State) bool { return s.Turn != nil && s.Owned })
			}
			st.questionEnds("completed", result([]string{c.answer}))
			if !c.works {
				st.bridge()
			}
			s := st.until("ses_1", "the decision is settled", func(s *fold.State) bool {
				e, _ := s.Ended(fold.EntityPrompt, "que_1")
				// another turn continues it
				return completed(s) && e.Reason == c.want && s.LastTurn.ID != "msg_1"
			})
			if s.LastTurn.Outcome != fold.OutcomeCompleted {
				t.Errorf("the last turn is %+v", s.LastTurn)
			}
			if got := st.kinds("ses_1"); slices.Contains(got, "turn.failed") {
				t.Errorf("a turn failed: %v", got)
			}
			if got := st.made("prompt_async"); len(got) != 0 {
				t.Errorf("sent: %q", got)
			}
		})
	}
}

// A turn brings two decisions to a run. The run takes the first one. The reply to the second one is lost, and a person
// in OpenCode was quicker there.
func TestLiveOneOfTwoTookEffect(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.part("ses_1", "a-msg_1", storedTool("p-call_2", "call_2", "question", "running", nil))
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.question("ses_1", "que_2", "msg_1", "call_2")
	st.until("ses_1", "two questions wait", awaits(2))
	st.set(func() {
		st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
		st.first = map[string]object{"que_2": {"answers": [][]string{{"Postgres"}}}}
		st.mute = "que_2/reply"
	})
	st.recover("ses_1")
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.answer("ses_1", "que_2", "q1", "SQLite")
	st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
	natstest.Until(t, "both were sent", func() bool {
		return len(st.made("que_1/reply", "SQLite")) == 1 && len(st.made("que_2/reply", "SQLite")) == 2
	})
	st.part("ses_1", "a-msg_1", storedTool("p-call_2", "call_2", "question", "completed", result([]string{"Postgres"})))
	st.questionEnds("completed", result([]string{"SQLite"}))
	s := st.until("ses_1", "the turn completed", completed)
	one, _ := s.Ended(fold.EntityPrompt, "que_1")
	two, _ := s.Ended(fold.EntityPrompt, "que_2")
	if one.Reason != "" || two.Reason != "refused: "+reasonLate {
		t.Errorf("%q, %q", one.Reason, two.Reason)
	}
}

// permissionOfACall returns a session with the permission p1 of the call c1, and a follower whose process has it.
func (st *stage) permissionOfACall() (*harness.Session, *follower) {
	st.t.Helper()
	h, err := harness.Connect(st.t.Context(), harness.Config{ID: "oc", URL: st.server.URL()})
	if err != nil {
		st.t.Fatal(err)
	}
	st.t.Cleanup(h.Abandon)
	s, err := h.Open(st.t.Context(), "ses_1", harness.OpenOptions{})
	if err == nil {
		err = s.Relay(st.t.Context(), events.TurnStarted{Turn: "t1", Cause: events.CauseMessage},
			events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"},
			events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptPermission,
				Delivery: events.DeliverToolResult})
	}
	if err != nil {
		st.t.Fatal(err)
	}
	return s, &follower{Bridge: &Bridge{}, process: &process{h: h,
		asked: map[string]*asking{}, sent: map[string]bool{}},
		log: slog.New(slog.DiscardHandler)}
}

// The facts of one step about a prompt come before the end of its call, also if the end is compared.
func TestRelayInOrder(t *testing.T) {
	st := newStage(t)
	s, r := st.permissionOfACall()
	err := r.relay(t.Context(), s, []events.Fact{events.PromptRejected{Prompt: "p1", By: byOpenCode},
		events.ToolFailed{Call: "c1", Error: events.Failure{Kind: kindRejected}}},
		[]callEnd{{session: "ses_1", call: "c1", state: toolState{Status: partError}}})
	if e, _ := s.State().Ended(fold.EntityPrompt, "p1"); err != nil || e.Outcome != string(fold.Rejected) {
		t.Errorf("%v: the permission is %s", err, e.Outcome)
	}
}

// A turn whose look at OpenCode is old does not send a decision that the end of its call was compared with.
func TestNoDecisionIsSentAfterItsCall(t *testing.T) {
	st := newStage(t)
	s, r := st.permissionOfACall()
	st.reject("p1", "")
	natstest.Until(t, "the process to read it", func() bool { return len(s.State().PendingPrompts()) == 0 })
	err := r.relay(t.Context(), s, []events.Fact{events.ToolFailed{Call: "c1",
		Error: events.Failure{Kind: kindRejected}}},
		[]callEnd{{session: "ses_1", call: "c1", state: toolState{Status: partError, Error: rejectedText}}})
	if err != nil || r.process.decides("p1", "ses_1") {
		t.Errorf("the decision would be sent again (%v)", err)
	}
}

// The end of a call refuses no decision of its turn that an owner has given a receipt for: the agent has it.
func TestDecisionsOfACall(t *testing.T) {
	st := &fold.State{Turn: &fold.Turn{ID: "t2", Prompts: []fold.Carried{{Prompt: "had", Had: 1}, {Prompt: "owed"},
		{Prompt: "other"}}}}
	for prompt, call := range map[string]string{"had": "call_1", "owed": "call_1", "other": "call_2"} {
		st.Recent = append(st.Recent, fold.Ending{Entity: fold.EntityPrompt, ID: prompt, Call: call})
	}
	if got := decisionsOf(st, "call_1"); !slices.Equal(got, []string{"owed"}) {
		t.Errorf("looked at: %v", got)
	}
}

// A recording keeps no ends of calls: nothing reads them.
func TestEndsOfARecording(t *testing.T) {
	for name, tr := range map[string]*Translator{"recorded": NewTranslator(), "living": NewLiveTranslator()} {
		for _, r := range script(slices.Concat(begun, []string{tool("p2", "c1", running),
			tool("p2", "c1", `{"status":"completed","output":"x"}`)})...) {
			tr.Translate(r)
		}
		if got := len(tr.ends()); (got > 0) != tr.live {
			t.Errorf("%s: %d ends are kept", name, got)
		}
	}
}
