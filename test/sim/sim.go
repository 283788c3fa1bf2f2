// Package sim simulates a cell around the pure code, driven by one seed. It has a log with compare-and-set, a ledger
// that folds in steps, harness processes, people, a reconciler and any other deciders with their timers. In it
// everything happens that must do no harm:
//
//	processes are killed between any two steps, paused and woken, restarted with or without adopting what was open
//	deliveries are repeated; triggers are lost, doubled, delayed and reordered; two ledgers, and two replicas of each
//	decider, believe that they are active; timers go off late, twice, or never (without the walk: late or twice)
//	the broker is away for longer than any lease lives; several writers decide on the same session at once
//	turns and compactions fail, hang, or lose their process; people send, withdraw, stop and change their minds
//	agents ask with and without calls, also two questions at once; processes are suspended for longer than their
//	leases live while they wait; callers give up as their commit is stored; people answer while all processes are dead
//	agents start turns by themselves, and complete turns without having read what was decided meanwhile
//	agents ask outside of turns and in calls in the background, give up, and ask again under the same id; some take no
//	request for decisions; now and then a ledger stores decisions as it did before they called for turns
//	processes adopt such questions, and calls with questions, at a claim or later, and do not ask; in some worlds
//	processes are replaced often for this, and people answer when all trouble is over
//
// At the end the killing stops, the world settles, and the invariants V1 to V5 and V7 to V15 are held against the log.
// During the run each acknowledged fact of an honest writer must have counted, no living process is declared dead, and
// no process is handed a decision of a person about a session that is not its own. News that a model's context gets are
// events of the world, so that a decision that a person got a receipt for, and no model has had, is found.
//
// A [Bug] plants one mistake in the world, to show that such a mistake would be found.
package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Bug is a mistake that can be planted.
type Bug int

// The mistakes.
const (
	NoBug          Bug = iota
	SkipGuard          // the reconciler and people append without the compare-and-set
	AckBeforeStore     // the ledger acknowledges before documents and views are stored
	ViewUnguarded      // the ledger writes views without looking at the document's revision
	ForgetGrace        // a lease that has ended is taken for a death at once, whatever the broker did
	EdgeTriggered      // recovery acts on events alone and does not look again
	ParkedKeepsSeq     // a commit that could not be read does not move the session's seq

	RetryUnguarded    // retry decides on the document it has and appends without the compare-and-set
	RetryRestarts     // a retry service that starts begins every delay again
	FollowUpTwice     // a follow-up is requested again by the replica that has just requested it
	QueueAfterFailure // the queue moves on after a failure alone
	FailureEmptyQueue // a failed compaction empties the queue
	ResumeUncounted   // an interrupted turn is gone on with as a retry, which counts no resume
	AlarmsForgotten   // a decider that wants to look again sets no timer

	AnswerNotCarried // a retry, a resume or a follow-up does not name the prompts of the turn that it continues
	AnswerAlone      // a continuation names one prompt, however many were decided
	// the reconciler continues a turn whose prompt was decided, also when a process has adopted the turn
	AdoptedTurnTaken
	ClaimForgotten // a process whose caller gave up while a commit was stored forgets the session
	FencedNotify   // a process tells its agent what was decided before it judges whether the session is still its own

	OwedDropped      // a turn that an agent starts by itself drops what the turn before it left undelivered
	OwedNotRequested // nothing requests a turn for a decision that nothing else delivers

	UnattendedForgotten    // a document forgets that an asker has given up
	ContinuationsForgotten // turns that recovery requests for decisions are not counted
	ReceiptForgotten       // a receipt is not kept with its epoch, and takes no request back
	StopReleased           // a message that a person takes back ends the hold of a stop

	// a process does not say that it does not ask for a prompt that it has adopted
	UnaskedNotRecorded

	// the reconciler takes a turn for running while the owner has a call of it in the background
	BackgroundRuns
	BackgroundAdopts // a question of a call in the background adopts its turn

	// a process forgets a claim after a lost lease, whose outcome it has not learnt when the next lease is lost
	ClaimInDoubtForgotten
	ReadyBeforeTheRest // a process is ready before all that its claim adopts is stored
	// a claim after a lost lease says that no Ask waits for a question only where the log says so: the claim before it,
	// which was in doubt, has requested the question again, and its rest was not stored
	UnaskedByTheLog
	AttendedKeepsRequest // a turn stays requested for a decision that the owner turns out to wait for
	RefusalDropsRequest  // a turn that is requested for several decisions goes with one that is refused
	CallDoesNotRun       // recovery ends the turn of which the owner has adopted a call alone

	CallEndsUnread       // a process ends its call, and no Ask has returned the decision about the call's question
	CallTakenNotRecorded // a process that takes a call by Append does not say that no Ask waits for its question
	AppendedNotAttended  // a claim after a lost lease says nothing of a decision that the program reads without an Ask
	OptionsOfBefore      // a turn brings what has left its request while Worker.Options was asked
	OptionsWithout       // a turn begins without what was decided while Worker.Options was asked
	FullLogFences        // a claim after a lost lease that a full log refuses is taken for the loss of the session
	RefusedStays         // the next attempt of a turn brings a decision that the turn has refused
	ShownIgnored         // a decision counts for another question than the one that the person saw
	MessagesForgotten    // a message that is sent again is carried out again
	DismissedDropped     // a dismissal is not kept for the agent
	FreeOptionsWithout   // as OptionsWithout, in a session without an owner
	CallTakenEndsUnread  // as CallEndsUnread, for a call of the open turn that the process has taken by Append
)

