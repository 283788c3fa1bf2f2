package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
// an inbox. [ErrForbidden]: this user may not list consumers.
func (b *Bus) Strangers(ctx context.Context, ours []Source) ([]Stranger, error) {
	known := map[string]bool{}
	for _, s := range ours {
		c, err := b.consumption(s, nil)
		if err != nil {
			return nil, err
		}
		known[c.stream+" "+c.name] = true
	}
	var found []Stranger
	for _, stream := range []string{b.cell.LogStream(), kvStream(b.cell.StateBucket()), kvStream(b.cell.LeaseBucket()),
		b.cell.TimerStream()} {
		for offset := 0; offset < consumersLookedAtMax; {
			var page struct {
				Total     int                       `json:"total"`
				Consumers []*jetstream.ConsumerInfo `json:"consumers"`
			}
			req := map[string]int{"offset": offset}
			if err := b.call(ctx, "list the consumers of "+stream, "CONSUMER.LIST."+stream, req, &page); err != nil {
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

// silentMin is how long a stream's leader has not heard of a node that counts as offline. The cluster lists a node as
// online while its JetStream is off, and for a while at each start.
const silentMin = 5 * time.Second

// nodes adds the names of the brokers that hold a stream, and those that are offline or silent.
func (s *StreamState) nodes(info *jetstream.StreamInfo) {
	if info.Cluster == nil {
		return
	}
	if info.Cluster.Leader != "" {
		s.Nodes = append(s.Nodes, info.Cluster.Leader)
	}
	for _, p := range info.Cluster.Replicas {
		s.Nodes = append(s.Nodes, p.Name)
		if p.Offline || !p.Current && p.Active > silentMin {
			s.Offline = append(s.Offline, p.Name)
		}
	}
	slices.Sort(s.Nodes)
}
