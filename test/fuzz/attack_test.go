package fuzz

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// answerMax is how long an attacker waits for a reply; many of its requests get none.
const answerMax = 20 * time.Millisecond

// facts are the data of facts of every kind as a harness, or a client that claims to be one, may write them. N is a
// small number, J any JSON, and T an instant.
var facts = []struct{ kind, data string }{
	{"session.opened", `{"incarnation":"1","exclusive":false,"title":"t","context_limit":N,` +
		`"policy":{"stall_after_s":N,"retry_max":N,"idle_compaction_after_s":N}}`},
	{"session.opened", `{"incarnation":"1","parent":"sN","parent_call":"cN","root":"sN"}`},
	{"session.claimed", `{"incarnation":"N"}`},
	{"session.released", `{"reason":"r"}`},
	{"session.closed", `{"reason":"finished"}`},
	{"session.orphaned", `{"reason":"owner-lost","incarnation":"1","waits_for":[{"call":"cN","child":"sN"}]}`},
	{"session.configured", `{"policy":{"auto_retry":false,"resume":"hold","stall_after_s":N},"by":"x"}`},
	{"message.accepted", `{"message":"mN","content":J,"synthetic":false,"by":"x"}`},
	{"message.withdrawn", `{"message":"mN","by":"x"}`},
	{"turn.requested", `{"turn":"tN","cause":"retry","options":J}`},
	{"turn.started", `{"turn":"tN","cause":"message","message":"mN","options":{"a":1,"retry":{"state":"scheduled",` +
		`"due_at":"T"},"x":J}}`},
	{"turn.started", `{"turn":"tN","cause":"retry","of_turn":"tN","attempt":N}`},
	{"turn.completed", `{"turn":"tN"}`},
	{"turn.failed", `{"turn":"tN","error":{"kind":"rate_limit","text":"x","retry_after_ms":N},"had_output":false}`},
	{"turn.failed", `{"turn":"tN","error":{"kind":"context_exceeded","text":"x"},"had_output":true}`},
	{"turn.stopped", `{"turn":"tN","actor":"person"}`},
	{"turn.stop_requested", `{"turn":"tN","actor":"compaction","by":"x","reason":"r"}`},
	{"turn.interrupted", `{"turn":"tN","reason":"owner-lost"}`},
	{"tool.started", `{"call":"cN","turn":"tN","name":"bash","input":J}`},
	{"tool.started", `{"call":"cN","turn":"tN","name":"bash","background":true}`},
	{"tool.completed", `{"call":"cN","output":J}`},
	{"tool.failed", `{"call":"cN","error":{"kind":"x","text":"y"}}`},
	{"tool.interrupted", `{"call":"cN","reason":"x","outcome":"unknown"}`},
	{"prompt.requested", `{"prompt":"pN","turn":"tN","call":"cN","kind":"question","delivery":"tool-result",` +
		`"questions":[{"id":"q","question":"?","options":[{"label":"a"}],"custom":true}],"deadline":"T"}`},
	{"prompt.requested", `{"prompt":"pN","kind":"permission","delivery":"callback","deadline":"T"}`},
	{"prompt.requested", `{"prompt":"pN","kind":"x","delivery":"message","on_owner_loss":"keep","questions":J}`},
	{"prompt.answered", `{"prompt":"pN","answers":[{"question":"q","selected":["a"]}],"by":"x"}`},
	{"prompt.withdrawn", `{"prompt":"pN","reason":"r"}`},
	{"prompt.delivered", `{"prompt":"pN","refused":"x"}`},
	{"prompt.rejected", `{"prompt":"pN","text":"x","by":"x","owed":true}`},
	{"prompt.dismissed", `{"prompt":"pN","by":"x"}`},
	{"prompt.superseded", `{"prompt":"pN","message":"mN"}`},
	{"prompt.expired", `{"prompt":"pN","reason":"deadline"}`},
	{"prompt.unattended", `{"prompt":"pN"}`},
	{"prompt.attended", `{"prompt":"pN"}`},
	{"usage.reported", `{"turn":"tN","model":"m","tokens":{"input":N,"output":N},"context_limit":N}`},
	{"retry.scheduled", `{"turn":"tN","attempt":N,"delay_ms":N,"due_at":"T","error":{"kind":"x","text":"y"}}`},
	{"retry.abandoned", `{"turn":"tN","attempt":N,"reason":"r"}`},
	{"compaction.requested", `{"compaction":"kN","reason":"idle","used":N,"limit":N}`},
	{"compaction.started", `{"compaction":"kN"}`},
	{"compaction.completed", `{"compaction":"kN","used_after":N}`},
	{"compaction.failed", `{"compaction":"kN","error":{"kind":"x","text":"y"}}`},
	{"some.thing", `J`},
}

