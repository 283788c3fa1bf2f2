package power

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/child"
	"github.com/holdfast-dev/holdfast/test/program"
)

const (
	writers     = 8
	cutsARound  = 2 // of three machines at once, on the same disks
	nodesCut    = 3
	freshEvery  = 5 // number of cuts until the machine gets a new disk, which is cut at its first start
	padMax      = 3_000
	purgeEvery  = 1_000 // commits of the client that does not wait
	plainBytes  = 4_000 // of each
	rewriteMS   = 100   // interval at which the broker writes blocks again
	patience    = time.Minute
	loopbackAny = "127.0.0.1:0"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "what decides when the power is cut, and what survives")

// cuts returns the number of power cuts: a few by default.
func cuts(few, many int) int {
	if os.Getenv("HOLDFAST_LONG") != "" {
		return many
	}
	return few
}

// count is the number of cuts of a test, counted where the power comes back, and of acknowledged commits.
type count struct{ cuts, acknowledged int }

// report prints the counts. A test that made other cuts than it was asked for, or whose writers got no acknowledgement,
// has shown nothing.
func (c count) report(t *testing.T, want int) {
	t.Helper()
	t.Logf("%d power cuts of machines, %d commits were acknowledged", c.cuts, c.acknowledged)
	if c.cuts != want || c.acknowledged == 0 {
		t.Errorf("%d power cuts, want %d; %d commits were acknowledged", c.cuts, want, c.acknowledged)
	}
}

// lost compares the log with the acknowledged commits of these sessions, and returns how many are lost.
func lost(t *testing.T, b *bus.Bus, all []*record) (acknowledged, missing int) {
	t.Helper()
	for _, r := range all {
		acknowledged += len(r.acked)
		if lost := r.lost(b); len(lost) > 0 {
			missing += len(lost)
			t.Errorf("%s: %d of %d acknowledged commits are lost, the first is %s", r.ref, len(lost), len(r.acked),
				lost[0])
		}
	}
	return acknowledged, missing
}

func dice(t *testing.T, salt uint64) *rand.Rand {
	t.Logf("-seed %d", *seed)
	return rand.New(rand.NewPCG(*seed, salt))
}

// TestCuts: `holdfast up` loses no acknowledged commit, whenever the power is cut, also in the first seconds on a new
// disk. It starts on the disk after the cut.
func TestCuts(t *testing.T) {
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rnd, want := dice(t, uint64(i)), cuts(3, 90)
			var made count
			missing := 0
			for n := want; n > 0; n -= freshEvery {
				missing += made.cutUp(t, rnd, k, min(n, freshEvery), "each")
			}
			t.Logf("%s: %d lost", k.name, missing)
			made.report(t, want)
		})
	}
}

// TestCutsInGroups: the same of `holdfast up --sync group`, where the broker acknowledges before the sync and the
// client waits for it.
func TestCutsInGroups(t *testing.T) {
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rnd, want := dice(t, 300+uint64(i)), cuts(3, 100)
			var made count
			missing := 0
			for n := want; n > 0; n -= freshEvery {
				missing += made.cutUp(t, rnd, k, min(n, freshEvery), "group")
			}
			t.Logf("%s: %d lost", k.name, missing)
			made.report(t, want)
		})
	}
}

// TestCutsWhileBlocksAreWrittenAgain: a broker that syncs in groups, while a session is purged and the broker replaces
// the blocks that have mostly commits of it. The clients that wait for the sync lose nothing. A client that takes the
// broker's acknowledgement for it loses some: so the wait is needed.
func TestCutsWhileBlocksAreWrittenAgain(t *testing.T) {
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rnd, want := dice(t, 400+uint64(i)), cuts(3, 50)
			m := newMachine(t, k)
			cfg := embed.Config{Listen: loopbackAny, Group: true, RewriteEvery: rewriteMS * time.Millisecond}
			var all, plain []*record
			rewritten := 0
			for n := range want {
				node := startNode(t, m, cfg)
				url := addressOf(t, node)
				blocks := newBlocks(m)
				w := write(t, url, fmt.Sprintf("%s-%d", k.name, n), 1)
				p := writePlain(t, url, fmt.Sprintf("%s-plain-%d", k.name, n))
				w.during(t, time.Duration(1_000+rnd.IntN(3_000))*time.Millisecond)
				rewritten += blocks.changed(t)
				m.disk.freeze()
				killNodes([]*child.Process{node}, []*machine{m})
				all, plain = append(all, w.stop(t)...), append(plain, p())
				m.back(t, rnd)
			}
			node := startNode(t, m, cfg)
			b := open(t, addressOf(t, node), 1)
			made := count{cuts: m.cuts}
			made.acknowledged, _ = lost(t, b, all)
			gone, acked := 0, 0
			for _, r := range plain {
				gone, acked = gone+len(r.lost(b)), acked+len(r.acked)
			}
			b.Close()
			m.disk.freeze()
			killNodes([]*child.Process{node}, []*machine{m})
			made.report(t, want)
			t.Logf("%d blocks were written again; without the wait %d of %d commits are lost", rewritten, gone, acked)
			if rewritten == 0 || gone == 0 {
				t.Errorf("%d blocks were written again, and %d of %d commits without the wait are lost: that shows "+
					"nothing", rewritten, gone, acked)
			}
		})
	}
}

