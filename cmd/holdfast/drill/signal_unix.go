//go:build unix

package drill

import "syscall"

// Signals that suspend a process and resume it.
const (
	canSuspend     = true
	suspendProcess = syscall.SIGSTOP
	resumeProcess  = syscall.SIGCONT
)

// leave asks the process to leave.
func (c *child) leave(why string) error { return c.signal(syscall.SIGTERM, why) }
