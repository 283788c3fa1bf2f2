package compaction

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Rules about when a conversation is compacted by itself.
const (
	midStreamMore   = 0.05 // part of the limit, above the threshold, at which a running turn is stopped for it
	thresholdExact  = 1e9  // thresholds are taken to so many parts, so that 0.7 + 0.05 is 0.75
	idleFailuresMax = 2    // in a row, after which idle compactions are left alone
	idleGain        = 0.95 // what part may be left of what was there before, else idle compaction is of no use
)

// Delays between the attempts at one compaction: doubled each time, from the first on (T1).
const (
	delayBaseMS = 1_000
	delayMaxMS  = 60_000

	delayDoublesMax = 6 // more would only be cut
)

// source is of facts that are folded before they are appended.
const source = "/service/" + Name

// Input is what a decision rests on beside the session itself.
type Input struct {
	Now      time.Time    // the broker's
	Steps    events.Steps // of the broker's clock
	Progress time.Time    // the last sign of life that is not in the log; a start of the service counts as one
	Idle     bool         // an idle compaction may be asked for: the session's place among those that are due has come
}

// Decision is what compaction would do about a session now.
type Decision struct {
	Facts []events.Fact  // to append, as one commit
	Look  time.Time      // when to look again; zero: at the next change
	Watch bool           // the look is only to see whether a compaction has stalled: it needs no alarm that outlives the service
	After *session.State // the session as it will be then, at the place in the log that it has now; with no facts, the session itself
	Idle  time.Time      // since when an idle compaction is due that waits for its place; zero: none is
}

// Decide looks at one session and says what its queue, its context and its last compaction call for. Deciding again on what
// comes of it calls for nothing. It does not change the session.
//
//	closed, compaction wanted, blocked     nothing
//	compaction under way                   it is failed if it has stalled
//	turn open                              mid-stream compaction, once a turn
//	turn asked for                         nothing, but a person's message goes before a crashed turn
//	compaction failed, may pass            the compaction again, by its delay
//	follow-up owed                         the turn that follows; after a failure only if it fits
//	turn overflowed                        one compaction, then the turn again
//	retry has the say                      nothing
//	queue may move                         the next message, or an on-send compaction for it
//	idle for long enough                   an idle compaction, when its place has come
func Decide(s *session.State, in Input) Decision {
	d := &desk{State: s, in: in}
	if s.Opened() && s.Closed == nil {
		d.decide()
	}
	return Decision{Facts: d.facts, Look: d.look, Watch: d.watch, After: d.State, Idle: d.idleSince}
}

// desk is one decision in the making: the session as it is after the facts said so far.
type desk struct {
	*session.State
	in    Input
	facts []events.Fact
	look  time.Time
	watch bool // the look is for silence alone

	idleSince time.Time
}

// say adds facts and folds them, as one commit.
func (d *desk) say(facts ...events.Fact) {
	if len(d.facts) == 0 {
		d.State = d.Clone()
	}
	seq := d.Seq
	c := events.Commit{Ref: d.Ref(), Writer: events.WriterCompaction, Seq: seq + 1, At: d.in.Now}
	for _, f := range facts {
		c.Events = append(c.Events, events.New(string(f.Kind()), source, c.Ref, d.Epoch, d.in.Now, f))
	}
	d.Fold(&c)
	d.Seq = seq // ids that are derived from the place in the log stay the same however often this is decided
	d.facts = append(d.facts, facts...)
}

func (d *desk) lookAt(at time.Time) {
	if d.look.IsZero() || at.Before(d.look) {
		d.look = at
	}
}

func (d *desk) decide() {
	switch {
	case open(d.State):
		d.listen()
	case d.BlockedBy() != "", len(d.WaitsFor) > 0:
	case d.Turn != nil:
		d.midStream()
	case d.Pending.Turn != nil && !d.overtaken():
	case d.CompactAgain() && d.again():
	case d.FollowUp() != "" && d.followUp():
	case d.Overflowed():
		d.overflow()
	case d.RetryFirst():
	case len(d.Queue) > 0:
		d.handOut()
	default:
		d.idle()
	}
}

// open says whether a compaction is wanted or under way.
func open(s *session.State) bool {
	return s.Compaction != nil && (s.Compaction.State == session.CompactionRequested || s.Compaction.State == session.CompactionRunning)
}

