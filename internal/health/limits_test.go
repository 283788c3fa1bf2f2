package health

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// limitsPatience is longer than each limit of the server.
const limitsPatience = 30 * time.Second

// send opens a connection to the server and sends the text, with the server's address for HOST.
func send(t *testing.T, s *Server, text string) net.Conn {
	t.Helper()
	host := strings.TrimPrefix(s.URL(), "http://")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(limitsPatience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, strings.Replace(text, "HOST", host, 1)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConnectionsThatDoNothingEnd: an idle connection, and one whose request has a body that does not arrive.
func TestConnectionsThatDoNothingEnd(t *testing.T) {
	for name, text := range map[string]string{
		"idle":        "GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n",
		"half a body": "POST /body HTTP/1.1\r\nHost: HOST\r\nContent-Length: 10\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			// it mostly waits
			t.Parallel()
			s := start(t)
			s.Handle("POST /body", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
			}))
			if _, err := io.ReadAll(send(t, s, text)); err != nil {
				t.Errorf("the connection is still open: %v", err)
			}
		})
	}
}

// TestAClientThatDoesNotRead ends the handler that writes to it.
func TestAClientThatDoesNotRead(t *testing.T) {
	// it mostly waits
	t.Parallel()
	s, ended := start(t), make(chan struct{})
	s.Handle("GET /endless", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for part := make([]byte, 1<<20); ; {
			if _, err := w.Write(part); err != nil {
				close(ended)
				return
			}
		}
	}))
	send(t, s, "GET /endless HTTP/1.1\r\nHost: HOST\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(limitsPatience):
		t.Error("the handler still writes")
	}
}

// TestHeadersAreBounded: a header of more bytes than the limit is refused.
func TestHeadersAreBounded(t *testing.T) {
	s := start(t)
	c := send(t, s, fmt.Sprintf("GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: %s\r\n\r\n",
		strings.Repeat("x", 2*headerBytesMax)))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d, want %d", resp.StatusCode, http.StatusRequestHeaderFieldsTooLarge)
	}
}
