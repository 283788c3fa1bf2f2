package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	page "github.com/holdfast-dev/holdfast/internal/board"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// Beyond loopback neither a page nor a password goes without TLS, and a wrong address is named before anything starts.
func TestBoardNeedsTLSBeyondLoopback(t *testing.T) {
	dir := natstest.Certificates(t)
	own := []string{"--http-cert", dir + "/tls.crt", "--http-key", dir + "/tls.key"}
	near := []string{"--nats-ws", "ws://127.0.0.1:1"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no broker":          {nil, "--nats-ws is missing"},
		"a broker's address": {[]string{"--nats-ws", "nats://127.0.0.1:4222"}, "want wss://host:port"},
		"a password in it":   {[]string{"--nats-ws", "wss://ann:secret@n1:8443"}, "want wss://host:port"},
		"a far broker":       {[]string{"--nats-ws", "ws://10.0.0.1:8080"}, "with TLS only"},
		"a name like loopback": {[]string{"--nats-ws", "ws://localhost.evil.example:8080"},
			"with TLS only"},
		"no port":       {[]string{"--nats-ws", "wss://n1"}, "the port is missing"},
		"a far page":    {append(near, "--origin", "http://board.example"), "with TLS only"},
		"a page's path": {append(near, "--origin", "https://board.example/x"), "want https://host"},
		"a key alone":   {append(near, "--http-key", dir+"/tls.key"), "give both or none"},
		"no certificate": {append(near, "--http-cert", dir+"/tls.key", "--http-key", dir+"/tls.key"),
			"--http-cert: "},
		"all addresses":    {append(near, "--http", "0.0.0.0:0"), "beyond loopback the board is served with TLS only"},
		"without a name":   {append(append(near, own...), "--http", "0.0.0.0:0"), "--origin"},
		"a foreign file":   {append(near, "--tls-ca", dir+"/tls.key"), "no certificate in PEM"},
		"without its file": {append(near, "--origin", "https://board.example", "--http", "0.0.0.0:0"), "--http-cert"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			args := append([]string{"board", "--http", "127.0.0.1:0"}, c.args...)
			p := &Program{Args: args, Stdout: &out, Stderr: &out}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if code := p.Run(ctx); code != exitUsage || !strings.Contains(out.String(), c.want) ||
				strings.Contains(out.String(), "secret") {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, exitUsage, c.want, &out)
			}
		})
	}
}

// reader is a browser, as far as a board sees it.
type reader struct {
	t      *testing.T
	client *http.Client
	base   string
}

// answer is what a board answered.
type answer struct {
	status  int
	cookies []*http.Cookie
	text    string
}

// send sends a request with these headers.
func (b *reader) send(method, path, host, body string, headers map[string]string) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Host = host
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		b.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Cookies(), string(text)}
}

