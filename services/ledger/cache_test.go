package ledger

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestCacheIsBounded: the documents of the cached states have a limited number and a limited size, and the newest ones
// are cached.
func TestCacheIsBounded(t *testing.T) {
	const sessions, size = 100, 10
	for name, c := range map[string]*cache{
		"by number": {max: sessions, bytesMax: 1 << 30},
		"by size":   {max: 1 << 30, bytesMax: sessions * size},
	} {
		t.Run(name, func(t *testing.T) {
			c.clear()
			last := events.Ref{}
			for i := range 10 * sessions {
				last = events.Ref{Harness: "h", Session: fmt.Sprint(i)}
				c.put(last, cached{state: session.New(last), bytes: size})
				if n := len(c.young) + len(c.old); n > 2*sessions {
					t.Fatalf("%d states are cached, want %d at most", n, 2*sessions)
				}
			}
			if c.copy(last) == nil {
				t.Error("the newest state is not cached")
			}
		})
	}
}
