package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// phrases are texts of agents and people: long, short, without spaces, wide, and with characters of several runes.
func phrases() []string {
	return []string{
		"short",
		strings.TrimSpace(strings.Repeat("Rename the field in every package that has it. ", 8)),
		strings.Repeat("重构支付服务的数据库连接池，按租户划分。", 12),
		strings.TrimSpace(strings.Repeat("🚀 ship it 👩‍💻👩‍💻👩‍💻 today ", 12)),
		strings.Repeat("x", 250),
		"https://example.com/" + strings.Repeat("path/", 50),
		"é" + strings.Repeat("e\u0301 👨‍👩‍👧‍👦한국어", 20),
		"run `holdfast configure my-agent/build-42 --provider-changed`, and then `holdfast retry now " +
			"my-agent/build-42` again",
	}
}

// idents are ids: of a person, of a machine, wide, and longer than a line.
func idents() []string {
	return []string{"s1", "ses_e0786a38effeLlSL36uchhQc3f", "重构支付服务", strings.Repeat("🚀", 20),
		strings.Repeat("long-", 25)}
}

// full is a session with every field that the page of a session shows, in these words.
func full(phrase, id string) *session.State {
	s := session.New(events.Ref{Harness: "agent-" + id, Session: id})
	s.Phase, s.Title, s.Agent, s.Model, s.UpdatedAt = session.Retrying, phrase, phrase, id, at(3)
	s.Root, s.Parent, s.Incarnation, s.Epoch, s.Left = "root-"+id, "parent-"+id, "1795483645962315", 4, "orphaned"
	s.Usage = &session.Usage{Used: 128_000, Limit: 200_000, Percent: 64, Warn: true}
	s.Closed = &session.Closing{Reason: phrase, By: phrase, At: at(4)}
	s.Ignored = session.Ignored{Count: 3, Last: &session.IgnoredFact{Type: id, Writer: "harness", Why: phrase}}
	s.Parked = 2
	s.LastTurn = &session.LastTurn{ID: id, Outcome: session.OutcomeFailed, Error: &events.Failure{Kind: "rate_limit",
		Text: phrase}, At: at(5)}
	s.Tools = map[string]*session.Tool{id: {Name: id, Title: phrase, Since: at(2)}}
	s.WaitsFor = []events.WaitFor{{Child: id, Call: id}}
	s.Pending.Stop = &session.PendingStop{Turn: id, By: phrase, Reason: phrase, At: at(1)}
	s.Pending.Turn = &session.PendingTurn{ID: id, Cause: events.CauseMessage, Message: id, At: at(1)}
	s.Continuations = session.Continuations{State: session.ContinuationsHeld, Count: 10, Reason: phrase}
	s.Retry = session.Retry{State: session.RetryAbandoned, Attempt: 3, Reason: "quota", Error: s.LastTurn.Error}
	s.Compaction = &session.Compaction{ID: id, State: session.CompactionHeld, Reason: phrase, Since: at(3),
		Error: &events.Failure{Kind: events.ReasonOwnerLost, Text: phrase}}
	s.LastCompaction = &session.LastCompaction{Outcome: "failed", Reason: phrase, At: at(2), Error: s.LastTurn.Error,
		Failures: 2, FollowUp: id, Message: id}
	s.Queue = []session.Message{{ID: id, At: at(1)}}
	s.Recent = []session.Ending{{Entity: session.EntityTool, ID: id, Name: phrase, Outcome: session.OutcomeFailed,
		Reason: phrase, At: at(3), Late: &session.Late{Seq: 4711}}}
	return s
}

// asks is a prompt in these words.
func asks(phrase, id string, status session.Status) *session.Blocker {
	return &session.Blocker{Harness: "agent-" + id, Session: id, Prompt: id, Kind: events.PromptQuestion,
		Status: status, ArmedAt: at(3), Title: phrase, By: phrase, Reason: phrase,
		Tool: &session.BlockedTool{Call: id, Name: phrase}, Questions: []events.Question{{ID: id, Question: phrase,
			Multi: true, Custom: true, Options: []events.Option{{Label: phrase, Description: phrase}, {Label: "b"}}}}}
}

// entities matches the screens with names that a person copies into a command.
var entities = regexp.MustCompile("^(session|prompt|table of [^c])")

// TestNoLineIsWiderThanTheTerminal prints every screen with every kind of text and id at the widths of terminals: no
// line is wider, in colour and without, and nothing is left out of what is not a table. A name that a person copies
// into a command is whole: one that is wider than the terminal is alone on its line, without an indent.
func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	screens, lines := 0, 0
	for _, phrase := range phrases() {
		for _, id := range idents() {
			s := full(phrase, id)
			whole := map[string]bool{id: true, s.Ref().String(): true}
			for name, screen := range screensOf(s, phrase, id) {
				flat := screen(Style{})
				for _, width := range []int{40, 80, 120, 200} {
					plain := screen(Style{Width: width})
					if width == 80 {
						bare := escapes.ReplaceAllString(screen(Style{Width: width, Color: true}), "")
						if bare != plain {
							t.Errorf("%s: in colour it has other lines:\n%s\n%s", name, bare, plain)
						}
					}
					copied := id
					if strings.HasPrefix(name, "session") || name == "table of sessions" {
						copied = s.Ref().String()
					}
					if entities.MatchString(name) && strings.Contains(flat, copied) &&
						!strings.Contains(plain, copied) {
						t.Errorf("%s at %d columns has no whole %s:\n%s", name, width, copied, plain)
					}
					screens++
					for _, l := range strings.Split(plain, "\n") {
						lines++
						if w := Width(l); w > width && !whole[l] {
							t.Errorf("%s: %d cells in a terminal of %d: %s", name, w, width, l)
						}
					}
					if !strings.HasPrefix(name, "table") && packed(plain) != packed(flat) {
						t.Errorf("%s at %d columns shows\n%s\nand not all of\n%s", name, width, plain, flat)
					}
				}
			}
		}
	}
	if screens < 1000 || lines < 10_000 {
		t.Errorf("%d screens of %d lines were measured", screens, lines)
	}
}

