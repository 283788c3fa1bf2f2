package cell

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	boardName   = "board.example.com" // in the manifests
	boardOrigin = "https://" + boardName
)

// TestBoardBesideACell: the board of deploy/k8s/board, beside each overlay, with users and certificates as printed. A
// person logs in and answers a question of an agent. The brokers refuse what the person may not do, and who has no
// login. A new password and a new certificate of the brokers need no restart.
func TestBoardBesideACell(t *testing.T) {
	for overlay, nodes := range map[string]int{"small": 1, "production": nodesMax} {
		t.Run(overlay, func(t *testing.T) {
			programs(t)
			d := &deployment{t: t, net: newNetwork(t), secrets: &world{t: t, dir: t.TempDir()}}
			d.secrets.secrets(d.net.routes()...)
			d.pod = overlaid(t, overlay, "nats/nats.yaml", "StatefulSet", "board")
			d.beside = map[string]string{"nats/board.conf": read(t, "board/board.conf")}
			conf := map[string]string{"small": "overlays/small/nats.conf", "production": "nats/nats.conf"}
			for i := range nodes {
				d.node(i, read(t, conf[overlay]))
			}
			for _, n := range d.nodes[:nodes] {
				d.until(n, n.ready)
			}
			for _, s := range services {
				d.service(s, s)
			}
			for _, s := range d.services {
				d.until(s.pod, s.fit)
			}
			b := d.board()
			b.probed()
			b.guarded()
			cookies := b.logIn(people)
			b.answers(cookies)
			b.rotates(cookies)
		})
	}
}

// front is a board in its pod, and a browser that reaches it under its name.
type front struct {
	*replica
	cell    *deployment
	checks  container // its probes
	trust   *tls.Config
	browser *http.Client
}

// board starts the board as its manifest does, and returns when it listens.
func (d *deployment) board() *front {
	d.t.Helper()
	manifest := podOf(d.t, "board/board.yaml")
	c, own := manifest.Containers[0], natstest.Certificates(d.t, boardName)
	at := strings.NewReplacer("/etc/holdfast-board", own, "/etc/nats-ca", filepath.Join(d.secrets.dir, "nats-tls"),
		"nats:"+socketPort, d.net.sockets())
	b := &front{cell: d, checks: c,
		replica: &replica{readyFile: filepath.Join(d.t.TempDir(), "ready")}}
	b.pod = &pod{t: d.t, name: "board", grace: time.Duration(manifest.Grace) * time.Second,
		settle:  func(s string) string { return at.Replace(d.net.local(0, s)) },
		command: func(args ...string) *exec.Cmd { return exec.Command(args[0], args[1:]...) }}
	b.args = append(append([]string{binary}, b.here(c.Args)...), "--ready-file", b.readyFile)
	b.env = c.environment(d.t, b.name)
	authority, err := os.ReadFile(filepath.Join(own, "ca.crt"))
	if err != nil {
		d.t.Fatal(err)
	}
	b.trust = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: boardName}
	b.trust.RootCAs.AppendCertsFromPEM(authority)
	b.browser = &http.Client{Transport: &http.Transport{TLSClientConfig: b.trust,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return b.Dial("tcp", "") }}}
	d.t.Cleanup(b.browser.CloseIdleConnections)
	b.start()
	d.until(b.pod, func() bool { _, err := os.Stat(b.readyFile); return err == nil })
	return b
}

// Dial connects to the board, whatever the name is: it implements nats.CustomDialer.
func (b *front) Dial(string, string) (net.Conn, error) {
	var note struct{ HTTP string }
	body, err := os.ReadFile(b.readyFile)
	if err == nil {
		err = json.Unmarshal(body, &note)
	}
	if err != nil {
		return nil, err
	}
	return net.Dial("tcp", strings.TrimPrefix(note.HTTP, "https://"))
}

// reply is a response of the board.
type reply struct {
	StatusCode int
	Status     string
	cookies    []*http.Cookie
}

// ask sends a request as the browser does, and returns the response and its body.
func (b *front) ask(method, path, body string, headers http.Header) (reply, string) {
	b.t.Helper()
	t := b.t
	req, err := http.NewRequestWithContext(t.Context(), method, boardOrigin+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = headers
	if host := headers.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := b.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Status, resp.Cookies()}, string(text)
}

// probed sends the probes of the manifest.
func (b *front) probed() {
	for name, p := range map[string]*check{"liveness": b.checks.LivenessProbe, "readiness": b.checks.ReadinessProbe} {
		headers := http.Header{}
		for _, h := range p.HTTPGet.Headers {
			headers.Set(h.Name, h.Value)
		}
		if p.HTTPGet.Path == "" || p.HTTPGet.Scheme != "HTTPS" || headers.Get("Host") == "" {
			b.t.Fatalf("%s: %+v", name, p)
		}
		if resp, text := b.ask(http.MethodGet, p.HTTPGet.Path, "", headers); resp.StatusCode != http.StatusOK {
			b.t.Errorf("the %s probe of the manifest: %s: %s", name, resp.Status, text)
		}
	}
}

