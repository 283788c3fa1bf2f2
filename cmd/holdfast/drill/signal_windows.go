package drill

import "syscall"

// Windows has no signals to suspend a process: the act that needs them is left out.
const (
	canSuspend     = false
	suspendProcess = syscall.Signal(0x13)
	resumeProcess  = syscall.Signal(0x12)
)

// leave asks the process to leave, by the end of its input.
func (c *child) leave(why string) error {
	c.d.report(c.act, whoDrill, "the end of its input to process %d, %s", c.cmd.Process.Pid, why)
	return c.in.Close()
}
