package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// serve plays the compaction service's endpoint.
func (w *world) serve(send func(body map[string]any) error) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() {
		done <- w.bus.Services.Serve(ctx, "compaction", "0.0.1", "a stand-in",
			[]rpc.Endpoint{{Verb: "send", Handle: func(_ context.Context, raw []byte) ([]byte, error) {
				var body map[string]any
				if err := json.Unmarshal(raw, &body); err != nil {
					return nil, err
				}
				if err := send(body); err != nil {
					return nil, err
				}
				return []byte(`{"seq":7}`), nil
			}}})
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// TestSend: a send is tried again, under the same id, until its service takes it; a refusal is returned unchanged.
func TestSend(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	var mu sync.Mutex
	var bodies []map[string]any
	refusals := []error{events.Unavailable("not ready"), events.Unavailable("lost 10 races")}
	sent := make(chan error, 1)
	// before anybody serves
	go func() {
		_, err := h.Send(w.ctx, harness.Message{Session: "s", ID: "m1", Content: "hello", By: "ada"})
		sent <- err
	}()
	w.serve(func(body map[string]any) error {
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, body)
		if len(bodies) <= len(refusals) {
			return refusals[len(bodies)-1]
		}
		if body["session"] == "gone" {
			return events.NotFound("session", "gone")
		}
		return nil
	})
	check(t, <-sent)
	mu.Lock()
	if len(bodies) != 3 {
		t.Fatalf("%d tries", len(bodies))
	}
	for _, b := range bodies {
		if b["harness"] != me || b["session"] != "s" || b["message"] != "m1" || b["content"] != "hello" ||
			b["by"] != "ada" || b["synthetic"] != nil || b["ref"] != nil {
			t.Errorf("%v", b)
		}
	}
	mu.Unlock()

	_, err := h.Send(w.ctx, harness.Message{Session: "gone", Content: "x"})
	if r, ok := errors.AsType[*events.Refusal](err); !ok || r.Code != http.StatusNotFound {
		t.Errorf("%v", err)
	}
	one := must[string](t)(h.Send(w.ctx,
		harness.Message{Session: "s", Harness: "other", Content: map[string]int{"a": 1}, Synthetic: true}))
	two := must[string](t)(h.Send(w.ctx, harness.Message{Session: "s", Content: "x"}))
	mu.Lock()
	defer mu.Unlock()
	if b := bodies[len(bodies)-2]; one == "" || one == two || b["message"] != one || b["harness"] != "other" ||
		b["by"] != me || b["synthetic"] != true {
		t.Errorf("%q, %q, %v", one, two, b)
	}
}

// TestSendWithoutService: a send without a service ends with its context, and the error says that no service is there.
func TestSendWithoutService(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	ctx, cancel := context.WithCancel(w.ctx)
	sent := make(chan error, 1)
	go func() {
		_, err := h.Send(ctx, harness.Message{Session: "s", Content: "x"})
		sent <- err
	}()
	cancel()
	if err := <-sent; err == nil || !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "compaction") {
		t.Errorf("%v", err)
	}
	_, err := h.Send(w.ctx, harness.Message{Session: "s", Content: func() {}})
	if err == nil || !strings.Contains(err.Error(), "content") {
		t.Errorf("%v", err)
	}
}

