package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

// upCell is `holdfast up` within this process, and a connection to it.
type upCell struct {
	t    *testing.T
	note health.Note
	bus  *bus.Bus
	stop func() (int, string)
	seq  map[events.Ref]uint64
}

// startUp runs `holdfast up` on a directory and waits until it is ready.
func startUp(t *testing.T, dir string) *upCell {
	t.Helper()
	c, output := tryUp(t, dir)
	if c == nil {
		t.Fatalf("up ended: %s", output)
	}
	return c
}

// tryUp is startUp for a process that may refuse to start: then it returns its output.
func tryUp(t *testing.T, dir string) (c *upCell, text string) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	var stderr output
	p := &Program{Args: []string{"up", "--data", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--ready-file", ready}, Stdout: &output{}, Stderr: &stderr}
	ctx, cancel := context.WithCancel(context.Background())
	code, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		code = p.Run(ctx)
	}()
	c = &upCell{t: t, seq: map[events.Ref]uint64{}}
	var conn *bus.Bus
	stop := func() (int, string) {
		if conn != nil {
			conn.Close()
		}
		cancel()
		<-ended
		return code, stderr.String()
	}
	c.stop = stop
	t.Cleanup(func() { stop() })
	over := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	natstest.Until(t, "up to be ready", func() bool {
		body, err := os.ReadFile(ready)
		return over() || err == nil && json.Unmarshal(body, &c.note) == nil
	})
	if over() {
		return nil, stderr.String()
	}
	b, err := bus.Open(t.Context(), bus.Config{URL: c.note.NATS})
	if err != nil {
		t.Fatal(err)
	}
	c.bus, conn = b, b
	return c, ""
}

// append appends facts of a harness as one commit.
func (c *upCell) append(r events.Ref, facts ...events.Fact) {
	c.t.Helper()
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(c.bus.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(0, 0), f)
	}
	seq, err := c.bus.Log.Append(c.t.Context(), r, events.WriterHarness, c.seq[r], evs)
	if err != nil {
		c.t.Fatal(err)
	}
	c.seq[r] = seq
}

// folded waits until a session's document has the last commit.
func (c *upCell) folded(r events.Ref) *session.State {
	c.t.Helper()
	var st *session.State
	natstest.Until(c.t, r.String()+" to be folded", func() bool {
		e, err := c.bus.KV.Load(c.t.Context(), kv.State, events.SessionKey(r))
		if err == nil {
			st, err = session.Decode(e.Value)
		}
		return err == nil && st.Seq >= c.seq[r]
	})
	return st
}

// doctor returns the doctor's findings, by check.
func (c *upCell) doctor(args ...string) map[string]finding {
	c.t.Helper()
	var out bytes.Buffer
	p := &Program{Args: append([]string{"doctor", "--json", "--nats", c.note.NATS, "--timeout", "1m"}, args...),
		Stdout: &out, Stderr: &bytes.Buffer{}}
	code := p.Run(c.t.Context())
	all, wrong := map[string]finding{}, false
	for line := range strings.Lines(out.String()) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			c.t.Fatal(err)
		}
		if all[f.Check].Level != levelWrong {
			all[f.Check] = f
		}
		wrong = wrong || f.Level == levelWrong
	}
	if wrong != (code == exitFailed) {
		c.t.Errorf("exit code %d, findings %+v", code, all)
	}
	return all
}

// request sends a request with a plain connection and waits for the reply.
func (c *upCell) request(subject string) {
	c.t.Helper()
	c.requestWith(subject, "")
}

// requestWith is request with a body.
func (c *upCell) requestWith(subject, body string) {
	c.t.Helper()
	conn, err := new(net.Dialer).DialContext(c.t.Context(), "tcp", strings.TrimPrefix(c.note.NATS, "nats://"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "CONNECT {\"verbose\":false}\r\nSUB answers 1\r\nPUB %s answers %d\r\n%s\r\n",
		subject, len(body), body); err != nil {
		c.t.Fatal(err)
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "MSG answers ") {
			return
		}
	}
	c.t.Fatalf("%s: the broker does not answer", subject)
}

// expect compares one finding with a level and a part of its text.
func expect(t *testing.T, found map[string]finding, check, level, want string) {
	t.Helper()
	if f := found[check]; f.Level != level || !strings.Contains(f.Found, want) || level == levelWrong && f.Do == "" {
		t.Errorf("%s: %+v, want %s saying %q and what to do", check, f, level, want)
	}
}

