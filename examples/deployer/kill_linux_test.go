package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// startsMute starts the program with a full pipe in place of its output: it waits where it prints the result.
func (w *world) startsMute() (kill func()) {
	w.t.Helper()
	var ends [2]int
	w.ok(syscall.Pipe2(ends[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK))
	w.t.Cleanup(func() { w.ok(syscall.Close(ends[0])) })
	for err := error(nil); err == nil; {
		if _, err = syscall.Write(ends[1], []byte{'.'}); err != nil && !errors.Is(err, syscall.EAGAIN) {
			w.t.Fatal(err)
		}
	}
	w.ok(syscall.SetNonblock(ends[1], false))
	full := os.NewFile(uintptr(ends[1]), "full")
	cmd := w.command()
	cmd.Stderr = full
	kill = w.runs(cmd)
	w.ok(full.Close())
	return kill
}

// reachesTheCommand sends a message, and answers until the command runs.
func (w *world) reachesTheCommand() {
	w.t.Helper()
	w.until("the session", func(st *session.State) bool { return st.Opened() })
	w.deploy()
	w.answers("which-env", "env", "staging", "")
	w.answers("may-deploy", events.PermissionQuestion, "once", "")
	natstest.Until(w.t, "the command to run", func() bool { return w.ran() != "" })
}

// completes waits until the turn has completed, and checks what has become of it.
func (w *world) completes(at string) {
	w.t.Helper()
	w.wantOnce(w.until("the end", func(st *session.State) bool {
		return st.LastTurn != nil && st.Turn == nil && st.Pending.Turn == nil
	}), at)
}

// TestKilledBeforeTheResultIsStored: the command has run to its end, and its process dies before it can store that. The
// command does not run again.
func TestKilledBeforeTheResultIsStored(t *testing.T) {
	w := newWorld(t)
	kill := w.starts()
	w.reachesTheCommand()
	// it sees neither the end of the command nor its output
	w.ok(w.process.Signal(syscall.SIGSTOP))
	w.finish()
	natstest.Until(t, "the command to end", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "over"))
		return err == nil
	})
	kill()
	w.starts()
	w.answers("is-it-up", "up", "", "yes")
	w.completes("command")
}

// TestKilledAfterTheResultIsStored: the result of the command is stored, and its process dies before it ends the turn.
// The command does not run again, and nothing is asked.
func TestKilledAfterTheResultIsStored(t *testing.T) {
	w := newWorld(t)
	kill := w.startsMute()
	w.reachesTheCommand()
	w.finish()
	st := w.until("the result", func(st *session.State) bool { return st.Turn != nil && len(st.Tools) == 0 })
	if st.LastTurn != nil {
		t.Errorf("the turn has ended: %+v", st.LastTurn)
	}
	kill()
	w.starts()
	w.completes("result stored")
	out, err := os.ReadFile(filepath.Join(w.dir, "out"))
	if err != nil || strings.Count(string(out), "deployed") != 1 {
		t.Errorf("printed %q, %v: want the kept result once", out, err)
	}
}
