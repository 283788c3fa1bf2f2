package opencode

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// limited translates records at a level of content.
func limited(level agent.Content, records []Record) []Step {
	tr := NewTranslator()
	tr.Content(level)
	var steps []Step
	for _, r := range Order(records) {
		steps = append(steps, tr.Translate(r)...)
	}
	return append(steps, tr.Flush()...)
}

// TestContentNone: at the level none no text of a user, a model or a tool of the recordings is in the facts. The same
// turns, calls and prompts are.
func TestContentNone(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	secrets := []string{"command", "description", "/tmp", "/work", "question\":{", "Which", "database", "SQLite",
		"Postgres", "sleep", "echo", "touch", "Mock", "carry on", "Hello", "directory"}
	found := map[string]bool{}
	for _, path := range paths {
		records := recordsOf(t, path)
		all, none := limited(agent.ContentFull, records), limited(agent.ContentNone, records)
		checkSteps(t, none)
		if len(all) != len(none) {
			t.Fatalf("%s: %d steps, with all content %d", path, len(none), len(all))
		}
		for i := range none {
			if len(none[i].Facts) != len(all[i].Facts) {
				t.Fatalf("%s: step %d: %d facts, want %d", path, i, len(none[i].Facts), len(all[i].Facts))
			}
			for k, f := range none[i].Facts {
				if f.Kind() != all[i].Facts[k].Kind() || f.Subject() != all[i].Facts[k].Subject() {
					t.Errorf("%s: step %d: %s %s", path, i, f.Kind(), f.Subject())
				}
			}
			shown := text(none[i].Open) + text(none[i].Facts)
			for _, secret := range secrets {
				if strings.Contains(shown, secret) {
					t.Errorf("%s: %q is in %s", path, secret, shown)
				}
				found[secret] = found[secret] || strings.Contains(text(all[i].Open)+text(all[i].Facts), secret)
			}
		}
	}
	if len(found) == 0 || !found["command"] || !found["SQLite"] && !found["Postgres"] || !found["directory"] {
		t.Errorf("the recordings have none of the texts: %v", found)
	}
}

// TestContentLevels checks what each level stores of each sort of content.
func TestContentLevels(t *testing.T) {
	long := strings.Repeat("x", 3<<10)
	records := script(
		`session.created {"sessionID":"ses_1","info":{"id":"ses_1","title":"a title","directory":"/secret"}}`,
		`message.updated {"sessionID":"ses_1","info":{"id":"m1","role":"user"}}`,
		`message.part.updated {"sessionID":"ses_1","part":{"id":"p1","messageID":"m1","type":"text","text":"a text"}}`,
		`session.status {"sessionID":"ses_1","status":{"type":"busy"}}`,
		`message.updated {"sessionID":"ses_1","info":{"id":"a1","role":"assistant","parentID":"m1"}}`,
		tool("p2", "c1", `{"status":"running","input":{"command":"make `+long+`"}}`),
		`permission.asked {"sessionID":"ses_1","id":"r1","permission":"bash","patterns":["make all"],`+
			`"metadata":{"diff":"`+long+`"},"always":["make *"],"tool":{"messageID":"a1","callID":"c1"}}`,
		replied("r1", "once"),
		tool("p2", "c1", `{"status":"completed","output":"an output"}`),
		tool("p3", "c2", `{"status":"running"}`),
		tool("p3", "c2", `{"status":"error","error":"an error"}`),
		question(`[{"question":"Which?","header":"W","options":[{"label":"red","description":"hot"},`+
			`{"label":"blue"}]}]`),
		`question.replied {"sessionID":"ses_1","requestID":"q","answers":[["blue","my own"]]}`,
		`session.error {"sessionID":"ses_1","error":{"name":"ProviderAuthError","data":{"message":"a refusal"}}}`,
		`session.idle {"sessionID":"ses_1"}`)
	for level, want := range map[agent.Content]map[string]bool{
		agent.ContentNone: {"ProviderAuthError": true, agent.HiddenPermission: true, agent.HiddenQuestion: true,
			`"selected":["option 2"]`: true, `"title":"bash"`: true, `"label":"once"`: true,
			`"permission":"bash"`: true},
		agent.ContentTitles: {"a title": true, "/secret": true, "make all": true, "make *": true, "make xx": true,
			"an error": true, "Which?": true, "hot": true, "blue": true, "my own": true, "a refusal": true,
			`"permission":"bash"`: true},
		agent.ContentFull: {"a title": true, "/secret": true, "make all": true, "make *": true, "make xx": true,
			"an error": true, "Which?": true, "hot": true, "blue": true, "my own": true, "a refusal": true,
			`"permission":"bash"`: true, "a text": true, "an output": true, `"diff":"xx`: true, long: true},
	} {
		steps := limited(level, records)
		checkSteps(t, steps)
		shown := text(steps)
		for _, what := range []string{"a title", "/secret", "a text", "make all", "make *", "make xx", "an output",
			"an error", "Which?", "hot", "blue", "my own", "a refusal", "ProviderAuthError", agent.HiddenPermission,
			agent.HiddenQuestion, `"selected":["option 2"]`, `"title":"bash"`, `"label":"once"`, `"diff":"xx`, long,
			`"permission":"bash"`} {
			if strings.Contains(shown, what) != want[what] {
				t.Errorf("%s: %.40q is there: %t\n%s", level, what, !want[what], shown)
			}
		}
	}
}

