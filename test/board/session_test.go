package board

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
)

// The page of a session says what it does and which event made that so; a retry counts down, and runs when a person
// says so; the queue can be taken back; the past is exact.
func TestReasonsOfASession(t *testing.T) {
	c := newCell(t)
	h := c.agent("coder")
	s, turn := c.open(h, "build", harness.OpenOptions{Title: "Build it", Agent: "coder", Model: "small"})
	c.append(s, events.ToolStarted{Call: "test", Turn: turn.ID(), Name: "bash", Input: []byte(`{"command":"go test"}`)},
		events.ToolCompleted{Call: "test", Output: []byte(`"PASS <i>all</i>"`)})
	c.append(s, events.UsageReported{Turn: turn.ID(), Model: "small", Tokens: events.Tokens{Input: 60_000},
		ContextLimit: 100_000})
	began := s.State().Seq
	p := board(t, c, "#/s/coder/build")
	p.wait(`document.querySelector("#phase")?.textContent === "running"`)
	p.shows("because of turn.started")
	p.shows("60,000 of 100,000 tokens, 60 %, near the threshold of 70 %")
	p.wait(`document.querySelectorAll("#timeline li").length >= 5`)

	// A message waits behind the turn, and is taken back.
	p.do(focus("#message"))
	p.keys("and the ceiling")
	p.click(".buttons .main")
	p.shows("send: stored at")
	p.shows("and the ceiling")
	p.shot("session")
	p.click("#queue button")
	p.wait(`!document.querySelector("#queue")`)
	p.shows("withdraw: stored at")

	// The turn fails: the countdown is by the broker's clock, and a person cancels it, or has it at once.
	c.append(s, events.TurnFailed{Turn: turn.ID(), Error: events.Failure{Kind: "rate_limit", Text: "429: slow down",
		RetryAfterMS: 600_000}})
	p.wait(`document.querySelector("#phase").textContent === "retrying"`)
	p.shows("because of retry.scheduled")
	p.shows("retry 1 in ")
	p.shows("429: slow down")
	p.shot("retrying")
	left := `Number(/in (\d+)m/.exec(document.querySelector("#retry").textContent)?.[1] ?? 0)`
	if got := eval[int](p, left); got < 8 || got > 10 {
		t.Errorf("the retry is said to be due in %d minutes, want 9 or 10", got)
	}
	eval[bool](p, `(Object.defineProperty(holdfast.app.net, "offset", {configurable: true, get: () => 300_000,
		set() {}}), holdfast.app.draw(), true)`)
	p.wait(left + ` <= 5`)
	eval[bool](p, `(Object.defineProperty(holdfast.app.net, "offset", {value: 0, writable: true}), true)`)
	p.click(`section[aria-label="Retry"] button:nth-of-type(2)`)
	p.shows("no retry: cancelled")
	p.click(`section[aria-label="Retry"] button:nth-of-type(1)`)
	p.shows("retry now: stored at")
	p.wait(`/^retry \d+ starts(?!.*Retry now)/s.test(document.querySelector("section[aria-label=Retry]").innerText)`)

	// The document as it was, beside what it is now.
	eval[bool](p, fmt.Sprintf(`(holdfast.app.page.travel(%d, 0), true)`, began))
	p.wait(`document.querySelector("#differences")`)
	p.shows(fmt.Sprintf("at %d: running", began))
	if got := eval[string](p, `[...document.querySelectorAll("#compared tbody th")].map((e) => e.textContent.trim())
		.join()`); !strings.Contains(got, "phase") || strings.Contains(got, "seq") {
		t.Errorf("compared: %s", got)
	}
	if !eval[bool](p, `[...document.querySelectorAll("#differences th")].some((e) => e.textContent === "seq")`) {
		t.Error("the difference of two documents lacks their places")
	}
	p.narrow()
	p.do(scroll("#past"))
	p.shot("past")
	if eval[bool](p, `Boolean(document.querySelector("#timeline i"))`) {
		t.Error("text of a tool became markup")
	}
	q := board(t, c, "#/sessions")
	q.shows("coder/build")
	q.shows("Build it")
	q.shot("sessions")
	q.press("gi")
	q.shows("Nothing waits for you.")
}

