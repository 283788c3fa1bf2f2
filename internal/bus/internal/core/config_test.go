package core

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/priority"
)

// TestConsumerKey: a file that is missing means no key, with one line of log; a file that cannot be used is refused,
// and the error does not print what it has.
func TestConsumerKey(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, short := strings.Repeat("k", consumerKeyBytesMin), strings.Repeat("s", consumerKeyBytesMin-1)
	for name, c := range map[string]struct {
		path, key string
		logged    bool
		err       error
	}{
		"none configured": {},
		"missing":         {path: filepath.Join(dir, "none"), logged: true},
		"a folder":        {path: dir, err: ErrForbidden},
		"too short":       {path: file("short", short+"\n\n"), err: ErrForbidden},
		"empty":           {path: file("empty", ""), err: ErrForbidden},
		"good":            {path: file("good", " "+good+"\n"), key: good},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			key, err := consumerKey(Config{ConsumerKeyFile: c.path, Log: zerolog.New(&logged)})
			if string(key) != c.key || !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("key %q, %v, want %q, %v", key, err, c.key, c.err)
			}
			if (logged.Len() > 0) != c.logged {
				t.Errorf("logged: %q", logged.String())
			}
			if err != nil && strings.Contains(err.Error(), short) {
				t.Errorf("the error has the key: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	// no broker is reached
	cancel()
	c, err := Open(ctx, Config{URL: "nats://127.0.0.1:1", ConsumerKeyFile: dir, Log: zerolog.Nop()})
	if !errors.Is(err, ErrForbidden) || !errors.As(err, new(*fs.PathError)) {
		t.Errorf("open: %v, %v, want the error of reading the file", c, err)
	}
}

// prioritized is an embedded server with a gate.
type prioritized struct{ gate *priority.Gate }

func (prioritized) InProcessConn() (net.Conn, error) { return nil, errors.New("not started") }

func (p prioritized) Priority() *priority.Gate { return p.gate }

// TestGateOf: connections within the process of a broker share its gate. Others have their own.
func TestGateOf(t *testing.T) {
	server := prioritized{gate: new(priority.Gate)}
	if got := gateOf(Config{Server: server}); got != server.gate {
		t.Error("not the gate of the broker's process")
	}
	if one, other := gateOf(Config{}), gateOf(Config{}); one == nil || one == other {
		t.Error("two connections of other processes share a gate")
	}
}
