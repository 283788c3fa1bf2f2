package kv_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestAFailedReadDeletesNothing: a watch that cannot ask the leader, or that finds no bucket at all, tells of no
// deletion.
func TestAFailedReadDeletesNothing(t *testing.T) {
	known := []kv.Entry{{Key: "harness.h.1", Rev: 1}}
	for name, answer := range map[string][]bustest.Reply{"no stream": bustest.NoStream, "an error": bustest.Trouble} {
		b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return answer }).Open()
		calls := 0
		fn := func(kv.Update) error { calls++; return nil }
		if err := b.KV.Expire(bustest.Within(t, bustest.Patience), kv.Leases, known, nil, fn); err == nil || calls > 0 {
			t.Errorf("%s, an entry that should have ended: %v, %d calls", name, err, calls)
		}
		if err := b.KV.CaughtUp(bustest.Within(t, bustest.Patience), kv.Leases, known, fn); err == nil || calls > 0 {
			t.Errorf("%s, an entry that was not seen: %v, %d calls", name, err, calls)
		}
	}
}

// TestErrorsOfAWatchsCallback: the error with which the callback takes the end of an entry ends the watch.
func TestErrorsOfAWatchsCallback(t *testing.T) {
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.NotFound }).Open()
	mine := errors.New("mine")
	known := []kv.Entry{{Key: "harness.h.1", Rev: 1}, {Key: "harness.h.2", Rev: 2}}
	calls := 0
	fn := func(kv.Update) error { calls++; return mine }
	if err := b.KV.Expire(bustest.Within(t, bustest.Patience), kv.Leases, known, nil, fn); !errors.Is(err, mine) ||
		calls != 1 {
		t.Errorf("an entry that has ended: %v after %d", err, calls)
	}
	calls = 0
	if err := b.KV.CaughtUp(bustest.Within(t, bustest.Patience), kv.Leases, known, fn); !errors.Is(err, mine) ||
		calls != 1 {
		t.Errorf("an entry that was not seen: %v after %d", err, calls)
	}
}

// TestADeletedEntryEndsOnce: an entry that was shown as deleted is not shown as expired when it would have ended.
func TestADeletedEntryEndsOnce(t *testing.T) {
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.NotFound }).Open()
	err := b.KV.Expire(bustest.Within(t, bustest.Patience), kv.Leases, nil, []string{"harness.h.1"},
		func(u kv.Update) error {
			return errors.New(bustest.Text(u))
		})
	if err != nil {
		t.Error(err)
	}
}

// TestAWatchThatWaitsForAnEndIsNotInterrupted: the consumer that delivered a lease reports its end. In a cell with
// users a watch has to ask for it.
func TestAWatchThatWaitsForAnEndIsNotInterrupted(t *testing.T) {
	// TestAWatchThatWaitsForAnEndIsNotInterrupted: the consumer that delivered a lease reports its end. In a cell with
	// users a watch has to ask for it.
	t.Parallel()
	s, all := bustest.WithUsers(t)
	nc, _ := bustest.LoggedIn(t, s)
	var made atomic.Int64
	if _, err := nc.Subscribe("$JS.API.CONSUMER.CREATE.KV_hf_leases.>", func(*nats.Msg) { made.Add(1) }); err != nil ||
		nc.Flush() != nil {
		t.Fatal(err)
	}
	bustest.Acquire(t, all[0], "harness.h.1", time.Second)
	updates, _ := bustest.Watching(t, all[0], kv.Leases)
	bustest.Expect(t, updates, "harness.h.1=mine", "ready", "harness.h.1 expired")
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n := made.Load(); n != 1 {
		t.Errorf("the watch has made %d consumers, want 1", n)
	}
}

// TestAnEndIsDeliveredAfterAnError: the read of an entry that has ended fails once; the watch begins again and
// delivers the end.
func TestAnEndIsDeliveredAfterAnError(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s, all := bustest.WithUsers(t)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, "nats://u:pw@"+p.Addr[len("nats://"):])
	bustest.Acquire(t, all[0], "harness.h.1", time.Second)
	updates, _ := bustest.Watching(t, b, kv.Leases)
	bustest.Expect(t, updates, "harness.h.1=mine", "ready")
	lost := p.Lose(false, `"err_code":(10037)`, 1, "10060")
	bustest.Receive(t, lost, "the look to fail")
	bustest.Expect(t, updates, "harness.h.1 expired")
}

