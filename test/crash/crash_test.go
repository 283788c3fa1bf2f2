package crash

import (
	"context"
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

var (
	kills    = flag.Int("kills", 0, "SIGKILLs with one broker; 0: 24, or 240 in the long form")
	clusters = flag.Int("cluster-kills", 0, "SIGKILLs with three brokers; 0: 3, or 48 in the long form")
	seeds    = flag.Uint64("seed", 0, "what chance begins with; 0: drawn")
)

// Size of the world.
const (
	harnesses      = 4               // exclusive ones
	members        = 2               // of a pool
	sessions       = 4               // that each harness works in at once
	freezePercent  = 20              // of strikes are SIGSTOP, not SIGKILL
	replacePercent = 40              // of stopped harnesses have a new process meanwhile
	frozenMax      = 6 * time.Second // long enough that another process takes over
	fencedPercent  = 50              // of stopped harnesses are stopped longer than a lease and its grace
	warmUp         = time.Second
	livelyMax      = 2 * time.Minute
	restMax        = 2 * time.Minute
	checkMax       = 2 * time.Minute
	picturesMax    = 5 // of the state, while processes start over
)

// awayMax is the longest time that a struck process is away, by role. Harnesses and the broker are sometimes away for
// longer than a lease.
var awayMax = map[string]time.Duration{
	roleBroker: 3 * time.Second, roleLedger: 2500 * time.Millisecond, roleReconciler: 2500 * time.Millisecond,
	roleRetry:      2500 * time.Millisecond,
	roleCompaction: 2500 * time.Millisecond, roleHarness: 6 * time.Second,
}

// number returns a flag's value, or the default of the short or the long form.
func number(flagged *int, short, long int) int {
	switch {
	case *flagged != 0:
		return *flagged
	case os.Getenv("HOLDFAST_LONG") != "":
		return long
	}
	return short
}

func drawn(t *testing.T) uint64 {
	seed := *seeds
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: run again with -seed %d", seed, seed)
	return seed
}

// TestCrash kills services, harnesses and the broker.
func TestCrash(t *testing.T) {
	w := newWorld(t, drawn(t), 1)
	w.struggle(number(kills, 24, 240), 1500*time.Millisecond, func() {
		switch n := w.rnd.IntN(100); {
		case n < 4:
			// all roles
			for _, a := range slices.Concat(w.nodes, w.others) {
				w.strike(a)
			}
		case n < 8:
			// all harnesses: people keep answering
			for _, a := range w.others {
				if a.role == roleHarness {
					w.strike(a)
				}
			}
		case n < 24:
			w.strike(w.nodes[0])
		default:
			w.strike(w.others[w.rnd.IntN(len(w.others))])
		}
	})
}

// TestCluster kills brokers of three, most often the leader of the log, and sometimes their clients.
func TestCluster(t *testing.T) {
	w := newWorld(t, drawn(t), 3)
	w.struggle(number(clusters, 3, 48), 8*time.Second, func() {
		switch n := w.rnd.IntN(100); {
		case n < 50:
			w.strike(w.leader())
		case n < 75:
			w.strike(w.nodes[w.rnd.IntN(len(w.nodes))])
		default:
			w.strike(w.others[w.rnd.IntN(len(w.others))])
		}
	})
}

// struggle strikes at random instants until there were enough kills, waits for rest, and checks the state.
func (w *world) struggle(most int, pauseMax time.Duration, strike func()) {
	began := time.Now()
	w.wait(warmUp)
	for w.kills() < most && !w.t.Failed() {
		w.wait(time.Duration(w.rnd.Int64N(int64(pauseMax))))
		strike()
	}
	w.live()
	w.t.Logf("killed in %s: %v, the leader of the log %d times; stopped for a while: %v",
		time.Since(began).Round(time.Second), w.killed, w.led, w.stopped)
	w.rest()
	w.check()
}

// rest restarts all processes but half of the harnesses, which stay dead, and waits until no work is left.
func (w *world) rest() {
	for len(w.due) > 0 {
		w.wait(pollEvery)
	}
	var living []*actor
	for i, a := range w.others {
		switch {
		case a.role != roleHarness:
		case i%2 == 0:
			a.p.Kill()
			a.p = nil
			w.struck[a.ID] = append(w.struck[a.ID], time.Now())
		default:
			living = append(living, a)
		}
	}
	for _, a := range append(living, w.person) {
		w.send(a, sendRest)
	}
	for _, a := range append(living, w.person) {
		w.idle(a)
	}
	w.settle()
}

// settle waits until no work is left.
func (w *world) settle() {
	began := time.Now()
	s := &settler{w: w}
	if !until(restMax, s.settled) {
		w.t.Errorf("V14: after %s there is still something to do: %s", restMax, s.why)
	}
	w.t.Logf("everything is settled after %s", time.Since(began).Round(time.Millisecond))
}

// idle waits until an actor reports that it is at rest.
func (w *world) idle(a *actor) {
	ctx, cancel := context.WithTimeout(context.Background(), restMax)
	defer cancel()
	for {
		line, err := a.p.Line(ctx)
		if err != nil {
			w.t.Fatalf("V14: %s does not come to rest: %v", a.Name, err)
		}
		if line == lineIdle {
			return
		}
	}
}

// settler checks whether work is left.
type settler struct {
	w     *world
	seq   uint64 // end of the log when no work was found
	times int    // how often in a row
	why   string // work that is left
}

func (s *settler) settled() bool {
	ctx, cancel := context.WithTimeout(context.Background(), checkMax)
	defer cancel()
	s.w.fallen()
	var seq uint64
	if s.why, seq = s.left(ctx); s.why != "" || seq != s.seq {
		s.times = 0
	}
	s.seq = seq
	if s.why == "" {
		s.times++
	}
	return s.times >= 2
}

// left returns the work that is left, "" for none, and the end of the log.
func (s *settler) left(ctx context.Context) (string, uint64) {
	b := s.w.bus
	seq, err := b.Log.LastSeq(ctx)
	if err != nil {
		return err.Error(), 0
	}
	sources := slices.Concat(reconciler.Sources(b), retry.Sources(b), compaction.Sources(b),
		[]consumer.Source{ledger.Source(ledgerConfig())})
	for _, src := range sources {
		pending, _, err := b.Consumers.Lag(ctx, src)
		if err != nil {
			return err.Error(), seq
		}
		if pending > 0 {
			return src.Durable + " lags", seq
		}
	}
	var sweep request.Swept
	if err := b.Services.Request(ctx, reconciler.Name, "sweep", request.Sweep{DryRun: true}, &sweep); err != nil {
		return err.Error(), seq
	}
	if len(sweep.Facts) > 0 || sweep.Failed > 0 || len(sweep.Suspects) > 0 {
		return "a sweep would " + asJSON(sweep), seq
	}
	p, err := readPicture(ctx, b)
	if err != nil {
		return err.Error(), seq
	}
	return p.restless(), seq
}

// check compares the state with the log. A living process may start over meanwhile, on a machine too busy to renew its
// lease: what was read before then is not the state of one instant, and it is read again.
func (w *world) check() {
	var p *picture
	var found []string
	for range picturesMax {
		p, found = w.examine()
		if len(found) == 0 || !w.wrote(p.last) {
			break
		}
		w.t.Logf("processes have started over while the log was read: it is read again; so far: %s", found[0])
		w.settle()
	}
	for i, f := range found {
		if i == findingsMax {
			w.t.Errorf("and %d more", len(found)-i)
			break
		}
		w.t.Error(f)
	}
	w.t.Log(p.summary())
	// a cluster's few kills may miss some kinds
	if len(w.nodes) == 1 {
		w.checkLively(p)
	}
}

// wrote reports whether a process of a harness has written anything after a place of the log.
func (w *world) wrote(after uint64) (wrote bool) {
	ctx, cancel := context.WithTimeout(context.Background(), checkMax)
	defer cancel()
	err := w.bus.Log.Scan(ctx, after+1, func(c events.Commit) error {
		wrote = wrote || c.Writer == events.WriterHarness
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return wrote
}

// examine takes a picture and returns what is wrong with it.
func (w *world) examine() (p *picture, found []string) {
	ctx, cancel := context.WithTimeout(context.Background(), checkMax)
	defer cancel()
	p, err := readPicture(ctx, w.bus)
	if err != nil {
		w.t.Fatal(err)
	}
	if p.notes, err = readJournals(w.dir); err != nil {
		w.t.Fatal(err)
	}
	p.struck = w.struck
	if p.lost, err = readLost(w.dir); err != nil {
		w.t.Fatal(err)
	}
	found = append(p.check(), w.passTwice(ctx)...)
	return p, append(found, w.rebuild(ctx, p)...)
}

// lively are the kinds of facts of retry and compaction that a run must contain.
var lively = []events.Kind{"retry.scheduled", "compaction.completed", "compaction.failed", "message.accepted",
	"turn.requested"}

// live continues, on a slow machine, until all kinds of lively have happened.
func (w *world) live() {
	ctx, cancel := context.WithTimeout(context.Background(), livelyMax)
	defer cancel()
	tame := func() bool {
		// the broker may be down, and only wait starts it again
		soon, done := context.WithTimeout(ctx, warmUp)
		defer done()
		seen := map[events.Kind]bool{}
		err := w.bus.Log.Scan(soon, 0, func(c events.Commit) error {
			for i := range c.Events {
				seen[c.Events[i].Kind] = true
			}
			return nil
		})
		return err != nil || slices.ContainsFunc(lively, func(k events.Kind) bool { return !seen[k] })
	}
	// a cluster's few kills may miss some kinds
	for len(w.nodes) == 1 && ctx.Err() == nil && tame() && !w.t.Failed() {
		w.wait(warmUp)
	}
}

// checkLively: all kinds of lively have happened.
func (w *world) checkLively(p *picture) {
	kinds := p.kinds()
	for _, k := range lively {
		if kinds[k] == 0 {
			w.t.Errorf("no %s: the world is too tame", k)
		}
	}
}

// passTwice: another pass of the reconciler appends nothing (V3).
func (w *world) passTwice(ctx context.Context) (found []string) {
	before, err := w.bus.Log.LastSeq(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	var sweep request.Swept
	if err := w.bus.Services.Request(ctx, reconciler.Name, "sweep", request.Sweep{}, &sweep); err != nil {
		return []string{err.Error()}
	}
	after, err := w.bus.Log.LastSeq(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	if before != after || len(sweep.Facts) > 0 || sweep.Failed > 0 {
		found = append(found, "V3: a second pass appended something: "+asJSON(sweep))
	}
	return found
}

// rebuild: documents and views built from the log alone equal the present ones (V13).
func (w *world) rebuild(ctx context.Context, before *picture) (found []string) {
	var reply struct {
		Sessions, Changed, Removed, Views int
		Failed                            []string
	}
	if err := w.bus.Services.Request(ctx, ledger.Name, "rebuild", struct{}{}, &reply); err != nil {
		return []string{"V13: rebuild: " + err.Error()}
	}
	if reply.Changed+reply.Removed+reply.Views > 0 || len(reply.Failed) > 0 {
		found = append(found, "V13: a rebuild changed something: "+asJSON(reply))
	}
	if reply.Sessions != len(before.refs) {
		found = append(found, "V13: a rebuild knows other sessions than the log: "+asJSON(reply))
	}
	after, err := readPicture(ctx, w.bus)
	if err != nil {
		return append(found, err.Error())
	}
	for key, e := range before.state {
		if x, ok := after.state[key]; !ok || string(x.Value) != string(e.Value) {
			found = append(found, "V13: a rebuild changed "+key+":\nfrom "+string(e.Value)+"\nto   "+string(x.Value))
		}
	}
	for key, e := range after.state {
		if _, ok := before.state[key]; !ok {
			found = append(found, "V13: a rebuild made "+key+": "+string(e.Value))
		}
	}
	return found
}
