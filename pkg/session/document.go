package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/holdfast-dev/holdfast/pkg/codec"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// New is a session of which only the name is known.
func New(r events.Ref) *State {
	return &State{V: Version, Rules: FoldRules, Harness: r.Harness, Session: r.Session, Root: r.Session, Phase: Idle,
		Policy: events.DefaultPolicy()}
}

// Ref is the session's name.
func (s *State) Ref() events.Ref { return events.Ref{Harness: s.Harness, Session: s.Session} }

// Outdated reports whether a document was folded by older rules. Its layout can be read, and it lacks what the fold
// keeps now: who folds on, or decides, begins at the session's first commit instead.
func (s *State) Outdated() bool { return s.Rules < FoldRules }

// Opened reports whether the session has begun. Before that a State only counts what was ignored.
func (s *State) Opened() bool { return s.Epoch > 0 || s.Closed != nil }

// Open reports whether the session has begun and is not closed, as [Head.Open] does.
func (s *State) Open() bool { return s.Opened() && s.Closed == nil }

// Began reports whether anybody ever opened the session, as far as the log still tells.
func (s *State) Began() bool { return s.Epoch > 0 || s.Closed != nil && s.Closed.Purged }

// Encode is the document as it is stored: what encoding/json makes of the State, with its [Head] behind the version,
// and without the escapes that only HTML needs. Equal states give equal bytes.
func (s *State) Encode() ([]byte, error) {
	c := codec.Writer(make([]byte, 0, documentBytesTypical+entryBytesTypical*(len(s.Recent)+len(s.Tools)+len(s.Queue))))
	h := s.Head()
	document(c, s, &h)
	b, err := c.Written()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", s.Ref(), err)
	}
	return b, nil
}

// Usual sizes of a document with empty lists and of an entry of a list, in bytes of JSON.
const (
	documentBytesTypical = 2 << 10
	entryBytesTypical    = 180
)

// document is the fields of a State, in their order, with a head behind the version. Rare and opaque
// fields are left to encoding/json.
func document(c *codec.Codec, s *State, h *Head) {
	start(c, &s.V, h)
	names(c, s)
	body(c, s)
}

// body is the fields after those of names.
func body(c *codec.Codec, s *State) {
	codec.Number(c, `,"commits":`, &s.Commits)
	codec.SomeTime(c, `,"opened_at":`, &s.OpenedAt)
	codec.SomeTime(c, `,"updated_at":`, &s.UpdatedAt)
	codec.SomeTime(c, `,"active_at":`, &s.ActiveAt)
	codec.Rest(c, `,"closed":`, s.Closed != nil, &s.Closed)
	codec.Object(c, `,"turn":`, &s.Turn, turnFields)
	codec.Object(c, `,"last_turn":`, &s.LastTurn, lastTurnFields)
	codec.Table(c, `,"tools":`, &s.Tools, toolFields)
	codec.Table(c, `,"prompts":`, &s.Prompts, promptFields)
	codec.List(c, `,"queue":`, `{"message":`, &s.Queue, messageFields)
	codec.SomeNumber(c, `,"held_seq":`, &s.HeldSeq)
	codec.SomeNumber(c, `,"stopped_seq":`, &s.StoppedSeq)
	pendingFields(c, &s.Pending)
	codec.Struct(c, `,"continuations":{`, s.Continuations != Continuations{}, &s.Continuations, continuationsFields)
	codec.SomeNumber(c, `,"quiet_seq":`, &s.QuietSeq)
	codec.Struct(c, `,"retry":{`, s.Retry != Retry{}, &s.Retry, retryFields)
	codec.Rest(c, `,"compaction":`, s.Compaction != nil, &s.Compaction)
	codec.Rest(c, `,"last_compaction":`, s.LastCompaction != nil, &s.LastCompaction)
	codec.Object(c, `,"usage":`, &s.Usage, usageFields)
	codec.SomeNumber(c, `,"context_limit":`, &s.ContextLimit)
	policyFields(c, &s.Policy)
	codec.List(c, `,"recent":`, `{"entity":`, &s.Recent, endingFields)
	codec.Number(c, `,"ignored":{"count":`, &s.Ignored.Count)
	codec.Rest(c, `,"last":`, s.Ignored.Last != nil, &s.Ignored.Last)
	codec.Number(c, `},"unknown_facts":`, &s.UnknownFacts)
	codec.Number(c, `,"parked":`, &s.Parked)
	c.Mark(`}`)
}

