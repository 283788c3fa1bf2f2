package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/test/child"
)

// Limits of waiting.
const (
	pollEvery  = 100 * time.Millisecond
	monitorMax = time.Second
	folderMode = 0o700
)

// actor is one role of the world, with a process that may be restarted.
type actor struct {
	settings

	role   string
	log    string
	p      *child.Process // nil while it is not running
	starts uint64
	seed   uint64
	frozen bool
	slept  bool // it was stopped since it was started
}

// world is everything that runs.
type world struct {
	t      testing.TB
	rnd    *rand.Rand
	dir    string
	nodes  []*actor // brokers
	others []*actor // services and harnesses
	ghosts []*actor // harnesses that were replaced while they were stopped
	person *actor
	bus    *bus.Bus // the test's own connection
	due    []revival

	killed, stopped map[string]int         // strikes by role
	struck          map[string][]time.Time // by harness id
	monitor         http.Client
	led             int // strikes at the broker that led the log
}

// revival is when an actor is started again, or, if it was replaced, when it dies for good.
type revival struct {
	at  time.Time
	a   *actor
	die bool
}

// newWorld starts a cell, harnesses, and people.
func newWorld(t testing.TB, seed uint64, nodes int) *world {
	w := newCell(t, seed, nodes)
	for i := range harnesses {
		name := fmt.Sprintf("h%d", i)
		w.add(roleHarness, settings{Name: name, ID: name, Sessions: sessions})
	}
	for i := range members {
		w.add(roleHarness, settings{Name: fmt.Sprintf("pool-%d", i), ID: "pool", Pool: true, Sessions: sessions})
	}
	w.person = w.make(rolePerson, settings{Name: "people"})
	w.start(w.person)
	return w
}

// newCell starts brokers, then two of each service.
func newCell(t testing.TB, seed uint64, nodes int) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), killed: map[string]int{},
		stopped: map[string]int{}, struck: map[string][]time.Time{}}
	w.monitor.Timeout = monitorMax
	t.Cleanup(w.end)
	w.brokers(nodes)
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	var err error
	if w.bus, err = bus.Open(ctx, bus.Config{URL: w.url(), Name: "test", Replicas: nodes}); err != nil {
		t.Fatal(err)
	}
	if err := w.bus.Layout.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{roleLedger, roleReconciler, roleRetry, roleCompaction} {
		for i := range 2 {
			w.add(role, settings{Name: fmt.Sprintf("%s-%d", role, i)})
		}
	}
	return w
}

func (w *world) make(role string, s settings) *actor {
	s.URL, s.Replicas, s.Journal = w.url(), len(w.nodes), filepath.Join(w.dir, s.Name+".journal")
	return &actor{settings: s, role: role, log: filepath.Join(w.dir, s.Name+".log"), seed: w.rnd.Uint64()}
}

func (w *world) add(role string, s settings) {
	a := w.make(role, s)
	w.others = append(w.others, a)
	w.start(a)
}

// brokers starts one broker, or several as a cluster.
func (w *world) brokers(n int) {
	// and for their monitors
	routes := w.routes(2 * n)
	for i := range n {
		s := settings{Name: fmt.Sprintf("node-%d", i), Listen: "127.0.0.1:0"}
		s.Dir = filepath.Join(w.dir, s.Name)
		if err := os.Mkdir(s.Dir, folderMode); err != nil {
			w.t.Fatal(err)
		}
		if n > 1 {
			s.Monitor = strings.TrimPrefix(routes[n+i], "nats://")
			s.Cluster = &embed.Cluster{Name: "crash", Listen: strings.TrimPrefix(routes[i], "nats://"),
				Routes: routes[:n]}
		}
		a := w.make(roleBroker, s)
		w.nodes = append(w.nodes, a)
		w.start(a)
		ctx, cancel := context.WithTimeout(context.Background(), startMax)
		line, err := a.p.Line(ctx)
		cancel()
		if err != nil {
			w.t.Fatal(err)
		}
		_, url, _ := strings.Cut(line, " ")
		// it keeps this address
		a.Listen = strings.TrimPrefix(url, "nats://")
	}
}

// routes returns addresses at which the brokers of a cluster find each other, all held at once so that they differ.
func (w *world) routes(n int) []string {
	routes := make([]string, n)
	for i := range routes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.t.Fatal(err)
		}
		defer func() {
			if err := l.Close(); err != nil {
				w.t.Error(err)
			}
		}()
		routes[i] = "nats://" + l.Addr().String()
	}
	return routes
}

func (w *world) url() string {
	urls := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		urls[i] = "nats://" + n.Listen
	}
	return strings.Join(urls, ",")
}