// The comparison of two documents says which outcomes are unknown, as holdfast diff does: also of a call that the
// document knows as failed. A call of which the end cannot be read is named.
func TestComparisonShowsWhatIsUnknown(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "build", harness.OpenOptions{})
	began := s.State().Seq
	for call, end := range map[string]events.Fact{
		"cut": events.ToolFailed{Call: "cut", Error: events.Failure{Kind: failure.OutcomeUnknown, Text: "cut off"}},
		"red": events.ToolFailed{Call: "red", Error: events.Failure{Kind: failure.HandlerError, Text: "exit status 1"}},
	} {
		c.append(s, events.ToolStarted{Call: call, Turn: turn.ID(), Name: "deploy"}, end)
	}
	p := board(t, c, "#/s/coder/build")
	p.shows("tool.failed")
	travel := fmt.Sprintf(`(holdfast.app.page.travel(%d, 0), true)`, began)
	row := `[...document.querySelectorAll("#compared tbody tr")].map((e) => e.textContent.replace(/\s+/g, " ")).join()`
	eval[bool](p, `(holdfast.load = holdfast.app.page.ends.load,
		holdfast.app.page.ends.load = async () => { throw new Error("no such message"); }, true)`)
	eval[bool](p, travel)
	p.shows("its outcome may be unknown: the end of call cut: no such message")
	p.wait(row + `.includes("tool cut deploy–failed")`)
	eval[bool](p, `(holdfast.app.page.ends.load = holdfast.load, true)`)
	eval[bool](p, travel)
	p.wait(row + `.includes("tool cut deploy–unknown")`)
	if got := eval[string](p, row); !strings.Contains(got, "tool red deploy–failed") {
		t.Errorf("the comparison says: %s", got)
	}
}

// A retry counts down, and fires by itself at its instant.
func TestRetryFiresByItself(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "build", harness.OpenOptions{})
	p := board(t, c, "#/s/coder/build")
	p.wait(`document.querySelector("#phase")?.textContent === "running"`)
	c.append(s, events.TurnFailed{Turn: turn.ID(), Error: events.Failure{Kind: "rate_limit", Text: "429: slow down",
		RetryAfterMS: 8_000}})
	due := `Date.parse(holdfast.app.page.doc()?.retry?.due_at)`
	p.wait(due + ` > 0`)
	at := eval[float64](p, due)
	p.wait(`/^retry 1 in \ds/.test(document.querySelector("#retry")?.textContent)`)
	first := eval[string](p, `document.querySelector("#retry")?.textContent ?? ""`)
	p.wait(fmt.Sprintf(`document.querySelector("#retry")?.textContent !== %s`, quote(first)))
	p.wait(`document.querySelector("#retry")?.textContent.startsWith("retry 1 starts")`)
	fired := `holdfast.app.page.commits.lines.findLast((l) => l.kind === "turn.requested")`
	p.wait(fired)
	if got := eval[float64](p, fired+`.at`); got < at {
		t.Errorf("the retry fired %.0f ms before its instant", at-got)
	}
	if got := eval[string](p, fired+`.author`); got != "retry" {
		t.Errorf("the retry was fired by %q", got)
	}
}

// A page that is old asks for nothing: its buttons are off, and a request is not sent.
func TestOldSessionAsksForNothing(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("coder"), "build", harness.OpenOptions{})
	c.append(s, events.TurnFailed{Turn: turn.ID(), Error: events.Failure{Kind: "rate_limit", Text: "429: slow down",
		RetryAfterMS: 600_000}})
	p := board(t, c, "#/s/coder/build")
	c.request(c.connect(), "compaction.send", map[string]any{"harness": "coder", "session": "build", "message": "m1",
		"by": "ann", "content": "and the handle"})
	p.wait(`document.querySelector("#queue") && document.querySelector("#retry")`)
	p.write("retry_max", "3")
	buttons := `[...document.querySelectorAll("#queue button, .buttons button")]
		.filter((b) => b.textContent !== "Take back")`
	p.wait(buttons + `.length === 7 && ` + buttons + `.every((b) => !b.disabled)`)
	c.end(syscall.SIGKILL)
	p.wait(`document.querySelector("#state.stale")`)
	drawn(p)
	if got := eval[string](p, buttons+`.filter((b) => !b.disabled).map((b) => b.textContent).join()`); got != "" {
		t.Errorf("an old page has buttons that can be pressed: %s", got)
	}
	eval[bool](p, `(holdfast.app.net.ask = () => { throw new Error("sent"); }, true)`)
	if !eval[bool](p, `holdfast.app.page.request("ledger", "stop", {}, "stop").then((r) => r === undefined)`) {
		t.Error("an old page sent a request")
	}
}

