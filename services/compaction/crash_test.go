package compaction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// scene is the reason of a compaction and the acts of people during it.
type scene struct {
	name     string
	policy   string
	used     int64                // of 1,000, by the last turn before it begins
	inTurn   int64                // by a turn before any compaction has completed
	fails    string               // how the first turn ends, unless it is stopped
	requests map[int]func() []any // by round
	follows  int                  // follow-ups delivered
	compact  [2]int               // completed compactions, at least and at most
}

func sends(ids ...string) func() []any {
	return func() (all []any) {
		for _, id := range ids {
			all = append(all, request.Send{Ref: events.Ref{Harness: "h", Session: "s"}, Message: id, Content: text(id),
				By: "ada"})
		}
		return all
	}
}

func one(w any) func() []any { return func() []any { return []any{w} } }

var scenes = []scene{
	{name: "on-send", used: 800,
		requests: map[int]func() []any{1: sends("m1", "m2"), 4: sends("m3", "m4"),
			5: one(request.Withdraw{Message: "m4", By: "ada"})}, follows: 1, compact: [2]int{1, 1}},
	{name: "mid-stream", used: 10, inTurn: 800, requests: map[int]func() []any{1: sends("m1"), 3: sends("m2", "m3")},
		follows: 1, compact: [2]int{1, 1}},
	{name: "idle", used: 300, policy: `,"policy":{"idle_compaction_after_s":2}`,
		requests: map[int]func() []any{5: sends("m1", "m2"), 9: sends("m3")}, compact: [2]int{1, 2}},
	{name: "manual", used: 10,
		requests: map[int]func() []any{1: one(request.Compact{By: "ada"}), 2: sends("m1"), 3: sends("m2", "m3")},
		compact:  [2]int{1, 1}},
	{name: "overflow", used: 10, fails: "context_exceeded",
		requests: map[int]func() []any{1: sends("m1"), 3: sends("m2", "m3")}, follows: 1, compact: [2]int{1, 1}},
}

// Rounds of the world, a second each.
const (
	roundsMax  = 120
	turnRounds = 4 // that a turn takes
	awayRounds = 3 // that a harness stays away unless it restarts at once
)

// killed is the end of a process at one of its steps.
type killed struct{ who string }

// plan is who dies: at the step of this number, before or after its effect; and, this many steps later, the process
// that runs then, 0 for none. The harness restarts at once, or after recovery.
type plan struct {
	at, then    int
	after, late bool
}

// stage is a world of one session in which one process acts at a time. Each effect is a step that can be the last one
// of its process.
type stage struct {
	*script
	scene scene
	plan  plan
	steps []string // actor of each step
	dead  []string

	round     int
	doc       *session.State // as it is stored
	folded    uint64         // acknowledged by the ledger
	checked   uint64         // seq of the document that compaction has acknowledged
	alarm     time.Time      // compaction's
	walk      bool           // compaction was started: it reads everything
	asked     []any          // wishes without an answer
	alive     bool           // the harness
	back      int            // the round in which it is
	number    int            // its incarnation
	startedAt int            // the round in which the open turn was started
}

func newStage(t story.T, sc scene, p plan) *stage {
	g := &stage{script: newScript(t), scene: sc, plan: p, alive: true, number: 17}
	g.facts(
		`1 session.opened {"incarnation":"17","context_limit":1000`+sc.policy+`}`,
		`2 turn.started {"turn":"t0","cause":"message"}`,
		fmt.Sprintf(`3 usage.reported {"turn":"t0","model":"m","tokens":{"input":%d}}`, sc.used),
		`4 turn.completed {"turn":"t0"}`,
	)
	g.doc, g.folded, g.checked = g.s.Clone(), g.s.Seq, 0
	return g
}

// do is one step.
func (g *stage) do(who, what string, effect func()) {
	g.steps = append(g.steps, who+": "+what)
	n := len(g.steps)
	dies := n == g.plan.at || g.plan.then > 0 && n == g.plan.at+g.plan.then
	if dies && !g.plan.after {
		panic(killed{who})
	}
	effect()
	if dies && g.plan.after {
		panic(killed{who})
	}
}

// put appends a commit under the compare-and-set. Each fact must be lawful.
func (g *stage) put(w events.Writer, source string, after *session.State, facts ...events.Fact) bool {
	if after.Seq != g.s.Seq {
		return false
	}
	g.Commit(story.Main, w, source, facts...)
	return true
}

func (g *stage) where() string {
	return fmt.Sprintf("%s, %+v, killed %v in:\n%s", g.scene.name, g.plan, g.dead,
		strings.Join(g.steps[max(0, len(g.steps)-60):], "\n"))
}

// ledger folds new commits into the document, then acknowledges them.
func (g *stage) ledger() {
	if g.folded == g.s.Seq {
		return
	}
	to := g.s.Seq
	g.do("ledger", "store the document", func() { g.doc = g.s.Clone() })
	g.do("ledger", "ack", func() { g.folded = to })
}

