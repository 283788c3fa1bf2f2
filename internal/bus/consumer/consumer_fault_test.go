package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// pinScript is a broker with one pinned consumer, on which it delivers as a test says.
type pinScript struct {
	t         testing.TB
	hidePin   bool                          // the header of the message that pins a process does not name the pin
	standBy   func(nth int) []bustest.Reply // what a process that has no pin is sent; nil: a message that pins it
	deliver   func(nth int) []bustest.Reply // what a pull with a pin is sent
	keepAlive func() []bustest.Reply        // nil: the pin is confirmed
	pinned    func() string                 // the pin as the consumer's state names it; nil: P

	mu       sync.Mutex
	what     []string // what was asked for, in order: create, stand by, info, reset, pull, keep alive, unpin
	ack      int      // messages that wait for their acknowledgement, as the consumer's state says
	stand, n int      // how often a process began to stand by, and pulled with a pin
}

// unknownPin makes the question for the consumer's state fail.
const unknownPin = "unknown"

func (p *pinScript) asks() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.what)
}

func (p *pinScript) answer(a bustest.Asked) []bustest.Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	note := func(what string) { p.what = append(p.what, what) }
	switch {
	case a.Is("CONSUMER.CREATE"):
		note("create")
	case a.Is("CONSUMER.RESET"):
		note("reset")
	case a.Is("CONSUMER.UNPIN"):
		note("unpin")
	case a.Is("CONSUMER.INFO"):
		pin := "P"
		if p.pinned != nil {
			pin = p.pinned()
		}
		note("info")
		if pin == unknownPin {
			return bustest.Trouble
		}
		return bustest.OneReply(fmt.Sprintf(
			`{"num_ack_pending":%d,"priority_groups":[{"group":"active","pinned_client_id":%q}]}`,
			p.ack, pin))
	case a.Is("CONSUMER.MSG.NEXT"):
		return p.pull(a, note)
	case a.Is("STREAM.MSG.GET"):
		return bustest.NotFound
	default:
		// an acknowledgement
		return bustest.Silence
	}
	return bustest.OneReply(`{}`)
}

