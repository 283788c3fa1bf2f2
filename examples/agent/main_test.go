package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// childArguments make the test binary run the agent, so that a test can kill its process.
const childArguments = "HOLDFAST_EXAMPLE_AGENT"

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(childArguments); ok {
		if err := program(context.Background(), strings.Split(args, "\n"), os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child runs the agent as a separate process until kill, which sends SIGKILL.
func (w *world) child() (kill func()) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childArguments+"="+strings.Join([]string{"--nats", w.cfg.nats, "--endpoint",
		w.cfg.endpoint, "--session", demo, "--model", w.cfg.model,
		"--dir", w.cfg.dir, "--root", w.cfg.root, "--ttl", w.cfg.ttl.String(), "--context-limit",
		fmt.Sprint(w.cfg.contextLimit), w.cfg.message}, "\n"))
	cmd.Stdout, cmd.Stderr = w.t.Output(), w.t.Output()
	w.ok(cmd.Start())
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		if err := cmd.Process.Kill(); err != nil {
			w.t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			w.t.Error("the agent ended by itself before it was killed")
		}
	}
	w.t.Cleanup(kill)
	return kill
}

// The flags set the configuration. Invalid flags are reported.
func TestFlags(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret")
	cfg, err := flags([]string{"--session", "s", "--model", "m", "--context-limit", "8000", "what", "now?"}, io.Discard)
	if err != nil || cfg.session != "s" || cfg.model != "m" || cfg.contextLimit != 8000 || cfg.message != "what now?" ||
		cfg.key != "secret" || cfg.harness != "agent" {
		t.Errorf("%+v, %v", cfg, err)
	}
	var side strings.Builder
	if err := program(t.Context(), []string{"--help"}, io.Discard, &side); err != nil ||
		!strings.Contains(side.String(), "-context-limit") || strings.Contains(side.String(), "secret") {
		t.Errorf("%v, %s", err, &side)
	}
	if err := program(t.Context(), []string{"--no-such"}, io.Discard, io.Discard); err == nil {
		t.Error("an unknown flag is accepted")
	}
	t.Setenv("OPENAI_API_KEY", "")
	if _, err := flags([]string{"hello"}, io.Discard); err == nil || !strings.Contains(err.Error(), "-script") {
		t.Errorf("without a key: %v", err)
	}
	for _, args := range [][]string{{"-script"}, {"-endpoint", "http://127.0.0.1:1/v1"}} {
		if _, err := flags(args, io.Discard); err != nil {
			t.Errorf("%q without a key: %v", args, err)
		}
	}
	t.Setenv("OPENAI_API_KEY", "secret")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := program(ctx, []string{"--nats", "nats://127.0.0.1:1"}, io.Discard, io.Discard); !errors.Is(err,
		harness.ErrUnreachable) {
		t.Errorf("no broker: %v", err)
	}
}
