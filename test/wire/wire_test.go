// Package wire tests the program and the names on the wire. It contains a harness, a screen and a person written with a
// plain NATS client, as a program in any language would be.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/test/program"
)

var binary string

func TestMain(m *testing.M) {
	os.Exit(program.Main(m.Run, map[string]*string{program.Holdfast: &binary}))
}

const (
	patience = 90 * time.Second // for events that must happen
	leaveMax = 10 * time.Second // for a program that is asked to end
)

// TTLs of leases that are not renewed: of living processes, and of processes that die at the end of a test.
const (
	lasting = time.Hour
	dying   = 4 * time.Second
)

// soon returns how late an event promised within a second may be: a second, plus the time that the machine lost.
func soon(p *natstest.Pulse) time.Duration { return time.Second + p.Lost() }

// cell is a running `holdfast up`, seen from outside.
type cell struct {
	t      *testing.T
	dir    string
	prefix string
	http   string
	up     *program.Process
	nc     *nats.Conn
	js     jetstream.JetStream
	state  jetstream.KeyValue
	leases jetstream.KeyValue
	seq    map[string]uint64
}

func up(t *testing.T, flags ...string) *cell {
	t.Helper()
	c := &cell{t: t, dir: t.TempDir(), prefix: "hf", seq: map[string]uint64{}}
	if len(flags) > 1 && flags[0] == "--prefix" {
		c.prefix = flags[1]
	}
	c.start("127.0.0.1:0", flags...)
	return c
}

// start runs the program and connects when it is ready.
func (c *cell) start(listen string, flags ...string) {
	c.t.Helper()
	c.up = program.Run(c.t, binary, nil, append([]string{"up", "--data", filepath.Join(c.dir, "data"), "--listen",
		listen, "--http", "127.0.0.1:0"}, flags...)...)
	c.http = c.up.HTTP
	var err error
	if c.nc, err = nats.Connect(c.up.NATS); err != nil {
		c.t.Fatal(err)
	}
	nc := c.nc
	c.t.Cleanup(func() { nc.Close(); c.stop() })
	if c.js, err = jetstream.New(c.nc); err != nil {
		c.t.Fatal(err)
	}
	if c.state, err = c.js.KeyValue(c.t.Context(), c.prefix+"_state"); err != nil {
		c.t.Fatal(err)
	}
	if c.leases, err = c.js.KeyValue(c.t.Context(), c.prefix+"_leases"); err != nil {
		c.t.Fatal(err)
	}
}

// stop ends the program with SIGTERM, unless it has ended. It must exit with status 0 in time.
func (c *cell) stop() {
	select {
	case <-c.up.Done():
		if err := c.up.Fallen(); err != nil {
			c.t.Error(err)
		}
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveMax)
	defer cancel()
	if err := c.up.Terminate(ctx); err != nil {
		c.t.Errorf("up ended with %v", err)
	}
}

func (c *cell) until(what string, ok func() bool) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			c.t.Fatalf("not in time: %s", what)
		}
	}
}

// fact is a fact of a harness, as in the contract.
type fact struct {
	kind, subject string
	data          string
}

// append publishes a commit with the session's compare-and-set.
func (c *cell) append(session, incarnation string, epoch int, facts ...fact) (*jetstream.PubAck, error) {
	var batch []map[string]any
	for i, f := range facts {
		batch = append(batch, map[string]any{"specversion": "1.0",
			"id": fmt.Sprintf("%s-%d-%d", session, c.seq[session], i), "source": "/harness/h1/" + incarnation,
			"type": "holdfast." + f.kind, "subject": f.subject, "time": time.Now().Format(time.RFC3339Nano),
			"session": session, "epoch": epoch, "data": json.RawMessage(f.data)})
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	return c.publish(session, body)
}

func (c *cell) publish(session string, body []byte) (*jetstream.PubAck, error) {
	msg := nats.NewMsg("hf.log.h1." + session + ".harness")
	msg.Data = body
	msg.Header.Set("Content-Type", "application/cloudevents-batch+json")
	msg.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(c.seq[session], 10))
	msg.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", "hf.log.h1."+session+".*")
	ack, err := c.js.PublishMsg(c.t.Context(), msg)
	if err == nil {
		c.seq[session] = ack.Sequence
	}
	return ack, err
}

