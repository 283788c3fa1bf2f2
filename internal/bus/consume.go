package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/priority"
)

// Limits of ordered delivery.
const (
	stopGraceMS   = 300 // for the last batch after ctx ends
	joinTimeoutMS = 2_000
	batchDefault  = 256
	batchMax      = 4_096
	ackPendingMax = 2 * batchMax
	batchPart     = 8 // of a batch, while time-critical work had to wait
	bodyAck       = "+ACK"
)

// StreamName is one of the streams that are delivered in order.
type StreamName int

// The streams for [Source].
const (
	LogStream StreamName = iota // commits; a filter is over log subjects
	StateDocs                   // newest documents; a filter is over keys of the state bucket, and Subject is the key
	Due                         // timers that have fired; a filter is over their subjects
)

// Source describes what to consume.
type Source struct {
	// Stream to read.
	Stream StreamName
	// Durable is the consumer's name, the same in all replicas and versions of a service: the broker stores the
	// progress under it.
	Durable string
	// Filter limits what is delivered. Default: all commits, all documents, all fired timers.
	Filter []string
	// BatchMax is the most messages in one batch, 1 to 4096. Default: 256.
	BatchMax int
	// Idle is how long the broker keeps the durable while no process consumes it. Default: 0, without a limit. After
	// its removal, delivery begins at the start.
	Idle time.Duration
}

// Message is one message of a source.
type Message struct {
	Subject     string // [StateDocs]: the key
	Header      map[string][]string
	Body        []byte
	Seq         uint64 // in the stream; for [StateDocs] also the revision
	At          time.Time
	Redelivered bool // it was delivered before, and perhaps handled; false proves nothing
	Deleted     bool // [StateDocs]: the key was deleted
}

// Handler handles the messages of a consumer. Its methods are never called concurrently.
type Handler interface {
	// Takeover is called when this process has become the active one: the consumer was reset to its ack floor, and no
	// other process receives messages. After an error it is called again, after a pause.
	Takeover(ctx context.Context) error
	// Batch handles messages in order and returns how many of them, from the first, are done: these are acknowledged.
	// If it is not all, or after an error, the consumer is reset after a pause and the others are delivered again. ctx
	// ends when another process has become the active one, or some time after Consume's.
	Batch(ctx context.Context, ms []Message) (acked int, err error)
}

// LeadershipObserver is a [Handler] that is notified when it is no longer the active one, after its last Batch.
type LeadershipObserver interface{ LeadershipLost() }

// Consume delivers a stream, in order and at least once, to one of the processes that call it with the same durable:
// the active one. It blocks until ctx ends, then hands over at once and returns nil.
//
//  1. Order: while it is active h receives strictly rising Seq, from the ack floor, without gaps. After a doubtful
//     delivery (connection lost, redelivery, gap) the consumer is reset, and delivery starts again at the ack floor.
//  2. One: the broker delivers to the pinned process only. A process that was paused may still be in Batch while the
//     next one works; it notices within half a second of waking, and its ctx ends. Writes are therefore guarded.
//  3. Fail-over: 2 s after the active process's last keep-alive, at once after a clean stop.
//
// It returns an error other than ctx's end only if another attempt is of no use: a wrong source, [ErrForbidden], a
// closed Bus. Errors of h are logged.
func (b *Bus) Consume(ctx context.Context, s Source, h Handler) error {
	c, err := b.consumption(s, h)
	if err != nil {
		return err
	}
	for pace := newBackoff(); ; {
		began := time.Now()
		err := c.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrForbidden):
			return err
		case errors.Is(err, ErrNotFound):
			c.exists = false
		}
		b.log.Info().Str("service", s.Durable).AnErr("err", err).Msg("consumer begins anew")
		if err := b.awaitConnected(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if time.Since(began) > pinTTLMS*time.Millisecond { // it had worked: this is a new failure
			pace = newBackoff()
		}
		pause(ctx, pace.NextBackOff())
	}
}

