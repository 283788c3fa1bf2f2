package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const (
	failoverMax = 4500 * time.Millisecond // after a kill: 2 s, and once more if the heir is interrupted at that instant
	pinTTL      = 2 * time.Second         // a stop that is not clean lasts that long
	handOverMax = 500 * time.Millisecond  // after a clean stop
)

func TestConsumeHandsOverAtOnceAfterACleanStop(t *testing.T) {
	natstest.RetryStalled(t, bustest.Standstill, func() error { return handsOver(t) })
}

func handsOver(t *testing.T) error {
	const turns = 5
	s, a, b := bustest.Pair(t)
	_, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	stopActive := l.Run(a, "0", bustest.LedgerSource, nil)
	bustest.Publish(t, js, 1, bustest.Subjects...)
	l.Await("0")
	stop := bustest.Feeding(t, js)
	best := time.Hour
	for i := range turns {
		heir := string(rune('1' + i))
		stopHeir := l.Run([]*bus.Bus{b, a}[i%2], heir, bustest.LedgerSource, nil)
		for range 50 {
			l.Await(string(rune('0' + i)))
		}
		asked := time.Now()
		stopActive()
		l.Await(heir)
		took := l.Began(heir).Sub(asked)
		t.Logf("%s works %s after the stop", heir, took)
		if took >= pinTTL {
			return fmt.Errorf("%s works %s after the stop: nothing was handed over", heir, took)
		}
		best, stopActive = min(best, took), stopHeir
	}
	if best > handOverMax {
		return fmt.Errorf("at best the heir works %s after the stop, want at most %s", best, handOverMax)
	}
	l.All(stop() + 1)
	if n := l.Twice(); n > 0 {
		return fmt.Errorf("%d messages were handled twice although every stop was clean", n)
	}
	return nil
}

func TestConsumeFailsOverAfterAKill(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s, a, b := bustest.Pair(t)
	_, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	// The batch that a has when it dies is never acknowledged.
	var dying sync.Once
	dead := make(chan struct{})
	kill := make(chan struct{})
	l.Run(a, "a", bustest.LedgerSource, func(ctx context.Context, ms []bus.Message) (int, error) {
		select {
		case <-kill:
			dying.Do(func() {
				a.Abort()
				close(dead)
			})
			return 0, errors.New("dead")
		default:
			return len(ms), nil
		}
	})
	bustest.Publish(t, js, 1, bustest.Subjects...)
	l.Await("a")
	l.Run(b, "b", bustest.LedgerSource, nil)
	stop := bustest.Feeding(t, js)
	for range 100 {
		l.Await("a")
	}
	close(kill)
	<-dead
	died, p := time.Now(), natstest.Feel(t)
	l.Await("b")
	took := l.Began("b").Sub(died)
	t.Logf("b works %s after a's death", took)
	if most := failoverMax + p.Lost(); took > most {
		t.Errorf("b works %s after a's death, want at most %s", took, most)
	}
	l.All(stop() + 1)
}

// TestConsumeFailsOverWhenNothingNewArrives: the next process gets the deliveries of a dead one without a new message
// in the stream.
func TestConsumeFailsOverWhenNothingNewArrives(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s, a, b := bustest.Pair(t)
	_, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	dead := make(chan struct{})
	l.Run(a, "a", bustest.LedgerSource, func(context.Context, []bus.Message) (int, error) {
		select {
		case <-dead:
		default:
			a.Abort()
			close(dead)
		}
		return 0, errors.New("dead")
	})
	bustest.Publish(t, js, 10, bustest.Subjects...)
	<-dead
	died, p := time.Now(), natstest.Feel(t)
	l.Run(b, "b", bustest.LedgerSource, nil)
	l.Await("b")
	if took, most := time.Since(died), failoverMax+p.Lost(); took > most {
		t.Errorf("b works %s after a's death, want at most %s", took, most)
	}
	l.All(10)
}

