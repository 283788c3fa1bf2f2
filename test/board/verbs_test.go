package board

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// answer returns the first answer of a prompt of painter/wall, as the people's view has it.
func (c *cell) answer(prompt string) (selected []any, text any) {
	c.t.Helper()
	b := c.entry(c.connect(), "painter", "wall", "wall", prompt)
	answers, ok := b["answers"].([]any)
	if !ok || len(answers) == 0 {
		c.t.Fatalf("%s is %v and has no answers", prompt, b["status"])
	}
	first := answers[0].(map[string]any)
	selected, _ = first["selected"].([]any)
	return selected, first["text"]
}

// An answer that comes after the deadline of its prompt is refused, and the page says that it has expired, and why.
func TestAnswerToAnExpiredPrompt(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.append(s, events.ToolStarted{Call: "call", Turn: turn.ID(), Name: "ask_user"},
		events.PromptRequested{Prompt: "colour", Turn: turn.ID(), Call: "call", PromptKind: events.PromptQuestion,
			Questions: []events.Question{question("q", "Which colour?", "red", "blue")},
			Delivery:  events.DeliverToolResult, Deadline: time.Now().Add(5 * time.Second)})
	p := board(t, c, "#/p/painter/wall/colour")
	p.wait(`document.querySelector(".row.open")`)
	p.shows("until ")
	p.press("2")
	p.wait(`document.querySelector("input[type=radio]:checked")`)
	// The watch is held, so that the page answers what it still sees as open.
	eval[bool](p, `(globalThis.put = holdfast.app.bucket.put, holdfast.app.bucket.put = () => {}, true)`)
	nc := c.connect()
	until(t, "the prompt has expired", func() bool {
		return c.entry(nc, "painter", "wall", "wall", "colour")["status"] == "expired"
	})
	p.shows("its deadline has passed")
	p.press("\r")
	p.shows("it no longer waits (410): expired at ")
	p.shows(": deadline")
	p.shot("expired")
	if b := c.entry(nc, "painter", "wall", "wall", "colour"); b["status"] != "expired" || b["by"] != nil {
		t.Errorf("the prompt is %v by %v", b["status"], b["by"])
	}
}

// A text of one's own is an answer: it takes the place of the option that was chosen before, and an option takes its.
func TestAnswerInOnesOwnWords(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "colour", question("q", "Which colour?", "red", "blue"))
	c.ask(s, turn, "name", question("q", "Which name?"))
	p := board(t, c, "#/p/painter/wall/colour")
	p.wait(`document.querySelector(".row.open")`)
	own := ".row.open input[type=text]"
	checked := `document.querySelector(".row.open input:checked")`
	p.press("1")
	p.wait(checked)
	p.do(focus(own))
	p.keys("mint <b>green</b>")
	p.wait("!" + checked)
	eval[bool](p, `(document.activeElement.blur(), true)`)
	p.press("2")
	p.wait(checked)
	if got := eval[string](p, fmt.Sprintf(`document.querySelector(%s).value`, quote(own))); got != "" {
		t.Errorf("an option and the text %q are both in the form", got)
	}
	p.do(focus(own))
	p.keys("mint <b>green</b>")
	p.wait("!" + checked)
	p.press("\r")
	p.shows("answered by ann")
	p.shows("mint <b>green</b>")
	if selected, text := c.answer("colour"); len(selected) != 0 || text != "mint <b>green</b>" {
		t.Errorf("the ledger has %v and %v", selected, text)
	}

	// a question without options
	p.visit("#/p/painter/wall/name")
	p.wait(`document.querySelector(".row.open[data-key$=name]")`)
	p.shows("choose or write an answer")
	p.do(focus(own))
	p.keys("  ")
	p.press("\r")
	drawn(p)
	if !eval[bool](p, `document.querySelector(".form button.main").disabled`) {
		t.Error("blanks are an answer")
	}
	p.keys("Ada")
	p.press("\r")
	p.wait(`document.querySelector(".row.decided[data-key$=name]")`)
	if selected, text := c.answer("name"); len(selected) != 0 || text != "Ada" {
		t.Errorf("the ledger has %v and %v", selected, text)
	}
}

