package sidecar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/sidecar"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// log makes a sidecar write its log to l.
func (l *logged) log(c *sidecar.Config) { c.Harness.Log = slog.New(slog.NewTextHandler(l, nil)) }

// TestUnknownNames: each method refuses a session that is not open, and a turn that the agent does not run.
func TestUnknownNames(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	rest := map[string]object{
		"session.state": {}, "session.open_turn": {}, "session.start_turn": {}, "session.regain": {},
		"session.progress": {}, "session.ask": {"prompt": object{"id": "p"}}, "session.answer": {"prompt": "p"},
		"session.withdraw": {"prompt": "p"}, "session.refuse": {"prompt": "p"}, "session.result": {"call": "c"},
		"session.append": {"facts": []object{{"kind": "tool.started"}}}, "session.release": {"reason": "done"},
		"session.close": {"reason": "finished"}, "call.complete": {"call": "c"},
		"call.fail":    {"call": "c", "failure": object{"kind": "k"}},
		"turn.content": {"turn": "t"}, "turn.step_begin": {"turn": "t", "name": "s"},
		"turn.ask_once": {"turn": "t", "name": "q"}, "turn.ask": {"turn": "t", "prompt": object{"id": "p"}},
		"turn.tool": {"turn": "t"}, "turn.usage": {"turn": "t"}, "turn.complete": {"turn": "t"},
		"turn.fail": {"turn": "t", "message": "no"}, "turn.stop": {"turn": "t", "actor": "person"},
	}
	for _, v := range sidecar.Verbs() {
		_, named := v.Params.FieldByName("Session")
		if v.Sidecar || !named || v.Name == "open" || v.Name == "claim" || v.Name == "send" {
			continue
		}
		params := rest[v.Name]
		if params == nil {
			t.Errorf("%s names a session, and the test does not call it", v.Name)
			continue
		}
		params["session"] = "elsewhere"
		p.fails("not_found", v.Name, params)
		if params["turn"] != nil {
			params["session"] = shop.Session
			p.fails("unknown", v.Name, params)
		}
	}
}

// TestErrorKinds: the list of errors has each name once.
func TestErrorKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range sidecar.ErrorKinds() {
		if seen[k.Name] || k.Code == 0 || k.Text == "" {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
	}
	for _, name := range []string{"fenced", "cancelled", "unreachable", "busy", "refused", "internal"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestErrorData: the data of an error says what ended the turn, and under which id a message is sent again.
func TestErrorData(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	turn := p.wants("session.start_turn", object{"session": "shop", "content": "deploy"})
	p.wants("turn.complete", at(turn, nil))
	e := p.fails("ended", "turn.complete", at(turn, nil)).Error.Data.Ending
	if e == nil || e.Entity != "turn" || e.ID != turn["turn"] || e.Outcome != session.OutcomeCompleted ||
		e.At.IsZero() {
		t.Errorf("the ending is %+v", e)
	}
	if m := p.fails("refused", "send", object{"session": "nowhere", "content": "x"}); m.Error.Data.Message == "" {
		t.Errorf("the id of the message is missing: %+v", m.Error.Data)
	}
}

// TestFailureTexts: the log has the text that says most, and that something of the turn was shown.
func TestFailureTexts(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	type data = sidecar.ErrorData
	for _, c := range []struct {
		data   *data
		kind   string
		text   string
		output bool
	}{
		{nil, "handler_error", "of the agent", false},
		{&data{Failure: &events.Failure{Kind: "k"}}, "k", "of the agent", false},
		{&data{Failure: &events.Failure{Kind: "k", Text: "of the kind"}}, "k", "of the kind", false},
		{&data{Provider: &sidecar.Provider{Status: 401}}, "authentication", "of the agent", false},
		{&data{Provider: &sidecar.Provider{Status: 401, Text: "of the kind"}}, "authentication", "of the kind", false},
		{&data{HadOutput: true}, "handler_error", "of the agent", true},
	} {
		turn := p.wants("session.start_turn", object{"session": "shop", "content": "deploy"})
		p.calls("turn.fail", at(turn, object{"message": "of the agent", "data": c.data}))
		st := natstest.Session(t, w.bus, shop)
		if l := st.LastTurn; l == nil || l.ID != turn["turn"] || l.Error.Kind != c.kind ||
			!strings.Contains(l.Error.Text, c.text) || l.HadOutput != c.output {
			t.Errorf("%+v: %+v", c, l)
		}
	}
}

// TestListenNowhere: a path at which no socket can be is an error that names it, and nothing is left.
func TestListenNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "a.sock")
	if s, err := sidecar.Listen(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v, %v", s, err)
	}
}

