package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for an event.
const patience = 30 * time.Second

// TestMain plays an agent if the test runs itself.
func TestMain(m *testing.M) {
	if role := os.Getenv("HOLDFAST_TEST_ROLE"); role != "" {
		play(role)
		return
	}
	os.Exit(m.Run())
}

func play(role string) {
	in := bufio.NewScanner(os.Stdin)
	switch role {
	case "echo":
		// until its input ends
		for in.Scan() {
			fmt.Println(in.Text())
		}
		fmt.Fprintln(os.Stderr, "the end")
		fmt.Print("rest")
		os.Exit(7)
	case "parent":
		// starts a command, and waits
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stdout = append(os.Environ(), "HOLDFAST_TEST_ROLE=child"), os.Stdout
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		in.Scan()
	case "child":
		// lives until it is killed, which its connection shows
		conn, err := net.Dial("tcp", os.Getenv("HOLDFAST_TEST_ADDRESS"))
		if err != nil {
			panic(err)
		}
		_, _ = conn.Read(make([]byte, 1))
	case "long":
		_, _ = io.Copy(os.Stdout, io.LimitReader(zeros{}, LineBytesMax+readBytes))
		in.Scan()
	case "flood":
		for i := range 20_000 {
			fmt.Println(i)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func begin(t *testing.T, role string, stderr io.Writer) *Process {
	t.Helper()
	p, err := Start(Command{Path: os.Args[0], Env: append(os.Environ(), "HOLDFAST_TEST_ROLE="+role), Stderr: stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// next returns the next line of a process.
func next(t *testing.T, p *Process) (string, bool) {
	t.Helper()
	select {
	case line, ok := <-p.Lines():
		return string(line), ok
	case <-time.After(patience):
		t.Fatal("no line")
		return "", false
	}
}

func ended(t *testing.T, p *Process) string {
	t.Helper()
	select {
	case <-p.Done():
		return p.Exit()
	case <-time.After(patience):
		t.Fatal("the process does not end")
		return ""
	}
}

// TestProcess: lines go in and out, also a last one without its newline, standard error is passed on, and the exit
// status is the reason.
func TestProcess(t *testing.T) {
	var stderr bytes.Buffer
	p := begin(t, "echo", &stderr)
	lines := []string{"one", "", strings.Repeat("x", 1<<16-1)}
	for _, line := range lines {
		if err := p.Send([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	stopped := make(chan struct{})
	go func() {
		p.Stop()
		close(stopped)
	}()
	for i, want := range append(lines, "rest") {
		if got, ok := next(t, p); !ok || got != want {
			t.Errorf("line %d: %.20q, %t", i, got, ok)
		}
	}
	if line, ok := next(t, p); ok {
		t.Errorf("one more line: %.20q", line)
	}
	<-stopped
	if got := ended(t, p); got != "exit status 7" || stderr.String() != "the end\n" {
		t.Errorf("%q, %q", got, &stderr)
	}
	if err := p.Send([]byte("late")); err == nil {
		t.Error("a dead process got a line")
	}
	// has no effect
	p.Kill()
	if _, err := Start(Command{Path: "/nowhere/agent"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that does not exist: %v", err)
	}
}

// TestAllLinesOfTheDead: what a process wrote before it ended is read to its end, although the reader is slow.
func TestAllLinesOfTheDead(t *testing.T) {
	p := begin(t, "flood", nil)
	for i := range 20_000 {
		line, ok := next(t, p)
		if !ok || line != fmt.Sprint(i) {
			t.Fatalf("line %d: %q", i, line)
		}
	}
	if got := ended(t, p); got != "exit status 0" {
		t.Error(got)
	}
}

// TestAnOutputWithoutAnEnd: a command that does not end with the agent may write to the agent's output without end.
// After the end of the agent only so much of it is read as the agent itself can have written.
func TestAnOutputWithoutAnEnd(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	const before = 3 * tailBytesMax
	if err := out.Truncate(before + 3*tailBytesMax); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	in := &tail{file: out, exited: exited, left: tailBytesMax}
	if n, err := io.CopyN(io.Discard, in, before); err != nil {
		t.Fatalf("of an agent that lives: %d bytes, %v", n, err)
	}
	close(exited)
	if n, err := io.Copy(io.Discard, in); n < tailBytesMax || n > tailBytesMax+readBytes || err != nil {
		t.Errorf("of an agent that has ended: %d bytes of %d, %v", n, tailBytesMax, err)
	}
}

// TestALineThatIsTooLong: the agent ends, and the reason says why.
func TestALineThatIsTooLong(t *testing.T) {
	p := begin(t, "long", nil)
	if line, ok := next(t, p); ok {
		t.Errorf("a line of %d bytes passed", len(line))
	}
	if got := ended(t, p); !strings.Contains(got, "64 MiB") {
		t.Error(got)
	}
}
