package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// fold takes a commit in, and notes what is to be seen of that.
func (w *world) fold(c *events.Commit, body string) {
	w.t.Helper()
	c.Events, c.Err = events.DecodeBatch(c.Ref, []byte(body))
	w.log, w.bodies = append(w.log, c), append(w.bodies, body)
	before := w.s.Ignored.Count
	res := w.s.Fold(c)
	if !res.Folded {
		w.t.Errorf("commit %d was not folded", c.Seq)
	}
	if res.Gap {
		w.parked = append(w.parked, fmt.Sprintf("%d: gap, its writer had seen %d", c.Seq, c.Guard))
	}
	for _, p := range res.Parked {
		w.parked = append(w.parked, fmt.Sprintf("%d[%d] %s: %v", c.Seq, p.Index, p.Why, p.Err))
	}
	for _, e := range res.Feed {
		said := ""
		if e.Derived {
			data, err := json.Marshal(e.Fact)
			if err != nil {
				w.t.Fatal(err)
			}
			said = " derived " + string(data)
		}
		w.feed = append(w.feed, fmt.Sprintf("%d %s %s%s", c.Seq, e.Type()[len(events.TypePrefix):], e.Subject, said))
	}
	if n := w.s.Ignored.Count - before; n > 0 {
		last := w.s.Ignored.Last
		w.ignored = append(w.ignored, fmt.Sprintf("%d: %d, the last %s by %s: %s", c.Seq, n, strings.TrimPrefix(last.Type, events.TypePrefix), last.Writer, last.Why))
	}
}

// again delivers a commit once more.
func (w *world) again(seq uint64) {
	i := slices.IndexFunc(w.log, func(c *events.Commit) bool { return c.Seq == seq })
	if i < 0 {
		w.t.Fatalf("there is no commit %d to deliver again", seq)
	}
	if res := w.s.Fold(w.log[i]); res.Folded {
		w.t.Errorf("commit %d was folded twice", seq)
	}
}

// source finds commits for the views.
func (w *world) source(seq uint64) (*events.Commit, error) {
	for _, c := range w.log {
		if c.Seq == seq {
			return c, nil
		}
	}
	return nil, fmt.Errorf("commit %d is not there", seq)
}

// wish decides on what a person asks, and appends what that calls for.
func (w *world) wish(line string) {
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	verb, body, _ := strings.Cut(line, " ")
	by, d, err := w.decide(verb, []byte(body))
	var refusal *events.Refusal
	switch {
	case errors.As(err, &refusal):
		w.refusals = append(w.refusals, tellRefusal(refusal)...)
	case err != nil:
		w.t.Fatalf("%s: %v", line, err)
	case len(d.Facts) == 0:
		w.replies = append(w.replies, fmt.Sprintf("%s: nothing to append, see %d", verb, d.Seq))
	default:
		w.append(by, d.Facts)
		w.replies = append(w.replies, fmt.Sprintf("%s: appended as %d", verb, w.s.Seq))
	}
}

func (w *world) decide(verb string, body []byte) (by events.Writer, d session.Decision, err error) {
	read := func(v any) {
		if err := json.Unmarshal(body, v); err != nil {
			w.t.Fatalf("%s %s: %v", verb, body, err)
		}
	}
	by = events.WriterLedger
	switch verb {
	case "answer":
		var v session.AnswerWish
		read(&v)
		d, err = w.s.Answer(v, w.source)
	case "reject":
		var v session.RejectWish
		read(&v)
		d, err = w.s.Reject(v, w.source)
	case "dismiss":
		var v session.DismissWish
		read(&v)
		d, err = w.s.Dismiss(v, w.source)
	case "stop":
		var v session.StopWish
		read(&v)
		d, err = w.s.Stop(v)
	case "close":
		var v session.CloseWish
		read(&v)
		d, err = w.s.Close(v)
	case "configure":
		var v session.ConfigureWish
		read(&v)
		d, err = w.s.Configure(v)
	case "settle", "continue":
		var v struct{ Prompt, OfTurn, Text string }
		read(&v)
		return events.WriterReconciler, session.Decision{Facts: w.recover(verb, v.Prompt, v.OfTurn)}, nil
	default:
		w.t.Fatalf("no such wish: %s", verb)
	}
	return by, d, err
}

