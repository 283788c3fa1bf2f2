package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Note is the content of a ready file: where a process that is ready can be found.
type Note struct {
	NATS string `json:"nats"`
	HTTP string `json:"http"`
	PID  int    `json:"pid"`
}

const noteMode = 0o644

// Write makes the file as a whole or not at all, so that whoever waits for it never reads half of it. Nothing is written
// without a path.
func (n Note) Write(path string) error {
	if path == "" {
		return nil
	}
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("health: ready file %s: %w", path, err)
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), n.PID))
	if err := os.WriteFile(temp, append(body, '\n'), noteMode); err != nil {
		return fmt.Errorf("health: ready file: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("health: ready file: %w", err)
	}
	return nil
}

// RemoveNote takes a ready file away: nothing is ready any more, or yet. There need not be one.
func RemoveNote(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("health: ready file: %w", err)
	}
	return nil
}

// RemoveStaleNote removes the ready file of a process that was killed. The file of a process that lives stays: it may be
// the one that has the data directory. What cannot be read stays, too, until [RemoveNote].
func RemoveStaleNote(path string) error {
	if path == "" {
		return nil
	}
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("health: ready file: %w", err)
	}
	var n Note
	if err := json.Unmarshal(body, &n); err != nil || n.PID <= 0 {
		return nil
	}
	if n.PID != os.Getpid() && alive(n.PID) { // in a container every process has the number of the one before
		return nil
	}
	return RemoveNote(path)
}

// alive is false only if there certainly is no such process.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
