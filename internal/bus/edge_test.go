package bus_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// TestNamesAreChecked: a session whose name is longer than a name may be is refused before the broker is asked.
func TestNamesAreChecked(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	long := events.Ref{Harness: "h", Session: strings.Repeat("s", events.TokenBytesMax+1)}
	if _, err := b.Log.Head(ctx, long); err == nil {
		t.Error("head")
	}
	if _, err := b.Log.Read(ctx, long, 0); err == nil {
		t.Error("read")
	}
	if err := b.Log.PurgeSession(ctx, long, 1); err == nil || errors.Is(err, bus.ErrNotFound) {
		t.Errorf("purge: %v", err)
	}
	if _, err := b.Objects.Put(ctx, long, []byte("x")); err == nil {
		t.Error("put object")
	}
	if _, err := b.Log.Append(ctx, long, events.WriterHarness, 0, bustest.Facts("x")); err == nil {
		t.Error("append")
	}
}
