package crash

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// planted is a correct picture of one session, made by hand.
type planted struct {
	*picture
	ref events.Ref
}

func plant() *planted {
	r := events.Ref{Harness: "h", Session: "s"}
	p := &planted{ref: r, picture: &picture{refs: []events.Ref{r}, commits: map[events.Ref][]events.Commit{},
		at:    map[uint64]*events.Commit{},
		state: map[string]kv.Entry{}, leases: map[string]bool{events.HarnessLeaseKey("h", "1"): true},
		lost: map[string]bool{"1": true}}}
	p.append(events.WriterHarness,
		events.SessionOpened{Incarnation: "1", Policy: &events.PolicyPatch{Resume: events.Set(events.ResumeHold)}})
	p.append(events.WriterHarness, events.TurnStarted{Turn: "t", Cause: events.CauseMessage},
		events.ToolStarted{Call: "c", Turn: "t", Name: "bash"},
		events.ToolStarted{Call: "d", Turn: "t", Name: "bash"},
		events.PromptRequested{Prompt: "p", Call: "c", Turn: "t", PromptKind: events.PromptQuestion, Questions: ask(),
			Delivery: events.DeliverToolResult},
		events.PromptRequested{Prompt: "q", Turn: "t", PromptKind: events.PromptQuestion, Questions: ask(),
			Delivery: events.DeliverCallback})
	p.append(events.WriterLedger,
		events.PromptAnswered{Prompt: "p", Answers: []events.Answer{{Question: "q", Text: "yes"}}, By: "ada"})
	return p
}

// append appends to the log and updates documents and views.
func (p *planted) append(w events.Writer, facts ...events.Fact) {
	source := events.HarnessSource("h", "1")
	if w != events.WriterHarness {
		source = events.ServiceSource(string(w), "x")
	}
	p.from(source, w, facts...)
}

// from appends facts that a source wants.
func (p *planted) from(source string, w events.Writer, facts ...events.Fact) {
	seq := uint64(len(p.at) + 1)
	c := events.Commit{Ref: p.ref, Writer: w, Seq: seq, Guard: seq - 1, Guarded: true,
		At: time.Unix(int64(seq), 0).UTC()}
	for _, f := range facts {
		c.Events = append(c.Events, events.New("e", source, p.ref, 1, c.At, f))
	}
	body, err := events.EncodeBatch(c.Events)
	if err == nil {
		c.Events, err = events.DecodeBatch(p.ref, body)
	}
	if err != nil {
		// the facts of this file always encode
		panic(err)
	}
	p.commits[p.ref] = append(p.commits[p.ref], c)
	p.at[seq] = &c
	p.found = nil
	p.fold()
	p.render()
}

// render stores the document and its views.
func (p *planted) render() {
	st := p.folded[p.ref].st
	doc, err := st.Encode()
	if err != nil {
		panic(err)
	}
	p.state[events.SessionKey(p.ref)] = kv.Entry{Value: doc}
	for _, id := range st.BlockerPrompts(time.Time{}) {
		b, err := st.Blocker(id, p.source)
		if err != nil {
			panic(err)
		}
		p.state[st.BlockerKey(id)] = kv.Entry{Value: []byte(asJSON(b))}
	}
	delete(p.state, events.WorkKey(p.ref))
	if st.HasWork() {
		w, err := st.Work(p.source)
		if err != nil {
			panic(err)
		}
		p.state[events.WorkKey(p.ref)] = kv.Entry{Value: []byte(asJSON(w))}
	}
}

// change replaces text in an entry.
func (p *planted) change(key, from, to string) {
	p.state[key] = kv.Entry{Value: []byte(strings.Replace(string(p.state[key].Value), from, to, 1))}
}

func (p *planted) die() { p.leases = map[string]bool{} }

// again counts a fact once more, with an epoch and an owner.
func (p *planted) again(seq uint64, i int, epoch uint64, owner string) {
	c := p.at[seq]
	p.count(p.folded[p.ref], c, &c.Events[i], epoch, owner)
}

