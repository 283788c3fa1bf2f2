package opencode

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// loops begins a run of ses_1 that OpenCode holds because it repeats a call: the permission names no call.
func (st *stage) loops() {
	st.t.Helper()
	natstest.Until(st.t, "the bridge is connected", func() bool { return st.connections() > 0 })
	st.run("ses_1", "msg_1", "call_1", "bash")
	p := object{"id": "per_1", "sessionID": "ses_1", "permission": "doom_loop", "patterns": []string{"bash"},
		"metadata": object{"tool": "bash"}, "always": []string{"bash"}}
	st.set(func() {
		st.prompts["per_1"] = p
		st.emitLocked("permission.asked", p)
	})
	s := st.until("ses_1", "a permission waits", awaits(1))
	if q := s.Prompts["per_1"]; q.Call != "" || q.Delivery != events.DeliverCallback {
		st.t.Fatalf("the permission is %+v", q)
	}
}

// decides decides about a permission as a person on the board does.
func (st *stage) decides(reply, text string) {
	st.t.Helper()
	if reply != replyReject {
		st.answer("ses_1", "per_1", events.PermissionQuestion, reply)
		return
	}
	st.reject("per_1", text)
}

// reject rejects a prompt of ses_1 as a person on the board does.
func (st *stage) reject(prompt, text string) {
	st.t.Helper()
	natstest.Until(st.t, "rejected", func() bool {
		return st.ask("reject", request.Reject{Ref: ref("ses_1"), Prompt: prompt, By: "ada", Text: text})
	})
}

// sentInVain waits until the bridge has tried to bring a decision, and the server has not got it.
func (st *stage) sentInVain() {
	st.t.Helper()
	natstest.Until(st.t, "the decision is sent in vain", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.unheard > 0
	})
}

// A bridge is killed after a person has decided about a permission without a call, and before OpenCode has the
// decision. The next bridge brings it, once.
func TestLiveKilledBeforeADecisionIsSent(t *testing.T) {
	st := newStage(t)
	stop := st.bridge()
	st.loops()
	st.set(func() { st.deaf = "per_1/reply" })
	st.decides("once", "")
	st.sentInVain()
	stop()
	if got := st.kinds("ses_1"); slices.Contains(got, "prompt.delivered") {
		t.Fatalf("OpenCode does not have the decision, and the log has a receipt: %v", got)
	}
	st.set(func() { st.deaf = "" })
	st.bridge()
	natstest.Until(t, "the server has the decision", func() bool { return len(st.made("per_1/reply", "once")) == 1 })
	st.finish("ses_1", "msg_1", "call_1")
	s := st.until("ses_1", "the turn completed", completed)
	if e, _ := s.Ended(fold.EntityPrompt, "per_1"); e.Outcome != string(fold.Answered) || e.DeliveredAt.IsZero() {
		t.Errorf("the permission is %+v", e)
	}
	if n := st.count("ses_1", "turn.requested"); n != 0 || len(st.made("per_1/reply")) != 1 {
		t.Errorf("%d turns were requested, the server got %q", n, st.made("per_1/reply"))
	}
}

// The same, and OpenCode is killed, too. The next turn brings the decision as the end of the call that was repeated.
func TestLiveKilledWithOpenCodeBeforeADecisionIsSent(t *testing.T) {
	for reply, want := range map[string]string{"once": textMayHaveRun,
		replyReject: textRejectedBefore + ": stop that"} {
		t.Run(reply, func(t *testing.T) {
			st := newStage(t)
			st.plays()
			stop := st.bridge()
			st.loops()
			st.set(func() { st.deaf = "per_1/reply" })
			st.decides(reply, "stop that")
			st.sentInVain()
			stop()
			st.kill()
			st.set(func() { st.deaf = "" })
			st.start()
			st.bridge()
			s := st.until("ses_1", "a turn brought the decision", func(s *fold.State) bool {
				return completed(s) && s.LastTurn.Cause == events.CauseAnswer
			})
			if e, _ := s.Ended(fold.EntityPrompt, "per_1"); e.DeliveredAt.IsZero() {
				t.Errorf("the permission is %+v", e)
			}
			if got := st.made("PATCH", want); len(got) != 1 || len(st.made("prompt_async")) != 1 {
				t.Errorf("stored %q, sent %q", st.made("PATCH"), st.made("prompt_async"))
			}
		})
	}
}

