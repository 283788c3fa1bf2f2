package opencode

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
	compactions "github.com/holdfast-dev/holdfast/services/compaction"
)

const firstMessage = "msg_00000000000100000000000000"

// summarizes stores a compaction as OpenCode does: its request, a summary, and their events. text is the summary's; an
// empty one has no end.
func (st *stage) summarizes(session, text string, more object) {
	id := "msg_000000000050"
	st.put(session, object{"id": id, "role": "user", "agent": "build",
		"model": object{"providerID": "mock", "modelID": "big"}, "time": object{"created": 1}})
	st.part(session, id, object{"id": "p-" + id, "type": "compaction", "auto": false})
	st.status(session, true)
	st.put(session, assistant("sum", id, object{"summary": true}))
	if text == "" {
		return
	}
	st.part(session, "sum", object{"id": "p-sum", "type": "text", "text": text})
	end := object{"summary": true, "finish": "stop", "time": object{"created": 1, "completed": 2}}
	for k, v := range more {
		end[k] = v
	}
	st.put(session, assistant("sum", id, end))
	if more["error"] == nil {
		st.emit("session.compacted", object{"sessionID": session})
	}
	st.status(session, false)
}

// compacted is a stage whose bridge drives compactions.
func compacted(t *testing.T, text string, more object) *stage {
	t.Helper()
	st := driven(t, Drive{Compaction: true})
	st.set(func() { st.onSummarize = func(session string) { st.summarizes(session, text, more) } })
	st.bridge()
	return st
}

// uses reports the tokens of a model call.
func (st *stage) uses(session, call string, tokens int) {
	st.part(session, call, object{"id": "f-" + call, "type": "step-finish", "reason": "stop",
		"tokens": object{"input": tokens, "output": 1, "reasoning": 0, "cache": object{"read": 0, "write": 0}}})
}

// compactNow has a person ask for a compaction.
func (st *stage) compactNow(id string) {
	st.t.Helper()
	natstest.Until(st.t, "a compaction is asked for", func() bool {
		return st.bus.Services.Request(st.t.Context(), compactions.Name, "compact",
			request.Compact{Ref: ref(id), By: "ada"}, nil) == nil
	})
}

func endedCompaction(s *fold.State) bool { return s.Compaction == nil && s.LastCompaction != nil }

// TestDriveCompaction: a conversation that has come near the limit of its model is compacted once, before the
// next message. The events of OpenCode about that are no facts.
func TestDriveCompaction(t *testing.T) {
	t.Parallel()
	st := compacted(t, "A summary of all.", nil)
	st.run("ses_1", firstMessage, "call_1", "bash")
	st.uses("ses_1", "a-"+firstMessage, 720)
	st.finish("ses_1", firstMessage, "call_1")
	st.until("ses_1", "the turn completed", completed)
	natstest.Until(t, "a message is taken", func() bool {
		return st.bus.Services.Request(t.Context(), compactions.Name, "send", request.Send{Ref: ref("ses_1"), By: "ada",
			Message: "m1", Content: encode("more")}, nil) == nil
	})
	s := st.until("ses_1", "it is compacted", endedCompaction)
	if s.LastCompaction.Outcome != fold.OutcomeCompleted || s.Ignored.Count != 0 {
		t.Errorf("the compaction %+v, ignored %+v", s.LastCompaction, s.Ignored)
	}
	asked := st.made("summarize")
	if len(asked) != 1 || !strings.Contains(asked[0], `"auto":false`) ||
		!strings.Contains(asked[0], `"modelID":"big"`) {
		t.Errorf("asked: %q", asked)
	}
	st.until("ses_1", "the message is answered", func(s *fold.State) bool {
		return completed(s) && len(st.made("prompt_async")) == 1
	})
}

// TestDriveCompactionNot: without --drive compaction nothing is asked of OpenCode, and a request says so.
func TestDriveCompactionNot(t *testing.T) {
	t.Parallel()
	st := driven(t, Drive{})
	st.bridge()
	st.run("ses_1", firstMessage, "call_1", "bash")
	st.uses("ses_1", "a-"+firstMessage, 720)
	st.finish("ses_1", firstMessage, "call_1")
	st.until("ses_1", "the turn completed", completed)
	st.compactNow("ses_1")
	s := st.until("ses_1", "the compaction failed", endedCompaction)
	if f := s.LastCompaction; f.Outcome != fold.OutcomeFailed || len(st.made("summarize")) > 0 {
		t.Errorf("the compaction %+v, asked: %q", f, st.made("summarize"))
	}
}

