package board

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/harness"
	served "github.com/holdfast-dev/holdfast/internal/board"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// rows is JavaScript that makes rows of the inbox: map("h/s p 5") has one of harness h, session s, prompt p and instant
// 5; "h/sub/s p 5" one of the sub-agent sub of the root s; "!" behind it means that it is decided.
const rows = `const { rowOf, ...doc } = await import("/doc.js");
	const text = await import("/text.js");
	const history = await import("/history.js");
	const policy = await import("/policy.js");
	const now = Object.fromEntries(policy.settings.map((s) => [s.name, s.normal]));
	const draft = (...list) => list.reduce((d, [name, text]) => policy.edited(d, now, name, text), {});
	const changed = (is, d) => JSON.stringify(policy.changedPolicy({...now, ...is}, d));
	const row = (s) => { const [name, prompt, at, gone] = s.split(" ");
		const [harness, session, root] = name.split("/");
		return rowOf(name + "/" + prompt, {harness, session, root: root ?? session, prompt, kind: "question",
			title: "Title of " + prompt, status: gone ? "answered" : "awaiting",
			armed_at: new Date(1e12 + at * 1000).toISOString()}); };
	const map = (...list) => new Map(list.map(row).map((r) => [r.key, r]));
	const timeline = (commits, after = {}) => { let b = {parked: 0, ignored: 0};
		return commits.flatMap((c) => { const a = {...b, ...after[c.seq]};
			const verdicts = history.judge(c, b, after[c.seq] === null ? undefined : a);
			b = a;
			return history.linesOf(c).map((l, i) => ({...l, ...verdicts[i]})); }); };
	const turn = (kind, subject, more) => ({type: "holdfast.turn." + kind, subject, ...more});
	const judged = (writer, types, after, before = {parked: 2, ignored: 3}) =>
		history.judge({seq: 9, writer, events: types.map((t) => ({type: t}))}, before, after && {...before, ...after})
			.map((v) => v.doubt ? "?" : v.note ?? "counts").join("; ");
	const merge = (shown, rows, calm) => { const m = doc.merge(shown, rows, calm, () => false);
		return m.order.join(" ") + " held " + m.held; };`

// writers are the kinds of the vocabulary with those who may write them, as JSON in the order of the table.
func writers() string {
	var lines []string
	for _, spec := range events.Table() {
		by, err := json.Marshal(spec.By)
		if err != nil {
			return err.Error()
		}
		lines = append(lines, fmt.Sprintf("%q:%s", spec.Kind, by))
	}
	return "{" + strings.Join(lines, ",") + "}"
}

// The page drops what it has read about rows when nothing asks for it any more: it may be open for weeks.
func TestWhatIsNoLongerShownIsDropped(t *testing.T) {
	c := newCell(t)
	s, turn := c.open(c.agent("painter"), "wall", harness.OpenOptions{Title: "Paint the wall"})
	c.ask(s, turn, "colour", question("colour", "Which colour?", "red"))
	p := board(t, c, "")
	p.shows("Paint the wall")
	p.press("j")
	p.press("1")
	got := eval[string](p, `(async () => {
		const { app } = holdfast;
		const { inbox } = app;
		app.documents.get('["painter","gone"]');
		for (const version of ["painter/gone@1", "painter/gone@2"]) {
			inbox.draft(version).reason = "no";
			inbox.selected.add(version);
			inbox.shown.add(version);
			inbox.inputs.get(version);
			inbox.ends.found.set(version, {}); // no row has it
		}
		inbox.verdicts.set("painter/gone", {});
		inbox.asked.get('{"harness":"painter","session":"gone","prompt":"p"}');
		app.sweep();
		const { length: kept } = [...app.documents.found.keys()].filter((key) => key.includes("gone"));
		const drawnAgain = () => new Promise((done) => {
			app.draw();
			requestAnimationFrame(() => requestAnimationFrame(done));
		});
		await drawnAgain();
		app.sweep();
		const sizes = [inbox.drafts, inbox.selected, inbox.shown, inbox.inputs.found, inbox.ends.found, inbox.verdicts,
			inbox.asked.found].map((m) => m.size);
		return [kept, [...app.documents.found.keys()], sizes].join(" ");
	})()`)
	if want := `1 ["painter","wall"] 1,0,0,0,0,0,0`; got != want {
		t.Errorf("kept: %s, want %s", got, want)
	}
}

