package bus_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const patience = 15 * time.Second // for what must happen at all; what must happen soon is measured

// background is a context that ends with the test.
func background(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// outsider is a plain NATS client: somebody who is not us.
func outsider(t testing.TB, s *embed.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(s.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// busAt opens a connection by an address of its own, such as a proxy's.
func busAt(t testing.TB, addr string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(background(t), bus.Config{URL: addr, Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	return b
}

// receive is one value from ch, in time.
func receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatalf("channel closed, waiting for %s", what)
		}
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
	panic("not reached")
}

// proxy stands between a client and a broker and can hold back what either says.
type proxy struct {
	addr   string
	target string

	mu    sync.Mutex
	cond  *sync.Cond
	held  map[bool]bool // by direction: true is towards the broker
	conns []net.Conn
}

func newProxy(t testing.TB, s *embed.Server) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: "nats://" + l.Addr().String(), target: u.Host, held: map[bool]bool{}}
	p.cond = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		_ = l.Close()
		p.hold(false, false)
		p.cut()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", p.target)
			if err != nil {
				_ = c.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, c, up)
			p.mu.Unlock()
			go p.pipe(up, c, true)
			go p.pipe(c, up, false)
		}
	}()
	return p
}

func (p *proxy) pipe(to io.WriteCloser, from io.Reader, towards bool) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for p.held[towards] {
			p.cond.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold stops, or lets pass again, what the client says and what the broker says.
func (p *proxy) hold(client, broker bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[true], p.held[false] = client, broker
	p.cond.Broadcast()
}

// cut ends all connections; what is held back on them is lost.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// publish sends n numbered messages over the given subjects in turn and waits until all are stored.
func publish(t testing.TB, js jetstream.JetStream, n int, subjects ...string) {
	t.Helper()
	for i := range n {
		if _, err := js.PublishAsync(subjects[i%len(subjects)], fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("messages not stored")
	}
}

// pair is a broker and two processes of one service on it.
func pair(t testing.TB) (*embed.Server, *bus.Bus, *bus.Bus) {
	t.Helper()
	s := natstest.Start(t)
	return s, natstest.Bus(t, s), natstest.Bus(t, s)
}
