package log

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Fed are the facts of one commit that counted, for the feed.
type Fed struct {
	Ref    events.Ref
	Seq    uint64 // the commit with which they count
	Events []events.Event
}

// Feed publishes facts that counted once more, one message each, by kind, in this order. Wait returns when all are
// stored. A second feed of the same facts is recognised for a while. Without a feed it does nothing. To a broker that
// syncs each write it sends them together, as [kv.Buckets.StoreDocs] does.
func (l *Log) Feed(ctx context.Context, fs ...Fed) core.Pending {
	if l.conn.Config.FeedKeptFor < 0 {
		return core.Pending{}
	}
	var msgs []*nats.Msg
	for _, f := range fs {
		place := strconv.FormatUint(f.Seq, 10)
		for i := range f.Events {
			body, err := events.EncodeEvent(&f.Events[i])
			if err != nil {
				return failed(fmt.Errorf("feed %s: %w", f.Ref, err))
			}
			msgs = append(msgs, &nats.Msg{Subject: l.conn.Cell.FeedSubject(feedKind(f.Events[i].Kind)), Data: body,
				Header: nats.Header{
					headerContentType:     {events.EventContentType},
					headerHarness:         {f.Ref.Harness},
					headerSession:         {f.Ref.Session},
					core.HeaderSeq:        {place},
					jetstream.MsgIDHeader: {place + "." + strconv.Itoa(i) + "." + digest(body)},
				}})
		}
	}
	now, later := l.feedTogether(msgs)
	under := l.sendFeed(ctx, now)
	return core.PendingUntil(func(ctx context.Context) (uint64, error) {
		for len(now) > 0 {
			if err := l.fed(ctx, now, under); err != nil {
				return 0, err
			}
			now, later = l.feedTogether(later)
			under = l.sendFeed(ctx, now)
		}
		return 0, nil
	})
}

// digest distinguishes a fact from one that had its place in the log before: a log that has lost its end assigns the
// lost sequences again.
func digest(body []byte) string {
	h := fnv.New64a()
	// it returns no error
	_, _ = h.Write(body)
	return strconv.FormatUint(h.Sum64(), 36)
}

// feedKind returns the kind as tokens of a subject. Unknown kinds may have any form, so they go to one place.
func feedKind(k events.Kind) events.Kind {
	entity, verb, two := strings.Cut(string(k), ".")
	for _, part := range []string{entity, verb} {
		if t, err := events.Token(part); err != nil || t != part || !two {
			return oddKind + "." + oddKind
		}
	}
	return k
}

// feedTogether splits off the messages that are sent together.
func (l *Log) feedTogether(msgs []*nats.Msg) (now, later []*nats.Msg) {
	if !l.conn.Together.Load() {
		return msgs, nil
	}
	n, bytes := 0, 0
	for ; n < len(msgs) && n < core.BatchMessagesMax; n++ {
		if bytes += len(msgs[n].Data); n > 0 && bytes > core.BatchBytesMax {
			break
		}
	}
	return msgs[:n], msgs[n:]
}

// sendFeed sends messages as one batch or each by itself.
func (l *Log) sendFeed(ctx context.Context, msgs []*nats.Msg) []core.Sent {
	if l.conn.Together.Load() && len(msgs) >= core.BatchMin {
		return []core.Sent{l.conn.SendBatch(ctx, msgs)}
	}
	under := make([]core.Sent, len(msgs))
	for i, m := range msgs {
		under[i] = l.conn.Send(ctx, m)
	}
	return under
}

// fed waits until the messages are stored. A refused batch, some of which may be stored, is sent once more, each
// message alone.
func (l *Log) fed(ctx context.Context, msgs []*nats.Msg, under []core.Sent) error {
	if len(under) != len(msgs) {
		if _, err := l.conn.Ack(ctx, under[0]); err == nil || ctx.Err() != nil {
			return err
		}
		under = under[:0]
		for _, m := range msgs {
			under = append(under, l.conn.Send(ctx, m))
		}
	}
	for i, s := range under {
		if err := l.conn.Repeat(ctx, "feed", msgs[i], s); err != nil {
			return err
		}
	}
	return nil
}
