package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// childArguments make the test's own program the agent, so that it can be killed as a process is.
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

// child runs the agent as a process of its own, until kill, which is SIGKILL.
func (w *world) child() (kill func()) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childArguments+"="+strings.Join([]string{"--nats", w.cfg.nats, "--endpoint", w.cfg.endpoint, "--session", demo, "--model", w.cfg.model,
		"--dir", w.cfg.dir, "--root", w.cfg.root, "--ttl", w.cfg.ttl.String(), "--context-limit", fmt.Sprint(w.cfg.contextLimit)}, "\n"))
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
