// Package story runs stories: text files that show what happens to sessions, as tests.
//
// A story opens with the reason why it exists. Sections follow. The input sections append events to the log, set
// the clock or send a request. The output sections show what is seen at that place: they are compared with what the
// code does, and written again with -update. docs/stories.md describes the grammar.
//
// The package knows the log and the documents. A decider adds its decision, its requests and its inputs ([Service]).
package story

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Began returns the instant at which every story begins.
func Began() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// Names of the harness, and of the session that a section without a name is about.
const (
	Harness = "h"
	Main    = "s"
)

const fileMode = 0o644

// T is a test, or one run of a property.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Service is what a package adds to the grammar. All its fields are optional.
type Service struct {
	// Writer appends the decisions and what requests call for. Required with Decide or Requests.
	Writer events.Writer

	// Decide decides on a session at the story's clock. The arguments are those of the section.
	Decide func(s *session.State, args []string) Decision

	// Settles says that a second decision at the same instant, or one after a request, has no facts.
	Settles bool

	// Requests are the verbs of requests. The body is JSON.
	Requests map[string]func(s *session.State, body []byte) (Outcome, error)

	// Inputs are further input sections. They are about a session, with the lines of the section.
	Inputs map[string]func(name string, args, lines []string)
}

// Decision is a decision of a service.
type Decision struct {
	Facts []events.Fact
	Notes []string // lines that are shown beside the facts, such as "look @9s"
}

// Outcome is what a request calls for: facts, or nothing to append and the seq of the commit to read, or a reply.
type Outcome struct {
	Facts  []events.Fact
	Seq    uint64
	Reply  any           // shown as JSON in place of all else
	Writer events.Writer // "": the service
	Source string        // "": the writer
	// Author returns the source of a fact. Nil: Source.
	Author func(events.Fact) string
}

// Story is the sessions of a story, their logs and the clock.
type Story struct {
	// Now is the clock. It begins at [Began]. A commit with a later instant moves it, and a section with an instant
	// sets it.
	Now time.Time

	// Last is the highest seq.
	Last uint64

	// Log has the commits by seq. A seq is used once in a story, whatever the session.
	Log map[uint64]*events.Commit

	t        T
	service  Service
	sessions map[string]*session.State
	names    []string
	order    []*events.Commit
	bodies   []string // of the commits in order, as they travelled
	many     bool     // the story has several sessions: lines begin with a name

	feed, ignored, parked []string
	results               []string       // of the last section "request"
	unread                bool           // the results are not shown yet
	shown                 *session.State // at the last section "changed"
}

// New returns a story without events.
func New(t T) *Story {
	return &Story{
		t: t, Now: Began(), Log: map[uint64]*events.Commit{}, sessions: map[string]*session.State{},
		shown: session.New(events.Ref{Harness: Harness, Session: Main}),
	}
}

// Use sets what a package adds to the grammar.
func (y *Story) Use(s Service) { y.service = s }

// Run runs each story of the folder testdata as a subtest. With update it writes the output sections again.
func Run(t *testing.T, update bool, of func(*Story) Service) {
	t.Helper()
	for _, file := range Files(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".story"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			y := New(t)
			y.Use(of(y))
			got := []byte(y.Run(string(want)))
			switch {
			case t.Failed(), slices.Equal(got, want):
			case update:
				if err := os.WriteFile(file, got, fileMode); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("the output is different (run the test with -update and read the diff):\n%s",
					diff.Diff(file, want, "actual", got))
			}
		})
	}
}

// Files returns the paths of the stories in the folder testdata.
func Files(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in testdata: %v", err)
	}
	return files
}

