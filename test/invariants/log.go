// Package invariants checks the log of a session against what the deciders must keep. It follows the log from its start
// and counts for itself, so that it also finds a counter in the document that is wrong. The simulation and the crash
// tests check their logs with it.
//
//	V7   one failure, one retry, at the instant that follows from the failure alone; requested once for an attempt
//	V8   resumes are bounded by the policy, however they were counted
//	V9   a turn that a person stopped, or a retry that is disabled, does not continue automatically
//	V10  messages are handed out once, in order, and taken back by people alone; the queue waits after a failure
//	V11  one compaction for a trigger, followed up once
//	V14  everything that waits has a reason
//	V15  what a person decided is named by every attempt until one completes, and no owner's turn is taken for it
package invariants

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Log follows one session's log. [New] makes it.
type Log struct {
	slack  time.Duration
	before *session.State
	c      *events.Commit
	found  []string

	failedAt  map[string]time.Time // by turn
	cut       map[string]bool      // turns that were interrupted
	scheduled map[string]int       // retries by failed turn
	asked     map[string]int       // turns that a service requested, by what they go on with
	resumes   int                  // of interrupted turns, since anything came of one
	stopped   map[string]bool      // turns that a person stopped, without a later request
	stops     map[string]uint64    // by turn: where a person wanted it stopped
	person    uint64               // place of the last turn that a person asked for
	settled   uint64               // place of the last prompt that a person answered, rejected or dismissed
	sent      map[string]uint64    // places of a person's messages, and of such answers, that were not withdrawn
	lastStop  uint64               // place of a person's last stop
	personal  uint64               // place where a turn began last that a person asked for
	messages  map[string]string    // what became of each accepted one
	about     map[string]string    // by turn: the message it has
	triggers  map[string]string    // what called for a compaction: "" when that has failed
	follow    map[string]int       // follow-ups by compaction

	debts map[string]debt     // decisions of people that are not delivered, by prompt
	named map[string][]string // prompts that a turn brings to its agent, by turn
	done  map[string]string   // by prompt: why no turn brings its decision any more
	had   map[string]had      // by prompt
	left  uint64              // place of the last commit by which an owner went

	unattended map[string]bool // prompts whose asker has given up, and has not asked again
	// place of the last decision of a ledger that writes no owed: those up to there call for no turn
	noTurnSeq uint64

	continued int // turns that recovery requested for decisions since a person acted

	givenUp uint64 // place where a retry was given up last
}

// New begins at the start of a log. Slack is by how much a service's idea of the broker's time may be ahead of it.
func New(slack time.Duration) *Log {
	return &Log{slack: slack, failedAt: map[string]time.Time{}, cut: map[string]bool{}, scheduled: map[string]int{},
		asked:   map[string]int{},
		stopped: map[string]bool{}, stops: map[string]uint64{}, sent: map[string]uint64{},
		messages: map[string]string{}, about: map[string]string{},
		triggers: map[string]string{}, follow: map[string]int{}, debts: map[string]debt{}, named: map[string][]string{},
		done: map[string]string{}, had: map[string]had{},
		unattended: map[string]bool{}}
}

func (x *Log) fail(format string, args ...any) {
	x.found = append(x.found, fmt.Sprintf(format, args...))
}

// byPerson reports whether a person requested this commit.
func (x *Log) byPerson() bool {
	return slices.ContainsFunc(x.c.Events, func(e events.Event) bool { return byPersonItself(&e) })
}

// byPersonItself says whether a fact is a person's own word.
func byPersonItself(e *events.Event) bool {
	_, ok := events.Person(e.Source)
	return ok
}

// Commit takes in the next commit: what of it counted ([session.Result] Feed), and the session without it. It returns
// what is against the rules, nil for nothing; each begins with the rule's name.
func (x *Log) Commit(before *session.State, c *events.Commit, counted []events.Event) []string {
	x.before, x.c, x.found = before, c, nil
	for i := range counted {
		x.event(&counted[i])
	}
	return x.found
}