// Values that replace those above, or a part of a written text.
var (
	numbers = []string{"0", "1", "2", "7", "100", "-1", "9223372036854775807", "18446744073709551616", "1e308", "2.5",
		"-0", "1e-9"}
	instants = []string{"9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2262-04-12T00:00:00Z", "1677-01-01T00:00:00Z",
		"2026-11-22T00:00:00.000000001Z", "", "x", "2026-02-30T00:00:00Z"}
	values = []string{`null`, `""`, `{}`, `[]`, `true`, `"\u0000\ud800"`, `[[[[[[[[]]]]]]]]`, `{"a":{"a":{"a":{}}}}`,
		`"` + "\xff" + `"`, `-1`, `{"phase":"idle","seq":1}`}
	headers = []string{"Nats-Rollup: all", "Nats-TTL: 1s", "Nats-Msg-Id: same", "Nats-Pin-Id: mine",
		"Nats-Batch-Id: b\r\nNats-Batch-Sequence: 1", "Nats-Batch-Commit: 1",
		"Nats-Schedule: @every 1s", "Nats-Schedule-Target: hf.log.probe.quiet.harness", "Nats-Expected-Stream: X",
		"Nats-Expected-Last-Msg-Id: x", "Nats-Incr: 1",
		"Content-Type: text/html", "no colon", "two\r\n\r\nblocks: x", "a key: x", ": no key", "X: \xff\x00",
		"KV-Operation: PURGE", "Nats-Marker-Reason: MaxAge", "Hf-Seq: 1", "Status: 503"}
	names = []string{"s1", "s2", "s3", "s4", "s5", "s=2E", "s=ZZ", "s=FF", "=", "s=41", "$x", strings.Repeat("n", 128),
		strings.Repeat("n", 200)}
)

// attacker has the rights of one harness: its own log, leases and hints, and messages to send.
type attacker struct {
	t       *testing.T
	harness string
	secured bool
	rnd     *rand.Rand
	nc      *nats.Conn
	addr    string
	raw     net.Conn
	lines   *bufio.Scanner
	last    map[string]uint64 // by session's token
	n       int
}

