package bus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// rawPublish sends a message with this header block as it is, as a client can that is not the library's, and returns
// when the broker has taken it.
func rawPublish(t *testing.T, s *embed.Server, subject, header, body string) {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c,
		"CONNECT {\"headers\":true,\"verbose\":false,\"pedantic\":false}\r\nHPUB %s %d %d\r\n%s%s\r\nPING\r\n", subject,
		len(header), len(header)+len(body), header, body); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "-ERR"):
			t.Fatal(line)
		case line == "PONG":
			return
		}
	}
	t.Fatal("the broker closed the connection")
}

// Headers that the client library cannot read, or misreads. Each is of a commit that names its predecessor.
func oddHeaders(after int) map[string]string {
	guard := fmt.Sprintf("Nats-Expected-Last-Subject-Sequence: %d\r\nNats-Expected-Last-Subject-Sequence-Subject: "+
		"hf.log.h.s.*\r\n", after)
	return map[string]string{
		"a line break in a value":       "NATS/1.0\r\n" + guard + "X: one\r\ntwo\r\n\r\n",
		"a line break first":            "NATS/1.0\r\nbroken\r\n" + guard + "\r\n",
		"no first line":                 "HTTP/1.1\r\n" + guard + "\r\n",
		"a pin of its own":              "NATS/1.0\r\n" + guard + "Nats-Pin-Id: mine\r\n\r\n",
		"a status":                      "NATS/1.0 503\r\n" + guard + "\r\n",
		"a short status":                "NATS/1.0 5\r\n" + guard + "\r\n",
		"a key that cannot be sent":     "NATS/1.0\r\n" + guard + "a key: x\r\n\r\n",
		"bytes that are no text":        "NATS/1.0\r\n" + guard + "X: \xff\xfe\x00\r\n\xff\r\n\r\n",
		"many lines that are no fields": "NATS/1.0\r\n" + strings.Repeat("x\r\n", 1_000) + guard + "\r\n",
	}
}

// TestUnreadableHeader: a header that cannot be read does not make its commit unreadable: all readers see its facts and
// its guard, it is delivered, also where it is the first to be, and what comes behind it is delivered too.
func TestUnreadableHeader(t *testing.T) {
	for name := range oddHeaders(0) {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t)
			b := natstest.Bus(t, s)
			ctx := within(t, patience)
			body, err := events.EncodeBatch(facts("odd"))
			if err != nil {
				t.Fatal(err)
			}
			rawPublish(t, s, "hf.log.h.s.harness", oddHeaders(0)[name], string(body))
			if _, err := b.Append(ctx, session, events.WriterHarness, 1, facts("next")); err != nil {
				t.Fatalf("what follows: %v", err)
			}
			check := func(how string, c events.Commit) {
				t.Helper()
				if c.Err != nil || len(c.Events) != 1 || c.Events[0].ID != "odd" || !c.Guarded || c.Guard != 0 ||
					c.Seq != 1 {
					t.Errorf("%s: %+v", how, c)
				}
			}
			one, err := b.Commit(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			check("by its place", one)
			all, err := b.Read(ctx, session, 0)
			if err != nil || len(all) != 2 {
				t.Fatalf("read: %d, %v", len(all), err)
			}
			check("as the session's", all[0])
			n := 0
			if err := b.Scan(ctx, 0, func(c events.Commit) error {
				if n++; n == 1 {
					check("in the log", c)
				}
				return nil
			}); err != nil || n != 2 {
				t.Fatalf("scan: %d, %v", n, err)
			}
			for _, c := range consumed(t, b, 2)[:1] {
				check("delivered", c)
			}
		})
	}
}

// consumed are the first commits of the log as a consumer is given them.
func consumed(t *testing.T, b *bus.Bus, n int) []events.Commit {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	got := &collector{b: b, n: n, stop: cancel}
	if err := b.Consume(ctx, bus.Source{Stream: bus.LogStream, Durable: "odd"}, got); err != nil &&
		!errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(got.all) < n {
		t.Fatalf("%d of %d delivered", len(got.all), n)
	}
	return got.all
}

type collector struct {
	b    *bus.Bus
	n    int
	stop func()
	all  []events.Commit
}

func (c *collector) Takeover(context.Context) error { return nil }

func (c *collector) Batch(_ context.Context, ms []bus.Message) (int, error) {
	for _, m := range ms {
		c.all = append(c.all, c.b.Decode(m))
	}
	if len(c.all) >= c.n {
		c.stop()
	}
	return len(ms), nil
}

// TestUnreadableHeaderFollowed: a follower of the log's end gets such a commit unchanged.
func TestUnreadableHeaderFollowed(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx, cancel := context.WithCancel(within(t, patience))
	live, came, done := make(chan struct{}, 1), make(chan bus.Message, 1), make(chan error, 1)
	go func() {
		done <- b.Follow(ctx, "", func(uint64) { live <- struct{}{} }, func(m bus.Message) { came <- m })
	}()
	receive(t, live, "the log to be followed")
	rawPublish(t, s, "hf.log.h.s.harness", oddHeaders(0)["a line break in a value"], "[]")
	if m := receive(t, came, "the commit"); !slices.Equal(m.Header["Hf-Unreadable-Header"], []string{`"two"`}) ||
		nats.Header(m.Header).Get("X") != "one" {
		t.Errorf("followed: %v", m.Header)
	}
	cancel()
	if err := receive(t, done, "the end"); err != nil {
		t.Error(err)
	}
}
