package board

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-dev/holdfast/harness"
	served "github.com/holdfast-dev/holdfast/internal/board"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// program runs the program until the end of the test, and waits until it is ready.
func program(t *testing.T, args ...string) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	cmd := exec.Command(binary, append(args, "--ready-file", ready)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v\n%s", args, err, &stderr)
		}
	})
	until(t, strings.Join(args[:1], " ")+" is ready", func() bool {
		_, err := os.Stat(ready)
		return err == nil
	})
}

// securedCell is a broker with the printed permissions, its services, and a board with TLS at this address.
func securedCell(t *testing.T, at string) *embed.Server {
	t.Helper()
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	users, err := permission.Users(cell, []string{"painter"}, []string{"ann"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		t.Setenv(u.Password, "secret")
	}
	dir := natstest.Certificates(t)
	srv := natstest.Start(t, natstest.Settings(t, permission.Conf(users)+`
		websocket { host: "127.0.0.1", port: -1, allowed_origins: ["https://`+at+`"], user_cookie: "`+
		served.UserCookie+`", pass_cookie: "`+served.PasswordCookie+`", tls { cert_file: "`+dir+
		`/tls.crt", key_file: "`+dir+`/tls.key" } }`))
	for _, service := range permission.Services() {
		program(t, service, "--nats", loginOf(srv, events.ServiceName(service)), "--http", "127.0.0.1:0")
	}
	program(t, "board", "--nats-ws", "wss://"+srv.WebsocketAddr(), "--tls-ca", dir+"/ca.crt", "--http", at,
		"--http-cert", dir+"/tls.crt", "--http-key", dir+"/tls.key")
	return srv
}

// loginOf returns the broker's URL for a user.
func loginOf(srv *embed.Server, user string) string {
	return strings.Replace(srv.URL(), "//", "//"+user+":secret@", 1)
}

// A person logs in to the board of a secured cell, answers, and is shown what the broker refuses. No script sees the
// password, and after the log-out the page shows nothing.
func TestPersonLogsIn(t *testing.T) {
	at := freePort(t)
	srv := securedCell(t, at)
	c := &cell{t: t, nats: strings.TrimPrefix(loginOf(srv, "harness-painter"), "nats://")}
	h := c.agent("painter")
	s, turn := c.open(h, "wall", harness.OpenOptions{Title: "Paint the wall"})
	c.ask(s, turn, "colour", question("colour", "Which colour shall the wall be?", "red", "blue"))

	p := newPage(t, "about:blank")
	if _, err := chromedp.Run(p.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		// the authority is one of this test
		return cdp.Call(ctx, target, security.SetIgnoreCertificateErrors,
			security.SetIgnoreCertificateErrorsParams{Ignore: true})
	}); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate("https://" + at + "/"))
	p.shows("Log in")
	p.shot("login")
	p.accessible("login", true)
	p.do(focus("input[name=name]"))
	p.keys("ann")
	p.do(focus("input[name=password]"))
	p.keys("guess")
	p.click("#login button")
	p.shows("401 the brokers refuse this name or password")
	if text := p.text(); strings.Contains(text, "Which colour") {
		t.Errorf("the page shows what waits to a person who has not logged in:\n%s", text)
	}
	eval[bool](p, `(document.querySelector("input[name=password]").value = "", true)`)
	p.do(focus("input[name=password]"))
	p.keys("secret")
	p.click("#login button")
	p.wait(`document.querySelector("#state.live")`)
	p.shows("Which colour shall the wall be?")
	if got := eval[string](p, `document.cookie`); got != "" {
		t.Errorf("a script of the page sees %q", got)
	}
	if !eval[bool](p, `document.querySelector("b#person").textContent === "ann"`) {
		t.Error("the page does not say who has logged in")
	}
	p.press("j")
	p.wait(`document.querySelector(".row.open")`)
	p.press("2")
	p.wait(`document.querySelector("input[type=radio]:checked")`)
	p.press("\r")
	p.shows("answered by ann")
	p.wait(`document.querySelector(".verdict.done")`)
	p.shot("loggedin")
	p.accessible("decided", true)

	p.readsSession(c, h, s, turn)
	p.visit("#/operator")
	// the doctor, over a websocket with the login of ann
	p.shows("JetStream on")
	p.click(`section[aria-label="recovery"] button`)
	p.wait(`/ \(403\)/.test(document.querySelector("#swept")?.textContent)`)
	eval[bool](p, `(globalThis.ask = fetch, globalThis.fetch = async () => {
		throw new Error("the network is away");
	}, true)`)
	p.click(".who button")
	p.shows("you are still logged in: no reply: the network is away")
	eval[bool](p, `(globalThis.fetch = ask, true)`)
	p.click(".who button")
	p.shows("Log in")
	if text := p.text(); strings.Contains(text, "wall") {
		t.Errorf("the page shows sessions after the log-out:\n%s", text)
	}
}

// readsSession opens the page of a session. All that it reads is within the rights of a person: the log, documents of
// the past, names of documents, and the copy of an object that the user of the harness has stored.
func (p *page) readsSession(c *cell, h *harness.Harness, s *harness.Session, turn *harness.Turn) {
	p.t.Helper()
	if err := turn.Complete(c.t.Context(), "done"); err != nil {
		c.t.Fatal(err)
	}
	long := strings.Repeat("a long message\n", 30_000)
	next, err := s.StartTurn(c.t.Context(), harness.StartOptions{Content: long, By: "ada"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.open(h, "trim", harness.OpenOptions{Parent: "wall", Root: "wall"})
	raw := c.connect()
	if err := raw.Publish("hf.log.painter.wall.harness", []byte("no batch")); err != nil {
		c.t.Fatal(err)
	}
	if err := raw.Flush(); err != nil {
		c.t.Fatal(err)
	}
	if err := next.Complete(c.t.Context(), "done"); err != nil {
		c.t.Fatal(err)
	}
	p.visit("#/s/painter/wall")
	p.shows("because of turn.completed")
	p.shows("did not count: parked: no batch of events")
	p.wait(`document.querySelector(".tree")?.textContent.includes("trim") && holdfast.app.page.family.live()`)
	eval[bool](p, `([...document.querySelectorAll("#timeline button.line")].find((b) =>
		b.textContent.includes("object painter.wall.")).click(), true)`)
	p.click("#timeline dd button")
	p.wait(fmt.Sprintf(`document.querySelector(".object")?.textContent === %s`, quote(long)))
	eval[bool](p, `(holdfast.app.page.travel(holdfast.app.page.commits.list[0].seq, 0), true)`)
	p.wait(`document.querySelector("#compared")`)
}
