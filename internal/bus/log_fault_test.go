package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// commitBody is a commit with one fact of this id.
func commitBody(t testing.TB, id string, r events.Ref) string {
	t.Helper()
	body, err := events.EncodeBatch([]events.Event{fact(id, r)})
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

// question is a request for one stored message.
type question struct {
	Seq  int    `json:"seq"`
	Next string `json:"next_by_subj"`
	Last string `json:"last_by_subj"`
}

// readers answers what a reader of a stream needs: pending is what the consumer says is to come, deliver what a pull
// gets.
func readers(pending int, deliver func(pull int) []said, get func(q question) []said) func(asked) []said {
	pulls := 0
	return func(a asked) []said {
		switch {
		case a.is("STREAM.INFO"):
			return says(`{"state":{"last_seq":10}}`)
		case a.is("CONSUMER.CREATE"):
			return says(fmt.Sprintf(`{"num_pending":%d}`, pending))
		case a.is("CONSUMER.MSG.NEXT"):
			pulls++
			return deliver(pulls)
		case a.is("STREAM.MSG.GET"):
			var q question
			if json.Unmarshal([]byte(a.body), &q) != nil {
				return trouble
			}
			return get(q)
		}
		return silence
	}
}

func nothing(int) []said { return silence }

// TestReadStopsAtAnotherSessionsCommit: a guard that names a commit of another session, as in a log that was put
// together from two, ends the way back. The commits are then read forwards, and only those of the session.
func TestReadStopsAtAnotherSessionsCommit(t *testing.T) {
	other := events.Ref{Harness: "h", Session: "other"}
	b := scripted(t, readers(0, nothing, func(q question) []said {
		switch {
		case q.Last != "", q.Next != "" && q.Seq > 2:
			return stored("hf.log.h.s.harness", 5, guardHeader(3), commitBody(t, "mine", session), time.Now())
		case q.Next != "":
			return stored("hf.log.h.s.harness", 2, "", commitBody(t, "older", session), time.Now())
		default:
			first := strings.Replace(guardHeader(0), "hf.log.h.s.*", "hf.log.h.other.*", 1)
			return stored("hf.log.h.other.harness", 3, first, commitBody(t, "theirs", other), time.Now())
		}
	})).open()
	cs, err := b.Read(within(t, patience), session, 0)
	if err != nil || len(cs) != 2 || cs[0].Events[0].ID != "older" || cs[1].Events[0].ID != "mine" {
		t.Errorf("read %+v, %v; want both commits of the session and no other", cs, err)
	}
}

// TestReadWithoutTheFirstOfABatch: whether a commit is alone in its batch cannot be found out, so the read fails.
func TestReadWithoutTheFirstOfABatch(t *testing.T) {
	b := scripted(t, readers(0, nothing, func(q question) []said {
		if q.Last == "" {
			return trouble
		}
		return stored("hf.log.h.s.harness", 5, guardHeader(3, "Nats-Batch-Sequence: 2\r\n"),
			commitBody(t, "mine", session), time.Now())
	})).open()
	if cs, err := b.Read(within(t, patience), session, 0); err == nil {
		t.Errorf("read %+v although the broker answers with an error", cs)
	}
}

// TestReadWhileTheSessionIsPurged: a commit that is gone when its turn has come ends the read without an error.
func TestReadWhileTheSessionIsPurged(t *testing.T) {
	b := scripted(t, readers(0, nothing, func(q question) []said {
		if q.Last != "" {
			return stored("hf.log.h.s.harness", 5, "", commitBody(t, "mine", session), time.Now())
		}
		return notFound
	})).open()
	if cs, err := b.Read(within(t, patience), session, 0); err != nil || len(cs) != 0 {
		t.Errorf("read %+v, %v; want nothing", cs, err)
	}
}

// TestScanOfALogThatEndsEarly: a reader that has nothing to deliver is believed when the leader has nothing either, or
// only what came after the scan began.
func TestScanOfALogThatEndsEarly(t *testing.T) {
	for name, get := range map[string]func(question) []said{
		"purged":  func(question) []said { return notFound },
		"younger": func(question) []said { return stored("hf.log.h.s.harness", 11, "", "[]", time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			b := scripted(t, readers(0, nothing, get)).open()
			err := b.Scan(within(t, patience), 0, func(c events.Commit) error { return fmt.Errorf("given %d", c.Seq) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestScanGivesNothingYounger: a commit that was stored after the scan began is not given, also where the last one that
// the scan had to give is gone.
func TestScanGivesNothingYounger(t *testing.T) {
	b := scripted(t, readers(2, func(int) []said {
		return []said{delivery("HF_LOG", "hf.log.h.s.harness", "[]", 9, 1, 1),
			delivery("HF_LOG", "hf.log.h.s.harness", "[]", 11, 2, 0)}
	}, func(question) []said { return notFound })).open()
	var got []uint64
	if err := b.Scan(within(t, patience), 0,
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
	b := scripted(t, readers(1, func(pull int) []said {
		if pull == 1 {
			return []said{{subject: "hf.log.h.s.harness", reply: "nowhere", body: "[]"}}
		}
		return []said{delivery("HF_LOG", "hf.log.h.s.harness", "[]", 10, 1, 0)}
	}, func(question) []said { return stored("hf.log.h.s.harness", 10, "", "[]", time.Now()) })).open()
	n := 0
	if err := b.Scan(within(t, patience), 0, func(events.Commit) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d commits, %v; want 1", n, err)
	}
}

// TestScanWithoutItsLastDelivery: the last message that a reader is sent is lost on its way, and the broker has nothing more to
// say but that it lives. The scan begins again where it is.
func TestScanWithoutItsLastDelivery(t *testing.T) {
	t.Parallel() // it mostly waits
	s := natstest.Start(t)
	witness := natstest.Bus(t, s)
	after := uint64(0)
	for i := range 5 {
		after = mustAppend(t, witness, session, after, fmt.Sprint(i))
	}
	p := newProxy(t, s)
	b := busAt(t, p.addr)
	lost := p.lose(false, `HMSG hf\.log\.\S+ (\d+) `, 5, "99999999")
	var got []uint64
	if err := b.Scan(within(t, patience), 0, func(c events.Commit) error { got = append(got, c.Seq); return nil }); err != nil {
		t.Error(err)
	}
	receive(t, lost, "the delivery to be lost")
	if fmt.Sprint(got) != "[1 2 3 4 5]" {
		t.Errorf("given %v", got)
	}
}

// TestFollowDoesNotGuess: following begins only when the log's end is known.
func TestFollowDoesNotGuess(t *testing.T) {
	looks := 0
	starts := make(chan int, 100)
	b := scripted(t, func(a asked) []said {
		switch {
		case a.is("STREAM.INFO"):
			if looks++; looks == 1 {
				return trouble
			}
			return says(`{"state":{"last_seq":10}}`)
		case a.is("CONSUMER.CREATE"):
			var q struct {
				Config struct {
					Start int `json:"opt_start_seq"`
				} `json:"config"`
			}
			a.decode(t, &q)
			starts <- q.Config.Start
			return says(`{}`)
		}
		return silence
	}).open()
	ctx, cancel := context.WithCancel(background(t))
	done := make(chan error, 1)
	go func() { done <- b.Follow(ctx, "", func(uint64) {}, func(bus.Message) {}) }()
	if start := receive(t, starts, "a reader"); start != 11 {
		t.Errorf("it begins at %d, want 11", start)
	}
	cancel()
	if err := receive(t, done, "the end"); err != nil {
		t.Error(err)
	}
}

// TestHeadsOfADamagedLog: where a reader stays silent though the broker says that there is more, the ends that came are
// returned.
func TestHeadsOfADamagedLog(t *testing.T) {
	t.Parallel() // it mostly waits
	b := scripted(t, readers(2, func(int) []said {
		return []said{delivery("HF_LOG", "hf.log.h.s.harness", "", 4, 1, 1)}
	}, nil)).open()
	heads, err := b.Heads(within(t, patience), "")
	if err != nil || len(heads) != 1 || heads[session] != 4 {
		t.Errorf("heads %v, %v", heads, err)
	}
}

// TestAServiceSaysWhyTheLogIsNotRaised: a full log whose limit may not be raised is reported with both reasons.
func TestAServiceSaysWhyTheLogIsNotRaised(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: r, password: r, permissions: {publish: ["hf.log.>", "$JS.API.STREAM.MSG.GET.>", "$JS.API.STREAM.INFO.>"], subscribe: ["_INBOX.>"]}}] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL, c.LogBytesMax = as(s, "a"), 16<<10 })
	b := busAt(t, as(s, "r"))
	ctx, after, err := within(t, patience), uint64(0), error(nil)
	for err == nil {
		after, err = b.Append(ctx, session, events.WriterReconciler, after, facts(b.NewID()))
	}
	if !errors.Is(err, bus.ErrFull) || !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("append: %v, want ErrFull and ErrForbidden", err)
	}
}

// TestAnEventThatCannotBeFed: an event that cannot be encoded is an error of the call, and nothing is sent.
func TestAnEventThatCannotBeFed(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	odd := fact("a", session)
	odd.Fact, odd.Data = nil, json.RawMessage(`{`)
	if _, err := b.Feed(within(t, patience),
		bus.Fed{Ref: session, Seq: 1, Events: []events.Event{odd}}).Wait(within(t, patience)); err == nil {
		t.Error("it is fed")
	}
}

// TestNearlyFullAsksSeldom: of a log with much room the broker is asked once a second at most.
func TestNearlyFullAsksSeldom(t *testing.T) {
	asks := 0
	b := scripted(t, func(a asked) []said {
		asks++
		return says(`{"config":{"max_bytes":10000000000},"state":{"bytes":10}}`)
	}).open()
	ctx, began := within(t, patience), time.Now()
	for range 5 {
		if full, err := b.NearlyFull(ctx); err != nil || full {
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
	natstest.Bus(t, s, func(c *bus.Config) { c.URL = as(s, "a") })
	b := busAt(t, as(s, "f"))
	done := make(chan error, 1)
	go func() { done <- b.Follow(background(t), "", func(uint64) {}, func(bus.Message) {}) }()
	if err := receive(t, done, "following to end"); !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("follow: %v, want ErrForbidden", err)
	}
}

// spoilNextRead makes the next answer to a request for one message say nothing.
func spoilNextRead(p *proxy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := false
	p.alter = func(towards bool, text []byte) []byte {
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
	rawPublish(t, s, "hf.log.h.s.harness", oddHeaders(0)["a line break in a value"], commitBody(t, "odd", session))
	p := newProxy(t, s)
	b := busAt(t, p.addr)
	check := func(how string, c events.Commit) {
		if !c.Guarded || c.Err != nil {
			t.Errorf("%s: a commit without its header: %+v", how, c)
		}
	}
	spoilNextRead(p)
	if err := b.Scan(within(t, patience), 0, func(c events.Commit) error { check("scan", c); return nil }); err != nil {
		t.Error(err)
	}
	spoilNextRead(p)
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	got := &collector{b: b, n: 1, stop: cancel}
	if err := b.Consume(ctx, bus.Source{Stream: bus.LogStream, Durable: "odd"}, got); err != nil {
		t.Fatal(err)
	}
	for _, c := range got.all {
		check("consume", c)
	}
}

// TestFollowNeedsTheHeader: the same for who follows the log.
func TestFollowNeedsTheHeader(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	p := newProxy(t, s)
	b := busAt(t, p.addr)
	ctx, cancel := context.WithCancel(within(t, patience))
	live, came, done := make(chan uint64, 100), make(chan events.Commit, 100), make(chan error, 1)
	go func() {
		done <- b.Follow(ctx, "", func(from uint64) { live <- from }, func(m bus.Message) { came <- b.Decode(m) })
	}()
	receive(t, live, "the log to be followed")
	spoilNextRead(p)
	rawPublish(t, s, "hf.log.h.s.harness", oddHeaders(0)["a line break in a value"], commitBody(t, "odd", session))
	if c := receive(t, came, "the commit"); !c.Guarded || c.Err != nil {
		t.Errorf("a commit without its header: %+v", c)
	}
	cancel()
	if err := receive(t, done, "the end"); err != nil {
		t.Error(err)
	}
}