// login sends a name and a password.
func (b *front) login(name, password string) (reply, string) {
	b.t.Helper()
	body, err := json.Marshal(map[string]string{"name": name, "password": password})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.ask(http.MethodPost, "/login", string(body),
		http.Header{"Origin": {boardOrigin}, "Content-Type": {"application/json"}})
}

// logIn returns the cookies of a person who has logged in with the password of the secret.
func (b *front) logIn(name string) (cookies string) {
	b.t.Helper()
	resp, text := b.login(name, b.cell.secrets.password(name))
	if resp.StatusCode != http.StatusNoContent {
		b.t.Fatalf("%s cannot log in: %s: %s\n%s", name, resp.Status, text, b.tail())
	}
	var all []string
	for _, c := range resp.cookies {
		all = append(all, c.Name+"="+c.Value)
	}
	return strings.Join(all, "; ")
}

// socket opens a websocket with these cookies, as a page of this origin does: through the board, or at the broker.
func (b *front) socket(cookies, origin string, direct bool) (*nats.Conn, error) {
	opts := nats.GetDefaultOptions()
	opts.Url, opts.TLSConfig, opts.CustomDialer = "wss://"+boardName+"/nats", b.trust, b
	opts.AllowReconnect, opts.InboxPrefix = false, events.Inbox("hf", events.ClassPerson, people)
	// refusals, which LastError has
	opts.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {}
	opts.WebSocketConnectionHeaders = http.Header{"Cookie": {cookies}, "Origin": {origin}}
	if direct {
		authority, err := os.ReadFile(filepath.Join(b.cell.secrets.dir, "nats-tls/ca.crt"))
		if err != nil {
			return nil, err
		}
		opts.Url, opts.CustomDialer = "wss://"+b.cell.net.sockets(), nil
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		opts.TLSConfig.RootCAs.AppendCertsFromPEM(authority)
	}
	return opts.Connect()
}

// guarded: a wrong password, a harness's page and pages of another origin get nothing, neither from the board nor from
// the brokers.
func (b *front) guarded() {
	t := b.t
	if resp, text := b.login(people, "guess"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong password: %s: %s", resp.Status, text)
	}
	cookies := b.logIn(people)
	root := strings.Replace(cookies, "="+people, "=root", 1)
	for name, c := range map[string]struct {
		cookies, origin string
		direct, open    bool
	}{
		"no login":                              {"", boardOrigin, false, false},
		"another origin":                        {cookies, "https://evil.example", false, false},
		"another name":                          {root, boardOrigin, false, false},
		"at the broker, with the login":         {cookies, boardOrigin, true, true},
		"at the broker, without a login":        {"", boardOrigin, true, false},
		"at the broker, of another origin":      {cookies, "https://evil.example", true, false},
		"through the board, as the page itself": {cookies, boardOrigin, false, true},
	} {
		nc, err := b.socket(c.cookies, c.origin, c.direct)
		if (err == nil) != c.open {
			t.Errorf("%s: %v, want it open: %v", name, err, c.open)
		}
		if err == nil {
			nc.Close()
		}
	}
}

// answers: an agent asks, and the person sees the question and answers it on the websocket of the page. The brokers
// refuse requests in the name of another person, and what only an operator may do.
func (b *front) answers(cookies string) {
	t := b.t
	t.Helper()
	cfg := b.cell.config("harness-"+attacker, events.ClassHarness, attacker)
	h, err := harness.Connect(t.Context(), harness.Config{ID: attacker, URL: cfg.URL, PasswordFile: cfg.PasswordFile,
		TLSCA: cfg.TLSCA, TLSCert: cfg.TLSCert, TLSKey: cfg.TLSKey})
	if err != nil {
		t.Fatal(err)
	}
	// its node may be gone
	defer func() { _ = h.Close(context.WithoutCancel(t.Context())) }()
	s, err := h.Open(t.Context(), "s", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := s.StartTurn(t.Context(), harness.StartOptions{Content: "go"})
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		harness.Answer
		error
	}
	asked := make(chan result, 1)
	go func() {
		a, err := turn.Ask(t.Context(), harness.Prompt{ID: "p", Title: "Which colour?", Questions: []events.Question{
			{ID: "colour", Question: "Which colour?", Options: []events.Option{{Label: "red"}, {Label: "blue"}}}}})
		asked <- result{a, err}
	}()
	page, err := b.socket(cookies, boardOrigin, false)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	shows(t, page, "Which colour?")
	answer := request.Answer{Ref: mine, Prompt: "p", By: people,
		Answers: []events.Answer{{Question: "colour", Selected: []string{"blue"}}}}
	for subject, may := range map[string]bool{"ledger.answer.bob": false, "reconciler.sweep." + people: false} {
		err := errors.Join(page.PublishRequest("hf.svc."+subject, page.NewInbox(), []byte("{}")), page.Flush())
		if err != nil || errors.Is(page.LastError(), nats.ErrPermissionViolation) == may {
			t.Errorf("%s: %v (%v), want it permitted: %v", subject, err, page.LastError(), may)
		}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	m, err := page.Request("hf.svc.ledger.answer."+people, body, patience)
	if err != nil {
		t.Fatal(err)
	}
	if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
		t.Fatalf("the answer is refused: %s: %s", code, m.Data)
	}
	got := <-asked
	if got.error != nil || got.Status != session.Answered || got.By != people || got.Choice() != "blue" {
		t.Errorf("the agent got %+v, %v", got.Answer, got.error)
	}
}

