// Package consumer delivers a stream in order and at least once, to one of the processes that share a durable consumer.
//
// The broker pins the consumer to one process. A process that was paused may still work while the next one does, so
// writes of a handler are guarded. A process that is killed is replaced after the TTL of the pin.
package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
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
	// pulls in a row that were filled, and nothing arrived, until the pin is asked for; each waits for the pin of the
	// one before it, and then for heart-beats
	silentMax      = 2
	silentWithinMS = 3 * pinTTLMS
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
	// progress under it. With a key ([core.Config]) the name at the broker is longer.
	Durable string
	// Filter limits what is delivered. Default: all commits, all documents, all fired timers.
	Filter []string
	// BatchMax is the most messages in one batch, 1 to 4096. Default: 256.
	BatchMax int
	// Idle is how long the broker keeps the durable while no process consumes it. Default: 0, without a limit. After
	// its removal, delivery begins at the start.
	Idle time.Duration
}

// Handler handles the messages of a consumer. Its methods are never called concurrently.
type Handler interface {
	// Takeover is called when this process has become the active one: the consumer was reset to its ack floor, and no
	// other process receives messages. After an error it is called again, after a pause.
	Takeover(ctx context.Context) error
	// Batch handles messages in order and returns how many of them, from the first, are done: these are acknowledged.
	// If it is not all, or after an error, the consumer is reset after a pause and the others are delivered again. ctx
	// ends when another process has become the active one, or some time after Consume's.
	Batch(ctx context.Context, ms []core.Message) (acked int, err error)
}

// LeadershipObserver is a [Handler] that is notified when it is no longer the active one, after its last Batch.
type LeadershipObserver interface{ LeadershipLost() }

// Consumers consumes the streams of a cell. Its methods may be called concurrently.
type Consumers struct {
	conn *core.Conn

	mu      sync.Mutex
	counted map[listed]bool // consumers of the cell that were listed last, and are not sourcing
}

// New returns the consumers of the cell of a connection.
func New(conn *core.Conn) *Consumers { return &Consumers{conn: conn} }

// Consume delivers a stream, in order and at least once, to one of the processes that call it with the same durable:
// the active one. It blocks until ctx ends, then hands over at once and returns nil.
//
//  1. Order: while it is active h receives strictly rising Seq, from the ack floor, without gaps. After a doubtful
//     delivery (connection lost, redelivery, gap) the consumer is reset, and delivery starts again at the ack floor.
//  2. One: the broker delivers to the pinned process only. A process that was paused may still be in Batch while the
//     next one works; it notices within half a second of waking, and its ctx ends. Writes are therefore guarded.
//  3. Fail-over: 2 s after the active process's last keep-alive, at once after a clean stop.
//
// It returns an error other than ctx's end only if another attempt is of no use: a wrong source, [core.ErrForbidden], a
// closed Bus. Errors of h are logged.
func (cs *Consumers) Consume(ctx context.Context, s Source, h Handler) error {
	c, err := cs.consumption(s, h)
	if err != nil {
		return err
	}
	watched, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end()
	watching.Go(func() { c.watchPlace(watched) })
	for pace := core.NewBackoff(); ; {
		began := time.Now()
		err := c.turn(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, core.ErrForbidden):
			return err
		case errors.Is(err, core.ErrNotFound):
			c.exists = false
		}
		cs.conn.Log.Info().Str("service", s.Durable).AnErr("err", err).Msg("the consumer restarts")
		if err := cs.conn.AwaitConnected(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		// it had worked: this is a new failure
		if time.Since(began) > pinTTLMS*time.Millisecond {
			pace = core.NewBackoff()
		}
		core.Pause(ctx, pace.NextBackOff())
	}
}

