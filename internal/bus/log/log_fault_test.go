package log_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestRaiseWithoutMetadata: the limit of a log that has no metadata is raised once as well.
func TestRaiseWithoutMetadata(t *testing.T) {
	var updated struct {
		MaxBytes int64             `json:"max_bytes"`
		Metadata map[string]string `json:"metadata"`
	}
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		if a.Is("STREAM.UPDATE") {
			a.Decode(t, &updated)
			return bustest.OneReply(`{}`)
		}
		return bustest.OneReply(`{"config":{"name":"HF_LOG","max_bytes":1000000}}`)
	}).Open()
	raised, err := b.Log.RaiseLimit(bustest.Within(t, bustest.Patience))
	if err != nil || !raised || updated.MaxBytes != 1_100_000 || updated.Metadata["hf.raised"] != "1000000" {
		t.Errorf("%t, %v: %+v", raised, err, updated)
	}
}

// commitBody is a commit with one fact of this id.
func commitBody(t testing.TB, id string, r events.Ref) string {
	t.Helper()
	body, err := events.EncodeBatch([]events.Event{bustest.Fact(id, r)})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// guardHeader is the header of a commit of h/s that names its predecessor.
func guardHeader(after int, more ...string) string {
	h := fmt.Sprintf("NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: "+
		"%d\r\nNats-Expected-Last-Subject-Sequence-Subject: hf.log.h.s.*\r\n", after)
	return h + strings.Join(more, "") + "\r\n"
}

func nothing(int) []bustest.Reply { return bustest.Silence }

// TestReadStopsAtAnotherSessionsCommit: a guard that names a commit of another session, as in a log that was put
// together from two, ends the way back. The commits are then read forwards, and only those of the session.
func TestReadStopsAtAnotherSessionsCommit(t *testing.T) {
	other := events.Ref{Harness: "h", Session: "other"}
	b := bustest.Scripted(t, bustest.Readers(0, nothing, func(q bustest.Question) []bustest.Reply {
		switch {
		case q.Last != "", q.Next != "" && q.Seq > 2:
			return bustest.Stored("hf.log.h.s.harness", 5, guardHeader(3), commitBody(t, "mine", bustest.Session),
				time.Now())
		case q.Next != "":
			return bustest.Stored("hf.log.h.s.harness", 2, "", commitBody(t, "older", bustest.Session), time.Now())
		default:
			first := strings.Replace(guardHeader(0), "hf.log.h.s.*", "hf.log.h.other.*", 1)
			return bustest.Stored("hf.log.h.other.harness", 3, first, commitBody(t, "theirs", other), time.Now())
		}
	})).Open()
	cs, err := b.Log.Read(bustest.Within(t, bustest.Patience), bustest.Session, 0)
	if err != nil || len(cs) != 2 || cs[0].Events[0].ID != "older" || cs[1].Events[0].ID != "mine" {
		t.Errorf("read %+v, %v; want both commits of the session and no other", cs, err)
	}
}

// TestReadWithoutTheFirstOfABatch: whether a commit is alone in its batch cannot be found out, so the read fails.
func TestReadWithoutTheFirstOfABatch(t *testing.T) {
	b := bustest.Scripted(t, bustest.Readers(0, nothing, func(q bustest.Question) []bustest.Reply {
		if q.Last == "" {
			return bustest.Trouble
		}
		return bustest.Stored("hf.log.h.s.harness", 5, guardHeader(3, "Nats-Batch-Sequence: 2\r\n"),
			commitBody(t, "mine", bustest.Session), time.Now())
	})).Open()
	if cs, err := b.Log.Read(bustest.Within(t, bustest.Patience), bustest.Session, 0); err == nil {
		t.Errorf("read %+v although the broker answers with an error", cs)
	}
}

// TestALeaderThatCatchesUpBetweenTwoAnswers: the leader of three copies refuses an append, because it has not applied
// the commit of the guard, and has applied it when it is asked about the last refusal. The refusals before prove
// nothing, so the append is sent again.
func TestALeaderThatCatchesUpBetweenTwoAnswers(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const behind, guard, rounds = 3, 5, 10
	refused := 0
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.MSG.GET") && refused < rounds:
			return bustest.Stored("hf.log.h.s.harness", behind, "", "[]", time.Now())
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("hf.log.h.s.harness", guard, "", "[]", time.Now())
		case a.Is("STREAM.INFO"):
			return bustest.OneReply(`{"config":{"num_replicas":3},"state":{"last_seq":4}}`)
		case refused < rounds:
			refused++
			return bustest.WrongLast
		}
		return bustest.OneReply(`{"stream":"HF_LOG","seq":6}`)
	}).Open()
	seq, err := b.Log.Append(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterHarness, guard,
		bustest.Facts("mine"))
	if err != nil || seq != 6 || refused != rounds {
		t.Errorf("appended at %d after %d refusals: %v; want 6 after %d", seq, refused, err, rounds)
	}
}

