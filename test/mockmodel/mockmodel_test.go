package mockmodel

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask sends a conversation, and returns the status and the body of the answer.
func ask(t *testing.T, m *Model, body string) (int, string) {
	t.Helper()
	return post(t, m.URL()+"/chat/completions", body)
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// The conversation tells which step is next, and a gate holds an answer back or repeats an error.
func TestSteps(t *testing.T) {
	m := Start()
	defer m.Close()
	m.Script("build", Tool("bash", map[string]string{"command": "make"}), Text("It is built."))
	m.Script("fail", Step{Text: "It works.", Status: http.StatusInternalServerError, Gate: "up"})
	const user = `{"role":"user","content":[{"type":"text","text":"Do it. <<build>>"}]}`
	called := user + `,{"role":"assistant","tool_calls":[{}]},{"role":"tool","content":"done"}`
	for _, x := range []struct{ messages, tools, want string }{
		{user, "[{}]", `"name":"bash"`},
		{called, "[{}]", "built."},
		{called + `,{"role":"assistant","tool_calls":[{}]}`, "[{}]", "over."},
		{called + "," + user, "[{}]", `"finish_reason":"tool_calls"`},
		{called + `,{"role":"user","content":"Continue."}`, "[{}]", "built."},
		{`{"role":"system","content":"You are a title generator."},` + user, "[]", "title"},
		{`{"role":"system","content":"You summarize."},` + user, "[]", "summary "},
		{``, "[{}]", "no "},
	} {
		status, got := ask(t, m, `{"model":"m","messages":[`+x.messages+`],"tools":`+x.tools+`}`)
		if status != http.StatusOK || !strings.Contains(got, x.want) || !strings.HasSuffix(got, "[DONE]\n\n") {
			t.Errorf("%s: status %d\n%s\nwant %q", x.messages, status, got, x.want)
		}
	}
	if all := m.Requests("build"); len(all) != 5 || all[1][2].Text != "done" || all[1][1].Calls != 1 {
		t.Errorf("requests: %+v", all)
	}
	again := Tool("bash", nil)
	again.Until = "done"
	m.Script("build", again, Text("It is built."))
	failed := user + `,{"role":"assistant","tool_calls":[{}]},{"role":"tool","content":"it was cut off"}`
	for messages, want := range map[string]string{user: `"name":"bash"`, failed: `"name":"bash"`, called: "built.",
		called + "," + user: `"name":"bash"`} {
		if _, got := ask(t, m, `{"messages":[`+messages+`],"tools":[{}]}`); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", messages, got, want)
		}
	}
	const fails = `{"messages":[{"role":"user","content":"<<fail>>"}],"tools":[{}]}`
	for range 2 {
		if status, got := ask(t, m, fails); status != http.StatusInternalServerError {
			t.Errorf("behind the gate: %d\n%s", status, got)
		}
	}
	m.Open("up")
	if status, got := ask(t, m, fails); status != http.StatusOK || !strings.Contains(got, "works.") {
		t.Errorf("after it: %d\n%s", status, got)
	}
	if status, _ := ask(t, m, "no request"); status != http.StatusBadRequest {
		t.Errorf("no request: %d", status)
	}
}

// Each API has the same scripts: an answer with a text and a call, and the next step behind the result of the call.
func TestAPIs(t *testing.T) {
	m := Start()
	defer m.Close()
	m.Script("build", Step{Text: "I build it.", Calls: []Call{{"bash", map[string]string{"command": "make"}}}},
		Text("It is built."))
	m.Script("fail", Step{Text: "It works.", Status: http.StatusTooManyRequests})
	for _, x := range []struct{ name, path, format, user, fails, called, call, end string }{
		{"anthropic", "/v1/messages", `{"stream":true,"tools":[{}],"messages":[%s]}`,
			`{"role":"user","content":[{"type":"text","text":"Do it. <<build>>"}]}`,
			`{"role":"user","content":"<<fail>>"}`,
			`{"role":"assistant","content":[{"type":"text","text":"I"},{"type":"tool_use","id":"1","name":"bash"}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"done"},` +
				`{"type":"text","text":"A reminder."}]}`,
			`"partial_json":"{\"command\":\"make\"}"`, `"stop_reason":"end_turn"`},
		{"gemini", "/v1beta/models/big:streamGenerateContent?alt=sse",
			`{"tools":[{"functionDeclarations":[{}]}],"contents":[%s]}`,
			`{"role":"user","parts":[{"text":"Do it. <<build>>"}]}`, `{"role":"user","parts":[{"text":"<<fail>>"}]}`,
			`{"role":"model","parts":[{"text":"I"},{"functionCall":{"name":"bash"}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"response":{"output":"done"}}}]}`,
			`"args":{"command":"make"}`, `"finishReason":"STOP"`},
		{"responses", "/v1/responses", `{"tools":[{}],"input":[%s]}`,
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Do it. <<build>>"}]}`,
			`{"role":"user","content":"<<fail>>"}`,
			`{"type":"function_call","name":"bash"},{"type":"function_call","name":"bash"},` +
				`{"type":"function_call_output","output":"done"},{"type":"function_call_output","output":"done"}`,
			`"arguments":"{\"command\":\"make\"}"`, `"status":"completed","usage"`},
	} {
		t.Run(x.name, func(t *testing.T) {
			before := len(m.Requests("build"))
			expect := func(messages string, status int, want ...string) {
				t.Helper()
				code, got := post(t, m.Root()+x.path, strings.Replace(x.format, "%s", messages, 1))
				for _, text := range want {
					if !strings.Contains(got, text) {
						t.Errorf("%s\nhas no %s", got, text)
					}
				}
				if code != status {
					t.Errorf("status %d, want %d", code, status)
				}
			}
			expect(x.user, http.StatusOK, `"build "`, `"name":"bash"`, x.call)
			expect(x.user+","+x.called, http.StatusOK, `"built."`, x.end)
			expect(x.fails, http.StatusTooManyRequests, "status 429 by script")
			expect("no request", http.StatusBadRequest)
			all := m.Requests("build")[before:]
			if len(all) != 2 || all[1][1].Calls == 0 || all[1][2].Role != "tool" ||
				!strings.Contains(all[1][2].Text, "done") {
				t.Errorf("requests: %+v", all)
			}
		})
	}
}
