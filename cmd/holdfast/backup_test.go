package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/internal/secret"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Commands of docs/guide/operate.md.
const (
	backupGuide  = "holdfast backup /backup --keep 14"
	restoreGuide = "holdfast restore /backup/" + guideFile
	guideFile    = "hf-20260102T030405Z.backup"
)

// drilled is a secured cell that loses its disk.
type drilled struct {
	t    *testing.T
	conf natstest.Option
	srv  *embed.Server
	ends []func() (int, string)
}

// start starts the services, each as its own user, and returns when they are ready.
func (d *drilled) start() {
	d.t.Helper()
	for i := range targets {
		ready := filepath.Join(d.t.TempDir(), "ready.json")
		d.ends = append(d.ends, runProgram(targets[i].name, "--nats", login(d.srv, "holdfast-"+targets[i].name),
			"--http", "127.0.0.1:0", "--ready-file", ready))
		natstest.Until(d.t, "the "+targets[i].name+" to be ready", func() bool {
			_, err := os.Stat(ready)
			return err == nil
		})
	}
}

// stop ends the services.
func (d *drilled) stop() {
	for _, end := range d.ends {
		if code, output := end(); code != exitDone || strings.Contains(output, "ermission") {
			d.t.Errorf("a service ended with %d, and said\n%s", code, output)
		}
	}
	d.ends = nil
}

// loseDisk starts the broker without its files, at the same address.
func (d *drilled) loseDisk() {
	d.t.Helper()
	listen := strings.TrimPrefix(d.srv.URL(), "nats://")
	d.srv.Shutdown()
	d.srv = natstest.Start(d.t, d.conf, natstest.Listen(listen))
}

// process connects a process of the harness.
func (d *drilled) process() *harness.Harness {
	d.t.Helper()
	h, err := harness.Connect(d.t.Context(), harness.Config{ID: "agent 1", URL: login(d.srv, "harness-agent 1"),
		TTL: time.Minute})
	if err == nil {
		err = h.Ready(d.t.Context())
	}
	if err != nil {
		d.t.Fatal(err)
	}
	// the harness has ended, as has the broker
	d.t.Cleanup(func() { _ = h.Close(d.t.Context()) })
	return h
}

