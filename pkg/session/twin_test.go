package session_test

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// twin is a model of a session that is too simple to be wrong: it reads all facts that counted from the first one each
// time, with one loop for each question.
type twin struct {
	written []events.Event
	turn    []string          // the open turn after each fact
	calls   []map[string]bool // the open calls after each fact: whether in the background
	ended   map[string]string
}

func (h *replay) twin() {
	h.t.Helper()
	w := &twin{written: h.written, ended: map[string]string{}}
	w.turns()
	w.tools()
	prompts := w.prompts()
	if got, want := openTurnOf(h.s), last(w.turn); got != want {
		h.fail("the open turn is %q, the twin says %q", got, want)
	}
	if got, want := sorted(h.s.Tools), sorted(last(w.calls)); !slices.Equal(got, want) {
		h.fail("the open calls are %v, the twin says %v", got, want)
	}
	if got := h.s.PendingPrompts(); !slices.Equal(got, sorted(prompts)) {
		h.fail("the pending prompts are %v, the twin says %v", got, sorted(prompts))
	}
	if got, want := queueOf(h.s), w.queue(); !slices.Equal(got, want) {
		h.fail("the queue is %v, the twin says %v", got, want)
	}
	for key, outcome := range w.ended {
		if h.ended[key] != outcome {
			h.fail("%s ended as %q, the twin says %s", key, h.ended[key], outcome)
		}
	}
	if got, want := h.s.Phase, w.phase(prompts); got != want {
		h.fail("the phase is %s, the twin says %s", got, want)
	}
}

// fail shows what counted, so that the history can be written as a story.
func (h *replay) fail(format string, args ...any) {
	h.t.Helper()
	for _, e := range h.written {
		h.t.Logf("%s epoch %d: %s", e.Kind, e.Epoch, h.text(e.Fact))
	}
	h.t.Fatalf("%d: "+format, append([]any{h.s.Seq}, args...)...)
}