func (p *pinScript) pull(a bustest.Asked, note func(string)) []bustest.Reply {
	var q struct {
		Batch     int           `json:"batch"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
		Pin       string        `json:"id"`
	}
	a.Decode(p.t, &q)
	switch {
	case q.Pin == "":
		// it asks ahead
		if len(p.what) > 0 && p.what[len(p.what)-1] == "stand by" {
			return bustest.Silence
		}
		note("stand by")
		p.stand++
		if p.standBy != nil {
			return p.standBy(p.stand)
		}
		return p.pinning()
	case q.Heartbeat == 0:
		note("keep alive")
		if p.keepAlive != nil {
			return p.keepAlive()
		}
		return []bustest.Reply{bustest.Status("408")}
	}
	note("pull")
	p.n++
	return p.deliver(p.n)
}

// pinning is the message that pins a process.
func (p *pinScript) pinning() []bustest.Reply {
	m := bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "[]", 1, 1, 0)
	if !p.hidePin {
		m.Header = "NATS/1.0\r\nNats-Pin-Id: P\r\n\r\n"
	}
	return []bustest.Reply{m}
}

// nthDelivery is a message of the log for a stretch.
func nthDelivery(n int) bustest.Reply {
	return bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "[]", n, n, 0)
}

// losing is a handler with a Lost method.
type losing struct {
	take  func() error
	batch func(ctx context.Context, ms []bus.Message) (int, error)
	lost  func()
}

func (l losing) Takeover(context.Context) error {
	if l.take == nil {
		return nil
	}
	return l.take()
}

func (l losing) Batch(ctx context.Context, ms []bus.Message) (int, error) { return l.batch(ctx, ms) }

func (l losing) LeadershipLost() {
	if l.lost != nil {
		l.lost()
	}
}

// consuming runs a consumer of the log, one message a batch, until the returned function is called.
func consuming(t testing.TB, b *bus.Bus, h consumer.Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(bustest.Background(t))
	done := make(chan error, 1)
	go func() {
		done <- b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "ledger", BatchMax: 1}, h)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := bustest.Receive(t, done, "consume to end"); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestOneThatAskedForItsPinLetsGo: a process that could not read its pin from the delivery may have another's. After an
// interruption it stands by again, while one that read its pin continues with it.
func TestOneThatAskedForItsPinLetsGo(t *testing.T) {
	for name, hidden := range map[string]bool{"asked": true, "delivered": false} {
		t.Run(name, func(t *testing.T) {
			p := &pinScript{t: t, hidePin: hidden, deliver: func(n int) []bustest.Reply {
				switch n {
				case 1:
					return []bustest.Reply{bustest.Status("409", "Description", "Leadership Change")}
				case 2:
					return []bustest.Reply{nthDelivery(1)}
				}
				// a second delivery of it would be an interruption
				return bustest.Silence
			}}
			b := bustest.Scripted(t, p.answer).Open()
			came := make(chan int, 100)
			stop := consuming(t, b, losing{batch: func(_ context.Context, ms []bus.Message) (int, error) {
				came <- 1
				return len(ms), nil
			}})
			bustest.Receive(t, came, "a batch")
			stop()
			p.mu.Lock()
			defer p.mu.Unlock()
			if want := map[bool]int{true: 2, false: 1}[hidden]; p.stand != want {
				t.Errorf("stood by %d times, want %d: %v", p.stand, want, p.what)
			}
		})
	}
}

// TestNothingIsResetWithoutAPin: standing by was interrupted, so this process has no pin, and the consumer's state has
// none. It stands by again, and resets nothing.
func TestNothingIsResetWithoutAPin(t *testing.T) {
	p := &pinScript{t: t, deliver: func(int) []bustest.Reply { return []bustest.Reply{nthDelivery(1)} }}
	p.standBy = func(nth int) []bustest.Reply {
		if nth == 1 {
			p.what = append(p.what, "refused")
			return []bustest.Reply{bustest.Status("409", "Description", "Leadership Change")}
		}
		return p.pinning()
	}
	p.pinned = func() string {
		if p.stand < 2 {
			return ""
		}
		return "P"
	}
	b := bustest.Scripted(t, p.answer).Open()
	came := make(chan int, 100)
	stop := consuming(t, b, losing{batch: func(_ context.Context, ms []bus.Message) (int, error) {
		came <- 1
		return len(ms), nil
	}})
	bustest.Receive(t, came, "a batch")
	stop()
	asks := p.asks()
	if refused := slices.Index(asks, "refused"); asks[refused+1] != "stand by" {
		t.Errorf("reset without a pin: %v", asks)
	}
}

// TestWhoseConsumerIsAnothersDoesNotTakeOver: between the delivery that pinned this process and its reset another
// process was pinned.
func TestWhoseConsumerIsAnothersDoesNotTakeOver(t *testing.T) {
	p := &pinScript{t: t, deliver: func(int) []bustest.Reply { return []bustest.Reply{nthDelivery(1)} }}
	p.pinned = func() string {
		if p.stand == 1 {
			return "another"
		}
		return "P"
	}
	b := bustest.Scripted(t, p.answer).Open()
	came := make(chan int, 100)
	took := make(chan int, 100)
	stop := consuming(t, b, losing{
		take:  func() error { p.mu.Lock(); defer p.mu.Unlock(); took <- p.stand; return nil },
		batch: func(_ context.Context, ms []bus.Message) (int, error) { came <- 1; return len(ms), nil }})
	bustest.Receive(t, came, "a batch")
	stop()
	if first := bustest.Receive(t, took, "a take-over"); first != 2 {
		t.Errorf("took over after standing by %d times, want 2", first)
	}
}

// TestWhatIsNotDoneKeepsThePin: a batch that failed is delivered again to the process that has the pin, which does not
// stand by for it.
func TestWhatIsNotDoneKeepsThePin(t *testing.T) {
	p := &pinScript{t: t, deliver: func(int) []bustest.Reply { return []bustest.Reply{nthDelivery(1)} }}
	b := bustest.Scripted(t, p.answer).Open()
	came, calls := make(chan int, 100), 0
	stop := consuming(t, b, losing{batch: func(_ context.Context, ms []bus.Message) (int, error) {
		if calls++; calls == 1 {
			return 0, errors.New("not now")
		}
		came <- 1
		return len(ms), nil
	}})
	bustest.Receive(t, came, "the batch again")
	stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stand != 1 {
		t.Errorf("stood by %d times, want once: %v", p.stand, p.what)
	}
}

// TestAPinThatWasLostEndsTheWork: the broker reports in one of two ways that the pin is lost, during a batch. The
// handler does not get the deliveries ahead, and nothing of the process that has the pin now is touched.
func TestAPinThatWasLostEndsTheWork(t *testing.T) {
	// it mostly waits
	t.Parallel()
	for name, c := range map[string]struct {
		keepAlive func() []bustest.Reply
		slow      time.Duration
	}{
		"refused while it keeps its pin": {
			func() []bustest.Reply { return []bustest.Reply{bustest.Status("423")} }, 0},
		"asked after it was not confirmed": {
			func() []bustest.Reply { return bustest.Silence }, 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			lost := false
			p := &pinScript{t: t, ack: 2, deliver: func(n int) []bustest.Reply {
				if n > 1 {
					return bustest.Silence
				}
				heartbeat := bustest.Status("100")
				heartbeat.Every = 200 * time.Millisecond
				return []bustest.Reply{nthDelivery(1), nthDelivery(2), heartbeat}
			}}
			p.keepAlive = c.keepAlive
			p.pinned = func() string {
				if lost {
					return "another"
				}
				return "P"
			}
			p.standBy = func(nth int) []bustest.Reply {
				if nth > 1 {
					return bustest.Silence
				}
				return p.pinning()
			}
			b := bustest.Scripted(t, p.answer).Open()
			var mu sync.Mutex
			var seen []uint64
			gone := make(chan bool, 10)
			stop := consuming(t, b, losing{lost: func() { gone <- true },
				batch: func(ctx context.Context, ms []bus.Message) (int, error) {
					mu.Lock()
					seen = append(seen, ms[0].Seq)
					mu.Unlock()
					p.mu.Lock()
					lost = true
					p.mu.Unlock()
					if c.slow > 0 {
						<-time.After(c.slow)
					} else {
						<-ctx.Done()
						// in which the flow gets the status
						<-time.After(100 * time.Millisecond)
					}
					return len(ms), nil
				}})
			bustest.Receive(t, gone, "the loss")
			stop()
			mu.Lock()
			defer mu.Unlock()
			if len(seen) != 1 {
				t.Errorf("given %v after the pin was lost, want 1 alone", seen)
			}
			if asks := p.asks(); slices.Contains(asks, "unpin") {
				t.Errorf("another's pin was taken: %v", asks)
			}
		})
	}
}

// TestAPinOfAnotherIsNotHandedOver: a process whose context ends hands nothing over when another one has the pin by
// then, or when it cannot find out who has it.
func TestAPinOfAnotherIsNotHandedOver(t *testing.T) {
	for _, whose := range []string{"another", unknownPin} {
		t.Run(whose, func(t *testing.T) { handsNothingOver(t, whose) })
	}
}

func handsNothingOver(t *testing.T, whose string) {
	t.Helper()
	var ending bool
	p := &pinScript{t: t, ack: 1, deliver: func(n int) []bustest.Reply {
		if n == 1 {
			return []bustest.Reply{nthDelivery(1)}
		}
		return bustest.Silence
	}}
	p.pinned = func() string {
		if ending {
			return whose
		}
		return "P"
	}
	b := bustest.Scripted(t, p.answer).Open()
	came := make(chan bool, 10)
	stop := consuming(t, b, losing{batch: func(_ context.Context, ms []bus.Message) (int, error) {
		p.mu.Lock()
		ending = true
		p.mu.Unlock()
		came <- true
		return len(ms), nil
	}})
	bustest.Receive(t, came, "a batch")
	stop()
	if asks := p.asks(); slices.Contains(asks, "unpin") {
		t.Errorf("another's pin was taken: %v", asks)
	}
}

// TestAPullThatEndedPartly: the broker says how much of a pull that has ended was not delivered; only so much is asked
// for again, for other pulls are open still.
func TestAPullThatEndedPartly(t *testing.T) {
	var mu sync.Mutex
	var batches []int
	answer := bustest.Readers(1000, nil, func(bustest.Question) []bustest.Reply { return bustest.NotFound })
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		if !a.Is("CONSUMER.MSG.NEXT") {
			if a.Is("STREAM.INFO") {
				return bustest.OneReply(`{"state":{"last_seq":1000}}`)
			}
			return answer(a)
		}
		mu.Lock()
		defer mu.Unlock()
		var q struct {
			Batch int `json:"batch"`
		}
		a.Decode(t, &q)
		batches = append(batches, q.Batch)
		var all []bustest.Reply
		switch len(batches) {
		case 1:
			// half of it
			for i := range q.Batch / 2 {
				all = append(all, bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "[]", i+1, i+1, 1000-i-1))
			}
		case 2:
			// the first pull ends
			all = append(all, bustest.Status("408", "Nats-Pending-Messages", fmt.Sprint(batches[0]-batches[0]/2)))
		default:
			// the end
			all = append(all, bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "[]", 1000, batches[0]/2+1, 0))
		}
		return all
	}).Open()
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0, func(events.Commit) error { return nil }); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(batches) < 3 || batches[1]+batches[2] > batches[0] {
		t.Errorf("asked for %v: more than a window is under way", batches)
	}
}

// TestADurableThatWasDeletedIsMadeAgain while it is consumed.
func TestADurableThatWasDeletedIsMadeAgain(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Publish(t, js, 1, bustest.Subjects...)
	came := make(chan uint64, 100)
	consuming(t, b, losing{batch: func(_ context.Context, ms []bus.Message) (int, error) {
		came <- ms[0].Seq
		return len(ms), nil
	}})
	bustest.Receive(t, came, "the first")
	if err := js.DeleteConsumer(bustest.Background(t), "HF_LOG", "ledger"); err != nil &&
		!errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Fatal(err)
	}
	bustest.Publish(t, js, 1, bustest.Subjects...)
	for bustest.Receive(t, came, "the second") != 2 {
	}
}

// TestATakeoverThatTakesLong: while a process takes over, it keeps its pin. Lost is called after its last batch.
func TestATakeoverThatTakesLong(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	alive := make(chan bool, 100)
	_, err := nc.Subscribe("$JS.API.CONSUMER.MSG.NEXT.HF_LOG.ledger", func(m *nats.Msg) {
		if text := string(m.Data); strings.Contains(text, `"id"`) && !strings.Contains(text, "heartbeat") {
			alive <- true
		}
	})
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, js, 1, bustest.Subjects...)
	var order []string
	came := make(chan bool, 10)
	stop := consuming(t, b, losing{
		take: func() error { bustest.Receive(t, alive, "the pin to be renewed"); return nil },
		batch: func(_ context.Context, ms []bus.Message) (int, error) {
			order = append(order, "batch")
			came <- true
			return len(ms), nil
		},
		lost: func() { order = append(order, "lost") }})
	bustest.Receive(t, came, "a batch")
	stop()
	if fmt.Sprint(order) != "[batch lost]" {
		t.Errorf("called %v", order)
	}
}

// TestAStopWithoutABroker does not wait for the broker, for there is nothing to hand over.
func TestAStopWithoutABroker(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Publish(t, js, 1, bustest.Subjects...)
	came := make(chan bool, 10)
	hold := make(chan struct{})
	stop := consuming(t, b, losing{batch: func(ctx context.Context, ms []bus.Message) (int, error) {
		came <- true
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return 0, ctx.Err()
	}})
	bustest.Receive(t, came, "a batch")
	s.Shutdown()
	natstest.Until(t, "the loss to be noticed", func() bool { return !b.Connected() })
	asked, pulse := time.Now(), natstest.Feel(t)
	stop()
	if took := time.Since(asked); took > 1500*time.Millisecond+pulse.Lost() {
		t.Errorf("stopped after %s", took)
	}
}

// TestTheConnectionIsLostDuringATakeover: the later calls fail, and the process starts again when the broker is back.
func TestTheConnectionIsLostDuringATakeover(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	bustest.Publish(t, js, 1, bustest.Subjects...)
	var once sync.Once
	var restarting sync.WaitGroup
	// the batch can arrive before the restart has returned
	defer restarting.Wait()
	came := make(chan bool, 10)
	consuming(t, b, losing{
		take: func() error {
			once.Do(func() {
				s.Shutdown()
				natstest.Until(t, "the loss to be noticed", func() bool { return !b.Connected() })
				restarting.Go(func() { natstest.Restart(t, s) })
			})
			return nil
		},
		batch: func(_ context.Context, ms []bus.Message) (int, error) { came <- true; return len(ms), nil }})
	bustest.Receive(t, came, "a batch")
}

// TestRequestsNameOneFilter: a consumer or watch with one filter names it in the subject of its request, by which the
// permissions of a secured cell are given.
func TestRequestsNameOneFilter(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	asked := make(chan string, 100)
	if _, err := nc.Subscribe("$JS.API.CONSUMER.CREATE.>", func(m *nats.Msg) { asked <- m.Subject }); err != nil ||
		nc.Flush() != nil {
		t.Fatal(err)
	}
	consuming(t, b, losing{batch: func(_ context.Context, ms []bus.Message) (int, error) { return len(ms), nil }})
	for _, what := range []string{"the durable", "its own configuration"} {
		if got := bustest.Receive(t, asked, what); got != "$JS.API.CONSUMER.CREATE.HF_LOG.ledger.hf.log.*.*.*" {
			t.Error(got)
		}
	}
	bustest.Watching(t, b, kv.State, "session.h.*")
	if got := bustest.Receive(t, asked, "the watch's consumer"); !strings.HasSuffix(got, ".$KV.hf_state.session.h.*") {
		t.Error(got)
	}
}

// TestWrongSourcesAreRefused: also where nothing is consumed.
func TestWrongSourcesAreRefused(t *testing.T) {
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Silence }).Open()
	ctx, wrong := bustest.Within(t, bustest.Patience), consumer.Source{Stream: 99, Durable: "x"}
	if _, _, err := b.Consumers.Lag(ctx, wrong); err == nil {
		t.Error("lag")
	}
	if _, err := b.Consumers.Acked(ctx, wrong); err == nil {
		t.Error("acknowledged")
	}
	if _, err := b.Consumers.Strangers(ctx, []consumer.Source{wrong}); err == nil {
		t.Error("strangers")
	}
	if _, err := b.Consumers.Place(ctx, wrong); err == nil {
		t.Error("place")
	}
}

// TestQuestionsAboutAConsumerFail: a question about a consumer fails with [bus.ErrNotFound] if the consumer does not
// exist, and with the broker's error if it cannot be looked for or its stream cannot be read.
func TestQuestionsAboutAConsumerFail(t *testing.T) {
	none := bustest.OneReply(`{"total":0,"consumers":[]}`)
	for name, c := range map[string]struct {
		info, list, stream []bustest.Reply
		absent             bool     // the errors say that there is no consumer
		answered           []string // the questions that have an answer
	}{
		"no consumer": {info: bustest.NotFound, list: none, stream: bustest.OneReply(`{}`), absent: true,
			answered: []string{"strangers"}},
		"no list": {info: bustest.NotFound, list: bustest.Trouble, stream: bustest.OneReply(`{}`)},
		"no stream": {info: bustest.OneReply(`{}`), list: none, stream: bustest.Trouble,
			answered: []string{"lag", "acked", "strangers"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				switch {
				case a.Is("CONSUMER.INFO"):
					return c.info
				case a.Is("CONSUMER.LIST"):
					return c.list
				case a.Is("STREAM.INFO"):
					return c.stream
				}
				return bustest.Silence
			}).Open()
			ctx, failed := bustest.Within(t, bustest.Patience), map[string]error{}
			_, _, failed["lag"] = b.Consumers.Lag(ctx, bustest.LedgerSource)
			_, failed["acked"] = b.Consumers.Acked(ctx, bustest.LedgerSource)
			_, failed["place"] = b.Consumers.Place(ctx, bustest.LedgerSource)
			_, failed["strangers"] = b.Consumers.Strangers(ctx, []consumer.Source{bustest.LedgerSource})
			for question, err := range failed {
				if answered := slices.Contains(c.answered, question); answered != (err == nil) ||
					!answered && errors.Is(err, bus.ErrNotFound) != c.absent {
					t.Errorf("%s: %v", question, err)
				}
			}
		})
	}
}

// TestConsumeEndsWhereItIsOfNoUse: it returns if the user may not make the consumer, and when the connection is closed.
func TestConsumeEndsWhereItIsOfNoUse(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: s, password: s, permissions: { publish: { deny: ["$JS.API.CONSUMER.CREATE.>"] } }} ] } }`))
	for user, want := range map[string]error{"a": bus.ErrUnreachable, "s": bus.ErrForbidden} {
		b := natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
		if user == "s" {
			b = bustest.BusAt(t, bustest.As(s, user))
		}
		ctx, done := bustest.Within(t, bustest.Patience), make(chan error, 1)
		go func() { done <- b.Consumers.Consume(ctx, bustest.LedgerSource, bustest.Discard{}) }()
		if user == "a" {
			b.Abort()
		}
		if err := bustest.Receive(t, done, "the end"); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", user, err, want)
		}
	}
}

