package bus

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Kill ends the connection as the death of the process would: nothing is handed over, nothing is flushed.
func (b *Bus) Kill() { b.nc.Close() }

// CaughtUp is the end of a round of reading everything in which the watch did not see the keys that it knows.
func (b *Bus) CaughtUp(ctx context.Context, bk Bucket, known []Entry, fn func(Update) error) error {
	w := &watch{b: b, bk: bk, fn: fn, known: map[string]shown{}, round: 2, ready: true}
	for _, e := range known {
		w.known[e.Key] = shown{rev: e.Rev, at: e.At.UnixNano(), round: 1}
	}
	return w.caughtUp(ctx)
}

// Together is whether what is written together is sent together.
func (b *Bus) Together() bool { return b.together.Load() }

// ReadQuickly says whether this reply of the broker, with a message, is read without encoding/json, and as that reads
// it.
func (b *Bus) ReadQuickly(ctx context.Context, stream string, seq uint64) (quick, same bool, err error) {
	ask, err := json.Marshal(getRequest{Seq: seq})
	if err != nil {
		return false, false, err
	}
	m, err := b.nc.RequestWithContext(ctx, apiPrefix+"STREAM.MSG.GET."+stream, ask)
	if err != nil {
		return false, false, err
	}
	var one, other getReply
	quick = one.quickly(m.Data)
	err = json.Unmarshal(m.Data, &other)
	return quick, reflect.DeepEqual(one, other), err
}

// ClockWas makes this process believe that the broker's clock was by so much ahead until now.
func (b *Bus) ClockWas(ahead time.Duration) {
	b.clock.mu.Lock()
	defer b.clock.mu.Unlock()
	b.clock.broker, b.clock.last = b.clock.broker.Add(ahead), b.clock.last.Add(ahead)
}

// InBytes is how many bytes have come over the connection.
func (b *Bus) InBytes() uint64 { return b.nc.Stats().InBytes }

// AheadBytesMax is the most that one consumer is sent ahead.
const AheadBytesMax = heldBytesMax + askedMax*events.CommitBytesMax

// ClockAged makes this process believe that it has measured the broker's clock so long ago.
func (b *Bus) ClockAged(by time.Duration) {
	b.clock.mu.Lock()
	defer b.clock.mu.Unlock()
	b.clock.broker, b.clock.local = b.clock.broker.Add(-by), b.clock.local.Add(-by)
}

// Expire checks the entries of a watch that should have ended by now: those that it knows, and the given others.
func (b *Bus) Expire(ctx context.Context, bk Bucket, known []Entry, others []string, fn func(Update) error) error {
	w := &watch{b: b, bk: bk, fn: fn, known: map[string]shown{}, round: 1, ready: true}
	for _, e := range known {
		w.known[e.Key] = shown{rev: e.Rev, at: e.At.UnixNano(), round: 1, ends: time.Now().Add(-time.Second)}
		w.ends.add(e.Key, time.Now().Add(-time.Second))
	}
	for _, key := range others {
		w.ends.add(key, time.Now().Add(-time.Second))
	}
	return w.expire(ctx)
}

// WhyTLS returns the reason that a client gets for an error of a handshake.
func WhyTLS(cfg Config, err error) string { return whyTLS(&cfg, err) }

// FeedPart is the part of the log's limit that the feed has.
const FeedPart = feedPart
