// Package drill shows with real processes that Holdfast keeps its promises. It starts agents that use the harness
// client, kills, suspends, restarts and ends them, and compares the state of their sessions with the promises.
//
// # Processes
//
// The director ([Run]) starts the agents as child processes, sends them signals, answers their questions as a person
// does, and reads the documents and the log as a board does. An agent ([Agent]) reads its role from standard input, and
// reports on standard output. If its input ends, the director has ended, and the agent leaves. The director signals
// only its own children, and has ended all of them when it returns.
//
// # The acts
//
//	crash    SIGKILL with calls and questions open: calls are closed, the callback's question expires, the kept
//	         question is answered; the next process takes the turn that the answer requests.
//	pause    SIGSTOP for longer than the lease lives: fenced. SIGCONT: it gets an error and stops; its writes do not
//	         count.
//	restart  SIGKILL and a new process at once, which adopts the question: the answer reaches the new process.
//	compact  SIGKILL at each step of a compaction, with three messages behind it: each is delivered once, in order.
//	steady   lives through all acts without an effect, then leaves on request: its session needs no grace period.
//	outage   in a cell of its own: a turn fails, and its agent, the broker and all services are killed before the
//	         retry. Attempt and instant do not change; the retry is taken once.
//
// A promise that is not kept in time is a verdict like any other, and the next act follows.
package drill

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
)

// Limits of a drill.
const (
	startMaxS = 15              // seconds until a process has started its work
	soonMax   = 2 * time.Second // for steps that take milliseconds, on a busy machine
	endMaxS   = 5               // seconds until a child that does not leave is killed
	closeMaxS = 2               // seconds to close all sessions at the end

	// ActBytesMax is the length of the longest name of an act.
	ActBytesMax = 13
)

// Config configures a drill. Login, Prefix and Keep are optional, and so is the callback at the end.
type Config struct {
	// URL, Login and Prefix of the cell, for the agents. The cell's services must run.
	URL, Prefix string
	Login       Login
	// TTL of the agents' leases, 1 s or more. Longer: the drill takes longer.
	TTL time.Duration
	// Within is the longest time until the death of a process is detected: its TTL, the reconciler's grace, and 1 s.
	Within time.Duration
	// Command returns a process that runs [Agent] on its standard input and output.
	Command func() *exec.Cmd
	// Cell returns a process that runs a broker with all services on this directory and listen address. It writes its
	// ready file, and ends when its standard input does. The drill kills this process, and not the cell that the drill
	// uses.
	Cell func(dir, listen, readyFile string) *exec.Cmd
	// Keep leaves the sessions as they are at the end. Default: they are closed, also after an error.
	Keep bool
	// This function is called with each [Moment], in order, never concurrently.
	OnMoment func(Moment)
}

// Moment is one event of the drill.
type Moment struct {
	AtMS int64  `json:"at_ms"` // since the start of the drill
	Act  string `json:"act"`
	Who  string `json:"who"` // drill, agent or holdfast; "" for the beginning of an act
	What string `json:"what"`
}

