package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// lazyMS is how long a fact that no caller waits for may wait for others, in milliseconds.
const lazyMS = 5

// keptEveryMS is how long facts that no caller waits for stay aside after the broker has refused them, in milliseconds.
const keptEveryMS = 1_000

// write is one caller's facts, which are stored together or not at all.
type write struct {
	facts []events.Event // as readers will read them; envelopes are completed when the write is sent
	bytes int            // of the facts as a commit of their own, under the envelopes that they have here
	relay bool           // also what the fold will ignore
	// forced takes room even from a full buffer, and is tried again after a failure: no caller learns of a refusal. (A
	// report is held back again instead.)
	forced bool
	last   bool                  // it ends work: it stays in the queue when its caller no longer waits
	end    bool                  // it is the end of what Work ran: it is also tried again if the broker refuses it
	report *events.UsageReported // the report that it is, nil for others: no caller waits for it, the newest stands
	alone  bool                  // the broker has refused it, perhaps with others: it is a commit of its own
	fresh  bool                  // the session was read since it was first refused: the next refusal is the truth
	// check looks at the state before the facts are tried on it: done means there is nothing to append. It is called
	// with the session locked, again after each lost race. May be nil.
	check func(*session.State) (done bool, err error)

	done chan struct{}
	err  error // set before done is closed
}

// unacked is the commit under way.
type unacked struct {
	first  string // id of its first event
	writes []*write
}

// buffer bounds what waits in the process.
type buffer struct {
	factsMax, bytesMax int
	mu                 sync.Mutex
	facts, bytes       int
}

func (b *buffer) reserve(facts, bytes int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.facts+facts > b.factsMax || b.bytes+bytes > b.bytesMax {
		return fmt.Errorf("%w: %d facts, %d bytes wait", ErrBufferFull, b.facts, b.bytes)
	}
	b.facts, b.bytes = b.facts+facts, b.bytes+bytes
	return nil
}

// force takes room even from a full buffer: room that is given back later must have been taken.
func (b *buffer) force(facts, bytes int) { b.release(-facts, -bytes) }

func (b *buffer) release(facts, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.facts, b.bytes = b.facts-facts, b.bytes-bytes
}

// newWrite encodes the facts and reads them back, so that what is folded here is what everybody will fold. Errors are
// those of pkg/events: nothing malformed, and nothing that a harness may not say, gets into the queue.
func (s *Session) newWrite(facts []events.Fact) (*write, error) {
	for _, f := range facts {
		if f == nil {
			return nil, fmt.Errorf("harness: %s: %w: a fact is nil", s.ref, events.ErrMalformed)
		}
		if spec := events.Lookup(f.Kind()); spec == nil || !spec.May(events.WriterHarness) {
			return nil, about(events.ErrOutOfRole, "%s", f.Kind())
		}
	}
	evs := make([]events.Event, len(facts))
	now := time.Now().UTC()
	for i, f := range facts {
		evs[i] = events.New(s.h.bus.NewID(), "/harness", s.ref, 1, now, withKind(f))
	}
	body, err := events.EncodeBatch(evs)
	if err == nil {
		evs, err = events.DecodeBatch(s.ref, body)
	}
	if err != nil {
		return nil, about(err, "%s", s.ref)
	}
	for i := range evs {
		if evs[i].Err != nil {
			return nil, about(evs[i].Err, "%s", s.ref)
		}
	}
	return &write{facts: evs, bytes: len(body), done: make(chan struct{})}, nil
}

// withKind gives a failure without a kind the kind unknown: readers decide by the kind.
func withKind(f events.Fact) events.Fact {
	switch f := f.(type) {
	case events.TurnFailed:
		f.Error.Kind = cmp.Or(f.Error.Kind, failure.Unknown)
		return f
	case events.ToolFailed:
		f.Error.Kind = cmp.Or(f.Error.Kind, failure.Unknown)
		return f
	case events.CompactionFailed:
		f.Error.Kind = cmp.Or(f.Error.Kind, failure.Unknown)
		return f
	}
	return f
}

