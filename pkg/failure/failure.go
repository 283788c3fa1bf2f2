// Package failure classifies errors of providers: it returns the kind of failure that Holdfast's rules use.
//
// A harness passes [Classify] the error as its provider reported it: the status, the code or type, the text and the
// requested delay. The package reads no clock: a delay given as a date is counted from the instant at which the error
// was received, which is an argument. [Retryable] reports whether a turn is retried after a kind of failure,
// [SendRetryable] whether a message is sent again.
//
// # Order of the rules
//
//  1. A code that is one of the kinds of this package, exactly: the caller has classified the error.
//  2. 401 is authentication, 402 quota. 429 is quota if its code or its words are about money, unless the text names a
//     delay or a limit per minute; else rate_limit. Words about context do not turn a 429 into context_exceeded.
//  3. The provider's code, if it has one meaning.
//  4. Words about context, with any status: a gateway hides the provider's 400 in a 500 of its own. A retry of that
//     would never end.
//  5. 404 is model_not_found, 500 and above server_error, 413 context_exceeded.
//  6. Other words, then 403 (authentication), 408 (network), other 4xx (invalid_request). Everything else is unknown.
//
// URLs in a text are ignored: a rate limit that links to a page about billing is a rate limit.
package failure

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	// TextBytesMax is the maximum length of a failure's text, in bytes. A longer text is cut and ends in "…".
	TextBytesMax = 2 << 10
	// kindBytesMax is the maximum length of a kind, in bytes.
	kindBytesMax = 100
	// causesMax is the maximum depth of a chain of causes. A deeper chain is a cycle.
	causesMax = 32
)

// Raw is an error as a provider reported it. Every field is optional.
type Raw struct {
	Status int    // HTTP status, 0 if there was none
	Code   string // the provider's code or type, or a kind of this package
	Text   string // for people; also searched for words
	Body   string // searched for words, but not shown
	// the delay that the provider asks for: seconds, or an HTTP date; if empty, the text is searched for one
	RetryAfter string
	// when the error arrived, by the provider's clock if it is known; a date in RetryAfter needs it
	Received time.Time
	Cause    *Raw // what this error wraps
}

// Classify returns the failure that a fact carries for an error. The innermost cause that has a kind decides. The words
// of the causes inside an error count as its own.
func Classify(r Raw) events.Failure {
	f := events.Failure{Kind: Unknown}
	words := ""
	for _, c := range r.causes() {
		words += " " + c.words()
		if f.Kind == Unknown {
			f.Kind = c.kind(words)
		}
		if f.Status == 0 {
			f.Status = c.Status
		}
		if f.RetryAfterMS == 0 {
			f.RetryAfterMS = c.retryAfterMS()
		}
		if f.Text == "" {
			f.Text = cut(strings.TrimSpace(c.Text), TextBytesMax)
		}
	}
	if f.Text == "" {
		f.Text = r.name()
	}
	return f
}

// causes returns the error and the errors that it wraps, the innermost first.
func (r *Raw) causes() []*Raw {
	var list []*Raw
	for c := r; c != nil && len(list) < causesMax; c = c.Cause {
		list = append(list, c)
	}
	slices.Reverse(list)
	return list
}

// name returns a text for an error without one.
func (r *Raw) name() string {
	switch {
	case r.Code != "":
		return cut(r.Code, kindBytesMax)
	case r.Status != 0:
		return "HTTP status " + strconv.Itoa(r.Status)
	default:
		return ""
	}
}

// addresses matches URLs, which are not searched for words.
var addresses = regexp.MustCompile(`https?://\S+`)

// words returns the code, the text and the body in lower case, without URLs.
func (r *Raw) words() string {
	return strings.ToLower(addresses.ReplaceAllString(r.Code+" "+r.Text+" "+r.Body, ""))
}

// code returns the provider's code in lower case, without its name space.
func (r *Raw) code() string {
	code := strings.ToLower(strings.TrimSpace(r.Code))
	return code[strings.LastIndexAny(code, "#.")+1:]
}

// kind applies the rules of the package's page in their order.
func (r *Raw) kind(words string) string {
	kind, coded := byCode[r.code()]
	switch {
	case named(r.Code):
		return r.Code
	case r.Status == http.StatusUnauthorized:
		return Authentication
	case r.Status == http.StatusPaymentRequired:
		return Quota
	case r.Status == http.StatusTooManyRequests:
		return pace(kind, words)
	case coded:
		return kind
	case containsAny(words, contextWords):
		return ContextExceeded
	case r.Status == http.StatusNotFound:
		return ModelNotFound
	case r.Status >= http.StatusInternalServerError:
		return ServerError
	case r.Status == http.StatusRequestEntityTooLarge:
		return ContextExceeded
	}
	for _, w := range byWords {
		if containsAny(words, w.words) {
			return w.kind
		}
	}
	return byStatus(r.Status)
}

// pace returns the kind of a 429.
func pace(coded, words string) string {
	switch {
	case coded == ContextExceeded, coded == Quota, coded == RateLimit:
		return coded
	case containsAny(words, billingWords) && !containsAny(words, paceWords):
		return Quota
	default:
		return RateLimit
	}
}

// byStatus returns the kind of a status that no other rule covers.
func byStatus(status int) string {
	switch {
	case status == http.StatusForbidden:
		return Authentication
	case status == http.StatusRequestTimeout:
		return Network
	case status >= http.StatusBadRequest:
		return InvalidRequest
	default:
		return Unknown
	}
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// cut shortens s to at most bytesMax bytes of whole runes. A text that was cut ends in "…".
func cut(s string, bytesMax int) string {
	const mark = "…"
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) <= bytesMax {
		return s
	}
	end := bytesMax - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