func (x *Log) event(e *events.Event) {
	x.answers(e)
	x.receipts(e)
	switch f := e.Fact.(type) {
	case events.MessageAccepted:
		x.accepted(f)
	case events.MessageWithdrawn:
		x.withdrawn(f, e.Derived || byPersonItself(e))
	case events.TurnStarted:
		x.started(f)
	case events.TurnCompleted:
		x.resumes = 0
	case events.TurnFailed:
		x.failedAt[f.Turn] = x.c.At
	case events.TurnInterrupted:
		x.failedAt[f.Turn], x.cut[f.Turn] = x.c.At, true
	case events.TurnStopRequested:
		x.stop(f)
	case events.PromptAnswered, events.PromptRejected, events.PromptDismissed:
		x.settled = x.c.Seq
		clear(x.stopped)
	case events.RetryScheduled:
		x.schedule(f)
	case events.TurnRequested:
		x.requested(f, byPersonItself(e))
	case events.CompactionRequested:
		x.compaction(f)
	case events.UsageReported:
		// a report after a compaction is a new reason for another one
		open := ""
		if c := x.before.Compaction; c != nil {
			open = c.ID
		}
		maps.DeleteFunc(x.triggers, func(of, id string) bool { return strings.HasPrefix(of, "message ") && id != open })
	case events.CompactionFailed:
		for of, id := range x.triggers {
			if id == f.Compaction {
				x.triggers[of] = ""
			}
		}
	}
}

// goesOn: a person asked for a turn, whatever was stopped before. The person can take back an answer that has become a
// message.
func (x *Log) goesOn(f events.TurnRequested) {
	clear(x.stopped)
	if f.Cause == events.CauseAnswer && x.messages[f.Message] == "accepted" {
		x.sent[f.Message] = x.c.Seq
		return
	}
	x.person = x.c.Seq
}

func (x *Log) accepted(f events.MessageAccepted) {
	if was, ok := x.messages[f.Message]; ok {
		x.fail("V10: message %s was accepted twice (%s)", f.Message, was)
	}
	x.messages[f.Message] = "accepted"
	if !f.Synthetic {
		x.sent[f.Message] = x.c.Seq
		clear(x.stopped)
	}
}

// wanted is the place of the last thing that a person did, and did not take back, that may make the session go on.
func (x *Log) wanted() uint64 { return max(x.called(), x.settled) }

// called is the place of the last thing that a person did, and did not take back, that has the queue move on: a
// message, a turn. An answer goes to the turn that asked, which may have been stopped.
func (x *Log) called() uint64 {
	last := x.person
	for _, at := range x.sent {
		last = max(last, at)
	}
	return last
}

// withdrawn: only people withdraw a message, and only one that no turn has.
func (x *Log) withdrawn(f events.MessageWithdrawn, wanted bool) {
	if was := x.messages[f.Message]; was != "accepted" {
		x.fail("V10: message %s was withdrawn, and it was %q", f.Message, was)
	}
	if !wanted {
		x.fail("V10: message %s was withdrawn by %s without a request", f.Message, x.c.Writer)
	}
	x.messages[f.Message] = "withdrawn"
	delete(x.sent, f.Message)
}

// started: a message is handed out once, the oldest first.
func (x *Log) started(f events.TurnStarted) {
	if p := x.before.Pending.Turn; p != nil && p.ID == f.Turn && f.Message == "" {
		f.Message = p.Message
	}
	if p := x.before.Pending.Turn; p != nil && p.ID == f.Turn && f.OfTurn == "" {
		f.OfTurn = p.OfTurn
	}
	if !f.Synthetic && f.Message != "" && (f.Cause == events.CauseMessage || f.Cause == events.CauseFollowUp &&
		f.OfTurn == "") {
		x.resumes = 0
	}
	delete(x.stopped, f.Turn)
	x.stopMoves(f)
	if t := x.before.Turn; f.Message == "" || t != nil && t.ID == f.Turn {
		// no message, or it is adopted with what it has
		return
	}
	x.about[f.Turn] = f.Message
	was := x.messages[f.Message]
	if was == "delivered" && f.OfTurn != "" && x.about[f.OfTurn] == f.Message {
		// it continues the turn that has it
		return
	}
	if was != "accepted" {
		x.fail("V10: message %s was handed out as turn %s (%s), and it was %q", f.Message, f.Turn, f.Cause, was)
	}
	x.messages[f.Message] = "delivered"
	at := slices.IndexFunc(x.before.Queue, func(m session.Message) bool { return m.ID == f.Message })
	if at > 0 && !x.overtakes(f.Message) {
		x.fail("V10: message %s was handed out before %s", f.Message, x.before.Queue[0].ID)
	}
}

// overtakes: the message that a question was answered with comes first.
func (x *Log) overtakes(message string) bool {
	p := x.before.Pending.Turn
	return p != nil && p.Message == message && p.Prompt != ""
}

// stop: no service continues a turn that a person stopped.
func (x *Log) stop(f events.TurnStopRequested) {
	if f.Actor != events.ActorPerson {
		return
	}
	x.stopped[f.Turn], x.stops[f.Turn], x.lastStop = true, x.c.Seq, x.c.Seq
	for _, t := range []string{x.before.Retry.Turn, ofTurn(x.before.Pending.Turn)} {
		if t != "" {
			x.stopped[t] = true
		}
	}
}

