package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
)

// The board is served on loopback, unless it is turned off. Beyond loopback it is not, and the program says so.
func TestBoardIsOnLoopback(t *testing.T) {
	for name, c := range map[string]struct {
		http  string
		board bool
		line  string
		found bool
	}{
		"on loopback":     {"127.0.0.1:0", true, "  board   http://127.0.0.1:", true},
		"turned off":      {"127.0.0.1:0", false, "", false},
		"beyond loopback": {"0.0.0.0:0", true, "  board   not served: --http 0.0.0.0:0 is beyond loopback", false},
		"both":            {"0.0.0.0:0", false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(&Program{})
			a.http, a.board, a.prefix = c.http, c.board, "hf"
			h, err := health.Listen(t.Context(), a.http, version)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}()
			srv, err := embed.Start(t.Context(), embed.Config{Dir: t.TempDir(), WebsocketOrigins: a.boardOrigins(h)})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Shutdown()
			if err := a.mountBoard(h, srv, nil); err != nil {
				t.Fatal(err)
			}
			line := a.boardLine()
			if !strings.HasPrefix(line, c.line) || (line == "") != (c.line == "") || strings.Count(line, "\n") > 1 {
				t.Errorf("says %q, want %q", line, c.line)
			}
			if (srv.WebsocketAddr() != "") != c.found || (a.boardURL != "") != c.found {
				t.Errorf("websockets at %q, board at %q", srv.WebsocketAddr(), a.boardURL)
			}
		})
	}
}

// A ready program serves the page and checks the Host of each path.
func TestUpServesTheBoard(t *testing.T) {
	a := newApp(&Program{Stdout: new(strings.Builder), Stderr: new(strings.Builder)})
	up := upCommand(a)
	for name, value := range map[string]string{"data": t.TempDir(), "listen": "127.0.0.1:0", "http": "127.0.0.1:0",
		"log-level": "error"} {
		if err := up.Flags().Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.while(t.Context(), func(_ context.Context, note health.Note) error {
		for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
			for _, path := range []string{"/", "/cell.json", "/metrics", "/healthz"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, note.HTTP+path, http.NoBody)
				if err != nil {
					return err
				}
				req.Host = host
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				if err := resp.Body.Close(); err != nil || resp.StatusCode != want {
					t.Errorf("%s for %q: %s (%v), want %d", path, host, resp.Status, err, want)
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
