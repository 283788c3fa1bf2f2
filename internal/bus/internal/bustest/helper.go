// Package bustest has what the tests of the parts of the bus share: scripted brokers, proxies and small writers.
//
// A scripted broker answers what a test says, a proxy holds back or changes what a real broker says. Everything ends
// with its test.
package bustest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const Patience = 90 * time.Second // for events that must happen; the delay of prompt ones is measured

// standstill is less than how long a process has to stand still for the broker to deliver again what it has, or to give
// its pin to another one.
const Standstill = 500 * time.Millisecond

// Background is a context that ends with the test.
func Background(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*Patience)
	t.Cleanup(cancel)
	return ctx
}

// Outsider returns a plain NATS client, without this package.
func Outsider(t testing.TB, s *embed.Server) (*nats.Conn, jetstream.JetStream) {
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

// BusAt opens a connection by an address of its own, such as a proxy's.
func BusAt(t testing.TB, addr string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(Background(t), bus.Config{URL: addr, Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Abort)
	return b
}

// Receive is one value from ch, in time.
func Receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatalf("channel closed, waiting for %s", what)
		}
		return v
	case <-time.After(Patience):
		t.Fatalf("waited %s for %s", Patience, what)
	}
	panic("not reached")
}

// Proxy stands between a client and a broker and can hold back what either says.
type Proxy struct {
	Addr   string
	target string

	Mu    sync.Mutex
	cond  *sync.Cond
	held  map[bool]bool // by direction: true is towards the broker
	Alter func(towards bool, data []byte) []byte
	rate  int // bytes per second that pass from the broker; 0: no limit
	conns []net.Conn
}

// NewProxy stands between clients and a broker until the test ends.
func NewProxy(t testing.TB, s *embed.Server) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: "nats://" + l.Addr().String(), target: u.Host, held: map[bool]bool{}}
	p.cond = sync.NewCond(&p.Mu)
	t.Cleanup(func() {
		_ = l.Close()
		p.Hold(false, false)
		p.Cut()
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
			p.Mu.Lock()
			p.conns = append(p.conns, c, up)
			p.Mu.Unlock()
			go p.pipe(up, c, true)
			go p.pipe(c, up, false)
		}
	}()
	return p
}

func (p *Proxy) pipe(to io.WriteCloser, from io.Reader, towards bool) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.Mu.Lock()
		for p.held[towards] {
			p.cond.Wait()
		}
		data := buf[:n]
		if p.Alter != nil && n > 0 {
			data = p.Alter(towards, data)
		}
		rate := p.rate
		p.Mu.Unlock()
		if n > 0 {
			if rate > 0 && !towards {
				time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
			}
			if _, err := to.Write(data); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Hold stops, or lets pass again, what the client says and what the broker says.
func (p *Proxy) Hold(client, broker bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.held[true], p.held[false] = client, broker
	p.cond.Broadcast()
}

// Slow lets so many bytes per second pass from the broker to each client.
func (p *Proxy) Slow(bytesPerSecond int) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.rate = bytesPerSecond
}

// Lose makes the nth thing said from now on that matches vanish on its way: its first group is replaced by something of
// no meaning. It must not be split over two packets, which short messages are not.
func (p *Proxy) Lose(towardsBroker bool, pattern string, nth int, instead string) (lost <-chan bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	re, out, seen := regexp.MustCompile(pattern), make(chan bool, 1), 0
	p.Alter = func(towards bool, data []byte) []byte {
		if towards != towardsBroker || seen >= nth {
			return data
		}
		for _, at := range re.FindAllSubmatchIndex(data, -1) {
			if seen++; seen == nth {
				out <- true
				return slices.Concat(data[:at[2]], []byte(instead), data[at[3]:])
			}
		}
		return data
	}
	return out
}

