package opencode

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// Kinds of failures that only this bridge says; all others are of [failure].
const (
	kindOutputLength = "output_length"
	kindRejected     = "rejected"
	kindTool         = "tool_error"
)

const abortedError = "MessageAbortedError"

// byName are OpenCode's errors whose name alone says the kind.
var byName = map[string]string{
	abortedError:               failure.Aborted,
	"ContextOverflowError":     failure.ContextExceeded,
	"ContentFilterError":       failure.ModelRefusal,
	"MessageOutputLengthError": kindOutputLength,
	"ProviderAuthError":        failure.Authentication,
	"ModelNotFoundError":       failure.ModelNotFound,
}

// failure is what a fact says about an error of OpenCode's that was told at this instant: by its name, else by what the
// provider said.
func (e *errorInfo) failure(at time.Time) events.Failure {
	sent, err := http.ParseTime(e.header("date"))
	if err != nil { // the provider's own clock is not told
		sent = at
	}
	f := failure.Classify(failure.Raw{Status: e.Data.StatusCode, Text: e.Data.Message, Body: e.Data.ResponseBody,
		RetryAfter: failure.RetryAfter(e.header), Received: sent})
	if kind := byName[e.Name]; kind != "" {
		f.Kind = kind
	}
	if e.Data.Message == "" && e.Name != "" {
		f.Text = cutText(e.Name, errorBytesMax)
	}
	return f
}

// header finds an answer's header, in whatever letters.
func (e *errorInfo) header(name string) string {
	for h, v := range e.Data.ResponseHeaders {
		if strings.EqualFold(h, name) {
			return v
		}
	}
	return ""
}
