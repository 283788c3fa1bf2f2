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
	l, err := net.Listen("tcp", loopbackAny)
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{URL: "nats://" + l.Addr().String()}
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
			go r.pass(broker, client)
			go func() {
				_, _ = io.Copy(client, broker) // until one of them has ended
				_ = client.Close()
			}()
		}
	}()
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