// logIn returns the cookies of a person.
func (b *reader) logIn(origin, name, password string) string {
	b.t.Helper()
	body, err := json.Marshal(map[string]string{"name": name, "password": password})
	if err != nil {
		b.t.Fatal(err)
	}
	got := b.send(http.MethodPost, "/login", "", string(body),
		map[string]string{"Origin": origin, "Content-Type": "application/json"})
	if got.status != http.StatusNoContent {
		b.t.Fatalf("log in as %s: %d: %s", name, got.status, got.text)
	}
	var cookies []string
	for _, c := range got.cookies {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	return strings.Join(cookies, "; ")
}

// A board beside a secured cluster: who has a login of the brokers has the rights of that login, through TLS on both
// ways; another password, Host or origin gets nothing.
func TestBoardBesideACluster(t *testing.T) {
	const origin = "https://board.example"
	dir := natstest.Certificates(t)
	srv := secured(t, `websocket { host: "127.0.0.1", port: -1, allowed_origins: ["`+origin+`"], user_cookie: "`+
		page.UserCookie+`", pass_cookie: "`+page.PasswordCookie+`", tls { cert_file: "`+dir+`/tls.crt", key_file: "`+
		dir+`/tls.key" } }`)
	ready := filepath.Join(t.TempDir(), "ready.json")
	stop := runProgram("board", "--nats-ws", "wss://"+srv.WebsocketAddr(), "--tls-ca", dir+"/ca.crt", "--origin",
		origin, "--http", "127.0.0.1:0", "--http-cert", dir+"/tls.crt", "--http-key", dir+"/tls.key", "--ready-file",
		ready)
	t.Cleanup(func() {
		if code, output := stop(); code != exitDone {
			t.Errorf("the board ended with %d: %s", code, output)
		}
	})
	var note health.Note
	natstest.Until(t, "the board to be ready", func() bool {
		body, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(body, &note) == nil
	})
	pem, err := os.ReadFile(dir + "/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	trust.RootCAs.AppendCertsFromPEM(pem)
	b := &reader{t, &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}, note.HTTP}
	for _, path := range []string{"/", "/cell.json", "/login", "/nats", "/metrics", "/healthz", "/doctor.json"} {
		got := b.send(http.MethodGet, path, "evil.example", "", nil)
		if got.status != http.StatusMisdirectedRequest {
			t.Errorf("%s under another name: %d", path, got.status)
		}
	}
	if got := b.send(http.MethodGet, "/", "board.example", "", nil); got.status != http.StatusOK {
		t.Errorf("the page under its name: %d", got.status)
	}
	got := b.send(http.MethodPost, "/login", "board.example", `{"name":"ann","password":"guess"}`,
		map[string]string{"Origin": origin, "Content-Type": "application/json"})
	if got.status != http.StatusUnauthorized {
		t.Errorf("another password: %d: %s", got.status, got.text)
	}
	ann := b.logIn(origin, "ann", "secret-ann")
	got = b.send(http.MethodGet, "/cell.json", "", "", map[string]string{"Cookie": ann})
	if !strings.Contains(got.text, `"person":"ann","login":true`) {
		t.Errorf("the page learns %s", got.text)
	}
	cookies := map[string]string{"ann": ann, "root": b.logIn(origin, "root", "secret-roo")}
	b.rights(trust, origin, cookies)
	b.findings(cookies)
}

// findings checks that the doctor examines the cell with the rights of the person who looks: it shows to each what
// `holdfast doctor` prints for that person.
func (b *reader) findings(cookies map[string]string) {
	b.t.Helper()
	const limited = "this user may not read the places of services"
	for person, want := range map[string]bool{"ann": true, "root": false} {
		got := b.send(http.MethodGet, "/doctor.json", "", "", map[string]string{"Cookie": cookies[person]})
		var found []finding
		if err := json.Unmarshal([]byte(got.text), &found); err != nil || got.status != http.StatusOK {
			b.t.Fatalf("%s: %d %s", person, got.status, got.text)
		}
		for _, f := range found {
			if f.Level == levelWrong {
				b.t.Errorf("%s: %+v", person, f)
			}
		}
		if len(found) < 5 || strings.Contains(got.text, limited) != want || strings.Contains(got.text, "secret") {
			b.t.Errorf("%s is shown %s", person, got.text)
		}
	}
	for name, cookie := range map[string]string{"no login": "",
		"another name": strings.Replace(cookies["ann"], "=ann", "=root", 1)} {
		got := b.send(http.MethodGet, "/doctor.json", "", "", map[string]string{"Cookie": cookie})
		if got.status != http.StatusUnauthorized {
			b.t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
}

// open opens the websocket of the board, as the page does.
func (b *reader) open(trust *tls.Config, cookies, origin, person string) (*nats.Conn, error) {
	opts := nats.GetDefaultOptions()
	opts.Url = strings.Replace(b.base, "https://", "wss://", 1) + "/nats"
	opts.TLSConfig, opts.AllowReconnect, opts.InboxPrefix = trust, false, "_INBOX.hf.person."+person
	// the broker's refusals
	opts.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {}
	opts.WebSocketConnectionHeaders = http.Header{"Cookie": {cookies}, "Origin": {origin}}
	return opts.Connect()
}

// rights checks what people may do through the board: the brokers refuse the rest.
func (b *reader) rights(trust *tls.Config, origin string, cookies map[string]string) {
	b.t.Helper()
	for name, c := range map[string]struct{ cookies, origin string }{
		"no login": {"", origin}, "another origin": {cookies["ann"], "https://evil.example"},
		"a changed name": {strings.Replace(cookies["ann"], "=ann", "=root", 1), origin}} {
		if nc, err := b.open(trust, c.cookies, c.origin, "ann"); err == nil {
			nc.Close()
			b.t.Errorf("%s: the websocket is open", name)
		}
	}
	for _, c := range []struct {
		person, subject string
		may             bool
	}{
		{"ann", "hf.svc.ledger.list.ann", true},
		{"ann", "hf.svc.ledger.list.root", false},
		{"ann", "hf.svc.ledger.list", false},
		{"ann", "hf.svc.reconciler.sweep.ann", false},
		{"root", "hf.svc.reconciler.sweep.root", true},
		{"ann", "$JS.API.STREAM.INFO.KV_hf_state", true},
		{"ann", "$JS.API.STREAM.PURGE.KV_hf_state", false},
	} {
		nc, err := b.open(trust, cookies[c.person], origin, c.person)
		if err != nil {
			b.t.Fatal(err)
		}
		body := []byte(`{"dry_run":true}`)
		if c.may {
			_, err = nc.Request(c.subject, body, time.Minute)
		} else {
			// a refusal arrives before the answer to the ping of the flush
			err = errors.Join(nc.PublishRequest(c.subject, nc.NewInbox(), body), nc.Flush())
		}
		if err != nil || errors.Is(nc.LastError(), nats.ErrPermissionViolation) == c.may {
			b.t.Errorf("%s on %s: %v (%v), want it permitted: %v", c.person, c.subject, err, nc.LastError(), c.may)
		}
		nc.Close()
	}
}
