package embed

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, cfg Config) (*Server, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := Start(ctx, cfg)
	if err == nil {
		t.Cleanup(s.Shutdown)
	}
	return s, err
}

func mustStart(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := start(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStartListensWhereItReports(t *testing.T) {
	s := mustStart(
		t,
		Config{Dir: filepath.Join(t.TempDir(), "made", "for", "it"), Listen: "127.0.0.1:0", SyncAlways: true},
	)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatalf("dial %s: %v", s.URL(), err)
	}
	defer func() { _ = conn.Close() }()
	greeting := make([]byte, 5)
	if _, err := conn.Read(greeting); err != nil || string(greeting) != "INFO " {
		t.Fatalf("greeted with %q, %v", greeting, err)
	}
}

func TestStartWithoutASocket(t *testing.T) {
	s := mustStart(t, Config{Dir: t.TempDir()})
	if s.URL() != "" {
		t.Errorf("URL = %q, want none", s.URL())
	}
	conn, err := s.InProcessConn()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	greeting := make([]byte, 5)
	if _, err := conn.Read(greeting); err != nil || string(greeting) != "INFO " {
		t.Fatalf("greeted with %q, %v", greeting, err)
	}
}

func TestSecondServerOnTheSameDataIsRefused(t *testing.T) {
	dir := t.TempDir()
	first := mustStart(t, Config{Dir: dir})
	_, err := start(t, Config{Dir: dir})
	if !errors.Is(err, ErrDirInUse) || !strings.Contains(err.Error(), dir) ||
		!strings.Contains(err.Error(), "process ") {
		t.Fatalf("second start: %v, want ErrDirInUse naming directory and process", err)
	}
	first.Shutdown()
	select {
	case <-first.Done():
	default:
		t.Error("Done is open after Shutdown")
	}
	mustStart(t, Config{Dir: dir})
}

func TestForeignDirectoriesAreRefusedUnchanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	full, broken, newer := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(full, "thesis.tex"), "x")
	write(t, filepath.Join(broken, markerFile), "{")
	write(t, filepath.Join(newer, markerFile), `{"layout":2}`)
	for _, c := range []struct {
		name, dir string
		want      error
		text      string
	}{
		{"a file", file, ErrNotOurs, "is a file"},
		{"other files", full, ErrNotOurs, "thesis.tex"},
		{"a broken marker", broken, ErrNotOurs, markerFile},
		{"a later version", newer, ErrNewerData, "upgrade"},
		{"no directory given", "", ErrNotOurs, "no data directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := os.ReadDir(c.dir)
			_, err := start(t, Config{Dir: c.dir})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("Start = %v, want %v saying %q", err, c.want, c.text)
			}
			if after, _ := os.ReadDir(c.dir); len(after) != len(before) {
				t.Errorf("%d files became %d", len(before), len(after))
			}
		})
	}
}

func TestDirectoriesThatAreAsGoodAsEmpty(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, lockFile), "")
	write(t, filepath.Join(dir, markerTemp), "{")
	if err := os.Mkdir(filepath.Join(dir, volumeFile), 0o700); err != nil {
		t.Fatal(err)
	}
	mustStart(t, Config{Dir: dir}).Shutdown()
	body, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err != nil || strings.TrimSpace(string(body)) != `{"layout":1}` {
		t.Fatalf("marker = %q, %v", body, err)
	}
	mustStart(t, Config{Dir: dir})
}

// TestQueuesOfTheAPIAreBounded: a configuration file may set other limits.
func TestQueuesOfTheAPIAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nats.conf")
	limits := []byte("jetstream { request_queue_limit: 7, info_queue_limit: 8 }")
	if err := os.WriteFile(file, limits, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file           string
		requests, info int64
	}{"default": {"", 1_024, 1_024}, "of a file": {file, 7, 8}} {
		o, err := options(Config{Dir: t.TempDir(), File: c.file})
		if err != nil {
			t.Fatal(err)
		}
		if r, i := o.JetStreamRequestQueueLimit, o.JetStreamInfoQueueLimit; r != c.requests || i != c.info {
			t.Errorf("%s: %d requests and %d questions, want %d and %d", name, r, i, c.requests, c.info)
		}
	}
}

func TestPortInUseIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	dir := t.TempDir()
	_, err = start(t, Config{Dir: dir, Listen: l.Addr().String()})
	if !errors.Is(err, ErrPortInUse) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Fatalf("Start = %v, want ErrPortInUse naming %s", err, l.Addr())
	}
	routes := &Cluster{Name: "c", Listen: l.Addr().String(), Routes: []string{"nats://" + l.Addr().String()}}
	_, err = start(t, Config{Dir: dir, Listen: "127.0.0.1:0", Name: "n", Cluster: routes})
	if !errors.Is(err, ErrPortInUse) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Fatalf("Start = %v, want ErrPortInUse naming %s", err, l.Addr())
	}
	// the failed start has left the directory free
	mustStart(t, Config{Dir: dir, Listen: "127.0.0.1:0"})
}

func TestWhatTheServerWouldDieOfIsAnError(t *testing.T) {
	dir := t.TempDir()
	mustStart(t, Config{Dir: dir}).Shutdown()
	write(t, filepath.Join(dir, "jetstream"), "in the way")
	_, err := start(t, Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "JetStream") {
		t.Fatalf("Start = %v, want what nats-server says", err)
	}
}

func TestListenAddressesThatAreNone(t *testing.T) {
	for _, addr := range []string{"4222", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"} {
		if _, err := start(t, Config{Dir: t.TempDir(), Listen: addr}); err == nil ||
			!strings.Contains(err.Error(), addr) {
			t.Errorf("Listen %q: %v, want an error that names it", addr, err)
		}
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := Start(ctx, Config{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("Start = %v, want context.Canceled", err)
	}
	mustStart(t, Config{Dir: dir})
}

func write(t *testing.T, path, body string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReachable: a server that listens on all addresses is reached on loopback.
func TestReachable(t *testing.T) {
	for at, want := range map[string]string{"127.0.0.1:1": "127.0.0.1:1", "0.0.0.0:1": "127.0.0.1:1",
		"[::]:1": "127.0.0.1:1", "[::1]:1": "[::1]:1", "192.0.2.1:1": "192.0.2.1:1", "host:1": "host:1"} {
		if got := reachable(at); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