// String is the bug's name.
func (b Bug) String() string {
	return [...]string{"no bug", "skip the compare-and-set", "ack before store", "view not guarded", "forget grace",
		"edge instead of level",
		"parked commit does not move seq", "retry without the compare-and-set", "retry restarts delays",
		"follow-up twice", "queue moves on after a failure",
		"failed compaction empties the queue", "resume not counted", "no timers",
		"answer not carried", "answers alone", "adopted turn taken", "claim forgotten",
		"fenced process wakes its agent",
		"undelivered decisions dropped", "no turn for an undelivered decision",
		"unattended prompt forgotten", "continuations not counted", "receipt forgotten",
		"withdrawn message releases a stop", "adopted without an Ask, and not said",
		"a background call runs its turn", "a background question adopts its turn", "claim in doubt forgotten",
		"ready before the rest of a claim", "the log says what no Ask waits for", "attended, and requested still",
		"a refusal drops the turn of others",
		"the turn of an adopted call is ended",
		"a call ends without its decision", "a call taken by Append, and not said", "appended, and not attended",
		"options of a turn as it was",
		"options of a turn without what came since", "a full log fences", "refused, and brought again",
		"an answer to an older question counts", "a message sent again is new",
		"a dismissal is dropped", "options for a free session without what came since",
		"a call taken by Append ends unread"}[b]
}

// Times of the make-believe world.
const (
	TTL       = 5 * time.Second // of a harness lease
	Grace     = 2 * time.Second // after a lease has ended by itself, and of an adoption
	stepMaxMS = 60              // most that one step takes

	// AdoptionMax is the longest time from the start of a process to the end of its adoptions.
	AdoptionMax = 10 * Grace
)

// Lease is a harness process's lease as the reconciler has seen it.
type Lease struct {
	Harness     string
	Incarnation string
	Ready       bool
	Since       time.Time // first seen
	Renewed     time.Time // last renewal
	Ended       time.Time // zero: it lives
	Claimed     time.Time // the last claim of a session; zero: none
}

// Gap is a stretch in which the reconciler could not renew its own lease.
type Gap struct{ Began, End time.Time }

// View is what the reconciler knows beside the documents.
type View struct {
	Now      time.Time
	Start    time.Time // since when it has watched leases
	Renewed  time.Time // its own lease
	Gaps     []Gap     // of its own lease
	Leases   []Lease   // of the session's harness, those that ended too
	Children []*session.State
	Source   session.Source
}

// Decide is the reconciler's brain: what it would append to a session, as commits.
type Decide func(s *session.State, v View) ([][]events.Fact, error)

// Config says what to simulate.
type Config struct {
	Seed   uint64
	Steps  int
	Bug    Bug
	Decide Decide

	Deciders []Decider // beside the reconciler
	// they walk at their start alone; in turn no trigger of theirs is lost: then timers have to be enough
	NoWalk   bool
	Requests []Request // that they grant
}

// Report says what happened.
type Report struct {
	Steps      int
	Commits    int
	Facts      int
	Kills      int
	Pauses     int
	Outages    int
	Blackouts  int // in which every process was dead
	Doubts     int // appends that were stored, and whose caller had given up
	Decisions  int // of people, that got a receipt
	Delivered  int // of these, that a model's context had
	Itself     int // turns that an agent began by itself
	Outside    int // questions that belong to no turn
	GaveUp     int // Asks that gave up, and no turn brings what they waited for
	Unasked    int // prompts that a process adopted without an Ask
	Refused    int // decisions that a harness could not use
	InOneCall  int // second questions of a call
	Again      int // Asks under the same id after that
	Old        int // decisions that a ledger from before the rule has stored
	Bounded    int // sessions at the bound on turns for decisions
	Late       int // receipts after the turn that asked had ended
	Twice      int // receipts that were repeated
	Stale      int // receipts of an epoch that had ended
	TakenBack  int // messages that a person took back while a stop held
	WoundDown  int // turns that ended for a compaction although a person had stopped them, too
	Reopened   int // answers that a person took back
	StopsEarly int // stops before the first turn
	StopsAgain int // stops while an earlier stop of a person was not confirmed
	StopsAsked int // stops of turns that were only requested
	LostRaces  int
	Orphaned   int
	Alarms     int                 // timers that went off
	Counted    map[events.Kind]int // facts that count, by kind
	Violations []string            // empty in a world without bugs
}