// names is the fields that say which session it is, whose, and in which phase.
func names(c *codec.Codec, s *State) {
	codec.Text(c, `,"harness":`, &s.Harness)
	codec.Text(c, `,"session":`, &s.Session)
	codec.Text(c, `,"root":`, &s.Root)
	codec.Text(c, `,"parent":`, &s.Parent)
	codec.Some(c, `,"parent_call":`, &s.ParentCall)
	codec.Text(c, `,"title":`, &s.Title)
	codec.Text(c, `,"agent":`, &s.Agent)
	codec.Text(c, `,"model":`, &s.Model)
	codec.Text(c, `,"incarnation":`, &s.Incarnation)
	codec.Flag(c, `,"exclusive":`, &s.Exclusive)
	codec.Text(c, `,"superseded_by":`, &s.SupersededBy)
	codec.Number(c, `,"epoch":`, &s.Epoch)
	codec.Flag(c, `,"owned":`, &s.Owned)
	codec.Some(c, `,"left":`, &s.Left)
	codec.Rest(c, `,"waits_for":`, len(s.WaitsFor) > 0, &s.WaitsFor)
	codec.Text(c, `,"phase":`, &s.Phase)
	codec.Number(c, `,"seq":`, &s.Seq)
	codec.Number(c, `,"rules":`, &s.Rules)
}

func turnFields(c *codec.Codec, t *Turn) {
	codec.Text(c, `{"id":`, &t.ID)
	codec.Text(c, `,"cause":`, &t.Cause)
	codec.Flag(c, `,"synthetic":`, &t.Synthetic)
	codec.Some(c, `,"of_turn":`, &t.OfTurn)
	codec.Some(c, `,"message":`, &t.Message)
	codec.SomeNumber(c, `,"message_seq":`, &t.MessageSeq)
	codec.List(c, `,"prompts":`, `{"prompt":`, &t.Prompts, carriedFields)
	codec.Some(c, `,"compaction":`, &t.Compaction)
	codec.Time(c, `,"since":`, &t.Since)
	codec.Number(c, `,"attempt":`, &t.Attempt)
	codec.Number(c, `,"epoch":`, &t.Epoch)
	codec.SomeNumber(c, `,"decided_seq":`, &t.DecidedSeq)
	codec.Opaque(c, `,"options":`, &t.Options)
	c.Mark(`}`)
}

func lastTurnFields(c *codec.Codec, t *LastTurn) {
	codec.Text(c, `{"id":`, &t.ID)
	codec.Text(c, `,"outcome":`, &t.Outcome)
	codec.Some(c, `,"reason":`, &t.Reason)
	codec.Time(c, `,"at":`, &t.At)
	codec.Object(c, `,"error":`, &t.Error, failureFields)
	codec.Some(c, `,"message":`, &t.Message)
	codec.SomeNumber(c, `,"message_seq":`, &t.MessageSeq)
	codec.List(c, `,"prompts":`, `{"prompt":`, &t.Prompts, carriedFields)
	codec.Opaque(c, `,"options":`, &t.Options)
	codec.Some(c, `,"cause":`, &t.Cause)
	codec.Some(c, `,"of_turn":`, &t.OfTurn)
	codec.Number(c, `,"attempt":`, &t.Attempt)
	codec.Flag(c, `,"synthetic":`, &t.Synthetic)
	codec.Flag(c, `,"had_output":`, &t.HadOutput)
	codec.Some(c, `,"actor":`, &t.Actor)
	codec.Number(c, `,"seq":`, &t.Seq)
	c.Mark(`}`)
}

func carriedFields(c *codec.Codec, p *Carried) {
	codec.Text(c, `{"prompt":`, &p.Prompt)
	codec.Text(c, `,"status":`, &p.Status)
	codec.Number(c, `,"seq":`, &p.Seq)
	codec.SomeNumber(c, `,"asked":`, &p.Asked)
	codec.SomeNumber(c, `,"had":`, &p.Had)
	codec.SomeFlag(c, `,"quiet":`, &p.Quiet)
	c.Mark(`}`)
}

func messageFields(c *codec.Codec, m *Message) {
	codec.Text(c, `{"message":`, &m.ID)
	codec.Number(c, `,"seq":`, &m.Seq)
	codec.Flag(c, `,"synthetic":`, &m.Synthetic)
	codec.Time(c, `,"at":`, &m.At)
	c.Mark(`}`)
}