// answers stores an answer in place of a summary.
func (st *stage) answers(session string) {
	st.put(session, assistant("c-1", firstMessage, object{"finish": "stop",
		"time": object{"created": 1, "completed": 2}}))
	st.part(session, "c-1", object{"id": "p-c-1", "type": "text", "text": "It is an answer."})
}

// TestDriveCompactionFails: a compaction that OpenCode refuses, or that ends without a summary, has failed.
func TestDriveCompactionFails(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		refuse int
		text   string
		more   object
		kind   string
	}{
		"refused": {http.StatusBadRequest, "x", nil, failure.RuntimeNotReady},
		"an error": {0, "half", object{"error": object{"name": "APIError", "data": object{"message": "invalid api key",
			"statusCode": 401}}}, failure.Authentication},
		"aborted":    {0, "half", object{"error": object{"name": abortedError, "data": object{}}}, failure.Aborted},
		"not a text": {0, `{"a": 1}`, nil, failure.BadSummary},
		"no summary": {0, "none", nil, failure.EmptyOutput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := compacted(t, x.text, x.more)
			if x.refuse != 0 {
				st.set(func() { st.refuse["/summarize"] = x.refuse })
			}
			if x.text == "none" {
				st.set(func() { st.onSummarize = st.answers })
			}
			st.run("ses_1", firstMessage, "call_1", "bash")
			st.finish("ses_1", firstMessage, "call_1")
			st.until("ses_1", "the turn completed", completed)
			st.compactNow("ses_1")
			s := st.until("ses_1", "the compaction ended", endedCompaction)
			if f := s.LastCompaction; f.Outcome != fold.OutcomeFailed || f.Error == nil || f.Error.Kind != x.kind {
				t.Errorf("the compaction %+v, %+v", f, f.Error)
			}
		})
	}
}

// TestDriveCompactionInTheMiddle: a run that comes too near to the limit is stopped, compacted, and continued by a
// message of its own, because OpenCode continues nothing behind a summary.
func TestDriveCompactionInTheMiddle(t *testing.T) {
	t.Parallel()
	st := compacted(t, "A summary of all.", nil)
	st.run("ses_1", firstMessage, "call_1", "bash")
	st.uses("ses_1", "a-"+firstMessage, 900)
	st.part("ses_1", "a-"+firstMessage, storedTool("p-call_1", "call_1", "bash", "completed", object{"output": "done"}))
	natstest.Until(t, "the run is aborted", func() bool { return len(st.made("abort")) > 0 })
	st.put("ses_1", assistant("a-"+firstMessage, firstMessage, object{"time": object{"created": 1, "completed": 2},
		"error": object{"name": abortedError, "data": object{"message": "aborted"}}}))
	st.status("ses_1", false)
	s := st.until("ses_1", "the work is continued", func(s *fold.State) bool {
		return completed(s) && len(st.made("prompt_async")) == 1
	})
	sent := st.made("prompt_async")[0]
	if s.LastTurn.Cause != events.CauseFollowUp || s.Ignored.Count != 0 {
		t.Errorf("the turn %+v, ignored %+v", s.LastTurn, s.Ignored)
	}
	if !strings.Contains(sent, "Continue it") || strings.Contains(sent, `"messageID":"`+firstMessage+`"`) {
		t.Errorf("sent: %s", sent)
	}
}

// TestDriveCompactionOverflow: a message that the model does not take, because the conversation is too long, is sent
// again behind the summary: the model has not answered it.
func TestDriveCompactionOverflow(t *testing.T) {
	t.Parallel()
	st := compacted(t, "A summary of all.", nil)
	st.asks("ses_1", firstMessage)
	st.put("ses_1", assistant("a-"+firstMessage, firstMessage, object{"time": object{"created": 1, "completed": 2},
		"error": object{"name": "ContextOverflowError", "data": object{"message": "too long"}}}))
	st.status("ses_1", false)
	st.until("ses_1", "the message is answered", func(s *fold.State) bool {
		return completed(s) && len(st.made("prompt_async")) == 1
	})
	if sent := st.made("prompt_async")[0]; !strings.Contains(sent, `"text":"do it"`) || len(st.made("summarize")) != 1 {
		t.Errorf("sent: %s", sent)
	}
}

