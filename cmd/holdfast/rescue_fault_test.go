package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestARescueFailsWithItsRequests: each request of a rescue can fail; the rescue fails with it, and is not taken for a
// whole one.
func TestARescueFailsWithItsRequests(t *testing.T) {
	s := natstest.Start(t)
	natstest.Bus(t, s)
	for n := int64(1); ; n++ {
		relay := natstest.NewRelay(t, s)
		var asked atomic.Int64
		relay.Spoil(func(subject, _ string) bool {
			// a pull is repeated, a reader that stays ends by itself, and a login that was not asked works
			switch {
			case !strings.HasPrefix(subject, "$JS.API."), strings.HasPrefix(subject, "$JS.API.CONSUMER.MSG.NEXT."),
				strings.HasPrefix(subject, "$JS.API.CONSUMER.DELETE."), subject == "$JS.API.INFO":
				return false
			}
			return asked.Add(1) == n
		})
		var out output
		dir := filepath.Join(t.TempDir(), "rescued")
		p := &Program{Args: []string{"rescue", dir, "--nats", relay.URL, "--json"}, Stdout: &out, Stderr: &out}
		code := p.Run(t.Context())
		_, err := os.Stat(filepath.Join(dir, rescueReport))
		if asked.Load() < n {
			if code != exitDone || err != nil || n < 3 || !strings.Contains(out.String(), `"commits"`) {
				t.Errorf("%d requests: exit code %d, %v\n%s", n-1, code, err, out.String())
			}
			return
		}
		if code == exitDone || err == nil {
			t.Errorf("request %d failed: exit code %d, report %v\n%s", n, code, err, out.String())
		}
	}
}

// TestARescueHasTime: it reads all, so it has the time of a rebuild, unless the command says how long.
func TestARescueHasTime(t *testing.T) {
	for _, args := range [][]string{nil, {"--timeout", "1s"}} {
		a := newApp(&Program{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
		cmd := rescueCommand(a)
		cmd.SetArgs(append([]string{t.TempDir(), "--from", t.TempDir()}, args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil {
			t.Error("an empty directory is no data")
		}
		if long := a.patience == rebuildTimeout; long != (args == nil) {
			t.Errorf("%v: %s", args, a.patience)
		}
	}
}

// TestARescueWithoutTime: a rescue ends with its time, also from a broker that answers. An empty directory is not
// refused.
func TestARescueWithoutTime(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	var out output
	a, written := newApp(&Program{Stdout: &out, Stderr: &out}), func(rescuedMessage) error { return nil }
	for timeout, want := range map[time.Duration]error{time.Nanosecond: bus.ErrUnreachable, time.Minute: nil} {
		a.timeout = timeout
		err := a.rescueCell(t.Context(), b, &rescueFound{}, written, written)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", timeout, err, want)
		}
	}
	p := &Program{Args: []string{"rescue", t.TempDir(), "--nats", s.URL()}, Stdout: &out, Stderr: &out}
	if code := p.Run(t.Context()); code != exitDone {
		t.Errorf("into an empty directory: %d: %s", code, out.String())
	}
}

// TestHeadersInFiles: the first line of a message's headers is the protocol's, with anything behind it.
func TestHeadersInFiles(t *testing.T) {
	got := headers([]byte("NATS/1.0 1: 2\r\nA: b\r\nA:c\r\nno colon\r\n\r\n"))
	if want := map[string][]string{"A": {"b", "c"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestARescueWritesNoOtherFile: what lies in the directory is not replaced, and nothing is read in vain.
func TestARescueWritesNoOtherFile(t *testing.T) {
	for _, name := range []string{rescueLog, rescueDocuments, rescueReport, "DIR"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		var want error = os.ErrExist
		if name == "DIR" {
			dir, want = path, syscall.ENOTDIR
		}
		read := false
		_, err := (&app{}).rescueTo(dir, func(_ *rescueFound, _, _ func(rescuedMessage) error) error {
			read = true
			return nil
		})
		if !errors.Is(err, want) || name == "DIR" && !strings.Contains(err.Error(), "mkdir") {
			t.Errorf("%s: %v", name, err)
		}
		if read != (name == rescueReport) {
			t.Errorf("%s: read %v", name, read)
		}
		if body, err := os.ReadFile(path); err != nil || string(body) != "mine" {
			t.Errorf("%s became %q, %v", name, body, err)
		}
	}
}

// TestARescueThatCannotWrite: what cannot be written to a file makes the rescue fail, of a stopped cell as well.
func TestARescueThatCannotWrite(t *testing.T) {
	f, err := newJSONFile(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.write(make(chan int)); err == nil {
		t.Error("a channel was written")
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	if err := f.close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}

	dir := t.TempDir()
	c := startUp(t, dir)
	r := events.Ref{Harness: "h1", Session: "a"}
	c.asks(r)
	c.folded(r)
	c.stop()
	full, written := errors.New("no space"), func(rescuedMessage) error { return nil }
	refused := func(rescuedMessage) error { return full }
	a := &app{settings: settings{prefix: events.DefaultPrefix}}
	for name, x := range map[string][2]func(rescuedMessage) error{"log": {refused, written},
		"documents": {written, refused}} {
		if err := a.rescueFiles(dir, &rescueFound{}, x[0], x[1]); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.rescueFiles(dir, &rescueFound{}, written, written); err != nil {
		t.Error(err)
	}
	a.prefix = "two words"
	if err := a.rescueFiles(dir, &rescueFound{}, written, written); !errors.Is(err, events.ErrMalformed) {
		t.Errorf("with the prefix %q: %v", a.prefix, err)
	}
}
