package events

import "time"

// RetryScheduled says that a failed turn will be tried again. DueAt is the broker's time of the failure + DelayMS.
type RetryScheduled struct {
	Turn    string    `json:"turn"`
	Attempt int       `json:"attempt"` // counted from 1
	DelayMS int64     `json:"delay_ms"`
	DueAt   time.Time `json:"due_at"`
	Error   Failure   `json:"error"`
}

// Kind implements [Fact].
func (RetryScheduled) Kind() Kind { return "retry.scheduled" }

// Subject implements [Fact].
func (f RetryScheduled) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f RetryScheduled) Validate() error { return needID("turn", f.Turn) }

// RetryAbandoned says that a failed turn will not be tried again by itself.
type RetryAbandoned struct {
	Turn    string `json:"turn"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"`
}

// Kind implements [Fact].
func (RetryAbandoned) Kind() Kind { return "retry.abandoned" }

// Subject implements [Fact].
func (f RetryAbandoned) Subject() string { return f.Turn }

// Validate implements [Fact].
func (f RetryAbandoned) Validate() error { return needID("turn", f.Turn) }
