package mockmodel

import (
	"encoding/json"
	"net/http"
	"strings"
)

// geminiPart is a part of a message: a text, a call, or the result of one.
type geminiPart struct {
	Text   string          `json:"text"`
	Call   json.RawMessage `json:"functionCall"`
	Result json.RawMessage `json:"functionResponse"`
}

// routed answers the questions that Gemini CLI itself has for a model: which model is used, and which side is next.
const routed = `{"reasoning":"by script","next_speaker":"user","model_choice":"flash","complexity_score":10,` +
	`"complexity_reasoning":"by script"}`

// gemini is Gemini's API of generateContent.
func (m *Model) gemini(w http.ResponseWriter, r *http.Request) {
	name, call, _ := strings.Cut(r.PathValue("call"), ":")
	if call == "countTokens" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"totalTokens":100}`))
		return
	}
	var q struct {
		System struct {
			Parts []geminiPart `json:"parts"`
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string       `json:"role"`
			Parts []geminiPart `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []json.RawMessage `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			MIME string `json:"responseMimeType"`
		} `json:"generationConfig"`
	}
	if !decode(w, r, &q) {
		return
	}
	c := conversation{model: name}
	for _, p := range q.System.Parts {
		c.system += p.Text
	}
	for _, t := range q.Tools {
		c.tools += len(t.Functions)
	}
	for _, x := range q.Contents {
		c.messages = append(c.messages, geminiMessages(x.Role, x.Parts)...)
	}
	step := Text("A title")
	switch {
	case c.tools > 0:
		step = m.next(&c)
	case q.Config.MIME == "application/json":
		step = Text(routed)
	}
	if m.refuse(w, step) {
		return
	}
	out := &geminiAnswer{model: name}
	if strings.HasPrefix(call, "stream") {
		s := begin(w)
		out.stream = &s
	}
	m.writeAnswer(r, out, step)
	if out.stream == nil {
		w.Header().Set("Content-Type", "application/json")
		// an agent that has left needs no answer
		_ = json.NewEncoder(w).Encode(out.chunk(out.parts, true))
	}
}

// geminiMessages returns a message of Gemini's API. A message of the user has results and texts in it.
func geminiMessages(role string, parts []geminiPart) (all []Message) {
	message := Message{Role: map[string]string{"model": "assistant", "user": "user"}[role]}
	for _, p := range parts {
		message.Text += p.Text
		if p.Call != nil {
			message.Calls++
		}
		if p.Result != nil {
			all = append(all, Message{Role: "tool", Text: string(p.Result)})
		}
	}
	if message.Text == "" && message.Calls == 0 {
		return all
	}
	return append(all, message)
}

// geminiAnswer is an answer on its way.
type geminiAnswer struct {
	*stream // nil: the answer is one object
	model   string
	parts   []any
}

func (a *geminiAnswer) chunk(parts []any, last bool) object {
	candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	if last {
		candidate["finishReason"] = "STOP"
	}
	return object{"candidates": []any{candidate}, "modelVersion": a.model, "responseId": "answer",
		"usageMetadata": map[string]int{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}}
}

func (a *geminiAnswer) part(p object) {
	a.parts = append(a.parts, p)
	if a.stream != nil {
		a.send("", a.chunk([]any{p}, false))
	}
}

func (a *geminiAnswer) text(word string) { a.part(object{"text": word}) }

func (a *geminiAnswer) call(id, name string, args json.RawMessage) {
	a.part(object{"functionCall": object{"id": id, "name": name, "args": args}})
}

func (a *geminiAnswer) end() {
	if a.stream != nil {
		a.send("", a.chunk([]any{object{"text": ""}}, true))
	}
}