// A harness may write anything under its own subject. Events that the ledger does not count are marked, and made
// nothing; only a service can write in the name of a person.
func TestForgedEventsMadeNothing(t *testing.T) {
	c := newCell(t)
	h := c.agent("painter")
	s, turn := c.open(h, "wall", harness.OpenOptions{Title: "Paint the wall"})
	if err := turn.Complete(t.Context(), "done"); err != nil {
		t.Fatal(err)
	}
	made := fmt.Sprintf("because of turn.completed %d by agent #", s.State().Seq)
	nc := c.connect()
	forge := func(body string) {
		t.Helper()
		if err := nc.Publish("hf.log.painter.wall.harness", []byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	event := func(kind, more string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/person/ann","type":"holdfast.%s","subject":"x",
			"data":{"turn":"x"}%s}`, kind, kind, more)
	}
	// malformed
	forge(`[` + event("turn.completed", "") + `]`)
	// of another process
	forge(`[` + event("turn.stopped", `,"session":"wall","epoch":1`) + `]`)
	// out of role
	forge(`[` + event("turn.interrupted", `,"session":"wall","epoch":1`) + `]`)
	// parked, and foreign
	forge(`[` + strings.ReplaceAll(event("turn.failed", ""), "holdfast.turn", "turn") + `]`)
	forge(`no batch`)

	p := board(t, c, "#/s/painter/wall")
	note := `[...document.querySelectorAll("#timeline li")].slice(0, 6).map((l) =>
		l.querySelector(".author").textContent + " " + (l.querySelector(".uncounted")?.textContent ?? "counts"))
		.join("; ")`
	want := "harness did not count: parked: no batch of events; harness did not count: parked; " +
		"harness did not count: parked: not for the harness to say; harness did not count: ignored: source; " +
		"harness did not count: parked; agent #1 counts"
	p.wait(`document.querySelectorAll("#timeline li").length > 6 && document.querySelector(".cause")`)
	if got := volatile.ReplaceAllString(eval[string](p, note), "0"); got != strings.ReplaceAll(want, "#1", "#0") {
		t.Errorf("the newest events: %s\nwant %s", got, want)
	}
	cause := `document.querySelector(".cause").textContent`
	if got := eval[string](p, cause); !strings.Contains(got, made) {
		t.Errorf("the cause is %q", got)
	}
	// An open page judges the events that come.
	forge(`[` + event("turn.completed", "") + `]`)
	p.wait(`document.querySelectorAll("#timeline .uncounted").length === 6`)
	if got := eval[string](p, cause); !strings.Contains(got, made) {
		t.Errorf("the cause is %q after one more", got)
	}
	p.shot("forged")
	// The document comes after its commit.
	eval[bool](p, `(() => {
		const { page } = holdfast.app;
		page.commits.counts.delete(page.doc().seq);
		page.commits.judged--;
		page.commits.draw();
		globalThis.doubted = page.commits.lines.at(-1).doubt;
		page.bucket.put(page.key, page.doc());
		return true;
	})()`)
	p.wait(`doubted && !holdfast.app.page.commits.lines.at(-1).doubt`)
}

// The page of a root shows what its sub-agents do, and "now" is now, also when the root itself does not change. It does
// not read documents of other roots.
func TestPageOfARootIsUpToDate(t *testing.T) {
	c := newCell(t)
	h := c.agent("painter")
	s, turn := c.open(h, "root", harness.OpenOptions{Title: "The root"})
	p := board(t, c, "#/s/painter/root")
	p.wait(`document.querySelector("#phase")?.textContent === "running" && holdfast.app.page.family?.live()`)
	eval[bool](p, `(() => {
		const { net } = holdfast.app;
		const ask = net.ask.bind(net);
		globalThis.asked = [];
		net.ask = (service, verb, body) => (asked.push([verb, body.session].join(" ")), ask(service, verb, body));
		return true;
	})()`)
	kid, doing := c.open(h, "kid", harness.OpenOptions{Parent: "root", Root: "root", Title: "The kid"})
	c.open(h, "other", harness.OpenOptions{Title: "Another root"})
	tree := `document.querySelector(".tree")?.innerText.replace(/\s+/g, " ")`
	p.wait(tree + ` === "root The root running – kid The kid running"`)
	c.ask(kid, doing, "one", question("q", "One?", "x"))
	p.wait(tree + `.endsWith("kid The kid waiting")`)
	c.open(h, "grandkid", harness.OpenOptions{Parent: "kid", Root: "root"})
	p.wait(tree + `.endsWith("– – grandkid running")`)
	p.wait(`asked.includes("get other")`)
	other, busy := c.open(h, "later", harness.OpenOptions{})
	p.wait(`asked.includes("get later") && !holdfast.app.page.family.reading`)
	before := eval[int](p, `asked.length`)
	c.ask(other, busy, "two", question("q", "Two?", "x"))
	c.ask(kid, doing, "three", question("q", "Three?", "x"))
	p.wait(fmt.Sprintf(`asked.slice(%d).includes("get kid") && !holdfast.app.page.family.reading`, before))
	if got := eval[string](p, fmt.Sprintf(`asked.slice(%d).filter((a) => /^get (other|later)|^list/.test(a))
		.join()`, before)); got != "" {
		t.Errorf("the page asked for %s, of another root", got)
	}

	// A document that is removed leaves the tree.
	if err := c.state(c.connect()).Purge(t.Context(), events.SessionKey(events.Ref{Harness: "painter",
		Session: "grandkid"})); err != nil {
		t.Fatal(err)
	}
	p.wait(tree + `.endsWith("kid The kid waiting")`)

	eval[bool](p, `(holdfast.app.page.travel(holdfast.app.page.commits.list[0].seq, 0), true)`)
	p.wait(`document.querySelector("#compared thead")?.textContent.includes("now: running")`)
	c.ask(s, turn, "four", question("q", "Four?", "x"))
	p.wait(`document.querySelector("#compared thead").textContent.includes("now: waiting")`)
}

// Of a root with many sessions one page is read. The page says that there are more, and reads them when a person asks;
// the session that is looked at is in the list at once.
func TestManySubAgents(t *testing.T) {
	c := newCell(t)
	h := c.agent("painter")
	c.open(h, "root", harness.OpenOptions{Title: "The root"})
	sessions, turns := make([]*harness.Session, 104), make([]*harness.Turn, 104)
	for i := range sessions {
		sessions[i], turns[i] = c.open(h, fmt.Sprintf("kid-%03d", i), harness.OpenOptions{Parent: "root", Root: "root"})
	}
	kv := c.state(c.connect())
	last := events.SessionKey(events.Ref{Harness: "painter", Session: "kid-103"})
	// the ledger folds in the order of the log
	until(t, "the document of the last session", func() bool {
		e, err := kv.Get(t.Context(), last)
		return err == nil && strings.Contains(string(e.Value()), `"phase":"running"`)
	})
	p := board(t, c, "#/s/painter/kid-103")
	count := `document.querySelectorAll(".tree li").length`
	p.wait(count + ` === 101 && holdfast.app.page.family.live()`)
	p.shows("101 are shown, and this root has more")
	if got := eval[string](p, `document.querySelector(".tree li b")?.textContent`); got != "kid-103" {
		t.Errorf("the session that is looked at is %q in the list", got)
	}
	first := eval[string](p, `document.querySelector(".tree li").textContent.trim()`)
	if !strings.HasPrefix(first, "root") {
		t.Errorf("the list begins with %q", first)
	}
	// A session of the next page is in the list when it changes.
	c.ask(sessions[101], turns[101], "one", question("q", "One?", "x"))
	p.wait(`document.querySelector(".tree").textContent.replace(/\s+/g, " ").includes("kid-101 waiting")`)
	p.shot("family")
	p.click(`section[aria-label="Sessions of this root"] button`)
	p.wait(count + ` === 105 && holdfast.app.page.family.live()`)
	if eval[bool](p, `Boolean(document.querySelector('section[aria-label="Sessions of this root"] button'))`) {
		t.Error("the whole list has a button for more")
	}
}

// A message cannot be withdrawn before it was read: the buttons beside it do not move when its text comes.
func TestMessageIsReadBeforeItIsWithdrawn(t *testing.T) {
	c := newCell(t)
	c.open(c.agent("coder"), "build", harness.OpenOptions{})
	send := exec.CommandContext(t.Context(), binary, "send", "coder/build", "-", "--nats", "nats://"+c.nats)
	send.Stdin = strings.NewReader(strings.Repeat("a long message\n", 30_000))
	send.Env = append(os.Environ(), "USER=ann")
	if out, err := send.CombinedOutput(); err != nil {
		t.Fatalf("send: %v\n%s", err, out)
	}
	p := board(t, c, "")
	eval[bool](p, `(() => {
		const { net } = holdfast.app;
		const api = net.api.bind(net);
		const held = new Promise((go) => { globalThis.go = go; });
		net.api = async (subject, body) => {
			if (subject.startsWith("STREAM.MSG.GET.HF_LOG")) await held;
			return api(subject, body);
		};
		return true;
	})()`)
	p.visit("#/s/coder/build")
	withdraw := `[...document.querySelectorAll("#queue button")].find((b) => b.textContent === "Withdraw")`
	place := `JSON.stringify((({left, top}) => [left, top])(` + withdraw + `.getBoundingClientRect()))`
	p.wait(withdraw)
	p.shows("reading it …")
	p.wait(`document.querySelector(".tree, #timeline li")`)
	drawn(p)
	if !eval[bool](p, withdraw+`.disabled`) {
		t.Error("a message can be withdrawn before it was read")
	}
	before := eval[string](p, place)
	eval[bool](p, `(go(), true)`)
	p.wait(`[...document.querySelectorAll("#queue button")].some((b) => b.textContent === "Show it")`)
	drawn(p)
	if got := eval[string](p, place); got != before {
		t.Errorf("the button was at %s and is at %s", before, got)
	}
	if eval[bool](p, withdraw+`.disabled`) {
		t.Error("a message that was read cannot be withdrawn")
	}
}

// A message that is too large for the log is an object. A person reads the whole of it where its line is opened, and in
// the queue; content that is not that of its name is not shown.
func TestLongMessageIsRead(t *testing.T) {
	c := newCell(t)
	h := c.agent("painter")
	long := strings.Repeat("long message ü\n", 30_000)
	s, err := h.Open(t.Context(), "wall", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.StartTurn(t.Context(), harness.StartOptions{Content: long, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	send := exec.CommandContext(t.Context(), binary, "send", "painter/wall", "-", "--nats", "nats://"+c.nats)
	send.Stdin = strings.NewReader("queued " + long)
	send.Env = append(os.Environ(), "USER=ann")
	if out, err := send.CombinedOutput(); err != nil {
		t.Fatalf("send: %v\n%s", err, out)
	}
	p := board(t, c, "#/s/painter/wall")
	show := "#queue button:not(.side)"
	p.click(show)
	shown := `document.querySelector(".object")?.textContent`
	p.wait(fmt.Sprintf("%s === %s", shown, quote("queued "+long)))
	// it hides what it showed
	p.click(show)
	p.wait(`!document.querySelector(".object")`)
	eval[bool](p, `([...document.querySelectorAll("#timeline button.line")].find((b) =>
		b.textContent.includes("message.accepted") && b.textContent.includes("agent")).click(), true)`)
	eval[bool](p, `(() => {
		const { net } = holdfast.app;
		const api = net.api.bind(net);
		net.api = async (subject, body) => {
			const reply = await api(subject, body);
			if (body?.next_by_subj && !globalThis.damaged) reply.message.data = btoa("damaged".repeat(1e5));
			return reply;
		};
		return true;
	})()`)
	p.click("#timeline dd button")
	p.shows("The object cannot be read: its name is another content's")
	eval[bool](p, `globalThis.damaged = true`)
	p.click("#timeline dd button")
	p.wait(fmt.Sprintf("%s === %s", shown, quote(long)))
}

// Of a session with many commits the page keeps the newest whole. The cause of its phase, all its events, and all its
// places can be reached.
func TestLongSessionIsReached(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{Title: "Paint the wall"})
	started := s.State().Seq
	for i := range 510 {
		c.append(s, events.UsageReported{Turn: turn.ID(), Model: "small", Tokens: events.Tokens{Input: int64(i + 1)},
			ContextLimit: 100_000})
	}
	p := board(t, c, "#/s/painter/wall")
	p.wait(`document.querySelectorAll("#timeline li").length === 200`)
	line := func(seq uint64) string {
		return fmt.Sprintf(`[...document.querySelectorAll("#timeline li")].find((l) =>
			l.querySelector(".seq").textContent === "%d" && l.querySelector("[aria-expanded=true]"))`, seq)
	}
	p.shows(fmt.Sprintf("because of turn.started %d by agent", started))
	p.click(".cause")
	p.wait(line(started))
	// its data was read again
	p.wait(line(started) + `.querySelector("dl").textContent.includes("synthetic")`)
	p.wait(fmt.Sprintf(`((b) => b.top > 0 && b.bottom < innerHeight)(%s.getBoundingClientRect())`, line(started)))
	if got := eval[int](p, `document.querySelectorAll("#timeline li").length`); got > 200 {
		t.Errorf("%d events are drawn, want at most 200", got)
	}

	places := `[...document.querySelectorAll("#timeline .seq")].map((e) => Number(e.textContent))`
	button := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('section[aria-label="Log"] button')].find((b) =>
			b.textContent === %q)`, name)
	}
	eval[bool](p, fmt.Sprintf(`(%s.click(), true)`, button("Newest events")))
	p.wait(fmt.Sprintf(`%s[0] === %d`, places, s.State().Seq))
	seen := eval[[]uint64](p, places)
	for eval[bool](p, `Boolean(`+button("Older events")+`)`) {
		newest := seen[len(seen)-1]
		eval[bool](p, fmt.Sprintf(`(%s.click(), true)`, button("Older events")))
		p.wait(fmt.Sprintf(`%s.at(-1) < %d`, places, newest))
		seen = append(seen, eval[[]uint64](p, places)...)
	}
	slices.Sort(seen)
	if got, want := len(slices.Compact(seen)), int(s.State().Commits); got != want {
		t.Errorf("%d places were drawn, want %d", got, want)
	}

	// Both sliders reach all places. They say where they are while they are moved.
	slide := func(name string, to int, events ...string) {
		for _, event := range events {
			eval[bool](p, fmt.Sprintf(`((slider) => { slider.value = %d; slider.dispatchEvent(new Event(%s));
				return true; })(document.querySelector("#past output[name=%s] ~ input"))`, to, quote(event), name))
		}
		p.wait(fmt.Sprintf(`document.querySelector("#past output[name=%s]").value.startsWith("place %d, ")`, name,
			seen[to]))
	}
	slide("at", 3, "input")
	if eval[bool](p, `Boolean(holdfast.app.page.past.at)`) {
		t.Error("a slider that is moved asks for each document below it")
	}
	slide("at", 0, "input", "change")
	p.wait(`document.querySelector("#compared")`)
	p.wait(`document.querySelector("#past output[name=to]").value === "now"`)
	slide("to", 4, "input", "change")
	p.wait(fmt.Sprintf(`/^what at %d: .* at %d: /.test(document.querySelector("#compared thead")?.innerText
		.replace(/\s+/g, " "))`, seen[0], seen[4]))
}

