// Package explore tries every interleaving of a small world; package sim draws random steps in a large one. The world
// has two processes of one harness, two people, the services' brains and the real fold, and one session with two
// prompts, in at most one call. Everything may happen at any step, each trouble as often as [Bounds]
// allows:
//
//	a process is killed, suspended for longer than its lease lives, or cut off from the broker for as long; it starts,
//	claims with or without adopting, asks, gives up, fails, compacts, and takes what it is asked to do; it starts a
//	turn by itself, or completes one and has not read what was decided
//	a turn fills the context, and ends for the compaction although a person has stopped it meanwhile
//	a process adopts the call of a turn, and not the turn; later it asks the question of the call
//	a harness cannot use a decision, and says so: before a turn brings it, or in the turn that brings it
//	a call ends although its question is open, or no Ask has returned the decision
//	a program asks by Append, gives an open question another text, or adopts a call, or a question and its turn
//	Worker.Options takes its time; the log is full, also beside a lost lease
//	an agent asks outside of turns, or in a call in the background; its process gives up, or a later one adopts the
//	question, or the call alone, and does not ask
//	an agent that reacts to a stop asks, fails, completes its turn or begins another one before it gives the receipt
//	people answer, reject, send, stop, retry, also while every process is dead
//	the reconciler, retry and compaction check the session, or do not for as long as the exploration likes
//
// The search is breadth-first, so the trace of a violation is a shortest one. The rules (package invariants: V7 to V11,
// V14, V15) and V1, V3, V4, V5, V12 hold after each step. From some states the world runs to rest: all processes are
// up, none fails, and people answer what is open: then each decision of a person has reached a model's context
// (V15), and nothing is stuck (V14). In each state, too, a decision that names an earlier body of its question counts
// only if that asked the same (P3), and a message that is sent again changes nothing (V10).
//
// Two states that differ only in names, in instants that have no effect, or in which of two processes is which, are
// one. Some states that are reached again are compared with the states that they count as: they lead to the same
// states. Steps are left out if they make no other state:
//
//	A service that decides on an old document is refused by the compare-and-set, so only decisions on the newest state
//	are made; the ledger's place, and triggers that are lost, late or doubled, make a service check late or twice.
//	Deciding twice is V3. An acknowledgement that is lost is an append before a crash, or before an Ask is given up.
//	A process reads the log before it appends, for its appends are refused until it has: reading is a step of its own
//	only where an Ask or a turn waits for the log.
package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// Ask is a question that agents ask in every world.
type Ask struct {
	Prompt   string
	Call     string // "" or c1
	Delivery events.Delivery
	Loss     events.OwnerLoss
	Outside  bool // it belongs to no turn, and blocks none
	// Background: its call is in the background, and it blocks no turn. The Ask and the call outlive their turn.
	Background bool
}

// apart reports whether its Ask outlives the turn.
func (a Ask) apart() bool { return a.Outside || a.Background }

// requested is its request. Reworded is whether it asks something else.
func (a Ask) requested(turn string, reworded bool) events.PromptRequested {
	text := "?"
	if reworded {
		text = "another?"
	}
	var blocking *bool
	switch {
	case a.Outside:
		turn, blocking = "", new(bool)
	case a.Background:
		blocking = new(bool)
	}
	return events.PromptRequested{Prompt: a.Prompt, Turn: turn, Call: a.Call, PromptKind: events.PromptQuestion,
		Delivery: a.Delivery, OnOwnerLoss: a.Loss, Blocking: blocking,
		Questions: []events.Question{{ID: "q", Question: text, Custom: true}}}
}

// Bounds say how often each trouble may happen in one trace.
type Bounds struct {
	Crashes, Freezes, Lapses, Starts, Failures, GaveUp, Messages, Stops, Requests, Rejects, Itself,
	Careless, Policies, Fills uint8
	// claims after a lost lease: whose outcome is in doubt, each with a lapse, and those of two commits
	Doubts, Splits uint8
	Refusals       uint8 // decisions that the harness cannot use
	Ends           uint8 // calls that end although no Ask has returned the decision about their question
	Appends        uint8 // questions, and calls of earlier processes, that a program takes up without an Ask
	Rewords        uint8 // open questions that get another text
	Options        uint8 // turns that a process takes after it has asked Worker.Options
	Fulls          uint8 // times at which the log is full
	Dismissals     uint8
}