func TestConsumeResumesAfterABrokerRestart(t *testing.T) {
	const n = 3000
	s, a, b := bustest.Pair(t)
	_, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	l.Run(a, "a", bustest.LedgerSource, nil)
	l.Run(b, "b", bustest.LedgerSource, nil)
	bustest.Publish(t, js, n, bustest.Subjects...)
	bustest.Receive(t, l.News, "a batch")
	natstest.Restart(t, s)
	back, p := time.Now(), natstest.Feel(t)
	natstest.Until(t, "the outsider to be back", js.Conn().IsConnected)
	for len(l.News) > 0 {
		<-l.News
	}
	stop := bustest.Feeding(t, js)
	bustest.Receive(t, l.News, "a batch after the restart")
	t.Logf("first batch %s after the restart", time.Since(back))
	if took, most := time.Since(back), failoverMax+p.Lost(); took > most {
		t.Errorf("work continues %s after the broker was back, want at most %s", took, most)
	}
	for range 50 {
		bustest.Receive(t, l.News, "a batch")
	}
	l.All(stop() + n)
}

func TestConsumeKeepsASlowBatchToItself(t *testing.T) {
	// it mostly waits
	t.Parallel()
	natstest.RetryStalled(t, bustest.Standstill, func() error { return keepsASlowBatch(t) })
}

func keepsASlowBatch(t *testing.T) error {
	s, a, b := bustest.Pair(t)
	_, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	src := bustest.LedgerSource
	src.BatchMax = 5
	// The first batch takes longer than the broker waits for acknowledgements, and longer than a pin lasts.
	var first sync.Once
	ended := make(chan error, 1)
	slow := func(ctx context.Context, ms []bus.Message) (int, error) {
		first.Do(func() {
			select {
			case <-time.After(3500 * time.Millisecond):
				ended <- nil
			case <-ctx.Done():
				ended <- fmt.Errorf("a slow batch was ended: %w", context.Cause(ctx))
			}
		})
		return len(ms), nil
	}
	// fewer than are asked for ahead: the broker may deliver more at any time
	bustest.Publish(t, js, 7,
		bustest.Subjects...)
	l.Run(a, "a", src, slow)
	l.Run(b, "b", src, slow)
	l.All(7)
	if err := bustest.Receive(t, ended, "the slow batch to be over"); err != nil {
		return err
	}
	if n := l.Twice(); n > 0 {
		return fmt.Errorf("%d messages were handled twice", n)
	}
	if n := l.Workers(); n != 1 {
		return fmt.Errorf("%d processes worked", n)
	}
	consumer, err := js.Consumer(bustest.Background(t), "HF_LOG", "ledger")
	if err != nil {
		return err
	}
	if n := consumer.CachedInfo().Delivered.Consumer; n != 7 {
		return fmt.Errorf("the broker delivered %d times, want 7 times: no progress was reported while messages are "+
			"being worked on", n)
	}
	return nil
}

func TestConsumeDeliversAgainWhatWasNotDone(t *testing.T) {
	natstest.RetryStalled(t, bustest.Standstill, func() error { return deliversAgain(t) })
}

func deliversAgain(t *testing.T) error {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Publish(t, js, 30, bustest.Subjects...)
	l := bustest.NewLedgers(t)
	var mu sync.Mutex
	var rounds [][]bus.Message
	// where each round has to begin, however many there are in a batch
	begins := []uint64{1}
	failing := func(_ context.Context, ms []bus.Message) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		rounds = append(rounds, ms)
		half := len(ms) / 2
		switch len(rounds) {
		case 1:
			begins = append(begins, begins[0]+uint64(half))
			return half, errors.New("the next is too much")
		case 2:
			begins = append(begins, begins[1]+uint64(half))
			return half, nil
		}
		return len(ms), nil
	}
	l.Run(b, "b", bustest.LedgerSource, failing)
	l.All(30)
	if n := l.Twice(); n > 0 {
		return fmt.Errorf("%d messages were handled twice", n)
	}
	natstest.Until(t, "all to be acknowledged", func() bool {
		pending, active, err := b.Consumers.Lag(bustest.Background(t), bustest.LedgerSource)
		return err == nil && pending == 0 && active != ""
	})
	mu.Lock()
	defer mu.Unlock()
	for i, first := range begins {
		if m := rounds[i][0]; m.Seq != first || i > 0 && !m.Redelivered {
			return fmt.Errorf("the first of round %d is %d, redelivered %v; want %d, %v", i, m.Seq, m.Redelivered,
				first, i > 0)
		}
	}
	return nil
}

