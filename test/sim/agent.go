package sim

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/invariants"
)

// Times of agents.
const (
	longPauseOneIn  = 4 // suspensions that last for longer than the lease lives and the grace
	longPause       = 3 * (TTL + Grace)
	longOutageOneIn = 3 // outages of the broker that no lease survives
	longOutage      = 3 * TTL
	doubtOneIn      = 40 // appends whose caller gives up before it hears that they are stored
	blackoutOneIn   = 2500
	blackout        = 2 * (TTL + Grace) // in which every process is dead
)

// decision is one prompt of one session.
type decision struct {
	ref    events.Ref
	prompt string
}

// hand gives the agent of a process what was decided about a prompt: the model's context has it now. The session must
// be this process's at that moment, by the log and by its lease.
func (p *process) hand(r events.Ref, prompt string) {
	w := p.w
	now := w.current(r)
	if l := w.leases[p.incarnation]; l == nil || !now.Owned || now.Incarnation != p.incarnation {
		w.fail("R6: incarnation %s was handed what was decided about prompt %s of %s, and the session is not its own: "+
			"%s",
			p.incarnation, prompt, r, logText(w.log.of(r, now.Seq)))
		return
	}
	w.delivered[decision{r, prompt}] = true
}

// handEarly is a planted bug: a process that was suspended tells its agents what was decided meanwhile, and judges
// whether the sessions are still its own afterwards.
func (p *process) handEarly() {
	for _, r := range p.order {
		st := p.sessions[r]
		now := p.w.current(r)
		for _, id := range st.PendingPrompts() {
			e, ended := now.Ended(session.EntityPrompt, id)
			if ended && st.Prompts[id].Epoch == st.Epoch && byPerson(session.Status(e.Outcome)) {
				p.hand(r, id)
			}
		}
	}
}

func byPerson(s session.Status) bool {
	return s == session.Answered || s == session.Rejected || s == session.Dismissed
}

// contexts follows what models get to know by a commit of their process: the turns that it starts name decisions, or
// take the message that an answer has become; a call that ends with an answer is read by the next turn.
func (w *world) contexts(r events.Ref, before *session.State, f events.TurnStarted) {
	for _, id := range Named(before, f) {
		w.delivered[decision{r, id}] = true
	}
}

// Named are the prompts that a turn brings to its agent as it starts.
func Named(before *session.State, f events.TurnStarted) []string {
	names := namedBy(f)
	if p := before.Pending.Turn; p != nil && p.ID == f.Turn {
		for _, id := range namedByRequest(p) {
			if !slices.Contains(names, id) {
				names = append(names, id)
			}
		}
	}
	return names
}

func namedBy(f events.TurnStarted) []string {
	return slices.Clone(f.Prompts)
}

func namedByRequest(p *session.PendingTurn) []string {
	names := make([]string, len(p.Prompts))
	for i, c := range p.Prompts {
		names[i] = c.Prompt
	}
	return names
}

// recordDecisions records the decisions of a commit whose person got a receipt.
func (w *world) recordDecisions(r events.Ref, writer events.Writer, facts []events.Fact) {
	if writer != events.WriterLedger {
		return
	}
	for _, f := range facts {
		switch f.(type) {
		case events.PromptAnswered, events.PromptRejected, events.PromptDismissed:
			w.report.Decisions++
			w.receipts[decision{r, f.Subject()}] = true
		}
	}
}

