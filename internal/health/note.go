package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Note is the content of a ready file: the address of a ready process.
type Note struct {
	NATS string `json:"nats"`
	HTTP string `json:"http"`
	PID  int    `json:"pid"`
}

const noteMode = 0o644

// Write writes the file atomically, so that a reader never sees a part of it. It does nothing if path is empty.
func (n Note) Write(path string) error {
	if path == "" {
		return nil
	}
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("ready file %s: %w", path, err)
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), n.PID))
	if err := os.WriteFile(temp, append(body, '\n'), noteMode); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}

// RemoveNote removes a ready file. A missing file is no error.
func RemoveNote(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}

// RemoveStaleNote removes the ready file of a process that was killed. It keeps the file of a live process, which may
// use the data directory. It also keeps a file that it cannot read, until [RemoveNote].
func RemoveStaleNote(path string) error {
	if path == "" {
		return nil
	}
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	var n Note
	if err := json.Unmarshal(body, &n); err != nil || n.PID <= 0 {
		return nil
	}
	// in a container each process has the same number as its predecessor
	if n.PID != os.Getpid() && alive(n.PID) {
		return nil
	}
	return RemoveNote(path)
}

// alive returns false only if there is certainly no such process.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