// violationsMax is how many violations are reported; the first is what matters.
const violationsMax = 20

// world is everything.
type world struct {
	cfg    Config
	rng    *rand.Rand
	now    time.Time
	away   bool      // the broker
	awayTo time.Time // it does not return before
	backAt time.Time

	log      *journal
	docs     map[events.Ref]*doc
	views    map[string]*view
	ackFloor uint64
	pinned   int
	ledgers  [2]*ledger

	ids       int
	tickets   uint64
	harnesses []string
	procs     []*process
	leases    map[string]*lease    // by incarnation
	claimed   map[string]time.Time // when an incarnation has claimed a session last
	recover   *reconciler
	services  []*service
	delivered map[decision]bool   // decisions of people that a model's context has had
	receipts  map[decision]bool   // decisions that a person got a receipt for
	deaf      map[events.Ref]bool // sessions whose agent takes no request for decisions
	dark      time.Time           // until then no process starts
	people    []*person
	promises  []promise
	settled   int  // by how much harnesses have less trouble, and fewer sessions: some worlds get further than others
	settling  bool // all trouble is over

	heirs bool              // processes are replaced often, and adopt questions outside of turns
	asked map[decision]bool // open questions that people have looked at since all trouble is over
	// checked has the length of each session's log when people looked at its questions last.
	checked map[events.Ref]int

	report Report
}

// promise is a fact that was acknowledged to an honest writer.
type promise struct {
	ref events.Ref
	seq uint64
	ids []string
	who string
}

// Run simulates and checks.
func Run(cfg Config) Report {
	w := newWorld(cfg)
	for w.report.Steps = 0; w.report.Steps < cfg.Steps && len(w.report.Violations) == 0; w.report.Steps++ {
		w.step()
	}
	w.settle()
	w.check()
	w.report.Commits = len(w.log.commits)
	return w.report
}

// newWorld returns a world in which the processes, services and people have not acted yet.
func newWorld(cfg Config) *world {
	w := &world{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0)), now: time.Unix(1_800_000_000, 0).UTC(),
		log:  newJournal(),
		docs: map[events.Ref]*doc{}, views: map[string]*view{},
		leases: map[string]*lease{}, claimed: map[string]time.Time{}, harnesses: []string{"h1", "h2", "h3"},
		delivered: map[decision]bool{}, receipts: map[decision]bool{}, deaf: map[events.Ref]bool{}}
	w.log.bug = cfg.Bug
	w.ledgers = [2]*ledger{newLedger(w, 0), newLedger(w, 1)}
	w.settled = 1 + int(cfg.Seed%settledMax)*int(cfg.Seed%settledMax)
	w.heirs, w.asked, w.checked = cfg.Seed%heirsOneIn == 0, map[decision]bool{}, map[events.Ref]int{}
	w.report.Counted = map[events.Kind]int{}
	w.recover = newReconciler(w)
	for _, d := range cfg.Deciders {
		w.services = append(w.services, newService(w, d))
	}
	w.people = []*person{{w: w, name: "ada"}, {w: w, name: "bob"}}
	for _, h := range w.harnesses {
		w.spawn(h, nil)
	}
	return w
}

func (w *world) chance(oneIn int) bool { return w.rng.IntN(oneIn) == 0 }

func (w *world) fail(format string, args ...any) {
	if len(w.report.Violations) < violationsMax {
		w.report.Violations = append(w.report.Violations, fmt.Sprintf("step %d: ", w.report.Steps)+fmt.Sprintf(format,
			args...))
	}
}

// serviceSteps is how many of so many steps are a service's: fourteen are everybody else's.
const serviceSteps = 4

// settledMax is how many sorts of worlds there are: from wild to calm.
const settledMax = 4

