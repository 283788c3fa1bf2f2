package sim

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// person reads, thinks for a while, and asks a service for something. The service decides and appends in two steps, so
// that others can be first.
type person struct {
	w        *world
	name     string
	writer   events.Writer // of the service that is asked
	request  func(*session.State) (session.Decision, error)
	what     string
	ofPerson func(events.Fact) bool
	st       *session.State
	facts    []events.Fact
	attempt  int
}

// Request is what people can ask of a service other than the ledger.
type Request struct {
	Name   string        // the verb
	Writer events.Writer // of the service that is asked
	// which facts are the person's words; nil: all. The others are the service's decisions
	OfPerson func(events.Fact) bool
	Decide   func(s *session.State, a Ask) (session.Decision, error)
}

// Ask is what a person says with a request.
type Ask struct {
	By        string
	Now       time.Time // the broker's
	Message   string    // the id of a new message
	Queued    string    // the id of a message that was queued when the person looked; "" for none
	Synthetic bool
	Force     bool
	Source    session.Source
}

const racesMax = 10

func (p *person) step() {
	if p.w.away {
		return
	}
	if p.facts == nil {
		p.decide()
		return
	}
	ok := p.w.append("person "+p.what, p.st.Ref(), p.writer, p.source, p.st.Epoch, p.st.Seq, p.facts)
	p.facts = nil
	if p.attempt++; ok || p.attempt >= racesMax {
		p.request = nil
	}
}

// decide decides on the present session. A refusal must be true.
func (p *person) decide() {
	if p.request == nil {
		if len(p.w.log.sessions) == 0 {
			return
		}
		r, asked := p.w.anySession()
		p.st, p.attempt = p.w.newest(r), 0
		p.request = p.choose(p.st, asked)
	}
	p.st = p.w.newest(p.st.Ref())
	d, err := p.request(p.st)
	refusal, refused := errors.AsType[*events.Refusal](err)
	if err != nil && !refused {
		p.w.fail("a wish failed: %v", err)
	}
	if refused && refusal.Stands != nil && refusal.Stands.Prompt != "" && refusal.Code == 410 {
		if q := p.w.current(p.st.Ref()).Prompts[refusal.Stands.Prompt]; q != nil && q.Status == session.Awaiting {
			p.w.fail("refused because prompt %s is closed, and it is not", refusal.Stands.Prompt)
		}
	}
	if p.facts = d.Facts; len(p.facts) == 0 {
		p.request, p.facts = nil, nil
		return
	}
	if p.writer == events.WriterLedger && p.w.chance(oldOneIn) {
		p.facts = asOld(p.facts)
		p.w.report.Old++
	}
}

// source is who says a fact.
func (p *person) source(f events.Fact) string {
	if p.ofPerson == nil || p.ofPerson(f) {
		return events.PersonSource(p.name)
	}
	return events.ServiceSource(string(p.writer), "x")
}

// choose makes up a request: one of the ledger's, or of those that other services grant.
func (p *person) choose(st *session.State, asked bool) func(*session.State) (session.Decision, error) {
	w := p.w
	p.writer, p.what, p.ofPerson = events.WriterLedger, "ledger", nil
	back := queuedAnswer(st)
	at := slices.IndexFunc(w.cfg.Requests, func(r Request) bool { return r.Name == "withdraw" })
	takesBack := back != "" && at >= 0 && w.chance(2)
	switch {
	case takesBack:
	case rare(st) && w.chance(2):
		return p.stop(st)
	case asked || len(w.cfg.Requests) == 0 || w.chance(3):
		return p.ofLedger(st)
	}
	req := w.cfg.Requests[w.rng.IntN(len(w.cfg.Requests))]
	if takesBack {
		req = w.cfg.Requests[at]
	}
	p.writer, p.what, p.ofPerson = req.Writer, req.Name, req.OfPerson
	a := Ask{By: p.name, Message: w.id("m"), Synthetic: w.chance(4), Force: w.chance(3), Source: w.log.source}
	if n := len(st.Queue); n > 0 {
		a.Queued = cmp.Or(back, st.Queue[w.rng.IntN(n)].ID)
	}
	return func(st *session.State) (session.Decision, error) {
		a.Now = w.now
		return req.Decide(st, a)
	}
}

