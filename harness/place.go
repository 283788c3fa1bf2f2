package harness

// place is the place of a session among those that a Work serves at once. A turn that waits for people in a [Turn.Ask]
// does not take it: else [Worker.TurnsMax] people who do not answer would keep the answers, messages and stops of all
// other sessions from the agent. Nor does a turn that waits for other turns in [Turn.WaitFor]: else turns that wait for
// their sub-agents could take all places, and no sub-agent would begin. A turn that was answered continues at once, so
// for a while more turns than that may run: no answer waits behind other turns, and a handler that holds a lock while
// it asks waits for no other handler.
type place struct {
	loop  *workLoop
	waits int  // how many Asks and WaitFors of its turn wait; guarded by the loop
	left  bool // the goroutine has ended; guarded by the loop
}

// wait frees the place while an Ask or a WaitFor waits. The caller calls the function that it returns when the wait is
// over.
func (p *place) wait() (over func()) {
	p.count(1)
	p.loop.h.checkWork()
	return func() { p.count(-1) }
}

// free frees the place for good, also if a goroutine of its handler still asks.
func (p *place) free() {
	p.loop.mu.Lock()
	defer p.loop.mu.Unlock()
	if p.left = true; p.waits == 0 {
		p.loop.running--
	}
}

func (p *place) count(waits int) {
	p.loop.mu.Lock()
	defer p.loop.mu.Unlock()
	before := p.waits
	p.waits += waits
	switch {
	case p.left:
	case before == 0:
		p.loop.running--
	case p.waits == 0:
		p.loop.running++
	}
}

// takes records the place of the handler that runs a turn; nil when it has returned.
func (t *Turn) takes(p *place) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.place = p
}

// waits frees the place of the handler that runs a turn while an Ask or a WaitFor of it waits. t may be nil, for a
// prompt that belongs to no turn. The caller calls the function that it returns when the wait is over.
func (t *Turn) waits() (over func()) {
	if t == nil {
		return func() {}
	}
	t.s.mu.Lock()
	p := t.place
	t.s.mu.Unlock()
	if p == nil {
		return func() {}
	}
	return p.wait()
}
