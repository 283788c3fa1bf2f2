package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// stored returns the messages of a stream, as any client reads them.
func stored(t *testing.T, url, stream string) []*jetstream.RawStreamMsg {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	var ms []*jetstream.RawStreamMsg
	for seq := range s.CachedInfo().State.LastSeq {
		m, err := s.GetMsg(t.Context(), seq+1)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	return ms
}

func fed(t *testing.T, url string) []string {
	t.Helper()
	var fed []string
	for _, m := range stored(t, url, "HF_FEED") {
		fed = append(fed, strings.TrimPrefix(m.Subject, "hf.feed.")+" "+m.Header.Get("Hf-Seq"))
	}
	return fed
}

// TestFeed: the active ledger feeds every counted fact, also of commits that a predecessor folded and did not feed
// before it died; facts of other commits are not fed again.
func TestFeed(t *testing.T) {
	server := natstest.Start(t)
	w := &world{t: t, bus: natstest.Bus(t, server), seq: map[events.Ref]uint64{}}
	w.append(ref, events.SessionOpened{Incarnation: "1"})
	w.append(ref, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	w.append(ref, events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"}, events.ToolCompleted{Call: "never"})
	w.append(ref, events.TurnCompleted{Turn: "t1"})
	ms := w.delivered(4)
	st := session.New(ref)
	// as the predecessor did
	for i := range 3 {
		c := w.bus.Log.Decode(ms[i])
		st.Fold(&c)
	}
	doc, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.bus.KV.Store(t.Context(), kv.State, events.SessionKey(ref), doc, 0); err != nil {
		t.Fatal(err)
	}
	w.fold(w.folder(), ms[1:]...)
	want := []string{"turn.started 2", "tool.started 3", "turn.completed 4", "tool.failed 4"}
	if got := fed(t, server.URL()); !slices.Equal(got, want) {
		t.Errorf("fed %q, want %q", got, want)
	}
}

// TestParked: unreadable input is stored for an operator, each item unchanged, with the reason.
func TestParked(t *testing.T) {
	server := natstest.Start(t)
	w := &world{t: t, bus: natstest.Bus(t, server), seq: map[events.Ref]uint64{}}
	w.append(ref, events.SessionOpened{Incarnation: "1"})
	odd := func(n int) {
		w.appendOdd(ref, events.Event{ID: fmt.Sprint("odd", n), Source: events.HarnessSource("h1", "1"),
			Kind: "tool.started", Subject: "c9", Session: "s1", Epoch: 1, Data: fmt.Appendf(nil, `{"call":%d}`, n)})
	}
	odd(1)
	w.append(ref, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	odd(2)
	ms := w.delivered(4)
	w.fold(w.folder(), ms...)
	parked := stored(t, server.URL(), "HF_PARKED")
	if len(parked) != 2 {
		t.Fatalf("%d are parked", len(parked))
	}
	for i, m := range []bus.Message{ms[1], ms[3]} {
		p := parked[i]
		if !bytes.Equal(p.Data, m.Body) || !strings.Contains(p.Header.Get("Hf-Parked-Reason"), "event 0: ") ||
			p.Header.Get("Content-Type") != m.Header["Content-Type"][0] {
			t.Errorf("%s %v: %s", p.Subject, p.Header, p.Data)
		}
	}
}

// TestADocumentOfAnotherSessionIsNone: a document of another session under a session's key is rebuilt.
func TestADocumentOfAnotherSessionIsNone(t *testing.T) {
	w := newWorld(t)
	other := session.New(events.Ref{Harness: "h1", Session: "other"})
	other.Epoch, other.Title, other.UpdatedAt = 1, "another one", time.Unix(1000, 0)
	doc, err := other.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.bus.KV.Store(t.Context(), kv.State, events.SessionKey(ref), doc, 0); err != nil {
		t.Fatal(err)
	}
	w.open(ref)
	w.fold(w.folder(), w.delivered(2)...)
	if st, err := session.Decode(w.load(events.SessionKey(ref))); err != nil || st.Ref() != ref || st.Commits != 2 ||
		st.Title != "a session" {
		t.Errorf("%v %+v", err, st)
	}
}
