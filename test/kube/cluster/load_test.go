package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	writing     = 3                     // sessions that write without a pause
	askPace     = 50 * time.Millisecond // between two requests to a service
	askMax      = time.Second           // one request; after it the next one is sent
	provesAlive = 5                     // successes of each that end a disturbance
)

// questions are a request to each service; each answers it at once, if only with a refusal.
var questions = map[string]string{"ledger": "list", "compaction": "check", "reconciler": "report", "retry": "now"}

// load is a harness whose sessions write without a pause, and an operator who asks every service. It records what was
// acknowledged, and the longest time without a success.
type load struct {
	cell     *cell
	harness  *harness.Harness
	operator *bus.Bus
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	leaving  atomic.Bool
	turns    atomic.Int64
	pulse    *natstest.Pulse

	mu    sync.Mutex
	acked map[string][]string // turns by session, in order
	beats map[string]*beat    // by session and by service
}

// beat is when something last succeeded.
type beat struct {
	at    time.Time
	lost  time.Duration // of the pulse, at that instant
	count int
	pause time.Duration // the longest since the disturbance began
}

// startLoad starts a load. Each test has sessions of its own.
func (c *cell) startLoad(name string) *load {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cell: c, harness: c.harness(ctx), operator: c.as(operator), ctx: ctx, cancel: cancel,
		pulse: natstest.Feel(c.t), acked: map[string][]string{}, beats: map[string]*beat{}}
	c.t.Cleanup(cancel)
	for i := range writing {
		id := fmt.Sprintf("%s-%d", name, i)
		s, err := l.harness.Open(ctx, id, harness.OpenOptions{Title: id})
		if err != nil {
			c.t.Fatal(err)
		}
		l.beats[id] = &beat{at: time.Now()}
		l.running.Go(func() { l.write(s) })
	}
	for service, verb := range questions {
		l.beats[service] = &beat{at: time.Now()}
		l.running.Go(func() { l.ask(service, verb) })
	}
	l.proceeds(c.t)
	return l
}

// write runs turns until the load ends. No disturbance ends a turn, so each error is a failure.
func (l *load) write(s *harness.Session) {
	for !l.leaving.Load() {
		if err := l.turn(s); err != nil && l.ctx.Err() == nil {
			l.cell.t.Errorf("%s: %v", s.ID(), err)
			return
		}
	}
}

// turn runs a turn of four commits.
func (l *load) turn(s *harness.Session) error {
	id := fmt.Sprintf("turn-%d", l.turns.Add(1))
	turn, err := s.StartTurn(l.ctx, harness.StartOptions{ID: id, Content: "go"})
	if err != nil {
		return err
	}
	l.alive(s.ID())
	call, err := turn.Tool(l.ctx, harness.ToolOptions{Name: "bash"})
	if err != nil {
		return err
	}
	l.alive(s.ID())
	if err := call.Complete(l.ctx, "output"); err != nil {
		return err
	}
	l.alive(s.ID())
	if err := turn.Complete(l.ctx, "stop"); err != nil {
		return err
	}
	l.mu.Lock()
	l.acked[s.ID()] = append(l.acked[s.ID()], id)
	l.mu.Unlock()
	l.alive(s.ID())
	return nil
}

// ask asks a service until the load ends. A refusal counts as an answer, except for 503.
func (l *load) ask(service, verb string) {
	tick := time.NewTicker(askPace)
	defer tick.Stop()
	for !l.leaving.Load() {
		ctx, cancel := context.WithTimeout(l.ctx, askMax)
		err := l.operator.Services.Request(ctx, service, verb, struct{}{}, new(any))
		cancel()
		if refusal, refused := errors.AsType[*events.Refusal](err); err == nil || refused && refusal.Code != 503 {
			l.alive(service)
		}
		select {
		case <-tick.C:
		case <-l.ctx.Done():
		}
	}
}

// alive records a success. Time in which this process did not run is not a pause.
func (l *load) alive(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now, lost := l.beats[name], time.Now(), l.pulse.Lost()
	b.pause = max(b.pause, now.Sub(b.at)-(lost-b.lost))
	b.at, b.lost = now, lost
	b.count++
}

// proceeds waits until each session and each service has several more successes.
func (l *load) proceeds(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	from := map[string]int{}
	for name, b := range l.beats {
		from[name] = b.count
	}
	l.mu.Unlock()
	l.cell.cluster.until(patience, "all sessions and services continue", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		var waits []string
		for name, b := range l.beats {
			if b.count < from[name]+provesAlive {
				waits = append(waits, name)
			}
		}
		if len(waits) > 0 {
			return fmt.Errorf("%v have no success", waits)
		}
		return nil
	})
}

// most are the longest pauses that a disturbance may cause.
type most struct{ writes, requests time.Duration }

// during disturbs the cell, waits until everything continues, and checks the longest pauses.
func (l *load) during(what string, most most, disturb func()) {
	t := l.cell.t
	t.Helper()
	l.mu.Lock()
	for _, b := range l.beats {
		b.pause = 0
	}
	before := l.turns.Load()
	l.mu.Unlock()
	began := time.Now()
	disturb()
	l.cell.ready()
	l.proceeds(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	var longest []string
	for _, name := range slices.Sorted(maps.Keys(l.beats)) {
		pause, limit := l.beats[name].pause.Round(time.Millisecond), most.writes
		if questions[name] != "" {
			limit = most.requests
			longest = append(longest, fmt.Sprint(name, " ", pause))
		} else {
			longest = append(longest, fmt.Sprint("a session ", pause))
		}
		if pause > limit {
			t.Errorf("%s: %s had a pause of %v, at most %v is promised", what, name, pause, limit)
		}
	}
	t.Logf("%s: longest pauses: %s; %d turns in %v", what, strings.Join(longest, ", "), l.turns.Load()-before,
		time.Since(began).Round(poll))
}

// end stops the load, and looks for everything that was acknowledged in the log.
func (l *load) end() {
	t := l.cell.t
	t.Helper()
	l.leaving.Store(true)
	l.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.harness.Close(ctx); err != nil {
		t.Error(err)
	}
	acknowledged, lost := 0, 0
	for session, turns := range l.acked {
		commits, err := l.operator.Log.Read(ctx, events.Ref{Harness: agent, Session: session}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var stored []string
		for _, commit := range commits {
			for _, e := range commit.Events {
				if e.Kind == "turn.completed" {
					stored = append(stored, e.Subject)
				}
			}
		}
		acknowledged += len(turns)
		for _, turn := range turns {
			if n := countOf(stored, turn); n != 1 {
				lost++
				t.Errorf("%s of %s was acknowledged, and is %d times in the log", turn, session, n)
			}
		}
	}
	if acknowledged < writing*provesAlive {
		t.Errorf("%d turns were acknowledged: too few to show anything", acknowledged)
	}
	t.Logf("%d turns acknowledged, %d lost", acknowledged, lost)
}

func countOf(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}
