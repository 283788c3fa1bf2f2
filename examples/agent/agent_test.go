package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/examples/agent/script"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// completed reports whether the last turn has completed and no work is left.
func completed(st *session.State) bool {
	return st.Turn == nil && len(st.Queue) == 0 && st.Pending.Turn == nil && st.LastTurn != nil &&
		st.LastTurn.Outcome == session.OutcomeCompleted
}

// A message is answered: the model's message is in the conversation, and its usage in the document.
func TestAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(script.Step{Text: "Hello, Ada.", Used: 42})
	w.agent("")
	w.send("m1", "hello")
	st := w.until("the answer", completed)
	if st.Usage == nil || st.Usage.Used != 42 || st.Model != "small" || st.Ignored.Count != 0 {
		t.Errorf("%+v, %+v", st.Usage, st.Ignored)
	}
	if got := string(st.LastTurn.Options); got != `{"model":"small"}` {
		t.Errorf("options %s", got)
	}
	c := w.conversation()
	if len(c) != 2 || c[0].Content != "hello" || c[0].Message != "m1" || c[1].Content != "Hello, Ada." ||
		c[1].Role != "assistant" {
		t.Errorf("%+v", c)
	}
}

// The model calls tools, one of them with a question to the user. Each call is in the log before it runs, and ends.
func TestTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("notes.txt", "the colour is red")
	w.script.Play(
		script.Step{Calls: []script.Call{{Name: "read_file", Arguments: `{"path":"notes.txt"}`},
			{Name: "read_file", Arguments: `{"path":"../secret"}`}, {Name: "no_such", Arguments: `{}`},
			{Name: "read_file", Arguments: `{"path":`}}},
		script.Step{Calls: []script.Call{{Name: "run", Arguments: `{"command":"echo painted; exit 3"}`}}},
		script.Step{Calls: []script.Call{{Name: "run", Arguments: `{"command":"rm -rf nothing"}`}}},
		script.Step{Calls: []script.Call{{Name: "ask_user",
			Arguments: `{"question":"Again?","options":["yes","no"]}`}}},
		script.Step{Text: "Done."})
	w.agent("")
	w.send("m1", "paint it")
	w.answer("run", func(p string) (string, map[string]any) {
		return "answer", map[string]any{"prompt": p, "by": "ada",
			"answers": []events.Answer{{Question: "permission", Selected: []string{"once"}}}}
	})
	w.answer("run", func(p string) (string, map[string]any) {
		return "reject", map[string]any{"prompt": p, "by": "ada", "text": "leave it"}
	})
	w.answer("ask_user", func(p string) (string, map[string]any) {
		return "answer", map[string]any{"prompt": p, "by": "ada",
			"answers": []events.Answer{{Question: "q", Selected: []string{"no"}}}}
	})
	st := w.until("the end", completed)
	if len(st.Tools) != 0 || len(st.Prompts) != 0 || st.Ignored.Count != 0 {
		t.Errorf("%+v", st)
	}
	var results []string
	for _, e := range w.conversation() {
		if e.Role == "tool" {
			results = append(results, e.Content)
		}
	}
	for i, want := range []string{"the colour is red", "Error: ", "Error: there is no tool", "Error: the arguments",
		"painted\n\n(exit code 3)", "Error: the user says no: leave it", "no"} {
		if i >= len(results) || !strings.HasPrefix(results[i], want) {
			t.Errorf("result %d: want %q in %q", i, want, results)
		}
	}
	if q := w.script.Requests(); q[1].Tools != len(tools) || len(q[1].Messages) != 7 ||
		q[1].Messages[3].ToolCallID == "" {
		t.Errorf("%+v", q[1])
	}
	kinds := w.facts()
	if n := count(kinds, "tool.started"); n != 5 || count(kinds, "tool.completed") != 3 ||
		count(kinds, "tool.failed") != 2 {
		t.Errorf("%v", kinds)
	}
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// answer waits until a call of this tool asks, and answers it.
func (w *world) answer(tool string, decide func(prompt string) (verb string, body map[string]any)) {
	w.t.Helper()
	prompt := ""
	w.until("a question of "+tool, func(st *session.State) bool {
		for id, p := range st.Prompts {
			if p.Status == session.Awaiting && p.Tool == tool {
				prompt = id
				return true
			}
		}
		return false
	})
	verb, body := decide(prompt)
	w.request("ledger", verb, body)
	w.until("the decision", func(st *session.State) bool {
		p := st.Prompts[prompt]
		return p == nil ||
			p.Status != session.Awaiting
	})
}