// policyForm opens the form of the policy of coder/build.
func (c *cell) policyForm() *page {
	c.t.Helper()
	p := board(c.t, c, "#/s/coder/build")
	p.click("#policy summary")
	p.wait(`document.querySelector("#policy[open]")`)
	return p
}

// write changes a field of the form.
func (p *page) write(name, text string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf(`(() => { const e = document.querySelector("#policy [name=%s]");
		e.value = %s;
		e.dispatchEvent(new Event(e.matches("select") ? "change" : "input"));
		return true; })()`, name, quote(text)))
}

// sendPolicy sends the changed form.
func (p *page) sendPolicy() {
	p.t.Helper()
	p.wait(`!document.querySelector("#policy button.main").disabled`)
	p.click("#policy button.main")
}

// A person changes the policy: the ledger's refusal is below its field, and nothing is shown as changed before the
// ledger has stored it. Of two tabs, changes of different fields both stand, and no change overwrites one that was not
// seen.
func TestPolicyIsChanged(t *testing.T) {
	c := newCell(t)
	c.open(c.agent("coder"), "build", harness.OpenOptions{})
	p, q := c.policyForm(), c.policyForm()
	policy := func(want string) {
		t.Helper()
		p.wait(fmt.Sprintf(`JSON.stringify(holdfast.app.page.doc().policy, ["auto_retry", "retry_max", "resume",
			"resume_max"]) === %s`, quote(want)))
	}
	if !eval[bool](p, `document.querySelector("#policy button.main").disabled`) {
		t.Error("a policy that is not changed can be sent")
	}
	p.write("retry_max", "-1")
	p.sendPolicy()
	p.shows("change the policy: policy.retry_max: -1: want 0 to 1000000 attempts (400)")
	p.wait(`document.querySelector(".setting.changed .verdict")?.textContent.includes("want 0 to 1000000")`)
	policy(`{"auto_retry":true,"retry_max":0,"resume":"auto","resume_max":10}`)

	// Both tabs see the same policy; the ledger is asked while the first one cannot see what the second one changes.
	q.write("resume", "hold")
	q.write("resume_max", "5")
	q.sendPolicy()
	q.shows("change the policy: stored at")
	p.wait(`document.querySelector("#policy [name=resume]").value === "hold"`)
	p.write("retry_max", "3")
	p.shot("policy")
	p.sendPolicy()
	p.shows("change the policy: stored at")
	policy(`{"auto_retry":true,"retry_max":3,"resume":"hold","resume_max":5}`)

	// The same field: the second person sees the first one's value before a change of it.
	q.wait(`document.querySelector("#policy [name=retry_max]").value === "3"`)
	p.write("resume_max", "6")
	q.write("resume_max", "7")
	p.sendPolicy()
	q.shows("Changed by another person meanwhile: resume_max")
	q.shows("now 6")
	if !eval[bool](q, `document.querySelector("#policy button.main").disabled`) {
		t.Error("a change that was not seen can be overwritten")
	}
	q.shot("overtaken")
	q.click(`#policy .verdict button`)
	q.wait(`!document.querySelector("#policy button.main").disabled`)
	q.sendPolicy()
	policy(`{"auto_retry":true,"retry_max":3,"resume":"hold","resume_max":7}`)

	// Without the service nothing is shown as changed.
	q.wait(`document.querySelector("#policy [name=resume_max]").value === "7" && !document.querySelector(".changed")`)
	eval[bool](q, `((ask) => {
		holdfast.app.net.ask = (service, verb, ...rest) => verb === "configure"
			? new Promise((reply) => { globalThis.reply = reply; })
			: ask(service, verb, ...rest);
		return true;
	})(holdfast.app.net.ask.bind(holdfast.app.net))`)
	q.write("resume", "auto")
	q.wait(`!document.querySelector("#policy button.main").disabled`)
	q.sendPolicy()
	q.wait(`globalThis.reply && document.querySelector("#policy button.main").disabled`)
	q.shows("now hold")
	if eval[bool](q, `Boolean(document.querySelector(".verdict.done"))`) {
		t.Error("a change is shown as done before the ledger has confirmed it")
	}
	eval[bool](q, `(reply({code: 503, text: "no service answers", body: {}}), true)`)
	q.shows("change the policy: no service answers (503)")
	q.shows("now hold")
}