// TestDriveCompactionWaits: while a session runs something, OpenCode is asked for no summary: it would be given to the
// run as a message.
func TestDriveCompactionWaits(t *testing.T) {
	t.Parallel()
	st := compacted(t, "A summary of all.", nil)
	st.run("ses_1", firstMessage, "call_1", "bash")
	st.finish("ses_1", firstMessage, "call_1")
	st.until("ses_1", "the turn completed", completed)
	// a command of a person, which is no turn
	st.status("ses_1", true)
	st.compactNow("ses_1")
	st.until("ses_1", "the compaction has begun", func(s *fold.State) bool {
		return s.Compaction != nil && s.Compaction.State == fold.CompactionRunning
	})
	st.untilPolled()
	if got := st.made("summarize"); len(got) > 0 {
		t.Errorf("asked: %q", got)
	}
	st.status("ses_1", false)
	s := st.until("ses_1", "it is compacted", endedCompaction)
	if s.LastCompaction.Outcome != fold.OutcomeCompleted {
		t.Errorf("the compaction %+v", s.LastCompaction)
	}
}

// TestCompactedByItself: after a compaction that Holdfast has asked for, one that a person asks OpenCode for is
// recorded as ever.
func TestCompactedByItself(t *testing.T) {
	t.Parallel()
	st := compacted(t, "A summary of all.", nil)
	st.run("ses_1", firstMessage, "call_1", "bash")
	st.finish("ses_1", firstMessage, "call_1")
	st.until("ses_1", "the turn completed", completed)
	st.compactNow("ses_1")
	st.until("ses_1", "it is compacted", endedCompaction)
	st.put("ses_1", assistant("sum-2", "msg_000000000060", object{"summary": true}))
	st.status("ses_1", true)
	st.part("ses_1", "sum-2", object{"id": "p-sum-2", "type": "text", "text": "Another one."})
	st.emit("session.compacted", object{"sessionID": "ses_1"})
	st.status("ses_1", false)
	natstest.Until(t, "the other one is recorded", func() bool {
		return st.count("ses_1", "compaction.completed") == 2
	})
}

// storedAs are messages of a session: what each one is, and its parts.
func storedAs(all ...any) []openMessage {
	n := &Snapshot{}
	for i := 0; i < len(all); i += 2 {
		m := Message{Info: encode(all[i])}
		for _, p := range all[i+1].([]object) {
			m.Parts = append(m.Parts, encode(p))
		}
		n.Messages = append(n.Messages, m)
	}
	return decodeMessages(n)
}

// TestContinuation: the message behind a summary says what was decided: the model is shown no result from before.
func TestContinuation(t *testing.T) {
	t.Parallel()
	asked := object{"questions": []object{{"question": "Which database?", "header": "DB",
		"options": []object{{"label": "Postgres"}, {"label": "SQLite"}}}}}
	messages := storedAs(object{"id": "m1", "role": "user"}, []object{{"type": "text", "text": "do it"}},
		object{"id": "a1", "role": "assistant"}, []object{
			{"id": "p1", "type": "tool", "callID": "c1", "tool": "question",
				"state": object{"status": "running", "input": asked}},
			{"id": "p2", "type": "tool", "callID": "c2", "tool": "bash", "state": object{"status": "running"}}})
	got := continuation(messages, []fold.TurnPrompt{
		{Prompt: "q", Questions: []events.Question{{ID: "q1", Question: "Which database?"}},
			WorkPrompt: fold.WorkPrompt{Status: fold.Answered,
				Answers: []events.Answer{{Question: "q1", Selected: []string{"SQLite"}}}}},
		{Prompt: "p", WorkPrompt: fold.WorkPrompt{Status: fold.Rejected, Text: "use mv"}}, {Prompt: "only named"},
	}, func(prompt string) (string, bool) {
		if prompt == "q" {
			return ident("call", "c1"), false
		}
		return ident("call", "c2"), true
	}, func(prompt string, _ *openMessage, k int) bool { return prompt == "p" && k == 1 })
	want := textContinue + "\nquestion:\nUser has answered your questions: \"Which database?\"=\"SQLite\". You can " +
		"now continue with the user's answers in mind.\nbash:\n" + textNotAllowed + ": use mv"
	if got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := continuation(messages[:1], nil, nil, nil); got != "do it" {
		t.Errorf("without an answer: %q", got)
	}
}