// hides runs a bridge that stores no content.
func (st *stage) hides() (stop func()) {
	st.t.Helper()
	b := &Bridge{URL: st.srv.URL, Content: agent.ContentNone,
		Connect: func(ctx context.Context) (*harness.Harness, error) {
			return harness.Connect(ctx, harness.Config{ID: "oc", URL: st.server.URL(), TTL: 10 * time.Minute})
		}}
	was := st.connections()
	stop = natstest.Background(st.t, b.Run)
	natstest.Until(st.t, "the bridge is connected", func() bool { return st.connections() > was })
	return stop
}

// newestOf returns the newest fact of a kind in the log.
func newestOf[F events.Fact](st *stage) (newest F) {
	st.t.Helper()
	commits, err := st.bus.Log.Read(st.t.Context(), ref("ses_1"), 0)
	if err != nil {
		st.t.Fatal(err)
	}
	for i := range commits {
		for j := range commits[i].Events {
			if f, ok := commits[i].Events[j].Fact.(F); ok {
				newest = f
			}
		}
	}
	return newest
}

// asksWithOptions begins a turn whose call asks a question with two options, which the part has, too.
func (st *stage) asksWithOptions() {
	st.run("ses_1", "msg_1", "call_1", "question")
	st.part("ses_1", "a-msg_1", storedTool("p-call_1", "call_1", "question", "running", object{"input": object{
		"questions": []object{{"question": "Which?", "header": "W", "options": []object{{"label": "Postgres"},
			{"label": "SQLite"}}}}}}))
	st.question("ses_1", "que_1", "msg_1", "call_1")
	st.until("ses_1", "a question waits", awaits(1))
	if q := newestOf[events.PromptRequested](st).Questions; len(q) != 1 || q[0].Question != agent.HiddenQuestion ||
		len(q[0].Options) != 2 || q[0].Options[1].Label != "option 2" {
		st.t.Errorf("the log has %+v", q)
	}
}

// TestLiveHiddenAnswer: a question whose text is not stored is answered by the number of its option. OpenCode gets the
// label, from the bridge that saw the question and from one that came later.
func TestLiveHiddenAnswer(t *testing.T) {
	for _, another := range []bool{false, true} {
		st := newStage(t)
		stop := st.hides()
		st.asksWithOptions()
		if another {
			stop()
			st.hides()
		}
		st.answer("ses_1", "que_1", "q1", "option 2")
		natstest.Until(t, "the server has the answer", func() bool {
			return len(st.made("question/que_1/reply", `[["SQLite"]]`)) == 1
		})
	}
}

// TestLiveHiddenAnswerAfterDeath: the same, when the process that asked is dead. The model reads the question and the
// label, and the log has neither.
func TestLiveHiddenAnswerAfterDeath(t *testing.T) {
	for _, another := range []bool{false, true} {
		st := newStage(t)
		st.plays()
		stop := st.hides()
		st.asksWithOptions()
		if another {
			stop()
		}
		st.kill()
		st.start()
		if another {
			st.hides()
		}
		st.until("ses_1", "it has no owner", func(s *fold.State) bool { return !s.Owned })
		st.answer("ses_1", "que_1", "q1", "option 2")
		st.until("ses_1", "the turn completed", completed)
		if got := st.made("PATCH", `\"Which?\"=\"SQLite\"`, `"status":"completed"`); len(got) != 1 {
			t.Errorf("the answer was stored %d times: %q", len(got), st.made("PATCH"))
		}
	}
}