// stopMoves: a person's stop that the harness has not confirmed moves to the turn that begins behind the stopped one,
// and is as old there as it was, unless a service or a person's message called for that turn after the stop.
func (x *Log) stopMoves(f events.TurnStarted) {
	b := x.before
	p := b.Pending.Stop
	behind := p != nil && p.Turn != f.Turn && (b.Turn != nil && b.Turn.ID == p.Turn ||
		b.Turn == nil && b.LastTurn != nil && (b.LastTurn.ID == p.Turn || b.LastTurn.Seq <= p.Seq))
	if !behind || p.Actor != events.ActorPerson {
		return
	}
	asked := x.sent[f.Message]
	if r := b.Pending.Turn; r != nil && r.ID == f.Turn {
		asked = r.Seq
	}
	if asked > p.Seq {
		return
	}
	x.stops[f.Turn] = x.stops[p.Turn]
	if x.stopped[p.Turn] {
		x.stopped[f.Turn] = true
	}
}

func ofTurn(p *session.PendingTurn) string {
	if p == nil {
		return ""
	}
	return p.OfTurn
}

// schedule: one failure, one retry, at the instant that follows from the failure alone.
func (x *Log) schedule(f events.RetryScheduled) {
	if x.scheduled[f.Turn]++; x.scheduled[f.Turn] > 1 {
		x.fail("V7: the failure of turn %s was scheduled %d times", f.Turn, x.scheduled[f.Turn])
	}
	if f.Attempt != x.before.Retry.Attempt+1 {
		x.fail("V7: attempt %d follows attempt %d", f.Attempt, x.before.Retry.Attempt)
	}
	if want := x.failedAt[f.Turn].Add(time.Duration(f.DelayMS) * time.Millisecond); !f.DueAt.Equal(want) {
		x.fail("V7: turn %s failed at %v, is delayed by %d ms and due at %v", f.Turn, x.failedAt[f.Turn], f.DelayMS,
			f.DueAt)
	}
	if x.stopped[f.Turn] {
		x.fail("V9: a person stopped turn %s, and it is to be retried", f.Turn)
	}
	if !x.before.Policy.AutoRetry {
		x.fail("V9: turn %s is to be retried, and a person has switched that off", f.Turn)
	}
}

// requested: a turn that continues another is requested once, when it is due, unless a person stopped that; resumes are
// counted here, too.
func (x *Log) requested(f events.TurnRequested, person bool) {
	if f.Compaction != "" {
		if x.follow[f.Compaction]++; x.follow[f.Compaction] > 1 {
			x.fail("V11: compaction %s is followed up %d times", f.Compaction, x.follow[f.Compaction])
		}
	}
	// it may be stopped before it begins, and continued then
	if f.Message != "" && x.about[f.OfTurn] == f.Message {
		x.about[f.Turn] = f.Message
	}
	// a request that a person replaces is decided again if the person withdraws it
	if p := x.before.Pending.Turn; p != nil && x.byPerson() {
		delete(x.scheduled, p.OfTurn)
		delete(x.asked, p.OfTurn)
	}
	if person {
		x.goesOn(f)
		// a person's request restarts the count
		x.resumes = 0
		if f.Cause == events.CauseResume {
			x.resumes = 1
		}
		return
	}
	switch f.Cause {
	case events.CauseRetry, events.CauseResume:
		x.again(f)
	case events.CauseMessage:
		x.moves(f)
	case events.CauseFollowUp:
		if x.stopped[f.OfTurn] {
			x.fail("V9: a person stopped turn %s, and after a compaction it continues", f.OfTurn)
		}
	}
}

func (x *Log) again(f events.TurnRequested) {
	before := x.before
	if x.asked[f.OfTurn]++; x.asked[f.OfTurn] > 1 {
		x.fail("V7: turn %s was requested again %d times", f.OfTurn, x.asked[f.OfTurn])
	}
	if before.Retry.State == session.RetryScheduled && x.c.At.Add(x.slack).Before(before.Retry.DueAt) {
		x.fail("V7: turn %s was requested again at %v, due at %v", f.OfTurn, x.c.At, before.Retry.DueAt)
	}
	if before.Retry.State != session.RetryScheduled && x.c.Writer == events.WriterRetry {
		x.fail("V7: turn %s was requested again at %v, and that was not scheduled", f.OfTurn, x.c.At)
	}
	if x.stopped[f.OfTurn] {
		x.fail("V9: a person stopped turn %s, and %s continues it", f.OfTurn, x.c.Writer)
	}
	if !before.Policy.AutoRetry && x.c.Writer == events.WriterRetry {
		x.fail("V9: turn %s is retried, and a person has switched that off", f.OfTurn)
	}
	if x.cut[f.OfTurn] || f.Cause == events.CauseResume {
		if x.resumes++; x.resumes > before.Policy.ResumeMax {
			x.fail("V8: %d resumes without progress, %d are allowed and %d counted", x.resumes, before.Policy.ResumeMax,
				before.Retry.Resumes)
		}
	}
}

