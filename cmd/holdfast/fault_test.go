package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
)

// TestTextWithoutPackageNames: the text of an error has no names of packages, at its beginning and at that of each
// cause.
func TestTextWithoutPackageNames(t *testing.T) {
	for text, want := range map[string]string{
		"harness: session x: nats: not found: read it":     "session x: not found: read it",
		"nats: broker unreachable: read: nats: timeout":    "broker unreachable: read: timeout",
		"policy.resume: malformed: json: \"x\": want auto": "policy.resume: \"x\": want auto",
		"nats: one\nharness: two":                          "one\ntwo",
		"the nats: not a prefix":                           "the nats: not a prefix",
		"no such session: x; `up` lists it (404)":          "no such session: x; `up` lists it (404)",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestOwnTimeLimit: the time limit of a command is no fault of a broker that is connected, and the exit code is the one
// of an error that a later attempt may help.
func TestOwnTimeLimit(t *testing.T) {
	a := newApp(&Program{})
	a.timeout = 4 * time.Second
	late := fmt.Errorf("show: %w: read x: %w", bus.ErrUnreachable, context.DeadlineExceeded)
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
