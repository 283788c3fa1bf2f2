package health

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A script that waits for the ready file reads it whole or not at all, and does not find the file of a process that has
// ended.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	path, want := filepath.Join(dir, "ready.json"), Note{NATS: "nats://n", HTTP: "http://h", PID: 7}
	if err := RemoveNote(path); err != nil {
		t.Errorf("removed before it was there: %v", err)
	}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(path)
	var got Note
	if err := errors.Join(err, json.Unmarshal(body, &got)); err != nil || got != want {
		t.Errorf("%s: %+v, %v", body, got, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v beside it, %v", files, err)
	}
	if err := errors.Join(RemoveNote(path), RemoveNote(path), RemoveNote(""), want.Write("")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if err := want.Write(filepath.Join(dir, "nowhere", "ready.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into a directory that is a file: %v", err)
	}
}
