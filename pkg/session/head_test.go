package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// TestReadHead: the head of a stored document is that of its state, whatever comes behind the head.
func TestReadHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := session.New(storyRef)
		for _, c := range history(t, "") {
			s.Fold(c)
		}
		doc := encoded(t, s)
		want := s.Head()
		end := bytes.Index(doc, []byte(`},"harness":`))
		old := append([]byte(`{"v":1`), doc[end+1:]...)
		newer := bytes.Replace(doc, []byte(`"head":{"v":1,`), []byte(`"head":{"v":99,"more":[],`), 1)
		for name, doc := range map[string][]byte{
			"as stored":               doc,
			"with a damaged rest":     append(slices.Clone(doc[:end]), "}, and so on"...),
			"without a head":          old,
			"with another build's":    newer,
			"written in another form": bytes.Replace(doc, []byte(`"head":{`), []byte(`"head": {`), 1),
		} {
			if got, err := session.ReadHead(doc); err != nil || got != want {
				t.Fatalf("%s: %+v, %v, want %+v:\n%s", name, got, err, want, doc)
			}
		}
		for name, doc := range map[string][]byte{"without a head": old, "with another build's": newer} {
			back, err := session.Decode(doc)
			if err != nil || !bytes.Equal(encoded(t, back), encoded(t, s)) {
				t.Fatalf("%s: read as %+v, %v", name, back, err)
			}
		}
	})
}

// TestMalformedHead: a document whose head is not one of this build is unreadable, as any other damaged document.
func TestMalformedHead(t *testing.T) {
	s := session.New(storyRef)
	doc := string(encoded(t, s))
	head, _, ok := strings.Cut(doc, `,"harness":`)
	if !ok {
		t.Fatalf("no head: %s", doc)
	}
	rest := strings.TrimPrefix(doc, head)
	for _, bad := range []string{`null`, `7`, `"x"`, `[]`, `{}`, `{"v":"1"}`, `{"v":1,"rules":"2"}`,
		`{"v":1,"look_at":"soon"}`,
		`{"v":1,"phase":7}`, `{"v":1,"owned":0}`} {
		for name, err := range map[string]error{"ReadHead": readHead(`{"v":1,"head":` + bad + rest),
			"Decode": decode(`{"v":1,"head":` + bad + rest)} {
			if !errors.Is(err, events.ErrMalformed) {
				t.Errorf("%s of the head %s: %v", name, bad, err)
			}
		}
	}
	if err := readHead(strings.Replace(doc, `{"v":1,`, `{"v":2,`, 1)); !errors.Is(err, session.ErrNewerLayout) {
		t.Errorf("a newer layout: %v", err)
	}
	for _, bad := range []string{``, `{}`, `{"v":1,"head":{"v":1`, head[:len(head)-1]} {
		if err := readHead(bad); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func readHead(doc string) error { _, err := session.ReadHead([]byte(doc)); return err }

func decode(doc string) error { _, err := session.Decode([]byte(doc)); return err }

// TestHeadAllocates: reading a head costs at most one allocation, in a document of any size.
func TestHeadAllocates(t *testing.T) {
	s, _ := benchState(t)
	doc := encoded(t, s)
	var r session.Reader
	if n := testing.AllocsPerRun(100, func() {
		if _, err := r.Head(doc); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("with a reader: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := session.ReadHead(doc); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("without a reader: %v allocations", n)
	}
}

// instants is each instant in a State, with the reason why it calls for a look, or why it calls for none.
var instants = map[string]string{
	"State.UpdatedAt":   "look: silence counts from it",
	"Prompt.Deadline":   "look: the prompt expires",
	"Retry.DueAt":       "look: the retry is requested",
	"LastTurn.At":       "look: an idle compaction counts from it",
	"LastCompaction.At": "look: a failed compaction that is tried again is looked at until it is requested",
	"State.ActiveAt": "an idle compaction counts from it if it is later than LastTurn.At, where the head looks " +
		"first",
	"State.OpenedAt":       "shown to people",
	"Closing.At":           "retention reads closed sessions",
	"Turn.Since":           "shown to people",
	"Tool.Since":           "shown to people",
	"Prompt.Since":         "shown to people",
	"Prompt.UpdatedAt":     "the ledger lets an entry of a view expire by its key",
	"Message.At":           "shown to people",
	"PendingTurn.At":       "shown to people",
	"PendingStop.At":       "shown to people",
	"PendingCompaction.At": "shown to people",
	"Compaction.Since":     "shown to people",
	"Usage.At":             "shown to people",
	"Late.At":              "shown to people",
	"Ending.At":            "shown to people",
	"Ending.Since":         "shown to people",
	"Ending.DeliveredAt":   "shown to people",
}

// TestEveryInstantIsCovered: each instant of a State is in the list above. A new instant is either covered by
// the head or listed as one that is not; a decider that acts on one that the head does not cover fails
// TestHeadIsCheckedInTime.
func TestEveryInstantIsCovered(t *testing.T) {
	found := map[string]bool{}
	var visit func(v reflect.Type)
	visit = func(v reflect.Type) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				f := v.Field(i)
				of := f.Type
				if of.Kind() == reflect.Pointer {
					of = of.Elem()
				}
				if of == reflect.TypeFor[time.Time]() {
					found[v.Name()+"."+f.Name] = true
				} else {
					visit(of)
				}
			}
		}
	}
	visit(reflect.TypeFor[session.State]())
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(instants)); !slices.Equal(got, want) {
		t.Errorf("the instants of a State are\n%q, and the list has\n%q", got, want)
	}
}