// Append stores facts as one commit (perhaps together with others that wait), all or none. It is for what the other
// methods do not offer; session.opened and session.claimed are refused. Each fact must count under the state as it is
// when it is stored, else the error says why it would not: [ErrEnded], [ErrClosedID], [ErrUnknown], [ErrLimit],
// [ErrUnread]. Other errors:
//   - [events.ErrMalformed], [events.ErrOutOfRole]: a fact that no harness can store.
//   - [ErrFenced], [ErrReleased], [ErrSessionClosed], [ErrLeaseLost], [ErrClosed]: the session is not this process's.
//   - [ErrBufferFull]: too much waits in this process. Nothing is stored.
//   - [ErrFull], [ErrForbidden]: the broker refuses it. Nothing is stored.
//   - [ErrPending]: ctx ended after the facts were sent. If ctx ended before, the error is its cause, and nothing is
//     stored.
//
// A prompt that is requested with Append has no Ask. Call [Turn.Ask] or [Session.Ask] under its id, or read the
// decision with [Session.Answer]. If the prompt belongs to no turn, or to a call in the background, its decision waits
// for this process until then, for as long as the process has the session: append [events.PromptUnattended] too, if
// nothing will take the decision in, and the decision calls for a turn.
func (s *Session) Append(ctx context.Context, facts ...events.Fact) error {
	return s.append(ctx, nil, facts...)
}

// Relay stores facts as one commit as they come, also those that will be recorded but not count. It is for bridges,
// which tell what a foreign system said. Only ownership is checked. Errors are the other errors of [Session.Append].
func (s *Session) Relay(ctx context.Context, facts ...events.Fact) error {
	o, err := s.newWrite(facts)
	if err != nil {
		return err
	}
	o.relay = true
	return s.do(ctx, o)
}

func (s *Session) append(ctx context.Context, check func(*session.State) (bool, error), facts ...events.Fact) error {
	o, err := s.newWrite(facts)
	if err != nil {
		return err
	}
	o.check = check
	return s.do(ctx, o)
}

// appendLast is [Session.append] for a fact that says how a turn, a compaction, a step or a question ended. If ctx ends
// first, the error is [ErrPending], and the fact stays in the queue. Otherwise that work would be open, in a process
// that lives, and nothing would end it.
func (s *Session) appendLast(ctx context.Context, check func(*session.State) (bool, error), f events.Fact) error {
	return s.doLast(ctx, check, f, false)
}

// appendEnd is [Session.appendLast] for the end of what Work ran: no other code learns of an error, and none ends it.
// If the broker refuses the fact, because the log is full for instance, the error says so, and the fact is tried again
// as long as this process has the session.
func (s *Session) appendEnd(ctx context.Context, check func(*session.State) (bool, error), f events.Fact) error {
	return s.doLast(ctx, check, f, true)
}

func (s *Session) doLast(ctx context.Context, check func(*session.State) (bool, error), f events.Fact, end bool) error {
	o, err := s.newWrite([]events.Fact{f})
	if err != nil {
		return err
	}
	o.check, o.last, o.end = check, true, end
	return s.do(ctx, o)
}

// do queues a write and waits until it is stored.
func (s *Session) do(ctx context.Context, o *write) error {
	for i := range o.facts {
		if k := o.facts[i].Kind; k == (events.SessionOpened{}).Kind() || k == (events.SessionClaimed{}).Kind() {
			return fmt.Errorf("harness: %s: %w: use Open or Claim", k, events.ErrOutOfRole)
		}
	}
	// the last fact is queued, and stored when it can be
	if err := context.Cause(ctx); err != nil && !o.last {
		return about(err, "%s", s.ref)
	}
	s.haveAll(o.facts)
	s.requestsAgain(o.facts)
	if err := s.queueUp(false, o); err != nil {
		return err
	}
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if o.last && s.detach(o) {
		return fmt.Errorf("%w: %s: %w", ErrPending, s.ref, cause)
	}
	switch s.takeBack(o, cause) {
	case handedOver:
		return fmt.Errorf("%w: %s: %w", ErrPending, s.ref, cause)
	case takenBack:
		return about(cause, "%s: not stored", s.ref)
	}
	return o.err
}

// The outcome of a write whose caller no longer waits.
const (
	answered   = iota // it has its outcome
	handedOver        // the broker has it, or may have it
	takenBack         // it will not be sent
)

// detach leaves a write in the queue that no caller waits for any more, as long as this process has the session.
// It returns false if the write has its outcome.
func (s *Session) detach(o *write) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-o.done:
		return false
	default:
	}
	o.forced = true
	return true
}