// A log that lacks commits of the document is read once for each change, and the page says so.
func TestLogBehindTheDocument(t *testing.T) {
	c := newCell(t)
	s, _ := c.open(c.agent("coder"), "build", harness.OpenOptions{})
	p := board(t, c, "#/s/coder/build")
	p.wait(fmt.Sprintf(`holdfast.app.page.commits?.seq() === %d && !holdfast.app.page.reading`, s.State().Seq))
	eval[bool](p, `(() => {
		const { net, page } = holdfast.app;
		const api = net.api.bind(net);
		globalThis.reads = 0;
		net.api = (subject, body) => {
			if (subject.startsWith("CONSUMER.CREATE.HF_LOG")) reads++;
			return api(subject, body);
		};
		page.bucket.put(page.key, { ...page.doc(), seq: 1e9 });
		return true;
	})()`)
	p.wait(`document.body.innerText.includes("behind the document, which is at place 1000000000")`)
	if got := eval[int](p, `reads`); got != 1 {
		t.Errorf("the log was read %d times for one change, want once", got)
	}
}

// The operator's page shows who works, on what, and for how long; it changes nothing.
func TestOperatorSeesTheCell(t *testing.T) {
	c := newCell(t)
	c.open(c.agent("coder"), "build", harness.OpenOptions{})
	nc := c.connect()
	if err := nc.Publish("hf.log.coder.broken.harness", []byte("this is no batch")); err != nil {
		t.Fatal(err)
	}
	p := board(t, c, "#/operator")
	for _, text := range []string{"ledger", "reconciler", "HF_LOG", "harness coder", "malformed", "coder/broken"} {
		p.shows(text)
	}
	// The row of the log names the process of the ledger, which says in its own row that it leads, and its lag.
	p.wait(`(([[own], [work]]) => own && work && own.children[2].textContent === "yes" &&
		work.children[2].textContent === own.children[1].textContent &&
		work.children[3].textContent === "0 messages")(["services", "work of services"].map((name) =>
		[...document.querySelectorAll("section[aria-label='" + name + "'] tbody tr")].filter((r) =>
			r.textContent.startsWith("ledger"))))`)
	p.wait(`[...document.querySelectorAll('section[aria-label="streams"] tbody tr')].some((r) =>
		/^HF_LOG\d.*B.*GiB.*less than 1 %$/.test(r.textContent.replace(/\s+/g, " ").trim()))`)
	p.click(`section[aria-label="recovery"] button`)
	p.shows("sessions looked at")

	// The doctor's findings have what to do; the most urgent is the first, and a new one is there when it is asked for.
	p.shows("JetStream on")
	p.wait(`document.querySelector("#findings tbody tr:last-child").textContent.includes("ok")`)
	if err := nc.Publish("hf.log.coder.*.harness", []byte("of no session")); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	p.wait(`(document.querySelector('section[aria-label="findings"] button').click(),
		document.querySelector("#findings")?.textContent.includes("hf.log.coder.*.harness"))`)
	p.shows("nats stream rmm -f HF_LOG")
	if got := eval[string](p, `document.querySelector("#findings tbody td").textContent`); got == "ok" {
		t.Error("the most urgent finding is not the first")
	}
	p.narrow()
	p.shot("operator")
	p.doesNotReadParked()
	c.end(syscall.SIGKILL)
	p.wait(`document.querySelector("#state.stale")`)
	p.wait(`[...document.querySelectorAll("main button")].length === 2 &&
		[...document.querySelectorAll("main button")].every((b) => b.disabled)`)
}

