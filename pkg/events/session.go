package events

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode"
)

// SessionOpened opens a session with epoch 1. Root is required with Parent: the id of the outermost session.
type SessionOpened struct {
	Incarnation  string          `json:"incarnation"`
	Exclusive    *bool           `json:"exclusive,omitempty"` // default true
	Parent       string          `json:"parent,omitempty"`
	ParentCall   string          `json:"parent_call,omitempty"` // the parent's call that waits for this session
	Root         string          `json:"root,omitempty"`
	Title        string          `json:"title,omitempty"`
	Agent        string          `json:"agent,omitempty"`
	Model        string          `json:"model,omitempty"`
	ContextLimit int64           `json:"context_limit,omitempty"` // tokens
	Policy       *PolicyPatch    `json:"policy,omitempty"`
	Native       json.RawMessage `json:"native,omitempty"` // data that the harness stores with it, opaque
}

// Kind implements [Fact].
func (SessionOpened) Kind() Kind { return "session.opened" }

// Subject implements [Fact].
func (SessionOpened) Subject() string { return "" }

// Validate implements [Fact].
func (f SessionOpened) Validate() error {
	if f.Parent != "" && f.Root == "" {
		return bad("root", "required with parent")
	}
	return first(
		needID("incarnation", f.Incarnation),
		mayID("parent", f.Parent),
		mayID("parent_call", f.ParentCall),
		mayID("root", f.Root),
		f.Policy.Validate(),
	)
}

// SessionClaimed takes a session over; the event's epoch is the old one + 1.
type SessionClaimed struct {
	Incarnation string `json:"incarnation"`
	Exclusive   *bool  `json:"exclusive,omitempty"` // default true
}

// Kind implements [Fact].
func (SessionClaimed) Kind() Kind { return "session.claimed" }

// Subject implements [Fact].
func (SessionClaimed) Subject() string { return "" }

// Validate implements [Fact].
func (f SessionClaimed) Validate() error { return needID("incarnation", f.Incarnation) }

// SessionConfigured changes the policy.
type SessionConfigured struct {
	Policy *PolicyPatch `json:"policy"` // null or absent: unchanged
	// lifts abandon marks that a new key or provider cures
	ProviderChanged bool   `json:"provider_changed,omitempty"`
	By              string `json:"by"`
}

// Kind implements [Fact].
func (SessionConfigured) Kind() Kind { return "session.configured" }

// Subject implements [Fact].
func (SessionConfigured) Subject() string { return "" }

// Validate implements [Fact].
func (f SessionConfigured) Validate() error { return f.Policy.Validate() }

// SessionReleased says the owner left in good order.
type SessionReleased struct {
	Reason string `json:"reason,omitempty"`
}

// Kind implements [Fact].
func (SessionReleased) Kind() Kind { return "session.released" }

// Subject implements [Fact].
func (SessionReleased) Subject() string { return "" }

// Validate implements [Fact].
func (SessionReleased) Validate() error { return nil }

// WaitFor is a call that is held until a child session has settled.
type WaitFor struct {
	Call  string `json:"call"`
	Child string `json:"child"`
}

// SessionOrphaned says the owner is gone. It is the fence: nothing its incarnation writes afterwards counts.
type SessionOrphaned struct {
	Reason       string    `json:"reason"` // owner-lost
	Incarnation  string    `json:"incarnation"`
	SupersededBy string    `json:"superseded_by,omitempty"` // the incarnation that took its place
	Detail       string    `json:"detail,omitempty"`        // how the owner ended, if its supervisor saw it: one line
	WaitsFor     []WaitFor `json:"waits_for,omitempty"`
}

// Kind implements [Fact].
func (SessionOrphaned) Kind() Kind { return "session.orphaned" }

// Subject implements [Fact].
func (SessionOrphaned) Subject() string { return "" }

