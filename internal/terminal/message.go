package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Queued is an accepted message that the harness has not taken.
type Queued struct {
	Message   string          `json:"message"`
	Seq       uint64          `json:"seq"`
	At        time.Time       `json:"at"`
	By        string          `json:"by,omitempty"`
	Synthetic bool            `json:"synthetic"`
	Handed    bool            `json:"handed"` // the harness has a request to take it
	Content   json.RawMessage `json:"content,omitempty"`
	Ref       string          `json:"ref,omitempty"`
}

// QueuedMessage returns message i of a session's queue with its content. It fails if the message's commit cannot be
// read.
func QueuedMessage(s *session.State, i int, src session.Source) (Queued, error) {
	m := &s.Queue[i]
	q := Queued{
		Message:   m.ID,
		Seq:       m.Seq,
		At:        m.At,
		Synthetic: m.Synthetic,
		Handed:    s.Pending.Turn != nil && s.Pending.Turn.Message == m.ID,
	}
	c, err := src(m.Seq)
	if err != nil {
		return q, fmt.Errorf("message %s: %w", m.ID, err)
	}
	for i := range c.Events {
		if f, ok := c.Events[i].Fact.(events.MessageAccepted); ok && f.Message == m.ID {
			q.By, q.Content, q.Ref = f.By, f.Content, f.Ref
			break
		}
	}
	return q, nil
}

// contentShownMax is how much of a message a line shows, in columns.
const contentShownMax = 60

// Queue returns a table of a session's queue, oldest message first, and what the queue waits for.
func Queue(s *session.State, all []Queued, now time.Time, st Style) string {
	rows := make([][]Cell, len(all))
	for i := range all {
		q := &all[i]
		state := Cell{"queued", Wait}
		if q.Handed {
			state = Cell{"offered", Busy}
		}
		from := cmp.Or(q.By, "–")
		if q.Synthetic {
			from += " (synthetic)"
		}
		rows[i] = []Cell{
			{q.Message, Strong},
			{from, Plain},
			{ago(q.At, now), Faint},
			state,
			{Cut(contentText(q), contentShownMax), Plain},
		}
	}
	table := Table([]Column{{Name: "MESSAGE", ID: true}, {Name: "FROM", Min: nameMin},
		{Name: "AGE", Spare: 1}, {Name: "STATE"}, {Name: "CONTENT", Min: textMin}}, rows, st)
	return table + "\n" + st.Wrap(queueWaits(s, now), 0) + "\n"
}

// contentText returns a message's content in one line.
func contentText(q *Queued) string {
	if q.Ref != "" {
		return "(stored as " + q.Ref + ")"
	}
	var text string
	if json.Unmarshal(q.Content, &text) != nil {
		text = string(q.Content)
	}
	return strings.Join(strings.Fields(Clean(text)), " ")
}

// queueWaits returns a sentence on what a queue waits for.
func queueWaits(s *session.State, now time.Time) string {
	switch t := s.Pending.Turn; {
	case t != nil && t.Message != "":
		return "The harness was asked to take " + t.Message + " " + ago(t.At, now) + " ago."
	case s.BlockedBy() != "":
		return "It waits for an answer to " + s.BlockedBy() + "."
	case s.Compaction != nil:
		return "It waits for the compaction: " + compaction(s.Compaction) + "."
	case s.Turn != nil:
		return "It waits for the end of turn " + s.Turn.ID + "."
	case t != nil:
		return "It waits for turn " + t.ID + " (" + string(t.Cause) + "), which the harness has not taken."
	case s.Retry.State == session.RetryScheduled:
		return "It waits behind a retry: " + retrying(&s.Retry, now) + "."
	case s.LastTurn != nil && s.LastTurn.Outcome == session.OutcomeCompleted && !s.QueueMoves():
		return "A person stopped it after the last turn: it waits for one (`holdfast send` or `holdfast resume`)."
	case s.LastTurn != nil && s.LastTurn.Outcome != session.OutcomeCompleted:
		return "The last turn was " + s.LastTurn.Outcome + ": it waits for a person (`holdfast send`, `holdfast " +
			"retry now` or `holdfast resume`)."
	default:
		return "It is about to be handed out."
	}
}

// compaction returns the state of a compaction and its reason.
func compaction(c *session.Compaction) string {
	text := c.State + ", " + c.Reason
	if c.Error != nil {
		text += " (" + failure(c.Error) + ")"
	}
	return text
}

// failure returns an error's kind and text.
func failure(e *events.Failure) string {
	if e.Text == "" {
		return kind(e)
	}
	return kind(e) + ": " + e.Text
}

// kind returns an error's kind, "unknown" for an error without one.
func kind(e *events.Failure) string {
	if e.Kind == "" {
		return "unknown"
	}
	return e.Kind
}

// retrying returns the state of a retry: its attempt, when it is due, and its error.
func retrying(r *session.Retry, now time.Time) string {
	why := ""
	if r.Error != nil {
		why = " (" + failure(r.Error) + ")"
	}
	switch r.State {
	case session.RetryScheduled:
		return fmt.Sprintf("attempt %d in %s, due %s%s", r.Attempt, countdown(r.DueAt, now), Clock(r.DueAt), why)
	case session.RetryStarting:
		return fmt.Sprintf("attempt %d asked for%s", r.Attempt, why)
	default:
		return fmt.Sprintf("given up at attempt %d: %s%s", r.Attempt, r.Reason, why)
	}
}

