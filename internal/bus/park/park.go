// Package park stores input that could not be read, with its reason, for an operator.
//
// The same input that is parked again within a day is one message.
package park

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
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

// Parking stores the parked input of a cell. Its methods may be called concurrently.
type Parking struct {
	conn *core.Conn
}

// New returns the parked input of the cell of a connection.
func New(conn *core.Conn) *Parking { return &Parking{conn: conn} }

// Park stores it. The same place, kind and body parked again within a day is one message. If the broker refuses it, for
// example because its headers are too large with those of this package, it is stored without its headers and its body.
func (pk *Parking) Park(ctx context.Context, p Parked) error {
	_, err := pk.ParkAsync(ctx, p).Wait(ctx)
	return err
}

// ParkAsync is [Parking.Park] without waiting, for many at once.
func (pk *Parking) ParkAsync(ctx context.Context, p Parked) core.Pending {
	msg := pk.message(p)
	under := pk.conn.Send(ctx, msg)
	return core.PendingUntil(func(ctx context.Context) (uint64, error) {
		op := "park " + p.Ref.String()
		err := pk.conn.Repeat(ctx, op, msg, under)
		if err == nil || ctx.Err() != nil || known(err) {
			return 0, err
		}
		if p.Bytes == 0 {
			p.Bytes = len(p.Body)
		}
		p.Header, p.Body = nil, nil
		msg := pk.message(p)
		return 0, pk.conn.Repeat(ctx, op, msg, pk.conn.Send(ctx, msg))
	})
}

// known reports whether an error says nothing about the message that was sent.
func known(err error) bool { return errors.Is(err, core.ErrFull) || errors.Is(err, core.ErrForbidden) }

// message returns the message that is stored.
func (pk *Parking) message(p Parked) *nats.Msg {
	h := nats.Header{}
	for k, v := range p.Header {
		switch {
		case !core.Sendable(k):
			core.KeepOdd(h, k+": "+strings.Join(v, ", "))
			continue
		case strings.HasPrefix(strings.ToLower(k), strings.ToLower(brokerPrefix)):
			// they would take effect again
			k = originalPrefix + k
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
	return &nats.Msg{Subject: pk.conn.Cell.ParkedSubject(p.Why, p.Ref), Header: h, Data: p.Body}
}
