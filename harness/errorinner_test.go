package harness

import (
	"context"
	"errors"
	"testing"
)

// TestNameOfThePackageStandsOnce: an error names this package once, and keeps what it is.
func TestNameOfThePackageStandsOnce(t *testing.T) {
	err := about(about(ErrFenced, "session %s", "s"), "append to %s", "a/s")
	const want = "harness: append to a/s: session s: fenced: the session was taken from this process"
	if err.Error() != want || !errors.Is(err, ErrFenced) {
		t.Errorf("%v", err)
	}
	h := &Harness{cfg: Config{ID: "a"}, state: leaseStarting, ctx: context.Background()}
	err = h.Work(context.Background(), Worker{Turn: func(context.Context, *Turn) error { return nil }})
	if err == nil || err.Error() != "harness: work of a: "+ErrNotReady.Error()[len("harness: "):] {
		t.Errorf("%v", err)
	}
}
