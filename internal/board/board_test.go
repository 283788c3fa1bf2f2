package board

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// patience is a limit for a test that hangs.
const patience = time.Minute

// handler is a board whose broker is at this address.
func handler(t *testing.T, broker string) *Handler {
	t.Helper()
	h, err := New(Cell{Prefix: "hf", Version: "1.2.3", Person: "ann"}, broker, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// reply is what a handler replied.
type reply struct {
	status int
	header http.Header
	body   string
}

// ask sends one request to a handler.
func ask(t *testing.T, h http.Handler, method, path string, header map[string]string) reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return reply{w.Code, w.Header(), w.Body.String()}
}

func TestFilesAreServed(t *testing.T) {
	h := handler(t, "127.0.0.1:1")
	for name, c := range map[string]struct {
		method, path string
		header       map[string]string
		status       int
		kind, body   string
	}{
		"the page":             {"GET", "/", nil, 200, "text/html; charset=utf-8", "<!doctype html>"},
		"the page by its name": {"GET", "/index.html", nil, 200, "text/html; charset=utf-8", "<!doctype html>"},
		"its head":             {"HEAD", "/", nil, 200, "text/html; charset=utf-8", ""},
		"a module":             {"GET", "/main.js", nil, 200, "text/javascript; charset=utf-8", "import"},
		"a vendored module":    {"GET", "/vendor/lit-html.js", nil, 200, "text/javascript; charset=utf-8", "export"},
		"licences":             {"GET", "/vendor/LICENSES.txt", nil, 200, "text/plain; charset=utf-8", "Apache"},
		"the style":            {"GET", "/board.css", nil, 200, "text/css; charset=utf-8", ":root"},
		"the icon":             {"GET", "/icon.svg", nil, 200, "image/svg+xml", "<svg"},
		"the cell": {"GET", "/cell.json", nil, 200, "application/json",
			`{"prefix":"hf","version":"1.2.3","person":"ann"}`},
		"no such file":          {"GET", "/else", nil, 404, "text/plain; charset=utf-8", "there is no such page"},
		"a file of another use": {"GET", "/vendor/README.md", nil, 404, "text/plain; charset=utf-8", ""},
		"a path out":            {"GET", "/../board.go", nil, 404, "text/plain; charset=utf-8", ""},
		"a folder":              {"GET", "/vendor", nil, 404, "text/plain; charset=utf-8", ""},
		"a form":                {"POST", "/", nil, 405, "text/plain; charset=utf-8", "only read"},
		"another tag": {"GET", "/", map[string]string{"If-None-Match": `"x"`}, 200,
			"text/html; charset=utf-8", "<!"},
		"its own tag": {"GET", "/", map[string]string{"If-None-Match": h.files["/"].tag}, 304,
			"text/html; charset=utf-8", ""},
		"no websocket": {"GET", "/nats", nil, 426, "text/plain; charset=utf-8", "this is a websocket"},
		"another protocol": {"GET", "/nats", map[string]string{"Upgrade": "h2c"}, 426,
			"text/plain; charset=utf-8", ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp := ask(t, h, c.method, c.path, c.header)
			if kind := resp.header.Get("Content-Type"); resp.status != c.status || kind != c.kind ||
				!strings.Contains(resp.body, c.body) {
				t.Errorf("%d %s %.60q, want %d %s %q", resp.status, kind, resp.body, c.status, c.kind, c.body)
			}
			for name, value := range headers {
				if resp.header.Get(name) != value {
					t.Errorf("header %s: %q, want %q", name, resp.header.Get(name), value)
				}
			}
		})
	}
}

