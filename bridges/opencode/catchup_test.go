package opencode

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// recover takes a session from its owner, as recovery does after the lease and the grace of a process that sleeps.
func (st *stage) recover(id string, closing ...events.Fact) {
	st.t.Helper()
	natstest.Until(st.t, "the session is taken", func() bool {
		s := natstest.Session(st.t, st.bus, ref(id))
		var evs []events.Event
		for _, f := range append([]events.Fact{events.SessionOrphaned{Reason: events.ReasonOwnerLost,
			Incarnation: s.Incarnation}}, closing...) {
			evs = append(evs, events.New(st.bus.NewID(), events.ServiceSource(string(events.WriterReconciler), "test"),
				ref(id), s.Epoch, time.Now(), f))
		}
		_, err := st.bus.Log.Append(st.t.Context(), ref(id), events.WriterReconciler, s.Seq, evs)
		return err == nil
	})
}

// A bridge that slept for longer than its lease and the grace begins a session again that recovery has taken: the run
// continues, and an answer reaches the server once, also if it was given before the bridge woke.
func TestLiveTakenByRecovery(t *testing.T) {
	for name, asleep := range map[string]bool{"answered after it woke": false, "answered while it slept": true} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			st.bridge()
			st.run("ses_1", "msg_1", "call_1", "question")
			st.question("ses_1", "que_1", "msg_1", "call_1")
			was := st.until("ses_1", "a question waits", awaits(1))
			st.set(func() { st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError })
			st.recover("ses_1")
			if asleep {
				st.answer("ses_1", "que_1", "q1", "SQLite")
			}
			st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
			if !asleep {
				st.until("ses_1", "it has an owner again", func(s *fold.State) bool {
					return s.Owned && s.Epoch > was.Epoch && len(s.PendingPrompts()) == 1
				})
				st.answer("ses_1", "que_1", "q1", "SQLite")
			}
			natstest.Until(t, "the server has the answer", func() bool {
				return len(st.made("question/que_1/reply", "SQLite")) == 1
			})
			st.until("ses_1", "a turn runs", func(s *fold.State) bool { return s.Turn != nil })
			st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "completed",
				object{"output": "x"}))
			st.put("ses_1", assistant("a-msg_1", "msg_1", object{"finish": finishCalls,
				"time": object{"created": 1, "completed": 2}}))
			st.put("ses_1", assistant("b-msg_1", "msg_1", nil))
			st.put("ses_1", assistant("b-msg_1", "msg_1", object{"finish": "stop",
				"time": object{"created": 1, "completed": 2}}))
			st.status("ses_1", false)
			end := st.until("ses_1", "the turn completed", completed)
			if end.LastTurn.ID != was.Turn.ID && end.LastTurn.OfTurn != was.Turn.ID {
				t.Errorf("the last turn is %+v", end.LastTurn)
			}
			// the session is as any other: the next turn, and the next question
			st.status("ses_1", true)
			st.put("ses_1", assistant("c-msg_1", "msg_1", nil))
			st.permission("ses_1", "per_2", "none", "call_2")
			st.until("ses_1", "the next prompt waits", awaits(1))
			st.answer("ses_1", "per_2", events.PermissionQuestion, "once")
			natstest.Until(t, "granted", func() bool { return len(st.made("per_2/reply", `"once"`)) == 1 })
			if got := st.made("que_1"); len(got) != 1 {
				t.Errorf("the server got %q", got)
			}
			if got := st.made("prompt_async"); len(got) != 0 {
				t.Errorf("a message was sent to a run that waited: %q", got)
			}
		})
	}
}

// Recovery has closed the run of a session that it took. The run continues as a turn of its own, and so do its prompts.
func (st *stage) closedByRecovery() {
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	st.recover("ses_1", events.ToolInterrupted{Call: "call_1", Reason: events.ReasonOwnerLost,
		Outcome: events.OutcomeUnknown}, events.TurnInterrupted{Turn: "msg_1", Reason: events.ReasonOwnerLost})
}

func TestLiveClosedByRecovery(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.closedByRecovery()
	is := st.until("ses_1", "the run is a turn again", func(s *fold.State) bool { return s.Turn != nil && s.Owned })
	if is.Turn.ID == "msg_1" || is.Turn.OfTurn != "msg_1" || is.LastTurn.Outcome != "interrupted" {
		t.Errorf("turn %+v after %+v", is.Turn, is.LastTurn)
	}
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "bash", "completed", object{"output": "done"}))
	st.part("ses_1", "a-msg_1", storedTool("p-call_2", "call_2", "question", "running", nil))
	st.question("ses_1", "que_1", "msg_1", "call_2")
	now := st.until("ses_1", "a question waits", awaits(1))
	if now.Prompts["que_1"].Turn != is.Turn.ID {
		t.Errorf("the question is %+v", now.Prompts["que_1"])
	}
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the server has the answer", func() bool { return len(st.made("que_1/reply", "SQLite")) == 1 })
	st.finish("ses_1", "msg_1", "call_2")
	if end := st.until("ses_1", "the turn completed", completed); end.LastTurn.ID != is.Turn.ID {
		t.Errorf("the last turn is %+v", end.LastTurn)
	}
}

// A session that cannot be read stops no other, and is compared when it can be read again.
func TestLiveUnreadableSession(t *testing.T) {
	st := newStage(t)
	st.bridge()
	for _, n := range []string{"1", "2", "3"} {
		st.run("ses_"+n, "msg_"+n, "call_"+n, "bash")
		st.until("ses_"+n, "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	}
	st.set(func() {
		st.down = true
		st.refuse["GET /session/ses_2/message"] = http.StatusInternalServerError
	})
	was := st.connections()
	st.cut()
	for _, n := range []string{"1", "2", "3"} {
		st.finish("ses_"+n, "msg_"+n, "call_"+n) // no stream brings it
	}
	st.start()
	st.until("ses_1", "the turn ended", ended)
	st.until("ses_3", "the turn ended", ended)
	natstest.Until(t, "connected", func() bool { return st.connections() > was })
	st.run("ses_4", "msg_4", "call_4", "bash") // the stream is followed
	st.until("ses_4", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	if st.until("ses_2", "it runs", func(s *fold.State) bool { return s.Opened() }).Turn == nil {
		t.Error("the turn of a session that cannot be read has ended")
	}
	st.set(func() { delete(st.refuse, "GET /session/ses_2/message") })
	if two := st.until("ses_2", "the turn ended", ended); two.LastTurn.Outcome != "completed" {
		t.Errorf("the turn is %s", two.LastTurn.Outcome)
	}
	if n := st.connections(); n != was+1 {
		t.Errorf("connected %d times", n-was)
	}
}

// Silence counts while the bridge waits for the server, and not while it compares sessions.
func TestStreamSilence(t *testing.T) {
	s := &stream{reader: bufio.NewReader(strings.NewReader("data: {}\n\n")), silence: time.NewTimer(time.Hour)}
	if raw, err := s.next(); err != nil || string(raw) != "{}" {
		t.Fatalf("%s, %v", raw, err)
	}
	if s.silence.Stop() {
		t.Error("silence counts while nothing is read")
	}
}