// headCases is what the head says after these facts, in a session with an open turn t. The instant counts from the last
// commit. A change here calls for a new number of session.HeadRules.
var headCases = []struct {
	name  string
	facts func(f *feeder)
	want  string
}{
	{"running", func(*feeder) {}, "after 10m0s"},
	{"calling", func(f *feeder) { f.harness(events.ToolStarted{Call: "c", Turn: "t", Name: "bash"}) }, "never"},
	{"asks", func(f *feeder) { f.harness(question) }, "never views"},
	{"asks until", func(f *feeder) { f.harness(timed) }, "after 30m0s timer views"},
	{"answered", func(f *feeder) { f.harness(question); f.append(events.WriterLedger, answers) }, "after 10m0s views"},
	{"done", func(f *feeder) { f.harness(done) }, "never"},
	{"failed", func(f *feeder) { f.harness(failed) }, "now"},
	{"failed, and a person asked", func(f *feeder) { f.harness(loose, failed) }, "never views"},
	{"retrying", func(f *feeder) { f.harness(failed); f.append(events.WriterRetry, scheduled(f)) },
		"after 20m0s timer"},
	{"retrying, and retries are off", func(f *feeder) {
		f.harness(failed)
		f.append(events.WriterRetry, scheduled(f))
		f.set(&events.PolicyPatch{AutoRetry: events.Set(false)})
	}, "now"},
	{"retried, and retries are off", func(f *feeder) {
		f.harness(failed)
		f.append(events.WriterRetry, scheduled(f), events.TurnRequested{Turn: "u",
			Cause: events.CauseRetry, OfTurn: "t"})
		f.set(&events.PolicyPatch{AutoRetry: events.Set(false)})
	}, "now views"},
	{"given up", func(f *feeder) {
		f.harness(failed)
		f.append(events.WriterRetry, events.RetryAbandoned{Turn: "t", Attempt: 1, Reason: "quota"})
	}, "never"},
	{"left a turn", func(f *feeder) { f.harness(events.SessionReleased{}) }, "never recover"},
	{"left a turn to another owner", func(f *feeder) { f.s.Epoch++ }, "never recover"},
	{"left nothing", func(f *feeder) { f.harness(done, events.SessionReleased{}) }, "never"},
	{"queued", func(f *feeder) { f.harness(done); f.append(events.WriterCompaction, sends) }, "now"},
	{"queued behind a failure", func(f *feeder) {
		f.append(events.WriterCompaction, sends)
		f.harness(failed)
		f.append(events.WriterRetry, events.RetryAbandoned{Turn: "t", Attempt: 1, Reason: "quota"})
	}, "never"},
	{"requested", func(f *feeder) {
		f.harness(done)
		f.append(events.WriterCompaction, events.TurnRequested{Turn: "u", Cause: events.CauseMessage})
	}, "never views"},
	{"idle", func(f *feeder) {
		f.set(&events.PolicyPatch{IdleCompactionAfterS: events.Set[int64](60)})
		f.harness(usage(5), done)
	}, "after 1m0s timer"},
	{"over the threshold", func(f *feeder) { f.harness(usage(9)) }, "now"},
	{"compacting", func(f *feeder) { f.harness(done); f.compact() }, "after 10m0s"},
	{"failed to compact", func(f *feeder) {
		f.harness(done)
		f.compact()
		f.harness(events.CompactionFailed{Compaction: "k", Error: events.Failure{Kind: "server_error", Text: "x"}})
	}, "now"},
	{"closed", func(f *feeder) {
		f.harness(question)
		f.append(events.WriterLedger,
			events.SessionClosed{Reason: "r"})
	},
		"never"},
}

