package log_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAStrayIsNoFilter: the broker stores messages whose subjects have the tokens * and >, or are no UTF-8. They are
// found and left, and the commits of the sessions that such a subject selects as a filter are neither read nor removed.
func TestAStrayIsNoFilter(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	other := events.Ref{Harness: bustest.Session.Harness, Session: "other"}
	bustest.MustAppend(t, b, bustest.Session, 0, "a", "b")
	bustest.MustAppend(t, b, other, 0, "c")
	before := len(bustest.MustRead(t, b, bustest.Session, 0))
	// more than are read one by one
	const each = 6
	for range each {
		for _, subject := range []string{"hf.log.h.*.harness", "hf.log.h.>.harness", "hf.log.h.\xff.harness",
			"hf.log.h.a!7.harness"} {
			bustest.RawPublish(t, s, subject, "NATS/1.0\r\n\r\n", "x")
		}
	}
	_, js := bustest.Outsider(t, s)
	st, err := js.Stream(bustest.Within(t, bustest.Patience), b.Cell().LogStream())
	if err != nil {
		t.Fatal(err)
	}
	had := st.CachedInfo().State.Msgs
	odd, err := b.Log.Unselectable(bustest.Within(t, bustest.Patience))
	if last := had - 3; err != nil || len(odd) != 3 || odd["hf.log.h.*.harness"] != last ||
		odd["hf.log.h.>.harness"] != last+1 || odd["hf.log.h.\xff.harness"] != last+2 {
		t.Errorf("no filter can select %v, %v; want three, the first at %d", odd, err, last)
	}
	heads, err := b.Log.Heads(bustest.Within(t, bustest.Patience), "")
	if err != nil || len(heads) != 2 || heads[bustest.Session] == 0 || heads[other] == 0 {
		t.Errorf("the ends of sessions: %v, %v; want two", heads, err)
	}
	kept := make(chan string, had+1)
	removed, left, err := b.Log.PurgeStrays(bustest.Within(t, bustest.Patience),
		func(_ context.Context, m bus.Message) error {
			kept <- m.Subject
			return nil
		})
	if err != nil || removed != 1 || left != 3 {
		t.Errorf("%d subjects removed, %d left, %v; want 1 and 3", removed, left, err)
	}
	if len(kept) != each {
		t.Errorf("%d messages were kept, want %d", len(kept), each)
	}
	for range len(kept) {
		if subject := <-kept; subject != "hf.log.h.a!7.harness" {
			t.Errorf("a message of %s was kept", subject)
		}
	}
	info, err := st.Info(bustest.Within(t, bustest.Patience))
	if err != nil || info.State.Msgs != had-each {
		t.Errorf("%d of %d messages are left, %v", info.State.Msgs, had, err)
	}
	if n := len(bustest.MustRead(t, b, bustest.Session, 0)); n != before {
		t.Errorf("%d of %d commits of the session are left", n, before)
	}
	if n := len(bustest.MustRead(t, b, other, 0)); n != 1 {
		t.Errorf("%d of 1 commits of the other session are left", n)
	}
}

// TestStraysOfADamagedLog: where a reader stays silent though the broker says that there is more, the search for strays
// ends.
func TestStraysOfADamagedLog(t *testing.T) {
	// it mostly waits
	t.Parallel()
	b := bustest.Scripted(t, bustest.Readers(2, func(int) []bustest.Reply {
		return []bustest.Reply{bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "", 4, 1, 1)}
	}, nil)).Open()
	removed, left, err := b.Log.PurgeStrays(bustest.Within(t, bustest.Patience),
		func(context.Context, bus.Message) error { return nil })
	if err != nil || removed+left != 0 {
		t.Errorf("%d subjects removed, %d left, %v", removed, left, err)
	}
}

