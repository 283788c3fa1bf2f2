package replay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

const (
	callTakes    = 100 * time.Millisecond // a simulated model call
	wordTakes    = time.Millisecond       // a simulated decision
	deathNoticed = 7 * time.Second        // from a death to its detection
	checksMax    = 1000                   // the limit of passes, against an endless series of decisions
)

// stage is a session under Holdfast with simulated time: the real decisions of the services, and a harness whose
// provider acts as recorded.
type stage struct {
	t            *testing.T
	st           *session.State
	commits      map[uint64]*events.Commit
	began        time.Time
	now          time.Time
	incarnation  int // incarnation of the harness; 0: it is dead
	incarnations int
	plays        map[string]*play // by message
	summary      bool             // the summary hangs until the process is killed
	lines        []line
}

// line is one line of the page.
type line struct {
	at   time.Duration
	text string
}

// play is the provider's script for a message. The last step is repeated.
type play struct{ ops []op }

// op is one step of the recorded provider's script.
type op struct {
	Op         string          `json:"op"` // http, tool or text
	Status     int             `json:"status"`
	Times      int             `json:"times"` // 0: always
	RetryAfter string          `json:"retry_after"`
	Body       json.RawMessage `json:"body"`
	Name       string          `json:"name"`
	Text       string          `json:"text"`
	Usage      *struct {
		Prompt int64 `json:"prompt"`
		Cached int64 `json:"cached"`
	} `json:"usage"`
}

// usedDefault is the recorded provider's usage if the script has none.
const usedDefault = 100

var marked = regexp.MustCompile(`(?s)@@(\[.*\])@@`)

// next returns the next step.
func (p *play) next() op {
	if len(p.ops) == 0 {
		return op{Op: "text", Text: "script finished"}
	}
	o := p.ops[0]
	if o.Op == "http" && o.Times == 0 {
		return o
	}
	if p.ops[0].Times--; p.ops[0].Times <= 0 {
		p.ops = p.ops[1:]
	}
	return o
}

func newStage(t *testing.T, limit int64) *stage {
	began := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s := &stage{t: t, began: began, now: began, commits: map[uint64]*events.Commit{}, plays: map[string]*play{},
		incarnation: 1, incarnations: 1,
		st: session.New(events.Ref{Harness: "opencode", Session: "s"})}
	s.commit(events.WriterHarness, events.SessionOpened{Incarnation: "1", ContextLimit: limit})
	return s
}

// commit appends facts and folds them.
func (s *stage) commit(by events.Writer, facts ...events.Fact) {
	s.t.Helper()
	s.now = s.now.Add(wordTakes)
	source := events.ServiceSource(string(by), "stage")
	if by == events.WriterHarness {
		source = events.HarnessSource(s.st.Harness, strconv.Itoa(s.incarnation))
	}
	c := &events.Commit{Ref: s.st.Ref(), Writer: by, Seq: s.st.Seq + 1, Guard: s.st.Seq, Guarded: true, At: s.now}
	epoch := max(s.st.Epoch, 1)
	for i, f := range facts {
		if _, claims := f.(events.SessionClaimed); claims {
			epoch++
		}
		c.Events = append(c.Events, events.New(fmt.Sprint(c.Seq, ".", i), source, c.Ref, epoch, s.now, f))
		s.lines = append(s.lines, line{s.now.Sub(s.began), fmt.Sprintf("%-10s %s", by, s.text(f))})
	}
	s.commits[c.Seq] = c
	ignored := s.st.Ignored.Count
	s.st.Fold(c)
	if s.st.Ignored.Count != ignored {
		s.t.Fatalf("a fact does not count: %+v", s.st.Ignored.Last)
	}
}

func (s *stage) source(seq uint64) (*events.Commit, error) {
	if c := s.commits[seq]; c != nil {
		return c, nil
	}
	return nil, errors.New("no such commit")
}

// send sends a person's message. The provider's script is in its text.
func (s *stage) send(id string, content json.RawMessage, ops []op) {
	s.t.Helper()
	s.plays[id] = &play{ops: ops}
	out, err := compaction.Send(s.st, request.Send{Ref: s.st.Ref(), Message: id, Content: content, By: "ada"},
		s.now, s.source)
	if err != nil {
		s.t.Fatal(err)
	}
	s.commit(events.WriterCompaction, out.Facts...)
}

