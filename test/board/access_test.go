package board

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// axeVersion is the package of npm with the rules for accessible pages.
const axeVersion = "axe-core@4.14.1"

// updateVariable writes the golden files again when it is set.
const updateVariable = "HOLDFAST_BOARD_UPDATE"

// axe returns the source of axe-core, which npm installs once for all tests.
var axe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "holdfast-axe")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	install := exec.Command("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts",
		"--prefix", dir, axeVersion)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("board: this test needs npm and %s: apt-get install -y npm: %w\n%s", axeVersion, err, out)
	}
	body, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(body), err
})

// Every page follows the rules of axe-core at the width of a desk and of a phone, and has the accessibility tree of its
// golden file: what a screen reader reads.
func TestPagesAreAccessible(t *testing.T) {
	c := newCell(t)
	p := board(t, c, "")
	p.shows("Nothing waits for you.")
	p.accessible("empty", true)

	h := c.agent("painter")
	s, turn := c.open(h, "wall", harness.OpenOptions{Title: "Paint the wall", Agent: "painter", Model: "small"})
	c.ask(s, turn, "colour", question("colour", "Which colour shall the wall be?", "red", "blue"),
		events.Question{ID: "tools", Question: "Which tools?", Multi: true,
			Options: []events.Option{{Label: "brush", Description: "the wide one"}, {Label: "roller"}}})
	c.permit(s, turn, "rm", "Remove the old paint", "rm -rf paint")
	p.visit("#/p/painter/wall/colour")
	p.wait(`document.querySelectorAll(".row").length > 0 && document.querySelector(".row.open")`)
	p.accessible("question", true)
	p.visit("#/p/painter/wall/rm")
	p.wait(`document.querySelector(".row.open") && document.body.innerText.includes("rm -rf")`)
	p.accessible("permission", true)
	p.press("?")
	p.shows("this list")
	p.accessible("keys", true)
	p.press("?")
	p.wait(`!document.body.innerText.includes("this list")`)

	b, doing := c.open(h, "door", harness.OpenOptions{Title: "Paint the door"})
	c.append(b, events.ToolStarted{Call: "test", Turn: doing.ID(), Name: "bash", Input: []byte(`{"command":"make"}`)},
		events.ToolCompleted{Call: "test", Output: []byte(`"done"`)},
		events.UsageReported{Turn: doing.ID(), Model: "small", Tokens: events.Tokens{Input: 60_000},
			ContextLimit: 100_000})
	c.append(b, events.TurnFailed{Turn: doing.ID(), Error: events.Failure{Kind: "rate_limit", Text: "429: slow down",
		RetryAfterMS: 600_000}})
	q := board(t, c, "#/s/painter/door")
	q.wait(`document.querySelector("#phase")?.textContent === "retrying"`)
	c.request(c.connect(), "compaction.send", map[string]any{"harness": "painter", "session": "door",
		"message": "m1", "by": "ann", "content": "and the handle"})
	q.wait(`document.querySelector("#queue") && document.querySelectorAll("#timeline li").length === 9`)
	q.shows("would be compacted")
	q.accessible("session", true)
	eval[bool](q, `(holdfast.app.page.travel(6, 0), true)`)
	q.wait(`document.querySelector("#differences")`)
	q.accessible("past", true)

	o := board(t, c, "#/sessions")
	o.shows("Paint the door")
	o.accessible("sessions", true)
	w := board(t, c, "#/operator")
	w.shows("HF_LOG")
	w.shows("harness painter")
	// the doctor
	w.shows("JetStream on")
	cells := func(table string, column int) string {
		return fmt.Sprintf(`[...document.querySelectorAll("section[aria-label='%s'] tbody tr td:nth-child(%d)")]
			.map((e) => e.textContent).join()`, table, column)
	}
	w.wait(cells("services", 3) + ` === "yes,yes,yes,yes"`)
	w.wait(cells("work of services", 4) + ` === Array(7).fill("0 messages").join()`)
	w.wait(`!holdfast.app.page.examining`)
	// the findings of the doctor depend on the machine
	eval[bool](w, `(holdfast.app.page.findings.list = [{level: "wrong", check: "log", found: "full", do: "x"},
		{level: "note", check: "nodes", found: "one is away"}, {level: "ok", check: "layout", found: "as wanted"}],
		true)`)
	w.accessible("operator", true)
}

// visit opens another page of the board in the same tab.
func (p *page) visit(hash string) {
	p.t.Helper()
	eval[bool](p, fmt.Sprintf("(location.hash = %s, true)", quote(hash)))
}

