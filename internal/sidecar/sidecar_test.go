package sidecar_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/sidecar"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestTurn runs a turn with a question and a step. In a second attempt both are kept.
func TestTurn(t *testing.T) {
	w := newWorld(t)
	p, id, work := w.works(object{})
	w.send("m1", "deploy")
	m, turn := p.receives("turn")
	if turn["session"] != "shop" || turn["cause"] != "message" || turn["content"] != "deploy" {
		t.Errorf("the turn is %v", turn)
	}
	if c := p.wants("turn.content", at(turn, nil)); c["content"] != "deploy" {
		t.Errorf("content %v", c)
	}
	question := at(turn, object{"name": "which-env", "questions": []object{{"id": "env", "question": "Where?",
		"options": []object{{"label": "staging"}, {"label": "production"}}}}})
	_, asked := p.begins("turn.ask_once", question)
	w.answer("env", "staging")
	var answer object
	err := json.Unmarshal(take(t, "the answer", asked).Result, &answer)
	if err != nil || answer["choice"] != "staging" || answer["by"] != "ada" || answer["status"] != "answered" {
		t.Errorf("the answer is %v, %v", answer, err)
	}
	begin := at(turn, object{"name": "deploy", "input": object{"env": "staging"}})
	begun := p.wants("turn.step_begin", begin)
	if begun["run"] != true || begun["step"] == nil {
		t.Fatalf("the step is not run: %v", begun)
	}
	p.fails("running", "turn.step_begin", begin)
	p.wants("turn.step_end", object{"step": begun["step"], "result": []any{"deployed", 1}})
	p.fails("unknown", "turn.step_end", object{"step": begun["step"], "result": "late"})
	p.answers(m, &sidecar.Error{Message: "no route", Data: &sidecar.ErrorData{
		Failure: &events.Failure{Kind: "network", Text: "no route"}}})
	st := w.until("the retry", func(st *session.State) bool { return st.LastTurn != nil })
	if st.LastTurn.Error.Kind != "network" {
		t.Errorf("the turn failed as %+v", st.LastTurn.Error)
	}
	m, turn = p.receives("turn")
	question["turn"], begin["turn"] = turn["turn"], turn["turn"]
	if answer := p.wants("turn.ask_once", question); answer["choice"] != "staging" {
		t.Errorf("the kept answer is %v", answer)
	}
	if kept := p.wants("turn.step_begin", begin); kept["run"] != false || fmt.Sprint(kept["result"]) != "[deployed 1]" {
		t.Errorf("the kept result is %v", kept)
	}
	begin["input"] = object{"env": "production"}
	p.fails("name_taken", "turn.step_begin", begin)
	p.answers(m, nil)
	w.until("completed", func(st *session.State) bool { return st.LastTurn.Outcome == session.OutcomeCompleted })
	p.fails("ended", "turn.content", at(turn, nil))
	p.fails("unknown", "turn.content", object{"session": "shop", "turn": "other"})
	p.fails("running", "work", object{})
	p.notifies("cancel", object{"id": json.RawMessage(id)})
	if m := take(t, "the end of work", work); m.Error != nil {
		t.Errorf("work ended with %+v", m.Error)
	}
	p.wants("close", object{})
	if err := p.w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.end(); err != nil {
		t.Errorf("after close: %v", err)
	}
	if st := w.until("released", func(st *session.State) bool { return !st.Owned }); st.Left == "" {
		t.Errorf("left %q", st.Left)
	}
}

// TestStepFails: a failed step runs again, and the failure is not the end of the turn.
func TestStepFails(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	m, turn := p.receives("turn")
	for n := range 2 {
		begun := p.wants("turn.step_begin", at(turn, object{"name": "deploy"}))
		if begun["run"] != true {
			t.Fatalf("run %d: %v", n, begun)
		}
		p.wants("turn.step_end", object{"step": begun["step"], "error": object{"message": "no disk"}})
	}
	begun := p.wants("turn.step_begin", at(turn, object{"name": "deploy"}))
	p.wants("turn.step_end", object{"step": begun["step"]})
	kept := p.calls("turn.step_begin", at(turn, object{"name": "deploy"}))
	if string(kept.Result) != `{"run":false,"result":null}` {
		t.Errorf("the kept result is %s", kept.Result)
	}
	p.answers(m, nil)
	w.outcome(session.OutcomeCompleted)
}

