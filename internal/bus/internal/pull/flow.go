// Package pull reads streams through consumers, by pulls, and notices each possible interruption of the delivery.
//
// A [Flow] delivers in order and without gaps, and ends at the first doubt. [Replay] reads a range of a stream to its
// end, with as many flows as it needs.
package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// Limits of a flow.
const (
	heartbeatMS  = 500      // interval of the broker's heart-beats of a pull; two missed ones are a loss
	pullExpiryMS = 30_000   // a pull that was not filled is repeated after this time
	askedMin     = 128      // messages in flight, for any size: a flow begins with so many
	askedBytes   = 16 << 20 // in flight, by the size of what came last, when there are more than askedMin
	heldBytesMax = 16 << 20 // delivered and not taken, before more is pulled
	sizeMax      = 1 << 20  // of a message
	sizeDecay    = 256      // of the greatest size, for each smaller message
	// delivered and not taken, before the flow ends: more messages are in flight than their size permits
	aheadBytesMax    = heldBytesMax + askedMin*sizeMax
	messageBytes     = 512 // of a message beside its body, about
	heartbeatsMissed = 2   // silent heart-beats until delivery counts as interrupted
	statusPending    = "Nats-Pending-Messages"
	HeaderPin        = "Nats-Pin-Id"
	HeaderStatus     = "Status"
	headerReason     = "Description"
)

// Status codes of the broker's messages about a pull.
const (
	statusHeartbeat = "100"
	statusNoMore    = "404"
	StatusExpired   = "408"
	StatusPinLost   = "423"
	statusNobody    = "503"
)

// Reasons for the end of a flow.
var (
	ErrPinLost     = errors.New("another process has become the active one")
	ErrInterrupted = errors.New("delivery interrupted")
	ErrSilent      = fmt.Errorf("%w: no heart-beat", ErrInterrupted)
)

