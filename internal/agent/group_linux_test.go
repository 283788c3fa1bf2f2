package agent

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestGroup: a command that the agent started ends with the agent, whether this package kills the agent, or another
// process does.
func TestGroup(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	t.Setenv("HOLDFAST_TEST_ADDRESS", listener.Addr().String())
	for name, kill := range map[string]func(*Process){
		"here": (*Process).Kill,
		"elsewhere": func(p *Process) {
			if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	} {
		p := begin(t, "parent", nil)
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		kill(p)
		if got := ended(t, p); got != "signal: killed" {
			t.Errorf("%s: %q", name, got)
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the command of the agent lives", name)
		}
		_ = conn.Close()
	}
}