// TestDeathWithinAStep: when the agent's stream ends, nothing more is stored for it. The turn stays open, and the next
// process learns that the outcome of the step is unknown.
func TestDeathWithinAStep(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	_, turn := p.receives("turn")
	p.wants("turn.step_begin", at(turn, object{"name": "deploy"}))
	_, asked := p.begins("turn.ask", at(turn, object{"prompt": object{"id": "p1", "title": "Well?",
		"questions": []object{{"id": "q", "question": "Well?"}}}}))
	before := w.until("the question", func(st *session.State) bool { return st.Prompts["p1"] != nil })
	p.dies()
	select {
	case m := <-asked:
		if m.Error == nil {
			t.Errorf("the ask returned %s", m.Result)
		}
	default:
	}
	after := natstest.Session(t, w.bus, shop)
	if after.Seq != before.Seq || after.Turn == nil || len(after.Tools) != 1 {
		t.Errorf("stored after the death: %d to %d, turn %+v, calls %v", before.Seq, after.Seq, after.Turn, after.Tools)
	}
	p, _, _ = w.works(object{})
	m, again := p.receives("turn")
	e := p.fails("outcome_unknown", "turn.step_begin", at(again, object{"name": "deploy"}))
	if e.Error.Data.Step != "deploy" || e.Error.Data.Reason == "" || e.Error.Code != 409 {
		t.Errorf("%+v", e.Error)
	}
	// as a program does that does not handle it
	p.answers(m, e.Error)
	if st := w.outcome(session.OutcomeFailed); st.LastTurn.Error.Kind != "outcome_unknown" {
		t.Errorf("the turn failed as %+v", st.LastTurn.Error)
	}
}

// TestOrphaned: the end of the agent's process is its death, also while a child of it holds its stream open.
func TestOrphaned(t *testing.T) {
	w := newWorld(t)
	died := make(chan struct{})
	p := w.begins(func(c *sidecar.Config) { c.Orphaned = died })
	p.wants("connect", object{"id": shop.Harness})
	p.wants("open", object{"session": shop.Session})
	close(died)
	if err := p.end(); !errors.Is(err, sidecar.ErrGone) {
		t.Errorf("%v, want ErrGone", err)
	}
	if st := natstest.Session(t, w.bus, shop); st.Left == session.LeftReleased {
		t.Error("the session of a dead agent was released")
	}
}

// TestDeathAfterClose: a stream that ends right after close does not make the end a death, also while a turn runs.
func TestDeathAfterClose(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	p.receives("turn")
	p.begins("close", object{})
	if err := p.w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.end(); err != nil {
		t.Errorf("%v", err)
	}
	if st := natstest.Session(t, w.bus, shop); st.Owned || st.Left != session.LeftReleased {
		t.Errorf("owned %t, left %q", st.Owned, st.Left)
	}
}

// TestStop: a stop of a person cancels the turn of the agent, which ends it with its reply.
func TestStop(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	m, turn := p.receives("turn")
	begun := p.wants("turn.step_begin", at(turn, object{"name": "deploy"}))
	_, asked := p.begins("turn.ask_once", at(turn, object{"name": "well", "questions": []object{{"id": "q",
		"question": "Well?"}}}))
	w.until("the question", func(st *session.State) bool { return st.BlockedBy() != "" })
	w.request("ledger", "stop", object{"by": "ada", "reason": "wrong shop", "force": true})
	_, cancelled := p.receives("turn.cancelled")
	data := cancelled["error"].(object)["data"].(object)
	if cancelled["turn"] != turn["turn"] || data["error"] != "stopped" || data["by"] != "ada" ||
		data["reason"] != "wrong shop" {
		t.Errorf("%v", cancelled)
	}
	if m := take(t, "the ask", asked); m.Error == nil {
		t.Errorf("the ask returned %s", m.Result)
	}
	// it had run to its end: kept
	p.wants("turn.step_end", object{"step": begun["step"], "result": "deployed"})
	if st := natstest.Session(t, w.bus, shop); st.Turn == nil {
		t.Error("the turn ended before the agent's reply")
	}
	p.answers(m, &sidecar.Error{Message: "stopped"})
	w.outcome(session.OutcomeStopped)
}

