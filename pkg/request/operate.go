package request

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Rebuild makes documents and views from the log again: of one session, of one harness, or all.
type Rebuild struct {
	Harness string `json:"harness,omitempty"`
	Session string `json:"session,omitempty"`
	// AcceptLoss also overwrites or removes documents that know commits which the log has lost.
	AcceptLoss bool `json:"accept_loss,omitempty"`
	// Limit asks for a part: about so many sessions, at most [RebuildMax]. 0 without After: everything in one request.
	Limit int `json:"limit,omitempty"`
	// After is the Next of the part before. Empty: the beginning.
	After string `json:"after,omitempty"`
}

// RebuildMax is how many sessions a part of a rebuild has at most.
const RebuildMax = 1_000

// Validate checks the limit, and the session, if one is named.
func (q Rebuild) Validate() error {
	if q.Limit < 0 || q.Limit > RebuildMax {
		return &events.FieldError{Field: "limit",
			Err: fmt.Errorf("%w: %d: want 0 to %d", events.ErrMalformed, q.Limit, RebuildMax)}
	}
	if q.Harness == "" || q.Session == "" {
		return nil
	}
	return events.Ref{Harness: q.Harness, Session: q.Session}.Validate()
}

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	Sessions int      `json:"sessions"`
	Changed  int      `json:"changed"` // documents that were not what the log says
	Removed  int      `json:"removed"` // documents without a log
	Views    int      `json:"views"`   // entries written or removed
	Lost     int      `json:"lost"`    // sessions of which the log has lost commits: their documents are kept
	Failed   []string `json:"failed,omitempty"`
	TookMS   int64    `json:"took_ms"`
	// Next is the After of the next part; empty after the last one, and for a rebuild in one request.
	Next string `json:"next,omitempty"`
	// Percent is how much of the log, and then of the documents, the parts up to this one have read.
	Percent int `json:"percent,omitempty"`
}

// Sweep asks for a recovery pass: over one session, those of one harness, or all. A dry run appends nothing.
type Sweep struct {
	Harness string `json:"harness,omitempty"`
	Session string `json:"session,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// Validate checks the names that are set. A session needs its harness.
func (q Sweep) Validate() error {
	one := events.Ref{Harness: q.Harness, Session: q.Session}
	if one.Harness == "" && one.Session == "" {
		one.Harness = "any"
	}
	if one.Session == "" {
		one.Session = "any"
	}
	return one.Validate()
}

// Swept is the result of a pass.
type Swept struct {
	// sessions that were looked at closely: something of them is open, or their owner is dead
	Sessions int            `json:"sessions"`
	Facts    map[string]int `json:"facts"`           // appended (or that would be), by kind
	Failed   int            `json:"failed"`          // sessions that could not be recovered
	Would    []Would        `json:"would,omitempty"` // of a dry run
	More     int            `json:"more,omitempty"`  // sessions of a dry run that are not listed
	Suspects []Suspect      `json:"suspects,omitempty"`
}

// Would is what a dry run would append to one session.
type Would struct {
	events.Ref
	Owner string      `json:"owner"` // alive, starting, dead, unknown or none
	Facts []WouldFact `json:"facts"`
	More  int         `json:"more,omitempty"` // facts that are not listed
}

// WouldFact is a fact that a dry run would append.
type WouldFact struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

// Suspect is a session that could not be read, decided or written.
type Suspect struct {
	events.Ref
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since"`
	Failures int       `json:"failures"`
}

// Scope names a harness or one of its sessions. Empty: all.
type Scope struct {
	Harness string `json:"harness,omitempty"`
	Session string `json:"session,omitempty"`
}

// Validate returns nil: a report is about all sessions.
func (Scope) Validate() error { return nil }

// Report is what a reconciler has done since it was started.
type Report struct {
	Since    time.Time `json:"since"`
	Instance string    `json:"instance"`
	Counts   []Count   `json:"counts"`
	LastPass *LastPass `json:"last_pass,omitempty"`
	Suspects []Suspect `json:"suspects"`
}

// Count is how often an outcome was recorded for a reason.
type Count struct {
	Outcome string `json:"outcome"` // kind of the fact
	Reason  string `json:"reason"`
	Count   int    `json:"count"`
}

// LastPass is the pass that ended last.
type LastPass struct {
	At       time.Time `json:"at"` // its end, by the reconciler's clock
	TookMS   int64     `json:"took_ms"`
	Harness  string    `json:"harness,omitempty"` // empty: all
	Sessions int       `json:"sessions"`
	Facts    int       `json:"facts"`
	Failed   int       `json:"failed"`
}
