package explore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/test/sim"
)

// check holds what must be so in every state against it. Rules about steps were looked at with the step.
func (s *state) check() {
	s.checkDocument()
	s.checkDecisions()
	s.checkShown()
	s.checkSentTwice()
}

// checkDocument: folding on from the stored document is folding from the start (V5).
func (s *state) checkDocument() {
	body, err := s.st.Encode()
	if err != nil {
		s.fail("V5: the document does not encode: %v", err)
		return
	}
	back, err := session.Decode(body)
	if err != nil {
		s.fail("V5: the document cannot be read: %v", err)
		return
	}
	again, err := back.Encode()
	if err != nil || !bytes.Equal(body, again) {
		s.fail("V5: the document reads as another (%v):\n%s\n%s", err, body, again)
	}
	if _, err := s.st.Work(s.source); err != nil {
		s.fail("V5: the view of the work: %v", err)
	}
	for _, id := range sortedKeys(s.st.Prompts) {
		b, err := s.st.Blocker(id, s.source)
		if err != nil {
			s.fail("V5: the view of prompt %s: %v", id, err)
		} else if len(b.Questions) != 1 {
			s.fail("V5: people see prompt %s with %d questions, and one was asked", id, len(b.Questions))
		}
	}
}

// checkDecisions: a decision stands. The same decision again changes nothing, and another one is refused (V1).
func (s *state) checkDecisions() {
	for i, a := range s.cfg.Asks {
		if s.fates[i] == undecided || s.st.Closed != nil || s.awaits(i) {
			continue
		}
		for _, text := range []string{"yes", "another"} {
			d, err := s.st.Answer(request.Answer{Ref: ref(), Prompt: a.Prompt, Answers: answers(text), By: people[1-i]},
				s.source)
			if len(d.Facts) > 0 {
				s.fail("V1: prompt %s is decided, and %q is taken, too: %v (%v)", a.Prompt, text, d.Facts, err)
			}
		}
	}
}

// checkShown: a decision that names an earlier body of its question counts if that asked the same, and not if it asked
// something else (P3).
func (s *state) checkShown() {
	for i, a := range s.cfg.Asks {
		bodies := s.bodies(a.Prompt)
		if len(bodies) < 2 || s.st.Closed != nil {
			continue
		}
		newest := bodies[0].text
		for _, b := range bodies[1:] {
			asked := b.seq
			if s.cfg.Bug == sim.ShownIgnored {
				asked = 0
			}
			d, err := s.st.Answer(request.Answer{Ref: ref(), Prompt: a.Prompt, Answers: answers("yes"), By: people[0],
				Asked: asked}, s.source)
			switch same := b.text == newest; {
			case !same && err == nil:
				s.fail("P3: a person saw %q of prompt %s at %d, it asks %q, and their answer is taken: %v", b.text,
					a.Prompt, b.seq, newest, d.Facts)
			case same && s.awaits(i) && len(d.Facts) == 0:
				s.fail("P3: a person saw %q of prompt %s at %d, it asks that still, and their answer is refused: %v",
					b.text, a.Prompt, b.seq, err)
			}
		}
	}
}

// body is what a request of a prompt asks, and its place in the log.
type body struct {
	seq  uint64
	text string
}

// bodies are the requests of a prompt, the newest first.
func (s *state) bodies(prompt string) (all []body) {
	for e := s.log; e != nil; e = e.prev {
		for i := range e.c.Events {
			if f, ok := e.c.Events[i].Fact.(events.PromptRequested); ok && f.Prompt == prompt {
				all = append(all, body{e.c.Seq, f.Questions[0].Question})
			}
		}
	}
	return all
}

// checkSentTwice: a message that is sent again changes nothing (V10).
func (s *state) checkSentTwice() {
	at := slices.IndexFunc(s.cfg.Requests, func(w sim.Request) bool { return w.Name == "send" })
	for e := s.log; e != nil && at >= 0 && s.st.Closed == nil; e = e.prev {
		for i := range e.c.Events {
			f, ok := e.c.Events[i].Fact.(events.MessageAccepted)
			if !ok || e.c.Writer != events.WriterCompaction {
				continue
			}
			d, err := s.cfg.Requests[at].Decide(s.st, sim.Ask{By: people[1], Now: s.now, Message: f.Message,
				Source: s.source})
			if len(d.Facts) > 0 {
				s.fail("V10: message %s is sent again, and taken again: %v (%v)", f.Message, d.Facts, err)
			}
		}
	}
}

func factsText(facts []events.Fact) string {
	lines := make([]string, len(facts))
	for i, f := range facts {
		data, err := json.Marshal(f)
		if err != nil {
			data = []byte(err.Error())
		}
		lines[i] = fmt.Sprintf("%s %s", f.Kind(), data)
	}
	return strings.Join(lines, " · ")
}

// sameAs: two states that are taken for one lead to the same states.
func (s *state) sameAs(other *state, steps []step) {
	a, b := s.nextKeys(steps), other.nextKeys(steps)
	for key, name := range a {
		if b[key] == "" {
			s.fail("the explorer takes this state for another, which has no step that does what %q does here", name)
		}
	}
	for key, name := range b {
		if a[key] == "" {
			s.fail("the explorer takes this state for another, in which %q does what no step does here", name)
		}
	}
}

// nextKeys are the states that steps lead to, with the name of a step each.
func (s *state) nextKeys(steps []step) map[[keyBytes]byte]string {
	keys := map[[keyBytes]byte]string{}
	for i := range steps {
		if n := s.next(); steps[i].do(n) {
			keys[n.key()] = steps[i].name
		}
	}
	// a step that changes nothing
	delete(keys, s.key())
	return keys
}
