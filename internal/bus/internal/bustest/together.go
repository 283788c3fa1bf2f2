package bustest

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
)

// Together is a connection that sends what is written together as one batch.
func Together(c *bus.Config) { c.Synced = true }

// Batches is how many messages of a stream came as part of a batch.
func Batches(t *testing.T, js jetstream.JetStream, stream string) (n int) {
	t.Helper()
	ctx := Within(t, Patience)
	st, err := js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	state := st.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		if m, err := st.GetMsg(ctx, seq); err == nil && m.Header.Get("Nats-Batch-Id") != "" {
			n++
		}
	}
	return n
}
