package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// New is a session of which only the name is known.
func New(r events.Ref) *State {
	return &State{V: Version, Harness: r.Harness, Session: r.Session, Root: r.Session, Phase: Idle, Policy: events.DefaultPolicy()}
}

// Ref is the session's name.
func (s *State) Ref() events.Ref { return events.Ref{Harness: s.Harness, Session: s.Session} }

// Opened says whether the session has begun. Before that a State only counts what was ignored.
func (s *State) Opened() bool { return s.Epoch > 0 || s.Closed != nil }

// Encode is the document as it is stored. Equal states give equal bytes. The endings, which are most of a document and
// all alike, are written by hand: that halves the time.
func (s *State) Encode() ([]byte, error) {
	rest := *s
	rest.Recent = nil
	b, err := encodeInto(make([]byte, 0, documentBytesTypical+endingBytesTypical*len(s.Recent)), &rest)
	if err != nil {
		return nil, fmt.Errorf("session: encode %s: %w", s.Ref(), err)
	}
	if len(s.Recent) == 0 {
		return b, nil
	}
	b = append(b[:len(b)-1], `,"recent":[`...)
	for i := range s.Recent {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.Recent[i].appendJSON(b)
	}
	return append(b, `]}`...), nil
}

// What a document without endings, and an ending, usually take, in bytes of JSON.
const (
	documentBytesTypical = 2 << 10
	endingBytesTypical   = 180
)

// appendJSON writes an ending as encoding/json does.
func (e *Ending) appendJSON(b []byte) []byte {
	b = appendText(b, `{"entity":`, e.Entity)
	b = appendText(b, `,"id":`, e.ID)
	b = appendSome(b, `,"name":`, e.Name)
	b = appendText(b, `,"outcome":`, e.Outcome)
	b = appendSome(b, `,"reason":`, e.Reason)
	b = appendTime(b, `,"at":`, e.At)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"late":`...)
	if e.Late == nil {
		b = append(b, `null`...)
	} else {
		b = append(b, `{"seq":`...)
		b = strconv.AppendUint(b, e.Late.Seq, 10)
		b = append(appendTime(b, `,"at":`, e.Late.At), '}')
	}
	if e.OpenedSeq != 0 {
		b = append(b, `,"opened_seq":`...)
		b = strconv.AppendUint(b, e.OpenedSeq, 10)
	}
	if !e.Since.IsZero() {
		b = appendTime(b, `,"since":`, e.Since)
	}
	if !e.DeliveredAt.IsZero() {
		b = appendTime(b, `,"delivered_at":`, e.DeliveredAt)
	}
	if e.Epoch != 0 {
		b = append(b, `,"epoch":`...)
		b = strconv.AppendUint(b, e.Epoch, 10)
	}
	b = appendSome(b, `,"call":`, e.Call)
	b = appendSome(b, `,"tool":`, e.Tool)
	return append(b, '}')
}

func appendTime(b []byte, name string, at time.Time) []byte {
	b = append(append(b, name...), '"')
	return append(at.AppendFormat(b, time.RFC3339Nano), '"')
}

func appendSome(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(b, name, text)
}

func appendText(b []byte, name, text string) []byte {
	b = append(b, name...)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(b, encode(text)...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// EncodeView is JSON as documents and views are stored: without the escapes that only HTML needs, which would make what
// is opaque grow beyond the limits it was accepted under.
func EncodeView(v any) ([]byte, error) { return encodeInto(nil, v) }

// encodeInto uses this space for as long as it lasts.
func encodeInto(space []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(space)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes()[:buf.Len()-1], nil // without the line feed that Encode ends with
}

// Decode reads a stored document. It fails with [ErrNewerLayout] on one of a newer version: that is for a newer build
// to write, and folding on from half of it would lose the other half.
func Decode(doc []byte) (*State, error) {
	var s State
	if err := json.Unmarshal(doc, &s); err != nil {
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
	maps.DeleteFunc(s.Tools, func(_ string, c *Tool) bool { return c == nil })
	maps.DeleteFunc(s.Prompts, func(_ string, p *Prompt) bool { return p == nil })
	return &s, nil
}

// Clone is a copy that shares nothing which folding changes.
func (s *State) Clone() *State {
	c := *s
	c.Tools, c.Prompts = cloneMap(s.Tools), cloneMap(s.Prompts)
	c.WaitsFor = append([]events.WaitFor(nil), s.WaitsFor...)
	c.Queue = append([]Message(nil), s.Queue...)
	c.Recent = append([]Ending(nil), s.Recent...)
	c.Turn, c.LastTurn, c.Closed = clonePtr(s.Turn), clonePtr(s.LastTurn), clonePtr(s.Closed)
	c.Compaction, c.LastCompaction, c.Usage = clonePtr(s.Compaction), clonePtr(s.LastCompaction), clonePtr(s.Usage)
	c.Ignored.Last = clonePtr(s.Ignored.Last)
	return &c
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func cloneMap[T any](m map[string]*T) map[string]*T {
	if m == nil {
		return nil
	}
	c := make(map[string]*T, len(m))
	for k, v := range m {
		c[k] = clonePtr(v)
	}
	return c
}

// ViewClone is a copy of what the views are derived from, and of nothing else: what [BlockersChanged] and [WorkChanged]
// need of the state before.
func (s *State) ViewClone() *State {
	c := &State{Epoch: s.Epoch, Owned: s.Owned, Root: s.Root, Pending: s.Pending, Prompts: cloneMap(s.Prompts)}
	for i := range s.Recent {
		if s.Recent[i].Entity == EntityPrompt {
			c.Recent = append(c.Recent, s.Recent[i])
		}
	}
	return c
}