// compaction answers requests, and decides about the document when it is new or an alarm fires.
func (g *stage) compaction() {
	for len(g.asked) > 0 {
		g.answer()
	}
	due := !g.alarm.IsZero() && !g.alarm.After(g.Now)
	if g.doc.Seq == g.checked && !due && !g.walk {
		return
	}
	seq, st := g.doc.Seq, g.doc
	for {
		d := Decide(st, Input{Now: g.Now, Progress: g.Now, Idle: true})
		checkHead(g.t, st, d, g.Now)
		stored := true
		if len(d.Facts) > 0 {
			g.do("compaction", "append "+string(d.Facts[0].Kind()), func() {
				stored = g.put(events.WriterCompaction, source, st, d.Facts...)
			})
		}
		// another writer was first: read and decide again
		if !stored {
			st = g.s.Clone()
			continue
		}
		if due {
			g.alarm = time.Time{}
		}
		if !d.CheckAt.IsZero() {
			g.do("compaction", "set the alarm", func() { g.alarm = d.CheckAt })
		}
		g.do("compaction", "ack", func() { g.checked, g.walk = seq, false })
		return
	}
}

// answer handles one request. A person without a reply asks again.
func (g *stage) answer() {
	var o session.Decision
	var err error
	switch w := g.asked[0].(type) {
	case request.Send:
		o, err = Send(g.s, w, g.Now, g.Source)
	case request.Withdraw:
		o, err = Withdraw(g.s, w, g.Now)
	case request.Compact:
		o, err = Compact(g.s, w, g.Now)
	}
	if err != nil {
		if _, sends := g.asked[0].(request.Send); sends {
			g.t.Fatalf("%s: %v", g.where(), err)
		}
	} else if len(o.Facts) > 0 {
		g.do("compaction", "append "+string(o.Facts[0].Kind()), func() {
			g.put(events.WriterCompaction, source, g.s, o.Facts...)
		})
	}
	g.do("compaction", "reply", func() { g.asked = g.asked[1:] })
}

// reconciler recovers the session of a dead owner.
func (g *stage) reconciler() {
	owner := reconciler.Owner{Liveness: reconciler.Alive}
	if g.s.Owned && (!g.alive || g.s.Incarnation != strconv.Itoa(g.number)) {
		owner.Liveness = reconciler.Dead
	}
	d, err := reconciler.Decide(g.s, reconciler.Input{Now: g.Now, Owner: owner}, g.Source)
	if err != nil {
		g.t.Fatalf("%v", err)
	}
	if len(d.Facts) > 0 {
		g.do("reconciler", "append "+string(d.Facts[0].Kind()), func() {
			g.put(events.WriterReconciler, "/service/reconciler", g.s, d.Facts...)
		})
		g.do("reconciler", "ack", func() {})
	}
}

// retry runs the retry service's decision.
func (g *stage) retry() {
	d := retry.Decide(g.s, retry.Input{Now: g.Now, Progress: g.Now})
	if len(d.Facts) > 0 {
		g.do("retry", "append "+string(d.Facts[0].Kind()), func() {
			g.put(events.WriterRetry, "/service/retry", g.s, d.Facts...)
		})
		g.do("retry", "ack", func() {})
	}
}

// harness does the next step of its protocol.
func (g *stage) harness() {
	if !g.alive {
		if g.round < g.back {
			return
		}
		g.alive, g.number = true, g.number+1
	}
	s, mine := g.s, g.s.Owned && g.s.Incarnation == strconv.Itoa(g.number)
	var claim []events.Fact
	if !mine {
		claim = []events.Fact{events.SessionClaimed{Incarnation: strconv.Itoa(g.number)}}
	}
	add := func(facts ...events.Fact) {
		facts = append(claim, facts...)
		g.do("harness", "append "+string(facts[len(facts)-1].Kind()), func() {
			g.put(events.WriterHarness, events.HarnessSource("h", strconv.Itoa(g.number)), g.s, facts...)
		})
	}
	t, c, p := s.Turn, s.Compaction, s.Pending
	dead := t == nil || t.Epoch < s.Epoch || !mine
	switch {
	case mine && p.Stop != nil:
		add(events.TurnStopped{Turn: p.Stop.Turn, Actor: p.Stop.Actor})
	case p.Compaction != nil && dead:
		add(events.CompactionStarted{Compaction: p.Compaction.ID})
	case mine && c != nil && c.State == session.CompactionRunning && c.Epoch == s.Epoch:
		add(events.CompactionCompleted{Compaction: c.ID, UsedAfter: 100})
	case mine && t != nil && !dead:
		g.work(t, add)
	case c != nil && c.State == session.CompactionRunning:
	case p.Turn != nil && dead:
		g.startedAt = g.round
		add(events.TurnStarted{Turn: p.Turn.ID, Cause: p.Turn.Cause, Synthetic: p.Turn.Cause == events.CauseResume,
			OfTurn: p.Turn.OfTurn, Message: p.Turn.Message})
	case !mine && s.Owned && !g.plan.late:
		add(nil...)
	}
}

