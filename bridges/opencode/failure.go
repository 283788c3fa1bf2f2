package opencode

import (
	"net/http"
	"strconv"
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
	wish, sent := retryAfter(e.Data.ResponseHeaders)
	if sent.IsZero() {
		sent = at
	}
	f := failure.Classify(failure.Raw{Status: e.Data.StatusCode, Text: e.Data.Message, Body: e.Data.ResponseBody, RetryAfter: wish, Received: sent})
	if kind := byName[e.Name]; kind != "" {
		f.Kind = kind
	}
	if e.Data.Message == "" && e.Name != "" {
		f.Text = cutText(e.Name, errorBytesMax)
	}
	return f
}

// retryAfter is the provider's wish, as [failure.Raw] takes it, and when it was said by the provider's own clock, zero if it
// does not tell. The finer one of two headers goes first.
func retryAfter(headers map[string]string) (wish string, sent time.Time) {
	const msPerSecond = 1000
	fine := ""
	for h, v := range headers {
		switch strings.ToLower(h) {
		case "retry-after-ms":
			if ms, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && ms > 0 {
				fine = strconv.FormatFloat(ms/msPerSecond, 'f', -1, 64)
			}
		case "retry-after":
			wish = v
		case "date":
			if at, err := http.ParseTime(v); err == nil {
				sent = at
			}
		}
	}
	if fine != "" {
		wish = fine
	}
	return wish, sent
}