// TestShutdown: the operator ends the sidecar. The agent is notified, ends its turn, and the session is released.
func TestShutdown(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	m, turn := p.receives("turn")
	p.stop()
	seen := map[string]object{}
	// in any order
	for range 2 {
		m := take(t, "the end", p.asked)
		var params object
		if err := json.Unmarshal(m.Params, &params); err != nil {
			t.Fatal(err)
		}
		seen[m.Method] = params
	}
	cancelled := seen["turn.cancelled"]
	if seen["shutdown"] == nil || cancelled == nil || cancelled["turn"] != turn["turn"] {
		t.Fatalf("notified of %v", seen)
	}
	if data := cancelled["error"].(object)["data"].(object); data["error"] != "shutdown" {
		t.Errorf("%v", data)
	}
	p.answers(m, &sidecar.Error{Message: "not now"})
	if err := p.end(); err != nil {
		t.Errorf("%v", err)
	}
	st := natstest.Session(t, w.bus, shop)
	if st.Owned || st.LastTurn != nil && st.LastTurn.Outcome == session.OutcomeFailed {
		t.Errorf("owned %t, %+v", st.Owned, st.LastTurn)
	}
}

// TestShutdownOfAnAgentThatDies: the death of the agent ends the wait for its turns.
func TestShutdownOfAnAgentThatDies(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	p.receives("turn")
	p.stop()
	take(t, "the shutdown", p.asked)
	if err := p.w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.end(); err != nil && !errors.Is(err, sidecar.ErrGone) {
		t.Errorf("%v", err)
	}
	if st := natstest.Session(t, w.bus, shop); st.LastTurn != nil && st.LastTurn.Outcome == session.OutcomeFailed {
		t.Errorf("the death was stored as a failure: %+v", st.LastTurn)
	}
}

// TestNewerProcess: an agent that a newer process has replaced can store nothing in a session that it has claimed, and
// is notified when recovery takes another one.
func TestNewerProcess(t *testing.T) {
	w := newWorld(t)
	old := w.connected()
	old.wants("open", object{"session": "other"})
	old.wants("session.start_turn", object{"session": "other", "content": "paint"})
	w.connected()
	natstest.Until(t, "the old process to be refused", func() bool {
		return old.calls("session.start_turn", object{"session": "shop", "content": "deploy"}).name() == "fenced"
	})
	received := map[string]object{}
	for received["lost"] == nil || received["turn.cancelled"] == nil {
		m := take(t, "the news", old.asked)
		var params object
		if err := json.Unmarshal(m.Params, &params); err != nil {
			t.Fatal(err)
		}
		received[m.Method] = params
	}
	for method, params := range received {
		if data := params["error"].(object)["data"].(object); data["error"] != "fenced" {
			t.Errorf("%s: %v", method, params)
		}
	}
	old.fails("fenced", "open", object{"session": "shop"})
}

// TestReplacedAgent: an agent that waits for work is notified, and its work ends, when a newer process has claimed its
// only session.
func TestReplacedAgent(t *testing.T) {
	w := newWorld(t)
	old, _, work := w.works(object{})
	w.connected()
	_, params := old.receives("lost")
	e := params["error"].(object)
	want := fmt.Sprintf("another process of harness %q has started", shop.Harness)
	if text := e["message"].(string); e["data"].(object)["error"] != "fenced" || !strings.Contains(text, want) {
		t.Errorf("lost: %v, want fenced, %s", e, want)
	}
	if m := take(t, "the end of work", work); m.name() != "fenced" || !strings.Contains(m.Error.Message, want) {
		t.Errorf("work: %+v, want fenced, %s", m.Error, want)
	}
}

