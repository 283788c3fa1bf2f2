package opencode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
	compactions "github.com/holdfast-dev/holdfast/services/compaction"
	ledgers "github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// stage is a fake server, a cell with its services, and bridges between them. Leases live for minutes, so nothing in a
// test is recovered because a lease ended.
type stage struct {
	*fakeServer
	server   *embed.Server
	bus      *bus.Bus
	drive    Drive     // of the bridges
	plugin   *Plugin   // of the next bridge
	follower *follower // the newest bridge
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := natstest.Start(t, natstest.Lazy())
	st := &stage{fakeServer: newFake(t), server: s, bus: natstest.Bus(t, s)}
	led, err := ledgers.New(st.bus, ledgers.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	cfg := reconciler.Default()
	// no lease ends before its TTL
	cfg.DisconnectGrace = 0
	rec, err := reconciler.New(st.bus, cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ret, err := retry.New(st.bus, retry.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	com, err := compactions.New(st.bus, compactions.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []func(context.Context) error{led.Run, rec.Run, ret.Run, com.Run} {
		natstest.Background(t, run)
	}
	return st
}

// bridge runs a bridge until stop, or until the test ends.
func (st *stage) bridge(permitted ...error) (stop func()) {
	st.t.Helper()
	b := &Bridge{URL: st.srv.URL, Drive: st.drive, Plugin: st.plugin}
	b.Connect = func(ctx context.Context) (*harness.Harness, error) {
		return harness.Connect(ctx, harness.Config{ID: "oc", URL: st.server.URL(), TTL: 10 * time.Minute})
	}
	r, err := b.newFollower()
	if err != nil {
		st.t.Fatal(err)
	}
	st.follower = r
	was := st.connections()
	stop = natstest.Background(st.t, r.run, permitted...)
	natstest.Until(st.t, "the bridge is connected", func() bool { return st.connections() > was })
	return stop
}

func (st *stage) connections() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.accepted
}

func ref(id string) events.Ref { return events.Ref{Harness: "oc", Session: id} }

// until waits for a state of a session in the log.
func (st *stage) until(id, what string, ok func(*fold.State) bool) *fold.State {
	st.t.Helper()
	return natstest.UntilSession(st.t, st.bus, ref(id), what, ok)
}

// kinds returns the kinds of all facts of a session.
func (st *stage) kinds(id string) (all []string) {
	st.t.Helper()
	for _, e := range st.inLog(id) {
		all = append(all, string(e.Kind))
	}
	return all
}

// inLog returns all events of a session in the log.
func (st *stage) inLog(id string) (all []events.Event) {
	st.t.Helper()
	commits, err := st.bus.Log.Read(st.t.Context(), ref(id), 0)
	if err != nil {
		st.t.Fatal(err)
	}
	for i := range commits {
		all = append(all, commits[i].Events...)
	}
	return all
}

// ask sends a request to the ledger, and reports whether it was carried out.
func (st *stage) ask(verb string, req any) bool {
	return st.bus.Services.Request(st.t.Context(), ledgers.Name, verb, req, nil) == nil
}

// answer answers a prompt as a person on the board does.
func (st *stage) answer(id, prompt, question, label string) {
	st.t.Helper()
	natstest.Until(st.t, "the answer is taken", func() bool {
		return st.ask("answer", request.Answer{Ref: ref(id), Prompt: prompt, By: "ada",
			Answers: []events.Answer{{Question: question, Selected: []string{label}}}})
	})
}

func ended(s *fold.State) bool { return s.Turn == nil && s.LastTurn != nil }

func awaits(n int) func(*fold.State) bool {
	return func(s *fold.State) bool { return len(s.PendingPrompts()) == n }
}

// An answer from elsewhere reaches the living server once, with the text of the options.
func TestLiveAnswerFromElsewhere(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	s := st.until("ses_1", "a question waits", awaits(1))
	if p := s.Prompts["que_1"]; p.OnOwnerLoss != events.LossKeep || p.Delivery != events.DeliverToolResult {
		t.Errorf("the prompt is %s, %s", p.Delivery, p.OnOwnerLoss)
	}
	st.answer("ses_1", "que_1", "q1", "Postgres")
	natstest.Until(t, "the server has the answer", func() bool { return len(st.made("question/que_1/reply")) > 0 })
	st.finish("ses_1", "msg_1", "call_1")
	st.until("ses_1", "the turn ended", ended)
	if got := st.made("que_1"); len(got) != 1 || !strings.Contains(got[0], `[["Postgres"]]`) {
		t.Errorf("the server got %q", got)
	}
	// the next prompt is answered in OpenCode: nothing is sent back
	st.run("ses_2", "msg_2", "call_2", "bash")
	st.permission("ses_2", "per_1", "msg_2", "call_2")
	st.until("ses_2", "a permission waits", awaits(1))
	st.set(func() { st.settle("permission", "per_1", "reply", object{"reply": "once"}) })
	st.finish("ses_2", "msg_2", "call_2")
	st.until("ses_2", "the turn ended", ended)
	if got := st.made("per_1"); len(got) != 0 {
		t.Errorf("the server got back its own answer: %q", got)
	}
}

// A permission that is granted or rejected elsewhere reaches the living server in its words.
func TestLivePermissionFromElsewhere(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.permission("ses_1", "per_1", "msg_1", "call_1")
	st.permission("ses_1", "per_2", "msg_1", "call_x")
	st.until("ses_1", "two permissions wait", awaits(2))
	st.answer("ses_1", "per_2", events.PermissionQuestion, "once")
	natstest.Until(t, "granted, without a call", func() bool {
		return len(st.made("permission/per_2/reply", `"once"`)) == 1
	})
	st.answer("ses_1", "per_1", events.PermissionQuestion, "always")
	natstest.Until(t, "granted", func() bool { return len(st.made("permission/per_1/reply", `"always"`)) == 1 })

	st.run("ses_2", "msg_2", "call_2", "bash")
	st.permission("ses_2", "per_3", "msg_2", "call_2")
	st.until("ses_2", "a permission waits", awaits(1))
	natstest.Until(t, "rejected", func() bool {
		return st.ask("reject", request.Reject{Ref: ref("ses_2"), Prompt: "per_3", By: "ada", Text: "not here"})
	})
	natstest.Until(t, "the server has it", func() bool {
		return len(st.made("permission/per_3/reply", `"reject"`, "not here")) == 1
	})
}

// A decision for which OpenCode no longer waits is refused in the log: the agent has another one.
func TestLiveDecisionTooLate(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	// answered there, and the event is late
	st.set(func() { delete(st.prompts, "que_1") })
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the refusal is stored", func() bool {
		return slices.Contains(st.kinds("ses_1"), "prompt.delivered")
	})
	if got := st.made("question/que_1/reply"); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
}

// A reply of the server that is lost is no refusal: the request is sent again, the server no longer knows the prompt,
// and the decision stands.
func TestLiveReplyLost(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	st.set(func() { st.mute = "que_1/reply" })
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the request is sent again", func() bool { return len(st.made("que_1/reply")) == 2 })
	st.finish("ses_1", "msg_1", "call_1")
	st.until("ses_1", "the turn ended", ended)
	if got := st.kinds("ses_1"); slices.Contains(got, "prompt.delivered") {
		t.Errorf("the decision was refused: %v", got)
	}
}

// Events that a lost connection did not bring are found when it is back: under the same incarnation, with the endings
// that the server stored.
func TestLiveConnectionLost(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.run("ses_2", "msg_2", "call_2", "bash")
	st.run("ses_3", "msg_3", "call_3", "question")
	st.question("ses_3", "que_1", "msg_3", "call_3")
	was := st.until("ses_3", "a question waits", awaits(1))
	st.set(func() { st.down = true })
	st.cut()
	// no stream brings it
	st.finish("ses_1", "msg_1", "call_1")
	st.run("ses_4", "msg_4", "call_4", "question")
	st.question("ses_4", "que_2", "msg_4", "call_4")
	st.set(func() { st.settle("question", "que_1", "reply", object{"answers": [][]string{{"SQLite"}}}) })
	st.start()
	one := st.until("ses_1", "the turn ended", ended)
	if one.LastTurn.Outcome != "completed" || one.Incarnation != was.Incarnation || one.Epoch != 1 {
		t.Errorf("turn %s, incarnation %s after %s, epoch %d", one.LastTurn.Outcome, one.Incarnation, was.Incarnation,
			one.Epoch)
	}
	st.until("ses_4", "the question that was asked meanwhile", awaits(1))
	three := st.until("ses_3", "the question that was answered meanwhile", awaits(0))
	if three.Turn == nil || len(three.Tools) != 1 {
		t.Errorf("turn %v, calls %v: it runs on", three.Turn, three.Tools)
	}
	if two := st.until("ses_2", "it runs", func(s *fold.State) bool { return s.Turn != nil }); len(two.Tools) != 1 {
		t.Errorf("calls %v", two.Tools)
	}
	st.finish("ses_2", "msg_2", "call_2")
	st.until("ses_2", "the turn ended", ended)
}

// A restart closes at once what the old process held, by a new incarnation: no lease ends in this test. The log says
// why the session has no owner. A question stays open.
func TestLiveRestart(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.run("ses_2", "msg_2", "call_2", "question")
	st.question("ses_2", "que_1", "msg_2", "call_2")
	was := st.until("ses_2", "a question waits", awaits(1))
	st.kill()
	st.start()
	one := st.until("ses_1", "the turn ended", ended)
	if one.LastTurn.Outcome != "interrupted" || len(one.Tools) != 0 {
		t.Errorf("turn %s, calls %v", one.LastTurn.Outcome, one.Tools)
	}
	two := st.until("ses_2", "it has no owner", func(s *fold.State) bool { return !s.Owned })
	for _, e := range st.inLog("ses_2") {
		if f, ok := e.Fact.(events.SessionOrphaned); ok && f.Detail != reasonRestarted {
			t.Errorf("the log says how the owner ended: %q", f.Detail)
		}
	}
	if len(two.PendingPrompts()) != 1 {
		t.Errorf("the question is %+v", two.Prompts["que_1"])
	}
	// the new process works, as another incarnation
	st.run("ses_3", "msg_3", "call_3", "bash")
	three := st.until("ses_3", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	if !fold.Older(was.Incarnation, three.Incarnation) {
		t.Errorf("incarnation %s after %s", three.Incarnation, was.Incarnation)
	}
}

// A server that restarts while the bridge connects is not taken for the process that the bridge met.
func TestLiveRestartWhileConnecting(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	// the mark is still there when the bridge looks for it; then the process dies, and the stream is the next one's
	st.set(func() { st.onStream = func() { st.kill(); st.start() } })
	st.cut()
	s := st.until("ses_1", "the turn ended", ended)
	if s.LastTurn.Outcome != "interrupted" {
		t.Errorf("the turn of a dead process is %s", s.LastTurn.Outcome)
	}
}

// A bridge that is started again while the server runs continues the turns that are open. After a restart of the server
// it does not.
func TestLiveBridgeReturns(t *testing.T) {
	st := newStage(t)
	st.plays()
	stop := st.bridge()
	st.run("ses_1", "msg_1", "call_1", "question")
	st.question("ses_1", "que_1", "msg_1", "call_1")
	was := st.until("ses_1", "a question waits", awaits(1))
	st.run("ses_2", "msg_2", "call_2", "bash")
	st.until("ses_2", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	stop()
	// aborted, and its last events are about to come
	st.set(func() { delete(st.busy, "ses_2") })
	stop = st.bridge()
	is := st.until("ses_1", "another incarnation owns it", func(s *fold.State) bool { return s.Epoch > was.Epoch })
	if is.Turn == nil || is.Turn.ID != was.Turn.ID || len(is.PendingPrompts()) != 1 || len(is.Tools) != 1 {
		t.Fatalf("turn %v, calls %v, prompts %v", is.Turn, is.Tools, is.PendingPrompts())
	}
	if got := st.made("PATCH"); len(got) != 0 {
		t.Errorf("a living process was repaired: %q", got)
	}
	st.answer("ses_1", "que_1", "q1", "SQLite")
	natstest.Until(t, "the server has the answer", func() bool { return len(st.made("que_1/reply", "SQLite")) == 1 })
	stop()
	st.kill()
	st.start()
	st.bridge()
	// the call of the question has not ended, so the answer is brought to the next process, by another turn
	end := st.until("ses_1", "another turn completed", completed)
	if end.LastTurn.ID == was.Turn.ID || end.LastTurn.OfTurn != was.Turn.ID {
		t.Errorf("the turn of a dead process was continued: %+v", end.LastTurn)
	}
}

// Of two bridges with one harness id the newer one has the server.
func TestLiveTwoBridges(t *testing.T) {
	st := newStage(t)
	first := make(chan error, 1)
	b := &Bridge{URL: st.srv.URL, Connect: func(ctx context.Context) (*harness.Harness, error) {
		return harness.Connect(ctx, harness.Config{ID: "oc", URL: st.server.URL(), TTL: time.Minute})
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { first <- b.Run(ctx) }()
	natstest.Until(t, "connected", func() bool { return st.connections() == 1 })
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	st.bridge()
	if err := <-first; !errors.Is(err, harness.ErrFenced) {
		t.Errorf("the first bridge ended with %v", err)
	}
	st.finish("ses_1", "msg_1", "call_1")
	st.until("ses_1", "the turn ended", ended)
	if n := slices.Compact(slices.Sorted(slices.Values(st.kinds("ses_1")))); slices.Contains(n, "session.orphaned") {
		t.Errorf("the session was orphaned: %v", n)
	}
}

// Events twice, unknown, unreadable and large do not stop the others.
func TestLiveStrangeEvents(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.set(func() {
		st.sendLocked(`not json`)
		st.sendLocked(`{"payload":{"type":"tomorrow.event","properties":{"sessionID":7}}}`)
		st.sendLocked(`{"payload":{"type":"session.created"}}`)
	})
	st.run("ses_1", "msg_1", "call_1", "bash")
	// the event again, under its id
	st.set(func() {
		running := storedTool("p-call_1", "call_1", "bash", "running", nil)
		st.sendLocked(string(encode(object{"payload": object{"id": fmt.Sprintf("evt_%05d", st.events),
			"type": "message.part.updated", "properties": object{"sessionID": "ses_1", "part": running}}})))
	})
	long := object{"output": strings.Repeat("x", 4<<20)}
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "bash", "completed", long))
	st.finish("ses_1", "msg_1", "call_1")
	st.until("ses_1", "the turn ended", ended)
	want := []string{"session.opened", "message.accepted", "turn.started", "tool.started", "tool.completed",
		"turn.completed"}
	if got := st.kinds("ses_1"); !slices.Equal(got, want) {
		t.Errorf("the log has %v", got)
	}
}

// A person's stop aborts the turn in OpenCode.
func TestLiveStop(t *testing.T) {
	st := newStage(t)
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	natstest.Until(t, "the stop is taken", func() bool {
		return st.ask("stop", request.Stop{Ref: ref("ses_1"), By: "ada"})
	})
	natstest.Until(t, "the server is asked to abort", func() bool { return len(st.made("session/ses_1/abort")) == 1 })
	st.emit("session.error", object{"sessionID": "ses_1", "error": object{"name": "MessageAbortedError"}})
	s := st.until("ses_1", "the turn ended", ended)
	if s.LastTurn.Outcome != "stopped" || s.Pending.Stop != nil {
		t.Errorf("turn %s, stop %+v", s.LastTurn.Outcome, s.Pending.Stop)
	}
}

func TestAPIAddress(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:4096", "ftp://x", "http://", "http://u:secret@[::1", "://u:secret@h"} {
		_, err := newAPI(bad)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A server that boots never answers some requests. The bridge does not wait for their time-out, one after the other.
func TestLiveRequestsWithoutAReply(t *testing.T) {
	st := newStage(t)
	// 20 s each is more than the test waits
	st.set(func() { st.boots = 6 })
	st.bridge()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "a call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
}
