package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// as appends one fact with another writer than the harness.
func (c *cell) as(writer, session string, epoch int, f fact) {
	c.t.Helper()
	body, err := json.Marshal([]map[string]any{{"specversion": "1.0", "id": fmt.Sprint(writer, c.seq[session]),
		"source": "/service/" + writer + "/x", "type": "holdfast." + f.kind,
		"subject": f.subject, "time": time.Now().Format(time.RFC3339Nano), "session": session, "epoch": epoch,
		"data": json.RawMessage(f.data)}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.seq[session] = c.send("hf.log.h1."+session+"."+writer, string(body), int(c.seq[session]))
}

// always checks the fields that every document has.
func always(t *testing.T, d map[string]any) {
	t.Helper()
	for _, k := range []string{"v", "epoch", "seq", "commits", "unknown_facts", "parked"} {
		if _, ok := d[k].(float64); !ok {
			t.Errorf("%s: %v, want a number", k, d[k])
		}
	}
	for _, k := range []string{"harness", "session", "root", "parent", "title", "agent", "model", "incarnation",
		"superseded_by", "phase"} {
		if _, ok := d[k].(string); !ok {
			t.Errorf("%s: %v, want a text", k, d[k])
		}
	}
	for _, k := range []string{"exclusive", "owned"} {
		if _, ok := d[k].(bool); !ok {
			t.Errorf("%s: %v, want a boolean", k, d[k])
		}
	}
	for _, k := range []string{"opened_at", "updated_at", "active_at"} {
		if _, err := time.Parse(time.RFC3339Nano, fmt.Sprint(d[k])); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	if _, ok := at(d, "ignored", "count").(float64); !ok {
		t.Errorf("ignored: %v", d["ignored"])
	}
	for _, k := range []string{"auto_retry", "retry_max", "resume", "resume_max", "compaction_threshold",
		"context_limit", "idle_compaction_after_s", "stall_after_s"} {
		if at(d, "policy", k) == nil {
			t.Errorf("policy has no %s", k)
		}
	}
	all, _ := d["recent"].([]any)
	for _, e := range all {
		if _, ok := e.(map[string]any)["late"]; !ok {
			t.Errorf("an ending without late: %v", e)
		}
	}
}

func instant(t *testing.T, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(v))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The document shows retry, usage and compaction.
func TestTheDocumentShowsRetryUsageAndCompaction(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.mustAppend("s1", inc, 1, fact{"session.opened", "s1",
		`{"incarnation":"` + inc +
			`","title":"T","agent":"a","model":"m","context_limit":200000,"policy":{"stall_after_s":5}}`})
	d := c.settled("s1")
	always(t, d)
	if d["phase"] != "idle" || at(d, "policy", "stall_after_s") != 5.0 || d["agent"] != "a" || d["root"] != "s1" {
		t.Errorf("opened: %v", d)
	}
	c.mustAppend("s1", inc, 1, fact{"message.accepted", "m1", `{"message":"m1","content":"hi","synthetic":false}`})
	if d = c.settled("s1"); d["phase"] != "queued" || len(d["queue"].([]any)) != 1 {
		t.Errorf("queued: %v", d)
	}
	// handed out
	c.entry("session.h1.s1", func(d map[string]any) bool { return at(d, "pending", "turn", "message") == "m1" })
	c.fresh("s1")
	c.mustAppend("s1", inc, 1, fact{"turn.started", "t1",
		`{"turn":"t1","cause":"message","synthetic":false,"message":"m1","options":{"x":1}}`},
		fact{"usage.reported", "t1",
			`{"turn":"t1","model":"m","tokens":{"input":100000,"cache_read":20000,"cache_write":0,"output":7,` +
				`"reasoning":0}}`})
	d = c.settled("s1")
	always(t, d)
	if d["phase"] != "running" || d["queue"] != nil || at(d, "turn", "message") != "m1" ||
		at(d, "turn", "options", "x") != 1.0 || at(d, "turn", "attempt") != 1.0 || at(d, "usage", "used") != 120000.0 ||
		at(d, "usage", "limit") != 200000.0 || at(d, "usage", "percent") != 60.0 || at(d, "usage", "warn") != true ||
		at(d, "usage", "tokens", "cache_read") != 20000.0 {
		t.Errorf("running: %v", d)
	}
	c.mustAppend("s1", inc, 1, fact{"turn.failed", "t1",
		`{"turn":"t1","error":{"kind":"server_error","text":"boom","status":500,"retry_after_ms":600000},` +
			`"had_output":true}`})
	d = c.entry("session.h1.s1", func(d map[string]any) bool { return at(d, "retry", "state") == "scheduled" })
	always(t, d)
	if failed, due := instant(t, at(d, "last_turn", "at")),
		instant(t, at(d, "retry", "due_at")); due.Sub(failed) != 600*time.Second {
		t.Errorf("failed at %s, due at %s", failed, due)
	}
	if d["phase"] != "retrying" || at(d, "retry", "state") != "scheduled" || at(d, "retry", "attempt") != 1.0 ||
		at(d, "retry", "same_failures") != 1.0 ||
		at(d, "retry", "resumes") != 0.0 || at(d, "last_turn", "outcome") != "failed" ||
		at(d, "last_turn", "error", "kind") != "server_error" || at(d, "last_turn", "options", "x") != 1.0 ||
		at(d, "last_turn", "message") != "m1" {
		t.Errorf("retrying: %v", d)
	}
	c.fresh("s1")
	code, reply := c.ask("ledger.stop", `{"harness":"h1","session":"s1","by":"ada"}`)
	if d = c.fresh("s1"); code != "" || at(d, "retry", "state") != "abandoned" || d["phase"] != "idle" {
		t.Errorf("stop of a retry: %s %v %v", code, reply, d)
	}
	c.as("compaction", "s1", 1,
		fact{"compaction.requested", "k1", `{"compaction":"k1","reason":"manual","used":120000,"limit":200000}`})
	w := c.entry("work.h1.s1", func(d map[string]any) bool { return at(d, "compaction", "compaction") == "k1" })
	if d = c.settled("s1"); d["phase"] != "compacting" || at(d, "compaction", "state") != "requested" ||
		at(d, "pending", "compaction") == nil || at(w, "compaction", "reason") != "manual" {
		t.Errorf("compacting: %v", d)
	}
	c.mustAppend("s1", inc, 1, fact{"compaction.started", "k1", `{"compaction":"k1"}`},
		fact{"compaction.completed", "k1", `{"compaction":"k1","used_after":500}`})
	d = c.settled("s1")
	always(t, d)
	if at(d, "last_compaction", "outcome") != "completed" || at(d, "last_compaction", "used_before") != 120000.0 ||
		at(d, "last_compaction", "used_after") != 500.0 || d["usage"] != nil || d["compaction"] != nil {
		t.Errorf("compacted: %v", d)
	}
}

// Of many simultaneous decisions one counts (P9), and every asker gets that one as the reply.
func TestManyAnswerAtOnce(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	const prompts, people = 20, 6
	var asked []fact
	for i := range prompts {
		asked = append(asked, prompt(fmt.Sprint("p", i), `,"turn":"t1","delivery":"message"`))
	}
	c.begin("s1", inc, asked...)
	for i := range prompts {
		type declared struct {
			code, label string
			reply       map[string]any
		}
		all := make([]declared, people)
		var wg sync.WaitGroup
		for k := range people {
			label := []string{"a", "b"}[k%2]
			wg.Go(func() {
				body := fmt.Sprintf(`{"harness":"h1","session":"s1","prompt":"p%d","by":"person-%d",`+
					`"answers":[{"question":"q","selected":[%q]}]}`, i, k, label)
				if m, err := c.nc.Request("hf.svc.ledger.answer", []byte(body), patience); err == nil {
					all[k] = declared{code: m.Header.Get("Nats-Service-Error-Code"), label: label}
					if json.Unmarshal(m.Data, &all[k].reply) != nil {
						all[k].code = "unreadable"
					}
				}
			})
		}
		wg.Wait()
		won := all[slices.IndexFunc(all, func(s declared) bool { return s.code == "" })]
		for _, s := range all {
			switch {
			case s.code == "" && s.label == won.label && s.reply["seq"] == won.reply["seq"]:
			case s.code == "409" && s.label != won.label && s.reply["status"] == "answered" &&
				s.reply["seq"] == won.reply["seq"] && strings.Contains(fmt.Sprint(s.reply["answers"]), won.label):
			default:
				t.Errorf("prompt %d, %s won: %+v", i, won.label, s)
			}
		}
	}
	d := c.fresh("s1")
	if d["commits"] != float64(1+prompts) || at(d, "ignored", "count") != 0.0 {
		t.Errorf("%v commits, %v", d["commits"], d["ignored"])
	}
}

// In a pool each member recovers only its own sessions.
func TestOneOfAPoolDies(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "500ms")
	member := func(ttl time.Duration) string {
		inc := c.ticket("h1")
		if _, err := c.leases.Create(t.Context(), "harness.h1."+inc,
			[]byte(`{"id":"h1","incarnation":"`+inc+`","exclusive":false,"state":"ready","ttl_ms":`+
				fmt.Sprint(ttl.Milliseconds())+`}`), keyTTL(ttl)); err != nil {
			t.Fatal(err)
		}
		return inc
	}
	open := func(s, inc string) {
		c.mustAppend(s, inc, 1, fact{"session.opened", s,
			`{"incarnation":"` + inc + `","exclusive":false,"policy":{"resume":"hold"}}`},
			fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":false}`})
	}
	lasts, dies := member(lasting), member(dying)
	open("s1", lasts)
	open("s2", dies)
	d := c.entry("session.h1.s2", has("t1"))
	if d["owned"] != false || d["phase"] != "interrupted" {
		t.Errorf("the dead one's: %v", d)
	}
	later := member(60 * time.Second)
	c.mustAppend("s1", later, 2, fact{"session.claimed", "s1", `{"incarnation":"` + later + `","exclusive":false}`})
	d = c.settled("s1")
	if d["owned"] != true || d["phase"] != "running" || d["epoch"] != 1.0 || d["incarnation"] != lasts ||
		at(d, "ignored", "count") != 1.0 {
		t.Errorf("the living one's: %v", d)
	}
	c.fresh("s2")
	c.mustAppend("s2", lasts, 2, fact{"session.claimed", "s2", `{"incarnation":"` + lasts + `","exclusive":false}`})
	if d = c.settled("s2"); d["owned"] != true || d["epoch"] != 2.0 {
		t.Errorf("an older member takes over: %v", d)
	}
}

// The owner dies between the answer and its delivery: the answer still becomes the call's output (P13). Its compaction
// has failed (R17).
func TestAnsweredThenDied(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "500ms")
	inc := c.lease("ready", dying)
	c.begin("s1", inc, fact{"tool.started", "c", `{"call":"c","turn":"t1","name":"ask"}`},
		prompt("p", `,"turn":"t1","call":"c","delivery":"tool-result"`))
	c.begin("s2", inc)
	c.as("compaction", "s2", 1,
		fact{"compaction.requested", "k1",
			`{"compaction":"k1","reason":"on-send","used":5,"limit":9,"follow_up":"message","message":"m1"}`})
	c.mustAppend("s2", inc, 1, fact{"turn.completed", "t1", `{"turn":"t1"}`},
		fact{"compaction.started", "k1", `{"compaction":"k1"}`})
	if code, reply := c.answer("s1", "p"); code != "" {
		t.Fatalf("answer: %s %v", code, reply)
	}
	w := c.entry("work.h1.s1", func(d map[string]any) bool { return at(d, "turn") != nil })
	d := c.fresh("s1")
	if at(w, "turn", "cause") != "answer" || at(w, "turn", "of_turn") != "t1" || w["owned"] != false ||
		ending(d, "tool", "c")["outcome"] != "completed" || at(d, "turn", "id") != "t1" {
		t.Errorf("%v %v", w, d)
	}
	d = c.entry("session.h1.s2", func(d map[string]any) bool { return d["last_compaction"] != nil })
	if at(d, "last_compaction", "outcome") != "failed" || at(d, "last_compaction", "error", "kind") != "owner-lost" ||
		d["owned"] != false || at(d, "last_compaction", "failures") != 1.0 {
		t.Errorf("compaction: %v", d)
	}
}
