package opencode

import "fmt"

// Limits of a report.
const (
	problemsMax     = 20   // problems that are told one by one; all are counted
	unknownKindsMax = 1000 // different unknown things that are counted apart
	unknownNameMax  = 120  // bytes of the name of an unknown thing
	seenMax         = 1 << 16
)

// Report is what a translation came to: all that was left out is counted here.
type Report struct {
	Records    int            // read so far
	Facts      int            // said so far
	Duplicates int            // events whose id was there before
	Late       int            // events about something that had ended, or that a dead process held
	Unreadable int            // records that are no event, and fields of another shape than known
	Problems   []string       // why, for the first of these
	Unknown    map[string]int // event types, part types and fields that this build does not know, by name
	Restarts   int            // how often the process died and came back
	Lost       []string       // what it held when it died: session/entity/id, the first 10,000
	Open       []string       // what is open now: session/entity/id
	// the recording ends with its process dead: something is open, or a restart was the last step
	Dead bool
}

func (t *Translator) problem(format string, args ...any) {
	t.report.Unreadable++
	if len(t.report.Problems) < problemsMax {
		t.report.Problems = append(t.report.Problems, fmt.Sprintf(format, args...))
	}
}

func (t *Translator) unknown(name string) {
	name = cutText(name, unknownNameMax)
	if _, ok := t.report.Unknown[name]; !ok && len(t.report.Unknown) >= unknownKindsMax {
		name = "more"
	}
	t.report.Unknown[name]++
}

// window remembers the newest ids, up to a limit, so that a stream of any length can be deduplicated.
type window struct {
	ids  map[string]bool
	ring []string
	next int
	max  int
}

func newWindow(idsMax int) window { return window{ids: map[string]bool{}, max: idsMax} }

// has says whether the id is remembered.
func (w *window) has(id string) bool { return w.ids[id] }

// add says whether the id is new.
func (w *window) add(id string) bool {
	if w.ids[id] {
		return false
	}
	if len(w.ring) < w.max {
		w.ring = append(w.ring, id)
	} else {
		delete(w.ids, w.ring[w.next])
		w.ring[w.next] = id
		w.next = (w.next + 1) % w.max
	}
	w.ids[id] = true
	return true
}
