package story_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// recorder is a test that notes its failures. Fatalf ends it by a panic.
type recorder struct{ failures []string }

type ended struct{}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(ended{})
}

// runStory runs a story with a service, and returns its output and its failures.
func runStory(text string, s story.Service) (output, failures string) {
	r := &recorder{}
	defer func() {
		if p := recover(); p != nil && p != any(ended{}) {
			panic(p)
		}
		failures = strings.Join(r.failures, "\n")
	}()
	y := story.New(r)
	y.Use(s)
	return y.Run(text), ""
}

const opening = `A story (P1).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
`

// stopper is a service that stops the open turn, and stops it again at each decision if it does not look.
func stopper(checks bool) story.Service {
	request := func(s *session.State) []events.Fact {
		if s.Turn == nil || checks && s.Pending.Stop != nil {
			return nil
		}
		return []events.Fact{events.TurnStopRequested{Turn: s.Turn.ID, Actor: events.ActorPerson, By: "ada"}}
	}
	return story.Service{
		Writer: events.WriterLedger, Settles: true,
		Decide: func(s *session.State, _ []string) story.Decision { return story.Decision{Facts: request(s)} },
		Requests: map[string]func(*session.State, []byte) (story.Outcome, error){
			"stop": func(s *session.State, _ []byte) (story.Outcome, error) {
				if s.Pending.Stop != nil {
					return story.Outcome{}, &events.Refusal{Code: 409, Message: "it stops already"}
				}
				return story.Outcome{Facts: request(s)}, nil
			},
		},
	}
}

// TestOutput: output sections have what the code does, and everything else stays as it is written.
func TestOutput(t *testing.T) {
	text := opening + `3 @90s late turn.completed {"turn":"t0"}
-- state --
outdated
-- request @2m0s --
stop {"by":"ada"}
-- result --
-- request --
stop {}
-- result --
-- decide --
-- facts --
5 turn.stopped {"turn":"$turn","actor":"person"}
-- state last_turn --
-- pending --
-- feed --
`
	want := opening + `3 @90s late turn.completed {"turn":"t0"}
-- state --
running owned-by=17 turn=t1,message
-- request @2m0s --
stop {"by":"ada"}
-- result --
4 turn.stop_requested {"turn":"t1","actor":"person","by":"ada"}
-- request --
stop {}
-- result --
409 it stops already
  {"reason":"it stops already"}
-- decide --
(none)
-- facts --
5 turn.stopped {"turn":"$turn","actor":"person"}
-- state last_turn --
last_turn: {"id":"t1","outcome":"stopped","at":"@120s","cause":"message","attempt":1,` +
		`"synthetic":false,"had_output":false,"actor":"person","seq":5}
-- pending --
(none)
-- feed --
1 session.opened s
2 turn.started t1
4 turn.stop_requested t1
5 turn.stopped t1
`
	got, failures := runStory(text, stopper(true))
	if failures != "" {
		t.Fatal(failures)
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again, _ := runStory(got, stopper(true)); again != got {
		t.Errorf("the second run has another output:\n%s", again)
	}
}

// TestMistakes: a story that has a mistake fails with a message that names it.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no opening":          {"-- facts --\n", "a story opens with a sentence"},
		"no such section":     {opening + "-- fact --\n", `no such section: "fact"`},
		"no seq":              {opening + "-- facts --\nturn.completed {}\n", `"turn.completed" is no seq`},
		"no instant":          {opening + "-- decide @soon --\n", `"@soon" is no instant`},
		"no such id":          {opening + `3 turn.started {"turn":"$requested"}`, "there is no $requested"},
		"ignored":             {opening + "3 turn.completed {\"turn\":\"t0\"}\n", "does not show what was ignored"},
		"not late":            {opening + `3 late turn.completed {"turn":"t1"}`, "1 lines are late"},
		"parked before":       {opening + "3 turn.completed 5\n4 late turn.completed {}\n", "cannot unmarshal number"},
		"parked":              {opening + "3 turn.completed 5\n", "does not show what was ignored or parked"},
		"folded already":      {opening + "-- facts --\n2 session.released {}\n", "commit 2 was not folded"},
		"again, of nothing":   {opening + "again 7\n", "there is no commit 7"},
		"no such request":     {opening + "-- request --\nstart {}\n-- result --\n", "no such request: start"},
		"decides again":       {opening + "-- decide --\n", "a second decision has facts"},
		"request, then again": {opening + "-- request --\nstop {}\n-- result --\n", "a second decision has facts"},
		"of no prompt":        {opening + "-- blocker --\n", "needs the id of a prompt"},
	} {
		if _, failures := runStory(c.text, stopper(false)); !strings.Contains(failures, c.want) {
			t.Errorf("%s: %q, want %q", name, failures, c.want)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"no result":    {opening + "-- request --\nstop {}\n", "does not show the result"},
		"result after": {opening + "-- request --\nstop {}\n-- state --\n", `the section after a request is "result"`},
	} {
		if _, failures := runStory(c.text, stopper(true)); !strings.Contains(failures, c.want) {
			t.Errorf("%s: %q, want %q", name, failures, c.want)
		}
	}
	if _, failures := runStory(opening+"-- decide --\n", story.Service{}); !strings.Contains(failures,
		"decides nothing") {
		t.Errorf("a package without decisions: %q", failures)
	}
}

// TestInstants: an instant may be written in any unit, also where no second follows.
func TestInstants(t *testing.T) {
	for written, want := range map[string]string{
		`{"at":"@9s"}`:       `{"at":"2026-01-01T00:00:09Z"}`,
		`{"at":"@1h"}`:       `{"at":"2026-01-01T01:00:00Z"}`,
		`{"at":"@5m"}`:       `{"at":"2026-01-01T00:05:00Z"}`,
		`{"at":"@1h30m"}`:    `{"at":"2026-01-01T01:30:00Z"}`,
		`{"at":"@-0.5s"}`:    `{"at":"2025-12-31T23:59:59.5Z"}`,
		`{"text":"@2later"}`: `{"text":"@2later"}`,
	} {
		got, _ := story.Resolve(session.New(events.Ref{Harness: "h", Session: "s"}), written)
		if got != want {
			t.Errorf("%s: got %s, want %s", written, got, want)
		}
	}
}

// TestDecidedTwice: a decision that depends on more than its arguments fails the story.
func TestDecidedTwice(t *testing.T) {
	n := 0
	s := story.Service{Decide: func(*session.State, []string) story.Decision {
		n++
		return story.Decision{Notes: []string{fmt.Sprint("look ", n)}}
	}}
	if _, failures := runStory(opening+"-- decide --\n", s); !strings.Contains(failures, "and then") {
		t.Errorf("failures: %q", failures)
	}
}