// TestMessages sends what is no request. Each is refused, and the connection stays.
func TestMessages(t *testing.T) {
	w := newWorld(t)
	p := w.begins()
	for _, c := range []struct {
		line string
		name string
	}{
		{`{`, "not_json"},
		{`nonsense`, "not_json"},
		{"\xff\xfe", "not_json"},
		{`{"jsonrpc":"2.0","id":1,"method":"ready"}{"jsonrpc":"2.0","id":2,"method":"ready"}`, "not_json"},
		{`[]`, "invalid"},
		{`[{"jsonrpc":"2.0","id":1,"method":"ready"}]`, "invalid"},
		{`7`, "invalid"},
		{`null`, "invalid"},
		{`{}`, "invalid"},
		{`{"id":1,"method":7,"jsonrpc":"2.0"}`, "invalid"},
		{`{"id":null,"method":"ready","jsonrpc":"2.0"}`, "invalid"},
		{`{"id":{},"method":"ready","jsonrpc":"2.0"}`, "invalid"},
		{`{"id":[1],"method":"ready","jsonrpc":"2.0"}`, "invalid"},
		{`{"id":true,"method":"ready","jsonrpc":"2.0"}`, "invalid"},
		{`{"jsonrpc":"2.0"}`, "invalid"},
	} {
		p.write([]byte(c.line))
		if m := take(t, c.line, p.stray); m.name() != c.name || m.Error.Code >= 0 {
			t.Errorf("%s: %+v, want %s", c.line, m.Error, c.name)
		}
	}
	for _, c := range []struct {
		method string
		params any
		name   string
	}{
		{"turn", object{}, "no_method"},
		{"", object{}, "no_method"},
		{"connect", []any{"deployer"}, "params"},
		{"connect", nil, "params"},
		{"connect", object{}, "params"},
		{"connect", object{"id": ""}, "params"},
		{"connect", object{"id": "deployer", "idd": 1}, "params"},
		{"connect", object{"id": 7}, "params"},
		{"connect", object{"id": "deployer", "on_lease_loss": "panic"}, "malformed"},
		{"connect", object{"id": "deployer", "ttl_ms": 1}, "malformed"},
		{"open", object{"session": "shop"}, "not_connected"},
		{"ready", object{}, "not_connected"},
		{"work", object{}, "not_connected"},
		{"sessions", object{}, "not_connected"},
		{"close", object{}, "not_connected"},
		{"send", object{"session": "shop", "content": "x"}, "not_connected"},
		{"send", object{"session": "shop"}, "params"},
		{"claim", object{"session": "shop"}, "not_connected"},
		{"session.state", object{"session": "shop"}, "not_connected"},
		{"turn.step_end", object{"step": "1"}, "unknown"},
	} {
		p.fails(c.name, c.method, c.params)
	}
	old := make(chan message, 1)
	p.mu.Lock()
	p.replies[`"a"`] = old
	p.mu.Unlock()
	// its id can be replied to
	p.write([]byte(`{"jsonrpc":"1.0","id":"a","method":"ready"}`))
	if m := take(t, "the reply", old); m.name() != "invalid" {
		t.Errorf("%+v", m.Error)
	}
	// an empty line is nothing
	p.write(nil)
	p.notifies("nonsense", object{})
	// it stores, so it needs an id
	p.notifies("close", object{})
	// wrong params
	p.notifies("turn.usage", object{"turn": 1})
	// no such request
	p.notifies("cancel", object{"id": "other"})
	p.write([]byte(`{"jsonrpc":"2.0","id":"s1","result":1}`))
	p.write([]byte(`{"jsonrpc":"2.0","id":7,"result":1}`))
	p.write([]byte(`{"jsonrpc":"2.0","result":1}`))
	p.wants("connect", object{"id": "deployer"})
	p.fails("connected", "connect", object{"id": "deployer"})
	p.fails("not_found", "session.state", object{"session": "shop"})
	p.fails("not_ready", "work", object{})
	p.fails("not_found", "claim", object{"session": "nowhere"})
}

// endless is a line that does not end before n bytes.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(len(b), e.n)
	for i := range n {
		b[i] = 'x'
	}
	e.n -= n
	return n, nil
}

// TestLongLine: a line beyond the limit is skipped, and the next one is read.
func TestLongLine(t *testing.T) {
	w := newWorld(t)
	p := w.begins()
	if _, err := io.Copy(p.w, &endless{sidecar.LineBytesMax + 1}); err != nil {
		t.Fatal(err)
	}
	p.write(nil)
	if m := take(t, "the refusal", p.stray); m.name() != "too_large" || m.Error.Code != 413 {
		t.Errorf("%+v", m.Error)
	}
	p.wants("connect", object{"id": "deployer"})
	line := append([]byte(`{"jsonrpc":"2.0","id":"long","method":"`), bytes.Repeat([]byte("x"), 1<<20)...)
	reply := make(chan message, 1)
	p.mu.Lock()
	p.replies[`"long"`] = reply
	p.mu.Unlock()
	p.write(append(line, `"}`...))
	if m := take(t, "the reply", reply); m.name() != "no_method" || len(m.Error.Message) > 1000 {
		t.Errorf("%.200q", m.Error.Message)
	}
}

