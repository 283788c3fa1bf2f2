package board

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	staleMax = 20 * time.Second // from the death of everything until the page says that it is old, on a loaded machine
	many     = 10_000           // prompts

	soonStale = 4 * time.Second // from the death of the cell until the page says that it is old, on a calm machine
	soonLive  = 2 * time.Second // from the return of the cell until the page is live
	drawnMax  = 200             // rows that the page draws at most

	taskMaxMS   = 250 // the longest task of the page, with that many prompts
	updateMaxMS = 20  // the median of what a change of one of them takes

	workNominalMS = 15 // what work takes on a machine that does nothing else
)

// work is a fixed amount of what a page does: it makes, sorts, writes and parses objects. It is an expression of
// JavaScript whose value is how long each of 30 times took, in ms, sorted.
const work = `(async () => {
	const took = [];
	for (let i = 0; i < 40; i++) {
		const began = performance.now();
		let x = 1;
		const list = Array.from({ length: 10_000 }, () => (x = (x * 16807) % 2147483647));
		list.sort((a, b) => a - b);
		JSON.parse(JSON.stringify(list.map((n) => ({ n, text: "row " + n }))));
		if (i >= 10) took.push(performance.now() - began); // the browser has compiled it
		await new Promise((done) => setTimeout(done));
	}
	return took.sort((a, b) => a - b);
})()`

// slowness returns how many times slower than a machine that does nothing else this one is now: usually, and at its
// slowest. It is at least 1.
func (p *page) slowness() (usual, worst float64) {
	p.t.Helper()
	took := eval[[]float64](p, work)
	return max(1, took[len(took)/2]/workNominalMS), max(1, took[len(took)-1]/workNominalMS)
}

// shownKeys are the keys of the rows that wait, as the page has them, sorted.
func shownKeys(p *page) []string {
	keys := eval[[]string](p, `[...holdfast.app.bucket.rows.values()].filter((r) => r.waits).map((r) => r.key)`)
	slices.Sort(keys)
	return keys
}

// Everything under the page is killed: it says that it is old, lets nothing be sent, and is whole again by itself. A
// prompt that was decided while the page could not see it is gone from what waits.
func TestPageSurvivesTheDeathOfEverything(t *testing.T) {
	c := newCell(t)
	h := c.agent("painter")
	s, turn := c.open(h, "wall", harness.OpenOptions{})
	for _, id := range []string{"one", "two", "three"} {
		c.ask(s, turn, id, question("colour", "Which colour? "+id, "red", "blue"))
	}
	p := board(t, c, "#/p/painter/wall/one")
	p.wait(`document.querySelector(".row.open")`)
	p.press("1")
	p.wait(`!document.querySelector("button.main").disabled`)
	c.end(syscall.SIGKILL)
	took := p.wait(`document.querySelector("#state.stale")`)
	t.Logf("the page said that it is old %s after the death", took)
	if took > staleMax {
		t.Errorf("the page said that it is old %s after the death, want at most %s", took, staleMax)
	}
	p.shows("reconnecting")
	p.shows("as of ")
	p.wait(`document.querySelector("button.main").disabled`)
	// nothing is kept for later
	p.press("\r")
	p.shot("stale")

	// the page cannot see what happens now
	c.start("--board=false")
	nc := c.connect()
	c.request(nc, "ledger.answer", map[string]any{"harness": "painter", "session": "wall", "prompt": "two", "by": "bob",
		"answers": []any{map[string]any{"question": "colour", "selected": []string{"red"}}}})
	// the broker is up
	c.state(nc)
	gone := events.BlockerKey("painter", "wall", "wall", "ghost")
	c.end(syscall.SIGKILL)
	eval[bool](p, fmt.Sprintf(`(holdfast.app.bucket.put(%s, {harness: "painter", session: "wall", root: "wall",
		prompt: "ghost", status: "awaiting", kind: "question"}), true)`, quote(gone)))
	c.start()
	p.wait(`document.querySelector("#state.live")`)
	want := []string{events.BlockerKey("painter", "wall", "wall", "one"),
		events.BlockerKey("painter", "wall", "wall", "three")}
	slices.Sort(want)
	p.wait(`[...holdfast.app.bucket.rows.values()].filter((r) => r.waits).length === 2`)
	if got := shownKeys(p); !slices.Equal(got, want) {
		t.Errorf("the page shows %v, want %v", got, want)
	}
	if b := c.entry(nc, "painter", "wall", "wall", "one"); b["status"] != "awaiting" {
		t.Errorf("an answer to an old screen was sent: %v", b["status"])
	}
	p.press("\r")
	p.shows("answered by ann")
}

