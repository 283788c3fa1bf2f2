package cell

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// leaveMax is how long a process of a service takes to end after SIGTERM.
const leaveMax = time.Second

// TestServicesEndWithinASecond: the only process of each service ends within a second of SIGTERM while a harness
// writes, people ask, its metrics are read over a connection that stays, and a probe has connected and asks nothing.
func TestServicesEndWithinASecond(t *testing.T) {
	programs(t)
	d := &deployment{t: t, net: newNetwork(t), secrets: &world{t: t, dir: t.TempDir()}}
	d.secrets.secrets(d.net.routes()...)
	d.pod = overlaid(t, "small", "nats/nats.yaml", "StatefulSet")
	d.node(0, read(t, "overlays/small/nats.conf"))
	d.until(d.nodes[0], d.nodes[0].ready)
	for _, s := range services {
		d.service(s, s)
	}
	t.Cleanup(func() { d.report(t) })
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}
	w := d.write()
	w.proceeds(t)
	for _, s := range d.services {
		natstest.RetryStalled(t, standstill, func() error {
			d.until(s.pod, s.fit)
			idle := s.open()
			// the process may have ended it
			defer func() { _ = idle.Close() }()
			w.proceeds(t)
			began := time.Now()
			s.end(syscall.SIGTERM, true)
			took := time.Since(began)
			t.Logf("%s ended after %s", s.name, took)
			if took > leaveMax {
				return fmt.Errorf("%s ended %s after SIGTERM, want at most %s", s.name, took, leaveMax)
			}
			return nil
		})
		d.until(s.pod, s.fit)
	}
	w.end()
}

// open reads the metrics of the process over a connection that stays open, and returns a further connection, without a
// request.
func (r *replica) open() net.Conn {
	r.t.Helper()
	var note struct{ HTTP string }
	body, err := os.ReadFile(r.readyFile)
	if err == nil {
		err = json.Unmarshal(body, &note)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.Get(note.HTTP + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		r.t.Fatal(err)
	}
	u, err := url.Parse(note.HTTP)
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}
