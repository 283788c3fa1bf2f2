package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Headers of parked input.
const (
	headerParkedReason = "Hf-Parked-Reason"
	headerParkedSeq    = "Hf-Parked-Seq"
	headerParkedFacts  = "Hf-Parked-Facts"
	headerParkedBytes  = "Hf-Parked-Bytes" // of a body that was left out
	originalPrefix     = "Hf-Original-"    // the broker's own headers of a parked message are kept under this prefix
	brokerPrefix       = "Nats-"
)

// Parked is unreadable input, stored for an operator: one message for all facts of a commit with the same kind of
// problem.
type Parked struct {
	Why    string              // one token: the kind of problem
	Ref    events.Ref          // the session, as far as it is known
	Reason string              // for people
	Facts  string              // which facts of the commit, counted from 0, as ranges: 0-3,7; "" for the whole message
	Header map[string][]string // of the original message
	Body   []byte              // of the original message; nil where it is only in the log
	Bytes  int                 // of a body that is only in the log
	Seq    uint64              // its place in the log
}

// Park stores it. The same place, kind and body parked again within a day is one message.
func (b *Bus) Park(ctx context.Context, p Parked) error {
	_, err := b.ParkAsync(ctx, p).Wait(ctx)
	return err
}

// ParkAsync is [Bus.Park] without waiting, for many at once.
func (b *Bus) ParkAsync(ctx context.Context, p Parked) Pending {
	h := nats.Header{}
	for k, v := range p.Header {
		switch {
		case !sendable(k):
			keepOdd(h, k+": "+strings.Join(v, ", "))
			continue
		case strings.HasPrefix(strings.ToLower(k), strings.ToLower(brokerPrefix)):
			k = originalPrefix + k // they would take effect again
		}
		h[k] = append(h[k], v...)
	}
	sum := sha256.Sum256(p.Body)
	h[headerParkedReason] = []string{strings.NewReplacer("\r", " ", "\n", " ").Replace(p.Reason)}
	h[headerParkedSeq] = []string{strconv.FormatUint(p.Seq, 10)}
	h[jetstream.MsgIDHeader] = []string{fmt.Sprintf("%d.%s.%s", p.Seq, p.Why, hex.EncodeToString(sum[:8]))}
	if p.Facts != "" {
		h[headerParkedFacts] = []string{p.Facts}
	}
	if p.Bytes > 0 {
		h[headerParkedBytes] = []string{strconv.Itoa(p.Bytes)}
	}
	msg := &nats.Msg{Subject: b.cell.ParkedSubject(p.Why, p.Ref), Header: h, Data: p.Body}
	under := b.send(ctx, msg)
	return Pending{wait: func(ctx context.Context) (uint64, error) {
		return 0, b.repeat(ctx, "park "+p.Ref.String(), msg, under)
	}}
}
