package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/secret"
)

// userFiles is a folder of secrets, with the permissions of a broker.
type userFiles struct {
	t                   *testing.T
	folder, permissions string
}

// run runs the program.
func (f *userFiles) run(args ...string) (code int, out, stderr string) {
	f.t.Helper()
	var o, e bytes.Buffer
	p := &Program{Args: args, Stdout: &o, Stderr: &e}
	code = p.Run(f.t.Context())
	return code, o.String(), e.String()
}

// user runs `holdfast user`.
func (f *userFiles) user(verb string, args ...string) (code int, out, stderr string) {
	f.t.Helper()
	return f.run(append([]string{"user", verb, f.folder, "--permissions", f.permissions}, args...)...)
}

// file returns the content of a file of the folder, or the error.
func (f *userFiles) file(path ...string) string {
	f.t.Helper()
	body, err := os.ReadFile(filepath.Join(append([]string{f.folder}, path...)...))
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// permits stores permissions.
func (f *userFiles) permits(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.permissions, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// printed returns the permissions of users.
func (f *userFiles) printed(users ...string) string {
	f.t.Helper()
	code, out, stderr := f.run(append([]string{"permissions", "--passwords", "../x/users.conf"}, users...)...)
	if code != 0 {
		f.t.Fatal(stderr)
	}
	return out
}

// newUserFiles makes the files of a harness and of a person.
func newUserFiles(t *testing.T) *userFiles {
	t.Helper()
	dir := t.TempDir()
	f := &userFiles{t: t, folder: filepath.Join(dir, "se crets"), permissions: filepath.Join(dir, "permissions.conf")}
	users := []string{"--harness", "my-agent", "--person", "ann", "--nkey-user", "ann"}
	if code, _, stderr := f.run(append([]string{"secrets", f.folder}, users...)...); code != 0 {
		t.Fatal(stderr)
	}
	f.permits(f.printed(users...))
	return f
}

// TestUserCommands adds a user, replaces secrets, and removes the user. Each command writes the list, the files and the
// permissions.
func TestUserCommands(t *testing.T) {
	f := newUserFiles(t)
	agent, list := f.file("holdfast-harness-my-agent", "password"), f.file("users.json")
	code, out, stderr := f.user("add", "--person", "bob", "--nkey-user", "bob")
	if code != 0 || strings.Count(out, "--signal reload=") != 2 ||
		!strings.Contains(out, "holdfast-person-bob --from-file='"+f.folder+"/holdfast-person-bob' ") {
		t.Errorf("add: exit code %d: %s%s", code, out, stderr)
	}
	for _, want := range []string{"create configmap nats-permissions ",
		"# kustomize: the next apply takes nats/permissions.conf", "# Helm: an upgrade keeps this config map; ",
		"if the values set users.permissions, give each upgrade --set-file "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if f.file("holdfast-harness-my-agent", "password") != agent ||
		!strings.HasPrefix(f.file("holdfast-person-bob", "nkey"), "SU") {
		t.Error("other files were changed, or those of the new user are missing")
	}
	want := func(users ...string) {
		t.Helper()
		if got, err := os.ReadFile(f.permissions); err != nil || string(got) != f.printed(users...) {
			t.Errorf("the permissions are not those of %q: %v", users, err)
		}
	}
	want("--harness", "my-agent", "--person", "ann", "--person", "bob", "--nkey-user", "ann", "--nkey-user", "bob")
	for _, name := range []string{"my-agent", "harness-my-agent", "holdfast-ledger", "bob"} {
		before := f.file("nats-users", "users.conf")
		code, out, stderr := f.user("rotate", name)
		if code != 0 || strings.Count(out, "--signal reload=") != 1 || f.file("nats-users", "users.conf") == before {
			t.Errorf("rotate %s: exit code %d: %s%s", name, code, out, stderr)
		}
	}
	if f.file("holdfast-harness-my-agent", "password") == agent {
		t.Error("the password of the harness is what it was")
	}
	code, out, stderr = f.user("rotate", "bob", "--config-map", "cell'users")
	if code != 0 || !strings.Contains(out, `create configmap 'cell'\''users' --from-file=permissions.conf=`) {
		t.Errorf("a config map of another name: exit code %d: %s%s", code, out, stderr)
	}
	code, out, stderr = f.user("remove", "bob")
	if code != 0 || !strings.Contains(out, "kubectl -n holdfast delete secret holdfast-person-bob\n") ||
		!strings.Contains(f.file("holdfast-person-bob", "nkey"), "no such file") || f.file("users.json") != list {
		t.Errorf("remove: exit code %d: %s%s", code, out, stderr)
	}
	want("--harness", "my-agent", "--person", "ann", "--nkey-user", "ann")
}

// TestRefusedUserCommands: a command that is refused says why, and writes nothing.
func TestRefusedUserCommands(t *testing.T) {
	f := newUserFiles(t)
	list, conf, ann := f.file("users.json"), f.file("nats-users", "users.conf"), f.file("holdfast-person-ann", "nkey")
	refused := func(code int, text, verb string, args ...string) {
		t.Helper()
		got, out, stderr := f.user(verb, args...)
		if got != code || out != "" || !strings.Contains(stderr, text) {
			t.Errorf("%s %q: exit code %d: %s%s", verb, args, got, out, stderr)
		}
		if f.file("users.json") != list || f.file("nats-users", "users.conf") != conf ||
			f.file("holdfast-person-ann", "nkey") != ann {
			t.Errorf("%s %q has written", verb, args)
		}
	}
	refused(exitUsage, "no user is named", "add")
	refused(exitUsage, "two users would share the name", "add", "--person", "ann")
	refused(exitUsage, "id", "add", "--harness", "")
	refused(exitUsage, `no user has the name "carl"`, "add", "--nkey-user", "carl")
	refused(exitUsage, `no user has the name "bob": there are holdfast-ledger, `, "rotate", "bob")
	refused(exitUsage, `no user has the name "bob"`, "remove", "bob")
	refused(exitUsage, "holdfast-ledger is a service", "remove", "holdfast-ledger")
	f.permits("accounts {}\n")
	refused(exitFailed, "does not begin with an include", "add", "--person", "bob")
	if err := os.Remove(f.permissions); err != nil {
		t.Fatal(err)
	}
	refused(exitFailed, "with --permissions", "rotate", "ann")
	if err := os.Remove(filepath.Join(f.folder, "users.json")); err != nil {
		t.Fatal(err)
	}
	list = f.file("users.json")
	refused(exitFailed, "run `holdfast secrets "+f.folder+"` once", "add", "--person", "bob")
}

// TestAUserChangeThatWasCutOff: a change that ends before the permissions are written leaves the list as it was, so the
// same command makes it again.
func TestAUserChangeThatWasCutOff(t *testing.T) {
	f := newUserFiles(t)
	before := f.file("users.json")
	list, err := secret.ReadList(f.folder)
	if err == nil {
		err = list.Add(secret.List{People: []string{"bob"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	away := filepath.Join(f.folder, "away", "permissions.conf")
	c := &userChange{dir: f.folder, permissions: away, include: "include x"}
	if err := c.write(&list, ""); err == nil || f.file("users.json") != before {
		t.Errorf("%v: the list is %s", err, f.file("users.json"))
	}
	password := f.file("holdfast-person-bob", "password")
	if code, _, stderr := f.user("add", "--person", "bob"); code != 0 || f.file("users.json") == before ||
		f.file("holdfast-person-bob", "password") != password {
		t.Errorf("again: exit code %d: %s", code, stderr)
	}
}