// TestSentAsTheNewest: the message that continues another one behind a summary is the one that counts.
func TestSentAsTheNewest(t *testing.T) {
	t.Parallel()
	all := storedAs(object{"id": "msg_1", "role": "user"}, []object{},
		object{"id": "msg_2" + sentSuffix(ident("msg", "msg_1")), "role": "user"}, []object{},
		object{"id": "msg_3", "role": "user"}, []object{})
	if got := sentAs(all, ident("msg", "msg_1")); got != 1 {
		t.Errorf("message %d", got)
	}
}

// TestStopsOf: a run that ends while a service has asked for its stop was stopped by that service; one that ends
// otherwise, by a person.
func TestStopsOf(t *testing.T) {
	t.Parallel()
	mine := events.TurnStopped{Turn: "t", Actor: events.ActorPerson, Reason: reasonAborted}
	for name, x := range map[string]struct {
		asked *fold.PendingStop
		want  events.TurnStopped
	}{
		"not asked":       {nil, mine},
		"of another turn": {&fold.PendingStop{Turn: "u", Actor: events.ActorCompaction}, mine},
		"of a person":     {&fold.PendingStop{Turn: "t", Actor: events.ActorPerson, Reason: "enough"}, mine},
		"of a service": {&fold.PendingStop{Turn: "t", Actor: events.ActorCompaction, Reason: "full"},
			events.TurnStopped{Turn: "t", Actor: events.ActorCompaction, Reason: "full"}},
	} {
		st := &fold.State{}
		st.Pending.Stop = x.asked
		if got := stopsOf(st, []events.Fact{mine}); got[0] != x.want {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}

// TestDriveCompactionWarns: the bridge warns of a server that may compact by itself, or that does not say.
func TestDriveCompactionWarns(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		config object
		warned bool
	}{
		"off":      {object{"compaction": object{"auto": false}}, false},
		"on":       {object{"compaction": object{"auto": true}}, true},
		"not said": {object{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := driven(t, Drive{Compaction: true})
			st.set(func() { st.config = x.config })
			log := st.logs()
			natstest.Until(t, "the bridge is connected", func() bool { return st.connections() > 0 })
			if got := log.has("OpenCode may compact by itself, too"); got != x.warned {
				t.Errorf("warned: %v", got)
			}
		})
	}
}

// TestServerEnv: a server that the bridge starts leaves compactions to Holdfast.
func TestServerEnv(t *testing.T) {
	t.Parallel()
	for drive, want := range map[Drive]bool{{}: false, {Compaction: true}: true} {
		b := &Bridge{Drive: drive}
		if got := slices.Contains(b.ServerEnv(), AutoCompactVar+"=1"); got != want {
			t.Errorf("%+v: %v", drive, b.ServerEnv())
		}
	}
}

// TestDriveCompactionTakenAway: a compaction that is taken from this process is aborted, and what it wrote is removed.
func TestDriveCompactionTakenAway(t *testing.T) {
	t.Parallel()
	st := compacted(t, "", nil)
	st.run("ses_1", firstMessage, "call_1", "bash")
	st.finish("ses_1", firstMessage, "call_1")
	st.until("ses_1", "the turn completed", completed)
	st.compactNow("ses_1")
	natstest.Until(t, "OpenCode compacts", func() bool { return len(st.made("summarize")) == 1 })
	st.until("ses_1", "the compaction runs", func(s *fold.State) bool {
		return s.Compaction != nil && s.Compaction.State == fold.CompactionRunning
	})
	st.recover("ses_1")
	natstest.Until(t, "it is aborted", func() bool { return len(st.made("abort")) == 1 })
	st.status("ses_1", false)
	natstest.Until(t, "what it wrote is removed", func() bool {
		all := strings.Join(st.made("DELETE"), " ")
		return strings.Contains(all, "/message/sum") && strings.Contains(all, "/message/msg_000000000050")
	})
	if got := st.kinds("ses_1"); slices.Contains(got, "compaction.completed") {
		t.Errorf("the log has %v", got)
	}
}