// consumption checks a source and prepares its consumption.
func (cs *Consumers) consumption(s Source, h Handler) (*consumption, error) {
	if s.BatchMax == 0 {
		s.BatchMax = batchDefault
	}
	c := &consumption{conn: cs.conn, h: h, durable: s.Durable, batch: s.BatchMax, idle: s.Idle,
		filters: slices.Clone(s.Filter)}
	switch s.Stream {
	case LogStream:
		c.stream, c.filters = cs.conn.Cell.LogStream(), orFilter(c.filters, cs.conn.Cell.LogSubjects())
	case StateDocs:
		c.bucket = cs.conn.Cell.StateBucket()
		c.stream, c.filters = core.KVStream(c.bucket), orFilter(c.filters, "session.>")
		for i := range c.filters {
			c.filters[i] = core.KVSubject(c.bucket, c.filters[i])
		}
	case Due:
		c.stream, c.filters = cs.conn.Cell.TimerStream(), orFilter(c.filters, cs.conn.Cell.TimerSubjects()[1])
	default:
		return nil, fmt.Errorf("consume %s: no such stream: %d", s.Durable, s.Stream)
	}
	if s.Durable == "" || strings.ContainsAny(s.Durable, ". *>/\\\t\r\n") || s.BatchMax < 0 || s.BatchMax > batchMax {
		return nil, fmt.Errorf("consume %q: want a durable name of one token and a batch of 1 to %d, not %d",
			s.Durable, batchMax, s.BatchMax)
	}
	c.name = nameOf(cs.conn.ConsumerKey, c.stream, s.Durable)
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
	conn    *core.Conn
	h       Handler
	stream  string
	durable string // as logs and errors name it
	name    string // at the broker: only in subjects
	bucket  string // of [StateDocs]
	filters []string
	batch   int
	idle    time.Duration
	exists  bool   // the durable was made by this call
	silent  int    // pulls in a row that were filled, and nothing arrived
	acked   string // subject of the last acknowledgement
	done    uint64 // the last message that this process did since it became active; 0: none
	// the pin comes from the broker's info, so its owner is unknown: this process may have been paused
	asked bool

	mu        sync.Mutex
	flow      *pull.Flow      // nil between deliveries
	held      []pull.Delivery // delivered to the handler, or left at the last interruption, and not done
	beyond    *Place          // found by watchPlace; nil after the reset that follows
	confirmed time.Time       // when the broker last confirmed the pin
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

// standBy waits until the broker pins this process. The broker does so when it delivers a message, so standBy pulls
// one; the reset that follows takes it back.
func (c *consumption) standBy(ctx context.Context) (pin string, err error) {
	began := time.Now()
	f := pull.Start(c.conn, c.source(0), 1, 0, pull.Request{Group: consumeGroup})
	defer f.Close()
	ds, err := f.Take(ctx, 1)
	if err != nil {
		if errors.Is(err, pull.ErrSilent) && time.Since(began) < silentWithinMS*time.Millisecond {
			return c.pinOfSilence(ctx, err)
		}
		c.silent = 0
		return "", err
	}
	c.silent = 0
	c.confirm(time.Now())
	if pin = pinOf(ds[0].Msg.Header); pin != "" {
		c.asked = false
		return pin, nil
	}
	// the message's own header prevented the library from reading the broker's
	info, err := c.info(ctx)
	c.asked = true
	return pinned(info), err
}

// pinOfSilence returns the pin after several pulls in a row were filled by messages that did not arrive, because the
// broker traced them. One such pull can be lost with a leader; the pin of a process that is active would have kept the
// pulls open.
func (c *consumption) pinOfSilence(ctx context.Context, why error) (pin string, err error) {
	if c.silent++; c.silent < silentMax {
		return "", why
	}
	c.silent = 0
	info, err := c.infoSoon(ctx)
	if err != nil {
		return "", err
	}
	if pin = pinned(info); pin == "" || info.NumAckPending == 0 {
		return "", why
	}
	c.confirm(time.Now())
	c.asked = true
	return pin, nil
}

// source returns what the consumer delivers from behind a place.
func (c *consumption) source(after uint64) pull.Source {
	return pull.Source{Stream: c.stream, Consumer: c.name, Filters: c.filters, After: after}
}

// active works until ctx ends or the pin is lost.
func (c *consumption) active(ctx context.Context, pin string) error {
	// the handler's: it outlives ctx by the grace
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer c.conn.Active.Begin(c.durable, c.stream)()
	defer context.AfterFunc(ctx, func() {
		core.Pause(life, stopGraceMS*time.Millisecond)
		end(context.Cause(ctx))
	})()
	alive := make(chan struct{})
	go func() {
		defer close(alive)
		c.keepAlive(life, pin, end)
	}()
	err := c.stretches(ctx, life, pin)
	if !errors.Is(err, pull.ErrPinLost) && ctx.Err() != nil {
		c.handOver(ctx, pin)
	}
	end(err)
	<-alive
	return err
}

// stretches runs phases of ordered delivery, each from the ack floor.
func (c *consumption) stretches(ctx, life context.Context, pin string) error {
	pace, taken := core.NewBackoff(), false
	// another process may have been active since
	c.done = 0
	for {
		before, after, err := c.reset(life, pin)
		if err != nil {
			return err
		}
		worked := false
		if !taken {
			if err = pull.Callback(c.h.Takeover(life)); err == nil {
				taken = true
				c.conn.Log.Info().Str("service", c.durable).Uint64("seq", before).Msg("consumer taken over")
			}
		}
		if taken {
			worked, err = c.stretch(ctx, life, pin, before, after)
		}
		var failed pull.CallbackError
		switch {
		case errors.Is(context.Cause(life), pull.ErrPinLost):
			return pull.ErrPinLost
		case ctx.Err() != nil:
			return err
		case errors.As(err, &failed):
			c.conn.Log.Warn().Str("service", c.durable).AnErr("err",
				failed.Unwrap()).Msg("not done: delivered again after a pause")
		// two processes with one pin interrupt each other: this one gives it up
		case !errors.Is(err, pull.ErrInterrupted), c.asked:
			return err
		}
		if worked {
			pace = core.NewBackoff()
		}
		core.Pause(ctx, pace.NextBackOff())
	}
}

// stretch delivers batches from behind a place until delivery is interrupted or h has not done all of one. worked
// reports whether anything was done.
func (c *consumption) stretch(ctx, life context.Context, pin string, before, after uint64) (worked bool, err error) {
	from := c.source(after)
	from.Delivered = func(ctx context.Context) (uint64, error) {
		info, err := c.infoSoon(ctx)
		if err != nil {
			return 0, err
		}
		return info.Delivered.Stream, nil
	}
	f := pull.Start(c.conn, from, 2*c.batch, 1, pull.Request{Group: consumeGroup, Pin: pin})
	defer f.Close()
	c.working(f, nil)
	defer func() { c.working(nil, slices.Concat(c.held, f.Waiting())) }()
	for {
		c.conn.Priority.Yield(ctx)
		most := c.batch
		if c.conn.Priority.Busy() {
			most = max(most/batchPart, 1)
		}
		ds, err := f.Take(ctx, most)
		if err != nil {
			return worked, err
		}
		c.working(f, ds)
		if !worked {
			if err := c.moved(life, ds[0].Seq); err != nil {
				return worked, err
			}
		}
		if err := c.sure(life, pin); err != nil {
			return worked, err
		}
		if err := pull.WithHeaders(life, c.conn, c.stream, ds); err != nil {
			return worked, err
		}
		// nothing rests on a commit that a cut of the power may take
		if c.stream == c.conn.Cell.LogStream() {
			if err := f.Synced(life, ds); err != nil {
				return worked, fmt.Errorf("%w: %w", pull.ErrInterrupted, err)
			}
		}
		done, err := c.h.Batch(life, c.messages(ds, before))
		done = max(0, min(done, len(ds)))
		for _, d := range ds[:done] {
			if err := c.conn.NC.Publish(d.Msg.Reply, []byte(bodyAck)); err != nil {
				return worked, fmt.Errorf("%w: acknowledge: %w", pull.ErrInterrupted, err)
			}
			c.acked, c.done = d.Msg.Reply, d.Seq
		}
		c.working(f, ds[done:])
		worked = worked || done > 0
		if err == nil && done < len(ds) {
			err = fmt.Errorf("consume %s: %d of %d messages done", c.durable, done, len(ds))
		}
		if err != nil {
			return worked, pull.Callback(err)
		}
	}
}

// working records the deliveries in progress, for keepAlive.
func (c *consumption) working(f *pull.Flow, ds []pull.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flow, c.held = f, ds
}

// messages converts deliveries for the handler; those up to before were delivered once already.
func (c *consumption) messages(ds []pull.Delivery, before uint64) []core.Message {
	ms := make([]core.Message, len(ds))
	for i, d := range ds {
		// not written by the author
		delete(d.Msg.Header, pull.HeaderPin)
		ms[i] = core.Message{Subject: d.Msg.Subject, Header: d.Msg.Header, Body: d.Msg.Data, Seq: d.Seq, At: d.At,
			Redelivered: d.Seq <= before}
		if c.bucket != "" {
			ms[i].Subject = strings.TrimPrefix(d.Msg.Subject, core.KVSubject(c.bucket, ""))
			ms[i].Deleted, _ = core.Deletion(d.Msg.Header)
		}
	}
	return ms
}

// Lag returns how many messages of a source are not done yet, and the broker's id of the active process ("" for none).
// [core.ErrNotFound] if no process has ever consumed it.
func (cs *Consumers) Lag(ctx context.Context, s Source) (pending uint64, active string, err error) {
	c, err := cs.consumption(s, nil)
	if err != nil {
		return 0, "", err
	}
	info, err := c.find(ctx)
	if err != nil {
		return 0, "", err
	}
	return info.NumPending + uint64(max(info.NumAckPending, 0)), pinned(info), nil
}

// Acked returns how far a source has been acknowledged: every message up to there was handled, and its result stored.
// [core.ErrNotFound] if it was never consumed.
func (cs *Consumers) Acked(ctx context.Context, s Source) (uint64, error) {
	c, err := cs.consumption(s, nil)
	if err != nil {
		return 0, err
	}
	info, err := c.find(ctx)
	if err != nil {
		return 0, err
	}
	return info.AckFloor.Stream, nil
}
