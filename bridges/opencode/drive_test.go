package opencode

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/request"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// driven is a stage whose bridges drive what is named.
func driven(t *testing.T, d Drive) *stage {
	t.Helper()
	st := newStage(t)
	st.drive = d
	st.plays()
	return st
}

// asks begins a run: a user's message, and a model call that has said nothing.
func (f *fakeServer) asks(session, message string) {
	f.session(session)
	f.put(session, object{"id": message, "role": "user", "agent": "build",
		"model": object{"providerID": "mock", "modelID": "big"}, "time": object{"created": 1}})
	f.part(session, message, object{"id": "p-" + message, "type": "text", "text": "do it"})
	f.status(session, true)
	f.put(session, assistant("a-"+message, message, nil))
}

func scheduled(s *fold.State) bool {
	return s.Turn == nil && s.LastTurn != nil && s.LastTurn.Outcome == fold.OutcomeFailed && s.RetryPlanned()
}

// retryNow has a person ask for the retry at once.
func (st *stage) retryNow(id string) {
	st.t.Helper()
	natstest.Until(st.t, "the retry is asked for", func() bool {
		return st.bus.Services.Request(st.t.Context(), retry.Name, "now", request.Retry{Ref: ref(id), By: "ada"},
			nil) == nil
	})
}

// TestDriveRetry: a run that waits for OpenCode's own retry is a failed turn, which Holdfast tries again: the same
// message is sent, and nothing of the failed model call is left. The pause that OpenCode planned is the least.
func TestDriveRetry(t *testing.T) {
	t.Parallel()
	st := driven(t, Drive{Retry: true})
	st.bridge()
	st.asks("ses_1", "msg_1")
	st.fails("ses_1", "overloaded_error: try again later")
	s := st.until("ses_1", "a retry is scheduled", scheduled)
	f := s.Failed()
	if f.Kind != failure.ServerError || f.RetryAfterMS < 50_000 || s.Retry.Attempt != 1 ||
		s.Retry.DueAt.Sub(s.LastTurn.At) < 50*time.Second {
		t.Errorf("the failure %+v, the retry %+v", f, s.Retry)
	}
	natstest.Until(t, "the failed model call is removed", func() bool {
		return len(st.made("DELETE", "/message/a-msg_1")) == 1
	})
	st.retryNow("ses_1")
	s = st.until("ses_1", "the turn completed", completed)
	sent := st.made("prompt_async")
	if len(st.made("abort")) != 1 || len(sent) != 1 || !strings.Contains(sent[0], `"messageID":"msg_1"`) ||
		s.LastTurn.Cause != events.CauseRetry {
		t.Errorf("aborts %q, sent %q, cause %s", st.made("abort"), sent, s.LastTurn.Cause)
	}
	if got := st.kinds("ses_1"); slices.Contains(got, "turn.stopped") || slices.Contains(got, "turn.interrupted") {
		t.Errorf("the log has %v", got)
	}
}

// TestDriveRetryKeeps: what a failed model call has said stays.
func TestDriveRetryKeeps(t *testing.T) {
	t.Parallel()
	st := driven(t, Drive{Retry: true})
	st.bridge()
	st.asks("ses_1", "msg_1")
	st.part("ses_1", "a-msg_1", object{"id": "p-a", "type": "text", "text": "It is"})
	st.fails("ses_1", "overloaded_error")
	st.until("ses_1", "a retry is scheduled", scheduled)
	st.retryNow("ses_1")
	st.until("ses_1", "the turn completed", completed)
	if got := st.made("DELETE"); len(got) > 0 {
		t.Errorf("removed: %q", got)
	}
}

// TestDriveRetryRefused: a server that does not let the failed model call be removed keeps it.
func TestDriveRetryRefused(t *testing.T) {
	t.Parallel()
	st := driven(t, Drive{Retry: true})
	st.refuse["DELETE"] = http.StatusNotFound
	st.bridge()
	st.asks("ses_1", "msg_1")
	st.fails("ses_1", "overloaded_error")
	st.until("ses_1", "a retry is scheduled", scheduled)
	st.retryNow("ses_1")
	st.until("ses_1", "the turn completed", completed)
	if got := st.made("DELETE"); len(got) != 1 {
		t.Errorf("removed: %q", got)
	}
}

