package opencode

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of what is put into facts. Content beyond them is cut with a mark, or left out where a part means nothing.
const (
	contentBytesMax = 64 << 10 // bytes of JSON: a message, a call's output
	inputBytesMax   = 16 << 10 // bytes of JSON: a call's input
	nativeBytesMax  = 16 << 10 // bytes of JSON: what is kept as it came
	answerBytesMax  = 16 << 10 // bytes: one answer's own text
	errorBytesMax   = 2 << 10  // bytes: an error's or a reason's text
	titleBytesMax   = 200      // bytes
	nameBytesMax    = 100      // bytes: a tool, an agent, a model
	tokensMax       = 1_000_000_000
)

// ident is an id that can be a part of a subject: the foreign one if it fits, else one derived from it.
func ident(prefix, id string) string {
	if _, err := events.Token(id); err != nil {
		return events.DeriveID(prefix, id)
	}
	return id
}

// cutText is at most so many bytes of s, in whole runes, with … where something is missing.
func cutText(s string, bytesMax int) string {
	if len(s) <= bytesMax {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:bytesMax-len(mark)], "") + mark
}

// jsonText is s as a JSON string of at most so many bytes. What is cut leaves a mark that says how much.
func jsonText(s string, bytesMax int) json.RawMessage {
	raw := encode(s)
	for keep := len(s); len(raw) > bytesMax; {
		keep = min(keep-1, keep*bytesMax/len(raw))
		raw = encode(fmt.Sprintf("%s\n… cut: the first %d of %d bytes", strings.ToValidUTF8(s[:keep], ""), keep,
			len(s)))
	}
	return raw
}

// encode is v as JSON. Only what came out of JSON, text and numbers are given to it, which cannot fail.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// small is raw JSON if it is there and fits, else nothing.
func small(raw json.RawMessage, bytesMax int) json.RawMessage {
	if len(raw) == 0 || len(raw) > bytesMax || string(raw) == "null" {
		return nil
	}
	return raw
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
