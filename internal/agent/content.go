// Package agent is what bridges to agents share: they run an agent as a process, and store some of what it does.
//
// # The process
//
// [Start] runs an agent in a process group of its own. Its input and output are lines ([Process.Send],
// [Process.Lines]), and its exit status is a reason in words ([Process.Exit]). A bridge that sees its agent's process
// end hands the reason to AbandonBecause of the harness client: the sessions are orphaned at once, and the log shows
// the reason. Each process of OpenCode is an incarnation of its own. The proxy of ACP has one for itself: it writes for
// each process of the agent, one after the other, and abandons it when it starts no other one (ADR 187).
//
// # Content
//
// A bridge sees everything that an agent and its user exchange. The log is read by more people than the user's screen
// is, so a bridge stores names, states and instants always, and content by one of three levels:
//
//	level   titles        tool inputs       messages, outputs
//	none    no            no                no
//	titles  yes           the first 2 KiB   no
//	full    yes           yes               yes, each within the limits of an event
//
// A question without its text cannot be answered by anyone who does not see the agent's screen. So the level none also
// keeps questions and answers out of the log: a prompt is stored with its kind and its choices by id or by number, and
// with a text that says so ([HiddenPermission], [HiddenQuestion]).
package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Content is how much of a user's content is stored. The zero value stores as much as [ContentTitles].
type Content string

// The levels of content.
const (
	ContentNone   Content = "none"
	ContentTitles Content = "titles"
	ContentFull   Content = "full"
)

// The questions of prompts whose texts are not stored. They tell a person where to look before they decide.
const (
	HiddenPermission = "The agent asks for a permission. Its purpose is not stored: read it where the agent is shown."
	HiddenQuestion   = "The agent asks a question. Its text is not stored: read it where the agent is shown."
)

// Limits in bytes.
const (
	titleBytesMax = 200      // a title or a name
	textBytesMax  = 2 << 10  // a question, an answer, an error, and an input of the level titles
	inputBytesMax = 16 << 10 // a call's input, of the level full
	longBytesMax  = 64 << 10 // a message or an output, as JSON
)

// ParseContent returns the level of this name. The error lists the levels.
func ParseContent(name string) (Content, error) {
	switch c := Content(name); c {
	case ContentNone, ContentTitles, ContentFull:
		return c, nil
	}
	return "", fmt.Errorf("content %.40q: want none, titles or full", name)
}

// Hidden reports whether no content is stored at all.
func (c Content) Hidden() bool { return c == ContentNone }

// Title returns a title as one line of at most 200 bytes; "" for the level none.
func (c Content) Title(s string) string {
	if c.Hidden() {
		return ""
	}
	return Name(s)
}

// Text returns a question, an answer or an error of at most 2 KiB; "" for the level none.
func (c Content) Text(s string) string {
	if c.Hidden() {
		return ""
	}
	return Cut(strings.ToValidUTF8(s, ""), textBytesMax)
}

// Question returns the text of a question of at most 2 KiB; for the level none the text that stands for it.
func (c Content) Question(s, instead string) string {
	if c.Hidden() {
		return instead
	}
	return c.Text(s)
}

// Input returns the input of a call. Input that is too long becomes a JSON string of its first bytes; nil if nothing is
// stored.
func (c Content) Input(raw json.RawMessage) json.RawMessage {
	switch {
	case c.Hidden() || absent(raw):
		return nil
	case c == ContentFull:
		return short(raw, inputBytesMax)
	}
	return short(raw, textBytesMax)
}

// Output returns the output of a call, nil if nothing is stored. Output that is too long becomes a JSON string of its
// first bytes.
func (c Content) Output(raw json.RawMessage) json.RawMessage {
	if c != ContentFull || absent(raw) {
		return nil
	}
	return short(raw, longBytesMax)
}

// Message returns the text of a message as a JSON string. It is empty unless the level is full.
func (c Content) Message(text string) json.RawMessage {
	if c != ContentFull {
		text = ""
	}
	return asJSON(strings.ToValidUTF8(text, ""), longBytesMax)
}

// Name returns a name that is no content, such as that of a tool, as one line of at most 200 bytes.
func Name(s string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return Cut(strings.TrimSpace(line), titleBytesMax)
}

// Cut returns at most max bytes of s, in whole characters. A text that is cut ends in "…".
func Cut(s string, bytesMax int) string {
	if len(s) <= bytesMax {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:bytesMax-len(mark)], "") + mark
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// short returns raw JSON that fits, and otherwise a string of its first bytes. JSON that is not valid is a string, too.
func short(raw json.RawMessage, bytesMax int) json.RawMessage {
	if len(raw) <= bytesMax && json.Valid(raw) {
		return raw
	}
	return asJSON(strings.ToValidUTF8(string(raw), ""), bytesMax)
}

// asJSON returns s as a JSON string of at most max bytes. A text that is cut ends in "…".
func asJSON(s string, bytesMax int) json.RawMessage {
	raw, err := json.Marshal(s)
	for keep := len(s); err == nil && len(raw) > bytesMax; {
		keep = min(keep-1, keep*bytesMax/len(raw))
		raw, err = json.Marshal(strings.ToValidUTF8(s[:keep], "") + "…")
	}
	// a string has a JSON form
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}