func usageFields(c *codec.Codec, u *Usage) {
	codec.Number(c, `{"tokens":{"input":`, &u.Tokens.Input)
	codec.Number(c, `,"cache_read":`, &u.Tokens.CacheRead)
	codec.Number(c, `,"cache_write":`, &u.Tokens.CacheWrite)
	codec.Number(c, `,"output":`, &u.Tokens.Output)
	codec.Number(c, `,"reasoning":`, &u.Tokens.Reasoning)
	codec.Number(c, `},"used":`, &u.Used)
	codec.Number(c, `,"limit":`, &u.Limit)
	codec.Float(c, `,"percent":`, &u.Percent)
	codec.Flag(c, `,"warn":`, &u.Warn)
	codec.Time(c, `,"at":`, &u.At)
	c.Mark(`}`)
}

func policyFields(c *codec.Codec, p *events.Policy) {
	codec.Flag(c, `,"policy":{"auto_retry":`, &p.AutoRetry)
	codec.Number(c, `,"retry_max":`, &p.RetryMax)
	codec.Text(c, `,"resume":`, &p.Resume)
	codec.Number(c, `,"resume_max":`, &p.ResumeMax)
	codec.Float(c, `,"compaction_threshold":`, &p.CompactionThreshold)
	codec.Number(c, `,"context_limit":`, &p.ContextLimit)
	codec.Number(c, `,"idle_compaction_after_s":`, &p.IdleCompactionAfterS)
	codec.Number(c, `,"stall_after_s":`, &p.StallAfterS)
	c.Mark(`}`)
}

func endingFields(c *codec.Codec, e *Ending) {
	codec.Text(c, `{"entity":`, &e.Entity)
	codec.Text(c, `,"id":`, &e.ID)
	codec.Some(c, `,"name":`, &e.Name)
	codec.Text(c, `,"outcome":`, &e.Outcome)
	codec.Some(c, `,"reason":`, &e.Reason)
	codec.Time(c, `,"at":`, &e.At)
	codec.Number(c, `,"seq":`, &e.Seq)
	codec.Nullable(c, `,"late":`, &e.Late, lateFields)
	codec.SomeNumber(c, `,"opened_seq":`, &e.OpenedSeq)
	codec.SomeTime(c, `,"since":`, &e.Since)
	codec.SomeTime(c, `,"delivered_at":`, &e.DeliveredAt)
	codec.SomeNumber(c, `,"epoch":`, &e.Epoch)
	codec.Some(c, `,"call":`, &e.Call)
	codec.Some(c, `,"tool":`, &e.Tool)
	c.Mark(`}`)
}

func lateFields(c *codec.Codec, l *Late) {
	codec.Number(c, `{"seq":`, &l.Seq)
	codec.Time(c, `,"at":`, &l.At)
	c.Mark(`}`)
}

// pendingFields has three fields, of which the first that is there opens the bracket.
func pendingFields(c *codec.Codec, p *Pending) {
	codec.Object(c, `,"pending":{"turn":`, &p.Turn, pendingTurnFields)
	if p.Turn != nil {
		codec.Object(c, `,"stop":`, &p.Stop, pendingStopFields)
	} else {
		codec.Object(c, `,"pending":{"stop":`, &p.Stop, pendingStopFields)
	}
	if p.Turn != nil || p.Stop != nil {
		codec.Object(c, `,"compaction":`, &p.Compaction, pendingCompactionFields)
	} else {
		codec.Object(c, `,"pending":{"compaction":`, &p.Compaction, pendingCompactionFields)
	}
	if p.Turn != nil || p.Stop != nil || p.Compaction != nil {
		c.Mark(`}`)
	}
}

func pendingTurnFields(c *codec.Codec, t *PendingTurn) {
	codec.Text(c, `{"turn":`, &t.ID)
	codec.Text(c, `,"cause":`, &t.Cause)
	codec.Some(c, `,"of_turn":`, &t.OfTurn)
	codec.Some(c, `,"message":`, &t.Message)
	codec.SomeNumber(c, `,"message_seq":`, &t.MessageSeq)
	codec.Number(c, `,"attempt":`, &t.Attempt)
	codec.Opaque(c, `,"options":`, &t.Options)
	codec.Some(c, `,"compaction":`, &t.Compaction)
	codec.Some(c, `,"prompt":`, &t.Prompt)
	codec.List(c, `,"prompts":`, `{"prompt":`, &t.Prompts, carriedFields)
	codec.Some(c, `,"by":`, &t.By)
	codec.SomeNumber(c, `,"held":`, &t.Held)
	codec.Time(c, `,"at":`, &t.At)
	codec.Number(c, `,"seq":`, &t.Seq)
	c.Mark(`}`)
}

