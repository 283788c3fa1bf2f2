package board

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// widths are those of a desk and of a phone.
var widths = []int64{1200, 390}

// still is a cell with the groups a (one prompt) and b (two prompts), and a page that shows them.
type still struct {
	*page
	c     *cell
	asksA func(prompt string) // asks in the group a, which is the first one
}

// newStill opens the page at a width, with the pointer outside the list.
func newStill(t *testing.T, width int64) *still {
	t.Helper()
	c := newCell(t)
	h := c.agent("painter")
	a, ta := c.open(h, "a", harness.OpenOptions{Title: "A"})
	b, tb := c.open(h, "b", harness.OpenOptions{Title: "B"})
	s := &still{c: c, asksA: func(prompt string) {
		c.ask(a, ta, prompt, question("q", "Prompt "+prompt+"?", "x", "y"))
	}}
	s.asksA("one")
	for _, prompt := range []string{"two", "three"} {
		c.ask(b, tb, prompt, question("q", "Prompt "+prompt+"?", "x", "y"))
	}
	s.page = board(t, c, "")
	s.do(chromedp.EmulateViewport(width, 900), chromedp.MouseEvent("mouseMoved", 1, 1))
	s.wait(`document.querySelectorAll(".row.waits").length === 3 && holdfast.app.calm()`)
	for _, title := range []string{"A", "B"} {
		s.wait(fmt.Sprintf(`[...document.querySelectorAll(".group .title")].some((e) => e.textContent === %q)`, title))
	}
	drawn(s.page)
	return s
}

// hover puts the pointer over an element.
func (s *still) hover(selector string) {
	s.t.Helper()
	s.do(chromedp.MouseEvent("mouseMoved", s.at(selector, "left")+9, s.at(selector, "top")+9))
	s.wait(`document.getElementById("list").matches(":hover")`)
}

// at returns one edge of an element in the window.
func (s *still) at(selector, edge string) float64 {
	s.t.Helper()
	return eval[float64](s.page, fmt.Sprintf(`document.querySelector(%s).getBoundingClientRect().%s`, quote(selector),
		edge))
}

// stays checks that a change moves none of the elements.
func (s *still) stays(what string, change func(), selectors ...string) {
	s.t.Helper()
	edges := []string{"top", "bottom", "left", "right"}
	before := map[string]float64{}
	for _, selector := range selectors {
		for _, edge := range edges {
			before[selector+edge] = s.at(selector, edge)
		}
	}
	change()
	drawn(s.page)
	for _, selector := range selectors {
		for _, edge := range edges {
			if is := s.at(selector, edge); is != before[selector+edge] {
				s.t.Errorf("%s: the %s of %s was at %v and is at %v", what, edge, selector, before[selector+edge], is)
			}
		}
	}
}

// comes asks in the first group, and waits until the page knows it.
func (s *still) comes(prompt string) {
	s.t.Helper()
	s.asksA(prompt)
	s.wait(fmt.Sprintf(`[...holdfast.app.bucket.rows.keys()].some((key) => key.endsWith(%s))`, quote("."+prompt)))
	drawn(s.page)
}

// decides answers a prompt as another person, and waits until the page shows it.
func (s *still) decides(session, prompt string) {
	s.t.Helper()
	s.c.request(s.c.connect(), "ledger.answer", map[string]any{"harness": "painter", "session": session,
		"prompt": prompt, "by": "bob", "answers": []any{map[string]any{"question": "q", "selected": []string{"y"}}}})
	s.wait(fmt.Sprintf(`document.querySelector(%s)`, quote(row(prompt)+".decided")))
}

// purges removes a prompt from the people's view, and waits until the page does not have it.
func (s *still) purges(session, prompt string) {
	s.t.Helper()
	key := events.BlockerKey("painter", session, session, prompt)
	if err := s.c.state(s.c.connect()).Purge(s.t.Context(), key); err != nil {
		s.t.Fatal(err)
	}
	s.wait(fmt.Sprintf(`!holdfast.app.bucket.rows.has(%s)`, quote(key)))
	drawn(s.page)
}

// touches lets one finger touch an element, or lifts it where kind is touchEnd.
func (s *still) touches(kind input.DispatchTouchEventType, selector string) {
	s.t.Helper()
	points := []*input.TouchPoint{}
	if selector != "" {
		points = append(points, &input.TouchPoint{X: s.at(selector, "left") + 9, Y: s.at(selector, "top") + 9})
	}
	if _, err := chromedp.Run(s.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, input.DispatchTouchEvent,
			input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
	}); err != nil {
		s.t.Fatal(err)
	}
}

// row is the selector of a row.
func row(prompt string) string { return "[data-key$=" + prompt + "]" }