// Config says what to explore.
type Config struct {
	Asks     [promptsN]Ask
	Pool     bool // the processes are a pool's members, else one takes the other's place
	Reacts   bool // agents act after they have read a stop, and give the receipt later
	Deaf     bool // agents begin a turn of their own for each turn that recovery requests for decisions
	Most     Bounds
	Bug      sim.Bug
	Decide   sim.Decide
	Deciders []sim.Decider
	Requests []sim.Request

	Depth     int           // steps; 0: no bound
	Time      time.Duration // 0: no bound
	StatesMax int           // 0: no bound
	SettleIn  int           // one in so many states is let run to rest; 0: none
	// one in so many states that are come to again is compared with the one that it is taken for; 0: none
	CompareIn int
	Only      string // violations that do not say this are passed over; what follows them is not looked at
	Clock     func() time.Time

	tracing bool
}

func (c *Config) retryMax() int { return int(c.Most.Failures) + 1 }

func (c *Config) index(prompt string) int {
	return slices.IndexFunc(c.Asks[:], func(a Ask) bool { return a.Prompt == prompt })
}

// Report says what was seen.
type Report struct {
	States   int // different ones
	Steps    int // between them
	Settled  int // states from which the world was let run to rest
	Compared int // states that were compared with those that they were taken for
	Depth    int // all states up to this many steps from the start have been seen
	Whole    bool
	Violated string         // the first violation with its trace, "" for none
	Played   map[string]int // by step: from how many states it was made
}

// step is something that may happen.
type step struct {
	name string
	do   func(s *state) bool // false: it cannot happen now
}

// steps are all that may happen, in any state.
func (c *Config) steps() []step {
	var all []step
	add := func(name string, do func(*state) bool) { all = append(all, step{name, unlessFull(do)}) }
	for i := range processes {
		c.addProcess(func(name string, do func(*state, *process) bool) {
			add(name, func(s *state) bool { return do(s, &s.procs[i]) })
		})
	}
	for i := range sentMax {
		add("claim arrives", func(s *state) bool { return s.arrives(i) })
	}
	for l := range leasesMax {
		add("linger", func(s *state) bool { return l < len(s.leases) && s.lingers(&s.leases[l]) })
		add("expire", func(s *state) bool { return l < len(s.leases) && s.expire(&s.leases[l]) })
	}
	for k := range promptsN {
		add("answer", func(s *state) bool { return s.answer(k) })
		add("reject", func(s *state) bool { return s.reject(k) })
		add("dismiss", func(s *state) bool { return s.dismiss(k) })
	}
	add("stop", (*state).stop)
	for _, name := range []string{"send", "withdraw", "now", "resume"} {
		add(name, func(s *state) bool { return s.request(name) })
	}
	add("reconcile", (*state).reconcile)
	for i := range c.Deciders {
		add(c.Deciders[i].Name, func(s *state) bool { return s.decideBy(&c.Deciders[i]) })
	}
	add("due", (*state).due)
	add("the log is full", (*state).fillLog)
	add("the log has room", (*state).makeRoom)
	return all
}