// recover is what recovery makes of a decided prompt, or of a settled child.
func (w *world) recover(verb, prompt, ofTurn string) []events.Fact {
	if verb == "continue" {
		return []events.Fact{w.s.Continue(prompt, ofTurn, "")}
	}
	b, err := w.s.Blocker(prompt, w.source)
	if err != nil || b == nil {
		w.t.Fatalf("prompt %s: %v", prompt, err)
	}
	return w.s.Settlement(prompt, b.Status, b.Questions, b.Answers, b.Reason)
}

// append is a commit of a service.
func (w *world) append(by events.Writer, facts []events.Fact) {
	w.now = w.now.Add(time.Second)
	c := &events.Commit{Ref: storyRef, Writer: by, Seq: w.s.Seq + 1, Guard: w.s.Seq, Guarded: true, At: w.now}
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(fmt.Sprintf("e%d-%d", c.Seq, i), events.ServiceSource(string(by), "a"), storyRef, w.s.Epoch, w.now, f)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		w.t.Fatalf("what a wish called for cannot travel: %v", err)
	}
	for i := range evs {
		data, err := session.EncodeView(evs[i].Fact)
		if err != nil {
			w.t.Fatal(err)
		}
		w.appended = append(w.appended, fmt.Sprintf("%d %s %s", c.Seq, evs[i].Kind, data))
	}
	w.fold(c, string(body))
}

func tellRefusal(r *events.Refusal) []string {
	lines := []string{fmt.Sprint(r.Code)}
	if s := r.Stands; s != nil {
		lines[0] += " " + orElse(s.Status, "?") + " " + orElse(s.Reason, "-")
	}
	lines = append(lines, "  "+r.Message)
	lines = append(lines, "  "+shortTimes(string(r.Body())))
	return lines
}

// show is what a section of this name says now.
func (w *world) show(name string, args []string) []string {
	switch name {
	case "state":
		return w.fields(w.s, args)
	case "blocker":
		b, err := w.s.Blocker(args[0], w.source)
		if err != nil {
			w.t.Fatal(err)
		}
		return w.fields(b, args[1:])
	case "work":
		v, err := w.s.Work(w.source)
		if err != nil {
			w.t.Fatal(err)
		}
		return w.fields(v, args)
	case "pending":
		return take(ptr(w.s.PendingPrompts()))
	case "endings":
		return w.endings(args)
	case "keys":
		return w.keys()
	case "changed":
		prompts, work := session.BlockersChanged(w.shown, w.s), session.WorkChanged(w.shown, w.s)
		w.shown = w.s.Clone()
		return []string{fmt.Sprintf("blockers %v, work %v", prompts, work)}
	case "claimable":
		lines := make([]string, len(args))
		for i, incarnation := range args {
			lines[i] = fmt.Sprintf("%s %v", incarnation, w.s.Claimable(incarnation))
		}
		return lines
	}
	seen := map[string]*[]string{"feed": &w.feed, "ignored": &w.ignored, "parked": &w.parked, "reply": &w.replies, "refusal": &w.refusals}[name]
	if seen == nil {
		w.t.Fatalf("no such section: %s", name)
	}
	return take(seen)
}

func ptr[T any](v T) *T { return &v }

func (w *world) keys() []string {
	lines := []string{events.SessionKey(w.s.Ref())}
	for _, id := range w.s.BlockerPrompts(time.Time{}) {
		lines = append(lines, w.s.BlockerKey(id))
	}
	if w.s.HasWork() {
		lines = append(lines, events.WorkKey(w.s.Ref()))
	}
	return lines
}