// countdown returns the time until an instant, rounded up to a second: "0s" means due.
func countdown(due, now time.Time) string {
	left := (due.Sub(now) + time.Second - 1).Truncate(time.Second)
	if left <= 0 {
		return "0s"
	}
	return Age(left)
}

// givenUp maps the reason of an abandoned retry to what a person can do.
var givenUp = map[string]string{
	"cancelled": "a person cancelled it; `holdfast retry now` tries it again",
	"disabled_by_user": "automatic retry is off; `holdfast retry now` tries it once, `holdfast configure S " +
		"auto_retry=true` lets it",
	"resume_held":      "its policy holds it after a crash; `holdfast resume` continues",
	"retry_max":        "it was tried as often as its policy allows; `holdfast retry now` tries it again",
	"overtaken":        "another turn came after it",
	"resume_exhausted": "its process died too often without progress; `holdfast resume` continues",
	"no_progress":      "it failed too often in the same way; `holdfast retry now` tries it again",
	"authentication": "correct the key, then `holdfast configure S --provider-changed` and `holdfast " +
		"retry now`",
	"api_key_not_found": "give a key, then `holdfast configure S --provider-changed` and `holdfast retry now`",
	"oauth_not_connected": "connect the account, then `holdfast configure S --provider-changed` and `holdfast " +
		"retry now`",
	"provider_disabled": "enable the provider, then `holdfast configure S --provider-changed` and `holdfast " +
		"retry now`",
	"quota": "the provider wants to be paid; then `holdfast configure S --provider-changed` and " +
		"`holdfast retry now`",
	"model_not_found":        "choose a model that there is, then `holdfast retry now`",
	"context_exceeded":       "the conversation is too long; `holdfast compact` shortens it",
	"model_refusal":          "the model will not; send something else",
	"aborted":                "it was aborted; send a message, or `holdfast retry now`",
	"runtime_not_ready":      "the harness cannot run it yet; then `holdfast retry now`",
	"outcome_unknown":        "a step was cut off: find out what it did, then send a message, or `holdfast retry now`",
	"stopped":                "a person stopped it; send a message, or `holdfast retry now`",
	"incompatible_workspace": "the harness cannot use this workspace; then `holdfast retry now`",
}

// held returns what a person can do about the work that a failed compaction holds.
func held(c *session.Compaction) string {
	switch {
	case c.State != session.CompactionHeld:
		return ""
	case c.Error != nil && (c.Error.Kind == events.ReasonOwnerLost || c.Error.Kind == events.ReasonShutdown):
		return "its process was gone while it was compacted; `holdfast resume` continues, a message has it " +
			"compacted again first"
	}
	return "without it the conversation does not fit; `holdfast compact` or a message tries again, `holdfast " +
		"resume` continues without it"
}

// checks explains the reasons for and against a compaction.
var checks = map[string]string{
	events.CompactOnSend:    "the next message is compacted for first",
	events.CompactMidStream: "the running turn is stopped for it, and continues afterwards",
	events.CompactIdle:      "it has been idle for long enough",
	events.CompactManual:    "a person asked for it",
	"disabled": "it is off for this session (`holdfast configure S idle_compaction_after_s=600`, " +
		"`compaction_threshold=0.7`)",
	"no_usage":             "nothing is known of its usage since the last compaction",
	"no_limit":             "how much fits is not known (`holdfast configure S context_limit=200000`)",
	"below_threshold":      "there is room",
	"not_idle_long_enough": "it has not been idle for long enough",
	"running":              "a turn or a compaction runs",
	"queued":               "messages wait to be handed out",
	"waiting":              "a question waits for an answer",
	"compacting":           "it is being compacted",
	"already_compacted":    "nothing was said since the last compaction",
	"suppressed":           "compacting failed too often; `holdfast compact` tries again",
	session.CompactionStalled: "the last compaction freed too little; a new conversation, or a larger limit, is " +
		"needed",
	session.CompactionHeld:     "the last compaction failed, and what was to follow it waits for a person",
	string(session.Closed):     "the session is closed",
	string(session.Retrying):   "a retry is due first",
	"another_session_compacts": "idle sessions are compacted one at a time",
}

// Check returns the compaction service's verdict on a session for a person. It begins with the subject of the sentence,
// or with its verb.
func Check(subject string, c request.Verdict, now time.Time, st Style) string {
	verdict := coloured("would not be compacted:", Plain)
	if c.Would {
		verdict = coloured("would be compacted:", Busy)
	}
	text := ""
	if meaning := checks[c.Reason]; meaning != "" {
		text += ", " + meaning
	}
	if !c.At.IsZero() {
		text += "; it will have been in " + countdown(c.At, now)
	}
	switch {
	case c.Used > 0 && c.Limit > 0:
		text += fmt.Sprintf(" (%d of %d tokens, %d %%)", c.Used, c.Limit, c.Used*100/c.Limit)
	case c.Used > 0:
		text += " (" + Plural(int(c.Used), "token") + ")"
	}
	if subject != "" {
		subject += " "
	}
	return st.paragraph(0, piece{Cell: Cell{Text: subject}}, verdict, piece{Cell: Cell{Text: " "}},
		coloured(cmp.Or(c.Reason, "–"), Strong), piece{Cell: Cell{Text: text}}) + "\n"
}
