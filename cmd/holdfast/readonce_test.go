package main

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
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

// large stores documents of this size on a broker.
func large(t *testing.T, b *bus.Bus, documents, size int) {
	t.Helper()
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
}

// TestDoctorReadsDocumentsOnce: the comparison with the log and the counts need the same documents, which are most of
// what doctor reads.
func TestDoctorReadsDocumentsOnce(t *testing.T) {
	const documents, size = 40, 100 << 10
	srv := natstest.Start(t)
	large(t, natstest.Bus(t, srv), documents, size)
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

// TestDoctorOfALargeCell: doctor shows what the ledger has counted, with its age, and reads no document. Before a
// ledger has counted it says so. With --read-all it reads every document.
func TestDoctorOfALargeCell(t *testing.T) {
	const documents, size = 90, 100 << 10
	srv := natstest.Start(t)
	b := natstest.Bus(t, srv)
	large(t, b, documents, size)
	url, sent := counted(t, srv.URL())
	c := &upCell{t: t, note: health.Note{NATS: url}}
	doctor := func(args ...string) (map[string]finding, int64) {
		before := sent.Load()
		return c.doctor(args...), sent.Load() - before
	}
	found, n := doctor()
	expect(t, found, "counted", levelNote, "no ledger has counted the sessions of this cell yet")
	expect(t, found, "truth", levelNote, "no ledger has compared the documents with the log yet")
	if _, some := found["sessions"]; some || n > size || found["counted"].Do != readAllAdvice {
		t.Errorf("before a ledger has counted: %d bytes, %+v", n, found)
	}
	l, err := ledger.New(b, ledger.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	natstest.Until(t, "the ledger to count", func() bool {
		x, err := ledger.LoadTally(t.Context(), b.KV)
		return err == nil && x.Sessions == documents
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	found, n = doctor()
	expect(t, found, "sessions", levelOK, "90 sessions, 0 with an open question, seen ")
	expect(t, found, "truth", levelOK, "the log has all that 90 documents know, seen ")
	expect(t, found, "orphans", levelOK, "none")
	if n > size {
		t.Errorf("the broker sent %d bytes, more than a document", n)
	}
	found, n = doctor("--read-all")
	expect(t, found, "sessions", levelOK, "90 sessions, 0 with an open question")
	if n < documents*size || strings.Contains(found["sessions"].Found, "seen") {
		t.Errorf("--read-all: the broker sent %d bytes, %+v", n, found["sessions"])
	}
}

// TestDoctorOnATally: a count has its age. An error is reported as wrong however long ago it was seen, and a count that
// is old is never reported as ok.
func TestDoctorOnATally(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	now := time.Unix(1_000_000, 0)
	report := func(x *ledger.Tally, lost ...ledger.Lost) map[string]finding {
		p := &patient{app: &app{}, bus: b}
		if err := p.reportTally(t.Context(), x, lost, now); err != nil {
			t.Fatal(err)
		}
		found := map[string]finding{}
		for _, f := range p.found {
			found[f.Check] = f
		}
		return found
	}
	some := ledger.SomeOf([]string{"h/s"})
	bad := &ledger.Tally{At: now.Add(-12 * time.Second), Sessions: 3, Waiting: 1, Orphans: some, Ahead: some,
		Compared: &ledger.Compared{At: now.Add(-time.Hour), Documents: 3, Strays: map[string]uint64{"hf.log.*": 7},
			StraysLeft: 1}}
	found := report(bad)
	expect(t, found, "sessions", levelOK, "3 sessions, 1 with an open question, seen 12s ago")
	expect(t, found, "orphans", levelWrong, "1 open under a process that is gone: h/s, seen 12s ago")
	expect(t, found, "truth", levelWrong,
		"documents of 1 session know commits beyond the end of the log: h/s, seen 12s")
	expect(t, found, "strays", levelNote, `2 subjects of the log name no session, and retention cannot remove their `+
		`messages: "hf.log.*" (last at 7) and 1 more, seen 1h00m ago`)
	bad.Ahead, bad.Compared.Wrong = ledger.Some{}, some
	expect(t, report(bad), "truth", levelWrong,
		"1 document missing, damaged or older than what was folded: h/s, seen 1h00m ago")
	bad.Compared.Wrong = ledger.Some{}
	expect(t, report(bad), "truth", levelOK, "the log has all that 3 documents know, seen 1h00m ago")
	expect(t, report(bad, ledger.Lost{Ref: events.Ref{Harness: "h", Session: "s"}, Known: 9}), "truth", levelWrong,
		"the log has lost commits of 1 session: h/s (known up to 9, the log ends with 0)")
	bad.Compared = nil
	expect(t, report(bad), "truth", levelNote, "no ledger has compared")

	old := &ledger.Tally{At: now.Add(-3 * time.Hour), Sessions: 3, Orphans: some,
		Compared: &ledger.Compared{At: now.Add(-4 * time.Hour), Documents: 3}}
	found = report(old)
	expect(t, found, "counted", levelNote, "last counted 3h00m ago: what follows may have changed")
	expect(t, found, "orphans", levelWrong, "h/s, seen 3h00m ago")
	for check, f := range found {
		// asked now
		if f.Level == levelOK && check != "set aside" {
			t.Errorf("%s: %+v, of what was seen long ago", check, f)
		}
	}
}

// TestWhatTheDoctorReadsItself: doctor reads all documents of a small cell.
func TestWhatTheDoctorReadsItself(t *testing.T) {
	type stream = layout.StreamState
	for name, c := range map[string]struct {
		log, state stream
		all        bool
	}{
		"small":                {stream{Subjects: 2500}, stream{Subjects: 2500, Bytes: 8 << 20}, true},
		"many keys":            {stream{}, stream{Subjects: 5001}, false},
		"many ended sessions":  {stream{Subjects: 5001}, stream{}, false},
		"few, large documents": {stream{}, stream{Bytes: 8<<20 + 1}, false},
	} {
		if got := readsAll(layout.Inspection{Streams: []stream{c.log, c.state}}); got != c.all {
			t.Errorf("%s: %v, want %v", name, got, c.all)
		}
	}
}