// Verdict is one promise and its observed result.
type Verdict struct {
	Act      string `json:"act"`
	Promise  string `json:"promise"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	TookMS   int64  `json:"took_ms"` // -1: has no time limit
	OK       bool   `json:"ok"`
	Main     bool   `json:"-"` // for a person who has time for a few
}

// Result is the result of a drill.
type Result struct {
	Verdicts []Verdict `json:"verdicts"`
	Harness  []string  `json:"harnesses"`
	TookMS   int64     `json:"took_ms"`
	OK       bool      `json:"ok"`
}

// Names of the acts, and of their sessions.
const (
	actCrash   = "crash"
	actPause   = "pause"
	actRestart = "restart"
	actSteady  = "steady"
	actEnd     = "end"
)

// drill is one run.
type drill struct {
	Config
	bus       *bus.Bus
	began     time.Time
	world     *world
	names     map[string]string // harness ids by act
	verdicts  []Verdict
	reporting *sync.Mutex // held while a moment is reported

	mu       sync.Mutex
	children []*child
}

// Run runs all acts and returns the verdicts. It returns an error if the drill could not run. Broken promises are in
// the result.
func Run(ctx context.Context, b *bus.Bus, cfg Config) (res Result, err error) {
	d := &drill{Config: cfg, bus: b, began: time.Now(), names: map[string]string{}, reporting: new(sync.Mutex)}
	for _, act := range acts() {
		if d.names[act], err = FreeName(ctx, b.KV, "drill-"+act); err != nil {
			return res, err
		}
		res.Harness = append(res.Harness, d.names[act])
	}
	d.world = newWorld(d)
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- d.world.watch(watching) }()
	err = errors.Join(d.play(ctx), d.endChildren())
	if !d.Keep {
		d.closeAll(ctx)
	}
	stop()
	err = errors.Join(err, <-watched)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	res.Verdicts, res.TookMS, res.OK = d.verdicts, time.Since(d.began).Milliseconds(), err == nil
	for _, v := range d.verdicts {
		res.OK = res.OK && v.OK
	}
	return res, err
}

// acts returns the acts that have a session on the cell.
func acts() []string {
	all := []string{actCrash, actPause, actRestart, actSteady}
	for i := range steps {
		all = append(all, actCompactPre+steps[i].name)
	}
	return all
}

// play plays the acts. The steady agent lives through the others.
func (d *drill) play(ctx context.Context) error {
	steady, err := d.enterSteady(ctx)
	if err != nil {
		return err
	}
	for _, act := range []func(context.Context) error{d.crash, d.pause, d.restart, d.compact} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	if err := d.leaveSteady(ctx, steady); err != nil {
		return err
	}
	if err := d.outage(ctx); err != nil {
		return err
	}
	return d.end(ctx)
}

// end checks all sessions once more.
func (d *drill) end(ctx context.Context) error {
	if err := d.endChildren(); err != nil {
		return err
	}
	var left []string
	sessions := 0
	for act, name := range d.names {
		docs, err := Settled(ctx, d.bus, name, []string{act}, d.Within)
		if err != nil {
			return err
		}
		for _, s := range docs {
			sessions++
			for _, what := range Stranded(s, docs) {
				left = append(left, s.Ref().String()+": "+what)
			}
			for _, id := range s.PendingPrompts() {
				left = append(left, s.Ref().String()+": prompt "+id)
			}
		}
	}
	seen := fmt.Sprintf("0 in %d sessions", sessions)
	if len(left) > 0 {
		slices.Sort(left)
		seen = strings.Join(left, ", ")
	}
	d.verify(Verdict{Act: actEnd, Promise: "nothing is left open", Expected: fmt.Sprintf("0 in %d sessions",
		len(d.names)), Seen: seen, TookMS: -1, OK: len(left) == 0 && sessions == len(d.names)})
	return nil
}

// closeAll closes the sessions of the drill. A session that is not closed stays visible.
func (d *drill) closeAll(ctx context.Context) {
	var all []events.Ref
	for act, name := range d.names {
		all = append(all, events.Ref{Harness: name, Session: act})
	}
	for r, err := range CloseAll(ctx, d.bus.Services, all) {
		d.report(actEnd, whoDrill, "%s is not closed: %v", r, err)
	}
}

// CloseAll closes sessions of agents that this program has ended: nothing in them waits for those agents any more. It
// does so also after the end of ctx, all at once and within one time limit. A session that does not exist is no error.
// It returns the errors of sessions that are not closed.
func CloseAll(ctx context.Context, services *rpc.Services, all []events.Ref) map[events.Ref]error {
	return closeWithin(ctx, services, all, closeMaxS*time.Second)
}

func closeWithin(ctx context.Context, services *rpc.Services, all []events.Ref,
	limit time.Duration) map[events.Ref]error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	var mu sync.Mutex
	failed := map[events.Ref]error{}
	var calls sync.WaitGroup
	for _, r := range all {
		calls.Go(func() {
			_, err := rpc.Call(late, services, request.LedgerClose,
				request.Close{Ref: r, Reason: "archived", By: person})
			if refusal, ok := errors.AsType[*events.Refusal](err); ok && refusal.Code == http.StatusNotFound {
				return
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[r] = err
			}
		})
	}
	calls.Wait()
	return failed
}

// mains are the promises for a person who has time for a few: one or two of each act.
var mains = []string{"a killed agent is noticed", "its calls are closed", "a question to a person is kept",
	"an answer after death counts", "awake, it finds out and stops", "the answer reaches the new one",
	promiseCompact + "in it", "a retry outlives the broker", "once, as the same request", "nothing is left open"}

func (d *drill) verify(v Verdict) {
	v.Main = slices.Contains(mains, v.Promise)
	d.verdicts = append(d.verdicts, v)
}

// inTime returns the verdict about a wait.
func (d *drill) inTime(act, promise, expected, seen string, took, limit time.Duration, err error) {
	v := Verdict{Act: act, Promise: promise, Expected: fmt.Sprintf("%s, ≤ %s", expected, seconds(limit)), Seen: seen,
		TookMS: took.Milliseconds(), OK: err == nil && took <= limit}
	if err != nil {
		v.Seen = err.Error()
	}
	d.verify(v)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3gs", d.Seconds()) }

// Director is the actor of what the drill itself does.
const Director = "drill"

// Actors of a [Moment].
const (
	whoDrill    = Director
	whoAgent    = "agent"
	whoHoldfast = "holdfast"
)

// report reports a moment.
func (d *drill) report(act, who, format string, args ...any) {
	d.world.report(act, who, fmt.Sprintf(format, args...))
}

// FreeName returns base, or base-2, base-3 …: the first harness id without sessions.
func FreeName(ctx context.Context, buckets *kv.Buckets, base string) (string, error) {
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		used := false
		err := buckets.List(ctx, kv.State, events.SessionKeys(name), func(kv.Entry) error { used = true; return nil })
		if err != nil {
			return "", fmt.Errorf("a free name like %s: %w", base, err)
		}
		if !used {
			return name, nil
		}
	}
}