func (c *cell) mustAppend(session, incarnation string, epoch int, facts ...fact) {
	c.t.Helper()
	if _, err := c.append(session, incarnation, epoch, facts...); err != nil {
		c.t.Fatalf("append: %v", err)
	}
}

// ticket draws an incarnation: the broker's time in microseconds, or one more than the ticket before it.
func (c *cell) ticket(harness string) string {
	c.t.Helper()
	key := "ticket." + harness
	for {
		m, err := c.nc.RequestWithContext(c.t.Context(), "$JS.API.STREAM.INFO.HF_LOG", nil)
		if err != nil {
			c.t.Fatal(err)
		}
		var info struct {
			TS time.Time `json:"ts"`
		}
		if err := json.Unmarshal(m.Data, &info); err != nil {
			c.t.Fatal(err)
		}
		n, rev := info.TS.UnixMicro(), uint64(0)
		e, err := c.leases.Get(c.t.Context(), key)
		switch {
		case err == nil:
			var before struct {
				Incarnation int64 `json:"incarnation,string"`
			}
			// an entry without a ticket counts as its revision
			_ = json.Unmarshal(e.Value(), &before)
			rev = e.Revision()
			n = max(n, before.Incarnation+1, int64(rev)+1)
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			c.t.Fatal(err)
		}
		value := fmt.Sprintf(`{"incarnation":"%d","instance":"by hand"}`, n)
		if rev == 0 {
			_, err = c.leases.Create(c.t.Context(), key, []byte(value))
		} else {
			_, err = c.leases.Update(c.t.Context(), key, []byte(value), rev)
		}
		if err == nil {
			return strconv.FormatInt(n, 10)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			c.t.Fatal(err)
		}
	}
}

// lease takes an incarnation and creates a lease under it that is not renewed.
func (c *cell) lease(state string, ttl time.Duration) string {
	c.t.Helper()
	inc := c.ticket("h1")
	value := fmt.Sprintf(`{"id":"h1","incarnation":%q,"exclusive":true,"state":%q,"ttl_ms":%d}`, inc, state,
		ttl.Milliseconds())
	if _, err := c.leases.Create(c.t.Context(), "harness.h1."+inc, []byte(value), jetstream.KeyTTL(ttl)); err != nil {
		c.t.Fatal(err)
	}
	return inc
}

// entry waits until a key of the state bucket satisfies ok.
func (c *cell) entry(key string, ok func(map[string]any) bool) map[string]any {
	c.t.Helper()
	var doc map[string]any
	c.until(key, func() bool {
		e, err := c.state.Get(c.t.Context(), key)
		doc = nil
		return err == nil && json.Unmarshal(e.Value(), &doc) == nil && ok(doc)
	})
	return doc
}

func (c *cell) gone(key string) {
	c.t.Helper()
	c.until(key+" gone", func() bool {
		_, err := c.state.Get(c.t.Context(), key)
		return errors.Is(err, jetstream.ErrKeyNotFound)
	})
}

// ask sends a request; code is "" for a success.
func (c *cell) ask(verb, body string) (code string, reply map[string]any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	m, err := c.nc.RequestWithContext(ctx, "hf.svc."+verb, []byte(body))
	if err != nil {
		c.t.Fatalf("%s: %v", verb, err)
	}
	if len(m.Data) > 0 {
		if err := json.Unmarshal(m.Data, &reply); err != nil {
			c.t.Fatalf("%s: %s: %v", verb, m.Data, err)
		}
	}
	return m.Header.Get("Nats-Service-Error-Code"), reply
}

