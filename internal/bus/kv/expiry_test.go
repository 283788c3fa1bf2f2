package kv

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// TestEnding: an entry with a TTL ends so long after it was stored. Of one that was there before the watch, the
// broker's clock says how much is left; of one that comes during the watch its arrival counts. Only leases end without
// a marker.
func TestEnding(t *testing.T) {
	const ttl, age, tolerance = 30 * time.Second, 10 * time.Second, time.Second
	for _, c := range []struct {
		name    string
		bk      Bucket
		header  string
		live    bool
		unknown bool // the broker's clock
		want    time.Duration
	}{
		{"there before the watch", Leases, "30s", false, false, ttl - age},
		{"there before the watch, no clock", Leases, "30", false, true, ttl},
		{"comes during the watch", Leases, "30", true, false, ttl},
		{"a document's entry", State, "30s", false, false, 0},
		{"no TTL", Leases, "", false, false, 0},
		{"a TTL that cannot be read", Leases, "soon", false, false, 0},
		{"ended already", Leases, "5s", false, false, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now()
			clock := knownClock{at: now.Add(time.Hour), known: !c.unknown}
			w := &watch{buckets: &Buckets{clock: clock}, bk: c.bk, live: c.live}
			at := w.ending("k", pull.Delivery{At: now.Add(time.Hour - age), Got: now,
				Msg: &nats.Msg{Header: nats.Header{jetstream.MsgTTLHeader: {c.header}}}})
			switch {
			case c.want == 0:
				if !at.IsZero() || w.ends.Len() != 0 {
					t.Errorf("ends at %s, checks: %d", at, w.ends.Len())
				}
				return
			case c.want < 0:
				c.want = 0
			}
			if d := at.Sub(now) - c.want; d.Abs() > tolerance || w.ends.Len() != 1 {
				t.Errorf("ends in %s, want %s; checks: %d", at.Sub(now), c.want, w.ends.Len())
			}
		})
	}
}

// knownClock is a broker's clock that stands still.
type knownClock struct {
	at    time.Time
	known bool
}

func (c knownClock) Now(context.Context) (time.Time, error) { return c.at, nil }

func (c knownClock) Guess() (time.Time, bool) { return c.at, c.known }