// start starts a process of an actor.
func (w *world) start(a *actor) {
	a.starts++
	a.Seed = a.seed + a.starts
	p, err := child.Start(a.role, a.log, a.settings)
	if err != nil {
		w.t.Fatal(err)
	}
	a.p, a.slept = p, false
}

// end kills all processes.
func (w *world) end() {
	if w.bus != nil {
		w.bus.Close()
	}
	for _, a := range w.all() {
		if a.p != nil {
			a.p.Kill()
		}
	}
}

func (w *world) all() []*actor {
	all := slices.Concat(w.nodes, w.others, w.ghosts)
	if w.person != nil {
		all = append(all, w.person)
	}
	return all
}

// until polls until ok; it reports whether that came in time.
func until(most time.Duration, ok func() bool) bool {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	late := time.NewTimer(most)
	defer late.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			return false
		}
	}
	return true
}

// wait lets time pass, and starts actors again at their time.
func (w *world) wait(d time.Duration) {
	end := time.Now().Add(d)
	for {
		next := end
		for _, r := range w.due {
			if r.at.Before(next) {
				next = r.at
			}
		}
		t := time.NewTimer(time.Until(next))
		<-t.C
		now := time.Now()
		var later []revival
		for _, r := range w.due {
			if r.at.After(now) {
				later = append(later, r)
			} else {
				later = append(later, w.revive(r)...)
			}
		}
		w.due = later
		w.fallen()
		if !now.Before(end) {
			return
		}
	}
}

// revive starts an actor again. A replaced harness process continues for a while: it must notice that it is superseded.
func (w *world) revive(r revival) []revival {
	switch a := r.a; {
	case r.die:
		w.struck[a.ID] = append(w.struck[a.ID], time.Now())
		a.p.Kill()
		w.ghosts = slices.DeleteFunc(w.ghosts, func(g *actor) bool { return g == a })
	case a.frozen:
		a.frozen = false
		a.p.Continue()
		if slices.Contains(w.ghosts, a) {
			return []revival{{at: w.later(frozenMax), a: a, die: true}}
		}
	default:
		w.start(a)
	}
	return nil
}

func (w *world) later(most time.Duration) time.Time {
	return time.Now().Add(time.Duration(w.rnd.Int64N(int64(most))))
}

// fallen restarts processes that ended without a strike. A broker whose port is taken for a moment is started again.
func (w *world) fallen() {
	for _, a := range w.all() {
		if a.p == nil {
			continue
		}
		err := a.p.Fallen()
		if err == nil {
			continue
		}
		// a process that was stopped while it connected gives up: it waited for longer than it does for a broker
		gaveUp := a.slept && strings.Contains(err.Error(), "no broker answers")
		portTaken := a.role == roleBroker && strings.Contains(err.Error(), embed.ErrPortInUse.Error())
		if !gaveUp && !portTaken {
			w.t.Errorf("%s: %v", a.Name, err)
		}
		if slices.Contains(w.ghosts, a) {
			w.ghosts = slices.DeleteFunc(w.ghosts, func(g *actor) bool { return g == a })
			continue
		}
		w.start(a)
	}
}

// strike kills or stops an actor, and returns when it comes back. People may take a stopped harness for dead and start
// a new process.
func (w *world) strike(a *actor) {
	if a.p == nil || a.frozen {
		return
	}
	w.struck[a.ID] = append(w.struck[a.ID], time.Now())
	if a.role == roleBroker || w.rnd.IntN(100) >= freezePercent {
		a.p.Kill()
		a.p = nil
		w.killed[a.role]++
		w.due = append(w.due, revival{at: w.later(awayMax[a.role]), a: a})
		return
	}
	a.p.Stop()
	w.stopped[a.role]++
	sleeper := a
	if a.role == roleHarness && w.rnd.IntN(100) < replacePercent {
		ghost := *a
		sleeper = &ghost
		w.ghosts = append(w.ghosts, sleeper)
		w.start(a)
	}
	sleeper.frozen, sleeper.slept = true, true
	at := w.later(frozenMax)
	if a.role == roleHarness && w.rnd.IntN(100) < fencedPercent {
		// while its Ask waits
		at = at.Add(leaseTTL + grace)
	}
	w.due = append(w.due, revival{at: at, a: sleeper})
}

func (w *world) kills() (n int) {
	for _, k := range w.killed {
		n += k
	}
	return n
}

// send writes a line to an actor, if it is running.
func (w *world) send(a *actor, line string) {
	if err := a.p.Send(line); err != nil && !errors.Is(err, os.ErrClosed) {
		w.t.Errorf("%s: %v", a.Name, err)
	}
}
