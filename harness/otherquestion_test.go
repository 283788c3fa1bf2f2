package harness_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/test/service"
)

// TestAskOnceAYesToAnotherCommand: a person sees that an agent asks for the permission to run one command. The agent is
// started again with a change, and asks under the same name for another command, just before the person's yes arrives.
// The yes is refused, since the prompt is withdrawn, and the yes to the other command is one to that command.
func TestAskOnceAYesToAnotherCommand(t *testing.T) {
	w := newWorld(t)
	service.Run(t, w.bus)
	permission := func(command string) harness.Prompt {
		return harness.Prompt{Kind: events.PromptPermission, Title: "Run " + command}
	}
	h := w.connect()
	turn := w.begins(h)
	check(t, h.Ready(w.ctx))
	w.askOnce(turn, "may-run", permission("ls"))
	first := w.until("s", "the permission to be asked for", func(st *session.State) bool {
		return st.BlockedBy() != ""
	}).BlockedBy()
	yes := func(prompt string) error {
		return w.bus.Services.Request(w.ctx, ledger.Name, "answer", request.Answer{Ref: ref("s"), Prompt: prompt,
			By: "ada", Answers: []events.Answer{{Question: "permission", Selected: []string{"once"}}}}, nil)
	}
	h.Abandon()
	h = w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	check(t, h.Ready(w.ctx))
	out := w.askOnce(s.OpenTurn(), "may-run", permission("rm -rf /srv"))
	st := w.until("s", "the other question", func(st *session.State) bool {
		p := st.Prompts[st.BlockedBy()]
		return p != nil && p.Epoch == st.Epoch
	})
	b, err := st.Blocker(st.BlockedBy(), w.source)
	check(t, err)
	if b.Prompt == first || b.Title != "Run rm -rf /srv" {
		t.Errorf("people see %q under the id %s; the first question had %s", b.Title, b.Prompt, first)
	}
	if err := yes(first); err == nil {
		t.Error("a yes to the first command is taken after the agent has asked for another one")
	}
	if e, _ := w.state("s").Ended(session.EntityPrompt, first); e.Outcome != string(session.Withdrawn) {
		t.Errorf("the first question ended as %q", e.Outcome)
	}
	check(t, yes(b.Prompt))
	if a := got(t, out); a.err != nil || a.answer.Status != session.Answered {
		t.Errorf("the yes to the second command: %+v", a)
	}
}
