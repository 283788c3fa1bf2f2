package sidecar_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/sidecar"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// socketPath returns a path that is short enough for a socket.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf") //nolint:usetesting // its path has the name of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "a.sock")
}

// talks sends lines over a connection, and returns the reply to each.
func talks(t *testing.T, c net.Conn, lines ...string) (replies []message) {
	t.Helper()
	r := bufio.NewReader(c)
	for _, line := range lines {
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			t.Fatal(err)
		}
		body, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatal(err)
		}
		replies = append(replies, m)
	}
	return replies
}

// TestSocket: two agents on one socket are two processes. The death of one does not concern the other.
func TestSocket(t *testing.T) {
	w := newWorld(t)
	path := socketPath(t)
	s, err := sidecar.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- s.Serve(ctx, sidecar.Config{Harness: harness.Config{URL: w.server.URL()}, ConnectTimeout: patience})
	}()
	dial := func(id string) net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range talks(t, c, `{"jsonrpc":"2.0","id":1,"method":"connect","params":{"id":"`+id+`"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"open","params":{"session":"shop"}}`) {
			if m.Error != nil {
				t.Fatalf("%+v", m.Error)
			}
		}
		return c
	}
	first, second := dial("other"), dial(shop.Harness)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if m := talks(t, second, `{"jsonrpc":"2.0","id":3,"method":"ready"}`); m[0].Error != nil {
		t.Errorf("%+v", m[0].Error)
	}
	stop()
	if err := take(t, "the end", ended); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(second); err != nil {
		t.Errorf("the second agent reads %v, want the end of the stream", err)
	}
	if st := natstest.Session(t, w.bus, shop); st.Owned || st.Left != session.LeftReleased {
		t.Errorf("owned %t, left %q", st.Owned, st.Left)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

// TestListen: a socket that is served is not replaced, one of a dead sidecar is, and no other user can connect.
func TestListen(t *testing.T) {
	path := socketPath(t)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := sidecar.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := sidecar.Listen(path); !errors.Is(err, sidecar.ErrInUse) {
		t.Errorf("%v, want ErrInUse", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.Serve(ctx, sidecar.Config{}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sidecar.Listen(path); err == nil {
		t.Error("a file was replaced")
	}
	if body, err := os.ReadFile(path); err != nil || string(body) != "precious" {
		t.Errorf("%q, %v", body, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	// the file and the lock
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestLongPath: the longest path that the system takes for a socket is served, and a longer one is refused with how
// much it is too long. Nothing is left of it.
func TestLongPath(t *testing.T) {
	const most = len(syscall.RawSockaddrUnix{}.Path) - 1
	base := filepath.Dir(socketPath(t))
	for _, name := range []string{"s", "a-name-that-is-longer.sock"} {
		// of the folder, and of what is in it, after two separators
		room := most - len(base) - 2
		folder := filepath.Join(base, strings.Repeat("d", room-max(len(name), len(".s4294967295/s"))))
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := sidecar.Listen(filepath.Join(folder, name))
		if err != nil {
			t.Fatalf("the longest path: %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := s.Serve(ctx, sidecar.Config{}); err != nil {
			t.Error(err)
		}
		folder += "dd"
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if _, err := sidecar.Listen(path); err == nil || !strings.Contains(err.Error(), "2 bytes too long") ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%v, want that it is 2 bytes too long", err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	}
}