// endings are what ended, oldest first; of one entity, if one is named.
func (w *world) endings(args []string) []string {
	var lines []string
	for _, e := range w.s.Recent {
		if len(args) > 0 && !slices.Contains(args, e.Entity) {
			continue
		}
		line := fmt.Sprintf("%d %s %s %s", e.Seq, e.Entity, e.ID, e.Outcome)
		if e.Reason != "" {
			line += " (" + e.Reason + ")"
		}
		if !e.DeliveredAt.IsZero() {
			line += " delivered " + shortTime(e.DeliveredAt)
		}
		if e.Late != nil {
			line += fmt.Sprintf(" late %d", e.Late.Seq)
		}
		lines = append(lines, line)
	}
	return take(&lines)
}

func shortTime(at time.Time) string {
	return "@" + strconv.FormatFloat(at.Sub(storyBegin).Seconds(), 'f', -1, 64) + "s"
}

var instantRE = regexp.MustCompile(`"(2026-01-[0-9T:.]+Z)"`)

func shortTimes(text string) string {
	return instantRE.ReplaceAllStringFunc(text, func(quoted string) string {
		at, err := time.Parse(time.RFC3339Nano, strings.Trim(quoted, `"`))
		if err != nil {
			return quoted
		}
		return shortTime(at)
	})
}

// fields are the fields of a document or view, one a line; those that are named, if any are.
func (w *world) fields(v any, names []string) []string {
	body, err := session.EncodeView(v)
	if err != nil {
		w.t.Fatal(err)
	}
	if string(body) == "null" {
		return []string{"(none)"}
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		w.t.Fatal(err)
	}
	if len(names) == 0 {
		names = order(body)
	}
	var lines []string
	for _, name := range names {
		lines = append(lines, name+": "+shortTimes(orElse(string(all[name]), "(nothing)")))
	}
	return lines
}

// order is the names of an object's fields as they were written.
func order(body []byte) []string {
	var names []string
	dec := json.NewDecoder(bytes.NewReader(body))
	for depth := 0; ; {
		tok, err := dec.Token()
		if err != nil {
			return names
		}
		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if depth == 1 {
				names = append(names, v)
				var skip json.RawMessage
				if dec.Decode(&skip) != nil {
					return names
				}
			}
		}
	}
}

// check holds for every story: the state is all there is, a redelivery changes nothing, and what waits for people is the
// same wherever one looks.
func (w *world) check() {
	w.t.Helper()
	if len(w.ignored)+len(w.parked)+len(w.refusals) > 0 {
		w.t.Errorf("the story does not show: %q", slices.Concat(w.ignored, w.parked, w.refusals))
	}
	want := mustEncode(w.t, w.s)
	s := session.New(storyRef)
	for i, c := range w.log {
		s.Fold(c)
		again, err := session.Decode(mustEncode(w.t, s))
		if err != nil {
			w.t.Fatalf("after commit %d: %v", c.Seq, err)
		}
		s = again
		for _, old := range w.log[:i+1] {
			if s.Fold(old).Folded {
				w.t.Errorf("commit %d was folded twice", old.Seq)
			}
		}
		w.samePending(s)
	}
	if got := mustEncode(w.t, s); !bytes.Equal(got, want) {
		w.t.Errorf("folded on from documents\n%s\nfolded at once\n%s", got, want)
	}
}

// samePending: the list, the document and the entries of the people's view agree (P1).
func (w *world) samePending(s *session.State) {
	w.t.Helper()
	var shown []string
	for _, id := range s.BlockerPrompts(time.Time{}) {
		b, err := s.Blocker(id, w.source)
		if err != nil || b == nil {
			w.t.Fatalf("prompt %s at %d: %v %v", id, s.Seq, b, err)
		}
		if b.Status == session.Awaiting {
			shown = append(shown, id)
		}
	}
	if list := s.PendingPrompts(); !slices.Equal(list, shown) {
		w.t.Errorf("at %d the list is %v, the view shows %v", s.Seq, list, shown)
	}
}

func mustEncode(t rapid.TB, s *session.State) []byte {
	t.Helper()
	doc, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