// Validate implements [Fact].
func (f SessionOrphaned) Validate() error {
	for _, w := range f.WaitsFor {
		if err := first(needID("waits_for.call", w.Call), needID("waits_for.child", w.Child)); err != nil {
			return err
		}
	}
	if f.Detail != Detail(f.Detail) {
		return bad("detail", "want one line of at most %d bytes", DetailBytesMax)
	}
	return needID("incarnation", f.Incarnation)
}

// DetailBytesMax is the maximum length of a detail, in bytes.
const DetailBytesMax = 200

// Detail returns a text as one line of at most [DetailBytesMax] bytes. A text that is cut ends in "…".
func Detail(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "?"))
	if s = strings.TrimSpace(s); len(s) <= DetailBytesMax {
		return s
	}
	const mark = "…"
	return strings.TrimSpace(strings.ToValidUTF8(s[:DetailBytesMax-len(mark)], "")) + mark
}

// SessionClosed ends the session and everything open in it. It is final.
type SessionClosed struct {
	Reason string `json:"reason"` // finished, archived, deleted
	By     string `json:"by,omitempty"`
}

// Kind implements [Fact].
func (SessionClosed) Kind() Kind { return "session.closed" }

// Subject implements [Fact].
func (SessionClosed) Subject() string { return "" }

// Validate implements [Fact].
func (SessionClosed) Validate() error { return nil }

// Policy configures what happens to a session automatically. It is always complete; [DefaultPolicy] is the default.
type Policy struct {
	AutoRetry            bool    `json:"auto_retry"`
	RetryMax             int     `json:"retry_max"`               // attempts, 0: no bound but no-progress
	Resume               string  `json:"resume"`                  // auto or hold
	ResumeMax            int     `json:"resume_max"`              // continuations after crashes without progress
	CompactionThreshold  float64 `json:"compaction_threshold"`    // part of the context limit, 0.1 to 1.0; 1.0 is off
	ContextLimit         int64   `json:"context_limit"`           // tokens, 0: what the harness reports
	IdleCompactionAfterS int64   `json:"idle_compaction_after_s"` // seconds, 0: off
	StallAfterS          int64   `json:"stall_after_s"`           // seconds, 0: off
}

// StallAfter returns how long a turn or a compaction may be silent; 0: for ever.
func (p Policy) StallAfter() time.Duration { return time.Duration(p.StallAfterS) * time.Second }

// Values of [Policy] Resume.
const (
	ResumeAuto = "auto"
	ResumeHold = "hold"
)

// Limits of a policy's numbers.
const (
	policyCountMax    = 1_000_000
	policyTokensMax   = 1_000_000_000
	policySecondsMax  = 30 * 24 * 3600
	thresholdMin      = 0.1
	thresholdMax      = 1.0
	thresholdDefault  = 0.7
	resumeMaxDefault  = 10
	stallAfterDefault = 600
)

// DefaultPolicy returns the policy of a session without one.
func DefaultPolicy() Policy {
	return Policy{
		AutoRetry:           true,
		Resume:              ResumeAuto,
		ResumeMax:           resumeMaxDefault,
		CompactionThreshold: thresholdDefault,
		StallAfterS:         stallAfterDefault,
	}
}

// Validate returns an error for a value out of range, with the field policy.<name>.
func (p Policy) Validate() error {
	switch {
	case p.RetryMax < 0 || p.RetryMax > policyCountMax:
		return bad("policy.retry_max", "%d: want 0 to %d attempts", p.RetryMax, policyCountMax)
	case p.Resume != ResumeAuto && p.Resume != ResumeHold:
		return bad("policy.resume", "%q: want auto or hold", p.Resume)
	case p.ResumeMax < 0 || p.ResumeMax > policyCountMax:
		return bad("policy.resume_max", "%d: want 0 to %d", p.ResumeMax, policyCountMax)
	case math.IsNaN(p.CompactionThreshold) || p.CompactionThreshold < thresholdMin ||
		p.CompactionThreshold > thresholdMax:
		return bad(
			"policy.compaction_threshold",
			"%v: want %v to %v",
			p.CompactionThreshold,
			thresholdMin,
			thresholdMax,
		)
	case p.ContextLimit < 0 || p.ContextLimit > policyTokensMax:
		return bad("policy.context_limit", "%d: want 0 to %d tokens", p.ContextLimit, policyTokensMax)
	case p.IdleCompactionAfterS < 0 || p.IdleCompactionAfterS > policySecondsMax:
		return bad(
			"policy.idle_compaction_after_s",
			"%d: want 0 to %d seconds",
			p.IdleCompactionAfterS,
			policySecondsMax,
		)
	case p.StallAfterS < 0 || p.StallAfterS > policySecondsMax:
		return bad("policy.stall_after_s", "%d: want 0 to %d seconds", p.StallAfterS, policySecondsMax)
	}
	return nil
}