// TestADeletionIsDeliveredOnce: an interruption after a deletion does not report it again. A later entry is reported.
func TestADeletionIsDeliveredOnce(t *testing.T) {
	s := natstest.Start(t)
	writer, p := natstest.Bus(t, s), bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	rev := bustest.Store(t, writer, kv.State, "session.h.gone", "1", 0)
	updates, _ := bustest.Watching(t, b, kv.State)
	bustest.Expect(t, updates, "session.h.gone=1", "ready")
	if err := writer.KV.Delete(bustest.Background(t), kv.State, "session.h.gone", rev); err != nil {
		t.Fatal(err)
	}
	bustest.Expect(t, updates, "session.h.gone deleted")
	_, js := bustest.Outsider(t, s)
	stream, err := js.Stream(bustest.Within(t, bustest.Patience), "KV_hf_state")
	// as the broker removes the mark of a deletion, later
	if err == nil {
		err = stream.Purge(bustest.Within(t, bustest.Patience),
			jetstream.WithPurgeSubject("$KV.hf_state.session.h.gone"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		p.Cut()
		key := fmt.Sprintf("session.h.%d", i)
		bustest.Store(t, writer, kv.State, key, "1", 0)
		bustest.Expect(t, updates, key+"=1")
	}
}

// TestTheTTLOfAnEntry is shown with it, and not with its deletion.
func TestTheTTLOfAnEntry(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	rev := bustest.MustStore(t, b, bustest.Key, "x", 0)
	v := kv.View{Key: "work.h.s", Value: []byte("x"), GuardKey: bustest.Key, GuardRev: rev, TTL: time.Minute}
	if _, err := b.KV.StoreView(bustest.Within(t, bustest.Patience),
		v).Wait(bustest.Within(t, bustest.Patience)); err != nil {
		t.Fatal(err)
	}
	if e, err := b.KV.Load(bustest.Within(t, bustest.Patience), kv.State, v.Key); err != nil || e.TTL != time.Minute {
		t.Errorf("%s, %v", e.TTL, err)
	}
	updates := make(chan kv.Update, 100)
	ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
	defer cancel()
	go func() {
		_ = b.KV.Watch(ctx, kv.State, []string{"work.>"}, func(u kv.Update) error { updates <- u; return nil })
	}()
	bustest.Expect(t, updates, "work.h.s=x", "ready")
	v.Value = nil
	if _, err := b.KV.StoreView(bustest.Within(t, bustest.Patience),
		v).Wait(bustest.Within(t, bustest.Patience)); err != nil {
		t.Fatal(err)
	}
	if u := bustest.Receive(t, updates, "the deletion"); !u.Deleted || u.TTL != 0 {
		t.Errorf("%s with a TTL of %s", bustest.Text(u), u.TTL)
	}
}

// TestAWatchEndsWithItsContext: entries that were delivered are not reported after the context has ended.
func TestAWatchEndsWithItsContext(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	for i := range 300 {
		bustest.MustStore(t, b, fmt.Sprintf("session.h.%d", i), "x", 0)
	}
	for range 5 {
		ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
		n := 0
		if err := b.KV.Watch(ctx, kv.State, nil, func(kv.Update) error { n++; cancel(); return nil }); err != nil ||
			n != 1 {
			t.Errorf("shown %d, %v; want 1", n, err)
		}
	}
}

// TestAWatchOfLeasesKnowsTheTime: without the broker's time it cannot be said when a lease ends, so nothing is shown
// before.
func TestAWatchOfLeasesKnowsTheTime(t *testing.T) {
	var asks, early atomic.Int64
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.INFO"):
			if asks.Add(1) < 3 {
				return bustest.Trouble
			}
			return bustest.OneReply(fmt.Sprintf(`{"ts":%q}`, time.Now().UTC().Format(time.RFC3339Nano)))
		case a.Is("CONSUMER.CREATE"):
			if asks.Load() < 3 {
				early.Add(1)
			}
			return bustest.OneReply(`{"num_pending":0}`)
		}
		return bustest.Silence
	}).Open()
	updates, _ := bustest.Watching(t, b, kv.Leases)
	bustest.Expect(t, updates, "ready")
	if early.Load() > 0 {
		t.Error("a consumer was made before the time was known")
	}
}

