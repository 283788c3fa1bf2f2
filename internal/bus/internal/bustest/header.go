package bustest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// RawPublish sends a message with this header block as it is, as a client can that is not the library's, and returns
// when the broker has stored it.
func RawPublish(t *testing.T, s *embed.Server, subject, header, body string) {
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
	const inbox = "_INBOX.raw"
	if _, err := fmt.Fprintf(c, "CONNECT {\"headers\":true,\"verbose\":false,\"pedantic\":false}\r\nSUB %[1]s 1\r\n"+
		"HPUB %[2]s %[1]s %[3]d %[4]d\r\n%[5]s%[6]s\r\n", inbox, subject, len(header), len(header)+len(body), header,
		body); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "-ERR"), strings.HasPrefix(line, `{"error"`):
			t.Fatal(line)
		case strings.HasPrefix(line, `{"stream"`):
			return
		}
	}
	t.Fatal("the broker closed the connection")
}

// OddHeaders are headers that the client library cannot read, or misreads. Each is of a commit that names its
// predecessor.
func OddHeaders(after int) map[string]string {
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

// Collector decodes the commits that it is given, and stops after N of them.
type Collector struct {
	B    *bus.Bus
	N    int
	Stop func()
	All  []events.Commit
}

// Takeover implements the handler of a consumer.
func (c *Collector) Takeover(context.Context) error { return nil }

// Batch implements the handler of a consumer.
func (c *Collector) Batch(_ context.Context, ms []bus.Message) (int, error) {
	for _, m := range ms {
		c.All = append(c.All, c.B.Log.Decode(m))
	}
	if len(c.All) >= c.N {
		c.Stop()
	}
	return len(ms), nil
}