// compact sends a person's compaction request.
func (s *stage) compact() {
	s.t.Helper()
	out, err := compaction.Compact(s.st, request.Compact{Ref: s.st.Ref(), By: "ada"}, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.commit(events.WriterCompaction, out.Facts...)
}

// settle runs services and harness, and advances the time, until no work is left.
func (s *stage) settle() {
	s.t.Helper()
	for range checksMax {
		next, done := s.decide()
		switch {
		case done, s.work():
		case next.IsZero():
			return
		case next.After(s.now):
			s.now = next
		}
	}
	s.t.Fatalf("work is left after %d passes", checksMax)
}

// decide asks each service, and appends the first facts. look is the instant of the next decision.
func (s *stage) decide() (next time.Time, done bool) {
	later := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	life := reconciler.Alive
	if s.incarnation == 0 {
		life = reconciler.Dead
	}
	rec, err := reconciler.Decide(s.st, reconciler.Input{Now: s.now, Owner: reconciler.Owner{Liveness: life}}, s.source)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(rec.Facts) > 0 {
		s.commit(events.WriterReconciler, rec.Facts...)
		return next, true
	}
	later(rec.CheckAt)
	comp := compaction.Decide(s.st, compaction.Input{Now: s.now, Progress: s.now})
	if len(comp.Facts) > 0 {
		s.commit(events.WriterCompaction, comp.Facts...)
		return next, true
	}
	if !comp.Watch {
		later(comp.CheckAt)
	}
	again := retry.Decide(s.st, retry.Input{Now: s.now, Progress: s.now})
	if len(again.Facts) > 0 {
		s.commit(events.WriterRetry, again.Facts...)
		return next, true
	}
	if !again.Watch {
		later(again.CheckAt)
	}
	return next, false
}

// work runs the harness: it takes requested work, and reports whether there was any.
func (s *stage) work() bool {
	p := &s.st.Pending
	switch {
	case s.incarnation == 0:
		return false
	case p.Stop != nil:
		s.commit(events.WriterHarness, events.TurnStopped{Turn: p.Stop.Turn, Actor: p.Stop.Actor})
	case s.st.Turn != nil:
		s.call()
	case p.Compaction != nil:
		s.commit(events.WriterHarness, s.own(events.CompactionStarted{Compaction: p.Compaction.ID})...)
	case s.st.Compaction != nil && s.st.Compaction.State == session.CompactionRunning && !s.summary:
		s.now = s.now.Add(callTakes)
		s.commit(events.WriterHarness, events.CompactionCompleted{Compaction: s.st.Compaction.ID})
	case p.Turn != nil:
		s.commit(events.WriterHarness, s.own(events.TurnStarted{Turn: p.Turn.ID, Cause: p.Turn.Cause,
			Message: p.Turn.Message, OfTurn: p.Turn.OfTurn, Attempt: p.Turn.Attempt})...)
	default:
		return false
	}
	return true
}

// own claims the session if it has no owner.
func (s *stage) own(f events.Fact) []events.Fact {
	if s.st.Owned {
		return []events.Fact{f}
	}
	return []events.Fact{events.SessionClaimed{Incarnation: strconv.Itoa(s.incarnation)}, f}
}

// call runs one model call of the open turn.
func (s *stage) call() {
	turn, o := s.st.Turn, s.plays[s.st.Turn.Message].next()
	s.now = s.now.Add(callTakes)
	if o.Op == "http" {
		body := o.Body
		if body == nil {
			body = fmt.Appendf(nil, `{"error":{"message":"mock error %d","type":"mock_error","code":%d}}`, o.Status,
				o.Status)
		}
		s.commit(events.WriterHarness, events.TurnFailed{Turn: turn.ID,
			Error: failure.Classify(failure.Read(o.Status, o.RetryAfter, s.now, body))})
		return
	}
	used := events.UsageReported{Turn: turn.ID, Model: "mock", Tokens: events.Tokens{Input: usedDefault}}
	if o.Usage != nil {
		used.Tokens = events.Tokens{Input: o.Usage.Prompt - o.Usage.Cached, CacheRead: o.Usage.Cached}
	}
	if o.Op == "tool" {
		call := fmt.Sprint("call-", s.st.Seq)
		s.commit(events.WriterHarness, used, events.ToolStarted{Call: call, Turn: turn.ID, Name: o.Name})
		s.commit(events.WriterHarness, events.ToolCompleted{Call: call})
		return
	}
	s.commit(events.WriterHarness, used, events.TurnCompleted{Turn: turn.ID, Finish: "stop"})
}

// kill ends the harness. After the detection of its death, another one starts.
func (s *stage) kill() {
	s.lines = append(s.lines, line{s.now.Sub(s.began), "           SIGKILL"})
	s.incarnation, s.now = 0, s.now.Add(deathNoticed)
	s.settle()
	s.incarnations++
	s.incarnation, s.summary = s.incarnations, false
}

// text returns a fact as a text for people.
func (s *stage) text(f events.Fact) string {
	text := string(f.Kind())
	switch f := f.(type) {
	case events.MessageAccepted:
		text += " " + f.Message
	case events.TurnRequested:
		text += fmt.Sprintf(" cause %s", f.Cause)
		if f.Attempt > 0 {
			text += fmt.Sprintf(", attempt %d", f.Attempt)
		}
	case events.TurnFailed:
		text += " " + f.Error.Kind
		if f.Error.RetryAfterMS > 0 {
			text += fmt.Sprintf(", wants to be left alone for %.1f s", float64(f.Error.RetryAfterMS)/1000)
		}
	case events.TurnStopRequested:
		text += " by " + f.Actor
	case events.RetryScheduled:
		text += fmt.Sprintf(" attempt %d, %.1f s after the failure", f.Attempt, float64(f.DelayMS)/1000)
	case events.RetryAbandoned:
		text += " " + f.Reason
	case events.CompactionRequested:
		text += fmt.Sprintf(" %s, %d of %d tokens", f.Reason, f.Used, f.Limit)
		if f.FollowUp != "" {
			text += ", then " + f.FollowUp
		}
	case events.CompactionFailed:
		text += " " + f.Error.Kind
	case events.UsageReported:
		text += fmt.Sprintf(" %d", f.Used())
	case events.SessionOrphaned:
		text += " " + f.Reason
	}
	return text
}

// script returns the provider's script in a recorded message.
func script(t *testing.T, content json.RawMessage) []op {
	t.Helper()
	var text string
	if err := json.Unmarshal(content, &text); err != nil {
		t.Fatal(err)
	}
	found := marked.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no script in %q", text)
	}
	var ops []op
	if err := json.Unmarshal([]byte(found[1]), &ops); err != nil {
		t.Fatal(err)
	}
	return slices.Clip(ops)
}
