package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	buslease "github.com/holdfast-dev/holdfast/internal/bus/lease"
)

// TestNameOfThePackageStandsOnce: an error names this package once, and keeps what it is.
func TestNameOfThePackageStandsOnce(t *testing.T) {
	err := about(about(ErrFenced, "session %s", "s"), "append to %s", "a/s")
	const want = "harness: append to a/s: session s: fenced: the session was taken from this process"
	if err.Error() != want || !errors.Is(err, ErrFenced) {
		t.Errorf("%v", err)
	}
	h := &Harness{cfg: Config{ID: "a"}, state: buslease.Starting, ctx: context.Background()}
	err = h.Work(context.Background(), Worker{Turn: func(context.Context, *Turn) error { return nil }})
	if err == nil || err.Error() != "harness: work of a: "+ErrNotReady.Error()[len("harness: "):] {
		t.Errorf("%v", err)
	}
}

// TestTranslatedOnce: an error of the bus gets its name of this package, and says it once. The chain has both names.
func TestTranslatedOnce(t *testing.T) {
	for want, err := range map[string]error{
		"harness: broker unreachable: read HF_LOG: nats: timeout": fmt.Errorf("read HF_LOG: %w: nats: timeout",
			bus.ErrUnreachable),
		"harness: lease lost":                        bus.ErrLeaseLost,
		"harness: forbidden: publish to x":           fmt.Errorf("publish to x: %w", bus.ErrForbidden),
		"harness: log full: the disk is full: store": fmt.Errorf("%w: the disk is full: store", bus.ErrFull),
	} {
		got := translate(err)
		if got.Error() != want {
			t.Errorf("%q\nwant %q", got, want)
		}
		if !errors.Is(got, err) || translate(got).Error() != want {
			t.Errorf("%q: the chain of the error is cut, or it gets its name twice", got)
		}
	}
}