// checkRequests (V16): a requested turn has what [session.WorkTurn] documents for its cause. A turn that is requested
// together with its stop is never shown: it may be about nothing.
func (w *world) checkRequests(who string, facts []events.Fact) {
	if slices.ContainsFunc(facts, func(f events.Fact) bool { return f.Kind() == "turn.stop_requested" }) {
		return
	}
	for _, fact := range facts {
		f, ok := fact.(events.TurnRequested)
		if !ok {
			continue
		}
		wrong := ""
		switch f.Cause {
		case events.CauseMessage:
			switch {
			case f.Message == "":
				wrong = "it is about a message"
			case f.OfTurn != "" && f.Prompt == "":
				wrong = "it continues a turn only if its message superseded a question"
			case f.OfTurn == "" && f.Prompt == "" && len(f.Options) > 0:
				wrong = "the options of a new message are the agent's"
			}
		case events.CauseFollowUp:
			if f.OfTurn == "" && f.Message == "" {
				wrong = "it continues a turn, or is about the message that was held"
			}
		case events.CauseRetry, events.CauseResume:
			if f.OfTurn == "" {
				wrong = "it continues a turn"
			}
		case events.CauseAnswer:
			if f.Prompt == "" {
				wrong = "a decision caused it"
			}
		default:
			wrong = "there is no such cause"
		}
		if (f.Compaction != "") != (f.Cause == events.CauseFollowUp) {
			wrong = "a follow-up names its compaction, and no other turn does"
		}
		if f.Prompt != "" && !slices.Contains(f.Prompts, f.Prompt) {
			wrong = "its prompt is one of its prompts"
		}
		if wrong != "" {
			w.fail("V16: %s requested a turn that is not as documented: %s: %+v", who, wrong, f)
		}
	}
}

// anySession is one that a person looks at: one that is in a rare state, or one in which a question is open, every
// other time if there is any.
func (w *world) anySession() (r events.Ref, asked bool) {
	if w.chance(2) {
		var rare []events.Ref
		for _, r := range w.log.sessions {
			if d := w.docs[r]; d != nil && d.rare {
				rare = append(rare, r)
			}
		}
		if n := len(rare); n > 0 {
			return rare[w.rng.IntN(n)], false
		}
	}
	if w.chance(2) {
		var asking []events.Ref
		for _, r := range w.log.sessions {
			if d := w.docs[r]; d != nil && d.asks {
				asking = append(asking, r)
			}
		}
		if n := len(asking); n > 0 {
			return asking[w.rng.IntN(n)], true
		}
	}
	return w.log.sessions[w.rng.IntN(len(w.log.sessions))], false
}

// checkDelivered: when all has come to rest, each decision that a person got a receipt for has reached a model's
// context, has been overtaken, or waits for what a person does next (V15).
func (w *world) checkDelivered(st *session.State, x *invariants.Log) {
	for d := range w.receipts {
		if d.ref == st.Ref() && w.delivered[d] {
			w.report.Delivered++
		}
	}
	if !w.owner(st) {
		return
	}
	for _, id := range x.Undelivered(st) {
		if d := (decision{st.Ref(), id}); w.receipts[d] && !w.delivered[d] {
			w.fail("V15: a person got the acknowledgement of a decision about prompt %s of %s; all is settled, no "+
				"model has seen it, and nothing overtook it: %s",
				id, d.ref, logText(w.log.of(d.ref, st.Seq)))
		}
	}
}

// settleDoubts: a claim whose caller gave up may be stored. The process reads the log and keeps what it owns.
func (p *process) settleDoubts() {
	for _, r := range p.doubts {
		if st := p.w.current(r); st.Owned && st.Incarnation == p.incarnation && p.sessions[r] == nil {
			p.keep(st)
		}
	}
	p.doubts = nil
}

// darken kills every process, and has none come back for a while. People go on.
func (w *world) darken() {
	for _, p := range w.procs {
		if p.alive {
			p.kill()
		}
	}
	w.dark = w.now.Add(blackout)
	w.report.Blackouts++
}

// suspend stops a process: for a moment, or until its lease and the grace are long over.
func (p *process) suspend() {
	p.paused, p.slept = true, true
	p.resumes = time.Time{}
	if p.w.chance(longPauseOneIn) {
		p.resumes = p.w.now.Add(longPause)
	}
	p.w.report.Pauses++
}

// resume has a suspended process go on.
func (p *process) resume() {
	if p.w.now.Before(p.resumes) {
		return
	}
	if p.paused && p.w.cfg.Bug == FencedNotify {
		p.handEarly()
	}
	p.paused = false
}
