package crash

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// monitored are the fields of a broker's report on its streams that the test reads.
type monitored struct {
	Accounts []struct {
		Streams []struct {
			Name    string `json:"name"`
			Cluster struct {
				Leader string `json:"leader"`
			} `json:"cluster"`
		} `json:"stream_detail"`
	} `json:"account_details"`
}

// leader returns the broker that leads the log, according to a living broker; any broker if none knows.
func (w *world) leader() *actor {
	cell, err := events.NewCell(events.DefaultPrefix)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, asked := range w.nodes {
		m, err := w.readMonitor(asked)
		if err != nil {
			// it is down, or was a moment ago
			continue
		}
		for _, account := range m.Accounts {
			for _, s := range account.Streams {
				for _, a := range w.nodes {
					if s.Name == cell.LogStream() && s.Cluster.Leader == a.Name && a.p != nil {
						w.led++
						return a
					}
				}
			}
		}
	}
	return w.nodes[w.rnd.IntN(len(w.nodes))]
}

func (w *world) readMonitor(a *actor) (m monitored, err error) {
	resp, err := w.monitor.Get(fmt.Sprintf("http://%s/jsz?accounts=true&streams=true", a.Monitor))
	if err != nil {
		return m, err
	}
	err = json.NewDecoder(resp.Body).Decode(&m)
	if closed := resp.Body.Close(); err == nil {
		err = closed
	}
	return m, err
}
