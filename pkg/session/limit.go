package session

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of what a session holds. Beyond them a fact is ignored, reason "limit", or its text is cut, with "…".
const (
	OpenCallsMax   = 1000
	OpenPromptsMax = 100
	QueuedMax      = 1000
	RecentMax      = 50
	TitleBytesMax  = 200
	NameBytesMax   = 100
	TextBytesMax   = 2 << 10

	// UndeliveredMax is how many prompts that ended without a person's decision wait for a harness that never says it
	// has them. Beyond, the oldest goes. Decisions of people have no such bound: none is dropped.
	UndeliveredMax = 100

	undeliveredBytesMax = 32 << 10 // bytes of their reasons, likewise

	// DocumentBytesMax is more than any document takes: what is kept once is bounded by the limits above, what is open
	// and queued by openBytesMax. A document that could not be stored would stop the fold of every session.
	DocumentBytesMax = 700 << 10

	// WorkBytesMax is the most that the decisions in one entry of the harness's view take. The rest follows as they are
	// taken.
	WorkBytesMax = 512 << 10

	openBytesMax  = 525 << 10 // bytes of JSON that calls, prompts, queue and holds take together
	openFew       = 100       // entries that never reach openBytesMax, whatever turns carry
	longTitlesMax = 100       // open calls that keep a long title and name
	shortBytesMax = 32        // bytes of a title or a name beyond them
	callBytes     = 135       // bytes of JSON around the texts of a call
	promptBytes   = 396       // of a prompt
	carriedBytes  = 100       // of a prompt that a turn carries, once it is settled
	carriedLists  = 2         // lists that may hold it: of the open turn, or the last one, and of the requested one
	messageBytes  = 115       // of a queued message
	holdBytes     = 25        // of a call that waits for a child; each call has room for one
	holdTexts     = 2         // ids in it, of about the length of the call's
)

// room reports whether one more entry of about this size may be opened. Open entries are weighed once a commit, so that
// closing and opening in the same commit counts as if all were open at once.
func (f *fold) room(size int, texts ...string) bool {
	if len(f.Tools)+len(f.Prompts)+len(f.Queue)+len(f.WaitsFor) < openFew {
		return true
	}
	if f.openBytes == 0 {
		f.openBytes = f.weigh()
	}
	for _, t := range texts {
		size += jsonBytes(t)
	}
	if f.openBytes+size > openBytesMax {
		return false
	}
	f.openBytes += size
	return true
}

// weigh is about how many bytes of the document are open and queued things, and what turns carry of prompts that have
// ended. A prompt counts for the lists that may carry it from its opening on.
func (s *State) weigh() int {
	n := 0
	for id, c := range s.Tools {
		n += callBytes + holdBytes + holdTexts*jsonBytes(id) + jsonBytes(id) + jsonBytes(c.Name) + jsonBytes(c.Title) +
			jsonBytes(c.Turn)
	}
	for id, p := range s.Prompts {
		n += promptBytes + jsonBytes(id) + carriedLists*(carriedBytes+jsonBytes(id)) + jsonBytes(p.Call) +
			jsonBytes(p.Turn) + jsonBytes(string(p.Kind)) + jsonBytes(p.Tool) + jsonBytes(p.Reason) +
			jsonBytes(string(p.Delivery))
	}
	for i := range s.Queue {
		n += messageBytes + jsonBytes(s.Queue[i].ID)
	}
	for i := len(s.Tools); i < len(s.WaitsFor); i++ {
		n += holdBytes + jsonBytes(s.WaitsFor[i].Call) + jsonBytes(s.WaitsFor[i].Child)
	}
	return n + s.weighCarried()
}

// weighCarried is the part of [State.weigh] for the prompts that turns carry and that are no longer open.
func (s *State) weighCarried() int {
	n, lists := 0, s.carriedLists()
	for i, list := range lists {
		for _, c := range list {
			counted := slices.ContainsFunc(lists[:i], func(l []Carried) bool { return has(l, c.Prompt) })
			if s.Prompts[c.Prompt] == nil && !counted {
				n += carriedLists * (carriedBytes + jsonBytes(c.Prompt))
			}
		}
	}
	return n
}

// escapeBytes is what a control character takes in JSON: \u001b.
const escapeBytes = 6

// jsonBytes is at most how many bytes a text takes in JSON.
func jsonBytes(text string) int {
	n := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ':
			n += escapeBytes - 1
		case c == '"' || c == '\\' || c == 0xE2:
			// U+2028 and U+2029 begin with E2 and double
			n += escapeBytes / 2
		}
	}
	return n
}

// cut shortens a text to at most n bytes, at a character, with "…". Characters that JSON escapes count with their
// escaped length.
func cut(text string, n int) string {
	if len(text)*escapeBytes <= n || jsonBytes(text) <= n {
		return text
	}
	const mark = "…"
	n -= len(mark)
	end := 0
	for end < len(text) {
		_, size := utf8.DecodeRuneInString(text[end:])
		if n -= jsonBytes(text[end : end+size]); n < 0 {
			break
		}
		end += size
	}
	return text[:end] + mark
}

func cutFailure(e events.Failure) *events.Failure {
	e.Kind, e.Text = cut(e.Kind, NameBytesMax), cut(e.Text, TextBytesMax)
	return &e
}

// word cuts what should be one of a few words, and is kept as it came.
func word[T ~string](w T) T { return T(cut(string(w), NameBytesMax)) }

// instant is an instant in UTC, as all of them are kept; one at the edge of the calendar, which would fall out of what
// can be written, stays in its zone.
func instant(t time.Time) time.Time {
	const yearMax = 9999
	if u := t.UTC(); u.Year() >= 0 && u.Year() <= yearMax {
		return u
	}
	return t
}

func deadlineOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = instant(t)
	return &t
}
