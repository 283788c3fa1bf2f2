package wire

import (
	"fmt"
	"testing"
)

// A prompt of a sub-agent two levels down: the calls above it are held, the root's people see it, and after the answer
// each level continues once, from the leaf to the root (P16).
func TestATreeGoesOnFromItsLeaf(t *testing.T) {
	// it waits for other processes
	t.Parallel()
	c := up(t, "--grace", "300ms")
	inc := c.lease("ready", dying)
	task := fact{"tool.started", "task", `{"call":"task","turn":"t1","name":"task"}`}
	c.begin("root", inc, task, fact{"tool.started", "bash", `{"call":"bash","turn":"t1","name":"bash"}`})
	child := func(session, parent string, does fact) {
		c.mustAppend(session, inc, 1, fact{"session.opened", session,
			`{"incarnation":"` + inc + `","parent":"` + parent + `","parent_call":"task","root":"root"}`},
			fact{"turn.started", "t1", `{"turn":"t1","cause":"message","synthetic":true}`}, does)
	}
	child("kid", "root", task)
	child("leaf", "kid", prompt("p", `,"turn":"t1","delivery":"message"`))
	for session, below := range map[string]string{"root": "kid", "kid": "leaf"} {
		d := c.entry("session.h1."+session, func(d map[string]any) bool {
			return d["waits_for"] != nil && at(d, "tools", "bash") == nil
		})
		if d["phase"] != "waiting" || fmt.Sprint(d["waits_for"]) != "[map[call:task child:"+below+"]]" ||
			at(d, "turn", "id") != "t1" {
			t.Errorf("%s: %v", session, d)
		}
	}
	c.entry("blocker.h1.root.leaf.p", func(d map[string]any) bool {
		return d["owned"] == false && d["status"] == "awaiting"
	})
	next := c.lease("ready", lasting)
	if code, reply := c.answer("leaf", "p"); code != "" {
		t.Fatalf("answer: %s %v", code, reply)
	}
	for _, session := range []string{"leaf", "kid", "root"} {
		w := c.entry("work.h1."+session, func(d map[string]any) bool { return at(d, "turn", "of_turn") == "t1" })
		turn := at(w, "turn", "turn").(string)
		c.fresh(session)
		c.mustAppend(session, next, 2, fact{"session.claimed", session, `{"incarnation":"` + next + `"}`},
			fact{"turn.started", turn, `{"turn":"` + turn + `","cause":"answer","synthetic":true}`})
		c.mustAppend(session, next, 2, fact{"turn.completed", turn, `{"turn":"` + turn + `"}`})
		d := c.settled(session)
		turns := 0
		for _, e := range d["recent"].([]any) {
			if e.(map[string]any)["entity"] == "turn" {
				turns++
			}
		}
		call := ending(d, "tool", "task")
		if ending(d, "turn", "t1")["outcome"] != "continued" || turns != 2 ||
			session != "leaf" && call["outcome"] != "completed" || d["phase"] != "idle" || len(kindsOpen(d)) > 0 ||
			d["waits_for"] != nil {
			t.Errorf("%s went on: %v", session, d)
		}
	}
	if _, reply := c.ask("reconciler.sweep", `{"harness":"h1","dry_run":true}`); reply["would"] != nil {
		t.Errorf("something is still owed: %v", reply)
	}
}
