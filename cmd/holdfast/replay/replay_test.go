package replay

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A recording's name makes a harness id of one token for every file name.
func TestHarnessIsNamedAfterItsFile(t *testing.T) {
	for file, want := range map[string]string{
		"h-kill9-tool.jsonl": "opencode-h-kill9-tool", "a b/ü.jsonl": "opencode-a-b--", ".jsonl": "opencode-",
		strings.Repeat("x", 100) + ".jsonl": "opencode-" + strings.Repeat("x", stemBytesMax),
	} {
		if got := harnessOf(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

func TestLeftoversAreNamedBySessionEntityAndID(t *testing.T) {
	for name, want := range map[string]Leftover{
		"ses_1/tool/call/2": {Session: "ses_1", Entity: "tool", ID: "call/2"},
		"s/compaction/k":    {Session: "s", Entity: "compaction", ID: "k"},
		"nothing like this": {ID: "nothing like this"},
		"s/prompt/per_1":    {Session: "s", Entity: "prompt", ID: "per_1"},
		"a/b/turn/msg_1":    {Session: "a/b", Entity: "turn", ID: "msg_1"},
	} {
		if got := parseLeftover(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// The text has what recovery did, what it did not do, and what of the recording was not used.
func TestText(t *testing.T) {
	p := Played{File: "x.jsonl", Facts: 3, Phases: map[string]any{"s2": "idle", "s1": "interrupted"},
		Stranded: []string{"s1: call c2"}, Skipped: 1, Unknown: map[string]int{"session.levitated": 2},
		Problems: []string{"1", "2", "3", "4", "5", "6", "7"}, Left: []Leftover{
			{Entity: "tool", ID: "c1", Became: drill.Became{Name: "bash", Outcome: "interrupted", Reason: "owner-lost"},
				AfterMS: 2970, By: events.WriterReconciler},
			{Entity: "tool", ID: "c2", Became: drill.Became{Name: "bash", Outcome: drill.OutcomeOpen}}}}
	const want = `
What the recording left open, and what became of it:

LEFT OPEN  NAME  ID  BECAME       WHY         CLOSED BY   AFTER
tool       bash  c1  interrupted  owner-lost  reconciler  2.97s
tool       bash  c2  still open               –           –

Session s1 is now interrupted.
Session s2 is now idle.
Left open without a running process: s1: call c2
Passed over: 1 line, 0 unreadable, 2 of unknown kind, 0 repeated, 0 late.
  1
  2
  3
  4
  5
  … and 2 more
  unknown: session.levitated (2)
`
	if got := p.Text(terminal.Style{}); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
