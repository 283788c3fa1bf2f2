package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limits of a repair.
const (
	sessionsMax = 200 // the newest sessions of a directory that are looked at
	farSeq      = 1 << 50
)

// Texts of a repair, which people and the model read.
const (
	repairCall     = "Interrupted: OpenCode was restarted while this ran. It may have had an effect."
	repairQuestion = "Interrupted: OpenCode was restarted while this question was open."
	repairWaited   = "Interrupted: OpenCode was restarted while this waited for a permission."
	repairMessage  = "OpenCode was restarted during this answer."
)

// metadataReported is what a repair says of a call: whether it had metadata before, which a call stores as soon as it
// runs.
const metadataReported = "reported"

// stored is a session as the server lists it.
type stored struct {
	ID        string `json:"id"`
	Parent    string `json:"parentID"`
	Directory string `json:"directory"`
}

// repairAll closes what a dead process of the server left open in the store: its screens show it as running for ever,
// and the model is shown no reason. Sessions of sub-agents go first. It runs before the process that serves now is
// marked, so a bridge that is killed during a repair repairs again. Sessions that run are left alone, and so is
// everything in a process with a mark: there a call without an end may be about to end. So are sessions that the log
// does not have: several processes of OpenCode share one store, and another one may run them.
func (r *follower) repairAll(ctx context.Context, directories []string) {
	seen := map[string]bool{}
	for _, dir := range directories {
		var list []stored
		if err := r.api.get(ctx, &list, dir, "session"); err != nil {
			r.log.Warn("not repaired", "directory", dir, "err", err)
			continue
		}
		list = list[:min(len(list), sessionsMax)]
		for _, s := range deepestFirst(list) {
			if seen[s.ID] || !r.holds(s.ID) {
				continue
			}
			seen[s.ID] = true
			if err := r.repair(ctx, list, s); err != nil {
				r.log.Warn("not repaired", "session", s.ID, "err", err)
			}
		}
	}
}

// holds reports whether the log has a session of this harness.
func (r *follower) holds(session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[session]
}

// waits reports whether the log has a prompt of a call that awaits its answer.
func (r *follower) waits(session, call string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[session][ident("call", call)]
}

// deepestFirst sorts sessions so that each one comes before its parent.
func deepestFirst(list []stored) []stored {
	parents := map[string]string{}
	for _, s := range list {
		parents[s.ID] = s.Parent
	}
	depth := func(s stored) (n int) {
		for at := s.Parent; at != "" && n < rootMax; at = parents[at] {
			n++
		}
		return n
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b stored) int { return depth(b) - depth(a) })
	return list
}

// openMessage is a message of a snapshot, decoded.
type openMessage struct {
	Message
	info  messageInfo
	parts []part
}

func decodeMessages(n *Snapshot) []openMessage {
	all := make([]openMessage, 0, len(n.Messages))
	for _, m := range n.Messages {
		o := openMessage{Message: m, parts: make([]part, len(m.Parts))}
		if err := json.Unmarshal(m.Info, &o.info); err != nil && !misshapen(err) {
			continue
		}
		for i, raw := range m.Parts {
			if err := json.Unmarshal(raw, &o.parts[i]); err != nil && !misshapen(err) {
				continue
			}
		}
		all = append(all, o)
	}
	return all
}

// open reports whether a model call has no end.
func (m *openMessage) open() bool { return m.info.Role == "assistant" && !m.info.completed() }

// requests reports whether a message asks for a compaction.
func (m *openMessage) requestsCompaction() bool {
	return slices.ContainsFunc(m.parts, func(p part) bool { return p.Type == "compaction" })
}