// TestPlanted: each kind of damage is found.
func TestPlanted(t *testing.T) {
	doc, work, view := events.SessionKey(events.Ref{Harness: "h", Session: "s"}), "work.h.s", "blocker.h.s.s.p"
	answered := note{Ref: events.Ref{Harness: "h", Session: "s"}, Kind: "prompt.answered", Prompt: "p", Text: "yes",
		Seq: 3}
	for name, c := range map[string]struct {
		want string
		do   func(*planted)
	}{
		"nothing":                     {"", func(*planted) {}},
		"a true answer":               {"", func(p *planted) { p.notes = append(p.notes, answered) }},
		"a kept question of the dead": {"", func(p *planted) { p.die(); p.recovered() }},
		"what the living has left": {"", func(p *planted) {
			p.append(events.WriterHarness, events.SessionReleased{})
			p.recovered()
			p.lost = nil
		}},
		"two endings":       {"V1", func(p *planted) { p.again(3, 0, 1, "1"); p.again(3, 0, 1, "1") }},
		"owned by the dead": {"V2", func(p *planted) { p.die() }},
		"an open call of the dead": {"V2", func(p *planted) {
			p.die()
			p.append(events.WriterReconciler, orphaned())
		}},
		"a call of another epoch": {"V2", func(p *planted) {
			p.folded[p.ref].st.Tools["d"].Epoch = 0
			p.render()
		}},
		"a callback of another epoch": {"V2", func(p *planted) {
			p.folded[p.ref].st.Prompts["q"].Epoch = 0
			p.render()
		}},
		"a fact of an epoch that is over": {"V4", func(p *planted) { p.again(2, 0, 2, "1") }},
		"a fact of who does not own it":   {"V4", func(p *planted) { p.again(2, 0, 1, "2") }},
		"an older document":               {"V5", func(p *planted) { p.change(doc, `"commits":3`, `"commits":2`) }},
		"no document":                     {"V5", func(p *planted) { delete(p.state, doc) }},
		"a document without a log":        {"V5", func(p *planted) { p.state["session.h.x"] = p.state[doc] }},
		"an older view":                   {"V5", func(p *planted) { p.change(view, "answered", "awaiting") }},
		"no view":                         {"V5", func(p *planted) { delete(p.state, view) }},
		"a view of what is over": {"V5", func(p *planted) {
			p.state["blocker.h.s.s.x"] = kv.Entry{Value: []byte(`{"harness":"h","session":"s","prompt":"x",` +
				`"status":"awaiting"}`)}
		}},
		"other work":                   {"V5", func(p *planted) { p.change(work, "answered", "rejected") }},
		"no work":                      {"V5", func(p *planted) { delete(p.state, work) }},
		"a parked fact":                {"V5", func(p *planted) { p.folded[p.ref].st.Parked = 1; p.render() }},
		"an acknowledged fact is lost": {"V12", func(p *planted) { p.settled(note{Kind: "tool.started", ID: "x"}) }},
		"a claim is lost":              {"V12", func(p *planted) { p.settled(note{Kind: kindOwned, ID: "2"}) }},
		"a session is lost": {"V12", func(p *planted) {
			p.notes = append(p.notes, note{Ref: events.Ref{Harness: "h", Session: "x"}, Kind: kindOwned})
		}},
		"an answer is lost":     {"V12", func(p *planted) { n := answered; n.Seq = 2; p.settled(n) }},
		"another answer stands": {"V12", func(p *planted) { n := answered; n.Text = "no"; p.settled(n) }},
		"a lie about a prompt":  {"V12", func(p *planted) { p.settled(note{Prompt: "p", Status: "rejected"}) }},
		"a lie about an answer": {"V12", func(p *planted) {
			p.settled(note{Prompt: "p", Status: "answered", Text: "no"})
		}},
		"a person has an answer that is taken back": {"", func(p *planted) {
			p.takenBack()
			p.settled(note{Prompt: "m", Status: "answered"})
		}},
		"a person has another end than what is taken back": {"V12", func(p *planted) {
			p.takenBack()
			p.settled(note{Prompt: "m", Status: "rejected"})
		}},
		"a process has an answer that is taken back": {"V12", func(p *planted) {
			p.takenBack()
			p.settled(note{Prompt: "m", Status: "answered", Owner: "1", At: time.UnixMilli(4500)})
		}},
		"an answer to the owner": {"", func(p *planted) { p.handedTo("1", 4) }},
		"an answer just before the fence": {"", func(p *planted) {
			p.recovered()
			p.lost["1"] = true
			p.handedTo("1", 4.5)
		}},
		"an answer to a fenced process": {"R6", func(p *planted) { p.recovered(); p.handedTo("1", 6) }},
		"an answer to who never had it": {"R6", func(p *planted) { p.handedTo("2", 4) }},
		"an answer before the claim":    {"R6", func(p *planted) { p.handedTo("1", 0.5) }},
		"a stop elsewhere":              {"V12", func(p *planted) { p.settled(note{Seq: 9}) }},
		"the living called dead":        {"N", func(p *planted) { p.die(); p.recovered(); p.lost = nil }},
		"a retry that is due, and not asked for": {"V3", func(p *planted) {
			p.fails("server_error")
			p.append(events.WriterRetry, scheduled(4, 1, 2000))
		}},
		"one failure, two retries": {"V7", func(p *planted) {
			p.fails("server_error")
			p.append(events.WriterRetry, scheduled(4, 1, 2000))
			p.append(events.WriterRetry, scheduled(4, 2, 4000))
		}},
		"a retry before its time": {"V7", func(p *planted) {
			p.fails("server_error")
			p.append(events.WriterRetry, scheduled(4, 1, 9000))
			p.append(events.WriterRetry,
				events.TurnRequested{Turn: "u", Cause: events.CauseRetry, OfTurn: "t", Attempt: 1})
		}},
		"a stopped turn is tried again": {"V9", func(p *planted) {
			p.append(events.WriterLedger, events.TurnStopRequested{Turn: "t", Actor: events.ActorPerson, By: "ada"})
			p.fails("server_error")
			p.append(events.WriterRetry, scheduled(5, 1, 2000))
		}},
		"a message that was not withdrawn": {"V10", func(p *planted) {
			p.append(events.WriterCompaction, events.MessageAccepted{Message: "m", By: "ada"})
			p.append(events.WriterCompaction, events.MessageWithdrawn{Message: "m", By: "ada"})
		}},
		"a message in front of another": {"V10", func(p *planted) {
			p.append(events.WriterCompaction, events.MessageAccepted{Message: "m", By: "ada"},
				events.MessageAccepted{Message: "n", By: "ada"})
			p.append(events.WriterHarness, events.TurnStarted{Turn: "u", Cause: events.CauseMessage, Message: "n"})
		}},
		"a strange error": {"error that", func(p *planted) { p.settled(note{Wrong: "boom"}) }},
		"it runs without an owner": {"V14", func(p *planted) {
			p.die()
			p.recovered()
			p.folded[p.ref].st.Phase = session.Running
			p.render()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plant()
			c.do(p)
			found := p.check()
			switch {
			case c.want == "" && len(found) > 0:
				t.Errorf("nothing is wrong, and it finds %s", found[0])
			case c.want != "" && len(found) == 0:
				t.Errorf("nothing is found, want %s", c.want)
			case c.want != "" && !strings.HasPrefix(found[0], c.want+":") && !strings.HasPrefix(found[0], c.want+" "):
				t.Errorf("found %s, want %s", found[0], c.want)
			}
		})
	}
}

