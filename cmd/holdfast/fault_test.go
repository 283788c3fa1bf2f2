package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
)

// TestPlain: the text of an error has no names of packages, at its beginning and at that of each cause.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"holdfast: session x: bus: not found: read it":       "session x: not found: read it",
		"bus: broker unreachable: bus: read: nats: timeout":  "broker unreachable: read: timeout",
		"policy.resume: events: malformed: \"x\": want auto": "policy.resume: \"x\": want auto",
		"embed: one\nembed: two":                             "one\ntwo",
		"the bus: not a prefix":                              "the bus: not a prefix",
		"404 no such session: x (`holdfast sessions --all` lists them)": "404 no such session: x (`holdfast sessions " +
			"--all` lists them)",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestEveryPackagePrefixIsKnown: each error of the repository that begins with the name of its package begins with one
// that a person does not see.
func TestEveryPackagePrefixIsKnown(t *testing.T) {
	begins := regexp.MustCompile(`(?:errors\.New|fmt\.Errorf)\("([a-z]+): `)
	root, found := os.DirFS("../.."), 0
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bench", "test", "node_modules", "examples"}, path):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		body, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		name := regexp.MustCompile(`(?m)^package ([a-z]+)`).FindSubmatch(body)
		for _, m := range begins.FindAllSubmatch(body, -1) {
			if prefix := string(m[1]); prefix == string(name[1]) {
				found++
				if !slices.Contains(packages, prefix) {
					t.Errorf("%s: errors begin with %q: add it to the list of packages", path, prefix)
				}
			}
		}
		return nil
	})
	if err != nil || found < 50 {
		t.Errorf("%d errors found, %v", found, err)
	}
}

// TestOwnTimeLimit: the time limit of a command is no fault of a broker that is connected, and the exit code is the one
// of an error that a later attempt may help.
func TestOwnTimeLimit(t *testing.T) {
	a := newApp(&Program{})
	a.timeout = 4 * time.Second
	late := fmt.Errorf("holdfast: show: %w: bus: read x: %w", bus.ErrUnreachable, context.DeadlineExceeded)
	err := a.explain(late, true)
	if want := "show: read x: no answer within 4s, the time limit of this command (--timeout)"; err.Error() != want ||
		exitCode(err) != exitUnreachable || a.advice(err) != "" {
		t.Errorf("%q, exit code %d, advice %q", err, exitCode(err), a.advice(err))
	}
	if err := a.explain(late, false); !errors.Is(err, late) || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("without a connection: %v", err)
	}
	if err := a.explain(embed.ErrDirInUse, true); !errors.Is(err, embed.ErrDirInUse) || err.Error() !=
		embed.ErrDirInUse.Error() {
		t.Errorf("another error: %v", err)
	}
}
