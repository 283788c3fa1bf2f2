package main

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// counted listens before a broker, and counts the bytes that the broker sends to clients.
func counted(t *testing.T, broker string) (url string, sent *atomic.Int64) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	sent = &atomic.Int64{}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(context.Background(), "tcp",
				strings.TrimPrefix(broker, "nats://"))
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(client, io.TeeReader(server, byteCounter{sent})); _ = client.Close() }()
		}
	}()
	return "nats://" + l.Addr().String(), sent
}

// byteCounter counts what is written to it.
type byteCounter struct{ n *atomic.Int64 }

// Write implements io.Writer.
func (c byteCounter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// TestDoctorReadsDocumentsOnce: the comparison with the log and the counts need the same documents, which are most of
// what doctor reads.
func TestDoctorReadsDocumentsOnce(t *testing.T) {
	const documents, size = 40, 100 << 10
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	for i := range documents {
		s := session.New(events.Ref{Harness: "agent", Session: strings.Repeat("s", i+1)})
		s.Title = strings.Repeat("x", size)
		doc, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.KV.Store(t.Context(), kv.State, events.SessionKey(s.Ref()), doc, 0); err != nil {
			t.Fatal(err)
		}
	}
	url, sent := counted(t, srv.URL())
	var out output
	p := &Program{Args: []string{"doctor", "--nats", url, "--timeout", "1m"}, Stdout: &out, Stderr: io.Discard}
	// no service runs
	if code := p.Run(t.Context()); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
	if !strings.Contains(out.String(), "40 sessions, 0 with an open question") ||
		!strings.Contains(out.String(), "the log has all that 40 documents know") {
		t.Errorf("not all were read:\n%s", out.String())
	}
	if n := sent.Load(); n < documents*size || n > documents*size*3/2 {
		t.Errorf("the broker sent %d bytes for documents of %d", n, documents*size)
	}
}
