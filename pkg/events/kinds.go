package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// TypePrefix stands before the kind in the CloudEvents type attribute.
const TypePrefix = "holdfast."

// Kind names what happened, entity.verb in the past tense: "tool.started". On the wire it is preceded by [TypePrefix].
type Kind string

// Fact is the data of one event. Only the structs of this package are facts; an event of an unknown kind is an [Event]
// without one.
type Fact interface {
	// Kind returns the fact's kind.
	Kind() Kind
	// Subject returns the id of the entity that the fact is about; "" for the session itself.
	Subject() string
	// Validate returns an error for an invalid fact. The error wraps [ErrMalformed].
	Validate() error
}

// Spec is one line of the table of kinds.
type Spec struct {
	Kind   Kind
	By     []Writer // the writers that may append it
	Ends   string   // the entity that it ends: prompt, tool, turn, compaction, message, session; "" for none
	Zero   Fact     // the zero data struct: documentation is printed from it
	Doc    string   // one sentence for the reference pages
	decode func(json.RawMessage) (Fact, error)
}

// May reports whether this writer may append facts of this kind.
func (s *Spec) May(w Writer) bool { return slices.Contains(s.By, w) }

// decodeAs is the default decoder of a data struct.
func decodeAs[T Fact](raw json.RawMessage) (Fact, error) {
	var v T
	if err := ReadJSON(raw, &v); err != nil {
		return nil, fmt.Errorf("%w: data: %v", ErrMalformed, err)
	}
	return v, nil
}

// ReadJSON is json.Unmarshal that accepts 2.0 and 2e0 for the integer 2, as JSON Schema does: languages with one number
// type write them. It returns the errors of json.Unmarshal.
func ReadJSON(raw []byte, to any) error {
	err := json.Unmarshal(raw, to)
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok || !strings.HasPrefix(wrong.Value, "number ") {
		return err
	}
	return json.Unmarshal(wholeNumbers(raw), to)
}

// wholeMax is the largest integer that every language writes exactly.
const wholeMax = 1 << 53

// wholeNumbers rewrites the whole numbers of a JSON text without a point or an exponent.
func wholeNumbers(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for s := (scanner{body: raw}); s.at < len(raw); {
		start := s.at
		switch c := raw[start]; {
		case c == '"':
			s.skipString()
			s.at++
		case c == '-' || c >= '0' && c <= '9':
			for s.at < len(raw) && strings.IndexByte("+-.eE0123456789", raw[s.at]) >= 0 {
				s.at++
			}
			literal := raw[start:s.at]
			if n, err := strconv.ParseFloat(string(literal), 64); err == nil && bytes.ContainsAny(literal, ".eE") &&
				n == math.Trunc(n) && math.Abs(n) <= wholeMax {
				out = strconv.AppendInt(out, int64(n), 10)
				continue
			}
		default:
			s.at++
		}
		out = append(out, raw[start:min(s.at, len(raw))]...)
	}
	return out
}

func spec[T Fact](by []Writer, ends, doc string) Spec {
	var zero T
	return Spec{Kind: zero.Kind(), By: by, Ends: ends, Zero: zero, Doc: doc, decode: decodeAs[T]}
}

// Writers of a kind, as in the contract: H the owning harness, L ledger, T retry, C compaction, R reconciler.
var (
	byH    = []Writer{WriterHarness}
	byL    = []Writer{WriterLedger}
	byT    = []Writer{WriterRetry}
	byC    = []Writer{WriterCompaction}
	byR    = []Writer{WriterReconciler}
	byHL   = []Writer{WriterHarness, WriterLedger}
	byHR   = []Writer{WriterHarness, WriterReconciler}
	byHT   = []Writer{WriterHarness, WriterRetry}
	byCH   = []Writer{WriterCompaction, WriterHarness}
	byCHL  = []Writer{WriterCompaction, WriterHarness, WriterLedger}
	byLCT  = []Writer{WriterLedger, WriterCompaction, WriterRetry}
	byHRC  = []Writer{WriterHarness, WriterReconciler, WriterCompaction}
	byHLRC = []Writer{WriterHarness, WriterLedger, WriterReconciler, WriterCompaction}
	byTCLR = []Writer{WriterRetry, WriterCompaction, WriterLedger, WriterReconciler}
)