// Each failure of the endpoint is reported with its kind, which decides what Holdfast does.
func TestFailures(t *testing.T) {
	const inAnHour = "in an hour"
	for _, tt := range []struct {
		name   string
		step   script.Step
		kind   string
		status int
		output bool
		waits  func(ms int64) bool
	}{
		{"500", script.Step{Status: 500, Body: `{"error":{"message":"mock error 500"}}`}, failure.ServerError, 500,
			false, none},
		{"429", script.Step{Status: 429, Body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`,
			RetryAfter: "7"}, failure.RateLimit, 429, false, func(ms int64) bool { return ms == 7000 }},
		{"429 with a date", script.Step{Status: 429, Body: `{}`, RetryAfter: inAnHour}, failure.RateLimit, 429, false,
			func(ms int64) bool { return ms > 3_500_000 && ms <= 3_600_000 }},
		{"429 with a date, by a clock that is wrong",
			script.Step{Status: 429, Body: `{}`, RetryAfter: "Sat, 01 Jan 2000 00:00:09 GMT",
				Date: "Sat, 01 Jan 2000 00:00:00 GMT"}, failure.RateLimit, 429, false,
			func(ms int64) bool { return ms == 9000 }},
		{"429 with billing words", script.Step{Status: 429,
			Body: `{"error":{"message":"You exceeded your current quota, please check your plan and billing ` +
				`details."}}`},
			failure.Quota, 429, false, none},
		{"401", script.Step{Status: 401, Body: `{"error":{"message":"Incorrect API key provided"}}`},
			failure.Authentication, 401, false, none},
		{"context", script.Step{Status: 400, Body: `{"error":{"message":"too long","code":"context_length_exceeded"}}`},
			failure.ContextExceeded, 400, false, none},
		{"empty", script.Step{}, failure.EmptyOutput, 0, false, none},
		{"cut", script.Step{Text: "Half of it", Cut: true}, failure.StreamTruncated, 0, true, none},
		{"filtered", script.Step{Text: "I should", Finish: "content_filter"}, failure.ModelRefusal, 0, true, none},
		{"an error in the stream", script.Step{Text: "Well",
			InStream: `{"error":{"message":"Overloaded","type":"overloaded_error"}}`}, failure.ServerError, 0, true,
			none},
		{"a piece that is no JSON", script.Step{Text: "Well", InStream: `{`}, failure.Unknown, 0, true, none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			// The instant is relative to now, because the other cases may take time.
			if tt.step.RetryAfter == inAnHour {
				tt.step.RetryAfter = time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
			}
			w.script.Play(tt.step)
			w.agent("")
			w.send("m1", "hello")
			st := w.until("the failure", func(st *session.State) bool { return st.LastTurn != nil })
			e := st.LastTurn.Error
			if e == nil || e.Kind != tt.kind || e.Status != tt.status || !tt.waits(e.RetryAfterMS) || e.Text == "" ||
				st.LastTurn.HadOutput != tt.output {
				t.Errorf("%+v, output %v", e, st.LastTurn.HadOutput)
			}
			if c := w.conversation(); slices.ContainsFunc(c, func(e entry) bool { return e.Role == "assistant" }) {
				t.Errorf("an unfinished message is in the conversation: %+v", c)
			}
		})
	}
}

func none(ms int64) bool { return ms == 0 }

// The agent is killed while a question waits. The answer is given while no agent runs. The next process finds it in the
// log and continues. No question is asked twice and no step is done twice.
func TestKilledWhileAsking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(
		script.Step{Calls: []script.Call{{Name: "ask_user", Arguments: `{"question":"Which colour?"}`}}},
		script.Step{Text: "Red it is."})
	kill := w.child()
	w.until("the session", func(st *session.State) bool { return st.Owned })
	w.send("m1", "paint it")
	w.until("the question", func(st *session.State) bool { return len(st.PendingPrompts()) == 1 })
	kill()
	w.until("recovery", func(st *session.State) bool { return !st.Owned })
	w.answer("ask_user", func(p string) (string, map[string]any) {
		return "answer", map[string]any{"prompt": p, "by": "ada",
			"answers": []events.Answer{{Question: "q", Text: "red"}}}
	})
	w.child()
	st := w.until("the end", completed)
	if st.LastTurn.Cause != events.CauseAnswer || st.Ignored.Count != 0 {
		t.Errorf("%+v, %+v", st.LastTurn, st.Ignored.Last)
	}
	c := w.conversation()
	if n := len(c); n != 4 || c[2].Role != "tool" || c[2].Content != "red" || c[3].Content != "Red it is." {
		t.Errorf("%+v", c)
	}
	if n := len(w.script.Requests()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// The agent leaves or is killed while a question waits, and is started again before or after the end of its lease, with
// another message as from the command line. The question still waits, under its id; or the answer that a person gave
// meanwhile is the result of the call. The model never reads that the question was cut off, and its next call counts.
func TestAskedByTheNextProcess(t *testing.T) {
	answer := func(w *world) {
		w.answer("ask_user", func(p string) (string, map[string]any) {
			return "answer", map[string]any{"prompt": p, "by": "ada",
				"answers": []events.Answer{{Question: "q", Text: "red"}}}
		})
	}
	for name, c := range map[string]struct {
		leaves    bool // on SIGTERM, in place of a kill
		answered  bool // before the next process
		recovered bool // before the next process
		message   string
	}{
		"killed":                                     {},
		"killed, with a message":                     {message: "paint it"},
		"killed, recovered":                          {recovered: true},
		"killed, recovered, with a message":          {recovered: true, message: "paint it"},
		"left":                                       {leaves: true},
		"left, with a message":                       {leaves: true, message: "paint it"},
		"killed, answered":                           {answered: true},
		"killed, answered, with a message":           {answered: true, message: "paint it"},
		"killed, answered, recovered":                {answered: true, recovered: true},
		"left, answered, with a message":             {leaves: true, answered: true, message: "paint it"},
		"killed, recovered, answered, and a message": {answered: true, recovered: true, message: "paint it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script.Play(
				script.Step{Calls: []script.Call{{Name: "ask_user", Arguments: `{"question":"Which colour?"}`}}},
				script.Step{Calls: []script.Call{{Name: "read_file", Arguments: `{"path":"none"}`}}},
				script.Step{Text: "Red it is."}, script.Step{Text: "As before."})
			w.cfg.message = "paint it"
			var end func()
			if c.leaves {
				end = w.agent(w.cfg.message)
			} else {
				end = w.child()
			}
			w.until("the question", func(st *session.State) bool { return len(st.PendingPrompts()) == 1 })
			prompt := w.state().PendingPrompts()[0]
			end()
			if c.recovered {
				w.until("recovery", func(st *session.State) bool { return !st.Owned })
			}
			if c.answered {
				answer(w)
			}
			w.cfg.message = c.message
			w.child()
			if !c.answered {
				w.until("the question of the next process", func(st *session.State) bool {
					p := st.Prompts[prompt]
					if p == nil {
						t.Fatalf("the question is gone: %+v", st.Recent)
					}
					return p.Status == session.Awaiting && st.Owned && p.Epoch == st.Epoch
				})
				answer(w)
			}
			w.until("the end", completed)
			texts := ""
			for _, e := range w.conversation() {
				if e.Role == "tool" {
					texts += e.Content + "; "
				}
			}
			if !strings.HasPrefix(texts, "red; Error: ") || strings.Count(texts, "; ") != 2 {
				t.Errorf("the model reads %q", texts)
			}
			for _, e := range w.log() {
				if f, ok := e.Fact.(events.TurnFailed); ok {
					t.Errorf("a turn failed: %+v", f.Error)
				}
			}
		})
	}
}