// addProcess adds what may happen to a process.
func (c *Config) addProcess(each func(string, func(*state, *process) bool)) {
	each("hear", func(s *state, p *process) bool { return s.news(p) && s.readNews(p) })
	for k := range promptsN {
		each("ask", func(s *state, p *process) bool { return s.ask(p, k) })
		each("give up", func(s *state, p *process) bool { return s.giveUp(p, k) })
		each("say unattended", func(s *state, p *process) bool { return s.recordUnattended(p, k) })
		each("adopt late", func(s *state, p *process) bool { return s.adoptLate(p, k) })
		each("ask in the adopted call", func(s *state, p *process) bool { return s.asksInCall(p, k) })
		each("refuse", func(s *state, p *process) bool { return s.refuse(p, k) })
		each("append the question", func(s *state, p *process) bool { return s.appendQuestion(p, k, false) })
		each("append another question", func(s *state, p *process) bool { return s.appendQuestion(p, k, true) })
		each("take in", func(s *state, p *process) bool { return s.takeIn(p, k) })
	}
	each("close call", (*state).closeCall)
	each("end the call", (*state).endCall)
	each("append the call", (*state).appendCall)
	each("ask for options", (*state).choose)
	each("take with options", (*state).takeChosen)
	each("receipt", (*state).receive)
	each("complete", (*state).complete)
	each("complete without reading", (*state).careless)
	each("complete after a stop", (*state).reacts)
	each("fill", (*state).fill)
	each("stop for the compaction", (*state).windsDown)
	for k := range promptsN {
		each("decide itself", func(s *state, p *process) bool { return s.decideItself(p, k) })
		each("late receipt", func(s *state, p *process) bool { return s.receiveLate(p, k) })
	}
	each("by itself", (*state).byItself)
	each("fail", func(s *state, p *process) bool { return s.failTurn(p, "server_error") })
	each("overflow", func(s *state, p *process) bool { return s.failTurn(p, "context_exceeded") })
	each("work", (*state).work)
	each("crash", (*state).crash)
	each("freeze", (*state).freeze)
	each("thaw", (*state).thaw)
	c.addClaims(each)
	each("start", (*state).start)
	each("claim", func(s *state, p *process) bool { return s.claim(p, nothing) })
	each("adopt one", func(s *state, p *process) bool { return s.claim(p, oneOnly) })
	each("adopt the call in the background", func(s *state, p *process) bool { return s.claim(p, callApart) })
	each("adopt the call", func(s *state, p *process) bool { return s.claim(p, callOnly) })
	each("adopt its question", func(s *state, p *process) bool { return s.claim(p, questionApart) })
	each("adopt", func(s *state, p *process) bool { return s.claim(p, everything) })
	each("ready", (*state).readies)
}

// addClaims adds what follows the loss of a lease.
func (c *Config) addClaims(each func(string, func(*state, *process) bool)) {
	each("lapse", (*state).lapse)
	each("start over", (*state).startsOver)
	each("claim again", func(s *state, p *process) bool { return s.claimAgain(p, whole) })
	each("claim in doubt", func(s *state, p *process) bool { return s.claimInDoubt(p, whole) })
	for _, first := range []int{claimOnly, andOne} {
		each("claim in two", func(s *state, p *process) bool { return s.claimAgain(p, first) })
		each("claim in two, in doubt", func(s *state, p *process) bool { return s.claimInDoubt(p, first) })
	}
	each("store the rest", (*state).storesRest)
}

// leasesMax is how many leases are followed: more than are drawn within any bounds.
const leasesMax = 8

// sentMax is how many claims in doubt are followed: more than are sent within any bounds.
const sentMax = 3

// node is a state as it is remembered: how it was come to.
type node struct {
	parent uint32
	step   uint8
	depth  uint8
}

// search is one exploration.
type search struct {
	cfg    *Config
	steps  []step
	nodes  []node
	seen   map[[keyBytes]byte]uint32 // nodes
	path   []*state                  // the states on the way to the one that was built last
	ways   []uint32                  // and their nodes
	report Report
}

