//go:build unix

package agent

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a process and its group. The process was not collected yet, so its id is its own.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
