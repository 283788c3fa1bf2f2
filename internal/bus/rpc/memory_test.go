package rpc_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestAFloodTakesLittleMemory: one asker sends 256 MiB of requests that are not handled meanwhile. The service keeps
// those in progress, 16 of 256 KiB, and 8 MiB that wait. All others have their refusal at once.
func TestAFloodTakesLittleMemory(t *testing.T) {
	const asked, size, atOnce, most = 1024, 256 << 10, 16, 36 << 20
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	open, begun := make(chan struct{}), make(chan struct{}, asked)
	serve(t, b, patient("send", func(context.Context, []byte) ([]byte, error) {
		begun <- struct{}{}
		<-open
		return []byte(`{}`), nil
	}), endpoint("get", echo))
	nc, _ := bustest.Outsider(t, s)
	replies := make(chan *nats.Msg, asked)
	if _, err := nc.ChanSubscribe("_INBOX.flood.*", replies); err != nil {
		t.Fatal(err)
	}
	before := heap()
	body := bytes.Repeat([]byte(" "), size)
	for i := range asked {
		if err := nc.PublishRequest("hf.svc.ledger.send.harness.h", "_INBOX.flood.1", body); err != nil {
			t.Fatal(err)
		}
		if i%atOnce != atOnce-1 {
			continue
		}
		// of the same connection, so the service has taken all that were sent before
		if m, err := nc.Request("hf.svc.ledger.get.bob", []byte(`{}`), bustest.Patience); err != nil {
			t.Fatal(m, err)
		}
	}
	for range atOnce {
		bustest.Receive(t, begun, "a request in progress")
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d MiB of requests take %d MiB, want at most %d", asked*size>>20, grown>>20, most>>20)
	}
	close(open)
	handled := 0
	for range asked {
		switch m := bustest.Receive(t, replies, "a reply"); m.Header.Get(errorCode) {
		case "":
			handled++
		case "503":
		default:
			t.Errorf("replied %v", m.Header)
		}
	}
	if handled < atOnce || handled > atOnce+(8<<20)/size {
		t.Errorf("%d requests are handled, want %d and 8 MiB more", handled, atOnce)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
