package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestReturnedIsBounded checks that a process remembers only so many prompts whose answers it was given.
func TestReturnedIsBounded(t *testing.T) {
	const prompts = 3 * session.RecentMax
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.TTL = time.Minute })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	for i := range prompts {
		id := fmt.Sprint("p", i)
		out := ask(w.ctx, turn, harness.Prompt{ID: id, Questions: question()})
		w.awaiting("s", id)
		w.append("s", events.WriterLedger, events.PromptRejected{Prompt: id, By: "ada"})
		check(t, got(t, out).err)
	}
	if n := harness.SettledSeen(s); n > 2*session.RecentMax+1 {
		t.Errorf("%d prompts are remembered", n)
	}
}

// TestClaimedWhileOptionsAreAsked checks that a turn is run once whose session this process claims while Work, which is
// about to take the session over, asks for its options.
func TestClaimedWhileOptionsAreAsked(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	w.released(h, "s")
	w.request("s", "t1", "x")
	var once sync.Once
	ran := make(chan string, 2)
	w.work(h, harness.Worker{
		Options: func(*harness.Session, session.WorkTurn) any {
			once.Do(func() { must[*harness.Session](t)(h.Claim(w.ctx, "s")) })
			return "small"
		},
		Turn: func(_ context.Context, turn *harness.Turn) error {
			ran <- string(turn.Request().Options)
			return nil
		},
	})
	st := w.until("s", "the turn to be over", func(st *session.State) bool { return st.LastTurn != nil })
	if got := <-ran; got != `"small"` || st.Epoch != 2 || st.Ignored.Count != 0 {
		t.Errorf("ran with %s in epoch %d", got, st.Epoch)
	}
	if len(ran) != 0 {
		t.Error("it ran twice")
	}
}

// TestLargeContentOfARetry checks that a retry reads the words of its message where they are: beside the log.
func TestLargeContentOfARetry(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	// more than any fact holds
	large := strings.Repeat("x", 2*events.ContentBytesMax)
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx,
		harness.StartOptions{ID: "t1", Message: "m1", Content: large, By: "ada"}))
	check(t, turn.Fail(w.ctx, events.Failure{Kind: "rate_limit"}, false))
	w.append("s", events.WriterRetry,
		events.TurnRequested{Turn: "t2", Cause: events.CauseRetry, OfTurn: "t1", Message: "m1", Attempt: 2})
	w.show("s")
	read := make(chan string, 1)
	w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
		raw, err := turn.Content(ctx)
		read <- strings.Trim(string(raw), `"`)
		return err
	}})
	if got := <-read; got != large {
		t.Errorf("%d bytes are read of %d", len(got), len(large))
	}
}

// TestPoolDoesNotTakeBack checks that a member of a pool whose lease was lost does not take a session back from the
// member that has it now.
func TestPoolDoesNotTakeBack(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	one, two := w.connect(pool), w.connect(pool)
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	kept := must[*harness.Session](t)(one.Open(w.ctx, "kept", harness.OpenOptions{}))
	first := one.Incarnation()
	// it is looked at again when two has it
	release := harness.Mute(s)
	w.dropLease(one)
	natstest.Until(t, "the loss to be noticed", func() bool { return harness.Suspended(s) })
	w.append("s", events.WriterReconciler, events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: first})
	must[*harness.Session](t)(two.Claim(w.ctx, "s"))
	release()
	check(t, kept.Regain(w.ctx))
	wantErr(t, s.Regain(w.ctx), harness.ErrFenced)
	w.until("kept", "the other session to be claimed again", func(st *session.State) bool { return st.Epoch == 2 })
	if st := w.state("s"); !st.Owned || st.Incarnation != two.Incarnation() || st.Epoch != 2 || st.Ignored.Count != 0 {
		t.Errorf("owned %t by %s in epoch %d, ignored %+v", st.Owned, st.Incarnation, st.Epoch, st.Ignored.Last)
	}
}

// TestAnswerOfLongAgo checks that a prompt which was settled, and not delivered, is found by the next process also when
// so much has ended since that the session keeps its ending no longer.
func TestAnswerOfLongAgo(t *testing.T) {
	w := newWorld(t)
	one := w.connect()
	s := must[*harness.Session](t)(one.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: "c1", Name: "ask"}))
	p := harness.Prompt{ID: "p1", Call: "c1", Questions: question()}
	ctx, cancel := context.WithCancel(w.ctx)
	out := ask(ctx, turn, p)
	w.awaiting("s", "p1")
	cancel()
	wantErr(t, got(t, out).err, context.Canceled)
	w.mustAnswer("s", "p1", "red")
	for i := range session.RecentMax + 5 {
		c := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: fmt.Sprint("k", i), Name: "bash"}))
		check(t, c.Complete(w.ctx, "x"))
	}
	if _, kept := w.state("s").Ended(session.EntityPrompt, "p1"); kept {
		t.Fatal("its ending is kept still")
	}
	two := w.connect()
	s = must[*harness.Session](t)(two.Claim(w.ctx, "s",
		harness.Adopt{Turn: true, Prompts: []harness.Prompt{{ID: "p1"}}}))
	again := ask(w.ctx, s.OpenTurn(), p)
	if a := got(t, again); a.err != nil || a.answer.Status != session.Answered || a.answer.Answers[0].Text != "red" {
		t.Errorf("%+v", a)
	}
	if a, err := s.Answer(w.ctx, "p1"); err != nil || a.Status != session.Answered {
		t.Errorf("looked up: %+v, %v", a, err)
	}
}

