package kv_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// Changes reports what was stored and deleted behind a revision, and nothing behind the end of a bucket.
func TestChanges(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	ctx := bustest.Within(t, bustest.Patience)
	changes := func(after uint64) (uint64, []string) {
		t.Helper()
		var seen []string
		end, err := b.KV.Changes(ctx, kv.State, "session.h.*", after, func(e kv.Entry) error {
			seen = append(seen, fmt.Sprint(e.Key, " ", string(e.Value), " ", e.Deleted))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return end, seen
	}
	if end, seen := changes(0); end != 0 || seen != nil {
		t.Errorf("of nothing: %d, %v", end, seen)
	}
	first := bustest.MustStore(t, b, "session.h.a", "1", 0)
	bustest.MustStore(t, b, "session.other.a", "1", 0)
	last := bustest.MustStore(t, b, "session.h.b", "2", 0)
	both := []string{"session.h.a 1 false", "session.h.b 2 false"}
	if end, seen := changes(0); end != last || !slices.Equal(seen, both) {
		t.Errorf("from the beginning: %d, %v", end, seen)
	}
	if err := b.KV.Delete(ctx, kv.State, "session.h.a", first); err != nil {
		t.Fatal(err)
	}
	end, seen := changes(last)
	if end <= last || !slices.Equal(seen, []string{"session.h.a  true"}) {
		t.Errorf("behind %d: %d, %v", last, end, seen)
	}
	if again, seen := changes(end); again != end || seen != nil {
		t.Errorf("without a change: %d, %v", again, seen)
	}
	if got, seen := changes(end + 1); got != end || seen != nil {
		t.Errorf("behind the end: %d, %v", got, seen)
	}
}
