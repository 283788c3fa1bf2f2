package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/examples/agent/script"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// scheduled returns the retries in the log.
func (w *world) scheduled() (all []events.RetryScheduled) {
	w.t.Helper()
	cs, err := w.bus.Log.Read(w.ctx, w.ref(), 0)
	w.ok(err)
	for _, c := range cs {
		for _, e := range c.Events {
			if f, ok := e.Fact.(events.RetryScheduled); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// T1, T2, T13: a failed turn is retried at the scheduled instant, and not before the provider's Retry-After, with the
// failed turn's options. The conversation has the message once.
func TestRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(
		script.Step{Status: 500, Body: `{"error":{"message":"mock error 500"}}`},
		script.Step{Status: 429, Body: `{"error":{"message":"slow down"}}`, RetryAfter: "5"},
		script.Step{Text: "Hello."})
	stop := w.agent("")
	began := time.Now()
	w.send("m1", "hello")
	w.until("the first failure", func(st *session.State) bool { return st.Retry.State == session.RetryScheduled })
	// another default model; the retry uses the model of the failed turn
	stop()
	w.cfg.model = "large"
	w.agent("")
	st := w.until("the answer", completed)
	if took := time.Since(began); took < 7*time.Second {
		t.Errorf("delays of 2 s and 5 s took %s", took)
	}
	all := w.scheduled()
	if len(all) != 2 || all[0].Attempt != 1 || all[0].DelayMS != 2000 || all[1].Attempt != 2 ||
		all[1].DelayMS != 5000 || all[1].Error.Kind != failure.RateLimit {
		t.Errorf("%+v", all)
	}
	if st.LastTurn.Cause != events.CauseRetry || st.LastTurn.Message != "m1" || st.Retry.Attempt != 0 ||
		st.Ignored.Count != 0 {
		t.Errorf("%+v, %+v", st.LastTurn, st.Retry)
	}
	for i, q := range w.script.Requests() {
		if q.Model != "small" || len(q.Messages) != 2 {
			t.Errorf("request %d: %+v", i, q)
		}
	}
}

// T3, T5, T15: a final failure is not retried, and the log has the reason. A person may request a retry all the same.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(script.Step{Status: 401, Body: `{"error":{"message":"Incorrect API key provided"}}`},
		script.Step{Text: "Hello."})
	w.agent("")
	w.send("m1", "hello")
	st := w.until("the end of it", func(st *session.State) bool { return st.Retry.State == session.RetryAbandoned })
	if st.Retry.Reason != failure.Authentication || len(w.scheduled()) != 0 {
		t.Errorf("%+v", st.Retry)
	}
	w.request("ledger", "configure", map[string]any{"provider_changed": true, "policy": map[string]any{}, "by": "ada"})
	w.request("retry", "now", map[string]any{"by": "ada"})
	w.until("the answer", completed)
}

// T17: an empty answer and a truncated one are failures that are retried.
func TestRetriesWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script.Play(script.Step{}, script.Step{Text: "Hel", Cut: true}, script.Step{Text: "Hello."})
	w.agent("")
	w.send("m1", "hello")
	w.until("the answer", completed)
	var kinds []string
	for _, s := range w.scheduled() {
		kinds = append(kinds, s.Error.Kind)
	}
	if got := strings.Join(kinds, " "); got != "empty_output stream_truncated" {
		t.Errorf("%q", got)
	}
	if c := w.conversation(); len(c) != 2 || c[1].Content != "Hello." {
		t.Errorf("%+v", c)
	}
}

// T10, T14: the agent is killed in the middle of an answer. The turn is resumed when an agent runs again, with the
// results so far. A command that has run does not run again.
func TestResumesAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	w.file("notes.txt", "red")
	w.script.Play(
		script.Step{Calls: []script.Call{{Name: "read_file", Arguments: `{"path":"notes.txt"}`}}},
		script.Step{Text: "It is ", Hold: func() { <-hold }},
		script.Step{Text: "It is red."})
	kill := w.child()
	w.send("m1", "which colour?")
	w.until("the second model call", func(*session.State) bool { return len(w.script.Requests()) == 2 })
	kill()
	w.until("recovery", func(st *session.State) bool { return st.Retry.State == session.RetryScheduled })
	w.child()
	st := w.until("the answer", completed)
	if st.LastTurn.Cause != events.CauseResume || count(w.facts(), "tool.started") != 1 || st.Ignored.Count != 0 {
		t.Errorf("%+v, %v", st.LastTurn, w.facts())
	}
	if c := w.conversation(); len(c) != 4 || c[2].Content != "red" || c[3].Content != "It is red." {
		t.Errorf("%+v", c)
	}
}

// T18: a stream that delivers keeps its turn alive. A silent turn is failed and retried.
func TestStalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	w.script.Play(script.Step{Text: "It is ", Hold: func() { <-hold }}, script.Step{Text: "It is red."})
	w.agent("")
	w.until("the session", func(st *session.State) bool { return st.Opened() })
	w.request("ledger", "configure", map[string]any{"policy": map[string]any{"stall_after_s": 4}, "by": "ada"})
	w.send("m1", "which colour?")
	st := w.until("the answer", completed)
	all := w.scheduled()
	if len(all) != 1 || all[0].Error.Kind != failure.Stalled || st.Ignored.Count != 0 || st.Pending.Stop != nil {
		t.Errorf("%+v, %+v", all, st.Ignored.Last)
	}
	w.order("turn.stop_requested", "turn.failed", "retry.scheduled")
	if n := count(w.facts(), "turn.stopped"); n != 1 {
		t.Errorf("the stop was confirmed %d times", n)
	}
}

// A message that is too large for the log reaches the model in full, also after the agent has lost its conversation.
func TestLargeMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := "paint " + strings.Repeat("wall ", 60_000)
	w.script.Play(script.Step{Status: 500, Body: `{}`}, script.Step{Text: "Done."})
	w.agent(large)
	w.until("the failure", func(st *session.State) bool { return st.Retry.State == session.RetryScheduled })
	w.ok(os.RemoveAll(w.cfg.dir))
	st := w.until("the answer", completed)
	if c := w.conversation(); len(c) != 2 || c[0].Content != large || st.Ignored.Count != 0 {
		t.Errorf("%d entries, %d bytes of %d", len(c), len(c[0].Content), len(large))
	}
	for _, q := range w.script.Requests() {
		if len(q.Messages) != 2 || q.Messages[1].Content != large {
			t.Errorf("the model got %d messages", len(q.Messages))
		}
	}
}
