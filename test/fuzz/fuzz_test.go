// Package fuzz writes to a cell everything that the permissions of a harness allow: facts, headers, leases, requests
// and hints, generated from a seed and damaged. No service may panic, and no other session may be delayed. The cell has
// no users, or the users that `holdfast permissions` prints.
package fuzz

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// Limits of the test.
const (
	waitMax   = time.Second // from an append to another session until its document shows it
	shortTime = 5 * time.Second
	longTime  = 30 * time.Minute // of each of the two cells
	attackers = 2
	storedMin = 20              // commits of an attacker that the log accepts
	settleMin = 2 * time.Minute // to compare the documents with the log; a third of the writing time is added
)

// duration returns how long the attackers write.
func duration() time.Duration {
	if os.Getenv("HOLDFAST_LONG") != "" {
		return longTime
	}
	return shortTime
}

// seed returns the seed of everything that is written; HOLDFAST_SEED sets it, to repeat a run.
func seed(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("HOLDFAST_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10)), 10,
		64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("HOLDFAST_SEED=%d", n)
	return n
}

// cell is a broker with all services in this process: a panic of any of them ends the test.
type cell struct {
	*testing.T
	b      *bus.Bus
	ledger *ledger.Ledger

	mu     sync.Mutex
	panics []string
}

// Run receives each line that a service logs: a panic that a service recovered from also fails the test.
func (c *cell) Run(_ *zerolog.Event, _ zerolog.Level, message string) {
	if strings.HasPrefix(message, "panic in a request") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.panics = append(c.panics, message)
	}
}

func (c *cell) start(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	c.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			c.Error(err)
		}
	})
}

// newCell starts all services.
func newCell(t *testing.T, u *users) *cell {
	t.Helper()
	c := &cell{T: t, b: u.service(ledger.Name)}
	console := zerolog.NewConsoleWriter(func(w *zerolog.ConsoleWriter) { w.Out = os.Stderr })
	log := zerolog.New(console).Level(zerolog.ErrorLevel).Hook(c)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	c.ledger, err = ledger.New(u.service(ledger.Name), ledger.Default(), log)
	must(err)
	tries, err := retry.New(u.service(retry.Name), retry.Default(), log)
	must(err)
	compacts, err := compaction.New(u.service(compaction.Name), compaction.Default(), log)
	must(err)
	recovers, err := reconciler.New(u.service(reconciler.Name), reconciler.Default(), log)
	must(err)
	for _, run := range []func(context.Context) error{c.ledger.Run, tries.Run, compacts.Run, recovers.Run} {
		c.start(run)
	}
	return c
}

var probeRef = events.Ref{Harness: "probe", Session: "quiet"}

// probe is a session that is used correctly beside the attacks.
type probe struct {
	*cell
	own    *bus.Bus // of its harness
	person *bus.Bus
	pulse  *natstest.Pulse
	news   chan struct{}
	mu     sync.Mutex
	seen   uint64 // last place that the document showed
	last   uint64 // last place in the log
	rounds int
	worst  time.Duration
}

// watch records the place that the document shows.
func (p *probe) watch(ctx context.Context) error {
	return p.b.KV.Watch(ctx, kv.State, []string{events.SessionKey(probeRef)}, func(u kv.Update) error {
		if h, err := session.ReadHead(u.Value); err == nil {
			p.mu.Lock()
			p.seen = max(p.seen, h.Seq)
			p.mu.Unlock()
			select {
			case p.news <- struct{}{}:
			default:
			}
		}
		return nil
	})
}

// append appends to the probe's session, and waits until its document shows it.
func (p *probe) append(ctx context.Context, facts ...events.Fact) error {
	began, lost := time.Now(), p.pulse.Lost()
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(p.own.NewID(), events.HarnessSource(probeRef.Harness, "1"), probeRef, 1, began, f)
	}
	seq, err := p.own.Log.Append(ctx, probeRef, events.WriterHarness, p.last, evs)
	if err != nil {
		return err
	}
	p.last = seq
	for {
		p.mu.Lock()
		seen := p.seen >= seq
		p.mu.Unlock()
		if seen {
			break
		}
		select {
		case <-p.news:
		case <-ctx.Done():
			return fmt.Errorf("commit %d of the probe was not shown: %w", seq, ctx.Err())
		}
	}
	took := time.Since(began) - (p.pulse.Lost() - lost)
	if took > waitMax {
		p.Errorf("round %d: the probe's document was late by %s", p.rounds, took)
	}
	p.rounds++
	p.worst = max(p.worst, took)
	return nil
}

// round appends twice, and sends a request of a person.
func (p *probe) round(ctx context.Context) error {
	call := fmt.Sprint("call", p.rounds)
	began, lost := time.Now(), p.pulse.Lost()
	var reply struct{ Seq uint64 }
	err := p.person.Services.Request(ctx, ledger.Name, "configure", request.Configure{Ref: probeRef, By: asks,
		Policy: &events.PolicyPatch{RetryMax: events.Set(p.rounds % 100)}}, &reply)
	if err != nil {
		return err
	}
	if took := time.Since(began) - (p.pulse.Lost() - lost); took > waitMax {
		p.Errorf("round %d: a person's request took %s", p.rounds, took)
	}
	p.last = max(p.last, reply.Seq)
	return errors.Join(p.append(ctx, events.ToolStarted{Call: call, Turn: "t", Name: "ls"}),
		p.append(ctx, events.ToolCompleted{Call: call}))
}

