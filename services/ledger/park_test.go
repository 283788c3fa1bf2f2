package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// raw returns a message of the log as any client may send it.
func (w *world) raw(r events.Ref, header nats.Header, body string) bus.Message {
	w.t.Helper()
	return bus.Message{Subject: w.bus.Cell().LogSubject(r, events.WriterHarness), Header: header, Body: []byte(body)}
}

// parkedUsage returns how many messages and bytes the stream of parked input holds.
func (w *world) parkedUsage() (msgs, size uint64) {
	w.t.Helper()
	found, err := w.bus.Layout.Inspect(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range found.Streams {
		if s.Name == w.bus.Cell().ParkedStream() {
			return s.Msgs, s.Bytes
		}
	}
	w.t.Fatal("no such stream")
	return 0, 0
}

// TestParkedOnce: a commit of 2,000 unreadable facts is parked once, with its facts and reasons, and not 2,000 times; a
// batch parks a limited number of bytes, and the rest is parked without its body, which is in the log.
func TestParkedOnce(t *testing.T) {
	w := newWorld(t)
	fact := `{"specversion":"1.0","id":"x","source":"/harness/h/1","type":"holdfast.turn.started","subject":"t",` +
		`"session":"s","epoch":1,"data":{"turn":` + strings.Repeat("7", 80) + `}}`
	body := "[" + strings.Repeat(fact+",", events.CommitFactsMax-1) + fact + "]"
	const commits = 20 // of 430 KB each
	f := w.folder()
	var ms []bus.Message
	for i := range commits {
		m := w.raw(ref, nil, body)
		m.Seq = uint64(i + 1)
		ms = append(ms, m)
	}
	w.fold(f, ms...)
	msgs, size := w.parkedUsage()
	if msgs != commits || size > parkedBytesMax+1<<20 {
		t.Errorf("%d parked messages of %d bytes for %d commits", msgs, size, commits)
	}
	if n := f.count.parked.Load(); n != commits*events.CommitFactsMax {
		t.Errorf("%d facts are counted as parked", n)
	}
}

// TestReasonsAndRanges: the reasons of a commit are limited for every commit.
func TestReasonsAndRanges(t *testing.T) {
	var all []parked
	for _, i := range []int{0, 1, 2, 3, 7, 9, 10} {
		all = append(all, parked{1, i, session.ParkMalformed, errors.New("no fact")})
	}
	if got := ranges(all); got != "0-3,7,9-10" {
		t.Errorf("ranges %s", got)
	}
	if got := ranges([]parked{{1, -1, session.ParkMalformed, errors.New("no batch")}}); got != "" {
		t.Errorf("ranges of a whole commit %q", got)
	}
	all = nil
	for i := range events.CommitFactsMax {
		all = append(all, parked{1, 2 * i, session.ParkMalformed, fmt.Errorf("bad %s", strings.Repeat("ä", i))})
	}
	if got := reasons(all); len(got) > 2*parkedReasonsMax || !strings.HasPrefix(got, "fact 0: bad ; fact 2: bad ä; ") ||
		!strings.Contains(got, " more") {
		t.Errorf("reasons of %d bytes: %.80s … %s", len(got), got, got[max(len(got)-40, 0):])
	}
	if got := ranges(all); len(got) > 2*parkedRangesMax || !strings.HasSuffix(got, "...") {
		t.Errorf("ranges of %d bytes", len(got))
	}
}

// TestDocumentsAreStoredWithoutParking: without the stream of parked input, documents are stored all the same.
func TestDocumentsAreStoredWithoutParking(t *testing.T) {
	w := newWorld(t)
	nc, err := nats.Connect(w.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(w.bus.Cell().ParkedStream()); err != nil {
		t.Fatal(err)
	}
	f := w.folder()
	m := w.raw(ref, nil, "no batch")
	m.Seq = 1
	ctx, cancel := context.WithTimeout(t.Context(), 60*parkPatience)
	defer cancel()
	if n, err := f.Batch(ctx, []bus.Message{m}); err != nil || n != 1 || ctx.Err() != nil {
		t.Fatalf("%d documents are stored, %v; the batch waits for what cannot be parked: %v", n, err, ctx.Err())
	}
	if st := w.load(events.SessionKey(ref)); !strings.Contains(string(st), `"parked":1`) ||
		f.count.parkFailed.Load() != 1 {
		t.Errorf("document %s, %d not parked", st, f.count.parkFailed.Load())
	}
}

// A message whose subject names no session is parked with its harness, if that can be read.
func TestAStrayNamesItsHarness(t *testing.T) {
	f := newFolder(natstest.Bus(t, natstest.Start(t)), Default(), zerolog.Nop())
	for subject, want := range map[string]string{
		"hf.log.my-agent.=ZZ.harness": "my-agent/unknown",
		"hf.log.=ZZ.s.harness":        "unknown/unknown",
		"hf.log.=FF.=ZZ.harness":      "unknown/unknown",
	} {
		ts, strays := f.group([]bus.Message{{Subject: subject, Body: []byte("[]"), Seq: 1}})
		if len(ts) != 0 || len(strays) != 1 || strays[0].Ref.String() != want {
			t.Errorf("%s: %d sessions, %+v, want %s", subject, len(ts), strays, want)
		}
	}
}