// step lets a little time pass and one actor do one thing.
func (w *world) step() {
	w.pass(time.Duration(1+w.rng.IntN(stepMaxMS)) * time.Millisecond)
	w.trouble()
	switch n := w.rng.IntN(14 + serviceSteps*len(w.services)); {
	case n < 4:
		w.procs[w.rng.IntN(len(w.procs))].step()
	case n < 10:
		l := w.ledgers[w.rng.IntN(len(w.ledgers))]
		if l.paused || !l.active {
			l = w.ledgers[w.pinned]
		}
		l.step()
	case n < 13:
		w.recover.step()
	case n < 14:
		w.people[w.rng.IntN(len(w.people))].step()
	default:
		s := w.services[(n-14)/serviceSteps]
		s.replicas[w.rng.IntN(len(s.replicas))].step()
	}
}

// pass moves the clock: leases that live are renewed by their processes, others end. The broker must be there for both
// to be noticed.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	if w.away {
		return
	}
	for inc, l := range w.leases {
		if w.now.Sub(l.renewed) > TTL {
			delete(w.leases, inc)
		}
	}
	w.recover.renew()
	for _, p := range w.procs {
		p.renew()
	}
	for _, s := range w.services {
		s.fire(w)
	}
}

// Trouble comes so often, one in so many steps.
const (
	killOneIn    = 250
	pauseOneIn   = 150
	resumeOneIn  = 60
	outageOneIn  = 3000
	returnOneIn  = 150
	ledgerOneIn  = 30
	restartOneIn = 700
)

// trouble is what may happen to anybody at any step.
func (w *world) trouble() {
	if w.away {
		if w.chance(returnOneIn) && !w.now.Before(w.awayTo) {
			w.away, w.backAt = false, w.now
		}
	} else if w.chance(outageOneIn) {
		w.away, w.awayTo = true, w.now
		if w.chance(longOutageOneIn) {
			w.awayTo = w.now.Add(longOutage)
		}
		w.report.Outages++
	}
	p := w.procs[w.rng.IntN(len(w.procs))]
	switch {
	case w.chance(blackoutOneIn * w.settled):
		w.darken()
	case w.replaces(p):
	case w.chance(killOneIn*w.settled) && p.alive:
		p.kill()
		if !w.chance(4) {
			w.spawn(p.harness, p)
		}
	case w.chance(pauseOneIn*w.settled) && p.alive && !p.paused:
		p.suspend()
	case w.chance(resumeOneIn):
		p.resume()
	case !p.alive && w.chance(resumeOneIn) && !w.now.Before(w.dark):
		w.spawn(p.harness, p)
	}
	if w.chance(ledgerOneIn) {
		w.ledgers[w.rng.IntN(len(w.ledgers))].trouble()
	}
	if w.chance(restartOneIn) {
		w.report.Kills++
		w.recover = newReconciler(w)
	}
	for _, s := range w.services {
		if w.chance(replicaKillIn) || w.cfg.Bug == RetryRestarts && w.chance(replicaKillIn/5) {
			n := w.rng.IntN(len(s.replicas))
			s.replicas[n] = newReplica(w, s, n)
			w.report.Kills++
		}
	}
}

// id is a new id for an event or an entity.
func (w *world) id(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s%d", prefix, w.ids)
}

// from is one source for all facts.
func from(source string) func(events.Fact) string { return func(events.Fact) string { return source } }

// append stores facts as one commit, if no other writer was first, and records the acknowledgement.
func (w *world) append(who string, r events.Ref, writer events.Writer, source func(events.Fact) string, epoch,
	after uint64, facts []events.Fact) bool {
	if w.away {
		return false
	}
	evs := make([]events.Event, len(facts))
	ids := make([]string, len(facts))
	for i, f := range facts {
		ids[i] = w.id("e")
		evs[i] = events.New(ids[i], source(f), r, epoch, w.now, f)
	}
	unguarded := w.cfg.Bug == SkipGuard && writer != events.WriterHarness || w.cfg.Bug == RetryUnguarded &&
		writer == events.WriterRetry
	seq, ok := w.log.append(r, writer, after, w.now, evs, unguarded)
	if !ok {
		w.report.LostRaces++
		return false
	}
	w.report.Facts += len(facts)
	for _, f := range facts {
		if c, claims := f.(events.SessionClaimed); claims {
			w.claimed[c.Incarnation] = w.now
		}
	}
	w.recordDecisions(r, writer, facts)
	if w.cfg.Bug == NoBug && writer != events.WriterHarness {
		w.checkRequests(who, facts)
	}
	w.promises = append(w.promises, promise{r, seq, ids, who})
	return true
}

// current is a session folded to the end of the log.
func (w *world) current(r events.Ref) *session.State {
	st := session.New(r)
	w.log.foldOn(st)
	return st
}

// newest is a session as a service reads it: its document, and what the log has beyond.
func (w *world) newest(r events.Ref) *session.State {
	st := session.New(r)
	if d := w.docs[r]; d != nil {
		st = d.state()
	}
	w.log.foldOn(st)
	return st
}
