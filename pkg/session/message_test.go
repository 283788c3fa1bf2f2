package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// busy has a turn make more calls than endings are kept.
func (f *feeder) busy(turn string) {
	f.t.Helper()
	f.append(events.WriterHarness, many(session.RecentMax+10, func(i int) events.Fact {
		return events.ToolStarted{Call: fmt.Sprintf("%s-%d", turn, i), Turn: turn, Name: "bash"}
	})...)
	f.append(events.WriterHarness, many(session.RecentMax+10,
		func(i int) events.Fact { return events.ToolCompleted{Call: fmt.Sprintf("%s-%d", turn, i)} })...)
	if _, kept := f.s.Ended(session.EntityMessage, "m1"); kept {
		f.t.Fatal("the message's end is still kept: this shows nothing")
	}
	// the document is all there is
	again, err := session.Decode(encoded(f.t, f.s))
	if err != nil {
		f.t.Fatal(err)
	}
	f.s = again
}

// wantMessage wants the harness's view to have what the person said.
func (f *feeder) wantMessage(want string) {
	f.t.Helper()
	w, err := f.s.Work(f.src)
	if err != nil || w == nil || w.Turn == nil || string(w.Turn.Content) != want {
		f.t.Errorf("after %d commits the work is %s, %v: want the content %s", f.s.Commits, fmt.Sprint(w), err, want)
	}
}

// TestMessagesOfLongAgo: however many calls a turn made, the turns after it have the person's words (T13): a retry and
// the retry of that, the turn after a compaction, the turn that a person resumes after a stop. The message is not
// accepted a second time.
func TestMessagesOfLongAgo(t *testing.T) {
	accepted := events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"paint it"`), By: "ada"}
	started := func(turn, of string) events.TurnStarted {
		return events.TurnStarted{Turn: turn, Cause: events.CauseMessage, OfTurn: of, Message: "m1"}
	}
	requested := func(turn string, cause events.Cause, of string) events.TurnRequested {
		return events.TurnRequested{Turn: turn, Cause: cause, OfTurn: of, Message: "m1"}
	}
	failed := func(turn string) events.TurnFailed {
		return events.TurnFailed{Turn: turn, Error: events.Failure{Kind: "server_error"}}
	}
	taken := map[string][]events.Fact{
		"waited":        {accepted, started("t1", "")},
		"taken at once": {started("t1", ""), accepted},
	}
	for how, facts := range taken {
		t.Run(how, func(t *testing.T) {
			f := newFeeder(t)
			f.append(events.WriterHarness, facts...)
			f.busy("t1")

			ignored := f.s.Ignored.Count
			f.append(events.WriterCompaction, events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"again"`),
				By: "ada"})
			f.mustIgnore(ignored+1, session.WhyClosedID)

			f.append(events.WriterHarness, failed("t1"))
			f.append(events.WriterRetry, requested("t2", events.CauseRetry, "t1"))
			f.wantMessage(`"paint it"`)
			f.append(events.WriterHarness, started("t2", "t1"),
				events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"again"`), By: "ada"})
			f.mustIgnore(ignored+2, session.WhyClosedID)
			f.busy("t2")

			f.append(events.WriterCompaction, events.CompactionRequested{Compaction: "k1",
				Reason:   events.CompactMidStream,
				FollowUp: events.FollowContinue, Message: "m1"})
			f.append(events.WriterHarness, events.TurnStopped{Turn: "t2", Actor: events.ActorCompaction},
				events.CompactionStarted{Compaction: "k1"}, events.CompactionCompleted{Compaction: "k1"})
			f.append(events.WriterCompaction, requested("t3", events.CauseFollowUp, "t2"))
			f.wantMessage(`"paint it"`)

			// takes t3 back
			f.append(events.WriterLedger, events.TurnStopRequested{Turn: "t3", Actor: events.ActorPerson, By: "ada"})
			if l := f.s.LastTurn; l == nil || l.ID != "t3" {
				t.Fatalf("the last turn is %+v, want the one that was taken back", l)
			}
			f.append(events.WriterRetry, requested("t4", events.CauseRetry, "t3"))
			f.wantMessage(`"paint it"`)

			f.append(events.WriterHarness, started("t4", "t3"), events.TurnCompleted{Turn: "t4"})
			f.append(events.WriterHarness, events.TurnStarted{Turn: "t5", Cause: events.CauseMessage, Message: "m5"})
			if e, _ := f.s.Ended(session.EntityMessage, "m1"); e.OpenedSeq != 2 {
				t.Errorf("the message was taken in at %d, the end of it that is kept says %d", 2, e.OpenedSeq)
			}
		})
	}
}

// TestAWithdrawnMessageIsNotShown: no turn gets a message that a person withdrew, whichever service requests the turn.
func TestAWithdrawnMessageIsNotShown(t *testing.T) {
	f := newFeeder(t)
	f.append(events.WriterCompaction, events.MessageAccepted{Message: "m1", Content: json.RawMessage(`"paint it"`),
		By: "ada"})
	f.append(events.WriterCompaction, events.MessageWithdrawn{Message: "m1", By: "ada"})
	f.append(events.WriterCompaction, events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
	f.wantMessage("")
	if seqs := []uint64{f.s.MessageSeq("m1"), f.s.MessageSeq("m2"), f.s.MessageSeq("")}; slices.Max(seqs) != 0 {
		t.Errorf("messages that the harness does not have were taken in at %v", seqs)
	}
}