// Cut ends all connections, and drops what is held back on them.
func (p *Proxy) Cut() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// Publish sends n numbered messages over the given subjects in turn and waits until all are stored.
func Publish(t testing.TB, js jetstream.JetStream, n int, subjects ...string) {
	t.Helper()
	for i := range n {
		// the default of 200 ms is short for a busy disk
		if _, err := js.PublishAsync(subjects[i%len(subjects)], fmt.Appendf(nil, "%d", i),
			jetstream.WithStallWait(Patience)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(Patience):
		t.Fatal("messages not stored")
	}
}

// Pair is a broker and two processes of one service on it.
func Pair(t testing.TB) (*embed.Server, *bus.Bus, *bus.Bus) {
	t.Helper()
	s := natstest.Start(t)
	return s, natstest.Bus(t, s), natstest.Bus(t, s)
}

// ledgers are the processes of one service under test, and what all of them together were given.
type ledgers struct {
	t  testing.TB
	mu sync.Mutex
	// seen is every sequence handled, how often.
	seen   map[uint64]int
	active string
	at     map[string]time.Time // when each was first given a batch
	// news says which process was given a batch.
	News chan string
}

// NewLedgers returns a service without processes.
func NewLedgers(t testing.TB) *ledgers {
	return &ledgers{t: t, seen: map[uint64]int{}, at: map[string]time.Time{}, News: make(chan string, 1_000_000)}
}

// Process is one of them: a [consumer.Handler] that checks the order.
type Process struct {
	All    *ledgers
	Name   string
	last   uint64 // the last one in this stretch
	active bool
	// act, when set, does the work: how many are done, and an error.
	act func(ctx context.Context, ms []bus.Message) (int, error)
}

// Takeover implements the handler of a consumer.
func (p *Process) Takeover(context.Context) error {
	p.All.mu.Lock()
	defer p.All.mu.Unlock()
	p.active, p.last, p.All.active = true, 0, p.Name
	return nil
}

// Batch implements the handler of a consumer.
func (p *Process) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	done, err := len(ms), error(nil)
	if p.act != nil {
		done, err = p.act(ctx, ms)
	}
	p.All.mu.Lock()
	defer p.All.mu.Unlock()
	if !p.active {
		p.All.t.Errorf("%s was given a batch before it took over", p.Name)
	}
	for i, m := range ms {
		switch {
		case m.At.Location() != time.UTC:
			// documents of two machines are the same
			p.All.t.Errorf("%s was given an instant in the zone of %s", p.Name, m.At.Location())
		case i > 0 && m.Seq != ms[i-1].Seq+1:
			p.All.t.Errorf("%s was given %d after %d", p.Name, m.Seq, ms[i-1].Seq)
		case i == 0 && p.last > 0 && m.Seq != p.last+1 && !m.Redelivered:
			p.All.t.Errorf("%s was given %d after %d, not marked as redelivered", p.Name, m.Seq, p.last)
		case m.Seq > 1 && p.All.seen[m.Seq-1] == 0 && i <= done:
			p.All.t.Errorf("%s was given %d, and %d was not handled", p.Name, m.Seq, m.Seq-1)
		case p.All.seen[m.Seq] > 0 && !m.Redelivered:
			p.All.t.Errorf("%s was given %d, which was handled, not marked as redelivered", p.Name, m.Seq)
		}
		if i < done {
			p.All.seen[m.Seq]++
			p.last = m.Seq
		}
	}
	if p.All.at[p.Name].IsZero() {
		p.All.at[p.Name] = time.Now()
	}
	select {
	case p.All.News <- p.Name:
	default:
	}
	return done, err
}

// Run consumes on b until the returned function is called.
func (l *ledgers) Run(b *bus.Bus, name string, src consumer.Source,
	act func(context.Context, []bus.Message) (int, error)) (stop func()) {
	ctx, cancel := context.WithCancel(Background(l.t))
	done := make(chan error, 1)
	go func() { done <- b.Consumers.Consume(ctx, src, &Process{All: l, Name: name, act: act}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && b.Connected() {
			l.t.Errorf("%s: consume: %v", name, err)
		}
	})
	l.t.Cleanup(stop)
	return stop
}

// Await waits until this process is given a batch.
func (l *ledgers) Await(name string) {
	l.t.Helper()
	for Receive(l.t, l.News, name+" to be active") != name {
	}
}

// Began is when this process was first given a batch.
func (l *ledgers) Began(name string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[name]
}

// All waits until n messages were handled.
func (l *ledgers) All(n int) {
	l.t.Helper()
	natstest.Until(l.t, fmt.Sprintf("all %d messages", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.seen) == n
	})
}

// Workers is how many processes were given a batch.
func (l *ledgers) Workers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}

func (l *ledgers) Twice() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.seen {
		if times > 1 {
			n++
		}
	}
	return n
}

// Subjects are subjects of the log, of several sessions and writers.
var Subjects = []string{"hf.log.h.a.harness", "hf.log.h.b.ledger", "hf.log.h.c.harness", "hf.log.i.a.retry"}

// LedgerSource is the log as the ledger consumes it.
var LedgerSource = consumer.Source{Stream: consumer.LogStream, Durable: "ledger", BatchMax: 64}

// Feeding publishes messages, at a pace, until the returned function is called, which says how many there were.
func Feeding(t testing.TB, js jetstream.JetStream) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(Background(t))
	count := make(chan int, 1)
	go func() {
		n := 0
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			for range 5 {
				if _, err := js.Publish(Background(t), Subjects[n%len(Subjects)],
					fmt.Appendf(nil, "%d", n)); err == nil {
					n++
				}
			}
		}
		count <- n
	}()
	t.Cleanup(cancel)
	return sync.OnceValue(func() int {
		cancel()
		return <-count
	})
}
