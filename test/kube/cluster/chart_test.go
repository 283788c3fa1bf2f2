package cluster

import (
	"strings"
	"testing"
)

// loweredValues are what `lowered` is for the manifests.
const loweredValues = `services:
  resources:
    ledger: {requests: {cpu: 20m, memory: 64Mi}}
    retry: {requests: {cpu: 20m, memory: 64Mi}}
    compaction: {requests: {cpu: 20m, memory: 64Mi}}
    reconciler: {requests: {cpu: 20m, memory: 64Mi}}
broker:
  resources: {requests: {cpu: 100m, memory: 128Mi}}
`

// TestChart: the chart by the guide's commands, with three nodes of the broker on one machine. An upgrade under a load
// loses nothing, and what an uninstall keeps is there after the next install.
func TestChart(t *testing.T) {
	cell := newCell(t, startCluster(t, 1))
	cell.write("lowered.yaml", loweredValues)
	install := strings.TrimSpace(commands(t, "kubernetes.md", "helm install")) + " -f lowered.yaml\n"
	cell.do(install)
	cell.ready()
	cell.round("before")
	l := cell.startLoad("chart")
	l.during("an upgrade of the chart", handover, func() {
		cell.do("helm upgrade cell deploy/helm/holdfast -n holdfast --reuse-values --set config.logLevel=debug")
	})
	l.end()
	cell.do("helm uninstall cell -n holdfast --wait")
	if out := cell.do("kubectl -n holdfast get pvc -o name"); strings.Count(out, "data-nats-") != 3 {
		t.Errorf("the volumes after helm uninstall: %q", out)
	}
	// The namespace has its label, and the config map is kept.
	_, again, found := strings.Cut(install, "helm install")
	if !found {
		t.Fatal("the guide does not install the chart")
	}
	cell.do("helm install" + again)
	cell.ready()
	if out := cell.do("holdfast sessions", cell.env(person)...); !strings.Contains(out, "before") {
		t.Errorf("the sessions after the next install: %s", out)
	}
	cell.round("after")
}
