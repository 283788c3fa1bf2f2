package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestWhatWaitsForTheSync: at a broker that syncs in groups, these calls ask for the sync of what they write or return,
// and return after it.
func TestWhatWaitsForTheSync(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		call   func(ctx context.Context, b *bus.Bus) error
	}{
		"append": {"HF_LOG", func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Log.Append(ctx, events.Ref{Harness: "h", Session: "new"}, events.WriterHarness, 0,
				bustest.Facts("new"))
			return err
		}},
		"read": {"HF_LOG", func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Log.Read(ctx, bustest.Session, 0)
			return err
		}},
		"the last commit": {"HF_LOG", func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Log.LastSeq(ctx)
			return err
		}},
		"consume": {"HF_LOG", func(ctx context.Context, b *bus.Bus) error {
			ctx, end := context.WithCancel(ctx)
			defer end()
			err := b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "other"},
				bustest.HandlerFunc(func([]bus.Message) { end() }))
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}},
		"a ticket": {"KV_hf_leases", func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Leases.Ticket(ctx, "h", 0)
			return err
		}},
		"a note": {"KV_hf_state", func(ctx context.Context, b *bus.Bus) error {
			_, err := b.KV.Store(ctx, kv.State, "lost.h.s", []byte("{}"), 0)
			return err
		}},
		"an object": {"OBJ_hf_objects", func(ctx context.Context, b *bus.Bus) error {
			_, err := b.Objects.Put(ctx, bustest.Session, []byte("large"))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t, natstest.Lazy(), func(c *embed.Config) { c.Name = core.GroupPrefix + "test" })
			b := natstest.Bus(t, s)
			body, err := events.EncodeBatch(bustest.Facts("first"))
			if err != nil {
				t.Fatal(err)
			}
			nc, _ := bustest.Outsider(t, s)
			if _, err := nc.Request("hf.log.h.s.harness", body, bustest.Patience); err != nil {
				t.Fatal(err)
			}
			questions := make(chan *nats.Msg, 100)
			if _, err := nc.ChanSubscribe(core.SyncSubject, questions); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			result := make(chan error, 1)
			go func() { result <- c.call(bustest.Within(t, bustest.Patience), b) }()
			for asked := false; ; {
				select {
				case m := <-questions:
					var q core.SyncRequest
					if err := json.Unmarshal(m.Data, &q); err != nil {
						t.Fatal(err)
					}
					asked = asked || q.Stream == c.stream
					select {
					case err := <-result:
						t.Fatalf("before the sync of %s: %v", q.Stream, err)
					default:
					}
					reply, err := json.Marshal(core.SyncReply{Seq: q.Seq})
					if err = errors.Join(err, m.Respond(reply)); err != nil {
						t.Fatal(err)
					}
				case err := <-result:
					if err != nil || !asked {
						t.Errorf("%v; a question about %s: %t", err, c.stream, asked)
					}
					return
				}
			}
		})
	}
}
