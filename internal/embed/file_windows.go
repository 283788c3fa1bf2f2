package embed

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffsetHigh is the upper half of the offset of the locked byte. Windows refuses reads of locked bytes, and another
// process reads the holder's id at the start of the file.
const lockOffsetHigh = 1

// LockAlone locks a file, and reports whether this was possible: no other process has a lock on it. The operating
// system ends the lock with the process.
func LockAlone(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockOffsetHigh})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// syncPath syncs a file. Windows syncs a file only through a handle that may write, and has no sync of a directory: its
// file system keeps a journal of the entries.
func syncPath(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
