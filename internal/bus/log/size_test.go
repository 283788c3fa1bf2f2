package log_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestLargestCommit checks that the largest body that [events.EncodeBatch] allows is stored, under the longest prefix
// and the longest ids, and that one byte more is refused before it is sent: the limit counts what is really sent,
// headers included.
func TestLargestCommit(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t), func(c *bus.Config) { c.Prefix = "p" + strings.Repeat("x", 31) })
	r := events.Ref{Harness: strings.Repeat("h", events.TokenBytesMax),
		Session: strings.Repeat("s", events.TokenBytesMax)}
	commit := func(content int) []events.Event {
		var evs []events.Event
		for i, n := range []int{200 << 10, 200 << 10, content} {
			f := events.MessageAccepted{Message: string(rune('a' + i)),
				Content: json.RawMessage(`"` + strings.Repeat("x", n) + `"`)}
			evs = append(evs, events.New(string(rune('a'+i)), events.HarnessSource(r.Harness, "1"), r, math.MaxUint32,
				time.Unix(1, 0), f))
		}
		return evs
	}
	small, err := events.EncodeBatch(commit(0))
	if err != nil {
		t.Fatal(err)
	}
	room := events.CommitBodyMax - len(small)
	ctx := bustest.Within(t, bustest.Patience)
	if _, err := b.Log.Append(ctx, r, events.WriterCompaction, 0, commit(room+1)); !errors.Is(err,
		events.ErrMalformed) {
		t.Errorf("one byte beyond the limit: %v", err)
	}
	if _, err := b.Log.Append(ctx, r, events.WriterCompaction, 0, commit(room)); err != nil {
		t.Fatalf("the largest commit: %v", err)
	}
	cs, err := b.Log.Read(ctx, r, 1)
	if err != nil || len(cs) != 1 || len(cs[0].Events) != 3 || cs[0].Err != nil {
		t.Errorf("read: %v, %d commits", err, len(cs))
	}
}