// TestMoreStraysThanAreKept: the search for strays keeps a limited number of them, and ends with more in a damaged log,
// too.
func TestMoreStraysThanAreKept(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const kept = 50_000
	// made before they are asked for: a reader waits 1 s for the first one
	var all []bustest.Reply
	for i := range kept + 1 {
		all = append(all, bustest.Delivery("HF_LOG", fmt.Sprintf("hf.log.*.%d", i), "", i+1, i+1, 1))
	}
	// to the present reader
	delivered := false
	readers := bustest.Readers(kept+2, func(int) []bustest.Reply {
		if delivered {
			return bustest.Silence
		}
		delivered = true
		return all
	}, nil)
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		delivered = delivered && !a.Is("CONSUMER.CREATE")
		return readers(a)
	}).Open()
	odd, err := b.Log.Unselectable(bustest.Within(t, bustest.Patience))
	if err != nil || len(odd) != kept {
		t.Errorf("%d subjects, %v; want %d", len(odd), err, kept)
	}
}

// TestAStrayThatIsNotKeptStays: when keep fails for one message of a subject, be it once, the subject stays as it is.
func TestAStrayThatIsNotKeptStays(t *testing.T) {
	const subject = "hf.log.h.a!7.harness"
	// the first ones are read one by one, the later ones together
	for _, failing := range []int{1, 2, 5, 6} {
		s := natstest.Start(t)
		b := natstest.Bus(t, s)
		for range 6 {
			bustest.RawPublish(t, s, subject, "NATS/1.0\r\n\r\n", "x")
		}
		calls, trouble := 0, errors.New("not parked")
		removed, left, err := b.Log.PurgeStrays(bustest.Within(t, bustest.Patience),
			func(context.Context, bus.Message) error {
				if calls++; calls == failing {
					return trouble
				}
				return nil
			})
		if !errors.Is(err, trouble) || removed+left != 0 {
			t.Errorf("message %d is not kept: %d subjects removed, %d left, %v", failing, removed, left, err)
		}
		_, js := bustest.Outsider(t, s)
		st, err := js.Stream(bustest.Within(t, bustest.Patience), b.Cell().LogStream())
		if err != nil {
			t.Fatal(err)
		}
		if n := st.CachedInfo().State.Msgs; n != 6 {
			t.Errorf("message %d is not kept: %d of 6 are left", failing, n)
		}
	}
}

// TestAStrayThatIsRemovedMeanwhile: another process removes the messages of a subject while they are kept.
func TestAStrayThatIsRemovedMeanwhile(t *testing.T) {
	const subject = "hf.log.h.a!7.harness"
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	for range 6 {
		bustest.RawPublish(t, s, subject, "NATS/1.0\r\n\r\n", "x")
	}
	_, js := bustest.Outsider(t, s)
	st, err := js.Stream(bustest.Within(t, bustest.Patience), b.Cell().LogStream())
	if err != nil {
		t.Fatal(err)
	}
	removed, left, err := b.Log.PurgeStrays(bustest.Within(t, bustest.Patience),
		func(ctx context.Context, _ bus.Message) error { return st.Purge(ctx) })
	if err != nil || removed != 1 || left != 0 {
		t.Errorf("%d subjects removed, %d left, %v; want 1 and 0", removed, left, err)
	}
}

// TestWithoutTheEndsOfSessions: what cannot be read is an error, not a log without sessions or strays.
func TestWithoutTheEndsOfSessions(t *testing.T) {
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Trouble }).Open()
	ctx := bustest.Within(t, bustest.Patience)
	if heads, err := b.Log.Heads(ctx, ""); err == nil || heads != nil {
		t.Errorf("heads %v, %v", heads, err)
	}
	if _, _, err := b.Log.PurgeStrays(ctx, nil); err == nil {
		t.Error("strays are purged")
	}
	if _, err := b.Log.Unselectable(ctx); err == nil {
		t.Error("strays are found")
	}
}

// TestEndsAreOfSessions: a token can decode to an id that JSON cannot carry, which no session has. Its end is not among
// those of sessions: a read of that session fails.
func TestEndsAreOfSessions(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	bustest.MustAppend(t, b, bustest.Session, 0, "a")
	for _, subject := range []string{"hf.log.h.=FF.harness", "hf.log.=FF.s.harness", "hf.log.h.=ZZ.harness"} {
		bustest.RawPublish(t, s, subject, "NATS/1.0\r\n\r\n", "x")
	}
	heads, err := b.Log.Heads(bustest.Within(t, bustest.Patience), "")
	if err != nil || len(heads) != 1 || heads[bustest.Session] == 0 {
		t.Errorf("the ends of sessions: %v, %v; want one", heads, err)
	}
}
