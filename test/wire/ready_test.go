package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

// put stores a document that no ledger would store.
func (c *cell) put(session string, change func(doc map[string]any)) {
	c.t.Helper()
	doc := c.entry("session.h1."+session, func(d map[string]any) bool {
		return d["seq"].(float64) >= float64(c.seq[session])
	})
	change(doc)
	body, err := json.Marshal(doc)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.state.Put(c.t.Context(), "session.h1."+session, body); err != nil {
		c.t.Fatal(err)
	}
}

// A service that cannot read a session, because a newer version wrote its document, answers 503 with {reason}, and
// appends nothing.
func TestATargetThatIsNotReadyReportsWhy(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t)
	inc := c.lease("ready", lasting)
	c.begin("newer", inc)
	c.fails("newer", inc, 1, "t1", "authentication", "")
	c.retry("newer", "abandoned")
	last := c.lastOf("newer")
	c.put("newer", func(doc map[string]any) { doc["v"] = 99 })
	for verb, more := range map[string]string{
		"retry.now": "", "retry.cancel": "", "retry.resume": "", "compaction.check": "", "compaction.compact": "",
		"compaction.withdraw": `,"message":"m1"`, "compaction.send": `,"message":"m1","content":"hello"`,
	} {
		code, reply := c.ask(verb, `{"harness":"h1","session":"newer","by":"ada"`+more+`}`)
		if reason, _ := reply["reason"].(string); code != "503" || !strings.Contains(reason, "upgrade") ||
			len(reply) != 1 {
			t.Errorf("%s: %q %v, want 503 and only a reason that says what to do", verb, code, reply)
		}
	}
	if now := c.lastOf("newer"); now != last {
		t.Errorf("something was appended at %d, after %d", now, last)
	}
}

// lastOf returns the place of a session's last commit.
func (c *cell) lastOf(session string) uint64 {
	c.t.Helper()
	log, err := c.js.Stream(c.t.Context(), "HF_LOG")
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := log.GetLastMsgForSubject(c.t.Context(), "hf.log.h1."+session+".*")
	if err != nil {
		c.t.Fatal(err)
	}
	return m.Sequence
}