// T13: a turn has the options that make it the same request; a retry has those of the turn that failed.
func TestOptionsOfARetry(t *testing.T) {
	type options struct{ Model string }
	w := newWorld(t)
	h := w.connect()
	must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	type run struct {
		request session.WorkTurn
		options options
		had     bool
		content string
	}
	runs := make(chan run, 8)
	asked := 0
	w.work(h, harness.Worker{
		Options: func(_ *harness.Session, t session.WorkTurn) any {
			asked++
			return options{fmt.Sprint("model ", asked, " for ", t.Message)}
		},
		Turn: func(ctx context.Context, turn *harness.Turn) error {
			r := run{request: turn.Request()}
			var err error
			if r.had, err = turn.Options(&r.options); err != nil {
				return err
			}
			// of a retry it is in the log only
			content, err := turn.Content(ctx)
			r.content = string(content)
			runs <- r
			return errors.Join(err, &harness.ProviderError{Raw: failure.Raw{Status: 503, RetryAfter: "4"}})
		},
	})
	w.request("s", "t1", "hello")
	first := <-runs
	if !first.had || first.options.Model != "model 1 for m-t1" || first.content != `"hello"` ||
		first.request.Cause != events.CauseMessage || first.request.Attempt != 1 {
		t.Errorf("%+v", first)
	}
	st := w.until("s", "the failure", func(st *session.State) bool { return st.LastTurn != nil })
	if e := st.LastTurn.Error; e.Kind != failure.ServerError || e.RetryAfterMS != 4000 || e.Status != 503 {
		t.Errorf("%+v", e)
	}
	for i, cause := range []events.Cause{events.CauseRetry, events.CauseResume, events.CauseFollowUp} {
		// the service counts retries: the first one has the number that the turn before it has
		retry := i + 1
		l := w.state("s").LastTurn
		id := "again-" + string(cause)
		w.append("s", events.WriterRetry,
			events.TurnRequested{Turn: id, Cause: cause, OfTurn: l.ID, Message: "m-t1", Attempt: retry,
				Options: l.Options})
		w.show("s")
		got := <-runs
		if !got.had || got.options != first.options || got.request.Cause != cause || got.request.Attempt != retry ||
			got.content != first.content {
			t.Errorf("%s: %+v", cause, got)
		}
		w.until("s", "the failure", func(st *session.State) bool { return st.LastTurn.ID == id })
	}
}

