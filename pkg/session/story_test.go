package session_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "write the output sections of the stories in testdata again")

// storyRef and storyBegin are the session and the first instant of a story.
var (
	storyRef   = events.Ref{Harness: story.Harness, Session: story.Main}
	storyBegin = story.Began()
)

// TestStories runs the stories in testdata: what the fold makes of a log, and of the requests of people.
func TestStories(t *testing.T) { story.Run(t, *update, requests) }

// requests adds the requests of people to the grammar, and two verbs for what recovery appends: settle, what follows
// from a decided prompt, and continue.
func requests(y *story.Story) story.Service {
	verbs := map[string]func(*session.State, []byte) (story.Outcome, error){
		"answer": verb(func(s *session.State, r request.Answer) (session.Decision, error) {
			return s.Answer(r, y.Source)
		}),
		"reject": verb(func(s *session.State, r request.Reject) (session.Decision, error) {
			return s.Reject(r, y.Source)
		}),
		"dismiss": verb(func(s *session.State, r request.Dismiss) (session.Decision, error) {
			return s.Dismiss(r, y.Source)
		}),
		"stop":      verb((*session.State).Stop),
		"close":     verb((*session.State).Close),
		"configure": verb((*session.State).Configure),
		"settle": recovery(func(s *session.State, r recovered) ([]events.Fact, error) {
			b, err := s.Blocker(r.Prompt, y.Source)
			if err != nil || b == nil {
				return nil, fmt.Errorf("prompt %s: %v", r.Prompt, err)
			}
			return s.Settlement(r.Prompt, b.Status, b.Questions, b.Answers, b.Reason), nil
		}),
		"continue": recovery(func(s *session.State, r recovered) ([]events.Fact, error) {
			return []events.Fact{s.Continue(r.Prompt, r.OfTurn, "")}, nil
		}),
	}
	return story.Service{Writer: events.WriterLedger, Requests: verbs}
}

// verb returns a verb of the story grammar for a decision about a request of type R.
func verb[R any](decide func(*session.State, R) (session.Decision, error)) func(*session.State, []byte) (
	story.Outcome, error) {
	return func(s *session.State, body []byte) (story.Outcome, error) {
		var r R
		if err := json.Unmarshal(body, &r); err != nil {
			return story.Outcome{}, err
		}
		d, err := decide(s, r)
		return story.Outcome{Facts: d.Facts, Seq: d.Seq}, err
	}
}

// recovered is the body of settle and continue.
type recovered struct{ Prompt, OfTurn string }

func recovery(facts func(*session.State, recovered) ([]events.Fact, error)) func(*session.State, []byte) (
	story.Outcome, error) {
	return func(s *session.State, body []byte) (story.Outcome, error) {
		var r recovered
		if err := json.Unmarshal(body, &r); err != nil {
			return story.Outcome{}, err
		}
		f, err := facts(s, r)
		return story.Outcome{Facts: f, Writer: events.WriterReconciler}, err
	}
}

// encoded returns a session's document.
func encoded(t rapid.TB, s *session.State) []byte {
	t.Helper()
	doc, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