func (p *person) ofLedger(st *session.State) func(*session.State) (session.Decision, error) {
	r, w := st.Ref(), p.w
	prompt := ""
	if ids := st.PendingPrompts(); len(ids) > 0 {
		prompt = ids[w.rng.IntN(len(ids))]
	}
	switch n := w.rng.IntN(20); {
	case prompt != "" && (n < 11 || w.now.Before(w.dark)):
		return func(st *session.State) (session.Decision, error) {
			return st.Answer(request.Answer{Ref: r, Prompt: prompt,
				Answers: []events.Answer{{Question: "q", Text: "yes"}}, By: p.name}, w.log.source)
		}
	case prompt != "" && n < 13:
		return func(st *session.State) (session.Decision, error) {
			return st.Reject(request.Reject{Ref: r, Prompt: prompt, Text: "no", By: p.name}, w.log.source)
		}
	case prompt != "" && n < 14:
		return func(st *session.State) (session.Decision, error) {
			return st.Dismiss(request.Dismiss{Ref: r, Prompt: prompt, By: p.name}, w.log.source)
		}
	case n < 16:
		return p.stop(st)
	case n < 17 && w.chance(10):
		return func(st *session.State) (session.Decision, error) {
			return st.Close(request.Close{Ref: r, Reason: "archived", By: p.name})
		}
	}
	patch := events.PolicyPatch{RetryMax: events.Set(w.rng.IntN(9))}
	if w.chance(2) {
		patch = events.PolicyPatch{AutoRetry: events.Set(w.chance(2))}
	}
	changed := w.chance(4)
	return func(st *session.State) (session.Decision, error) {
		return st.Configure(request.Configure{Ref: r, Policy: &patch, ProviderChanged: changed, By: p.name})
	}
}

// stop is a request to stop a session.
func (p *person) stop(st *session.State) func(*session.State) (session.Decision, error) {
	r, force := st.Ref(), p.w.chance(2)
	p.ofPerson = ofStop
	return func(st *session.State) (session.Decision, error) {
		return st.Stop(request.Stop{Ref: r, By: p.name, Force: force})
	}
}

// rare reports whether a session is in a state that passes soon: a stop is not confirmed, a message waits for the first
// turn, or the answer to a prompt waits in the queue.
func rare(st *session.State) bool {
	return st.Pending.Stop != nil || st.LastTurn == nil && st.Turn == nil && len(st.Queue) > 0 || queuedAnswer(st) != ""
}

// queuedAnswer returns a message in the queue that the answer to a prompt has become, "" for none.
func queuedAnswer(st *session.State) string {
	for _, id := range sorted(st.Prompts) {
		if m := st.QueuedAnswer(id); m != "" {
			return m
		}
	}
	return ""
}

// ofStop reports whether a fact of a stop is the person's own: a turn that the stop has to name is requested by the
// ledger.
func ofStop(f events.Fact) bool {
	_, requests := f.(events.TurnRequested)
	return !requests
}

// reconciler walks all documents for ever, and hears of leases that end. It decides and appends in two steps.
type reconciler struct {
	w        *world
	start    time.Time
	renewed  time.Time
	gaps     []Gap
	seen     map[string]*Lease
	received []events.Ref // triggers, in any order, some lost
	cursor   int
	st       *session.State
	commits  [][]events.Fact
}

// gapMin is how long the reconciler's own lease may go without renewal before that counts as a gap.
const gapMin = time.Second

func newReconciler(w *world) *reconciler {
	return &reconciler{w: w, start: w.now, renewed: w.now, seen: map[string]*Lease{}}
}

// renew keeps its own lease, and looks at which leases there are.
func (r *reconciler) renew() {
	if r.w.now.Sub(r.renewed) > gapMin {
		r.gaps = append(r.gaps, Gap{r.renewed, r.w.now})
	}
	r.renewed = r.w.now
	for inc, l := range r.w.leases {
		if r.seen[inc] == nil {
			r.seen[inc] = &Lease{Harness: l.harness, Incarnation: inc, Since: r.w.now}
		}
		r.seen[inc].Ready, r.seen[inc].Renewed = l.ready, l.renewed
	}
	for _, inc := range sorted(r.seen) {
		if l := r.seen[inc]; r.w.leases[inc] == nil && l.Ended.IsZero() {
			l.Ended = r.w.now
			r.receive(inc)
		}
	}
}

// receive is the event of a lease's end: some sessions are triggered, some triggers are lost, some come twice.
func (r *reconciler) receive(incarnation string) {
	for _, s := range sortedRefs(r.w.docs) {
		if r.w.docs[s].incarnation == incarnation && !r.w.chance(5) {
			r.received = append(r.received, s)
			if r.w.chance(5) {
				r.received = append(r.received, s)
			}
		}
	}
	r.w.rng.Shuffle(len(r.received), func(i, j int) { r.received[i], r.received[j] = r.received[j], r.received[i] })
}