func (p *planted) settled(n note) {
	n.Ref, n.By = p.ref, "ada"
	p.notes = append(p.notes, n)
}

// handedTo makes an Ask of an incarnation return the answer at a second. The fence, if there is one, is at 4.
func (p *planted) handedTo(incarnation string, at float64) {
	p.settled(note{Prompt: "p", Status: "answered", Owner: incarnation, At: time.UnixMilli(int64(at * 1000))})
}

func orphaned() events.SessionOrphaned {
	return events.SessionOrphaned{Reason: events.ReasonOwnerLost, Incarnation: "1"}
}

// recovered appends the facts of recovery.
func (p *planted) recovered() {
	p.append(events.WriterReconciler, orphaned(), events.PromptExpired{Prompt: "q", Reason: events.ReasonOwnerLost},
		events.ToolCompleted{Call: "c", Synthetic: true},
		events.ToolInterrupted{Call: "d", Reason: events.ReasonOwnerLost, Outcome: events.OutcomeUnknown},
		events.TurnInterrupted{Turn: "t", Reason: events.ReasonOwnerLost})
}

// takenBack appends a question of the dead process, its answer as a message, and that a person takes the message back.
func (p *planted) takenBack() {
	p.append(events.WriterHarness, events.PromptRequested{Prompt: "m", Turn: "t", PromptKind: events.PromptQuestion,
		Questions: ask(), Delivery: events.DeliverMessage, OnOwnerLoss: events.LossKeep})
	p.append(events.WriterReconciler, orphaned(), events.PromptExpired{Prompt: "q", Reason: events.ReasonOwnerLost},
		events.ToolCompleted{Call: "c", Synthetic: true},
		events.ToolInterrupted{Call: "d", Reason: events.ReasonOwnerLost, Outcome: events.OutcomeUnknown})
	answers := []events.Answer{{Question: "q", Text: "yes"}}
	decided := []events.Fact{events.PromptAnswered{Prompt: "m", Answers: answers, By: "ada", Owed: true}}
	st := p.folded[p.ref].st
	p.append(events.WriterLedger, append(decided, st.Settlement("m", session.Answered, ask(), answers, "")[0])...)
	p.append(events.WriterReconciler, events.TurnInterrupted{Turn: "t", Reason: events.ReasonOwnerLost})
	p.from(events.PersonSource("ada"), events.WriterCompaction,
		events.MessageWithdrawn{Message: p.folded[p.ref].st.QueuedAnswer("m"), By: "ada"})
}

// fails ends the turn with a failure.
func (p *planted) fails(kind string) {
	p.append(events.WriterHarness, events.TurnFailed{Turn: "t", Error: events.Failure{Kind: kind}})
}

// scheduled returns a retry of the turn that failed at this second.
func scheduled(failedAt int64, attempt int, delayMS int64) events.RetryScheduled {
	due := time.Unix(failedAt, 0).UTC().Add(time.Duration(delayMS) * time.Millisecond)
	return events.RetryScheduled{Turn: "t", Attempt: attempt, DelayMS: delayMS, DueAt: due}
}
