package events

// Reasons of compactions.
const (
	CompactOnSend    = "on-send"
	CompactMidStream = "mid-stream"
	CompactIdle      = "idle"
	CompactManual    = "manual"
)

// Work that follows a compaction.
const (
	FollowMessage  = "message"
	FollowContinue = "continue"
)

// CompactionRequested is pending work: the conversation shall be compacted.
type CompactionRequested struct {
	Compaction string `json:"compaction"`
	Reason     string `json:"reason"` // on-send, mid-stream, idle, manual
	Used       int64  `json:"used"`   // tokens
	Limit      int64  `json:"limit"`  // tokens
	FollowUp   string `json:"follow_up,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Kind implements [Fact].
func (CompactionRequested) Kind() Kind { return "compaction.requested" }

// Subject implements [Fact].
func (f CompactionRequested) Subject() string { return f.Compaction }

// Validate implements [Fact].
func (f CompactionRequested) Validate() error {
	return first(needID("compaction", f.Compaction), mayID("message", f.Message))
}

// CompactionStarted says the harness compacts.
type CompactionStarted struct {
	Compaction string `json:"compaction"`
}

// Kind implements [Fact].
func (CompactionStarted) Kind() Kind { return "compaction.started" }

// Subject implements [Fact].
func (f CompactionStarted) Subject() string { return f.Compaction }

// Validate implements [Fact].
func (f CompactionStarted) Validate() error { return needID("compaction", f.Compaction) }

// CompactionCompleted says the conversation is compacted; earlier usage no longer counts.
type CompactionCompleted struct {
	Compaction string `json:"compaction"`
	UsedAfter  int64  `json:"used_after,omitempty"` // tokens
}

// Kind implements [Fact].
func (CompactionCompleted) Kind() Kind { return "compaction.completed" }

// Subject implements [Fact].
func (f CompactionCompleted) Subject() string { return f.Compaction }

// Validate implements [Fact].
func (f CompactionCompleted) Validate() error { return needID("compaction", f.Compaction) }

// CompactionFailed says the compaction ended in an error.
type CompactionFailed struct {
	Compaction string  `json:"compaction"`
	Error      Failure `json:"error"`
}

// Kind implements [Fact].
func (CompactionFailed) Kind() Kind { return "compaction.failed" }

// Subject implements [Fact].
func (f CompactionFailed) Subject() string { return f.Compaction }

// Validate implements [Fact].
func (f CompactionFailed) Validate() error { return needID("compaction", f.Compaction) }