// The page says soon that it is old, and is live soon after its cell is ready again.
func TestPageIsLiveSoonAfterTheReturn(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "one", question("colour", "Which colour?", "red", "blue"))
	p, other := board(t, c, ""), newPage(t, "about:blank")
	slower, _ := other.slowness()
	var stale, live time.Duration
	for range 4 {
		c.end(syscall.SIGKILL)
		stale = max(stale, p.wait(`document.querySelector("#state.stale")`))
		c.start()
		live = max(live, p.wait(`document.querySelector("#state.live")`))
	}
	now, _ := other.slowness()
	slower = max(slower, now)
	t.Logf("stale after %s, live after %s; the machine is %.1f times slower than a calm one", stale, live, slower)
	for _, x := range []struct {
		what      string
		took, max time.Duration
	}{{"stale", stale, soonStale}, {"live", live, soonLive}} {
		if limit := time.Duration(float64(x.max) * slower); x.took > limit {
			t.Errorf("the page was %s after %s, want at most %s", x.what, x.took, limit)
		}
	}
}

// JetStream that starts drops requests. The page sends them again before the first one has timed out, and makes no
// second consumer.
func TestDroppedRequestIsSentAgain(t *testing.T) {
	c := newCell(t)
	p := board(t, c, "")
	eval[bool](p, `(() => {
		const { nc } = holdfast.app.net;
		const request = nc.request.bind(nc);
		globalThis.created = [];
		nc.request = (subject, ...more) => {
			if (!subject.startsWith("$JS.API.CONSUMER.CREATE.")) return request(subject, ...more);
			created.push(subject);
			return created.length === 1 ? new Promise(() => {}) : request(subject, ...more);
		};
		holdfast.app.bucket.restart();
		return true;
	})()`)
	p.wait(`created.length === 2 && document.querySelector("#state.live")`)
	if !eval[bool](p, `created[0] === created[1]`) {
		t.Errorf("the page made two consumers: %s", eval[string](p, `created.join()`))
	}
}

// A page that cannot be drawn says so, shows nothing that looks live, and sends nothing. It is whole again by itself.
func TestPageThatCannotBeDrawn(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "one", question("colour", "Which colour?", "red", "blue"))
	p := board(t, c, "#/p/painter/wall/one")
	p.wait(`document.querySelector(".row.open")`)
	p.press("1")
	p.wait(`!document.querySelector("button.main").disabled`)
	eval[bool](p, `(holdfast.app.show = holdfast.app.notices.state, holdfast.app.notices.state = () => {
		throw new Error("a defect");
	}, holdfast.app.draw(), true)`)
	p.shows("This page cannot be drawn: a defect")
	if eval[bool](p, `Boolean(document.querySelector(".row, #state")) || holdfast.app.live()`) {
		t.Errorf("a page that cannot be drawn looks live:\n%s", p.text())
	}
	p.press("\r")
	eval[bool](p, `(holdfast.app.notices.state = holdfast.app.show, holdfast.app.draw(), true)`)
	p.wait(`document.querySelector("#state.live") && !document.querySelector("button.main").disabled`)
	if eval[bool](p, `!document.getElementById("failed").hidden`) {
		t.Error("a page that is drawn says that it cannot be")
	}
	if b := c.entry(c.connect(), "painter", "wall", "wall", "one"); b["status"] != "awaiting" {
		t.Errorf("a page that cannot be drawn sent an answer: %v", b["status"])
	}
	p.press("\r")
	p.shows("answered by ann")
}

// A malformed entry of the people's view is no row, and does not end the reading of the others.
func TestMalformedEntryIsLeftOut(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "one", question("colour", "Which colour?", "red"))
	kv := c.state(c.connect())
	until(t, "the question is in the view", func() bool {
		_, err := kv.Get(t.Context(), events.BlockerKey("painter", "wall", "wall", "one"))
		return err == nil
	})
	if _, err := kv.Put(t.Context(), events.BlockerKey("painter", "wall", "wall", "bad"), []byte("null")); err != nil {
		t.Fatal(err)
	}
	p := board(t, c, "")
	p.shows("Which colour?")
	if got := eval[int](p, `holdfast.app.bucket.rows.size`); got != 1 {
		t.Errorf("%d rows, want 1", got)
	}
}

