package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

func TestOpenRefusesBrokersThatWillNotDo(t *testing.T) {
	noAccount := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [{user: a, password: a}] }, B { users: [{user: b, password: b}] } }`))
	broken := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(broken, []byte("no credentials"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg  bus.Config
		want error
		text string
	}{
		"too old": {bus.Config{URL: natstest.Impostor{Version: "2.12.9", JetStream: true}.Start(t)},
			bus.ErrTooOld, bus.ServerVersionMin},
		"without JetStream": {bus.Config{URL: natstest.Impostor{}.Start(t)}, bus.ErrNoJetStream,
			"nats-server with -js"},
		"JetStream off for us": {bus.Config{URL: strings.Replace(noAccount.URL(), "//", "//b:b@", 1)},
			bus.ErrNoJetStream, "account"},
		"wrong password": {bus.Config{URL: strings.Replace(noAccount.URL(), "//", "//a:x@", 1)},
			bus.ErrForbidden, "credentials"},
		"expired credentials": {bus.Config{URL: natstest.Impostor{Refusal: "User Authentication Expired"}.Start(
			t)}, bus.ErrForbidden, "Expired"},
		"credentials that are none": {bus.Config{URL: noAccount.URL(), Creds: broken}, bus.ErrForbidden, broken},
		"credentials that are gone": {bus.Config{URL: noAccount.URL(), Creds: broken + "x"}, bus.ErrForbidden,
			broken + "x"},
		"a prefix that cannot be":   {bus.Config{URL: noAccount.URL(), Prefix: "A.b"}, events.ErrMalformed, "prefix"},
		"an address that cannot be": {bus.Config{URL: "nats://127.0.0.1:port"}, bus.ErrUnreachable, "127.0.0.1:port"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := bustest.Within(t, bustest.Patience)
			b, err := bus.Open(ctx, c.cfg)
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Open = %v, want %v saying %q", err, c.want, c.text)
			}
			if strings.Contains(fmt.Sprint(err), "a:x@") {
				t.Errorf("Open = %v tells a password", err)
			}
			if ctx.Err() != nil {
				t.Error("refused when time was up, want at once")
			}
		})
	}
}

func TestOpenWaitsForABroker(t *testing.T) {
	s := natstest.Start(t)
	s.Shutdown()
	var logged strings.Builder
	if _, err := bus.Open(bustest.Within(t, 1500*time.Millisecond),
		bus.Config{URL: s.URL(), Log: zerolog.New(&logged)}); !errors.Is(err, bus.ErrUnreachable) ||
		!strings.Contains(err.Error(), s.URL()) {
		t.Fatalf("Open = %v, want ErrUnreachable naming %s", err, s.URL())
	}
	if n := strings.Count(logged.String(), "no broker at "+s.URL()); n != 1 {
		t.Errorf("said %d times what it waits for, want once: %s", n, logged.String())
	}
	opened := make(chan error, 1)
	go func() {
		b, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: s.URL()})
		if err == nil {
			b.Close()
		}
		opened <- err
	}()
	natstest.Restart(t, s)
	if err := <-opened; err != nil {
		t.Errorf("Open = %v once the broker was there", err)
	}
}

func TestWithinTheProcess(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t, natstest.Listen("")))
	bustest.MustAppend(t, b, bustest.Session, 0, "a")
	one, another := b.NewID(), b.NewID()
	if !b.Connected() || b.Instance() == "" || one == another || b.Cell().Prefix() != "hf" {
		t.Errorf("connected %t, instance %q, cell %q", b.Connected(), b.Instance(), b.Cell().Prefix())
	}
}

func TestCloseTwice(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	b.Close()
	b.Close()
	if b.Connected() {
		t.Error("connected after Close")
	}
	ctx := bustest.Within(t, bustest.Patience)
	for name, call := range map[string]func() error{
		"append": func() error {
			_, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, 0, bustest.Facts("a"))
			return err
		},
		"read": func() error { _, err := b.Log.Read(ctx, bustest.Session, 0); return err },
		"park": func() error { return b.Parking.Park(ctx, park.Parked{Why: "x", Ref: bustest.Session}) },
	} {
		if err := call(); !errors.Is(err, bus.ErrUnreachable) || ctx.Err() != nil {
			t.Errorf("%s after Close: %v, want ErrUnreachable at once", name, err)
		}
	}
	gone := natstest.Bus(t, s)
	s.Shutdown()
	// without a broker there is nothing to drain
	gone.Close()
}

// restricted is a broker whose user h may append to its own sessions and nothing else, and whose user a may do all.
func restricted(t *testing.T) (*embed.Server, *bus.Bus) {
	t.Helper()
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [
			{user: a, password: a},
			{user: h, password: h, permissions: {
				publish: ["hf.log.h.*.harness", "$JS.API.STREAM.MSG.GET.HF_LOG"],
				subscribe: ["_INBOX.>"]}},
			{user: c, password: c, permissions: {
				publish: ["$JS.API.CONSUMER.CREATE.HF_LOG.*.hf.log.h.>", "$JS.API.STREAM.MSG.GET.HF_LOG"],
				subscribe: ["_INBOX.>"]}},
			{user: m, password: m, permissions: {publish: ["hf.>", "$JS.>"], subscribe: ["elsewhere"]}}] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
	h, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: bustest.As(s, "h")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return s, h
}

// TestWhoMayNotHaveAReaderReadsOneByOne: in a secured cell a harness has its log subject and its inbox, and no
// consumers.
func TestWhoMayNotHaveAReaderReadsOneByOne(t *testing.T) {
	const commits = 40
	s, h := restricted(t)
	after := uint64(0)
	for i := range commits {
		after = bustest.MustAppend(t, h, bustest.Session, after, fmt.Sprint(i))
	}
	half, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: bustest.As(s, "c")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(half.Close)
	for name, b := range map[string]*bus.Bus{"no consumers": h, "no pulls": half} {
		if cs := bustest.MustRead(t, b, bustest.Session, 0); len(cs) != commits || cs[commits-1].Seq != after {
			t.Errorf("%s: %d commits read, %d written", name, len(cs), commits)
		}
	}
}

// TestForbiddenIsReportedAtOnce: the broker answers a forbidden publish with nothing at all.
func TestForbiddenIsReportedAtOnce(t *testing.T) {
	s, h := restricted(t)
	bustest.MustAppend(t, h, bustest.Session, 0, "a")
	mute, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: bustest.As(s, "m")})
	if err == nil {
		t.Cleanup(mute.Close)
	}
	other := events.Ref{Harness: "other", Session: "s"}
	for name, call := range map[string]func(context.Context) error{
		"append to another's session": func(ctx context.Context) error {
			_, err := h.Log.Append(ctx, other, events.WriterHarness, 0, []events.Event{bustest.Fact("a", other)})
			return err
		},
		"append as a service": func(ctx context.Context) error {
			_, err := h.Log.Append(ctx, bustest.Session, events.WriterLedger, 0, bustest.Facts("b"))
			return err
		},
		"write a document": func(ctx context.Context) error {
			_, err := h.KV.Store(ctx, kv.State, bustest.Key, []byte("x"), 0)
			return err
		},
		"set up": h.Layout.Ensure,
		"consume": func(ctx context.Context) error {
			return h.Consumers.Consume(ctx, bustest.LedgerSource, bustest.Discard{})
		},
		"watch": func(ctx context.Context) error {
			return h.KV.Watch(ctx, kv.State, nil, func(kv.Update) error { return nil })
		},
		"follow": func(ctx context.Context) error {
			return h.Log.Follow(ctx, "h", func(uint64) {}, func(bus.Message) {})
		},
		"ask a service": func(ctx context.Context) error {
			return h.Services.Request(ctx, "ledger", "get", struct{}{},
				nil)
		},
		"answers that cannot arrive": func(ctx context.Context) error {
			if err != nil {
				return err
			}
			_, err := mute.Log.Append(ctx, bustest.Session, events.WriterHarness, 0, bustest.Facts("b"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := bustest.Within(t, bustest.Patience)
			started, p := time.Now(), natstest.Feel(t)
			if err := call(ctx); !errors.Is(err, bus.ErrForbidden) || !strings.Contains(err.Error(), "permitted") {
				t.Errorf("%v, want ErrForbidden that says what is not permitted", err)
			}
			if took := time.Since(started); took > time.Second+p.Lost() {
				t.Errorf("said after %s, want at once", took)
			}
		})
	}
}

// TestOthersLearnThatTheBrokerSyncs: the process that embeds the broker records in the layout that it syncs, and
// clients elsewhere read that.
func TestOthersLearnThatTheBrokerSyncs(t *testing.T) {
	s := natstest.Start(t)
	lazy := natstest.Bus(t, s)
	if _, err := lazy.Log.LastSeq(bustest.Within(t, bustest.Patience)); err != nil || lazy.Together() {
		t.Errorf("a broker that does not sync: together %v, %v", lazy.Together(), err)
	}
	up, err := bus.Open(bustest.Background(t), bus.Config{URL: s.URL(), Synced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Abort)
	if err := up.Layout.Ensure(bustest.Within(t, bustest.Patience)); err != nil {
		t.Fatal(err)
	}
	other := bustest.BusAt(t, s.URL())
	if _, err := other.Log.LastSeq(bustest.Within(t, bustest.Patience)); err != nil || !other.Together() {
		t.Errorf("from elsewhere: together %v, %v", other.Together(), err)
	}
}
