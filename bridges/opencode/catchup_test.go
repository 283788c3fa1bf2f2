package opencode

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
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
			st.runOn()
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

// runOn is the rest of the run of ses_1 after its question is answered.
func (st *stage) runOn() {
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "completed", object{"output": "x"}))
	st.put("ses_1", assistant("a-msg_1", "msg_1", object{"finish": finishCalls,
		"time": object{"created": 1, "completed": 2}}))
	st.put("ses_1", assistant("b-msg_1", "msg_1", nil))
	st.put("ses_1", assistant("b-msg_1", "msg_1", object{"finish": "stop",
		"time": object{"created": 1, "completed": 2}}))
	st.status("ses_1", false)
}

// answeredWhileTaken has recovery take a session whose question waits, a person answer, and the bridge bring the
// answer. The server has taken it, and replies once reply is called. was is the session before.
func (st *stage) answeredWhileTaken() (was *fold.State, reply func()) {
	st.t.Helper()
	seen := make(chan struct{})
	reply = sync.OnceFunc(func() { close(seen) })
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	// a test that fails ends
	st.t.Cleanup(reply)
	was = st.until("ses_1", "a question waits", awaits(1))
	st.set(func() {
		st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
		st.onReply = func() { <-seen }
	})
	st.recover("ses_1")
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
	natstest.Until(st.t, "the server has the answer", func() bool {
		return len(st.made("question/que_1/reply", "SQLite")) == 1
	})
	return was, reply
}

// A server that has a decision runs on at once: what it does before the bridge knows that the decision has arrived
// belongs to the turn that brought it.
func TestLiveRunsOnAtOnce(t *testing.T) {
	st := newStage(t)
	was, reply := st.answeredWhileTaken()
	st.runOn()
	st.run("ses_2", "msg_2", "call_2", "bash")
	// so the events before are read
	st.until("ses_2", "it runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	reply()
	end := st.until("ses_1", "the turn ended", func(s *fold.State) bool {
		return s.Turn == nil && s.Pending.Turn == nil
	})
	// it is the run's own turn if the bridge claimed the session before the answer
	if l := end.LastTurn; l.OfTurn != was.Turn.ID && l.ID != was.Turn.ID || l.Outcome != fold.OutcomeCompleted {
		t.Errorf("the last turn is %+v", end.LastTurn)
	}
	if got := st.made("que_1"); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
}

// A person answers on the board, and another one in OpenCode, in the instant in which a turn brings the first answer to
// the run that waits. The agent has the second one and ends its run, and the log says that it does not have the first.
func TestLiveDecisionOfATurnTooLate(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() {
		st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
		st.first = map[string]object{"que_1": {"answers": [][]string{{"Postgres"}}}}
	})
	st.recover("ses_1")
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
	natstest.Until(t, "the answer was sent", func() bool { return len(st.made("question/que_1/reply", "SQLite")) > 0 })
	natstest.Until(t, "the refusal is stored", func() bool {
		return slices.Contains(st.kinds("ses_1"), "prompt.delivered")
	})
	st.runOn()
	s := st.until("ses_1", "the turn completed", completed)
	e, _ := s.Ended(fold.EntityPrompt, "que_1")
	if e.Outcome != string(fold.Answered) || e.Reason != "refused: "+reasonLate {
		t.Errorf("the question is %s, %q", e.Outcome, e.Reason)
	}
	if got := st.made("que_1"); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
}

// A turn that brings a decision to a run that it has joined does not end before the run has it, or refuses it.
func TestNoEndWhileADecisionIsOnItsWay(t *testing.T) {
	tr := NewLiveTranslator()
	tr.Continue("ses_1", "t2", "msg_1")
	s := tr.session("ses_1")
	s.turn.awaited, s.turn.deciding = false, true
	tr.sessionIdle(s, nil)
	if s.turn == nil {
		t.Fatal("the turn has ended")
	}
	s.turn.deciding = false
	tr.sessionIdle(s, nil)
	if s.turn != nil {
		t.Error("the turn has not ended")
	}
}

// A person stops a turn while it brings a decision to a run that it has joined. The run is aborted.
func TestLiveStopWhileADecisionIsBrought(t *testing.T) {
	st := newStage(t)
	_, reply := st.answeredWhileTaken()
	st.until("ses_1", "a turn runs", func(s *fold.State) bool { return s.Turn != nil })
	if !st.ask("stop", request.Stop{Ref: ref("ses_1"), By: "ada"}) {
		t.Fatal("the stop is refused")
	}
	// a bridge that claimed the session before the answer aborts the run at once, and the run's end closes the turn
	st.until("ses_1", "the stop is read", func(s *fold.State) bool {
		return s.Pending.Stop == nil || s.Turn == nil || len(st.made("ses_1/abort")) > 0
	})
	reply()
	natstest.Until(t, "the run is aborted", func() bool { return len(st.made("ses_1/abort")) > 0 })
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
		// no stream brings it
		st.finish("ses_"+n, "msg_"+n, "call_"+n)
	}
	st.start()
	st.until("ses_1", "the turn ended", ended)
	st.until("ses_3", "the turn ended", ended)
	natstest.Until(t, "connected", func() bool { return st.connections() > was })
	// the stream is followed
	st.run("ses_4", "msg_4", "call_4", "bash")
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

