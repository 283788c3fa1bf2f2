package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Version is the layout of a [State] as it is stored. A document of a greater version is not read.
const Version = 1

// FoldRules numbers the rules that a document was folded by; see [State.Outdated]. It grows when the fold begins to
// keep what an older document does not have and cannot give. Rules 2: every turn keeps the decisions that it brings.
// Rules 3: each of them says which owner has it, and the document says where a person stopped the session. Rules 4: a
// person's stop that is not confirmed moves to the next turn that the harness begins by itself. Rules 5: a turn keeps
// each decision that has no receipt, and the place of the last one that ended a call of it while it had no owner. Rules
// 6: a stop of the last turn counts, however many endings came after that turn's. A turn does not bring an answer that
// waits in the queue as another message. A prompt waits again when a person takes the answer back. The queue waits
// after a turn that completes although a person has stopped it. A stop of a person keeps its actor when the harness
// confirms it with another one. A turn that a person resumed for a decision from before a stop stays requested.
// A message from after the last turn does not wait when the retry of an earlier turn is abandoned. Rules 7: a person's
// stop of a requested turn is pending until its receipt, and ends when a turn begins in place of one that a person
// requested. Rules 8: a prompt of a call in the background adopts its call, and not its turn. A turn keeps each
// decision with a receipt, too, as many as a request names. No decision of a person that waits for delivery is
// dropped, however many wait. Rules 9: a decision for an earlier epoch is the owner's that says that it waits for it.
// Rules 10: the harness refuses a decision that its turn was given. A person's stop also ends when a turn is adopted in
// place of one that a person requested.
const FoldRules = 10

// Phase is what a session is doing, for people; see [State.phase] for what makes which.
type Phase string

// Phases, in the order in which the first that holds is taken.
const (
	Closed      Phase = "closed"
	Waiting     Phase = "waiting"
	Compacting  Phase = "compacting"
	Running     Phase = "running"
	Retrying    Phase = "retrying"
	Queued      Phase = "queued"
	Interrupted Phase = "interrupted"
	Idle        Phase = "idle"
)

var phases = []Phase{Closed, Waiting, Compacting, Running, Retrying, Queued, Interrupted, Idle}

// Phases lists all phases.
func Phases() []Phase { return slices.Clone(phases) }

// How the last owner went.
const (
	LeftReleased = "released"
	LeftOrphaned = "orphaned"
)

// State is a session: the whole state of the fold, and the document as it is stored. The zero State is a session of
// which nothing is known yet; [New] names it. All instants are the broker's. Each field has its line in document.go.
type State struct {
	V          int    `json:"v"`
	Harness    string `json:"harness"`
	Session    string `json:"session"`
	Root       string `json:"root"` // itself, for a session without parent
	Parent     string `json:"parent"`
	ParentCall string `json:"parent_call,omitempty"` // the parent's call that waits for this session
	Title      string `json:"title"`
	Agent      string `json:"agent"`
	Model      string `json:"model"`

	Incarnation  string           `json:"incarnation"` // of the owner, or of the last one
	Exclusive    bool             `json:"exclusive"`
	SupersededBy string           `json:"superseded_by"`
	Epoch        uint64           `json:"epoch"`          // 0: never opened
	Owned        bool             `json:"owned"`          // from opened or claimed until released, orphaned or closed
	Left         string           `json:"left,omitempty"` // how the last owner left a session without an owner
	WaitsFor     []events.WaitFor `json:"waits_for,omitempty"`

	Phase     Phase     `json:"phase"`
	Seq       uint64    `json:"seq"`     // of the last commit: n of the next append
	Rules     int       `json:"rules"`   // of the fold; 0: before they were numbered
	Commits   uint64    `json:"commits"` // folded so far
	OpenedAt  time.Time `json:"opened_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	ActiveAt  time.Time `json:"active_at,omitzero"` // last message, answer or turn of a person
	Closed    *Closing  `json:"closed,omitempty"`

	Turn     *Turn              `json:"turn,omitempty"`
	LastTurn *LastTurn          `json:"last_turn,omitempty"`
	Tools    map[string]*Tool   `json:"tools,omitempty"`   // open calls, by id
	Prompts  map[string]*Prompt `json:"prompts,omitempty"` // awaiting, and settled but not delivered, by id
	Queue    []Message          `json:"queue,omitempty"`   // oldest first
	// the ending since which the queue waits for a person; 0: it moves by itself
	HeldSeq uint64 `json:"held_seq,omitempty"`
	// StoppedSeq is the place of a person's last stop. A decision before it calls for no turn. 0 once a turn that a
	// person asked for has begun, or one in its place.
	StoppedSeq uint64  `json:"stopped_seq,omitempty"`
	Pending    Pending `json:"pending,omitzero"`

	Continuations Continuations `json:"continuations,omitzero"` // turns that recovery requested for decisions

	// QuietSeq is the place of the last decision of before decisions called for turns. One up to there calls for none.
	QuietSeq uint64 `json:"quiet_seq,omitempty"`

	Retry          Retry           `json:"retry,omitzero"`
	Compaction     *Compaction     `json:"compaction,omitempty"`
	LastCompaction *LastCompaction `json:"last_compaction,omitempty"`
	Usage          *Usage          `json:"usage,omitempty"`
	ContextLimit   int64           `json:"context_limit,omitempty"` // tokens, as the session was opened with
	Policy         events.Policy   `json:"policy"`

	Recent       []Ending `json:"recent,omitempty"` // last RecentMax endings, oldest first
	Ignored      Ignored  `json:"ignored"`
	UnknownFacts uint64   `json:"unknown_facts"`
	Parked       uint64   `json:"parked"`
}

// Closing says how a session ended. Purged: only its tombstone is left in the log.
type Closing struct {
	Reason string    `json:"reason"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Seq    uint64    `json:"seq"`
	Purged bool      `json:"purged,omitempty"`
}