// TestDriveRetryNot: OpenCode's own retry is left alone where Holdfast does not try again.
func TestDriveRetryNot(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		drive Drive
		id    string
		text  string
		off   bool // a person has switched auto_retry off
		sums  bool // a compaction runs
	}{
		"not driven":            {Drive{}, "ses_1", "overloaded_error", false, false},
		"of a sub-agent":        {Drive{Retry: true}, "ses_0-sub", "overloaded_error", false, false},
		"auto_retry is off":     {Drive{Retry: true}, "ses_1", "overloaded_error", true, false},
		"a final failure":       {Drive{Retry: true}, "ses_1", "invalid api key", false, false},
		"while it is compacted": {Drive{Retry: true}, "ses_1", "overloaded_error", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := driven(t, x.drive)
			st.bridge()
			st.asks(x.id, "msg_1")
			st.until(x.id, "the turn runs", func(s *fold.State) bool { return s.Turn != nil })
			if x.off {
				natstest.Until(t, "auto_retry is off", func() bool {
					return st.ask("configure", request.Configure{Ref: ref(x.id), By: "ada",
						Policy: &events.PolicyPatch{AutoRetry: events.Set(false)}})
				})
				// the bridge's next event comes after the change, so the bridge has read it
				st.part(x.id, "a-msg_1", storedTool("p-call_1", "call_1", "bash", "completed", object{"output": "x"}))
				st.until(x.id, "a call has ended", func(s *fold.State) bool {
					_, ended := s.Ended(fold.EntityTool, "call_1")
					return ended
				})
			}
			if x.sums {
				st.put(x.id, assistant("sum", "msg_1", object{"summary": true}))
			}
			st.fails(x.id, x.text)
			if x.sums {
				st.emit("session.compacted", object{"sessionID": x.id})
			}
			st.set(func() { delete(st.waits, x.id) })
			st.put(x.id, assistant("a-msg_1", "msg_1", object{"finish": "stop",
				"time": object{"created": 1, "completed": 2}}))
			st.status(x.id, false)
			st.until(x.id, "the turn completed", completed)
			if got := st.made("abort"); len(got) > 0 {
				t.Errorf("aborted: %q", got)
			}
		})
	}
}

// TestDriveRetryLateAbort: the reply to an abort is late, and the retry is due. The message is not sent before the
// abort is over: it would end the run that comes next.
func TestDriveRetryLateAbort(t *testing.T) {
	t.Parallel()
	st := driven(t, Drive{Retry: true})
	st.refuse["/abort"] = http.StatusBadGateway
	st.bridge()
	st.asks("ses_1", "msg_1")
	st.fails("ses_1", "overloaded_error")
	st.until("ses_1", "a retry is scheduled", scheduled)
	st.set(func() { delete(st.waits, "ses_1") })
	// the abort had its effect
	st.status("ses_1", false)
	st.retryNow("ses_1")
	st.until("ses_1", "the retry has begun", func(s *fold.State) bool { return s.Turn != nil })
	tries := len(st.made("abort"))
	natstest.Until(t, "the abort is tried again", func() bool { return len(st.made("abort")) > tries+3 })
	if got := st.made("prompt_async"); len(got) > 0 {
		t.Errorf("sent before the abort was over: %q", got)
	}
	st.set(func() { delete(st.refuse, "/abort") })
	st.until("ses_1", "the turn completed", completed)
}

// TestDriveRetryUnseen: a run begins to wait while no bridge is there, or the bridge is killed before it has aborted
// the run. The next bridge ends it.
func TestDriveRetryUnseen(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"not seen": false, "stored, and not aborted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := driven(t, Drive{Retry: true})
			stop := st.bridge()
			st.asks("ses_1", "msg_1")
			st.until("ses_1", "the turn runs", func(s *fold.State) bool { return s.Turn != nil })
			if !stored {
				stop()
			}
			st.set(func() { st.refuse["/abort"] = http.StatusBadGateway })
			st.fails("ses_1", "overloaded_error")
			if stored {
				st.until("ses_1", "a retry is scheduled", scheduled)
				stop()
			}
			before := len(st.made("abort"))
			st.set(func() { delete(st.refuse, "/abort") })
			st.bridge()
			st.until("ses_1", "a retry is scheduled", scheduled)
			natstest.Until(t, "the run is aborted", func() bool { return len(st.made("abort")) > before })
			st.retryNow("ses_1")
			st.until("ses_1", "the turn completed", completed)
		})
	}
}

// TestDriveRetryRecorded: a recording, which drives nothing, keeps no list of retries.
func TestDriveRetryRecorded(t *testing.T) {
	t.Parallel()
	for live, want := range map[bool]int{true: 1, false: 0} {
		tr := NewTranslator()
		tr.live = live
		for n, e := range []object{
			{"type": "session.created", "properties": object{"sessionID": "ses_1", "info": object{"id": "ses_1"}}},
			{"type": "session.status", "properties": object{"sessionID": "ses_1", "status": object{"type": "busy"}}},
			{"type": "message.updated", "properties": object{"sessionID": "ses_1", "info": assistant("a", "m", nil)}},
			{"type": "session.status", "properties": object{"sessionID": "ses_1",
				"status": object{"type": "retry", "message": "overloaded"}}},
		} {
			tr.Translate(Record{At: time.Unix(int64(n), 0), Event: encode(e)})
		}
		if got := tr.takeBackOffs(); len(got) != want {
			t.Errorf("live %v: %d retries are kept", live, len(got))
		}
	}
}

func TestParseDrive(t *testing.T) {
	t.Parallel()
	if d, err := ParseDrive([]string{"queue", "retry", "compaction"}); err != nil || d != (Drive{true, true, true}) {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := ParseDrive([]string{"retry", "bogus"}); err == nil || !strings.Contains(err.Error(), `"bogus"`) {
		t.Errorf("the error: %v", err)
	}
}