// A new prompt of an earlier group moves no row while a hand is on the list, and takes its place when none is.
func TestNewPromptMovesNoRowUnderAHand(t *testing.T) {
	for _, width := range widths {
		s := newStill(t, width)
		for i, hand := range []struct{ name, on, off string }{
			{"the pointer is over a row", "", ""},
			{"a form is in use", `(document.querySelector("[data-key$=two] .head").click(),
				new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() =>
				(document.querySelector("[data-key$=two] input[type=text]").focus(), true)))`,
				`(document.activeElement.blur(), true)`},
			{"keys are pressed", `(holdfast.app.touched = Date.now() + 1e6, true)`, `(holdfast.app.touched = 0, true)`},
		} {
			if hand.on == "" {
				s.hover(row("two"))
			} else {
				eval[bool](s.page, hand.on)
			}
			prompt := fmt.Sprintf("late-%d", i)
			s.stays(hand.name, func() { s.comes(prompt) }, row("two"), row("three"), row("one"))
			s.shows("1 new")
			if hand.off != "" {
				eval[bool](s.page, hand.off)
			}
			s.do(chromedp.MouseEvent("mouseMoved", 1, 1))
			s.wait(fmt.Sprintf(`document.querySelector(%s)`, quote(row(prompt))))
			drawn(s.page)
		}
	}
}

// The count of new rows has its room before it is shown.
func TestCountOfNewRowsMovesNoRow(t *testing.T) {
	for _, width := range widths {
		s := newStill(t, width)
		s.hover(row("two"))
		s.stays("the count is shown", func() {
			eval[bool](s.page, `(holdfast.app.inbox.update = () => { holdfast.app.inbox.held = 1234; }, true)`)
			s.comes("late")
			s.shows("1,234 new")
		}, row("one"), row("two"))
	}
}

// A row that another person decides keeps its height while the pointer is over the list, also when it is open; a
// heading counts prompts that are held.
func TestDecidedRowMovesNoRow(t *testing.T) {
	for _, width := range widths {
		s := newStill(t, width)
		s.hover(row("two"))
		s.comes("late")
		heading := `document.querySelector(".group .count").textContent`
		if got := eval[string](s.page, heading); got != "2 waiting" {
			t.Errorf("the group of a row and a held one says %q", got)
		}
		s.stays("a row above is decided", func() { s.decides("a", "one") }, row("one"), row("one")+" .what",
			row("two"), row("three"))
		s.shows("answered by bob")
		if got := eval[string](s.page, heading); got != "1 waiting" {
			t.Errorf("the group of a decided row and a held one says %q", got)
		}

		s.click(row("two") + " .head")
		form := row("two") + " .form .buttons"
		s.wait(fmt.Sprintf("document.querySelector(%s)", quote(form)))
		s.hover(form + " button")
		s.stays("the open row is decided", func() { s.decides("b", "two") }, form, form+" button", row("three"))
		if !eval[bool](s.page, fmt.Sprintf(`[...document.querySelectorAll(%s)].every((b) => b.disabled)`,
			quote(form+" button"))) {
			t.Error("a button of a decided prompt is on")
		}
		eval[bool](s.page, `(document.activeElement.blur(), true)`)
		s.do(chromedp.MouseEvent("mouseMoved", 1, 1))
		s.wait(fmt.Sprintf(`!document.querySelector(%s)`, quote(form)))
		s.shows("answered by bob")
		s.wait(fmt.Sprintf(`document.querySelector(%s)`, quote(row("late"))))

		// A row that is opened after the decision has no form.
		s.hover(row("three"))
		s.decides("b", "three")
		s.click(row("three") + " .head")
		s.wait(fmt.Sprintf(`document.querySelector(%s)`, quote(row("three")+".open .form")))
		if eval[bool](s.page, `Boolean(document.querySelector(".form .buttons"))`) {
			t.Error("a prompt that was decided before has a form")
		}

		// A prompt that waits again has no line about the decision before.
		eval[bool](s.page, `(document.activeElement.blur(), (({ bucket }) => {
			const [key, { blocker }] = [...bucket.rows].find(([key]) => key.endsWith(".one"));
			bucket.put(key, { ...blocker, status: "awaiting", seq: 1e6 });
		})(holdfast.app), true)`)
		s.do(chromedp.MouseEvent("mouseMoved", 1, 1))
		s.wait(fmt.Sprintf(`document.querySelector(%s) && holdfast.app.calm()`, quote(row("one")+".waits")))
		eval[bool](s.page, `(holdfast.app.changed(), true)`)
		drawn(s.page)
		if eval[bool](s.page, fmt.Sprintf(`Boolean(document.querySelector(%s))`, quote(row("one")+" .below"))) {
			t.Error("a prompt that waits again has the line of its decision")
		}
	}
}