// takeBack takes a write out of the queue, unless it was handed to the broker.
func (s *Session) takeBack(o *write, cause error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-o.done:
		return answered
	default:
	}
	if s.unacked != nil && contains(s.unacked.writes, o) {
		return handedOver
	}
	s.queue = without(s.queue, o)
	s.finish(o, cause)
	return takenBack
}

// queueUp puts a write behind the others and schedules its sending: at once, or soon for a write that no caller waits
// for, so that it is sent with the next one. A report that is held back goes before the end of its turn.
func (s *Session) queueUp(lazily bool, o *write) error {
	if o.forced || o.end {
		s.h.buffer.force(len(o.facts), o.bytes)
	} else if err := s.h.buffer.reserve(len(o.facts), o.bytes); err != nil {
		return fmt.Errorf("%w: %s", err, s.ref)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queueUpLocked(lazily, o)
}

// queueUpLocked is [Session.queueUp] for a write that has its room in the buffer. The session is locked.
func (s *Session) queueUpLocked(lazily bool, o *write) error {
	if s.ownership == apart {
		s.h.buffer.release(len(o.facts), o.bytes)
		return about(s.why, "%s", s.ref)
	}
	if o.ends() {
		if held := s.heldUsage(); held != nil {
			s.h.buffer.force(len(held.facts), held.bytes)
			s.queue, s.usage.sent = append(s.queue, held), held
		}
	}
	if o.report != nil {
		s.usage.sent = o
	}
	s.queueKept()
	s.queue = append(s.queue, o)
	if lazily {
		time.AfterFunc(lazyMS*time.Millisecond, s.schedule)
	} else {
		s.scheduleLocked()
	}
	return nil
}

// schedule schedules the sending of the queue.
func (s *Session) schedule() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scheduleLocked()
}

func (s *Session) scheduleLocked() {
	if !s.running && len(s.queue) > 0 {
		s.running = true
		go s.run()
	}
}

// finish tells a write's caller. The session is locked.
func (s *Session) finish(o *write, err error) {
	s.h.buffer.release(len(o.facts), o.bytes)
	o.err = err
	close(o.done)
}

// run sends what is queued, one commit after the other, until nothing is left.
func (s *Session) run() {
	for s.mayRun() {
		s.writing <- struct{}{}
		s.send()
		<-s.writing
	}
}

// mayRun waits until the session may be written and says whether there is anything to write.
func (s *Session) mayRun() bool {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.running = false
			s.mu.Unlock()
			return false
		}
		if s.ownership != suspended {
			s.mu.Unlock()
			// apart sessions have an empty queue
			return true
		}
		wait := s.resumed
		s.mu.Unlock()
		<-wait
	}
}

// send stores as much of the queue as one commit takes. The caller may write.
func (s *Session) send() {
	s.mu.Lock()
	if s.ownership != owner {
		s.mu.Unlock()
		return
	}
	ops, evs, stale := s.pick()
	l, after := s.term, s.st.Seq
	if len(ops) > 0 {
		s.unacked = &unacked{first: evs[0].ID, writes: ops}
	}
	s.mu.Unlock()
	switch {
	case stale:
		s.readOrFail(l)
		return
	case len(ops) == 0:
		return
	}

	seq, err := s.store(l.ctx, after, evs)
	switch {
	case err == nil:
		s.fold([]events.Commit{s.commit(seq, after, evs)}, seq)
	case errors.Is(err, bus.ErrLostRace), errors.Is(err, bus.ErrLogBehind):
		s.unsend()
		if s.readOrFail(l) && s.at(after) {
			s.drop(fmt.Errorf("%w: the log no longer has what was read of it", ErrFenced))
		}
	case l.ctx.Err() != nil:
		// reading the session again shows the commit's outcome
		s.suspend(l)
	case len(ops) > 1 && !errors.Is(err, bus.ErrUnreachable):
		// the log may have space for some of them
		s.divide()
	default:
		s.mu.Lock()
		s.settleUnacked(about(translate(err), "%s", s.ref))
		s.mu.Unlock()
	}
}