// TestViewModels runs the page's pure functions in the browser, without a broker.
func TestViewModels(t *testing.T) {
	h, err := served.New(served.Cell{Prefix: "hf", Person: "ann"}, "127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	p := newPage(t, srv.URL+"/vendor/LICENSES.txt")
	if _, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		// UTC+14
		return cdp.Call(ctx, target, emulation.SetTimezoneOverride,
			emulation.SetTimezoneOverrideParams{TimezoneID: "Pacific/Kiritimati"})
	}); err != nil {
		t.Fatal(err)
	}
	defaults, err := json.Marshal(events.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, expression, want string }{
		{"the default policy", `JSON.stringify(now)`, string(defaults)},
		{"oldest first, in groups", `doc.arrange([...map("h/a p 5", "h/b p 1", "h/sub/b q 9", "h/a r 0")
			.values()]).join(" ")`, "h/a/r h/a/p h/b/p h/sub/b/q"},
		{"a new group is added at the end", `merge(["h/a/p"], map("h/a p 5", "h/b p 1"), false)`, "h/a/p h/b/p held 0"},
		{"a row of the last group is added at the end", `merge(["h/a/p"], map("h/a p 5", "h/a q 1"), false)`,
			"h/a/p h/a/q held 0"},
		{"a row that would move others is held",
			`merge(["h/a/p", "h/b/p"], map("h/a p 5", "h/b p 6", "h/a q 7"), false)`,
			"h/a/p h/b/p held 1"},
		{"a decided row stays under the hand", `merge(["h/a/p", "h/b/p"], map("h/a p 5 !", "h/b p 6"), false)`,
			"h/a/p h/b/p held 0"},
		{"and goes when hands are off", `merge(["h/a/p", "h/b/p"], map("h/a p 5 !", "h/b p 6", "h/c p 1"), true)`,
			"h/c/p h/b/p held 0"},
		{"hands off, an order that stands is kept",
			`merge(["h/a/p", "h/a/q", "h/b/p"], map("h/b p 6", "h/a q 5", "h/a p 5"), true)`,
			"h/a/p h/a/q h/b/p held 0"},
		{"a row that is asked again takes its place", `merge(["h/a/p", "h/a/q"], map("h/a p 7", "h/a q 6"), true)`,
			"h/a/q h/a/p held 0"},
		{"a group takes its place", `merge(["h/a/p", "h/b/p"], map("h/a p 7", "h/b p 6"), true)`, "h/b/p h/a/p held 0"},
		{"rows of a group come together",
			`merge(["h/a/p", "h/b/p", "h/a/q"], map("h/a p 5", "h/b p 6", "h/a q 7"), true)`,
			"h/a/p h/a/q h/b/p held 0"},
		{"a removed row goes", `merge(["h/a/p", "h/b/p"], map("h/b p 6"), false)`, "h/b/p held 0"},
		{"a prompt that was decided before is not added", `merge([], map("h/a p 5 !"), true)`, " held 0"},
		{"few rows are drawn", `(() => { const m = map(...Array.from({length: 300}, (_, i) => "h/s" + i + " p " + i));
			const g = doc.grouped([...m.keys()], m, "", undefined);
			return g.groups.length + " " + g.more; })()`, "200 100"},
		{"the filter has words", `[...map("h/a p 5", "h/b zz 1").values()].filter((r) =>
			doc.matches(r, "TITLE zz")).map((r) => r.key).join()`, "h/b/zz"},
		{"the filter searches whole questions and options", `(() => {
			const long = "word ".repeat(100);
			const r = rowOf("k", {harness: "painter", session: "wall", prompt: "p",
				title: "Choose " + long + "end-of-title", questions: [
					{question: "Which implements?", options: [{label: "brush"}]},
					{question: long + "end-of-question", options: [{label: "roller"}]}]});
			const untitled = rowOf("k", {questions: [{question: long + "end-of-question"}]});
			return ["implements", "ROLLER brush", "end-of-title", "end-of-question", "painter wall", "choose", "other"]
				.map((words) => doc.matches(r, words)).join() + " " + doc.matches(untitled, "end-of-question"); })()`,
			"true,true,true,true,true,true,false true"},
		{"a link", `doc.linkOf({harness: "h", session: "a/b", prompt: "ü"})`, "#/p/h/a%2Fb/%C3%BC"},
		{"a link back", `JSON.stringify(doc.routeOf("#/p/h/a%2Fb/%C3%BC").only)`,
			`{"harness":"h","session":"a/b","prompt":"ü"}`},
		{"no link", `doc.routeOf("#/p/%E0%A4%A/x/y").page`, "inbox"},
		{"409", `doc.verdict({code: 409, text: "x", body: {status: "answered", by: "bob", at: "2026-11-22T12:00:00Z",
			answers: [{selected: ["blue"]}]}}, Date.parse("2026-11-22T12:00:03Z")).text
			.replace(/at \S+( \S+)? \(/, "at T (")`,
			"another decision stands (409): answered by bob at T (3s ago): blue"},
		{"409, and it waits",
			`doc.verdict({code: 409, text: "prompt p has changed", body: {status: "awaiting"}}, 0).text`,
			"not decided, and it still waits (409): prompt p has changed"},
		{"410", `doc.verdict({code: 410, text: "x", body: {status: "expired", reason: "owner-lost"}}, 0).text`,
			"it no longer waits (410): expired: owner-lost"},
		{"400", `doc.verdict({code: 400, text: "x: want 0", body: {field: "x", reason: "x: want 0"}}, 0).text`,
			"x: want 0 (400)"},
		{"an unchanged policy", `changed({}, {})`, "undefined"},
		{"a policy has what is changed alone", `changed({}, draft(["retry_max", " 7 "], ["resume", "hold"],
			["auto_retry", "false"], ["resume_max", "10"]))`, `{"auto_retry":false,"retry_max":7,"resume":"hold"}`},
		{"an empty field is the default", `changed({stall_after_s: 5}, policy.edited({}, {...now, stall_after_s: 5},
			"stall_after_s", ""))`, `{"stall_after_s":null}`},
		{"an empty field of a default changes nothing", `changed({}, draft(["retry_max", ""]))`, "undefined"},
		{"only numbers are sent", `["1e9", "0x10", "NaN", "Infinity", "9".repeat(400), "1 2", "٣"].map((text) =>
			String(changed({}, draft(["retry_max", text], ["resume", "hold"])))).join()`,
			strings.Repeat("undefined,", 6) + "undefined"},
		{"a number out of range is the ledger's to refuse", `changed({}, draft(["compaction_threshold", "-1.5"]))`,
			`{"compaction_threshold":-1.5}`},
		{"another person's change of another field stands", `changed({retry_max: 3}, draft(["resume", "hold"]))`,
			`{"resume":"hold"}`},
		{"another person's change of the field is not overwritten",
			`changed({resume_max: 3}, draft(["resume_max", "5"], ["resume", "hold"]))`, "undefined"},
		{"unless a person has seen it", `changed({resume_max: 3}, policy.kept(draft(["resume_max", "5"]),
			{...now, resume_max: 3}))`, `{"resume_max":5}`},
		{"another person's same change is no conflict", `changed({resume_max: 5}, draft(["resume_max", "5"],
			["resume", "hold"]))`, `{"resume":"hold"}`},
		{"a stored value is not sent again", `(() => { const d = draft(["resume", "hold"], ["retry_max", "3"]);
			const s = policy.stored(d, d, {resume: "hold"}, 9);
			return changed({}, s) + Object.keys(policy.pending(s, 8)) + " " + Object.keys(policy.pending(s, 9)); })()`,
			`{"retry_max":3}resume,retry_max retry_max`},
		{"a change made during a request is not stored", `(() => { const d = draft(["retry_max", "3"]);
			const s = policy.stored(policy.edited(d, now, "retry_max", "4"), d, {retry_max: 3}, 9);
			return changed({}, s); })()`, `{"retry_max":4}`},
		{"a text after a stored one stands against it", `(() => { const d = draft(["retry_max", "3"]);
			const s = policy.edited(policy.stored(d, d, {retry_max: 3}, 9), now, "retry_max", "4");
			return changed({retry_max: 3}, s) + changed({retry_max: 8}, s); })()`, `{"retry_max":4}undefined`},
		{"no reply", `doc.verdict({code: 0, text: "no reply: TIMEOUT"}, 0).kind`, "unknown"},
		{"one choice", `JSON.stringify(doc.choose({multi: false}, {selected: ["a"], text: "t"}, "b"))`,
			`{"text":"","selected":["b"]}`},
		{"several choices", `JSON.stringify(doc.choose({multi: true}, {selected: ["a", "b"], text: "t"}, "a"))`,
			`{"text":"t","selected":["b"]}`},
		{"the questions in turn", `["", "a", "b", "gone"].map((id) => doc.questionAt([{id: "a"}, {id: "b"}], id).id +
			doc.questionAfter([{id: "a"}, {id: "b"}], id).id).join() + doc.questionAfter([], "a")`,
			"ab,ab,ba,abundefined"},
		{"each question has an answer", `JSON.stringify(doc.answersOf([{id: "a"}, {id: "b"}],
			{b: {selected: [], text: " t "}}))`,
			`[{"question":"a","selected":[]},{"question":"b","selected":[],"text":" t "}]`},
		{"hidden characters", `text.visible("a\u202eb\u200bc\u0007d\n\te\u{e0041}")`,
			"a⟦U+202E⟧b⟦U+200B⟧c⟦U+0007⟧d\n\te⟦U+E0041⟧"},
		{"characters that a font may ignore", `["\u{e0100}", "\u{e01ef}", "\ufe00", "\ufe0f", "\u034f", "\u115f",
			"\u1160", "\u3164", "\uffa0", "\u2800", "\u17b4", "\u17b5", "\u180b", "\u180f", "\u{1d173}", "\u{1d17a}",
			"\u{e0000}", "\u{e007f}", "\u2028", "\u2029", "\ufeff", "\r", "\u00ad", "\u061c", "\u200d", "\u2066",
			"\ufff9"].map((c) => [c, c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")])
			.filter(([c, hex]) => ["visible", "line", "name"].some((f) =>
				text[f]("a" + c + "b") !== "a⟦U+" + hex + "⟧b")).map(([, hex]) => hex).join()`, ""},
		{"a coloured emoji", `text.visible("❤\ufe0f👍\ufe0f1\ufe0f\u20e3 x\ufe0f1\ufe0f❤\ufe0f\ufe0f")`,
			"❤\ufe0f👍\ufe0f1\ufe0f\u20e3 x⟦U+FE0F⟧1⟦U+FE0F⟧❤\ufe0f⟦U+FE0F⟧"},
		{"a line", `text.line(" a \n\t b\r\n\u2028c ")`, "a b⟦U+000D⟧ ⟦U+2028⟧c"},
		{"a name", `text.name("a\nb\tc\rd e")`, "a⟦U+000A⟧b⟦U+0009⟧c⟦U+000D⟧d e"},
		{"a title of hidden characters", `rowOf("k", {title: "\u2028\ufeff"}).title`,
			"⟦U+2028⟧⟦U+FEFF⟧"},
		{"a field toString", `text.visible({toString: 1}) + text.line({valueOf: 1, toString: 2})`,
			`{"toString":1}{"valueOf":1,"toString":2}`},
		{"a value too deep to be written", `text.fields({a: JSON.parse("[".repeat(1e5) + "]".repeat(1e5))})[0].text
			.includes("cannot be shown")`, "true"},
		{"the fields of an input", `JSON.stringify(text.fields({a: null, b: 1, c: [2]}).map((f) => f.text))`,
			`["null","1","[\n  2\n]"]`},
		{"a token", `text.token("a.b/ü")`, "a=2Eb=2F=C3=BC"},
		{"a token back", `history.decode("a=2Eb=2F=C3=BC%41")`, "a.b/ü%41"},
		{"the past", `JSON.stringify(history.differences({a: 1, head: {x: 1}, b: {c: [1], d: 2}},
			{a: 1, b: {c: [2], d: 2}, e: "x"}))`,
			`[{"path":"b.c","from":"[1]","to":"[2]"},{"path":"e","from":"–","to":"x"}]`},
		{"what a person sees of it", `history.compared({phase: "running", turn: {id: "t", cause: "message", attempt: 1},
			tools: {c: {name: "bash"}}, recent: [{entity: "tool", id: "old", outcome: "completed"}], seq: 4},
			{phase: "idle", recent: [{entity: "tool", id: "c", name: "bash", outcome: "interrupted",
			reason: "owner-lost"},
			{entity: "turn", id: "t", outcome: "completed"}],
			retry: {state: "abandoned", reason: "quota"}, seq: 9})
			.map((d) => [d.what, d.name, d.from, d.to].join("|")).join()`,
			"phase||running|idle,retry||–|given up: quota,tool c|bash|runs|interrupted (owner-lost)," +
				"turn t||open (message, attempt 1)|completed"},
		{"outcomes that are unknown", `(() => {
			const end = (id, outcome, more) => ({entity: "tool", id, outcome, seq: 7, ...more});
			const failed = (call, kind) => ({type: "holdfast.tool.failed", data: {call, error: {kind}}});
			const commit = {events: [null, failed("cut", "outcome_unknown"), failed("red", "tool_error")]};
			const shown = history.withUnknown({phase: "idle", recent: [end("done", "completed"),
				end("dead", "interrupted"), end("late", "interrupted", {late: {}}), end("cut", "failed"),
				end("red", "failed"),
				{entity: "turn", id: "t", outcome: "interrupted"}, end("gone", "failed", {seq: 8})]},
				(seq) => seq === 7 ? {value: commit} : {error: "no message"});
			const loading = history.withUnknown({recent: [end("cut", "failed")]}, () => ({}));
			return [shown.document.phase, ...shown.document.recent.map((e) => e.id + " " + e.outcome), ...shown.errors,
				shown.reading, loading.reading, history.withUnknown({}, () => ({})).reading].join();
		})()`, "idle,done completed,dead unknown,late interrupted,cut unknown,red failed,t interrupted,gone failed," +
			"the end of call gone: no message,false,true,false"},
		{"the process that leads", `await import("/operator.js").then(({ leaderOf }) => {
			const services = [["a", "HF_LOG"], ["b", ""], ["c", "HF_TIMERS KV_hf_state"]].map(([id, active]) =>
				({name: "holdfast-ledger", id, metadata: {active}})).concat({name: "holdfast-retry", id: "d"});
			const pin = {num_pending: 3, priority_groups: [{pinned_client_id: "x"}]};
			return [["HF_LOG", pin], ["KV_hf_state", pin], ["HF", pin], ["HF", {num_pending: 3}],
				["HF", {num_pending: 0}], ["HF", {error: "no"}]].map(([stream, info]) =>
				leaderOf({stream, service: "ledger", info}, services)).join();
		})`, "a,c,a process that does not reply,no process,no process yet: no message has come,not known"},
		{"consumers of a secured cell", `await import("/operator.js").then(({ keyed }) => {
			const c = (name, num_waiting) => ({name, num_waiting});
			const [x, y] = ["0".repeat(24), "1".repeat(24)];
			return [keyed([c("retry-due-" + x), c("retry-" + x, 0), c("retry-" + y, 1)], "retry")?.name,
				keyed([c("retry-due-" + x), c("retry-guess")], "retry")?.name].join().replace(/(.)\1+/g, "$1");
		})`, "retry-1,"},
		{"the share of a limit", `await import("/operator.js").then(({ share }) => [[0, 9], [1, 1000], [999, 1000],
			[1000, 1000]].map(([used, limit]) => share(used, limit)).join())`, "0 %,less than 1 %,99 %,100 %"},
		{"sub-agents under their parents", `history.tree([{session: "c", parent: "b"}, {session: "r"}, {session: "b",
			parent: "r"}]).map((n) => n.depth + n.document.session).join(" ")`, "0r 1b 2c"},
		{"malformed events", `timeline([{seq: 3, writer: "harness", events: [
			{type: "holdfast.constructor", data: {reason: "why"}}, null,
			{type: "holdfast.prompt.answered", data: {answers: 5}},
			{type: "holdfast.turn.completed", data: {finish: "done"}}]}]).map((l) => l.key + " " + l.kind + " " +
			l.text.split(":")[0]).join()`,
			"3.0 constructor why,3.1 malformed malformed,3.2 malformed malformed,3.3 turn.completed done"},
		{"an unknown phase", `history.causeOf({phase: "constructor", seq: 9}, [])`, "undefined"},
		{"a countdown", `JSON.stringify(history.retryOf({retry: {state: "scheduled", attempt: 2,
			due_at: "2026-11-22T12:00:07Z"}}, Date.parse("2026-11-22T12:00:00.5Z")).text)`, `"retry 2 in 7s"`},
		{"the cause of a phase", `history.causeOf({phase: "running", seq: 9, turn: {id: "t2"}}, timeline([
			{seq: 3, writer: "harness", events: [turn("started", "t1")]},
			{seq: 8, writer: "harness", events: [turn("started", "t2")]},
			])).seq`, "8"},
		{"the newest of two causes that is not newer than the document",
			`history.causeOf({phase: "idle", seq: 5}, timeline([3, 4, 5, 6].map((seq) =>
				({seq, writer: "harness", events: [turn("completed", "t")]})))).seq`, "5"},
		{"an event that did not count is no cause", `history.causeOf({phase: "idle", seq: 9}, timeline([
			{seq: 3, writer: "harness", events: [turn("completed", "t")]},
			{seq: 8, writer: "harness", events: [turn("completed", "t")]}], {8: {parked: 1}})).seq`, "3"},
		{"what may not have counted hides the cause", `history.causeOf({phase: "idle", seq: 9}, timeline([
			{seq: 3, writer: "harness", events: [turn("completed", "t")]},
			{seq: 8, writer: "harness", events: [turn("completed", "t")]}], {8: null}))`, "undefined"},
		{"all of a commit counts", `judged("harness", ["holdfast.turn.completed", "holdfast.other"], {})`,
			"counts; unknown kind"},
		{"none of a commit counts", `judged("harness", ["holdfast.turn.completed", "holdfast.turn.failed"],
			{parked: 3, ignored: 4})`, "parked or ignored; parked or ignored"},
		{"one of a commit is ignored", `judged("harness", ["holdfast.turn.completed", "holdfast.turn.failed"],
			{ignored: 4, last: {type: "holdfast.turn.failed", why: "turn-ended", seq: 9}})`,
			"counts; ignored: turn-ended"},
		{"one of two alike is ignored", `judged("harness", ["holdfast.turn.failed", "holdfast.turn.failed"],
			{ignored: 4, last: {type: "holdfast.turn.failed", why: "turn-ended", seq: 9}})`, "?; ?"},
		{"one that is parked as malformed", `judged("harness", ["holdfast.turn.failed", "holdfast.turn.started"],
			{parked: 3})`, "?; ?"},
		{"one out of role", `judged("harness", ["holdfast.retry.scheduled", "holdfast.turn.started"], {parked: 3})`,
			"parked: not for the harness to say; counts"},
		{"a kind of another system", `judged("harness", ["turn.completed"], {})`, "unknown kind"},
		{"no batch", `judged("harness", [], {parked: 3})`, "parked: no batch of events"},
		{"documents that were not read", `judged("harness", ["holdfast.retry.scheduled", "holdfast.turn.started"])`,
			"parked: not for the harness to say; ?"},
		{"too many events that did not count", `(await (async () => {
			const { Commits } = await import("/commits.js");
			let asked = 0;
			const document = (seq) => ({seq, parked: Math.floor(seq / 2)});
			const commits = new Commits({}, {}, async (seq) => { asked++; return document(seq); });
			const add = (seq) => commits.list.push({seq, writer: "harness", events: [turn("completed", "t")]});
			const newest = () => commits.lines.slice(-3).map((l) => l.doubt ? "?" : l.note ?? "counts").join();
			for (let seq = 1; seq <= 300; seq++) add(seq);
			commits.remember(document(300));
			await commits.judge(() => {});
			const said = [newest(), asked, commits.lines[9].doubt, commits.error !== ""].join(" ");
			for (const seq of [301, 302, 303, 304]) add(seq);
			commits.remember(document(304));
			await commits.judge(() => {});
			return said + " " + newest() + " " + asked;
		})())`, "parked,counts,parked 60 true true parked,counts,parked 63"},
		{"content of an object",
			`history.stored('"a\\u202eb"') + history.stored("no JSON") + history.stored('{"a":1}')`,
			"a⟦U+202E⟧bno JSON{\n  \"a\": 1\n}"},
		{"names of objects", `await import("/objects.js").then(({ referred }) => [{ref: "h.s." + "0".repeat(64)},
			{output: {ref: "h.s." + "1".repeat(64)}}, {output: {ref: "h.s." + "1".repeat(64), more: 1}}, {ref: "h.s.x"},
			undefined].map((data) => referred({data})?.slice(0, 6)).join())`, "h.s.00,h.s.11,,,"},
		{"a document that comes while others are read", `(await (async () => {
			const { Commits } = await import("/commits.js");
			let go;
			const held = new Promise((done) => { go = done; });
			const commits = new Commits({}, {}, async (seq) => { await held; return {seq, parked: 1}; });
			commits.list = [1, 2, 3, 4, 5].map((seq) => ({seq, writer: "harness", events: [turn("completed", "t")]}));
			commits.remember({seq: 3, parked: 1});
			const done = commits.judge(() => {});
			commits.remember({seq: 5, parked: 1});
			commits.judge(() => {});
			go();
			await done;
			return commits.lines.map((l) => l.doubt ? "?" : l.note ?? "counts").join();
		})())`, "parked,counts,counts,counts,counts"},
		{"the broker's clock", `(await (async () => {
			const { Net } = await import("/net.js");
			const net = new Net({prefix: "hf", person: "ann"}, () => {});
			net.nc = {request: async () => ({json: () => ({ts: new Date(Date.now() + 3_600_000).toISOString()})})};
			await net.api("INFO");
			return Math.round((net.now() - Date.now()) / 1000);
		})())`, "3600"},
		{"authors", `[["/person/ann", "ledger"], ["/person/ann", "harness"], ["/service/ledger/x", "harness"],
			["/service/retry/x", "ledger"], ["/harness/h/7", "harness"], ["/harness/h/7", "ledger"], ["", "retry"]]
			.map(([source, writer]) => history.authorOf({source, data: {by: "bob"}}, writer)).join()`,
			"ann,harness,harness,ledger for bob,agent #7,ledger for bob,retry for bob"},
		{"the writers of all kinds", `JSON.stringify(history.writers)`, writers()},
		{"the date beside a local time", `text.clock(Date.UTC(2026, 2, 4, 12, 30), 0)`, "2026-03-05 02:30:00"},
		{"a local time of today",
			`text.clock(Date.UTC(2026, 2, 4, 12, 30), Date.UTC(2026, 2, 5, 9))`, "02:30:00"},
	} {
		got := eval[string](p, fmt.Sprintf("(async () => { %s; return String(%s); })()", rows, c.expression))
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
