package bus_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestNamesAreChecked: a session whose name is longer than a name may be is refused before the broker is asked.
func TestNamesAreChecked(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := within(t, patience)
	long := events.Ref{Harness: "h", Session: strings.Repeat("s", events.TokenBytesMax+1)}
	if _, err := b.Head(ctx, long); err == nil {
		t.Error("head")
	}
	if _, err := b.Read(ctx, long, 0); err == nil {
		t.Error("read")
	}
	if err := b.PurgeSession(ctx, long, 1); err == nil || errors.Is(err, bus.ErrNotFound) {
		t.Errorf("purge: %v", err)
	}
	if _, err := b.PutObject(ctx, long, []byte("x")); err == nil {
		t.Error("put object")
	}
	if _, err := b.Append(ctx, long, events.WriterHarness, 0, facts("x")); err == nil {
		t.Error("append")
	}
}

// TestEndsOfSessions: the ends of all sessions, of those of one harness, and of one that has none.
func TestEndsOfSessions(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := within(t, patience)
	other := events.Ref{Harness: "other", Session: "s"}
	last := mustAppend(t, b, session, mustAppend(t, b, session, 0, "a"), "b")
	evs := []events.Event{fact("c", other)}
	third, err := b.Append(ctx, other, events.WriterHarness, 0, evs)
	if err != nil {
		t.Fatal(err)
	}
	for harness, want := range map[string]map[events.Ref]uint64{
		"": {session: last, other: third}, "h": {session: last}, "other": {other: third}, "none": {},
	} {
		if got, err := b.Heads(ctx, harness); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", harness, got, err)
		}
	}
	if head, err := b.Head(ctx, events.Ref{Harness: "h", Session: "none"}); head != 0 || err != nil {
		t.Errorf("a session without commits: %d, %v", head, err)
	}
}

// TestALeaseKeepsItsValue: a renewal without a value keeps the one that there is, and a lease that was lost or
// given back is not renewed any more.
func TestALeaseKeepsItsValue(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := within(t, patience)
	lease, err := b.AcquireLease(ctx, "harness.h.1", []byte("first"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range [][]byte{nil, []byte("second"), nil} {
		if err := lease.Renew(ctx, value); err != nil {
			t.Fatal(err)
		}
		want := "first"
		if value != nil {
			want = "second"
		}
		if e, err := b.Load(ctx, bus.Leases, "harness.h.1"); err != nil || value != nil && string(e.Value) != want {
			t.Errorf("%s, %v", e.Value, err)
		}
	}
	if e, err := b.Load(ctx, bus.Leases, "harness.h.1"); err != nil || string(e.Value) != "second" {
		t.Errorf("after a renewal without a value: %s, %v", e.Value, err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lease.Renew(ctx, []byte("late")); !errors.Is(err, bus.ErrLeaseLost) {
		t.Errorf("renewed after it was given back: %v", err)
	}
	if _, err := b.Load(ctx, bus.Leases, "harness.h.1"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a lease that was given back: %v", err)
	}
}

// TestUserOfAURL: a URL that cannot be read names no user.
func TestUserOfAURL(t *testing.T) {
	for url, want := range map[string]string{
		"nats://%zz": "", "nats://host": "", "nats://ada@host": "ada", "nats://ada@one,nats://bob@two": "ada",
	} {
		if got := bus.LoginOf(url); got != want {
			t.Errorf("%s: %q", url, got)
		}
	}
}

// TestParkedWithoutItsBody: a message that is parked without its body has the body's size.
func TestParkedWithoutItsBody(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	_, js := outsider(t, s)
	for why, n := range map[string]int{"large": 7, "small": 0} {
		if err := b.Park(within(t, patience),
			bus.Parked{Why: why, Ref: session, Seq: 1, Reason: "x", Bytes: n}); err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(within(t, patience), b.Cell().ParkedStream())
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetLastMsgForSubject(within(t, patience), b.Cell().ParkedSubject(why, session))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Header.Get("Hf-Parked-Bytes"); got != map[int]string{7: "7", 0: ""}[n] {
			t.Errorf("%s: %q", why, got)
		}
	}
}
