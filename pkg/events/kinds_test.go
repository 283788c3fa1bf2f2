package events_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// contract is the column "by" of the contract, section 2, typed by hand, with what each kind ends. One cell differs on
// purpose: message.accepted is the ledger's too, because an answer to a prompt without a call, delivered as a message,
// is one (see docs/adr).
const contract = `
session.opened        H
session.claimed       H
session.configured    L
session.released      H
session.orphaned      R
session.closed        HL   session
message.accepted      CHL
message.withdrawn     C    message
turn.requested        TCLR
turn.started          H
turn.completed        H    turn
turn.failed           HT   turn
turn.stop_requested   LCT
turn.stopped          HR   turn
turn.interrupted      R    turn
tool.started          H
tool.completed        HLRC tool
tool.failed           HLRC tool
tool.interrupted      R    tool
prompt.requested      H
prompt.answered       LH   prompt
prompt.rejected       LH   prompt
prompt.dismissed      L    prompt
prompt.withdrawn      HR   prompt
prompt.superseded     CH   prompt
prompt.expired        R    prompt
prompt.unattended     H
prompt.attended       H
prompt.delivered      H
usage.reported        H
retry.scheduled       T
retry.abandoned       T
compaction.requested  C
compaction.started    H
compaction.completed  H    compaction
compaction.failed     HRC  compaction
`

func TestTableIsTheContracts(t *testing.T) {
	letters := map[events.Writer]string{
		events.WriterHarness:    "H",
		events.WriterLedger:     "L",
		events.WriterRetry:      "T",
		events.WriterCompaction: "C",
		events.WriterReconciler: "R",
	}
	table := events.Table()
	lines := strings.Split(strings.TrimSpace(contract), "\n")
	if len(table) != len(lines) {
		t.Fatalf("%d kinds, the contract has %d", len(table), len(lines))
	}
	for i, line := range lines {
		// the last may be empty
		columns := append(strings.Fields(line), "")
		s := table[i]
		if string(s.Kind) != columns[0] {
			t.Fatalf("line %d is %s, in the contract it is %s", i, s.Kind, columns[0])
		}
		for _, w := range events.Writers() {
			if want := strings.Contains(columns[1], letters[w]); s.May(w) != want {
				t.Errorf("%s by %s: %v, want %v", s.Kind, w, s.May(w), want)
			}
		}
		if s.May("person") || s.May("") {
			t.Errorf("%s has no writer", s.Kind)
		}
		if s.Ends != columns[2] {
			t.Errorf("%s ends %q, want %q", s.Kind, s.Ends, columns[2])
		}
		if !strings.HasSuffix(s.Doc, ".") || s.Zero.Kind() != s.Kind {
			t.Errorf("%s: doc %q, zero value of %s", s.Kind, s.Doc, s.Zero.Kind())
		}
		if got := events.Lookup(s.Kind); got == nil || got.Kind != s.Kind {
			t.Errorf("%s is not found", s.Kind)
		}
	}
}

func TestLookupOfAnUnknownKind(t *testing.T) {
	for _, k := range []events.Kind{"", "tool", "tool.danced", "holdfast.tool.started", "TOOL.STARTED"} {
		if events.Lookup(k) != nil {
			t.Errorf("%q is known", k)
		}
	}
}

func TestTableIsACopy(t *testing.T) {
	events.Table()[0] = events.Spec{}
	if events.Table()[0].Kind != "session.opened" {
		t.Error("the table can be changed from outside")
	}
}

// Every kind has a sample with every field set, so that the tests below cover all of them.
func TestSamplesAreComplete(t *testing.T) {
	var kinds []events.Kind
	for _, f := range samples() {
		kinds = append(kinds, f.Kind())
		v := reflect.ValueOf(f)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("sample of %s: %s is not set", f.Kind(), v.Type().Field(i).Name)
			}
		}
		if err := f.Validate(); err != nil {
			t.Errorf("sample of %s: %v", f.Kind(), err)
		}
	}
	for _, s := range events.Table() {
		if !slices.Contains(kinds, s.Kind) {
			t.Errorf("no sample of %s", s.Kind)
		}
	}
}

// TestAFactNeedsItsEntity: a fact about an entity is refused without the id of the entity. A report of usage may be
// about no turn.
func TestAFactNeedsItsEntity(t *testing.T) {
	for _, f := range samples() {
		kind := f.Kind()
		if _, optional := f.(events.UsageReported); optional || f.Subject() == "" {
			continue
		}
		if events.Lookup(kind).Zero.Validate() == nil {
			t.Errorf("%s: Validate accepts it without the id that Subject returns", kind)
		}
	}
}