// TestAViewOfNoDocument: a view whose document does not exist yet is sent again when the broker did not get it.
func TestAViewOfNoDocument(t *testing.T) {
	s := natstest.Start(t)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	// sets the cell up
	natstest.Bus(t, s)
	p.Hold(true, false)
	under := b.KV.StoreView(bustest.Within(t, bustest.Patience),
		kv.View{Key: "work.h.s", Value: []byte("x"), GuardKey: bustest.Key})
	p.Cut()
	p.Hold(false, false)
	if _, err := under.Wait(bustest.Within(t, bustest.Patience)); err != nil {
		t.Error(err)
	}
}

// TestAFailedReadOfADocument: why a view was refused cannot be found out, which is not a lost race.
func TestAFailedReadOfADocument(t *testing.T) {
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		if a.Is("STREAM.MSG.GET") {
			return bustest.Trouble
		}
		return bustest.WrongLast
	}).Open()
	_, err := b.KV.StoreView(bustest.Within(t, bustest.Patience),
		kv.View{Key: "work.h.s", Value: []byte("x"), GuardKey: bustest.Key, GuardRev: 3}).Wait(
		bustest.Within(t, bustest.Patience))
	if err == nil || errors.Is(err, bus.ErrLostRace) {
		t.Errorf("%v, want the error of the look", err)
	}
}

// TestAKeyThatIsGone: a write in place of a revision that is not there any more stores nothing.
func TestAKeyThatIsGone(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	if rev, err := b.KV.Store(bustest.Within(t, bustest.Patience), kv.State, bustest.Key, []byte("x"),
		7); !errors.Is(err,
		bus.ErrLostRace) {
		t.Errorf("stored at %d, %v; want ErrLostRace", rev, err)
	}
	if e, err := b.KV.Load(bustest.Within(t, bustest.Patience), kv.State, bustest.Key); !errors.Is(err,
		bus.ErrNotFound) {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestWithoutABucket: a write to a cell that was not set up is an error, and is not repeated without end.
func TestWithoutABucket(t *testing.T) {
	// it mostly waits
	t.Parallel()
	b := bustest.BusAt(t, natstest.Start(t).URL())
	for name, call := range map[string]func(ctx context.Context) error{
		"lease": func(ctx context.Context) error {
			_, err := b.Leases.Acquire(ctx, bustest.LeaseKey, nil, time.Minute)
			return err
		},
		"view": func(ctx context.Context) error {
			_, err := b.KV.StoreView(ctx,
				kv.View{Key: "work.h.s", Value: []byte("x"), GuardKey: bustest.Key, GuardRev: 1}).Wait(ctx)
			return err
		},
		"timer": func(ctx context.Context) error {
			return b.Timers.Set(ctx, timer.Timer{What: "x", Ref: bustest.Session, Due: time.Now()})
		},
		"delete": func(ctx context.Context) error { return b.KV.Delete(ctx, kv.State, bustest.Key, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(bustest.Within(t, bustest.Patience)); !errors.Is(err, bus.ErrNotFound) {
				t.Errorf("%v, want ErrNotFound", err)
			}
		})
	}
}

// TestAFailedReadOfAnEntry: why a write was refused cannot be found out, which is not a lost race.
func TestAFailedReadOfAnEntry(t *testing.T) {
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		if a.Is("STREAM.MSG.GET") {
			return bustest.Trouble
		}
		return bustest.WrongLast
	}).Open()
	ctx := bustest.Within(t, bustest.Patience)
	if _, err := b.KV.Store(ctx, kv.State, bustest.Key, []byte("x"), 5); err == nil || errors.Is(err, bus.ErrLostRace) {
		t.Errorf("store: %v, want the error of the look", err)
	}
	if err := b.KV.List(ctx, kv.State, ">", func(kv.Entry) error { return nil }); err == nil {
		t.Error("a bucket that cannot be read is empty")
	}
}

// TestAViewOfADocumentThatIsNotStored: the broker refuses a new document. Its view, which would be accepted while there
// is no document, is not stored.
func TestAViewOfADocumentThatIsNotStored(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	_, err := b.KV.StoreDocs(ctx, []kv.Doc{{Key: bustest.Key, Value: make([]byte, 3*events.CommitBytesMax),
		Views: []kv.View{{Key: "work.h.s", Value: []byte("x"), GuardKey: bustest.Key}}}})
	if err == nil {
		t.Error("a document that is too large is stored")
	}
	if e, err := b.KV.Load(ctx, kv.State, "work.h.s"); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("%+v, %v; want ErrNotFound", e, err)
	}
}

