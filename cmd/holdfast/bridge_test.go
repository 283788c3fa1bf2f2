//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestBridgeSpawns: the bridge starts its server, and ends it when it ends itself. It ends if the server cannot be
// started.
func TestBridgeSpawns(t *testing.T) {
	dir := t.TempDir()
	run := func(ctx context.Context, args ...string) (int, string) {
		var out bytes.Buffer
		p := &Program{Args: append([]string{"bridge", "opencode", "--url", "http://127.0.0.1:1"}, args...),
			Stdout: &out, Stderr: &out}
		return p.Run(ctx), out.String()
	}
	if code, said := run(t.Context(), "--spawn", "--", dir+"/none"); code != exitFailed ||
		!strings.Contains(said, "none") {
		t.Errorf("exit code %d: %s", code, said)
	}
	for _, args := range [][]string{{"--spawn"}, {"--spawn", "x"}, {"--", "x"}} {
		if code, said := run(t.Context(), args...); code != exitUsage {
			t.Errorf("%q: exit code %d: %s", args, code, said)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan string, 1)
	go func() {
		script := "echo the server speaks; touch " + dir + "/began; exec sleep 600"
		_, said := run(ctx, "--spawn", "--", "/bin/sh", "-c", script)
		ended <- said
	}()
	natstest.Until(t, "the server runs", func() bool {
		_, err := os.Stat(dir + "/began")
		return !errors.Is(err, os.ErrNotExist)
	})
	cancel()
	if said := <-ended; !strings.Contains(said, "the server speaks") {
		t.Errorf("said: %s", said)
	}
}
