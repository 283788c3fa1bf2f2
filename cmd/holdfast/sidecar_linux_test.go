package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestSidecarOfADeadAgent: a sidecar ends with the process that started it, also if another process, here this one,
// holds its standard input open.
func TestSidecarOfADeadAgent(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	in, toSidecar, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	agent := exec.CommandContext(ctx, "sh", "-c", "holdfast sidecar <&3 3<&- & wait")
	agent.ExtraFiles = []*os.File{in}
	agent.Env = append(os.Environ(), "HOLDFAST_NATS="+s.URL())
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = toSidecar.Close() }) // the sidecar ends at the latest by it
	_ = in.Close()
	if _, err := io.WriteString(toSidecar,
		`{"jsonrpc":"2.0","id":1,"method":"connect","params":{"id":"orphan"}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	replies := bufio.NewReader(out)
	if line, err := replies.ReadString('\n'); err != nil {
		t.Fatalf("connect: %q, %v", line, err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, replies); ended <- err }()
	select {
	case err := <-ended: // the last process that writes there has ended
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the sidecar lives without its agent")
	}
	_ = agent.Wait() // it was killed
}
