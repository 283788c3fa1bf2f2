package agent

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// killRest waits until a process has ended, and kills the rest of its group. The process is collected afterwards, so
// its id, which is that of the group, belongs to no other process.
func killRest(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	killGroup(cmd.Process)
}
