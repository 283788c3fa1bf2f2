package reconciler

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a pass.
const (
	fencesMax   = 10  // races lost in a row while fencing one session
	readAhead   = 256 // sessions of a tree that are handled concurrently
	chunkSize   = 64  // documents in one read
	chunksAhead = 4
)

// pass is one pass over all sessions of a harness, or of all harnesses.
type pass struct {
	r        *Reconciler
	scope    events.Ref // harness "": all; session "": all of the harness
	aside    bool       // it skips a harness that another pass is handling
	snapshot *snapshot

	mu      sync.Mutex
	trees   map[events.Ref][]*session.State // by root: sessions that may need a decision
	checked int
	facts   map[string]int // appended, by kind
	failed  int
}

// passSoon plans a pass over a harness as soon as possible.
func (r *Reconciler) passSoon(harness string) { r.plan.add(harness, time.Now()) }

// passOver runs a planned pass over one harness.
func (r *Reconciler) passOver(ctx context.Context, harness string) {
	p := r.newPass(events.Ref{Harness: harness})
	err := r.learnClaims(ctx, harness)
	if err == nil {
		err = p.run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn().Str("entity", harness).AnErr("err", err).Msg("pass not finished: tried again")
		r.plan.add(harness, time.Now().Add(tooEarly))
	}
}

// passOverAll is the slow walk.
func (r *Reconciler) passOverAll(ctx context.Context) error {
	p := r.newPass(events.Ref{})
	p.aside = true
	walk := r.children.begin()
	err := p.run(ctx)
	if err == nil {
		r.children.forget(walk)
	}
	return err
}

func (r *Reconciler) newPass(scope events.Ref) *pass {
	k := &snapshot{states: map[events.Ref]*session.State{}, children: map[events.Ref][]events.Ref{}}
	return &pass{r: r, scope: scope, snapshot: k, trees: map[events.Ref][]*session.State{}, facts: map[string]int{}}
}

// run lists the documents, and recovers tree by tree.
func (p *pass) run(ctx context.Context) error {
	began := time.Now()
	if err := p.collect(ctx); err != nil {
		return err
	}
	if p.aside {
		p.everyHarness(ctx, began)
	} else {
		p.over(ctx, slices.Collect(maps.Values(p.trees)))
	}
	p.r.tally.passed(p, time.Since(began))
	return ctx.Err()
}

// everyHarness recovers the sessions listed since an instant, each harness in turn. A harness that another pass is
// handling is left to it: two passes over the same sessions only lose races to each other.
func (p *pass) everyHarness(ctx context.Context, began time.Time) {
	of := map[string][][]*session.State{}
	for root, t := range p.trees {
		of[root.Harness] = append(of[root.Harness], t)
	}
	var all errgroup.Group
	all.SetLimit(passesAtOnceMax)
	for h, trees := range of {
		all.Go(func() error {
			if p.r.plan.hold(h, began) {
				defer p.r.plan.done(h)
				p.over(ctx, trees)
			}
			return nil
		})
	}
	// no function returns an error
	_ = all.Wait()
}

// over recovers these trees.
func (p *pass) over(ctx context.Context, all [][]*session.State) {
	var singles []*session.State
	var trees [][]*session.State
	for _, t := range all {
		switch n := len(p.inScope(t)); {
		case n == 0:
		case len(t) == 1 && !p.hasUnlisted(t[0]):
			singles = append(singles, t[0])
		default:
			trees = append(trees, t)
		}
	}
	p.r.loop.SettleMany(ctx, singles, p.decide, func(x control.Settled) { p.settled(ctx, x) })
	p.r.loop.Each(ctx, len(trees), func(i int) { p.tree(ctx, trees[i]) })
}

// hasUnlisted reports whether a call waits for a child that the pass has not listed: its document could not be read, or
// did not exist yet. Such a session may have no decision, so it is fenced before. Others are settled many at once.
func (p *pass) hasUnlisted(s *session.State) bool {
	return slices.ContainsFunc(p.r.children.of(s), func(r events.Ref) bool { return p.snapshot.get(r) == nil })
}

// inScope returns the requested sessions of a tree.
func (p *pass) inScope(tree []*session.State) []*session.State {
	if p.scope.Session == "" {
		return tree
	}
	return slices.DeleteFunc(slices.Clone(tree), func(s *session.State) bool { return s.Session != p.scope.Session })
}

