package bus

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/pkg/codec"
)

// Limits of a flow.
const (
	heartbeatMS      = 500      // interval of the broker's heart-beats of a pull; two missed ones are a loss
	pullExpiryMS     = 30_000   // a pull that was not filled is repeated after this time
	askedMax         = 128      // messages in flight, for any window: each may be as large as a commit
	heldBytesMax     = 16 << 20 // delivered and not taken, before more is pulled
	messageBytes     = 512      // of a message beside its body, about
	heartbeatsMissed = 2        // silent heart-beats until delivery counts as interrupted
	statusPending    = "Nats-Pending-Messages"
	headerPin        = "Nats-Pin-Id"
	headerStatus     = "Status"
	headerReason     = "Description"
)

// Status codes of the broker's messages about a pull.
const (
	statusHeartbeat = "100"
	statusNoMore    = "404"
	statusExpired   = "408"
	statusPinLost   = "423"
	statusNobody    = "503"
)

// Reasons for the end of a flow.
var (
	errPinLost     = errors.New("bus: another process has become the active one")
	errInterrupted = errors.New("bus: delivery interrupted")
)

// pull is a request for messages, as the broker decodes it. Durations are nanoseconds.
type pull struct {
	Expires   time.Duration `json:"expires,omitempty"`
	Batch     int           `json:"batch"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	Group     string        `json:"group,omitempty"`
	Pin       string        `json:"id,omitempty"`
}

// delivery is a message with the data of its reply subject.
type delivery struct {
	msg     *nats.Msg
	seq     uint64    // in the stream
	pending uint64    // messages of the consumer still to come
	at      time.Time // by the broker, when it was stored
	got     time.Time // by this process, when it arrived
}

// flow pulls from one consumer, a window of messages and of bytes ahead, and returns what has arrived. It ends, with a
// reason, at the first sign that delivery may have been interrupted: a lost connection, missed heart-beats, a gap or a
// step back in the consumer's numbering, any unexpected status. It never recovers: its owner starts a new one from a
// place known to be right. So its deliveries are in order and without gaps.
type flow struct {
	b       *Bus
	subject string // subject of pulls
	ask     pull
	window  int
	sub     *nats.Subscription

	mu    sync.Mutex
	buf   []delivery
	held  int    // bytes in buf
	asked int    // messages pulled that have not arrived
	next  uint64 // the consumer's own number of the next delivery; 0: any
	last  uint64 // stream sequence of the last delivery
	heard time.Time
	err   error
	news  chan struct{} // cap 1: there is something in buf, or err
	done  chan struct{}
}

// flow starts to pull. first is the number of the first delivery, which a new or reset consumer counts from 1; 0 if it
// is unknown. A flow that could not start has ended: take returns the reason.
func (b *Bus) flow(stream, consumer string, window int, first uint64, ask pull) *flow {
	f := &flow{b: b, subject: apiPrefix + "CONSUMER.MSG.NEXT." + stream + "." + consumer, ask: ask, window: window,
		next:  first,
		heard: time.Now(), news: make(chan struct{}, 1), done: make(chan struct{})}
	f.ask.Expires, f.ask.Heartbeat = pullExpiryMS*time.Millisecond, heartbeatMS*time.Millisecond
	// before the check of the connection, so that no loss is missed
	status := b.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	f.sub, err = b.nc.Subscribe(b.nc.NewInbox(), f.receive)
	err = errors.Join(err, f.sub.SetPendingLimits(-1, -1)) // the window is the limit
	if err == nil {
		err = f.refill()
	}
	f.failLocked(translate("pull from "+stream+" "+consumer, err))
	go f.guard(status)
	return f
}

// ignoreClosed drops the error of an unsubscribe without a connection.
func ignoreClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrBadSubscription) {
		return nil
	}
	return err
}

// guard ends the flow on silence and on the loss of the connection.
func (f *flow) guard(status chan nats.Status) {
	defer f.b.nc.RemoveStatusListener(status)
	tick := time.NewTicker(heartbeatMS * time.Millisecond / 2)
	defer tick.Stop()
	for {
		select {
		case <-f.done:
			return
		case s := <-status:
			f.fail(fmt.Errorf("%w: connection %s", errInterrupted, s))
			return
		case <-tick.C:
			f.mu.Lock()
			silent := f.asked > 0 && time.Since(f.heard) > heartbeatsMissed*heartbeatMS*time.Millisecond
			f.mu.Unlock()
			if silent {
				f.fail(fmt.Errorf("%w: no heart-beat", errInterrupted))
				return
			}
		}
	}
}

// fail ends the flow; the first reason is kept.
func (f *flow) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failLocked(err)
}

func (f *flow) failLocked(err error) {
	if f.err == nil {
		f.err = err
	}
	f.wake()
}

func (f *flow) wake() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// close ends the flow and drops what it holds.
func (f *flow) close() {
	close(f.done)
	f.fail(fmt.Errorf("%w: closed", errInterrupted))
	if err := ignoreClosed(f.sub.Unsubscribe()); err != nil {
		f.b.log.Warn().AnErr("err", err).Msg("pull: unsubscribe")
	}
}

// receive takes one message from the connection.
func (f *flow) receive(m *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return
	}
	f.heard = time.Now()
	if m.Reply == "" { // a delivery has one, for its acknowledgement
		f.status(m.Header)
		return
	}
	meta, err := m.Metadata()
	switch {
	case err != nil:
		f.failLocked(fmt.Errorf("%w: not a delivery: %w", errInterrupted, err))
		return
	case f.next != 0 && meta.Sequence.Consumer != f.next:
		f.failLocked(fmt.Errorf("%w: delivery %d came where %d was due", errInterrupted, meta.Sequence.Consumer,
			f.next))
		return
	case meta.Sequence.Stream <= f.last:
		f.failLocked(fmt.Errorf("%w: message %d came behind %d", errInterrupted, meta.Sequence.Stream, f.last))
		return
	}
	f.next, f.last = meta.Sequence.Consumer+1, meta.Sequence.Stream
	f.asked--
	f.buf = append(f.buf, delivery{msg: m, seq: meta.Sequence.Stream, pending: meta.NumPending,
		at: meta.Timestamp.UTC(), got: f.heard})
	f.held += len(m.Data) + messageBytes
	if err := f.refill(); err != nil {
		f.failLocked(fmt.Errorf("%w: %w", errInterrupted, err))
	}
	f.wake()
}

// status handles a status message of the broker about a pull.
func (f *flow) status(h nats.Header) {
	switch code := h.Get(headerStatus); code {
	case statusHeartbeat:
	case statusExpired, statusNoMore:
		if left, err := strconv.Atoi(h.Get(statusPending)); err == nil {
			f.asked -= left
		} else {
			f.asked = 0
		}
		if err := f.refill(); err != nil {
			f.failLocked(fmt.Errorf("%w: %w", errInterrupted, err))
		}
	case statusPinLost:
		f.failLocked(errPinLost)
	case statusNobody:
		f.failLocked(fmt.Errorf("%w: no such consumer: %w", errInterrupted, ErrNotFound))
	default: // leadership changed, consumer deleted, server shutting down, a bad request
		f.failLocked(fmt.Errorf("%w: %s %s", errInterrupted, code, h.Get(headerReason)))
	}
}

// refill pulls more when half of the window is open: of the messages in flight, and of the bytes that may be held.
func (f *flow) refill() error {
	open := min(f.window-len(f.buf), askedMax) - f.asked
	if 2*open < min(f.window, askedMax) || f.held > heldBytesMax {
		return nil
	}
	ask := f.ask
	ask.Batch = open
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	f.asked, f.heard = f.asked+open, time.Now()
	return f.b.nc.PublishRequest(f.subject, f.sub.Subject, body)
}

// take waits for a message and returns it with the others that have arrived, at most most. It waits for the first one
// only. Once the flow has ended it returns the reason and no messages.
func (f *flow) take(ctx context.Context, most int) ([]delivery, error) {
	for {
		if ds, err := f.poll(most); err != nil || len(ds) > 0 {
			return ds, err
		}
		select {
		case <-f.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *flow) poll(most int) ([]delivery, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	n := min(most, len(f.buf))
	if n == 0 {
		return nil, nil
	}
	ds := f.buf[:n:n]
	f.buf = f.buf[n:]
	for i := range ds {
		f.held -= len(ds[i].msg.Data) + messageBytes
	}
	if len(f.buf) == 0 {
		f.buf = nil
	} else {
		f.wake()
	}
	if err := f.refill(); err != nil {
		f.failLocked(fmt.Errorf("%w: %w", errInterrupted, err))
		return nil, f.err
	}
	return ds, nil
}

// waiting returns the delivered messages that take has not returned.
func (f *flow) waiting() []delivery {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buf[:len(f.buf):len(f.buf)]
}

// awaitConnected waits until the connection is up. It fails when ctx ends or the connection was closed.
func (b *Bus) awaitConnected(ctx context.Context) error {
	status := b.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer b.nc.RemoveStatusListener(status)
	for {
		switch {
		case b.nc.IsConnected():
			return nil
		case b.nc.IsClosed(), b.nc.IsDraining():
			return translate("wait for the broker", nats.ErrConnectionClosed)
		}
		select {
		case <-status:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// getReply is the reply to a [getRequest].
type getReply struct {
	Message *message `json:"message"`
}

// quickly decodes the reply in the form that the broker writes; false for any other form, which is left to
// encoding/json.
func (r *getReply) quickly(body []byte) bool {
	var m message
	var head, data string
	c := codec.Reader(body)
	c.Mark(`{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","message":`)
	codec.Text(c, `{"subject":`, &m.Subject)
	codec.Number(c, `,"seq":`, &m.Seq)
	codec.Some(c, `,"hdrs":`, &head)
	codec.Some(c, `,"data":`, &data)
	codec.Time(c, `,"time":`, &m.Time)
	c.Mark(`}}`)
	if !c.Ended() {
		return false
	}
	for text, to := range map[*string]*[]byte{&head: &m.RawHead, &data: &m.Data} {
		if *text == "" {
			continue
		}
		var err error
		if *to, err = base64.StdEncoding.DecodeString(*text); err != nil {
			return false
		}
	}
	r.Message = &m
	return true
}
