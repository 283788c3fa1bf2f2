package main

import (
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/retry"
)

func (w *world) deciders() []runner {
	comp, err := compaction.New(w.bus, compaction.Default(), zerolog.Nop())
	w.ok(err)
	again, err := retry.New(w.bus, retry.Default(), zerolog.Nop())
	w.ok(err)
	return []runner{comp, again}
}

// send sends a message as a client does.
func (w *world) send(id, text string) {
	w.t.Helper()
	w.until("the session", func(st *session.State) bool { return st.Opened() })
	w.request("compaction", "send", map[string]any{"message": id, "content": text, "by": "ada"})
}