// accessible checks the page by the rules of axe-core at both widths. With golden it compares the accessibility tree
// with a file.
func (p *page) accessible(name string, golden bool) {
	p.t.Helper()
	source, err := axe()
	if err != nil {
		p.t.Fatal(err)
	}
	drawn(p)
	if golden {
		p.compareTree(name)
	}
	eval[bool](p, source+"\n;true")
	for _, size := range [][2]int64{{390, 844}, {1200, 900}} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		drawn(p)
		found := eval[[]string](p, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) =>
			v.id + ": " + v.help + "\n" + v.nodes.map((n) => "  " + n.target.join(" ") + ": " + n.html).join("\n")))`)
		for _, violation := range found {
			p.t.Errorf("%s, %d pixels wide: %s", name, size[0], violation)
		}
	}
}

// compareTree compares the accessibility tree with its golden file.
func (p *page) compareTree(name string) {
	p.t.Helper()
	got, path := p.tree(), filepath.Join("testdata", "tree", name+".txt")
	if os.Getenv(updateVariable) != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	if got != string(want) {
		p.t.Errorf("%s has another accessibility tree than %s (%s=1 writes it):\n%s", name, path, updateVariable, got)
	}
}

// volatile matches what is different in each run: ids, numbers, sizes, instants with or without their day, and how long
// ago something was.
var volatile = regexp.MustCompile(
	`\b([0-9A-Za-z]{22}|[0-9A-Z]{26}|[0-9A-Z]{56})\b|([0-9]{4}-[0-9]{2}-[0-9]{2} )?` +
		`[0-9][0-9:.,]*(ms|µs|[smhd]\b)?( [0-9]+[smhd]\b)*( ([KMGT]i)?B\b| bytes\b)?`)

// An instant is written alike whether it is of today or of another day: the page shows the day of the latter.
func TestInstantsOfAllDaysAreAlike(t *testing.T) {
	const want = "retry 0 in 0 at 0"
	for _, text := range []string{"retry 1 in 9m at 23:49:59", "retry 1 in 10m at 2026-11-28 00:01:02"} {
		if got := volatile.ReplaceAllString(text, "0"); got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}

// states are the properties of a node that are in the tree. All others depend on the browser.
var states = map[accessibility.PropertyName]bool{"disabled": true, "checked": true, "expanded": true, "required": true,
	"level": true, "live": true}

// tree returns the accessibility tree as text: one node a line, indented, with its role, name and states. Numbers are
// written as 0. Text that the name of its parent has is left out.
func (p *page) tree() string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	nodes, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) ([]*accessibility.Node, error) {
		r, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return nil, err
		}
		return r.Nodes, nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		p.t.Fatal(err)
	}
	byID := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range nodes {
		byID[n.NodeID] = n
	}
	var b strings.Builder
	var write func(n *accessibility.Node, above string, depth int)
	write = func(n *accessibility.Node, above string, depth int) {
		role, name := text(n.Role), volatile.ReplaceAllString(strings.ReplaceAll(text(n.Name), host, "host"), "0")
		if role != "StaticText" {
			// versions of Chromium differ in it
			name = strings.TrimSpace(name)
		}
		if role == "InlineTextBox" || role == "StaticText" && strings.Contains(above, name) {
			return
		}
		// Some versions of Chromium have a node for a form without a name, and others have none.
		unseen := role == "generic" || role == "none" || role == "form" && name == ""
		if !n.Ignored && !unseen {
			fmt.Fprintf(&b, "%s%s", strings.Repeat("  ", depth), role)
			if name != "" {
				fmt.Fprintf(&b, " %q", name)
			}
			for _, property := range n.Properties {
				if v := text(property.Value); states[property.Name] && v != "false" {
					fmt.Fprintf(&b, " %s=%s", property.Name, v)
				}
			}
			b.WriteByte('\n')
			above = name
			depth++
		}
		for _, id := range n.ChildIDs {
			if child := byID[id]; child != nil {
				write(child, above, depth)
			}
		}
	}
	if len(nodes) > 0 {
		write(nodes[0], "", 0)
	}
	return b.String()
}

// text returns the value of a node's property as text.
func text(v *accessibility.Value) string {
	if v == nil || len(v.Value) == 0 {
		return ""
	}
	var s string
	if err := json.Unmarshal(v.Value, &s); err == nil {
		return s
	}
	return string(v.Value)
}
