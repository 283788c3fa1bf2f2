package natstest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/embed"
)

// spoiled is a request of the JetStream API that each broker refuses at once: its body is no JSON.
const spoiled = "PUB $JS.API.STREAM.MSG.GET.NONE %s 1\r\nx\r\n"

// Relay stands between clients and a broker and spoils requests that a test names: the broker answers those with an
// error that no code has a rule for.
type Relay struct {
	URL string

	mu    sync.Mutex
	spoil func(subject, body string) bool
}

// NewRelay stands between clients and a broker until the test ends.
func NewRelay(t testing.TB, s *embed.Server) *Relay {
	t.Helper()
	r := &Relay{}
	r.URL = between(t, s, func(client, broker net.Conn) {
		go r.pass(broker, client)
		go func() {
			// until one of them has ended
			_, _ = io.Copy(client, broker)
			_ = client.Close()
		}()
	})
	return r
}

// Spoil names the requests that are spoiled from now on; nil for none.
func (r *Relay) Spoil(spoil func(subject, body string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoil = spoil
}

// spoils reports whether a request is to be spoiled.
func (r *Relay) spoils(subject, body string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spoil != nil && r.spoil(subject, body)
}

// pass gives what the client says to the broker, until one of them has ended.
func (r *Relay) pass(broker io.WriteCloser, client io.Reader) {
	defer func() { _ = broker.Close() }()
	for in := bufio.NewReader(client); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		if len(words) > 2 && (words[0] == "PUB" || words[0] == "HPUB") {
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			body := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(in, body); err != nil {
				return
			}
			if line += string(body); r.spoils(words[1], string(body)) {
				line = fmt.Sprintf(spoiled, words[2])
			}
		}
		if _, err := io.WriteString(broker, line); err != nil {
			return
		}
	}
}

// Far returns the URL of a broker that is far away: each byte arrives later by delay, in both directions.
func Far(t testing.TB, s *embed.Server, delay time.Duration) (url string) {
	t.Helper()
	return between(t, s, func(client, broker net.Conn) {
		go late(broker, client, delay)
		go late(client, broker, delay)
	})
}

// between listens until the test ends, and connects each client to the broker: serve starts what passes their bytes.
func between(t testing.TB, s *embed.Server, serve func(client, broker net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", loopbackAny)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			serve(client, broker)
		}
	}()
	return "nats://" + l.Addr().String()
}

// late copies what it reads, each part after a delay, until one side has ended.
func late(to io.WriteCloser, from io.Reader, delay time.Duration) {
	type part struct {
		due  time.Time
		body []byte
	}
	const partMax, partsMax = 64 << 10, 1024
	parts := make(chan part, partsMax)
	go func() {
		defer func() { _ = to.Close() }()
		for p := range parts {
			<-time.After(time.Until(p.due))
			if _, err := to.Write(p.body); err != nil {
				break
			}
		}
		// the reader ends by itself
		for range parts {
		}
	}()
	defer close(parts)
	for {
		p := part{body: make([]byte, partMax)}
		n, err := from.Read(p.body)
		p.due, p.body = time.Now().Add(delay), p.body[:n]
		parts <- p
		if err != nil {
			return
		}
	}
}
