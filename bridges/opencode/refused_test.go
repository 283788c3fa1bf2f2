package opencode

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// lockedLog is a log that a test reads while the bridge writes it.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// count returns how many lines have a text.
func (l *lockedLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// logs runs a bridge, and returns its log.
func (st *stage) logs() *lockedLog {
	log := &lockedLog{}
	b := &Bridge{URL: st.srv.URL, Log: slog.New(slog.NewTextHandler(log, nil)), Drive: st.drive, Plugin: st.plugin,
		Connect: func(ctx context.Context) (*harness.Harness, error) {
			return harness.Connect(ctx, harness.Config{ID: "oc", URL: st.server.URL(), TTL: 10 * time.Minute})
		}}
	natstest.Background(st.t, b.Run)
	return log
}

// OpenCode refuses a decision with a status that says nothing of the prompt. The log of the bridge says so, and the
// decision is not marked as delivered.
func TestLiveDecisionRefused(t *testing.T) {
	st := newStage(t)
	log := st.logs()
	natstest.Until(t, "the bridge is connected", func() bool { return st.connections() > 0 })
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() { st.refuse = map[string]int{"que_1/reply": http.StatusForbidden} })
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the line of the log", func() bool { return log.has("OpenCode refused the decision") })
	if got := st.kinds("ses_1"); slices.Contains(got, "prompt.delivered") {
		t.Errorf("the decision counts as delivered: %v", got)
	}
}

// refusedWhileTaken has recovery take a session whose question waits, a person answer, and OpenCode refuse the answer
// with a status: the turn that brings it has joined the run.
func (st *stage) refusedWhileTaken(status int) {
	st.t.Helper()
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() {
		st.refuse["GET /session/ses_1/message"] = http.StatusInternalServerError
		st.refuse["que_1/reply"] = status
	})
	st.recover("ses_1")
	st.answer("ses_1", "que_1", "q1", "SQLite")
	st.set(func() { delete(st.refuse, "GET /session/ses_1/message") })
}

// OpenCode refuses a decision of a turn that has joined the run, and the run still waits: the decision is sent again
// until the server takes it. A server that is too busy for a decision gets it again, too.
func TestLiveRefusedByAJoinedRun(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			st := newStage(t)
			st.refusedWhileTaken(status)
			natstest.Until(t, "it was refused", func() bool { return len(st.made("question/que_1/reply")) > 0 })
			st.set(func() { delete(st.refuse, "que_1/reply") })
			natstest.Until(t, "the server has the answer", func() bool {
				st.mu.Lock()
				defer st.mu.Unlock()
				return st.prompts["que_1"] == nil
			})
			st.until("ses_1", "a turn runs", func(s *fold.State) bool { return s.Turn != nil })
			st.runOn()
			end := st.until("ses_1", "the turn completed", completed)
			if l := end.LastTurn; l.Cause != events.CauseAnswer && l.ID != "msg_1" {
				t.Errorf("the last turn is %+v", l)
			}
		})
	}
}

// takenWhileRefused has OpenCode refuse a decision, and recovery take the session while the bridge sends it again. The
// run continues as a turn that names the decision, and the bridge still sends it.
func (st *stage) takenWhileRefused() {
	st.t.Helper()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() { st.refuse["que_1/reply"] = http.StatusForbidden })
	st.answer("ses_1", "que_1", "q1", "SQLite")
	refused := func(what string, n int) {
		st.t.Helper()
		natstest.Until(st.t, what, func() bool { return len(st.made("question/que_1/reply")) > n })
	}
	refused("it was refused", 0)
	st.recover("ses_1", events.ToolInterrupted{Call: "call_1", Reason: events.ReasonOwnerLost,
		Outcome: events.OutcomeUnknown}, events.TurnInterrupted{Turn: "msg_1", Reason: events.ReasonOwnerLost})
	st.until("ses_1", "the run is a turn again", func(s *fold.State) bool { return s.Owned && s.Turn != nil })
	refused("it was refused again", len(st.made("question/que_1/reply"))+1)
}

// The server takes the decision as soon as it can.
func TestLiveTakenWhileRefused(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.takenWhileRefused()
	st.set(func() { delete(st.refuse, "que_1/reply") })
	natstest.Until(t, "the server has the answer", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return st.prompts["que_1"] == nil
	})
	st.runOn()
	if end := st.until("ses_1", "the turn completed", completed); end.LastTurn.OfTurn != "msg_1" {
		t.Errorf("the last turn is %+v", end.LastTurn)
	}
}

// The bridge sends it no more once the server says, or shows, that its agent has another decision.
func TestLiveTakenWhileRefusedAndSettled(t *testing.T) {
	for name, settle := range map[string]func(*stage){
		"by an event": func(st *stage) {
			st.emit("question.replied", object{"sessionID": "ses_1", "requestID": "que_1",
				"answers": [][]string{{"x"}}})
		},
		"while the bridge was not connected": func(st *stage) {
			st.set(func() { delete(st.prompts, "que_1") })
			st.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t)
			log := st.logs()
			st.takenWhileRefused()
			settle(st)
			natstest.Until(t, "the bridge sends it no more", func() bool {
				return log.has("OpenCode does not have the decision")
			})
		})
	}
}

// A refusal that says nothing of the request is no refusal of it.
func TestPassingRefusals(t *testing.T) {
	for status, want := range map[int]bool{http.StatusBadRequest: true, http.StatusForbidden: true,
		http.StatusNotFound: true, http.StatusRequestTimeout: false, http.StatusTooEarly: false,
		http.StatusTooManyRequests: false, http.StatusBadGateway: false} {
		if got := refused(&statusError{Code: status}); got != want {
			t.Errorf("%d is refused: %t", status, got)
		}
	}
}