func last[T any](list []T) (v T) {
	if len(list) > 0 {
		v = list[len(list)-1]
	}
	return v
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func openTurnOf(s *session.State) string {
	if s.Turn == nil {
		return ""
	}
	return s.Turn.ID
}

func queueOf(s *session.State) (ids []string) {
	for _, m := range s.Queue {
		ids = append(ids, m.ID)
	}
	return ids
}

// endsTurn returns what a fact makes of a turn; "" if it does not name its end.
func endsTurn(f events.Fact) (turn, outcome string) {
	switch f := f.(type) {
	case events.TurnCompleted:
		return f.Turn, "completed"
	case events.TurnFailed:
		return f.Turn, "failed"
	case events.TurnStopped:
		return f.Turn, "stopped"
	case events.TurnInterrupted:
		return f.Turn, "interrupted"
	}
	return "", ""
}

func endsCall(f events.Fact) (call, outcome string) {
	switch f := f.(type) {
	case events.ToolCompleted:
		return f.Call, "completed"
	case events.ToolFailed:
		return f.Call, "failed"
	case events.ToolInterrupted:
		return f.Call, "interrupted"
	}
	return "", ""
}

func closes(f events.Fact) bool { _, ok := f.(events.SessionClosed); return ok }

// turns: one is open from its start to its end, another's start or the session's close.
func (w *twin) turns() {
	open := ""
	for i := range w.written {
		f := w.written[i].Fact
		if s, ok := f.(events.TurnStarted); ok && s.Turn != open {
			if open != "" {
				w.ended["turn "+open] = map[bool]string{true: "continued", false: "stopped"}[s.OfTurn == open]
			}
			open = s.Turn
		}
		if turn, outcome := endsTurn(f); turn != "" && turn == open {
			w.ended["turn "+turn], open = outcome, ""
		}
		if closes(f) && open != "" {
			w.ended["turn "+open], open = "stopped", ""
		}
		w.turn = append(w.turn, open)
	}
}

// tools: one is open from its start to its end, the end of the turn that was open when it named it, or the close.
func (w *twin) tools() {
	open, of := map[string]bool{}, map[string]string{}
	for i := range w.written {
		f := w.written[i].Fact
		if call, outcome := endsCall(f); call != "" {
			delete(open, call)
			w.ended["tool "+call] = outcome
		}
		for _, call := range sorted(open) {
			switch {
			case of[call] != "" && of[call] != w.turn[i] && !open[call]:
				delete(open, call)
				w.ended["tool "+call] = "ended-with-turn"
			case closes(f):
				delete(open, call)
				w.ended["tool "+call] = "ended-with-session"
			}
		}
		if s, ok := f.(events.ToolStarted); ok {
			if _, again := open[s.Call]; !again {
				open[s.Call], of[s.Call] = s.Background, ""
				if s.Turn == w.turn[i] {
					of[s.Call] = s.Turn
				}
			}
		}
		w.calls = append(w.calls, maps.Clone(open))
	}
}

// asked is what a prompt hangs on, as it was said last.
type asked struct {
	turn, call     string
	blocking, keep bool
}

// prompts returns the pending prompts: from the request until the prompt is settled, or the entity that it belongs to
// ends.
func (w *twin) prompts() map[string]asked {
	open, ofCall := map[string]asked{}, map[string]string{}
	for i := range w.written {
		f := w.written[i].Fact
		switch f := f.(type) {
		case events.PromptRequested:
			open[f.Prompt] = w.request(i, f, open[f.Prompt], ofCall)
		case events.ToolStarted:
			if _, known := ofCall[f.Call]; !known {
				ofCall[f.Call] = ""
				if f.Turn == w.turn[i] {
					ofCall[f.Call] = f.Turn
				}
			}
		case events.MessageAccepted:
			for id, p := range open {
				if !f.Synthetic && p.blocking && p.keep {
					w.settle(open, id, "superseded")
				}
			}
		}
		w.settled(f, open)
		call, _ := endsCall(f)
		for id, p := range open {
			if p.turn == "" && w.has(i, p.call) && ofCall[p.call] != "" && ofCall[p.call] == w.turn[i] {
				p.turn = ofCall[p.call]
				open[id] = p
			}
			switch {
			case closes(f), call != "" && p.call == call:
				w.settle(open, id, "withdrawn")
			case p.turn != "" && p.turn != w.turn[i] && !w.calls[i][p.call]:
				w.settle(open, id, "withdrawn")
			case i > 0 && w.has(i-1, p.call) && !w.has(i, p.call):
				w.settle(open, id, "withdrawn")
			}
		}
	}
	return open
}

func (w *twin) has(i int, call string) bool { _, ok := w.calls[i][call]; return ok }

func (w *twin) request(i int, f events.PromptRequested, p asked, ofCall map[string]string) asked {
	p.blocking, p.keep = f.Blocks(), f.Loss() == events.LossKeep
	if p.turn != w.turn[i] {
		p.turn = ""
	}
	if f.Turn != "" && f.Turn == w.turn[i] {
		p.turn = f.Turn
	}
	if _, over := w.endedCall(i, f.Call); f.Call != "" && !over {
		p.call = f.Call
	}
	if p.turn == "" && w.has(i, p.call) && ofCall[p.call] != "" && ofCall[p.call] == w.turn[i] {
		p.turn = ofCall[p.call]
	}
	return p
}

// endedCall: whether a call had ended by then.
func (w *twin) endedCall(i int, call string) (string, bool) {
	for j := range i {
		if w.has(j, call) && !w.has(i, call) {
			return call, true
		}
	}
	return "", false
}

func (w *twin) settle(open map[string]asked, id, status string) {
	delete(open, id)
	w.ended["prompt "+id] = status
}

func (w *twin) settled(f events.Fact, open map[string]asked) {
	status := map[events.Kind]string{"prompt.answered": "answered", "prompt.rejected": "rejected",
		"prompt.dismissed": "dismissed",
		"prompt.withdrawn": "withdrawn", "prompt.superseded": "superseded", "prompt.expired": "expired"}[f.Kind()]
	if status != "" {
		w.settle(open, f.Subject(), status)
	}
}

// queue: what was accepted and neither taken by a turn, nor withdrawn, nor closed over.
func (w *twin) queue() (ids []string) {
	var taken []string
	for i := range w.written {
		switch f := w.written[i].Fact.(type) {
		case events.MessageAccepted:
			if !slices.Contains(taken, f.Message) {
				ids = append(ids, f.Message)
			}
		case events.MessageWithdrawn:
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == f.Message })
		case events.TurnStarted:
			if i > 0 && w.turn[i-1] == f.Turn {
				continue
			}
			taken = append(taken, f.Message)
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == f.Message })
		case events.SessionClosed:
			ids = nil
		}
	}
	return ids
}

