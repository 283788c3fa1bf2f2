package opencode

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of messages that the plugin holds.
const (
	holdChecksMax = 20 // looks at a held message before the plugin asks again
	handChecksMax = 5  // looks until OpenCode has a message that was handed to the plugin
)

// queuedPrefix is what the ids of messages begin with that the plugin has put into the queue.
const queuedPrefix = "queued-"

// heldMessage is a message that the plugin holds in OpenCode until its turn comes.
type heldMessage struct {
	session  string
	requests int // of the plugin, that have no reply yet
	place    place
	ready    chan struct{} // closed when place is set
}

// place is under which ids OpenCode stores a message: those under which the bridge would send it, so that a message
// that comes both ways is one message.
type place struct {
	Message string   `json:"message"`
	Part    string   `json:"part"` // the part with the mark
	Mark    sentMark `json:"mark"`
}

// heldMessage returns the message that the plugin holds under this id, for one request of the plugin. The returned
// function is called when the request has its reply.
func (r *follower) heldMessage(l *process, session, message string) (h *heldMessage, end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h = l.messages[message]; h == nil {
		h = &heldMessage{session: session, ready: make(chan struct{})}
		l.messages[message] = h
	}
	h.requests++
	l.hasHeld = true
	return h, func() { r.forgets(l, session, func() { h.requests-- }) }
}

// hand gives a message back to the plugin that holds it, which sends it. It reports false if no plugin does.
func (l *process) hand(message, sent, turn string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.messages[message]
	if h == nil {
		return false
	}
	if h.place.Message == "" {
		h.place = place{Message: sent, Part: partOf(sent), Mark: sentMark{Turn: turn}}
		close(h.ready)
	}
	return true
}

// mayBegin stores a message in the queue of its session, and holds its request until the turn comes that takes it.
// Sub-agents get theirs at once: a run of the parent waits for them.
func (r *follower) mayBegin(ctx context.Context, l *process, q pluginRequest) verdict {
	if !r.Drive.Queue {
		return permitted
	}
	s, err := r.opened(ctx, l, q.Session)
	if err != nil {
		return verdict{http.StatusServiceUnavailable, err.Error()}
	}
	if s.State().Parent != "" {
		return permitted
	}
	id := queuedPrefix + ident("msg", q.Message)
	h, end := r.heldMessage(l, s.ID(), id)
	defer end()
	if _, err := l.h.Send(ctx, harness.Message{Session: s.ID(), ID: id, Content: q.Text, By: byOpenCode}); err != nil {
		if refusal, ok := errors.AsType[*events.Refusal](err); ok && refusal.Code != http.StatusServiceUnavailable {
			return verdict{http.StatusConflict, err.Error()}
		}
		return verdict{http.StatusServiceUnavailable, err.Error()}
	}
	return r.awaitTurn(ctx, l, s, id, h)
}

// awaitTurn waits until a handler hands a message to the plugin, or until OpenCode has the message from an earlier
// bridge. A message that a person has withdrawn is refused.
func (r *follower) awaitTurn(ctx context.Context, l *process, s *harness.Session, id string, h *heldMessage) verdict {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for range holdChecksMax {
		select {
		case <-h.ready:
			return placed(h.place)
		case <-tick.C:
		case <-ctx.Done():
			if l.ctx.Err() != nil {
				return notYet
			}
			return leaving
		}
		if s.Confirm(ctx) != nil {
			continue
		}
		st := s.State()
		if isQueued(st, id) {
			continue
		}
		n, err := r.read(ctx, "", s.ID())
		if err != nil {
			continue
		}
		messages := decodeMessages(n)
		if mine := sentAs(messages, id); mine >= 0 {
			return placed(placeOf(&messages[mine]))
		}
		if st.Turn == nil || st.Turn.Message != id {
			return withdrawn
		}
	}
	return waits
}

// isQueued reports whether a message waits for its turn.
func isQueued(st *fold.State, id string) bool {
	for i := range st.Queue {
		if st.Queue[i].ID == id {
			return true
		}
	}
	return st.Pending.Turn != nil && st.Pending.Turn.Message == id
}

// placeOf is where OpenCode has a message.
func placeOf(m *openMessage) place {
	p := place{Message: m.info.ID, Part: partOf(m.info.ID)}
	if k := m.textPart(); k >= 0 {
		p.Part, p.Mark = m.parts[k].ID, m.parts[k].Metadata.Holdfast
	}
	return p
}

func placed(p place) verdict { return verdict{http.StatusOK, string(encode(p))} }

// opened returns the session of a request; it opens or claims the session if the bridge does not have it yet.
func (r *follower) opened(ctx context.Context, l *process, id string) (*harness.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := l.handle(ident("ses", id)); s != nil {
		return s, nil
	}
	var info json.RawMessage
	if err := r.api.get(ctx, &info, "", "session", id); err != nil {
		return nil, err
	}
	r.translator.show("session.created", map[string]any{"sessionID": id, "info": info})
	if err := r.store(ctx, r.translator.take()); err != nil {
		return nil, err
	}
	return r.session(ctx, &Step{Session: ident("ses", id)})
}

// sendOrHand sends the message of a turn. A plugin that holds the message gets it, with all its parts, unless OpenCode
// has it. A plugin that does not store it, because a person has aborted it, is not waited for.
func (r *follower) sendOrHand(ctx context.Context, l *process, s stored, t *harness.Turn, body map[string]any,
	has bool) error {
	id, _ := body["messageID"].(string)
	if has || !l.hand(t.Request().Message, id, t.ID()) {
		return r.send(ctx, l, s, body)
	}
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for range handChecksMax {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		n, err := r.read(ctx, s.Directory, s.ID)
		if err == nil && sentAs(decodeMessages(n), t.Request().Message) >= 0 {
			return nil
		}
	}
	return r.send(ctx, l, s, body)
}
