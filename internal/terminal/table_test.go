package terminal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// crowd is sessions and prompts with long names and texts, in Latin, Chinese and emoji.
func crowd() (docs []*session.State, asked []*session.Blocker) {
	add := func(harness, id, title, question string) {
		s := session.New(events.Ref{Harness: harness, Session: id})
		s.Phase, s.Title, s.UpdatedAt, s.Owned, s.Incarnation, s.Epoch = session.Retrying, title, at(3), true, "1071", 4
		s.Usage = &session.Usage{Used: 128_000, Limit: 200_000, Percent: 64, Warn: true}
		s.Retry = session.Retry{State: session.RetryScheduled, Attempt: 3, DueAt: now().Add(7 * time.Second),
			Error: &events.Failure{Kind: "rate_limit"}}
		s.Queue = []session.Message{{ID: "m1"}}
		docs = append(docs, s)
		asked = append(asked, &session.Blocker{Harness: harness, Session: id, Prompt: "per_1f8797a88001AZ0F7MuzUyOW6t",
			Kind: events.PromptPermission, Status: session.Awaiting, ArmedAt: at(3), Title: question})
	}
	add("opencode-h-kill9-parallel", "ses_e0786a38effeLlSL36uchhQc3f", "Rename the field in every package that has it",
		"Run git push --force-with-lease origin feature/rename-the-field ?")
	add("助手", "重构支付服务的数据库连接池", "把连接池改成按租户划分，并且补上测试", "是否删除生产环境里的旧表？此操作不能撤销")
	add("agent", "🚀-release-🎉🎉🎉-of-the-week", "🚀 ship it 👩‍💻👩‍💻👩‍💻 today",
		"Ship 🚀🚀🚀 to all of the users of the beta at once?")
	add("a", "b", "short", "Go?")
	return docs, asked
}

// TestTablesAtFourWidths shows every table at the widths of terminals, and of half a one. No line is wider, no decisive
// column is missing, and no name that a person copies into a command is cut, whatever the texts are.
func TestTablesAtFourWidths(t *testing.T) {
	docs, asked := crowd()
	ended := *asked[1]
	ended.Status, ended.By = session.Answered, "ann"
	queue := []Queued{
		{Message: "review-17", At: at(1), By: "ann", Content: json.RawMessage(`"` + strings.Repeat("数据库 ", 40) + `"`)},
		{Message: "m-0123456789abcdefghijklmnopqrstuvwxyz", At: at(2), By: "a person with a long name", Handed: true,
			Content: json.RawMessage(`"` + strings.Repeat("and then ", 40) + `"`)}}
	past := session.New(events.Ref{Harness: "agent", Session: "s1"})
	past.Recent = []session.Ending{{Entity: session.EntityPrompt, ID: "per_1f8797a88001AZ0F7MuzUyOW6t",
		Name: "permission", Outcome: string(session.Expired), Reason: events.ReasonOwnerLost, At: at(3),
		Late: &session.Late{Seq: 4711}},
		{Entity: session.EntityTool, ID: "call_数据库连接池_0123456789", Name: "mcp__github__create_pull_request_review",
			Outcome: session.OutcomeFailed, At: at(4),
			Reason: "a reason that the author of a harness wrote in a sentence"}}
	changes := []Change{{Path: "tools.call_0123456789abcdefghijklmnopqrstuvwxyz.title",
		Before: json.RawMessage(`"` + strings.Repeat("旧的标题", 20) + `"`),
		After:  json.RawMessage(`"` + strings.Repeat("a new title ", 20) + `"`)}}
	var names []string
	for _, s := range docs {
		names = append(names, s.Ref().String())
	}
	for _, width := range []int{40, 80, 120, 200} {
		st := Style{Width: width}
		tables := []struct {
			text     string
			decisive []string
			whole    []string // names that a person copies into a command
		}{
			{Sessions(docs, now(), st), []string{"SESSION", "PHASE", "DOING", "USED"}, names},
			{Prompts(asked, now(), st), []string{"SESSION", "PROMPT", "KIND", "QUESTION"}, names},
			{Prompts(append(asked[:2:2], &ended), now(), st), []string{"SESSION", "PROMPT", "STATUS", "QUESTION"},
				[]string{docs[0].Ref().String(), docs[1].Ref().String(), ended.Prompt}},
			{Queue(docs[0], queue, now(), st), []string{"MESSAGE", "FROM", "STATE", "CONTENT"},
				[]string{queue[0].Message, queue[1].Message}},
			{recent(past, now(), st), []string{"ENDED", "ID", "NAME", "OUTCOME", "REASON"},
				[]string{past.Recent[0].ID, past.Recent[1].ID}},
			{Diff(changes, st), []string{"FIELD", "BEFORE", "AFTER"}, nil},
		}
		var all []string
		for _, table := range tables {
			lines := strings.Split(strings.TrimRight(table.text, "\n"), "\n")
			for _, l := range lines {
				// a name that is longer than a line has one of its own
				alone := slices.Contains(table.whole, l)
				if w := Width(l); w > width && !alone {
					t.Errorf("%d cells in a terminal of %d: %s", w, width, l)
				}
			}
			for _, name := range table.decisive {
				if head := strings.Join(lines[:min(3, len(lines))], "\n"); !strings.Contains(head, name) {
					t.Errorf("at %d columns there is no %s:\n%s", width, name, head)
				}
			}
			for _, name := range table.whole {
				if !strings.Contains(table.text, name) {
					t.Errorf("at %d columns %s is cut:\n%s", width, name, table.text)
				}
			}
			all = append(all, table.text)
		}
		golden(t, fmt.Sprintf("tables-%d", width), strings.Join(all, "\n"))
	}
}

// A text is cut between characters, and a wide character that does not fit is left out.
func TestCutCells(t *testing.T) {
	for _, x := range []struct {
		text  string
		cells int
		want  string
	}{{"plain", 5, "plain"}, {"plain", 4, "pla…"}, {"plain", 1, "…"}, {"plain", 0, ""}, {"数据库", 6, "数据库"},
		{"数据库", 5, "数据…"}, {"数据库", 4, "数…"}, {"👩‍💻👩‍💻", 3, "👩‍💻…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"}} {
		if got := Cut(x.text, x.cells); got != x.want || Width(got) > x.cells {
			t.Errorf("Cut(%q, %d) = %q, want %q", x.text, x.cells, got, x.want)
		}
	}
	for _, x := range []struct {
		text  string
		cells int
		want  string
	}{{"harness/session", 15, "harness/session"}, {"harness/session", 9, "harn…sion"}, {"数据库连接池", 7, "数…接池"},
		{"x", 0, ""}, {"xyz", 1, "…"}} {
		if got := cutMiddle(x.text, x.cells); got != x.want || Width(got) > x.cells {
			t.Errorf("cutMiddle(%q, %d) = %q, want %q", x.text, x.cells, got, x.want)
		}
	}
}
