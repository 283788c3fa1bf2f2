package reconciler

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "write the output sections of the stories in testdata again")

// began is the first instant of the tests in this package.
var began = story.Began()

// TestStories runs the stories in testdata. The input section "owner" says whether the owner of a session is alive,
// starting (and until when), or dead (and superseded by which incarnation).
func TestStories(t *testing.T) {
	story.Run(t, *update, func(y *story.Story) story.Service { return scriptOf(y, t).service() })
}

// script is a story with the owners of its sessions.
type script struct {
	*story.Story
	t      story.T
	owners map[string]Owner
}

func newScript(t story.T) *script {
	y := scriptOf(story.New(t), t)
	y.Use(y.service())
	return y
}

func scriptOf(y *story.Story, t story.T) *script {
	return &script{Story: y, t: t, owners: map[string]Owner{}}
}

// service adds the decisions of the reconciler to the grammar of stories.
func (y *script) service() story.Service {
	return story.Service{
		Writer:  events.WriterReconciler,
		Settles: true,
		Decide:  func(s *session.State, _ []string) story.Decision { return y.decision(s) },
		Inputs: map[string]func(string, []string, []string){
			"owner": func(name string, _, lines []string) { y.owner(name, lines[0]) },
		},
	}
}

func (y *script) decision(s *session.State) story.Decision {
	y.t.Helper()
	d, err := Decide(s, y.input(s.Ref().Session), y.Source)
	if err != nil {
		y.t.Fatalf("%v", err)
	}
	out := story.Decision{Facts: d.Facts}
	if !d.CheckAt.IsZero() {
		out.Notes = []string{"look " + story.Instant(d.CheckAt)}
	}
	return out
}

// input returns what the reconciler knows beside the session.
func (y *script) input(name string) Input {
	return Input{Now: y.Now, Owner: y.owners[name], Children: y.Children(name)}
}

// owner reads a line of the section "owner".
func (y *script) owner(name, line string) {
	y.t.Helper()
	word, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	o := Owner{}
	switch word {
	case "alive":
	case "dead":
		o = Owner{Liveness: Dead}
		if why, ok := strings.CutPrefix(arg, "because "); ok {
			o.Detail = why
		} else {
			o.SupersededBy = arg
		}
	case "starting":
		o.Liveness = Starting
		if arg != "" {
			o.CheckAt = y.Instant(arg)
		}
	default:
		y.t.Fatalf("an owner is alive, starting or dead, not %q", word)
	}
	y.owners[name] = o
}

// facts appends lines to a session as a section "facts" has them.
func (y *script) facts(name string, lines ...string) *session.State {
	y.t.Helper()
	y.Facts(name, lines...)
	return y.State(name)
}

// append appends a fact, which may be ignored, as many seconds after the beginning as there are commits.
func (y *script) append(name, kind, data string) {
	y.t.Helper()
	y.Append(name, began.Add(time.Duration(y.Last+1)*time.Second), "", kind, data)
}

// decide appends the decisions on all sessions, and returns them.
func (y *script) decide() string {
	y.t.Helper()
	return strings.Join(y.Decide(), "\n")
}
