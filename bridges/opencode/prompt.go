package opencode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// byOpenCode is the author of every answer: OpenCode does not report which person answered.
const byOpenCode = "opencode"

// feedbackMark precedes a person's text in the error of a rejected call.
const feedbackMark = "with the following feedback: "

// replyReject is OpenCode's word for the rejection of a permission.
const replyReject = "reject"

// questionsMax is the maximum number of questions of one prompt. OpenCode's tool asks a few at most.
const questionsMax = 100

// prompt is a question or a permission that was asked.
type prompt struct {
	id        string
	kind      events.PromptKind
	turn      *turn
	call      *call
	questions []events.Question
	done      bool
	unsettled bool // done in the log: recovery took the session. The server may still wait for the decision
	feedback  string
	reply     string     // what OpenCode has replied: of a permission its word, of a question "", or reject
	labels    [][]string // of a question: the answers that OpenCode has replied
}

func (t *Translator) questionAsked(s *session, b *body) {
	f := events.PromptRequested{PromptKind: events.PromptQuestion}
	var err error
	if f.Questions, f.Title, err = questionsIn(b.Questions); err != nil {
		// The agent waits in any case: the prompt has no questions, and the raw data is its title.
		t.problem("record %d: questions: %v", t.report.Records, err)
		f.Title = cutText(string(b.Questions), titleBytesMax)
	}
	t.entitle(s, b.Tool, f.Title)
	t.ask(s, b.ID, b.Tool, f)
}

// questionsIn returns the questions of OpenCode's tool, and the first text of one as a title.
func questionsIn(list json.RawMessage) (all []events.Question, title string, err error) {
	var raw []struct {
		Question string          `json:"question"`
		Header   string          `json:"header"`
		Options  []events.Option `json:"options"`
		Multiple bool            `json:"multiple"`
		Custom   *bool           `json:"custom"`
	}
	if err := json.Unmarshal(list, &raw); err != nil {
		return nil, "", err
	}
	for i, q := range raw[:min(len(raw), questionsMax)] {
		all = append(all, events.Question{ID: questionID(i), Header: q.Header,
			Question: firstOf(q.Question, q.Header, "(no text)"),
			Options:  q.Options, Multi: q.Multiple, Custom: q.Custom == nil || *q.Custom})
		if title == "" {
			title = cutText(firstOf(q.Question, q.Header), titleBytesMax)
		}
	}
	return all, title, nil
}

// entitle begins a call that is held back, before the prompt that names it. The prompt's content is the call's best
// title.
func (t *Translator) entitle(s *session, ref *toolRef, title string) {
	if c := s.named(ref); c != nil && c.title == "" {
		c.title = cutText(title, titleBytesMax)
	}
	t.release(s)
}

func questionID(i int) string { return fmt.Sprintf("q%d", i+1) }

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

func (t *Translator) permissionAsked(s *session, b *body) {
	patterns := slices.Concat(b.Patterns, b.Resources)
	name := firstOf(b.Permission, b.Action, "permission")
	title := name
	if len(patterns) > 0 {
		title += ": " + strings.Join(patterns, ", ")
	}
	ref := b.Tool
	if ref == nil {
		ref = b.Source
	}
	t.entitle(s, ref, firstOf(append(patterns, name)...))
	n := permissionNative{Permission: name, Patterns: patterns, Always: b.Always, Metadata: b.Metadata}
	if n.Always == nil {
		n.Always = b.Save
	}
	raw := small(encode(n), nativeBytesMax)
	if raw == nil {
		raw = small(encode(permissionNative{Permission: name, Always: n.Always}), nativeBytesMax)
	}
	t.ask(s, b.ID, ref, events.PromptRequested{PromptKind: events.PromptPermission,
		Title: cutText(title, titleBytesMax), Native: raw})
}

