package board

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// shotsVariable names a folder for pictures of the pages. Without it none are taken.
const shotsVariable = "HOLDFAST_BOARD_SHOTS"

// arrowDown and arrowUp are keys of press.
const (
	arrowDown = "\u0301"
	arrowUp   = "\u0304"
)

// page is one tab.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string // what the page threw
}

// newPage opens a tab at an address.
func newPage(t *testing.T, url string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	// the tab ends with the context of its first step
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, ctx: ctx}
	p.do(chromedp.EmulateViewport(1200, 900))
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*runtime.EventExceptionThrown); ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errors = append(p.errors, thrown(e.ExceptionDetails))
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.errors) > 0 {
			t.Errorf("the page threw: %s", strings.Join(p.errors, "\n"))
		}
	})
	p.do(chromedp.Navigate(url))
	return p
}

// board opens the board and waits until it is live.
func board(t *testing.T, c *cell, hash string) *page {
	t.Helper()
	p := newPage(t, c.url()+hash)
	p.wait(`document.querySelector("#state.live")`)
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval returns the value of an expression of JavaScript.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true, and returns how long that took.
func (p *page) wait(expression string) time.Duration {
	p.t.Helper()
	began := time.Now()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		cancel()
		if err == nil && ok {
			return time.Since(began)
		}
		if time.Since(began) > patience {
			p.t.Fatalf("not within %s: %s (%v); the page shows:\n%s", patience, expression, err, p.text())
		}
		<-tick.C
	}
}

// drawn waits until the page has drawn what it has now.
func drawn(p *page) {
	p.t.Helper()
	eval[bool](p, `new Promise((done) => {
		globalThis.holdfast?.app.draw(); // the page of the log-in has none
		requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
	})`)
}

// text is what a person reads.
func (p *page) text() string {
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// shows waits until a person can read this.
func (p *page) shows(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.body.innerText.includes(%s)", quote(text)))
}

// press presses keys that mean something and write nothing. chromedp sends a key's text as an event of its own, which a
// page cannot prevent: here it is left out.
func (p *page) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys, func(k *input.DispatchKeyEventParams) {
		if k.Type == "char" {
			k.Modifiers |= int64(chromedp.ModifierAlt)
		}
	}))
}

// keys writes text.
func (p *page) keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// click clicks the first element of a CSS selector, when it is where it was a moment ago: the click is at a place of
// the page, and what appears above the element moves it.
func (p *page) click(selector string) {
	p.t.Helper()
	p.wait(fmt.Sprintf(`(() => { const e = document.querySelector(%s);
		if (!e) { return false; }
		const { x, y } = e.getBoundingClientRect(), before = e.placeBefore;
		e.placeBefore = x + " " + y;
		return e.placeBefore === before; })()`, quote(selector)))
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// shot takes pictures of the page at the width of a desk and of a phone, if they are asked for.
func (p *page) shot(name string) {
	p.t.Helper()
	dir := os.Getenv(shotsVariable)
	if dir == "" {
		return
	}
	for suffix, size := range map[string][2]int64{"desk": {1200, 900}, "phone": {390, 844}} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"-"+suffix+".png"), image, 0o600)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	p.do(chromedp.EmulateViewport(1200, 900))
}

// narrow fails the test if something on the page is wider than a phone and has to be moved sideways.
func (p *page) narrow() {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(390, 844))
	defer p.do(chromedp.EmulateViewport(1200, 900))
	wide := eval[string](p, `[...document.querySelectorAll("html, section, details")].filter((e) =>
		e.scrollWidth > e.clientWidth + 1).map((e) =>
		(e.getAttribute("aria-label") ?? e.localName) + " " + e.scrollWidth + " > " + e.clientWidth).join()`)
	if wide != "" {
		p.t.Errorf("wider than a phone: %s", wide)
	}
}

// quote is a text as a literal of JavaScript.
func quote(text string) string {
	body, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(body)
}

// thrown is what a page threw, as text.
func thrown(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}

// focus puts the keyboard into an element.
func focus(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Focus(chromedp.CSS(selector))
}

// scroll brings an element onto the screen.
func scroll(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.ScrollIntoView(chromedp.CSS(selector))
}
