package program

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/test/child"
)

// Process is a running holdfast.
type Process struct {
	*child.Process
	NATS, HTTP string // where it listens, from its ready file
}

// Run runs a target of holdfast with this environment until the test ends, and returns when it is ready. It ends with
// this process. If the test fails, it prints the log.
func Run(t testing.TB, binary string, env []string, args ...string) *Process {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	cmd := exec.Command(binary, append(args, "--ready-file", ready)...)
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), env...), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c, err := child.Run("holdfast "+args[0], filepath.Join(dir, "log"), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			t.Logf("the log of holdfast %v:\n%s", args, c.Tail())
		}
	})
	p := &Process{Process: c}
	natstest.Until(t, "holdfast "+args[0]+" to be ready", func() bool {
		if err := c.Fallen(); err != nil {
			t.Fatal(err)
		}
		var note struct {
			NATS, HTTP string
			PID        int
		}
		body, err := os.ReadFile(ready)
		if err != nil || json.Unmarshal(body, &note) != nil {
			return false
		}
		if note.PID != c.PID() {
			t.Fatalf("the ready file of process %d: %s", c.PID(), body)
		}
		p.NATS, p.HTTP = note.NATS, note.HTTP
		return true
	})
	return p
}
