package session_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// replay goes through a history and looks, after each commit, at all that must hold.
type replay struct {
	t       *rapid.T
	s       *session.State
	src     session.Source
	written []events.Event    // what counted, in order
	epoch   uint64            // of the newest fact that counted
	ended   map[string]string // outcome by entity and id

	older      *session.State // when the views were written last, some commits ago
	olderViews *views
}

func (h *replay) next(c *events.Commit) {
	before := h.s.Clone()
	res := h.s.Fold(c)
	for _, e := range res.Feed {
		if e.Derived {
			continue
		}
		h.counts(before, c, e)
		h.written = append(h.written, e)
	}
	h.endings()
	h.pending()
	h.twin()
	h.changed(before)
}

// counts: no fact of a dead epoch counts after the next epoch's first, and from a harness only the owner's (V4).
func (h *replay) counts(before *session.State, c *events.Commit, e events.Event) {
	h.t.Helper()
	if e.Epoch < h.epoch {
		h.t.Fatalf("%d: %s of epoch %d counted after one of epoch %d", c.Seq, e.Kind, e.Epoch, h.epoch)
	}
	h.epoch = e.Epoch
	if !events.Lookup(e.Kind).May(c.Writer) {
		h.t.Fatalf("%d: %s by %s counted", c.Seq, e.Kind, c.Writer)
	}
	if c.Writer == events.WriterHarness && e.Epoch == h.s.Epoch &&
		e.Source != events.HarnessSource(storyRef.Harness, h.s.Incarnation) {
		h.t.Fatalf("%d: %s of %s counted, the owner is %s", c.Seq, e.Kind, e.Source, h.s.Incarnation)
	}
	if before.Closed != nil {
		h.t.Fatalf("%d: %s counted in a closed session", c.Seq, e.Kind)
	}
}

// endings: an ending stands, there is one for each id, and what has ended is not open (V1).
func (h *replay) endings() {
	h.t.Helper()
	now := map[string]string{}
	for _, e := range h.s.Recent {
		key := e.Entity + " " + e.ID
		if _, twice := now[key]; twice {
			h.t.Fatalf("%d: %s has two endings", h.s.Seq, key)
		}
		now[key] = e.Outcome
	}
	for key, outcome := range h.ended {
		if now[key] != outcome {
			h.t.Fatalf("%d: %s ended as %s, now it says %q", h.s.Seq, key, outcome, now[key])
		}
	}
	h.ended = now
	for id := range h.s.Tools {
		h.mustBeOpen(session.EntityTool, id)
	}
	for id, p := range h.s.Prompts {
		if p.Status == session.Awaiting {
			h.mustBeOpen(session.EntityPrompt, id)
		} else if h.ended["prompt "+id] != string(p.Status) {
			h.t.Fatalf("prompt %s is %s and ended as %q", id, p.Status, h.ended["prompt "+id])
		}
	}
	if h.s.Turn != nil {
		h.mustBeOpen(session.EntityTurn, h.s.Turn.ID)
	}
	for _, m := range h.s.Queue {
		h.mustBeOpen(session.EntityMessage, m.ID)
	}
}

func (h *replay) mustBeOpen(entity, id string) {
	h.t.Helper()
	if outcome, ended := h.ended[entity+" "+id]; ended {
		h.t.Fatalf("%d: %s %s is open and ended as %s", h.s.Seq, entity, id, outcome)
	}
}

// pending: the list, the document, the entries of the view and a decoded document agree (P1).
func (h *replay) pending() {
	h.t.Helper()
	decoded, err := session.Decode(encoded(h.t, h.s))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, same := range []*session.State{decoded, h.s.Clone(), h.s.ViewClone()} {
		if changed := session.BlockersChanged(same, h.s); len(changed) > 0 || session.WorkChanged(same, h.s) {
			h.t.Fatalf("%d: nothing changed, and yet it is reported: %v", h.s.Seq, changed)
		}
	}
	var shown []string
	for _, id := range h.s.BlockerPrompts(time.Time{}) {
		b, err := h.s.Blocker(id, h.src)
		if err != nil || b == nil {
			h.t.Fatalf("prompt %s: %v %v", id, b, err)
		}
		if b.Status == session.Awaiting {
			shown = append(shown, id)
		}
	}
	if list := h.s.PendingPrompts(); !slices.Equal(list, shown) || !slices.Equal(list, decoded.PendingPrompts()) {
		h.t.Fatalf("%d: the list is %v, the view shows %v, the document %v", h.s.Seq, list, shown,
			decoded.PendingPrompts())
	}
}

// views are all entries of both views, as they are stored.
type views struct {
	blockers map[string]string
	open     map[string]bool // prompts that had an entry because they were in the document, not among the endings
	work     string
}

func (h *replay) render(s *session.State) *views {
	h.t.Helper()
	v := &views{blockers: map[string]string{}, open: map[string]bool{}}
	for _, id := range s.BlockerPrompts(time.Time{}) {
		b, err := s.Blocker(id, h.src)
		if err != nil {
			h.t.Fatal(err)
		}
		v.blockers[id], v.open[id] = h.text(b), s.Prompts[id] != nil
	}
	w, err := s.Work(h.src)
	if err != nil {
		h.t.Fatal(err)
	}
	if w != nil {
		// alone no difference
		w.Seq = 0
	}
	v.work = h.text(w)
	return v
}

func (h *replay) text(v any) string {
	body, err := session.EncodeView(v)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(body)
}

// changed: no entry that differs is missed, neither from this commit nor from the last time the views were written.
func (h *replay) changed(before *session.State) {
	h.t.Helper()
	old := h.render(before)
	h.missed(before, old)
	h.missed(before.ViewClone(), old)
	if h.older == nil {
		h.older, h.olderViews = before, old
	}
	if h.older != before && chance(h.t, "write views", 20) {
		h.missed(h.older, h.olderViews)
		h.older = nil
	}
	if changed := session.BlockersChanged(nil, h.s); len(changed) != len(h.s.BlockerPrompts(time.Time{})) {
		h.t.Fatalf("%d: of a session that was not known %v are reported", h.s.Seq, changed)
	}
}

func (h *replay) missed(before *session.State, old *views) {
	h.t.Helper()
	now := h.render(h.s)
	changed := session.BlockersChanged(before, h.s)
	for id, body := range now.blockers {
		if old.blockers[id] != body && !slices.Contains(changed, id) {
			h.t.Fatalf("%d: the entry of %s changed and was not reported:\n%s\n%s", h.s.Seq, id, old.blockers[id], body)
		}
	}
	for id := range old.open {
		if _, still := now.blockers[id]; !still && old.open[id] && !slices.Contains(changed, id) {
			h.t.Fatalf("%d: the entry of %s went and was not reported", h.s.Seq, id)
		}
	}
	if old.work != now.work && !session.WorkChanged(before, h.s) {
		h.t.Fatalf("%d: the work changed and was not reported:\n%s\n%s", h.s.Seq, old.work, now.work)
	}
}
