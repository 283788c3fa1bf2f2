package opencode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// nextProcess has another process of the server take the place of this one, on the same store. The bridge cannot see
// which process it is until the returned function is called.
func (st *stage) nextProcess() (seen func()) {
	st.kill()
	st.set(func() { st.refuse["GET /mcp"] = http.StatusServiceUnavailable })
	st.start()
	return func() { st.set(func() { delete(st.refuse, "GET /mcp") }) }
}

// TestDriveCompactionOfAnotherProcess: another process than the one that was asked for a summary says nothing of that
// summary. The compaction fails with the process that was asked.
func TestDriveCompactionOfAnotherProcess(t *testing.T) {
	t.Parallel()
	st := compacted(t, "", nil)
	st.idle()
	st.compactNow("ses_1")
	st.until("ses_1", "the compaction runs", func(s *fold.State) bool {
		return len(st.made("summarize")) == 1 && s.Compaction != nil && s.Compaction.State == fold.CompactionRunning
	})
	seen := st.nextProcess()
	st.untilPolled()
	s := st.until("ses_1", "the session is read", func(*fold.State) bool { return true })
	if s.LastCompaction != nil {
		t.Errorf("before the next process is known the compaction ended: %+v", s.LastCompaction)
	}
	seen()
	s = st.until("ses_1", "the compaction failed", endedCompaction)
	if l := s.LastCompaction; l.Outcome != fold.OutcomeFailed || l.Error.Kind == failure.EmptyOutput {
		t.Errorf("the compaction %+v", l)
	}
	// one that a person asks for now is made
	st.set(func() {
		st.onSummarize = func(session string) { st.summarizes(session, "A summary of all.", nil) }
	})
	st.compactNow("ses_1")
	st.until("ses_1", "it is compacted", func(s *fold.State) bool {
		return endedCompaction(s) && s.LastCompaction.Outcome == fold.OutcomeCompleted
	})
}

// TestDriveCompactionAtAnotherProcess: a process that the bridge does not know yet is asked for no summary: the
// compaction would be recorded as failed with the process before, and be made all the same.
func TestDriveCompactionAtAnotherProcess(t *testing.T) {
	t.Parallel()
	st := compacted(t, "A summary of all.", nil)
	st.idle()
	seen := st.nextProcess()
	st.compactNow("ses_1")
	st.untilPolled()
	if got := st.made("summarize"); len(got) > 0 {
		t.Errorf("a process that is not known was asked: %q", got)
	}
	seen()
	st.until("ses_1", "the compaction ended", endedCompaction)
}

// TestLiveTurnAtAnotherProcess: a process that the bridge does not know yet gets no message.
func TestLiveTurnAtAnotherProcess(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.plays()
	st.bridge()
	st.idle()
	seen := st.nextProcess()
	st.replyWith("more")
	st.untilPolled()
	if got := st.made("prompt_async"); len(got) > 0 {
		t.Errorf("a process that is not known got %q", got)
	}
	seen()
	st.until("ses_1", "the turn completed", nextCompleted)
	if got := st.made("POST", "prompt_async"); len(got) != 1 {
		t.Errorf("sent: %q", got)
	}
}

// TestLiveTurnWhoseProcessDies: another process than the one that took a message runs nothing. The turn does not fail
// for that: it is interrupted with its process.
func TestLiveTurnWhoseProcessDies(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.bridge()
	st.idle()
	st.set(func() { st.onPrompt = func(session string, _ object) { st.status(session, true) } })
	st.replyWith("more")
	natstest.Until(t, "the message is taken", func() bool { return len(st.made("prompt_async")) == 1 })
	// the bridge has seen that it runs
	st.untilPolled()
	seen := st.nextProcess()
	st.untilPolled()
	s := st.until("ses_1", "the session is read", func(*fold.State) bool { return true })
	if s.Turn == nil {
		t.Errorf("before the next process is known the turn ended: %+v", s.LastTurn)
	}
	st.plays()
	seen()
	s = st.until("ses_1", "the turn ended", func(s *fold.State) bool {
		return s.Turn == nil && s.LastTurn.Message != "msg_000000000001x"
	})
	if l := s.LastTurn; l.Outcome == fold.OutcomeFailed && l.Error.Kind == failure.RuntimeNotReady {
		t.Errorf("the turn %+v", l)
	}
}

