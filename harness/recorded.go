package harness

import (
	"context"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// recorded is what the session has under the id of a step's call, or of a question.
type recorded struct {
	open  bool // it has begun, and has not ended
	ended bool
	// older: it was for an earlier message of the same id, so long ago that the id could be used again
	older bool
	session.Ending
	asked uint64 // of the commit that began it; 0: not known
	own   bool   // it waits in this process: its text is not replaced by asking again
	epoch uint64 // of the session when it was looked at
}

// decided reports whether a question has a decision.
func (r recorded) decided() bool {
	return r.ended && !r.older && kept(session.Status(r.Outcome), r.Reason)
}

// asks reports whether a question waits for a decision.
func (r recorded) asks() bool { return r.open && r.Entity == session.EntityPrompt }

// find looks for a step or a question of this turn: in the state of the session, and in the log if the state may have
// forgotten it. The state keeps the last [session.RecentMax] endings.
func (t *Turn) find(ctx context.Context, kind, name string, n int) (id string, r recorded, err error) {
	about, since, began, err := t.about(ctx)
	if err != nil {
		return "", r, err
	}
	id = nameID(kind, name, about, n)
	st := t.s.State()
	r, ok := inState(st, kind, id)
	r.epoch, r.older = st.Epoch, r.ended && r.Seq < since
	if ok && !r.byCall(kind) || !forgets(st, max(since, began)) {
		return id, r, nil
	}
	r = recorded{epoch: st.Epoch}
	err = t.inLog(ctx, func(x *logIndex) {
		for _, entity := range []string{session.EntityPrompt, session.EntityTool} {
			e, ended := x.ends[entity+" "+id]
			if ended && !r.ended && (entity == session.EntityTool || kind == nameOfQuestion) {
				r.ended, r.Ending, r.asked = true, e, x.begins[entity+" "+id]
				r.older = e.Seq < since
			}
		}
	})
	return id, r, err
}

// byCall reports whether only the end of a question's call was found: the end of the question itself, which was before
// that, can be forgotten.
func (r recorded) byCall(kind string) bool {
	return kind == nameOfQuestion && r.ended && r.Entity == session.EntityTool
}

// forgets reports whether the state may have forgotten an ending from after since. An answer that is taken back removes
// an ending from a full list, so one that lacks a single ending may have been full.
func forgets(st *session.State, since uint64) bool {
	return len(st.Recent) >= session.RecentMax-1 && since < st.Recent[0].Seq
}

// inState looks for a step or a question in the state of the session. A question whose call has ended before it was
// asked has ended.
func inState(st *session.State, kind, id string) (r recorded, ok bool) {
	if p := st.Prompts[id]; p != nil && kind == nameOfQuestion {
		r.open, r.ended, r.asked = p.Status == session.Awaiting, p.Status != session.Awaiting, p.Seq
		r.own = r.open && ofLastOwner(st, p.Epoch)
		r.Ending = session.Ending{Entity: session.EntityPrompt, ID: id, Outcome: string(p.Status), Reason: p.Reason,
			Seq: p.SettledSeq}
		return r, true
	}
	if e, ended := st.Ended(session.EntityPrompt, id); ended && kind == nameOfQuestion {
		return recorded{ended: true, Ending: e, asked: e.OpenedSeq}, true
	}
	if st.Tools[id] != nil {
		return recorded{open: true}, true
	}
	if e, ended := st.Ended(session.EntityTool, id); ended {
		return recorded{ended: true, Ending: e}, true
	}
	return recorded{}, false
}

// startOf returns the place in the log where a call began, 0 if that is not known.
func (t *Turn) startOf(ctx context.Context, call string, known uint64) (seq uint64, err error) {
	if known != 0 {
		return known, nil
	}
	err = t.inLog(ctx, func(x *logIndex) { seq = x.begins[session.EntityTool+" "+call] })
	return seq, err
}

// about returns what the turn is about, the same for each turn that continues another: its message, else the turn that
// was the first. since is a place in the log before everything that was done for it. began is another one, of a turn
// that this process began and that continues none; 0 for others.
func (t *Turn) about(ctx context.Context) (key string, since, began uint64, err error) {
	t.s.mu.Lock()
	key, since, began = t.key, t.since, t.began
	t.s.mu.Unlock()
	if key != "" {
		return key, since, began, nil
	}
	st := t.s.State()
	if st.Turn == nil || st.Turn.ID != t.id {
		t.s.mu.Lock()
		defer t.s.mu.Unlock()
		return "", 0, 0, about(t.s.endOf(session.EntityTurn, t.id), "turn %s in %s", t.id, t.s.ref)
	}
	message, first := st.Turn.Message, t.id
	since = st.Turn.MessageSeq
	if message != "" || st.Turn.OfTurn != "" {
		began = 0
	}
	if message == "" && st.Turn.OfTurn != "" {
		if err := t.inLog(ctx, func(x *logIndex) { message, first = x.root(t.id) }); err != nil {
			return "", 0, 0, err
		}
	}
	key = "message " + message
	if message == "" {
		key = "turn " + first
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.key, t.since, t.began = key, since, began
	return key, since, began, nil
}

// indexMax is how many calls, prompts and turns of the log a session's index may have for the next turn to use it. The
// bound is that of one session: a process that runs turns of many sessions has as many indexes, each as long as the
// process has the session. One turn alone can exceed it.
const indexMax = 20_000

// logIndex is what the log of a session has of calls, prompts and turns, as far as it was read.
type logIndex struct {
	turn   string // that looked for something last
	st     *session.State
	ends   map[string]session.Ending // by entity and id
	begins map[string]uint64         // by entity and id
	turns  map[string]turnOf
}

// turnOf is what a turn takes and what it continues.
type turnOf struct{ message, ofTurn string }

// inLog calls look with what the log of the session has now.
func (t *Turn) inLog(ctx context.Context, read func(*logIndex)) error {
	return t.s.inLog(ctx, t.id, read)
}

// inLog calls look with what the log of the session has now. The fold decides which facts count, so that the facts
// of a process that was fenced change nothing. The index is kept for the session, so each commit is read once. A large
// one is dropped when the next turn looks for something, and the log is read again. turn is "" for a look outside of
// any turn.
func (s *Session) inLog(ctx context.Context, turn string, read func(*logIndex)) error {
	select {
	case s.indexing <- struct{}{}:
	case <-ctx.Done():
		return about(context.Cause(ctx), "read %s", s.ref)
	}
	defer func() { <-s.indexing }()
	if x := s.index; x == nil || x.turn != turn && len(x.begins)+len(x.turns) > indexMax {
		s.index = &logIndex{st: session.New(s.ref), ends: map[string]session.Ending{}, begins: map[string]uint64{},
			turns: map[string]turnOf{}}
	}
	s.index.turn = turn
	err := s.h.bus.Log.Each(ctx, s.ref, s.index.st.Seq+1, func(c events.Commit) error {
		s.index.add(&c)
		return nil
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return about(cause, "read %s", s.ref)
	}
	if err != nil {
		return about(translate(err), "read %s", s.ref)
	}
	read(s.index)
	return nil
}

// add takes a commit in.
func (x *logIndex) add(c *events.Commit) {
	res := x.st.Fold(c)
	for i := range res.Feed {
		x.note(res.Feed[i].Fact, c.Seq)
	}
	if p := x.st.Pending.Turn; p != nil {
		x.turns[p.ID] = turnOf{p.Message, p.OfTurn}
	}
	// with what its start did not repeat of its request
	if t := x.st.Turn; t != nil {
		x.turns[t.ID] = turnOf{t.Message, t.OfTurn}
	}
}

// note takes in a fact that counted, or that the end of a turn brought about.
func (x *logIndex) note(f events.Fact, seq uint64) {
	tool := func(call, outcome, reason string) {
		x.ends[session.EntityTool+" "+call] = session.Ending{Entity: session.EntityTool, ID: call, Outcome: outcome,
			Reason: reason, Seq: seq}
	}
	switch f := f.(type) {
	case events.ToolStarted:
		if at := session.EntityTool + " " + f.Call; x.begins[at] == 0 {
			x.begins[at] = seq
		}
	case events.PromptRequested:
		x.begins[session.EntityPrompt+" "+f.Prompt] = seq
	case events.TurnStarted:
		x.turns[f.Turn] = turnOf{f.Message, f.OfTurn}
	case events.ToolCompleted:
		tool(f.Call, session.OutcomeCompleted, "")
	case events.ToolFailed:
		tool(f.Call, session.OutcomeFailed, f.Error.Kind)
	case events.ToolInterrupted:
		tool(f.Call, session.OutcomeInterrupted, f.Reason)
	default:
		if a, prompt := settlement(f); prompt != "" {
			x.ends[session.EntityPrompt+" "+prompt] = session.Ending{Entity: session.EntityPrompt, ID: prompt,
				Outcome: string(a.Status), Reason: a.Reason, Seq: seq}
		}
	}
}

// root returns the message of the first turn that this one continues, directly or through others, or that turn itself
// if none has a message.
func (x *logIndex) root(turn string) (message, first string) {
	for seen := map[string]bool{}; !seen[turn]; {
		seen[turn] = true
		of := x.turns[turn]
		if of.message != "" || of.ofTurn == "" {
			return of.message, turn
		}
		turn = of.ofTurn
	}
	return "", turn
}
