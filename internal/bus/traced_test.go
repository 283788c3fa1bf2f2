package bus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// untraceable is the header of a message that other nodes of nats-server 2.15.2 drop when they receive it: the status
// in its first line hides the rest from the node of its author, and is removed when the message is stored.
const untraceable = "NATS/1.0 1\r\nNats-Trace-Dest: nowhere\r\nNats-Trace-Only: true\r\n\r\n"

// storeRaw stores a message with a header as it is, several times, and returns when the broker has them.
func storeRaw(t *testing.T, url, subject, header, body string, times int) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const inbox = "_INBOX.raw"
	fmt.Fprintf(c, "CONNECT {\"headers\":true,\"verbose\":false}\r\nSUB %s 1\r\n", inbox)
	one := fmt.Sprintf("HPUB %s %s %d %d\r\n%s%s\r\n", subject, inbox, len(header), len(header)+len(body), header, body)
	fmt.Fprint(c, strings.Repeat(one, times))
	stored := 0
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if strings.Contains(lines.Text(), `"seq"`) {
			stored++
		}
		if stored == times {
			return
		}
		if strings.Contains(lines.Text(), "rror") {
			t.Fatal(lines.Text())
		}
	}
	t.Fatal("the broker has closed the connection")
}

// TestATracedMessageStopsNoReader: nodes drop a message, each time it is delivered. Consumers, readers and watches at
// each node read all of them, more than one pull asks for, and those behind them.
func TestATracedMessageStopsNoReader(t *testing.T) {
	// it mostly waits
	t.Parallel()
	nodes := natstest.Cluster(t)
	first := natstest.Bus(t, nodes[0])
	const body, traced, others = "[]", 150, 3
	log, lease := "hf.log."+bustest.Session.Harness+"."+bustest.Session.Session+".harness", "$KV.hf_leases.harness.h."
	storeRaw(t, nodes[0].URL(), log, untraceable, body, traced)
	for n := range 4 {
		storeRaw(t, nodes[0].URL(), lease+fmt.Sprint(n), untraceable, body, 1)
	}
	for i, node := range nodes {
		b := natstest.Bus(t, node)
		if all := bustest.MustRead(t, b, bustest.Session, 0); len(all) != traced {
			t.Errorf("at node %d %d commits are read", i, len(all))
		}
		if _, err := b.Log.Heads(bustest.Within(t, bustest.Patience), ""); err != nil {
			t.Errorf("at node %d: %v", i, err)
		}
	}
	// behind the others, so that a delivery shows what is missing
	for n := range others {
		r := events.Ref{Harness: "other", Session: fmt.Sprint("s", n)}
		bustest.MustAppend(t, first, r, 0, "b")
	}
	bustest.Store(t, first, kv.Leases, "harness.other.1", "mine", 0)
	for i, node := range nodes {
		b := natstest.Bus(t, node)
		updates, _ := bustest.Watching(t, b, kv.Leases)
		for n := range 4 {
			bustest.Expect(t, updates, fmt.Sprintf("harness.h.%d=%s", n, body))
		}
		bustest.Expect(t, updates, "harness.other.1=mine", "ready")
		ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
		h := &collected{last: traced + others, done: cancel}
		source := consumer.Source{Stream: consumer.LogStream, Durable: fmt.Sprint("at", i)}
		if err := b.Consumers.Consume(ctx, source, h); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if len(h.seqs) != traced+others || !slices.IsSorted(h.seqs) {
			t.Errorf("at node %d %d are consumed", i, h.seqs)
		}
	}
}

// collected is a handler that collects the messages up to the last one.
type collected struct {
	seqs []uint64
	last uint64
	done func()
}

func (*collected) Takeover(context.Context) error { return nil }

func (h *collected) Batch(_ context.Context, ms []bus.Message) (int, error) {
	for _, m := range ms {
		if !slices.Contains(h.seqs, m.Seq) {
			h.seqs = append(h.seqs, m.Seq)
		}
		if m.Seq == h.last {
			h.done()
		}
	}
	return len(ms), nil
}
