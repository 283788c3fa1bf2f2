package board

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A question appears by itself and is answered by keys; the ledger has what the keys chose.
func TestQuestionIsAnsweredByKeys(t *testing.T) {
	c := newCell(t)
	p := board(t, c, "")
	p.shows("Nothing waits for you.")
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{Title: "Paint the wall"})
	c.ask(s, turn, "colour", question("colour", "Which colour shall the wall be?", "red", "blue"))
	took := p.wait(`document.querySelector(".row.waits")`)
	t.Logf("the question was on the page %s after it was stored", took)
	p.shows("Paint the wall")
	p.press("j")
	p.wait(`document.querySelector(".row.open")`)
	p.shot("question")
	p.press("2")
	p.wait(`document.querySelector("input[type=radio]:checked")`)
	p.press("\r")
	p.wait(`document.querySelector(".row.decided")`)
	p.shows("answered by ann")
	p.shot("answered")
	b := c.entry(c.connect(), "painter", "wall", "wall", "colour")
	if got := b["answers"].([]any)[0].(map[string]any)["selected"].([]any)[0]; got != "blue" || b["by"] != "ann" {
		t.Errorf("the ledger has %v by %v, want blue by ann", got, b["by"])
	}
}

// Of two tabs one is first; the other one is shown who, what and when.
func TestSecondAnswerIsRefusedWithTheFirst(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "colour", question("colour", "Which colour?", "red", "blue"))
	p := board(t, c, "")
	p.press("j")
	p.wait(`document.querySelector(".row.open")`)
	// The second tab's watch is held, so that it answers what it still sees as open.
	eval[bool](p, `(holdfast.app.bucket.put = () => {}, true)`)
	q := board(t, c, "#/p/painter/wall/colour")
	q.wait(`document.querySelector(".row.open")`)
	q.press("2")
	q.press("\r")
	q.shows("answered by ann")
	p.press("1")
	p.wait(`document.querySelector("input[type=radio]:checked")`)
	p.press("\r")
	p.shows("another decision stands (409): answered by ann at")
	p.shows("blue")
	p.shot("refused")
}

// The whole input of a permission has to be read before it can be granted; hidden characters are visible, and text of
// an agent is never markup.
func TestPermissionIsGrantedAfterItsInputIsRead(t *testing.T) {
	c := newCell(t)
	h := c.agent("coder")
	c.open(h, "root", harness.OpenOptions{Title: "Release"})
	s, turn := c.open(h, "trim", harness.OpenOptions{Parent: "root", Root: "root"})
	long := "echo <b id=\"markup\">bold</b> \u202e gnitirw\n"
	for range 200 {
		long += "rm -rf build/\n"
	}
	c.permit(s, turn, "run", "bash: clean up", long+"echo end of the command")
	p := board(t, c, "")
	p.press("j")
	p.wait(`document.querySelector(".row.open .input dd")`)
	p.shows("root ▸ trim")
	p.shows("⟦U+202E⟧")
	if eval[bool](p, `Boolean(document.getElementById("markup"))`) {
		t.Error("text of the agent became markup")
	}
	p.press("o")
	p.wait(`document.querySelector("input[type=radio]:checked")`)
	p.shows("read the whole input first")
	if !eval[bool](p, `document.querySelector("button.main").disabled`) {
		t.Error("the permission can be granted before its input was read")
	}
	p.press("\r")
	p.shot("permission")
	eval[bool](p, `(document.querySelector(".row.open .input").scrollTop = 1e6, true)`)
	p.wait(`!document.querySelector("button.main").disabled`)
	nc := c.connect()
	if b := c.entry(nc, "coder", "root", "trim", "run"); b["status"] != "awaiting" {
		t.Errorf("the permission is %v before its input was read", b["status"])
	}
	p.press("\r")
	p.wait(`document.querySelector(".row.decided")`)
	if b := c.entry(nc, "coder", "root", "trim", "run"); b["status"] != "answered" {
		t.Errorf("the permission is %v", b["status"])
	}
}

