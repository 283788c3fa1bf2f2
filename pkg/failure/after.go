package failure

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// RetryAfterMSMax is the longest wish to wait that is passed on, in milliseconds; a longer one is cut. How much of it is
// followed is the retry service's to say.
const RetryAfterMSMax = 24 * 3600 * 1000

const msPerSecond = 1000

// RetryAfter is the wish that an answer's headers tell, as [Raw] takes it; "" for none. Of the two headers in use the finer one
// goes first. header finds one by its name, in whatever letters.
func RetryAfter(header func(name string) string) string {
	ms, err := strconv.ParseFloat(strings.TrimSpace(header("retry-after-ms")), 64)
	if err == nil && ms > 0 {
		return strconv.FormatFloat(ms/msPerSecond, 'f', -1, 64)
	}
	return header("retry-after")
}

// httpDates are the forms that a date in a header may have.
var httpDates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// retryAfterMS is the provider's wish in milliseconds: at least 1 if there is one for the future, 0 if there is none, or
// none that can be read.
func (r *Raw) retryAfterMS() int64 {
	wish := strings.TrimSpace(r.RetryAfter)
	if seconds, err := strconv.ParseFloat(wish, 64); err == nil {
		return clampMS(seconds * msPerSecond)
	}
	for _, layout := range httpDates {
		at, err := time.Parse(layout, wish)
		if err == nil && !r.Received.IsZero() {
			return clampMS(float64(at.Sub(r.Received)) / float64(time.Millisecond))
		}
	}
	if wish != "" {
		return 0
	}
	return wordsMS(strings.ToLower(r.Text + " " + r.Body))
}

// wishes are how a wish is put into words.
var wishes = regexp.MustCompile(`(?:retry in |try again in |"?retrydelay\\?"?: *\\?"?)((?:\d+(?:\.\d+)?(?:ms|s|m|h))+)`)

// wordsMS is a wish that stands in the text only.
func wordsMS(text string) int64 {
	found := wishes.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	d, err := time.ParseDuration(found[1])
	if err != nil {
		return 0 // longer than an instant can be away
	}
	return clampMS(float64(d) / float64(time.Millisecond))
}

// clampMS rounds up, so that nobody comes back early.
func clampMS(ms float64) int64 {
	if math.IsNaN(ms) || ms <= 0 {
		return 0
	}
	return int64(math.Ceil(min(ms, RetryAfterMSMax)))
}
