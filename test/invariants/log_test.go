package invariants

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// story is a log in the making; the commit n is stored n seconds after the beginning.
type story struct {
	t     *testing.T
	st    *session.State
	x     *Log
	found []string
}

func newStory(t *testing.T) *story {
	s := &story{t: t, st: session.New(events.Ref{Harness: "h", Session: "s"}), x: New(0)}
	policy := &events.PolicyPatch{ResumeMax: events.Set(1)}
	s.harness(events.SessionOpened{Incarnation: "1", Policy: policy, ContextLimit: 100})
	s.harness(events.MessageAccepted{Message: "m", Content: []byte(`"x"`)},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage, Message: "m"})
	return s
}

// besideARetry schedules the retry of turn t, has the harness run a turn by itself, and hands out a person's message.
func (s *story) besideARetry(ofTurn string) {
	s.fails()
	s.service(events.WriterRetry, events.RetryScheduled{Turn: "t", Attempt: 1, DelayMS: 60_000,
		DueAt: s.st.LastTurn.At.Add(time.Minute)})
	s.harness(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
	s.person(events.WriterCompaction, events.MessageAccepted{Message: "n", Content: []byte(`"x"`)},
		events.TurnRequested{Turn: "u", Cause: events.CauseMessage, OfTurn: ofTurn, Message: "n"})
}

// at is the instant of the commit with this number.
func at(seq uint64) time.Time { return time.Unix(int64(seq), 0).UTC() }

func (s *story) append(w events.Writer, source string, facts ...events.Fact) {
	s.t.Helper()
	c := events.Commit{Ref: s.st.Ref(), Writer: w, Seq: s.st.Seq + 1, Guard: s.st.Seq, Guarded: true,
		At: at(s.st.Seq + 1)}
	epoch := max(s.st.Epoch, 1)
	for _, f := range facts {
		if _, claims := f.(events.SessionClaimed); claims {
			epoch++
		}
		from := source
		// also in a person's commit the service's own word
		if _, ok := f.(events.TurnRequested); ok && w == events.WriterCompaction {
			from = events.ServiceSource(string(w), "x")
		}
		c.Events = append(c.Events, events.New("e", from, c.Ref, epoch, c.At, f))
	}
	before := s.st.Clone()
	res := s.st.Fold(&c)
	if len(res.Feed) < len(facts) {
		s.t.Fatalf("%s does not count: %+v", facts[0].Kind(), s.st.Ignored.Last)
	}
	s.found = append(s.found, s.x.Commit(before, &c, res.Feed)...)
}

func (s *story) harness(facts ...events.Fact) {
	s.t.Helper()
	s.append(events.WriterHarness, events.HarnessSource("h", "1"), facts...)
}

func (s *story) service(w events.Writer, facts ...events.Fact) {
	s.t.Helper()
	s.append(w, events.ServiceSource(string(w), "x"), facts...)
}

func (s *story) person(w events.Writer, facts ...events.Fact) {
	s.t.Helper()
	s.append(w, events.PersonSource("ada"), facts...)
}

func (s *story) fails() {
	s.harness(events.TurnFailed{Turn: "t", Error: events.Failure{Kind: "server_error"}})
}

// schedules has another attempt of t made, which fails in the commit 3 of most stories.
func (s *story) schedules(attempt int, delay time.Duration, due time.Time) {
	s.service(events.WriterRetry, events.RetryScheduled{Turn: "t", Attempt: attempt, DelayMS: delay.Milliseconds(),
		DueAt: due})
}

func (s *story) asks(turn string, cause events.Cause, ofTurn string) {
	s.service(events.WriterRetry, events.TurnRequested{Turn: turn, Cause: cause, OfTurn: ofTurn, Attempt: 1})
}

func (s *story) sent(messages ...string) {
	for _, m := range messages {
		s.person(events.WriterCompaction, events.MessageAccepted{Message: m, Content: []byte(`"x"`)})
	}
}

func (s *story) compacts(id, message string) {
	s.service(events.WriterCompaction, events.CompactionRequested{Compaction: id, Reason: events.CompactOnSend,
		FollowUp: events.FollowMessage, Message: message})
	s.harness(events.CompactionStarted{Compaction: id}, events.CompactionCompleted{Compaction: id})
}

// midStream stops t for a compaction, which completes; meanwhile other things happen.
func (s *story) midStream(meanwhile ...func()) {
	s.harness(events.PromptRequested{Prompt: "p", Turn: "t", PromptKind: events.PromptQuestion,
		Delivery: events.DeliverCallback, Blocking: new(bool)})
	s.service(events.WriterCompaction, events.TurnStopRequested{Turn: "t", Actor: events.ActorCompaction},
		events.CompactionRequested{Compaction: "k", Reason: events.CompactMidStream, FollowUp: events.FollowContinue})
	for _, do := range meanwhile {
		do()
	}
	s.harness(events.TurnStopped{Turn: "t", Actor: events.ActorCompaction})
	s.harness(events.CompactionStarted{Compaction: "k"}, events.CompactionCompleted{Compaction: "k"})
}

func (s *story) follows(turn, compaction, message string) {
	s.service(events.WriterCompaction, events.TurnRequested{Turn: turn, Cause: events.CauseFollowUp, Message: message,
		Compaction: compaction})
}

func TestWhatIsAgainstTheRules(t *testing.T) {
	second := time.Second
	for name, c := range map[string]struct {
		want string
		do   func(s *story)
	}{
		"a retry in time": {"", func(s *story) {
			s.fails()
			s.schedules(1, 2*second, at(5))
			s.asks("u",
				events.CauseRetry, "t")
		}},
		"scheduled twice": {"V7", func(s *story) {
			s.fails()
			s.schedules(1, 2*second, at(5))
			s.schedules(2, 4*second,
				at(7))
		}},
		"another instant": {"V7", func(s *story) { s.fails(); s.schedules(1, 2*second, at(6)) }},
		"an attempt over": {"V7", func(s *story) { s.fails(); s.schedules(2, 4*second, at(7)) }},
		"before its time": {"V7", func(s *story) {
			s.fails()
			s.schedules(1, 9*second, at(12))
			s.asks("u",
				events.CauseRetry, "t")
		}},
		"asked for twice": {"V7", func(s *story) {
			s.fails()
			s.schedules(1, 2*second, at(5))
			s.asks("u", events.CauseRetry, "t")
			s.asks("v", events.CauseRetry, "t")
		}},
		"resumed as often as it may be": {"", func(s *story) {
			s.cut("t")
			s.schedules(1, 2*second, at(5))
			s.asks("u",
				events.CauseResume, "t")
		}},
		"resumed without delay": {"V7", func(s *story) { s.cut("t"); s.asks("u", events.CauseResume, "t") }},
		"resumed too often": {"V8", func(s *story) {
			s.cut("t")
			s.schedules(1, 2*second, at(5))
			// the document does not count it
			s.asks("u", events.CauseRetry, "t")
			s.harness(events.TurnStarted{Turn: "u", Synthetic: true})
			s.cut("u")
			s.service(events.WriterRetry, events.RetryScheduled{Turn: "u", Attempt: 2, DelayMS: 2000, DueAt: at(9)})
			s.asks("v", events.CauseResume, "u")
		}},
		"a stopped turn is scheduled": {"V9", func(s *story) {
			s.stops("t")
			s.fails()
			s.schedules(1, 2*second,
				at(6))
		}},
		"a stopped turn continues": {"V9", func(s *story) {
			s.stops("t")
			s.harness(events.TurnStopped{Turn: "t", Actor: events.ActorPerson})
			s.service(events.WriterCompaction, events.TurnRequested{Turn: "u", Cause: events.CauseFollowUp,
				OfTurn: "t"})
		}},
		"a stopped turn, and a person who wants it": {"", func(s *story) {
			s.stops("t")
			s.fails()
			s.person(events.WriterRetry, events.TurnRequested{Turn: "u", Cause: events.CauseRetry, OfTurn: "t"})
		}},
		"switched off": {"V9", func(s *story) {
			s.person(events.WriterLedger,
				events.SessionConfigured{Policy: &events.PolicyPatch{AutoRetry: events.Set(false)}})
			s.fails()
			s.schedules(1, 2*second, at(6))
		}},
		"messages in order": {"", func(s *story) { s.sent("a", "b"); s.takes("u", "a"); s.takes("v", "b") }},
		"in place of a question, beside the retry of an earlier turn": {"", func(s *story) { s.besideARetry("own") }},
		"beside a retry":       {"V10", func(s *story) { s.besideARetry("") }},
		"messages in disorder": {"V10", func(s *story) { s.sent("a", "b"); s.takes("v", "b") }},
		"handed out twice":     {"V10", func(s *story) { s.sent("a"); s.takes("u", "a"); s.takes("v", "a") }},
		"taken back without a request": {"V10", func(s *story) {
			s.sent("a")
			s.service(events.WriterCompaction,
				events.MessageWithdrawn{Message: "a"})
		}},
		"taken back": {"", func(s *story) {
			s.sent("a")
			s.person(events.WriterCompaction,
				events.MessageWithdrawn{Message: "a"})
		}},
		"the queue moves after a failure": {"V10", func(s *story) {
			s.sent("a")
			s.fails()
			s.service(events.WriterCompaction, events.TurnRequested{Turn: "u", Cause: events.CauseMessage,
				Message: "a"})
		}},
		"and after a person's word": {"", func(s *story) {
			s.sent("a")
			s.fails()
			s.sent("b")
			s.service(events.WriterCompaction, events.TurnRequested{Turn: "u", Cause: events.CauseMessage,
				Message: "a"})
		}},
		"a message from after a stop that moved": {"", func(s *story) {
			s.stops("t")
			s.sent("a")
			s.stopMovesTo("own")
			s.handsOut("a")
		}},
		"a message from before a stop that moved": {"V10", func(s *story) {
			s.sent("a")
			s.stops("t")
			s.stopMovesTo("own")
			s.handsOut("a")
		}},
		"a message from before the failure of a turn that is newer than a stop": {"V10", func(s *story) {
			s.stops("t")
			s.sent("a", "b")
			s.takes("u", "a")
			s.harness(events.TurnFailed{Turn: "u", Error: events.Failure{Kind: "server_error"}})
			s.handsOut("b")
		}},
		"a message from before the failure of a turn that a person requested after a stop": {"V10", func(s *story) {
			s.sent("a")
			s.stops("t")
			s.fails()
			s.person(events.WriterRetry, events.TurnRequested{Turn: "u", Cause: events.CauseResume, OfTurn: "t"})
			s.harness(events.TurnStarted{Turn: "u"})
			s.harness(events.TurnFailed{Turn: "u", Error: events.Failure{Kind: "server_error"}})
			s.handsOut("a")
		}},
		"a turn that a stop moved to is scheduled": {"V9", func(s *story) {
			s.stops("t")
			s.harness(events.TurnStarted{Turn: "own", Cause: events.CauseMessage, Synthetic: true})
			s.harness(events.TurnFailed{Turn: "own", Error: events.Failure{Kind: "server_error"}})
			s.service(events.WriterRetry, events.RetryScheduled{Turn: "own", Attempt: 1, DelayMS: 2000, DueAt: at(7)})
		}},
		"followed up once": {"", func(s *story) {
			s.sent("a")
			s.compacts("k", "a")
			s.follows("u", "k",
				"a")
		}},
		"followed up twice": {"V11", func(s *story) {
			s.sent("a")
			s.compacts("k", "a")
			s.follows("u",
				"k", "a")
			s.follows("v", "k", "a")
		}},
		"two compactions for a message": {"V11", func(s *story) {
			s.sent("a")
			s.compacts("k", "a")
			s.compacts("l",
				"a")
		}},
		"a message whose usage is newer": {"", func(s *story) {
			s.sent("a")
			s.compacts("k",
				"a")
			s.reports()
			s.compacts("l", "a")
		}},
		"a message whose usage is newer, behind a compaction that failed": {"", func(s *story) {
			s.sent("a")
			s.compacts("k", "a")
			s.person(events.WriterCompaction, events.CompactionRequested{Compaction: "m", Reason: events.CompactManual})
			s.service(events.WriterReconciler, events.CompactionFailed{Compaction: "m",
				Error: events.Failure{Kind: events.ReasonOwnerLost}})
			s.reports()
			s.compacts("l", "a")
		}},
		"two compactions for a message, with a report between": {"V11", func(s *story) {
			s.sent("a")
			s.service(events.WriterCompaction, events.CompactionRequested{Compaction: "k", Reason: events.CompactOnSend,
				FollowUp: events.FollowMessage, Message: "a"})
			s.reports()
			s.harness(events.CompactionStarted{Compaction: "k"}, events.CompactionCompleted{Compaction: "k"})
			s.compacts("l", "a")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			c.do(s)
			switch {
			case c.want == "" && len(s.found) > 0:
				t.Errorf("nothing is wrong, and it finds %s", s.found[0])
			case c.want != "" && (len(s.found) == 0 || !strings.HasPrefix(s.found[0], c.want+": ")):
				t.Errorf("found %q, want %s", s.found, c.want)
			}
		})
	}
}

// cut is a process that died in a turn.
func (s *story) cut(turn string) {
	s.service(events.WriterReconciler, events.TurnInterrupted{Turn: turn, Reason: events.ReasonOwnerLost})
}

func (s *story) stops(turn string) {
	s.person(events.WriterLedger, events.TurnStopRequested{Turn: turn, Actor: events.ActorPerson, By: "ada"})
}

// stopMovesTo has the harness start a turn by itself before it reads the stop of t, and confirm the stop there.
func (s *story) stopMovesTo(turn string) {
	s.harness(events.TurnStarted{Turn: turn, Cause: events.CauseMessage, Synthetic: true})
	s.harness(events.TurnStopped{Turn: turn, Actor: events.ActorPerson})
}

// handsOut has the compaction service request the turn of a queued message.
func (s *story) handsOut(message string) {
	s.service(events.WriterCompaction, events.TurnRequested{Turn: "of-" + message, Cause: events.CauseMessage,
		Message: message})
}

func (s *story) takes(turn, message string) {
	s.harness(events.TurnStarted{Turn: turn, Cause: events.CauseMessage, Message: message})
}

func (s *story) reports() {
	s.harness(events.UsageReported{Turn: "t", Tokens: events.Tokens{Input: 99}})
}

// takesNoDecision has the harness begin turns of its own for all that recovery requests for a decision. A person
// decided after a stop, and the turn that ran then gave way to another.
func (s *story) takesNoDecision() {
	s.harness(events.PromptRequested{Prompt: "p", PromptKind: events.PromptQuestion, Title: "?",
		Questions: []events.Question{{ID: "q", Question: "?", Custom: true}}}, events.PromptUnattended{Prompt: "p"})
	s.harness(events.MessageAccepted{Message: "a", Content: []byte(`"x"`), Synthetic: true})
	s.stops("t")
	s.harness(events.TurnStopped{Turn: "t", Actor: events.ActorPerson}, events.TurnStarted{Turn: "v", Synthetic: true})
	s.person(events.WriterLedger, events.PromptAnswered{Prompt: "p", By: "ada", Owed: true},
		events.TurnRequested{Turn: "u", Cause: events.CauseAnswer, Message: "a", Prompt: "p",
			Prompts: []string{"p"}})
	for i := range session.ContinuationsMax + 1 {
		if why := s.x.Stuck(s.st, true); why == "" && i > 0 {
			s.t.Fatalf("after %d requests nothing is missing: %+v", i, s.st.Continuations)
		}
		if i > 0 {
			s.service(events.WriterReconciler, events.TurnRequested{Turn: fmt.Sprint("u", i),
				Cause: events.CauseAnswer, Prompt: "p", Prompts: []string{"p"}})
		}
		own := fmt.Sprint("own", i)
		s.harness(events.TurnStarted{Turn: own, Cause: events.CauseMessage, Synthetic: true})
		s.harness(events.TurnCompleted{Turn: own})
	}
}

// TestStuck: a wait without a reason is found when all is at rest.
func TestStuck(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		alive bool
		do    func(s *story)
	}{
		"it runs":                  {"", true, func(*story) {}},
		"it runs without an owner": {"V14", false, func(*story) {}},
		"it is to run":             {"V14", true, func(s *story) { s.fails(); s.asks("u", events.CauseRetry, "t") }},
		"it is to run, and no owner is there": {"", false, func(s *story) {
			s.fails()
			s.asks("u", events.CauseRetry, "t")
		}},
		"a retry without its timer": {"V14", false, func(s *story) { s.fails(); s.schedules(1, 2*time.Second, at(5)) }},
		"a queue that stands still": {"V10", true,
			func(s *story) { s.sent("a"); s.harness(events.TurnCompleted{Turn: "t"}) }},
		"a queue after a failure": {"", true, func(s *story) { s.sent("a"); s.fails() }},
		"a follow-up that is owed": {"V11", true,
			func(s *story) { s.sent("a"); s.harness(events.TurnCompleted{Turn: "t"}); s.compacts("k", "a") }},
		"a follow-up, when another turn failed before the compaction": {"", true, func(s *story) {
			s.sent("a")
			s.harness(events.TurnCompleted{Turn: "t"})
			s.service(events.WriterCompaction, events.CompactionRequested{Compaction: "k", Reason: events.CompactOnSend,
				FollowUp: events.FollowMessage, Message: "a"})
			s.harness(events.MessageAccepted{Message: "b", Content: []byte(`"x"`), Synthetic: true},
				events.TurnStarted{Turn: "u", Message: "b"})
			s.harness(events.TurnFailed{Turn: "u", Error: events.Failure{Kind: "quota"}})
			s.harness(events.CompactionStarted{Compaction: "k"}, events.CompactionCompleted{Compaction: "k"})
		}},
		"a compaction that no harness starts": {"V14", true, func(s *story) {
			s.service(events.WriterCompaction, events.CompactionRequested{Compaction: "k",
				Reason: events.CompactManual})
		}},
		"a queue that a person stopped": {"", true,
			func(s *story) { s.sent("a"); s.harness(events.TurnCompleted{Turn: "t"}); s.stops("t") }},
		"a stop, and a turn in place of a person's": {"V10", true, func(s *story) {
			s.sent("a")
			s.stops("t")
			s.harness(events.TurnStopped{Turn: "t", Actor: events.ActorPerson},
				events.TurnStarted{Turn: "v", Synthetic: true})
			s.harness(events.PromptRequested{Prompt: "p", Turn: "v", PromptKind: events.PromptQuestion,
				Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
			s.service(events.WriterReconciler, events.SessionOrphaned{Incarnation: "1", Reason: events.ReasonOwnerLost})
			s.person(events.WriterLedger, events.PromptAnswered{Prompt: "p", By: "ada", Owed: true},
				events.TurnRequested{Turn: "u", Cause: events.CauseAnswer, OfTurn: "v", Prompt: "p"})
			s.harness(events.SessionClaimed{Incarnation: "1"})
			s.harness(events.TurnStarted{Turn: "v"}, events.PromptDelivered{Prompt: "p"})
			s.cut("v")
			s.asks("w", events.CauseResume, "v")
			s.harness(events.TurnStarted{Turn: "w", Cause: events.CauseResume, OfTurn: "v"},
				events.TurnCompleted{Turn: "w"})
		}},
		"and one that continues": {"V10", true, func(s *story) {
			s.sent("a")
			s.harness(events.TurnCompleted{Turn: "t"})
			s.stops("t")
			s.sent("b")
		}},
		"and one whose agent takes none of the turns for decisions": {"", true, (*story).takesNoDecision},
		"a turn that does not go on":                                {"V11", true, func(s *story) { s.midStream() }},
		"nor after an answer, for a person stopped it": {"", true, func(s *story) {
			s.midStream(func() {
				s.stops("t")
				s.person(events.WriterLedger, events.PromptAnswered{Prompt: "p", By: "ada"})
			})
		}},
		"nor after a message, which has a turn of its own": {"", true, func(s *story) {
			s.midStream(func() { s.stops("t"); s.sent("a") })
			s.takes("u", "a")
			s.harness(events.TurnCompleted{Turn: "u"})
		}},
		"it is closed": {"", true, func(s *story) { s.sent("a"); s.harness(events.SessionClosed{Reason: "finished"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			c.do(s)
			if got := s.x.Stuck(s.st, c.alive); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
