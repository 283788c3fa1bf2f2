package compaction

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Rules for automatic compactions.
const (
	midStreamMore   = 0.05 // part of the limit above the threshold at which a running turn is stopped
	idleFailuresMax = 2    // in a row, after which idle compactions end
	idleGain        = 0.95 // the part of the earlier usage that may remain, else the compaction did not help
)

// Delays between the attempts of one compaction: each is twice the one before (T1).
const (
	delayBaseMS = 1_000
	delayMaxMS  = 60_000

	delayDoublesMax = 6 // later attempts have the longest delay
)

// source is the source of facts that are folded before they are appended.
const source = "/service/" + Name

// Input is what a decision depends on beside the session.
type Input struct {
	Now      time.Time    // by the broker's clock
	Steps    events.Steps // of the broker's clock
	Progress time.Time    // the last ping, which is not in the log; the start of the service counts as one
	Idle     bool         // an idle compaction may be requested: the session has its place
}

// Decision is what the service has to do about a session now.
type Decision struct {
	Facts   []events.Fact // to append, as one commit
	CheckAt time.Time     // when to decide again; zero: at the next change
	Watch   bool          // CheckAt only serves to detect a stall: it needs no alarm that outlives the service
	// the session after the facts, at its present place in the log; without facts, the session itself
	After *session.State
	Idle  time.Time // since when an idle compaction waits for its place; zero: it does not
}

// Decide returns what has to be done about a session's queue, its context and its last compaction. After its facts are
// appended, Decide returns nothing until CheckAt. It does not change the session.
//
//	closed, compaction requested, blocked  nothing
//	compaction runs                        it is failed if it has stalled
//	turn open                              mid-stream compaction, once a turn
//	turn requested                         nothing, but a person's message goes before a crashed turn
//	compaction failed, transient           the compaction again, after its delay
//	follow-up pending                      the turn that follows; after a failure only if it fits
//	turn overflowed                        one compaction, then the turn again
//	retry decides first                    nothing
//	queue may move                         the next message, or an on-send compaction for it
//	idle for long enough                   an idle compaction, when it has its place
func Decide(s *session.State, in Input) Decision {
	d := newDraft(s, in)
	if s.Open() {
		d.decide()
	}
	return Decision{Facts: d.Facts, CheckAt: d.Next, Watch: d.watch, After: d.State, Idle: d.idleSince}
}

// draft is a decision under construction.
type draft struct {
	session.Draft
	in    Input
	watch bool // CheckAt is only for a stall

	idleSince time.Time
}

func newDraft(s *session.State, in Input) *draft {
	return &draft{Draft: session.NewDraft(s, events.WriterCompaction, source, in.Now), in: in}
}

