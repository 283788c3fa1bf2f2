package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Files of a data directory beside those of the server.
const (
	markerFile    = "holdfast.json"
	markerTemp    = "holdfast.json.tmp"
	lockFile      = "holdfast.lock"
	volumeFile    = "lost+found" // a new volume contains it
	layoutVersion = 1
	dirMode       = 0o700
	fileMode      = 0o600
	holderMax     = 32 // bytes that are read of a lock file: a process id
)

// marker is the content of the marker file.
type marker struct {
	Layout int `json:"layout"` // of the directory; a greater one than layoutVersion is refused
}

// lock is a process's lock on a data directory. The operating system ends it with the process.
type lock struct{ f *os.File }

// openDir creates, checks and locks a data directory.
func openDir(dir string) (*lock, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	l, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	if err := mark(dir); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

// makeDir creates a directory and its missing parents. It syncs each new entry into its parent, so that a power failure
// cannot remove the directory with the synced data in it.
func makeDir(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var parents []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
			break
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := syncPath(parent); err != nil {
			return err
		}
	}
	return nil
}

// checkDir returns nil if the directory is missing, empty or marked as ours. It changes nothing.
func checkDir(dir string) error {
	files, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s is a file", ErrNotOurs, dir)
	case err != nil:
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	body, err := readRegular(filepath.Join(dir, markerFile))
	if err == nil || errors.Is(err, errForeign) {
		return checkMarker(dir, body)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	for _, f := range files {
		switch f.Name() {
		case lockFile, markerTemp, volumeFile:
			// of a start that was killed at once, or of a new volume
		default:
			return fmt.Errorf(
				"%w: %s holds %s and no %s: choose an empty directory",
				ErrNotOurs,
				dir,
				f.Name(),
				markerFile,
			)
		}
	}
	return nil
}

func checkMarker(dir string, body []byte) error {
	var m marker
	if err := json.Unmarshal(body, &m); err != nil || m.Layout < 1 {
		return fmt.Errorf(
			"%w: %s cannot be read as a marker; if the directory is of this program and the file was damaged, "+
				"write {\"layout\":1} into it",
			ErrNotOurs,
			filepath.Join(dir, markerFile),
		)
	}
	if m.Layout > layoutVersion {
		return fmt.Errorf(
			"%w: %s has layout %d, this program knows %d: upgrade this program",
			ErrNewerData,
			dir,
			m.Layout,
			layoutVersion,
		)
	}
	return nil
}

// mark marks the directory as ours. The marker and its name are on disk before the server writes its first file: after
// a crash or a power failure the marker is complete, or the directory has no files of the server. It also syncs a
// marker that an earlier version wrote without a sync.
func mark(dir string) error {
	if err := writeMarker(dir); err != nil {
		return fmt.Errorf("mark %s: %w", dir, err)
	}
	return nil
}

func writeMarker(dir string) error {
	path, temp := filepath.Join(dir, markerFile), filepath.Join(dir, markerTemp)
	if _, err := os.Stat(path); err == nil {
		return errors.Join(syncPath(path), syncPath(dir))
	}
	body, err := json.Marshal(marker{Layout: layoutVersion})
	if err != nil {
		return err
	}
	if err := os.WriteFile(temp, append(body, '\n'), fileMode); err != nil {
		return err
	}
	if err := syncPath(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncPath(dir)
}

// takeLock locks the directory. It fails with [ErrDirInUse], which names the process that holds the lock.
func takeLock(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	alone, err := LockAlone(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	if !alone {
		holder, readErr := io.ReadAll(io.LimitReader(f, holderMax))
		closeErr := f.Close()
		who := "another process"
		if pid := strings.TrimSpace(string(holder)); readErr == nil && pid != "" {
			who = "process " + pid
		}
		return nil, errors.Join(
			fmt.Errorf("%w: %s is used by %s: stop it, or use another directory", ErrDirInUse, dir, who),
			closeErr,
		)
	}
	l := &lock{f: f}
	if err := l.sign(); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), l.release())
	}
	return l, nil
}

// sign writes the holder of the lock into the file, for the error of other processes.
func (l *lock) sign() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release unlocks the directory. The file stays: removing it could release the lock of the next holder.
func (l *lock) release() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
