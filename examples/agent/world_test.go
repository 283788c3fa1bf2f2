package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/examples/agent/script"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
)

const (
	me       = "agent"
	demo     = "demo"
	patience = 2 * time.Minute // the time limit of each wait

	// Lease TTLs of agents that are killed, and of those that are not. A shorter suspension of the machine has no
	// effect.
	ttlKilled = 5 * time.Second
	ttlKept   = 5 * time.Minute
	ttlChosen = 15 * time.Second // the default TTL
)

// world is a broker with all services, an endpoint with a script, and an agent that uses both.
type world struct {
	t      testing.TB
	ctx    context.Context
	url    string
	server *embed.Server
	bus    *bus.Bus
	script *script.Server
	cfg    config
	ttl    time.Duration // of an agent that is not killed
	stops  []func()      // of the services

	mu     sync.Mutex
	folded *session.State // the log as of the last read
}

func newWorld(t testing.TB) *world {
	t.Helper()
	server := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, server: server, ttl: ttlKept, url: server.URL(), bus: natstest.Bus(t, server),
		script: &script.Server{}}
	endpoint := httptest.NewServer(w.script)
	t.Cleanup(endpoint.Close)
	dir := t.TempDir()
	w.cfg = config{nats: w.url, prefix: events.DefaultPrefix, harness: me, session: demo,
		endpoint: endpoint.URL + "/v1", model: "small",
		dir: filepath.Join(dir, "conversations"), root: dir, ttl: ttlKilled}
	w.services()
	return w
}

type runner interface {
	Run(ctx context.Context) error
}

func (w *world) services() {
	w.t.Helper()
	led, err := ledger.New(w.bus, ledger.Default(), zerolog.Nop())
	w.ok(err)
	rc := reconciler.Default()
	rc.Grace, rc.AdoptionGrace = 500*time.Millisecond, time.Second
	rec, err := reconciler.New(w.bus, rc, zerolog.Nop())
	w.ok(err)
	for _, r := range append([]runner{led, rec}, w.deciders()...) {
		w.start(r)
	}
}

// start runs a function until the test ends.
func (w *world) start(r runner) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.stops = append(w.stops, stop)
	w.t.Cleanup(stop)
}

// agent runs the program until stop, or until the test ends.
func (w *world) agent(message string) (stop func()) {
	w.t.Helper()
	cfg := w.cfg
	cfg.message, cfg.ttl = message, w.ttl
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx, cfg, w.t.Output()) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ref() events.Ref { return events.Ref{Harness: me, Session: demo} }

// state returns the session folded from the log.
func (w *world) state() *session.State {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.folded == nil {
		w.folded = session.New(w.ref())
	}
	cs, err := w.bus.Log.Read(w.ctx, w.ref(), w.folded.Seq+1)
	w.ok(err)
	for i := range cs {
		w.folded.Fold(&cs[i])
	}
	return w.folded.Clone()
}

// until waits until the session in the log meets the condition.
func (w *world) until(what string, ok func(*session.State) bool) *session.State {
	w.t.Helper()
	var st *session.State
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if st = w.state(); ok(st) {
			return st
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited %s for %s: %s %+v, last turn %+v, retry %+v, compaction %+v, ignored %+v", patience,
				what, st.Phase, st.Turn, st.LastTurn, st.Retry, st.Compaction, st.Ignored.Last)
		}
		<-tick.C
	}
}

// facts returns the kinds in the log, in order.
func (w *world) facts() (kinds []string) {
	w.t.Helper()
	cs, err := w.bus.Log.Read(w.ctx, w.ref(), 0)
	w.ok(err)
	for _, c := range cs {
		for _, e := range c.Events {
			kinds = append(kinds, string(e.Kind))
		}
	}
	return kinds
}

// request sends a request to a service.
func (w *world) request(service, verb string, body map[string]any) {
	w.t.Helper()
	body["harness"], body["session"] = me, demo
	w.ok(w.bus.Services.Request(w.ctx, service, verb, body, nil))
}

// conversation returns the agent's entries on disk.
func (w *world) conversation() []entry {
	w.t.Helper()
	c, err := open(w.cfg.dir, demo, 1)
	w.ok(err)
	return c.entries
}

// file writes a file into the working directory.
func (w *world) file(name, text string) {
	w.t.Helper()
	w.ok(os.WriteFile(filepath.Join(w.cfg.root, name), []byte(text), 0o600))
}

func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.cfg.root, name))
	return err == nil
}

func (w *world) read(name string) string {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.cfg.root, name))
	w.ok(err)
	return string(raw)
}
