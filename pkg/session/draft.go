package session

import (
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Draft is a decision under construction: the session after the facts so far, so that each next fact is lawful and none
// is appended twice. The state that it began with does not change.
type Draft struct {
	*State               // after the facts that are folded
	Facts  []events.Fact // in their order
	Next   time.Time     // the earliest instant at which to decide again; zero: at the next change

	writer events.Writer
	source string
	now    time.Time
	folded int // how many of Facts the session has
}

// NewDraft returns an empty decision of a writer about a session at an instant.
func NewDraft(s *State, w events.Writer, source string, now time.Time) Draft {
	return Draft{State: s, writer: w, source: source, now: now}
}

// Add adds facts and folds them as one commit, with those that were put off.
func (d *Draft) Add(facts ...events.Fact) {
	d.Facts = append(d.Facts, facts...)
	d.Flush()
}

// PutOff adds a fact that is folded with the next one: for facts on which no decision depends until then.
func (d *Draft) PutOff(f events.Fact) { d.Facts = append(d.Facts, f) }

// Flush folds the facts that were put off.
func (d *Draft) Flush() {
	if d.folded == len(d.Facts) {
		return
	}
	if d.folded == 0 {
		d.State = d.Clone()
	}
	seq := d.Seq
	c := events.Commit{Ref: d.Ref(), Writer: d.writer, Seq: seq + 1, At: d.now}
	c.Events = make([]events.Event, 0, len(d.Facts)-d.folded)
	for _, f := range d.Facts[d.folded:] {
		c.Events = append(c.Events, events.New(string(f.Kind()), d.source, c.Ref, d.Epoch, d.now, f))
	}
	d.Expect(&c)
	// ids derived from the place in the log are the same each time this is decided
	d.Seq = seq
	d.folded = len(d.Facts)
}

// CheckAt asks for another decision at an instant. The earliest one counts, the zero instant does not.
func (d *Draft) CheckAt(at time.Time) {
	if !at.IsZero() && (d.Next.IsZero() || at.Before(d.Next)) {
		d.Next = at
	}
}
