package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// entry is one line of a conversation's file.
type entry struct {
	Epoch    uint64   `json:"epoch"`              // the session's epoch when the entry was written
	Message  string   `json:"message,omitempty"`  // the id of the user's message
	Messages []string `json:"heard,omitempty"`    // in a summary: the ids of the messages in it, the newest last
	Answered bool     `json:"answered,omitempty"` // in a summary: no message in it waits for an answer
	message
}

// messagesMax is the maximum number of message ids in a summary. Only the last turn can be retried.
const messagesMax = 100

// conversation is the list of messages for the model in a session. It is a file with one entry per line. Each entry is
// on disk before anything depends on it. An entry of a process that had lost the session to a newer one is ignored: its
// epoch is lower than the epoch of an entry before it.
type conversation struct {
	path    string
	epoch   uint64
	entries []entry
}

// open reads a session's conversation. It drops a last line that a crash truncated.
func open(dir, session string, epoch uint64) (*conversation, error) {
	name, err := events.Token(session)
	if err != nil {
		return nil, fmt.Errorf("agent: conversation: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("agent: conversation of %s: %w", session, err)
	}
	c := &conversation{path: filepath.Join(dir, name+".jsonl"), epoch: epoch}
	raw, err := os.ReadFile(c.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("agent: conversation of %s: %w", session, err)
	}
	whole := raw[:bytes.LastIndexByte(raw, '\n')+1]
	if len(whole) < len(raw) {
		if err := os.Truncate(c.path, int64(len(whole))); err != nil {
			return nil, fmt.Errorf("agent: conversation of %s: %w", session, err)
		}
	}
	var newest uint64
	for line := range bytes.Lines(whole) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("agent: conversation of %s: line %d: %w", session, len(c.entries)+1, err)
		}
		if e.Epoch >= newest {
			newest, c.entries = e.Epoch, append(c.entries, e)
		}
	}
	return c, nil
}

// add appends an entry.
func (c *conversation) add(e entry) error {
	e.Epoch = c.epoch
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("agent: %s: %w", c.path, err)
	}
	if err := write(c.path, os.O_APPEND, append(line, '\n')); err != nil {
		return err
	}
	c.entries = append(c.entries, e)
	return nil
}

// notMade adds a result for calls that were not made.
func (c *conversation) notMade(calls ...toolCall) error {
	for _, call := range calls {
		if err := c.add(entry{message: message{Role: "tool", ToolCall: call.ID, Content: notMadeWords}}); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces all entries atomically.
func (c *conversation) replace(entries []entry) error {
	var all []byte
	for i := range entries {
		entries[i].Epoch = c.epoch
		line, err := json.Marshal(entries[i])
		if err != nil {
			return fmt.Errorf("agent: %s: %w", c.path, err)
		}
		all = append(append(all, line...), '\n')
	}
	next := c.path + ".next"
	if err := write(next, os.O_TRUNC, all); err != nil {
		return err
	}
	if err := os.Rename(next, c.path); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	c.entries = entries
	return nil
}

// write writes and syncs the bytes.
func write(path string, how int, raw []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o600)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// has reports whether a user's message is in the conversation, or in a summary of it.
func (c *conversation) has(message string) bool { return slices.Contains(c.messageIDs(), message) }

// messageIDs returns the ids of the users' messages.
func (c *conversation) messageIDs() (ids []string) {
	for _, e := range c.entries {
		ids = append(ids, e.Messages...)
		if e.Message != "" {
			ids = append(ids, e.Message)
		}
	}
	return ids
}

// messages returns the messages for the model, after the system message.
func (c *conversation) messages() []message {
	all := []message{{Role: "system", Content: systemWords}}
	for _, e := range c.entries {
		all = append(all, e.message)
	}
	return all
}

// answered reports whether the last entry is the model's answer. Then no model call is necessary.
func (c *conversation) answered() bool {
	if len(c.entries) == 0 {
		return false
	}
	last := &c.entries[len(c.entries)-1]
	return last.Answered || last.Role == "assistant" && len(last.ToolCalls) == 0
}

// dangling returns the calls without a result, in order. Their process died.
func (c *conversation) dangling() (calls []toolCall) {
	results := map[string]bool{}
	for _, e := range c.entries {
		results[e.ToolCall] = true
	}
	for _, e := range c.entries {
		for _, call := range e.ToolCalls {
			if !results[call.ID] {
				calls = append(calls, call)
			}
		}
	}
	return calls
}

// transcript returns the conversation as a text, for a summary.
func (c *conversation) transcript() string {
	var b strings.Builder
	for _, e := range c.entries {
		fmt.Fprintf(&b, "%s: %s\n", e.Role, e.Content)
		for _, call := range e.ToolCalls {
			fmt.Fprintf(&b, "(calls %s %s)\n", call.Function.Name, call.Function.Arguments)
		}
	}
	return b.String()
}

// summarise replaces the entries by a summary. It keeps the ids of the messages, because an earlier turn may be
// retried. It keeps a user's unanswered message: after the summary if no step was done for it yet, and otherwise before
// the summary of those steps.
func (c *conversation) summarise(summary string) error {
	ids := c.messageIDs()
	entries := []entry{{Messages: ids[max(0, len(ids)-messagesMax):], Answered: c.answered(),
		message: message{Role: "user", Content: summaryWords + summary}}}
	last := -1
	for i, e := range c.entries {
		if e.Message != "" {
			last = i
		}
	}
	switch {
	case last < 0 || c.answered():
	case last == len(c.entries)-1:
		entries = append(entries, c.entries[last])
	default:
		entries = append([]entry{c.entries[last]}, entries...)
	}
	return c.replace(entries)
}
