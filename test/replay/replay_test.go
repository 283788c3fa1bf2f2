// Package replay_test compares a real OpenCode server with Holdfast: what the server did when its provider failed or
// its context was full, and what Holdfast decides in the same situation.
package replay_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bridges/opencode"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var update = flag.Bool("update", false, "write the pages of testdata")

const recordings = "../../bridges/opencode/testdata"

// Context sizes of the recorded models, in tokens.
var limits = map[string]int64{"mock/big": 200_000, "mock/small": 20_000}

// TestBeside replays each recording twice: first the recorded actions of OpenCode, then Holdfast with the same
// messages, the same provider and the same death. The results are pages for people; -update writes them.
func TestBeside(t *testing.T) {
	for name, holds := range map[string]func(t *testing.T, st *session.State, page string){
		"f-500-exhausted": func(t *testing.T, st *session.State, page string) {
			want(t, st.Retry.State == session.RetryAbandoned && st.Retry.Reason == "no_progress" &&
				strings.Count(page, "retry.scheduled") == 19, "the same failure twenty times ends the retries")
		},
		"f-429-retry-after": func(t *testing.T, st *session.State, page string) {
			want(t, st.LastTurn.Outcome == session.OutcomeCompleted && strings.Contains(page, "attempt 1, 3.0 s") &&
				strings.Contains(page, "attempt 2, 4.0 s"), "never sooner than the provider wants, nor than the curve")
		},
		"f-401": func(t *testing.T, st *session.State, _ string) {
			want(t, st.Retry.State == session.RetryAbandoned && st.Retry.Reason == "authentication",
				"an invalid key is final")
		},
		"f-context-overflow": func(t *testing.T, st *session.State, page string) {
			want(t, st.LastTurn.Outcome == session.OutcomeCompleted && strings.Count(page, "compaction.requested") == 1,
				"one compaction, then the same turn")
		},
		"j-compact-auto": func(t *testing.T, st *session.State, page string) {
			want(t, st.LastTurn.Outcome == session.OutcomeCompleted &&
				st.LastCompaction.Reason == events.CompactMidStream && strings.Count(page, "tool.started") == 1,
				"compacted between two calls, then continued")
		},
		"j-compact-manual": func(t *testing.T, st *session.State, _ string) {
			want(t, st.LastCompaction.Outcome == session.OutcomeCompleted &&
				st.LastCompaction.Reason == events.CompactManual && st.Usage == nil,
				"compacted by hand, and nothing follows")
		},
		"j-kill9-compact": func(t *testing.T, st *session.State, _ string) {
			want(t, st.LastTurn.Outcome == session.OutcomeCompleted && st.LastTurn.Message == "message-2",
				"after the crash the next prompt is answered, not summarised")
		},
	} {
		t.Run(name, func(t *testing.T) {
			trace := read(t, name)
			steps, _ := opencode.Steps(trace.Records)
			s := enact(t, steps)
			holdfast := page(s.lines)
			holds(t, s.st, holdfast)
			compare(t, name, "OpenCode did:\n"+page(recorded(t, trace, steps))+"\nHoldfast decides:\n"+holdfast)
		})
	}
}

func want(t *testing.T, ok bool, what string) {
	t.Helper()
	if !ok {
		t.Error("does not hold: " + what)
	}
}

func read(t *testing.T, name string) opencode.Trace {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(recordings, name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	trace, err := opencode.ReadTrace(bytes.NewReader(raw))
	if err != nil || trace.Skipped > 0 {
		t.Fatal(err, trace.Problems)
	}
	return trace
}

// enact runs the people's actions and the events around them under Holdfast: messages, manual compactions, a death.
func enact(t *testing.T, steps []opencode.Step) *stage {
	t.Helper()
	var s *stage
	messages, turn := 0, false
	for i, step := range steps {
		if step.Restart {
			s.kill()
			turn = false
		}
		for _, f := range step.Facts {
			switch f := f.(type) {
			case events.MessageAccepted:
				if s == nil {
					s = newStage(t, limits[model(t, step.Facts)])
				}
				messages++
				s.send(fmt.Sprint("message-", messages), json.RawMessage(`"…"`), script(t, f.Content))
				s.settle()
			case events.TurnStarted:
				turn = true
			case events.TurnCompleted, events.TurnFailed, events.TurnStopped:
				turn = false
			case events.CompactionStarted:
				if turn {
					// OpenCode's own decision
					continue
				}
				s.summary = i+1 < len(steps) && steps[i+1].Restart
				s.compact()
				s.settle()
			}
		}
	}
	return s
}

// model returns the model of the turn in these facts.
func model(t *testing.T, facts []events.Fact) string {
	t.Helper()
	for _, f := range facts {
		if started, ok := f.(events.TurnStarted); ok {
			var options struct{ Model string }
			if err := json.Unmarshal(started.Options, &options); err != nil {
				t.Fatal(err)
			}
			return options.Model
		}
	}
	t.Fatal("no turn takes the message")
	return ""
}

// recorded returns what OpenCode did: the facts from the bridge, and OpenCode's own retries, which are not facts.
func recorded(t *testing.T, trace opencode.Trace, steps []opencode.Step) []line {
	t.Helper()
	var began time.Time
	var lines []line
	at := func(when time.Time, format string, args ...any) {
		if began.IsZero() {
			began = when
		}
		lines = append(lines, line{when.Sub(began), fmt.Sprintf(format, args...)})
	}
	s := &stage{t: t}
	for _, step := range steps {
		if step.Restart {
			at(step.Died, "SIGKILL")
			at(step.At, "restarted")
		}
		for _, f := range step.Facts {
			text := s.text(f)
			switch f := f.(type) {
			case events.MessageAccepted:
				text = "message.accepted"
			case events.TurnFailed:
				text += ": " + f.Error.Text
			}
			at(step.At, "%s", text)
		}
	}
	for _, r := range trace.Records {
		if next, attempt, message := itsRetry(t, r); attempt > 0 {
			at(r.At, "(its own retry: %s, attempt %d, waits %.1f s)", message, attempt, next.Sub(r.At).Seconds())
		}
	}
	return lines
}

// itsRetry returns what an event reports about OpenCode's own retry. Attempt 0: nothing.
func itsRetry(t *testing.T, r opencode.Record) (next time.Time, attempt int, message string) {
	t.Helper()
	var e struct {
		Type       string
		Properties struct {
			Status struct {
				Type    string
				Attempt int
				Message string
				Next    int64
			}
		}
	}
	if err := json.Unmarshal(r.Event, &e); err != nil {
		t.Fatal(err)
	}
	st := e.Properties.Status
	if e.Type != "session.status" || st.Type != "retry" {
		return next, 0, ""
	}
	return time.UnixMilli(st.Next), st.Attempt, st.Message
}

// page returns the lines in the order of time.
func page(lines []line) string {
	var b strings.Builder
	for len(lines) > 0 {
		first := 0
		for i := range lines {
			if lines[i].at < lines[first].at {
				first = i
			}
		}
		fmt.Fprintf(&b, "%8.1fs  %s\n", lines[first].at.Seconds(), strings.TrimRight(lines[first].text, " "))
		lines = append(lines[:first:first], lines[first+1:]...)
	}
	return b.String()
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	had, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(had) != got {
		t.Errorf("%s differs from the result (-update writes it):\n%s", file, got)
	}
}
