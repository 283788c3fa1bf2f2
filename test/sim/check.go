package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/invariants"
)

// settleRoundsMax is how many rounds the world has for coming to rest.
const settleRoundsMax = 1500

// settleCommitsMax is how many commits the world may make for that.
const settleCommitsMax = 2000

// settle ends all trouble: the broker is there, half of the processes are dead for good, the others end what they have
// and take what they are asked, nothing fails any more, and services run until nothing is left to do.
func (w *world) settle() {
	w.settling, w.away = true, false
	w.backAt = w.now
	for i, p := range w.procs {
		p.paused = false
		if i%2 == 0 && p.alive {
			p.kill()
		}
	}
	w.foldAll()
	for _, l := range w.ledgers {
		if l.paused = false; l.n != w.pinned && l.stage == viewing {
			// it writes what it was about to write, long after
			l.step()
		}
	}
	idle, most := 0, len(w.log.commits)+settleCommitsMax
	for round := 0; round < settleRoundsMax && idle < 3 && len(w.report.Violations) == 0; round++ {
		if len(w.log.commits) >= most {
			break
		}
		w.pass(time.Second / 2)
		before := len(w.log.commits)
		for _, p := range w.procs {
			for p.alive && (len(p.claim) > 0 || !p.ready) {
				p.step()
			}
			for p.alive && p.finish() {
				w.foldAll()
			}
		}
		w.foldAll()
		w.reconcileAll()
		w.decideAll(idle > 0)
		answered := w.answerSome()
		quiet := !answered && len(w.log.commits) == before && w.now.Sub(w.backAt) > 6*(TTL+Grace) && !w.waitForAlarm()
		idle++
		if !quiet {
			idle = 0
		}
	}
	if idle < 3 {
		w.fail("V14: the world does not come to rest; last: %s", logText(w.log.commits))
	}
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// checkAlarm: who wants to look again has a timer for it, and not a later one, once he has acknowledged the document.
func (w *world) checkAlarm(s *service, st *session.State) {
	d, err := s.Decide(st, Input{Now: w.now, Start: w.now, Source: w.log.source})
	a, ok := s.timers[st.Ref()]
	if err == nil && len(d.Facts) == 0 && !d.Local && !d.CheckAt.IsZero() && (!ok || a.due.After(d.CheckAt)) {
		w.fail("V7: %s wants to look at %s at %v, and its timer is %v", s.Name, st.Ref(), d.CheckAt, a)
	}
}

// waitForAlarm lets time pass until shortly before the next timer; false without one.
func (w *world) waitForAlarm() bool {
	var next time.Time
	for _, s := range w.services {
		for _, a := range s.timers {
			next = sooner(next, a.due)
		}
		for _, at := range s.replicas[0].checks {
			next = sooner(next, at)
		}
	}
	for w.now.Before(next) {
		w.pass(time.Second)
	}
	return !next.IsZero()
}

func (w *world) foldAll() {
	if !w.ledgers[w.pinned].active {
		w.takeOver(w.pinned)
	}
	l := w.ledgers[w.pinned]
	for range 20 * (len(w.log.commits) + 1) {
		if l.stage == fetching && w.ackFloor == uint64(len(w.log.commits)) {
			return
		}
		if l.stage == fetching && l.cursor == uint64(len(w.log.commits)) && w.ackFloor < l.cursor {
			l.again()
		}
		l.step()
	}
	w.fail("the ledger does not come to an end")
}

// reconcileAll looks at every session once; under the planted bug there is no such walk.
func (w *world) reconcileAll() {
	r := w.recover
	n := len(w.log.sessions)
	if w.cfg.Bug == EdgeTriggered {
		n = len(r.received)
	}
	for len(r.commits) > 0 {
		r.append()
	}
	for range n {
		r.step()
		for tries := 0; len(r.commits) > 0 && tries < racesMax; tries++ {
			r.append()
		}
	}
}

// check holds the invariants against the log.
func (w *world) check() {
	counted := map[string]bool{}
	why := map[string]string{}
	for _, r := range w.log.sessions {
		x := invariants.New(0)
		st := w.checkLog(r, x, counted, why)
		w.checkDocument(st)
		w.checkRecovered(st)
		w.checkSettled(st, x)
		w.checkDelivered(st, x)
	}
	for _, p := range w.promises {
		for _, id := range p.ids {
			if !counted[id] {
				w.fail("V12: %s got the acknowledgement of its fact %s at %d of %s, and it does not count: %s%s", p.who,
					id, p.seq, p.ref, why[id], logText(w.log.of(p.ref, p.seq)))
			}
		}
	}
}

// checkLog folds a session from its start: one ending each (V1), and nothing of an epoch after the next one began (V4).
func (w *world) checkLog(r events.Ref, x *invariants.Log, counted map[string]bool,
	why map[string]string) *session.State {
	st := session.New(r)
	endings := map[string]string{}
	bounded := 0
	for _, i := range w.log.bySession[r] {
		c := &w.log.commits[i]
		before := st.Clone()
		res := w.cfg.Bug.Fold(st, c)
		for _, f := range x.Commit(before, c, res.Feed) {
			w.fail("%s at %d: %s%s", r, c.Seq, f, logText(w.log.of(r, c.Seq)))
		}
		for _, id := range invariants.TakenBack(before, res.Feed) {
			delete(endings, session.EntityPrompt+" "+id)
		}
		w.countStops(before, res.Feed)
		w.report.Reopened += len(invariants.TakenBack(before, res.Feed))
		bounded = max(bounded, x.Continued()/session.ContinuationsMax)
		if last := st.Ignored.Last; last != nil && last.Seq == c.Seq {
			for _, e := range c.Events {
				why[e.ID] = fmt.Sprintf("%s, ignored as %s", last.Type, last.Why)
			}
		}
		for _, e := range res.Feed {
			counted[e.ID] = true
			if !e.Derived {
				w.report.Counted[e.Kind]++
			}
			if e.Kind == "message.withdrawn" && !e.Derived && before.StoppedSeq > 0 {
				w.report.TakenBack++
			}
			spec := events.Lookup(e.Kind)
			if e.Epoch != st.Epoch && e.Kind != "session.claimed" &&
				!slices.ContainsFunc(res.Feed, func(x events.Event) bool { return x.Kind == "session.claimed" }) {
				w.fail("V4: %s: a fact of epoch %d counted in epoch %d", r, e.Epoch, st.Epoch)
			}
			if spec.Ends == "" || spec.Ends == "message" || isReceipt(e, endings) {
				continue
			}
			key := spec.Ends + " " + e.Subject
			if endings[key] != "" {
				w.fail("V1: %s: %s ended as %s and as %s", r, key, endings[key], e.Kind)
			}
			endings[key] = string(e.Kind)
		}
	}
	w.report.Bounded += bounded
	return st
}

// countStops counts the stops of people that are rare.
func (w *world) countStops(before *session.State, feed []events.Event) {
	for i := range feed {
		f, ok := feed[i].Fact.(events.TurnStopRequested)
		if !ok || f.Actor != events.ActorPerson {
			continue
		}
		p, stop := before.Pending.Turn, before.Pending.Stop
		switch {
		case before.LastTurn == nil && before.Turn == nil && p == nil:
			w.report.StopsEarly++
		case stop != nil && stop.Actor == events.ActorPerson:
			w.report.StopsAgain++
		case p != nil && p.ID == f.Turn:
			w.report.StopsAsked++
		}
	}
}

// isReceipt: turn.stopped of a turn that has ended is no second ending.
func isReceipt(e events.Event, endings map[string]string) bool {
	return e.Kind == "turn.stopped" && endings["turn "+e.Subject] != ""
}

// checkDocument: document and views are the fold of the log (V5, V13).
func (w *world) checkDocument(st *session.State) {
	r := st.Ref()
	want, err := st.Encode()
	if err != nil {
		w.fail("%s does not encode: %v", r, err)
		return
	}
	d := w.docs[r]
	if d == nil || !bytes.Equal(d.bytes, want) {
		w.fail("V5: the document of %s is not the fold of its log:\nhave %s\nwant %s", r, docBytes(d), want)
		return
	}
	for _, id := range st.BlockerPrompts(time.Time{}) {
		if v := w.views[st.BlockerKey(id)]; v == nil || v.bytes != w.renderBlocker(st, id) {
			w.fail("V5: the view of prompt %s of %s is not what its document says", id, r)
		}
	}
	for key, v := range w.views {
		if v.ref == r && strings.HasPrefix(key, "work.") && v.bytes != w.renderWork(st) {
			w.fail("V5: the work of %s is not what its document says:\nhave %s\nwant %s", r, v.bytes, w.renderWork(st))
		}
	}
	if v := w.views[events.WorkKey(r)]; v == nil && st.HasWork() {
		w.fail("V5: the work of %s is missing", r)
	}
}

func docBytes(d *doc) []byte {
	if d == nil {
		return nil
	}
	return d.bytes
}

// checkRecovered: nothing is open under a dead epoch but questions to keep, their calls and turns, and what waits for
// them above (V2); no turn runs without an owner (V14).
func (w *world) checkRecovered(st *session.State) {
	if st.Closed != nil || !st.Opened() {
		return
	}
	alive := w.owner(st)
	if st.Owned && !alive {
		w.fail("V2: %s is owned by %s, which is dead", st.Ref(), st.Incarnation)
		return
	}
	held := map[string]bool{}
	for _, x := range st.WaitsFor {
		held[x.Call] = true
	}
	for _, r := range w.log.sessions {
		if d := w.docs[r]; d != nil && r.Harness == st.Harness && d.parent == st.Session {
			child := d.state()
			retried := child.RetryPlanned()
			held[child.ParentCall] = held[child.ParentCall] || child.Turn != nil || child.HasWork() ||
				len(child.PendingPrompts()) > 0 || retried || child.CompactionFirst()
		}
	}
	keeps := false
	for _, id := range sorted(st.Prompts) {
		q := st.Prompts[id]
		if alive && q.Epoch == st.Epoch {
			keeps = true
			continue
		}
		if q.Status == session.Awaiting && q.OnOwnerLoss != events.LossKeep {
			w.fail("V2: %s: prompt %s of epoch %d is still open", st.Ref(), id, q.Epoch)
		}
		held[q.Call] = true
		keeps = true
	}
	for _, id := range sorted(st.Tools) {
		c := st.Tools[id]
		if !(alive && c.Epoch == st.Epoch) && !held[id] {
			w.fail("V2: %s: call %s of epoch %d is still open: %s", st.Ref(), id, c.Epoch, docBytes(w.docs[st.Ref()]))
		}
		// its turn is kept with it
		keeps = keeps || held[id]
	}
	if t := st.Turn; t != nil && !(alive && t.Epoch == st.Epoch) && !keeps && len(st.WaitsFor) == 0 &&
		st.Pending.Turn == nil {
		w.fail("V2: %s: turn %s of epoch %d is still open", st.Ref(), t.ID, t.Epoch)
	}
}

// checkSettled: nothing runs, is retried, compacted or queued without an owner, a person or an instant that it waits
// for (V14); no decider has anything to append, and the instants of deciders have timers (V3).
func (w *world) checkSettled(st *session.State, x *invariants.Log) {
	r, alive := st.Ref(), w.owner(st)
	for _, s := range w.services {
		d, err := s.Decide(st, Input{Now: w.now, Start: w.now, Source: w.log.source})
		if err != nil || len(d.Facts) > 0 {
			w.fail("V3: all is settled, and %s would say %v of %s (%v): %s", s.Name, d.Facts, r, err,
				docBytes(w.docs[r]))
		}
		w.checkAlarm(s, st)
	}
	if stuck := x.Stuck(st, alive); stuck != "" {
		w.fail("%s: %s: %s%s", r, stuck, docBytes(w.docs[r]), logText(w.log.of(r, st.Seq)))
	}
}

// owner says whether the session's owner is a process that is alive.
func (w *world) owner(st *session.State) bool {
	return st.Owned && slices.ContainsFunc(w.procs, func(p *process) bool {
		return p.alive && p.incarnation == st.Incarnation
	})
}

func sortedRefs(m map[events.Ref]*doc) []events.Ref {
	refs := make([]events.Ref, 0, len(m))
	for r := range m {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, func(a, b events.Ref) int { return strings.Compare(a.String(), b.String()) })
	return refs
}