// asks opens a session with a turn that waits for the result of a call, which is a person's answer.
func (c *upCell) asks(r events.Ref) {
	c.t.Helper()
	c.append(r, events.SessionOpened{Incarnation: "1"}, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	c.append(r, events.ToolStarted{Call: "c1", Turn: "t1", Name: "question"},
		events.PromptRequested{Prompt: "p1", Turn: "t1", Call: "c1", PromptKind: events.PromptQuestion, Title: "Which?",
			Delivery:    events.DeliverToolResult,
			OnOwnerLoss: events.LossKeep,
			Questions: []events.Question{{ID: "q", Question: "Which?",
				Options: []events.Option{{Label: "a"}, {Label: "b"}}}}})
}

// TestDoctorComparesTheLogWithDocuments: a document ahead of the log is reported with advice, and so is a log that was
// purged while everything ran.
func TestDoctorComparesTheLogWithDocuments(t *testing.T) {
	c := startUp(t, t.TempDir())
	r := events.Ref{Harness: "h1", Session: "s1"}
	c.asks(r)
	c.folded(r)
	found := c.doctor()
	expect(t, found, "truth", levelOK, "1 document")
	expect(t, found, "store", levelOK, "KV_hf_state ")
	ahead := session.New(events.Ref{Harness: "h1", Session: "lost"})
	ahead.Epoch, ahead.Seq = 1, 1000
	doc, err := ahead.Encode()
	if err != nil {
		t.Fatal(err)
	}
	rev, err := c.bus.KV.Store(t.Context(), kv.State, events.SessionKey(ahead.Ref()), doc, 0)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, c.doctor(), "truth", levelWrong, "commits of 1 session: h1/lost (known up to 1000, the log ends with 0)")
	if err := c.bus.KV.Delete(t.Context(), kv.State, events.SessionKey(ahead.Ref()), rev); err != nil {
		t.Fatal(err)
	}
	if _, err := c.bus.KV.Store(t.Context(), kv.State, events.SessionKey(r), []byte("x"), c.rev(r)); err != nil {
		t.Fatal(err)
	}
	expect(t, c.doctor(), "truth", levelWrong, "1 document missing, damaged or older than what was folded: h1/s1")
	c.request("$JS.API.STREAM.PURGE.HF_LOG")
	found = c.doctor()
	expect(t, found, "log", levelWrong, "it was purged, or lost")
}

// rev returns the revision of a session's document.
func (c *upCell) rev(r events.Ref) uint64 {
	c.t.Helper()
	e, err := c.bus.KV.Load(c.t.Context(), kv.State, events.SessionKey(r))
	if err != nil {
		c.t.Fatal(err)
	}
	return e.Rev
}

// TestDoctorNamesStrangers: a consumer that no service made is reported.
func TestDoctorNamesStrangers(t *testing.T) {
	c := startUp(t, t.TempDir())
	expect(t, c.doctor(), "strangers", levelOK, "none")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.bus.Consumers.Consume(ctx, consumer.Source{Stream: consumer.LogStream, Durable: "curious"}, nil)
	}()
	natstest.Until(t, "the stranger to be there", func() bool { return c.doctor()["strangers"].Level == levelNote })
	expect(t, c.doctor(), "strangers", levelNote,
		"1 consumer that Holdfast did not make: curious of HF_LOG is durable")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDoctorNamesStrays: the broker stores messages under subjects with the token *, which retention cannot remove.
// Doctor names them until an operator has deleted them by sequence.
func TestDoctorNamesStrays(t *testing.T) {
	c := startUp(t, t.TempDir())
	c.append(events.Ref{Harness: "h1", Session: "s1"}, events.SessionOpened{Incarnation: "1"})
	expect(t, c.doctor(), "strays", levelOK, "none")
	for range 2 {
		c.requestWith("hf.log.h1.*.harness", "x")
	}
	for _, last := range []uint64{3, 2} {
		found := c.doctor()
		expect(t, found, "strays", levelNote, fmt.Sprintf(`: "hf.log.h1.*.harness" (last at %d)`, last))
		if !strings.Contains(found["strays"].Do, "nats stream rmm -f HF_LOG ") {
			t.Errorf("what to do: %s", found["strays"].Do)
		}
		c.requestWith("$JS.API.STREAM.MSG.DELETE.HF_LOG", fmt.Sprintf(`{"seq":%d}`, last))
	}
	expect(t, c.doctor(), "strays", levelOK, "none")
}