// repair closes what is open in one session that does not run.
func (r *follower) repair(ctx context.Context, all []stored, s stored) error {
	n, err := r.read(ctx, s.Directory, s.ID)
	if err != nil || !n.Idle {
		return err
	}
	messages := decodeMessages(n)
	halves, err := r.removeHalf(ctx, s, messages)
	if err != nil {
		return err
	}
	for i := range messages {
		m := &messages[i]
		if slices.Contains(halves, m.info.ID) {
			continue
		}
		for k := range m.parts {
			if state := m.parts[k].State.Status; m.parts[k].Type != "tool" || state != "pending" && state != "running" {
				continue
			}
			if err := r.closePart(ctx, s, m, k, nil); err != nil {
				return err
			}
		}
		if m.open() {
			if err := r.complete(ctx, all, s, m, "", repairMessage); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeHalf removes a compaction that was cut off, and returns the ids of its messages.
func (r *follower) removeHalf(ctx context.Context, s stored, messages []openMessage) (halves []string, err error) {
	halves = halfCompaction(messages)
	for _, id := range halves {
		if err := r.api.call(ctx, http.MethodDelete, r.api.at(s.Directory, "session", s.ID, "message", id), nil,
			nil); err != nil {
			return halves, err
		}
		r.log.Info("half a compaction was removed", "session", s.ID, "message", id)
	}
	return halves, nil
}

// halfCompaction returns the ids of a compaction that was cut off: the newest request of one, unless a summary of it
// has ended, and the summary that has not. Left in the store, they make the next prompt a request for a summary.
func halfCompaction(messages []openMessage) (ids []string) {
	at := -1
	for i := range messages {
		if messages[i].info.Role == roleUser && messages[i].requestsCompaction() {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	request := messages[at].info.ID
	for i := at + 1; i < len(messages); i++ {
		m := &messages[i]
		switch {
		case !m.info.summary() || m.info.ParentID != request:
		case m.info.completed():
			// it ended; with an error, OpenCode knows that
			return nil
		default:
			ids = append(ids, m.info.ID)
		}
	}
	return append(ids, request)
}

// closePart stores the end of a call: an error with the reason, or the given state. Without a text in metadata.output,
// the model is shown the error; with one, it is shown that text as the result of a call that ended well.
func (r *follower) closePart(ctx context.Context, s stored, m *openMessage, k int, state map[string]any) error {
	p := &m.parts[k]
	var raw, old map[string]json.RawMessage
	var metadata map[string]any
	if err := json.Unmarshal(m.Parts[k], &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw["state"], &old); err != nil {
		return err
	}
	if json.Unmarshal(old["metadata"], &metadata) != nil || metadata == nil {
		metadata = map[string]any{}
	}
	delete(metadata, "output")
	metadata["interrupted"] = true
	var began struct {
		Start int64 `json:"start"`
	}
	now := time.Now().UnixMilli()
	if json.Unmarshal(old["time"], &began) != nil || began.Start == 0 {
		began.Start = now
	}
	if state == nil {
		metadata[metadataReported] = len(old["metadata"]) > 0
		text := repairCall
		switch {
		case p.Tool == "question":
			text = repairQuestion
		case r.waits(s.ID, p.CallID) && metadata[metadataReported] == false:
			text = repairWaited
		}
		state = map[string]any{"status": partError, "error": text, "metadata": metadata}
	}
	state["input"], state["time"] = json.RawMessage("{}"), map[string]int64{"start": began.Start, "end": now}
	if isObject(p.State.Input) {
		state["input"] = p.State.Input
	}
	raw["state"] = encode(state)
	r.log.Info("a call is closed", "session", s.ID, "call", p.CallID, "status", state["status"])
	return r.api.call(ctx, http.MethodPatch,
		r.api.at(s.Directory, "session", s.ID, "message", m.info.ID, "part", p.ID), raw, nil)
}

// complete stores the end of a model call through the replay of a durable event, the only way there is: with a finish,
// or with an error that people read. A server that refuses it is asked no more, and reported once.
func (r *follower) complete(ctx context.Context, all []stored, s stored, m *openMessage, finish, why string) error {
	if r.noReplay.Load() {
		return nil
	}
	last, err := r.lastEvent(ctx, all, s)
	if err == nil {
		info := map[string]any{}
		if err = json.Unmarshal(m.Info, &info); err != nil {
			return err
		}
		times, ok := info["time"].(map[string]any)
		if !ok {
			times = map[string]any{}
		}
		times["completed"] = time.Now().UnixMilli()
		info["time"] = times
		if finish != "" {
			info["finish"] = finish
			delete(info, "error")
		} else {
			info["error"] = map[string]any{"name": abortedError, "data": map[string]string{"message": why}}
		}
		err = r.api.post(ctx, map[string]any{"directory": s.Directory, "events": []any{map[string]any{
			"id": nextEventID(last.ID), "aggregateID": s.ID, "seq": last.Seq + 1, "type": "message.updated.1",
			"data": map[string]any{"sessionID": s.ID, "info": info}}}}, s.Directory, "sync", "replay")
	}
	if refused(err) || errors.Is(err, errNoEvents) {
		r.noReplay.Store(true)
		r.log.Warn("this server does not let messages be completed: they stay without an end", "err", err)
		return nil
	}
	if err == nil {
		r.log.Info("a message is completed", "session", s.ID, "message", m.info.ID)
	}
	return err
}

// errNoEvents says that the durable log of the server has nothing of a session.
var errNoEvents = errors.New("the history has no event of the session")

// durable is one event of the server's durable log.
type durable struct {
	ID      string `json:"id"`
	Session string `json:"aggregate_id"`
	Seq     int64  `json:"seq"`
}

// lastEvent returns the newest durable event of a session. Events of the other known sessions are not asked for.
func (r *follower) lastEvent(ctx context.Context, all []stored, s stored) (last durable, err error) {
	after := map[string]int64{}
	for _, other := range all {
		if other.ID != s.ID {
			after[other.ID] = farSeq
		}
	}
	var events []durable
	if err := r.api.call(ctx, http.MethodPost, r.api.at(s.Directory, "sync", "history"), after, &events); err != nil {
		return last, err
	}
	for _, e := range events {
		if e.Session == s.ID && (last.ID == "" || e.Seq > last.Seq) {
			last = e
		}
	}
	if last.ID == "" {
		return last, errNoEvents
	}
	return last, nil
}

// nextEventID returns an id that sorts behind another one: the instant in it is the same.
func nextEventID(id string) string {
	// the instant
	const keep = len("evt_") + 12
	if len(id) <= keep {
		return "evt_" + strings.Repeat("z", 26)
	}
	return id[:keep] + strings.Repeat("z", len(id)-keep)
}
