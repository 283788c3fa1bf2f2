package kv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// Without markers a watch tells of expired leases all the same: of those that it saw beginning and of those that were
// there before, with TTLs in either form; and not of those that are renewed.
func TestLeasesExpireWithoutMarkers(t *testing.T) {
	// it mostly waits
	t.Parallel()
	natstest.RetryStalled(t, bustest.Standstill, func() error { return expireWithoutMarkers(t) })
}

func expireWithoutMarkers(t *testing.T) error {
	s, all := bustest.WithUsers(t, "ann")
	nc, _ := bustest.LoggedIn(t, s)
	ctx, cancel := context.WithCancel(bustest.Background(t))
	defer cancel()
	put := func(key, ttl string) {
		m := &nats.Msg{Subject: "$KV.hf_leases." + key, Header: nats.Header{jetstream.MsgTTLHeader: {ttl}}}
		if _, err := nc.RequestMsg(m, bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now()
	put("harness.h.before", "2")
	put("harness.h.stays", "1h")
	kept := bustest.Acquire(t, all[1], "harness.h.kept", 2*time.Second)
	lost := kept.Keep(ctx, 0, nil)
	updates, _ := bustest.Watching(t, all[0], kv.Leases)
	for u := bustest.Receive(t, updates, "ready"); !u.Ready; u = bustest.Receive(t, updates, "ready") {
		if u.Deleted {
			return fmt.Errorf("%s ended before the watch was ready", u.Key)
		}
	}
	began := time.Now()
	put("harness.h.after", "2s")
	ended := map[string]time.Time{}
	for len(ended) < 2 {
		u := bustest.Receive(t, updates, "two leases to end")
		if u.Deleted && !u.Expired {
			return fmt.Errorf("%s is said to be deleted, not expired", u.Key)
		}
		if u.Deleted {
			ended[u.Key] = time.Now()
		}
	}
	for key, from := range map[string]time.Time{"harness.h.before": before, "harness.h.after": began} {
		if after := ended[key].Sub(from); after < 2*time.Second || after > 3500*time.Millisecond {
			return fmt.Errorf("%s ended after %s, want 2 s and little more: %v", key, after, ended)
		}
	}
	select {
	case err := <-lost:
		return fmt.Errorf("a lease that is kept: %w", err)
	default:
		return nil
	}
}
