package consumer

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// consumersLookedAtMax limits the checked consumers of a stream: each page has 256.
const consumersLookedAtMax = 20_000

// Stranger is a consumer in the cell that no part of Holdfast made.
type Stranger struct {
	Stream, Name string
	Why          string
}

// Strangers returns the consumers of the log, of the state bucket and of the timers that are neither one of ours nor of
// a kind that readers make and the broker forgets: durables of other names, and those that push to a subject other than
// an inbox. [core.ErrForbidden]: this user may not list consumers.
func (cs *Consumers) Strangers(ctx context.Context, ours []Source) ([]Stranger, error) {
	known := map[string]bool{}
	for _, s := range ours {
		c, err := cs.consumption(s, nil)
		if err != nil {
			return nil, err
		}
		known[c.stream+" "+c.name] = true
	}
	var found []Stranger
	for _, stream := range []string{cs.conn.Cell.LogStream(), core.KVStream(cs.conn.Cell.StateBucket()),
		core.KVStream(cs.conn.Cell.LeaseBucket()),
		cs.conn.Cell.TimerStream()} {
		for offset := 0; offset < consumersLookedAtMax; {
			var page struct {
				Total     int                       `json:"total"`
				Consumers []*jetstream.ConsumerInfo `json:"consumers"`
			}
			req := map[string]int{"offset": offset}
			if err := cs.conn.Call(ctx, "list the consumers of "+stream, "CONSUMER.LIST."+stream, req,
				&page); err != nil {
				return found, err
			}
			for _, info := range page.Consumers {
				if why := strange(info); why != "" && !known[stream+" "+info.Name] {
					found = append(found, Stranger{stream, info.Name, why})
				}
			}
			if offset += len(page.Consumers); len(page.Consumers) == 0 || offset >= page.Total {
				break
			}
		}
	}
	return found, nil
}

// strange returns why a consumer is not one that a reader makes for itself, "" if it can be one.
func strange(info *jetstream.ConsumerInfo) string {
	switch to := info.Config.DeliverSubject; {
	case to != "" && !strings.HasPrefix(to, nats.InboxPrefix):
		return fmt.Sprintf("pushes to %s", to)
	case info.Config.Durable != "":
		return "is durable"
	}
	return ""
}