// listen fails a compaction that has been silent for too long, as a turn is (T18): nobody need wait for ever for who hangs in
// it. It is tried again as any other that failed (C8); what the harness still says about this one is ignored.
func (d *desk) listen() {
	of, due := d.Silence(d.in.Progress, d.in.Steps)
	switch {
	case of != session.EntityCompaction:
	case d.in.Now.Before(due):
		d.lookAt(due)
		d.watch = true
	default:
		d.say(events.CompactionFailed{Compaction: d.Compaction.ID, Error: events.Failure{Kind: failure.Stalled, Text: "nothing was heard of it for " + d.Policy.StallAfter().String()}})
		d.decide()
	}
}

// overtaken: what a person says after a crash goes before what the crashed turn would go on with by itself (R15).
func (d *desk) overtaken() bool {
	p, l := d.Pending.Turn, d.LastTurn
	return p.Cause == events.CauseResume && p.By == "" && l != nil && l.Outcome == session.OutcomeInterrupted && d.NewerMessage(p.Seq)
}

// over says whether usage is at the threshold, plus so much of the limit; unknown usage, an unknown limit or a threshold of
// 1 is never over.
func over(s *session.State, more float64) bool {
	limit, t := s.Limit(), s.Policy.CompactionThreshold
	if s.Usage == nil || limit <= 0 || t >= 1 {
		return false
	}
	return float64(s.Usage.Used) >= math.Round((t+more)*thresholdExact)/thresholdExact*float64(limit)
}

// midStream stops a turn that fills the context and has the conversation compacted, once a turn (C5). A call that runs is
// not cut off: its turn is stopped when none does, which is before the model is called again.
func (d *desk) midStream() {
	t, l := d.Turn, d.LastCompaction
	failedBefore := t.Cause == events.CauseFollowUp && l != nil && l.Outcome == session.OutcomeFailed
	switch {
	case !d.Owned, t.Epoch < d.Epoch, t.Compaction != "", d.Pending.Stop != nil, failedBefore, d.calling(t.ID):
	case over(d.State, midStreamMore) && !d.Stalled():
		u := d.Usage
		d.say(events.TurnStopRequested{Turn: t.ID, Actor: events.ActorCompaction, Reason: fmt.Sprintf("the context is full to %.0f %%: it is compacted, then this goes on", u.Percent)},
			d.request(events.CompactMidStream, events.FollowContinue, t.Message))
	}
}

// calling says whether a call of a turn runs that would be cut off with it.
func (d *desk) calling(turn string) bool {
	for _, c := range d.Tools {
		if c.Turn == turn && !c.Background {
			return true
		}
	}
	return false
}

// request is the fact that asks for a compaction.
func (d *desk) request(reason, followUp, message string) events.CompactionRequested {
	f := events.CompactionRequested{Compaction: d.id("compaction", reason), Reason: reason, Limit: d.Limit(), FollowUp: followUp, Message: message}
	if d.Usage != nil {
		f.Used = d.Usage.Used
	}
	return f
}

// id depends on the session's place in the log alone, so a decision made twice asks for one thing.
func (d *desk) id(what, why string) string {
	return events.DeriveID(what, d.Session, why, strconv.FormatUint(d.Seq, 10))
}

// delay is how long after the failure of this attempt, counted from 1, the next one is made.
func delay(attempt int) time.Duration {
	ms := min(delayBaseMS<<min(max(attempt, 0), delayDoublesMax), delayMaxMS)
	return time.Duration(ms) * time.Millisecond
}

// again asks for a compaction once more that failed (C8). It says whether others have to wait: nobody does for one that
// nothing follows.
func (d *desk) again() (wait bool) {
	l, followUp, message := d.LastCompaction, d.FollowUp(), ""
	if due := d.in.Steps.Since(l.At, l.Seq).Add(delay(l.Failures)); due.After(d.in.Now) {
		d.lookAt(due)
		return followUp != ""
	}
	if followUp != "" {
		message = l.Message
	}
	d.say(d.request(l.Reason, followUp, message))
	return true
}

// followUp hands out what follows a compaction, exactly once: the request takes it out of what is owed. What is held waits
// for a person's act: a message makes one more attempt at the compaction, or goes before a turn that would go on.
func (d *desk) followUp() (wait bool) {
	l := d.LastCompaction
	owed := d.FollowUp()
	switch {
	case d.Held() && !d.NewerMessage(l.Seq):
	case d.Held() && owed == events.FollowContinue:
		return false
	case d.Held():
		d.say(d.request(l.Reason, owed, l.Message))
	case owed == events.FollowMessage:
		d.say(d.Naming(events.TurnRequested{Turn: d.id("turn", l.ID), Cause: events.CauseFollowUp, Message: l.Message, Compaction: l.ID}))
	default:
		d.goOn()
	}
	return true
}

