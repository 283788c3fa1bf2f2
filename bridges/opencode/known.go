package opencode

import (
	"encoding/json"
	"slices"
	"strings"
)

// silents are events without information about prompts, turns, calls or compactions. A name that ends in a dot is a
// prefix. session.next.* repeats message.* for newer clients.
var silents = []string{
	"catalog.", "command.", "file.", "global.", "installation.", "integration.", "lsp.", "mcp.", "message.part.delta",
	"message.part.removed", "models-dev.", "plugin.", "project.", "pty.", "reference.", "server.heartbeat",
	"server.instance.disposed", "session.diff", "session.next.", "todo.", "tui.", "vcs.", "workspace.", "worktree.",
}

func silent(typ string) bool {
	return slices.ContainsFunc(silents, func(s string) bool {
		return typ == s || strings.HasSuffix(s, ".") && strings.HasPrefix(typ, s)
	})
}

// known has the known fields of each translated object, as of OpenCode 1.18.33. An unknown field is reported, because
// it may carry information that should become a fact.
var known = map[string]string{
	"session.created":       "sessionID info",
	"session.updated":       "sessionID info",
	"session.deleted":       "sessionID info",
	"session.status":        "sessionID status",
	"session.idle":          "sessionID",
	"session.error":         "sessionID error",
	"session.compacted":     "sessionID",
	"message.updated":       "sessionID info",
	"message.removed":       "sessionID messageID",
	"message.part.updated":  "sessionID part time delta",
	"question.asked":        "id sessionID questions tool",
	"question.v2.asked":     "id sessionID questions tool",
	"question.replied":      "sessionID requestID answers",
	"question.v2.replied":   "sessionID requestID answers",
	"question.rejected":     "sessionID requestID",
	"question.v2.rejected":  "sessionID requestID",
	"permission.asked":      "id sessionID permission patterns metadata always tool",
	"permission.v2.asked":   "id sessionID action resources save metadata source",
	"permission.replied":    "sessionID requestID reply message",
	"permission.v2.replied": "sessionID requestID reply message",

	"part text":        "text synthetic ignored time metadata",
	"part subtask":     "prompt description agent model command",
	"part reasoning":   "text metadata time",
	"part file":        "mime filename url source",
	"part tool":        "callID tool state metadata",
	"part step-start":  "snapshot",
	"part step-finish": "reason snapshot cost tokens",
	"part snapshot":    "snapshot",
	"part patch":       "hash files",
	"part agent":       "name source",
	"part retry":       "attempt error time",
	"part compaction":  "auto overflow tail_start_id",

	"state pending":   "input raw",
	"state running":   "input title metadata time",
	"state completed": "input output title metadata time attachments",
	"state error":     "input error metadata time",

	"status idle":  "",
	"status busy":  "",
	"status retry": "attempt message action next",

	"message user": "time format summary agent model system tools",
	"message assistant": "time error parentID modelID providerID mode agent path summary cost tokens structured " +
		"variant finish",
	"session": "slug projectID workspaceID directory path parentID summary cost tokens share title agent model " +
		"version metadata time permission revert",
}

// ids are fields that every part, message and session may have.
const ids = "id sessionID messageID type status role"

// strange reports unknown kinds and fields. It changes no state of a session.
func (t *Translator) strange(ev event, b *body) {
	t.strangeFields(ev.Type, ev.Type, ev.Properties, "")
	if len(b.Part) > 0 {
		t.strangeFields(ev.Type+" part", "part "+b.part.Type, b.Part, ids)
	}
	if b.part.Type == "tool" {
		t.strangeFields(ev.Type+" state", "state "+b.part.State.Status, b.state(), ids)
	}
	if ev.Type == "session.status" {
		t.strangeFields(ev.Type, "status "+b.Status.Type, b.field("status", ev.Properties), ids)
	}
	switch {
	case len(b.Info) == 0:
	case strings.HasPrefix(ev.Type, "session."):
		t.strangeFields(ev.Type, "session", b.Info, ids)
	default:
		t.strangeFields(ev.Type, "message "+b.messageInfo.Role, b.Info, ids)
	}
}

// strangeFields counts an object's unknown fields, or the object itself if its kind is unknown.
func (t *Translator) strangeFields(typ, kind string, raw json.RawMessage, also string) {
	fields, ok := known[kind]
	if !ok {
		t.unknown(typ + ": " + kind)
		return
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		// its reader has already reported it
		return
	}
	names := strings.Fields(fields + " " + also)
	for name := range object {
		if !slices.Contains(names, name) {
			t.unknown(kind + ": field " + name)
		}
	}
}

func (b *body) state() json.RawMessage { return b.field("state", b.Part) }

// field is one raw field of an object.
func (*body) field(name string, raw json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	return object[name]
}