// TestSocketOfAnAgentThatDies: the log of the sidecar says that a connection ended without close.
func TestSocketOfAnAgentThatDies(t *testing.T) {
	w := newWorld(t)
	path, log := socketPath(t), &logged{}
	s, err := sidecar.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	cfg := sidecar.Config{Harness: harness.Config{URL: w.server.URL()}, ConnectTimeout: patience}
	log.log(&cfg)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, cfg) }()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	talks(t, c, `{"jsonrpc":"2.0","id":1,"method":"connect","params":{"id":"deployer"}}`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the line of the log", func() bool { return log.has("a connection has ended") })
	stop()
	if err := take(t, "the end", ended); err != nil {
		t.Error(err)
	}
}

// TestConnectAgain: a connect that finds no broker fails, and can be tried again. So can one that was cancelled.
func TestConnectAgain(t *testing.T) {
	w := newWorld(t)
	p := w.begins(func(c *sidecar.Config) {
		c.Harness.URL, c.ConnectTimeout = "nats://127.0.0.1:1", 100*time.Millisecond
	})
	for range 2 {
		p.fails("unreachable", "connect", object{"id": "deployer"})
		p.fails("not_connected", "ready", object{})
	}
}

// TestDefaultConnectTimeout: a connection without a limit of its own has one.
func TestDefaultConnectTimeout(t *testing.T) {
	w := newWorld(t)
	p := w.begins(func(c *sidecar.Config) { c.ConnectTimeout = 0 })
	p.wants("connect", object{"id": "deployer"})
	if all := p.calls("sessions", object{}); string(all.Result) != `{"sessions":[]}` {
		t.Errorf("%s %+v", all.Result, all.Error)
	}
}

// silent returns the address of a broker that accepts connections and says nothing.
func silent(t *testing.T) (url string, accepted <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to <- c
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return "nats://" + l.Addr().String(), to
}

// TestEndWhileConnecting: the death of the agent, and its close, end a connect that waits for a broker.
func TestEndWhileConnecting(t *testing.T) {
	w := newWorld(t)
	url, accepted := silent(t)
	slow := func(c *sidecar.Config) { c.Harness.URL, c.ConnectTimeout = url, time.Hour }
	p := w.begins(slow)
	p.begins("connect", object{"id": "deployer"})
	defer take(t, "the connection", accepted).Close()
	p.fails("connected", "connect", object{"id": "deployer"})
	p.dies()

	p = w.begins(slow)
	_, reply := p.begins("connect", object{"id": "deployer"})
	defer take(t, "the connection", accepted).Close()
	p.wants("close", object{})
	if m := take(t, "the connect", reply); m.name() != "gone" {
		t.Errorf("%+v", m.Error)
	}
	p.fails("not_connected", "close", object{})

	p = w.begins(slow)
	p.begins("connect", object{"id": "deployer"})
	defer take(t, "the connection", accepted).Close()
	p.stop()
	if err := p.end(); err != nil {
		t.Errorf("%v", err)
	}
}

// TestFacts: all facts of a request are stored, or none, and the error names the one that is wrong.
func TestFacts(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	before := natstest.Session(t, w.bus, shop).Seq
	good := object{"kind": "tool.started", "data": object{"call": "c1"}}
	for text, bad := range map[string]object{
		`no kind of fact "nonsense"`: {"kind": "nonsense"},
		`unknown field "cal"`:        {"kind": "tool.started", "data": object{"call": "c2", "cal": "c3"}},
	} {
		m := p.fails("malformed", "session.append", object{"session": "shop", "facts": []object{good, bad}})
		if !strings.Contains(m.Error.Message, text) {
			t.Errorf("%s, want %s", m.Error.Message, text)
		}
	}
	m := p.fails("malformed", "session.append", object{"session": "shop", "facts": []object{{"kind": "tool.started"}}})
	// data that is missing is an empty object
	if !strings.Contains(m.Error.Message, "call") {
		t.Errorf("%s", m.Error.Message)
	}
	if after := natstest.Session(t, w.bus, shop).Seq; after != before {
		t.Errorf("stored: %d to %d", before, after)
	}
}