// Turn is the open turn.
type Turn struct {
	ID         string       `json:"id"`
	Cause      events.Cause `json:"cause"`
	Synthetic  bool         `json:"synthetic"`
	OfTurn     string       `json:"of_turn,omitempty"`
	Message    string       `json:"message,omitempty"`
	MessageSeq uint64       `json:"message_seq,omitempty"` // of the commit with the message's content, 0: unknown
	// decisions it was given, and those made while it was open
	Prompts    []Carried `json:"prompts,omitempty"`
	Compaction string    `json:"compaction,omitempty"` // the one requested in mid-stream of this turn
	Since      time.Time `json:"since"`
	Attempt    int       `json:"attempt"`
	Epoch      uint64    `json:"epoch"` // opened or adopted under
	// of the last decision that ended a call of it while it had no owner; 0 once a process has adopted it
	DecidedSeq uint64          `json:"decided_seq,omitempty"`
	Options    json.RawMessage `json:"options,omitempty"`
}

// Carried is one settled prompt that a turn has, or is to have. Every attempt of the turn names it until one completes.
type Carried struct {
	Prompt string `json:"prompt"`
	Status Status `json:"status"`
	Seq    uint64 `json:"seq"`             // of the commit that settled it
	Asked  uint64 `json:"asked,omitempty"` // of the commit with its newest body; 0: unknown
	Had    uint64 `json:"had,omitempty"`   // the epoch of the owner that gave a receipt; 0: none
	Quiet  bool   `json:"quiet,omitempty"` // it calls for no turn by itself: see contract, rule 2
}

// Outcomes of turns, calls, prompts, messages and compactions in [Ending] and [LastTurn].
const (
	OutcomeCompleted     = "completed"
	OutcomeFailed        = "failed"
	OutcomeStopped       = "stopped"
	OutcomeInterrupted   = "interrupted"
	OutcomeContinued     = "continued"
	OutcomeEndedWithTurn = "ended-with-turn"
	OutcomeDelivered     = "delivered" // a message that a turn took
)

// LastTurn is the turn that ended last.
type LastTurn struct {
	ID         string          `json:"id"`
	Outcome    string          `json:"outcome"`
	Reason     string          `json:"reason,omitempty"`
	At         time.Time       `json:"at"`
	Error      *events.Failure `json:"error,omitempty"`
	Message    string          `json:"message,omitempty"`
	MessageSeq uint64          `json:"message_seq,omitempty"` // as in [Turn]
	// decisions that no completed turn has had, and the open turn does not carry
	Prompts   []Carried       `json:"prompts,omitempty"`
	Options   json.RawMessage `json:"options,omitempty"`
	Cause     events.Cause    `json:"cause,omitempty"`
	OfTurn    string          `json:"of_turn,omitempty"`
	Attempt   int             `json:"attempt"`
	Synthetic bool            `json:"synthetic"`
	HadOutput bool            `json:"had_output"`
	Actor     string          `json:"actor,omitempty"` // who stopped it, or asked for it
	Seq       uint64          `json:"seq"`
}

// Tool is an open call.
type Tool struct {
	Name       string    `json:"name"`
	Title      string    `json:"title,omitempty"`
	Turn       string    `json:"turn,omitempty"`
	Since      time.Time `json:"since"`
	Epoch      uint64    `json:"epoch"` // opened or adopted under
	Background bool      `json:"background"`
}

// Status says where a prompt stands.
type Status string