// TestCutOffLine: a line that the end of the stream cuts off is not run.
func TestCutOffLine(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	before := natstest.Session(t, w.bus, shop).Seq
	_, err := io.WriteString(p.w,
		`{"jsonrpc":"2.0","id":9,"method":"session.close","params":{"session":"shop","reason":"deleted"}}`)
	if err != nil {
		t.Fatal(err)
	}
	p.dies()
	if st := natstest.Session(t, w.bus, shop); st.Closed != nil || st.Seq != before {
		t.Error("the last line was run")
	}
}

// TestSameID: the reply to a second request under an id in use would be taken for the reply to the first.
func TestSameID(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	id, first := p.begins("session.ask", object{"session": "shop", "prompt": object{"id": "p1", "title": "Well?",
		"questions": []object{{"id": "q", "question": "Well?"}}}})
	w.until("the question", func(st *session.State) bool { return st.Prompts["p1"] != nil })
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session.state","params":{"session":"shop"}}`, id)
	p.write([]byte(line))
	if m := take(t, "the refusal", p.stray); m.name() != "invalid" {
		t.Errorf("%+v", m.Error)
	}
	p.notifies("cancel", object{"id": json.RawMessage(id)})
	if m := take(t, "the first", first); m.name() != "cancelled" {
		t.Errorf("%+v %s", m.Error, m.Result)
	}
	reply := make(chan message, 1)
	p.mu.Lock()
	p.replies[id], p.methods[id] = reply, "session.state"
	p.mu.Unlock()
	// it is free again
	p.write([]byte(line))
	if m := take(t, "the state", reply); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
}

// stuck is an agent that does not read.
type stuck struct{ closed chan struct{} }

func (s *stuck) Write([]byte) (int, error) { <-s.closed; return 0, io.ErrClosedPipe }
func (s *stuck) Close() error              { close(s.closed); return nil }

// TestNoReader: an agent that sends and does not read is ended; its end is noticed while a reply waits for it.
func TestNoReader(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines int
	}{{"it dies", 100}, {"it sends without end", 1 << 20}} {
		t.Run(c.name, func(t *testing.T) {
			in, out := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- sidecar.Serve(t.Context(), sidecar.Config{}, in, &stuck{make(chan struct{})})
				// the writer is released
				_ = in.Close()
			}()
			for range c.lines {
				if _, err := io.WriteString(out, "{\n"); err != nil {
					break
				}
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			err := take(t, "the end", ended)
			if (c.lines > 1000) != errors.Is(err, sidecar.ErrGone) {
				t.Errorf("%v", err)
			}
		})
	}
}

// broken is an agent that has closed the stream that it reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestBrokenPipe: an agent that cannot be written to is dead, although its own stream is open: before connect, and
// after it.
func TestBrokenPipe(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{"{", `{"jsonrpc":"2.0","id":1,"method":"connect","params":{"id":"deployer"}}`} {
		in, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			cfg := sidecar.Config{Harness: harness.Config{URL: w.server.URL()}}
			ended <- sidecar.Serve(t.Context(), cfg, in, broken{})
		}()
		if _, err := io.WriteString(out, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := take(t, "the end", ended); !errors.Is(err, sidecar.ErrGone) || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyRequests: requests beyond the limit are refused under their id.
func TestManyRequests(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	ask := func(n int) (string, chan message) {
		return p.begins("session.ask", object{"session": "shop", "prompt": object{"id": fmt.Sprint("p", n%100),
			"title": "Well?", "questions": []object{{"id": "q", "question": "Well?"}}}})
	}
	var ids []string
	var waiting []chan message
	for n := range sidecar.RequestsMax {
		id, reply := ask(n)
		ids, waiting = append(ids, id), append(waiting, reply)
	}
	natstest.Until(t, "a refusal", func() bool {
		_, reply := p.begins("session.state", object{"session": "shop"})
		return take(t, "a reply", reply).name() == "busy"
	})
	for _, id := range ids {
		p.notifies("cancel", object{"id": json.RawMessage(id)})
	}
	for _, reply := range waiting {
		take(t, "the end of an ask", reply)
	}
	p.wants("session.state", object{"session": "shop"})
}

// TestCompactionFails: an empty summary fails the compaction, and an agent that dies does not.
func TestCompactionFails(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{"compact": true})
	w.request("compaction", "compact", object{"by": "ada"})
	m, _ := p.receives("compact")
	p.answers(m, object{"used_after": 10, "summary": " "})
	if st := w.compacted(false); st.LastCompaction.Error.Kind != "bad_summary" {
		t.Errorf("%+v", st.LastCompaction.Error)
	}
	w.request("compaction", "compact", object{"by": "ada"})
	_, compaction := p.receives("compact")
	// work
	p.notifies("cancel", object{"id": json.RawMessage("4")})
	_, cancelled := p.receives("compaction.cancelled")
	if cancelled["compaction"] != compaction["compaction"] {
		t.Errorf("%v", cancelled)
	}
	before := natstest.Session(t, w.bus, shop)
	p.dies()
	if st := natstest.Session(t, w.bus, shop); st.Seq != before.Seq {
		t.Errorf("stored after the death: %+v", st.LastCompaction)
	}
}

// TestOptionsFail: a turn whose options are not known fails with the reason, and does not block the queue.
func TestOptionsFail(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{"options": true})
	w.send("m1", "deploy")
	m, _ := p.receives("options")
	p.answers(m, &sidecar.Error{Message: "no model is chosen"})
	st := w.outcome(session.OutcomeFailed)
	if e := st.LastTurn.Error; e.Kind != "runtime_not_ready" || !strings.Contains(e.Text, "no model is chosen") {
		t.Errorf("%+v", e)
	}
	w.send("m2", "deploy")
	m, _ = p.receives("options")
	p.answers(m, nil)
	m, _ = p.receives("turn")
	p.answers(m, nil)
	w.until("completed", func(st *session.State) bool { return st.LastTurn.Outcome == session.OutcomeCompleted })
}