// TestResults: outcomes of calls and prompts, set by others after their process died, are found in the log.
func TestResults(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	for _, id := range []string{"done", "failed", "lost", "with-turn"} {
		must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: id, Name: "bash"}))
	}
	_, err := s.Result(w.ctx, "lost")
	wantErr(t, err, harness.ErrUnknown)
	w.append("s", events.WriterLedger,
		events.ToolCompleted{Call: "done", Output: json.RawMessage(`{"answers":["red"]}`), Synthetic: true})
	w.append("s", events.WriterReconciler,
		events.ToolFailed{Call: "failed", Error: events.Failure{Kind: "rejected", Text: "no"}, Synthetic: true},
		events.ToolInterrupted{Call: "lost", Reason: "owner-lost", Outcome: events.OutcomeUnknown})
	check(t, turn.Complete(w.ctx, ""))
	for id, want := range map[string]string{"done": session.OutcomeCompleted, "failed": session.OutcomeFailed,
		"lost": session.OutcomeInterrupted, "with-turn": session.OutcomeEndedWithTurn} {
		r := must[harness.Result](t)(s.Result(w.ctx, id))
		if r.Outcome != want || (r.Output != nil) != (id == "done") || (r.Error != nil) != (id == "failed") ||
			id == "lost" && r.Reason != "owner-lost" {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if r := must[harness.Result](t)(s.Result(w.ctx, "done")); string(r.Output) != `["red"]` ||
		!r.Synthetic {
		t.Errorf("%+v", r)
	}
	_, err = s.Result(w.ctx, "never")
	wantErr(t, err, harness.ErrUnknown)

	turn = must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2", Content: "x"}))
	short, cancel := context.WithCancel(w.ctx)
	out := ask(short, turn, harness.Prompt{ID: "p1", Questions: question(), Delivery: events.DeliverMessage})
	w.awaiting("s", "p1")
	_, err = s.Answer(w.ctx, "p1")
	wantErr(t, err, harness.ErrUnknown)
	cancel()
	got(t, out)
	w.mustAnswer("s", "p1", "blue")
	if a := must[harness.Answer](t)(s.Answer(w.ctx, "p1")); a.Status != session.Answered ||
		a.Answers[0].Text != "blue" || a.By != "ada" {
		t.Errorf("%+v", a)
	}
}

// TestCompactions (R16, R17): a compaction is taken once, together with its session if that has no owner; one that is
// cut off by leaving may be tried again.
func TestCompactions(t *testing.T) {
	for name, tt := range map[string]struct {
		compact func(ctx context.Context, stop context.CancelFunc) (int64, error)
		outcome string
		kind    string
	}{
		"done": {func(context.Context, context.CancelFunc) (int64, error) { return 120, nil },
			session.OutcomeCompleted, ""},
		"bad summary": {func(context.Context, context.CancelFunc) (int64, error) {
			return 0, harness.ValidateSummary("{}")
		},
			session.OutcomeFailed, failure.BadSummary},
		"provider": {func(context.Context, context.CancelFunc) (int64, error) {
			return 0, &harness.ProviderError{Raw: failure.Raw{Status: 429}}
		}, session.OutcomeFailed, failure.RateLimit},
		"left": {func(ctx context.Context, stop context.CancelFunc) (int64, error) {
			stop()
			<-ctx.Done()
			return 0, ctx.Err()
		}, session.OutcomeFailed, failure.Interrupted},
	} {
		for _, owned := range []bool{true, false} {
			w := newWorld(t)
			h := w.connect()
			s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
			if !owned {
				check(t, s.Release(w.ctx, ""))
			}
			check(t, h.Ready(w.ctx))
			ctx, stop := context.WithCancel(w.ctx)
			done := make(chan error, 1)
			w.append("s", events.WriterCompaction,
				events.CompactionRequested{Compaction: "k1", Reason: events.CompactManual, Used: 100, Limit: 200,
					FollowUp: events.FollowContinue, Message: "m1"})
			w.show("s")
			go func() {
				done <- h.Work(ctx, harness.Worker{Compact: func(ctx context.Context, s *harness.Session,
					c session.WorkCompaction) (int64, error) {
					if c.Compaction != "k1" || c.Reason != events.CompactManual || c.Message != "m1" ||
						s.State().Compaction.State != session.CompactionRunning {
						t.Errorf("%s: %+v, %+v", name, c, s.State().Compaction)
					}
					return tt.compact(ctx, stop)
				}})
			}()
			st := w.until("s", "the compaction to end",
				func(st *session.State) bool { return st.LastCompaction != nil })
			l := st.LastCompaction
			if l.Outcome != tt.outcome || (l.Error == nil) != (tt.kind == "") ||
				l.Error != nil && l.Error.Kind != tt.kind || tt.kind == "" && l.UsedAfter != 120 ||
				st.Ignored.Count != 0 {
				t.Errorf("%s, owned %v: %+v %+v", name, owned, l, l.Error)
			}
			stop()
			check(t, <-done)
		}
	}
}

// TestLargeContent: content that is too large for a fact is stored as an object, and read back.
func TestLargeContent(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s, err := h.Open(w.ctx, "s", harness.OpenOptions{})
	check(t, err)
	large := strings.Repeat("x", events.ContentBytesMax)
	w.serve(func(body map[string]any) error {
		name, _ := body["ref"].(string)
		if body["content"] != nil || w.bus.Objects.Has(w.ctx, name) != nil {
			return fmt.Errorf("ref %q, content %.20q", name, body["content"])
		}
		w.append("s", events.WriterCompaction, events.MessageAccepted{Message: "m1", Ref: name, By: "ada"},
			events.TurnRequested{Turn: "t1", Cause: events.CauseMessage, Message: "m1"})
		w.show("s")
		return nil
	})
	if _, err := h.Send(w.ctx, harness.Message{Session: "s", ID: "m1", Content: large}); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	stop := w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		raw, err := turn.Content(ctx)
		var text string
		if err == nil {
			err = json.Unmarshal(raw, &text)
		}
		got <- text
		return err
	}})
	if text := <-got; text != large {
		t.Errorf("%d bytes are read of %d", len(text), len(large))
	}
	w.until("s", "the turn's end", func(st *session.State) bool { return st.Turn == nil })
	check(t, stop())
	if _, err := s.StartTurn(w.ctx, harness.StartOptions{Content: large}); err != nil {
		t.Errorf("a turn of its own with a large message: %v", err)
	}
}
