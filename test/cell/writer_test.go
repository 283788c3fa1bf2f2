package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Rates of the writer.
const (
	writing     = 4                      // sessions that write without a pause
	asking      = "asking"               // the session that asks people
	pace        = 10 * time.Millisecond  // least time between two facts of a session
	readPace    = 100 * time.Millisecond // between two requests of a person
	provesAlive = 5                      // acknowledged facts of each session that end a phase
)

// claim is an acknowledged fact.
type claim struct {
	session string
	seq     uint64 // of the session when the call returned; 0: it is not known
	kind    events.Kind
	id      string
	content string
}

// writer writes to sessions through the harness library, with its user's permissions, and records what was
// acknowledged. At the same time a person reads a document and answers questions.
type writer struct {
	t      *testing.T
	h      *harness.Harness
	person *bus.Bus
	ctx    context.Context
	cancel context.CancelFunc
	writes sync.WaitGroup // sessions
	done   sync.WaitGroup // a person
	pulse  *natstest.Pulse

	mu       sync.Mutex
	claims   []claim
	answered map[string]string // by prompt: the answer that a receipt confirms
	beats    map[string]*beat  // by session, and of the person's reads
	refused  map[string]int    // what a person received in place of a document or a receipt
	moved    chan struct{}     // holds one value after an acknowledgement
	rounds   atomic.Int64
	leaving  atomic.Bool // each session ends its turn, and begins no other
}

// beat is when a write was last acknowledged.
type beat struct {
	at    time.Time
	lost  time.Duration // of the pulse, at that instant
	count int
	pause time.Duration // the longest since the phase began
}

// write starts the writer.
func (d *deployment) write() *writer {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &writer{t: d.t, ctx: ctx, cancel: cancel, person: d.as(people, events.ClassPerson, people),
		pulse: natstest.Feel(d.t), answered: map[string]string{},
		beats: map[string]*beat{}, refused: map[string]int{}, moved: make(chan struct{}, 1)}
	var err error
	cfg := d.config("harness-"+attacker, events.ClassHarness, attacker)
	if w.h, err = harness.Connect(ctx, harness.Config{ID: attacker, URL: cfg.URL, PasswordFile: cfg.PasswordFile,
		TLSCA: cfg.TLSCA, TLSCert: cfg.TLSCert, TLSKey: cfg.TLSKey}); err != nil {
		d.t.Fatal(err)
	}
	if err := w.h.Ready(ctx); err != nil {
		d.t.Fatal(err)
	}
	names := []string{asking}
	for i := range writing {
		names = append(names, fmt.Sprint("w", i))
	}
	for _, name := range names {
		s, err := w.h.Open(ctx, name, harness.OpenOptions{Title: name})
		if err != nil {
			d.t.Fatal(err)
		}
		work := w.turn
		if name == asking {
			work = w.ask
		}
		w.beats[name] = &beat{at: time.Now()}
		w.writes.Go(func() { w.repeat(name, func() error { return work(s) }) })
	}
	w.beats[reading] = &beat{at: time.Now()}
	w.done.Go(w.read)
	w.done.Go(func() {
		if err := w.answer(); err != nil && ctx.Err() == nil {
			w.t.Errorf("a person sees no questions: %v", err)
		}
	})
	return w
}

// reading is the name of the beat of a person's reads.
const reading = "a person reads"

