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
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL()+"/chat/completions",
		strings.NewReader(body))
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
		{`{"role":"system","content":"You are a title generator."},` + user, "[]", "title"},
		{`{"role":"system","content":"You summarize."},` + user, "[]", "summary "},
		{``, "[{}]", "no "},
	} {
		status, got := ask(t, m, `{"model":"m","messages":[`+x.messages+`],"tools":`+x.tools+`}`)
		if status != http.StatusOK || !strings.Contains(got, x.want) || !strings.HasSuffix(got, "[DONE]\n\n") {
			t.Errorf("%s: status %d\n%s\nwant %q", x.messages, status, got, x.want)
		}
	}
	if all := m.Requests("build"); len(all) != 4 || all[1][2].Text != "done" || all[1][1].Calls != 1 {
		t.Errorf("requests: %+v", all)
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