// table is the vocabulary, one line per kind. The fold enforces it; permissions and reference pages are printed from
// it.
var table = []Spec{
	spec[SessionOpened](byH, "", "A harness opens a session and owns it under epoch 1."),
	spec[SessionClaimed](byH, "", "A harness takes a session over; the epoch moves on by one."),
	spec[SessionConfigured](byL, "", "A person changes the session's policy."),
	spec[SessionReleased](byH, "", "The owner leaves in good order: the session has no owner."),
	spec[SessionOrphaned](
		byR,
		"",
		"The owner is gone: the session has no owner, and later facts of the old owner do not count.",
	),
	spec[SessionClosed](byHL, "session", "The session is over for good, with everything open in it."),
	spec[MessageAccepted](byCHL, "", "User input is taken into the queue."),
	spec[MessageWithdrawn](byC, "message", "A queued message is taken back before it was handed out."),
	spec[TurnRequested](byTCLR, "", "A turn is wanted: pending work for a harness."),
	spec[TurnStarted](byH, "", "The harness works on a turn."),
	spec[TurnCompleted](byH, "turn", "The turn came to its end."),
	spec[TurnFailed](byHT, "turn", "The turn ended in an error."),
	spec[TurnStopRequested](byLCT, "", "A turn shall stop: pending work for a harness."),
	spec[TurnStopped](byHR, "turn", "The turn was stopped, or the harness confirms that it had ended."),
	spec[TurnInterrupted](byR, "turn", "The turn's process died."),
	spec[ToolStarted](byH, "", "A call was handed to its tool."),
	spec[ToolCompleted](byHLRC, "tool", "The call has its result."),
	spec[ToolFailed](byHLRC, "tool", "The call ended in an error."),
	spec[ToolInterrupted](byR, "tool", "The call's process died; what became of it is unknown."),
	promptRequested(),
	spec[PromptAnswered](byHL, "prompt", "A person answered."),
	spec[PromptRejected](byHL, "prompt", "A person refused, perhaps with a correction."),
	spec[PromptDismissed](byL, "prompt", "A person put the prompt away without an answer."),
	spec[PromptWithdrawn](byHR, "prompt", "The asker no longer needs an answer."),
	spec[PromptSuperseded](byCH, "prompt", "A person's chat message took the prompt's place."),
	spec[PromptExpired](byR, "prompt", "An answer can no longer be used."),
	spec[PromptUnattended](byH, "", "The asker no longer waits for the decision: a turn brings it to the agent."),
	spec[PromptAttended](byH, "", "The owner takes in a decision that an earlier epoch was to have."),
	spec[PromptDelivered](byH, "", "The harness has what was decided about the prompt, or cannot use it."),
	spec[UsageReported](byH, "", "The model has counted its last call."),
	spec[RetryScheduled](byT, "", "A failed turn will be tried again at an instant."),
	spec[RetryAbandoned](byT, "", "A failed turn will not be tried again by itself."),
	spec[CompactionRequested](byC, "", "The conversation shall be compacted: pending work for a harness."),
	spec[CompactionStarted](byH, "", "The harness compacts."),
	spec[CompactionCompleted](byH, "compaction", "The conversation is compacted."),
	spec[CompactionFailed](byHRC, "compaction", "The compaction ended in an error."),
}

func promptRequested() Spec {
	s := spec[PromptRequested](byH, "", "The agent asks a person.")
	s.decode = decodePromptRequested
	return s
}

// byKind is the index of the table.
var byKind = func() map[Kind]*Spec {
	m := make(map[Kind]*Spec, len(table))
	for i := range table {
		m[table[i].Kind] = &table[i]
	}
	return m
}()

// Lookup returns the line of a kind, nil for a kind that this build does not know.
func Lookup(k Kind) *Spec { return byKind[k] }

// Table returns a copy of the table, in the order of the contract.
func Table() []Spec { return slices.Clone(table) }
