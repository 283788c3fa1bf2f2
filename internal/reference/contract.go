package reference

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// dataOf is the column "data" of docs/contract.md, section 2: ? is optional, [] a list, {} the fields of its items or
// of the object. A field with a default is optional.
var dataOf = map[events.Kind]string{
	"session.opened": "incarnation, exclusive?, parent?, parent_call?, root?, title?, agent?, model?, " +
		"context_limit?, policy?, native?",
	"session.claimed":     "incarnation, exclusive?",
	"session.configured":  "policy, provider_changed?, by",
	"session.released":    "reason?",
	"session.orphaned":    "reason, incarnation, superseded_by?, detail?, waits_for[]?{call, child}",
	"session.closed":      "reason, by?",
	"message.accepted":    "message, content?, ref?, synthetic, by?",
	"message.withdrawn":   "message, by",
	"turn.requested":      "turn, cause, of_turn?, message?, attempt?, options?, compaction?, prompt?, prompts[]?",
	"turn.started":        "turn, cause, synthetic, of_turn?, message?, prompt?, prompts[]?, attempt?, options?",
	"turn.completed":      "turn, finish?",
	"turn.failed":         "turn, error{kind, text, status?, retry_after_ms?}, had_output",
	"turn.stop_requested": "turn, actor, by?, reason?",
	"turn.stopped":        "turn, actor, reason?",
	"turn.interrupted":    "turn, reason",
	"tool.started":        "call, turn, name, title?, input?, background?",
	"tool.completed":      "call, output?, synthetic?",
	"tool.failed":         "call, error{kind, text, status?, retry_after_ms?}, synthetic?",
	"tool.interrupted":    "call, reason, outcome",
	"prompt.requested": "prompt, turn?, call?, kind, title?, questions[]?{id, header?, question, " +
		"options[]{label, description?}, multi, custom}, delivery, on_owner_loss?, blocking?, deadline?, native?",
	"prompt.answered":   "prompt, answers[]{question, selected[], text?}, by, owed?",
	"prompt.rejected":   "prompt, text?, by, owed?",
	"prompt.dismissed":  "prompt, by",
	"prompt.withdrawn":  "prompt, reason",
	"prompt.superseded": "prompt, message",
	"prompt.expired":    "prompt, reason",
	"prompt.unattended": "prompt",
	"prompt.attended":   "prompt",
	"prompt.delivered":  "prompt, refused?",
	"usage.reported": "turn, model, tokens{input, cache_read, cache_write, output, reasoning}, " +
		"input_includes_cached?, context_limit?",
	"retry.scheduled":      "turn, attempt, delay_ms, due_at, error{kind, text, status?, retry_after_ms?}",
	"retry.abandoned":      "turn, attempt, reason",
	"compaction.requested": "compaction, reason, used, limit, follow_up?, message?",
	"compaction.started":   "compaction",
	"compaction.completed": "compaction, used_after?",
	"compaction.failed":    "compaction, error{kind, text, status?, retry_after_ms?}",
}

// field is one name of a field list.
type field struct {
	name           string
	optional, list bool
	fields         []field
}

// parseFields reads a field list. It panics on a malformed list: the lists are constants of this file.
func parseFields(list string) []field {
	fields, rest := parseList(list)
	if rest != "" {
		panic("reference: field list: " + list)
	}
	return fields
}

func parseList(s string) (fields []field, rest string) {
	for {
		var f field
		end := strings.IndexAny(s, ",?[{}")
		if end < 0 {
			end = len(s)
		}
		f.name, s = strings.TrimSpace(s[:end]), s[end:]
		s, f.list = strings.CutPrefix(s, "[]")
		s, f.optional = strings.CutPrefix(s, "?")
		if inner, ok := strings.CutPrefix(s, "{"); ok {
			f.fields, s = parseList(inner)
			s = strings.TrimPrefix(s, "}")
		}
		fields = append(fields, f)
		next, more := strings.CutPrefix(s, ",")
		if !more {
			return fields, s
		}
		s = next
	}
}

// String is the notation again.
func (f field) String() string {
	s := f.name
	if f.list {
		s += "[]"
	}
	if f.optional {
		s += "?"
	}
	if len(f.fields) > 0 {
		s += "{" + join(f.fields) + "}"
	}
	return s
}

func join(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = fmt.Sprint(f)
	}
	return strings.Join(names, ", ")
}
