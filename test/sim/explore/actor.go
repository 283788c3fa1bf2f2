package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// people are two, who are as good as each other.
var people = []string{"ada", "bob"}

// byPerson stores the decision on a person's request. The service that is asked decides on the newest state, for its
// compare-and-set refuses all others.
func (s *state) byPerson(name string, w events.Writer, byThem func(events.Fact) bool, d session.Decision,
	err error) bool {
	if err != nil || len(d.Facts) == 0 {
		return false
	}
	s.appendAs(w, func(f events.Fact) string {
		if byThem == nil || byThem(f) {
			return events.PersonSource(name)
		}
		return events.ServiceSource(string(w), "x")
	}, s.st.Epoch, d.Facts...)
	return true
}

func answers(text string) []events.Answer { return []events.Answer{{Question: "q", Text: text}} }

func (s *state) answer(i int) bool {
	d, err := s.st.Answer(request.Answer{Ref: ref(), Prompt: s.cfg.Asks[i].Prompt, Answers: answers("yes"),
		By: people[i]}, s.source)
	return s.byPerson(people[i], events.WriterLedger, nil, d, err)
}

func (s *state) reject(i int) bool {
	if s.spent.rejects >= s.cfg.Most.Rejects {
		return false
	}
	s.spent.rejects++
	d, err := s.st.Reject(request.Reject{Ref: ref(), Prompt: s.cfg.Asks[i].Prompt, Text: "no", By: people[i]}, s.source)
	return s.byPerson(people[i], events.WriterLedger, nil, d, err)
}

func (s *state) dismiss(i int) bool {
	if s.spent.dismissals >= s.cfg.Most.Dismissals {
		return false
	}
	s.spent.dismissals++
	d, err := s.st.Dismiss(request.Dismiss{Ref: ref(), Prompt: s.cfg.Asks[i].Prompt, By: people[i]}, s.source)
	return s.byPerson(people[i], events.WriterLedger, nil, d, err)
}

func (s *state) stop() bool {
	if s.spent.stops >= s.cfg.Most.Stops {
		return false
	}
	s.spent.stops++
	d, err := s.st.Stop(request.Stop{Ref: ref(), By: people[0], Force: true})
	byThem := func(f events.Fact) bool { _, requests := f.(events.TurnRequested); return !requests }
	if !s.byPerson(people[0], events.WriterLedger, byThem, d, err) {
		return false
	}
	s.personActs()
	return true
}

// request is one of those that other services grant.
func (s *state) request(name string) bool {
	n, most := &s.spent.requests, s.cfg.Most.Requests
	// a message that is withdrawn counts, too
	if name == "send" || name == "withdraw" {
		n, most = &s.spent.messages, s.cfg.Most.Messages
	}
	at := slices.IndexFunc(s.cfg.Requests, func(w sim.Request) bool { return w.Name == name })
	if at < 0 || *n >= most {
		return false
	}
	*n++
	w := s.cfg.Requests[at]
	d, err := w.Decide(s.st, sim.Ask{By: people[1], Now: s.now, Message: fmt.Sprint("m", *n), Queued: s.oldest(),
		Source: s.source})
	if !s.byPerson(people[1], w.Writer, w.OfPerson, d, err) {
		return false
	}
	switch name {
	case "send":
		s.personActs()
	case "resume":
		s.resumes()
	}
	return true
}

// reconcile has the reconciler look at the session.
func (s *state) reconcile() bool {
	facts := s.reconciled()
	if len(facts) == 0 {
		return false
	}
	before, were := s.st, s.procs
	s.append(events.WriterReconciler, events.ServiceSource("reconciler", "x"), s.st.Epoch, facts...)
	s.ends(before, were)
	if again := s.reconciled(); len(again) > 0 && s.cfg.Bug != sim.AdoptedTurnTaken {
		s.fail("V3: the reconciler has decided, and decides again: %v", again)
	}
	return true
}

// reconciled is what the reconciler says about the session as it is.
func (s *state) reconciled() []events.Fact {
	commits, err := s.cfg.Decide(s.st, s.view())
	if err != nil {
		s.fail("the reconciler: %v", err)
	}
	return s.cfg.Bug.Planted(events.WriterReconciler, s.st, slices.Concat(commits...))
}

func (s *state) input() sim.Input {
	return sim.Input{Now: s.now, Start: s.now, Source: s.source}
}

// decideBy has another service look at the session.
func (s *state) decideBy(d *sim.Decider) bool {
	x, err := d.Decide(s.st, s.input())
	if err != nil {
		s.fail("%s: %v", d.Name, err)
	}
	if len(x.Facts) == 0 {
		return false
	}
	s.append(d.Writer, events.ServiceSource(d.Name, "x"), s.st.Epoch, s.cfg.Bug.Planted(d.Writer, s.st, x.Facts)...)
	if again, err := d.Decide(s.st, s.input()); err != nil || len(again.Facts) > 0 &&
		again.Facts[0].Kind() == x.Facts[0].Kind() {
		s.fail("V3: %s has decided, and decides the same again: %v (%v)", d.Name, again.Facts, err)
	}
	return true
}

// waitsUntil is the next instant that a service waits for, zero for none.
func (s *state) waitsUntil() time.Time {
	var next time.Time
	for i := range s.cfg.Deciders {
		x, err := s.cfg.Deciders[i].Decide(s.st, s.input())
		if err != nil {
			s.fail("%s: %v", s.cfg.Deciders[i].Name, err)
		}
		if !x.Local && x.CheckAt.After(s.now) && (next.IsZero() || x.CheckAt.Before(next)) {
			next = x.CheckAt
		}
	}
	return next
}

// due lets time pass until that instant.
func (s *state) due() bool {
	next := s.waitsUntil()
	if next.IsZero() {
		return false
	}
	s.now = next
	s.record("time passes until %s", next.Format("15:04:05"))
	return true
}

// oldest returns the message that waits first, "" for none.
func (s *state) oldest() string {
	if len(s.st.Queue) == 0 {
		return ""
	}
	return s.st.Queue[0].ID
}
