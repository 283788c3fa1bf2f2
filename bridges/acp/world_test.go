package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// entry is one line of a transcript: a message of a peer, or the start or the exit of the agent.
type entry struct {
	At  time.Time       `json:"at"`
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg"`
}

// transcripts are the recordings of real agents, by name.
func transcripts(t *testing.T) map[string][]entry {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) < 16 {
		t.Fatalf("%d transcripts: %v", len(paths), err)
	}
	all := map[string][]entry{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		var entries []entry
		for lines.Scan() {
			var e entry
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			entries = append(entries, e)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".jsonl")] = entries
	}
	return all
}

// world carries steps out as the caller of a proxy does: it appends the facts with the real fold, and hands a decision
// about a prompt to the proxy when the fold has it. It keeps the lines that each side gets.
type world struct {
	t           *testing.T
	proxy       *Proxy
	states      map[string]*fold.State
	prompts     []events.PromptRequested
	decided     []decided
	seq         uint64
	incarnation int
	facts       []string
	lines       []Line
	content     agent.Content
	owned       map[string]bool   // by the present incarnation
	of          map[string]string // the sessions of prompts
	decisions   []decided         // all that were handed over
	leaves      bool              // turns to recovery: a process of the proxy has ended
	kept        bool              // the incarnation, when the agent is killed
}

type decided struct {
	prompt string
	answer harness.Answer
}

func newWorld(t *testing.T, content agent.Content) *world {
	w := &world{t: t, states: map[string]*fold.State{}, content: content, of: map[string]string{}}
	w.restart()
	return w
}

// restart begins the next process of the proxy.
func (w *world) restart() {
	w.leaves = w.proxy != nil
	w.incarnation++
	w.owned = map[string]bool{}
	w.decided, w.decisions = nil, nil
	w.proxy = New(Config{Run: strconv.Itoa(w.incarnation), Content: w.content})
}

// editor and agent hand a line to the proxy. All that follows from it has happened when they return.
func (w *world) editor(line string) { w.do(w.proxy.FromEditor(w.now(), []byte(line))) }
func (w *world) agent(line string)  { w.do(w.proxy.FromAgent(w.now(), []byte(line))) }

func (w *world) now() time.Time { return time.Date(2026, 11, 22, 8, 0, int(w.seq), 0, time.UTC) }

func (w *world) do(steps []Step) {
	w.t.Helper()
	for _, s := range steps {
		if s.Session != "" {
			w.append(s)
		}
		w.lines = append(w.lines, s.Lines...)
	}
	for {
		i := slices.IndexFunc(w.decided, func(d decided) bool { return w.owned[w.of[d.prompt]] })
		if i < 0 {
			// no process owns the session: the next one has the decision when it has taken it
			return
		}
		d := w.decided[i]
		w.decided = slices.Delete(w.decided, i, i+1)
		w.receipt(d.prompt)
		w.decisions = append(w.decisions, d)
		w.do(w.proxy.Decided(w.now(), d.prompt, d.answer))
	}
}

// receipt says that this process has a decision, as an Ask does that returns it. It is not among the facts of the
// proxy.
func (w *world) receipt(prompt string) {
	facts := w.facts
	defer func() { w.facts = facts }()
	for _, st := range w.states {
		q := st.Prompts[prompt]
		if q != nil && q.Status != fold.Awaiting && st.Tools[q.Call] == nil {
			w.commit(st, events.WriterHarness, events.HarnessSource("h", strconv.Itoa(w.incarnation)), st.Epoch,
				events.PromptDelivered{Prompt: prompt})
		}
	}
}

// append folds the facts of a step. Each of them has to count.
func (w *world) append(s Step) {
	w.t.Helper()
	ref := events.Ref{Harness: "h", Session: s.Session}
	st := w.states[s.Session]
	if st == nil {
		st = fold.New(ref)
		w.states[s.Session] = st
	}
	me, facts, epoch := strconv.Itoa(w.incarnation), slices.Clone(s.Facts), st.Epoch
	switch {
	case s.Open == nil && !w.owned[s.Session]:
		w.t.Errorf("%s: facts before the session is taken: %v", s.Session, s.Facts)
	case s.Open != nil && w.owned[s.Session] && st.Owned:
		// it has the session
	case s.Open != nil && st.Opened():
		epoch++
		facts = slices.Concat([]events.Fact{events.SessionClaimed{Incarnation: me}}, w.adoption(st, s.Adopt), facts)
	case s.Open != nil:
		open := *s.Open
		open.Incarnation, epoch = me, 1
		facts = slices.Insert(facts, 0, events.Fact(open))
	}
	// the log refuses a second decision
	facts = slices.DeleteFunc(facts, func(f events.Fact) bool {
		switch f.(type) {
		case events.PromptAnswered, events.PromptRejected, events.PromptWithdrawn:
			return slices.ContainsFunc(w.decided, func(d decided) bool { return d.prompt == f.Subject() })
		}
		return false
	})
	w.owned[s.Session] = true
	if len(facts) == 0 {
		return
	}
	w.commit(st, events.WriterHarness, events.HarnessSource("h", me), epoch, facts...)
	if s.Open != nil {
		w.recover(st)
	}
}

