package story

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Decide lets the service decide on all sessions, children first, and appends the decisions. It returns what the
// section shows.
func (y *Story) Decide(args ...string) []string {
	y.t.Helper()
	if y.service.Decide == nil {
		y.t.Fatalf("this package decides nothing: there is no section \"decide\"")
	}
	var shown []string
	for _, name := range y.childrenFirst() {
		s := y.sessions[name]
		d := y.service.Decide(s, args)
		if twice := y.service.Decide(s.Clone(), args); y.decision(d) != y.decision(twice) {
			y.t.Fatalf("decided\n%s\nand then\n%s", y.decision(d), y.decision(twice))
		}
		shown = append(shown, y.append(name, Outcome{Facts: d.Facts})...)
		for _, note := range d.Notes {
			shown = append(shown, y.prefix(name)+note)
		}
		y.settled(s, args)
	}
	return shown
}

// settled checks that a second decision has no facts, for a service that settles.
func (y *Story) settled(s *session.State, args []string) {
	y.t.Helper()
	if !y.service.Settles {
		return
	}
	if again := y.service.Decide(s, args); len(again.Facts) > 0 {
		y.t.Fatalf("a second decision has facts: %s", y.decision(again))
	}
}

func (y *Story) decision(d Decision) string {
	var b strings.Builder
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "%s %s\n", f.Kind(), JSON(y.t, f))
	}
	return b.String() + strings.Join(d.Notes, "\n")
}

// prefix is the name of a session before a line, in a story with several sessions.
func (y *Story) prefix(name string) string {
	if y.many {
		return name + " "
	}
	return ""
}

// append appends what was decided or requested, and returns it line by line.
func (y *Story) append(name string, o Outcome) []string {
	y.t.Helper()
	if o.Writer == "" {
		o.Writer = y.service.Writer
	}
	if o.Source == "" {
		o.Source = events.ServiceSource(string(o.Writer), "x")
	}
	if o.Author == nil {
		o.Author = func(events.Fact) string { return o.Source }
	}
	y.commit(name, o.Writer, o.Author, o.Facts)
	shown := make([]string, len(o.Facts))
	for i, f := range o.Facts {
		shown[i] = fmt.Sprintf("%s%d %s %s", y.prefix(name), y.State(name).Seq, f.Kind(), JSON(y.t, f))
	}
	return shown
}

// requests carries out requests, one a line: a verb and its body.
func (y *Story) requests(lines []string) {
	y.t.Helper()
	y.results, y.unread = nil, true
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			y.results = append(y.results, y.request(line)...)
		}
	}
}

func (y *Story) request(line string) []string {
	y.t.Helper()
	verb, body, _ := strings.Cut(line, " ")
	do := y.service.Requests[verb]
	if do == nil {
		y.t.Fatalf("no such request: %s", verb)
	}
	s := y.State(Main)
	o, err := do(s, []byte(y.resolve(Main, body)))
	if refusal, ok := errors.AsType[*events.Refusal](err); ok {
		return []string{fmt.Sprintf("%d %s", refusal.Code, refusal.Message), "  " + printed(string(refusal.Body()))}
	}
	if err != nil {
		y.t.Fatalf("%s: %v", line, err)
	}
	if o.Reply != nil {
		return []string{JSON(y.t, o.Reply)}
	}
	if len(o.Facts) == 0 {
		return []string{fmt.Sprintf("nothing to append, see %d", o.Seq)}
	}
	shown := y.append(Main, o)
	y.settled(s, nil)
	return shown
}
