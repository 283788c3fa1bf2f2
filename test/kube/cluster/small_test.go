package cluster

import (
	"testing"
	"time"
)

// TestSmall: the overlay `small` on one node, by the guide's commands. Under a load every process of the cell is
// deleted or killed, and everything is rolled.
func TestSmall(t *testing.T) {
	cell := newCell(t, startCluster(t, 1))
	cell.install("small")
	cell.round("first")
	l := cell.startLoad("small")
	restart := most{writes: 2 * time.Second, requests: 5 * time.Second}
	for _, service := range deployments {
		l.during("the pod of "+service+" is deleted", restart, func() {
			cell.do("kubectl -n holdfast delete pod -l app.kubernetes.io/component=" + service)
		})
		l.during("the process of "+service+" is killed", restart, func() { cell.killService(service) })
	}
	l.during("all services are rolled", restart, func() { cell.do("kubectl -n holdfast rollout restart deployment") })
	away := most{writes: 10 * time.Second, requests: 10 * time.Second}
	l.during("the broker is deleted", away, func() { cell.do("kubectl -n holdfast delete pod nats-0") })
	l.during("the broker is killed", away, func() { cell.killBroker() })
	l.end()
	cell.round("last")
}
