// Package detect measures the time until the death of a process is detected: from the SIGKILL of a real harness process
// until the last of its calls is closed, and from a new process's "ready" until the work of the earlier one is closed.
// The instant of closing is when a watcher of the documents gets it.
package detect

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/test/child"
)

var (
	kills  = flag.Int("kills", 0, "SIGKILLs; 0: 40, or 200 in the long form")
	rounds = flag.Int("rounds", 200, "restarts")
	seeds  = flag.Uint64("seed", 0, "what chance begins with; 0: drawn")
)

// The promised limits, with the defaults.
const (
	deadMax  = 3 * time.Second        // from a kill until all is closed
	readyMax = 250 * time.Millisecond // from a new process's ready until all is closed
)

const (
	atOnce     = 40 // concurrent processes
	killSpread = 5 * time.Second
	callsMax   = 5 // open calls per session
	startMax   = 3 * time.Minute
	closeMax   = 3 * time.Minute
)

// settings are a child's settings.
type settings struct{ URL, ID string }

func TestMain(m *testing.M) {
	flag.Parse()
	if child.Role() == "" {
		os.Exit(m.Run())
	}
	if err := play(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play runs a harness process until it is killed.
func play(ctx context.Context) error {
	var s settings
	if err := child.Settings(&s); err != nil {
		return err
	}
	orders := child.Orders(ctx)
	h, err := harness.Connect(ctx, harness.Config{ID: s.ID, URL: s.URL})
	if err != nil {
		return err
	}
	if err := work(ctx, h); err != nil {
		return err
	}
	if err := child.Print("ready"); err != nil {
		return err
	}
	// until the parent has ended
	for range orders {
	}
	return nil
}

// work opens a session with calls. One of them waits for a child session that has its own calls.
func work(ctx context.Context, h *harness.Harness) error {
	var above harness.OpenOptions
	for _, id := range sessions {
		s, err := h.Open(ctx, id, above)
		if err != nil {
			return err
		}
		t, err := s.StartTurn(ctx, harness.StartOptions{Content: "go"})
		if err != nil {
			return err
		}
		var call *harness.Call
		for range callsMax {
			if call, err = t.Tool(ctx, harness.ToolOptions{Name: "bash"}); err != nil {
				return err
			}
		}
		above = harness.OpenOptions{Parent: id, ParentCall: call.ID(), Root: sessions[0]}
	}
	return h.Ready(ctx)
}

// sessions returns the sessions of a harness: one, and its sub-agent.
var sessions = []string{"root", "leaf"}

// cell is a broker with its services, and a watch over all documents.
type cell struct {
	t   *testing.T
	url string

	mu          sync.Mutex
	open        map[string]int    // number of open calls and turns by harness and session
	lost        map[string]string // sessions whose owner counted as dead, and how it shows
	closed      map[string]time.Time
	change      chan struct{} // signals a change
	pulse       pulse
	aliveRounds int // rounds with processes that live
}

func newCell(t *testing.T) *cell {
	c, _ := newCellOn(t, natstest.Start(t, natstest.Synced()))
	return c
}

func newCellOn(t *testing.T, srv *embed.Server) (c *cell, stop func()) {
	c = &cell{t: t, url: srv.URL(), open: map[string]int{}, lost: map[string]string{}, closed: map[string]time.Time{},
		change: make(chan struct{}, 1)}
	return c, c.serve(srv)
}

// serve runs the services on this broker until the test ends or stop is called.
func (c *cell) serve(srv *embed.Server) (stop func()) {
	t := c.t
	// as in holdfast up
	b := natstest.Bus(t, srv, func(c *bus.Config) { c.Server = srv })
	led, err := ledger.New(b, ledger.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := reconciler.New(b, reconciler.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	for _, run := range []func(context.Context) error{led.Run, rec.Run, func(ctx context.Context) error {
		return b.KV.Watch(ctx, kv.State, []string{events.SessionKeys("")}, c.see)
	}, func(ctx context.Context) error { return c.pulse.beat(ctx, b) }} {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("it ended: %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
		b.Close()
	})
	t.Cleanup(stop)
	c.until("the services to work", func() bool { return c.asked(b) })
	return stop
}

// asked reports whether the reconciler replies.
func (c *cell) asked(b *bus.Bus) bool {
	err := b.Services.Request(c.t.Context(), reconciler.Name, "sweep", request.Sweep{DryRun: true}, nil)
	refusal, refused := errors.AsType[*events.Refusal](err)
	if err != nil && (!refused || refusal.Code != 503) {
		c.t.Fatal(err)
	}
	return err == nil
}

// see handles one document.
func (c *cell) see(u kv.Update) error {
	if u.Ready || u.Deleted {
		return nil
	}
	st, err := session.Decode(u.Value)
	if err != nil {
		return err
	}
	now := time.Now()
	c.mu.Lock()
	n := len(st.Tools)
	if st.Turn != nil {
		n++
	}
	c.open[st.Ref().String()] = n
	if st.Epoch != 1 || !st.Owned {
		c.lost[st.Ref().String()] = fmt.Sprintf("epoch %d, owned %t, left %q", st.Epoch, st.Owned, st.Left)
	}
	switch {
	case n > 0:
		delete(c.closed, st.Ref().String())
	case c.closed[st.Ref().String()].IsZero():
		c.closed[st.Ref().String()] = now
	}
	c.mu.Unlock()
	select {
	case c.change <- struct{}{}:
	default:
	}
	return nil
}

// works reports whether all calls of a harness are open in the documents.
func (c *cell) works(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range sessions {
		if c.open[events.Ref{Harness: id, Session: s}.String()] != callsMax+1 {
			return false
		}
	}
	return true
}

// over returns the instant at which the last session of a harness had nothing open, or zero if one still has.
func (c *cell) over(id string) (last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range sessions {
		at := c.closed[events.Ref{Harness: id, Session: s}.String()]
		if at.IsZero() {
			return at
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// until waits for a condition. It checks it at each change of a document.
func (c *cell) until(what string, ok func() bool) {
	c.t.Helper()
	late := time.NewTimer(closeMax)
	defer late.Stop()
	// for conditions that change without a document
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !ok() {
		select {
		case <-c.change:
		case <-tick.C:
		case <-late.C:
			c.t.Fatalf("waited %s for %s", closeMax, what)
		}
	}
}

// report prints percentiles and checks the 99th against its limit.
func (c *cell) report(what string, took []time.Duration, most time.Duration) {
	t, slow := c.t, c.pulse.allowance()
	t.Helper()
	slices.Sort(took)
	at := func(percent int) time.Duration {
		return took[max((len(took)*percent+99)/100-1, 0)].Round(time.Millisecond / 10)
	}
	t.Logf("%s: %d times, min %s, p50 %s, p99 %s, max %s, at most %s, and %s for a busy disk", what, len(took), at(0),
		at(50), at(99), at(100), most, slow)
	if at(99) > most+slow {
		t.Errorf("%s: the 99th percentile is %s, at most %s is promised", what, at(99), most)
	}
}

// TestKilled: from SIGKILL until the last call is closed.
func TestKilled(t *testing.T) {
	most := *kills
	switch {
	case most != 0:
	case os.Getenv("HOLDFAST_LONG") != "":
		most = 200
	default:
		most = atOnce
	}
	seed := *seeds
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: run again with -seed %d", seed, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := newCell(t)
	var took []time.Duration
	for len(took) < most {
		took = append(took, c.strike(rnd, len(took), min(atOnce, most-len(took)))...)
	}
	c.report("SIGKILL to closed", took, deadMax)
}

// strike starts processes, kills them at random instants, and waits until their work is closed.
func (c *cell) strike(rnd *rand.Rand, first, n int) []time.Duration {
	log := filepath.Join(c.t.TempDir(), "harness.log")
	ids, all := make([]string, n), make([]*child.Process, n)
	for i := range all {
		ids[i] = fmt.Sprintf("h%d", first+i)
		p, err := child.Start("harness", log, settings{URL: c.url, ID: ids[i]})
		if err != nil {
			c.t.Fatal(err)
		}
		defer p.Kill()
		all[i] = p
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), startMax)
	defer cancel()
	for i, p := range all {
		if _, err := p.Line(ctx); err != nil {
			c.t.Fatal(err)
		}
		c.until(ids[i]+" to be seen at work", func() bool { return c.works(ids[i]) })
	}
	struck := make([]time.Time, n)
	var killers sync.WaitGroup
	for i, p := range all {
		wait := time.NewTimer(time.Duration(rnd.Int64N(int64(killSpread))))
		killers.Go(func() {
			<-wait.C
			struck[i] = time.Now()
			p.Kill()
		})
	}
	killers.Wait()
	took := make([]time.Duration, n)
	for i, id := range ids {
		c.until(id+"'s calls to be closed", func() bool { return !c.over(id).IsZero() })
		took[i] = c.over(id).Sub(struck[i])
	}
	return took
}

// TestRestarted: from a new incarnation's ready until the earlier one's work is closed.
func TestRestarted(t *testing.T) {
	c := newCell(t)
	took := make([]time.Duration, *rounds)
	for i := range took {
		id := fmt.Sprintf("h%d", i)
		before := c.connect(id)
		if err := work(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		c.until(id+" to be seen at work", func() bool { return c.works(id) })
		after := c.connect(id)
		began := time.Now()
		if err := after.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.until(id+"'s calls to be closed", func() bool { return !c.over(id).IsZero() })
		took[i] = c.over(id).Sub(began)
		for _, h := range []*harness.Harness{before, after} {
			if err := h.Close(t.Context()); err != nil && !errors.Is(err, harness.ErrFenced) {
				t.Error(err)
			}
		}
	}
	c.report("ready to closed", took, readyMax)
}

func (c *cell) connect(id string) *harness.Harness {
	h, err := harness.Connect(c.t.Context(), harness.Config{ID: id, URL: c.url})
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}
