package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/examples/agent/script"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// longVariable makes TestKilledAnywhere kill more often (`make long`).
const longVariable = "HOLDFAST_LONG"

// The agent is killed again and again at random instants of a long conversation with commands, permissions and
// compactions. Each message is answered once and in order, no command runs twice, and the model's messages stay
// well-formed.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	kills, messages := 4, 6
	if os.Getenv(longVariable) != "" {
		kills, messages = 30, 60
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))

	w := newWorld(t)
	w.cfg.contextLimit = 400
	w.script.Reply = painter
	kill := w.child()
	w.until("the session", func(st *session.State) bool { return st.Opened() })
	for i := range messages {
		w.send(fmt.Sprint("m", i), fmt.Sprint("paint ", i))
	}
	killed := ""
	for range kills {
		killed = w.permit(func(st *session.State) bool { return st.Incarnation != killed && atWork(st) }).Incarnation
		<-time.After(time.Duration(rnd.IntN(80)) * time.Millisecond)
		kill()
		kill = w.child()
	}
	st := w.permit(settled)
	kill()

	var answered []string
	// a turn that the next process adopts is stated again
	begun := map[string]bool{}
	for _, e := range w.log() {
		if f, ok := e.Fact.(events.TurnStarted); ok && f.Message != "" && f.Cause != events.CauseRetry &&
			f.Cause != events.CauseResume && f.OfTurn == "" && !begun[f.Turn] {
			begun[f.Turn] = true
			answered = append(answered, f.Message)
		}
	}
	for i := range messages {
		if i >= len(answered) || answered[i] != fmt.Sprint("m", i) {
			t.Fatalf("answered %v", answered)
		}
		if n := strings.Count(w.read("ran"), fmt.Sprint("paint ", i, "\n")); n > 1 {
			t.Errorf("command %d ran %d times", i, n)
		}
	}
	if len(answered) != messages || st.Ignored.Count != 0 || st.LastTurn.Outcome != session.OutcomeCompleted {
		t.Errorf("answered %v, ignored %+v, last turn %+v", answered, st.Ignored, st.LastTurn)
	}
	for _, e := range w.log() {
		if f, ok := e.Fact.(events.TurnFailed); ok {
			t.Errorf("a turn failed: %+v", f.Error)
		}
	}
	facts := w.facts()
	t.Logf("%d kills: %d turns and %d calls interrupted, %d compactions, %d of them failed", kills,
		count(facts, "turn.interrupted"), count(facts, "tool.interrupted"),
		count(facts, "compaction.started"), count(facts, "compaction.failed"))
}

// painter is a model that runs each command that a message names, and trusts its result.
func painter(q script.Request) script.Step {
	last := q.Messages[len(q.Messages)-1]
	// long enough for a kill
	think := func() { <-time.After(20 * time.Millisecond) }
	switch {
	case q.Summary:
		return script.Step{Text: "The walls were painted.", Hold: think}
	case last.Role == "user" && strings.HasPrefix(last.Content, "paint "):
		return script.Step{Calls: []script.Call{{Name: "run",
			Arguments: fmt.Sprintf(`{"command":"echo %s >> ran"}`, last.Content)}}}
	default:
		return script.Step{Text: "Done. " + strings.Repeat("It looks good. ", 10), Hold: think}
	}
}

// atWork returns a condition: there is something to interrupt, or no work is left.
func atWork(st *session.State) bool {
	running := st.Turn != nil && st.Turn.Epoch == st.Epoch ||
		st.Compaction != nil && st.Compaction.State == session.CompactionRunning
	return st.Owned && running || settled(st)
}

// settled returns a condition: no work is left.
func settled(st *session.State) bool {
	return completed(st) && st.Compaction == nil && st.Pending == (session.Pending{}) && len(st.PendingPrompts()) == 0
}

// permit permits every command until the condition holds.
func (w *world) permit(ok func(*session.State) bool) *session.State {
	w.t.Helper()
	return w.until("the end, permitting all", func(st *session.State) bool {
		for _, p := range st.PendingPrompts() {
			// A permission that has expired meanwhile is refused.
			err := w.bus.Services.Request(w.ctx, "ledger", "answer",
				map[string]any{"harness": me, "session": demo, "prompt": p, "by": "ada",
					"answers": []events.Answer{{Question: "permission", Selected: []string{"once"}}}}, nil)
			if err != nil {
				w.t.Logf("permission for %s: %v", p, err)
			}
		}
		return ok(st)
	})
}

// log returns all commits of the session.
func (w *world) log() (all []events.Event) {
	w.t.Helper()
	cs, err := w.bus.Log.Read(w.ctx, w.ref(), 0)
	w.ok(err)
	for _, c := range cs {
		all = append(all, c.Events...)
	}
	return all
}