// TestHeadersOfEveryResponse has the headers byte for byte, so that no change of them is an accident.
func TestHeadersOfEveryResponse(t *testing.T) {
	resp := ask(t, handler(t, "127.0.0.1:1"), "GET", "/", nil)
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
			"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
			"require-trusted-types-for 'script'; trusted-types lit-html",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy":              "no-referrer",
		"X-Content-Type-Options":       "nosniff",
		"Cache-Control":                "no-cache",
	} {
		if got := resp.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Vendored files are those of the recorded commands.
func TestSumsOfVendoredFiles(t *testing.T) {
	sums, err := files.ReadFile("web/vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := files.ReadDir("web/vendor")
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, e := range entries {
		if e.Name() == "SHA256SUMS" || e.Name() == "README.md" {
			continue
		}
		body, err := files.ReadFile("web/vendor/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(body)
		want += fmt.Sprintf("%s  %s\n", hex.EncodeToString(sum[:]), e.Name())
	}
	if string(sums) != want {
		t.Errorf("SHA256SUMS has\n%s, the files have\n%s", sums, want)
	}
}

// No file of the page names another origin, and no template takes text as markup.
func TestPageIsSelfContained(t *testing.T) {
	h := handler(t, "127.0.0.1:1")
	for at, f := range h.files {
		if strings.HasPrefix(at, "/vendor/") {
			continue
		}
		for _, word := range []string{"https://", "innerHTML", "unsafeHTML", "insertAdjacentHTML", "eval(", "style="} {
			if bytes.Contains(f.body, []byte(word)) {
				t.Errorf("%s has %q", at, word)
			}
		}
	}
}

// echo is a broker that accepts an upgrade, records the request, and sends back what it gets.
func echo(t *testing.T, seen chan<- *http.Request) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, err = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		if err = errors.Join(err, rw.Flush()); err != nil {
			t.Error(err)
			return
		}
		// until one side closes it
		_, _ = io.Copy(conn, rw)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// upgrade opens a websocket through a board, and returns it behind its handshake.
func upgrade(t *testing.T, h *Handler) (net.Conn, *bufio.Reader, reply) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /nats?a=b HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nOrigin: http://127.0.0.1:8480\r\nCookie: secret=1\r\nAuthorization: Basic x\r\n\r\n",
	); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return conn, reader, reply{status: resp.StatusCode, header: resp.Header}
}

// The websocket goes to the broker, with the page's origin and without its cookies.
func TestWebsocketReachesTheBroker(t *testing.T) {
	seen := make(chan *http.Request, 1)
	conn, reader, resp := upgrade(t, handler(t, echo(t, seen)))
	if resp.status != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", resp.status)
	}
	r := <-seen
	if r.Header.Get("Origin") != "http://127.0.0.1:8480" || r.Header.Get("Cookie") != "" ||
		r.Header.Get("Authorization") != "" || r.URL.String() != "/" {
		t.Errorf("the broker sees %s %v", r.URL, r.Header)
	}
	if _, err := io.WriteString(conn, "ping\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := reader.ReadString('\n'); err != nil || line != "ping\n" {
		t.Errorf("back comes %q, %v", line, err)
	}
}

// The end of the handler ends open websockets, which are no longer the server's.
func TestCloseEndsWebsockets(t *testing.T) {
	seen := make(chan *http.Request, 1)
	h := handler(t, echo(t, seen))
	_, reader, resp := upgrade(t, h)
	if resp.status != http.StatusSwitchingProtocols {
		t.Fatalf("status %d", resp.status)
	}
	h.Close()
	// once is enough
	h.Close()
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the websocket is still open: %v", err)
	}
}

// While the broker is away the page gets a status, and nothing is logged: the page asks again and again.
func TestBrokerAwayIsNoNoise(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var noise bytes.Buffer
	before := log.Writer()
	log.SetOutput(&noise)
	defer log.SetOutput(before)
	_, _, resp := upgrade(t, handler(t, l.Addr().String()))
	if resp.status != http.StatusBadGateway || resp.header.Get("Content-Security-Policy") != Policy {
		t.Errorf("status %d, header %v", resp.status, resp.header)
	}
	if noise.Len() > 0 {
		t.Errorf("logged: %s", noise.String())
	}
}
