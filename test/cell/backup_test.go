package cell

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	copier    = "keeper"   // backs the cell up
	phoenix   = "restorer" // restores it
	questions = "quiet"    // a session that asks a person across the restore
)

// TestThreeNodesAreRestored: the volumes of all three nodes are lost. The cell is restored from a backup as
// docs/guide/operate.md says. Each stream has three copies again. A harness that lives is refused where it knows more
// than the backup, and gets the answer of a person where it does not. The next process continues, people send messages,
// and the doctor reports nothing but the restore.
func TestThreeNodesAreRestored(t *testing.T) {
	d := deployCell(t, briefly)
	t.Cleanup(func() { d.report(t) })
	h, operator := d.process(), d.as("root", events.ClassPerson, "root")
	grows := d.opened(h, "grows")
	runTurn(t, grows, "before")
	answer := d.asked(h)
	kept, err := d.as("harness-"+attacker, events.ClassHarness, attacker).Objects.Put(t.Context(), mine,
		[]byte(strings.Repeat("large ", 200_000)))
	if err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the question to be shown", func() bool { return d.document(operator, questions) > 0 })

	dir := t.TempDir()
	if out, err := d.run(copier, "backup", dir, "--keep", "14"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "hf-*.backup"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	runTurn(t, grows, "after")
	late := d.opened(h, "late")
	runTurn(t, late, "after")
	if out, err := d.run(phoenix, "restore", files[0], "--replicas", "3"); err == nil {
		t.Errorf("a cell that exists is restored: %s", out)
	}

	for _, s := range services {
		d.scaleDown(s)
	}
	d.loseVolumes()
	for _, user := range []string{copier, "root", people} {
		if out, err := d.run(user, "restore", files[0], "--replicas", "3"); err == nil {
			t.Errorf("%s restores: %s", user, out)
		}
	}
	if out, err := d.run(phoenix, "restore", files[0], "--replicas", "3"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, s := range services {
		d.scaleUp(s)
	}
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}

	d.copied()
	for name, one := range map[string]*harness.Session{"grows": grows, "late": late} {
		fenced(t, name, one)
	}
	d.forgotten(operator, "grows", "before")
	d.forgotten(operator, "late", "")
	d.answers(answer)
	if content, err := operator.Objects.Get(t.Context(), kept); err != nil || len(content) != 6*200_000 {
		t.Errorf("the large content has %d bytes: %v", len(content), err)
	}
	next := d.process()
	again := d.opened(next, "grows")
	runTurn(t, again, "restored")
	d.worksFor(next)
	d.sound()
	// each node may be missing now
	d.nodes[d.leader("HF_LOG")].halt(syscall.SIGKILL)
	runTurn(t, again, "two nodes")
}

// opened opens a session of a process.
func (d *deployment) opened(h *harness.Harness, name string) *harness.Session {
	d.t.Helper()
	s, err := h.Open(d.t.Context(), name, harness.OpenOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// run runs the program as a user of the cell.
func (d *deployment) run(user string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	cfg := d.config(user, events.ClassPerson, user)
	out, err := exec.CommandContext(ctx, binary, append(args, "--nats", cfg.URL, "--password-file", cfg.PasswordFile,
		"--tls-ca", cfg.TLSCA, "--tls-cert", cfg.TLSCert, "--tls-key", cfg.TLSKey)...).CombinedOutput()
	return string(out), err
}

// loseVolumes ends all nodes and starts them at the same addresses with empty volumes.
func (d *deployment) loseVolumes() {
	d.t.Helper()
	for _, n := range d.nodes {
		n.halt(syscall.SIGKILL)
	}
	for i := range nodesMax {
		d.node(i, briefly(read(d.t, "nats/nats.conf")))
	}
	for _, n := range d.nodes {
		d.until(n, n.ready)
	}
}

// copied waits until each node has each stream.
func (d *deployment) copied() {
	d.t.Helper()
	nc := d.login("holdfast-ledger", events.ClassService, "ledger")
	defer nc.Close()
	for _, s := range streams {
		natstest.Until(d.t, s+" to have three copies", func() bool {
			var info struct {
				Cluster struct {
					Leader   string
					Replicas []struct{ Current bool }
				}
			}
			m, err := nc.Request("$JS.API.STREAM.INFO."+s, nil, probeTimeout)
			if err != nil || json.Unmarshal(m.Data, &info) != nil || info.Cluster.Leader == "" {
				return false
			}
			for _, r := range info.Cluster.Replicas {
				if !r.Current {
					return false
				}
			}
			return len(info.Cluster.Replicas) == nodesMax-1
		})
	}
}

// asked lets a process ask a person, and returns where the answer arrives.
func (d *deployment) asked(h *harness.Harness) chan harness.Answer {
	d.t.Helper()
	turn, err := d.opened(h, questions).StartTurn(d.t.Context(), harness.StartOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	answer := make(chan harness.Answer, 1)
	go func() {
		a, err := turn.Ask(d.t.Context(), harness.Prompt{ID: "p", Questions: []events.Question{{ID: "q",
			Question: "Which?", Custom: true}}})
		if err != nil && d.t.Context().Err() == nil {
			d.t.Errorf("the question across the restore: %v", err)
		}
		answer <- a
	}()
	return answer
}

// answers lets a person answer the question, and checks that the process that asked gets the answer.
func (d *deployment) answers(answer chan harness.Answer) {
	d.t.Helper()
	ann := d.as(people, events.ClassPerson, people)
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	req := request.Answer{Ref: events.Ref{Harness: attacker, Session: questions}, Prompt: "p", By: people,
		Answers: []events.Answer{{Question: "q", Text: "this one"}}}
	if err := ann.Services.Request(ctx, "ledger", "answer", req, nil); err != nil {
		d.t.Fatal(err)
	}
	select {
	case a := <-answer:
		if a.Status != session.Answered || len(a.Answers) != 1 || a.Answers[0].Text != "this one" {
			d.t.Errorf("the answer is %+v", a)
		}
	case <-ctx.Done():
		d.t.Error("the answer does not arrive")
	}
}

// worksFor checks that a process takes a person's message.
func (d *deployment) worksFor(h *harness.Harness) {
	d.t.Helper()
	ann := d.as(people, events.ClassPerson, people)
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	taken := make(chan string, 1)
	done := make(chan error, 1)
	go func() {
		done <- h.Work(ctx, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
			content, err := turn.Content(ctx)
			if err == nil {
				taken <- string(content)
			}
			return err
		}})
	}()
	if err := ann.Services.Request(ctx, "compaction", "send", request.Send{Ref: events.Ref{Harness: attacker,
		Session: "grows"}, Message: "m-ann", Content: json.RawMessage(`"go on"`), By: people}, nil); err != nil {
		d.t.Fatal(err)
	}
	select {
	case text := <-taken:
		if text != `"go on"` {
			d.t.Errorf("the message is %s", text)
		}
	case <-ctx.Done():
		d.t.Error("a person's message is not taken")
	}
	operator := d.as("root", events.ClassPerson, "root")
	d.free(operator, "grows")
	cancel()
	if err := <-done; err != nil {
		d.t.Error(err)
	}
}

// free waits until a session has no open turn.
func (d *deployment) free(b *bus.Bus, name string) {
	d.t.Helper()
	natstest.UntilSession(d.t, b, events.Ref{Harness: attacker, Session: name}, "no turn",
		func(st *session.State) bool { return st.Turn == nil })
}

// sound waits until the doctor finds nothing wrong, and checks that it reports the restore.
func (d *deployment) sound() {
	d.t.Helper()
	var out string
	natstest.Until(d.t, "the doctor to find nothing wrong", func() bool {
		var err error
		out, err = d.doctor()
		return err == nil
	})
	if !strings.Contains(out, "note  restored ") {
		d.t.Errorf("the doctor does not report the restore:\n%s", out)
	}
}