// shows waits until the view of what waits for people has a text, as the page watches it.
func shows(t *testing.T, page *nats.Conn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js, err := jetstream.New(page)
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue(ctx, "hf_state")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := bucket.Watch(ctx, "blocker.>")
	if err != nil {
		t.Fatal(err)
	}
	// the connection may have ended
	defer func() { _ = rows.Stop() }()
	for {
		select {
		case row := <-rows.Updates():
			if row != nil && bytes.Contains(row.Value(), []byte(text)) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("the page does not show %q", text)
		}
	}
}

// rotates: the brokers read a new password of the person and a certificate of their own at a signal. The page of the
// old password is closed.
func (b *front) rotates(cookies string) {
	t := b.t
	t.Helper()
	page, err := b.socket(cookies, boardOrigin, false)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	serial, err := b.shown()
	if err != nil {
		t.Fatal(err)
	}
	old := b.cell.secrets.password(people)
	if err := os.Remove(filepath.Join(b.cell.secrets.dir, "nats-tls/tls.crt")); err != nil {
		t.Fatal(err)
	}
	args := []string{"user", "rotate", b.cell.secrets.dir, people, "--permissions",
		filepath.Join(b.cell.secrets.dir, "nats/permissions.conf")}
	if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	// the certificate again
	b.cell.secrets.secrets(b.cell.net.routes()...)
	b.cell.reread()
	natstest.Until(t, "the page of the old password to be closed", page.IsClosed)
	natstest.Until(t, "the broker to show its new certificate", func() bool {
		now, err := b.shown()
		return err == nil && now != serial
	})
	if resp, text := b.login(people, old); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the old password: %s: %s", resp.Status, text)
	}
	if nc, err := b.socket(cookies, boardOrigin, false); err == nil {
		nc.Close()
		t.Error("the old cookies open a websocket")
	}
	nc, err := b.socket(b.logIn(people), boardOrigin, false)
	if err != nil {
		t.Fatalf("with the new password: %v\n%s", err, b.cell.nodes[0].tail())
	}
	nc.Close()
	if killed := b.cell.nodes[0].killed(); len(killed) > 0 {
		t.Errorf("the node was restarted: %q", killed)
	}
}

// shown returns the serial number of the certificate of a broker's websocket.
func (b *front) shown() (string, error) {
	nc, err := tls.Dial("tcp", b.cell.net.sockets(),
		&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true})
	if err != nil {
		return "", err
	}
	return nc.ConnectionState().PeerCertificates[0].SerialNumber.String(), nc.Close()
}

// reread gives each node the files of its secrets and permissions as they are now, and has it read them.
func (d *deployment) reread() {
	d.t.Helper()
	for _, n := range d.nodes {
		if n == nil {
			continue
		}
		for _, file := range []string{"nats-users/users.conf", "nats-tls/tls.crt", "nats-tls/tls.key",
			"nats-tls/ca.crt", "nats/permissions.conf"} {
			body, err := os.ReadFile(filepath.Join(d.secrets.dir, file))
			if err == nil {
				err = os.WriteFile(n.settle("/etc/"+file), []byte(n.settle(string(body))), 0o600)
			}
			if err != nil {
				d.t.Fatal(err)
			}
		}
		signal := fmt.Sprintf("reload=%s", n.settle("/var/run/nats/nats.pid"))
		if out, err := exec.Command(natsServer, "--signal", signal).CombinedOutput(); err != nil {
			d.t.Fatalf("%s: %v: %s", n.name, err, out)
		}
	}
}
