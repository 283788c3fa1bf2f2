package bus_test

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
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const patience = 90 * time.Second // for events that must happen; the delay of prompt ones is measured

// standstill is less than how long a process has to stand still for the broker to deliver again what it has, or to give
// its pin to another one.
const standstill = 500 * time.Millisecond

// background is a context that ends with the test.
func background(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	return ctx
}

// outsider returns a plain NATS client, without this package.
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
	alter func(towards bool, said []byte) []byte
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
		said := buf[:n]
		if p.alter != nil && n > 0 {
			said = p.alter(towards, said)
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(said); err != nil {
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

// lose makes the nth thing said from now on that matches vanish on its way: its first group is replaced by something of
// no meaning. It must not be split over two packets, which short messages are not.
func (p *proxy) lose(towardsBroker bool, pattern string, nth int, instead string) (lost <-chan bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	re, out, seen := regexp.MustCompile(pattern), make(chan bool, 1), 0
	p.alter = func(towards bool, said []byte) []byte {
		if towards != towardsBroker || seen >= nth {
			return said
		}
		for _, at := range re.FindAllSubmatchIndex(said, -1) {
			if seen++; seen == nth {
				out <- true
				return slices.Concat(said[:at[2]], []byte(instead), said[at[3]:])
			}
		}
		return said
	}
	return out
}

// cut ends all connections, and drops what is held back on them.
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

// ledgers are the processes of one service under test, and what all of them together were given.
type ledgers struct {
	t  testing.TB
	mu sync.Mutex
	// seen is every sequence handled, how often.
	seen   map[uint64]int
	active string
	at     map[string]time.Time // when each was first given a batch
	// news says which process was given a batch.
	news chan string
}

func newLedgers(t testing.TB) *ledgers {
	return &ledgers{t: t, seen: map[uint64]int{}, at: map[string]time.Time{}, news: make(chan string, 1_000_000)}
}

// process is one of them: a [bus.Handler] that checks the order.
type process struct {
	all    *ledgers
	name   string
	last   uint64 // the last one in this stretch
	active bool
	// act, when set, does the work: how many are done, and an error.
	act func(ctx context.Context, ms []bus.Message) (int, error)
}

func (p *process) Takeover(context.Context) error {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.active, p.last, p.all.active = true, 0, p.name
	return nil
}

func (p *process) Batch(ctx context.Context, ms []bus.Message) (int, error) {
	done, err := len(ms), error(nil)
	if p.act != nil {
		done, err = p.act(ctx, ms)
	}
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	if !p.active {
		p.all.t.Errorf("%s was given a batch before it took over", p.name)
	}
	for i, m := range ms {
		switch {
		case m.At.Location() != time.UTC: // documents of two machines are the same
			p.all.t.Errorf("%s was given an instant in the zone of %s", p.name, m.At.Location())
		case i > 0 && m.Seq != ms[i-1].Seq+1:
			p.all.t.Errorf("%s was given %d after %d", p.name, m.Seq, ms[i-1].Seq)
		case i == 0 && p.last > 0 && m.Seq != p.last+1 && !m.Redelivered:
			p.all.t.Errorf("%s was given %d after %d and not told why", p.name, m.Seq, p.last)
		case m.Seq > 1 && p.all.seen[m.Seq-1] == 0 && i <= done:
			p.all.t.Errorf("%s was given %d, and nobody has handled %d", p.name, m.Seq, m.Seq-1)
		case p.all.seen[m.Seq] > 0 && !m.Redelivered:
			p.all.t.Errorf("%s was given %d, which was handled, and not told so", p.name, m.Seq)
		}
		if i < done {
			p.all.seen[m.Seq]++
			p.last = m.Seq
		}
	}
	if p.all.at[p.name].IsZero() {
		p.all.at[p.name] = time.Now()
	}
	select {
	case p.all.news <- p.name:
	default:
	}
	return done, err
}

// run consumes on b until the returned function is called.
func (l *ledgers) run(b *bus.Bus, name string, src bus.Source,
	act func(context.Context, []bus.Message) (int, error)) (stop func()) {
	ctx, cancel := context.WithCancel(background(l.t))
	done := make(chan error, 1)
	go func() { done <- b.Consume(ctx, src, &process{all: l, name: name, act: act}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && b.Connected() {
			l.t.Errorf("%s: consume: %v", name, err)
		}
	})
	l.t.Cleanup(stop)
	return stop
}

// await waits until this process is given a batch.
func (l *ledgers) await(name string) {
	l.t.Helper()
	for receive(l.t, l.news, name+" to be active") != name {
	}
}

// began is when this process was first given a batch.
func (l *ledgers) began(name string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[name]
}

// all waits until n messages were handled.
func (l *ledgers) all(n int) {
	l.t.Helper()
	natstest.Until(l.t, fmt.Sprintf("all %d messages", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.seen) == n
	})
}

// workers is how many processes were given a batch.
func (l *ledgers) workers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}

func (l *ledgers) twice() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.seen {
		if times > 1 {
			n++
		}
	}
	return n
}

var subjects = []string{"hf.log.h.a.harness", "hf.log.h.b.ledger", "hf.log.h.c.harness", "hf.log.i.a.retry"}

var ledgerSource = bus.Source{Stream: bus.LogStream, Durable: "ledger", BatchMax: 64}

// feeding publishes messages, at a pace, until the returned function is called, which says how many there were.
func feeding(t testing.TB, js jetstream.JetStream) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(background(t))
	count := make(chan int, 1)
	go func() {
		n := 0
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			for range 5 {
				if _, err := js.Publish(background(t), subjects[n%len(subjects)],
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