// TestLiveCompareWithAnotherProcess: a session that runs nothing in another process has not ended its turn. It is
// compared when the process is known.
func TestLiveCompareWithAnotherProcess(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.bridge()
	st.run("ses_1", firstMessage, "call_1", "bash")
	st.until("ses_1", "a turn runs", func(s *fold.State) bool { return s.Turn != nil && len(s.Tools) == 1 })
	l := st.follower.serving.Load()
	var busy map[string]bool
	var mcp object
	st.set(func() { busy, mcp, st.busy, st.mcp = st.busy, st.mcp, map[string]bool{}, object{} })
	if err := st.follower.catchUpOne(t.Context(), l, "ses_1", false); !errors.Is(err, errAnother) {
		t.Errorf("one session: %v", err)
	}
	if err := st.follower.compareAll(t.Context()); err != nil {
		t.Error(err)
	}
	if s := st.until("ses_1", "the session is read", func(*fold.State) bool { return true }); s.Turn == nil {
		t.Errorf("the turn ended: %+v", s.LastTurn)
	}
	st.set(func() { st.busy, st.mcp = busy, mcp })
	st.finish("ses_1", firstMessage, "call_1")
	st.until("ses_1", "the turn completed", completed)
}

// TestLiveDisposed: a server that disposes an instance forgets its prompts and its mark, and keeps the connection. The
// bridge connects again, and compares.
func TestLiveDisposed(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	st.plays()
	st.bridge()
	st.idle()
	first := st.until("ses_1", "the session is read", func(*fold.State) bool { return true }).Incarnation
	// without the event only a silent stream is connected again
	connected := func(n int) {
		t.Helper()
		natstest.Until(t, "the bridge has connected again", func() bool {
			st.emit("server.heartbeat", object{})
			return st.connections() >= n
		})
	}
	st.emit("server.instance.disposed", object{"directory": "/elsewhere"})
	connected(2)
	st.set(func() { st.prompts, st.mcp = map[string]object{}, object{} })
	st.emit("server.instance.disposed", object{"directory": "/w"})
	connected(3)
	st.replyWith("more")
	s := st.until("ses_1", "the turn completed", nextCompleted)
	if s.Incarnation == first {
		t.Errorf("the session is still that of incarnation %s", first)
	}
}

// TestDisposedEndsOneConnection: the fact behind the event that ends the connection cannot be stored. The first event
// of the next connection does not end that one, too.
func TestDisposedEndsOneConnection(t *testing.T) {
	t.Parallel()
	st := newStage(t)
	s, r := st.permissionOfACall()
	r.translator, r.changed = NewTranslator(), make(chan struct{})
	r.process.handles = map[string]*harness.Session{"ses_1": s}
	event := func(ctx context.Context, id, typ string) error {
		return r.event(ctx, fmt.Appendf(nil, `{"id":%q,"type":%q,"properties":{}}`, id, typ), false)
	}
	if err := event(t.Context(), "a", eventDisposed); !errors.Is(err, errDisposed) {
		t.Errorf("the connection continues: %v", err)
	}
	// the start of a call is held back until no further event is there
	for _, ev := range script(slices.Concat(begun, []string{tool("p2", "c2", `{"status":"pending"}`)})...) {
		r.translator.Translate(ev)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := event(over, "b", eventDisposed); !errors.Is(err, context.Canceled) {
		t.Errorf("stored: %v", err)
	}
	if err := event(t.Context(), "c", "server.heartbeat"); err != nil {
		t.Errorf("the next connection ends: %v", err)
	}
}
