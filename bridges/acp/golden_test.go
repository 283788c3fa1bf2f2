package acp

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/agent"
)

var update = flag.Bool("update", false, "write the goldens")

// peers connects the two sides of a transcript to a proxy: each reply has the id that its peer got.
type peers struct {
	w     *world
	given map[Side]map[string]string // by side that replies: the recorded id of a request, and the proxy's
	back  map[Side]map[string]string // the proxy's id, and the recorded one
}

func newPeers(w *world) *peers {
	return &peers{w: w, given: map[Side]map[string]string{Editor: {}, Agent: {}},
		back: map[Side]map[string]string{Editor: {}, Agent: {}}}
}

func other(s Side) Side {
	if s == Editor {
		return Agent
	}
	return Editor
}

// deliver hands a recorded line of a side to the proxy, and returns the lines that each side got, with recorded ids.
func (c *peers) deliver(from Side, raw []byte) map[Side][]string {
	c.w.t.Helper()
	m, err := parse(raw)
	if err != nil {
		c.w.t.Fatal(err)
	}
	if m.isReply() {
		raw = m.withID([]byte(c.given[from][string(m.id)]))
	}
	before := len(c.w.lines)
	if from == Editor {
		c.w.editor(string(raw))
	} else {
		c.w.agent(string(raw))
	}
	got := map[Side][]string{}
	for _, l := range c.w.lines[before:] {
		out, err := parse(l.Raw)
		if err != nil {
			c.w.t.Fatalf("%s: %v", l.Raw, err)
		}
		line := string(l.Raw)
		if out.isRequest() {
			if !m.isRequest() {
				c.w.t.Errorf("a request without its cause: %s", l.Raw)
			}
			if _, dup := c.back[l.To][string(out.id)]; dup {
				c.w.t.Errorf("the id %s is given twice", out.id)
			}
			c.given[l.To][string(m.id)], c.back[l.To][string(out.id)] = string(out.id), string(m.id)
			line = string(out.withID(m.id))
		}
		got[l.To] = append(got[l.To], line)
	}
	return got
}

// TestTranscripts plays the recordings of four real agents through a proxy. Each line passes unchanged except for the
// ids of requests, in order, and none is missing. The facts are those of the file beside the recording.
func TestTranscripts(t *testing.T) {
	added := map[string]int{"claude-kill-permission": 1, "opencode-client-dies": 1, "opencode-kill-permission": 1,
		"opencode-kill-tool": 1}
	for name, entries := range transcripts(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, agent.ContentFull)
			want, got := map[Side][]string{}, map[Side][]string{}
			c, started, closed := newPeers(w), false, 0
			for _, e := range entries {
				switch e.Dir {
				case "start":
					if started {
						w.restart()
						c = newPeers(w)
					}
					started = true
				case "editor", "agent":
					from := Side(e.Dir)
					want[other(from)] = append(want[other(from)], string(e.Msg))
					for side, lines := range c.deliver(from, e.Msg) {
						got[side] = append(got[side], lines...)
					}
				}
			}
			got[Editor] = slices.DeleteFunc(got[Editor], func(line string) bool {
				if strings.Contains(line, textReplayed) {
					closed++
					return true
				}
				return false
			})
			for side := range want {
				if !slices.Equal(got[side], want[side]) {
					t.Errorf("%s got\n%s\nwant\n%s", side, strings.Join(got[side], "\n"),
						strings.Join(want[side], "\n"))
				}
			}
			if closed != added[name] {
				t.Errorf("%d calls of a replay were closed, want %d", closed, added[name])
			}
			r := w.proxy.Report()
			if r.Foreign+r.Refused+r.Late > 0 {
				t.Errorf("%+v", r)
			}
			compare(t, "testdata/"+name+".facts", strings.Join(w.facts, "\n")+"\nopen at the end: "+
				strings.Join(w.open(), " ")+"\n")
		})
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with: go test ./bridges/acp -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs: write it with go test ./bridges/acp -update, and look at the difference; got\n%s", path,
			got)
	}
}