// TestFuzz writes with attackers while the probe works; afterwards every document equals the fold of its log.
func TestFuzz(t *testing.T) {
	t.Run("without users", func(t *testing.T) { fuzz(t, open(t)) })
	t.Run("with users", func(t *testing.T) { fuzz(t, secured(t)) })
}

func fuzz(t *testing.T, u *users) {
	from := seed(t)
	c := newCell(t, u)
	p := &probe{cell: c, own: u.login(events.ClassHarness, probeRef.Harness), person: u.login(events.ClassPerson, asks),
		pulse: natstest.Feel(t), news: make(chan struct{}, 1)}
	c.start(p.watch)
	ctx, cancel := context.WithTimeout(context.Background(), duration()+2*time.Minute)
	defer cancel()
	natstest.Until(t, "the services to answer", func() bool {
		return p.person.Services.Request(ctx, ledger.Name, "list", struct{}{}, nil) == nil
	})
	p.pulse = natstest.Feel(t)
	if err := p.append(ctx, events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage}); err != nil {
		t.Fatal(err)
	}
	var attack sync.WaitGroup
	end := time.Now().Add(duration())
	var sent [attackers]int
	for i := range attackers {
		a := newAttacker(u, attackerName(i), rand.New(rand.NewPCG(from, uint64(i))))
		attack.Go(func() {
			for ; time.Now().Before(end); sent[i]++ {
				a.write()
			}
		})
	}
	for time.Now().Before(end) && !t.Failed() {
		if err := p.round(ctx); err != nil {
			t.Fatal(err)
		}
	}
	attack.Wait()
	after, ended := context.WithTimeout(context.Background(), settleMin+duration()/3)
	defer ended()
	c.settled(after)
	if p.rounds < 10 || sent[0] < 100 {
		t.Errorf("%d rounds of the probe, %v written: too few to tell anything", p.rounds, sent)
	}
	t.Logf("%v written, %d rounds of the probe, the slowest took %s", sent, p.rounds, p.worst)
}

// TestFactsOfEachKind: the attackers write facts of each kind of the table.
func TestFactsOfEachKind(t *testing.T) {
	written := map[events.Kind]bool{}
	for _, f := range facts {
		written[events.Kind(f.kind)] = true
	}
	for _, spec := range events.Table() {
		if !written[spec.Kind] {
			t.Errorf("no attacker writes %s", spec.Kind)
		}
	}
}

// settled waits until everything is folded, and compares every session with its log.
func (c *cell) settled(ctx context.Context) {
	c.Helper()
	natstest.Until(c, "all to be folded", func() bool {
		n, _, err := c.b.Consumers.Lag(ctx, ledger.Source(ledger.Default()))
		return err == nil && n == 0
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.panics) > 0 {
		c.Errorf("%d panics in requests", len(c.panics))
	}
	logs, stored := map[events.Ref]bool{}, map[string]int{}
	if err := c.b.Log.Scan(ctx, 0, func(x events.Commit) error {
		if x.Ref.Validate() == nil {
			logs[x.Ref] = true
			stored[x.Ref.Harness]++
		}
		return nil
	}); err != nil {
		c.Fatal(err)
	}
	c.Logf("commits in the log: %v", stored)
	for i := range attackers {
		if n := stored[attackerName(i)]; n < storedMin {
			c.Errorf("%d commits of attacker %d are in the log, want %d: the test is too weak", n, i, storedMin)
		}
	}
	for r := range logs {
		var want, got []byte
		natstest.Until(c, "the document of "+r.String()+" to be what its log says", func() bool {
			want, got = c.both(ctx, r)
			return bytes.Equal(want, got)
		})
	}
	found, err := ledger.Inspect(ctx, c.b)
	if err != nil || len(found.Lost)+len(found.Wrong) > 0 {
		c.Errorf("a survey finds %+v, %v", found, err)
	}
	if n := c.ledger.Counts(); n["set_aside"] > 0 {
		c.Errorf("sessions were set aside: %v", n)
	}
}

// both returns a session's document as the fold of the log, and as stored.
func (c *cell) both(ctx context.Context, r events.Ref) (want, got []byte) {
	commits, err := c.b.Log.Read(ctx, r, 0)
	if err != nil {
		c.Fatal(err)
	}
	st := session.New(r)
	for i := range commits {
		st.Fold(&commits[i])
	}
	if want, err = st.Encode(); err != nil {
		c.Fatal(err)
	}
	e, err := c.b.KV.Load(ctx, kv.State, events.SessionKey(r))
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		c.Fatal(err)
	}
	return want, e.Value
}
