package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