// adoption returns the facts of an adoption, as a claim has them: without what has ended.
func (w *world) adoption(st *fold.State, a *harness.Adopt) (facts []events.Fact) {
	if a == nil {
		return nil
	}
	turn := a.Turn
	for _, want := range a.Prompts {
		q := st.Prompts[want.ID]
		switch {
		case q == nil:
		case q.Status != fold.Awaiting:
			turn = turn || st.Turn != nil && q.Turn == st.Turn.ID
			if c := st.Tools[q.Call]; c != nil {
				facts = append(facts, events.ToolStarted{Call: q.Call, Turn: c.Turn, Name: c.Name, Title: c.Title})
			}
		default:
			i := slices.IndexFunc(w.prompts, func(f events.PromptRequested) bool { return f.Prompt == want.ID })
			facts = append(facts, w.prompts[i])
		}
	}
	if t := st.Turn; turn && t != nil {
		facts = slices.Insert(facts, 0, events.Fact(events.TurnStarted{Turn: t.ID, Cause: t.Cause, Message: t.Message}))
	}
	return facts
}

// recover closes what the present incarnation has not adopted, as the reconciler does, at the first moment.
func (w *world) recover(st *fold.State) {
	if w.leaves {
		return
	}
	for call, c := range st.Tools {
		if c.Epoch < st.Epoch {
			w.commit(st, events.WriterReconciler, events.ServiceSource("reconciler", "1"), st.Epoch,
				events.ToolInterrupted{Call: call, Reason: events.ReasonOwnerLost, Outcome: events.OutcomeUnknown})
		}
	}
	if t := st.Turn; t != nil && t.Epoch < st.Epoch {
		w.t.Errorf("%s: turn %s is not adopted", st.Ref().Session, t.ID)
	}
}

// commit folds facts of a writer. None of them may be ignored or parked.
func (w *world) commit(st *fold.State, by events.Writer, source string, epoch uint64, facts ...events.Fact) {
	w.t.Helper()
	w.seq++
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(fmt.Sprintf("%d-%d", w.seq, i), source, st.Ref(), epoch, w.now(), f)
		data, err := json.Marshal(f)
		if err != nil {
			w.t.Fatal(err)
		}
		w.facts = append(w.facts, fmt.Sprintf("%s %s %s %s", st.Ref().Session, by, f.Kind(), data))
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		w.t.Fatal(err)
	}
	if evs, err = events.DecodeBatch(st.Ref(), body); err != nil {
		w.t.Fatal(err)
	}
	guard, ignored := st.Seq, st.Ignored.Count
	res := st.Fold(&events.Commit{Ref: st.Ref(), Writer: by, Seq: w.seq, Guard: guard, Guarded: true, At: w.now(),
		Events: evs})
	if len(res.Parked) > 0 || res.Gap || st.Ignored.Count > ignored {
		w.t.Errorf("%s: parked %v, gap %v, ignored %+v: %v", st.Ref().Session, res.Parked, res.Gap, st.Ignored.Last,
			facts)
	}
	for _, f := range facts {
		if _, asks := f.(events.PromptRequested); asks {
			w.of[f.Subject()] = st.Ref().Session
		}
		w.follow(f)
	}
	// those that the end of something else has closed
	for _, f := range w.prompts {
		e, ok := st.Ended(fold.EntityPrompt, f.Prompt)
		if ok && e.Seq == w.seq && e.Outcome != string(fold.Answered) && e.Outcome != string(fold.Rejected) {
			w.decided = append(w.decided, decided{f.Prompt,
				harness.Answer{Status: fold.Status(e.Outcome), Reason: e.Reason}})
		}
	}
}

// follow remembers what a fact says about prompts.
func (w *world) follow(f events.Fact) {
	add := func(id string, a harness.Answer) { w.decided = append(w.decided, decided{id, a}) }
	switch f := f.(type) {
	case events.PromptRequested:
		w.prompts = append(w.prompts, f)
	case events.PromptAnswered:
		add(f.Prompt, harness.Answer{Status: fold.Answered, Answers: f.Answers, By: f.By})
	case events.PromptRejected:
		add(f.Prompt, harness.Answer{Status: fold.Rejected, Text: f.Text, By: f.By})
	case events.PromptWithdrawn:
		add(f.Prompt, harness.Answer{Status: fold.Withdrawn, Reason: f.Reason})
	}
}

// person decides about a prompt, as the ledger writes it.
func (w *world) person(prompt string, f events.Fact) {
	w.t.Helper()
	for _, st := range w.states {
		if st.Prompts[prompt] != nil {
			w.commit(st, events.WriterLedger, events.PersonSource("ada"), st.Epoch, f)
			w.do(nil)
			return
		}
	}
	w.t.Errorf("no prompt %s", prompt)
}

// open returns what is open in the documents.
func (w *world) open() (ids []string) {
	for id, s := range w.states {
		if s.Turn != nil {
			ids = append(ids, id+"/turn/"+s.Turn.ID)
		}
		for call := range s.Tools {
			ids = append(ids, id+"/tool/"+call)
		}
		for q := range s.Prompts {
			ids = append(ids, id+"/prompt/"+q)
		}
		for _, m := range s.Queue {
			ids = append(ids, id+"/message/"+m.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// to returns the lines that a side got, since the last call of forget.
func (w *world) to(side Side) (lines []string) {
	for _, l := range w.lines {
		if l.To == side {
			lines = append(lines, string(l.Raw))
		}
	}
	return lines
}

func (w *world) forget() { w.lines, w.facts = nil, nil }

// id returns the id of the newest line to a side with this text in it.
func (w *world) id(side Side, with string) string {
	w.t.Helper()
	lines := w.to(side)
	for _, line := range slices.Backward(lines) {
		if m, err := parse([]byte(line)); err == nil && strings.Contains(line, with) {
			return string(m.id)
		}
	}
	w.t.Fatalf("no line with %q to %s: %v", with, side, lines)
	return ""
}
