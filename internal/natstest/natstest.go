// Package natstest starts one broker or three for a test, and connections to it. They listen on loopback, on ports of
// the system's choice, keep their data in the test's directory and end with the test.
package natstest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
)

const (
	startTimeoutS   = 60 // to start a broker, or to connect
	untilTimeoutS   = 90 // of [Until], for events that must happen
	clusterNodes    = 3
	clusterPortsMax = 5                       // attempts: another process may take a port between choosing and using it
	pollMS          = 10                      // interval of the checks of [Until]
	groupedVariable = "HOLDFAST_TEST_GROUPED" // set: all single brokers sync in groups, where a test does not choose
	loopbackAny     = "127.0.0.1:0"
)

// Option changes how a broker is started.
type Option func(*embed.Config)

// Lazy leaves syncing to the system, which is the default of tests: they are faster, and no test here cuts the power.
func Lazy() Option { return func(c *embed.Config) { c.SyncAlways, c.Group = false, false } }

// Synced syncs every write before it is acknowledged, as in production.
func Synced() Option { return func(c *embed.Config) { c.SyncAlways, c.Group = true, false } }

// Grouped syncs writes in groups, after the broker has acknowledged them.
func Grouped() Option { return func(c *embed.Config) { c.SyncAlways, c.Group = false, true } }

// Listen sets the broker's listen address, host:port; "" for no socket.
func Listen(addr string) Option { return func(c *embed.Config) { c.Listen = addr } }

// Settings adds nats-server configuration to the broker: accounts, permissions, limits.
func Settings(t testing.TB, text string) Option {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *embed.Config) { c.File = path }
}

// BusOption changes how a connection is opened.
type BusOption func(*bus.Config)

// Start runs one broker.
func Start(t testing.TB, opts ...Option) *embed.Server {
	t.Helper()
	byVariable := os.Getenv(groupedVariable) != ""
	cfg := embed.Config{Dir: t.TempDir(), Listen: loopbackAny, Group: byVariable}
	for _, o := range opts {
		o(&cfg)
	}
	// the users of a file do not know who answers about syncs
	if byVariable && (cfg.File != "" || cfg.Name != "") {
		cfg.Group = false
	}
	s, err := start(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	serveSyncs(t, s)
	return s
}

// serveSyncs answers questions about syncs until the broker or the test ends, as the process of the broker does.
func serveSyncs(t testing.TB, s *embed.Server) {
	t.Helper()
	if !s.SyncsInGroups() {
		return
	}
	ctx, end := context.WithTimeout(context.Background(), startTimeoutS*time.Second)
	defer end()
	b, err := bus.Open(ctx, bus.Config{Server: s, Name: "syncs"})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.ServeSyncs(serving); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		b.Close()
	})
}

func start(t testing.TB, cfg embed.Config) (*embed.Server, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeoutS*time.Second)
	defer cancel()
	s, err := embed.Start(ctx, cfg)
	if err == nil {
		t.Cleanup(s.Shutdown)
	}
	return s, err
}

// Restart stops a broker, if it runs, and starts it again on the same data and port. If another process has the port,
// it waits until the port is free.
func Restart(t testing.TB, s *embed.Server) *embed.Server {
	t.Helper()
	s.Shutdown()
	var again *embed.Server
	Until(t, "the broker to start again", func() bool {
		var err error
		if again, err = start(t, s.Config()); err != nil && !errors.Is(err, embed.ErrPortInUse) {
			t.Fatal(err)
		}
		return err == nil
	})
	serveSyncs(t, again)
	return again
}

// Cluster runs three brokers and returns when their JetStream has a leader.
func Cluster(t testing.TB, opts ...Option) []*embed.Server {
	t.Helper()
	var err error
	for range clusterPortsMax {
		var nodes []*embed.Server
		if nodes, err = cluster(t, opts); err == nil {
			Until(t, "the cluster to have a leader", func() bool { return leader(nodes) != nil })
			return nodes
		}
		if !errors.Is(err, embed.ErrPortInUse) {
			break
		}
	}
	t.Fatal(err)
	return nil
}

func cluster(t testing.TB, opts []Option) ([]*embed.Server, error) {
	t.Helper()
	addrs, routes := make([]string, clusterNodes), make([]string, clusterNodes)
	// all at once, so that they differ
	held := make([]net.Listener, clusterNodes)
	for i := range addrs {
		l, err := net.Listen("tcp", loopbackAny)
		if err != nil {
			return nil, err
		}
		held[i], addrs[i], routes[i] = l, l.Addr().String(), "nats://"+l.Addr().String()
	}
	for _, l := range held {
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	return clusterOn(t, addrs, routes, opts)
}

func clusterOn(t testing.TB, addrs, routes []string, opts []Option) ([]*embed.Server, error) {
	t.Helper()
	var nodes []*embed.Server
	for i, addr := range addrs {
		cfg := embed.Config{Dir: t.TempDir(), Listen: loopbackAny, Name: fmt.Sprintf("node-%d", i+1),
			Cluster: &embed.Cluster{Name: "test", Listen: addr, Routes: routes}}
		for _, o := range opts {
			o(&cfg)
		}
		s, err := start(t, cfg)
		if err != nil {
			for _, n := range nodes {
				n.Shutdown()
			}
			return nil, err
		}
		nodes = append(nodes, s)
	}
	return nodes, nil
}

func leader(nodes []*embed.Server) *embed.Server {
	for _, n := range nodes {
		if n.Leads() {
			return n
		}
	}
	return nil
}

// Bus opens a connection over the broker's socket, or within the process if it has none, and creates the streams and
// buckets.
func Bus(t testing.TB, s *embed.Server, opts ...BusOption) *bus.Bus {
	t.Helper()
	cfg := bus.Config{URL: s.URL(), Name: t.Name()}
	if s.URL() == "" {
		cfg.Server = s
	}
	if s.Config().Cluster != nil {
		cfg.Replicas = clusterNodes
	}
	for _, o := range opts {
		o(&cfg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeoutS*time.Second)
	defer cancel()
	b, err := bus.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Layout.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

// Until polls until ok, and fails the test at the time limit.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(pollMS * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(untilTimeoutS * time.Second)
	defer late.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("waited %d s for %s", untilTimeoutS, what)
		}
	}
}