// store appends a commit, the same one again as long as the broker refuses it because of writes in flight: the leader
// has lost the other nodes, or another client uses the session's guard. That is an outage, which ends no turn, and the
// commit may be in flight itself.
func (s *Session) store(ctx context.Context, after uint64, evs []events.Event) (uint64, error) {
	for {
		seq, err := s.storeOnce(ctx, after, evs)
		if !errors.Is(err, bus.ErrInFlight) || ctx.Err() != nil {
			return seq, err
		}
		s.h.log.Warn().Str("session", s.ref.String()).AnErr("err", err).Msg("the log does not store: trying on")
	}
}

// storeOnce appends a commit behind the one that was folded last. The log is asked for that one first if the connection
// was restored since they were compared.
func (s *Session) storeOnce(ctx context.Context, after uint64, evs []events.Event) (uint64, error) {
	n := s.h.bus.Reconnects()
	s.mu.Lock()
	last := log.Last{Seq: after, On: s.proved}
	if s.last.Seq == after {
		last.First = s.last.First
	}
	s.mu.Unlock()
	seq, err := last.Append(ctx, s.h.bus.Log, s.ref, events.WriterHarness, evs).Wait(ctx)
	if err == nil {
		s.prove(n)
	}
	return seq, err
}

// readOrFail reads what is new, so that what waits can be decided again.
func (s *Session) readOrFail(l *term) bool {
	err := s.catchUp(l.ctx)
	switch {
	case err == nil:
		return true
	case l.ctx.Err() != nil:
		s.suspend(l)
	default:
		s.failQueue(err)
	}
	return false
}

// at says whether nothing was folded beyond seq.
func (s *Session) at(seq uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.Seq == seq
}

// unsend puts what is under way back, for it is certain that it was not stored.
func (s *Session) unsend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unacked = nil
}

// divide puts what is under way back, each write as a commit of its own: the broker has refused them together, and each
// is refused for itself only.
func (s *Session) divide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unacked == nil {
		// the session was taken meanwhile
		return
	}
	for _, o := range s.unacked.writes {
		o.alone = true
	}
	s.unacked = nil
}

// failQueue fails all that waits.
func (s *Session) failQueue(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.queue {
		s.fail(o, about(err, "%s", s.ref))
	}
	s.queue, s.unacked = nil, nil
}

// settleUnacked takes what was under way out of the queue. Nothing is under way any more if the commit was found in the
// log, or the session was taken, before the broker refused it. The session is locked.
func (s *Session) settleUnacked(err error) {
	if s.unacked == nil {
		return
	}
	for _, o := range s.unacked.writes {
		s.queue = without(s.queue, o)
		if err != nil {
			s.fail(o, err)
		} else {
			s.finish(o, nil)
		}
	}
	s.unacked = nil
}

// refused reports whether the write has ended with an error. The session is locked.
func (o *write) refused() bool {
	select {
	case <-o.done:
		return o.err != nil
	default:
		return false
	}
}

// stored reports whether the write has ended without an error. The session is locked.
func (o *write) stored() bool {
	select {
	case <-o.done:
		return o.err == nil
	default:
		return false
	}
}

// fail ends a write with an error. A write that no caller waits for, and the end of what Work ran, is kept aside, and
// is queued again with the next write, or after a while. A usage report is held back again. The session is locked.
func (s *Session) fail(o *write, err error) {
	if o.report != nil {
		s.holdAgain(o)
	}
	if !o.forced && o.end {
		s.h.log.Warn().Str("session", s.ref.String()).Str("id", o.facts[0].Subject).AnErr("err",
			err).Msg("not stored, and tried again: " + string(o.facts[0].Kind))
		again := &write{facts: o.facts, bytes: o.bytes, forced: true, last: true, end: true, check: o.check,
			done: make(chan struct{})}
		s.h.buffer.force(len(again.facts), again.bytes)
		s.finish(o, err)
		o = again
	}
	if !o.forced || o.report != nil {
		s.finish(o, err)
		return
	}
	s.h.log.Debug().Str("session", s.ref.String()).AnErr("err", err).Msg("tried again: " + string(o.facts[0].Kind))
	if len(s.kept) == 0 {
		time.AfterFunc(keptEveryMS*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.queueKept()
			s.scheduleLocked()
		})
	}
	o.fresh, o.alone = false, o.end
	s.kept = append(s.kept, o)
}

