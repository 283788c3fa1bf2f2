package bus_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// apiReply is the broker's answer to a request of the JetStream API: the size of its body, and where that begins.
var apiReply = regexp.MustCompile(`MSG \S+ \S+ (?:\S+ )?(\d+)\r\n\{"type":"io\.nats\.jetstream\.api\.v1\.\w+_response"`)

// spoil replaces the n-th answer of the API by an error that no program expects, of the same size. count is how
// many answers there were.
func spoil(n int) (alter func(towards bool, data []byte) []byte, count *int) {
	const trouble = `{"error":{"code":500,"err_code":10060,"description":"trouble"}}`
	count = new(int)
	return func(towards bool, data []byte) []byte {
		if towards {
			return data
		}
		for _, at := range apiReply.FindAllSubmatchIndex(data, -1) {
			*count++
			size, err := strconv.Atoi(string(data[at[2]:at[3]]))
			from := at[3] + len("\r\n")
			if *count != n || err != nil || size < len(trouble) || from+size > len(data) {
				continue
			}
			body := data[from : from+size]
			for i := range body {
				body[i] = ' '
			}
			copy(body, trouble)
		}
		return data
	}, count
}

// TestEachAnswerMayBeAnError: for each call, and for each answer of the broker that it waits for in turn: when
// that answer is an error, so is what the call returns.
func TestEachAnswerMayBeAnError(t *testing.T) {
	s := natstest.Start(t)
	witness := natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = 1 << 30 })
	ctx := bustest.Within(t, bustest.Patience)
	seq := uint64(0)
	for i := range 40 {
		seq = bustest.MustAppend(t, witness, bustest.Session, seq, fmt.Sprint("e", i))
	}
	if _, err := witness.KV.Store(ctx, kv.State, bustest.Key, []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	name, err := witness.Objects.Put(ctx, bustest.Session, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	source := consumer.Source{Stream: consumer.LogStream, Durable: "none"}
	for what, do := range map[string]func(context.Context) error{
		"read":    func(ctx context.Context) error { _, err := b.Log.Read(ctx, bustest.Session, 0); return err },
		"read on": func(ctx context.Context) error { _, err := b.Log.Read(ctx, bustest.Session, seq-2); return err },
		"commit":  func(ctx context.Context) error { _, err := b.Log.Commit(ctx, 1); return err },
		"scan": func(ctx context.Context) error {
			return b.Log.Scan(ctx, 0,
				func(events.Commit) error { return nil })
		},
		"last":  func(ctx context.Context) error { _, err := b.Log.LastSeq(ctx); return err },
		"head":  func(ctx context.Context) error { _, err := b.Log.Head(ctx, bustest.Session); return err },
		"heads": func(ctx context.Context) error { _, err := b.Log.Heads(ctx, ""); return err },
		"load":  func(ctx context.Context) error { _, err := b.KV.Load(ctx, kv.State, bustest.Key); return err },
		"list": func(ctx context.Context) error {
			return b.KV.List(ctx, kv.State, ">", func(kv.Entry) error { return nil })
		},
		"lag":        func(ctx context.Context) error { _, _, err := b.Consumers.Lag(ctx, source); return err },
		"usage":      func(ctx context.Context) error { _, _, err := b.Log.Usage(ctx); return err },
		"inspect":    func(ctx context.Context) error { _, err := b.Layout.Inspect(ctx); return err },
		"strangers":  func(ctx context.Context) error { _, err := b.Consumers.Strangers(ctx, nil); return err },
		"has object": func(ctx context.Context) error { return b.Objects.Has(ctx, name) },
		"object":     func(ctx context.Context) error { _, err := b.Objects.Get(ctx, name); return err },
		"objects":    func(ctx context.Context) error { return b.Objects.Each(ctx, func(string) error { return nil }) },
		"put object": func(ctx context.Context) error {
			_,
				err := b.Objects.Put(ctx, bustest.Session, []byte("x"))
			return err
		},
		"another one": func(ctx context.Context) error {
			_, err := b.Objects.Put(ctx, bustest.Session, []byte(b.NewID()))
			return err
		},
		"delete one": func(ctx context.Context) error {
			name, err := witness.Objects.Put(ctx, bustest.Session, []byte(b.NewID()))
			if err != nil {
				t.Error(err)
			}
			return b.Objects.Delete(ctx, name)
		},
		"purge":  func(ctx context.Context) error { return b.Log.PurgeSession(ctx, bustest.Session, seq-30) },
		"ensure": b.Layout.Ensure,
		"raise":  func(ctx context.Context) error { _, err := b.Log.RaiseLimit(ctx); return err },
		"since": func(ctx context.Context) error {
			return b.Log.Since(ctx, "h", time.Unix(0, 0), func(events.Commit) error { return nil })
		},
		"a lost race": func(ctx context.Context) error {
			_, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, 1, bustest.Facts("late"))
			return err
		},
	} {
		for n, more := 1, true; more; n++ {
			alter, count := spoil(n)
			p.Mu.Lock()
			p.Alter = alter
			p.Mu.Unlock()
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := do(within)
			cancel()
			p.Mu.Lock()
			more = *count >= n
			p.Alter = nil
			p.Mu.Unlock()
			if more && err == nil {
				t.Errorf("%s succeeds although answer %d was an error", what, n)
			}
			if !more && n == 1 {
				t.Errorf("%s waits for no answer", what)
			}
			if n > 60 {
				t.Errorf("%s: %d answers", what, n)
				break
			}
		}
	}
}
