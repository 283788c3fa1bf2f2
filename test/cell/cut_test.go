package cell

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// cutOffMax is the longest pause of the writers of a node that is cut off and does not lead the log: their client
// notices it within 3 s, and connects to another node.
const cutOffMax = 5 * time.Second

// unansweredMax is the longest pause of what a person waits for. The other nodes drop the subscriptions of the silent
// node within 6 s. A request that a service there has taken until then is answered by no process, and the person gives
// it up after refusalMax.
const unansweredMax = refusalMax + 10*time.Second

// TestAWriterLeavesANodeThatIsCutOff: the node of a writer is cut off from nodes and clients, and the writer continues
// on another one. No election is necessary, because the node does not lead the log.
func TestAWriterLeavesANodeThatIsCutOff(t *testing.T) {
	d := deployCell(t, briefly)
	t.Cleanup(func() { d.report(t) })
	w := d.write()
	for range 3 {
		natstest.RetryStalled(t, standstill, func() error {
			at := d.apart()
			w.proceeds(t)
			w.begin()
			d.net.cut(at, true)
			w.proceeds(t)
			writes, reads := w.pauses()
			d.net.heal(at)
			t.Logf("%s was cut off: writes paused for %s, what a person reads for %s", nodeName(at), writes, reads)
			w.proceeds(t)
			d.whole()
			if writes > cutOffMax {
				return fmt.Errorf("writes paused for %s, want at most %s", writes, cutOffMax)
			}
			if reads > unansweredMax {
				return fmt.Errorf("what a person reads paused for %s, want at most %s", reads, unansweredMax)
			}
			return nil
		})
	}
	w.end()
	w.verify(d.as("holdfast-ledger", events.ClassService, "ledger"))
}

// home waits until the writer is connected, and returns its node.
func (d *deployment) home() (at int) {
	d.t.Helper()
	natstest.Until(d.t, "the writer's connection", func() bool {
		for i, n := range d.nodes {
			var all struct {
				Connections []struct {
					User string `json:"authorized_user"`
				}
			}
			text, err := n.ask([]string{"wget", "-q", "-O", "-", "http://127.0.0.1:" + watchPort + "/connz?auth=true"})
			if err != nil || json.Unmarshal([]byte(text), &all) != nil {
				continue
			}
			for _, c := range all.Connections {
				if c.User == "harness-"+attacker {
					at = i
					return true
				}
			}
		}
		return false
	})
	return at
}

// apart restarts the node of the writer until the writer is on a node that does not lead the log, and returns the node.
func (d *deployment) apart() int {
	d.t.Helper()
	for {
		at := d.home()
		if at != d.leader("HF_LOG") {
			return at
		}
		d.nodes[at].end(syscall.SIGTERM, true)
		d.whole()
	}
}

// whole waits until each node is ready and the log has all its copies.
func (d *deployment) whole() {
	d.t.Helper()
	for _, n := range d.nodes {
		d.until(n, n.ready)
	}
	nc := d.login("holdfast-ledger", events.ClassService, "ledger")
	defer nc.Close()
	natstest.Until(d.t, "the copies of the log", func() bool {
		var info struct {
			Cluster struct {
				Replicas []struct{ Current, Offline bool }
			}
		}
		m, err := nc.Request("$JS.API.STREAM.INFO.HF_LOG", nil, probeTimeout)
		if err != nil || json.Unmarshal(m.Data, &info) != nil || len(info.Cluster.Replicas) != nodesMax-1 {
			return false
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				return false
			}
		}
		return true
	})
}