func addressOf(t *testing.T, p *child.Process) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	line, err := p.Line(ctx)
	if err != nil {
		t.Fatalf("the broker does not start: %v", err)
	}
	return line
}

// blocks are the blocks of the log of a machine, as they are replaced.
type blocks struct {
	done    chan struct{}
	ended   chan struct{}
	changes int
}

// newBlocks counts the blocks that are replaced from now on.
func newBlocks(m *machine) *blocks {
	b := &blocks{done: make(chan struct{}), ended: make(chan struct{})}
	pattern := filepath.Join(m.at, "data", "jetstream", "*", "streams", "HF_LOG", "msgs", "*.blk")
	go func() {
		defer close(b.ended)
		known := map[string]os.FileInfo{}
		tick := time.NewTicker(rewriteMS * time.Millisecond)
		defer tick.Stop()
		for {
			paths, err := filepath.Glob(pattern)
			if err != nil {
				return
			}
			for _, p := range paths {
				info, err := os.Stat(p)
				if err != nil {
					// it was removed
					continue
				}
				if was := known[p]; was != nil && !os.SameFile(was, info) {
					b.changes++
				}
				known[p] = info
			}
			select {
			case <-tick.C:
			case <-b.done:
				return
			}
		}
	}()
	return b
}

// changed ends the count and returns it.
func (b *blocks) changed(t *testing.T) int {
	t.Helper()
	close(b.done)
	<-b.ended
	return b.changes
}