// Statuses of prompts. Only an awaiting one can be answered.
const (
	Awaiting   Status = "awaiting"
	Answered   Status = "answered"
	Rejected   Status = "rejected"
	Dismissed  Status = "dismissed"
	Withdrawn  Status = "withdrawn"
	Superseded Status = "superseded"
	Expired    Status = "expired"
)

// Prompt is a question that waits for a person, or whose settlement waits for the harness.
type Prompt struct {
	Kind        events.PromptKind `json:"kind"`
	Call        string            `json:"call,omitempty"` // as it was named: it may start later
	Tool        string            `json:"tool,omitempty"` // the call's name, once it has started
	Turn        string            `json:"turn,omitempty"`
	Since       time.Time         `json:"since"` // armed at
	UpdatedAt   time.Time         `json:"updated_at"`
	Status      Status            `json:"status"`
	Reason      string            `json:"reason,omitempty"`
	Epoch       uint64            `json:"epoch"` // opened or adopted under
	Blocking    bool              `json:"blocking"`
	Seq         uint64            `json:"seq"`         // of the commit with its newest body
	SettledSeq  uint64            `json:"settled_seq"` // of the commit that settled it, 0 while awaiting
	OnOwnerLoss events.OwnerLoss  `json:"on_owner_loss"`
	Delivery    events.Delivery   `json:"delivery"`
	Deadline    *time.Time        `json:"deadline"`
	DeadlineSeq uint64            `json:"deadline_seq,omitempty"` // of the commit that set the deadline; 0: Seq
	// its process lives, and nothing there waits for the decision
	Unattended bool `json:"unattended,omitempty"`
	// of the commit that took an answer back, after which the prompt waits again; 0: none did
	ReopenedSeq uint64 `json:"reopened_seq,omitempty"`
}

// Due returns when an awaiting prompt with a deadline expires, by the broker's clock after these steps.
func (p *Prompt) Due(steps events.Steps) time.Time {
	return steps.Since(*p.Deadline, cmp.Or(p.DeadlineSeq, p.Seq))
}

// Message is one entry of the queue. Its content is in the commit at Seq.
type Message struct {
	ID        string    `json:"message"`
	Seq       uint64    `json:"seq"`
	Synthetic bool      `json:"synthetic"`
	At        time.Time `json:"at"`
}

// Pending is what a harness has been asked and has not taken.
type Pending struct {
	Turn       *PendingTurn       `json:"turn,omitempty"`
	Stop       *PendingStop       `json:"stop,omitempty"`
	Compaction *PendingCompaction `json:"compaction,omitempty"`
}

// PendingTurn is a requested turn.
type PendingTurn struct {
	ID         string          `json:"turn"`
	Cause      events.Cause    `json:"cause"`
	OfTurn     string          `json:"of_turn,omitempty"`
	Message    string          `json:"message,omitempty"`
	MessageSeq uint64          `json:"message_seq,omitempty"` // as in [Turn]
	Attempt    int             `json:"attempt"`
	Options    json.RawMessage `json:"options,omitempty"`
	Compaction string          `json:"compaction,omitempty"`
	Prompt     string          `json:"prompt,omitempty"`
	Prompts    []Carried       `json:"prompts,omitempty"` // the settled prompts that the turn is to have
	By         string          `json:"by,omitempty"`      // the person who asked for it
	// HeldSeq before a person's answer; restored if the person takes it back
	Held uint64    `json:"held,omitempty"`
	At   time.Time `json:"at"`
	Seq  uint64    `json:"seq"`
}

// PendingStop is a requested stop. Its turn may have ended: then a receipt is awaited.
type PendingStop struct {
	Turn   string    `json:"turn"`
	Actor  string    `json:"actor"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Seq    uint64    `json:"seq"`
}

// PendingCompaction is a requested compaction that no harness has taken.
type PendingCompaction struct {
	ID      string    `json:"compaction"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
	Seq     uint64    `json:"seq"`
}

// States of [Retry].
const (
	RetryScheduled = "scheduled"
	RetryStarting  = "starting"
	RetryAbandoned = "abandoned"
)

// Retry is where the repetition of failed turns stands. The counters outlive a single retry.
type Retry struct {
	State        string          `json:"state,omitempty"`
	Turn         string          `json:"turn,omitempty"` // the turn that failed
	Attempt      int             `json:"attempt"`
	DueAt        time.Time       `json:"due_at,omitzero"`
	Reason       string          `json:"reason,omitempty"`
	Error        *events.Failure `json:"error,omitempty"` // the last failure since progress
	SameFailures int             `json:"same_failures"`   // in a row, of one kind
	Resumes      int             `json:"resumes"`         // continuations since the last progress
	// failures since progress because the context was too long
	Overflows int `json:"overflows,omitempty"`
}

// States of [Compaction].
const (
	CompactionRequested = "requested"
	CompactionRunning   = "running"
	CompactionHeld      = "held"
	CompactionStalled   = "stalled"
)