// consumption checks a source and prepares its consumption.
func (b *Bus) consumption(s Source, h Handler) (*consumption, error) {
	if s.BatchMax == 0 {
		s.BatchMax = batchDefault
	}
	c := &consumption{b: b, h: h, name: s.Durable, batch: s.BatchMax, idle: s.Idle, filters: slices.Clone(s.Filter)}
	switch s.Stream {
	case LogStream:
		c.stream, c.filters = b.cell.LogStream(), orFilter(c.filters, b.cell.LogSubjects())
	case StateDocs:
		c.bucket = b.cell.StateBucket()
		c.stream, c.filters = kvStream(c.bucket), orFilter(c.filters, "session.>")
		for i := range c.filters {
			c.filters[i] = kvSubject(c.bucket, c.filters[i])
		}
	case Due:
		c.stream, c.filters = b.cell.TimerStream(), orFilter(c.filters, b.cell.TimerSubjects()[1])
	default:
		return nil, fmt.Errorf("bus: consume %s: no such stream: %d", s.Durable, s.Stream)
	}
	if s.Durable == "" || strings.ContainsAny(s.Durable, ". *>/\\\t\r\n") || s.BatchMax < 0 || s.BatchMax > batchMax {
		return nil, fmt.Errorf("bus: consume %q: want a durable name of one token and a batch of 1 to %d, not %d",
			s.Durable, batchMax, s.BatchMax)
	}
	return c, nil
}

func orFilter(filters []string, all string) []string {
	if len(filters) == 0 {
		return []string{all}
	}
	return filters
}

// consumption is one call of Consume.
type consumption struct {
	b            *Bus
	h            Handler
	stream, name string
	bucket       string // of [StateDocs]
	filters      []string
	batch        int
	idle         time.Duration
	exists       bool   // the durable was made by this call
	acked        string // subject of the last acknowledgement
	// the pin comes from the broker's info, so its owner is unknown: this process may have been paused
	asked bool

	mu        sync.Mutex
	flow      *flow      // nil between deliveries
	held      []delivery // delivered to the handler, or left at the last interruption, and not done
	confirmed time.Time  // when the broker last confirmed the pin
}

// turn waits to become active, and then is active once.
func (c *consumption) turn(ctx context.Context) error {
	if err := c.ensure(ctx); err != nil {
		return err
	}
	pin, err := c.standBy(ctx)
	if err != nil {
		return err
	}
	err = c.active(ctx, pin)
	if l, ok := c.h.(LeadershipObserver); ok {
		l.LeadershipLost()
	}
	return err
}

// ensure creates the durable, or updates it.
func (c *consumption) ensure(ctx context.Context) error {
	if c.exists {
		return nil
	}
	cfg := jetstream.ConsumerConfig{
		Durable:           c.name,
		AckPolicy:         jetstream.AckExplicitPolicy,
		AckWait:           ackWaitMS * time.Millisecond,
		MaxDeliver:        neverMax, // beyond a limit messages would be skipped without a notice
		MaxAckPending:     ackPendingMax,
		PriorityPolicy:    jetstream.PriorityPolicyPinned,
		PriorityGroups:    []string{consumeGroup},
		PinnedTTL:         pinTTLMS * time.Millisecond,
		InactiveThreshold: c.idle,
	}
	if c.bucket != "" {
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	create := "CONSUMER.CREATE." + c.stream + "." + c.name
	if len(c.filters) == 1 {
		cfg.FilterSubject = c.filters[0]
		create += "." + cfg.FilterSubject
	} else {
		cfg.FilterSubjects = c.filters
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeoutMS*time.Millisecond)
	defer cancel()
	if err := c.b.call(ctx, "consume "+c.name, create, createConsumer{Stream: c.stream, Config: cfg},
		new(json0)); err != nil {
		return err
	}
	c.exists = true
	return nil
}

// standBy waits until the broker pins this process. The broker does so when it delivers a message, so standBy pulls
// one; the reset that follows takes it back.
func (c *consumption) standBy(ctx context.Context) (pin string, err error) {
	f := c.b.flow(c.stream, c.name, 1, 0, pull{Group: consumeGroup})
	defer f.close()
	ds, err := f.take(ctx, 1)
	if err != nil {
		return "", err
	}
	c.confirm(time.Now())
	if pin = pinOf(ds[0].msg.Header); pin != "" {
		c.asked = false
		return pin, nil
	}
	info, err := c.info(ctx) // the message's own header prevented the library from reading the broker's
	c.asked = true
	return pinned(info), err
}

// active works until ctx ends or the pin is lost.
func (c *consumption) active(ctx context.Context, pin string) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx)) // the handler's: it outlives ctx by the grace
	defer end(nil)
	defer context.AfterFunc(ctx, func() {
		pause(life, stopGraceMS*time.Millisecond)
		end(context.Cause(ctx))
	})()
	alive := make(chan struct{})
	go func() {
		defer close(alive)
		c.keepAlive(life, pin, end)
	}()
	err := c.stretches(ctx, life, pin)
	if !errors.Is(err, errPinLost) && ctx.Err() != nil {
		c.handOver(ctx, pin)
	}
	end(err)
	<-alive
	return err
}