// An input whose end is below the window, or under what covers the window, is not read. The keys bring it onto the
// screen.
func TestInputBelowTheWindowIsNotRead(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "root", harness.OpenOptions{})
	c.permit(s, turn, "run", "bash: remove", "rm -rf build/")
	p := board(t, c, "")
	p.wait(`document.querySelector(".row.waits")`)
	p.do(chromedp.EmulateViewport(1200, 260))
	p.wait(`innerHeight === 260`)
	eval[bool](p, `(document.querySelector(".row .head").click(), true)`)
	p.wait(`document.querySelector(".row.open .input dd")`)
	end := `document.querySelector(".row.open .input dd").getBoundingClientRect().bottom`
	if !eval[bool](p, end+` > innerHeight`) {
		t.Fatalf("the input ends at %v of 260 pixels", eval[float64](p, end))
	}
	drawn(p)
	if !eval[bool](p, `document.querySelector(".form button.main").disabled`) ||
		eval[int](p, `holdfast.app.inbox.shown.size`) != 0 {
		t.Error("an input below the window counts as read")
	}
	p.shows("read the whole input first")
	eval[bool](p, `(document.querySelector(".row.open .input").scrollIntoView({block: "end"}), true)`)
	p.wait(`holdfast.app.inbox.shown.size === 1`)

	q := board(t, c, "")
	q.wait(`document.querySelector(".row.waits")`)
	q.do(chromedp.EmulateViewport(1200, 260))
	q.wait(`innerHeight === 260`)
	q.press("j")
	q.wait(`holdfast.app.inbox.shown.size === 1`)
	if got := eval[float64](q, end); got > 260 {
		t.Errorf("the input that counts as read ends at %v of 260 pixels", got)
	}
}

// No key acts on a row that the filter hides.
func TestKeysActOnWhatIsOnTheScreen(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "colour", question("colour", "Which colour?", "red", "blue"))
	c.ask(s, turn, "brush", question("brush", "Which brush?", "wide", "fine"))
	p := board(t, c, "")
	p.wait(`document.querySelectorAll(".row.waits").length === 2`)
	p.press("j")
	p.wait(`document.querySelector(".row.open[data-key$=colour]")`)
	p.press("1")
	p.wait(`document.querySelector(".row.open input:checked")`)
	p.do(focus("#filter"))
	p.keys("brush")
	p.wait(`document.querySelectorAll(".row").length === 1`)
	eval[bool](p, `(document.activeElement.blur(), true)`)
	p.press("2")
	p.press("n")
	p.press("x")
	// it opens the row that is on the screen
	p.press("\r")
	p.wait(`document.querySelector(".row.open[data-key$=brush]")`)
	hidden := `holdfast.app.bucket.rows.get(` +
		quote(events.BlockerKey("painter", "wall", "wall", "colour")) + `).version`
	draft := eval[string](p, `JSON.stringify(holdfast.app.inbox.drafts.get(`+hidden+`))`)
	if draft != `{"answers":{"colour":{"text":"","selected":["red"]}},"reason":"","refusing":false}` {
		t.Errorf("keys changed the draft of a hidden row: %s", draft)
	}
	if eval[bool](p, `holdfast.app.inbox.selected.has(`+hidden+`)`) {
		t.Error("a key selected a hidden row")
	}
	if b := c.entry(c.connect(), "painter", "wall", "wall", "colour"); b["status"] != "awaiting" {
		t.Errorf("a key answered a hidden row: %v", b["status"])
	}
}

// A permission whose request is not where the view says it is has no input that can be read: it cannot be granted here.
func TestPermissionWithoutItsRequestIsNotGranted(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "root", harness.OpenOptions{})
	opened := s.State().Seq
	c.permit(s, turn, "run", "bash: list", "ls")
	p := board(t, c, "")
	p.wait(`document.querySelector(".row.waits")`)
	eval[bool](p, fmt.Sprintf(`(() => {
		const { bucket } = holdfast.app;
		const [[key, { blocker }]] = bucket.rows;
		bucket.put(key, { ...blocker, seq: %d });
		return true;
	})()`, opened))
	p.press("j")
	p.shows(fmt.Sprintf("The input cannot be read: the commit %d has no request of the prompt", opened))
	p.press("o")
	p.wait(`document.querySelector(".row.open input:checked")`)
	p.shows("read the whole input first")
	if !eval[bool](p, `document.querySelector(".form button.main").disabled`) {
		t.Error("a permission can be granted without its request")
	}
}