// A page of another origin, and one whose name resolves to this machine, get nothing.
func TestAnotherOriginIsRefused(t *testing.T) {
	c := newCell(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>another page</title>"))
	}))
	defer other.Close()
	p := newPage(t, other.URL)
	opened := `new Promise((done) => { const w = new WebSocket("ws://%s/nats");
		w.onopen = () => done("open"); w.onerror = () => done("refused"); })`
	if got := eval[string](p, fmt.Sprintf(opened, c.http)); got != "refused" {
		t.Errorf("the websocket of another page is %s", got)
	}
	read := `fetch(%s).then((r) => r.text(), () => "refused")`
	for _, path := range []string{"cell.json", "metrics", "healthz"} {
		if got := eval[string](p, fmt.Sprintf(read, quote(c.url()+path))); got != "refused" {
			t.Errorf("another page reads %s: %s", path, got)
		}
	}
	b := board(t, c, "")
	if got := eval[string](b, fmt.Sprintf(opened, c.http)); got != "open" {
		t.Errorf("the board's own websocket is %s", got)
	}
	_, port, _ := net.SplitHostPort(c.http)
	r := newPage(t, "http://"+rebound+":"+port+"/")
	r.shows("this address listens on loopback")
	for _, path := range []string{"/metrics", "/healthz", "/cell.json"} {
		got := eval[int](r, fmt.Sprintf(`fetch(%s).then((r) => r.status)`, quote(path)))
		if got != http.StatusMisdirectedRequest {
			t.Errorf("a name that resolves to this machine reads %s: status %d", path, got)
		}
	}
	if got := eval[string](r, fmt.Sprintf(opened, rebound+":"+port)); got != "refused" {
		t.Errorf("the websocket of such a page is %s", got)
	}
}

// Ten thousand prompts: few rows are drawn, all are counted and found, and one more is shown.
func TestTenThousandPrompts(t *testing.T) {
	c := newCell(t)
	nc := c.connect()
	put := func(i int) {
		session := fmt.Sprintf("s%05d", i)
		body, err := json.Marshal(map[string]any{"harness": "load", "session": session, "root": session, "prompt": "p",
			"kind": "question", "title": fmt.Sprintf("Question number %d?", i), "status": "awaiting", "owned": true,
			"armed_at": time.Unix(1_700_000_000+int64(i), 0).UTC(), "blocking": true, "seq": i,
			"questions": []any{map[string]any{"id": "q", "question": "Which?", "options": []any{}, "multi": false,
				"custom": true}}})
		if err != nil {
			t.Fatal(err)
		}
		m := nats.NewMsg("$KV.hf_state." + events.BlockerKey("load", session, session, "p"))
		m.Data = body
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		put(i)
	}
	kv := c.state(nc)
	until(t, "all prompts are stored", func() bool {
		s, err := kv.Status(t.Context())
		return err == nil && s.Values() >= many
	})
	other := newPage(t, "about:blank")
	usual, worst := other.slowness()
	p := board(t, c, "")
	p.wait(`document.querySelector("#waiting").textContent === "10,000"`)
	rows := `document.querySelectorAll(".row").length`
	if got := eval[int](p, rows); got == 0 || got > drawnMax {
		t.Errorf("%d rows are drawn, want at most %d", got, drawnMax)
	}
	p.shows("… and 9,800 more: narrow the filter")
	p.shot("many")
	put(many)
	took := p.wait(`document.querySelector("#waiting").textContent === "10,001"`)
	t.Logf("one more prompt was counted after %s", took)
	p.measure()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for i := range 100 {
		put(i)
		<-tick.C
	}
	put(many + 1)
	p.wait(`document.querySelector("#waiting").textContent === "10,002"`)
	longest, update := p.measured()
	usually, worse := other.slowness()
	usual, worst = max(usual, usually), max(worst, worse)
	t.Logf("the longest task took %.0f ms, an update %.1f ms; the machine is %.1f to %.1f times slower than a calm one",
		longest, update, usual, worst)
	if longest > taskMaxMS*worst || update > updateMaxMS*usual {
		t.Errorf("the longest task took %.0f ms, want at most %.0f; an update %.1f ms, want at most %.1f", longest,
			taskMaxMS*worst, update, updateMaxMS*usual)
	}
	if got := eval[int](p, rows); got > drawnMax {
		t.Errorf("%d rows are drawn, want at most %d", got, drawnMax)
	}
	p.press("/")
	p.wait(`document.activeElement.id === "filter"`)
	p.keys("9876?")
	p.wait(rows + ` === 1`)
	p.shows("Question number 9876?")
}

