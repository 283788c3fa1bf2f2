package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// TestGuide: the other commands of the guide, in its order, on a cell with three nodes of the broker on one machine.
func TestGuide(t *testing.T) {
	c := startCluster(t, 1)
	cell := newCell(t, c)
	cell.permissions()
	cell.write("deploy/k8s/overlays/lowered/kustomization.yaml", lowered)
	cell.install("lowered")
	cell.rotate()
	cell.round("rotated")
	cell.users()
	cell.consumerKeys()
	cell.round("keys")
	cell.backup()
	cell.nkeys()
	t.Log(cell.do("holdfast doctor", cell.env(operator)...))
}

// block returns the only commands of the guide on Kubernetes that contain a text.
func (c *cell) block(text string) string { c.t.Helper(); return commands(c.t, "kubernetes.md", text) }

// permissions prints the permissions of the manifests' users: they are in the repository.
func (c *cell) permissions() {
	c.t.Helper()
	file := filepath.Join(c.folder, "deploy/k8s/nats/permissions.conf")
	before := readFile(c.t, file)
	c.do(c.block("holdfast permissions --harness my-agent --person screen --operator operator --passwords"))
	if readFile(c.t, file) != before {
		c.t.Error("the command of the guide prints other permissions than deploy/k8s/nats has")
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rotate applies the files of ./secrets and reloads the broker, when the kubelet has written them.
func (c *cell) rotate() {
	c.t.Helper()
	apply, reload, found := strings.Cut(c.block("--signal reload=/var/run/nats/nats.pid; done"), "for i in 0 1 2")
	if !found {
		c.t.Fatal("the guide does not reload the broker")
	}
	c.do(apply)
	c.written()
	c.do("for i in 0 1 2" + reload)
}

// written waits until each node of the broker has the users and permissions of the checkout.
func (c *cell) written() {
	c.t.Helper()
	c.do(`for i in 0 1 2; do
  until kubectl -n holdfast exec nats-$i -- cat /etc/nats-users/users.conf |
    cmp -s - secrets/nats-users/users.conf; do sleep 1; done
  until kubectl -n holdfast exec nats-$i -- cat /etc/nats/permissions.conf |
    cmp -s - deploy/k8s/nats/permissions.conf; do sleep 1; done
done`)
}

// users runs what the guide's commands about one user print.
func (c *cell) users() {
	c.t.Helper()
	lines := strings.Split(strings.TrimSpace(c.block("holdfast user add ./secrets --harness reviewer")), "\n")
	if len(lines) != 3 {
		c.t.Fatalf("the guide changes a user by %q", lines)
	}
	const user = "harness-reviewer"
	config := func() harness.Config {
		l := c.login(user)
		return harness.Config{ID: "reviewer", URL: l.URL, PasswordFile: l.PasswordFile, TLSCA: l.TLSCA,
			TLSCert: l.TLSCert, TLSKey: l.TLSKey}
	}
	for _, line := range lines[:2] {
		c.do(line + " | sh")
		if err := c.connects(config()); err != nil {
			c.t.Errorf("after %s: %v", line, err)
		}
	}
	// The command also removes the files of the user.
	former, kept := config(), c.t.TempDir()
	for _, file := range []*string{&former.PasswordFile, &former.TLSCA, &former.TLSCert, &former.TLSKey} {
		text := readFile(c.t, *file)
		*file = filepath.Join(kept, filepath.Base(*file))
		if err := os.WriteFile(*file, []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	c.do(lines[2] + " | sh")
	if err := c.connects(former); err == nil {
		c.t.Errorf("after %s the user connects", lines[2])
	}
}

// connects reports why a harness cannot work.
func (c *cell) connects(cfg harness.Config) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	h, err := harness.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	if _, err := h.Open(ctx, "hello", harness.OpenOptions{}); err != nil {
		_, err = h.Claim(ctx, "hello")
		if err != nil {
			return err
		}
	}
	return h.Close(ctx)
}

// consumerKeys exchanges the keys of all services.
func (c *cell) consumerKeys() {
	c.t.Helper()
	key := filepath.Join(c.folder, "secrets/holdfast-ledger/consumer-key")
	before := readFile(c.t, key)
	for _, service := range deployments {
		if err := os.Remove(filepath.Join(c.folder, "secrets/holdfast-"+service, "consumer-key")); err != nil {
			c.t.Fatal(err)
		}
	}
	c.do(c.block("scale deployment/holdfast-$s --replicas=0"))
	if readFile(c.t, key) == before {
		c.t.Error("the ledger has the same key as before")
	}
	c.ready()
}

// backup makes the user of backups, and a backup.
func (c *cell) backup() {
	c.t.Helper()
	c.do(c.block("--backup backup"))
	c.apply()
	c.do(c.block("first-backup"))
	c.do("kubectl -n holdfast wait --for=condition=complete job/first-backup --timeout=2m")
	if out := c.do("kubectl -n holdfast logs job/first-backup"); !strings.Contains(out, "written to /backup/hf-") {
		c.t.Errorf("the job prints %q", out)
	}
}

// apply brings new users and permissions to the broker. It is reloaded twice, as for a new user.
func (c *cell) apply() {
	c.t.Helper()
	all := c.block("make -s render")
	line, _, _ := strings.Cut(all, "\n")
	c.do(strings.ReplaceAll(line, "overlays/production", "overlays/lowered"))
	c.ready()
	c.rotate()
	c.rotate()
}

// nkeys gives the harness an nkey in the place of its password.
func (c *cell) nkeys() {
	c.t.Helper()
	c.do(c.block("--nkey-user harness-my-agent"))
	c.apply()
	l := c.login("harness-" + agent)
	err := c.connects(harness.Config{ID: agent, URL: l.URL, NKey: filepath.Join(filepath.Dir(l.PasswordFile), "nkey"),
		TLSCA: l.TLSCA, TLSCert: l.TLSCert, TLSKey: l.TLSKey})
	if err != nil {
		c.t.Errorf("with an nkey: %v", err)
	}
}