// TestDoctorOnConsumerKeys: processes of a service with different keys have a consumer each. Doctor reports that, and
// the consumer that is left behind.
func TestDoctorOnConsumerKeys(t *testing.T) {
	c := startUp(t, t.TempDir())
	key := filepath.Join(t.TempDir(), "consumer-key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := bus.Open(t.Context(), bus.Config{URL: c.note.NATS, ConsumerKeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if f, found := c.doctor()["consumer keys"]; found {
		t.Errorf("without a second consumer: %+v", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- other.Consumers.Consume(ctx, ledger.Source(ledger.Default()), nil) }()
	printed := func(level, text string) func() bool {
		return func() bool {
			f := c.doctor()["consumer keys"]
			return f.Level == level && strings.Contains(f.Found, text) && f.Do != ""
		}
	}
	natstest.Until(t, "doctor to report two consumers",
		printed(levelWrong, "work is done more than once: HF_LOG ledger, HF_LOG ledger-"))
	expect(t, c.doctor(), "strangers", levelOK, "none")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	natstest.Until(t, "doctor to report the consumer that is left",
		printed(levelNote, "as after a change of the key: HF_LOG ledger-"))
	// between two pulls none is
	natstest.Until(t, "doctor to look at the consumer that is used", func() bool {
		f := c.doctor()["consumer ledger"]
		return f.Level == levelOK && strings.Contains(f.Found, "messages wait")
	})
}

// TestDoctorOnAMovedConsumer: a request has moved the ledger's consumer beyond the end of the log. Doctor reports it,
// and the ledger moves it back.
func TestDoctorOnAMovedConsumer(t *testing.T) {
	c := startUp(t, t.TempDir())
	c.asks(events.Ref{Harness: "h1", Session: "s1"})
	c.folded(events.Ref{Harness: "h1", Session: "s1"})
	// a document is stored before that
	natstest.Until(t, "the last commit to be acknowledged", func() bool {
		f := c.doctor()["consumer ledger"]
		return f.Level == levelOK && strings.Contains(fmt.Sprint(f), "0 messages wait")
	})
	natstest.Until(t, "doctor to report the consumer", func() bool {
		c.requestWith("$JS.API.CONSUMER.RESET.HF_LOG.ledger", `{"seq":1000000}`)
		f := c.doctor()["consumer ledger"]
		return strings.Contains(f.Found, "it is at 999999, beyond the end") && f.Level == levelWrong &&
			strings.Contains(f.Do, "if `truth` is wrong, the stream has lost its end") &&
			strings.Contains(f.Do, "remove the strangers")
	})
	natstest.Until(t, "the ledger to move it back", func() bool {
		return c.doctor()["consumer ledger"].Level == levelOK
	})
}

// TestDoctorOnWhatWasRecoveredAsDesigned: an answer came after the harness had ended. The turn stays open until the
// next process takes the continuation: it is reported as work that is not taken, and not as an orphan.
func TestDoctorOnWhatWasRecoveredAsDesigned(t *testing.T) {
	c := startUp(t, t.TempDir())
	r, orphan := events.Ref{Harness: "h1", Session: "s1"}, events.Ref{Harness: "h1", Session: "orphan"}
	c.asks(r)
	c.append(r, events.SessionReleased{})
	runAs(t, c.note.NATS, exitDone, "answer", "h1/s1", "p1", "a")
	natstest.Until(t, "the continuation to be asked for", func() bool {
		st := c.folded(r)
		return st.Pending.Turn != nil
	})
	if st := c.folded(r); st.Turn == nil || st.Owned {
		t.Fatalf("turn %+v, owned %v", st.Turn, st.Owned)
	}
	expect(t, c.doctor(), "orphans", levelOK, "none")
	c.append(orphan, events.SessionOpened{Incarnation: "1"}, events.TurnStarted{Turn: "t1", Cause: events.CauseMessage})
	c.folded(orphan)
	expect(t, c.doctor(), "orphans", levelWrong, "1 open under a process that is gone: h1/orphan")
}

// TestDoctorOnWhatNobodyRecovers: of sessions that were released with a turn open, one whose turn the reconciler would
// end is an orphan, and so is one about which it cannot decide, because the log lacks the answer. A session whose
// continuation waits for a harness is not an orphan.
func TestDoctorOnWhatNobodyRecovers(t *testing.T) {
	p := &patient{app: &app{}, bus: natstest.Bus(t, natstest.Start(t))}
	count := tally{now: time.Unix(1_000_000, 0)}
	for name, more := range map[string][]events.Fact{
		"orphan":    nil,
		"continued": {events.TurnRequested{Turn: "t2", Cause: events.CauseResume, OfTurn: "t1"}},
		"answered": {
			events.PromptRequested{Prompt: "p1", Turn: "t1", PromptKind: events.PromptQuestion, Title: "Which?",
				Delivery: events.DeliverMessage, OnOwnerLoss: events.LossKeep, Questions: []events.Question{{ID: "q",
					Question: "Which?", Options: []events.Option{{Label: "a"}, {Label: "b"}}}}},
			events.PromptAnswered{Prompt: "p1", Answers: []events.Answer{{Question: "q", Selected: []string{"a"}}},
				By: "ada"},
		},
	} {
		s := released(name, count.now, more)
		if count.count(s, nil); s.Turn == nil || s.Owned || s.Ignored.Count > 0 {
			t.Fatalf("%s: turn %+v, owned %v, ignored %+v", name, s.Turn, s.Owned, s.Ignored)
		}
	}
	if len(count.left) != 3 || len(count.orphans) != 0 {
		t.Fatalf("%d sessions to decide, orphans %v", len(count.left), count.orphans)
	}
	if err := p.unrecovered(t.Context(), &count); err != nil {
		t.Fatal(err)
	}
	slices.Sort(count.orphans)
	if want := []string{"h1/answered", "h1/orphan"}; !slices.Equal(count.orphans, want) {
		t.Errorf("orphans %v, want %v", count.orphans, want)
	}
}

// released returns a session with an open turn and these facts, each in its own commit, that its owner released. The
// log has none of them.
func released(name string, at time.Time, facts []events.Fact) *session.State {
	s := session.New(events.Ref{Harness: "h1", Session: name})
	facts = append([]events.Fact{events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t1", Cause: events.CauseMessage}}, append(facts, events.SessionReleased{})...)
	for i, f := range facts {
		writer, source := events.WriterHarness, events.HarnessSource("h1", "1")
		switch f.(type) {
		case events.TurnRequested:
			writer, source = events.WriterReconciler, events.ServiceSource(reconciler.Name, "1")
		case events.PromptAnswered:
			writer, source = events.WriterLedger, events.ServiceSource(ledger.Name, "1")
		}
		s.Fold(&events.Commit{Ref: s.Ref(), Writer: writer, Seq: uint64(i) + 1, Guard: uint64(i), Guarded: true, At: at,
			Events: []events.Event{events.New(fmt.Sprint(name, i), source, s.Ref(), 1, at, f)}})
	}
	return s
}

// TestDoctorIsNotFilledByOneHarness: the leases and sessions of one harness do not push those of others out of the
// report.
func TestDoctorIsNotFilledByOneHarness(t *testing.T) {
	c := startUp(t, t.TempDir())
	for i := range 30 {
		if _, err := c.bus.Leases.Acquire(t.Context(), events.HarnessLeaseKey("odd", fmt.Sprint(i+1)), []byte("x"),
			time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.bus.Leases.Acquire(t.Context(), events.HarnessLeaseKey("other", "1"), []byte("x"),
		time.Hour); err != nil {
		t.Fatal(err)
	}
	expect(t, c.doctor(), "leases", levelWrong,
		"31 cannot be read: 30 of harness odd (harness.odd.1, harness.odd.2 and 28 more), 1 of harness other "+
			"(harness.other.1)")
	if got, want := shorten([]string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "b/1"}),
		"a/1, a/2, b/1, a/3, a/4 and 2 more"; got != want {
		t.Errorf("named %s, want %s", got, want)
	}
}

// TestDoctorOnNodes: the nodes that hold the streams are compared with --nodes.
func TestDoctorOnNodes(t *testing.T) {
	of := func(replicas int, nodes, offline []string, ours ...string) map[string]finding {
		p := &patient{app: &app{nodes: ours}}
		p.nodes(layout.Inspection{Streams: []layout.StreamState{{Replicas: replicas, Nodes: nodes, Offline: offline}}})
		all := map[string]finding{}
		for _, f := range p.found {
			all[f.Check] = f
		}
		return all
	}
	three := []string{"a", "b", "c"}
	expect(t, of(3, three, nil), "nodes", levelOK, "a, b, c")
	expect(t, of(3, three, nil, "a", "b"), "nodes", levelWrong, "hold streams: c")
	expect(t, of(3, three, []string{"b"}, three...), "nodes", levelWrong, "offline: b")
	expect(t, of(3, append(three, "d"), nil), "nodes", levelNote, "on 4 nodes, with 3 copies each: a, b, c, d")
	if got := of(1, nil, nil); len(got) != 0 {
		t.Errorf("outside a cluster: %+v", got)
	}
}

// TestDoctorOnRecordsOfServices: sessions that the ledger has set aside, and steps of the broker's clock.
func TestDoctorOnRecordsOfServices(t *testing.T) {
	c := startUp(t, t.TempDir())
	found := c.doctor()
	expect(t, found, "set aside", levelOK, "none")
	expect(t, found, "clock", levelOK, "was not set within a day")
	now, err := c.bus.Clock.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asideOf := func(name string) events.Ref { return events.Ref{Harness: "h1", Session: name} }
	for name, note := range map[string]ledger.Aside{
		"s1":   {Behind: true, Failures: 1, Reason: "a wrong place"},
		"long": {Behind: true, Reason: "too far behind"},
		"fed":  {Failures: 2, Reason: "too large"},
	} {
		note.Ref = asideOf(name)
		c.keep(kv.State, events.AsideKey(note.Ref), note)
	}
	c.keep(kv.State, events.AsideKey(asideOf("odd")), nil)
	c.keep(kv.Leases, events.ClockKey(), events.Steps{{Seq: 7, ByMS: -time.Hour.Milliseconds(), At: now}})
	found = c.doctor()
	expect(t, found, "set aside", levelWrong,
		"2 cannot be folded: h1/odd (its note cannot be read), h1/s1 (a wrong place)")
	expect(t, found, "owed to the feed", levelWrong, "1 cannot be fed: h1/fed (too large)")
	expect(t, found, "folded apart", levelNote, "1 session is read apart from the others: h1/long (too far behind)")
	expect(t, found, "clock", levelNote, "the broker's clock was set back by 1h0m0s")
}

// keep stores an entry as a service does.
func (c *upCell) keep(bk kv.Bucket, key string, entry any) {
	c.t.Helper()
	body, err := json.Marshal(entry)
	if err == nil {
		_, err = c.bus.KV.Store(c.t.Context(), bk, key, body, 0)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// TestDoctorOnAFullLog: the log is reported before its last bytes are used.
func TestDoctorOnAFullLog(t *testing.T) {
	for used, level := range map[uint64]string{logFullPercent - 1: levelOK, logFullPercent: levelWrong} {
		p := &patient{app: &app{}}
		p.layout(layout.Inspection{Streams: []layout.StreamState{{Msgs: 1, LastSeq: 1, Bytes: used, BytesMax: 100}}})
		if last := p.found[len(p.found)-1]; last.Check != "log" || last.Level != level {
			t.Errorf("%d of 100 bytes: %+v", used, last)
		}
	}
}

// TestDoctorOnTheStore: the bytes of each stream are reported with its limit. The streams without a limit are reported
// as worth knowing at a tenth of the log's limit, and a store as wrong at four fifths of the account's limit.
func TestDoctorOnTheStore(t *testing.T) {
	const most = 10 << 20
	for _, c := range []struct {
		account, accountMax, logMax, state uint64
		level, want                        string
	}{
		{0, 0, most, most/limitlessPart - 1, levelOK,
			"2.0 MiB in each copy: HF_LOG 512 bytes of 10.0 MiB, KV_hf_state 1024.0 KiB, KV_hf_leases 1.0 MiB of 2"},
		{0, 0, most, most / limitlessPart, levelNote, "streams without a limit have 1.0 MiB, more than a tenth"},
		{0, 0, 0, most, levelOK, "HF_LOG 512 bytes, KV_hf_state 10.0 MiB"},
		{799, 1000, most, 0, levelOK, "79 % of the account's 1000 bytes are used; 1.0 MiB in each copy"},
		{800, 1000, most, most, levelWrong, "80 % of the account's 1000 bytes are used; 11.0 MiB in each copy"},
	} {
		p := &patient{app: &app{}}
		p.store(layout.Inspection{Bytes: c.account, BytesMax: c.accountMax, Streams: []layout.StreamState{
			{Name: "HF_LOG", Bytes: 512, BytesMax: c.logMax}, {Name: "KV_hf_state", Bytes: c.state},
			{Name: "KV_hf_leases", Bytes: 1 << 20, BytesMax: 2 << 20}}})
		expect(t, map[string]finding{"store": p.found[0]}, "store", c.level, c.want)
	}
}

// TestDoctorOnACluster: the doctor reports which nodes hold the streams, and those that were not named.
func TestDoctorOnACluster(t *testing.T) {
	nodes := natstest.Cluster(t)
	natstest.Bus(t, nodes[0])
	c := &upCell{t: t, note: health.Note{NATS: nodes[0].URL()}}
	expect(t, c.doctor(), "nodes", levelOK, "node-1, node-2, node-3")
	expect(t, c.doctor("--node", "node-1", "--node", "node-2"), "nodes", levelWrong, "hold streams: node-3")
}

// TestDoctorIsInterrupted: a doctor that is asked to end prints one sentence, and finds nothing wrong.
func TestDoctorIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, flags := range [][]string{{}, {"--json"}} {
		var out, output strings.Builder
		p := &Program{Args: append([]string{"doctor", "--nats", "nats://127.0.0.1:1"}, flags...),
			Env: []string{"USER=ann"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &output}
		code := p.Run(ctx)
		if code != exitFailed || out.String() != "" || strings.Count(output.String(), "\n") != 1 ||
			!strings.Contains(output.String(), "interrupted before it was done") {
			t.Errorf("exit code %d, it printed %q and %q", code, out.String(), output.String())
		}
	}
}

// TestFindingsAreAligned: the text of each finding begins in the same terminal cell, however long its check is.
func TestFindingsAreAligned(t *testing.T) {
	var out strings.Builder
	a := newApp(&Program{Stdout: &out, Stderr: new(strings.Builder)})
	if err := a.printFindings([]finding{{Check: "log", Level: levelOK, Found: "FOUND"},
		{Check: "consumer reconciler-due", Level: levelNote, Found: "FOUND", Do: "wait"},
		{Check: "数据库连接池", Level: levelWrong, Found: "FOUND"}}); err != nil {
		t.Fatal(err)
	}
	const at = len("wrong consumer reconciler-due ")
	lines := 0
	for line := range strings.Lines(out.String()) {
		before, _, found := strings.Cut(line, "FOUND")
		if !found {
			// advice
			continue
		}
		if lines++; terminal.Width(before) != at {
			t.Errorf("the text begins in cell %d, want %d: %s", terminal.Width(before), at, line)
		}
	}
	if lines != 3 {
		t.Errorf("%d findings, want 3:\n%s", lines, out.String())
	}
}

// TestFindingsOfOne: a finding about one thing says so in the singular, and about several in the plural.
func TestFindingsOfOne(t *testing.T) {
	findings := func(n int) (texts []string) {
		p := &patient{app: &app{}}
		names := slices.Repeat([]string{"h/s"}, n)
		p.report(&tally{sessions: n, waiting: n, parked: n, ignored: n, unread: n, orphans: names, odd: names,
			untaken: names, stuck: names})
		p.compared(&ledger.Survey{Documents: n})
		p.compared(&ledger.Survey{Wrong: slices.Repeat([]events.Ref{{Harness: "h", Session: "s"}}, n)})
		for _, f := range p.found {
			texts = append(texts, f.Found)
		}
		return append(texts, waiting(uint64(n)))
	}
	for n, want := range map[int][]string{
		1: {"1 session, 1 with an open question", "1 open under a process that is gone: h/s",
			"1 waits for its harness for more than a minute: h/s", "1 waits for a person, after a failure: h/s",
			"1 is written by a newer version, or unreadable", "1 event could not be read: h/s",
			"1 event changed nothing: h/s", "the log has all that 1 document knows",
			"1 document missing, damaged or older than what was folded: h/s", "1 message waits"},
		2: {"2 sessions, 2 with an open question", "2 open under a process that is gone: h/s, h/s",
			"2 wait for their harness for more than a minute: h/s, h/s",
			"2 wait for a person, after a failure: h/s, h/s",
			"2 are written by a newer version, or unreadable", "2 events could not be read: h/s, h/s",
			"2 events changed nothing: h/s, h/s", "the log has all that 2 documents know",
			"2 documents missing, damaged or older than what was folded: h/s, h/s", "2 messages wait"},
	} {
		if got := findings(n); !slices.Equal(got, want) {
			t.Errorf("%d: %q", n, got)
		}
	}
}
