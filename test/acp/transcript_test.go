package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// entry is one line of a recording of a real agent: a message of a peer, or the start or the exit of the agent.
type entry struct {
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg"`
}

// message is what the test looks at.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// segments returns a recording, split at each start of the agent.
func segments(t *testing.T, path string) (all [][]entry) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(body) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		switch e.Dir {
		case "start":
			all = append(all, nil)
		case "editor", "agent":
			all[len(all)-1] = append(all[len(all)-1], e)
		}
	}
	return all
}

// TestTranscripts plays the recordings of four real agents through the program, with the real store. Each line arrives
// with the bytes that it was sent with, except for the ids of requests. Each process of the recorded agent has a proxy
// of its own, and is killed at its end. In the log every session is free then.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("../../bridges/acp/testdata/*.jsonl")
	if err != nil || len(paths) < 16 {
		t.Fatalf("%d recordings: %v", len(paths), err)
	}
	c := newCell(t)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			// it waits for other processes
			t.Parallel()
			for i, entries := range segments(t, path) {
				x := start(t, c.up.NATS, name, "--restart", "0")
				x.replay(entries)
				x.killAgent()
				x.editor.rest()
				if code := x.exit(); code != 1 {
					t.Errorf("process %d: exit %d", i, code)
				}
				if strings.Contains(x.output(), "continues") {
					t.Errorf("process %d: %s", i, x.output())
				}
			}
			natstest.Until(t, "recovery", func() bool { return c.free(t, name) })
		})
	}
}

// free reports whether no process has a session of a harness, and no call of one is open without a question.
func (c *cell) free(t *testing.T, harness string) bool {
	code, out := c.run("sessions", "--json", "--harness", harness)
	if code != 0 {
		t.Fatal(out)
	}
	n := 0
	for line := range strings.Lines(out) {
		var s struct{ Session string }
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		st := c.state(harness, s.Session)
		n++
		if st.Owned || st.Ignored.Count > 0 || st.Turn != nil && st.BlockedBy() == "" {
			t.Logf("%s: owned %t, ignored %+v, turn %+v", s.Session, st.Owned, st.Ignored, st.Turn)
			return false
		}
	}
	return n > 0
}

// replay plays one process of a recorded agent.
func (x *proxy) replay(entries []entry) {
	x.t.Helper()
	// The ids that the receivers got, by the recorded ids of the requests.
	given := map[string]map[string]json.RawMessage{"editor": {}, "agent": {}}
	for i, e := range entries {
		var m message
		if err := json.Unmarshal(e.Msg, &m); err != nil {
			x.t.Fatal(err)
		}
		from, to := x.editor, x.agent
		other := "agent"
		if e.Dir == "agent" {
			from, to, other = x.agent, x.editor, "editor"
		}
		raw := string(e.Msg)
		// a reply has the id that its peer got
		if m.Method == "" {
			raw = withID(x.t, raw, m.ID, given[e.Dir][string(m.ID)])
		}
		from.send("%s", raw)
		got := to.next()
		for isOfTheProxy(got) {
			got = to.next()
		}
		want := string(e.Msg)
		if m.Method != "" && m.ID != nil {
			id := json.RawMessage(idOf(x.t, got))
			given[other][string(m.ID)] = id
			want = withID(x.t, want, m.ID, id)
		}
		if got != want {
			x.t.Fatalf("line %d: the other side gets\n%s\nwant\n%s", i, got, want)
		}
	}
}

// isOfTheProxy reports whether the proxy adds this line: the reply to a message that this process of the agent does not
// run, a permission that an earlier process left, which the editor is shown again, or its end.
func isOfTheProxy(line string) bool {
	return strings.Contains(line, "this process of the agent does not run it") ||
		strings.Contains(line, `"method":"session/request_permission"`) &&
			strings.Contains(line, `"optionId":"option-1"`) ||
		strings.Contains(line, `"method":"$/cancel_request"`)
}

// withID replaces the id of a message, and no other byte.
func withID(t *testing.T, raw string, was, id json.RawMessage) string {
	t.Helper()
	old := fmt.Sprintf(`"id":%s,`, was)
	if id == nil || strings.Count(raw[:min(len(raw), 60)], old) != 1 {
		t.Fatalf("%.80s: no id %s, or no new one", raw, was)
	}
	return strings.Replace(raw, old, fmt.Sprintf(`"id":%s,`, id), 1)
}
