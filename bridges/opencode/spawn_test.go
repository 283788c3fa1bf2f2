//go:build unix

package opencode

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestServerIsStartedAgain: a server that ends is started again, also if it cannot be started for a while. The last one
// ends with the context.
func TestServerIsStartedAgain(t *testing.T) {
	// it waits for processes
	t.Parallel()
	dir := t.TempDir()
	program := dir + "/server"
	write := func(script string) {
		t.Helper()
		if err := os.WriteFile(program+".new", []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	write("echo began; rm -f $0; exit 7")
	lines := make(chan string, 100)
	log := &lockedLog{}
	s := &Server{Command: agent.Command{Path: program, Dir: dir}, first: time.Millisecond,
		Line: func(b []byte) { lines <- string(b) }, Log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	if got := <-lines; got != "began" {
		t.Errorf("the server says %s", got)
	}
	natstest.Until(t, "both reasons", func() bool { return log.has("exit status 7") && log.has("no such file") })
	write("echo again; exec sleep 600")
	if got := <-lines; got != "again" {
		t.Errorf("the server says %s", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServerCannotBeStarted: a command that does not exist is an error at once.
func TestServerCannotBeStarted(t *testing.T) {
	t.Parallel()
	s := &Server{Command: agent.Command{Path: t.TempDir() + "/none"}, Log: slog.New(slog.DiscardHandler)}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("the error is %v", err)
	}
}
