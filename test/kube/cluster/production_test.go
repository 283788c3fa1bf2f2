package cluster

import (
	"strings"
	"testing"
	"time"
)

// lowered is `production` with requests that three nodes on one small machine can give. Nothing else differs.
const lowered = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: holdfast
resources:
  - ../production
patches:
  - target: {kind: Deployment, labelSelector: app.kubernetes.io/name=holdfast}
    patch: |-
      - op: replace
        path: /spec/template/spec/containers/0/resources/requests
        value: {cpu: 20m, memory: 64Mi}
  - target: {kind: StatefulSet, name: nats}
    patch: |-
      - op: replace
        path: /spec/template/spec/containers/0/resources/requests
        value: {cpu: 100m, memory: 128Mi}
`

// Longest pauses on a cluster of three nodes.
var (
	handover   = most{writes: 2 * time.Second, requests: 4 * time.Second}   // a process of a service leaves, or dies
	leadership = most{writes: 12 * time.Second, requests: 15 * time.Second} // a node of the broker leaves, or dies
)

// TestProduction: the overlay `production` on three nodes, by the guide's commands. Under a load every process is
// deleted or killed, everything is rolled, a node is drained, and another one is cut off.
func TestProduction(t *testing.T) {
	c := startCluster(t, 3)
	cell := newCell(t, c)
	cell.write("deploy/k8s/overlays/lowered/kustomization.yaml", lowered)
	cell.install("lowered")
	cell.round("first")
	cell.isFencedIn()
	l := cell.startLoad("production")
	for _, service := range deployments {
		pods := strings.Fields(c.run("kubectl", "-n", "holdfast", "get", "pods", "-o", "name", "-l",
			"app.kubernetes.io/component="+service))
		for _, pod := range pods {
			l.during(pod+" is deleted", handover, func() { cell.do("kubectl -n holdfast delete " + pod) })
		}
		l.during("both processes of "+service+" are killed", most{writes: 2 * time.Second, requests: 10 * time.Second},
			func() { cell.killService(service) })
	}
	l.during("all services are rolled", handover, func() { cell.do("kubectl -n holdfast rollout restart deployment") })
	// The kubelet starts a container at once that has not failed before, and waits ten seconds with another one.
	l.during("all nodes of the broker are killed", most{writes: 20 * time.Second, requests: 20 * time.Second},
		cell.killBroker)
	for _, node := range []string{"nats-0", "nats-1", "nats-2"} {
		l.during(node+" is deleted", leadership, func() { cell.do("kubectl -n holdfast delete pod " + node) })
		l.during(node+" is killed", leadership, func() { cell.killNode(node) })
	}
	l.during("node-3 is cut off", leadership, func() {
		c.cut(3)
		l.proceeds(t)
		c.heal(3)
	})
	l.during("node-2 is drained", leadership, func() {
		c.run("kubectl", "drain", "node-2", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=2m")
		l.proceeds(t)
		if out, err := output(".", "kubectl", "drain", "node-1", "--ignore-daemonsets", "--delete-emptydir-data",
			"--timeout=5s"); err == nil {
			t.Errorf("a second node was drained, too:\n%s", out)
		}
		c.run("kubectl", "uncordon", "node-1", "node-2")
	})
	l.end()
	cell.do("kubectl -n holdfast delete pod --all")
	cell.ready()
	cell.round("last")
	t.Log(cell.do("holdfast doctor", cell.env(operator)...))
}