var (
	question = events.PromptRequested{Prompt: "p", Turn: "t", PromptKind: events.PromptQuestion, Title: "?",
		Delivery: events.DeliverMessage}
	loose = events.PromptRequested{Prompt: "p", PromptKind: events.PromptQuestion, Title: "?",
		Delivery: events.DeliverMessage}
	timed = events.PromptRequested{Prompt: "p", Turn: "t", PromptKind: events.PromptQuestion, Title: "?",
		Delivery: events.DeliverMessage, Deadline: storyBegin.Add(30*time.Minute + 2*time.Second)}
	answers = events.PromptAnswered{Prompt: "p", Answers: []events.Answer{}, By: "ada"}
	done    = events.TurnCompleted{Turn: "t"}
	failed  = events.TurnFailed{Turn: "t", Error: events.Failure{Kind: "server_error", Text: "x"}}
	sends   = events.MessageAccepted{Message: "m", Content: json.RawMessage(`"x"`), By: "ada"}
)

func usage(used int64) events.UsageReported {
	return events.UsageReported{Turn: "t", Tokens: events.Tokens{Input: used}, ContextLimit: 10}
}

func scheduled(f *feeder) events.RetryScheduled {
	return events.RetryScheduled{Turn: "t", Attempt: 1, DueAt: f.s.UpdatedAt.Add(20*time.Minute + time.Second),
		Error: events.Failure{Kind: "server_error", Text: "x"}}
}

func (f *feeder) harness(facts ...events.Fact) { f.append(events.WriterHarness, facts...) }

func (f *feeder) set(p *events.PolicyPatch) {
	f.append(events.WriterLedger, events.SessionConfigured{Policy: p, By: "ada"})
}

func (f *feeder) compact() {
	f.append(events.WriterCompaction, events.CompactionRequested{Compaction: "k", Reason: events.CompactManual, Used: 1,
		Limit: 2})
	f.harness(events.CompactionStarted{Compaction: "k"})
}