// A permission that is asked for again under the same id is another one: what was read, chosen and selected before is
// not about it.
func TestPermissionThatIsAskedForAgainIsReadAgain(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "root", harness.OpenOptions{})
	c.permit(s, turn, "run", "bash: list", "ls")
	p := board(t, c, "")
	p.press("j")
	p.wait(`document.querySelector(".row.open .input dd")`)
	p.press("o")
	p.press("x")
	p.wait(`document.querySelector("button.main") && !document.querySelector(".form button.main").disabled`)
	p.shows("1 selected")
	long := "echo\n"
	for range 200 {
		long += "rm -rf build/\n"
	}
	input := []byte(`{"command":` + quote(long) + `}`)
	c.append(s, events.ToolStarted{Call: "second", Turn: turn.ID(), Name: "bash", Input: input},
		events.PromptRequested{Prompt: "run", Turn: turn.ID(), Call: "second", PromptKind: events.PromptPermission,
			Title: "bash: remove", Delivery: events.DeliverCallback, OnOwnerLoss: events.LossKeep})
	p.shows("bash: remove")
	p.wait(`document.querySelector(".row.open .input dd")?.textContent.includes("rm -rf")`)
	p.shows("read the whole input first")
	if eval[bool](p, `Boolean(document.querySelector(".row.open input:checked, .row.selected, #bulk"))`) {
		t.Error("what was chosen for the first request is chosen for the second one")
	}
	p.press("o")
	p.press("\r")
	p.press("x")
	p.press("b")
	eval[bool](p, `(document.querySelector(".row.open .input").scrollTop = 1e6, true)`)
	p.wait(`!document.querySelector(".form button.main").disabled`)
	if b := c.entry(c.connect(), "coder", "root", "root", "run"); b["status"] != "awaiting" {
		t.Errorf("the second request is %v before its input was read", b["status"])
	}
}

// A refusal carries its reason; an answer that does not fit is refused under its question; several questions are one
// answer.
func TestNoWithAReasonAndSeveralQuestions(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "plan", harness.OpenOptions{})
	strict := events.Question{ID: "size", Question: "Which size?",
		Options: []events.Option{{Label: "small"}, {Label: "large", Description: "takes an hour"}}}
	c.ask(s, turn, "first", strict, question("name", "Which name?"))
	p := board(t, c, "#/p/coder/plan/first")
	p.wait(`document.querySelector(".row.open")`)
	p.shot("several")
	p.press("2")
	p.wait(`document.querySelector("input[type=radio]:checked")`)
	eval[bool](p, `(holdfast.app.inbox.draft(holdfast.app.inbox.row().version).answers.size =
		{selected: ["huge"]}, true)`)
	p.press("\r")
	p.shows(`"huge" is not offered`)
	p.shows("it does not fit, and the prompt still waits (422)")
	p.shot("misfit")
	p.press("n")
	p.wait(`document.activeElement.matches("textarea.reason")`)
	p.keys("neither of them")
	p.press("\r")
	p.wait(`document.querySelector(".row.decided")`)
	p.shows("rejected by ann")
	if b := c.entry(c.connect(), "coder", "plan", "plan", "first"); b["reason"] != "neither of them" {
		t.Errorf("the reason is %v", b["reason"])
	}
}