func (w *writer) repeat(name string, work func() error) {
	for !w.leaving.Load() {
		if err := work(); err != nil && w.ctx.Err() == nil {
			// an outage ends no turn, and loses nothing
			w.t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// acknowledged records a fact.
func (w *writer) acknowledged(s *harness.Session, kind events.Kind, id, content string) {
	seq := s.State().Seq
	if kind == "prompt.requested" {
		// it returned with the answer
		seq = 0
	}
	w.mu.Lock()
	w.claims = append(w.claims, claim{s.ID(), seq, kind, id, content})
	w.mu.Unlock()
	w.alive(s.ID())
	select {
	case <-w.ctx.Done():
	case <-time.After(pace):
	}
}

// alive records a success. Time in which this process did not run is not a pause.
func (w *writer) alive(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, now, lost := w.beats[name], time.Now(), w.pulse.Lost()
	b.pause = max(b.pause, now.Sub(b.at)-(lost-b.lost))
	b.at, b.lost = now, lost
	b.count++
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// turn runs a turn with some calls. The content of each is unique.
func (w *writer) turn(s *harness.Session) error {
	n := w.rounds.Add(1)
	message := fmt.Sprintf("message-%d", n)
	start := harness.StartOptions{ID: fmt.Sprintf("turn-%d", n), Message: message, Content: message, By: people}
	t, err := s.StartTurn(w.ctx, start)
	if err != nil {
		return err
	}
	w.acknowledged(s, "message.accepted", message, message)
	for i := range 3 {
		id := fmt.Sprintf("call-%d-%d", n, i)
		c, err := t.Tool(w.ctx, harness.ToolOptions{ID: id, Name: "bash", Input: "input of " + id})
		if err != nil {
			return err
		}
		w.acknowledged(s, "tool.started", id, "input of "+id)
		if err := c.Complete(w.ctx, "output of "+id); err != nil {
			return err
		}
		w.acknowledged(s, "tool.completed", id, "output of "+id)
	}
	if err := t.Complete(w.ctx, "stop"); err != nil {
		return err
	}
	w.acknowledged(s, "turn.completed", t.ID(), "stop")
	return nil
}

// ask runs a turn that asks a person.
func (w *writer) ask(s *harness.Session) error {
	n := w.rounds.Add(1)
	t, err := s.StartTurn(w.ctx, harness.StartOptions{ID: fmt.Sprintf("turn-%d", n)})
	if err != nil {
		return err
	}
	id := fmt.Sprintf("prompt-%d", n)
	which := []events.Question{{ID: "q", Question: "Which?", Custom: true}}
	a, err := t.Ask(w.ctx, harness.Prompt{ID: id, Questions: which})
	if err != nil {
		return err
	}
	if want := "answer to " + id; a.Status != session.Answered || len(a.Answers) != 1 || a.Answers[0].Text != want {
		return fmt.Errorf("the answer to %s is %+v, want %q", id, a, want)
	}
	w.acknowledged(s, "prompt.requested", id, "Which?")
	if err := t.Complete(w.ctx, "stop"); err != nil {
		return err
	}
	w.acknowledged(s, "turn.completed", t.ID(), "stop")
	return nil
}

// answer answers each question as soon as a screen shows it, and again until there is a receipt.
func (w *writer) answer() error {
	return w.person.KV.Watch(w.ctx, kv.State, []string{events.BlockerKeys(attacker, "")}, func(u kv.Update) error {
		var v struct {
			Prompt string
			Status session.Status
		}
		if json.Unmarshal(u.Value, &v) != nil || v.Status != session.Awaiting {
			return nil
		}
		req := request.Answer{Ref: events.Ref{Harness: attacker, Session: asking}, Prompt: v.Prompt, By: people,
			Answers: []events.Answer{{Question: "q", Text: "answer to " + v.Prompt}}}
		for w.ctx.Err() == nil {
			var receipt struct{ Seq uint64 }
			ok, again := w.asked("answer", req, &receipt)
			if ok {
				w.mu.Lock()
				w.answered[v.Prompt] = req.Answers[0].Text
				w.mu.Unlock()
			}
			if !again {
				return nil
			}
		}
		return nil
	})
}

// read reads a document without a pause.
func (w *writer) read() {
	for w.ctx.Err() == nil {
		var doc struct{ Document struct{ Session string } }
		if ok, _ := w.asked("get", events.Ref{Harness: attacker, Session: "w0"}, &doc); ok {
			if doc.Document.Session != "w0" {
				w.t.Errorf("a person is shown %+v", doc)
			}
			w.alive(reading)
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(readPace):
		}
	}
}

// refusalMax is how long a person waits for a service's answer, or for the error that there is no service.
const refusalMax = 15 * time.Second

// asked sends a request of a person. A refusal is 503 with a reason, or the error that there is no service: then the
// person may ask again.
func (w *writer) asked(verb string, req, reply any) (ok, again bool) {
	ctx, cancel := context.WithTimeout(w.ctx, refusalMax)
	defer cancel()
	err := w.person.Services.Request(ctx, "ledger", verb, req, reply)
	if err == nil {
		return true, false
	}
	if w.ctx.Err() != nil {
		return false, false
	}
	refusal, refused := errors.AsType[*events.Refusal](err)
	switch {
	case refused && refusal.Code == 503 && refusal.Message != "":
	case !refused && errors.Is(err, bus.ErrUnreachable):
	default:
		w.t.Errorf("a person's %s: %v", verb, err)
		return false, false
	}
	w.mu.Lock()
	w.refused[err.Error()]++
	w.mu.Unlock()
	return false, true
}

// begin forgets earlier pauses.
func (w *writer) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.beats {
		b.pause = 0
	}
}

// proceeds waits until each session, and the person, has several more successes.
func (w *writer) proceeds(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	from := map[string]int{}
	for name, b := range w.beats {
		from[name] = b.count
	}
	w.mu.Unlock()
	late := time.After(patience)
	for {
		var waits []string
		w.mu.Lock()
		for name, b := range w.beats {
			if b.count < from[name]+provesAlive {
				waits = append(waits, name)
			}
		}
		w.mu.Unlock()
		if len(waits) == 0 {
			return
		}
		select {
		case <-w.moved:
		case <-late:
			t.Fatalf("nothing is acknowledged any more: %v; replies to a person: %v", waits, w.refused)
		}
	}
}

// pauses returns the longest pauses since the phase began: of writes, and of what a person waits for. The session that
// asks people waits for a person, whose request a killed service takes with it.
func (w *writer) pauses() (writes, reads time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, b := range w.beats {
		if name == reading || name == asking {
			reads = max(reads, b.pause)
		} else {
			writes = max(writes, b.pause)
		}
	}
	return writes, reads
}

// end stops the writer in order.
func (w *writer) end() {
	w.t.Helper()
	w.leaving.Store(true)
	w.writes.Wait()
	w.cancel()
	w.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.h.Close(ctx); err != nil {
		w.t.Errorf("the harness does not leave in good order: %v", err)
	}
}

// found is a fact of the log with its place.
type found struct {
	seq     uint64
	content string
	writer  events.Writer
}

// verify compares what was acknowledged with the log, and the documents with the fold of the log.
func (w *writer) verify(operator *bus.Bus) {
	w.t.Helper()
	// after a failure the writer still writes: later claims may be missing in the log that is read
	w.mu.Lock()
	claims, answered := slices.Clone(w.claims), maps.Clone(w.answered)
	w.mu.Unlock()
	logs, read := map[string]map[string]found{}, map[string][]events.Commit{}
	for name := range w.beats {
		if name == reading {
			continue
		}
		r := events.Ref{Harness: attacker, Session: name}
		commits, err := operator.Log.Read(w.t.Context(), r, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		logs[name], read[name] = w.facts(commits), commits
		if !w.t.Failed() {
			w.folded(operator, r)
		}
	}
	lost := 0
	for _, c := range claims {
		f, ok := logs[c.session][string(c.kind)+" "+c.id]
		if !ok || f.content != c.content || !c.has(read[c.session], f.seq) {
			lost++
			w.t.Errorf("lost: %+v; the log has %+v\n%s", c, f, near(read[c.session], f.seq, c.seq))
		}
	}
	for prompt, text := range answered {
		if f := logs[asking]["prompt.answered "+prompt]; f.content != text {
			lost++
			w.t.Errorf("lost: the answer to %s, %q; the log has %+v", prompt, text, f)
		}
	}
	if len(claims) < 100 || len(answered) < 5 {
		w.t.Errorf("%d facts and %d answers: too few to show anything", len(claims), len(answered))
	}
	w.t.Logf("%d facts of a harness and %d answers of a person acknowledged, %d lost", len(claims), len(answered),
		lost)
}

// has reports whether these commits have the last one that the session had when the call returned, and the fact at it
// or before it. The fact is before it if the process lost its lease during the call: the process then finds the fact in
// the log, and its claim of the session follows.
func (c *claim) has(commits []events.Commit, fact uint64) bool {
	return c.seq == 0 || fact <= c.seq &&
		slices.ContainsFunc(commits, func(x events.Commit) bool { return x.Seq == c.seq })
}

// TestClaims: what a writer knew when a call returned has to be in the log.
func TestClaims(t *testing.T) {
	commits := []events.Commit{{Seq: 3}, {Seq: 5}}
	for _, tt := range []struct {
		seq, fact uint64
		want      bool
	}{{3, 3, true}, {5, 3, true}, {0, 3, true}, {3, 5, false}, {4, 3, false}, {7, 5, false}} {
		c := claim{seq: tt.seq}
		if got := c.has(commits, tt.fact); got != tt.want {
			t.Errorf("the session at %d, the fact at %d: %v", tt.seq, tt.fact, got)
		}
	}
}

// near describes the commits of a session at these places, and the ones around them.
func near(commits []events.Commit, places ...uint64) string {
	const around = 3
	var text strings.Builder
	for i := range commits {
		if slices.ContainsFunc(commits[max(0, i-around):min(len(commits), i+around+1)], func(c events.Commit) bool {
			return slices.Contains(places, c.Seq)
		}) {
			c := &commits[i]
			fmt.Fprintf(&text, "%d of %s, guarded %v by %d, %v:", c.Seq, c.Writer, c.Guarded, c.Guard, c.Err)
			for _, e := range c.Events {
				fmt.Fprintf(&text, " %s %s (%s)", e.Kind, e.Fact.Subject(), e.ID)
			}
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// facts returns a session's facts by kind and id. It fails if a service took the session from its living harness.
func (w *writer) facts(commits []events.Commit) map[string]found {
	all := map[string]found{}
	for _, c := range commits {
		for _, e := range c.Events {
			f := found{seq: c.Seq, writer: c.Writer}
			switch x := e.Fact.(type) {
			case events.MessageAccepted:
				f.content = unquoted(x.Content)
			case events.ToolStarted:
				f.content = unquoted(x.Input)
			case events.ToolCompleted:
				f.content = unquoted(x.Output)
			case events.TurnCompleted:
				f.content = x.Finish
			case events.PromptRequested:
				f.content = x.Questions[0].Question
			case events.PromptAnswered:
				f.content = x.Answers[0].Text
			case events.SessionOrphaned, events.TurnInterrupted, events.ToolInterrupted, events.TurnFailed:
				w.t.Errorf("commit %d of %s by %s: %s of a harness that lived", c.Seq, c.Ref, c.Writer, x.Kind())
			}
			key := string(e.Fact.Kind()) + " " + e.Fact.Subject()
			// open items are appended again when a new incarnation adopts them
			if _, again := all[key]; !again {
				all[key] = f
			}
		}
	}
	return all
}

func unquoted(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// folded waits until a session's document is the fold of its log.
func (w *writer) folded(operator *bus.Bus, r events.Ref) {
	w.t.Helper()
	natstest.Until(w.t, "the document of "+r.String()+" to be what its log says", func() bool {
		commits, err := operator.Log.Read(w.t.Context(), r, 0)
		if err != nil {
			return false
		}
		st := session.New(r)
		for i := range commits {
			st.Fold(&commits[i])
		}
		want, err := st.Encode()
		if err != nil {
			w.t.Fatal(err)
		}
		e, err := operator.KV.Load(w.t.Context(), kv.State, events.SessionKey(r))
		return err == nil && string(e.Value) == string(want)
	})
}
