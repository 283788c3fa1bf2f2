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
	"github.com/holdfast-dev/holdfast/internal/bus/park"
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
	// of 430 KB each
	const commits = 20
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
	if got := reasons(all); len(got) > 2*parkedReasonsMax ||
		!strings.HasPrefix(got, "event 0: bad ; event 2: bad ä; ") ||
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
		f.count.parkedLate.Load() != 1 {
		t.Errorf("document %s, %d not parked in time", st, f.count.parkedLate.Load())
	}
	defer natstest.Background(t, f.parkLate)()
	if err := w.bus.Layout.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "it to be parked later", func() bool { n, _ := w.parkedUsage(); return n == 1 })
	if n := f.count.parkFailed.Load(); n != 0 {
		t.Errorf("%d not parked", n)
	}
}

// TestAFullStoreDelaysWhatIsParkedLate: a message that the broker has no room for is parked when there is room again.
func TestAFullStoreDelaysWhatIsParkedLate(t *testing.T) {
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
	room := func(n int64) {
		info, err := js.StreamInfo(w.bus.Cell().ParkedStream())
		if err == nil {
			info.Config.Discard, info.Config.MaxMsgs = nats.DiscardNew, n
			_, err = js.UpdateStream(&info.Config)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	room(1)
	f := w.folder()
	for i := range 2 {
		f.late.add(park.Parked{Why: "malformed", Ref: ref, Seq: uint64(i + 1), Body: []byte("x")})
	}
	defer natstest.Background(t, f.parkLate)()
	natstest.Until(t, "the second one to be refused", func() bool {
		info, err := js.StreamInfo(w.bus.Cell().ParkedStream())
		return err == nil && info.State.Msgs == 1 && f.late.left() == 0
	})
	room(2)
	natstest.Until(t, "it to be parked", func() bool { n, _ := w.parkedUsage(); return n == 2 })
	if n := f.count.parkFailed.Load(); n != 0 {
		t.Errorf("%d not parked", n)
	}
}

// left returns how many messages wait.
func (l *lateParked) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// TestWhatIsParkedLateHasALimit: messages that wait to be parked are limited in number and in bytes. Those without room
// are counted and reported, and so are those that wait when the process ends.
func TestWhatIsParkedLateHasALimit(t *testing.T) {
	large := make([]byte, parkLateBytesMax/4)
	for name, x := range map[string]struct {
		body       []byte
		sent, kept int
	}{"many": {nil, parkLateMax + 3, parkLateMax}, "large": {large, 7, 4}} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(natstest.Bus(t, natstest.Start(t)), Default(), zerolog.Nop())
			for i := range x.sent {
				f.late.add(park.Parked{Why: "malformed", Ref: ref, Seq: uint64(i), Body: x.body})
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := f.parkLate(ended); err != nil {
				t.Fatal(err)
			}
			if n := f.count.parkFailed.Load(); n != uint64(x.sent) || len(f.late.waiting) > 0 || f.late.size != 0 {
				t.Errorf("%d of %d not parked, %d wait", n, x.sent, len(f.late.waiting))
			}
			for range x.sent {
				f.late.add(park.Parked{Body: x.body})
			}
			if len(f.late.waiting) != x.kept || f.late.lost != x.sent-x.kept {
				t.Errorf("%d of %d wait, %d have no room", len(f.late.waiting), x.sent, f.late.lost)
			}
		})
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