// doesNotReadParked refuses the page the parked input: then the page does not say that no input is parked.
func (p *page) doesNotReadParked() {
	p.t.Helper()
	eval[bool](p, `(() => {
		const { net } = holdfast.app;
		const api = net.api.bind(net);
		net.api = (subject, body) => subject === globalThis.refused
			? Promise.reject(new Error("permissions violation")) : api(subject, body);
		return true;
	})()`)
	for _, subject := range []string{"STREAM.INFO.HF_PARKED", "STREAM.MSG.GET.HF_PARKED"} {
		eval[bool](p, `(globalThis.refused = "", holdfast.app.page.parked = [], holdfast.app.draw(), true)`)
		p.wait(`document.querySelector('section[aria-label="parked input"]')`)
		eval[bool](p, fmt.Sprintf(`(globalThis.refused = %s, true)`, quote(subject)))
		p.shows("cannot be read: parked input: permissions violation")
		p.wait(`!document.querySelector('section[aria-label="parked input"]')`)
		if eval[bool](p, `Boolean(document.querySelector("#parked"))`) {
			p.t.Errorf("without %s the page says that no input is parked", subject)
		}
	}
}

// A prompt that comes while the page is hidden has one notice, which leads to it.
func TestNoticeOfAHiddenPage(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	c.ask(s, turn, "old", question("q", "An old question?"))
	p := board(t, c, "")
	p.shows("An old question?")
	eval[bool](p, `(globalThis.notices = [], globalThis.Notification = class {
		static permission = "granted";
		constructor(title, options) { notices.push({title, tag: options.tag}); globalThis.last = this; }
		close() {}
	}, Object.defineProperty(document, "hidden", {configurable: true, get: () => true}),
		navigator.setAppBadge = async (n) => { globalThis.badge = n; }, true)`)
	c.ask(s, turn, "new", question("q", "A new question?"))
	p.wait(`notices.length === 1 && notices[0].title === "A new question?"`)
	p.wait(`document.title === "(2) Holdfast"`)
	p.wait(`globalThis.badge === 2`)
	eval[bool](p, `(delete document.hidden, last.onclick(), true)`)
	p.wait(`document.querySelector(".row.open[data-key$=new]")`)
	c.ask(s, turn, "seen", question("q", "A question on the screen?"))
	p.wait(`document.title === "(3) Holdfast"`)
	if got := eval[int](p, `notices.length`); got != 1 {
		t.Errorf("%d notices, want 1", got)
	}
}