// TestAnAppendAfterAnOutage: an append is not answered for longer than refusals are borne. Then the new leader refuses
// it for a while, because an earlier copy of it is in flight, or because the leader has not applied the commit of the
// guard. The outage does not count: the append is sent until it is stored.
func TestAnAppendAfterAnOutage(t *testing.T) {
	// it mostly waits
	t.Parallel()
	const guard, silences, refusals = 5, 5, 12
	for name, refusal := range map[string][]bustest.Reply{"in flight": bustest.InFlight, "behind": bustest.WrongLast} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			sent := 0
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				refusing := sent >= silences && sent < silences+refusals
				switch {
				case a.Is("STREAM.MSG.GET") && refusing && name == "behind":
					return bustest.Stored("hf.log.h.s.harness", guard-2, "", "[]", time.Now())
				case a.Is("STREAM.MSG.GET"):
					return bustest.Stored("hf.log.h.s.harness", guard, "", "[]", time.Now())
				case a.Is("STREAM.INFO"):
					return bustest.OneReply(`{"config":{"num_replicas":3},"state":{"last_seq":4}}`)
				}
				sent++
				switch {
				case sent <= silences:
					return bustest.Silence
				case sent <= silences+refusals:
					return refusal
				}
				return bustest.OneReply(`{"stream":"HF_LOG","seq":6}`)
			}).Open()
			began := time.Now()
			seq, err := b.Log.Append(bustest.Within(t, bustest.Patience), bustest.Session, events.WriterHarness, guard,
				bustest.Facts("mine"))
			if err != nil || seq != 6 {
				t.Errorf("appended at %d after %d messages and %s: %v; want 6", seq, sent, time.Since(began), err)
			}
		})
	}
}

// TestAnAppendWhoseGuardOthersName: an append is refused more than ten times because writes of others with the same
// guard are in flight. That is no lost race: the append is sent until it is stored, and ends as unreachable if it never
// is. A copy that had no answer may be in flight, and the error does not deny it.
func TestAnAppendWhoseGuardOthersName(t *testing.T) {
	// it mostly waits
	t.Parallel()
	for name, c := range map[string]struct {
		silences, busy int
		want           error
	}{
		"for a while":              {busy: 20},
		"for ever":                 {busy: 1 << 30, want: bus.ErrInFlight},
		"for ever after a silence": {silences: 1, busy: 1 << 30, want: bus.ErrInFlight},
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			sent := 0
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				if a.Is("STREAM.MSG.GET") {
					return bustest.NotFound
				}
				sent++
				switch {
				case sent <= c.silences:
					return bustest.Silence
				case sent <= c.silences+c.busy:
					return bustest.InFlight
				}
				return bustest.OneReply(`{"stream":"HF_LOG","seq":6}`)
			}).Open()
			ctx := bustest.Within(t, bustest.Patience)
			seq, err := b.Log.Append(ctx, bustest.Session, events.WriterHarness, 0, bustest.Facts("mine"))
			if ctx.Err() != nil {
				t.Error("the append has no limit of its own")
			}
			if c.want == nil && (err != nil || seq != 6) {
				t.Errorf("appended at %d: %v; want 6", seq, err)
			}
			if !errors.Is(err, c.want) || errors.Is(err, bus.ErrLostRace) {
				t.Errorf("%v; want %v", err, c.want)
			}
			if c.silences > 0 && errors.Is(err, core.ErrBusy) {
				t.Errorf("%v, and the copy that had no answer may be in flight", err)
			}
		})
	}
}