// TestWatchWhoMayNotRead: a watch without the permission ends, and so does one of a closed connection.
func TestWatchWhoMayNotRead(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: w, password: w, permissions: {publish: ["$JS.API.STREAM.INFO.>"], subscribe: ["_INBOX.>"]}}] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
	b := bustest.BusAt(t, bustest.As(s, "w"))
	watch := func() error {
		return b.KV.Watch(bustest.Within(t, bustest.Patience), kv.State, nil, func(kv.Update) error { return nil })
	}
	if err := watch(); !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("watch: %v, want ErrForbidden", err)
	}
	b.Close()
	if err := watch(); err == nil || errors.Is(err, bus.ErrForbidden) {
		t.Errorf("watch with a closed connection: %v", err)
	}
}

// TestAWatchEndsBetweenTwoEntries: nothing is reported after the context has ended, or after an
// error, also of what has arrived.
func TestAWatchEndsBetweenTwoEntries(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	for i := range 100 {
		bustest.MustStore(t, b, fmt.Sprintf("session.h.%d", i), "x", 0)
	}
	ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
	defer cancel()
	shown := 0
	err := b.KV.Watch(ctx, kv.State, nil, func(kv.Update) error {
		shown++
		cancel()
		return nil
	})
	if err != nil || shown != 1 {
		t.Errorf("%d entries were reported, %v; want 1", shown, err)
	}
	enough := errors.New("enough")
	err = b.KV.Watch(bustest.Within(t, bustest.Patience), kv.State, nil, func(kv.Update) error {
		shown++
		return enough
	})
	if !errors.Is(err, enough) || shown != 2 {
		t.Errorf("%d entries were reported after an error, %v; want 1", shown-1, err)
	}
}

// TestADeletionOfAnUnknownKey: only a watch of every change reports it.
func TestADeletionOfAnUnknownKey(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	rev := bustest.MustStore(t, b, bustest.Key, "x", 0)
	ctx := bustest.Within(t, bustest.Patience)
	if err := b.KV.Delete(ctx, kv.State, bustest.Key, rev); err != nil {
		t.Fatal(err)
	}
	for every, watch := range map[bool]func(context.Context, kv.Bucket, []string, func(kv.Update) error) error{
		true: b.KV.WatchEvery, false: b.KV.Watch,
	} {
		unseen, enough := 0, errors.New("enough")
		err := watch(ctx, kv.State, nil, func(u kv.Update) error {
			if u.Ready {
				return enough
			}
			if u.Key != bustest.Key || !u.Deleted || !u.Unseen {
				t.Errorf("%+v", u)
			}
			unseen++
			return nil
		})
		if !errors.Is(err, enough) || (unseen == 1) != every {
			t.Errorf("every %t: %d deletions, %v", every, unseen, err)
		}
	}
}

// TestAnErrorOfAListsCallback: it ends the list and is returned unchanged, also when it looks like trouble of the
// broker.
func TestAnErrorOfAListsCallback(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	bustest.MustStore(t, b, bustest.Key, "x", 0)
	for _, own := range []error{errors.New("enough"), bus.ErrUnreachable, fmt.Errorf("mine: %w", bus.ErrUnreachable)} {
		calls := 0
		err := b.KV.List(bustest.Within(t, bustest.Patience), kv.State, ">", func(kv.Entry) error {
			calls++
			return own
		})
		if calls != 1 || err != own { //nolint:errorlint // unchanged
			t.Errorf("%v: called %d times, returned %v", own, calls, err)
		}
	}
}

