package control

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// memoryLog is a log of sessions in memory, which counts the commits that are read.
type memoryLog struct {
	name string // in the ids of its events
	of   map[events.Ref][]events.Commit
	read int
	fail error // of the next read, after its first commit
	// during is called before the next read.
	during func()
}

func (k *memoryLog) each(_ context.Context, r events.Ref, from uint64, fn func(events.Commit) error) error {
	if do := k.during; do != nil {
		k.during = nil
		do()
	}
	for _, c := range k.of[r] {
		if c.Seq < from {
			continue
		}
		k.read++
		if err := fn(c); err != nil {
			return err
		}
		if err := k.fail; err != nil {
			k.fail = nil
			return err
		}
	}
	return nil
}

// append appends a commit for each fact, and returns the place of the last one.
func (k *memoryLog) append(r events.Ref, facts ...events.Fact) (seq uint64) {
	for _, f := range facts {
		seq = uint64(len(k.of[r]) + 1)
		k.of[r] = append(k.of[r], events.Commit{Seq: seq,
			Events: []events.Event{{ID: fmt.Sprint(k.name, seq), Fact: f}}})
	}
	return seq
}

func promptOf(f events.Fact) string {
	if f, ok := f.(events.PromptRequested); ok {
		return f.Prompt
	}
	return ""
}

// TestHadOfWhatNeverWas: a request about a prompt that the session never had reads its log once. Further ones,
// also about other prompts, read what is new. A prompt that the session has had is found, wherever it was requested.
func TestHadOfWhatNeverWas(t *testing.T) {
	ref := ref("s")
	k := &memoryLog{of: map[events.Ref][]events.Commit{}}
	a := NewHistory(k.each, promptOf, HistoryMax)
	asks := func(prompt string, never bool, reads int) {
		t.Helper()
		k.read = 0
		got, err := a.Never(t.Context(), ref, prompt)
		if err != nil || got != never || k.read != reads {
			t.Errorf("%s: never %t, %v, after %d commits; want %t after %d", prompt, got, err, k.read, never, reads)
		}
	}
	// a log without commits
	asks("p1", true, 0)
	k.append(ref, events.TurnStarted{Turn: "t1"}, events.PromptRequested{Prompt: "p1"},
		events.TurnStarted{Turn: "t2"})
	asks("p1", false, 3)
	asks("p2", true, 1)
	k.append(ref, events.TurnStarted{Turn: "t3"})
	asks("p2", true, 2)
	k.append(ref, events.PromptRequested{Prompt: "p2"})
	asks("p2", false, 2)
	asks("p1", false, 1)
	asks("p3", true, 1)

	// a cell that was restored has another commit in the place, and other prompts before it
	other := &memoryLog{name: "other", of: map[events.Ref][]events.Commit{}}
	other.append(ref, events.PromptRequested{Prompt: "p3"}, events.TurnStarted{Turn: "t2"},
		events.TurnStarted{Turn: "t3"}, events.TurnStarted{Turn: "t4"}, events.TurnStarted{Turn: "t5"},
		events.TurnStarted{Turn: "t6"})
	k.of = other.of
	asks("p3", false, 7)
	asks("p1", true, 1)

	// it lost its end
	k.of[ref] = k.of[ref][:2]
	asks("p2", true, 2)
	asks("p3", false, 1)

	// purged
	delete(k.of, ref)
	asks("p3", true, 0)
	k.append(ref, events.TurnStarted{Turn: "t9"})
	asks("p3", true, 1)
	asks("p3", true, 1)

	k.append(ref, events.TurnStarted{Turn: "t10"}, events.PromptRequested{Prompt: "p4"})
	k.fail = errors.New("the broker is away")
	if _, err := a.Never(t.Context(), ref, "p4"); err == nil {
		t.Error("a read that failed said whether there is a prompt")
	}
	// the next read repeats a failed one
	asks("p4", false, 3)

	// a request beside another one of the session reads the session whole, and one of them is kept
	k.read, k.during = 0, func() {
		if _, err := a.Never(t.Context(), ref, "p5"); err != nil {
			t.Error(err)
		}
	}
	if never, err := a.Never(t.Context(), ref, "p5"); err != nil || !never || k.read != 1+3 {
		t.Errorf("beside another request: never %t, %v, after %d commits", never, err, k.read)
	}
	asks("p5", true, 1)
	if len(a.of) != 1 || len(a.old) != 1 || a.kept != a.of[ref].room() {
		t.Errorf("%d sessions are kept, %d in order, %d counted", len(a.of), len(a.old), a.kept)
	}
}

// TestHadTakesBoundedMemory: what is kept of many sessions, or of one with many prompts, has a bound. The sessions
// that were asked about last are kept.
func TestHadTakesBoundedMemory(t *testing.T) {
	k := &memoryLog{of: map[events.Ref][]events.Commit{}}
	a := NewHistory(k.each, promptOf, 3*hadSession+6)
	session := func(i int) events.Ref { return events.Ref{Harness: "h", Session: fmt.Sprint(i)} }
	asks := func(i, reads int) {
		t.Helper()
		k.read = 0
		if _, err := a.Never(t.Context(), session(i), "none"); err != nil || k.read != reads {
			t.Errorf("session %d: %d commits were read, want %d: %v", i, k.read, reads, err)
		}
		sum := 0
		for _, in := range a.of {
			sum += in.room()
		}
		if sum != a.kept || sum > a.max || len(a.old) != len(a.of) {
			t.Fatalf("%d of %d are kept, %d counted, %d in order", sum, a.max, a.kept, len(a.old))
		}
	}
	for i := range 4 {
		k.append(session(i), events.PromptRequested{Prompt: "a"}, events.PromptRequested{Prompt: "b"})
		asks(i, 2)
	}
	asks(3, 1)
	asks(1, 1)
	asks(2, 1)
	// the first one was dropped, and now the one that was asked about longest ago
	asks(0, 2)
	asks(1, 1)
	asks(3, 2)
	for i := range a.max {
		k.append(session(4), events.PromptRequested{Prompt: fmt.Sprint(i)})
	}
	// more than there is room for: read whole each time, and no other is dropped for it
	asks(4, a.max)
	asks(4, a.max)
	asks(3, 1)
}