// TestReadWhileTheSessionIsPurged: a commit that is gone when its turn has come ends the read without an error.
func TestReadWhileTheSessionIsPurged(t *testing.T) {
	b := bustest.Scripted(t, bustest.Readers(0, nothing, func(q bustest.Question) []bustest.Reply {
		if q.Last != "" {
			return bustest.Stored("hf.log.h.s.harness", 5, "", commitBody(t, "mine", bustest.Session), time.Now())
		}
		return bustest.NotFound
	})).Open()
	if cs, err := b.Log.Read(bustest.Within(t, bustest.Patience), bustest.Session, 0); err != nil || len(cs) != 0 {
		t.Errorf("read %+v, %v; want nothing", cs, err)
	}
}

// TestScanOfALogThatEndsEarly: a reader that has nothing to deliver is believed when the leader has nothing either, or
// only what came after the scan began.
func TestScanOfALogThatEndsEarly(t *testing.T) {
	for name, get := range map[string]func(bustest.Question) []bustest.Reply{
		"purged": func(bustest.Question) []bustest.Reply { return bustest.NotFound },
		"younger": func(bustest.Question) []bustest.Reply {
			return bustest.Stored("hf.log.h.s.harness", 11, "", "[]", time.Now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.Scripted(t, bustest.Readers(0, nothing, get)).Open()
			err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0,
				func(c events.Commit) error { return fmt.Errorf("given %d", c.Seq) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestScanGivesNothingYounger: a commit that was stored after the scan began is not given, also where the last one that
// the scan had to give is gone.
func TestScanGivesNothingYounger(t *testing.T) {
	b := bustest.Scripted(t, bustest.Readers(2, func(int) []bustest.Reply {
		return []bustest.Reply{bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "[]", 9, 1, 1),
			bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "[]", 11, 2, 0)}
	}, func(bustest.Question) []bustest.Reply { return bustest.NotFound })).Open()
	var got []uint64
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0,
		func(c events.Commit) error { got = append(got, c.Seq); return nil }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "[9]" {
		t.Errorf("given %v, want 9 alone: 10 was the log's end when the scan began", got)
	}
}

// TestScanSurvivesWhatIsNoDelivery: a message on the reader's subject that no stream delivered interrupts the reader,
// which begins again.
func TestScanSurvivesWhatIsNoDelivery(t *testing.T) {
	b := bustest.Scripted(t, bustest.Readers(1, func(pull int) []bustest.Reply {
		if pull == 1 {
			return []bustest.Reply{{Subject: "hf.log.h.s.harness", Reply: "nowhere", Body: "[]"}}
		}
		return []bustest.Reply{bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "[]", 10, 1, 0)}
	}, func(bustest.Question) []bustest.Reply {
		return bustest.Stored("hf.log.h.s.harness", 10, "", "[]", time.Now())
	})).Open()
	n := 0
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0,
		func(events.Commit) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d commits, %v; want 1", n, err)
	}
}

// TestScanWithoutItsLastDelivery: the last message that a reader is sent is lost on its way, and the broker has nothing
// more to say but that it lives. The scan begins again where it is.
func TestScanWithoutItsLastDelivery(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s := natstest.Start(t)
	witness := natstest.Bus(t, s)
	after := uint64(0)
	for i := range 5 {
		after = bustest.MustAppend(t, witness, bustest.Session, after, fmt.Sprint(i))
	}
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	lost := p.Lose(false, `HMSG hf\.log\.\S+ (\d+) `, 5, "99999999")
	var got []uint64
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0,
		func(c events.Commit) error { got = append(got, c.Seq); return nil }); err != nil {
		t.Error(err)
	}
	bustest.Receive(t, lost, "the delivery to be lost")
	if fmt.Sprint(got) != "[1 2 3 4 5]" {
		t.Errorf("given %v", got)
	}
}

// TestFollowDoesNotGuess: following begins only when the log's end is known.
func TestFollowDoesNotGuess(t *testing.T) {
	reads := 0
	starts := make(chan int, 100)
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.INFO"):
			if reads++; reads == 1 {
				return bustest.Trouble
			}
			return bustest.OneReply(`{"state":{"last_seq":10}}`)
		case a.Is("CONSUMER.CREATE"):
			var q struct {
				Config struct {
					Start int `json:"opt_start_seq"`
				} `json:"config"`
			}
			a.Decode(t, &q)
			starts <- q.Config.Start
			return bustest.OneReply(`{}`)
		}
		return bustest.Silence
	}).Open()
	ctx, cancel := context.WithCancel(bustest.Background(t))
	done := make(chan error, 1)
	go func() { done <- b.Log.Follow(ctx, "", func(uint64) {}, func(bus.Message) {}) }()
	if start := bustest.Receive(t, starts, "a reader"); start != 11 {
		t.Errorf("it begins at %d, want 11", start)
	}
	cancel()
	if err := bustest.Receive(t, done, "the end"); err != nil {
		t.Error(err)
	}
}

