package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/examples/agent/script"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// delivered returns a condition: this message's turn has completed.
func delivered(message string) func(*session.State) bool {
	return func(st *session.State) bool { return completed(st) && st.LastTurn.Message == message }
}

// prompt returns the messages of a request as one text.
func prompt(q script.Request) string {
	var b strings.Builder
	for _, m := range q.Messages {
		b.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return b.String()
}

// order checks that these kinds are in the log in this order. Other kinds may stand between them.
func (w *world) order(kinds ...string) {
	w.t.Helper()
	facts := w.facts()
	for _, k := range kinds {
		i := slices.Index(facts, k)
		if i < 0 {
			w.t.Errorf("no %s after the others of %v in %v", k, kinds, w.facts())
			return
		}
		facts = facts[i+1:]
	}
}

// C4: the next message finds the context full. It is stored, the conversation is compacted, and then the message is
// delivered once.
func TestCompactsOnSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.contextLimit = 1000
	w.script.Play(script.Step{Text: "Blue.", Used: 720}, script.Step{Text: "Still blue.", Used: 90})
	w.script.Summarise(script.Step{Text: "The wall is blue."})
	w.agent("")
	w.send("m1", "which colour?")
	w.until("the first answer", delivered("m1"))
	w.send("m2", "and now?")
	st := w.until("the second answer", delivered("m2"))
	w.order("turn.completed", "message.accepted", "compaction.requested", "compaction.started", "compaction.completed",
		"turn.requested", "turn.started", "turn.completed")
	if l := st.LastCompaction; l.Reason != events.CompactOnSend || l.Outcome != session.OutcomeCompleted ||
		st.LastTurn.Cause != events.CauseFollowUp || st.Usage.Used != 90 || st.Ignored.Count != 0 {
		t.Errorf("%+v, %+v, %+v", l, st.LastTurn, st.Usage)
	}
	q := w.script.Requests()
	if len(q) != 3 || !q[1].Summary || !strings.Contains(prompt(q[1]), "which colour?") {
		t.Fatalf("%+v", q)
	}
	if text := prompt(q[2]); !strings.Contains(text, "The wall is blue.") ||
		!strings.HasSuffix(text, "user: and now?\n") || strings.Contains(text, "which colour?") {
		t.Errorf("%s", text)
	}
}

// C5: a turn fills the context while it works. It is stopped between two calls and the conversation is compacted. Then
// it continues with the same message and the results so far.
func TestCompactsMidStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.contextLimit = 1000
	w.file("notes.txt", "the colour is red")
	// The stop may arrive before the model call.
	stopped := func() {
		w.until("the stop", func(st *session.State) bool { return st.Turn == nil || st.LastCompaction != nil })
	}
	w.script.Play(script.Step{Calls: []script.Call{{Name: "read_file",
		Arguments: `{"path":"notes.txt"}`}}, Used: 900},
		script.Step{Text: "It is red.", Used: 50, Hold: stopped}, script.Step{Text: "It is red.", Used: 50})
	w.script.Summarise(script.Step{Text: "notes.txt says red."})
	w.agent("")
	w.send("m1", "which colour do the notes say?")
	st := w.until("the answer", delivered("m1"))
	w.order("tool.started", "tool.completed", "turn.stop_requested", "compaction.requested", "turn.stopped",
		"compaction.started", "compaction.completed", "turn.requested", "turn.started", "turn.completed")
	if l := st.LastCompaction; l.Reason != events.CompactMidStream || st.LastTurn.Cause != events.CauseFollowUp ||
		string(st.LastTurn.Options) != `{"model":"small"}` || st.Ignored.Count != 0 {
		t.Errorf("%+v, %+v, %+v", l, st.LastTurn, st.Ignored.Last)
	}
	if n := count(w.facts(), "tool.started"); n != 1 {
		t.Errorf("the call was made %d times", n)
	}
	q := w.script.Requests()
	last := prompt(q[len(q)-1])
	if i, j := strings.Index(last, "which colour"), strings.Index(last, "notes.txt says red."); i < 0 || j < i {
		t.Errorf("%s", last)
	}
}

// C11: the provider reports an overflow, also for the summary: the beginning is removed until it fits. Then the same
// turn runs again.
func TestCompactsOnOverflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.LimitMax = 1200
	w.script.Play(script.Step{Text: strings.Repeat("blue ", 600)}, script.Step{Text: strings.Repeat("red ", 600)},
		script.Step{Text: "Red."})
	w.script.Summarise(script.Step{Text: "First blue, then red."})
	w.agent("")
	w.send("m1", "one")
	w.until("the first answer", delivered("m1"))
	w.send("m2", "two")
	w.until("the second answer", delivered("m2"))
	w.send("m3", "which colour now?")
	st := w.until("the third answer", delivered("m3"))
	w.order("turn.failed", "compaction.requested", "compaction.completed", "turn.requested", "turn.started",
		"turn.completed")
	if count(w.facts(), "turn.failed") != 1 || count(w.facts(), "compaction.requested") != 1 || st.Ignored.Count != 0 {
		t.Errorf("%v", w.facts())
	}
	q := w.script.Requests()
	if text := prompt(q[len(q)-1]); !strings.HasSuffix(text,
		"user: "+summaryWords+"First blue, then red.\nuser: which colour now?\n") {
		t.Errorf("%s", text)
	}
}