// A broker that is away when OpenCode restarts is waited for: the bridge does not end.
func TestLiveRestartWithoutBroker(t *testing.T) {
	st := newStage(t)
	var away, refused atomic.Int64
	b := &Bridge{URL: st.srv.URL, Connect: func(ctx context.Context) (*harness.Harness, error) {
		url := st.server.URL()
		if away.Load() > 0 {
			refused.Add(1)
			url = "nats://127.0.0.1:1"
			once, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			ctx = once
		}
		return harness.Connect(ctx, harness.Config{ID: "oc", URL: url, TTL: 10 * time.Minute})
	}}
	natstest.Background(t, b.Run)
	natstest.Until(t, "the bridge is connected", func() bool { return st.connections() > 0 })
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	away.Store(1)
	st.kill()
	st.start()
	natstest.Until(t, "the bridge has tried again", func() bool { return refused.Load() > 1 })
	away.Store(0)
	natstest.Until(t, "the new process has a mark", st.marked)
	st.run("ses_2", "msg_2", "call_2", "bash")
	st.until("ses_2", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
}

// A session that another process has is left alone, and the bridge continues the others.
func TestLiveSessionOfAnother(t *testing.T) {
	st := newStage(t)
	h, err := harness.Connect(t.Context(), harness.Config{ID: "oc", URL: st.server.URL(), Pool: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Abandon()
	open, err := h.Open(t.Context(), "ses_0", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.StartTurn(t.Context(), harness.StartOptions{Content: "x"}); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "its document shows the turn", func() bool {
		docs, _, err := h.Sessions(t.Context())
		return err == nil && len(docs) == 1 && docs[0].Turn != nil
	})
	st.set(func() { st.mcp["holdfast-hf-oc-1"] = object{"status": "disabled"} })
	st.bridge()
	if s := st.until("ses_0", "it is there", (*fold.State).Opened); s.Incarnation != h.Incarnation() || !s.Owned {
		t.Errorf("incarnation %s, owned %v, when the bridge had connected", s.Incarnation, s.Owned)
	}
}

// A bridge that returns asks about a session in the directory of the session.
func TestLiveBridgeReturnsToADirectory(t *testing.T) {
	st := newStage(t)
	st.set(func() { st.where = map[string]string{"ses_1": "/other"} })
	stop := st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	was := st.until("ses_1", "a question waits", awaits(1))
	stop()
	st.bridge()
	is := st.until("ses_1", "another incarnation owns it", func(s *fold.State) bool { return s.Epoch > was.Epoch })
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the answer is taken", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.prompts["que_1"] == nil
	})
	now := st.until("ses_1", "it is there", (*fold.State).Opened)
	if now.Turn == nil || now.Turn.ID != was.Turn.ID {
		t.Errorf("turn %+v, then %+v", is.Turn, now.Turn)
	}
	st.finish("ses_1", "msg_1", "call_1")
	st.until("ses_1", "the turn completed", completed)
}

// send sends a message through Holdfast to a session that has ended a turn.
func (st *stage) send() (last string) {
	st.t.Helper()
	st.run("ses_1", "msg_000000000001x", "call_1", "bash")
	st.finish("ses_1", "msg_000000000001x", "call_1")
	was := st.until("ses_1", "the turn ended", ended)
	h, err := harness.Connect(st.t.Context(), harness.Config{ID: "sender", URL: st.server.URL()})
	if err != nil {
		st.t.Fatal(err)
	}
	defer h.Abandon()
	more := harness.Message{Harness: "oc", Session: "ses_1", Content: "more", By: "ada"}
	if _, err := h.Send(st.t.Context(), more); err != nil {
		st.t.Fatal(err)
	}
	return was.LastTurn.ID
}

// untilPolled waits until the bridge has looked a few times at what sessions do. It can be called in a goroutine.
func (st *stage) untilPolled() {
	reached, late := make(chan struct{}), time.NewTimer(time.Minute)
	defer late.Stop()
	st.set(func() { st.enough, st.reached = st.polls+5, reached })
	select {
	case <-reached:
	case <-late.C:
		st.t.Error("the bridge does not look at what sessions do")
	case <-st.t.Context().Done():
	}
}

// A server that needs several seconds to become busy has not refused the message.
func TestLiveSlowToBegin(t *testing.T) {
	st := newStage(t)
	st.plays()
	run := st.onPrompt
	st.set(func() {
		st.onPrompt = func(session string, body object) { go func() { st.untilPolled(); run(session, body) }() }
	})
	st.bridge()
	last := st.send()
	s := st.until("ses_1", "the next turn ended", func(s *fold.State) bool {
		return s.Turn == nil && s.LastTurn.ID != last
	})
	if s.LastTurn.Outcome != "completed" {
		t.Errorf("the turn is %s", s.LastTurn.Outcome)
	}
}

// A server that has stored the message and made no model call for it ends the turn as failed.
func TestLiveStoredAndNotRun(t *testing.T) {
	st := newStage(t)
	st.set(func() {
		st.onPrompt = func(session string, body object) {
			st.put(session, object{"id": body["messageID"], "role": "user", "time": object{"created": 1}})
			st.status(session, true)
			go func() { st.untilPolled(); st.status(session, false) }()
		}
	})
	st.bridge()
	last := st.send()
	s := st.until("ses_1", "the next turn ended", func(s *fold.State) bool {
		return s.Turn == nil && s.LastTurn.ID != last
	})
	if s.LastTurn.Outcome != "failed" || s.LastTurn.Error == nil || s.LastTurn.Error.Kind != "runtime_not_ready" {
		t.Errorf("the turn is %s, %+v", s.LastTurn.Outcome, s.LastTurn.Error)
	}
}
