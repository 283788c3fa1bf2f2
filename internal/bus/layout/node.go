package layout

import (
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// silentMin is how long a stream's leader has not heard of a node that counts as offline. The cluster lists a node as
// online while its JetStream is off, and for a while at each start.
const silentMin = 5 * time.Second

// nodes adds the names of the brokers that hold a stream, and those that are offline or silent.
func (s *StreamState) nodes(info *jetstream.StreamInfo) {
	if info.Cluster == nil {
		return
	}
	if info.Cluster.Leader != "" {
		s.Nodes = append(s.Nodes, info.Cluster.Leader)
	}
	for _, p := range info.Cluster.Replicas {
		s.Nodes = append(s.Nodes, p.Name)
		if p.Offline || !p.Current && p.Active > silentMin {
			s.Offline = append(s.Offline, p.Name)
		}
	}
	slices.Sort(s.Nodes)
}
