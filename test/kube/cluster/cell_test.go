package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Users of the guide.
const (
	agent    = "my-agent"
	person   = "screen"
	operator = "operator"
)

// patience is for what takes seconds on a machine that has nothing else to do.
const patience = 3 * time.Minute

var deployments = []string{"ledger", "retry", "compaction", "reconciler"}

// cell is a cell on a cluster.
type cell struct {
	t       *testing.T
	cluster *cluster
	folder  string // of a checkout, in which an operator works
	modules string // the folder of the module cache
}

// newCell makes the volumes of the broker, the namespace and the secrets, as the guide says.
func newCell(t *testing.T, c *cluster) *cell { t.Helper(); return newCellOf(t, c, repository) }

// newCellOf is newCell with the files of another version.
func newCellOf(t *testing.T, c *cluster, from string) *cell {
	t.Helper()
	cell := &cell{t: t, cluster: c, folder: checkout(t, from), modules: c.run("go", "env", "GOMODCACHE")}
	cell.volumes(4)
	cell.do(commands(t, "kubernetes.md", "kubectl create namespace holdfast"))
	return cell
}

// volumes makes local volumes, spread over the nodes. A cluster of a provider makes them by itself.
func (c *cell) volumes(n int) {
	c.t.Helper()
	all := `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`
	for i := range n {
		dir := c.cluster.file(fmt.Sprintf("disks/%d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			c.t.Fatal(err)
		}
		all += fmt.Sprintf(`---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-%d}
spec:
  capacity: {storage: 20Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: local
  local: {path: %s}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [
    {key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}
`, i, dir, c.cluster.nodes[i%len(c.cluster.nodes)])
	}
	c.write("volumes.yaml", all)
	c.do("kubectl apply -f volumes.yaml")
}

// write writes a file of the checkout.
func (c *cell) write(name, text string) {
	c.t.Helper()
	file := filepath.Join(c.folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// install applies an overlay by the guide's commands, waits until all pods are ready, and runs `holdfast doctor`.
func (c *cell) install(overlay string) {
	c.t.Helper()
	all := commands(c.t, "kubernetes.md", "make -s render")
	apply, check, found := strings.Cut(all, "kubectl -n holdfast port-forward")
	if !found {
		c.t.Fatal("the guide does not say how to check a cell")
	}
	began := time.Now()
	c.do(strings.ReplaceAll(apply, "overlays/production", "overlays/"+overlay))
	c.ready()
	c.t.Logf("%s is ready %v after it was applied", overlay, time.Since(began).Round(poll))
	c.t.Log(c.do("trap 'kill %1' EXIT\nkubectl -n holdfast port-forward" + check))
}

// ready waits until everything is rolled out, and every pod is Ready.
func (c *cell) ready() {
	c.t.Helper()
	c.do("for d in deployment/holdfast-{" + strings.Join(deployments, ",") + "} statefulset/nats; do " +
		"kubectl -n holdfast rollout status $d --timeout=" + patience.String() + "; done")
	c.cluster.until(patience, "every pod is Ready", func() error {
		_, err := output(".", "kubectl", "-n", "holdfast", "wait", "--for=condition=Ready", "pod", "--all",
			"--timeout=5s")
		return err
	})
}

// login returns the files of a user that `holdfast secrets` made.
func (c *cell) login(user string) bus.Config {
	f := filepath.Join(c.folder, "secrets", "holdfast-"+user)
	name := strings.TrimPrefix(user, "person-")
	return bus.Config{URL: "tls://" + name + "@nats.holdfast:4222", PasswordFile: f + "/password",
		TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key"}
}

// as returns a connection of a person.
func (c *cell) as(name string) *bus.Bus {
	c.t.Helper()
	cfg := c.login("person-" + name)
	cfg.Inbox = events.Inbox("hf", events.ClassPerson, name)
	cfg.Asker = events.Asker{Class: events.ClassPerson, ID: name}
	b, err := bus.Open(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(b.Close)
	return b
}

// harness returns a process of the guide's harness.
func (c *cell) harness(ctx context.Context) *harness.Harness {
	c.t.Helper()
	l := c.login("harness-" + agent)
	h, err := harness.Connect(ctx, harness.Config{ID: agent, URL: l.URL, PasswordFile: l.PasswordFile, TLSCA: l.TLSCA,
		TLSCert: l.TLSCert, TLSKey: l.TLSKey})
	if err == nil {
		err = h.Ready(ctx)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}

// env is the environment in which a person runs holdfast.
func (c *cell) env(name string) []string {
	l := c.login("person-" + name)
	return []string{"HOLDFAST_NATS=" + l.URL, "HOLDFAST_PASSWORD_FILE=" + l.PasswordFile, "HOLDFAST_TLS_CA=" + l.TLSCA,
		"HOLDFAST_TLS_CERT=" + l.TLSCert, "HOLDFAST_TLS_KEY=" + l.TLSKey}
}

// round lets a harness ask, and a person answer.
func (c *cell) round(name string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	h := c.harness(ctx)
	s, err := h.Open(ctx, name, harness.OpenOptions{Title: name})
	if err != nil {
		c.t.Fatal(err)
	}
	turn, err := s.StartTurn(ctx, harness.StartOptions{Content: "go"})
	if err != nil {
		c.t.Fatal(err)
	}
	answers := make(chan harness.Answer, 1)
	go func() {
		a, err := turn.Ask(ctx, harness.Prompt{ID: "p", Title: "Which?", Questions: []events.Question{{ID: "c",
			Question: "Which?", Options: []events.Option{{Label: "red"}, {Label: "blue"}}}}})
		if err != nil {
			c.t.Error(err)
		}
		answers <- a
	}()
	c.cluster.until(patience, "a person sees the question", func() error {
		out, err := c.at("holdfast prompts", c.env(person)...)
		if err == nil && !strings.Contains(out, "Which?") {
			err = fmt.Errorf("holdfast prompts prints %q", out)
		}
		return err
	})
	c.do("holdfast answer "+name+" p c=blue", c.env(person)...)
	if a := <-answers; a.Status != session.Answered || a.Choice() != "blue" || a.By != person {
		c.t.Errorf("the harness got %+v, want blue by %s", a, person)
	}
	if err := turn.Complete(ctx, "stop"); err != nil {
		c.t.Error(err)
	}
	if err := h.Close(ctx); err != nil {
		c.t.Error(err)
	}
}
