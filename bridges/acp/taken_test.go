package acp

import (
	"cmp"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// decidedAll is a store whose process has the session of [leaves], after people have decided all: the turn that is
// returned is requested.
func decidedAll(t *testing.T) (s *stored, in *harness.Session, turn string) {
	t.Helper()
	s = leaves(t)
	s.person("s1", "p2", events.Answer{Question: "q1", Text: "this"})
	s.person("s1", "p1", events.Answer{Question: events.PermissionQuestion, Selected: []string{"yes"}})
	in = s.claims("s1")
	return s, in, in.State().Pending.Turn.ID
}

func (s *stored) claims(id string) *harness.Session {
	s.t.Helper()
	in, err := s.h.Claim(s.t.Context(), id, harness.Adopt{Waiting: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return in
}

// stopped has a person stop a turn. Nothing tells the owner.
func (s *stored) stopped(turn string) {
	s.t.Helper()
	s.writes(events.WriterLedger, events.PersonSource("ada"), s.state("s1"),
		events.TurnStopRequested{Turn: turn, Actor: events.ActorPerson, By: "ada"})
}

// TestTakesOverWhatIsLeft: the turn for decisions is stopped, or another one takes its place, before an attempt to
// begin it, or between two. It does not begin, and the session is not lost. A turn requested in its place begins.
func TestTakesOverWhatIsLeft(t *testing.T) {
	t.Parallel()
	service := func(s *stored, f events.Fact) {
		s.writes(events.WriterRetry, events.ServiceSource("retry", "1"), s.state("s1"), f)
	}
	for name, c := range map[string]struct {
		change func(s *stored, turn string)
		again  bool // an earlier attempt to begin it had no outcome, and the owner has read the change since
		want   string
	}{
		"stopped": {func(s *stored, turn string) { s.stopped(turn) }, false, ""},
		"stopped, and requested": {func(s *stored, turn string) {
			s.stopped(turn)
			service(s, events.TurnRequested{Turn: "t8", Cause: events.CauseAnswer, Prompts: []string{"p2"}})
		}, false, "t8"},
		"stopped between": {func(s *stored, turn string) { s.stopped(turn) }, true, ""},
		"replaced between": {func(s *stored, _ string) {
			service(s, events.TurnRequested{Turn: "t9", Cause: events.CauseResume})
		}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, in, turn := decidedAll(t)
			r := newRecord("s1")
			if c.change(s, turn); c.again {
				r.next = turn
				// a fact of the owner has it read what is before
				if err := in.Relay(t.Context(), events.MessageAccepted{Message: "m9", Content: encode("x"),
					Synthetic: true}); err != nil {
					t.Fatal(err)
				}
			}
			taken, err := s.takeOver(t.Context(), r, in)
			if err != nil || r.next != "" || r.turn != c.want || (taken != nil) != (c.want != "") {
				t.Fatalf("%v, %v, %q, %q", taken, err, r.next, r.turn)
			}
			if c.want != "" {
				if got := s.given(); got.Turn != c.want || len(got.Decisions) != 2 {
					t.Errorf("%+v", got)
				}
			}
			// the reconciler would end the other one
			if st := s.state("s1"); st.Turn.ID != cmp.Or(c.want, "t1") {
				t.Errorf("the turn is %+v", st.Turn)
			}
		})
	}
}

// TestBeginsNothingThatAPersonStopped: a stop and its receipt are stored while the turn begins.
func TestBeginsNothingThatAPersonStopped(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	s.connects()
	s.opens("s1", starts("t1")...)
	s.adds("s1", events.TurnCompleted{Turn: "t1"})
	in := s.claims("s1")
	doc := in.State()
	s.stopped("t1")
	s.writes(events.WriterHarness, events.HarnessSource("h", doc.Incarnation), s.state("s1"),
		events.TurnStopped{Turn: "t1", Actor: events.ActorPerson})
	if _, err := s.beginNext(t.Context(), in, doc, &Inherited{Turn: "t2"}); !errors.Is(err, errOver) {
		t.Errorf("%v", err)
	}
}

// TestAPromptThatEndsWhileItIsRead: it is left out. If its turn has ended with it, nothing is taken over.
func TestAPromptThatEndsWhileItIsRead(t *testing.T) {
	t.Parallel()
	s := leaves(t)
	in := s.claims("s1")
	turn, doc := in.OpenTurn(), in.State()
	if err := in.Withdraw(t.Context(), "p1", "r"); err != nil {
		t.Fatal(err)
	}
	r, read := newRecord("s1"), Inherited{Turn: "t1"}
	if err := s.readWaiting(t.Context(), r, turn, doc, &read); err != nil || len(read.Prompts) != 1 ||
		read.Prompts[0].Prompt != "p2" || len(r.prompts) != 1 {
		t.Errorf("%v, %+v", err, read)
	}
	if err := turn.Stop(t.Context(), events.ActorPerson, ""); err != nil {
		t.Fatal(err)
	}
	r, read = newRecord("s1"), Inherited{Turn: "t1"}
	if err := s.readWaiting(t.Context(), r, turn, doc, &read); !errors.Is(err, errOver) || len(r.prompts) > 0 {
		t.Errorf("%v, %+v", err, read)
	}
}

// TestATurnThatEndsWhileItsDecisionsAreRead: nothing is taken over.
func TestATurnThatEndsWhileItsDecisionsAreRead(t *testing.T) {
	t.Parallel()
	s, in, next := decidedAll(t)
	read := Inherited{Turn: next}
	turn, err := s.beginNext(t.Context(), in, in.State(), &read)
	if err != nil || len(read.Decisions) != 2 {
		t.Fatalf("%v, %+v", err, read)
	}
	if err := turn.Stop(t.Context(), events.ActorPerson, ""); err != nil {
		t.Fatal(err)
	}
	if err := read.read(t.Context(), turn); !errors.Is(err, errOver) {
		t.Errorf("%v", err)
	}
	if st := s.state("s1"); st.LastTurn.Outcome != fold.OutcomeStopped {
		t.Errorf("%+v", st.LastTurn)
	}
}

// TestTakesOverWhatAnAttemptHasBegun: the outcome of an attempt to begin the turn was not known, and the log has the
// turn. The next attempt has its decisions.
func TestTakesOverWhatAnAttemptHasBegun(t *testing.T) {
	t.Parallel()
	s, in, next := decidedAll(t)
	if err := in.Relay(t.Context(), events.TurnStarted{Turn: next, Cause: events.CauseAnswer}); err != nil {
		t.Fatal(err)
	}
	r := newRecord("s1")
	r.next = next
	if turn, err := s.takeOver(t.Context(), r, in); err != nil || turn == nil || r.turn != next || r.next != "" {
		t.Fatalf("%v, %v, %+v", turn, err, r)
	}
	if got := s.given(); got.Turn != next || len(got.Decisions) != 2 {
		t.Errorf("%+v", got)
	}
}