// Rows of one shape have one answer, by a request each; a permission for more than one call is given alone, and each
// permission has to be read.
func TestSeveralRowsHaveOneAnswer(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "tests", harness.OpenOptions{})
	for _, id := range []string{"a", "b", "c"} {
		c.permit(s, turn, id, "bash: test "+id, "go test ./"+id)
	}
	c.ask(s, turn, "other", question("q", "Another shape?"))
	p := board(t, c, "")
	p.wait(`document.querySelectorAll(".row.waits").length === 4`)
	read := `document.querySelector(".row.open .input") &&
		holdfast.app.inbox.shown.has(holdfast.app.inbox.row().version)`
	p.press("j")
	p.wait(read)
	p.press("xj")
	p.wait(`holdfast.app.inbox.current.endsWith(".b")`)
	p.press("x")
	p.wait(read)
	p.press("a")
	p.shows("permit one at a time what permits more than one call")
	p.press("b")
	p.press("jj")
	p.wait(`holdfast.app.inbox.current.endsWith(".other")`)
	// another shape
	p.press("x")
	p.shows("2 selected")
	p.press("kk")
	p.wait(`holdfast.app.inbox.current.endsWith(".b")`)
	p.press("o")
	version := fmt.Sprintf(`holdfast.app.bucket.rows.get(%s).version`,
		quote(events.BlockerKey("coder", "tests", "tests", "c")))
	eval[bool](p, fmt.Sprintf(`(holdfast.app.inbox.shown.delete(%[1]s), holdfast.app.inbox.selected.add(%[1]s),
		holdfast.app.draw(), true)`, version))
	p.shows("read the whole input of 1 more first")
	p.press("b")
	eval[bool](p, fmt.Sprintf(`holdfast.app.inbox.selected.delete(%s)`, version))
	p.shows("Answer 2 with “once”")
	p.shot("bulk")
	p.press("b")
	p.wait(`document.querySelectorAll(".verdict.done").length === 2`)
	nc := c.connect()
	for id, want := range map[string]string{"a": "answered", "b": "answered", "c": "awaiting", "other": "awaiting"} {
		if b := c.entry(nc, "coder", "tests", "tests", id); b["status"] != want {
			t.Errorf("%s is %v, want %s", id, b["status"], want)
		}
	}
}

// A row whose form says no gets no answer together with others, whether it is the open row or not.
func TestRowThatIsRefusedHasNoCommonAnswer(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "tests", harness.OpenOptions{})
	for _, id := range []string{"a", "b"} {
		c.permit(s, turn, id, "bash: test "+id, "go test ./"+id)
	}
	p := board(t, c, "")
	p.wait(`document.querySelectorAll(".row.waits").length === 2`)
	p.press("j")
	p.wait(`holdfast.app.inbox.shown.size === 1`)
	p.press("xj")
	p.wait(`holdfast.app.inbox.shown.size === 2`)
	p.press("xo")
	p.shows("Answer 2 with “once”")
	p.press("n")
	p.wait(`document.activeElement.matches("textarea.reason")`)
	p.keys("too dangerous")
	p.press("\x1b")
	sent := `(globalThis.sent = [], globalThis.ask ??= holdfast.app.net.ask,
		holdfast.app.net.ask = (service, verb, body) => {
		if (verb !== "get") sent.push(verb + " " + body.prompt);
		return ask.call(holdfast.app.net, service, verb, body);
	}, true)`
	eval[bool](p, sent)
	blocked := func(when string) {
		t.Helper()
		drawn(p)
		p.shows("the form of 1 of them says no")
		if !eval[bool](p, `document.querySelector("#bulk button.main").disabled`) {
			t.Errorf("%s: the button of the common answer is on", when)
		}
		p.press("b")
		drawn(p)
		if got := eval[[]string](p, `sent`); len(got) > 0 {
			t.Errorf("%s: b sent %v", when, got)
		}
	}
	blocked("the open row says no")
	p.press("k")
	p.wait(`holdfast.app.inbox.current.endsWith(".a")`)
	p.press("o")
	blocked("the other row says no")
	p.press("j")
	p.wait(`document.querySelector(".row.open[data-key$=b] .reason")`)
	// an answer takes the no back
	p.press("o")
	p.shows("Answer 2 with “once”")
	p.press("b")
	p.wait(`document.querySelectorAll(".row.decided").length === 2`)
	if got := eval[[]string](p, `sent`); len(got) != 2 {
		t.Errorf("b sent %v, want two answers", got)
	}
}