func newAttacker(u *users, harness string, rnd *rand.Rand) *attacker {
	u.Helper()
	at, err := url.Parse(u.server.URL())
	if err != nil {
		u.Fatal(err)
	}
	// refusals are expected
	options := []nats.Option{nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	if u.secured {
		options = append(options, nats.CustomInboxPrefix(events.Inbox(prefix, events.ClassHarness, harness)))
	}
	nc, err := nats.Connect(u.url(userOf(events.ClassHarness, harness)), options...)
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(nc.Close)
	return &attacker{t: u.T, harness: harness, secured: u.secured, rnd: rnd, nc: nc, addr: at.Host,
		last: map[string]uint64{}}
}

func (a *attacker) pick(from []string) string { return from[a.rnd.IntN(len(from))] }

func (a *attacker) one(in int) bool { return a.rnd.IntN(in) == 0 }

// write writes one thing.
func (a *attacker) write() {
	a.n++
	switch k := a.rnd.IntN(40); {
	case k < 30:
		a.commit()
	case k < 33:
		a.lease()
	case k < 36:
		a.request(a.verb("compaction", "send"),
			fmt.Sprintf(`{"harness":%q,"session":%q,"message":"m%d","content":%s,"by":"x"}`, a.harness, a.pick(names),
				a.rnd.IntN(9), a.pick(values)))
	case k < 38:
		a.publish("hf.progress."+a.harness+"."+a.pick(names), nil, a.pick(values))
	default:
		a.publish("hf.nudge."+a.harness, nil, a.pick(values))
	}
}

// commit appends some facts to one of its sessions, usually under the right guard.
func (a *attacker) commit() {
	name := a.pick(names)
	facts := make([]string, 1+a.rnd.IntN(4))
	if a.one(200) {
		facts = make([]string, events.CommitFactsMax+a.rnd.IntN(3)-1)
	}
	for i := range facts {
		facts[i] = a.fact(name)
	}
	body := "[" + strings.Join(facts, ",") + "]"
	if a.one(10) {
		body = a.damaged(body)
	}
	guard := fmt.Sprint(a.last[name])
	if a.one(20) {
		guard = a.pick(numbers)
	}
	subject := "hf.log." + a.harness + "." + name + ".harness"
	head := []string{"Content-Type: application/cloudevents-batch+json"}
	if !a.one(30) {
		head = append(head, "Nats-Expected-Last-Subject-Sequence: "+guard,
			"Nats-Expected-Last-Subject-Sequence-Subject: hf.log."+a.harness+"."+name+".*")
	}
	for a.one(4) {
		head = append(head, a.pick(headers))
	}
	a.rnd.Shuffle(len(head), func(i, k int) { head[i], head[k] = head[k], head[i] })
	a.publish(subject, head, body)
	a.learn(name)
}

// learn reads the last place of a session's log, which its harness may read.
func (a *attacker) learn(name string) {
	m, err := a.nc.Request("$JS.API.STREAM.MSG.GET.HF_LOG",
		fmt.Appendf(nil, `{"last_by_subj":"hf.log.%s.%s.*"}`, a.harness, name), answerMax)
	if err != nil {
		return
	}
	var last struct {
		Message struct {
			Seq uint64 `json:"seq"`
		} `json:"message"`
	}
	if json.Unmarshal(m.Data, &last) == nil && last.Message.Seq > 0 {
		a.last[name] = last.Message.Seq
	}
}

// fact is one fact in its envelope.
func (a *attacker) fact(name string) string {
	f := facts[a.rnd.IntN(len(facts))]
	var data strings.Builder
	for i := range len(f.data) {
		switch c := f.data[i]; {
		case c == 'N' && a.one(12):
			data.WriteString(a.pick(numbers))
		case c == 'N':
			fmt.Fprint(&data, a.rnd.IntN(6))
		case c == 'J':
			data.WriteString(a.pick(values))
		case c == 'T' && a.one(3):
			at := time.Now().Add(time.Duration(a.rnd.IntN(3_000)) * time.Millisecond)
			data.WriteString(at.UTC().Format(time.RFC3339Nano))
		case c == 'T':
			data.WriteString(a.pick(instants))
		default:
			data.WriteByte(c)
		}
	}
	epoch := "1"
	if a.one(10) {
		epoch = a.pick(numbers)
	}
	id, err := events.ID(name)
	if err != nil {
		id = name
	}
	subject, _, _ := strings.Cut(data.String(), ",")
	return fmt.Sprintf(`{"specversion":"1.0","id":"%s-%d","source":"/harness/%s/1","type":"holdfast.%s",`+
		`"subject":%q,"time":"2026-11-22T00:00:00Z","session":%q,"epoch":%s,"data":%s}`,
		a.harness, a.n, a.harness, f.kind, subject, id, epoch, data.String())
}

// damaged returns a text with a part removed, inserted or repeated.
func (a *attacker) damaged(text string) string {
	at, to := a.rnd.IntN(len(text)), a.rnd.IntN(len(text))
	at, to = min(at, to), max(at, to)
	switch a.rnd.IntN(5) {
	case 0:
		return text[:at] + text[to:]
	case 1:
		return text[:at] + a.pick(values) + text[at:]
	case 2:
		return text[:at] + text[at:to] + text[at:]
	case 3:
		return text[:at]
	default:
		return text[:at] + string(rune(a.rnd.IntN(256))) + text[min(at+1, len(text)):]
	}
}

// lease writes one of its leases, or takes a ticket.
func (a *attacker) lease() {
	key := "harness." + a.harness + "." + a.pick([]string{"1", "2", "x", "18446744073709551615"})
	body := fmt.Sprintf(`{"id":%q,"incarnation":"1","exclusive":%s,"state":%q,"ttl_ms":%s}`, a.harness, a.pick(values),
		a.pick([]string{"ready", "starting", "draining", "x"}), a.pick(numbers))
	if a.one(4) {
		key = "ticket." + a.harness
	}
	if a.one(3) {
		body = a.damaged(body)
	}
	a.publish("$KV.hf_leases."+key, []string{"Nats-TTL: " + a.pick([]string{"1s", "2s", "never", "x", "-1"}), "X: y"},
		body)
}

// verb returns the subject of a request: with its own name in a secured cell, sometimes with another one.
func (a *attacker) verb(service, verb string) string {
	subject := "hf.svc." + service + "." + verb
	switch {
	case !a.secured:
		return subject
	case a.one(10):
		return subject + a.pick([]string{"", "." + asks, ".harness.probe", ".harness", "."})
	default:
		return subject + ".harness." + a.harness
	}
}

func (a *attacker) request(subject, body string) {
	if a.one(3) {
		body = a.damaged(body)
	}
	// any reply will do
	_, _ = a.nc.Request(subject, []byte(body), answerMax)
}

// publish sends a message with these lines as its headers, as they are, and waits until the broker has taken it.
func (a *attacker) publish(subject string, head []string, body string) {
	if a.raw == nil {
		var err error
		if a.raw, err = net.Dial("tcp", a.addr); err != nil {
			a.t.Error(err)
			return
		}
		a.t.Cleanup(func() { a.close() })
		a.lines = bufio.NewScanner(a.raw)
		login := ""
		if a.secured {
			login = fmt.Sprintf(`"user":%q,"pass":%q,`, userOf(events.ClassHarness, a.harness), password)
		}
		fmt.Fprintf(a.raw, "CONNECT {%s\"headers\":true,\"verbose\":false,\"pedantic\":false}\r\n", login)
	}
	block := ""
	if len(head) > 0 {
		block = "NATS/1.0\r\n" + strings.Join(head, "\r\n") + "\r\n\r\n"
	}
	if len(body)+len(block) > events.CommitBytesMax {
		return
	}
	if block == "" {
		fmt.Fprintf(a.raw, "PUB %s %d\r\n%s\r\nPING\r\n", subject, len(body), body)
	} else {
		fmt.Fprintf(a.raw, "HPUB %s %d %d\r\n%s%s\r\nPING\r\n", subject, len(block), len(block)+len(body), block, body)
	}
	for a.lines.Scan() {
		if a.lines.Text() == "PONG" {
			return
		}
	}
	// the broker closed the connection
	a.close()
}

func (a *attacker) close() {
	if a.raw != nil {
		_ = a.raw.Close()
		a.raw = nil
	}
}
