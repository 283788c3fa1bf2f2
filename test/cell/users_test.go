package cell

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const newcomer = "reviewer"

// TestUsersOfARunningCell: a harness is added to a cell that runs, its password is replaced, and it is removed. The
// broker reads its files at a signal, and the connections of other users stay.
func TestUsersOfARunningCell(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), nkeys: []string{"holdfast-retry", "harness-" + attacker}}
	w.secrets()
	run := t.TempDir()
	address := w.server(run)
	others := w.loginsAt(address)
	change := func(args ...string) string { return w.change(run, args...) }
	folder := "holdfast-harness-" + newcomer
	out := change("add", "--harness", newcomer)
	for _, want := range []string{"secret generic " + folder, "secret generic nats-users", "configmap nats-permissions",
		"exec $pod -- nats-server --signal reload=/var/run/nats/nats.pid"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "--signal reload="); n != 2 {
		t.Errorf("%d reloads, want 2 for a new account:\n%s", n, out)
	}
	f := w.folder("harness-" + newcomer)
	cfg := harness.Config{ID: newcomer, URL: "tls://harness-" + newcomer + "@" + address,
		PasswordFile: f + "/password", TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key"}
	var h *harness.Harness
	natstest.Until(t, "the new user to log in", func() (ok bool) {
		// see ADR 213: the first one does not start what an account imports
		w.reload(run)
		ctx, cancel := context.WithTimeout(t.Context(), probeTimeout)
		defer cancel()
		var err error
		h, err = harness.Connect(ctx, cfg)
		return err == nil
	})
	defer func() {
		ctx, cancel := context.WithTimeout(t.Context(), probeTimeout)
		defer cancel()
		// its user is gone
		_ = h.Close(ctx)
	}()
	if _, err := h.Open(t.Context(), "first", harness.OpenOptions{}); err != nil {
		t.Fatal(err)
	}

	old := w.kept("harness-"+newcomer, "password")
	change("rotate", newcomer)
	natstest.Until(t, "the old password to be refused", func() bool {
		return errors.Is(w.tries(address, old), bus.ErrForbidden)
	})
	natstest.Until(t, "the harness to be back with its new password", func() bool {
		_, err := h.Open(t.Context(), "second", harness.OpenOptions{})
		return err == nil
	})

	current := w.kept("harness-"+newcomer, "password")
	out = change("remove", newcomer)
	if !strings.Contains(out, "delete secret "+folder) {
		t.Errorf("no deletion of the secret in\n%s", out)
	}
	natstest.Until(t, "the removed user to be refused", func() bool {
		return errors.Is(w.tries(address, current), bus.ErrForbidden)
	})
	for name, b := range others.buses {
		if n := b.Reconnects(); n > 0 || !b.Connected() {
			t.Errorf("%s: its connection ended %d times", name, n)
		}
	}
	if _, err := others.harness.Open(t.Context(), "after", harness.OpenOptions{}); err != nil {
		t.Error(err)
	}
}

// change runs `holdfast user`, has the broker read the files, and returns what the command printed.
func (w *world) change(run string, args ...string) string {
	w.t.Helper()
	args = append(append([]string{"user", args[0], w.dir}, args[1:]...), "--permissions",
		filepath.Join(w.dir, "nats/permissions.conf"))
	out, err := exec.Command(binary, args...).Output()
	if err != nil {
		w.t.Fatalf("%q: %v: %s", args, err, out)
	}
	w.reload(run)
	return string(out)
}

// reload has the broker read its files again.
func (w *world) reload(run string) {
	w.t.Helper()
	if out, err := exec.Command(natsServer, "--signal", "reload="+run+"/nats.pid").CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// tries logs in as the newcomer with a password, and returns the error.
func (w *world) tries(address, password string) error {
	w.t.Helper()
	// its certificate is valid for the transport
	f := w.folder("harness-" + attacker)
	// a connection that is made while the broker reads its files may get no answers at all
	ctx, cancel := context.WithTimeout(w.t.Context(), probeTimeout)
	defer cancel()
	b, err := bus.Open(ctx, bus.Config{URL: "tls://harness-" + newcomer + "@" + address,
		PasswordFile: password, TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key",
		Inbox: events.Inbox("hf", events.ClassHarness, newcomer)})
	if err == nil {
		b.Close()
	}
	return err
}