// TestHeadsOfADamagedLog: where a reader stays silent though the broker says that there is more, the ends that came are
// returned.
func TestHeadsOfADamagedLog(t *testing.T) {
	// it mostly waits
	t.Parallel()
	b := bustest.Scripted(t, bustest.Readers(2, func(int) []bustest.Reply {
		return []bustest.Reply{bustest.Delivery("HF_LOG", "hf.log.h.s.harness", "", 4, 1, 1)}
	}, nil)).Open()
	heads, err := b.Log.Heads(bustest.Within(t, bustest.Patience), "")
	if err != nil || len(heads) != 1 || heads[bustest.Session] != 4 {
		t.Errorf("heads %v, %v", heads, err)
	}
}

// TestAServiceReportsWhyTheLogIsNotRaised: a full log whose limit may not be raised is reported with both reasons.
func TestAServiceReportsWhyTheLogIsNotRaised(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: r, password: r, permissions: {
				publish: ["hf.log.>", "$JS.API.STREAM.MSG.GET.>", "$JS.API.STREAM.INFO.>"],
				subscribe: ["_INBOX.>"]}}] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL, c.LogBytesMax = bustest.As(s, "a"), 16<<10 })
	b := bustest.BusAt(t, bustest.As(s, "r"))
	ctx, after, err := bustest.Within(t, bustest.Patience), uint64(0), error(nil)
	for err == nil {
		after, err = b.Log.Append(ctx, bustest.Session, events.WriterReconciler, after, bustest.Facts(b.NewID()))
	}
	if !errors.Is(err, bus.ErrFull) || !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("append: %v, want ErrFull and ErrForbidden", err)
	}
}

// TestAnEventThatCannotBeFed: an event that cannot be encoded is an error of the call, and nothing is sent.
func TestAnEventThatCannotBeFed(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	odd := bustest.Fact("a", bustest.Session)
	odd.Fact, odd.Data = nil, json.RawMessage(`{`)
	if _, err := b.Log.Feed(bustest.Within(t, bustest.Patience),
		log.Fed{Ref: bustest.Session, Seq: 1, Events: []events.Event{odd}}).Wait(
		bustest.Within(t, bustest.Patience)); err == nil {
		t.Error("it is fed")
	}
}

// TestAnIDInProcess: the leader of the feed has lost a message that it had proposed, and refuses its id for minutes.
// The message is fed with the next id. An id that is in process for a moment is sent again as it is.
func TestAnIDInProcess(t *testing.T) {
	for name, x := range map[string]struct {
		refusals map[string]int // by what follows the id; then it is stored
		want     []string
	}{
		"in process only": {map[string]int{"": 3}, []string{"", "", "", ""}},
		"a lost message":  {map[string]int{"": 100}, []string{"", "", "", "", ".again"}},
		"two of them": {map[string]int{"": 100, ".again": 100},
			[]string{"", "", "", "", ".again", ".again", ".again", ".again", ".again.again"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var sent []string
			id := ""
			b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				if !a.On("hf.feed.") {
					return bustest.Silence
				}
				mu.Lock()
				defer mu.Unlock()
				if id == "" {
					id = a.Header(jetstream.MsgIDHeader)
				}
				end := strings.TrimPrefix(a.Header(jetstream.MsgIDHeader), id)
				sent = append(sent, end)
				if x.refusals[end]--; x.refusals[end] >= 0 {
					return bustest.InProcess
				}
				return bustest.OneReply(`{"stream":"HF_FEED","seq":1}`)
			}).Open()
			if _, err := b.Log.Feed(bustest.Within(t, bustest.Patience), log.Fed{Ref: bustest.Session, Seq: 1,
				Events: []events.Event{bustest.Fact("a", bustest.Session)}}).Wait(
				bustest.Within(t, bustest.Patience)); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(sent, x.want) {
				t.Errorf("sent %q, want %q", sent, x.want)
			}
		})
	}
}