// TestNoNewsForTheDead: nothing is written to an agent whose stream has ended.
func TestNoNewsForTheDead(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	p.receives("turn")
	p.dies()
	select {
	case m := <-p.asked:
		t.Errorf("the sidecar called %s %s", m.Method, m.Params)
	default:
	}
}

// TestShutdownWithoutBroker: the log says that a release is not stored, and nothing of a shutdown before connect.
func TestShutdownWithoutBroker(t *testing.T) {
	const line = "its sessions are not all released"
	w := newWorld(t)
	log := &logged{}
	p := w.begins(log.log)
	p.stop()
	if err := p.end(); err != nil || log.has(line) {
		t.Errorf("%v, logged %t", err, log.has(line))
	}
	p = w.connected(log.log, func(c *sidecar.Config) { c.LeaveTimeout = 100 * time.Millisecond })
	w.server.Shutdown()
	p.stop()
	if err := p.end(); err != nil || !log.has(line) {
		t.Errorf("%v, logged %t", err, log.has(line))
	}
}

// TestOrderOfHints: reports of usage count in the order of the lines, although nothing waits for their replies.
func TestOrderOfHints(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	turn := p.wants("session.start_turn", object{"session": "shop", "content": "deploy"})
	const reports = 300
	var replies []chan message
	for n := range reports {
		_, reply := p.begins("turn.usage", at(turn, object{"tokens": object{"input": n + 1}}))
		replies = append(replies, reply)
	}
	for _, reply := range replies {
		if m := take(t, "the reply", reply); m.Error != nil {
			t.Fatalf("%+v", m.Error)
		}
	}
	p.wants("turn.complete", at(turn, nil))
	st := w.outcome(session.OutcomeCompleted)
	if st.Usage == nil || st.Usage.Tokens.Input != reports {
		t.Errorf("the usage is %+v, want %d", st.Usage, reports)
	}
}

// TestCloseAtTheEnd: a close that stands right before the end of the stream is an orderly end, each time.
func TestCloseAtTheEnd(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		agentReads, fromSidecar := io.Pipe()
		toSidecar, agentWrites := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- sidecar.Serve(t.Context(), sidecar.Config{Harness: harness.Config{URL: w.server.URL()},
				ConnectTimeout: patience}, &both{r: toSidecar}, fromSidecar)
		}()
		replied := make(chan bool, 10)
		go func() {
			for d := json.NewDecoder(agentReads); ; replied <- true {
				var m message
				if err := d.Decode(&m); err != nil {
					return
				}
			}
		}()
		for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"connect","params":{"id":"deployer"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"open","params":{"session":"shop"}}`} {
			if _, err := io.WriteString(agentWrites, line+"\n"); err != nil {
				t.Fatal(err)
			}
			take(t, "the reply", replied)
		}
		if _, err := io.WriteString(agentWrites, `{"jsonrpc":"2.0","id":3,"method":"close"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := take(t, "the end", ended); err != nil {
			t.Fatalf("the end was taken for a death: %v", err)
		}
		if st := natstest.Session(t, w.bus, shop); st.Left != session.LeftReleased {
			t.Fatalf("left %q", st.Left)
		}
	}
}

// both is a stream that ends with the line that has a close.
type both struct {
	r    io.Reader
	over bool
}

func (b *both) Read(buf []byte) (int, error) {
	if b.over {
		return 0, io.EOF
	}
	n, err := b.r.Read(buf)
	if b.over = bytes.Contains(buf[:n], []byte(`"close"`)); b.over {
		return n, io.EOF
	}
	return n, err
}

// TestIgnoredNotification: the log says that a notification had no effect.
func TestIgnoredNotification(t *testing.T) {
	w := newWorld(t)
	log := &logged{}
	p := w.connected(log.log)
	p.notifies("turn.usage", object{"turn": 1})
	natstest.Until(t, "the line of the log", func() bool { return log.has("a notification of the agent had no") })
}

// breaks is an agent that closes the stream that it reads when it should read a text.
type breaks struct {
	io.Writer
	at     string
	mu     sync.Mutex
	broken bool
}

func (b *breaks) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken = b.broken || bytes.Contains(line, []byte(b.at)); b.broken {
		return 0, io.ErrClosedPipe
	}
	return b.Writer.Write(line)
}