// The run continues and ends before the bridge has the reply. OpenCode's event about the permission is the receipt, or
// says that its agent has another decision. It is stored before the end of the turn, and no turn is requested.
func TestLiveWithoutACallTheEventComesFirst(t *testing.T) {
	const late = "refused: " + reasonLate
	for name, c := range map[string]struct {
		board string
		first object // of the person in OpenCode who is quicker
		want  string
	}{
		"permitted":                     {"once", nil, ""},
		"rejected":                      {replyReject, nil, "stop that"},
		"permitted, and for ever":       {"once", object{"reply": "always"}, ""},
		"permitted, and rejected":       {"once", object{"reply": replyReject}, late},
		"rejected, and permitted":       {replyReject, object{"reply": "once"}, late},
		"rejected with another text":    {replyReject, object{"reply": replyReject, "message": "go on"}, late},
		"rejected, and without its own": {replyReject, object{"reply": replyReject}, "stop that"},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.loops()
			reply := st.heldReplies()
			if c.first != nil {
				st.set(func() { st.first = map[string]object{"per_1": c.first} })
			}
			st.decides(c.board, "stop that")
			natstest.Until(t, "the decision is sent", func() bool { return len(st.made("per_1/reply")) == 1 })
			st.finish("ses_1", "msg_1", "call_1")
			st.until("ses_1", "the turn completed", completed)
			reply()
			st.settledWithoutACall("per_1", c.want)
		})
	}
}

// settledWithoutACall checks how the log has a prompt without a call, after its turn: it was settled before the turn
// ended, and no turn was requested for it.
func (st *stage) settledWithoutACall(prompt, reason string) {
	st.t.Helper()
	s := st.until("ses_1", "the turn completed", completed)
	if e, _ := s.Ended(fold.EntityPrompt, prompt); e.Reason != reason || e.DeliveredAt.IsZero() {
		st.t.Errorf("%s is %s, %q, delivered at %s; want %q", prompt, e.Outcome, e.Reason, e.DeliveredAt, reason)
	}
	got := st.kinds("ses_1")
	if at := slices.Index(got, "prompt.delivered"); at < 0 || at > slices.Index(got, "turn.completed") {
		st.t.Errorf("it is not settled before the end of its turn: %v", got)
	}
	if n := st.count("ses_1", "turn.requested"); n != 0 {
		st.t.Errorf("%d turns were requested: %v", n, got)
	}
}

// OpenCode takes the decision while the stream is lost, and its reply is late. It no longer asks: it has the decision.
func TestLiveWithoutACallUnseen(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.loops()
	reply := st.heldReplies()
	st.set(func() { st.deaf = "GET /mcp" })
	st.cut()
	st.decides("once", "")
	natstest.Until(t, "the decision is sent", func() bool { return len(st.made("per_1/reply")) == 1 })
	st.finish("ses_1", "msg_1", "call_1")
	st.set(func() { st.deaf = "" })
	st.settledWithoutACall("per_1", "")
	reply()
}

// The reply is lost, and no event says how the permission was settled. OpenCode no longer asks: it has the decision.
func TestLiveWithoutACallAfterALostReply(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.loops()
	st.set(func() { st.deaf = "per_1/reply" })
	st.decides("once", "")
	st.sentInVain()
	st.set(func() { st.deaf, st.prompts = "", map[string]object{} })
	s := st.until("ses_1", "the receipt", func(s *fold.State) bool { return s.Prompts["per_1"] == nil })
	if e, _ := s.Ended(fold.EntityPrompt, "per_1"); e.Reason != "" || e.DeliveredAt.IsZero() || s.Turn == nil {
		t.Errorf("the permission is %+v", e)
	}
	st.finish("ses_1", "msg_1", "call_1")
	st.settledWithoutACall("per_1", "")
}

