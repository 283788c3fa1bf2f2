package opencode

import "fmt"

// Limits of a report.
const (
	problemsMax     = 20   // problems with a text; all are counted
	unknownKindsMax = 1000 // different unknown names that are counted separately
	unknownNameMax  = 120  // bytes of an unknown name
	seenMax         = 1 << 16
)

// Report is the result of a translation. It counts everything that was omitted.
type Report struct {
	Records    int            // read so far
	Facts      int            // produced so far
	Duplicates int            // events with an id that was seen before
	Late       int            // events about entities that had ended, or that a dead process held
	Unreadable int            // records that are not events, and fields of an unexpected type
	Problems   []string       // the texts for the first of these
	Unknown    map[string]int // event types, part types and fields that this build does not know, by name
	Restarts   int            // number of times that the process died and came back
	Lost       []string       // entities that were open when a process died: session/entity/id, the first 10,000
	Open       []string       // entities that are open now: session/entity/id
	// Dead is true if the recording ends without a process: something is open, or the last step is a restart.
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

// window holds the newest ids, up to a limit. It deduplicates a stream of any length.
type window struct {
	ids  map[string]bool
	ring []string
	next int
	max  int
}

func newWindow(idsMax int) window { return window{ids: map[string]bool{}, max: idsMax} }

// has reports whether the id is in the window.
func (w *window) has(id string) bool { return w.ids[id] }

// add reports whether the id is new.
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