// collect lists the documents and keeps those that may need a decision, with their parents and children.
func (p *pass) collect(ctx context.Context) error {
	now, err := p.r.now(ctx)
	if err != nil {
		return err
	}
	chunks := make(chan []kv.Entry, chunksAhead)
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			var docs session.Reader
			for chunk := range chunks {
				for i := range chunk {
					p.document(ctx, &docs, chunk[i], now)
				}
			}
		})
	}
	chunk := make([]kv.Entry, 0, chunkSize)
	send := func() error {
		select {
		case chunks <- chunk:
			chunk = make([]kv.Entry, 0, chunkSize)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err = p.r.bus.KV.List(ctx, kv.State, events.SessionKeys(p.scope.Harness), func(e kv.Entry) error {
		if chunk = append(chunk, e); len(chunk) < chunkSize {
			return nil
		}
		return send()
	})
	if err == nil {
		err = send()
	}
	close(chunks)
	readers.Wait()
	return err
}

// document adds one document to the pass.
func (p *pass) document(ctx context.Context, docs *session.Reader, e kv.Entry, now moment) {
	ref, err := events.ParseSessionKey(e.Key)
	if err != nil {
		// not a session
		return
	}
	var s *session.State
	p.r.loop.Try(ctx, ref, func() (err error) {
		h, err := docs.Head(e.Value)
		if err == nil && (h.DueWithin(control.Horizon, now.Clock) || !p.r.restsAt(ref, &h, now)) {
			s, err = docs.Decode(e.Value)
		}
		return err
	})
	if s == nil {
		return
	}
	child := s.Parent != "" && s.ParentCall != "" && s.Parent != s.Session
	// the ledger rebuilds documents of older rules
	skip := s.Outdated() || p.r.needsNoDecision(s, now)
	if skip && !child {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if child {
		parent := events.Ref{Harness: s.Harness, Session: s.Parent}
		p.snapshot.children[parent] = append(p.snapshot.children[parent], ref)
		p.r.children.record(s)
	}
	if skip {
		s = withoutWork(s)
	} else {
		root := events.Ref{Harness: s.Harness, Session: s.Root}
		p.trees[root] = append(p.trees[root], s)
	}
	if child {
		p.snapshot.put(s)
	}
}

// withoutWork returns the fields of a child that a parent needs, for a child without work.
func withoutWork(s *session.State) *session.State {
	c := *s
	if c.Closed != nil {
		c.Tools, c.Prompts, c.Queue = nil, nil, nil
	}
	c.Recent, c.Usage, c.LastCompaction = nil, nil, nil
	return &c
}

// quiet reports whether a session needs no decision, in any state of its parents and children.
func (r *Reconciler) needsNoDecision(s *session.State, now moment) bool {
	return s.Deadlines(nil).IsZero() && !s.Leftover() && (!s.Owned || r.ownerIsAlive(s, now))
}

// ownerIsAlive reports whether an owner with a known lease is not dead, and plans a pass over the harness for the time
// when that may change.
func (r *Reconciler) ownerIsAlive(s *session.State, now moment) bool {
	o, known := r.leases.checkOwner(s, now)
	if !o.CheckAt.IsZero() {
		r.plan.add(s.Harness, now.local(o.CheckAt))
	}
	return known && o.Liveness != Dead
}

// tree recovers the sessions of one tree: it fences all sessions of dead owners, then decides those in its scope,
// leaves first, those of one depth concurrently.
func (p *pass) tree(ctx context.Context, tree []*session.State) {
	for _, s := range tree {
		p.snapshot.put(s)
	}
	p.each(tree, func(s *session.State) { p.fence(ctx, s) })
	tree = p.inScope(tree)
	depth := map[string]int{}
	for _, s := range tree {
		depth[s.Session] = p.depth(s)
	}
	slices.SortFunc(tree, func(a, b *session.State) int { return depth[b.Session] - depth[a.Session] })
	for len(tree) > 0 && ctx.Err() == nil {
		n := slices.IndexFunc(tree, func(s *session.State) bool { return depth[s.Session] != depth[tree[0].Session] })
		if n < 0 {
			n = len(tree)
		}
		p.each(tree[:n], func(s *session.State) { p.settle(ctx, p.snapshot.get(s.Ref())) })
		tree = tree[n:]
	}
}

func (p *pass) each(sessions []*session.State, do func(*session.State)) {
	var all errgroup.Group
	all.SetLimit(readAhead)
	for _, s := range sessions {
		all.Go(func() error {
			do(s)
			return nil
		})
	}
	// no function returns an error
	_ = all.Wait()
}

// depth returns how many of the listed sessions are above this one.
func (p *pass) depth(s *session.State) int {
	n := 0
	for s != nil && s.Parent != "" && n < treeDepthMax {
		s = p.snapshot.get(events.Ref{Harness: s.Harness, Session: s.Parent})
		n++
	}
	return n
}

// fence fences one session of a tree.
func (p *pass) fence(ctx context.Context, s *session.State) {
	r := p.r
	p.record(s, nil, r.loop.Try(ctx, s.Ref(), func() error {
		for range fencesMax {
			now, err := r.now(ctx)
			if err != nil {
				return err
			}
			f := p.treeAt(now, nil)
			// one damaged document does not keep the parent from being fenced
			f.fences = true
			in := now.input()
			if in.Owner, err = r.checkOwner(ctx, s, now); err != nil {
				return err
			}
			if in.Children, err = f.children(ctx, s); err != nil {
				return err
			}
			facts := Fence(s, in)
			if facts == nil {
				return nil
			}
			after, err := r.loop.Append(ctx, s, facts)
			switch {
			case err == nil:
				p.record(after, facts, true)
				return nil
			case !errors.Is(err, bus.ErrLostRace):
				return err
			}
			if s, err = r.loop.CatchUp(ctx, after); err != nil {
				return err
			}
			p.snapshot.put(s)
		}
		return bus.ErrLostRace
	}))
}

// settled receives the outcome of a session without a tree. A failed one is tried again.
func (p *pass) settled(ctx context.Context, x control.Settled) {
	p.record(x.After, x.Facts, true)
	if x.Err != nil && ctx.Err() == nil {
		p.settle(ctx, x.After)
		return
	}
	p.mu.Lock()
	p.checked++
	p.mu.Unlock()
}

// settle recovers one session.
func (p *pass) settle(ctx context.Context, s *session.State) {
	ok := p.r.loop.Try(ctx, s.Ref(), func() error {
		after, facts, err := p.r.loop.SettleBy(ctx, s, p.decide)
		p.record(after, facts, true)
		s = after
		return err
	})
	p.record(s, nil, ok)
	p.mu.Lock()
	p.checked++
	p.mu.Unlock()
}

func (p *pass) record(s *session.State, facts []events.Fact, ok bool) {
	p.mu.Lock()
	p.count(facts)
	if !ok {
		p.failed++
	}
	p.mu.Unlock()
	if len(facts) > 0 {
		p.snapshot.renew(s)
	}
}

func (p *pass) treeAt(now moment, src session.Source) *tree {
	return &tree{r: p.r, now: now, src: src, snapshot: p.snapshot}
}

func (p *pass) decide(ctx context.Context, s *session.State, clock events.Clock, src session.Source) (control.Decision,
	error) {
	now := atMoment(clock)
	owner, err := p.r.checkOwner(ctx, s, now)
	if err != nil {
		return control.Decision{}, err
	}
	// it waits for no child, and no parent waits for it
	if s.Parent == "" && len(p.snapshot.children[s.Ref()]) == 0 && p.r.children.count(s.Ref()) == 0 {
		if facts, ok := decideUnowned(s, Input{Now: now.Now, Owner: owner}); ok {
			p.r.children.awaits(s.Ref(), false)
			return control.Decision{Facts: facts, Alone: true, Rest: true}, nil
		}
	}
	waits := len(s.Tools) > 0 && (leftCalls(s) || owner.Liveness == Dead)
	if waits {
		p.r.children.awaits(s.Ref(), true)
	}
	d, err := p.treeAt(now, src).decide(ctx, s, owner, 0)
	if errors.Is(err, errUnfencedChild) {
		// its fence was not written, or its owner died meanwhile
		p.r.plan.add(s.Harness, time.Now().Add(tooEarly))
		return control.Decision{}, nil
	}
	if err != nil {
		return control.Decision{}, err
	}
	if waits && !leftCalls(d.After) {
		p.r.children.awaits(s.Ref(), false)
	}
	return p.r.forLoop(s, owner, d, now), nil
}
