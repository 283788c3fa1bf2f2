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
	"session.orphaned":    "reason, incarnation, superseded_by?, waits_for[]?{call, child}",
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
	"prompt.answered":   "prompt, answers[]{question, selected[], text?}, by",
	"prompt.rejected":   "prompt, text?, by",
	"prompt.dismissed":  "prompt, by",
	"prompt.withdrawn":  "prompt, reason",
	"prompt.superseded": "prompt, message",
	"prompt.expired":    "prompt, reason",
	"prompt.unattended": "prompt",
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

// verb is one endpoint of a service: docs/contract.md, section 4.
type verb struct {
	service, name string
	fields        string // of the request, in the notation of dataOf
	doc           string
}

// verbs are the endpoints, in the order of the contract. Those of one session name it.
var verbs = []verb{
	{"ledger", "get", "harness, session", "One session's document."},
	{"ledger", "list", "harness?, session?, phase?, root?, waiting?, after?, limit?", "Documents, page by page."},
	{"ledger", "answer", "harness, session, prompt, answers[]{question, selected[], text?}, by", "Answer a prompt."},
	{"ledger", "reject", "harness, session, prompt, text?, by", "Refuse a prompt; with a text the model reads why."},
	{"ledger", "dismiss", "harness, session, prompt, by", "Put a prompt away without an answer."},
	{"ledger", "stop", "harness, session, by, reason?, force?", "Stop the running turn."},
	{"ledger", "close", "harness, session, reason, by", "End the session for good."},
	{
		"ledger",
		"configure",
		"harness, session, policy, provider_changed?, by",
		"Change the session's policy: an absent field is unchanged, null goes back to the default.",
	},
	{
		"ledger",
		"rebuild",
		"harness?, session?, accept_loss?",
		"Make documents and views from the log again. For operators.",
	},
	{"retry", "now", "harness, session, by", "Try the failed turn again at once."},
	{"retry", "cancel", "harness, session, by", "Do not try the failed turn again."},
	{"retry", "resume", "harness, session, by", "Go on with an interrupted session."},
	{"compaction", "send", "harness, session, message, content?, ref?, synthetic?, by", "Send a message."},
	{"compaction", "withdraw", "harness, session, message, by", "Take a queued message back."},
	{"compaction", "compact", "harness, session, by, force?", "Compact the conversation now."},
	{
		"compaction",
		"check",
		"harness, session, used?, limit?",
		"Would a compaction be requested, and why. Changes nothing.",
	},
	{"reconciler", "sweep", "harness, session?, dry_run?", "One recovery pass."},
	{"reconciler", "report", "harness?, session?", "Counts by outcome and reason, the last pass, suspects."},
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