// pendingTurn: the last one requested, unless something took it away.
func (w *twin) pendingTurn(upTo int) (pending *events.TurnRequested) {
	for i := range w.written[:upTo] {
		switch f := w.written[i].Fact.(type) {
		case events.TurnRequested:
			pending = &f
		case events.TurnStarted:
			if i == 0 || w.turn[i-1] != f.Turn || pending != nil && pending.Turn == f.Turn {
				pending = nil
			}
		case events.TurnStopRequested:
			if f.Actor == events.ActorPerson {
				pending = nil
			}
		case events.RetryAbandoned:
			if pending != nil && (pending.Cause == events.CauseRetry || pending.Cause == events.CauseResume) {
				pending = nil
			}
		case events.SessionClosed:
			pending = nil
		}
	}
	return pending
}

// phase is the first that holds.
func (w *twin) phase(prompts map[string]asked) session.Phase {
	waiting := w.held()
	for _, p := range prompts {
		waiting = waiting || p.blocking
	}
	turn, epoch, ofTurn, owned := w.owner()
	retry := w.retry()
	switch {
	case slices.ContainsFunc(w.written, func(e events.Event) bool { return closes(e.Fact) }):
		return session.Closed
	case waiting:
		return session.Waiting
	case w.compacting():
		return session.Compacting
	case owned && turn != "" && epoch == ofTurn:
		return session.Running
	case retry == session.RetryScheduled || retry == session.RetryStarting:
		return session.Retrying
	case w.pendingTurn(len(w.written)) != nil || len(w.queue()) > 0:
		return session.Queued
	case turn != "" || w.lastOutcome() == "interrupted":
		return session.Interrupted
	}
	return session.Idle
}

// held reports whether an open call waits for a child and was not adopted since.
func (w *twin) held() bool {
	held := map[string]bool{}
	for i := range w.written {
		epoch := w.written[i].Epoch
		switch f := w.written[i].Fact.(type) {
		case events.SessionOrphaned:
			clear(held)
			for _, wait := range f.WaitsFor {
				held[wait.Call] = true
			}
		case events.ToolStarted:
			if w.epochOf(i, f.Call) != epoch {
				delete(held, f.Call)
			}
		case events.PromptRequested:
			for call := range held {
				if w.promptCall(i, f.Prompt) == call {
					delete(held, call)
				}
			}
		}
		for call := range held {
			if !w.has(i, call) {
				delete(held, call)
			}
		}
	}
	return len(held) > 0
}

// epochOf is the epoch a call was opened or adopted under before the fact at i.
func (w *twin) epochOf(i int, call string) (epoch uint64) {
	for j := range i {
		switch f := w.written[j].Fact.(type) {
		case events.ToolStarted:
			if f.Call == call {
				epoch = w.written[j].Epoch
			}
		case events.PromptRequested:
			if w.promptCall(j, f.Prompt) == call && w.has(j, call) {
				epoch = w.written[j].Epoch
			}
		}
	}
	return epoch
}

// promptCall is the call a prompt hangs on once the fact at i is said.
func (w *twin) promptCall(i int, prompt string) (call string) {
	for j := range i + 1 {
		if f, ok := w.written[j].Fact.(events.PromptRequested); ok && f.Prompt == prompt && f.Call != "" {
			if _, over := w.endedCall(j, f.Call); !over {
				call = f.Call
			}
		}
	}
	return call
}

