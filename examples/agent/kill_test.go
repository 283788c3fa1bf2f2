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

// longVariable has TestKilledAnywhere kill more often (`make long`).
const longVariable = "HOLDFAST_LONG"

// The agent is killed at any instant of a long conversation with commands, permissions and compactions, again and
// again. Each message is answered once and in order, no command runs twice, and what the model is told stays well
// formed.
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
	for _, e := range w.log() {
		if f, ok := e.Fact.(events.TurnStarted); ok && f.Message != "" && f.Cause != events.CauseRetry &&
			f.Cause != events.CauseResume && f.OfTurn == "" {
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

// painter is a model that has each command that it is asked for run, and believes what it is told about it.
func painter(q script.Request) script.Step {
	last := q.Messages[len(q.Messages)-1]
	think := func() { <-time.After(20 * time.Millisecond) } // long enough to be killed in
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

// atWork says that there is something to interrupt, or nothing left to do.
func atWork(st *session.State) bool {
	running := st.Turn != nil && st.Turn.Epoch == st.Epoch ||
		st.Compaction != nil && st.Compaction.State == session.CompactionRunning
	return st.Owned && running || settled(st)
}

// settled says that nothing is left to do.
func settled(st *session.State) bool {
	return completed(st) && st.Compaction == nil && st.Pending == (session.Pending{}) && len(st.PendingPrompts()) == 0
}

// permit lets every command run until the session's log says so.
func (w *world) permit(ok func(*session.State) bool) *session.State {
	w.t.Helper()
	return w.until("the end, permitting all", func(st *session.State) bool {
		for _, p := range st.PendingPrompts() {
			// one that has expired meanwhile is refused, which is no matter
			err := w.bus.Request(w.ctx, "ledger", "answer",
				map[string]any{"harness": me, "session": demo, "prompt": p, "by": "ada",
					"answers": []events.Answer{{Question: "permission", Selected: []string{"once"}}}}, nil)
			if err != nil {
				w.t.Logf("permission for %s: %v", p, err)
			}
		}
		return ok(st)
	})
}

// log is all that is in the session's log.
func (w *world) log() (all []events.Event) {
	w.t.Helper()
	cs, err := w.bus.Read(w.ctx, w.ref(), 0)
	w.ok(err)
	for _, c := range cs {
		all = append(all, c.Events...)
	}
	return all
}