// Run runs the text of a story and returns it with the actual output. Then it makes the checks that hold for every
// story.
func (y *Story) Run(text string) string {
	y.t.Helper()
	archive := txtar.Parse([]byte(text))
	if strings.TrimSpace(string(archive.Comment)) == "" {
		y.t.Fatalf("a story opens with a sentence: why it exists, and the ids of the behaviours that it shows")
	}
	for _, f := range archive.Files {
		if words := strings.Fields(f.Name); words[0] == "facts" {
			name, _, _ := header(words[1:])
			y.many = y.many || name != Main
		}
	}
	for i := range archive.Files {
		f := &archive.Files[i]
		if lines, shows := y.section(strings.Fields(f.Name), lines(f.Data)); shows {
			f.Data = []byte(joined(lines))
		}
	}
	y.check()
	return string(txtar.Format(archive))
}

func lines(data []byte) []string {
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return "(none)\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// header reads the words behind a section's name: an instant, and the name of a session.
func header(words []string) (name, instant string, others []string) {
	name = Main
	for _, w := range words {
		if strings.HasPrefix(w, "@") {
			instant = w
		} else {
			others = append(others, w)
		}
	}
	if len(others) > 0 {
		name = others[0]
	}
	return name, instant, others
}

// section runs one section. It returns what an output section shows.
func (y *Story) section(words, lines []string) (shown []string, shows bool) {
	kind := words[0]
	name, instant, args := header(words[1:])
	if instant != "" {
		y.Now = y.Instant(instant)
	}
	if y.unread && kind != "result" {
		y.t.Fatalf("the section after a request is \"result\", not %q", kind)
	}
	switch kind {
	case "facts":
		y.Facts(name, lines...)
		return nil, false
	case "request":
		y.requests(lines)
		return nil, false
	case "result":
		y.unread = false
		return y.results, true
	case "decide":
		return y.Decide(args...), true
	}
	if in := y.service.Inputs[kind]; in != nil {
		in(name, args, slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" }))
		return nil, false
	}
	return y.show(kind, args), true
}

// State returns a session's state as it is now.
func (y *Story) State(name string) *session.State {
	if y.sessions[name] == nil {
		y.names = append(y.names, name)
		y.sessions[name] = session.New(events.Ref{Harness: Harness, Session: name})
	}
	return y.sessions[name]
}

// Names returns the names of the sessions, in the order in which they came up.
func (y *Story) Names() []string { return y.names }

// Bodies returns the commits of the story with their bodies.
func (y *Story) Bodies() ([]*events.Commit, []string) { return y.order, y.bodies }

// Source returns a commit by its seq, as a [session.Source].
func (y *Story) Source(seq uint64) (*events.Commit, error) {
	if c := y.Log[seq]; c != nil {
		return c, nil
	}
	return nil, noCommit(seq)
}

// Children returns the states of a session's children.
func (y *Story) Children(name string) []*session.State {
	var children []*session.State
	for _, other := range y.names {
		if y.sessions[other].Parent == name {
			children = append(children, y.sessions[other])
		}
	}
	return children
}

// childrenFirst returns the names of all sessions, children before their parents.
func (y *Story) childrenFirst() []string {
	var order []string
	var visit func(name string)
	visit = func(name string) {
		if slices.Contains(order, name) {
			return
		}
		for _, child := range y.Children(name) {
			visit(child.Ref().Session)
		}
		order = append(order, name)
	}
	for _, name := range y.names {
		visit(name)
	}
	return order
}

// Instant reads "@9s": nine seconds after the beginning.
func (y *Story) Instant(word string) time.Time {
	y.t.Helper()
	d, err := time.ParseDuration(strings.TrimPrefix(word, "@"))
	if err != nil || !strings.HasPrefix(word, "@") {
		y.t.Fatalf("%q is no instant: want @9s, nine seconds after the beginning", word)
	}
	return Began().Add(d)
}

// Instant returns an instant as stories show it: @9s, nine seconds after the beginning.
func Instant(at time.Time) string {
	return "@" + strconv.FormatFloat(at.Sub(Began()).Seconds(), 'f', -1, 64) + "s"
}