// worksUntil starts an agent that works, and whose stream breaks at a text.
func (w *world) worksUntil(at string) *peer {
	w.Helper()
	w.out = func(out io.Writer) io.Writer { return &breaks{Writer: out, at: at} }
	p, _, _ := w.works(object{})
	w.out = nil
	return p
}

// TestBrokenPipeAfterClose: an agent that has called close, and reads no more, is left in order.
func TestBrokenPipeAfterClose(t *testing.T) {
	w := newWorld(t)
	p := w.worksUntil("turn.cancelled")
	w.send("m1", "deploy")
	m, _ := p.receives("turn")
	p.begins("close", object{})
	p.answers(m, nil)
	w.until("released", func(st *session.State) bool { return st.Left == session.LeftReleased })
	if err := p.w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.end(); err != nil {
		t.Errorf("%v", err)
	}
}

// TestBrokenPipeWithinATurn: the turn of an agent that reads no more is not ended in its name: the next process gets
// it.
func TestBrokenPipeWithinATurn(t *testing.T) {
	w := newWorld(t)
	p := w.worksUntil("sesame")
	w.send("m1", "deploy")
	_, turn := p.receives("turn")
	p.begins("sesame", object{})
	if err := p.end(); !errors.Is(err, sidecar.ErrGone) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
	p, _, _ = w.works(object{})
	m, again := p.receives("turn")
	if again["turn"] != turn["turn"] {
		t.Errorf("the turn is %v, was %v", again, turn)
	}
	p.answers(m, nil)
	w.outcome(session.OutcomeCompleted)
}

// TestIdempotentStep: a step that is declared idempotent runs again after it was cut off.
func TestIdempotentStep(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	_, turn := p.receives("turn")
	step := object{"name": "deploy", "idempotent": true}
	p.wants("turn.step_begin", at(turn, step))
	p.dies()
	p, _, _ = w.works(object{})
	m, turn := p.receives("turn")
	begun := p.wants("turn.step_begin", at(turn, step))
	if begun["run"] != true {
		t.Fatalf("%v", begun)
	}
	p.wants("turn.step_end", object{"step": begun["step"]})
	p.answers(m, nil)
	w.outcome(session.OutcomeCompleted)
}

// TestOpenedAgain: a session that is opened a second time keeps its turn.
func TestOpenedAgain(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{})
	w.send("m1", "deploy")
	m, turn := p.receives("turn")
	p.wants("open", object{"session": "shop"})
	p.wants("turn.content", at(turn, nil))
	p.answers(m, nil)
	w.outcome(session.OutcomeCompleted)
}

// TestSessionsThatTheAgentDidNotOpen: work hands out turns and compactions of every session of the harness. The agent
// can name the session for as long as it works on one.
func TestSessionsThatTheAgentDidNotOpen(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	p.wants("close", object{})
	p = w.begins()
	p.wants("connect", object{"id": shop.Harness, "ttl_ms": 6000})
	p.wants("ready", object{})
	p.begins("work", object{"compact": true})
	w.send("m1", "deploy")
	m, turn := p.receives("turn")
	p.wants("turn.content", at(turn, nil))
	p.wants("session.state", object{"session": "shop"})
	p.answers(m, nil)
	w.outcome(session.OutcomeCompleted)
	natstest.Until(t, "the session to be forgotten", func() bool {
		return p.calls("session.state", object{"session": "shop"}).name() == "not_found"
	})
	for _, c := range []struct {
		reply any
		text  string // of the failure; empty: none
	}{{&sidecar.Error{Message: "no model"}, "no model"}, {7, "cannot unmarshal"}, {object{"used_after": 10}, ""}} {
		w.request("compaction", "compact", object{"by": "ada"})
		m, _ = p.receives("compact")
		p.wants("session.state", object{"session": "shop"})
		p.answers(m, c.reply)
		st := w.compacted(c.text == "")
		if e := st.LastCompaction.Error; c.text != "" && (e == nil || !strings.Contains(e.Text, c.text)) {
			t.Errorf("%+v: %+v", c, e)
		}
		natstest.Until(t, "the session to be forgotten", func() bool {
			return p.calls("session.state", object{"session": "shop"}).name() == "not_found"
		})
	}
}

// TestWorkAfterClose: no work begins after close.
func TestWorkAfterClose(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	p.wants("close", object{})
	p.fails("closed", "work", object{})
	p.wants("close", object{})
}