// permissionNative is what a permission keeps of OpenCode's own words.
type permissionNative struct {
	Permission string          `json:"permission"`
	Patterns   []string        `json:"patterns,omitempty"`
	Always     json.RawMessage `json:"always,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
}

// ask appends a prompt. A repeated event updates an open prompt; a closed one stays closed.
func (t *Translator) ask(s *session, id string, ref *toolRef, f events.PromptRequested) {
	if id == "" {
		t.problem("record %d: a prompt without an id", t.report.Records)
		return
	}
	if s.gone.has(gonePrompt + id) {
		t.report.Late++
		return
	}
	p := s.prompts[id]
	if p == nil {
		p = &prompt{id: ident("prompt", id), kind: f.PromptKind, turn: s.turn, call: s.named(ref)}
		s.prompts[id] = p
		s.orderedPrompts = append(s.orderedPrompts, id)
		if p.turn != nil {
			p.turn.prompts = append(p.turn.prompts, p)
		}
	}
	if p.done {
		t.report.Late++
		return
	}
	// it was asked in a turn that recovery has closed
	if p.turn == nil && s.turn != nil {
		p.turn = s.turn
		p.turn.prompts = append(p.turn.prompts, p)
	}
	if len(encode(f.Questions)) > events.QuestionsBytesMax {
		t.problem("record %d: questions of more than %d bytes", t.report.Records, events.QuestionsBytesMax)
		f.Questions = nil
	}
	f.Prompt = p.id
	f.Delivery, f.OnOwnerLoss = t.deliver(p)
	p.questions = f.Asked()
	if p.turn != nil {
		f.Turn = p.turn.id
	}
	if p.call != nil {
		f.Call = p.call.id
	}
	t.add(s, t.at, f)
}

// settle returns the open prompt of a reply, or nil.
func (t *Translator) settle(s *session, id string) *prompt {
	p := s.prompts[id]
	if p == nil || p.done {
		if p != nil {
			p.unsettled = false
		}
		t.report.Late++
		return nil
	}
	p.done = true
	return p
}

func (t *Translator) questionReplied(s *session, b *body) {
	p := t.settle(s, b.RequestID)
	if p == nil {
		return
	}
	var given [][]string
	if err := json.Unmarshal(b.Answers, &given); err != nil {
		t.problem("record %d: answers: %v", t.report.Records, err)
	}
	p.labels = given
	t.add(s, t.at, events.PromptAnswered{Prompt: p.id, By: byOpenCode,
		Answers: t.limitAnswers(p.questions, answers(p.questions, given))})
}

// answers assigns the answers to the questions by index. A value that is not an offered label is the person's own text.
func answers(questions []events.Question, given [][]string) []events.Answer {
	out := make([]events.Answer, 0, len(questions))
	for i, q := range questions {
		a := events.Answer{Question: q.ID, Selected: []string{}}
		var own []string
		for _, g := range given[min(i, len(given)):min(i+1, len(given))] {
			for _, text := range g {
				if slices.ContainsFunc(q.Options, func(o events.Option) bool { return o.Label == text }) {
					a.Selected = append(a.Selected, text)
				} else {
					own = append(own, text)
				}
			}
		}
		a.Text = cutText(strings.Join(own, ", "), answerBytesMax)
		out = append(out, a)
	}
	return out
}

func (t *Translator) questionRejected(s *session, b *body) {
	if p := t.settle(s, b.RequestID); p != nil {
		p.reply = replyReject
		p.refuse()
		t.add(s, t.at, p.reject())
	}
}

// permissionReplied holds a rejection back until the next record, because its text is only in the call's error. A
// rejection also rejects the session's other permissions, so several may be held.
func (t *Translator) permissionReplied(s *session, b *body) {
	if b.Reply != replyReject || !s.holdsRejections() {
		t.release(s)
	}
	if b.Reply == "" {
		t.problem("record %d: a reply that says nothing", t.report.Records)
		return
	}
	if p := s.prompts[b.RequestID]; p != nil {
		p.reply = cutText(b.Reply, nameBytesMax)
	}
	p := t.settle(s, b.RequestID)
	switch {
	case p == nil:
	case b.Reply == replyReject && b.Message == "" && p.call != nil:
		p.refuse()
		s.held = append(s.held, held{at: t.at, prompt: p})
	case b.Reply == replyReject:
		p.refuse()
		p.feedback = b.Message
		t.add(s, t.at, p.reject())
	default:
		t.add(s, t.at, events.PromptAnswered{Prompt: p.id, By: byOpenCode,
			Answers: []events.Answer{{Question: events.PermissionQuestion,
				Selected: []string{cutText(b.Reply, nameBytesMax)}}}})
	}
}

func (s *session) holdsRejections() bool {
	return slices.ContainsFunc(s.held, func(h held) bool { return h.prompt != nil })
}

// complain sets the text of a held rejection from the call's error.
func (s *session) complain(c *call, text string) {
	for _, h := range s.held {
		if h.prompt == nil || h.prompt.call != c {
			continue
		}
		if _, feedback, ok := strings.Cut(text, feedbackMark); ok {
			h.prompt.feedback = feedback
		}
	}
}

func (p *prompt) refuse() {
	if p.call != nil {
		p.call.rejected = true
	}
}

func (p *prompt) reject() events.Fact {
	return events.PromptRejected{Prompt: p.id, Text: cutText(p.feedback, errorBytesMax), By: byOpenCode}
}