// The whole text of a plan is shown, as text; it is approved, or sent back with a reason.
func TestPlanIsReadAndAnswered(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	plan := "1. Remove the old paint\n2. <i id=\"markup\">Prime</i> the wall\n"
	for i := 3; i < 60; i++ {
		plan += fmt.Sprintf("%d. A step\n", i)
	}
	input, err := json.Marshal(map[string]string{"plan": plan + "60. The last step"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		c.append(s, events.ToolStarted{Call: "call-" + id, Turn: turn.ID(), Name: "exit_plan", Input: input},
			events.PromptRequested{Prompt: id, Turn: turn.ID(), Call: "call-" + id, PromptKind: events.PromptPlan,
				Title: "Paint the wall in 60 steps", Questions: []events.Question{question("plan", "Is this the plan?",
					"approve")}, Delivery: events.DeliverToolResult})
	}
	p := board(t, c, "#/p/painter/wall/first")
	p.wait(`document.querySelector(".row.open .input dd")?.textContent.endsWith("60. The last step")`)
	if got := eval[string](p, `document.querySelector(".row.open .input dd").textContent`); got != plan+
		"60. The last step" {
		t.Errorf("the plan is shown as %q", got)
	}
	if eval[bool](p, `Boolean(document.getElementById("markup"))`) {
		t.Error("text of the agent became markup")
	}
	p.shot("plan")
	p.press("1")
	p.wait(`document.querySelector(".row.open input:checked")`)
	p.press("\r")
	p.wait(`document.querySelector(".row.decided")`)
	if selected, _ := c.answer("first"); len(selected) != 1 || selected[0] != "approve" {
		t.Errorf("the ledger has %v", selected)
	}
	p.visit("#/p/painter/wall/second")
	p.wait(`document.querySelector(".row.open[data-key$=second] .input dd")`)
	p.press("n")
	p.wait(`document.activeElement.matches("textarea.reason")`)
	p.keys("no primer")
	p.press("\r")
	p.shows("rejected by ann")
	if b := c.entry(c.connect(), "painter", "wall", "wall", "second"); b["reason"] != "no primer" {
		t.Errorf("the reason is %v", b["reason"])
	}
}

// A decision that is under way when the prompt is changed decides nothing, and the page says so.
func TestOnlyTheQuestionOnTheScreenIsAnswered(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.permit(s, turn, "run", "Run ls", "ls")
	p := board(t, c, "#/p/painter/wall/run")
	p.shows("Run ls")
	eval[bool](p, `(globalThis.seen = [...holdfast.app.bucket.rows.values()][0], true)`)
	c.permit(s, turn, "run", "Run rm -rf /srv", "rm -rf /srv")
	p.shows("Run rm -rf /srv")
	for _, request := range []string{`"answer", {answers: [{question: "permission", selected: ["once"]}]}`,
		`"reject", {text: "no"}`, `"dismiss", {}`} {
		got := eval[string](p, fmt.Sprintf(`(async () => {
			const { inbox } = holdfast.app;
			await inbox.send(seen, %s);
			return inbox.verdicts.get(seen.key).text;
		})()`, request))
		if !strings.HasPrefix(got, "not decided, and it still waits (409): prompt run has changed since it was shown") {
			t.Errorf("%s: %s", request, got)
		}
	}
	if b := c.entry(c.connect(), "painter", "wall", "wall", "run"); b["status"] != "awaiting" {
		t.Errorf("the prompt is %v", b["status"])
	}
}

// button is JavaScript for the button of the session page with this text.
func button(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("section[aria-label='Ask for'] button")].find((b) =>
		b.textContent.trim() === %s)`, quote(text))
}

// asks presses a button of the session page, and waits for what the service replied.
func (p *page) asks(text, reply string) {
	p.t.Helper()
	p.wait(fmt.Sprintf(`(%s ?? {disabled: true}).disabled === false`, button(text)))
	eval[bool](p, fmt.Sprintf(`(%s.click(), true)`, button(text)))
	p.wait(fmt.Sprintf(`document.querySelector("article > .verdict")?.textContent.startsWith(%s)`, quote(reply)))
}

// logged waits until the newest event of a kind on the page has this author.
func (p *page) logged(kind, author string) {
	p.t.Helper()
	p.wait(fmt.Sprintf(`holdfast.app.page.commits.lines.findLast((l) => l.kind === %s)?.author.includes(%s)`,
		quote(kind), quote(author)))
}

// A person stops a turn on its page, also one that waits for a person; the log has who asked.
func TestTurnIsStoppedOnItsPage(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	p := board(t, c, "#/s/painter/wall")
	p.wait(`document.querySelector("#phase")?.textContent === "running"`)
	if eval[bool](p, fmt.Sprintf(`Boolean(%s || %s)`, button("Stop although it waits"), button("Resume"))) {
		t.Error("a running session has a button that is not for it")
	}
	c.ask(s, turn, "colour", question("q", "Which colour?", "red"))
	p.wait(`document.querySelector("#phase").textContent === "waiting"`)
	p.asks("Stop", "stop: ")
	p.shows("(409)")
	if got := eval[bool](p, `Boolean(holdfast.app.page.doc().pending?.stop)`); got {
		t.Error("a turn that waits was stopped without more")
	}
	p.asks("Stop although it waits", "stop although it waits: stored at")
	p.logged("turn.stop_requested", "ann")
	p.wait(`holdfast.app.page.doc().pending?.stop?.by === "ann"`)
	p.shot("stopped")
}

// A turn whose process died is continued when a person says so.
func TestTurnIsResumedOnItsPage(t *testing.T) {
	c := newCell(t)
	h := c.agent("painter")
	c.open(h, "wall", harness.OpenOptions{})
	c.request(c.connect(), "ledger.configure", map[string]any{"harness": "painter", "session": "wall", "by": "ann",
		"policy": map[string]any{"resume": "hold"}})
	p := board(t, c, "#/s/painter/wall")
	p.wait(`document.querySelector("#phase")?.textContent === "running"`)
	h.Abandon()
	p.wait(`document.querySelector("#phase").textContent === "interrupted"`)
	p.shot("interrupted")
	eval[bool](p, `(() => {
		const { net } = holdfast.app;
		const ask = net.ask.bind(net);
		globalThis.asked = [];
		net.ask = (service, verb, ...rest) => (asked.push(service + " " + verb), ask(service, verb, ...rest));
		return true;
	})()`)
	p.asks("Resume", "resume: stored at")
	if got := eval[string](p, `asked.join()`); !strings.Contains(got, "retry resume") {
		// the effect of others is the same here
		t.Errorf("the page asked for %s", got)
	}
	p.logged("turn.requested", "ann")
	p.wait(`document.querySelector("#phase").textContent !== "interrupted"`)
	if eval[bool](p, `Boolean(`+button("Resume")+`)`) {
		t.Error("a turn that was resumed can be resumed again")
	}
}

// A person has a conversation compacted on its page; while it is compacted the page says so.
func TestSessionIsCompactedOnItsPage(t *testing.T) {
	c := newCell(t)
	_, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	p := board(t, c, "#/s/painter/wall")
	p.wait(`document.querySelector("#phase")?.textContent === "running"`)
	if err := turn.Complete(t.Context(), "done"); err != nil {
		t.Fatal(err)
	}
	p.wait(`document.querySelector("#phase").textContent === "idle"`)
	// nothing runs, and nothing is said to be stored
	p.asks("Stop", "stop: nothing to do")
	p.asks("Compact", "compact: stored at")
	p.logged("compaction.requested", "compaction")
	p.wait(`document.querySelector("#phase").textContent === "compacting"`)
	p.asks("Compact", "compact: ")
	p.shot("compacting")
}

// The link of a prompt that was settled while its page was open says what became of it after the people's view has
// dropped it, by whom, and not what was known before.
func TestLinkOfASettledPrompt(t *testing.T) {
	c := newCell(t)
	c.end(syscall.SIGTERM)
	c.start("--settled-prompts-kept-for", "3s")
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{Title: "Paint the wall"})
	p := board(t, c, "#/p/painter/wall/colour")
	p.shows("painter/wall colour does not wait")
	c.ask(s, turn, "colour", question("colour", "Which colour?", "red"))
	p.shows("Which colour?")
	c.request(c.connect(), "ledger.answer", map[string]any{"harness": "painter", "session": "wall", "prompt": "colour",
		"by": "bob", "answers": []map[string]any{{"question": "colour", "selected": []string{"red"}}}})
	p.wait(`document.querySelector("#gone")`)
	p.shows("painter/wall colour no longer waits: answered by bob at ")
}

// A text that a person writes while a message is on its way stays in the form, and is another message.
func TestTextThatIsWrittenDuringARequestStays(t *testing.T) {
	c := newCell(t)
	c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	p := board(t, c, "#/s/painter/wall")
	p.wait(`document.querySelector("#message")`)
	eval[bool](p, `(() => {
		const { net } = holdfast.app;
		const ask = net.ask.bind(net);
		net.ask = async (...all) => {
			const reply = await ask(...all);
			if (all[1] === "send") await new Promise((done) => { globalThis.release = done; });
			return reply;
		};
		return true;
	})()`)
	p.do(focus("#message"))
	p.keys("one")
	p.click(".buttons .main")
	p.wait(`globalThis.release`)
	p.do(focus("#message"))
	p.keys(" and two")
	eval[bool](p, `(release(), delete globalThis.release, true)`)
	p.shows("send: stored at")
	drawn(p)
	if got := eval[string](p, `document.querySelector("#message").value`); got != "one and two" {
		t.Errorf("the form has %q", got)
	}
	p.click(".buttons .main")
	p.wait(`globalThis.release`)
	eval[bool](p, `(release(), true)`)
	p.wait(`document.querySelector("#message").value === ""`)
	p.wait(`document.querySelectorAll("#queue li").length === 2`)
}

// An answer that is larger than what the broker takes is not sent, and the page says so.
func TestAnswerLargerThanAMessage(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "name", question("q", "Which name?"))
	p := board(t, c, "#/p/painter/wall/name")
	p.wait(`document.querySelector(".row.open")`)
	eval[bool](p, `((e) => { e.value = "x".repeat(1 << 20); e.dispatchEvent(new Event("input")); return true; })(
		document.querySelector(".row.open input[type=text]"))`)
	p.wait(`!document.querySelector(".row.open button.main").disabled`)
	p.press("\r")
	p.shows("not sent: it has 1,048,")
	p.shows("and the broker takes 1,048,576 (413)")
	if b := c.entry(c.connect(), "painter", "wall", "wall", "name"); b["status"] != "awaiting" {
		t.Errorf("the prompt is %v", b["status"])
	}
}
