package compaction

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "write the output sections of the stories in testdata again")

// TestStories runs the stories in testdata. The input section "progress" has the instant of the last progress ping;
// "decide idle" decides on a session that the service watches for idleness.
func TestStories(t *testing.T) { story.Run(t, *update, grammar) }

// grammar adds the decisions and requests of the service to the grammar of stories.
func grammar(y *story.Story) story.Service {
	progress := story.Began()
	return story.Service{
		Writer:  events.WriterCompaction,
		Settles: true,
		Decide: func(s *session.State, args []string) story.Decision {
			d := Decide(s, Input{Now: y.Now, Progress: progress, Idle: len(args) > 0 && args[0] == "idle"})
			return story.Decision{Facts: d.Facts, Notes: notes(d)}
		},
		Requests: map[string]func(*session.State, []byte) (story.Outcome, error){
			"send": verb(y, func(s *session.State, r request.Send, now time.Time) (session.Decision, error) {
				return Send(s, r, now, y.Source)
			}),
			"withdraw": verb(y, Withdraw),
			"compact":  verb(y, Compact),
			"check": func(s *session.State, body []byte) (story.Outcome, error) {
				var r request.Check
				if err := json.Unmarshal(body, &r); err != nil {
					return story.Outcome{}, err
				}
				reply, err := Check(s, r, y.Now)
				return story.Outcome{Reply: reply}, err
			},
		},
		Inputs: map[string]func(string, []string, []string){
			"progress": func(_ string, _, lines []string) { progress = y.Instant(lines[0]) },
		},
	}
}

// notes returns what a decision says beside its facts.
func notes(d Decision) []string {
	var notes []string
	switch {
	case d.Watch:
		notes = append(notes, "watch "+story.Instant(d.CheckAt))
	case !d.CheckAt.IsZero():
		notes = append(notes, "look "+story.Instant(d.CheckAt))
	}
	if !d.Idle.IsZero() {
		notes = append(notes, "idle since "+story.Instant(d.Idle))
	}
	return notes
}

// verb returns a verb of the story grammar for a decision about a request of type R.
func verb[R any](y *story.Story, decide func(*session.State, R, time.Time) (session.Decision, error)) func(
	*session.State, []byte) (story.Outcome, error) {
	return func(s *session.State, body []byte) (story.Outcome, error) {
		var r R
		if err := json.Unmarshal(body, &r); err != nil {
			return story.Outcome{}, err
		}
		o, err := decide(s, r, y.Now)
		var who struct{ By string }
		if err := json.Unmarshal(body, &who); err != nil {
			return story.Outcome{}, err
		}
		author := func(f events.Fact) string {
			if OfPerson(f) {
				return events.PersonSource(who.By)
			}
			return events.ServiceSource(Name, "x")
		}
		return story.Outcome{Facts: o.Facts, Seq: o.Seq, Author: author}, err
	}
}

// script is a story of one session, for tests that build it line by line.
type script struct {
	*story.Story
	t story.T
	s *session.State
}

func newScript(t story.T) *script {
	y := story.New(t)
	y.Use(grammar(y))
	return &script{Story: y, t: t, s: y.State(story.Main)}
}

// facts appends lines as a section "facts" has them.
func (y *script) facts(lines ...string) {
	y.t.Helper()
	y.Facts(story.Main, lines...)
}

// append appends a fact, which may be ignored, at the clock. It reports whether the fact counts.
func (y *script) append(w events.Writer, kind, data string) bool {
	y.t.Helper()
	return y.Append(story.Main, y.Now, w, kind, data)
}

// commit appends a decision of the service.
func (y *script) commit(facts ...events.Fact) {
	y.t.Helper()
	y.Commit(story.Main, events.WriterCompaction, events.ServiceSource(Name, "x"), facts...)
}