// Another process of OpenCode does not know the permission, whether the first attempt to bring the decision reached one
// or was lost. Its "not found" is no receipt, and no refusal: a turn brings the decision.
func TestLiveWithoutACallOfADeadProcess(t *testing.T) {
	for name, lost := range map[string]bool{"the first attempt": false, "after a lost attempt": true} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.loops()
			another := func() { st.mcp, st.prompts, st.deaf = object{}, map[string]object{}, "" }
			if lost {
				st.set(func() { st.deaf = "per_1/reply" })
				st.decides("once", "")
				st.sentInVain()
				st.set(another)
			} else {
				st.set(another)
				st.decides("once", "")
			}
			natstest.Until(t, "it was asked", func() bool { return len(st.made("per_1/reply")) > 0 })
			st.finish("ses_1", "msg_1", "call_1")
			st.until("ses_1", "a turn brings the decision", func(s *fold.State) bool {
				return s.Turn != nil && s.Turn.Cause == events.CauseAnswer ||
					s.LastTurn != nil && s.LastTurn.Cause == events.CauseAnswer
			})
			if got := st.kinds("ses_1"); slices.Contains(got, "prompt.delivered") {
				t.Errorf("the log has a receipt: %v", got)
			}
		})
	}
}

// A question without a call: its answer in OpenCode is compared with that of the board.
func TestLiveQuestionWithoutACall(t *testing.T) {
	const late = "refused: " + reasonLate
	for name, c := range map[string]struct {
		board string // the answer, or reject with or without a text
		first object // {}: dismissed
		want  string
	}{
		"that of the board":         {"SQLite", nil, ""},
		"the same":                  {"SQLite", object{"answers": [][]string{{"SQLite"}}}, ""},
		"another":                   {"SQLite", object{"answers": [][]string{{"Postgres"}}}, late},
		"dismissed":                 {"SQLite", object{}, late},
		"rejected, and dismissed":   {"reject", object{}, ""},
		"rejected, and answered":    {"reject", object{"answers": [][]string{{"Postgres"}}}, late},
		"its text":                  {"reject: neither", nil, "neither"},
		"its text, and dismissed":   {"reject: neither", object{}, late},
		"its text, and an answered": {"reject: neither", object{"answers": [][]string{{"Postgres"}}}, late},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "bash")
			q := object{"id": "que_1", "sessionID": "ses_1", "questions": []object{{"question": "Which?", "header": "W",
				"options": []object{{"label": "Postgres"}, {"label": "SQLite"}}}}}
			st.set(func() {
				st.prompts["que_1"] = q
				st.emitLocked("question.asked", q)
			})
			st.until("ses_1", "a question waits", awaits(1))
			reply := st.heldReplies()
			if c.first != nil {
				st.set(func() { st.first = map[string]object{"que_1": c.first} })
			}
			if text, rejected := strings.CutPrefix(c.board, "reject"); rejected {
				st.reject("que_1", strings.TrimPrefix(text, ": "))
			} else {
				st.answer("ses_1", "que_1", "q1", c.board)
			}
			natstest.Until(t, "the decision is sent", func() bool { return len(st.made("que_1/re")) == 1 })
			st.finish("ses_1", "msg_1", "call_1")
			st.until("ses_1", "the turn completed", completed)
			reply()
			st.settledWithoutACall("que_1", c.want)
		})
	}
}

// OpenCode refuses a decision for a reason of its own. It has no receipt, and is sent again until OpenCode has it.
func TestLiveRefusedAndSentAgain(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.loops()
	st.set(func() { st.refuse["per_1/reply"] = http.StatusForbidden })
	st.decides("once", "")
	natstest.Until(t, "it is refused", func() bool { return len(st.made("per_1/reply")) > 0 })
	if got := st.kinds("ses_1"); slices.Contains(got, "prompt.delivered") {
		t.Errorf("the log has a receipt: %v", got)
	}
	st.set(func() { delete(st.refuse, "per_1/reply") })
	st.until("ses_1", "the receipt", func(s *fold.State) bool { return s.Prompts["per_1"] == nil })
	st.finish("ses_1", "msg_1", "call_1")
	st.settledWithoutACall("per_1", "")
}

