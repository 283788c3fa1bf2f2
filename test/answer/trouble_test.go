package answer_test

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// Tokens of a conversation: its limit, and what is used of it when it is nearly full and when it is not.
const (
	tokensMax  = 1000
	tokensFull = 900
	tokensFew  = 100
)

// silent is longer than a turn or a compaction may be silent.
const silent = time.Hour

// troubles are acts of processes, services and people that interfere with the turns which bring decisions.
func troubles() []act {
	return []act{
		{"cancel a retry", 12, (*world).cancels},
		{"retries off and on", 8, (*world).switchesRetries},
		{"report usage", 24, (*world).reports},
		{"fail a compaction", 40, (*world).failsCompaction},
		{"refuse a decision", 10, (*world).refuses},
		{"take a question back", 8, (*world).withdrawsQuestion},
		{"be silent", 8, (*world).stalls},
		{"send for another agent", 8, (*world).sendsSynthetic},
		{"decide again", 30, (*world).decidesAgain},
	}
}

// cancels cancels a planned retry as a person.
func (w *world) cancels() {
	if d, err := retry.Cancel(w.st); err == nil {
		w.person(events.WriterRetry, d.Facts...)
	}
}

// switchesRetries turns automatic retries off or on as a person.
func (w *world) switchesRetries() {
	d, err := w.st.Configure(request.Configure{Ref: ref, By: "ada",
		Policy: &events.PolicyPatch{AutoRetry: events.Set(!w.st.Policy.AutoRetry)}})
	if err == nil {
		w.person(events.WriterLedger, d.Facts...)
	}
}

// reports makes the running turn report how much of the context is used: compactions are requested for it.
func (w *world) reports() {
	if !w.alive() || w.runs == nil {
		return
	}
	used := int64(tokensFew)
	if w.chance(2) {
		used = tokensFull
	}
	w.process(events.UsageReported{Turn: w.runs.id, Tokens: events.Tokens{Input: used}, ContextLimit: tokensMax})
}

// failsCompaction makes the living process fail the compaction that it makes.
func (w *world) failsCompaction() {
	c := w.st.Compaction
	if c == nil || c.State != session.CompactionRunning || !w.alive() || c.Epoch != w.st.Epoch {
		return
	}
	kinds := []string{"rate_limit", "authentication", "context_exceeded"}
	w.process(events.CompactionFailed{Compaction: c.ID,
		Error: events.Failure{Kind: kinds[w.rng.IntN(len(kinds))], Text: "x"}})
}

// refuses makes the living process refuse a decision: no agent has it, and the person is not asked again.
func (w *world) refuses() {
	for _, id := range slices.Sorted(maps.Keys(w.st.Prompts)) {
		if p := w.st.Prompts[id]; w.alive() && p.Status != session.Awaiting && p.Epoch == w.st.Epoch {
			delete(w.owed, id)
			delete(w.output, id)
			w.process(events.PromptDelivered{Prompt: id, Refused: "no such request"})
			return
		}
	}
}

// withdrawsQuestion makes the living process take a question back.
func (w *world) withdrawsQuestion() {
	for _, id := range w.st.PendingPrompts() {
		if w.alive() && w.st.Prompts[id].Epoch == w.st.Epoch {
			w.process(events.PromptWithdrawn{Prompt: id, Reason: "not needed"})
			return
		}
	}
}

// stalls makes the process silent for so long that what it does is taken for stalled.
func (w *world) stalls() {
	last := w.now
	w.now = w.now.Add(silent)
	w.service(events.WriterRetry, retry.Decide(w.st, retry.Input{Now: w.now, Progress: last}).Facts...)
	w.service(events.WriterCompaction,
		compaction.Decide(w.st, compaction.Input{Now: w.now, Progress: last}).Facts...)
}

// sendsSynthetic sends a message that no person wrote. A stop that was stored holds it.
func (w *world) sendsSynthetic() {
	o, err := compaction.Send(w.st, request.Send{Ref: ref, Message: w.id("m"), Content: []byte(`"x"`), Synthetic: true,
		By: "agent"}, w.now, w.source)
	if err == nil {
		w.still = w.still && w.st.HeldSeq != 0 && w.st.StoppedSeq != 0
		w.commit(events.WriterCompaction, events.ServiceSource("compaction", "x"), w.st.Epoch, o.Facts)
	}
}

// decidesAgain sends the decision about a prompt again, as a person does whose reply was lost: a success that appends
// nothing.
func (w *world) decidesAgain() {
	for _, id := range slices.Sorted(maps.Keys(w.settled)) {
		e, kept := w.st.Ended(session.EntityPrompt, id)
		if !kept || w.byHarness[id] {
			continue
		}
		var d session.Decision
		var err error
		if e.Outcome == string(session.Answered) {
			d, err = w.st.Answer(request.Answer{Ref: ref, Prompt: id, By: "bob"}, w.source)
		} else {
			d, err = w.st.Reject(request.Reject{Ref: ref, Prompt: id, Text: "no", By: "bob"}, w.source)
		}
		if err != nil || len(d.Facts) > 0 || d.Seq == 0 {
			w.fail("prompt %s is decided once more, as it was: %+v, %v", id, d, err)
		}
		w.played["decide again"]++
	}
}
