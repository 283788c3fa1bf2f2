package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

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

// Encode is the document as it is stored. Equal states give equal bytes.
func (s *State) Encode() ([]byte, error) {
	b, err := EncodeView(s)
	if err != nil {
		return nil, fmt.Errorf("session: encode %s: %w", s.Ref(), err)
	}
	return b, nil
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