// measure begins to measure the tasks of a page, those before among them, and what it draws.
func (p *page) measure() {
	p.t.Helper()
	eval[bool](p, `(() => {
		globalThis.tasks = [];
		new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration)))
			.observe({type: "longtask", buffered: true});
		globalThis.drawings = [];
		const frame = requestAnimationFrame;
		globalThis.requestAnimationFrame = (draw) => frame((at) => {
			const began = performance.now();
			draw(at);
			drawings.push(performance.now() - began);
		});
		return true;
	})()`)
}

// measured returns the longest task, and the median of drawings, in ms.
func (p *page) measured() (longest, update float64) {
	p.t.Helper()
	return eval[float64](p, `Math.max(0, ...tasks)`),
		eval[float64](p, `drawings.sort((a, b) => a - b)[Math.floor(drawings.length / 2)]`)
}

// A connection that is silent and not closed, as after a laptop slept, is noticed by the page itself.
func TestSilenceIsNotTakenForPeace(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "one", question("colour", "Which colour?", "red"))
	p := board(t, c, "#/p/painter/wall/one")
	p.wait(`document.querySelector(".row.open")`)
	c.signal(syscall.SIGSTOP)
	p.wait(`document.querySelector("#state.stale")`)
	p.wait(`[...document.querySelectorAll(".row.open .buttons button")].slice(0, 3).every((b) => b.disabled)`)
	state := eval[string](p, `document.querySelector("#state").innerText`)
	if !strings.HasPrefix(state, "as of ") || !strings.HasSuffix(state, ", reconnecting …") {
		t.Errorf("a page that hears nothing says %q", state)
	}
	if eval[bool](p, `!holdfast.app.net.connected`) {
		t.Log("the connection was closed meanwhile: the machine is slow")
	}
	// of the request that had no reply
	p.wait(`holdfast.app.bucket.error`)
	drawn(p)
	if got := eval[string](p, `document.querySelector("#state").innerText`); got != state {
		t.Errorf("a page that hears nothing says %q, and then %q", state, got)
	}
	c.signal(syscall.SIGCONT)
	p.wait(`document.querySelector("#state.live")`)
	p.press("1")
	p.wait(`!document.querySelector("button.main").disabled`)
	p.press("\r")
	p.shows("answered by ann")
}

// The clock of the browser's machine is set back by an hour: the page still notices within seconds that it hears
// nothing, and counts down by the broker's clock.
func TestClockThatIsSetBack(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "one", question("colour", "Which colour?", "red"))
	p := board(t, c, "#/p/painter/wall/one")
	p.wait(`document.querySelector(".row.open")`)
	moved := eval[float64](p, `(() => {
		const { app } = holdfast;
		const before = app.now();
		const now = Date.now;
		Date.now = () => now.call(Date) - 3_600_000;
		return Math.abs(app.now() - before);
	})()`)
	if moved > 60_000 {
		t.Errorf("the broker's clock moved by %.0f ms with the clock of the browser", moved)
	}
	c.signal(syscall.SIGSTOP)
	if took := p.wait(`document.querySelector("#state.stale")`); took > staleMax {
		t.Errorf("the page said that it is old after %s, want at most %s", took, staleMax)
	}
	p.wait(`document.querySelector(".row.open .buttons button:nth-of-type(3)").disabled`)
	c.signal(syscall.SIGCONT)
	p.wait(`document.querySelector("#state.live")`)
	p.press("1")
	p.wait(`!document.querySelector("button.main").disabled`)
	p.press("\r")
	p.shows("answered by ann")
}

// A page whose server dies while it begins, before the page knows its cell, begins when the server is back.
func TestPageBeginsWhenItsServerIsBack(t *testing.T) {
	c := newCell(t)
	var refused atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cell.json" && refused.Add(1) <= 10 {
			// the connection ends without a reply; the browser asks again by itself, too
			panic(http.ErrAbortHandler)
		}
		reply, err := http.Get(c.url() + strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer reply.Body.Close()
		w.Header().Set("Content-Type", reply.Header.Get("Content-Type"))
		_, _ = io.Copy(w, reply.Body)
	}))
	defer front.Close()
	p := newPage(t, front.URL)
	p.shows("The board's server does not reply")
	// the page knows its cell
	p.wait(`document.querySelector("#state")`)
}
