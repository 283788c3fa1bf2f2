package agent

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup starts a command in a process group of its own: an interrupt of the terminal does not reach it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills a process and those that it started.
func killGroup(p *os.Process) {
	// without it, the process alone ends
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid)).Run()
	_ = p.Kill()
}