// output runs a turn.
func (d *drilled) output(s *harness.Session, text string) {
	d.t.Helper()
	turn, err := s.StartTurn(d.t.Context(), harness.StartOptions{Content: text, Message: "m-" + text[:5], By: "ann"})
	if err == nil {
		err = turn.Complete(d.t.Context(), "stop")
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// newDrill starts a secured cell with users that may copy it.
func newDrill(t *testing.T) *drilled {
	t.Helper()
	cell, err := events.NewCell("hf")
	if err != nil {
		t.Fatal(err)
	}
	users, err := permission.Users(cell, []string{"agent 1"}, []string{"ann"}, []string{"root"},
		permission.Copiers{Backup: []string{"nightly"}, Restore: []string{"phoenix"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		t.Setenv(u.Password, "secret-"+u.Name[:3])
	}
	d := &drilled{t: t, conf: natstest.Settings(t, permission.Conf(users))}
	d.srv = natstest.Start(t, d.conf)
	d.start()
	return d
}

// in returns the arguments of a command of the guide, in another directory.
func in(dir, command string) []string {
	return strings.Fields(strings.Replace(command, "/backup", dir, 1))[1:]
}

// backsUp runs the guide's command as the user that may, and returns the file.
func (d *drilled) backsUp(dir string) string {
	d.t.Helper()
	for _, user := range []string{"ann", "root", "phoenix"} {
		runAs(d.t, login(d.srv, user), exitFailed, "backup", dir)
	}
	runAs(d.t, login(d.srv, "nightly"), exitDone, in(dir, backupGuide)...)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		d.t.Fatalf("%q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		d.t.Errorf("%v, %v", info.Mode(), err)
	}
	return files[0]
}

// restores runs the guide's command as the user that may.
func (d *drilled) restores(dir, file string) {
	d.t.Helper()
	for _, user := range []string{"ann", "root", "nightly"} {
		runAs(d.t, login(d.srv, user), exitFailed, "restore", file)
	}
	command := in(dir, strings.Replace(restoreGuide, guideFile, filepath.Base(file), 1))
	if output := runAs(d.t, login(d.srv, "phoenix"), exitDone, command...); !strings.Contains(output, "is not known") {
		d.t.Errorf("restore says %s", output)
	}
}

// well waits until the doctor finds nothing wrong, and checks that it reports the restore.
func (d *drilled) well() {
	d.t.Helper()
	var out bytes.Buffer
	natstest.Until(d.t, "the doctor to find nothing wrong", func() bool {
		out.Reset()
		p := &Program{Args: []string{"doctor", "--nats", login(d.srv, "root")}, Stdout: &out, Stderr: &out}
		return p.Run(d.t.Context()) == exitDone
	})
	if !strings.Contains(out.String(), "note  restored ") {
		d.t.Errorf("the doctor does not report the restore:\n%s", &out)
	}
}

// TestRestoreDrill: a cell that has lost its disk is restored from an older backup, by users that may do that alone. It
// serves, the doctor reports what is not known, each process that knows more is fenced, and the next one continues.
func TestRestoreDrill(t *testing.T) {
	d, dir := newDrill(t), t.TempDir()
	h := d.process()
	s, err := h.Open(t.Context(), "grows", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.output(s, "before")
	// an object
	d.output(s, strings.Repeat("large ", 200_000))
	file := d.backsUp(dir)
	d.output(s, "after")
	late, err := h.Open(t.Context(), "late", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.output(late, "after")
	// onto a cell that is there
	runAs(t, login(d.srv, "phoenix"), exitFailed, "restore", file)
	d.stop()
	d.loseDisk()
	d.restores(dir, file)
	d.start()
	defer d.stop()
	for name, one := range map[string]*harness.Session{"grows": s, "late": late} {
		if _, err := one.StartTurn(t.Context(), harness.StartOptions{Content: "on top"}); !errors.Is(err,
			harness.ErrFenced) {
			t.Errorf("%s: a process that knows more than the log: %v", name, err)
		}
	}
	again, err := d.process().Open(t.Context(), "grows", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.output(again, "restored")
	text := runAs(t, login(d.srv, "root"), exitDone, "events", "agent 1/grows", "--json")
	if !strings.Contains(text, "before") || strings.Contains(text, "on top") || strings.Contains(text, `"after"`) ||
		!strings.Contains(text, "restored") {
		t.Errorf("the session has\n%s", text)
	}
	d.well()
}

// TestOldBackupsAreRemoved: the newest files of the cell are kept, the beginnings of others go, and other files stay.
// The file just written stays, also if the clock was ahead when others were written.
func TestOldBackupsAreRemoved(t *testing.T) {
	const written = "hf-20260103T000000Z.backup"
	for keep, want := range map[int][]string{
		1: {written},
		2: {written, "hf-20270101T000000Z.backup"},
		3: {"hf-20260102T000000Z.backup", written, "hf-20270101T000000Z.backup"},
		9: {"hf-20260101T000000Z.backup", "hf-20260102T000000Z.backup", written, "hf-20270101T000000Z.backup"},
	} {
		dir := t.TempDir()
		others := []string{"dev-20260101T000000Z.backup", "hf-notes.backup", "notes.txt"}
		for _, name := range slices.Concat(others, []string{written, "hf-20260101T000000Z.backup",
			"hf-20260102T000000Z.backup", "hf-20270101T000000Z.backup", "hf-20260102T000001Z.backup.partial"}) {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := removeOlder(filepath.Join(dir, written), "hf", keep); err != nil {
			t.Fatal(err)
		}
		var left []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			left = append(left, e.Name())
		}
		want = slices.Sorted(slices.Values(slices.Concat(want, others)))
		if err != nil || !slices.Equal(left, want) {
			t.Errorf("keep %d: %q, want %q, %v", keep, left, want, err)
		}
	}
}

// TestTheBackupIsDeployed: the job in deploy/k8s runs the guide's command, as the user that the guide makes, with no
// more rights in its pod than a service has. Two backups never run at once.
func TestTheBackupIsDeployed(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(deployFolder, "backup/backup.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Spec struct {
			ConcurrencyPolicy string `yaml:"concurrencyPolicy"`
			JobTemplate       struct {
				Spec struct{ Template struct{ Spec yaml.Node } }
			} `yaml:"jobTemplate"`
		}
	}
	var fields map[string]any
	var p pod
	// the first document
	if err = yaml.Unmarshal(body, &job); err == nil {
		err = job.Spec.JobTemplate.Spec.Template.Spec.Decode(&fields)
	}
	text, jsonErr := json.Marshal(fields)
	if err = errors.Join(err, jsonErr, yaml.Unmarshal(lowerKeys(t, text), &p)); err != nil {
		t.Fatal(err)
	}
	c := p.Containers[0]
	if got := strings.Join(append([]string{"holdfast"}, c.Args...), " "); got != backupGuide {
		t.Errorf("it runs %q, the guide %q", got, backupGuide)
	}
	cell, err := events.NewCell(events.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	users, err := permission.Users(cell, nil, nil, nil, permission.Copiers{Backup: []string{"backup"}})
	if err != nil {
		t.Fatal(err)
	}
	user := users[len(users)-1]
	if p.Volumes[0].Secret.SecretName != secret.Folder(user) || c.VolumeMounts[0].MountPath != loginFolder ||
		c.Env[0].Name != "HOLDFAST_NATS" || c.Env[0].Value != "tls://"+user.Name+"@$(NATS_HOST)" {
		t.Errorf("it logs in with %+v and %+v", c.Env, p.Volumes)
	}
	if c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation ||
		!c.SecurityContext.ReadOnlyRootFilesystem || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") ||
		!p.SecurityContext.RunAsNonRoot || p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken ||
		c.Resources.Limits["memory"] == "" || job.Spec.ConcurrencyPolicy != "Forbid" {
		t.Errorf("%+v", job)
	}
}