func (d *draft) decide() {
	switch {
	case d.CompactionOpen():
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

// listen fails a compaction that has been silent for too long, as a turn is (T18). It is retried like any other failed
// one (C8); later facts of the harness about it are ignored.
func (d *draft) listen() {
	of, due := d.Silence(d.in.Progress, d.in.Steps)
	switch {
	case of != session.EntityCompaction:
	case d.in.Now.Before(due):
		d.CheckAt(due)
		d.watch = true
	default:
		d.Add(events.CompactionFailed{Compaction: d.Compaction.ID,
			Error: events.Failure{Kind: failure.Stalled,
				Text: "nothing was heard of it for " + d.Policy.StallAfter().String()}})
		d.decide()
	}
}

// overtaken lets a person's message after a crash go before the automatic continuation of the crashed turn (R15).
func (d *draft) overtaken() bool {
	p, l := d.Pending.Turn, d.LastTurn
	return p.Cause == events.CauseResume && p.By == "" && l != nil && l.Outcome == session.OutcomeInterrupted &&
		d.NewerMessage(p.Seq)
}

// midStream stops a turn that fills the context and requests a compaction, once a turn (C5). It does not interrupt a
// running call: it waits until none runs, which is before the next model request. It stops no turn for a harness that
// could not compact the last time: the turn would be run once more for nothing. The next message tries again.
func (d *draft) midStream() {
	t, l := d.Turn, d.LastCompaction
	failedBefore := t.Cause == events.CauseFollowUp && l != nil && l.Outcome == session.OutcomeFailed
	switch {
	case !d.Owns(t.Epoch), t.Compaction != "", d.Pending.Stop != nil, failedBefore, cannotCompact(d.State),
		d.calling(t.ID):
	case d.UsageOver(midStreamMore) && !d.Stalled():
		u := d.Usage
		d.Add(events.TurnStopRequested{Turn: t.ID, Actor: events.ActorCompaction,
			Reason: fmt.Sprintf("the context is full to %.0f %%: it is compacted, then this continues", u.Percent)},
			d.request(events.CompactMidStream, events.FollowContinue, t.Message))
	}
}

// cannotCompact reports whether the harness said of the last compaction that it cannot compact.
func cannotCompact(s *session.State) bool {
	l := s.LastCompaction
	return l != nil && l.ErrorKind() == failure.RuntimeNotReady
}

// calling reports whether a call of a turn runs that the stop would interrupt.
func (d *draft) calling(turn string) bool {
	for _, c := range d.Tools {
		if c.Turn == turn && !c.Background {
			return true
		}
	}
	return false
}

// request returns the fact that requests a compaction.
func (d *draft) request(reason, followUp, message string) events.CompactionRequested {
	f := events.CompactionRequested{Compaction: d.id("compaction", reason), Reason: reason, Limit: d.Limit(),
		FollowUp: followUp, Message: message}
	if d.Usage != nil {
		f.Used = d.Usage.Used
	}
	return f
}

// id returns an id derived from the session's place in the log, so a decision that is made twice requests one thing.
func (d *draft) id(what, why string) string {
	return events.DeriveID(what, d.Session, why, strconv.FormatUint(d.Seq, 10))
}

// delay returns the time between the failure of this attempt, counted from 1, and the next one.
func delay(attempt int) time.Duration {
	ms := min(delayBaseMS<<min(max(attempt, 0), delayDoublesMax), delayMaxMS)
	return time.Duration(ms) * time.Millisecond
}

// again requests a failed compaction once more (C8). It reports whether others have to wait for it: a compaction
// without a follow-up delays nothing.
func (d *draft) again() (wait bool) {
	l, followUp, message := d.LastCompaction, d.FollowUp(), ""
	if due := d.in.Steps.Since(l.At, l.Seq).Add(delay(l.Failures)); due.After(d.in.Now) {
		d.CheckAt(due)
		return followUp != ""
	}
	if followUp != "" {
		message = l.Message
	}
	d.Add(d.request(l.Reason, followUp, message))
	return true
}

// followUp hands out the follow-up of a compaction, exactly once: the request removes it from the pending ones. A held
// follow-up waits for a person's act: a message makes one more attempt at the compaction, or goes before a turn that
// would continue.
func (d *draft) followUp() (wait bool) {
	l := d.LastCompaction
	owed := d.FollowUp()
	switch {
	case d.Held() && !d.NewerMessage(l.Seq):
	case d.Held() && owed == events.FollowContinue:
		return false
	case d.Held():
		d.Add(d.request(l.Reason, owed, l.Message))
	case owed == events.FollowMessage:
		d.Add(d.Naming(events.TurnRequested{Turn: d.id("turn", l.ID), Cause: events.CauseFollowUp, Message: l.Message,
			Compaction: l.ID}))
	default:
		d.goOn()
	}
	return true
}

// goOn continues the last turn after a compaction, with its request.
func (d *draft) goOn() {
	l, t := d.LastCompaction, d.LastTurn
	d.Add(d.Naming(events.TurnRequested{Turn: d.id("turn", l.ID), Cause: events.CauseFollowUp, OfTurn: t.ID,
		Message: t.Message,
		Options: t.Options, Compaction: l.ID}))
}

// overflow requests a compaction of a conversation that was too long for the model, then continues the same turn (C11).
func (d *draft) overflow() {
	if l := d.LastCompaction; l != nil && l.Seq > d.LastTurn.Seq {
		d.goOn()
		return
	}
	d.Add(d.request(events.CompactMidStream, events.FollowContinue, d.LastTurn.Message))
}

// handOut requests a turn for the oldest message, or a compaction first (C4).
func (d *draft) handOut() {
	if !d.QueueMoves() {
		return
	}
	head, l := d.Queue[0], d.LastCompaction
	tried := l != nil && l.Outcome == session.OutcomeFailed && l.Message == head.ID && l.FollowUp == ""
	if d.UsageOver(0) && !d.Stalled() && !tried {
		d.Add(d.request(events.CompactOnSend, events.FollowMessage, head.ID))
		return
	}
	d.Add(d.Naming(events.TurnRequested{Turn: d.id("turn", head.ID), Cause: events.CauseMessage, Message: head.ID}))
}

// idle requests a compaction of an idle session (C13).
func (d *draft) idle() {
	why, due := idleReason(d.State, d.in)
	switch {
	case why == WhyTooSoon:
		d.CheckAt(due)
	case why != "":
	case d.in.Idle:
		d.Add(d.request(events.CompactIdle, "", ""))
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

// idleReason returns why an idle compaction is not requested, and since or from when it may be; "" if it may. If the
// broker's clock was set since the last turn, the session counts as used then.
func idleReason(s *session.State, in Input) (why string, due time.Time) {
	l, t, u := s.LastCompaction, s.LastTurn, s.Usage
	switch {
	case s.Policy.IdleCompactionAfterS <= 0:
		return WhyDisabled, due
	case s.Turn != nil && s.BlockedBy() == "" && len(s.WaitsFor) == 0, s.CompactionOpen():
		return WhyRunning, due
	case len(s.PendingPrompts()) > 0, len(s.WaitsFor) > 0:
		return WhyWaiting, due
	case len(s.Queue) > 0, s.Pending.Turn != nil, s.RetryPlanned():
		return WhyQueued, due
	case l != nil && l.Outcome == session.OutcomeFailed &&
		(l.Failures >= idleFailuresMax || l.ErrorKind() == failure.ModelNotFound):
		return WhySuppressed, due
	case u == nil && l != nil && l.Outcome == session.OutcomeCompleted:
		return WhyCompacted, due
	case u == nil, u.Used <= 0:
		return WhyNoUsage, due
	case l != nil && l.Outcome == session.OutcomeCompleted && l.UsedBefore > 0 &&
		float64(l.UsedLeast) >= idleGain*float64(l.UsedBefore), s.Stalled():
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
