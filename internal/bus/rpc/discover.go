package rpc

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// discovery replies to the requests by which clients find services (`nats micro ls`, `info`, `stats`). It has the types
// of the micro package, but its own subscriptions: those of micro have no wildcard.
type discovery struct {
	info    micro.Info
	started time.Time
	active  func() []string

	mu    sync.Mutex
	stats []micro.EndpointStats // in the order of info.Endpoints
}

// activeKey is the field of a reply to STATS, below metadata, with the streams whose messages this process takes for
// its service now, separated by spaces.
const activeKey = "active"

// dueSuffix ends the name of a service's consumer of timers.
const dueSuffix = "-due"

// discover describes a service with these endpoints.
func discover(conn *core.Conn, service, version, description string, eps []Endpoint) *discovery {
	cell := conn.Cell
	active := func() []string { return conn.Active.Streams(service, service+dueSuffix) }
	d := &discovery{started: time.Now().UTC(), active: active, info: micro.Info{
		ServiceIdentity: micro.ServiceIdentity{Name: events.ServiceName(service), ID: conn.Instance,
			Version: version, Metadata: map[string]string{}},
		Type: micro.InfoResponseType, Description: description, Endpoints: []micro.EndpointInfo{}}}
	for _, ep := range eps {
		bare := cell.ServiceSubject(service, ep.Verb)
		for _, e := range []micro.EndpointInfo{{Name: ep.Verb, Subject: bare},
			{Name: ep.Verb + askedSuffix, Subject: bare + ".>"}} {
			e.QueueGroup = micro.DefaultQueueGroup
			d.info.Endpoints = append(d.info.Endpoints, e)
			d.stats = append(d.stats, micro.EndpointStats{Name: e.Name, Subject: e.Subject, QueueGroup: e.QueueGroup})
		}
	}
	return d
}

// subjects returns what discovery subscribes to: all services, those of this name, and this process.
func (d *discovery) subjects() []string {
	all := micro.APIPrefix + ".*"
	return []string{all, all + "." + d.info.Name, all + "." + d.info.Name + ".*"}
}

// reply returns the reply to a request on this subject; false if it is for another process, or of an unknown kind.
func (d *discovery) reply(subject string) ([]byte, bool) {
	parts := strings.Split(subject, ".")
	if len(parts) > 3 && parts[3] != d.info.ID {
		return nil, false
	}
	var answer any
	switch parts[1] {
	case micro.PingVerb.String():
		answer = micro.Ping{ServiceIdentity: d.info.ServiceIdentity, Type: micro.PingResponseType}
	case micro.InfoVerb.String():
		answer = d.info
	case micro.StatsVerb.String():
		answer = d.statistics()
	default:
		return nil, false
	}
	body, err := json.Marshal(answer)
	return body, err == nil
}

func (d *discovery) statistics() micro.Stats {
	s := micro.Stats{ServiceIdentity: d.info.ServiceIdentity, Type: micro.StatsResponseType, Started: d.started}
	s.Metadata = map[string]string{activeKey: strings.Join(d.active(), " ")}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.stats {
		s.Endpoints = append(s.Endpoints, &e)
	}
	return s
}

// count adds a request of a verb to the statistics. named: its subject names the asker.
func (d *discovery) count(verb string, named bool, took time.Duration, err error) {
	if named {
		verb += askedSuffix
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.stats {
		e := &d.stats[i]
		if e.Name != verb {
			continue
		}
		e.NumRequests++
		e.ProcessingTime += took
		e.AverageProcessingTime = e.ProcessingTime / time.Duration(e.NumRequests)
		if err != nil {
			e.NumErrors++
			e.LastError = err.Error()
		}
	}
}

// discovered replies to one request of a client that looks for services.
func (s *server) discovered(m *nats.Msg) {
	err := fromInbox(m)
	if body, ok := s.found.reply(m.Subject); ok && err == nil {
		err = s.conn.NC.Publish(m.Reply, body)
	}
	if err != nil {
		s.conn.Log.Debug().AnErr("err", err).Str("service", s.service).Str("entity",
			m.Subject).Msg("request dropped")
	}
}