// goOn has the last turn go on after a compaction, as the request it was.
func (d *desk) goOn() {
	l, t := d.LastCompaction, d.LastTurn
	d.say(d.Naming(events.TurnRequested{Turn: d.id("turn", l.ID), Cause: events.CauseFollowUp, OfTurn: t.ID, Message: t.Message,
		Options: t.Options, Compaction: l.ID}))
}

// overflow has a conversation compacted that was too long for the model, then the same turn go on (C11).
func (d *desk) overflow() {
	if l := d.LastCompaction; l != nil && l.Seq > d.LastTurn.Seq {
		d.goOn()
		return
	}
	d.say(d.request(events.CompactMidStream, events.FollowContinue, d.LastTurn.Message))
}

// handOut gives the harness the oldest message, or has the conversation compacted first (C4).
func (d *desk) handOut() {
	if !d.QueueMoves() {
		return
	}
	head, l := d.Queue[0], d.LastCompaction
	tried := l != nil && l.Outcome == session.OutcomeFailed && l.Message == head.ID && l.FollowUp == ""
	if over(d.State, 0) && !d.Stalled() && !tried {
		d.say(d.request(events.CompactOnSend, events.FollowMessage, head.ID))
		return
	}
	d.say(d.Naming(events.TurnRequested{Turn: d.id("turn", head.ID), Cause: events.CauseMessage, Message: head.ID}))
}

// idle has a conversation compacted that nobody has used for a while (C13).
func (d *desk) idle() {
	why, due := idleReason(d.State, d.in)
	switch {
	case why == WhyTooSoon:
		d.lookAt(due)
	case why != "":
	case d.in.Idle:
		d.say(d.request(events.CompactIdle, "", ""))
	default:
		d.idleSince = due
	}
}

// Reasons for not compacting an idle session.
const (
	WhyDisabled   = "disabled"
	WhyNoUsage    = "no_usage"
	WhyTooSoon    = "not_idle_long_enough"
	WhyRunning    = "running"
	WhyQueued     = "queued"
	WhyWaiting    = "waiting" // for a person, a child, or an owner
	WhyCompacted  = "already_compacted"
	WhySuppressed = "suppressed"
)

// idleReason says why an idle compaction is not asked for, and since or from when it may be; "" if it may. When the broker's
// clock was set since the last turn, the session counts as used then.
func idleReason(s *session.State, in Input) (why string, due time.Time) {
	l, t, u := s.LastCompaction, s.LastTurn, s.Usage
	switch {
	case s.Policy.IdleCompactionAfterS <= 0:
		return WhyDisabled, due
	case s.Turn != nil && s.BlockedBy() == "" && len(s.WaitsFor) == 0, open(s):
		return WhyRunning, due
	case len(s.PendingPrompts()) > 0, len(s.WaitsFor) > 0:
		return WhyWaiting, due
	case len(s.Queue) > 0, s.Pending.Turn != nil, s.Retry.State == session.RetryScheduled, s.Retry.State == session.RetryStarting:
		return WhyQueued, due
	case l != nil && l.Outcome == session.OutcomeFailed && (l.Failures >= idleFailuresMax || l.ErrorKind() == failure.ModelNotFound):
		return WhySuppressed, due
	case u == nil && l != nil && l.Outcome == session.OutcomeCompleted:
		return WhyCompacted, due
	case u == nil, u.Used <= 0:
		return WhyNoUsage, due
	case l != nil && l.Outcome == session.OutcomeCompleted && l.UsedBefore > 0 && float64(l.UsedLeast) >= idleGain*float64(l.UsedBefore), s.Stalled():
		return WhySuppressed, due
	case !s.Owned, t == nil, t.Outcome != session.OutcomeCompleted:
		return WhyWaiting, due
	}
	due = t.At
	if n := len(in.Steps); n > 0 && in.Steps[n-1].Seq >= t.Seq {
		due = in.Steps[n-1].At
	} else if s.ActiveAt.After(due) {
		due = s.ActiveAt
	}
	due = due.Add(time.Duration(s.Policy.IdleCompactionAfterS) * time.Second)
	if l != nil && l.Outcome == session.OutcomeFailed {
		if next := in.Steps.Since(l.At, l.Seq).Add(delay(l.Failures)); next.After(due) {
			due = next
		}
	}
	if due.After(in.Now) {
		return WhyTooSoon, due
	}
	return "", due
}