// TestAnothersConsumerIsNotMovedBack: a process that stands by leaves a consumer beyond the end of its stream to the
// process that is active.
func TestAnothersConsumerIsNotMovedBack(t *testing.T) {
	// it mostly waits
	t.Parallel()
	for name, c := range map[string]struct {
		pinned string
		reset  bool
	}{"with an active process": {pinned: "another"}, "without one": {reset: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var resets atomic.Int64
			script := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				switch {
				case a.Is("CONSUMER.CREATE"):
					return bustest.OneReply(`{}`)
				case a.Is("CONSUMER.INFO"):
					return bustest.OneReply(fmt.Sprintf(`{"delivered":{"stream_seq":9},`+
						`"priority_groups":[{"group":"active","pinned_client_id":%q}]}`, c.pinned))
				case a.Is("CONSUMER.RESET"):
					resets.Add(1)
					return bustest.OneReply(`{}`)
				case a.Is("STREAM.INFO"):
					return bustest.OneReply(`{}`)
				}
				return bustest.Silence
			})
			log := &textLog{}
			b, err := bus.Open(bustest.Background(t), bus.Config{URL: script.Url, Log: zerolog.New(log)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Abort)
			stop := consuming(t, b, bustest.Discard{})
			natstest.Until(t, "two checks to find it", func() bool {
				return strings.Count(log.String(), "is beyond the end of its stream") > 1
			})
			stop()
			if got := resets.Load() > 0; got != c.reset {
				t.Errorf("moved back: %t, want %t", got, c.reset)
			}
		})
	}
}