const question = `"kind":"question","title":"Which?","questions":[{"id":"q","question":"Which?",` +
	`"options":[{"label":"a"},{"label":"b"}],"multi":false,"custom":false}]`

// open opens a session with a running call, a prompt with a callback, and a prompt to keep.
func (c *cell) open(session, inc string) {
	c.t.Helper()
	c.mustAppend(session, inc, 1, fact{"session.opened", session, `{"incarnation":"` + inc + `","title":"by hand"}`})
	c.mustAppend(session, inc, 1, fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false}`},
		fact{"tool.started", "c1", `{"call":"c1","turn":"t1","name":"bash"}`},
		fact{"tool.started", "c2", `{"call":"c2","turn":"t1","name":"ask"}`},
		fact{"prompt.requested", "callback",
			`{"prompt":"callback","turn":"t1",` + question + `,"delivery":"callback"}`},
		fact{"prompt.requested", "keep",
			`{"prompt":"keep","turn":"t1","call":"c2",` + question + `,"delivery":"tool-result"}`})
}

func at(doc map[string]any, path ...string) any {
	var v any = doc
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func TestADeadHarnessIsRecoveredAndItsQuestionStaysAnswerable(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "1s", "--adoption-grace", "1s")
	inc := c.lease("ready", dying)
	c.open("s1", inc)
	doc := c.entry("session.h1.s1", func(d map[string]any) bool { return d["phase"] == "waiting" })
	if doc["v"] != 1.0 || doc["owned"] != true || doc["epoch"] != 1.0 ||
		at(doc, "prompts", "keep", "status") != "awaiting" || at(doc, "tools", "c1", "name") != "bash" {
		t.Errorf("document: %v", doc)
	}
	c.entry("session.h1.s1", func(d map[string]any) bool { return d["owned"] == false })
	doc = c.entry("session.h1.s1", func(d map[string]any) bool { return at(d, "tools", "c1") == nil })
	if doc["phase"] != "waiting" || at(doc, "tools", "c2") == nil ||
		at(doc, "prompts", "keep", "status") != "awaiting" || at(doc, "prompts", "callback") != nil ||
		at(doc, "turn", "id") != "t1" {
		t.Errorf("recovered: %v", doc)
	}
	view := c.entry("blocker.h1.s1.s1.callback", func(d map[string]any) bool { return d["status"] == "expired" })
	if view["reason"] != "owner-lost" || view["owned"] != false {
		t.Errorf("expired: %v", view)
	}
	if _, err := c.append("s1", inc, 1, fact{"tool.completed", "c1", `{"call":"c1"}`}); err == nil {
		t.Error("the dead harness could write")
	}
	code, reply := c.ask("ledger.answer",
		`{"harness":"h1","session":"s1","prompt":"callback","by":"ada","answers":[{"question":"q","selected":["a"]}]}`)
	if code != "410" || reply["status"] != "expired" || reply["reason"] != "owner-lost" {
		t.Errorf("answer to the expired: %s %v", code, reply)
	}
	code, reply = c.ask("ledger.answer",
		`{"harness":"h1","session":"s1","prompt":"keep","by":"ada","answers":[{"question":"q","selected":["a"]}]}`)
	if code != "" || reply["seq"] == nil {
		t.Fatalf("answer to the kept: %s %v", code, reply)
	}
	work := c.entry("work.h1.s1", func(d map[string]any) bool { return at(d, "turn", "cause") == "answer" })
	if work["owned"] != false || at(work, "turn", "of_turn") != "t1" {
		t.Errorf("work: %v", work)
	}
	c.takeOver(work)
}

// takeOver claims a session without an owner as the next incarnation, in one commit.
func (c *cell) takeOver(work map[string]any) {
	c.t.Helper()
	inc := c.lease("ready", lasting)
	c.seq["s1"] = uint64(work["seq"].(float64))
	turn := at(work, "turn", "turn").(string)
	c.mustAppend("s1", inc, 2, fact{"session.claimed", "s1", `{"incarnation":"` + inc + `"}`},
		fact{"turn.started", turn, `{"turn":"` + turn + `","cause":"answer","synthetic":false,"of_turn":"t1"}`})
	doc := c.entry("session.h1.s1", func(d map[string]any) bool { return d["phase"] == "running" })
	if doc["incarnation"] != inc || at(doc, "last_turn", "outcome") != "continued" || at(doc, "turn", "id") != turn {
		c.t.Errorf("taken over: %v", doc)
	}
	c.gone("work.h1.s1")
}

func TestBadInputIsParkedAndTheSessionGoesOn(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.open("s1", inc)
	if _, err := c.publish("s1", []byte("this is no batch")); err != nil {
		t.Fatal(err)
	}
	// a kind that the harness may not append
	c.mustAppend("s1", inc, 1, fact{"tool.interrupted", "c1", `{"call":"c1","reason":"x"}`})
	// an epoch of the future
	c.mustAppend("s1", inc, 7, fact{"tool.completed", "c1", `{"call":"c1"}`})
	c.mustAppend("s1", inc, 1, fact{"tool.vanished", "c1", `{}`})
	c.mustAppend("s1", inc, 1, fact{"tool.completed", "c1", `{"call":"c1"}`})
	doc := c.entry("session.h1.s1", func(d map[string]any) bool { return d["seq"] == float64(c.seq["s1"]) })
	if doc["parked"] != 2.0 || doc["unknown_facts"] != 1.0 || at(doc, "ignored", "count") != 1.0 ||
		at(doc, "ignored", "last", "why") != "epoch" || at(doc, "tools", "c1") != nil {
		t.Errorf("document: %v", doc)
	}
	parked, err := c.js.Stream(t.Context(), "HF_PARKED")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"hf.parked.malformed.h1.s1", "hf.parked.out-of-role.h1.s1"} {
		m, err := parked.GetMsg(t.Context(), uint64(i+1))
		if err != nil || m.Subject != want || m.Header.Get("Hf-Parked-Reason") == "" {
			t.Errorf("parked %d: %v %+v", i, err, m)
		}
	}
}

func TestRacesAndWrongGuardsAreRefusedByTheBroker(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.open("s1", inc)
	c.seq["s1"]--
	_, err := c.append("s1", inc, 1, fact{"tool.completed", "c1", `{"call":"c1"}`})
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok || api.ErrorCode != 10071 && api.ErrorCode != 10164 {
		t.Errorf("a lost race: %v", err)
	}
}

func TestEverythingIsThereAfterAKill(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.open("s1", inc)
	c.entry("blocker.h1.s1.s1.keep", func(d map[string]any) bool { return d["status"] == "awaiting" })
	url := c.nc.ConnectedAddr()
	c.nc.Close()
	if err := c.up.Fallen(); err != nil {
		t.Fatal(err)
	}
	c.up.Kill()
	c.start(url)
	code, reply := c.ask("ledger.answer",
		`{"harness":"h1","session":"s1","prompt":"keep","by":"ada","answers":[{"question":"q","selected":["b"]}]}`)
	if code != "" {
		t.Fatalf("answer: %s %v", code, reply)
	}
	c.seq["s1"] = uint64(reply["seq"].(float64))
	work := c.entry("work.h1.s1", func(d map[string]any) bool {
		return at(d, "prompts", "keep", "status") == "answered"
	})
	if work["owned"] != true {
		t.Errorf("the owner was declared dead while only the broker was away: %v", work)
	}
	c.mustAppend("s1", inc, 1, fact{"tool.completed", "c2", `{"call":"c2","output":{"answer":"b"}}`})
	c.gone("work.h1.s1")
}