// Which ids each kind needs, and which it checks if they are there: the id field is the first column.
func TestValidateNamesTheField(t *testing.T) {
	long := strings.Repeat("x", 129)
	many := slices.Repeat([]string{"p"}, events.PromptsNamedMax+1)
	for _, c := range []struct {
		field string
		fact  events.Fact
	}{
		{"incarnation", events.SessionOpened{}},
		{"incarnation", events.SessionOpened{Incarnation: long}},
		{"parent", events.SessionOpened{Incarnation: "1", Parent: long, Root: "r"}},
		{"parent_call", events.SessionOpened{Incarnation: "1", ParentCall: long}},
		{"root", events.SessionOpened{Incarnation: "1", Parent: "p"}},
		{"root", events.SessionOpened{Incarnation: "1", Root: long}},
		{"policy.retry_max", events.SessionOpened{Incarnation: "1",
			Policy: &events.PolicyPatch{RetryMax: events.Set(-1)}}},
		{"incarnation", events.SessionClaimed{}},
		{"policy.resume", events.SessionConfigured{Policy: &events.PolicyPatch{Resume: events.Set("maybe")}}},
		{"incarnation", events.SessionOrphaned{}},
		{"detail", events.SessionOrphaned{Incarnation: "1", Detail: strings.Repeat("x", events.DetailBytesMax+1)}},
		{"detail", events.SessionOrphaned{Incarnation: "1", Detail: "two\nlines"}},
		{"waits_for.call", events.SessionOrphaned{Incarnation: "1", WaitsFor: []events.WaitFor{{Child: "c"}}}},
		{"waits_for.child", events.SessionOrphaned{Incarnation: "1", WaitsFor: []events.WaitFor{{Call: "c"}}}},
		{"message", events.MessageAccepted{}},
		{"message", events.MessageWithdrawn{Message: "\xff"}},
		{"turn", events.TurnRequested{}},
		{"of_turn", events.TurnRequested{Turn: "t", OfTurn: long}},
		{"message", events.TurnRequested{Turn: "t", Message: long}},
		{"compaction", events.TurnRequested{Turn: "t", Compaction: long}},
		{"prompt", events.TurnRequested{Turn: "t", Prompt: long}},
		{"prompts", events.TurnRequested{Turn: "t", Prompts: many}},
		{"prompts", events.TurnRequested{Turn: "t", Prompts: []string{"p", long}}},
		{"options", events.TurnRequested{Turn: "t", Options: make([]byte, events.OptionsBytesMax+1)}},
		{"turn", events.TurnStarted{}},
		{"of_turn", events.TurnStarted{Turn: "t", OfTurn: long}},
		{"message", events.TurnStarted{Turn: "t", Message: long}},
		{"prompt", events.TurnStarted{Turn: "t", Prompt: long}},
		{"prompts", events.TurnStarted{Turn: "t", Prompts: many}},
		{"options", events.TurnStarted{Turn: "t", Options: make([]byte, events.OptionsBytesMax+1)}},
		{"turn", events.TurnCompleted{}},
		{"turn", events.TurnFailed{}},
		{"turn", events.TurnStopRequested{}},
		{"turn", events.TurnStopped{}},
		{"turn", events.TurnInterrupted{}},
		{"call", events.ToolStarted{}},
		{"turn", events.ToolStarted{Call: "c", Turn: long}},
		{"call", events.ToolCompleted{}},
		{"call", events.ToolFailed{}},
		{"call", events.ToolInterrupted{}},
		{"prompt", events.PromptRequested{}},
		{"turn", events.PromptRequested{Prompt: "p", Turn: long}},
		{"call", events.PromptRequested{Prompt: "p", Call: long}},
		{"questions", events.PromptRequested{Prompt: "p", Questions: []events.Question{{ID: "q"}}}},
		{"prompt", events.PromptAnswered{}},
		{"prompt", events.PromptRejected{}},
		{"prompt", events.PromptDismissed{}},
		{"prompt", events.PromptWithdrawn{}},
		{"prompt", events.PromptSuperseded{}},
		{"prompt", events.PromptExpired{}},
		{"prompt", events.PromptUnattended{}},
		{"prompt", events.PromptAttended{}},
		{"prompt", events.PromptDelivered{}},
		{"turn", events.UsageReported{Turn: long}},
		{"tokens", events.UsageReported{Tokens: events.Tokens{Input: -1}}},
		{"tokens", events.UsageReported{Tokens: events.Tokens{Reasoning: 1_000_000_001}}},
		{"turn", events.RetryScheduled{}},
		{"turn", events.RetryAbandoned{}},
		{"compaction", events.CompactionRequested{}},
		{"message", events.CompactionRequested{Compaction: "k", Message: long}},
		{"compaction", events.CompactionStarted{}},
		{"compaction", events.CompactionCompleted{}},
		{"compaction", events.CompactionFailed{}},
	} {
		t.Run(string(c.fact.Kind())+" "+c.field, func(t *testing.T) { wantField(t, c.fact.Validate(), c.field) })
	}
}

func TestUsed(t *testing.T) {
	all := events.Tokens{Input: 100, CacheRead: 20, CacheWrite: 3, Output: 5000, Reasoning: 700}
	for _, c := range []struct {
		name string
		u    events.UsageReported
		want int64
	}{
		{"what went in, cached or not; never what came out", events.UsageReported{Tokens: all}, 123},
		{"input that includes what was cached stands alone", events.UsageReported{Tokens: all,
			InputIncludesCached: true}, 100},
		{"without input: what was read from the cache", events.UsageReported{Tokens: events.Tokens{CacheRead: 20,
			CacheWrite: 3}, InputIncludesCached: true}, 20},
		{"nothing", events.UsageReported{}, 0},
	} {
		if got := c.u.Used(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestDetail: a detail is one printable line within its limit, and stays as it is.
func TestDetail(t *testing.T) {
	for _, unit := range []string{"x", "ü", "漢", "\xff", "\x00", "\n", " ", "…", "\u2028", "\x1b[31m", "\u202e"} {
		for _, n := range []int{0, 1, 50, 66, 67, 99, 100, 199, 200, 201, 1 << 16} {
			got := events.Detail("a " + strings.Repeat(unit, n))
			if len(got) > events.DetailBytesMax || !utf8.ValidString(got) ||
				strings.ContainsAny(got, "\n\x00\x1b\u202e") {
				t.Errorf("%q × %d: %d bytes: %q", unit, n, len(got), got)
			}
			if again := events.Detail(got); again != got {
				t.Errorf("%q × %d: %q, then %q", unit, n, got, again)
			}
		}
	}
}
