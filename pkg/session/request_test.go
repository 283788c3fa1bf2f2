package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

func isRefusal(err error) bool {
	var r *events.Refusal
	return errors.As(err, &r)
}

// TestRequests: what a wish calls for is lawful in the state it was decided on, and what has come true is not asked for
// again.
func TestRequests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := history(t, "")
		s := session.New(storyRef)
		for _, c := range log {
			s.Fold(c)
		}
		verb := oneOf(t, "wish", "answer", "answer", "reject", "dismiss", "stop", "close", "configure")
		prompt := openPrompt(t, s)
		decide := func() (session.Decision, error) { return decideOn(s, verb, prompt, sourceOf(log)) }
		d, err := decide()
		switch {
		case err != nil:
			if !isRefusal(err) {
				t.Fatalf("%s: %v", verb, err)
			}
			return
		case len(d.Facts) == 0:
			if d.Seq > s.Seq || d.Seq == 0 {
				t.Fatalf("%s: came true at %d, the session is at %d", verb, d.Seq, s.Seq)
			}
			return
		}
		before := s.Clone()
		c := commitOf(t, s, events.WriterLedger, d.Facts)
		log = append(log, c)
		res := s.Fold(c)
		if s.Ignored.Count > before.Ignored.Count || len(res.Parked) > 0 {
			t.Fatalf("%s called for what does not count: %+v %v\n%s\n%+v", verb, s.Ignored.Last, res.Parked,
				encoded(t, before), d.Facts)
		}
		if again, err := decide(); verb != "configure" && (err != nil || len(again.Facts) > 0) {
			t.Fatalf("%s again: %+v %v", verb, again.Facts, err)
		}
		for _, f := range d.Facts {
			if req, ok := f.(events.TurnRequested); ok && s.BlockedBy() != "" {
				t.Fatalf("%s: %s continues while %s blocks", verb, req.Turn, s.BlockedBy())
			}
		}
	})
}

func decideOn(s *session.State, verb, prompt string, src session.Source) (session.Decision, error) {
	switch verb {
	case "answer":
		return s.Answer(request.Answer{Prompt: prompt, By: "ada",
			Answers: []events.Answer{{Question: "q", Text: " x "}}}, src)
	case "reject":
		return s.Reject(request.Reject{Prompt: prompt, By: "ada", Text: "no"}, src)
	case "dismiss":
		return s.Dismiss(request.Dismiss{Prompt: prompt, By: "ada"}, src)
	case "stop":
		return s.Stop(request.Stop{By: "ada"})
	case "close":
		return s.Close(request.Close{By: "ada"})
	default:
		return s.Configure(request.Configure{By: "ada", ProviderChanged: true})
	}
}

func commitOf(t *rapid.T, s *session.State, by events.Writer, facts []events.Fact) *events.Commit {
	c := &events.Commit{Ref: storyRef, Writer: by, Seq: s.Seq + 1, Guard: s.Seq, Guarded: true,
		At: s.UpdatedAt.Add(time.Second)}
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(fmt.Sprintf("w%d", i), events.ServiceSource(string(by), "a"), storyRef, max(s.Epoch, 1),
			c.At, f)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		t.Fatalf("what a wish called for cannot travel: %v", err)
	}
	c.Events, c.Err = events.DecodeBatch(storyRef, body)
	return c
}

// TestRequestsRefused: each refusal has its code.
func TestRequestsRefused(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterHarness, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptPermission,
		Delivery: events.DeliverCallback})
	fresh := session.New(storyRef)
	long := strings.Repeat("x", events.QuestionsBytesMax+1)
	for name, c := range map[string]struct {
		code   int
		decide func() (session.Decision, error)
	}{
		"answer, no session": {http.StatusNotFound, func() (session.Decision,
			error) {
			return decideOn(fresh, "answer", "p1", f.src)
		}},
		"reject, no session": {http.StatusNotFound, func() (session.Decision,
			error) {
			return decideOn(fresh, "reject", "p1", f.src)
		}},
		"dismiss, no session": {http.StatusNotFound, func() (session.Decision,
			error) {
			return decideOn(fresh, "dismiss", "p1", f.src)
		}},
		"stop, no session": {http.StatusNotFound, func() (session.Decision,
			error) {
			return decideOn(fresh, "stop", "p1", f.src)
		}},
		"close, no session": {http.StatusNotFound, func() (session.Decision,
			error) {
			return decideOn(fresh, "close", "p1", f.src)
		}},
		"configure, no session": {http.StatusNotFound, func() (session.Decision,
			error) {
			return decideOn(fresh, "configure", "p1", f.src)
		}},
		"no prompt": {http.StatusNotFound, func() (session.Decision,
			error) {
			return decideOn(f.s, "reject", "p9", f.src)
		}},
		"not offered": {http.StatusUnprocessableEntity,
			func() (session.Decision, error) { return decideOn(f.s, "answer", "p1", f.src) }},
		"close, odd reason": {http.StatusBadRequest, func() (session.Decision,
			error) {
			return f.s.Close(request.Close{Reason: "bored"})
		}},
		"answer too long": {http.StatusRequestEntityTooLarge, func() (session.Decision, error) {
			return f.s.Answer(request.Answer{Prompt: "p1", Answers: []events.Answer{{Question: "permission",
				Text: long}}}, f.src)
		}},
		"rejection too long": {http.StatusRequestEntityTooLarge, func() (session.Decision, error) {
			return f.s.Reject(request.Reject{Prompt: "p1", Text: long}, f.src)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := c.decide()
			var r *events.Refusal
			if !errors.As(err, &r) || r.Code != c.code || len(d.Facts) > 0 {
				t.Fatalf("%v %v, want %d", d.Facts, err, c.code)
			}
			if strings.HasSuffix(name, "no session") && r.What != "session" {
				t.Errorf("%v is about a %s", err, r.What)
			}
		})
	}
}