// writePlain appends to one session, purges it now and then, and takes the broker's acknowledgement for a promise,
// until the broker ends. It returns a function that returns the acknowledged commits that were not purged.
func writePlain(t *testing.T, url, session string) func() *record {
	t.Helper()
	nc, err := nats.Connect(url, nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	r, done := &record{ref: events.Ref{Harness: "h", Session: session}}, make(chan struct{})
	go func() {
		defer close(done)
		pad := []byte(`"` + strings.Repeat("x", plainBytes) + `"`)
		for n := 0; ; n++ {
			id := fmt.Sprintf("%s-%d", session, n)
			body, err := events.EncodeBatch([]events.Event{events.New(id, events.HarnessSource("h", "1"), r.ref, 1,
				time.Now(), events.ToolStarted{Call: id, Name: "bash", Input: pad})})
			if err != nil {
				return
			}
			m, err := nc.Request("hf.log.h."+session+".harness", body, patience)
			var a struct{ Seq uint64 }
			if err != nil || json.Unmarshal(m.Data, &a) != nil || a.Seq == 0 {
				return
			}
			r.acked = append(r.acked, ack{a.Seq, id})
			if n%purgeEvery != purgeEvery-1 {
				continue
			}
			r.acked = r.acked[len(r.acked)-1:]
			purge := fmt.Sprintf(`{"filter":"hf.log.h.%s.*","seq":%d}`, session, a.Seq)
			if _, err := nc.Request("$JS.API.STREAM.PURGE.HF_LOG", []byte(purge), patience); err != nil {
				return
			}
		}
	}()
	return func() *record {
		nc.Close()
		<-done
		return r
	}
}

// cutUp cuts the power of one machine n times, and returns how many acknowledged commits are lost.
func (made *count) cutUp(t *testing.T, rnd *rand.Rand, k kind, times int, sync string) (missing int) {
	m := newMachine(t, k)
	var all []*record
	for n := range times {
		u := startUp(t, m, sync)
		last := time.Duration(rnd.IntN(800)) * time.Millisecond
		// At the first start on this disk, everything on it is new.
		if n == 0 {
			last = time.Duration(rnd.IntN(150)) * time.Millisecond
		}
		w := write(t, u.NATS, fmt.Sprintf("%s-%d", k.name, n), 1)
		w.during(t, last)
		m.disk.freeze()
		kill(t, u, m)
		all = append(all, w.stop(t)...)
		m.back(t, rnd)
	}
	u := startUp(t, m, sync)
	b := open(t, u.NATS, 1)
	acknowledged, missing := lost(t, b, all)
	for _, r := range all {
		r.folded(t, b)
	}
	b.Close()
	m.disk.freeze()
	kill(t, u, m)
	made.cuts, made.acknowledged = made.cuts+m.cuts, made.acknowledged+acknowledged
	return missing
}

// TestCutsOfThree: the power of three machines is cut at the same instant.
func TestCutsOfThree(t *testing.T) {
	rnd, rounds := dice(t, 100), cuts(1, 10)
	var made count
	missing := 0
	for range rounds {
		machines := []*machine{newMachine(t, kinds[0]), newMachine(t, kinds[0]), newMachine(t, kinds[0])}
		addrs := free(t, len(machines))
		var all []*record
		for n := range cutsARound {
			nodes, url := startNodes(t, machines, addrs, true)
			w := write(t, url, fmt.Sprintf("three-%d", n), len(machines))
			w.during(t, time.Duration(200+rnd.IntN(800))*time.Millisecond)
			for _, m := range machines {
				m.disk.freeze()
			}
			killNodes(nodes, machines)
			all = append(all, w.stop(t)...)
			for _, m := range machines {
				m.back(t, rnd)
			}
		}
		nodes, url := startNodes(t, machines, addrs, true)
		b := open(t, url, len(machines))
		acknowledged, gone := lost(t, b, all)
		made.acknowledged, missing = made.acknowledged+acknowledged, missing+gone
		b.Close()
		for _, m := range machines {
			m.disk.freeze()
			made.cuts += m.cuts
		}
		killNodes(nodes, machines)
	}
	t.Logf("three at once: %d lost", missing)
	made.report(t, rounds*cutsARound*nodesCut)
}

// TestTheRigLoses: the same broker without synced writes loses acknowledged commits. Otherwise the other tests would
// prove nothing.
func TestTheRigLoses(t *testing.T) {
	rnd := dice(t, 200)
	m := newMachine(t, kinds[0])
	machines := []*machine{m}
	nodes, url := startNodes(t, machines, nil, false)
	w := write(t, url, "unsynced", 1)
	w.during(t, 500*time.Millisecond)
	m.disk.freeze()
	killNodes(nodes, machines)
	records := w.stop(t)
	m.back(t, rnd)
	nodes, url = startNodes(t, machines, nil, false)
	b := open(t, url, 1)
	acked, missing := 0, 0
	for _, r := range records {
		acked, missing = acked+len(r.acked), missing+len(r.lost(b))
	}
	b.Close()
	m.disk.freeze()
	killNodes(nodes, machines)
	t.Logf("%d of %d acknowledged commits are lost", missing, acked)
	if acked == 0 || missing == 0 {
		t.Errorf("%d of %d acknowledged commits are lost without syncs: this rig does not cut the power", missing,
			acked)
	}
}

// startUp runs `holdfast up` on the disk of a machine.
func startUp(t *testing.T, m *machine, sync string) *program.Process {
	t.Helper()
	return program.Run(t, binary, nil, "up", "--data", filepath.Join(m.at, "data"), "--sync", sync, "--listen",
		loopbackAny, "--http", loopbackAny)
}

// kill ends the process of a machine whose disk is frozen. The process gets the signal before any operation of the disk
// returns.
func kill(t *testing.T, p *program.Process, m *machine) {
	t.Helper()
	if err := p.Fallen(); err != nil {
		t.Fatal(err)
	}
	p.Strike()
	m.disk.remove()
	p.Kill()
}

// startNodes starts a broker on each machine.
func startNodes(t *testing.T, machines []*machine, addrs []string, synced bool) (nodes []*child.Process, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var routes, urls []string
	for _, a := range addrs {
		routes = append(routes, "nats://"+a)
	}
	for i, m := range machines {
		cfg := embed.Config{Listen: loopbackAny, Name: fmt.Sprintf("node-%d", i), SyncAlways: synced}
		if len(addrs) > 0 {
			cfg.Cluster = &embed.Cluster{Name: "test", Listen: addrs[i], Routes: routes}
		}
		nodes = append(nodes, startNode(t, m, cfg))
	}
	for _, p := range nodes {
		line, err := p.Line(ctx)
		if err != nil {
			t.Fatalf("a broker does not start after the cut: %v", err)
		}
		urls = append(urls, line)
	}
	return nodes, strings.Join(urls, ",")
}

// startNode starts a broker on a machine. Its first line is its address.
func startNode(t *testing.T, m *machine, cfg embed.Config) *child.Process {
	t.Helper()
	cfg.Dir = filepath.Join(m.at, "data")
	p, err := child.Start(roleBroker, filepath.Join(t.TempDir(), "log"), struct{ Config embed.Config }{cfg})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// killNodes ends the processes of machines whose disks are frozen.
func killNodes(nodes []*child.Process, machines []*machine) {
	for _, p := range nodes {
		// from here on it does nothing
		p.Stop()
	}
	for _, m := range machines {
		m.disk.remove()
	}
	for _, p := range nodes {
		p.Kill()
	}
}

// free returns unused addresses.
func free(t *testing.T, n int) []string {
	t.Helper()
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", loopbackAny)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

func open(t *testing.T, url string, replicas int) *bus.Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b, err := bus.Open(ctx, bus.Config{URL: url, Replicas: replicas})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Layout.Ensure(ctx); err != nil {
		b.Close()
		t.Fatal(err)
	}
	return b
}

// record has the acknowledged commits of one session.
type record struct {
	ref   events.Ref
	acked []ack
}

type ack struct {
	seq uint64
	id  string
}

// lost returns the acknowledged commits that the log does not have under their seq.
func (r *record) lost(b *bus.Bus) (missing []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	commits, err := b.Log.Read(ctx, r.ref, 0)
	there := map[ack]bool{}
	if err == nil {
		for _, c := range commits {
			there[ack{c.Seq, c.Events[0].ID}] = true
		}
	}
	for _, a := range r.acked {
		if !there[a] {
			missing = append(missing, fmt.Sprintf("%d (%v)", a.seq, err))
		}
	}
	return missing
}

// folded waits until the session's document has all commits of its log.
func (r *record) folded(t *testing.T, b *bus.Bus) {
	t.Helper()
	if len(r.acked) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	natstest.Until(t, "the document of "+r.ref.String(), func() bool {
		e, err := b.KV.Load(ctx, kv.State, events.SessionKey(r.ref))
		if err != nil {
			return false
		}
		h, err := session.ReadHead(e.Value)
		return err == nil && h.Seq >= r.acked[len(r.acked)-1].seq
	})
}

// writing is a set of running writers.
type writing struct {
	b       *bus.Bus
	cancel  context.CancelFunc
	all     sync.WaitGroup
	records []*record
	first   chan struct{} // closed at the first acknowledgement
}

// write starts one writer per session. Each one appends one commit after the other.
func write(t *testing.T, url, name string, replicas int) *writing {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &writing{b: open(t, url, replicas), cancel: cancel, first: make(chan struct{})}
	acknowledged := sync.OnceFunc(func() { close(w.first) })
	for i := range writers {
		r := &record{ref: events.Ref{Harness: "h", Session: fmt.Sprintf("%s-%d", name, i)}}
		w.records = append(w.records, r)
		w.all.Go(func() {
			source := events.HarnessSource("h", "1")
			for n, seq := 0, uint64(0); ctx.Err() == nil; n++ {
				var f events.Fact = events.SessionOpened{Incarnation: "1"}
				if n > 0 {
					pad, err := json.Marshal(strings.Repeat("x", n*379%padMax))
					if err != nil {
						return
					}
					f = events.ToolStarted{Call: fmt.Sprint("c", n), Name: "bash", Input: pad}
				}
				id := w.b.NewID()
				at, err := w.b.Log.Append(ctx, r.ref, events.WriterHarness, seq,
					[]events.Event{events.New(id, source, r.ref, 1, time.Now(), f)})
				if err != nil {
					return
				}
				seq = at
				r.acked = append(r.acked, ack{at, id})
				acknowledged()
			}
		})
	}
	return w
}

// during lets them write for a while after the first acknowledgement.
func (w *writing) during(t *testing.T, d time.Duration) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-w.first:
	case <-late.C:
		t.Fatal("there is no acknowledgement")
	}
	<-time.After(d)
}

// stop ends the writers, whose broker has ended, and returns their records.
func (w *writing) stop(t *testing.T) []*record {
	t.Helper()
	w.cancel()
	w.all.Wait()
	w.b.Close()
	return w.records
}