// TestFailures: what the agent's error says about a failed turn.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.request("ledger", "configure", object{"policy": object{"auto_retry": false}, "by": "ada"})
	for n, c := range []struct {
		e    sidecar.Error
		kind string
	}{
		{sidecar.Error{Message: "division by zero"}, "handler_error"},
		{sidecar.Error{}, "handler_error"},
		{sidecar.Error{Message: strings.Repeat("é", 1<<20)}, "handler_error"},
		{sidecar.Error{Data: &sidecar.ErrorData{Failure: &events.Failure{Kind: strings.Repeat("k", 40),
			Text: strings.Repeat("é", 1<<20)}}}, strings.Repeat("k", 40)},
		{sidecar.Error{Message: "x", Data: &sidecar.ErrorData{HadOutput: true}}, "handler_error"},
		{sidecar.Error{Message: "x", Data: &sidecar.ErrorData{Failure: &events.Failure{}}}, "handler_error"},
		{sidecar.Error{Message: "x", Data: &sidecar.ErrorData{Failure: &events.Failure{Kind: "quota"}}}, "quota"},
		{sidecar.Error{Message: "x", Data: &sidecar.ErrorData{Provider: &sidecar.Provider{Status: 401}}},
			"authentication"},
		{sidecar.Error{Message: "x", Data: &sidecar.ErrorData{Error: "outcome_unknown"}}, "outcome_unknown"},
		{sidecar.Error{Message: "x", Data: &sidecar.ErrorData{Error: "shutdown"}}, "handler_error"},
	} {
		w.send(fmt.Sprint("m", n), "deploy")
		m, turn := p.receives("turn")
		p.answers(m, &c.e)
		st := w.until("the failure", func(st *session.State) bool {
			return st.LastTurn != nil && st.LastTurn.ID == turn["turn"]
		})
		e := st.LastTurn.Error
		if e == nil || e.Kind != c.kind {
			t.Errorf("%+v: %+v, want %s", c.e, e, c.kind)
		} else if c.e.Message == "" && c.e.Data == nil && e.Text != "the agent named no reason" {
			t.Errorf("%q", e.Text)
		}
	}
}

// TestEveryErrorHasAName: an error that the client can return is in the list.
func TestEveryErrorHasAName(t *testing.T) {
	source, err := os.ReadFile("../../harness/error.go")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("error.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t(Err\w+) += errors\.New`).FindAllSubmatch(source, -1)
	if len(names) < 20 {
		t.Errorf("%d errors found", len(names))
	}
	for _, n := range names {
		if !bytes.Contains(table, append([]byte("err: harness."), append(n[1], '}')...)) {
			t.Errorf("%s has no line in the list", n[1])
		}
	}
}