// Digits are for the one question that has the mark; a key, and the keyboard in a question, move the mark.
func TestDigitsAreForTheCurrentQuestion(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	several := func(id, text string, multi bool, labels ...string) events.Question {
		q := question(id, text, labels...)
		q.Custom, q.Multi = false, multi
		return q
	}
	c.ask(s, turn, "paint", several("tools", "Which implements?", true, "brush", "roller"),
		several("size", "Which extent?", false, "small", "large"), question("name", "Which name?"))
	p := board(t, c, "")
	p.wait(`document.querySelector(".row.waits")`)
	p.press("j")
	p.wait(`document.querySelector(".row.open")`)
	is := func(current, answers string) {
		t.Helper()
		drawn(p)
		got := eval[string](p, `[...document.querySelectorAll("fieldset[aria-current=true] legend")].map((e) =>
			e.innerText).join()`)
		if got != current {
			t.Errorf("the current question is %q, want %q", got, current)
		}
		got = eval[string](p, `[...document.querySelectorAll("fieldset kbd")].filter((e) =>
			e.checkVisibility({visibilityProperty: true})).map((e) =>
			e.closest("fieldset").innerText.split("\n")[0]).join()`)
		if want := current + "," + current; got != want && current != "Which name?" {
			t.Errorf("digits are shown at %q, want %q", got, want)
		}
		got = eval[string](p, `(({answers}) => Object.keys(answers).map((id) => id + " " +
			answers[id].selected.join("+")).join())(holdfast.app.inbox.draft(holdfast.app.inbox.row().version))`)
		if got != answers {
			t.Errorf("the answers are %q, want %q", got, answers)
		}
	}
	is("Which implements?", "")
	p.press("12")
	is("Which implements?", "tools brush+roller")
	p.press("1")
	is("Which implements?", "tools roller")
	p.press("q")
	is("Which extent?", "tools roller")
	p.press("12")
	is("Which extent?", "tools roller,size large")
	p.press("q")
	p.wait(`document.activeElement.matches("fieldset[aria-current] input[type=text]")`)
	is("Which name?", "tools roller,size large")
	p.press("\x1b")
	p.press("q")
	is("Which implements?", "tools roller,size large")
	p.do(focus(`fieldset:nth-of-type(2) input`))
	is("Which extent?", "tools roller,size large")
	p.press("1")
	is("Which extent?", "tools roller,size small")
}

// In a scrolled input that has the keyboard, arrow keys scroll; elsewhere they open the next row.
func TestArrowKeysScrollAFocusedInput(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "root", harness.OpenOptions{})
	c.permit(s, turn, "long", "bash: remove", strings.Repeat("rm -rf build/\n", 200))
	c.permit(s, turn, "short", "bash: list", "ls")
	p := board(t, c, "")
	p.wait(`document.querySelectorAll(".row.waits").length === 2`)
	p.press("j")
	p.wait(`document.querySelector(".row.open[data-key$=long] .input dd")`)
	p.do(focus(".row.open .input"))
	p.press(arrowDown)
	p.wait(`document.querySelector(".row[data-key$=long] .input")?.scrollTop > 0 ||
		!document.querySelector(".row.open[data-key$=long]")`)
	if !eval[bool](p, `Boolean(document.querySelector(".row.open[data-key$=long]"))`) {
		t.Fatal("an arrow key in a scrolled input opens the next row")
	}
	eval[bool](p, `(document.activeElement.blur(), true)`)
	p.press(arrowDown)
	p.wait(`document.querySelector(".row.open[data-key$=short] .input dd")`)
	// it has nothing to scroll
	p.do(focus(".row.open .input"))
	p.press(arrowUp)
	p.wait(`document.querySelector(".row.open[data-key$=long]")`)
}

