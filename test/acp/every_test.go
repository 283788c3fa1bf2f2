package acp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/session"
)

// spoken is what the test looks at in a message of a recording.
type spoken struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ToolCall json.RawMessage `json:"toolCall"`
		Options  []struct {
			Name, Kind string
		} `json:"options"`
		Update struct {
			Kind   string `json:"sessionUpdate"`
			Call   string `json:"toolCallId"`
			Status string `json:"status"`
		} `json:"update"`
	} `json:"params"`
	Result struct {
		Session string `json:"sessionId"`
	} `json:"result"`
}

// screen is what an editor has seen.
type screen struct {
	t     *testing.T
	open  map[string]bool // its requests without a reply
	ends  map[string]int  // replies, by request
	calls map[string]bool // without an end
	asked map[string]int  // permissions, by what they are about
}

// record takes in a line of the editor.
func (s *screen) record(m *spoken) {
	if m.Method != "" && m.ID != nil {
		s.open[string(m.ID)] = true
	}
}

// shows takes in a line that the editor gets.
func (s *screen) shows(m *spoken) {
	u := &m.Params.Update
	switch {
	case m.Method == "session/request_permission":
		s.asked[string(m.Params.ToolCall)]++
	case m.Method == "" && m.ID != nil:
		delete(s.open, string(m.ID))
		s.ends[string(m.ID)]++
	case u.Call != "" && (u.Status == "completed" || u.Status == "failed"):
		delete(s.calls, u.Call)
	case u.Kind == "tool_call":
		s.calls[u.Call] = true
	}
}

// until takes in lines until each request has a reply, or the proxy has ended.
func (s *screen) until(x *proxy) {
	s.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for len(s.open) > 0 {
		select {
		case line, ok := <-x.editor.lines:
			if !ok {
				return
			}
			s.line(line)
		case <-late.C:
			s.t.Fatalf("no reply to %v: %s", s.open, x.output())
		}
	}
}

func (s *screen) line(line string) {
	var m spoken
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	s.shows(&m)
}

// goesOnByItself has each further process of the agent reply to all requests. It asks for nothing.
func (x *proxy) goesOnByItself(id string) {
	// the listener is closed at the end of the test
	_ = x.starts.SetDeadline(time.Time{})
	go func() {
		for {
			conn, err := x.starts.Accept()
			if err != nil {
				return
			}
			go answersAll(conn, id)
		}
	}()
}

func answersAll(conn net.Conn, id string) {
	in := bufio.NewScanner(conn)
	in.Buffer(nil, longestMax)
	for in.Scan() {
		var m spoken
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`
		case "session/new":
			result = fmt.Sprintf(`{"sessionId":%q}`, id)
		case "session/prompt":
			result = `{"stopReason":"end_turn"}`
		}
		if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result); err != nil {
			return
		}
	}
}

// TestKilledAtEveryLine kills a real process of the agent behind every line of each recording that has a permission. A
// person answers at the command line what waits then. Each request of the editor has one reply, each permission is
// shown once, and no call stays open on the screen. In the log nothing is open, and each prompt was requested once.
func TestKilledAtEveryLine(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	paths, err := filepath.Glob("../../bridges/acp/testdata/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c := newCell(t)
	kills := 0
	for _, path := range paths {
		entries := segments(t, path)[0]
		if !slices.ContainsFunc(entries, func(e entry) bool {
			return strings.Contains(string(e.Msg), `"session/request_permission"`)
		}) {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		for at := range entries {
			kills++
			t.Run(fmt.Sprintf("%s-%d", name, at+1), func(t *testing.T) {
				// it waits for other processes
				t.Parallel()
				c.killedBehind(t, fmt.Sprintf("every-%s-%d", name, at+1), entries[:at+1])
			})
		}
	}
	if kills < 150 {
		t.Errorf("%d kills", kills)
	}
}

func (c *cell) killedBehind(t *testing.T, harness string, entries []entry) {
	t.Helper()
	c = &cell{t: t, up: c.up, bus: c.bus}
	s := &screen{t: t, open: map[string]bool{}, ends: map[string]int{}, calls: map[string]bool{},
		asked: map[string]int{}}
	id, grant, greeted, waiting := "", "", false, map[string]bool{}
	for _, e := range entries {
		var m spoken
		if err := json.Unmarshal(e.Msg, &m); err != nil {
			t.Fatal(err)
		}
		if e.Dir == "editor" {
			s.record(&m)
			delete(waiting, string(m.ID))
			continue
		}
		greeted = greeted || m.Method == ""
		if m.Result.Session != "" {
			id = m.Result.Session
		}
		if m.Method == "session/request_permission" {
			waiting[string(m.ID)] = true
			for _, o := range m.Params.Options {
				if o.Kind == "allow_once" {
					grant = o.Name
				}
			}
		}
		s.shows(&m)
	}
	x := start(t, c.up.NATS, harness)
	x.replay(entries)
	x.goesOnByItself("another")
	x.killAgent()
	if len(waiting) > 0 {
		prompt := c.prompt(harness, id)
		if code, output := c.run("answer", harness+"/"+id, prompt, grant); code != 0 {
			t.Fatalf("answer: %d: %s", code, output)
		}
	}
	s.until(x)
	err := x.editor.to.Close()
	// A proxy whose agent ended before it said anything ends by itself, and its input with it.
	if err != nil && (greeted || !errors.Is(err, os.ErrClosed)) {
		t.Fatal(err)
	}
	for _, line := range x.editor.rest() {
		s.line(line)
	}
	if code := x.exit(); code != 0 && greeted {
		t.Errorf("exit %d", code)
	}
	for request, n := range s.ends {
		if n != 1 {
			t.Errorf("%d replies to %s", n, request)
		}
	}
	for about, n := range s.asked {
		if n != 1 {
			t.Errorf("asked %d times for %s", n, about)
		}
	}
	if len(s.open)+len(s.calls) > 0 {
		t.Errorf("on the screen is open: requests %v, calls %v", s.open, s.calls)
	}
	if id != "" {
		c.settled(harness, id, len(s.asked))
	}
}

// settled checks that nothing is open in the log of a session, and that it has so many prompts and no turn twice.
func (c *cell) settled(harness, id string, prompts int) {
	c.t.Helper()
	c.until(harness, id, "it is free, and nothing is open", func(s *session.State) bool {
		return !s.Owned && s.Turn == nil && len(s.Tools) == 0 && len(s.PendingPrompts()) == 0
	})
	n, turns := 0, map[string]int{}
	for _, f := range c.facts(harness, id) {
		switch kind, data, _ := strings.Cut(f, " "); kind {
		case "prompt.requested":
			n++
		case "turn.started":
			turns[data]++
		}
	}
	for turn, times := range turns {
		if times != 1 {
			c.t.Errorf("a turn began %d times: %s", times, turn)
		}
	}
	if n != prompts {
		c.t.Errorf("the log has %d prompts, want %d", n, prompts)
	}
}