// TestContentNone checks that no text of a user reaches the log at the level none: every string of the recordings that
// a user or a model wrote is absent.
func TestContentNone(t *testing.T) {
	for name, entries := range transcripts(t) {
		w := newWorld(t, agent.ContentNone)
		c := newPeers(w)
		for i, e := range entries {
			switch {
			case e.Dir == "start" && i > 0:
				w.restart()
				c = newPeers(w)
			case e.Dir == "editor" || e.Dir == "agent":
				c.deliver(Side(e.Dir), e.Msg)
			}
		}
		facts := strings.Join(w.facts, "\n")
		if !strings.Contains(facts, "turn.started") || len(w.prompts) == 0 && strings.Contains(name, "ermission") {
			t.Errorf("%s: the facts are missing:\n%s", name, facts)
		}
		for _, secret := range []string{"touch", "workspace", "sleep", "Postgres", "SQLite", "database", "All done",
			"Hello", "carry on", "mock\"", "Always Allow"} {
			if strings.Contains(facts, secret) {
				t.Errorf("%s: %q is in the log:\n%s", name, secret, facts)
			}
		}
	}
}

// TestIdsAreTheProxys checks that no id of one side reaches the other side, also while requests of both sides have the
// same id.
func TestIdsAreTheProxys(t *testing.T) {
	w := newWorld(t, agent.ContentTitles)
	for range 3 {
		w.editor(`{"jsonrpc":"2.0","id":0,"method":"x/unknown","params":{"id":0,"_meta":{"a":1.50}}}`)
		w.agent(`{"id" : "0" ,"jsonrpc":"2.0","method":"y/unknown","params":[1, 2 ]}`)
	}
	seen := map[string]bool{}
	for _, l := range w.lines {
		m, err := parse(l.Raw)
		if err != nil || seen[string(m.id)] {
			t.Errorf("%s: %v", l.Raw, err)
		}
		if _, err := strconv.ParseUint(string(m.id), 10, 64); err != nil {
			t.Errorf("the id %s: %v", m.id, err)
		}
		seen[string(m.id)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d lines with ids", len(seen))
	}
	// Replies out of order, each twice: the second one is late.
	to := w.to(Agent)
	for _, i := range []int{2, 0, 1, 0} {
		m, _ := parse([]byte(to[i]))
		w.agent(`{"jsonrpc":"2.0","id":` + string(m.id) + `,"result":{"n":` + strconv.Itoa(i) + `}}`)
	}
	got := w.to(Editor)[3:]
	want := []string{`{"jsonrpc":"2.0","id":0,"result":{"n":2}}`, `{"jsonrpc":"2.0","id":0,"result":{"n":0}}`,
		`{"jsonrpc":"2.0","id":0,"result":{"n":1}}`}
	if !slices.Equal(got, want) || w.proxy.Report().Late != 1 {
		t.Errorf("replies %v, report %+v", got, w.proxy.Report())
	}
	unknown := `{"jsonrpc":"2.0","id":1,"method":"x/unknown","params":{"id":0,"_meta":{"a":1.50}}}`
	// The same for the requests of the agent.
	id := w.id(Editor, "y/unknown")
	for range 2 {
		w.editor(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":1}}`)
	}
	if got := w.to(Agent)[3:]; !slices.Equal(got, []string{`{"jsonrpc":"2.0","id":"0","error":{"code":1}}`}) {
		t.Errorf("replies to the agent: %v", got)
	}
	if got := w.to(Agent)[0]; got != unknown {
		t.Errorf("changed in more than its id: %s", got)
	}
	if got := w.to(Editor)[0]; got != `{"id" : 2 ,"jsonrpc":"2.0","method":"y/unknown","params":[1, 2 ]}` {
		t.Errorf("changed in more than its id: %s", got)
	}
}

// TestErrorsHaveContent: the text of an error of the agent is content: at the level none the log has its kind alone.
func TestErrorsHaveContent(t *testing.T) {
	for level, want := range map[agent.Content]int{agent.ContentNone: 0, agent.ContentTitles: 1, agent.ContentFull: 1} {
		w := newWorld(t, level)
		w.editor(editorNew)
		w.agent(fmt.Sprintf(agentNew, w.id(Agent, "session/new")))
		w.editor(editorPrompt)
		w.agent(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"secret","data":"secret"}}`,
			w.id(Agent, "session/prompt")))
		failed := strings.Join(w.facts, "\n")
		if !strings.Contains(failed, `"kind":"authentication"`) || strings.Count(failed, "secret") != want {
			t.Errorf("%s: %s", level, failed)
		}
	}
}