// Request is a request for messages, as the broker decodes it. Durations are nanoseconds.
type Request struct {
	Expires   time.Duration `json:"expires,omitempty"`
	Batch     int           `json:"batch"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	Group     string        `json:"group,omitempty"`
	Pin       string        `json:"id,omitempty"`
}

// Delivery is a message with the data of its reply subject.
type Delivery struct {
	Msg     *nats.Msg
	Seq     uint64    // in the stream
	Pending uint64    // messages of the consumer still to come
	At      time.Time // by the broker, when it was stored
	Got     time.Time // by this process, when it arrived

	// Of a gap, which has no Msg: deliveries did not arrive before that of message Seq.
	after  uint64 // the message before the gap
	number uint64 // the consumer's own number of the first one
}

// Source is what a consumer delivers: the messages of a stream that match one of the filters, from behind a place.
type Source struct {
	Stream, Consumer string
	Filters          []string
	After            uint64 // 0: from the beginning
	// Newest: only the newest message of each subject, in a stream that has older ones. Deliveries that were traced
	// are left out.
	Newest bool
	// Delivered returns the last message that the consumer has delivered. Nil: its user may not ask.
	Delivered func(ctx context.Context) (uint64, error)
}

// Flow pulls from one consumer, a window of messages and of bytes ahead, and returns what has arrived. It ends, with a
// reason, at the first sign that delivery may have been interrupted: a lost connection, missed heart-beats, a gap or a
// step back in the consumer's numbering, any unexpected status. It never recovers: its owner starts a new one from a
// place known to be right. So its deliveries are in order and without gaps. Messages that the broker traced may be
// missing in the numbering: they are read from the stream.
type Flow struct {
	conn    *core.Conn
	uptime  core.Uptime // of the connection, in which it delivers
	from    Source
	subject string // subject of pulls
	ask     Request
	window  int
	sub     *nats.Subscription
	reply   string // of pulls

	mu       sync.Mutex
	buf      []Delivery
	held     int    // bytes in buf
	most     int    // messages in flight: it grows while the owner waits for them
	came     int    // messages since it has grown
	drained  bool   // the owner has taken everything since then
	largest  int    // about the greatest size of the last messages
	asked    int    // messages pulled that have not arrived
	next     uint64 // the consumer's own number of the next delivery; 0: any
	last     uint64 // stream sequence of the last delivery
	received time.Time
	err      error
	missed   bool          // something arrived, or the connection was lost, after the end
	probes   int           // how often it asks for what was delivered, because messages are traced
	news     chan struct{} // cap 1: there is something in buf, or err
	done     chan struct{}
}

// Start starts to pull. first is the number of the first delivery, which a new or reset consumer counts from 1; 0 if it
// is unknown. A flow that could not start has ended: take returns the reason.
func Start(c *core.Conn, from Source, window int, first uint64, ask Request) *Flow {
	f, status := start(c, from, window, first, ask)
	go f.guard(status)
	return f
}

// start is [Start] for a flow that nothing ends on silence, nor on the loss of the connection.
func start(c *core.Conn, from Source, window int, first uint64, ask Request) (f *Flow, status chan nats.Status) {
	f = &Flow{conn: c, uptime: c.Syncs.Uptime(), from: from, ask: ask, window: window, next: first,
		most:    min(askedMin, window),
		subject: core.APIPrefix + "CONSUMER.MSG.NEXT." + from.Stream + "." + from.Consumer, received: time.Now(),
		news: make(chan struct{}, 1), done: make(chan struct{})}
	f.ask.Expires, f.ask.Heartbeat = pullExpiryMS*time.Millisecond, heartbeatMS*time.Millisecond
	// before the check of the connection, so that no loss is missed
	status = c.NC.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	inbox := c.NC.NewInbox()
	f.reply = inbox + ".1"
	// with a wildcard: the broker begins the delivery of a push consumer only to a subscription without one
	f.sub, err = c.NC.Subscribe(inbox+".*", f.receive)
	// the window is the limit
	err = errors.Join(err, f.sub.SetPendingLimits(-1, -1))
	if err == nil {
		err = f.refill()
	}
	f.failLocked(core.Translate("pull from "+from.Stream, err))
	return f, status
}

// guard ends the flow on silence and on the loss of the connection.
func (f *Flow) guard(status chan nats.Status) {
	defer f.conn.NC.RemoveStatusListener(status)
	tick := time.NewTicker(heartbeatMS * time.Millisecond / 2)
	defer tick.Stop()
	for {
		select {
		case <-f.done:
			return
		case s := <-status:
			f.mu.Lock()
			f.missed = true
			f.failLocked(fmt.Errorf("%w: connection %s", ErrInterrupted, s))
			f.mu.Unlock()
			return
		case <-tick.C:
			f.mu.Lock()
			silent := f.isSilent(time.Now())
			f.mu.Unlock()
			if silent {
				// it continues if the messages were traced
				f.Fail(ErrSilent)
			}
		}
	}
}

// isSilent reports whether heart-beats are missing: without a pull the broker sends none. f.mu is held.
func (f *Flow) isSilent(now time.Time) bool {
	return f.asked > 0 && now.Sub(f.received) > heartbeatsMissed*heartbeatMS*time.Millisecond
}

// Fail ends the flow; the first reason is kept.
func (f *Flow) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failLocked(err)
}

func (f *Flow) failLocked(err error) {
	if f.err == nil {
		f.err = err
	}
	f.notify()
}

func (f *Flow) notify() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Close ends the flow and drops what it holds.
func (f *Flow) Close() {
	close(f.done)
	f.Fail(fmt.Errorf("%w: closed", ErrInterrupted))
	if err := core.IgnoreClosed(f.sub.Unsubscribe()); err != nil {
		f.conn.Log.Warn().AnErr("err", err).Msg("pull: unsubscribe")
	}
}

// receive takes one message from the connection.
func (f *Flow) receive(m *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		f.missed = true
		return
	}
	f.received = time.Now()
	// a delivery has one, for its acknowledgement
	if m.Reply == "" {
		f.status(m.Header)
		return
	}
	meta, err := m.Metadata()
	switch {
	case err != nil:
		f.failLocked(fmt.Errorf("%w: not a delivery: %w", ErrInterrupted, err))
		return
	case meta.Sequence.Stream <= f.last:
		f.failLocked(fmt.Errorf("%w: message %d came behind %d", ErrInterrupted, meta.Sequence.Stream, f.last))
		return
	case f.next != 0 && meta.Sequence.Consumer > f.next:
		f.asked -= min(f.asked, int(meta.Sequence.Consumer-f.next))
		f.buf = append(f.buf, Delivery{Seq: meta.Sequence.Stream, after: f.place(), number: f.next})
	case meta.Sequence.Consumer < f.next:
		f.failLocked(fmt.Errorf("%w: delivery %d came where %d was due", ErrInterrupted, meta.Sequence.Consumer,
			f.next))
		return
	}
	f.next, f.last = meta.Sequence.Consumer+1, meta.Sequence.Stream
	f.asked--
	f.grow(len(m.Data) + messageBytes)
	f.buf = append(f.buf, Delivery{Msg: m, Seq: meta.Sequence.Stream, Pending: meta.NumPending,
		At: meta.Timestamp.UTC(), Got: f.received})
	f.held += len(m.Data) + messageBytes
	if f.held > aheadBytesMax {
		f.failLocked(fmt.Errorf("%w: messages have become larger: %d bytes are not taken", ErrInterrupted, f.held))
		return
	}
	if err := f.refill(); err != nil {
		f.failLocked(fmt.Errorf("%w: %w", ErrInterrupted, err))
	}
	f.notify()
}

// grow records the size of a message that has come. Once as many messages have come as may be in flight, and the owner
// has waited for one of them, twice as many may be in flight: far from the broker a round trip is the limit.
func (f *Flow) grow(size int) {
	f.largest = max(size, f.largest-f.largest/sizeDecay)
	f.came, f.drained = f.came+1, f.drained || len(f.buf) == 0
	if f.came < f.most || !f.drained {
		return
	}
	f.most, f.came, f.drained = min(2*f.most, f.window), 0, false
}

// flying returns how many messages may be in flight. The limit of bytes of a pull is of no use for it: nats-server ends
// a pull without a notice when exactly no byte is left of it, so the count of those in flight would be wrong.
func (f *Flow) flying() int {
	return min(f.most, max(askedMin, askedBytes/max(f.largest, 1)))
}

// status handles a status message of the broker about a pull.
func (f *Flow) status(h nats.Header) {
	switch code := h.Get(HeaderStatus); code {
	case statusHeartbeat:
	case StatusExpired, statusNoMore:
		if left, err := strconv.Atoi(h.Get(statusPending)); err == nil {
			f.asked -= left
		} else {
			f.asked = 0
		}
		if err := f.refill(); err != nil {
			f.failLocked(fmt.Errorf("%w: %w", ErrInterrupted, err))
		}
	case StatusPinLost:
		f.failLocked(ErrPinLost)
	case statusNobody:
		f.failLocked(fmt.Errorf("%w: no such consumer: %w", ErrInterrupted, core.ErrNotFound))
	default:
		// leadership changed, consumer deleted, server shutting down, a bad request
		f.failLocked(fmt.Errorf("%w: %s %s", ErrInterrupted, code, h.Get(headerReason)))
	}
}

// refill pulls more when half of the window is open: of the messages in flight, and of the bytes that may be held.
func (f *Flow) refill() error {
	most := f.flying()
	open := min(f.window-len(f.buf), most) - f.asked
	if 2*open < most || f.held > heldBytesMax {
		return nil
	}
	ask := f.ask
	ask.Batch = open
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	f.asked, f.received = f.asked+open, time.Now()
	return f.conn.NC.PublishRequest(f.subject, f.reply, body)
}

// Take waits for a message and returns it with the others that have arrived, at most most. It waits for the first one
// only. Once the flow has ended it returns the reason and no messages.
func (f *Flow) Take(ctx context.Context, most int) ([]Delivery, error) {
	for {
		ds, err := f.poll(most)
		if errors.Is(err, ErrSilent) {
			return f.searchTraced(ctx, err)
		}
		if len(ds) > 0 && ds[0].Msg == nil {
			f.fillGaps(ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		}
		if err != nil || len(ds) > 0 {
			return ds, err
		}
		ds, wait := f.probe(ctx)
		if len(ds) > 0 {
			return ds, nil
		}
		select {
		case <-f.news:
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *Flow) poll(most int) ([]Delivery, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	n := min(most, len(f.buf))
	if gap := slices.IndexFunc(f.buf[:n], func(d Delivery) bool { return d.Msg == nil }); gap >= 0 {
		n = max(gap, 1)
	}
	if n == 0 {
		return nil, nil
	}
	ds := f.buf[:n:n]
	if ds[0].Msg == nil {
		return ds, nil
	}
	f.buf = f.buf[n:]
	for i := range ds {
		f.held -= len(ds[i].Msg.Data) + messageBytes
	}
	if len(f.buf) == 0 {
		f.buf = nil
	} else {
		f.notify()
	}
	if err := f.refill(); err != nil {
		f.failLocked(fmt.Errorf("%w: %w", ErrInterrupted, err))
		return nil, f.err
	}
	return ds, nil
}

// Synced waits until taken deliveries are synced, where the broker syncs in groups.
func (f *Flow) Synced(ctx context.Context, ds []Delivery) error {
	return f.conn.Syncs.Await(ctx, f.uptime, f.from.Stream, ds[len(ds)-1].Seq)
}

// Waiting returns the delivered messages that take has not returned.
func (f *Flow) Waiting() []Delivery {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.buf), func(d Delivery) bool { return d.Msg == nil })
}
