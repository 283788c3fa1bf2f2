package failure

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// nestedMax limits how many errors inside an error's body are read.
const nestedMax = 4

// Read returns the [Raw] of an HTTP response, or of an error in the middle of a stream. A body in one of the forms that
// providers use is decoded; any other body becomes the text. A status below 400 (a stream that began well) is ignored.
// A numeric code from 400 to 599 is the status if there is no other. retryAfter is the header; received is the time of
// the response.
func Read(status int, retryAfter string, received time.Time, body []byte) Raw {
	return read(status, retryAfter, received, body, nestedMax)
}

// wireError has the fields that providers use in the bodies of their errors.
type wireError struct {
	Error    json.RawMessage `json:"error"` // an object like this one, or a string
	Message  json.RawMessage `json:"message"`
	Detail   json.RawMessage `json:"detail"`
	Type     json.RawMessage `json:"type"`
	Class    json.RawMessage `json:"__type"`
	Code     json.RawMessage `json:"code"` // a string or a number
	Status   json.RawMessage `json:"status"`
	Metadata struct {
		Raw json.RawMessage `json:"raw"` // the error of the provider behind a gateway
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
	bodyBytesMax = 16 << 10 // bytes of a body that are searched for words
	statusMax    = 599
)

// unwrap returns the object that describes the error. ok is false if the body has none.
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

// inside returns the JSON in a JSON string, or the JSON as it is.
func inside(raw json.RawMessage) []byte {
	if s := text(raw); s != "" {
		return []byte(s)
	}
	return raw
}

// firstText returns the first non-empty string, "" if there is no such string.
func firstText(raws ...json.RawMessage) string {
	for _, raw := range raws {
		if s := text(raw); s != "" {
			return s
		}
	}
	return ""
}

// text returns the value of a JSON string, "" for any other JSON.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return strings.TrimSpace(s)
}