// TestLiveHiddenRefusal: at the level none the text of a refusal of OpenCode, which may quote the user, is not in the
// log. At the other levels it is.
func TestLiveHiddenRefusal(t *testing.T) {
	for _, none := range []bool{false, true} {
		st := newStage(t)
		if none {
			st.hides()
		} else {
			st.bridge()
		}
		st.set(func() { st.refuse = map[string]int{"prompt_async": http.StatusBadRequest} })
		st.send()
		s := st.until("ses_1", "the turn failed", func(s *fold.State) bool {
			return s.Turn == nil && s.LastTurn != nil && s.LastTurn.Outcome == "failed"
		})
		shown := newestOf[events.TurnFailed](st).Error.Text
		if !strings.Contains(shown, "OpenCode refused the message: status 400") ||
			strings.Contains(shown, "<html>no") == none {
			t.Errorf("none %t: %q, %+v", none, shown, s.LastTurn)
		}
	}
}

// TestLiveHiddenMessageIsGone: a turn is resumed whose message OpenCode does not have any more. Its text is not in the
// log, so no empty message takes its place: the turn fails with the reason.
func TestLiveHiddenMessageIsGone(t *testing.T) {
	st := newStage(t)
	st.hides()
	st.run("ses_1", "msg_1", "call_1", "bash")
	st.until("ses_1", "the call runs", func(s *fold.State) bool { return len(s.Tools) == 1 })
	st.kill()
	st.set(func() { st.messages["ses_1"] = nil })
	st.start()
	st.until("ses_1", "the turn was interrupted", func(s *fold.State) bool {
		return s.Turn == nil && s.LastTurn != nil && s.LastTurn.Outcome == fold.OutcomeInterrupted
	})
	natstest.Until(t, "the turn is resumed", func() bool {
		return st.bus.Services.Request(t.Context(), retry.Name, "resume", request.Retry{Ref: ref("ses_1"), By: "ada"},
			nil) == nil
	})
	st.until("ses_1", "the turn failed", func(s *fold.State) bool {
		return s.Turn == nil && s.LastTurn.Outcome == "failed"
	})
	if got := st.made("prompt_async"); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
	if text := newestOf[events.TurnFailed](st).Error.Text; text != "OpenCode has no message that this turn continues" {
		t.Errorf("the reason is %q", text)
	}
}

// TestRevealed: labels of the log are those of OpenCode, also if the level of content has changed between the question
// and the answer.
func TestRevealed(t *testing.T) {
	asked := events.Question{ID: "q1", Question: "Which?", Options: []events.Option{{Label: "red"}, {Label: "blue"}}}
	shown := hidden([]events.Question{asked})[0]
	for _, c := range []struct {
		shown       events.Question
		label, want string
	}{
		{shown, "option 2", "blue"}, {shown, "red", "red"}, {shown, "option 3", "option 3"},
		{asked, "blue", "blue"}, {asked, "option 1", "red"}, {asked, "my own", "my own"},
		{events.Question{ID: "q1", Options: []events.Option{{}, {}, {Label: "third"}}}, "third", "third"},
	} {
		if got := revealed(c.shown, asked, c.label); got != c.want {
			t.Errorf("%q of %v is %q, want %q", c.label, c.shown.Options, got, c.want)
		}
	}
	other := events.Question{ID: "q1", Question: "Why?", Options: asked.Options}
	for _, q := range []events.Question{asked, shown} {
		if !sameQuestions([]events.Question{q}, []events.Question{asked}) {
			t.Errorf("%+v is not the question", q)
		}
	}
	if sameQuestions([]events.Question{other}, []events.Question{asked}) || sameQuestions(nil, nil) {
		t.Error("another question is the same one")
	}
}

// TestHiddenAnswerIsBrought: a handler brings an answer to a question that the server lists, in the words of the
// server.
func TestHiddenAnswerIsBrought(t *testing.T) {
	f := newFake(t)
	f.question("ses_1", "que_1", "msg_1", "call_1")
	a, err := newAPI(f.srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	asked := encode(f.prompts["que_1"])
	r := &follower{Bridge: &Bridge{}, api: a, log: slog.New(slog.DiscardHandler)}
	decided := []fold.TurnPrompt{{Prompt: "que_1", Questions: hidden(askedBy(asked)),
		WorkPrompt: fold.WorkPrompt{Status: fold.Answered,
			Answers: []events.Answer{{Question: "q1", Selected: []string{"option 2"}}}}}}
	some, err := r.sendDecisions(t.Context(), &process{asked: map[string]*asking{}, sent: map[string]bool{}}, nil,
		stored{ID: "ses_1", Directory: "/w"}, &Snapshot{Questions: []json.RawMessage{asked}}, decided,
		func() func() { return func() {} })
	if err != nil || !some || len(f.made("question/que_1/reply", `[["SQLite"]]`)) != 1 {
		t.Errorf("brought %t, %v: %q", some, err, f.made("reply"))
	}
}
