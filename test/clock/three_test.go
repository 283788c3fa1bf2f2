package clock

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
	"github.com/holdfast-dev/holdfast/test/child"
)

const brokers = 3

// TestOneOfThree sets the clock of one broker of three: first of the leader of the log, whose clock is the cell's, and
// then of a leader of the leases that does not lead the log. That one ends leases by a clock that only it has.
func TestOneOfThree(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"HF_LOG", "KV_hf_leases"} {
		for _, by := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
			t.Run(stream+" "+by.String(), func(t *testing.T) {
				// most of the time it waits
				t.Parallel()
				urls, clocks := three(t)
				w := watchCell(t, strings.Join(urls, ","))
				serve(t, w.url)
				js := admin(t, w.url)
				if stream != "HF_LOG" {
					js.apart(t, stream, "HF_LOG")
				}
				leader := js.leader(t, stream)
				s := w.begin(t, "three")
				if stream == "HF_LOG" {
					w.step(t, clocks[leader], by, by)
				} else {
					set(t, clocks[leader], by)
				}
				s.end(t)
			})
		}
	}
}

// three runs three brokers, each with its own clock. It returns their addresses and, by name, the functions that set
// their clocks.
func three(t *testing.T) (urls []string, clocks map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var routes []string
	held, address := make([]net.Listener, brokers), ownAddress()
	for i := range held {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		held[i], routes = l, append(routes, "nats://"+l.Addr().String())
	}
	for _, l := range held {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	clocks = map[string]string{}
	var nodes []*child.Process
	for i, route := range routes {
		name := fmt.Sprintf("node-%d", i)
		clocks[name] = filepath.Join(dir, name+".clock")
		set(t, clocks[name], 0)
		settings, err := json.Marshal(embed.Config{Dir: filepath.Join(dir, name), Listen: loopback, Name: name,
			Cluster: &embed.Cluster{Name: "test", Listen: strings.TrimPrefix(route, "nats://"), Routes: routes}})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary(t))
		cmd.Env = append(os.Environ(), clockVariable+clocks[name], "HOLDFAST_TEST_NODE="+string(settings))
		p, err := child.Run(name, filepath.Join(dir, name+".log"), cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		nodes = append(nodes, p)
	}
	for _, p := range nodes {
		line, err := p.Line(ctx)
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, line)
	}
	return urls, clocks
}

// serve runs all services in this process, whose clock is not set.
func serve(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	run := func(service interface{ Run(context.Context) error }, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := service.Run(ctx); err != nil {
				t.Errorf("%T: %v", service, err)
			}
		})
	}
	connect := func(name string) *bus.Bus {
		short, stop := context.WithTimeout(ctx, patience)
		defer stop()
		b, err := bus.Open(short, bus.Config{URL: url, Name: name, Replicas: brokers})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		if err := b.Layout.Ensure(short); err != nil {
			t.Fatal(err)
		}
		return b
	}
	cfg := reconciler.Default()
	cfg.Grace, cfg.AdoptionGrace = grace, grace
	r, err := reconciler.New(connect("reconciler"), cfg, zerolog.Nop())
	run(r, err)
	l, err := ledger.New(connect("ledger"), ledger.Default(), zerolog.Nop())
	run(l, err)
	y, err := retry.New(connect("retry"), retry.Default(), zerolog.Nop())
	run(y, err)
	c, err := compaction.New(connect("compaction"), compaction.Default(), zerolog.Nop())
	run(c, err)
	// before their connections are closed
	t.Cleanup(func() { cancel(); all.Wait() })
}

// administrator returns a connection for requests about leaders.
type administrator struct {
	nc *nats.Conn
	js jetstream.JetStream
}

func admin(t *testing.T, url string) *administrator {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &administrator{nc, js}
}

// leader returns the name of a stream's leader.
func (a *administrator) leader(t *testing.T, stream string) (name string) {
	t.Helper()
	natstest.Until(t, stream+" to have a leader", func() bool {
		s, err := a.js.Stream(t.Context(), stream)
		if err != nil {
			return false
		}
		if c := s.CachedInfo().Cluster; c != nil {
			name = c.Leader
		}
		return name != ""
	})
	return name
}

// apart moves a stream's leader to a broker other than this one.
func (a *administrator) apart(t *testing.T, stream, from string) {
	t.Helper()
	natstest.Until(t, stream+" to be led apart from "+from, func() bool {
		if a.leader(t, stream) != a.leader(t, from) {
			return true
		}
		_, err := a.nc.RequestWithContext(t.Context(), "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
		return err != nil
	})
}
