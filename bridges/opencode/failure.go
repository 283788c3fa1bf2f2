package opencode

import (
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
	f := failure.Classify(failure.Raw{Status: e.Data.StatusCode, Text: e.Data.Message, Body: e.Data.ResponseBody, RetryAfter: retryAfter(e.Data.ResponseHeaders), Received: at})
	if kind := byName[e.Name]; kind != "" {
		f.Kind = kind
	}
	if e.Data.Message == "" && e.Name != "" {
		f.Text = cutText(e.Name, errorBytesMax)
	}
	return f
}

// retryAfter is the provider's wish, as [failure.Raw] takes it. The finer one of two headers goes first.
func retryAfter(headers map[string]string) string {
	const msPerSecond = 1000
	wish := ""
	for h, v := range headers {
		switch ms, err := strconv.ParseFloat(strings.TrimSpace(v), 64); {
		case strings.EqualFold(h, "retry-after-ms") && err == nil && ms > 0:
			return strconv.FormatFloat(ms/msPerSecond, 'f', -1, 64)
		case strings.EqualFold(h, "retry-after"):
			wish = v
		}
	}
	return wish
}