// TestNearlyFullAsksSeldom: of a log with much room the broker is asked once a second at most.
func TestNearlyFullAsksSeldom(t *testing.T) {
	asks := 0
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		asks++
		return bustest.OneReply(`{"config":{"max_bytes":10000000000},"state":{"bytes":10}}`)
	}).Open()
	ctx, began := bustest.Within(t, bustest.Patience), time.Now()
	for range 5 {
		if full, err := b.Log.NearlyFull(ctx); err != nil || full {
			t.Fatalf("nearly full: %t, %v", full, err)
		}
	}
	if most := 1 + int(time.Since(began)/time.Second); asks > most {
		t.Errorf("asked %d times in %s, want %d at most", asks, time.Since(began), most)
	}
}

// TestFollowWhoMayNotRead: the log's end may be asked for and no reader be made, so following ends with ErrForbidden.
func TestFollowWhoMayNotRead(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: f, password: f, permissions: {publish: ["$JS.API.STREAM.INFO.>"], subscribe: ["_INBOX.>"]}}] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
	b := bustest.BusAt(t, bustest.As(s, "f"))
	done := make(chan error, 1)
	go func() { done <- b.Log.Follow(bustest.Background(t), "", func(uint64) {}, func(bus.Message) {}) }()
	if err := bustest.Receive(t, done, "following to end"); !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("follow: %v, want ErrForbidden", err)
	}
}

// spoilNextRead makes the next answer to a request for one message say nothing.
func spoilNextRead(p *bustest.Proxy) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	seen := false
	p.Alter = func(towards bool, text []byte) []byte {
		if at := strings.Index(string(text), "stream_msg_get_response"); !towards && !seen && at >= 0 {
			seen = true
			copy(text[at:], "no_message_at_all_in_i")
			return []byte(strings.Replace(string(text), `"message"`, `"massage"`, 1))
		}
		return text
	}
}

// TestReadersNeedTheHeader: a commit whose header has to be read again is not given without it when that fails.
func TestReadersNeedTheHeader(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	bustest.RawPublish(t, s, "hf.log.h.s.harness", bustest.OddHeaders(0)["a line break in a value"],
		commitBody(t, "odd", bustest.Session))
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	check := func(how string, c events.Commit) {
		if !c.Guarded || c.Err != nil {
			t.Errorf("%s: a commit without its header: %+v", how, c)
		}
	}
	spoilNextRead(p)
	if err := b.Log.Scan(bustest.Within(t, bustest.Patience), 0,
		func(c events.Commit) error { check("scan", c); return nil }); err != nil {
		t.Error(err)
	}
	spoilNextRead(p)
	ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
	defer cancel()
	got := &bustest.Collector{B: b, N: 1, Stop: cancel}
	if err := b.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "odd"}, got); err != nil {
		t.Fatal(err)
	}
	for _, c := range got.All {
		check("consume", c)
	}
}

// TestFollowNeedsTheHeader: the same for who follows the log.
func TestFollowNeedsTheHeader(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	ctx, cancel := context.WithCancel(bustest.Within(t, bustest.Patience))
	live, came, done := make(chan uint64, 100), make(chan events.Commit, 100), make(chan error, 1)
	go func() {
		done <- b.Log.Follow(ctx, "", func(from uint64) { live <- from },
			func(m bus.Message) { came <- b.Log.Decode(m) })
	}()
	bustest.Receive(t, live, "the log to be followed")
	spoilNextRead(p)
	bustest.RawPublish(t, s, "hf.log.h.s.harness", bustest.OddHeaders(0)["a line break in a value"],
		commitBody(t, "odd", bustest.Session))
	if c := bustest.Receive(t, came, "the commit"); !c.Guarded || c.Err != nil {
		t.Errorf("a commit without its header: %+v", c)
	}
	cancel()
	if err := bustest.Receive(t, done, "the end"); err != nil {
		t.Error(err)
	}
}

// TestAnEndThatCannotBeCompared: a session ends before the guard of an append, and the state of the log cannot be read.
// So it is unknown whether the log has lost commits.
func TestAnEndThatCannotBeCompared(t *testing.T) {
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.MSG.GET"):
			return bustest.Stored("hf.log.h.s.harness", 3, "", "[]", time.Now())
		case a.Is("STREAM.INFO"):
			return bustest.Trouble
		}
		return bustest.WrongLast
	}).Open()
	_, err := b.Log.Append(bustest.Within(t, 2*time.Second), bustest.Session, events.WriterHarness, 5,
		bustest.Facts("mine"))
	if err == nil || errors.Is(err, bus.ErrLostRace) || errors.Is(err, bus.ErrLogBehind) {
		t.Errorf("append: %v", err)
	}
}
