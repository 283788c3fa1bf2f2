package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const (
	failoverMax = 3 * time.Second        // after a kill
	handOverMax = 500 * time.Millisecond // after a clean stop
)

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
	p.all.at[p.name] = time.Now()
	select {
	case p.all.news <- p.name:
	default:
	}
	return done, err
}

// run consumes on b until the returned function is called.
func (l *ledgers) run(b *bus.Bus, name string, src bus.Source, act func(context.Context, []bus.Message) (int, error)) (stop func()) {
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

// all waits until n messages were handled.
func (l *ledgers) all(n int) {
	l.t.Helper()
	natstest.Until(l.t, fmt.Sprintf("all %d messages", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.seen) == n
	})
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
				if _, err := js.Publish(background(t), subjects[n%len(subjects)], fmt.Appendf(nil, "%d", n)); err == nil {
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

func TestConsumeHandsOverAtOnceAfterACleanStop(t *testing.T) {
	s, a, b := pair(t)
	_, js := outsider(t, s)
	l := newLedgers(t)
	stopA := l.run(a, "a", ledgerSource, nil)
	publish(t, js, 1, subjects...)
	l.await("a")
	stopB := l.run(b, "b", ledgerSource, nil)
	stop := feeding(t, js)
	for range 100 {
		l.await("a")
	}
	for _, turn := range []struct {
		next string
		stop func()
	}{{"b", stopA}, {"c", stopB}} {
		if turn.next == "c" {
			l.run(a, "c", ledgerSource, nil)
			for range 100 {
				l.await("b")
			}
		}
		asked := time.Now()
		turn.stop()
		l.await(turn.next)
		l.mu.Lock()
		took := l.at[turn.next].Sub(asked)
		l.mu.Unlock()
		t.Logf("%s works %s after the stop", turn.next, took)
		if took > handOverMax {
			t.Errorf("%s works %s after the stop, want at most %s", turn.next, took, handOverMax)
		}
	}
	l.all(stop() + 1)
	if n := l.twice(); n > 0 {
		t.Errorf("%d messages were handled twice although every stop was clean", n)
	}
}

func TestConsumeFailsOverAfterAKill(t *testing.T) {
	s, a, b := pair(t)
	_, js := outsider(t, s)
	l := newLedgers(t)
	// The batch that a has when it dies is never acknowledged.
	var dying sync.Once
	dead := make(chan struct{})
	kill := make(chan struct{})
	l.run(a, "a", ledgerSource, func(ctx context.Context, ms []bus.Message) (int, error) {
		select {
		case <-kill:
			dying.Do(func() {
				a.Kill()
				close(dead)
			})
			return 0, errors.New("dead")
		default:
			return len(ms), nil
		}
	})
	publish(t, js, 1, subjects...)
	l.await("a")
	l.run(b, "b", ledgerSource, nil)
	stop := feeding(t, js)
	for range 100 {
		l.await("a")
	}
	close(kill)
	<-dead
	died := time.Now()
	l.await("b")
	l.mu.Lock()
	took := l.at["b"].Sub(died)
	l.mu.Unlock()
	t.Logf("b works %s after a's death", took)
	if took > failoverMax {
		t.Errorf("b works %s after a's death, want at most %s", took, failoverMax)
	}
	l.all(stop() + 1)
}

// What a dead process had, and nothing newer: the next one must not wait for a new message to become active.
func TestConsumeFailsOverWhenNothingNewArrives(t *testing.T) {
	s, a, b := pair(t)
	_, js := outsider(t, s)
	l := newLedgers(t)
	dead := make(chan struct{})
	l.run(a, "a", ledgerSource, func(context.Context, []bus.Message) (int, error) {
		select {
		case <-dead:
		default:
			a.Kill()
			close(dead)
		}
		return 0, errors.New("dead")
	})
	publish(t, js, 10, subjects...)
	<-dead
	died := time.Now()
	l.run(b, "b", ledgerSource, nil)
	l.await("b")
	if took := time.Since(died); took > failoverMax {
		t.Errorf("b works %s after a's death, want at most %s", took, failoverMax)
	}
	l.all(10)
}

func TestConsumeResumesAfterABrokerRestart(t *testing.T) {
	const n = 3000
	s, a, b := pair(t)
	_, js := outsider(t, s)
	l := newLedgers(t)
	l.run(a, "a", ledgerSource, nil)
	l.run(b, "b", ledgerSource, nil)
	publish(t, js, n, subjects...)
	receive(t, l.news, "a batch")
	natstest.Restart(t, s)
	back := time.Now()
	natstest.Until(t, "the outsider to be back", js.Conn().IsConnected)
	for len(l.news) > 0 {
		<-l.news
	}
	stop := feeding(t, js)
	receive(t, l.news, "a batch after the restart")
	t.Logf("first batch %s after the restart", time.Since(back))
	if took := time.Since(back); took > failoverMax {
		t.Errorf("work goes on %s after the broker was back, want at most %s", took, failoverMax)
	}
	for range 50 {
		receive(t, l.news, "a batch")
	}
	l.all(stop() + n)
}

func TestConsumeKeepsASlowBatchToItself(t *testing.T) {
	s, a, b := pair(t)
	_, js := outsider(t, s)
	l := newLedgers(t)
	src := ledgerSource
	src.BatchMax = 5
	// The first batch takes longer than the broker waits for acknowledgements, and longer than a pin lasts.
	var first sync.Once
	slow := func(ctx context.Context, ms []bus.Message) (int, error) {
		first.Do(func() {
			select {
			case <-time.After(3500 * time.Millisecond):
			case <-ctx.Done():
				t.Errorf("a slow batch was ended: %v", context.Cause(ctx))
			}
		})
		return len(ms), nil
	}
	publish(t, js, 20, subjects...)
	l.run(a, "a", src, slow)
	l.run(b, "b", src, slow)
	l.all(20)
	if n := l.twice(); n > 0 {
		t.Errorf("%d messages were handled twice", n)
	}
	if len(l.at) != 1 {
		t.Errorf("both processes worked")
	}
}

func TestConsumeDeliversAgainWhatWasNotDone(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	publish(t, js, 30, subjects...)
	l := newLedgers(t)
	var rounds [][]bus.Message
	failing := func(_ context.Context, ms []bus.Message) (int, error) {
		rounds = append(rounds, ms)
		switch len(rounds) {
		case 1:
			return 10, errors.New("the eleventh is too much")
		case 2:
			return 5, nil
		}
		return len(ms), nil
	}
	l.run(b, "b", ledgerSource, failing)
	l.all(30)
	if n := l.twice(); n > 0 {
		t.Errorf("%d messages were handled twice", n)
	}
	for i, first := range []uint64{1, 11, 16} {
		if m := rounds[i][1]; m.Seq != first+1 || m.Redelivered != (i > 0) {
			t.Errorf("the second of round %d is %d, redelivered %v; want %d, %v", i, m.Seq, m.Redelivered, first+1, i > 0)
		}
	}
	natstest.Until(t, "all to be acknowledged", func() bool {
		pending, active, err := b.Lag(background(t), ledgerSource)
		return err == nil && pending == 0 && active != ""
	})
}

func TestConsumeTakesOverAgainWhenThatFailed(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	publish(t, js, 1, subjects...)
	h := &reluctant{process: process{all: newLedgers(t), name: "b"}}
	ctx, cancel := context.WithCancel(background(t))
	done := make(chan error, 1)
	go func() { done <- b.Consume(ctx, ledgerSource, h) }()
	h.all.await("b")
	cancel()
	if err := receive(t, done, "consume to end"); err != nil {
		t.Fatal(err)
	}
	if h.calls != 3 {
		t.Errorf("took over %d times, want 3: two failures, one success", h.calls)
	}
}

type reluctant struct {
	process
	calls int
}

func (r *reluctant) Takeover(ctx context.Context) error {
	if r.calls++; r.calls < 3 {
		return errors.New("not yet")
	}
	return r.process.Takeover(ctx)
}

// A process that was cut off, or paused, for longer than the pin lasts holds messages that another one has handled since.
func TestConsumeDropsWhatItHeldWhenItWasCutOff(t *testing.T) {
	s := natstest.Start(t)
	_, js := outsider(t, s)
	natstest.Bus(t, s)
	p := newProxy(t, s)
	a, b := busAt(t, p.addr), busAt(t, s.URL())
	l := newLedgers(t)
	src := ledgerSource
	src.BatchMax = 1
	var once sync.Once
	paused, awake, cause := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	l.run(a, "a", src, func(ctx context.Context, ms []bus.Message) (int, error) {
		once.Do(func() {
			close(paused)
			<-awake
			select {
			case <-ctx.Done():
			case <-time.After(patience):
			}
			cause <- context.Cause(ctx)
		})
		return 0, errors.New("cut off")
	})
	publish(t, js, 8, subjects...)
	<-paused
	p.hold(true, true)
	l.run(b, "b", src, nil)
	l.all(8)
	p.hold(false, false)
	close(awake)
	if err := receive(t, cause, "the batch's context to end"); err == nil {
		t.Error("the context of a process that was replaced did not end")
	}
	for len(l.news) > 0 {
		<-l.news
	}
	publish(t, js, 8, subjects...)
	l.all(16)
	for len(l.news) > 0 {
		if name := <-l.news; name != "b" {
			t.Errorf("%s was given messages that b had handled", name)
		}
	}
}

func TestConsumeGivesTheNewestDocumentsOnly(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	rev := store(t, b, bus.State, "session.h.a", "1", 0)
	store(t, b, bus.State, "session.h.a", "2", rev)
	gone := store(t, b, bus.State, "session.h.b", "1", 0)
	store(t, b, bus.State, "work.h.a", "not a document", 0)
	if err := b.Delete(background(t), bus.State, "session.h.b", gone); err != nil {
		t.Fatal(err)
	}
	got := make(chan bus.Message, 10)
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- b.Consume(ctx, bus.Source{Stream: bus.StateDocs, Durable: "retry"}, handlerFunc(func(ms []bus.Message) {
			for _, m := range ms {
				got <- m
			}
		}))
	}()
	a, gone2 := receive(t, got, "a"), receive(t, got, "b")
	if a.Subject != "session.h.a" || string(a.Body) != "2" || a.Seq != rev+1 || a.Deleted {
		t.Errorf("the first document is %s %q at %d, deleted %v", a.Subject, a.Body, a.Seq, a.Deleted)
	}
	if gone2.Subject != "session.h.b" || !gone2.Deleted {
		t.Errorf("the second document is %s, deleted %v, want session.h.b, deleted", gone2.Subject, gone2.Deleted)
	}
	for k := range a.Header {
		if k == "Nats-Pin-Id" {
			t.Error("the pin is shown as if the author had written it")
		}
	}
	cancel()
	if err := receive(t, done, "consume to end"); err != nil {
		t.Fatal(err)
	}
}

type handlerFunc func([]bus.Message)

func (handlerFunc) Takeover(context.Context) error { return nil }
func (f handlerFunc) Batch(_ context.Context, ms []bus.Message) (int, error) {
	f(ms)
	return len(ms), nil
}

func TestConsumeRefusesAWrongSource(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	for name, src := range map[string]bus.Source{
		"no durable":        {Stream: bus.LogStream},
		"two tokens":        {Stream: bus.LogStream, Durable: "a.b"},
		"no such stream":    {Stream: 17, Durable: "a"},
		"batch too large":   {Stream: bus.LogStream, Durable: "a", BatchMax: 5000},
		"batch less than 0": {Stream: bus.LogStream, Durable: "a", BatchMax: -1},
	} {
		if err := b.Consume(background(t), src, handlerFunc(nil)); err == nil {
			t.Errorf("%s: consumed", name)
		}
	}
	if _, _, err := b.Lag(background(t), bus.Source{Stream: bus.Due, Durable: "nobody"}); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("the lag of a consumer that is not there: %v", err)
	}
}
