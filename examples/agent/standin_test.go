package main

import (
	"encoding/json"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

func (w *world) deciders() []runner { return nil }

// send plays the compaction service.
func (w *world) send(id, text string) {
	w.t.Helper()
	w.until("the session", func(st *session.State) bool { return st.Opened() })
	content, err := json.Marshal(text)
	w.ok(err)
	st := w.state()
	var evs []events.Event
	for _, f := range []events.Fact{events.MessageAccepted{Message: id, Content: content, By: "ada"}, events.TurnRequested{Turn: "turn-" + id, Cause: events.CauseMessage, Message: id}} {
		evs = append(evs, events.New(w.bus.NewID(), events.ServiceSource("compaction", "test"), w.ref(), st.Epoch, time.Now(), f))
	}
	seq, err := w.bus.Append(w.ctx, w.ref(), events.WriterCompaction, st.Seq, evs)
	w.ok(err)
	w.bus.Nudge(w.ref(), seq)
}