// Single keys can be switched off: then they do nothing, also after the page is loaded again.
func TestSingleKeysAreSwitchedOff(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "colour", question("colour", "Which colour?", "red", "blue"))
	p := board(t, c, "")
	p.wait(`document.querySelector(".row.waits")`)
	p.press("?")
	p.click("#help input")
	p.wait(`!document.querySelector("#help input").checked`)
	p.press("\x1b")
	p.wait(`!document.getElementById("help")`)
	for range 2 {
		eval[bool](p, `(document.activeElement.blur(), holdfast.app.inbox.open(undefined), true)`)
		p.press("gojx/")
		p.press(arrowDown)
		p.press("\r")
		drawn(p)
		if eval[bool](p, `Boolean(document.querySelector(".row.open") || document.activeElement.id === "filter" ||
			location.hash.includes("operator"))`) {
			t.Error("a single key did something")
		}
		p.click(".row .head")
		p.wait(`document.querySelector(".row.open")`)
		p.press("1nx")
		eval[bool](p, `(document.activeElement.blur(), true)`)
		p.press("1nx\r")
		drawn(p)
		if eval[bool](p, `Boolean(document.querySelector(".row.open :is(:checked, .reason), #bulk"))`) {
			t.Error("a single key did something in the open row")
		}
		// esc is no single key
		p.press("\x1b")
		p.wait(`!document.querySelector(".row.open")`)
		p.do(chromedp.Reload())
		p.wait(`document.querySelector(".row.waits")`)
	}
	p.press("?")
	drawn(p)
	if eval[bool](p, `Boolean(document.getElementById("help"))`) {
		t.Error("a single key opened the list of keys")
	}
	p.click("header button.help")
	p.click("#help input")
	p.press("j")
	p.wait(`document.querySelector(".row.open")`)
	if b := c.entry(c.connect(), "painter", "wall", "wall", "colour"); b["status"] != "awaiting" {
		t.Errorf("the question is %v", b["status"])
	}
}

// On a phone the buttons for notices and keys are on the screen, large enough for a finger, and the page is no wider.
func TestButtonsOfAPhone(t *testing.T) {
	c := newCell(t)
	p := newPage(t, c.url())
	p.do(chromedp.EmulateViewport(390, 844))
	p.wait(`document.querySelector("#state.live")`)
	eval[bool](p, `(globalThis.Notification = class {
		static permission = "default";
		static async requestPermission() { globalThis.asked = true; }
	}, holdfast.app.draw(), true)`)
	p.wait(`document.querySelectorAll("header button.help").length === 2`)
	got := eval[string](p, `[...document.querySelectorAll("header button.help")].map((b) => {
		const { left, right, top, height } = b.getBoundingClientRect();
		const fits = left >= 0 && right <= innerWidth && top >= 0 && height >= 44;
		return b.innerText.trim() + (fits ? "" : " cannot be had");
	}).join()`)
	if got != "keys,notify me" {
		t.Errorf("the header of a phone has %q", got)
	}
	if eval[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than the phone")
	}
	eval[bool](p, `([...document.querySelectorAll("header button.help")].forEach((b) => b.click()), true)`)
	p.wait(`globalThis.asked && document.getElementById("help")`)
	// the names of the keys
	p.shows("enter")
}

// Words of an agent that are longer than the page are broken, and nothing of them is cut off.
func TestLongWordsAreBroken(t *testing.T) {
	c := newCell(t)
	long := func(first string) string { return first + strings.Repeat("averyverylongword", 7) }
	h := c.agent("painter")
	s, turn := c.open(h, long("s"), harness.OpenOptions{Title: long("t"), Agent: long("a"), Model: long("m")})
	c.append(s, events.ToolStarted{Call: long("c"), Turn: turn.ID(), Name: long("n"), Input: []byte(`{"a":"b"}`)},
		events.PromptRequested{Prompt: long("p"), Turn: turn.ID(), Call: long("c"), PromptKind: events.PromptQuestion,
			Title: long("T"), Delivery: events.DeliverToolResult, Questions: []events.Question{{ID: "q",
				Header: long("h"), Question: long("q"), Options: []events.Option{
					{Label: long("l"), Description: long("d")}, {Label: "short"}}}}})
	p := board(t, c, "")
	p.shows("1 waiting")
	p.narrow()
	p.press("j")
	p.wait(`document.querySelector(".row.open .option")`)
	p.narrow()
	p.visit("#/s/painter/" + long("s"))
	p.wait(`document.querySelector("#timeline li")`)
	p.narrow()
	p.visit("#/sessions")
	p.wait(`document.querySelector("#sessions li")`)
	p.narrow()
}