// A decision that OpenCode refuses is no longer sent when OpenCode itself was answered.
func TestLiveRefusedAndSettledThere(t *testing.T) {
	st := newStage(t)
	log := st.logs()
	st.loops()
	st.set(func() { st.refuse["per_1/reply"] = http.StatusForbidden })
	st.decides("once", "")
	natstest.Until(t, "it is refused", func() bool { return len(st.made("per_1/reply")) > 0 })
	st.set(func() { st.settle("permission", "per_1", "reply", object{"reply": replyReject}) })
	st.finish("ses_1", "msg_1", "call_1")
	st.settledWithoutACall("per_1", "refused: "+reasonLate)
	natstest.Until(t, "the bridge gives up", func() bool { return log.has("OpenCode does not have the decision") })
}

// givenUp has another process answer while the bridge brings a decision, so that the bridge gives it up. Then the
// process that asked is there again.
func (st *stage) givenUp() {
	st.t.Helper()
	log := st.logs()
	st.loops()
	var mcp, prompts object
	st.set(func() {
		mcp, prompts = st.mcp, object{"per_1": st.prompts["per_1"]}
		st.mcp, st.prompts = object{}, map[string]object{}
	})
	st.decides("once", "")
	natstest.Until(st.t, "the bridge gives up", func() bool { return log.has("OpenCode does not have the decision") })
	st.set(func() { st.mcp, st.prompts["per_1"] = mcp, prompts["per_1"].(object) })
}

// A decision that was given up has no receipt. It is sent again when the bridge looks at the session.
func TestLiveGivenUpAndSentAgain(t *testing.T) {
	st := newStage(t)
	st.givenUp()
	if got := st.kinds("ses_1"); slices.Contains(got, "prompt.delivered") {
		t.Fatalf("the log has a receipt: %v", got)
	}
	st.cut()
	st.until("ses_1", "the receipt", func(s *fold.State) bool { return s.Prompts["per_1"] == nil })
	if n := len(st.made("per_1/reply")); n != 2 {
		t.Errorf("it was sent %d times", n)
	}
	st.finish("ses_1", "msg_1", "call_1")
	st.settledWithoutACall("per_1", "")
}

// A decision was given up, and a person in OpenCode decides otherwise.
func TestLiveGivenUpAndSettledThere(t *testing.T) {
	st := newStage(t)
	st.givenUp()
	st.set(func() { st.settle("permission", "per_1", "reply", object{"reply": replyReject}) })
	st.finish("ses_1", "msg_1", "call_1")
	st.settledWithoutACall("per_1", "refused: "+reasonLate)
}

// A person rejects a question with a text. OpenCode's rejection has none, and ends the run: the text is the answer, and
// the run continues with it. The same holds for a turn that brings it to a run that waits.
func TestLiveRejectedWithAText(t *testing.T) {
	for name, taken := range map[string]bool{"at once": false, "by a turn": true} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "question")
			st.question("ses_1", "que_1", "msg_1", "call_1")
			st.until("ses_1", "a question waits", awaits(1))
			if taken {
				st.set(func() { st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError })
				st.recover("ses_1")
			}
			st.reject("que_1", " neither: use files ")
			st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
			const want = textRejected + "neither: use files"
			natstest.Until(t, "the text is sent", func() bool { return len(st.made("que_1/reply", want)) == 1 })
			st.questionEnds("completed", result([]string{want}))
			s := st.until("ses_1", "the turn completed", completed)
			e, _ := s.Ended(fold.EntityPrompt, "que_1")
			if e.Outcome != string(fold.Rejected) || strings.Contains(e.Reason, "refused") || e.DeliveredAt.IsZero() {
				t.Errorf("the question is %s, %q, delivered at %s", e.Outcome, e.Reason, e.DeliveredAt)
			}
			if got := st.made("que_1"); len(got) != 1 {
				t.Errorf("the server got %q", got)
			}
		})
	}
}