// The agent is killed while a command runs: the next process reports an unknown result, and does not run it again.
func TestKilledWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(
		script.Step{Calls: []script.Call{{Name: "run", Arguments: `{"command":"echo x >> ran; sleep 20"}`}}},
		script.Step{Text: "I cannot say whether it ran."})
	kill := w.child()
	w.until("the session", func(st *session.State) bool { return st.Owned })
	w.send("m1", "run it")
	w.answer("run", func(p string) (string, map[string]any) {
		return "answer", map[string]any{"prompt": p, "by": "ada",
			"answers": []events.Answer{{Question: "permission", Selected: []string{"always"}}}}
	})
	w.until("the command to run", func(st *session.State) bool { return w.exists("ran") && len(st.Prompts) == 0 })
	kill()
	w.until("recovery", func(st *session.State) bool { return !st.Owned && st.LastTurn != nil })
	w.child()
	w.until("the session", func(st *session.State) bool { return st.Owned })
	w.send("m2", "well?")
	st := w.until("the end", completed)
	if i := slices.IndexFunc(st.Recent, func(e session.Ending) bool { return e.Entity == session.EntityTool }); i < 0 ||
		st.Recent[i].Outcome != session.OutcomeInterrupted {
		t.Errorf("%+v", st.Recent)
	}
	c := w.conversation()
	if i := slices.IndexFunc(c, func(e entry) bool { return e.Role == "tool" }); i < 0 ||
		!strings.Contains(c[i].Content, "cut off") {
		t.Errorf("%+v", c)
	}
	if got := w.read("ran"); got != "x\n" {
		t.Errorf("it ran %q", got)
	}
}

