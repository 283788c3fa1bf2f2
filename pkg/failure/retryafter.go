package failure

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// RetryAfterMSMax is the longest delay that a failure carries, in milliseconds. A longer one is cut to it. The retry
// service decides how much of the delay it follows.
const RetryAfterMSMax = 24 * 3600 * 1000

const msPerSecond = 1000

// RetryAfter returns the delay that the headers of a response ask for, in the form that [Raw] takes; "" if they ask for
// none. retry-after-ms takes precedence over retry-after. header returns the value of a header and ignores the case of
// its name.
func RetryAfter(header func(name string) string) string {
	ms, err := strconv.ParseFloat(strings.TrimSpace(header("retry-after-ms")), 64)
	if err == nil && ms > 0 {
		return strconv.FormatFloat(ms/msPerSecond, 'f', -1, 64)
	}
	return header("retry-after")
}

// httpDates are the date formats of RFC 9110.
var httpDates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// retryAfterMS returns the delay that the provider asks for, in milliseconds: at least 1 for an instant in the future,
// 0 if there is no delay, if it has passed, or if it cannot be read.
func (r *Raw) retryAfterMS() int64 {
	header := strings.TrimSpace(r.RetryAfter)
	if seconds, err := strconv.ParseFloat(header, 64); err == nil {
		return clampMS(seconds * msPerSecond)
	}
	for _, layout := range httpDates {
		at, err := time.Parse(layout, header)
		if err == nil && !r.Received.IsZero() {
			return clampMS(float64(at.Sub(r.Received)) / float64(time.Millisecond))
		}
	}
	if header != "" {
		return 0
	}
	return wordsMS(strings.ToLower(r.Text + " " + r.Body))
}

// delayText matches a delay in the text of an error.
var delayText = regexp.MustCompile(
	`(?:retry in |try again in |"?retrydelay\\?"?: *\\?"?)((?:\d+(?:\.\d+)?(?:ms|s|m|h))+)`,
)

// wordsMS returns the delay that a text asks for, in milliseconds, 0 without one.
func wordsMS(text string) int64 {
	found := delayText.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	d, err := time.ParseDuration(found[1])
	if err != nil {
		// out of the range of time.Duration
		return 0
	}
	return clampMS(float64(d) / float64(time.Millisecond))
}

// clampMS rounds up, so that no retry is early, and cuts at [RetryAfterMSMax].
func clampMS(ms float64) int64 {
	if math.IsNaN(ms) || ms <= 0 {
		return 0
	}
	return int64(math.Ceil(min(ms, RetryAfterMSMax)))
}
