package failure

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// nestedMax is how many errors within an error's body are unfolded.
const nestedMax = 4

// Read is an HTTP answer, or an error in the middle of a stream, as it came: the body is taken apart if it is in one of the
// forms that providers use, else it is the text. A status below 400 (a stream that began well) says nothing; a code that is
// a number is one. RetryAfter is the header; received is when the answer came.
func Read(status int, retryAfter string, received time.Time, body []byte) Raw {
	return read(status, retryAfter, received, body, nestedMax)
}

// wireError is what providers call things in the bodies of their errors.
type wireError struct {
	Error    json.RawMessage `json:"error"` // an object like this one, or a text
	Message  json.RawMessage `json:"message"`
	Detail   json.RawMessage `json:"detail"`
	Type     json.RawMessage `json:"type"`
	Class    json.RawMessage `json:"__type"`
	Code     json.RawMessage `json:"code"` // a word or a number
	Status   json.RawMessage `json:"status"`
	Metadata struct {
		Raw json.RawMessage `json:"raw"` // what the provider behind a gateway said
	} `json:"metadata"`
}

func read(status int, retryAfter string, received time.Time, body []byte, nested int) Raw {
	r := Raw{RetryAfter: retryAfter, Received: received}
	if status >= http.StatusBadRequest {
		r.Status = status
	}
	w, ok := unwrap(body)
	if !ok {
		r.Text = cut(strings.TrimSpace(string(body)), TextBytesMax)
		return r
	}
	r.Body = cut(string(body), bodyBytesMax)
	r.Text = firstText(w.Message, w.Detail, w.Error)
	r.Code = cut(firstText(w.Code, w.Status, w.Class, w.Type), kindBytesMax)
	var number int
	if json.Unmarshal(w.Code, &number) == nil && r.Status == 0 && number >= http.StatusBadRequest &&
		number <= statusMax {
		r.Status = number
	}
	if inner := inside(w.Metadata.Raw); nested > 0 && len(inner) > 0 {
		cause := read(0, "", received, inner, nested-1)
		r.Cause = &cause
	}
	return r
}

const (
	bodyBytesMax = 16 << 10 // bytes of a body that are looked through for words
	statusMax    = 599
)

// unwrap finds the object that says what went wrong.
func unwrap(body []byte) (w wireError, ok bool) {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	if json.Unmarshal(body, &w) != nil {
		return wireError{}, false
	}
	var inner wireError
	if text(w.Error) == "" && json.Unmarshal(w.Error, &inner) == nil && len(w.Error) > 0 {
		return inner, true
	}
	return w, len(w.Error)+len(w.Message)+len(w.Detail) > 0
}

// inside is JSON within a JSON string, or JSON as it is.
func inside(raw json.RawMessage) []byte {
	if s := text(raw); s != "" {
		return []byte(s)
	}
	return raw
}

// firstText is the first of these that is a text and says something.
func firstText(raws ...json.RawMessage) string {
	for _, raw := range raws {
		if s := text(raw); s != "" {
			return s
		}
	}
	return ""
}

// text is a JSON string, "" for all else.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}