// A person stops the turn while a command runs. The next turn has the interrupted call and the calls that were not
// made.
func TestStoppedWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("notes.txt", "red")
	w.script.Play(
		script.Step{Calls: []script.Call{{Name: "run", Arguments: `{"command":"echo x >> ran; sleep 20"}`},
			{Name: "read_file", Arguments: `{"path":"notes.txt"}`}}},
		script.Step{Text: "Stopped."})
	// as on the command line
	w.agent("run it")
	w.answer("run", func(p string) (string, map[string]any) {
		return "answer", map[string]any{"prompt": p, "by": "ada",
			"answers": []events.Answer{{Question: "permission", Selected: []string{"once"}}}}
	})
	w.until("the command to run", func(*session.State) bool { return w.exists("ran") })
	w.request("ledger", "stop", map[string]any{"by": "ada", "reason": "enough"})
	w.until("the stop", func(st *session.State) bool {
		return st.LastTurn != nil && st.LastTurn.Outcome == session.OutcomeStopped
	})
	w.send("m2", "what happened?")
	st := w.until("the end", delivered("m2"))
	c := w.conversation()
	if len(c) != 6 || c[2].Content != notMadeWords || c[3].Content != cutOffWords || c[4].Content != "what happened?" ||
		st.Ignored.Count != 0 {
		t.Errorf("%+v", c)
	}
	if n := count(w.facts(), "tool.started"); n != 1 {
		t.Errorf("%d calls were made", n)
	}
}

// Entries that an older process adds after a newer one has the session are ignored. A line that a crash truncated is
// dropped.
func TestConversationFiles(t *testing.T) {
	dir := t.TempDir()
	add := func(epoch uint64, text string) *conversation {
		t.Helper()
		c, err := open(dir, "s/1", epoch)
		if err == nil {
			err = c.add(entry{message: message{Role: "user", Content: text}})
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := add(1, "one")
	add(2, "two")
	if err := old.add(entry{message: message{Role: "user", Content: "too late"}}); err != nil {
		t.Fatal(err)
	}
	if err := write(old.path, os.O_APPEND, []byte(`{"epoch":2,"role":"us`)); err != nil {
		t.Fatal(err)
	}
	add(2, "three")
	c := add(3, "four")
	var texts []string
	for _, e := range c.entries {
		texts = append(texts, e.Content)
	}
	if got := strings.Join(texts, " "); got != "one two three four" {
		t.Errorf("%q", got)
	}
	if err := c.summarise("all of it"); err != nil {
		t.Fatal(err)
	}
	c, err := open(dir, "s/1", 3)
	if err != nil || len(c.entries) != 1 || c.entries[0].Content != summaryWords+"all of it" || c.answered() {
		t.Errorf("%v, %+v", err, c)
	}
	for _, e := range []entry{{Message: "m1", message: message{Role: "user", Content: "five"}},
		{message: message{Role: "assistant", Content: "six"}}} {
		if err := c.add(e); err != nil {
			t.Fatal(err)
		}
	}
	// A summary of a summary has the message ids of both.
	for range 2 {
		if err := c.summarise("all of it"); err != nil || !c.answered() || !c.has("m1") || len(c.entries) != 1 {
			t.Errorf("%v, %+v", err, c)
		}
	}
	if raw, err := json.Marshal(c.messages()[1]); err != nil || strings.Contains(string(raw), "epoch") {
		t.Errorf("%s %v", raw, err)
	}
}