// TestRequestsWithoutTheLog: a commit that cannot be read is an error, and no refusal.
func TestRequestsWithoutTheLog(t *testing.T) {
	f := newFeeder(t)
	ask := func(id string) events.Fact {
		return events.PromptRequested{Prompt: id, PromptKind: events.PromptQuestion, Delivery: events.DeliverCallback}
	}
	f.append(events.WriterHarness, ask("p1"), ask("p2"), ask("p3"))
	f.append(events.WriterLedger, events.PromptAnswered{Prompt: "p2", By: "ada"})
	f.append(events.WriterCompaction, events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"x"`)},
		events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.append(events.WriterHarness, events.PromptWithdrawn{Prompt: "p3", Reason: events.ReasonShutdown})
	gone := errors.New("purged")
	lost := func(seqs ...uint64) session.Source {
		return func(seq uint64) (*events.Commit, error) {
			for _, s := range seqs {
				if s == seq {
					return nil, gone
				}
			}
			return f.src(seq)
		}
	}
	for name, decide := range map[string]func() error{
		"answer":          func() error { _, err := decideOn(f.s, "answer", "p1", lost(2)); return err },
		"answer again":    func() error { _, err := decideOn(f.s, "answer", "p2", lost(2)); return err },
		"answer, settled": func() error { _, err := decideOn(f.s, "answer", "p2", lost(3)); return err },
		"blocker":         func() error { _, err := f.s.Blocker("p2", lost(3)); return err },
		"work, prompts":   func() error { _, err := f.s.Work(lost(3)); return err },
		"work, turn":      func() error { _, err := f.s.Work(lost(4)); return err },
	} {
		if err := decide(); !errors.Is(err, gone) || isRefusal(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := f.s.Blocker("p3", lost(5)); err != nil || b.Status != session.Withdrawn {
		t.Errorf("p3 was withdrawn without an answer, and yet: %v %v", b, err)
	}
}

// TestAnswerRequestUnreadable: what is no request at all fails, so that it can be refused as malformed.
func TestAnswerRequestUnreadable(t *testing.T) {
	for _, body := range []string{`[]`, `{"prompt":7}`} {
		var w request.Answer
		if err := json.Unmarshal([]byte(body), &w); err == nil {
			t.Errorf("%s was read as %+v", body, w)
		}
	}
}

// TestDeadlineIsOfTheCommitThatSetIt: a deadline that is repeated, because another process adopts the prompt, moves
// with the steps of the broker's clock since it was set; a new one does not.
func TestDeadlineIsOfTheCommitThatSetIt(t *testing.T) {
	f := newFeeder(t)
	first, second := storyBegin.Add(time.Hour), storyBegin.Add(2*time.Hour)
	ask := func(at time.Time) {
		f.append(events.WriterHarness, events.PromptRequested{Prompt: "p", PromptKind: events.PromptQuestion,
			Delivery: events.DeliverCallback, Deadline: at})
	}
	ask(first)
	steps := events.Steps{{Seq: f.s.Seq, ByMS: time.Minute.Milliseconds()}}
	for i, c := range []struct{ at, want time.Time }{{first, first.Add(time.Minute)}, {first, first.Add(time.Minute)},
		{second, second}, {second, second}, {first, first}} {
		ask(c.at)
		if got := f.s.Deadlines(steps); !got.Equal(c.want) {
			t.Errorf("request %d: %s, want %s", i, got.Sub(storyBegin), c.want.Sub(storyBegin))
		}
	}
}

// TestDeadlines: the next deadline is that of an awaiting prompt, the earliest.
func TestDeadlines(t *testing.T) {
	f := newFeeder(t)
	ask := func(id string, at time.Time) events.Fact {
		return events.PromptRequested{Prompt: id, PromptKind: events.PromptQuestion, Delivery: events.DeliverCallback,
			Deadline: at}
	}
	if next := f.s.Deadlines(nil); !next.IsZero() {
		t.Errorf("without prompts the next deadline is %s", next)
	}
	first, second, third := storyBegin.Add(time.Hour), storyBegin.Add(2*time.Hour), storyBegin.Add(3*time.Hour)
	f.append(events.WriterHarness, ask("p0", time.Time{}), ask("p1", third), ask("p2", first), ask("p3", second))
	if next := f.s.Deadlines(nil); !next.Equal(first) {
		t.Errorf("the next deadline is %s, want %s", next, first)
	}
	f.append(events.WriterLedger, events.PromptAnswered{Prompt: "p2", By: "ada"})
	if next := f.s.Deadlines(nil); !next.Equal(second) {
		t.Errorf("once the first is answered the next deadline is %s, want %s", next, second)
	}
}

// TestBlockedBy: of several prompts that block it is always the same one that is named.
func TestBlockedBy(t *testing.T) {
	s := session.New(storyRef)
	s.Prompts = map[string]*session.Prompt{"a": {Status: session.Answered, Blocking: true},
		"b": {Status: session.Awaiting}}
	if by := s.BlockedBy(); by != "" {
		t.Errorf("%s blocks", by)
	}
	for i := range 20 {
		s.Prompts[fmt.Sprintf("c%02d", i)] = &session.Prompt{Status: session.Awaiting, Blocking: true}
	}
	if by := s.BlockedBy(); by != "c00" {
		t.Errorf("%s is named", by)
	}
}