func (r *reconciler) step() {
	if r.w.away {
		return
	}
	if len(r.commits) > 0 {
		r.append()
		return
	}
	ref, ok := r.next()
	if !ok {
		return
	}
	r.checkAt(ref)
}

// next is the session to look at: one that was heard of, or the next in the walk.
func (r *reconciler) next() (events.Ref, bool) {
	if n := len(r.received); n > 0 {
		ref := r.received[n-1]
		r.received = r.received[:n-1]
		return ref, true
	}
	if r.w.cfg.Bug == EdgeTriggered || len(r.w.log.sessions) == 0 {
		return events.Ref{}, false
	}
	r.cursor++
	return r.w.log.sessions[r.cursor%len(r.w.log.sessions)], true
}

// checkAt decides on a document, which may lag behind the log.
func (r *reconciler) checkAt(ref events.Ref) {
	d := r.w.docs[ref]
	if d == nil {
		return
	}
	r.decide(d.state())
}

func (r *reconciler) decide(st *session.State) {
	commits, err := r.w.cfg.Decide(st, r.view(st))
	if err != nil {
		r.w.fail("decide on %s: %v", st.Ref(), err)
	}
	switch facts := r.w.cfg.Bug.Planted(events.WriterReconciler, st, first(commits)); {
	case len(facts) == 0:
		commits = nil
	case len(commits) == 0:
		commits = [][]events.Fact{facts}
	default:
		commits[0] = facts
	}
	r.st, r.commits = st, commits
}

func first(commits [][]events.Fact) []events.Fact {
	if len(commits) == 0 {
		return nil
	}
	return commits[0]
}

func (r *reconciler) view(st *session.State) View {
	v := View{Now: r.w.now, Start: r.start, Renewed: r.renewed, Gaps: r.gaps, Source: r.w.log.source}
	for _, inc := range sorted(r.seen) {
		if l := *r.seen[inc]; l.Harness == st.Harness {
			l.Claimed = r.w.claimed[inc]
			v.Leases = append(v.Leases, l)
		}
	}
	for _, ref := range r.w.log.sessions {
		if d := r.w.docs[ref]; d != nil && ref.Harness == st.Harness && d.parent == st.Session {
			v.Children = append(v.Children, d.state())
		}
	}
	if r.w.cfg.Bug == ForgetGrace {
		v.forgetGrace(st, r.w.leases[st.Incarnation] == nil)
	}
	return v
}

// forgetGrace makes an owner whose lease cannot be seen at this moment look as if it had been gone for long.
func (v *View) forgetGrace(st *session.State, gone bool) {
	long := v.Now.Add(-time.Hour)
	v.Start, v.Gaps = long, nil
	if gone {
		v.Leases = append(v.Leases, Lease{Harness: st.Harness, Incarnation: st.Incarnation, Since: long, Renewed: long,
			Ended: long})
	}
}

// append stores the next commit of a decision. If another writer was first it folds what it missed and decides again.
func (r *reconciler) append() {
	// without an owner, the fact only records which calls are held for which child
	facts, owned := r.commits[0], r.st.Owned
	ok := r.w.append("reconciler", r.st.Ref(), events.WriterReconciler, from(events.ServiceSource("reconciler", "x")),
		r.st.Epoch, r.st.Seq, facts)
	if !ok {
		r.w.log.foldOn(r.st)
		r.decide(r.st)
		return
	}
	for _, f := range facts {
		if o, is := f.(events.SessionOrphaned); is && owned {
			r.w.declaredDead(o)
		}
	}
	r.commits = r.commits[1:]
	r.w.log.foldOn(r.st)
}

// declaredDead checks that no process is declared dead that lives and works, and only could not renew while the broker
// was away.
func (w *world) declaredDead(o events.SessionOrphaned) {
	w.report.Orphaned++
	for _, p := range w.procs {
		mine := p.incarnation == o.Incarnation && !p.slept || p.before == o.Incarnation && w.now.Sub(p.began) < TTL
		if p.alive && !p.paused && o.SupersededBy == "" && mine {
			w.fail("incarnation %s is alive, could only not renew, and was declared dead at %v (lease %+v, known as "+
				"%+v, gaps %v)", o.Incarnation, w.now, w.leases[o.Incarnation], w.recover.seen[o.Incarnation],
				w.recover.gaps)
		}
	}
}
