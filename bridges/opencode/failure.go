package opencode

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// Kinds of failures that only this bridge uses. All others are kinds of [failure].
const (
	kindOutputLength = "output_length"
	kindRejected     = "rejected"
	kindTool         = "tool_error"
)

const abortedError = "MessageAbortedError"

// byName maps names of OpenCode's errors to kinds, where the name alone determines the kind.
var byName = map[string]string{
	abortedError:               failure.Aborted,
	"ContextOverflowError":     failure.ContextExceeded,
	"ContentFilterError":       failure.ModelRefusal,
	"MessageOutputLengthError": kindOutputLength,
	"ProviderAuthError":        failure.Authentication,
	"ModelNotFoundError":       failure.ModelNotFound,
}

// failure returns the failure for an error that OpenCode reported at this instant. The kind depends on the error's
// name, or else on the provider's response.
func (e *errorInfo) failure(at time.Time) events.Failure {
	sent, err := http.ParseTime(e.header("date"))
	// The provider's own clock is not in the event.
	if err != nil {
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

// header returns a response header. Names are case-insensitive.
func (e *errorInfo) header(name string) string {
	for h, v := range e.Data.ResponseHeaders {
		if strings.EqualFold(h, name) {
			return v
		}
	}
	return ""
}
