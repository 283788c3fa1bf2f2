package health

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A web page whose name resolves to this machine cannot read the responses of a loopback server: no path answers a Host
// that is not the server's own address.
func TestHostIsChecked(t *testing.T) {
	s := start(t)
	s.Handle("/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	s.Started()
	for host, want := range map[string]int{"localhost:" + port: 200, "127.0.0.1:" + port: 200, "[::1]:" + port: 200,
		"localhost": 421, "localhost:1": 421, "127.0.0.1": 421, "127.0.0.2:" + port: 421, "[::1]": 421,
		"evil.example": 421, "evil.example:" + port: 421, "localhost.evil.example:" + port: 421,
		"127.0.0.1.evil.example:" + port: 421, "10.0.0.1:" + port: 421, "[fe80::1]:" + port: 421} {
		for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/nats", "/else"} {
			if got := statusOf(t, s.URL()+path, host); got != want {
				t.Errorf("host %q, %s: status %d, want %d", host, path, got, want)
			}
		}
	}
}

// A name of the server is the same name with the port that its scheme implies: browsers leave that port out, other
// clients name it.
func TestNameWithItsUsualPort(t *testing.T) {
	for scheme, cfg := range map[string]*tls.Config{"http": nil, "https": {MinVersion: tls.VersionTLS12}} {
		s, err := Listen(t.Context(), "127.0.0.1:0", "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		s.Secure("board.example", cfg)
		h := s.local(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for host, want := range map[string]int{"board.example": 200, "board.example:80": 200, "board.example:443": 421,
			"board.example:8480": 421, "evil.example:80": 421, ":80": 421, "127.0.0.1:80": 421} {
			if scheme == "https" {
				host = strings.NewReplacer(":80", ":443", ":443", ":80").Replace(host)
			}
			r, w := httptest.NewRequest(http.MethodGet, "/", http.NoBody), httptest.NewRecorder()
			r.Host = host
			if h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s: host %q: status %d, want %d", scheme, host, w.Code, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// statusOf is the status of a GET with this Host.
func statusOf(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

// Server has one host more when it listens on another address of loopback, and none beyond loopback.
func TestHosts(t *testing.T) {
	for addr, want := range map[string][]string{
		"127.0.0.1:80":   {"127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:80", "localhost", "localhost:80"},
		"127.0.0.1:8480": {"127.0.0.1:8480", "[::1]:8480", "localhost:8480"},
		"127.0.0.5:8480": {"127.0.0.1:8480", "127.0.0.5:8480", "[::1]:8480", "localhost:8480"},
		"0.0.0.0:8480":   nil, "10.1.1.1:8480": nil,
	} {
		at, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Server{listener: listening{at}}).Hosts(); !slices.Equal(got, want) {
			t.Errorf("%s: hosts %q, want %q", addr, got, want)
		}
	}
}

// listening is a listener that only has an address.
type listening struct{ at net.Addr }

func (listening) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (listening) Close() error              { return nil }
func (l listening) Addr() net.Addr          { return l.at }

// On another address, probes and Prometheus use the names of services.
func TestHostIsNotCheckedElsewhere(t *testing.T) {
	s, err := Listen(t.Context(), "0.0.0.0:0", "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if next := http.NewServeMux(); s.local(next) != http.Handler(next) {
		t.Error("the Host of requests is checked")
	}
}
