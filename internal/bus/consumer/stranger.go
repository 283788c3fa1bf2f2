package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// consumersCheckedMax limits the checked consumers of a stream: each page has 256.
const consumersCheckedMax = 20_000

// Stranger is a consumer in the cell that no part of Holdfast made, or one of several that have the name of a service's
// consumer, with and without a key.
type Stranger struct {
	Stream, Name string
	Why          string
	Durable      string // of the service, if it is one of several
	Used         bool   // a process uses it
}

// Strangers returns the consumers of the log, of the state bucket and of the timers that are neither one of ours nor of
// a kind that readers make and the broker forgets: durables of other names, and those that push to a subject other than
// an inbox. A source of ours has one consumer: if several have its name, with and without a key, all are returned,
// those that processes use first.
// [core.ErrForbidden]: this user may not list consumers.
func (cs *Consumers) Strangers(ctx context.Context, ours []Source) ([]Stranger, error) {
	// by stream
	known := map[string][]*consumption{}
	for _, s := range ours {
		c, err := cs.consumption(s, nil)
		if err != nil {
			return nil, err
		}
		known[c.stream] = append(known[c.stream], c)
	}
	var found []Stranger
	for _, stream := range []string{cs.conn.Cell.LogStream(), core.KVStream(cs.conn.Cell.StateBucket()),
		core.KVStream(cs.conn.Cell.LeaseBucket()),
		cs.conn.Cell.TimerStream()} {
		named := map[*consumption][]*jetstream.ConsumerInfo{}
		err := each(ctx, cs.conn, stream, func(info *jetstream.ConsumerInfo) {
			for _, c := range known[stream] {
				if info.Config.DeliverSubject == "" && (info.Name == c.name || keyed(info.Name, c.name)) {
					named[c] = append(named[c], info)
					return
				}
			}
			if why := strange(info); why != "" {
				found = append(found, Stranger{Stream: stream, Name: info.Name, Why: why})
			}
		})
		if err != nil {
			return found, err
		}
		for _, c := range known[stream] {
			found = append(found, c.several(named[c])...)
		}
	}
	return found, nil
}

// several returns the consumers that have the name of this one, if there are several.
func (c *consumption) several(named []*jetstream.ConsumerInfo) []Stranger {
	if len(named) < 2 {
		return nil
	}
	slices.SortFunc(named, func(a, b *jetstream.ConsumerInfo) int { return strings.Compare(a.Name, b.Name) })
	var inUse, unused []Stranger
	for _, info := range named {
		s := Stranger{Stream: c.stream, Name: info.Name, Why: "is one of several with the name of " + c.durable,
			Durable: c.durable, Used: used(info)}
		if s.Used {
			inUse = append(inUse, s)
		} else {
			unused = append(unused, s)
		}
	}
	return append(inUse, unused...)
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