// Run explores until a bound is met or a violation found.
func Run(cfg Config) Report {
	x := &search{cfg: &cfg, seen: map[[keyBytes]byte]uint32{}}
	x.steps = cfg.steps()
	first := root(&cfg)
	x.path, x.ways = []*state{first}, []uint32{0}
	x.seen[first.key()] = 0
	x.nodes = append(x.nodes, node{})
	began := time.Time{}
	if cfg.Clock != nil {
		began = cfg.Clock()
	}
	x.report.Whole, x.report.Played = true, map[string]int{}
	for _, k := range x.steps {
		x.report.Played[k.name] = 0
	}
	for at := 0; at < len(x.nodes) && x.report.Violated == ""; at++ {
		n := x.nodes[at]
		x.report.Depth = int(n.depth)
		if cfg.Depth > 0 && int(n.depth) >= cfg.Depth {
			x.report.Whole = false
			break
		}
		late := cfg.Time > 0 && at%256 == 0 && cfg.Clock().Sub(began) > cfg.Time
		if late || cfg.StatesMax > 0 && len(x.nodes) > cfg.StatesMax {
			x.report.Whole = false
			break
		}
		x.expand(uint32(at))
	}
	x.report.States = len(x.nodes)
	return x.report
}

// build is the state of a node. Its neighbours were built before, so most of the way is there.
func (x *search) build(at uint32) *state {
	depth := int(x.nodes[at].depth)
	way := make([]uint32, depth+1)
	for i, n := depth, at; i >= 0; i-- {
		way[i] = n
		n = x.nodes[n].parent
	}
	same := 0
	for same < len(x.ways) && same < len(way) && x.ways[same] == way[same] {
		same++
	}
	x.ways, x.path = x.ways[:same], x.path[:same]
	for _, n := range way[same:] {
		s := x.path[len(x.path)-1].next()
		x.steps[x.nodes[n].step].do(s)
		x.ways, x.path = append(x.ways, n), append(x.path, s)
	}
	return x.path[depth]
}

// expand makes every step from a state.
func (x *search) expand(at uint32) {
	s := x.build(at)
	for k := range x.steps {
		n := s.next()
		if !x.steps[k].do(n) {
			continue
		}
		x.report.Steps++
		x.report.Played[x.steps[k].name]++
		key := n.key()
		was, known := x.seen[key]
		if known && x.cfg.CompareIn > 0 && x.report.Steps%x.cfg.CompareIn == 0 {
			x.report.Compared++
			n.sameAs(x.build(was), x.steps)
			x.build(at)
		}
		if !known {
			x.seen[key] = uint32(len(x.nodes))
			x.nodes = append(x.nodes, node{parent: at, step: uint8(k), depth: x.nodes[at].depth + 1})
			n.check()
		}
		var rest []*state
		if len(n.found) == 0 && !known && x.cfg.SettleIn > 0 && len(x.nodes)%x.cfg.SettleIn == 0 {
			x.report.Settled++
			rest = n.settle()
		}
		found := lastOf(rest, n).found
		if len(found) > 0 && slices.ContainsFunc(found, func(f string) bool {
			return strings.Contains(f, x.cfg.Only)
		}) {
			x.report.Violated, x.report.Whole = strings.Join(found, "\n")+"\n"+x.trace(at, k, len(rest) > 0), false
			return
		}
		if len(n.found) > 0 && !known {
			x.nodes = x.nodes[:len(x.nodes)-1]
		}
	}
}

func lastOf(rest []*state, n *state) *state {
	if len(rest) > 0 {
		return rest[len(rest)-1]
	}
	return n
}

// trace is the trace of a violation for people: all the steps once more, and the way to rest if it was found there.
func (x *search) trace(at uint32, last int, rests bool) string {
	steps := []int{last}
	for n := at; n != 0; n = x.nodes[n].parent {
		steps = append(steps, int(x.nodes[n].step))
	}
	slices.Reverse(steps)
	x.cfg.tracing = true
	s := root(x.cfg)
	var text strings.Builder
	report := func(what string, s *state) {
		fmt.Fprintf(&text, "%5s  %s\n", what, strings.Join(s.notes, "\n       "))
	}
	report("0", s)
	for i, k := range steps {
		s = s.next()
		x.steps[k].do(s)
		report(fmt.Sprint(i+1), s)
	}
	s.check()
	if rests {
		for _, n := range s.settle() {
			report("rest", n)
		}
	}
	x.cfg.tracing = false
	return text.String()
}
