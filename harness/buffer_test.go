package harness

import (
	"errors"
	"testing"
)

// TestBuffer: waiting facts are limited by number and by size, whichever is reached first, and room that is given back
// can be taken again.
func TestBuffer(t *testing.T) {
	b := &buffer{factsMax: 3, bytesMax: 100}
	for _, step := range []struct {
		facts, bytes int
		full         bool
	}{{1, 60, false}, {1, 41, true}, {1, 40, false}, {1, 1, true}, {-1, -60, false}, {3, 1, true}, {2, 60, false},
		{1, 0, true}} {
		var err error
		if step.facts < 0 {
			b.release(-step.facts, -step.bytes)
		} else {
			err = b.reserve(step.facts, step.bytes)
		}
		if errors.Is(err, ErrBufferFull) != step.full {
			t.Fatalf("%+v: %v", step, err)
		}
	}
	if b.facts != 3 || b.bytes != 100 {
		t.Errorf("%d facts, %d bytes", b.facts, b.bytes)
	}
}