// packed returns a text without spaces.
func packed(s string) string { return strings.Join(strings.Fields(s), "") }

// screensOf returns what a person sees of a session. The name of a screen that has a table begins with it.
func screensOf(s *session.State, phrase, id string) map[string]func(Style) string {
	body, err := json.Marshal(phrase)
	if err != nil {
		return nil
	}
	queue := []Queued{{Message: id, At: at(1), By: phrase, Content: body}}
	commit := &events.Commit{Ref: s.Ref(), Writer: events.WriterReconciler, Seq: 4711, At: at(1),
		Err: errors.New(phrase)}
	event := events.New("e", "x", s.Ref(), 1, at(1), events.ToolStarted{Call: id, Turn: id, Name: id, Title: phrase})
	blank, cut := session.New(s.Ref()), s.WithUnknown(map[string]bool{id: true})
	all := map[string]func(Style) string{
		"table of sessions": func(st Style) string { return Sessions([]*session.State{s}, now(), st) },
		"table of endings":  func(st Style) string { return recent(cut, now(), st) },
		"table of a queue":  func(st Style) string { return Queue(s, queue, now(), st) },
		"table of changes":  func(st Style) string { return Compare(blank, s, st) },
		"verdict": func(st Style) string {
			return Check("It", request.Verdict{Reason: session.CompactionStalled, At: now().Add(time.Hour),
				Used: 128_000, Limit: 200_000}, now(), st)
		},
		"event":         func(st Style) string { return Fact(commit, &event, "ignored: "+phrase, st) },
		"parked commit": func(st Style) string { return Whole(commit, st) },
		"findings": func(st Style) string {
			return Findings([]Finding{{Cell{"wrong", Alarm}, "consumer " + id, phrase, phrase},
				{Cell{"ok", Good}, "log", phrase, ""}}, st)
		},
	}
	for _, status := range []session.Status{session.Awaiting, session.Expired} {
		b := asks(phrase, id, status)
		all[fmt.Sprintf("table of a prompt, %s", status)] = func(st Style) string {
			return Prompts([]*session.Blocker{b}, now(), st)
		}
		all[fmt.Sprintf("prompt, %s", status)] = func(st Style) string { return Prompt(b, now(), st) }
	}
	for state, name := range map[string]string{session.CompactionHeld: "held", session.CompactionRunning: "running"} {
		one := s.Clone()
		one.Recent, one.Compaction.State = nil, state
		if state == session.CompactionRunning {
			one.Closed, one.Owned = nil, true
			one.Turn = &session.Turn{ID: id, Cause: events.CauseMessage, Since: at(1)}
		}
		b := asks(phrase, id, session.Awaiting)
		all["session, "+name] = func(st Style) string {
			return Session(one, []*session.Blocker{b}, now(), st)
		}
	}
	return all
}

// TestWrap: lines end between words, a command in backquotes is on one line if it fits there, and a wide text is broken
// between its characters, and not before the end of a sentence.
func TestWrap(t *testing.T) {
	for _, x := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 13, "one two three"},
		{"one two three", 9, "one two\n  three"},
		{"  one two three", 9, "  one two\n  three"},
		{"one  two   three", 9, "one  two\n  three"},
		{"abcdefghijklmnop", 8, "abcdefgh\n  ijklmn\n  op"},
		{"say `a b c d` now", 14, "say `a b c d`\n  now"},
		{"so say `a b c d` now", 14, "so say\n  `a b c d`\n  now"},
		{"say (`a b c d`), now", 14, "say\n  (`a b c d`),\n  now"},
		{"say `aaa bbb ccc ddd` now", 12, "say `aaa bbb\n  ccc ddd`\n  now"},
		{"an odd ` is a word", 12, "an odd ` is\n  a word"},
		{"数据库连接", 6, "数据库\n  连接"},
		{"数据库。连接", 6, "数据\n  库。\n  连接"},
		{"my-agent/build 数", 12, "my-agent/bui\n  ld 数"},
		{"use my-agent/b 数", 14, "use my-agent/b\n  数"},
		{"数", 1, "数"},
	} {
		if got := (Style{Width: x.width}).Wrap(x.text, 2); got != x.want {
			t.Errorf("%q at %d:\n%q, want\n%q", x.text, x.width, got, x.want)
		}
	}
	// words of one colour are coloured together, and no space behind them is
	st := Style{Width: 12, Color: true}
	if got, want := st.paragraph(2, text("one "), coloured("two three four", Strong), text(" five")),
		"one \x1b[1mtwo\x1b[0m\n  \x1b[1mthree four\x1b[0m\n  five"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
