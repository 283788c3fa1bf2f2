package session

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/codec"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// HeadRules numbers the rules by which [State.Head] is computed. Raise it when the head of an existing state changes: a
// build computes the head of a document again when the stored head has another number.
const HeadRules = 1

// Head is the first part of a stored document. It tells a service whether it has to decode the rest. [State.Head]
// computes it from the state and [State.Encode] stores it; it is not part of a [State], so it cannot disagree with one.
type Head struct {
	V     int    `json:"v"`     // HeadRules of the build that wrote it
	Rules int    `json:"rules"` // as in the State, like the fields up to ParentCall
	Epoch uint64 `json:"epoch"`
	Owned bool   `json:"owned"`
	Phase Phase  `json:"phase"`
	Seq   uint64 `json:"seq"`

	Incarnation string    `json:"incarnation"`
	Exclusive   bool      `json:"exclusive"`
	UpdatedAt   time.Time `json:"updated_at,omitzero"`
	Parent      string    `json:"parent,omitempty"`
	ParentCall  string    `json:"parent_call,omitempty"`

	// Due is true if a service has to check the session now, whatever the clock says.
	Due bool `json:"due"`
	// CheckAt is the earliest instant at which a service has to check the session, whatever its owner does. It is zero
	// if the session needs nothing before its next commit.
	CheckAt time.Time `json:"look_at,omitzero"`
	// Timer is true if a check needs a timer at the broker, so that a service has to decode each new document. It is
	// false while CheckAt is only the instant at which the owner will have been silent for too long.
	Timer bool `json:"timer"`
	// Recover is true if the reconciler has to check whatever the owner does: something is open of an owner that left,
	// or a decision is owed that nothing delivers.
	Recover bool `json:"recover"`
	// Views is true if entries of the people's or the harness's view have to exist.
	Views bool `json:"views"`
}

// Head computes the head of a state. It is the only place that decides what is in a head.
func (s *State) Head() Head {
	l := s.checks()
	return Head{V: HeadRules, Rules: s.Rules, Epoch: s.Epoch, Owned: s.Owned, Phase: s.Phase, Seq: s.Seq,
		Incarnation: s.Incarnation, Exclusive: s.Exclusive, UpdatedAt: s.UpdatedAt, Parent: s.Parent,
		ParentCall: s.ParentCall, Due: l.due, CheckAt: l.at, Timer: l.timer, Recover: s.Leftover(),
		Views: len(s.Prompts) > 0 || s.HasWork()}
}

// Outdated reports whether the document was folded by older rules: see [State.Outdated].
func (h *Head) Outdated() bool { return h.Rules < FoldRules }

// Open reports whether the session is opened and not closed.
func (h *Head) Open() bool { return h.Epoch > 0 && h.Phase != Closed }

// DueWithin reports whether a service has to check the session within this time from now.
func (h *Head) DueWithin(horizon time.Duration, now events.Clock) bool {
	return h.Due || !h.CheckAt.IsZero() && !now.Steps.Earliest(h.CheckAt).After(now.Now.Add(horizon))
}

// headFields is the fields of a Head, in their order. The phase stands before the seq, as in the document: a build that
// searches for the two finds them here.
func headFields(c *codec.Codec, h *Head) {
	codec.Number(c, `"v":`, &h.V)
	codec.Number(c, `,"rules":`, &h.Rules)
	codec.Number(c, `,"epoch":`, &h.Epoch)
	codec.Flag(c, `,"owned":`, &h.Owned)
	codec.Word(c, `,"phase":`, &h.Phase, phases)
	codec.Number(c, `,"seq":`, &h.Seq)
	codec.Text(c, `,"incarnation":`, &h.Incarnation)
	codec.Flag(c, `,"exclusive":`, &h.Exclusive)
	codec.SomeTime(c, `,"updated_at":`, &h.UpdatedAt)
	codec.Some(c, `,"parent":`, &h.Parent)
	codec.Some(c, `,"parent_call":`, &h.ParentCall)
	codec.Flag(c, `,"due":`, &h.Due)
	codec.SomeTime(c, `,"look_at":`, &h.CheckAt)
	codec.Flag(c, `,"timer":`, &h.Timer)
	codec.Flag(c, `,"recover":`, &h.Recover)
	codec.Flag(c, `,"views":`, &h.Views)
	c.Mark(`}`)
}

// start is the version of a document and its head, which a document of an older build does not have.
func start(c *codec.Codec, v *int, h *Head) {
	codec.Number(c, `{"v":`, v)
	if codec.Optional(c, `,"head":{`, true) {
		headFields(c, h)
	}
}

// ReadHead returns the head of a stored document. It does not read the rest of a document whose head this build has
// written, or one with the same [HeadRules]. It decodes any other document and computes the head. An error is one of
// [Decode].
func ReadHead(doc []byte) (Head, error) {
	if h, ok := storedHead(codec.Reader(doc)); ok {
		return h, nil
	}
	return computedHead(doc)
}

// storedHead reads the head of a document that has one of this build.
func storedHead(c *codec.Codec) (h Head, ok bool) {
	v := 0
	start(c, &v, &h)
	return h, c.Going() && v == Version && h.V == HeadRules
}

// computedHead decodes a document and computes its head.
func computedHead(doc []byte) (Head, error) {
	s, err := Decode(doc)
	if err != nil {
		return Head{}, err
	}
	return s.Head(), nil
}

// Reader reads many documents, one after the other. It is for one goroutine at a time; the zero Reader is ready.
type Reader struct{ c codec.Codec }

// Head is [ReadHead].
func (r *Reader) Head(doc []byte) (Head, error) {
	r.c.Read(doc)
	if h, ok := storedHead(&r.c); ok {
		return h, nil
	}
	return computedHead(doc)
}

// Decode is [Decode].
func (r *Reader) Decode(doc []byte) (*State, error) {
	if s, ok := r.quickly(doc); ok {
		return s, nil
	}
	return decodeThoroughly(doc)
}

// quickly decodes documents in the form that this build writes, with or without a head.
func (r *Reader) quickly(doc []byte) (*State, bool) {
	var s State
	var h Head
	r.c.Read(doc)
	document(&r.c, &s, &h)
	return &s, r.c.Ended() && s.V == Version
}

// checkHead returns an error for a head that is not one of this build, although it has the same [HeadRules] number.
func checkHead(raw json.RawMessage) error {
	if raw == nil {
		// a document of an older build
		return nil
	}
	var number struct {
		V *int `json:"v"`
	}
	switch err := json.Unmarshal(raw, &number); {
	case err != nil:
		return fmt.Errorf("head: %w", err)
	case number.V == nil:
		return fmt.Errorf("head: no number")
	case *number.V != HeadRules:
		// another build's, which computes it by other rules
		return nil
	}
	var h Head
	if err := json.Unmarshal(raw, &h); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	return nil
}
