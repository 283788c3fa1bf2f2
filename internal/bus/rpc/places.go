package rpc

import (
	"slices"
	"sync"
)

// Limits of one asker, in a service process. Requests without an asker are those of a cell without users: they share
// all places, and wait without a limit of their own.
const (
	askerAtOnceMax    = 16      // of its requests are handled concurrently
	askerWaitMax      = 240     // of its requests wait
	askerWaitBytesMax = 8 << 20 // of their messages, with headers, subjects and [jobBytes]
)

// Limits of all requests that wait in a service process.
const (
	waitMax      = 8_192
	waitBytesMax = 64 << 20
)

// jobBytes is about what a request takes while it waits, beside its message.
const jobBytes = 512

// places are the places in which a service process handles requests. Each asker has a few of them and a queue of its
// own, and the queues take turns: an asker whose requests take long keeps no other from being served.
type places struct {
	mu      sync.Mutex
	lines   map[signer]*line // of askers with a request in progress or waiting
	order   []*line          // those with a waiting request; the next one first
	running int
	waiting int
	bytes   int           // of the requests that wait
	idle    chan struct{} // closed when none is in progress after the end; nil before it
}

// line has the requests of one asker.
type line struct {
	who     signer
	running int
	waiting []job
	bytes   int
}

// job is one request, and the function that refuses it when the service stops first.
type job struct {
	bytes       int
	run, refuse func()
}

func newPlaces() *places { return &places{lines: map[signer]*line{}} }

// enter runs a request in a goroutine: now, or when it is the turn of its asker. It returns false if too many wait.
func (p *places) enter(who signer, j job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[who]
	if l == nil {
		l = &line{who: who}
	}
	switch {
	case p.running < requestsAtOnceMax && l.mayRun() && len(l.waiting) == 0 && !p.ended():
		p.lines[who] = l
		p.running, l.running = p.running+1, l.running+1
		go p.work(l, j)
		return true
	case p.idle != nil || !l.mayWait(j) || p.waiting >= waitMax || p.bytes+j.bytes > waitBytesMax:
		return false
	}
	p.lines[who] = l
	if len(l.waiting) == 0 {
		p.order = append(p.order, l)
	}
	l.waiting, l.bytes = append(l.waiting, j), l.bytes+j.bytes
	p.waiting, p.bytes = p.waiting+1, p.bytes+j.bytes
	return true
}

func (l *line) mayRun() bool { return l.who.Class == "" || l.running < askerAtOnceMax }

func (l *line) mayWait(j job) bool {
	return l.who.Class == "" || len(l.waiting) < askerWaitMax && l.bytes+j.bytes <= askerWaitBytesMax
}

// work runs a request, and then those that wait for its place.
func (p *places) work(l *line, j job) {
	for more := true; more; {
		j.run()
		l, j, more = p.next(l)
	}
}

// next gives back a place of an asker, and returns the next request for it.
func (p *places) next(done *line) (*line, job, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, done.running = p.running-1, done.running-1
	if done.running == 0 && len(done.waiting) == 0 {
		delete(p.lines, done.who)
	}
	at := slices.IndexFunc(p.order, (*line).mayRun)
	if at < 0 {
		if p.running == 0 && p.idle != nil {
			p.close()
		}
		return nil, job{}, false
	}
	l := p.order[at]
	p.order = slices.Delete(p.order, at, at+1)
	j := l.waiting[0]
	l.waiting[0] = job{}
	l.waiting, l.bytes = l.waiting[1:], l.bytes-j.bytes
	p.waiting, p.bytes = p.waiting-1, p.bytes-j.bytes
	if len(l.waiting) > 0 {
		p.order = append(p.order, l)
	}
	p.running, l.running = p.running+1, l.running+1
	return l, j, true
}

// end refuses the requests that wait, and returns a channel that is closed when none is in progress. Later requests run
// until then, if a place is free, and are refused otherwise.
func (p *places) end() <-chan struct{} {
	p.mu.Lock()
	waiting := p.order
	p.order, p.idle = nil, make(chan struct{})
	p.waiting, p.bytes = 0, 0
	if p.running == 0 {
		p.close()
	}
	var refused []job
	for _, l := range waiting {
		refused = append(refused, l.waiting...)
		l.waiting, l.bytes = nil, 0
	}
	p.mu.Unlock()
	for _, j := range refused {
		j.refuse()
	}
	return p.idle
}

func (p *places) close() {
	if !p.ended() {
		close(p.idle)
	}
}

func (p *places) ended() bool {
	// from no channel nothing is received
	select {
	case <-p.idle:
		return true
	default:
		return false
	}
}
