package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/test/invariants"
)

// Limits of the findings.
const (
	findingsMax  = 20
	dumpBytesMax = 6 << 10
	tailCommits  = 12
	// between a fence and the last answer that its process may have received: it had read the log before
	handedSlack = time.Second
)

// picture is the state at one moment: log, documents and views, leases, and what people and harnesses recorded.
type picture struct {
	refs    []events.Ref // sessions, in the order of their first commits
	commits map[events.Ref][]events.Commit
	at      map[uint64]*events.Commit
	last    uint64              // place of the last of them
	state   map[string]kv.Entry // documents and views, by key
	leases  map[string]bool     // keys of harness leases
	notes   []note
	struck  map[string][]time.Time // when processes were killed or stopped, by harness id
	lost    map[string]bool        // incarnations that knew by themselves that their lease was lost

	folded map[events.Ref]*folded
	found  []string
	handed int // answers that an Ask returned
}

// folded is the result of folding a session's log.
type folded struct {
	st      *session.State
	counted map[string]bool   // "kind subject" of every fact that counted and that a client appended
	endings map[string]string // "entity id": the end that counted
	undone  map[string]bool   // "prompt kind" of every end that a person took back
	rules   *invariants.Log
}

// readPicture reads a picture.
func readPicture(ctx context.Context, b *bus.Bus) (*picture, error) {
	p := &picture{commits: map[events.Ref][]events.Commit{}, at: map[uint64]*events.Commit{},
		state: map[string]kv.Entry{}, leases: map[string]bool{}}
	err := b.Log.Scan(ctx, 0, func(c events.Commit) error {
		if p.commits[c.Ref] == nil {
			p.refs = append(p.refs, c.Ref)
		}
		p.commits[c.Ref] = append(p.commits[c.Ref], c)
		p.at[c.Seq] = &c
		p.last = c.Seq
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := b.KV.List(ctx, kv.State, ">", func(e kv.Entry) error { p.state[e.Key] = e; return nil }); err != nil {
		return nil, err
	}
	err = b.KV.List(ctx, kv.Leases, events.HarnessLeaseKeys(""), func(e kv.Entry) error {
		p.leases[e.Key] = true
		return nil
	})
	p.fold()
	return p, err
}

func (p *picture) source(seq uint64) (*events.Commit, error) {
	if c := p.at[seq]; c != nil {
		return c, nil
	}
	return nil, bus.ErrNotFound
}

func (p *picture) fail(v string, r events.Ref, format string, args ...any) {
	p.found = append(p.found, fmt.Sprintf("%s: %s: %s\n%s", v, r, fmt.Sprintf(format, args...), p.dump(r)))
}

// dump returns a session's document and the end of its log.
func (p *picture) dump(r events.Ref) string {
	var text strings.Builder
	doc := p.state[events.SessionKey(r)].Value
	fmt.Fprintf(&text, "document: %s\n", doc[:min(len(doc), dumpBytesMax)])
	cs := p.commits[r]
	for _, c := range cs[max(0, len(cs)-tailCommits):] {
		fmt.Fprintf(&text, "%8d %s %s", c.Seq, c.At.Format("15:04:05.000"), c.Writer)
		for _, e := range c.Events {
			fmt.Fprintf(&text, " · %s %s@%d", e.Kind, e.Subject, e.Epoch)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// alive reports whether a session's owner has a lease.
func (p *picture) alive(st *session.State) bool {
	return st.Owned && p.leases[events.HarnessLeaseKey(st.Harness, st.Incarnation)]
}

// fold folds every session from its start.
func (p *picture) fold() {
	p.folded = map[events.Ref]*folded{}
	for _, r := range p.refs {
		f := &folded{st: session.New(r), counted: map[string]bool{}, endings: map[string]string{},
			undone: map[string]bool{}, rules: invariants.New(clockSlack)}
		p.folded[r] = f
		owner := ""
		for i := range p.commits[r] {
			c := &p.commits[r][i]
			epoch := max(f.st.Epoch, 1)
			before := f.st.Clone()
			res := f.st.Fold(c)
			for _, why := range f.rules.Commit(before, c, res.Feed) {
				v, what, _ := strings.Cut(why, ": ")
				p.fail(v, r, "%d: %s%s", c.Seq, what, logText(p.commits[r][:i+1]))
			}
			for _, id := range invariants.TakenBack(before, res.Feed) {
				key := session.EntityPrompt + " " + id
				f.undone[id+" "+f.endings[key]] = true
				delete(f.endings, key)
			}
			for j := range res.Feed {
				epoch, owner = p.count(f, c, &res.Feed[j], epoch, owner)
			}
		}
	}
}

// count checks a fact that counted: one end for each entity (V1), no fact of an earlier epoch or of another owner (V4).
func (p *picture) count(f *folded, c *events.Commit, e *events.Event, epoch uint64, owner string) (uint64, string) {
	r := c.Ref
	switch fact := e.Fact.(type) {
	case events.SessionOpened:
		owner = fact.Incarnation
		f.counted[kindOwned+" "+fact.Incarnation] = true
	case events.SessionClaimed:
		if e.Epoch <= epoch {
			p.fail("V4", r, "%d: claimed under epoch %d, after %d", c.Seq, e.Epoch, epoch)
		}
		epoch, owner = e.Epoch, fact.Incarnation
		f.counted[kindOwned+" "+fact.Incarnation] = true
	}
	if !e.Derived {
		f.counted[string(e.Kind)+" "+e.Fact.Subject()] = true
	}
	if e.Epoch != epoch {
		p.fail("V4", r, "%d: %s %s of epoch %d counted in epoch %d", c.Seq, e.Kind, e.Subject, e.Epoch, epoch)
	}
	if c.Writer == events.WriterHarness && !e.Derived && e.Source != events.HarnessSource(r.Harness, owner) {
		p.fail("V4", r, "%d: %s %s of %s counted, and %s owns it", c.Seq, e.Kind, e.Subject, e.Source, owner)
	}
	spec := events.Lookup(e.Kind)
	key := spec.Ends + " " + e.Fact.Subject()
	receipt := e.Kind == "turn.stopped" && f.endings[key] != ""
	if spec.Ends == "" || spec.Ends == session.EntityMessage || receipt {
		return epoch, owner
	}
	if was := f.endings[key]; was != "" {
		p.fail("V1", r, "%s ended as %s and, at %d, as %s", key, was, c.Seq, e.Kind)
	}
	f.endings[key] = string(e.Kind)
	return epoch, owner
}

// check compares all parts of the picture and returns what is wrong.
func (p *picture) check() []string {
	for _, r := range p.refs {
		p.checkDocument(r)
		p.checkViews(r)
		p.checkRecovered(r)
		p.checkDecided(r)
		p.checkLiving(r)
	}
	p.checkDelivered()
	for key, e := range p.state {
		p.checkKey(key, e.Value)
	}
	for i := range p.notes {
		p.checkNote(&p.notes[i])
	}
	return p.found
}

// checkKey: each document has a log, and each waiting prompt of the people's view is in its document (V5).
func (p *picture) checkKey(key string, value []byte) {
	if r, err := events.ParseSessionKey(key); err == nil && p.folded[r] == nil {
		p.fail("V5", r, "a document without a log")
	}
	var b session.Blocker
	if !strings.HasPrefix(key, "blocker.") {
		return
	}
	if err := json.Unmarshal(value, &b); err != nil {
		p.fail("V5", events.Ref{}, "%s is unreadable: %v", key, err)
		return
	}
	r := events.Ref{Harness: b.Harness, Session: b.Session}
	f := p.folded[r]
	if b.Status == session.Awaiting && (f == nil || f.st.Prompts[b.Prompt] == nil) {
		p.fail("V5", r, "prompt %s waits in the view, and its document knows no such: %s", b.Prompt, value)
	}
}

// checkDocument: the document is the fold of the log, and all input was readable (V5).
func (p *picture) checkDocument(r events.Ref) {
	st := p.folded[r].st
	want, err := st.Encode()
	if err != nil {
		p.fail("V5", r, "it does not encode: %v", err)
	}
	if have := p.state[events.SessionKey(r)].Value; !bytes.Equal(have, want) {
		p.fail("V5", r, "the document is not the fold of the log:\nwant %s", want)
	}
	if st.Parked != 0 || st.UnknownFacts != 0 {
		p.fail("V5", r, "%d facts were parked, %d unknown: the test wrote none", st.Parked, st.UnknownFacts)
	}
}

// checkViews: each entry is the rendering of its document (V5).
func (p *picture) checkViews(r events.Ref) {
	st := p.folded[r].st
	for _, id := range st.BlockerPrompts(time.Time{}) {
		b, err := st.Blocker(id, p.source)
		if err != nil {
			p.fail("V5", r, "prompt %s cannot be shown: %v", id, err)
			continue
		}
		if want, have := asJSON(b), string(p.state[st.BlockerKey(id)].Value); have != want {
			p.fail("V5", r, "the view of prompt %s is not what its document says:\nhave %s\nwant %s", id, have, want)
		}
	}
	work, err := st.Work(p.source)
	if err != nil {
		p.fail("V5", r, "its work cannot be shown: %v", err)
		return
	}
	have, ok := p.state[events.WorkKey(r)]
	switch {
	case work == nil && ok:
		p.fail("V5", r, "there is work in the view, and none in the document: %s", have.Value)
	case work == nil:
	default:
		if want := sameSeq(asJSON(work)); sameSeq(string(have.Value)) != want {
			p.fail("V5", r, "the work is not what its document says:\nhave %s\nwant %s", have.Value, want)
		}
	}
}

// sameSeq removes seq from a work entry: entries may differ in seq alone.
func sameSeq(work string) string {
	var w session.Work
	if err := json.Unmarshal([]byte(work), &w); err != nil {
		return work
	}
	w.Seq = 0
	return asJSON(w)
}

// checkRecovered: under an earlier epoch only questions to keep are open, with their calls and turns, and calls that
// wait for such a child (V2); no session runs without an owner (V14).
func (p *picture) checkRecovered(r events.Ref) {
	st := p.folded[r].st
	if st.Closed != nil || !st.Opened() {
		return
	}
	alive := p.alive(st)
	if st.Owned && !alive {
		p.fail("V2", r, "owned by %s, which is dead", st.Incarnation)
		return
	}
	mine := func(epoch uint64) bool { return alive && epoch == st.Epoch }
	held, keeps := p.held(st), len(st.WaitsFor) > 0 || st.Pending.Turn != nil
	for id, q := range st.Prompts {
		if q.Status == session.Awaiting && !mine(q.Epoch) && q.OnOwnerLoss != events.LossKeep {
			p.fail("V2", r, "prompt %s of epoch %d is still open", id, q.Epoch)
		}
		held[q.Call] = held[q.Call] || q.Status == session.Awaiting
		keeps = keeps || q.Status == session.Awaiting
	}
	for id, c := range st.Tools {
		keeps = keeps || mine(c.Epoch) || held[id]
		if !mine(c.Epoch) && !held[id] {
			p.fail("V2", r, "call %s of epoch %d is still open", id, c.Epoch)
		}
	}
	if t := st.Turn; t != nil && !mine(t.Epoch) && !keeps {
		p.fail("V2", r, "turn %s of epoch %d is still open", t.ID, t.Epoch)
	}
	if c := st.Compaction; c != nil && c.State == session.CompactionRunning && !mine(c.Epoch) {
		p.fail("V2", r, "compaction %s of epoch %d still runs", c.ID, c.Epoch)
	}
	if !alive && p.does(st) {
		p.fail("V14", r, "%s, without an owner", st.Phase)
	}
}

// does reports whether the document shows the session as running. A session whose turn waits for a harness does not
// run.
func (*picture) does(st *session.State) bool {
	p := st.Pending
	return st.Phase == session.Running || st.Phase == session.Compacting && p.Compaction == nil ||
		st.Phase == session.Retrying && p.Turn == nil
}

// held returns the calls of a session that wait for a child which is not settled.
func (p *picture) held(st *session.State) map[string]bool {
	held := map[string]bool{}
	for _, w := range st.WaitsFor {
		held[w.Call] = true
	}
	for _, f := range p.folded {
		k := f.st
		if k.Harness == st.Harness && k.Parent == st.Session && k.Closed == nil {
			held[k.ParentCall] = held[k.ParentCall] || reconciler.Unsettled(k)
		}
	}
	return held
}

// checkNote: what a client received as an answer is so (V12).
func (p *picture) checkNote(n *note) {
	if n.Wrong != "" {
		p.fail("error that was not expected", n.Ref, "%s received: %s", n.By, n.Wrong)
		return
	}
	f := p.folded[n.Ref]
	if f == nil {
		p.fail("V12", n.Ref, "%s received %s, and the log has no such session", n.By, asJSON(n))
		return
	}
	switch {
	case n.Status != "":
		p.checkSettled(n, f)
		p.checkHanded(n)
	case n.Prompt != "":
		p.checkRequest(n)
	case n.Kind == "":
		// a stop or a close: only its place is known
		if n.Seq != 0 && (p.at[n.Seq] == nil || p.at[n.Seq].Ref != n.Ref) {
			p.fail("V12", n.Ref, "%s got place %d, and the session has no commit there", n.By, n.Seq)
		}
	case !f.counted[n.Kind+" "+n.ID]:
		p.fail("V12", n.Ref, "%s got an acknowledgement for %s %s by %d, and it does not count", n.By, n.Kind, n.ID,
			n.Seq)
	}
}

// checkDelivered: each decision that a person got a receipt for has reached an agent, in every session at rest that
// waits for no person (V15).
func (p *picture) checkDelivered() {
	received, confirmed := map[string]bool{}, map[string]bool{}
	for i := range p.notes {
		n := &p.notes[i]
		received[n.Ref.String()+" "+n.Prompt] = received[n.Ref.String()+" "+n.Prompt] || n.Received
		confirmed[n.Ref.String()+" "+n.Prompt] = confirmed[n.Ref.String()+" "+n.Prompt] ||
			n.Kind != "" && n.Prompt != ""
	}
	for _, r := range p.refs {
		st := p.folded[r].st
		if !p.alive(st) {
			continue
		}
		for _, id := range p.folded[r].rules.Undelivered(st) {
			if key := r.String() + " " + id; confirmed[key] && !received[key] {
				p.fail("V15", r, "a person has a receipt for the decision about prompt %s, and no agent received it",
					id)
			}
		}
	}
}

// checkSettled: a prompt was settled as the client was answered. A person may have received an end that a person took
// back afterwards. A process may not: what it has received cannot be taken back.
func (p *picture) checkSettled(n *note, f *folded) {
	how := f.endings[session.EntityPrompt+" "+n.Prompt]
	if how == "" && f.st.Prompts[n.Prompt] != nil && f.st.Prompts[n.Prompt].Status != session.Awaiting {
		how = "prompt." + string(f.st.Prompts[n.Prompt].Status)
	}
	want := "prompt." + n.Status
	if how != want && n.Status != string(session.Closed) && (n.Owner != "" || !f.undone[n.Prompt+" "+want]) {
		p.fail("V12", n.Ref, "%s got for prompt %s the status %s; the log has %q", n.By, n.Prompt, n.Status, how)
	}
	if n.Text == "" {
		return
	}
	for _, c := range p.commits[n.Ref] {
		if slices.ContainsFunc(c.Events, func(e events.Event) bool { return decides(n, e.Fact) }) {
			return
		}
	}
	p.fail("V12", n.Ref, "%s got for prompt %s the answer %q, and the log does not have it", n.By, n.Prompt, n.Text)
}

// checkHanded: no answer was handed to a fenced process (R6). The incarnation that received an answer owned the session
// at most handedSlack before.
func (p *picture) checkHanded(n *note) {
	if n.Owner == "" || n.Status != string(session.Answered) {
		return
	}
	p.handed++
	st := session.New(n.Ref)
	owns := func() bool { return st.Owned && st.Incarnation == n.Owner }
	lately := false
	for i := range p.commits[n.Ref] {
		c := &p.commits[n.Ref][i]
		// the owner until now was the owner shortly before
		if c.At.After(n.At.Add(-handedSlack)) {
			lately = lately || owns()
		}
		if c.At.After(n.At) {
			break
		}
		st.Fold(c)
	}
	if !lately && !owns() {
		p.fail("R6", n.Ref, "%s was handed the answer to %s at %s, and %s does not own the session: it was fenced",
			n.By, n.Prompt,
			n.At.Format(time.StampMilli), n.Owner)
	}
}

// checkRequest: a request that a person got a receipt for is in the log at its place.
func (p *picture) checkRequest(n *note) {
	c := p.at[n.Seq]
	if c == nil || c.Ref != n.Ref || !slices.ContainsFunc(c.Events, func(e events.Event) bool {
		return string(e.Kind) == n.Kind && decides(n, e.Fact)
	}) {
		p.fail("V12", n.Ref, "%s got %s %s %q at %d, and the log has it not there", n.By, n.Kind, n.Prompt, n.Text,
			n.Seq)
	}
}

// decides reports whether a fact is the decision of the note.
func decides(n *note, f events.Fact) bool {
	switch f := f.(type) {
	case events.PromptAnswered:
		return f.Prompt == n.Prompt && choiceOf(f.Answers) == n.Text
	case events.PromptRejected:
		return f.Prompt == n.Prompt && f.Text == n.Text
	case events.PromptDismissed:
		return f.Prompt == n.Prompt && n.Text == ""
	}
	return false
}

// restless returns why the world is not at rest: an owner is dead, a turn runs or a living process is about to end it,
// or a living harness has not taken its work; "" at rest.
func (p *picture) restless() string {
	for _, r := range p.refs {
		st := p.folded[r].st
		alive := p.alive(st)
		switch {
		case st.Closed != nil:
		case st.Owned && !alive:
			return fmt.Sprintf("%s is owned by %s, which is dead\n%s", r, st.Incarnation, p.dump(r))
		case p.does(st):
			return fmt.Sprintf("%s is %s\n%s", r, st.Phase, p.dump(r))
		// its process ends it, even while it waits for a person
		case alive && st.Turn != nil && st.Turn.Epoch == st.Epoch:
			return fmt.Sprintf("%s has an open turn\n%s", r, p.dump(r))
		case alive && st.Pending != (session.Pending{}):
			return fmt.Sprintf("%s has something to do\n%s", r, p.dump(r))
		}
		if why := undecided(st); why != "" {
			return fmt.Sprintf("%s: %s\n%s", r, why, p.dump(r))
		}
	}
	return ""
}

// kinds counts the facts of each kind.
func (p *picture) kinds() map[events.Kind]int {
	kinds := map[events.Kind]int{}
	for _, c := range p.at {
		for _, e := range c.Events {
			kinds[e.Kind]++
		}
	}
	return kinds
}

// summary returns the counts of a run as text.
func (p *picture) summary() string {
	phases, kinds, ignored := map[session.Phase]int{}, p.kinds(), map[string]int{}
	for _, f := range p.folded {
		phases[f.st.Phase]++
		if last := f.st.Ignored.Last; last != nil {
			ignored[last.Writer+" "+last.Type+" "+last.Why] += int(f.st.Ignored.Count)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d sessions %v, %d commits, %d notes, %d answers handed out, %d leases lost, ignored %v\n",
		len(p.refs), phases, len(p.at), len(p.notes), p.handed, len(p.lost), ignored)
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&text, "  %-22s %d\n", k, kinds[k])
	}
	return text.String()
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
