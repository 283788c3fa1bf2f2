package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	livingCount = 100              // harnesses
	livingTTL   = 30 * time.Minute // longer than any run, so that no renewal is necessary
)

// living are harnesses with a lease, so that their sessions are not recovered. Each has an incarnation of its own.
type living []string

// live draws tickets for harnesses and acquires their leases.
func live(ctx context.Context, b *bus.Bus) (living, error) {
	all := make(living, livingCount)
	for i := range all {
		id := all.name(i)
		n, err := b.Leases.Ticket(ctx, id, 0)
		if err != nil {
			return nil, err
		}
		all[i] = strconv.FormatUint(n, 10)
		lease, err := json.Marshal(map[string]any{"id": id, "incarnation": all[i], "exclusive": true, "state": "ready",
			"ttl_ms": livingTTL.Milliseconds(), "renewed_at": time.Now().UTC()})
		if err != nil {
			return nil, err
		}
		if _, err := b.Leases.Acquire(ctx, events.HarnessLeaseKey(id, all[i]), lease, livingTTL); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (living) name(i int) string { return "h" + strconv.Itoa(i%livingCount) }

// event returns a fact as an event of the i-th harness.
func (l living) event(b *bus.Bus, r events.Ref, i int, f events.Fact) events.Event {
	return events.New(b.NewID(), events.HarnessSource(r.Harness, l[i%len(l)]), r, 1, time.Now(), f)
}

// session returns the i-th session. The harnesses have the sessions in turn.
func (l living) session(i int, from uint64) events.Ref {
	return events.Ref{Harness: l.name(i), Session: fmt.Sprint("s", from, "-", i)}
}
