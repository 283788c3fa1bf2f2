package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/replay"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestTablesOfTheTour: they fit a terminal of 80 columns, and what is no terminal is not cut.
func TestTablesOfTheTour(t *testing.T) {
	seen := "not in time: orphaned: waiting, owner #1071 e4, 1 question"
	res := drill.Result{Verdicts: []drill.Verdict{{Promise: "the answer reaches the new one",
		Expected: "staging, ≤ 2s", Seen: seen, TookMS: 3230, OK: true, Main: true}}}
	played := &replay.Played{OK: true, Facts: 1, Left: []replay.Leftover{{Entity: "prompt",
		ID: "per_1f8797a88001AZ0F7MuzUyOW6t-and-the-rest", By: "reconciler", AfterMS: 2930,
		Became: drill.Became{Name: "permission", Outcome: "interrupted", Reason: "owner-lost"}}}}
	tables := func(width int) string {
		st := terminal.Style{Width: width}
		return verdicts(res, nil, true, st) + played.LeftOpen(st)
	}
	for l := range strings.Lines(tables(80)) {
		if w := terminal.Width(strings.TrimSpace(l)); w > 80 {
			t.Errorf("%d cells on a terminal of 80: %s", w, l)
		}
	}
	for _, verbose := range []bool{false, true} {
		var pipe bytes.Buffer
		a := newApp(&Program{Stdout: &pipe})
		if err := a.printVerdicts(res, nil, true); err != nil {
			t.Fatal(err)
		}
		pipe.WriteString((&tour{app: a, verbose: verbose}).played(played))
		if text := pipe.String(); !strings.Contains(text, seen) || !strings.Contains(text, played.Left[0].ID) {
			t.Errorf("cut without a terminal, with -v %t:\n%s", verbose, text)
		}
	}
}

// TestNextCommandsFit: the commands to type next have the name with which the program was called, and fit 80 columns,
// both at the start of the cell and at the end of the tour.
func TestNextCommandsFit(t *testing.T) {
	note := health.Note{NATS: "nats://127.0.0.1:65535", HTTP: "http://127.0.0.1:65535", PID: 4194304}
	for name, want := range map[string]string{"./bin/holdfast": "./bin/holdfast", "holdfast": "holdfast",
		"": "holdfast"} {
		var out bytes.Buffer
		a := newApp(&Program{Name: name, Stdout: &out})
		if err := a.ready(note, "holdfast-data"); err != nil {
			t.Fatal(err)
		}
		if err := (&tour{app: a, note: note}).next(events.Ref{Harness: "painter-2", Session: wallSession}); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for l := range strings.Lines(text) {
			if w := terminal.Width(strings.TrimRight(l, "\n")); w > 80 {
				t.Errorf("%q: %d cells: %s", name, w, l)
			}
		}
		for _, line := range []string{"  next    export HOLDFAST_NATS=" + note.NATS + "\n",
			"          " + want + " watch\n", "          " + want + " doctor\n",
			"\n  " + want + " answer painter-2/wall colour-1 blue "} {
			if !strings.Contains(text, line) {
				t.Errorf("%q: no %q in\n%s", name, line, text)
			}
		}
	}
}

// TestTourTakesAnotherPort: a tour whose default ports are in use takes others, and says so. Ports that a person chose
// stay an error.
func TestTourTakesAnotherPort(t *testing.T) {
	taken := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.Addr().String()
	}
	var stderr bytes.Buffer
	prepare := func(listen, http string) *app {
		stderr.Reset()
		a := newApp(&Program{Stdout: &bytes.Buffer{}, Stderr: &stderr})
		// the defaults of all flags
		tryCommand(a)
		a.data, a.listen, a.http, a.logLevel = t.TempDir(), listen, http, "error"
		return a
	}
	listen, http := taken(), taken()
	var got health.Note
	err := prepare(listen, http).whileAt(t.Context(), anyPort{listen: true, http: true},
		func(_ context.Context, note health.Note) error { got = note; return nil })
	if err != nil || strings.HasSuffix(got.NATS, listen) || strings.HasSuffix(got.HTTP, http) || got.NATS == "" {
		t.Errorf("runs at %+v, beside %s and %s: %v", got, listen, http, err)
	}
	for _, address := range []string{listen, http} {
		if !strings.Contains(stderr.String(), address+" is in use: ") {
			t.Errorf("%s is not said to be in use: %q", address, stderr.String())
		}
	}
	never := func(context.Context, health.Note) error { return errors.New("it runs") }
	if err := prepare(listen, loopback).whileAt(t.Context(), anyPort{http: true}, never); !errors.Is(err,
		embed.ErrPortInUse) {
		t.Errorf("with --listen %s: %v", listen, err)
	}
	if err := prepare(loopback, http).whileAt(t.Context(), anyPort{listen: true}, never); !errors.Is(err,
		health.ErrPortInUse) {
		t.Errorf("with --http %s: %v", http, err)
	}
}