func pendingStopFields(c *codec.Codec, s *PendingStop) {
	codec.Text(c, `{"turn":`, &s.Turn)
	codec.Text(c, `,"actor":`, &s.Actor)
	codec.Some(c, `,"by":`, &s.By)
	codec.Some(c, `,"reason":`, &s.Reason)
	codec.Time(c, `,"at":`, &s.At)
	codec.Number(c, `,"seq":`, &s.Seq)
	c.Mark(`}`)
}

func pendingCompactionFields(c *codec.Codec, p *PendingCompaction) {
	codec.Text(c, `{"compaction":`, &p.ID)
	codec.Text(c, `,"reason":`, &p.Reason)
	codec.Some(c, `,"message":`, &p.Message)
	codec.Time(c, `,"at":`, &p.At)
	codec.Number(c, `,"seq":`, &p.Seq)
	c.Mark(`}`)
}

// retryFields begins behind the bracket: its first two fields may be missing.
func retryFields(c *codec.Codec, r *Retry) {
	codec.Some(c, `"state":`, &r.State)
	if r.State != "" {
		codec.Some(c, `,"turn":`, &r.Turn)
	} else {
		codec.Some(c, `"turn":`, &r.Turn)
	}
	if r.State != "" || r.Turn != "" {
		codec.Number(c, `,"attempt":`, &r.Attempt)
	} else {
		codec.Number(c, `"attempt":`, &r.Attempt)
	}
	codec.SomeTime(c, `,"due_at":`, &r.DueAt)
	codec.Some(c, `,"reason":`, &r.Reason)
	codec.Object(c, `,"error":`, &r.Error, failureFields)
	codec.Number(c, `,"same_failures":`, &r.SameFailures)
	codec.Number(c, `,"resumes":`, &r.Resumes)
	codec.SomeNumber(c, `,"overflows":`, &r.Overflows)
	c.Mark(`}`)
}

func failureFields(c *codec.Codec, f *events.Failure) {
	codec.Text(c, `{"kind":`, &f.Kind)
	codec.Text(c, `,"text":`, &f.Text)
	codec.SomeNumber(c, `,"status":`, &f.Status)
	codec.SomeNumber(c, `,"retry_after_ms":`, &f.RetryAfterMS)
	c.Mark(`}`)
}

// EncodeView is JSON as documents and views are stored: without the escapes that only HTML needs, which would make what
// is opaque grow beyond the limits it was accepted under.
func EncodeView(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	// without the line feed that Encode ends with
	return buf.Bytes()[:buf.Len()-1], nil
}

// Decode reads a stored document. It fails with [ErrNewerLayout] on one of a newer version: that is for a newer build
// to write, and folding on from half of it would lose the other half.
func Decode(doc []byte) (*State, error) { return new(Reader).Decode(doc) }

// decodeThoroughly reads documents that this build has not written.
func decodeThoroughly(doc []byte) (*State, error) {
	var stored struct {
		State
		Head json.RawMessage `json:"head"`
	}
	s := &stored.State
	if err := json.Unmarshal(doc, &stored); err != nil {
		var v struct {
			V int `json:"v"`
		}
		if json.Unmarshal(doc, &v) == nil && v.V > Version {
			return nil, fmt.Errorf("%w: version %d, this build knows %d", ErrNewerLayout, v.V, Version)
		}
		return nil, fmt.Errorf("%w: document: %v", events.ErrMalformed, err)
	}
	if s.V > Version {
		return nil, fmt.Errorf("%w: version %d, this build knows %d", ErrNewerLayout, s.V, Version)
	}
	if s.V < 1 {
		return nil, fmt.Errorf("%w: document: no version", events.ErrMalformed)
	}
	if err := checkHead(stored.Head); err != nil {
		return nil, fmt.Errorf("%w: document: %v", events.ErrMalformed, err)
	}
	maps.DeleteFunc(s.Tools, func(_ string, c *Tool) bool { return c == nil })
	maps.DeleteFunc(s.Prompts, func(_ string, p *Prompt) bool { return p == nil })
	return s, nil
}