func TestConsumeTakesOverAgainWhenThatFailed(t *testing.T) {
	natstest.RetryStalled(t, bustest.Standstill, func() error { return takesOverAgain(t) })
}

func takesOverAgain(t *testing.T) error {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Publish(t, js, 1, bustest.Subjects...)
	h := &reluctant{Process: bustest.Process{All: bustest.NewLedgers(t), Name: "b"}}
	ctx, cancel := context.WithCancel(bustest.Background(t))
	done := make(chan error, 1)
	go func() { done <- b.Consumers.Consume(ctx, bustest.LedgerSource, h) }()
	h.All.Await("b")
	cancel()
	if err := bustest.Receive(t, done, "consume to end"); err != nil {
		t.Fatal(err)
	}
	if h.calls != 3 {
		return fmt.Errorf("took over %d times, want 3: two failures, one success", h.calls)
	}
	return nil
}

type reluctant struct {
	bustest.Process
	calls int
}

func (r *reluctant) Takeover(ctx context.Context) error {
	if r.calls++; r.calls < 3 {
		return errors.New("not yet")
	}
	return r.Process.Takeover(ctx)
}

// A process that was cut off, or paused, for longer than the pin lasts holds messages that another one has handled
// since.
func TestConsumeDropsWhatItHeldWhenItWasCutOff(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	_, js := bustest.Outsider(t, s)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	a, b := bustest.BusAt(t, p.Addr), bustest.BusAt(t, s.URL())
	l := bustest.NewLedgers(t)
	src := bustest.LedgerSource
	src.BatchMax = 1
	var once sync.Once
	paused, awake, cause := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	l.Run(a, "a", src, func(ctx context.Context, ms []bus.Message) (int, error) {
		once.Do(func() {
			close(paused)
			<-awake
			select {
			case <-ctx.Done():
			case <-time.After(bustest.Patience):
			}
			cause <- context.Cause(ctx)
			// it has done nothing
			ms = nil
		})
		for _, m := range ms {
			if m.Seq <= 8 {
				t.Errorf("a was given %d, which b had handled", m.Seq)
			}
		}
		return len(ms), nil
	})
	bustest.Publish(t, js, 8, bustest.Subjects...)
	<-paused
	p.Hold(true, true)
	l.Run(b, "b", src, nil)
	l.All(8)
	p.Hold(false, false)
	close(awake)
	if err := bustest.Receive(t, cause, "the batch's context to end"); err == nil {
		t.Error("the context of a process that was replaced did not end")
	}
	bustest.Publish(t, js, 8, bustest.Subjects...)
	l.All(16)
}

func TestConsumeSkipsNothingWhenADeliveryIsLost(t *testing.T) {
	s := natstest.Start(t)
	_, js := bustest.Outsider(t, s)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	l := bustest.NewLedgers(t)
	src := bustest.LedgerSource
	src.BatchMax = 5
	lost := p.Lose(false, `HMSG hf\.log\.\S+ (\d+) `, 8, "99999999")
	l.Run(bustest.BusAt(t, p.Addr), "a", src, nil)
	bustest.Publish(t, js, 40, bustest.Subjects...)
	bustest.Receive(t, lost, "a delivery to be lost")
	l.All(40)
}

