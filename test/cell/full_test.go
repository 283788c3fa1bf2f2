package cell

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A harness fills the log of a deployed cell as far as --log-max lets it. New sessions and messages are refused, a
// person can close sessions, closed sessions are purged at once, and then the cell takes in what it refused.
func TestALogThatIsNearlyFull(t *testing.T) {
	w := start(t, "HOLDFAST_LOG_MAX=8MiB")
	ctx, ann, f := t.Context(), w.ann(), w.folder("harness-"+attacker)
	h, err := harness.Connect(ctx,
		harness.Config{ID: attacker, URL: w.urlOf("harness-" + attacker), PasswordFile: f + "/password",
			TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	if _, err := h.Open(ctx, "before", harness.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	ask := func(verb, body string) (code, text string) {
		m, err := ann.Request("hf.svc."+verb+".ann", []byte(body), patience)
		if err != nil {
			t.Fatal(err)
		}
		return m.Header.Get(micro.ErrorCodeHeader), m.Header.Get(micro.ErrorHeader)
	}
	send := func(id string) (code, text string) {
		return ask("compaction.send",
			`{"harness":"`+attacker+`","session":"before","message":"`+id+`","content":"hello","by":"ann"}`)
	}
	after := w.last(t)
	natstest.Until(t, "the log to be nearly full", func() bool {
		after = w.fill(t, after)
		full, err := w.victim.Log.NearlyFull(ctx)
		return err == nil && full
	})
	natstest.Until(t, "a message to be refused", func() bool {
		code, text := send(w.victim.NewID())
		return code == "503" && strings.Contains(text, "nearly full")
	})
	if _, err := h.Open(ctx, "refused", harness.OpenOptions{}); !errors.Is(err, harness.ErrFull) {
		t.Errorf("a new session: %v", err)
	}
	if code, text := ask("ledger.close", `{"harness":"`+victim+`","session":"s","by":"ann"}`); code != "" {
		t.Errorf("closing a session: %s %s", code, text)
	}
	natstest.Until(t, "the closed session to be purged", func() bool {
		full, err := w.victim.Log.NearlyFull(ctx)
		return err == nil && !full
	})
	natstest.Until(t, "a message to be taken in again", func() bool { code, _ := send("again"); return code == "" })
	if _, err := h.Open(ctx, "refused", harness.OpenOptions{}); err != nil {
		t.Errorf("a new session in a log with room: %v", err)
	}
	natstest.Until(t, "the message to be handed out", func() bool {
		e, err := w.victim.KV.Load(ctx, kv.State, events.SessionKey(events.Ref{Harness: attacker, Session: "before"}))
		return err == nil && strings.Contains(string(e.Value), `"again"`)
	})
}

// last returns the last place of the victim's session.
func (w *world) last(t *testing.T) uint64 {
	t.Helper()
	all, err := w.victim.Log.Read(t.Context(), theirs, 0)
	if err != nil {
		t.Fatal(err)
	}
	return all[len(all)-1].Seq
}

// fill appends at most half a megabyte to the victim's session, and returns its place.
func (w *world) fill(t *testing.T, after uint64) uint64 {
	t.Helper()
	var all []events.Event
	for range 20 {
		text := strings.Repeat("x", 8<<10)
		all = append(all, events.New(w.victim.NewID(), events.HarnessSource(victim, "1"), theirs, 1, time.Now(),
			events.ToolFailed{Call: "c", Error: events.Failure{Kind: "odd", Text: text}}))
	}
	seq, err := w.victim.Log.Append(t.Context(), theirs, events.WriterHarness, after, all)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}