// TestNoOptions: options of null are no options.
func TestNoOptions(t *testing.T) {
	w := newWorld(t)
	p, _, _ := w.works(object{"options": true})
	w.send("m1", "deploy")
	m, _ := p.receives("options")
	p.answers(m, nil)
	m, turn := p.receives("turn")
	if options, ok := turn["options"]; ok {
		t.Errorf("the options are %v", options)
	}
	p.answers(m, nil)
	w.outcome(session.OutcomeCompleted)
}

// TestCancelledOnce: an agent that asks again for its open turn is notified once that it ends.
func TestCancelledOnce(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	started := p.wants("session.start_turn", object{"session": "shop", "content": "deploy"})
	for range 3 {
		open := p.wants("session.open_turn", object{"session": "shop"})["open"].(object)
		if open["turn"] != started["turn"] {
			t.Fatalf("%v", open)
		}
	}
	w.request("ledger", "stop", object{"by": "ada", "reason": "wrong shop", "force": true})
	p.receives("turn.cancelled")
	// another notification would stand before one of these replies
	for range 20 {
		p.wants("session.state", object{"session": "shop"})
	}
	select {
	case m := <-p.asked:
		t.Errorf("the sidecar called %s %s", m.Method, m.Params)
	default:
	}
	p.wants("turn.stop", at(started, object{"actor": "person"}))
}

// TestEndThatIsFenced: an agent that ends a turn which a newer process has taken is refused, and notified that the turn
// was cancelled.
func TestEndThatIsFenced(t *testing.T) {
	w := newWorld(t)
	old := w.connected()
	turn := old.wants("session.start_turn", object{"session": "shop", "content": "deploy"})
	w.connected()
	old.fails("fenced", "turn.complete", at(turn, nil))
	for {
		m := take(t, "the cancelled turn", old.asked)
		if m.Method == "turn.cancelled" {
			break
		}
	}
}

// TestEndThatIsRefused: an end that cannot be stored ends nothing. The turn runs on, and a stop is still notified.
func TestEndThatIsRefused(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	turn := p.wants("session.start_turn", object{"session": "shop", "content": "deploy"})
	p.fails("malformed", "turn.complete", at(turn, object{"finish": strings.Repeat("x", 1<<20)}))
	p.fails("malformed", "turn.stop", at(turn, object{"actor": "ada"}))
	// a notification would stand before one of these replies
	for range 20 {
		p.wants("session.state", object{"session": "shop"})
	}
	select {
	case m := <-p.asked:
		t.Fatalf("the sidecar called %s %s", m.Method, m.Params)
	default:
	}
	w.request("ledger", "stop", object{"by": "ada", "reason": "wrong shop", "force": true})
	if _, params := p.receives("turn.cancelled"); params["turn"] != turn["turn"] {
		t.Errorf("%v", params)
	}
	p.wants("turn.stop", at(turn, object{"actor": "person"}))
}

// TestCalls: a call without an input has none in the log, and one that cannot be stored is refused.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	p := w.connected()
	turn := p.wants("session.start_turn", object{"session": "shop", "content": "deploy"})
	p.fails("malformed", "turn.tool", at(turn, object{"id": "c1", "name": "sh", "input": strings.Repeat("x", 1<<20)}))
	p.wants("turn.tool", at(turn, object{"id": "c2", "name": "sh"}))
	p.wants("turn.tool", at(turn, object{"id": "c3", "name": "sh", "input": object{"a": 1}}))
	commits, err := w.bus.Log.Read(w.ctx, shop, 1)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{}
	for i := range commits {
		for _, e := range commits[i].Events {
			if f, ok := e.Fact.(events.ToolStarted); ok {
				inputs[f.Call] = string(f.Input)
			}
		}
	}
	if want := map[string]string{"c2": "", "c3": `{"a":1}`}; !maps.Equal(inputs, want) {
		t.Errorf("the inputs are %q, want %q", inputs, want)
	}
}

// TestParamsAreAnObject: params of another form are refused with a sentence that says so.
func TestParamsAreAnObject(t *testing.T) {
	w := newWorld(t)
	p := w.begins()
	for _, params := range []any{nil, 7, "x", []any{}, true} {
		if m := p.fails("params", "ready", params); !strings.Contains(m.Error.Message, "want an object") {
			t.Errorf("%v: %s", params, m.Error.Message)
		}
	}
}
