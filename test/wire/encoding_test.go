package wire

import (
	"strings"
	"testing"
)

// Clients in other languages encode some values in other ways: an error as a text, whole numbers with a point, unknown
// attributes, missing data. A failed call counts as failed in each encoding.
func TestFactsInOtherEncodings(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc, fact{"tool.started", "c1", `{"call":"c1","turn":"t1","name":"bash"}`},
		fact{"tool.started", "c2", `{"call":"c2","turn":"t1","name":"bash"}`},
		fact{"tool.failed", "c1", `{"call":"c1","error":"exit 1"}`}, fact{"tool.failed", "c2", `{"call":"c2"}`},
		fact{"usage.reported", "t1",
			`{"turn":"t1","model":"m","tokens":{"input":1200.0,"cache_read":3e2,"cache_write":0.0,"output":1.0,` +
				`"reasoning":0},"context_limit":2e5}`})
	d := c.settled("s1")
	if e := ending(d, "tool", "c1"); e["outcome"] != "failed" || e["reason"] != "exit 1" ||
		ending(d, "tool", "c2")["outcome"] != "failed" || at(d, "usage", "used") != 1500.0 || d["parked"] != 0.0 {
		t.Errorf("as other languages write it: %v", d)
	}
	// null
	if _, err := c.publish("s1", []byte(`[`+event(inc, map[string]any{"epoch": []byte(nil)})+`]`)); err != nil {
		t.Fatal(err)
	}
	one := `[{"specversion":"1.0","id":"x","source":"/harness/h1/` + inc +
		`","type":"holdfast.turn.failed","subject":"t1","session":"s1","epoch":1.0,` +
		`"datacontenttype":"application/json; charset=utf-8",` +
		`"time":"2026-01-01T12:00:00.5+05:30",` +
		`"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","ours":7,"data":{"turn":"t1",` +
		`"error":"no model","had_output":false,"ours":{}}}]`
	if _, err := c.publish("s1", []byte(one)); err != nil {
		t.Fatal(err)
	}
	d = c.settled("s1")
	if at(d, "last_turn", "outcome") != "failed" || at(d, "last_turn", "error", "text") != "no model" ||
		d["parked"] != 1.0 {
		t.Errorf("a turn that failed with a text: %v", d)
	}
	c.retry("s1", "scheduled")
	c.fresh("s1")
	if _, err := c.publish("s1",
		[]byte(`[`+event(inc, map[string]any{"type": "holdfast.session.released", "subject": "s1", "data": nil})+
			`]`)); err != nil {
		t.Fatal(err)
	}
	if d = c.settled("s1"); d["owned"] != false {
		t.Errorf("released without data: %v", d)
	}
}

// Requests are read with the same tolerance; a refusal names the wrong field.
func TestRequestsInOtherEncodings(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("s1", inc)
	if code, reply := c.ask("ledger.configure",
		`{"harness":"h1","session":"s1","policy":{"stall_after_s":5.0,"retry_max":3.0},"by":"ada"}`); code != "" {
		t.Errorf("configure: %s %v", code, reply)
	}
	if d := c.fresh("s1"); at(d, "policy", "stall_after_s") != 5.0 || at(d, "policy", "retry_max") != 3.0 {
		t.Errorf("configured: %v", d["policy"])
	}
	for _, x := range []struct{ verb, body, code, field, want string }{
		{"reconciler.sweep", `{"harness":"h1","session":"absent"}`, "404", "what", "session"},
		{"reconciler.sweep", `{"harness":"h1","session":"absent","dry_run":true}`, "404", "what", "session"},
		{"reconciler.sweep", `{"dry_run":"yes"}`, "400", "field", "dry_run"},
		{"reconciler.sweep", `{"session":"s1"}`, "400", "field", "harness"},
		{"ledger.list", `{"limit":-1}`, "400", "field", "limit"},
		{"ledger.configure", `{"harness":"h1","session":"s1","policy":{"stall_after_s":1.5},"by":"ada"}`, "400",
			"field", "policy.stall_after_s"},
	} {
		if code, reply := c.ask(x.verb, x.body); code != x.code || reply[x.field] != x.want {
			t.Errorf("%s %s: %s %v, want %s %s", x.verb, x.body, code, reply, x.code, x.want)
		}
	}
	// a list has the documents that are stored
	c.settled("s1")
	code, reply := c.ask("ledger.list", `{"limit":100000}`)
	if all, _ := reply["documents"].([]any); code != "" || len(all) != 1 {
		t.Errorf("a page larger than any: %s %v", code, reply)
	}
}

// Leases from clients in any language: exclusive by default, with numbers and times in any encoding; a purged lease is
// released like a deleted one.
func TestLeasesInOtherEncodings(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "10m", "--adoption-grace", "10m")
	lease := func(value string) string {
		inc := c.ticket("h1")
		if _, err := c.leases.Create(t.Context(), "harness.h1."+inc, []byte(strings.ReplaceAll(value, "INC", inc)),
			keyTTL(lasting)); err != nil {
			t.Fatal(err)
		}
		return inc
	}
	first := lease(`{"id":"h1","incarnation":INC,"state":"ready","ttl_ms":60000.0,"pid":"12","started_at":1700000000}`)
	c.beginBy("s1", first, `{"resume":"hold"}`)
	c.settled("s1")
	second := lease(`{"state":"ready"}`)
	if d := c.entry("session.h1.s1", has("t1")); d["superseded_by"] != second || d["owned"] != false {
		t.Errorf("a newer one is ready: %v", d)
	}
	c.beginBy("s2", second, `{"resume":"hold"}`)
	c.settled("s2")
	if err := c.leases.Purge(t.Context(), "harness.h1."+second); err != nil {
		t.Fatal(err)
	}
	if d := c.entry("session.h1.s2", has("t1")); d["superseded_by"] != "" || d["owned"] != false ||
		at(d, "last_turn", "reason") != "owner-lost" {
		t.Errorf("purged: %v", d)
	}
}
