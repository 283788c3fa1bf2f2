package opencode

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of the content of facts. Longer content is truncated with a mark, or omitted where a part is meaningless.
const (
	contentBytesMax = 64 << 10 // bytes of JSON: a message, a call's output
	inputBytesMax   = 16 << 10 // bytes of JSON: a call's input
	nativeBytesMax  = 16 << 10 // bytes of JSON: native data
	answerBytesMax  = 16 << 10 // bytes: the text of one answer
	errorBytesMax   = 2 << 10  // bytes: the text of an error or a reason
	titleBytesMax   = 200      // bytes
	nameBytesMax    = 100      // bytes: a tool, an agent, a model
	tokensMax       = 1_000_000_000
)

// ident returns an id that is valid as a subject token: the foreign id if it fits, or an id derived from it.
func ident(prefix, id string) string {
	if _, err := events.Token(id); err != nil {
		return events.DeriveID(prefix, id)
	}
	return id
}

// cutText returns at most max bytes of s, in whole runes. A truncated text ends in ….
func cutText(s string, bytesMax int) string {
	if len(s) <= bytesMax {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:bytesMax-len(mark)], "") + mark
}

// jsonText returns s as a JSON string of at most max bytes. A truncated text ends with the number of missing bytes.
func jsonText(s string, bytesMax int) json.RawMessage {
	raw := encode(s)
	for keep := len(s); len(raw) > bytesMax; {
		keep = min(keep-1, keep*bytesMax/len(raw))
		raw = encode(fmt.Sprintf("%s\n… cut: the first %d of %d bytes", strings.ToValidUTF8(s[:keep], ""), keep,
			len(s)))
	}
	return raw
}

// encode returns v as JSON. It gets only decoded JSON, text and numbers, so it cannot fail.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// small returns the raw JSON if it is not empty and fits, and nil otherwise.
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