// The broker does not hear that messages are being worked on and delivers them again, behind newer ones.
func TestConsumeKeepsTheOrderWhenTheBrokerDeliversAgain(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	_, js := bustest.Outsider(t, s)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	l := bustest.NewLedgers(t)
	src := bustest.LedgerSource
	src.BatchMax = 5
	var once sync.Once
	released := make(chan struct{})
	l.Run(bustest.BusAt(t, p.Addr), "a", src, func(_ context.Context, ms []bus.Message) (int, error) {
		once.Do(func() {
			p.Hold(true, false)
			// the broker's patience is 1.5 s
			<-time.After(1700 * time.Millisecond)
			p.Hold(false, false)
			close(released)
		})
		return len(ms), nil
	})
	// fewer than are asked for ahead: the broker may deliver more at any time
	bustest.Publish(t, js, 7,
		bustest.Subjects...)
	bustest.Receive(t, bustest.Closing(released), "the broker to have delivered again")
	bustest.Publish(t, js, 33, bustest.Subjects...)
	l.All(40)
}

// A process that is cut off is given nothing that it holds, for another one may have handled it.
func TestConsumeGivesNothingWhileCutOff(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	_, js := bustest.Outsider(t, s)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	a, b := bustest.BusAt(t, p.Addr), bustest.BusAt(t, s.URL())
	l := bustest.NewLedgers(t)
	src := bustest.LedgerSource
	src.BatchMax = 1
	calls := 0
	held, handled := make(chan struct{}), make(chan struct{})
	stop := l.Run(a, "a", src, func(_ context.Context, ms []bus.Message) (int, error) {
		if calls++; calls == 1 {
			close(held)
			<-handled
		}
		return len(ms), nil
	})
	bustest.Publish(t, js, 8, bustest.Subjects...)
	bustest.Receive(t, bustest.Closing(held), "the first batch")
	natstest.Until(t, "the process to hold all that it asks for ahead", func() bool {
		consumer, err := js.Consumer(bustest.Background(t), "HF_LOG", "ledger")
		return err == nil && consumer.CachedInfo().NumAckPending == 3
	})
	p.Hold(true, true)
	l.Run(b, "b", src, nil)
	l.All(8)
	close(handled)
	// in which nothing may happen
	<-time.After(500 * time.Millisecond)
	stop()
	if calls != 1 {
		t.Errorf("a process that was cut off was given %d batches, want 1", calls)
	}
}

func TestConsumeLetsABatchFinishWhenItStops(t *testing.T) {
	const beyondTheGrace = 100 * time.Millisecond
	natstest.RetryStalled(t, beyondTheGrace, func() error { return letsABatchFinish(t) })
}

func letsABatchFinish(t *testing.T) error {
	p, s := natstest.Feel(t), natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Publish(t, js, 2, bustest.Subjects...)
	for name, work := range map[string]time.Duration{"short": 100 * time.Millisecond, "endless": time.Hour} {
		src := bustest.LedgerSource
		src.Durable = name
		begun, ended := make(chan struct{}), make(chan error, len(bustest.Subjects)*2)
		// the published messages may come in several batches
		var once sync.Once
		stop := bustest.NewLedgers(t).Run(b, name, src, func(ctx context.Context, ms []bus.Message) (int, error) {
			once.Do(func() { close(begun) })
			select {
			case <-time.After(work):
				ended <- nil
				return len(ms), nil
			case <-ctx.Done():
				ended <- ctx.Err()
				return 0, ctx.Err()
			}
		})
		bustest.Receive(t, bustest.Closing(begun), "the batch")
		asked := time.Now()
		stop()
		if took, most := time.Since(asked), pinTTL+p.Lost(); took > most {
			t.Errorf("%s: stopped after %s, want at most %s", name, took, most)
		}
		if err := <-ended; (err == nil) != (name == "short") {
			return fmt.Errorf("%s: the batch ended with %w", name, err)
		}
	}
	return nil
}

