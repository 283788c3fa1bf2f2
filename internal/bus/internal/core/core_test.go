package core_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestUserOfAURL: a URL that cannot be read names no user, and neither does a token.
func TestUserOfAURL(t *testing.T) {
	for _, c := range []struct {
		cfg  bus.Config
		want string
	}{
		{bus.Config{URL: "nats://%zz"}, ""},
		{bus.Config{URL: "nats://host"}, ""},
		{bus.Config{URL: "nats://s3cr3t@host"}, ""},
		{bus.Config{URL: "nats://ada:pw@host"}, "ada"},
		{bus.Config{URL: "nats://ada:@host"}, "ada"},
		{bus.Config{URL: "nats://ada:pw@one,nats://bob:pw@two"}, "ada"},
		{bus.Config{URL: "nats://ada@host", PasswordFile: "f"}, "ada"},
		{bus.Config{URL: "nats://ada@host", NKey: "f"}, "ada"},
		{bus.Config{URL: "nats://ada@host", Creds: "f"}, "ada"},
	} {
		if got := bus.LoginOf(c.cfg); got != c.want {
			t.Errorf("%+v: %q", c.cfg, got)
		}
	}
}

// TestWhyAway: what is known of an address at which no broker answers, by the client library's error and the system's.
func TestWhyAway(t *testing.T) {
	system := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, refused := range []error{nats.ErrNoServers, system} {
		for address, want := range map[string]string{"nats://n1:4222": "nothing listens there",
			"nats://n1:4222,nats://n2:4222": ""} {
			if got := core.WhyAway(address, refused); got != want {
				t.Errorf("%s, %v: %q, want %q", address, refused, got, want)
			}
		}
	}
}

// TestTryingWithoutAnAnswer: the program hears of each attempt that JetStream does not answer, and the error says so
// when it gives up.
func TestTryingWithoutAnAnswer(t *testing.T) {
	ctx, releaseUnused := context.WithCancel(bustest.Within(t, bustest.Patience))
	defer releaseUnused()
	received := 0
	_, err := bus.Open(ctx, bus.Config{URL: natstest.Impostor{JetStream: true}.Start(t), Trying: func(err error) {
		if received++; !errors.Is(err, bus.ErrNoAnswer) {
			t.Errorf("attempt %d: %v", received, err)
		}
		if received == 2 {
			releaseUnused()
		}
	}})
	if received != 2 || !errors.Is(err, bus.ErrNoAnswer) || !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("after %d attempts: %v", received, err)
	}
}

// TestAConnectionThatIsNeverAnswered: a broker that reads its files may leave a new connection without answers.
// The client connects again, to the only broker there is.
func TestAConnectionThatIsNeverAnswered(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Silence })
	answers := s.Account
	s.Account = bustest.Silence
	go func() {
		for range 2 {
			<-s.Login
		}
		s.Mu.Lock()
		defer s.Mu.Unlock()
		s.Account = answers
	}()
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: s.Url})
	if err != nil {
		t.Fatal(err)
	}
	c.NC.Close()
}

// Replies arrive on the configured inbox, those of requests, pulls and acknowledgements alike: no other subject is
// used.
func TestInbox(t *testing.T) {
	s := natstest.Start(t)
	inbox := events.Inbox("hf", events.ClassHarness, "h 1")
	if inbox != "_INBOX.hf.harness.h=201" {
		t.Errorf("inbox %s", inbox)
	}
	nc, _ := bustest.Outsider(t, s)
	elsewhere, at := make(chan *nats.Msg, 100), make(chan *nats.Msg, 100)
	for subject, ch := range map[string]chan *nats.Msg{"_INBOX.*": elsewhere, "_INBOX.*.*": elsewhere,
		inbox + ".>": at} {
		if _, err := nc.ChanSubscribe(subject, ch); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	b := natstest.Bus(t, s, func(c *bus.Config) { c.Inbox = inbox })
	bustest.MustAppend(t, b, bustest.Session, 0, "e1")
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0, func(events.Commit) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// looking, appending, pulling
	if len(at) < 8 {
		t.Errorf("%d answers came to the inbox", len(at))
	}
	for len(elsewhere) > 0 {
		// no call waits for it
		if m := <-elsewhere; !strings.Contains(string(m.Data), "consumer_delete_response") {
			t.Errorf("an answer came to %s: %s", m.Subject, m.Data)
		}
	}
}

// TestRepliesAreReadQuickly: a message that the leader is asked for is read without encoding/json, and as that reads
// it.
func TestRepliesAreReadQuickly(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	conn, err := core.Open(ctx, core.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.NC.Close)
	seqs := []uint64{bustest.MustAppend(t, b, bustest.Session, 0, "e1")}
	for _, body := range []string{"", "a body and no headers"} {
		ack, err := js.Publish(ctx, b.Cell().LogSubject(bustest.Session, events.WriterHarness), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, ack.Sequence)
	}
	for _, seq := range seqs {
		if quick, same, err := conn.ReadQuickly(ctx, b.Cell().LogStream(), seq); err != nil || !quick || !same {
			t.Errorf("message %d: read quickly: %v, as encoding/json does: %v, %v", seq, quick, same, err)
		}
	}
}