// Setting is one field of a patch: absent (unchanged), null (back to the default) or a value.
type Setting[T any] struct {
	Present bool
	Null    bool
	Value   T
}

// Set returns a setting with a value.
func Set[T any](v T) Setting[T] { return Setting[T]{Present: true, Value: v} }

// Unset returns a setting that restores the default.
func Unset[T any]() Setting[T] { return Setting[T]{Present: true, Null: true} }

// IsZero reports whether the field is absent, so that encoding omits it.
func (s Setting[T]) IsZero() bool { return !s.Present }

// MarshalJSON writes null or the value.
func (s Setting[T]) MarshalJSON() ([]byte, error) {
	if s.Null || !s.Present {
		return []byte("null"), nil
	}
	return json.Marshal(s.Value)
}

// UnmarshalJSON reads null or a value.
func (s *Setting[T]) UnmarshalJSON(raw []byte) error {
	s.Present, s.Null = true, bytes.Equal(raw, []byte("null"))
	if s.Null {
		return nil
	}
	return json.Unmarshal(raw, &s.Value)
}

func (s Setting[T]) apply(to *T, def T) {
	switch {
	case s.Null:
		*to = def
	case s.Present:
		*to = s.Value
	}
}

// PolicyPatch changes some fields of a [Policy]. A nil patch changes nothing.
type PolicyPatch struct {
	AutoRetry Setting[bool] `json:"auto_retry,omitzero"` // default true
	// attempts, 0 (default): no bound but no-progress
	RetryMax Setting[int]    `json:"retry_max,omitzero"`
	Resume   Setting[string] `json:"resume,omitzero"` // auto (default) or hold
	// continuations after crashes without progress, default 10
	ResumeMax Setting[int] `json:"resume_max,omitzero"`
	// part of the context limit, 0.1 to 1.0, default 0.7; 1.0 is off
	CompactionThreshold Setting[float64] `json:"compaction_threshold,omitzero"`
	// tokens, 0 (default): what the harness reports
	ContextLimit         Setting[int64] `json:"context_limit,omitzero"`
	IdleCompactionAfterS Setting[int64] `json:"idle_compaction_after_s,omitzero"` // seconds, 0 (default): off
	StallAfterS          Setting[int64] `json:"stall_after_s,omitzero"`           // seconds, 0: off, default 600
}

// Apply returns the policy with this patch.
func (p *PolicyPatch) Apply(to Policy) Policy {
	if p == nil {
		return to
	}
	d := DefaultPolicy()
	p.AutoRetry.apply(&to.AutoRetry, d.AutoRetry)
	p.RetryMax.apply(&to.RetryMax, d.RetryMax)
	p.Resume.apply(&to.Resume, d.Resume)
	p.ResumeMax.apply(&to.ResumeMax, d.ResumeMax)
	p.CompactionThreshold.apply(&to.CompactionThreshold, d.CompactionThreshold)
	p.ContextLimit.apply(&to.ContextLimit, d.ContextLimit)
	p.IdleCompactionAfterS.apply(&to.IdleCompactionAfterS, d.IdleCompactionAfterS)
	p.StallAfterS.apply(&to.StallAfterS, d.StallAfterS)
	return to
}

// Validate returns an error for a value out of range. Fields are independent, so it checks the patched default policy.
func (p *PolicyPatch) Validate() error { return p.Apply(DefaultPolicy()).Validate() }
