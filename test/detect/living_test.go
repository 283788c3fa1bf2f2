package detect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/test/child"
)

const (
	livingProcesses = 10
	standstill      = 300 * time.Millisecond // of the machine; a longer one may spoil a round
	pauseMax        = 4 * time.Second        // how long a living process is stopped
	silence         = 5 * time.Second        // how long a connection is silent: its client leaves it within 3 s
)

// TestLiving: no process counts as dead while it lives, though its connection breaks or is silent, it is stopped for up
// to 4 s, and the broker and the services restart.
func TestLiving(t *testing.T) {
	cuts, silences, pauses, restarts := 3, 1, 1, 1
	if os.Getenv("HOLDFAST_LONG") != "" {
		// 1,000 connections
		cuts, silences, pauses, restarts = 100, 25, 25, 25
	}
	srv := natstest.Start(t, natstest.Synced())
	c, stop := newCellOn(t, srv)
	p := newProxy(t, srv)
	rounds := func(n int, what string, act func(all []*child.Process)) {
		for range n {
			natstest.RetryStalled(t, standstill, func() error { return c.live(p, what, act) })
		}
	}
	rounds(cuts, "cut", func([]*child.Process) { p.cut() })
	rounds(silences, "silent", func([]*child.Process) {
		p.hold()
		<-time.After(silence)
		p.release()
	})
	rounds(pauses, "pause", func(all []*child.Process) {
		for _, one := range all {
			one.Stop()
		}
		<-time.After(pauseMax)
		for _, one := range all {
			one.Continue()
		}
	})
	rounds(restarts, "restart", func([]*child.Process) {
		stop()
		srv = natstest.Restart(t, srv)
		stop = c.serve(srv)
	})
}

// TestLivingInAnElection: no process counts as dead when its connection breaks while the leases have no leader.
func TestLivingInAnElection(t *testing.T) {
	rounds := 1
	if os.Getenv("HOLDFAST_LONG") != "" {
		rounds = 20
	}
	nodes := natstest.Cluster(t)
	c, _ := newCellOn(t, nodes[0])
	p, leases := newProxy(t, nodes[0]), "KV_hf_leases"
	nc, err := nats.Connect(nodes[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for range rounds {
		natstest.RetryStalled(t, standstill, func() error {
			return c.live(p, "election", func([]*child.Process) {
				var leader string
				natstest.Until(t, "a leader that can leave", func() bool {
					leader = c.leader(nc, leases)
					if leader == nodes[0].Config().Name {
						c.ask(nc, "STREAM.LEADER.STEPDOWN."+leases, nil)
						leader = ""
					}
					return leader != ""
				})
				at := slices.IndexFunc(nodes, func(n *embed.Server) bool { return n.Config().Name == leader })
				nodes[at].Shutdown()
				p.cut()
				natstest.Until(t, "another leader", func() bool {
					now := c.leader(nc, leases)
					return now != "" && now != leader
				})
				nodes[at] = natstest.Restart(t, nodes[at])
			})
		})
	}
}

// leader returns the name of the node that leads a stream, "" if none does.
func (c *cell) leader(nc *nats.Conn, stream string) string {
	var info struct{ Cluster struct{ Leader string } }
	c.ask(nc, "STREAM.INFO."+stream, &info)
	return info.Cluster.Leader
}

// ask requests something of the broker. No answer is a reply without fields.
func (c *cell) ask(nc *nats.Conn, verb string, reply any) {
	m, err := nc.Request("$JS.API."+verb, nil, time.Second)
	if err == nil && reply != nil {
		err = json.Unmarshal(m.Data, reply)
	}
	if err != nil {
		c.t.Logf("%s: %v", verb, err)
	}
}

// live starts processes, acts, and reports those that count as dead although they live.
func (c *cell) live(p *proxy, name string, act func([]*child.Process)) error {
	all := make([]*child.Process, livingProcesses)
	ids := make([]string, len(all))
	log := filepath.Join(c.t.TempDir(), "harness.log")
	c.aliveRounds++
	for i := range all {
		ids[i] = fmt.Sprintf("%s-%d-%d", name, c.aliveRounds, i)
		one, err := child.Start("harness", log, settings{URL: p.url, ID: ids[i]})
		if err != nil {
			c.t.Fatal(err)
		}
		defer one.Kill()
		all[i] = one
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), startMax)
	defer cancel()
	for i, one := range all {
		if _, err := one.Line(ctx); err != nil {
			c.t.Fatal(err)
		}
		c.until(ids[i]+" to be seen at work", func() bool { return c.works(ids[i]) })
	}
	act(all)
	// by then a dead process would have been noticed
	<-time.After(2 * reconciler.Default().DisconnectGrace)
	c.mu.Lock()
	defer c.mu.Unlock()
	var wrong []error
	for _, id := range ids {
		for _, s := range sessions {
			ref := events.Ref{Harness: id, Session: s}.String()
			if how := c.lost[ref]; how != "" {
				wrong = append(wrong, fmt.Errorf("%s lives and counted as dead: %s", ref, how))
			}
		}
	}
	return errors.Join(wrong...)
}

// proxy stands between processes and a broker, and breaks their connections.
type proxy struct {
	url, target string

	mu    sync.Mutex
	conns []net.Conn
	held  chan struct{} // if not nil: bytes wait until it is closed
}

func newProxy(t *testing.T, srv *embed.Server) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "nats://" + l.Addr().String(), target: strings.TrimPrefix(srv.URL(), "nats://")}
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", p.target)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, broker)
			p.mu.Unlock()
			go p.pipe(client, broker)
			go p.pipe(broker, client)
		}
	}()
	return p
}

// pipe copies until one side ends, and then ends both.
func (p *proxy) pipe(to, from net.Conn) {
	// either may have ended it
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// hold delays what both sides send, also the ends of their connections, until release.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

// release delivers what was delayed.
func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.held)
	p.held = nil
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