// A row that leaves the people's view stays in its place while the pointer is over the list, and says who settled it:
// also when it went while it waited, as after a reconnect.
func TestRemovedRowStaysUnderAHand(t *testing.T) {
	for _, width := range widths {
		s := newStill(t, width)
		s.hover(row("two"))
		s.stays("a row above goes", func() {
			s.decides("a", "one")
			s.purges("a", "one")
		}, row("one"), row("one")+" .what", row("two"), row("three"))
		s.wait(fmt.Sprintf(`document.querySelector(%s)?.innerText.includes("answered by bob")`,
			quote(row("one")+".decided")))

		s.click(row("two") + " .head")
		form := row("two") + " .form .buttons"
		s.wait(fmt.Sprintf("document.querySelector(%s)", quote(form)))
		s.hover(form + " button")
		eval[bool](s.page, `(globalThis.put = holdfast.app.bucket.put, holdfast.app.bucket.put = () => {}, true)`)
		s.c.request(s.c.connect(), "ledger.answer", map[string]any{"harness": "painter", "session": "b",
			"prompt": "two", "by": "bob", "answers": []any{map[string]any{"question": "q", "selected": []string{"y"}}}})
		s.stays("the open row goes while it waits", func() {
			eval[bool](s.page, fmt.Sprintf(`(holdfast.app.bucket.put = put, holdfast.app.bucket.remove(%s),
				holdfast.app.changed(), true)`, quote(events.BlockerKey("painter", "b", "b", "two"))))
			s.wait(fmt.Sprintf(`document.querySelector(%s)?.innerText.includes("answered by bob")`,
				quote(row("two")+".decided .head")))
		}, row("one"), form, form+" button", row("three"))
		if !eval[bool](s.page, fmt.Sprintf(`[...document.querySelectorAll(%s)].every((b) => b.disabled)`,
			quote(form+" button"))) {
			t.Error("a button of a prompt that is gone is on")
		}
		eval[bool](s.page, `(document.activeElement.blur(), true)`)
		s.do(chromedp.MouseEvent("mouseMoved", 1, 1))
		s.wait(`document.querySelectorAll(".row").length === 1`)
		if got := eval[int](s.page, `holdfast.app.inbox.gone.size`); got != 0 {
			t.Errorf("%d rows are kept without a hand on the list", got)
		}
	}
}

// A finger on the list is a hand, and stays one for a while after it is lifted. The hover that a browser keeps after a
// touch does not count.
func TestTouchIsAHand(t *testing.T) {
	s := newStill(t, widths[1])
	// as browsers say after a touch
	s.hover(row("two"))
	s.touches(input.DispatchTouchEventTypeTouchStart, row("three"))
	s.wait(`holdfast.app.fingers === 1`)
	// the finger rests
	eval[bool](s.page, `(holdfast.app.touched = 0, true)`)
	s.stays("a row above a finger goes", func() {
		s.decides("a", "one")
		s.purges("a", "one")
	}, row("one"), row("two"), row("three"))
	s.touches(input.DispatchTouchEventTypeTouchEnd, "")
	s.wait(`holdfast.app.fingers === 0`)
	if eval[bool](s.page, `holdfast.app.calm()`) {
		t.Error("rows move as soon as a finger is lifted")
	}
	eval[bool](s.page, `(document.activeElement.blur(), true)`)
	s.wait(fmt.Sprintf(`!document.querySelector(%s)`, quote(row("one"))))
}

// An answer that is stored is not sent again while its form still stands.
func TestStoredAnswerIsNotSentAgain(t *testing.T) {
	s := newStill(t, widths[0])
	eval[bool](s.page, `(holdfast.app.bucket.put = () => {}, globalThis.sent = 0, globalThis.ask = holdfast.app.net.ask,
		holdfast.app.net.ask = (service, verb, ...rest) => {
			if (verb !== "get") sent++;
			return ask.call(holdfast.app.net, service, verb, ...rest);
		}, true)`)
	// an answer, and a refusal
	for i, keys := range []string{"1", "n"} {
		s.press("j" + keys)
		s.wait(`document.querySelector(".row.open :is(:checked, .reason)")`)
		s.press("\r")
		s.wait(`document.querySelector(".row.open .verdict.done")`)
		s.press("\r")
		drawn(s.page)
		if got := eval[int](s.page, "sent"); got != i+1 {
			t.Errorf("%d requests after %d prompts", got, i+1)
		}
		s.press("\x1b")
		eval[bool](s.page, fmt.Sprintf(`(holdfast.app.inbox.open([...holdfast.app.bucket.rows.keys()][%d]), true)`, i))
		drawn(s.page)
	}
}