// work returns the facts of a turn of this harness, by round.
func (g *stage) work(t *session.Turn, add func(...events.Fact)) {
	compacted := g.s.LastCompaction != nil && g.s.LastCompaction.Outcome == session.OutcomeCompleted
	switch used := g.scene.inTurn; {
	case g.round == g.startedAt+1 && !compacted && used > 0:
		add(events.UsageReported{Turn: t.ID, Model: "m", Tokens: events.Tokens{Input: used}})
	case g.round < g.startedAt+turnRounds:
	case g.scene.fails != "" && !compacted:
		add(events.TurnFailed{Turn: t.ID, Error: events.Failure{Kind: g.scene.fails}})
	default:
		add(events.UsageReported{Turn: t.ID, Model: "m", Tokens: events.Tokens{Input: 50}},
			events.TurnCompleted{Turn: t.ID})
	}
}

// run runs the world until nothing changes.
func (g *stage) run() {
	quiet := 0
	for g.round = 1; quiet < 2*awayRounds+4 && g.round < roundsMax; g.round++ {
		g.Now = g.Now.Add(time.Second)
		before := len(g.steps)
		if w := g.scene.requests[g.round]; w != nil {
			g.asked = append(g.asked, w()...)
		}
		for _, p := range []func(){g.ledger, g.compaction, g.harness, g.ledger, g.reconciler, g.retry} {
			g.turn(p)
		}
		if quiet++; len(g.steps) != before || len(g.asked) > 0 {
			quiet = 0
		}
	}
	if g.round >= roundsMax {
		g.t.Fatalf("it does not come to rest: %s\n%s", story.Summary(g.s), g.where())
	}
}

// turn runs one process until it has nothing to do, or is killed.
func (g *stage) turn(process func()) {
	defer func() {
		k, ok := recover().(killed)
		if !ok {
			return
		}
		g.dead = append(g.dead, k.who)
		switch k.who {
		case "harness":
			g.alive, g.back = false, g.round+1
			if g.plan.late {
				g.back = g.round + awayRounds
			}
		case "compaction":
			g.walk, g.checked = true, 0
		}
	}()
	process()
}

// check checks the final state after every kill.
func (g *stage) check() {
	var accepted, delivered []string
	follows, completed := 0, 0
	for seq := uint64(1); seq <= g.s.Seq; seq++ {
		for _, e := range g.Log[seq].Events {
			switch f := e.Fact.(type) {
			case events.MessageAccepted:
				accepted = append(accepted, f.Message)
			case events.MessageWithdrawn:
				accepted = slices.DeleteFunc(accepted, func(id string) bool { return id == f.Message })
			case events.TurnStarted:
				if f.Message != "" && f.OfTurn == "" {
					delivered = append(delivered, f.Message)
				}
				if f.Cause == events.CauseFollowUp {
					follows++
				}
			case events.CompactionCompleted:
				completed++
			}
		}
	}
	if !slices.Equal(accepted, delivered) {
		g.t.Fatalf("accepted and not taken back %v, delivered %v: %s\n%s", accepted, delivered, story.Summary(g.s),
			g.where())
	}
	if most := g.scene.compact; follows != g.scene.follows || completed < most[0] || completed > most[1] {
		g.t.Fatalf("%d follow-ups, want %d; %d compactions, want %v: %s\n%s", follows, g.scene.follows, completed, most,
			story.Summary(g.s), g.where())
	}
	if s := g.s; s.Turn != nil || len(s.Queue) > 0 || s.CompactionOpen() || s.Pending != (session.Pending{}) {
		g.t.Fatalf("something is left: %s\n%s", story.Summary(g.s), g.where())
	}
}

// nextDeaths is how many steps after the first death a second one is tried.
const nextDeaths = 12

// TestEveryCrashPoint kills each process before and after each of its steps: appends, alarms, acknowledgements,
// replies; and then the process of one of the next steps. In the end each follow-up was delivered once, and each
// message that was not withdrawn was delivered once, in order (C6, V10, V11).
func TestEveryCrashPoint(t *testing.T) {
	for _, sc := range scenes {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			whole := newStage(t, sc, plan{})
			whole.run()
			whole.check()
			points := 0
			for n := range len(whole.steps) * (1 + nextDeaths) * 4 {
				p := plan{at: 1 + n/4/(1+nextDeaths), then: n / 4 % (1 + nextDeaths), after: n%2 == 1, late: n/2%2 == 1}
				g := newStage(t, sc, p)
				g.run()
				if len(g.dead) == 0 {
					t.Fatalf("no process was killed: %s", g.where())
				}
				g.check()
				points++
			}
			t.Logf("%d steps, %d crash points and pairs of them", len(whole.steps), points)
		})
	}
}