// C11: a turn that overflows again after its compaction is not compacted for ever: it fails with a reason.
func TestOverflowsForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.LimitMax = 500
	w.script.Summarise(script.Step{Text: "A long list."})
	w.agent("")
	w.send("m1", strings.Repeat("much too long ", 400))
	st := w.until("the end of it", func(st *session.State) bool {
		return count(w.facts(), "turn.failed") == 2 && st.Turn == nil && st.Pending.Turn == nil &&
			st.Pending.Compaction == nil
	})
	if e := st.LastTurn.Error; e == nil || e.Kind != failure.ContextExceeded ||
		count(w.facts(), "compaction.requested") != 1 {
		t.Errorf("%+v, %v", st.LastTurn, w.facts())
	}
}

// C8, C17: a failed summary is retried with a delay. A JSON answer of the model is not a summary. The message behind it
// is delivered once.
func TestSummariesThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.contextLimit = 1000
	w.script.Play(script.Step{Text: "Blue.", Used: 720}, script.Step{Text: "Still blue.", Used: 90})
	w.script.Summarise(script.Step{Status: 500, Body: `{"error":{"message":"mock error 500"}}`},
		script.Step{Text: `{"tool":"read_file"}`}, script.Step{}, script.Step{Text: "The wall is blue."})
	w.agent("")
	w.send("m1", "which colour?")
	w.until("the first answer", delivered("m1"))
	began := time.Now()
	w.send("m2", "and now?")
	st := w.until("the second answer", delivered("m2"))
	if took := time.Since(began); took < 13*time.Second {
		t.Errorf("three failures took %s", took)
	}
	var kinds []string
	for _, e := range st.Recent {
		if e.Entity == session.EntityCompaction && e.Outcome == session.OutcomeFailed {
			kinds = append(kinds, e.Reason)
		}
	}
	if got := strings.Join(kinds, " "); got != "server_error bad_summary bad_summary" ||
		count(w.facts(), "turn.started") != 2 {
		t.Errorf("%s, %v", got, w.facts())
	}
}

// C8: a failure that is final ends the compaction at once. The message is delivered if it fits.
func TestSummariesThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.contextLimit = 1000
	w.script.Play(script.Step{Text: "Blue.", Used: 720}, script.Step{Text: "Still blue.", Used: 90})
	w.script.Summarise(script.Step{Status: 401, Body: `{"error":{"message":"no"}}`})
	w.agent("")
	w.send("m1", "which colour?")
	w.until("the first answer", delivered("m1"))
	w.send("m2", "and now?")
	st := w.until("the second answer", delivered("m2"))
	if l := st.LastCompaction; l == nil || l.Outcome != session.OutcomeFailed ||
		l.Error.Kind != failure.Authentication {
		t.Errorf("%+v", l)
	}
	if q := w.script.Requests(); !strings.Contains(prompt(q[len(q)-1]), "which colour?") {
		t.Errorf("%+v", q)
	}
}

// C16, R17: a person requests a compaction, and its process is killed. The next message is answered, not summarised.
func TestKilledWhileCompacting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(script.Step{Text: "Blue.", Used: 80}, script.Step{Text: "Carried on.", Used: 90})
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	w.script.Summarise(script.Step{Text: "The wall ", Hold: func() { <-hold }}, script.Step{Text: "The wall is blue."})
	kill := w.child()
	w.until("the session", func(st *session.State) bool { return st.Owned })
	w.send("m1", "which colour?")
	w.until("the first answer", delivered("m1"))
	w.request("compaction", "compact", map[string]any{"by": "ada"})
	w.until("the compaction", func(st *session.State) bool {
		return st.Compaction != nil && st.Compaction.State == session.CompactionRunning
	})
	kill()
	w.until("recovery", func(st *session.State) bool { return !st.Owned && st.LastCompaction != nil })
	w.child()
	w.send("m2", "carry on")
	st := w.until("the second answer", delivered("m2"))
	if st.Ignored.Count != 0 || count(w.facts(), "turn.started") != 2 {
		t.Errorf("%+v %v", st.Ignored.Last, w.facts())
	}
	// the compaction is tried again behind it, and may have both messages by now
	c := w.conversation()
	if last := c[len(c)-1]; last.Content != "Carried on." && !slices.Equal(last.Messages, []string{"m1", "m2"}) {
		t.Errorf("%+v", c)
	}
}