// Compaction is the one that is wanted or under way; or, derived from the last one, that what follows it is held, or
// that none would help.
type Compaction struct {
	State    string          `json:"state"`
	ID       string          `json:"id"`
	Reason   string          `json:"reason"`
	FollowUp string          `json:"follow_up,omitempty"`
	Message  string          `json:"message,omitempty"`
	Turn     string          `json:"turn,omitempty"` // that it was requested in
	Since    time.Time       `json:"since"`
	Used     int64           `json:"used"`
	Limit    int64           `json:"limit"`
	Epoch    uint64          `json:"epoch"`
	Error    *events.Failure `json:"error,omitempty"`
}

// LastCompaction is the one that ended last. FollowUp is still owed while it is set.
type LastCompaction struct {
	ID         string    `json:"id"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason,omitempty"`
	UsedBefore int64     `json:"used_before"`
	UsedAfter  int64     `json:"used_after"`
	At         time.Time `json:"at"`
	Failures   int       `json:"failures"` // in a row
	Seq        uint64    `json:"seq"`
	// tokens: the least reported since; what the harness said itself until then
	UsedLeast int64           `json:"used_least,omitempty"`
	Progress  bool            `json:"progress,omitempty"` // a turn has completed since
	FollowUp  string          `json:"follow_up,omitempty"`
	Message   string          `json:"message,omitempty"`
	Turn      string          `json:"turn,omitempty"`
	Error     *events.Failure `json:"error,omitempty"`
}

// Usage is the newest report since the last compaction.
type Usage struct {
	Tokens  events.Tokens `json:"tokens"`
	Used    int64         `json:"used"`
	Limit   int64         `json:"limit"` // 0: unknown
	Percent float64       `json:"percent"`
	Warn    bool          `json:"warn"`
	At      time.Time     `json:"at"`
}

// Late is a result that came after its entity had ended.
type Late struct {
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
}

// Entities of [Ending].
const (
	EntityTurn       = "turn"
	EntityTool       = "tool"
	EntityPrompt     = "prompt"
	EntityMessage    = "message"
	EntityCompaction = "compaction"
)

// Ending is how something ended: kept so that its id stays closed and people can see what became of it.
type Ending struct {
	Entity      string    `json:"entity"`
	ID          string    `json:"id"`
	Name        string    `json:"name,omitempty"` // a tool's name, a prompt's kind
	Outcome     string    `json:"outcome"`
	Reason      string    `json:"reason,omitempty"`
	At          time.Time `json:"at"`
	Seq         uint64    `json:"seq"`
	Late        *Late     `json:"late"`
	OpenedSeq   uint64    `json:"opened_seq,omitempty"`  // prompts and messages: the commit with the body
	Since       time.Time `json:"since,omitzero"`        // prompts: armed at
	DeliveredAt time.Time `json:"delivered_at,omitzero"` // prompts
	Epoch       uint64    `json:"epoch,omitempty"`       // prompts: opened or adopted under
	Call        string    `json:"call,omitempty"`        // prompts
	Tool        string    `json:"tool,omitempty"`        // prompts: the call's name
}

// Ignored counts facts that changed nothing, and shows the last.
type Ignored struct {
	Count uint64       `json:"count"`
	Last  *IgnoredFact `json:"last,omitempty"`
}

// IgnoredFact is a fact that changed nothing, and why.
type IgnoredFact struct {
	Type   string `json:"type"`
	Writer string `json:"writer"`
	Why    string `json:"why"`
	Seq    uint64 `json:"seq"`
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
	c, all := make(map[string]*T, len(m)), make([]T, 0, len(m))
	for k, v := range m {
		all = append(all, *v)
		c[k] = &all[len(all)-1]
	}
	return c
}

// ViewClone is a copy of what the views are derived from, and of nothing else: what [BlockersChanged] and [WorkChanged]
// need of the state before.
func (s *State) ViewClone() *State {
	c := &State{Epoch: s.Epoch, Owned: s.Owned, Root: s.Root, Pending: s.Pending, Prompts: cloneMap(s.Prompts),
		Session: s.Session, Turn: clonePtr(s.Turn), LastTurn: clonePtr(s.LastTurn)}
	if s.Pending.Turn != nil {
		c.Queue = append(c.Queue, s.Queue...)
		c.Tools = map[string]*Tool{}
		for _, p := range s.Prompts {
			if t := s.Tools[p.Call]; t != nil {
				c.Tools[p.Call] = clonePtr(t)
			}
		}
	}
	for i := range s.Recent {
		if e := s.Recent[i].Entity; e == EntityPrompt || e == EntityMessage {
			c.Recent = append(c.Recent, s.Recent[i])
		}
	}
	return c
}