// TestAnswerThatATurnCarries: an answer is found for as long as a turn carries it, although so much has ended since
// that its ending is not kept: in the turn that asked, after its failure, and in its retry.
func TestAnswerThatATurnCarries(t *testing.T) {
	w := newWorld(t)
	turn := w.begins(w.connect())
	s := turn.Session()
	out := ask(w.ctx, turn, harness.Prompt{ID: "p1", Questions: question()})
	w.awaiting("s", "p1")
	w.mustAnswer("s", "p1", "red")
	check(t, got(t, out).err)
	for i := range session.RecentMax + 5 {
		c := must[*harness.Call](t)(turn.Tool(w.ctx, harness.ToolOptions{ID: fmt.Sprint("k", i), Name: "bash"}))
		check(t, c.Complete(w.ctx, "x"))
	}
	st := w.state("s")
	if _, kept := st.Ended(session.EntityPrompt, "p1"); kept || st.Prompts["p1"] != nil {
		t.Fatalf("its ending is kept still: %v, %+v", kept, st.Prompts["p1"])
	}
	found := func(when string) {
		t.Helper()
		if a, err := s.Answer(w.ctx, "p1"); err != nil || a.Choice() != "red" || a.By != "ada" {
			t.Errorf("%s: %+v, %v", when, a, err)
		}
	}
	found("in the turn that asked")
	check(t, turn.Fail(w.ctx, events.Failure{Kind: "rate_limit", Text: "x"}, false))
	found("after its failure")
	w.continues(s, "t2", "t1", events.CauseRetry)
	found("in the retry")
}

// TestAnswerIsAReceipt: Answer gives the receipt for a decision that no Ask has returned, and no turn is owed for it.
func TestAnswerIsAReceipt(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, s.Append(w.ctx, events.PromptRequested{Prompt: "p1", PromptKind: events.PromptQuestion,
		Questions: question(), Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep}))
	w.mustAnswer("s", "p1", "red")
	if a := must[harness.Answer](t)(s.Answer(w.ctx, "p1")); a.Choice() != "red" {
		t.Errorf("%+v", a)
	}
	w.until("s", "the receipt", func(st *session.State) bool { return st.Prompts["p1"] == nil })
	e, _ := w.state("s").Ended(session.EntityPrompt, "p1")
	if f, owed := w.state("s").Owed(); owed || e.DeliveredAt.IsZero() {
		t.Errorf("owed: %v, %+v; %+v", owed, f, e)
	}
}

// TestCloseOfAFencedProcess checks that Close succeeds when a session was taken and this process had not heard of it.
func TestCloseOfAFencedProcess(t *testing.T) {
	w := newWorld(t)
	// a pool reads only the reported sessions
	h := w.connect(pool)
	must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	ev := events.New(w.bus.NewID(), events.ServiceSource("reconciler", "test"), ref("s"), 1, time.Now(),
		events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: h.Incarnation()})
	// without a nudge
	if _, err := w.bus.Log.Append(w.ctx, ref("s"), events.WriterReconciler, w.state("s").Seq,
		[]events.Event{ev}); err != nil {
		t.Fatal(err)
	}
	check(t, h.Close(w.ctx))
	if st := w.state("s"); st.Ignored.Count != 0 {
		t.Errorf("%+v", st.Ignored.Last)
	}
}

// TestLeaseStateIsStarting checks that the lease of a process that starts over says starting until it has its sessions
// again, at first and at each renewal: the items of an older incarnation are recovered as soon as a newer one is ready.
func TestLeaseStateIsStarting(t *testing.T) {
	// it mostly waits
	t.Parallel()
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.TTL = 2 * time.Second })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	first := h.Incarnation()
	// it cannot be claimed again yet
	release := harness.Mute(s)
	w.dropLease(h)
	// by revision
	written := map[uint64]string{}
	check := func() {
		check(t, w.bus.KV.List(w.ctx, kv.Leases, events.HarnessLeaseKeys(me), func(e kv.Entry) error {
			var l leased
			check(t, json.Unmarshal(e.Value, &l))
			if l.Incarnation != first {
				written[e.Rev] = l.State
			}
			return nil
		}))
	}
	natstest.Until(t, "the new lease to be renewed", func() bool {
		check()
		return len(written) >= 2
	})
	for rev, state := range written {
		if state != "starting" {
			t.Errorf("revision %d says %s", rev, state)
		}
	}
	release()
	natstest.Until(t, "the new lease to say ready", func() bool {
		l, _ := w.lease(h.Incarnation())
		return h.Incarnation() != first && l.State == "ready"
	})
	if st := w.state("s"); st.Epoch != 2 {
		t.Errorf("epoch %d", st.Epoch)
	}
}

// TestHandleOfAnEndedTurn checks that the handle of a turn which has ended has a context that has ended, and does not
// take the place of the handle of the turn that is open.
func TestHandleOfAnEndedTurn(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	open := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t2"}))
	wantErr(t, ended(t, harness.Handle(s, "t1").Context()), harness.ErrEnded)
	if open != s.OpenTurn() {
		t.Error("the open turn has another handle now")
	}
	w.append("s", events.WriterLedger, events.TurnStopRequested{Turn: "t2", Actor: events.ActorPerson, By: "ada"})
	wantErr(t, ended(t, open.Context()), harness.ErrStopped)
}

// TestOpenGivesUp checks that a call which waits to take a session ends with its context, and leaves the session to
// others.
func TestOpenGivesUp(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	release := harness.Mute(s)
	ctx, cancel := short(w.ctx)
	defer cancel()
	_, err := h.Open(ctx, "s", harness.OpenOptions{})
	wantErr(t, err, context.DeadlineExceeded)
	release()
	if again := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{})); again != s {
		t.Error("another handle")
	}
	must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	for _, id := range []string{"", strings.Repeat("s", events.TokenBytesMax+1)} {
		if _, err := h.Open(w.ctx, id, harness.OpenOptions{}); err == nil {
			t.Errorf("opened %q", id)
		}
	}
}
