package story

import (
	"bytes"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// check holds for every story: it shows what the fold ignored or parked and what a request resulted in; the document
// is the whole state, a second delivery changes nothing, and each list of open prompts has the same ones.
func (y *Story) check() {
	y.t.Helper()
	if y.unread {
		y.t.Errorf("the story does not show the result of its last request: add a section \"result\"")
	}
	if hidden := slices.Concat(y.ignored, y.parked); len(hidden) > 0 {
		y.t.Errorf("the story does not show what was ignored or parked: mark a line as late, or add a section "+
			"\"ignored\" or \"parked\": %q", hidden)
	}
	again := map[events.Ref]*session.State{}
	for i, c := range y.order {
		s := again[c.Ref]
		if s == nil {
			s = session.New(c.Ref)
		}
		s.Fold(c)
		s, err := session.Decode(y.document(s))
		if err != nil {
			y.t.Fatalf("after commit %d: %v", c.Seq, err)
		}
		again[c.Ref] = s
		for _, old := range y.order[:i+1] {
			if old.Ref == c.Ref && s.Fold(old).Folded {
				y.t.Errorf("commit %d was folded twice", old.Seq)
			}
		}
		y.samePrompts(s)
	}
	for r, s := range again {
		if got, want := y.document(s), y.document(y.State(r.Session)); !bytes.Equal(got, want) {
			y.t.Errorf("session %s, folded from its documents, is\n%s\nfolded at once\n%s", r.Session, got, want)
		}
	}
}

func (y *Story) document(s *session.State) []byte {
	y.t.Helper()
	doc, err := s.Encode()
	if err != nil {
		y.t.Fatalf("%v", err)
	}
	return doc
}

// samePrompts checks that the document and the view of people have the same open prompts (P1).
func (y *Story) samePrompts(s *session.State) {
	y.t.Helper()
	var shown []string
	for _, id := range s.BlockerPrompts(time.Time{}) {
		b, err := s.Blocker(id, y.Source)
		if err != nil || b == nil {
			y.t.Fatalf("prompt %s at %d: %v %v", id, s.Seq, b, err)
		}
		if b.Awaits() {
			shown = append(shown, id)
		}
	}
	if list := s.PendingPrompts(); !slices.Equal(list, shown) {
		y.t.Errorf("at %d the document has the open prompts %v, the view %v", s.Seq, list, shown)
	}
}
