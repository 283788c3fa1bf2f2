package retry

import (
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "write the output sections of the stories in testdata again")

// TestStories runs the stories in testdata. The input section "progress" has the instant of the last progress ping,
// "jitter" the jitter. In "repeat n" the turn is retried n times, and fails each time with the kind in the section.
func TestStories(t *testing.T) {
	story.Run(t, *update, func(y *story.Story) story.Service { return scriptOf(y, t).service() })
}

// script is a story of one session with what retry knows beside it.
type script struct {
	*story.Story
	t  story.T
	s  *session.State
	in Input
}

func newScript(t story.T) *script {
	y := scriptOf(story.New(t), t)
	y.Use(y.service())
	return y
}

func scriptOf(y *story.Story, t story.T) *script {
	return &script{Story: y, t: t, s: y.State(story.Main)}
}

var requests = map[string]func(*session.State) (session.Decision, error){"now": Now, "cancel": Cancel, "resume": Resume}

// service adds the decisions and requests of retry to the grammar of stories.
func (y *script) service() story.Service {
	verbs := map[string]func(*session.State, []byte) (story.Outcome, error){}
	for verb, decide := range requests {
		verbs[verb] = func(s *session.State, body []byte) (story.Outcome, error) {
			var r struct{ By string }
			if err := json.Unmarshal(body, &r); err != nil {
				return story.Outcome{}, err
			}
			d, err := decide(s)
			return story.Outcome{Facts: d.Facts, Seq: d.Seq, Source: events.PersonSource(r.By)}, err
		}
	}
	return story.Service{
		Writer:   events.WriterRetry,
		Decide:   func(s *session.State, _ []string) story.Decision { return y.decision(s) },
		Requests: verbs,
		Inputs: map[string]func(string, []string, []string){
			"progress": func(_ string, _, lines []string) { y.in.Progress = y.Instant(lines[0]) },
			"jitter":   func(_ string, _, lines []string) { y.in.Jitter = y.float(lines[0]) },
			"repeat":   func(_ string, args, lines []string) { y.repeat(args, lines[0]) },
		},
	}
}

func (y *script) decision(s *session.State) story.Decision {
	in := y.in
	in.Now = y.Now
	d := Decide(s, in)
	out := story.Decision{Facts: d.Facts}
	switch {
	case d.Watch:
		out.Notes = []string{"watch " + story.Instant(d.CheckAt)}
	case !d.CheckAt.IsZero():
		out.Notes = []string{"look " + story.Instant(d.CheckAt)}
	}
	return out
}

func (y *script) float(s string) float64 {
	y.t.Helper()
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		y.t.Fatalf("%v", err)
	}
	return n
}

// repeat lets the turn fail several times, with one kind of error.
func (y *script) repeat(args []string, kind string) {
	y.t.Helper()
	n, err := strconv.Atoi(strings.Join(args, " "))
	if err != nil {
		y.t.Fatalf("the section \"repeat\" needs a number: %v", err)
	}
	for range n {
		y.Decide()
		y.Now = y.s.Retry.DueAt
		y.Decide()
		if y.s.Pending.Turn == nil {
			y.t.Fatalf("not retried: %s", story.Summary(y.s))
		}
		at := story.Instant(y.Now)
		y.facts(fmt.Sprintf(`%d %s turn.started {"turn":"$requested"}`, y.s.Seq+1, at))
		y.facts(fmt.Sprintf(`%d %s turn.failed {"turn":"$turn","error":{"kind":%q,"text":"x"},"had_output":false}`,
			y.s.Seq+1, at, kind))
	}
}

// facts appends lines as a section "facts" has them.
func (y *script) facts(lines ...string) {
	y.t.Helper()
	y.Facts(story.Main, lines...)
}

// append appends a fact, which may be ignored, at the clock.
func (y *script) append(w events.Writer, kind, data string) {
	y.t.Helper()
	y.Append(story.Main, y.Now, w, kind, data)
}

// commit appends a decision of the service.
func (y *script) commit(source string, facts ...events.Fact) {
	y.t.Helper()
	y.Commit(story.Main, events.WriterRetry, source, facts...)
}
