package opencode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Ids of messages and parts in OpenCode: a prefix, 12 hex digits of an instant and a counter, and random characters.
// OpenCode sorts messages by their ids, and takes one for answered if a later id is an answer.
const (
	messagePrefix = "msg_"
	partPrefix    = "prt_"
	partText      = "text" // the type of a part
	instantDigits = 12
)

// sentSuffix is what the id of a message of Holdfast ends with in OpenCode. It follows from the message alone: each
// attempt of a turn, in each process of a bridge, finds what an earlier one has sent.
func sentSuffix(message string) string { return "zz" + events.DeriveID("", message) }

// messageID returns the id under which a message of Holdfast is sent: behind the newest id in the session's store, and
// before all later ones. No clock decides it: an id that is ahead of OpenCode's clock would sort behind its answer.
func messageID(message, newest string) string {
	rest := strings.TrimPrefix(newest, messagePrefix)
	if len(rest) >= instantDigits || rest == "" {
		instant, err := strconv.ParseUint("0"+rest[:min(len(rest), instantDigits)], 16, 64)
		if err == nil && instant+1 < 1<<(4*instantDigits) {
			return fmt.Sprintf("%s%0*x%s", messagePrefix, instantDigits, instant+1, sentSuffix(message))
		}
	}
	// not an id of OpenCode's own
	return newest + sentSuffix(message)
}

// sentAs returns the index of a message that OpenCode has under its own id, or under that of a message of Holdfast; -1
// without one. The message that continues it after a compaction has its name, too: the newest one counts.
func sentAs(messages []openMessage, message string) int {
	if message == "" {
		return -1
	}
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i].info
		if m.Role == roleUser && (m.ID == message || ident("msg", m.ID) == message || isSent(m.ID, message)) {
			return i
		}
	}
	return -1
}

// isSent reports whether an id of OpenCode is that of a message of Holdfast.
func isSent(id, message string) bool {
	return message != "" && strings.HasSuffix(id, sentSuffix(message))
}

// sentMark is in the metadata of a message that the bridge has sent: for which turn, and which answer to the message
// was the newest then. It is stored with the message, so each process of a bridge finds out what OpenCode has got.
type sentMark struct {
	Turn  string `json:"turn"`
	After string `json:"after"`
}

// textPart returns the index of the part that has the mark, -1 without one.
func (m *openMessage) textPart() int {
	return slices.IndexFunc(m.parts, func(p part) bool { return p.Type == partText })
}

// unsent reports whether OpenCode has not begun with a requested turn: it does not have the message, or it has not got
// it for this turn, or it has not called the model since.
func unsent(messages []openMessage, turn, message string) bool {
	mine := sentAs(messages, message)
	if mine < 0 {
		return true
	}
	after, k := "", messages[mine].textPart()
	if k >= 0 {
		mark := messages[mine].parts[k].Metadata.Holdfast
		if mark.Turn != turn {
			return true
		}
		after = mark.After
	}
	return newestAnswer(messages, messages[mine].info.ID) == after
}

// sentAfter returns the index of the answer that was the newest one when a message was sent last, -1 without one.
func sentAfter(messages []openMessage, mine int) int {
	k := messages[mine].textPart()
	if k < 0 {
		return -1
	}
	after := messages[mine].parts[k].Metadata.Holdfast.After
	return slices.IndexFunc(messages, func(m openMessage) bool { return after != "" && m.info.ID == after })
}

// newestAnswer returns the id of the newest model call for a message, "" without one.
func newestAnswer(messages []openMessage, message string) string {
	if i := lastMessage(messages, "assistant", message); i >= 0 {
		return messages[i].info.ID
	}
	return ""
}

// newMessage sends the message of a turn under an id of its own, for the model and the agent of the newest message. The
// part has an id, too: a message that is sent twice is stored once.
func newMessage(messages []openMessage, last int, w fold.WorkTurn) map[string]any {
	var text string
	if json.Unmarshal(w.Content, &text) != nil {
		text = string(w.Content)
	}
	newest := ""
	for i := range messages {
		newest = max(newest, messages[i].info.ID)
	}
	id := messageID(w.Message, newest)
	body := map[string]any{"messageID": id, "parts": []map[string]any{{
		"id": partOf(id), "type": partText, "text": text,
		"metadata": map[string]any{"holdfast": sentMark{Turn: w.Turn}}}}}
	if last < 0 {
		return body
	}
	return withModel(body, &messages[last])
}

// partOf is the id of the text of a message that the bridge sends.
func partOf(message string) string { return partPrefix + strings.TrimPrefix(message, messagePrefix) }

// sameMessage sends a stored message again, for another turn. OpenCode stores nothing new then but the mark, and
// continues after what is there.
func sameMessage(messages []openMessage, mine int, turn string) map[string]any {
	m := &messages[mine]
	marked := m.textPart()
	parts := []map[string]any{}
	for i, p := range m.parts {
		if p.Type == partText {
			part := map[string]any{"id": p.ID, "type": partText, "text": p.Text}
			if metadata := metadataOf(m.Parts[i]); i == marked {
				metadata["holdfast"] = sentMark{Turn: turn, After: newestAnswer(messages, m.info.ID)}
				part["metadata"] = metadata
			} else if len(metadata) > 0 {
				part["metadata"] = metadata
			}
			if p.Synthetic {
				part["synthetic"] = true
			}
			if p.Ignored {
				part["ignored"] = true
			}
			parts = append(parts, part)
		}
	}
	return withModel(map[string]any{"messageID": m.info.ID, "parts": parts}, m)
}

// metadataOf returns the metadata of a stored part.
func metadataOf(raw json.RawMessage) map[string]any {
	var p struct {
		Metadata map[string]any `json:"metadata"`
	}
	if json.Unmarshal(raw, &p) != nil || p.Metadata == nil {
		return map[string]any{}
	}
	return p.Metadata
}

func withModel(body map[string]any, m *openMessage) map[string]any {
	if p, id := m.info.Model.ProviderID, m.info.Model.ModelID; p != "" && id != "" {
		body["model"] = map[string]string{"providerID": p, "modelID": id}
	}
	if m.info.Agent != "" {
		body["agent"] = m.info.Agent
	}
	return body
}