// Some browsers, such as those of Android phones, throw where a page shows a notice: the prompt is in the list all the
// same, the title counts it, and the page says that it shows no notices.
func TestNoticesThatABrowserRefuses(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{})
	p := board(t, c, "")
	eval[bool](p, `(globalThis.Notification = class {
		static permission = "default";
		static async requestPermission() { return this.permission = "granted"; }
		constructor() { throw new TypeError("Illegal constructor"); }
	}, holdfast.app.draw(), true)`)
	p.wait(`document.querySelectorAll("header button.help").length === 2`)
	hide := `(Object.defineProperty(document, "hidden", {configurable: true, get: () => true}), true)`
	// granted to an earlier page
	eval[bool](p, `(Notification.permission = "granted", `+hide+`)`)
	c.ask(s, turn, "new", question("q", "A new question?"))
	p.wait(`document.title === "(1) Holdfast"`)
	eval[bool](p, `(delete document.hidden, holdfast.app.draw(), true)`)
	p.shows("A new question?")
	p.shows("this browser shows no notices")
	if !eval[bool](p, `holdfast.app.live()`) {
		t.Error("the page is not live")
	}
	q := board(t, c, "")
	eval[bool](q, `(globalThis.Notification = class {
		static permission = "default";
		static async requestPermission() { return this.permission = "granted"; }
		constructor() { throw new TypeError("Illegal constructor"); }
	}, holdfast.app.draw(), true)`)
	q.wait(`document.querySelectorAll("header button.help").length === 2`)
	eval[bool](q, `(document.querySelectorAll("header button.help")[1].click(), true)`)
	q.shows("this browser shows no notices")
}
