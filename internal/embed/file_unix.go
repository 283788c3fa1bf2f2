//go:build unix

package embed

import (
	"errors"
	"os"
	"syscall"
)

// LockAlone locks a file, and reports whether this was possible: no other process has a lock on it. The operating
// system ends the lock with the process.
func LockAlone(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// syncPath syncs a file, or the entries of a directory.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