// moves: the queue moves on after a turn that completed, or a person's act.
func (x *Log) moves(f events.TurnRequested) {
	l := x.before.LastTurn
	if x.c.Writer == events.WriterCompaction && x.holds(l, x.wanted()) {
		x.fail("V10: message %s is handed out although the last turn %s, and no person wanted to go on", f.Message,
			l.Outcome)
	}
	// a person's message after a crash goes first
	overtaken := l != nil && l.Outcome == session.OutcomeInterrupted && x.wanted() > l.Seq
	// it takes the place of a question of a turn that came after the one that failed (P14)
	answers := f.OfTurn != "" && x.byPerson()
	if x.before.Retry.State == session.RetryScheduled && x.c.Writer == events.WriterCompaction && !overtaken &&
		!answers {
		x.fail("V10: message %s is handed out while a retry is scheduled", f.Message)
	}
}

// holds says whether the queue waits for a person since this turn ended, if one went on with the session at that place
// last.
func (x *Log) holds(l *session.LastTurn, wanted uint64) bool {
	bad := l != nil && (l.Outcome == session.OutcomeFailed || l.Outcome == session.OutcomeStopped ||
		l.Outcome == session.OutcomeInterrupted)
	return bad && wanted < cmp.Or(x.stops[l.ID], l.Seq)
}

// compaction: one for a trigger, unless it failed.
func (x *Log) compaction(f events.CompactionRequested) {
	before := x.before
	var trigger string
	switch {
	case f.Reason == events.CompactIdle, f.Reason == events.CompactManual:
		return
	case f.FollowUp == events.FollowContinue && before.Turn != nil:
		trigger = "turn " + before.Turn.ID
	case f.FollowUp == events.FollowContinue && before.LastTurn != nil:
		trigger = "turn " + before.LastTurn.ID
	default:
		trigger = "message " + f.Message
	}
	if other := x.triggers[trigger]; other != "" {
		x.fail("V11: compaction %s for %s, which has had %s", f.Compaction, trigger, other)
	}
	x.triggers[trigger] = f.Compaction
}

// Stuck returns why a session at rest waits without a reason, "" if it does not: everything that runs, is retried,
// compacted or queued has a process, a person or an instant for it (V14). alive reports whether its owner lives.
func (x *Log) Stuck(st *session.State, alive bool) string {
	if !st.Open() {
		return ""
	}
	l, p := st.LastTurn, st.Pending
	switch {
	case st.Phase == session.Running && !alive:
		return "V14: it runs without an owner"
	case st.Phase == session.Retrying && (alive || p.Turn == nil):
		return "V14: it is retried, and no timer goes off"
	case st.Phase == session.Compacting && (alive || p.Compaction == nil):
		return "V14: it is compacted without an owner"
	case !alive || st.BlockedBy() != "" || len(st.WaitsFor) > 0:
		return ""
	case p.Turn != nil:
		return "V14: it has a turn to do, and its owner does not do it"
	case x.called() < x.lastStop:
		// a person stopped it, and it was not continued since
		return ""
	case x.owes(st):
		return "V11: it owes what follows its compaction"
	case !st.QueueMoves() && st.Continuations.State == session.ContinuationsHeld:
		// its agent has taken none of the turns for decisions: the next one waits for a person
		return ""
	case len(st.Queue) > 0 && st.Turn == nil && st.Compaction == nil &&
		(l == nil || l.Outcome == session.OutcomeCompleted):
		return "V10: it does not hand its queue out"
	}
	return ""
}

// owes says whether a follow-up is still to be requested, and nothing has come between. A message waits as the queue
// does when another turn began before the compaction, and ended badly.
func (x *Log) owes(st *session.State) bool {
	l := st.LastCompaction
	if l == nil || l.Outcome != session.OutcomeCompleted || st.Turn != nil || st.LastTurn != nil &&
		st.LastTurn.Seq > l.Seq {
		return false
	}
	queued := slices.ContainsFunc(st.Queue, func(m session.Message) bool { return m.ID == l.Message })
	t := st.LastTurn
	// it may have come to its end before it heard of the stop
	cut := t != nil && t.ID == l.Turn && t.Outcome != session.OutcomeCompleted
	return l.FollowUp == events.FollowContinue && cut || l.FollowUp == events.FollowMessage && queued &&
		!x.holds(t, x.called())
}
