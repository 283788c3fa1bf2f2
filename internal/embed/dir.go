package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// What a data directory holds beside the server's own files.
const (
	markerFile    = "holdfast.json"
	markerTemp    = "holdfast.json.tmp"
	lockFile      = "holdfast.lock"
	volumeFile    = "lost+found" // what a new volume is not empty of
	layoutVersion = 1
	dirMode       = 0o700
	fileMode      = 0o600
)

// marker is the content of the marker file.
type marker struct {
	Layout int `json:"layout"` // of the directory; a greater one than ours is refused
}

// lock is the hold of one process on a data directory. The system ends it with the process.
type lock struct{ f *os.File }

// openDir makes, checks and locks a data directory.
func openDir(dir string) (*lock, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("embed: data directory %s: %w", dir, err)
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

// makeDir makes a directory with the parents that it lacks. Each new entry is synced into its parent, so that a power failure
// cannot take the directory away with what was synced inside it.
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

// syncPath puts a file's content, or a directory's list of names, on the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// checkDir is whether we may use the directory: there is none, it is empty, or it is ours. It changes nothing.
func checkDir(dir string) error {
	files, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s is a file", ErrNotOurs, dir)
	case err != nil:
		return fmt.Errorf("embed: data directory %s: %w", dir, err)
	}
	body, err := os.ReadFile(filepath.Join(dir, markerFile))
	if err == nil {
		return checkMarker(dir, body)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("embed: data directory %s: %w", dir, err)
	}
	for _, f := range files {
		switch f.Name() {
		case lockFile, markerTemp, volumeFile: // a start that was killed right after it began, a new volume
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

// mark makes the directory ours. After a crash or a power failure the marker is complete, or the directory has none and holds
// nothing of the server's: the marker and its name are on the disk before the server writes its first file. A marker that an
// earlier version wrote without a sync is synced as well.
func mark(dir string) error {
	if err := writeMarker(dir); err != nil {
		return fmt.Errorf("embed: mark %s: %w", dir, err)
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

// takeLock fails with [ErrDirInUse], naming the process that has the directory.
func takeLock(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, fmt.Errorf("embed: lock %s: %w", dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		holder, readErr := os.ReadFile(f.Name())
		closeErr := f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("embed: lock %s: %w", dir, err), closeErr)
		}
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
		return nil, errors.Join(fmt.Errorf("embed: lock %s: %w", dir, err), l.release())
	}
	return l, nil
}

// sign writes who holds the lock, for the message that others get.
func (l *lock) sign() error {
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err := l.f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// release ends the hold. The file stays: removing it could take the lock from under the next holder.
func (l *lock) release() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("embed: unlock: %w", err)
	}
	return nil
}