// queueKept queues the writes that were kept aside, before those that came after them. The session is locked.
func (s *Session) queueKept() {
	if len(s.kept) > 0 {
		s.queue, s.kept = slices.Concat(s.kept, s.queue), nil
	}
}

// pick decides what the next commit is: each write is tried on a copy of the state, on top of those before it. A write
// that the broker has refused is a commit of its own, so that a large one fails no other writes. A write that is not
// lawful, or has nothing to say, is answered if nothing goes before it, else it waits for the next round. Ops that are
// picked stay in the queue until they are stored. stale: the first is refused by a state that may be old; read the
// session first. (What is stored needs no such care: the compare-and-set proves that the state was new.) The session is
// locked.
func (s *Session) pick() (ops []*write, evs []events.Event, stale bool) {
	trial, bytes := s.trial(), 0
	for len(ops) < len(s.queue) {
		o := s.queue[len(ops)]
		own, more := s.wrap(o)
		if len(ops) > 0 && (o.alone || ops[0].alone ||
			len(evs)+len(own) > events.CommitFactsMax || bytes+more > events.CommitBodyMax) {
			break
		}
		done, err := false, error(nil)
		if o.check != nil {
			done, err = o.check(trial.State())
		}
		if !done && err == nil && !o.relay {
			err = s.unread(trial.State(), own)
		}
		if !done && err == nil {
			err = try(trial, own, o.relay)
		}
		switch {
		case !done && err == nil:
			ops, evs, bytes = append(ops, o), append(evs, own...), bytes+more
		case len(ops) > 0:
			return ops, evs, false
		case err != nil && !o.fresh:
			o.fresh = true
			return nil, nil, true
		default:
			s.queue = s.queue[1:]
			s.finish(o, err)
			trial = s.trial()
		}
	}
	return ops, evs, false
}

// trial begins the trial of the next commit. The session is locked.
func (s *Session) trial() *session.Trial { return s.st.Try(s.commit(s.st.Seq+1, s.st.Seq, nil)) }

// wrap completes the envelopes for the present owner. bytes is how many bytes the facts then take as a commit of their
// own.
func (s *Session) wrap(o *write) (evs []events.Event, bytes int) {
	evs, bytes = make([]events.Event, len(o.facts)), o.bytes
	source, now := events.HarnessSource(s.ref.Harness, s.term.incarnation), time.Now().UTC()
	for i, e := range o.facts {
		bytes -= envelopeBytes(&e)
		e.ID, e.Source, e.Epoch, e.Time = s.h.bus.NewID(), source, s.epoch, now
		bytes += envelopeBytes(&e)
		evs[i] = e
	}
	return evs, bytes
}

// envelopeBytes is how many bytes the attributes take that [Session.wrap] sets. JSON escapes nothing in them.
func envelopeBytes(e *events.Event) int {
	var space [64]byte
	return len(e.ID) + len(e.Source) + len(strconv.AppendUint(space[:0], e.Epoch, 10)) +
		len(e.Time.AppendFormat(space[:0], time.RFC3339Nano))
}

// try adds facts to the trial of a commit and returns why one of them would not count in it.
func try(trial *session.Trial, evs []events.Event, relay bool) error {
	for i := range evs {
		if why := trial.Add(evs[i]); why != "" && !relay {
			return refusal(trial.State(), why, evs[i].Fact)
		}
	}
	return nil
}

// commit is what this process appended, as it will be read; its instant is this process's own until then.
func (s *Session) commit(seq, after uint64, evs []events.Event) events.Commit {
	return events.Commit{Ref: s.ref, Writer: events.WriterHarness, Seq: seq, Guard: after, Guarded: true,
		At: time.Now().UTC(), Events: evs}
}

func contains(ops []*write, o *write) bool {
	for _, have := range ops {
		if have == o {
			return true
		}
	}
	return false
}

func without(ops []*write, o *write) []*write {
	kept := ops[:0:0]
	for _, have := range ops {
		if have != o {
			kept = append(kept, have)
		}
	}
	return kept
}

// requestsAgain forgets that prompts were called unattended which the program requests again: they wait for it.
func (s *Session) requestsAgain(facts []events.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range facts {
		if f, ok := facts[i].Fact.(events.PromptRequested); ok {
			delete(s.unasks, f.Prompt)
		}
	}
}
