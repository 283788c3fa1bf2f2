package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// older is `lowered` with the image of the previous version.
const older = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../lowered
images:
  - name: registry.example.com/holdfast
    newName: docker.io/library/holdfast
    newTag: previous
`

// TestUpgrade: a cell of the newest tag before this commit, with its manifests, is upgraded under a load.
func TestUpgrade(t *testing.T) {
	if _, err := os.Stat(previous()); err != nil {
		t.Logf("NOT RUN: the repository has no tag before this commit, and %s names none", previousVariable)
		return
	}
	c := startCluster(t, 1)
	path := os.Getenv("PATH")
	t.Setenv("PATH", filepath.Join(previous(), "bin")+":"+path)
	cell := newCellOf(t, c, previous())
	cell.write("deploy/k8s/overlays/lowered/kustomization.yaml", lowered)
	cell.write("deploy/k8s/overlays/older/kustomization.yaml", older)
	cell.install("older")
	cell.round("before")
	l := cell.startLoad("upgrade")
	t.Setenv("PATH", path)
	update(t, cell.folder, repository)
	cell.write("deploy/k8s/overlays/lowered/kustomization.yaml", lowered)
	cell.permissions()
	// Nodes of the broker and services leave at the same time, and a list reads from a node that leaves.
	l.during("the upgrade", most{writes: leadership.writes, requests: 30 * time.Second}, cell.apply)
	l.end()
	cell.round("after")
	for _, image := range strings.Fields(cell.do("kubectl -n holdfast get pods -l app.kubernetes.io/name=holdfast " +
		"-o jsonpath={.items[*].spec.containers[0].image}")) {
		if image != "registry.example.com/holdfast:0.1.0" {
			t.Errorf("after the upgrade a service runs %s", image)
		}
	}
	t.Log(cell.do("holdfast doctor", cell.env(operator)...))
}
