package layout

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A node whose JetStream is off is offline to an operator, although its process is in the cluster.
func TestSilentNodesAreOffline(t *testing.T) {
	for _, c := range []struct {
		name    string
		peer    jetstream.PeerInfo
		offline bool
	}{
		{"up to date", jetstream.PeerInfo{Current: true, Active: time.Minute}, false},
		{"catching up", jetstream.PeerInfo{Active: time.Second, Lag: 7}, false},
		{"silent", jetstream.PeerInfo{Active: time.Minute}, true},
		{"offline", jetstream.PeerInfo{Offline: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.peer.Name = "b"
			var s StreamState
			s.nodes(&jetstream.StreamInfo{Cluster: &jetstream.ClusterInfo{Leader: "a",
				Replicas: []*jetstream.PeerInfo{&c.peer}}})
			if got := len(s.Offline) == 1; got != c.offline || fmt.Sprint(s.Nodes) != "[a b]" {
				t.Errorf("%+v", s)
			}
		})
	}
}
