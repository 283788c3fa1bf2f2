package cell

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// fencedMax is how long a process that knows more than the log waits for its refusal.
const fencedMax = 30 * time.Second

// TestAnOlderBackupIsRestored: the files of a broker that had ended are put in the place of newer ones, while services
// and a harness live on that know more. The cell serves, what the harness writes on top of the lost commits is refused
// and not stored, the services forget what the log does not have, and the next process of the harness continues.
func TestAnOlderBackupIsRestored(t *testing.T) {
	programs(t)
	d := &deployment{t: t, net: newNetwork(t), secrets: &world{t: t, dir: t.TempDir()}}
	t.Cleanup(func() { d.report(t) })
	d.secrets.secrets(d.net.routes()...)
	d.pod = overlaid(t, "small", "nats/nats.yaml", "StatefulSet")
	d.start()
	for _, s := range services {
		d.service(s, s)
	}
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}
	h := d.process()
	s, err := h.Open(t.Context(), "grows", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	runTurn(t, s, "before")
	d.exchange(nil)
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(d.store)); err != nil {
		t.Fatal(err)
	}

	old := h.Incarnation()
	runTurn(t, s, "after")
	late, err := h.Open(t.Context(), "late", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	runTurn(t, late, "after")
	operator := d.as("root", events.ClassPerson, "root")
	lost := map[string]uint64{"grows": s.State().Seq, "late": late.State().Seq}
	// the services know it
	for name, seq := range lost {
		natstest.Until(t, "the document of "+name, func() bool { return d.document(operator, name) >= seq })
	}

	d.exchange(&backup)
	for name, one := range map[string]*harness.Session{"grows": s, "late": late} {
		fenced(t, name, one)
	}
	for name, want := range map[string]string{"grows": "before", "late": ""} {
		d.forgotten(operator, name, want)
	}
	next := d.process()
	if next.Incarnation() == old || next.Incarnation() == h.Incarnation() {
		t.Errorf("two processes have the incarnation %s", next.Incarnation())
	}
	again, err := next.Open(t.Context(), "grows", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	runTurn(t, again, "restored")
	natstest.Until(t, "the document of the restored session", func() bool {
		return d.document(operator, "grows") == again.State().Seq
	})
	natstest.Until(t, "the doctor to find nothing wrong", func() bool { _, err := d.doctor(); return err == nil })
}

// fenced checks that a session refuses to write on top of lost commits, and ends its work.
func fenced(t *testing.T, name string, s *harness.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fencedMax)
	defer cancel()
	_, err := s.StartTurn(ctx, harness.StartOptions{Content: "on top of what is lost"})
	if !errors.Is(err, harness.ErrFenced) {
		t.Errorf("%s: a process that knows more than the log: %v", name, err)
	}
	if s.Context().Err() == nil {
		t.Errorf("%s: its work continues", name)
	}
}

// forgotten checks that the log of a session has this text, and nothing of what is newer than the backup.
func (d *deployment) forgotten(b *bus.Bus, name, want string) {
	d.t.Helper()
	commits, err := b.Log.Read(d.t.Context(), events.Ref{Harness: attacker, Session: name}, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	var text strings.Builder
	for _, c := range commits {
		for _, e := range c.Events {
			text.Write(e.Data)
		}
	}
	if strings.Contains(text.String(), "after") || strings.Contains(text.String(), "on top") ||
		!strings.Contains(text.String(), want) {
		d.t.Errorf("%s: the log has %s", name, text.String())
	}
}

// start starts the only node, and returns when it is ready.
func (d *deployment) start() {
	d.node(0, read(d.t, "overlays/small/nats.conf"))
	d.store = d.disks[0].dir
	d.until(d.nodes[0], d.nodes[0].ready)
}

// exchange ends the only node and starts another one with these files, by default its own.
func (d *deployment) exchange(files *string) {
	d.t.Helper()
	d.nodes[0].halt(syscall.SIGTERM)
	from := d.store
	if files != nil {
		from = *files
	}
	d.from = from
	d.start()
}

// process connects a process of the harness, and makes it ready.
func (d *deployment) process() *harness.Harness {
	d.t.Helper()
	cfg := d.config("harness-"+attacker, events.ClassHarness, attacker)
	h, err := harness.Connect(d.t.Context(), harness.Config{ID: attacker, URL: cfg.URL, PasswordFile: cfg.PasswordFile,
		TLSCA: cfg.TLSCA, TLSCert: cfg.TLSCert, TLSKey: cfg.TLSKey})
	if err == nil {
		err = h.Ready(d.t.Context())
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

// runTurn runs a turn with this content.
func runTurn(t *testing.T, s *harness.Session, content string) {
	t.Helper()
	turn, err := s.StartTurn(t.Context(), harness.StartOptions{Content: content, Message: "m-" + content, By: people})
	if err == nil {
		err = turn.Complete(t.Context(), "stop")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// document returns the place of a session's document, 0 if the ledger does not have one.
func (d *deployment) document(b *bus.Bus, name string) uint64 {
	var doc struct{ Document struct{ Seq uint64 } }
	ctx, cancel := context.WithTimeout(d.t.Context(), probeTimeout)
	defer cancel()
	if b.Services.Request(ctx, "ledger", "get", events.Ref{Harness: attacker, Session: name}, &doc) != nil {
		return 0
	}
	return doc.Document.Seq
}
