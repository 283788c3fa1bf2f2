package opencode

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

var update = flag.Bool("update", false, "write the goldens")

// TestGoldens translates every recording and compares the facts with the file beside it.
func TestGoldens(t *testing.T) {
	traces, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(traces) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, path := range traces {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".jsonl"), func(t *testing.T) {
			steps, report := translateFile(t, path)
			if report.Unreadable > 0 || len(report.Unknown) > 0 {
				t.Errorf("a recording of the supported version: unreadable %v, unknown %v", report.Problems,
					report.Unknown)
			}
			checkSteps(t, steps)
			compare(t, strings.TrimSuffix(path, ".jsonl")+".facts", render(steps, report))
		})
	}
}

func translateFile(t *testing.T, path string) ([]Step, Report) {
	t.Helper()
	return Steps(recordsOf(t, path))
}

func recordsOf(t *testing.T, path string) []Record {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	trace, err := ReadTrace(f)
	if err != nil || trace.Skipped > 0 {
		t.Fatalf("read: %v, skipped %v", err, trace.Problems)
	}
	return trace.Records
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with: go test ./bridges/opencode -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the recording translates to; look at it with: go test ./bridges/opencode -update "+
			"&& git diff\ngot:\n%s", path, got)
	}
}

// render returns one line per fact. The second and later facts of a commit begin with &.
func render(steps []Step, report Report) string {
	var b strings.Builder
	var start time.Time
	for _, s := range steps {
		if start.IsZero() {
			start = s.At
		}
		lead := fmt.Sprintf("+%.3fs", s.At.Sub(start).Seconds())
		line := func(what string, v any) {
			fmt.Fprintf(&b, "%-9s %s %s %s\n", lead, s.Session, what, text(v))
			lead = "       &"
		}
		if s.Restart {
			fmt.Fprintf(&b, "%-9s -- died after +%.3fs, restarted\n", lead, s.Died.Sub(start).Seconds())
		}
		if s.Open != nil {
			line("session.opened", s.Open)
		}
		if s.Claim {
			line("session.claimed", struct{}{})
		}
		for _, f := range s.Facts {
			line(string(f.Kind()), f)
		}
	}
	list := func(name string, ids []string) {
		for _, id := range ids {
			fmt.Fprintf(&b, "%s %s\n", name, id)
		}
	}
	list("lost", report.Lost)
	list("open", report.Open)
	for _, name := range slices.Sorted(maps.Keys(report.Unknown)) {
		fmt.Fprintf(&b, "unknown %s %d\n", name, report.Unknown[name])
	}
	if report.Dead {
		b.WriteString("the process is dead\n")
	}
	fmt.Fprintf(&b, "records %d, facts %d, duplicates %d, late %d, unreadable %d\n", report.Records, report.Facts,
		report.Duplicates, report.Late, report.Unreadable)
	return b.String()
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// checkSteps checks every translation: each fact is valid. Each step fits a commit and decodes to the same facts. A
// session is opened before its first fact, claimed after a restart, and has no facts after it is closed. Each turn,
// call, prompt and compaction begins once and ends at most once, in this order. Time does not decrease.
func checkSteps(t *testing.T, steps []Step) {
	t.Helper()
	l := newLedger()
	var last time.Time
	for i, s := range steps {
		if s.At.Before(last) {
			t.Errorf("step %d: %v is before %v", i, s.At, last)
		}
		last = s.At
		if s.Restart {
			l.restart()
			continue
		}
		if err := l.enter(s); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		roundTrip(t, i, s)
		for _, f := range s.Facts {
			if err := l.fact(s.Session, f); err != nil {
				t.Errorf("step %d: %s: %v", i, f.Kind(), err)
			}
		}
	}
}

func roundTrip(t *testing.T, i int, s Step) {
	t.Helper()
	r := events.Ref{Harness: "h", Session: s.Session}
	if err := r.Validate(); err != nil {
		t.Errorf("step %d: %v", i, err)
	}
	facts := s.Facts
	if s.Open != nil {
		open := *s.Open
		open.Incarnation = "1"
		facts = append([]events.Fact{open}, facts...)
	}
	if len(facts) == 0 {
		return
	}
	evs := make([]events.Event, len(facts))
	for j, f := range facts {
		evs[j] = events.New(fmt.Sprint(j), events.HarnessSource("h", "1"), r, 1, s.At, f)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		t.Errorf("step %d: %v", i, err)
		return
	}
	back, err := events.DecodeBatch(r, body)
	if err != nil {
		t.Errorf("step %d: %v", i, err)
	}
	for _, e := range back {
		if e.Err != nil || e.Fact == nil {
			t.Errorf("step %d: %s reads back as %v: %v", i, e.Kind, e.Fact, e.Err)
		} else if !events.Lookup(e.Kind).May(events.WriterHarness) {
			t.Errorf("step %d: a harness must not append %s", i, e.Kind)
		}
	}
}

// ledger is a simple model of the fold: it has the open and the ended entities.
type ledger struct {
	open, ended map[string]bool // by session/entity/id
	// in is the owner of an open entity: its turn or its call.
	in map[string]string
	// sessions is the state of each session: opened, lost or closed.
	sessions map[string]string
	// last is the newest turn of each session while its process lives.
	last map[string]string
}

func newLedger() *ledger {
	return &ledger{open: map[string]bool{}, ended: map[string]bool{}, in: map[string]string{},
		sessions: map[string]string{}, last: map[string]string{}}
}

// replayed returns the ledger after these steps. [checkSteps] reports the invalid ones.
func replayed(steps []Step) *ledger {
	l := newLedger()
	for _, s := range steps {
		if s.Restart {
			l.restart()
			continue
		}
		err := l.enter(s)
		for _, f := range s.Facts {
			err = errors.Join(err, l.fact(s.Session, f))
		}
		if err != nil {
			break
		}
	}
	return l
}

// end ends an entity with everything that belongs to it.
func (l *ledger) end(id string) {
	delete(l.open, id)
	l.ended[id] = true
	for other, owner := range l.in {
		if owner == id && l.open[other] {
			l.end(other)
		}
	}
}

func (l *ledger) restart() {
	for id, is := range l.sessions {
		if is == "opened" {
			l.sessions[id] = "lost"
		}
	}
	for id := range l.open {
		l.ended[id] = true
	}
	clear(l.open)
	clear(l.last)
}

func (l *ledger) enter(s Step) error {
	switch is := l.sessions[s.Session]; {
	case s.Open != nil && is != "":
		return fmt.Errorf("%s is opened twice", s.Session)
	case s.Open == nil && is == "":
		return fmt.Errorf("%s has a fact before it is opened", s.Session)
	case s.Claim != (is == "lost"):
		return fmt.Errorf("%s is %s, claim is %v", s.Session, is, s.Claim)
	case is == "closed":
		return fmt.Errorf("%s has a fact after it is closed", s.Session)
	}
	l.sessions[s.Session] = "opened"
	return nil
}

func (l *ledger) fact(session string, f events.Fact) error {
	spec := events.Lookup(f.Kind())
	entity, verb, _ := strings.Cut(string(f.Kind()), ".")
	id := session + "/" + entity + "/" + f.Subject()
	switch {
	case entity == "usage":
		if l.last[session] != f.Subject() {
			return fmt.Errorf("%s is not the newest turn", f.Subject())
		}
	case entity == "session":
		l.sessions[session] = "closed"
		for other := range l.open {
			if strings.HasPrefix(other, session+"/") {
				l.end(other)
			}
		}
	case verb == "started" || verb == "accepted":
		return l.begin(session, id, f)
	case verb == "requested" && l.ended[id]:
		return fmt.Errorf("%s has ended", id)
	case verb == "requested":
		return l.ask(session, id, f.(events.PromptRequested))
	case spec.Ends != "" && !l.open[id]:
		return fmt.Errorf("%s is not open", id)
	case spec.Ends != "":
		l.end(id)
	}
	return nil
}

func (l *ledger) ask(session, id string, f events.PromptRequested) error {
	var err error
	l.open[id] = true
	for _, owner := range []struct{ entity, id string }{{"turn", f.Turn}, {"tool", f.Call}} {
		if owner.id != "" {
			l.in[id] = session + "/" + owner.entity + "/" + owner.id
			err = errors.Join(err, l.needs(session, owner.entity, owner.id))
		}
	}
	return err
}

func (l *ledger) begin(session, id string, f events.Fact) error {
	if l.open[id] || l.ended[id] {
		return fmt.Errorf("%s begins twice", id)
	}
	l.open[id] = true
	switch f := f.(type) {
	case events.MessageAccepted:
		l.ended[id] = true
	case events.ToolStarted:
		l.in[id] = session + "/turn/" + f.Turn
		return l.needs(session, "turn", f.Turn)
	case events.TurnStarted:
		l.last[session] = f.Turn
		for other := range l.open {
			if strings.HasPrefix(other, session+"/turn/") && other != id {
				if other != session+"/turn/"+f.OfTurn {
					return fmt.Errorf("%s is still open", other)
				}
				l.end(other)
			}
		}
	}
	return nil
}

func (l *ledger) needs(session, entity, id string) error {
	if name := session + "/" + entity + "/" + id; !l.open[name] {
		return fmt.Errorf("%s is not open", name)
	}
	return nil
}