// stretches runs phases of ordered delivery, each from the ack floor.
func (c *consumption) stretches(ctx, life context.Context, pin string) error {
	pace, taken := newBackoff(), false
	for {
		before, err := c.reset(life, pin)
		if err != nil {
			return err
		}
		worked := false
		if !taken {
			if err = callback(c.h.Takeover(life)); err == nil {
				taken = true
				c.b.log.Info().Str("service", c.name).Uint64("seq", before).Msg("consumer taken over")
			}
		}
		if taken {
			worked, err = c.stretch(ctx, life, pin, before)
		}
		var failed callbackError
		switch {
		case errors.Is(context.Cause(life), errPinLost):
			return errPinLost
		case ctx.Err() != nil:
			return err
		case errors.As(err, &failed):
			c.b.log.Warn().Str("service", c.name).AnErr("err",
				failed.error).Msg("not done: delivered again after a pause")
		// two processes with one pin interrupt each other: this one gives it up
		case !errors.Is(err, errInterrupted), c.asked:
			return err
		}
		if worked {
			pace = newBackoff()
		}
		pause(ctx, pace.NextBackOff())
	}
}

func callback(err error) error {
	if err == nil {
		return nil
	}
	return callbackError{err}
}

// stretch delivers batches until delivery is interrupted or h has not done all of one. worked reports whether anything
// was done.
func (c *consumption) stretch(ctx, life context.Context, pin string, before uint64) (worked bool, err error) {
	f := c.b.flow(c.stream, c.name, 2*c.batch, 1, pull{Group: consumeGroup, Pin: pin})
	defer f.close()
	c.working(f, nil)
	defer func() { c.working(nil, slices.Concat(c.held, f.waiting())) }()
	for {
		c.b.priority.Yield(ctx)
		most := c.batch
		if c.b.priority.Busy() {
			most = max(most/batchPart, 1)
		}
		ds, err := f.take(ctx, most)
		if err != nil {
			return worked, err
		}
		c.working(f, ds)
		if err := c.sure(life, pin); err != nil {
			return worked, err
		}
		if err := c.b.withHeaders(life, c.stream, ds); err != nil {
			return worked, err
		}
		done, err := c.h.Batch(life, c.messages(ds, before))
		done = max(0, min(done, len(ds)))
		for _, d := range ds[:done] {
			if err := c.b.nc.Publish(d.msg.Reply, []byte(bodyAck)); err != nil {
				return worked, fmt.Errorf("%w: acknowledge: %w", errInterrupted, err)
			}
			c.acked = d.msg.Reply
		}
		c.working(f, ds[done:])
		worked = worked || done > 0
		if err == nil && done < len(ds) {
			err = fmt.Errorf("bus: consume %s: %d of %d messages done", c.name, done, len(ds))
		}
		if err != nil {
			return worked, callback(err)
		}
	}
}

// working records the deliveries in progress, for keepAlive.
func (c *consumption) working(f *flow, ds []delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flow, c.held = f, ds
}

// messages converts deliveries for the handler; those up to before were delivered once already.
func (c *consumption) messages(ds []delivery, before uint64) []Message {
	ms := make([]Message, len(ds))
	for i, d := range ds {
		delete(d.msg.Header, headerPin) // not written by the author
		ms[i] = Message{Subject: d.msg.Subject, Header: d.msg.Header, Body: d.msg.Data, Seq: d.seq, At: d.at,
			Redelivered: d.seq <= before}
		if c.bucket != "" {
			ms[i].Subject = strings.TrimPrefix(d.msg.Subject, kvSubject(c.bucket, ""))
			ms[i].Deleted, _ = deletion(d.msg.Header)
		}
	}
	return ms
}

// Lag returns how many messages of a source are not done yet, and the broker's id of the active process ("" for none).
// [ErrNotFound] if no process has ever consumed it.
func (b *Bus) Lag(ctx context.Context, s Source) (pending uint64, active string, err error) {
	c, err := b.consumption(s, nil)
	if err != nil {
		return 0, "", err
	}
	info, err := c.info(ctx)
	if err != nil {
		return 0, "", err
	}
	return info.NumPending + uint64(max(info.NumAckPending, 0)), pinned(info), nil
}

// prioritizing is an embedded server whose gate is shared by its whole process.
type prioritizing interface{ Priority() *priority.Gate }

// gateOf returns the gate of the broker's process, else a new one for this connection.
func gateOf(cfg Config) *priority.Gate {
	if s, ok := cfg.Server.(prioritizing); ok {
		return s.Priority()
	}
	return new(priority.Gate)
}

// Priority returns the gate by which batch work yields to time-critical work in this process.
func (b *Bus) Priority() *priority.Gate { return b.priority }