// TestHeadOfEachSort checks the head of sessions of each sort.
func TestHeadOfEachSort(t *testing.T) {
	for _, c := range headCases {
		f := newFeeder(t)
		f.harness(events.TurnStarted{Turn: "t", Cause: events.CauseMessage})
		if c.facts(f); f.s.Ignored.Count > 0 {
			t.Errorf("%s: %+v", c.name, f.s.Ignored.Last)
		}
		if got := shownHead(f.s); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if h := session.New(storyRef).Head(); !h.CheckAt.IsZero() || h.Open() || h.Outdated() {
		t.Errorf("a session that was never opened: %+v", h)
	}
}

func shownHead(s *session.State) string {
	h, text := s.Head(), "never"
	if !h.CheckAt.IsZero() {
		text = "after " + h.CheckAt.Sub(s.UpdatedAt).String()
	}
	if h.Due {
		text = "now"
	}
	for _, x := range []struct {
		name string
		set  bool
	}{{" timer", h.Timer}, {" recover", h.Recover}, {" views", h.Views}} {
		if x.set {
			text += x.name
		}
	}
	return text
}

// TestDueWithin: a head is due at once, at its instant, or not before the next commit. The instant may have been set by
// the clock before any of the steps, so the earliest of all counts.
func TestDueWithin(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	step := func(by time.Duration) events.Steps { return events.Steps{{Seq: 1, ByMS: by.Milliseconds(), At: at}} }
	for name, c := range map[string]struct {
		head    session.Head
		steps   events.Steps
		now     time.Duration // since the instant of the head
		horizon time.Duration
		want    bool
	}{
		"at once":                    {session.Head{Due: true}, nil, -time.Hour, 0, true},
		"never":                      {session.Head{}, nil, time.Hour, time.Hour, false},
		"before its instant":         {session.Head{CheckAt: at}, nil, -1, 0, false},
		"at its instant":             {session.Head{CheckAt: at}, nil, 0, 0, true},
		"beyond the horizon":         {session.Head{CheckAt: at}, nil, -time.Minute - 1, time.Minute, false},
		"within the horizon":         {session.Head{CheckAt: at}, nil, -time.Minute, time.Minute, true},
		"before, the clock set back": {session.Head{CheckAt: at}, step(-time.Hour), -time.Hour - 1, 0, false},
		"at it, the clock set back":  {session.Head{CheckAt: at}, step(-time.Hour), -time.Hour, 0, true},
		"the clock set forward":      {session.Head{CheckAt: at}, step(time.Hour), 0, 0, true},
	} {
		if got := c.head.DueWithin(c.horizon, events.Clock{Now: at.Add(c.now), Steps: c.steps}); got != c.want {
			t.Errorf("%s: due %v, want %v", name, got, c.want)
		}
	}
}

// TestHeadIsCheckedInTime: no decider finds anything to do before the instant that the head names, and none asks for
// an earlier check, with the owner alive and nothing to recover. This holds while the broker's clock is set, too.
func TestHeadIsCheckedInTime(t *testing.T) {
	for _, model := range []string{"", longLived} {
		rapid.Check(t, func(t *rapid.T) {
			s := session.New(storyRef)
			log := history(t, model)
			src := sourceOf(log)
			for _, c := range log {
				s.Fold(c)
				checkNextCheck(t, s, src, clockSteps(t, c))
			}
		})
	}
}

// clockSteps draws a step of the broker's clock at a commit, or none.
func clockSteps(t *rapid.T, c *events.Commit) events.Steps {
	if !chance(t, "clock set", 20) {
		return nil
	}
	by := oneOf(t, "by", -time.Hour, -time.Minute, time.Minute, time.Hour)
	seq := c.Seq - uint64(below(t, "since", 5))
	return events.Steps{{Seq: seq, ByMS: by.Milliseconds(), At: c.At.Add(by)}}
}

// checkNextCheck compares the head of a state with each decider, at several instants.
func checkNextCheck(t *rapid.T, s *session.State, src session.Source, steps events.Steps) {
	h := s.Head()
	at := steps.Earliest(h.CheckAt)
	begin := s.UpdatedAt.Add(oneOf(t, "clock", 0, -time.Hour))
	for _, after := range []time.Duration{0, time.Second, 3 * time.Second, 59 * time.Second, 2 * time.Minute, time.Hour,
		3 * time.Hour} {
		now := begin.Add(after)
		due := h.Due || !h.CheckAt.IsZero() && !at.After(now)
		check := func(who string, facts int, next time.Time) {
			switch {
			case due:
			case facts > 0:
				t.Fatalf("%s has %d facts at %s, and the head says %+v:\n%s", who, facts, now, h, encoded(t, s))
			case !next.IsZero() && (h.CheckAt.IsZero() || at.After(next)):
				t.Fatalf("%s looks at %s, and the head says %+v:\n%s", who, next, h, encoded(t, s))
			}
		}
		r := retry.Decide(s, retry.Input{Now: now, Steps: steps})
		check("retry", len(r.Facts), r.CheckAt)
		c := compaction.Decide(s, compaction.Input{Now: now, Steps: steps, Idle: true})
		check("compaction", len(c.Facts), c.CheckAt)
		if h.Recover {
			continue
		}
		for _, life := range []reconciler.Liveness{reconciler.Alive, reconciler.Starting} {
			in := reconciler.Input{Now: now, Steps: steps, Owner: reconciler.Owner{Liveness: life}}
			d, err := reconciler.Decide(s, in, src)
			if err != nil {
				t.Fatal(err)
			}
			check("reconciler", len(d.Facts), d.CheckAt)
		}
	}
}
