package health

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// collector reports the parts at each scrape.
type collector struct {
	server                        *Server
	info, ready, connected, count *prometheus.Desc
	lag, active                   *prometheus.Desc
	version                       string
}

func register(r *prometheus.Registry, s *Server, version string) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
	}
	c := &collector{
		server:    s,
		version:   version,
		info:      desc("info", "The program that runs.", "version"),
		ready:     desc("ready", "1 when the service is fit for work.", "service"),
		connected: desc("connected", "1 when the service reaches the broker.", "service"),
		lag:       desc("consumer_lag", "Messages that wait for the consumer, or are not done.", "service", "consumer"),
		active: desc(
			"consumer_active",
			"1 when some process of the service has the consumer.",
			"service",
			"consumer",
		),
		count: desc("events_total", "Acts of the service, by kind.", "service", "kind"),
	}
	for _, x := range []prometheus.Collector{c, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := r.Register(x); err != nil {
			return err
		}
	}
	return nil
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.info, c.ready, c.connected, c.lag, c.active, c.count} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.server.mu.Lock()
	parts := append([]Part(nil), c.server.parts...)
	c.server.mu.Unlock()
	// of these parts, or of more: parts are only added
	reports := c.server.recent(context.Background()).Parts
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.info, 1, c.version)
	for i := range parts {
		p := &parts[i]
		rep := &reports[i]
		gauge(c.ready, truth(rep.OK), p.Name)
		gauge(c.connected, truth(rep.Connected), p.Name)
		for _, consumer := range rep.Consumers {
			gauge(c.lag, float64(consumer.Lag), p.Name, consumer.Name)
			gauge(c.active, truth(consumer.Active), p.Name, consumer.Name)
		}
		if p.Counts == nil {
			continue
		}
		for kind, n := range p.Counts() {
			ch <- prometheus.MustNewConstMetric(c.count, prometheus.CounterValue, float64(n), p.Name, kind)
		}
	}
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