// TestAListFindsWhatMovedMeanwhile: an entry is replaced while the list is read, so that it is behind the last entry of
// the beginning. The reader ends before it: it is interrupted, or the broker has stored the message and not counted it.
func TestAListFindsWhatMovedMeanwhile(t *testing.T) {
	entry := func(key string, seq int) []bustest.Reply {
		return bustest.Stored("$KV.hf_state.session.h."+key, seq, "", "x", time.Now())
	}
	delivery := func(key string, seq int) []bustest.Reply {
		return []bustest.Reply{bustest.Delivery("KV_hf_state", "$KV.hf_state.session.h."+key, "x", seq, 1, 0)}
	}
	for name, c := range map[string]struct {
		last  []bustest.Reply         // the last entry at the beginning
		pulls [][]bustest.Reply       // what each reader delivers
		next  map[int][]bustest.Reply // the entry at this place or behind it
		want  string
	}{
		// a was at 1 and is at 3 now; the reader saw b alone
		"behind the end": {entry("b", 2), [][]bustest.Reply{delivery("b", 2), delivery("a", 3)},
			map[int][]bustest.Reply{3: entry("a", 3)}, "b a"},
		// the only entry was at 2; the reader saw nothing
		"nothing was read": {entry("a", 2),
			[][]bustest.Reply{{bustest.Status("409 Consumer Deleted")}, delivery("a", 3)},
			map[int][]bustest.Reply{1: entry("a", 3)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Scripted(t, bustest.Readers(1, func(pull int) []bustest.Reply {
				if pull > len(c.pulls) {
					return bustest.Silence
				}
				return c.pulls[pull-1]
			}, func(q bustest.Question) []bustest.Reply {
				switch {
				case q.Last != "":
					return c.last
				case c.next[q.Seq] != nil:
					return c.next[q.Seq]
				}
				return bustest.NotFound
			})).Open()
			var got []string
			err := b.KV.List(bustest.Within(t, bustest.Patience), kv.State, ">", func(e kv.Entry) error {
				got = append(got, strings.TrimPrefix(e.Key, "session.h."))
				return nil
			})
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("listed %v, want %s: %v", got, c.want, err)
			}
		})
	}
}

// TestAListBehindAWriterWithoutAPauseEnds: an entry that is always replaced before a reader is level does not keep a
// list from its end.
func TestAListBehindAWriterWithoutAPauseEnds(t *testing.T) {
	seq := 2
	b := bustest.Scripted(t, bustest.Readers(1, func(int) []bustest.Reply {
		seq++
		return []bustest.Reply{bustest.Delivery("KV_hf_state", "$KV.hf_state.session.h.a", "x", seq-1, 1, 0)}
	}, func(bustest.Question) []bustest.Reply {
		return bustest.Stored("$KV.hf_state.session.h.a", seq, "", "x", time.Now())
	})).Open()
	n := 0
	err := b.KV.List(bustest.Within(t, bustest.Patience), kv.State, ">", func(kv.Entry) error { n++; return nil })
	if err != nil || n < 2 {
		t.Errorf("%d entries: %v", n, err)
	}
}

// TestAListThatIsRefused: a request that the broker refuses is not repeated.
func TestAListThatIsRefused(t *testing.T) {
	asked := 0
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("$KV.hf_state."+bustest.Key, 5, "", "x", time.Now())
		case a.Is("CONSUMER.CREATE"):
			asked++
			return bustest.OneReply(`{"error":{"code":400,"err_code":10025,"description":"bad request"}}`)
		}
		return bustest.Silence
	}).Open()
	err := b.KV.List(bustest.Within(t, 10*time.Second), kv.State, ">", func(kv.Entry) error { return nil })
	if err == nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

// TestAListOfAUserWhoMayNotPull: it ends, and is not repeated.
func TestAListOfAUserWhoMayNotPull(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: l, password: l, permissions: {publish: ["$JS.API.STREAM.MSG.GET.>", "$JS.API.CONSUMER.CREATE.>"],
				subscribe: ["_INBOX.>"]}}] } }`))
	bustest.MustStore(t, natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") }), bustest.Key, "x", 0)
	b := bustest.BusAt(t, bustest.As(s, "l"))
	err := b.KV.List(bustest.Within(t, bustest.Patience), kv.State, ">", func(kv.Entry) error { return nil })
	if !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("%v, want ErrForbidden", err)
	}
}

// TestAnEntryThatIsNoBase64: an answer of the broker that cannot be decoded is an error, and no empty entry.
func TestAnEntryThatIsNoBase64(t *testing.T) {
	for _, field := range []string{"data", "hdrs"} {
		b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply {
			return bustest.OneReply(`{"type":"io.nats.jetstream.api.v1.stream_msg_get_response",` +
				`"message":{"subject":"$KV.hf_state.` + bustest.Key + `","seq":5,"` + field +
				`":"!","time":"2026-11-23T00:00:00Z"}}`)
		}).Open()
		if e, err := b.KV.Load(bustest.Within(t, 5*time.Second), kv.State, bustest.Key); err == nil {
			t.Errorf("%s: %+v", field, e)
		}
	}
}