// owner: the open turn, the session's epoch, the turn's, and whether anybody owns the session.
func (w *twin) owner() (turn string, epoch, ofTurn uint64, owned bool) {
	for i := range w.written {
		switch f := w.written[i].Fact.(type) {
		case events.SessionOpened, events.SessionClaimed:
			epoch, owned = w.written[i].Epoch, true
		case events.SessionReleased, events.SessionOrphaned, events.SessionClosed:
			owned = false
		case events.TurnStarted:
			ofTurn = w.written[i].Epoch
		case events.PromptRequested:
			p := (&twin{written: w.written[:i+1], turn: w.turn[:i+1], calls: w.calls[:i+1],
				ended: map[string]string{}}).prompts()[f.Prompt]
			// a call in the background does not adopt its turn
			if p.turn != "" && !w.calls[i][p.call] {
				ofTurn = w.written[i].Epoch
			}
		}
	}
	return last(w.turn), epoch, ofTurn, owned
}

func (w *twin) compacting() bool {
	open := false
	for i := range w.written {
		switch w.written[i].Fact.(type) {
		case events.CompactionRequested:
			open = true
		case events.CompactionCompleted, events.CompactionFailed, events.SessionClosed:
			open = false
		}
	}
	return open
}

// lastOutcome returns how the last turn ended; one that was only asked for may be the last, when a person stopped it.
func (w *twin) lastOutcome() (outcome string) {
	before := ""
	for i := range w.written {
		f, stop := w.written[i].Fact.(events.TurnStopRequested)
		if p := w.pendingTurn(i); stop && f.Actor == events.ActorPerson && p != nil && before == "" {
			if outcome == "" || p.Cause != events.CauseRetry && p.Cause != events.CauseResume {
				outcome = "stopped"
			}
		}
		if before != "" && before != w.turn[i] {
			outcome = w.ended["turn "+before]
		}
		before = w.turn[i]
	}
	return outcome
}

// retry is where the repetition of failed turns stands.
func (w *twin) retry() (state string) {
	reason := ""
	for i := range w.written {
		switch f := w.written[i].Fact.(type) {
		case events.RetryScheduled:
			state = session.RetryScheduled
		case events.RetryAbandoned:
			state, reason = session.RetryAbandoned, f.Reason
		case events.TurnRequested:
			switch {
			case f.Cause == events.CauseRetry || f.Cause == events.CauseResume:
				state = session.RetryStarting
			case f.Cause == events.CauseAnswer && state != session.RetryAbandoned, state == session.RetryStarting,
				f.Cause == events.CauseMessage && state == session.RetryScheduled:
				state = ""
			}
		case events.TurnStarted:
			state = w.retryAtStart(i, f, state)
		case events.TurnStopRequested:
			if f.Actor == events.ActorPerson && (state == session.RetryScheduled || state == session.RetryStarting) {
				state, reason = session.RetryAbandoned, "stopped"
			}
		case events.SessionConfigured:
			if f.ProviderChanged && reason == "quota" && state == session.RetryAbandoned {
				state = ""
			}
		case events.TurnCompleted, events.SessionClosed:
			state = ""
		}
	}
	return state
}

func (w *twin) retryAtStart(i int, f events.TurnStarted, state string) string {
	synthetic := f.Synthetic
	for j := range i {
		if m, ok := w.written[j].Fact.(events.MessageAccepted); ok && m.Message == f.Message &&
			slices.Contains((&twin{written: w.written[:i], turn: w.turn[:i]}).queue(), m.Message) {
			synthetic = synthetic || m.Synthetic
		}
	}
	switch {
	case i > 0 && w.turn[i-1] == f.Turn:
		// adopted, or the same again
		return state
	case !synthetic && f.Message != "" &&
		(f.Cause == events.CauseMessage || f.Cause == events.CauseFollowUp && f.OfTurn == ""):
		return ""
	case f.Cause == events.CauseRetry || f.Cause == events.CauseResume:
		return ""
	case state != session.RetryAbandoned && (state == session.RetryStarting || f.Cause == events.CauseAnswer):
		return ""
	}
	return state
}
