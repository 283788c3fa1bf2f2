package embed

import (
	"bytes"
	"net"
	"net/http"
	"testing"

	"github.com/rs/zerolog"
)

// Pages of other origins cannot open a websocket, whatever name they reach this machine by.
func TestWebsocketsAreForTheGivenOrigins(t *testing.T) {
	var lines bytes.Buffer
	s := mustStart(t, Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: zerolog.New(&lines),
		WebsocketOrigins: []string{"http://127.0.0.1:8480", "http://localhost:8480"}})
	host, _, err := net.SplitHostPort(s.WebsocketAddr())
	if err != nil || host != loopback {
		t.Fatalf("listens on %q (%v), want loopback", s.WebsocketAddr(), err)
	}
	for origin, want := range map[string]int{
		"http://127.0.0.1:8480": 101, "http://localhost:8480": 101,
		"":                      101, // no browser: it could use the plain port as well
		"http://127.0.0.1:3000": 403, "http://127.0.0.1": 403, "https://127.0.0.1:8480": 403, "null": 403,
		"http://evil.example:8480": 403, "http://" + s.WebsocketAddr(): 403,
		"http://127.0.0.1.evil.example:8480": 403, "http://[::1]:8480": 403,
	} {
		url := "http://" + s.WebsocketAddr() + "/"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-Websocket-Version": "13", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": origin} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != want {
			t.Errorf("origin %q: %s (%v), want %d", origin, resp.Status, err, want)
		}
	}
	if bytes.Contains(lines.Bytes(), []byte("TLS")) {
		t.Errorf("logged about a listener on loopback: %s", &lines)
	}
}

func TestNoWebsocketsWithoutOrigins(t *testing.T) {
	if s := mustStart(t, Config{Dir: t.TempDir(), Listen: "127.0.0.1:0"}); s.WebsocketAddr() != "" {
		t.Errorf("listens for websockets on %s", s.WebsocketAddr())
	}
}