func TestConsumeGivesTheNewestDocumentsOnly(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	rev := bustest.Store(t, b, kv.State, "session.h.a", "1", 0)
	bustest.Store(t, b, kv.State, "session.h.a", "2", rev)
	gone := bustest.Store(t, b, kv.State, "session.h.b", "1", 0)
	bustest.Store(t, b, kv.State, "work.h.a", "not a document", 0)
	if err := b.KV.Delete(bustest.Background(t), kv.State, "session.h.b", gone); err != nil {
		t.Fatal(err)
	}
	got := make(chan bus.Message, 10)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	defer cancel()
	done, failed := make(chan error, 1), false
	go func() {
		done <- b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.StateDocs, Durable: "retry"},
			batchFunc(func(ms []bus.Message) (int, error) {
				if !failed {
					failed = true
					return 0, errors.New("not yet")
				}
				for _, m := range ms {
					got <- m
				}
				return len(ms), nil
			}))
	}()
	a, gone2 := bustest.Receive(t, got, "a"), bustest.Receive(t, got, "b")
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
	if err := bustest.Receive(t, done, "consume to end"); err != nil {
		t.Fatal(err)
	}
}

type batchFunc func([]bus.Message) (int, error)

func (batchFunc) Takeover(context.Context) error { return nil }

func (f batchFunc) Batch(_ context.Context, ms []bus.Message) (int, error) {
	return f(ms)
}

func TestConsumeRefusesAWrongSource(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	for name, src := range map[string]consumer.Source{
		"no durable":        {Stream: consumer.LogStream},
		"two tokens":        {Stream: consumer.LogStream, Durable: "a.b"},
		"no such stream":    {Stream: 17, Durable: "a"},
		"batch too large":   {Stream: consumer.LogStream, Durable: "a", BatchMax: 5000},
		"batch less than 0": {Stream: consumer.LogStream, Durable: "a", BatchMax: -1},
	} {
		if err := b.Consumers.Consume(bustest.Background(t), src, bustest.HandlerFunc(nil)); err == nil {
			t.Errorf("%s: consumed", name)
		}
	}
	if _, _, err := b.Consumers.Lag(bustest.Background(t),
		consumer.Source{Stream: consumer.Due, Durable: "missing"}); !errors.Is(err,
		bus.ErrNotFound) {
		t.Errorf("the lag of a consumer that is not there: %v", err)
	}
}

// TestConsumeMakesRoom: while something that is due is kept waiting in the same process, what can wait is done in small
// parts, and it is done.
func TestConsumeMakesRoom(t *testing.T) {
	natstest.RetryStalled(t, bustest.Standstill, func() error { return makesRoom(t) })
}

func makesRoom(t *testing.T) error {
	const messages, partMax = 12, 2
	s := natstest.Start(t)
	within := func(c *bus.Config) { c.URL, c.Server = "", s }
	a, b := natstest.Bus(t, s, within), natstest.Bus(t, s, within)
	if a.Priority() != b.Priority() {
		t.Fatal("two who share a process do not know of each other")
	}
	_, js := bustest.Outsider(t, s)
	bustest.Publish(t, js, messages, bustest.Subjects...)
	done := b.Priority().Begin(time.Hour)
	defer done()
	l, largest := bustest.NewLedgers(t), 0
	src := bustest.LedgerSource
	src.BatchMax = 8 * partMax
	all := make(chan int, 1)
	seen := 0
	l.Run(a, "a", src, func(_ context.Context, ms []bus.Message) (int, error) {
		largest = max(largest, len(ms))
		// more, if some came twice
		if seen += len(ms); seen >= messages {
			select {
			case all <- largest:
			default:
			}
		}
		return len(ms), nil
	})
	if n := bustest.Receive(t, all, "all that can wait"); n > partMax {
		return fmt.Errorf("%d messages at once, want %d at most", n, partMax)
	}
	return nil
}
