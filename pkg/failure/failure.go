// Package failure turns what went wrong into the kind that Holdfast's rules are written about.
//
// A harness hands [Classify] what its provider said, as it said it: the status, the code or type, the text, the wish to
// wait. Nothing is asked of the world: a wish that is a date is counted from the instant the error was received, which is
// an argument. What a kind means for a retry is said by [Retryable] for turns and by [SendRetryable] for messages that could
// not be sent.
//
// # Which of several signs counts
//
//  1. A code that is one of our kinds, to the letter: somebody who knows has said it.
//  2. 401 is authentication, 402 quota. 429 is quota if its code or its words are about money, unless it says when to come
//     back, or that it counts by the minute; else rate_limit. Words about context do not turn a 429 into context_exceeded.
//  3. The provider's code, where it has one meaning.
//  4. Words about context, whatever the status: a gateway hides the provider's 400 in a 500 of its own, and taken for
//     retryable that loops for ever.
//  5. 404 is model_not_found, 500 and above server_error, 413 context_exceeded.
//  6. Other words, then 403 (authentication), 408 (network), other 4xx (invalid_request). What is left is unknown.
//
// Addresses in a text are not words: a rate limit that links to a page about billing is a rate limit.
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
	// TextBytesMax is the most of a text that a failure carries, in bytes; the rest is cut, with … where it was.
	TextBytesMax = 2 << 10
	// kindBytesMax is the most of a kind, in bytes.
	kindBytesMax = 100
	// causesMax is how deep a chain of causes is followed. One that is deeper is a circle.
	causesMax = 32
)

// Raw is an error as it came. Everything may be missing.
type Raw struct {
	Status     int       // HTTP status, 0 if there was none
	Code       string    // the provider's code or type, or one of our kinds
	Text       string    // for people; looked through for words, too
	Body       string    // looked through for words, but not shown
	RetryAfter string    // how long the provider wants to be left alone: seconds, or an HTTP date; without it the words tell
	Received   time.Time // when the error came, by the provider's clock if it tells; without it a date in RetryAfter says nothing
	Cause      *Raw      // what this error wraps
}

// Classify says what a fact says about an error. A wrapper is classified by its last cause; where that one says nothing, by
// the one above it, with the words of what it wraps.
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

// causes is the error with what it wraps, the last cause first.
func (r *Raw) causes() []*Raw {
	var list []*Raw
	for c := r; c != nil && len(list) < causesMax; c = c.Cause {
		list = append(list, c)
	}
	slices.Reverse(list)
	return list
}

// name stands in for a text.
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

// addresses are no words.
var addresses = regexp.MustCompile(`https?://\S+`)

// words is what the error says, in lower case.
func (r *Raw) words() string {
	return strings.ToLower(addresses.ReplaceAllString(r.Code+" "+r.Text+" "+r.Body, ""))
}

// code is the provider's code in lower case, without the name space that some put before it.
func (r *Raw) code() string {
	code := strings.ToLower(strings.TrimSpace(r.Code))
	return code[strings.LastIndexAny(code, "#.")+1:]
}

// kind is the first sign that counts; see the package's page.
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
	case says(words, contextWords):
		return ContextExceeded
	case r.Status == http.StatusNotFound:
		return ModelNotFound
	case r.Status >= http.StatusInternalServerError:
		return ServerError
	case r.Status == http.StatusRequestEntityTooLarge:
		return ContextExceeded
	}
	for _, w := range byWords {
		if says(words, w.words) {
			return w.kind
		}
	}
	return byStatus(r.Status)
}

// pace is the kind of a 429.
func pace(coded, words string) string {
	switch {
	case coded == ContextExceeded, coded == Quota, coded == RateLimit:
		return coded
	case says(words, billingWords) && !says(words, paceWords):
		return Quota
	default:
		return RateLimit
	}
}

// byStatus is what a status says where nothing else says more.
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

func says(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// cut is at most so many bytes of s, in whole runes, with … where something is missing.
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
