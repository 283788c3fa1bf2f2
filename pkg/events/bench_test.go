package events_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// typicalCommit is the most frequent commit of a harness: a call ends, the next one starts, usage is reported.
func typicalCommit(r events.Ref) []events.Event {
	at := time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	source := events.HarnessSource(r.Harness, "17")
	output := json.RawMessage(
		`{"stdout":"ok  \tgithub.com/x/y\t0.123s\nok  \tgithub.com/x/z\t0.456s\n","exit":0,"truncated":false}`,
	)
	facts := []events.Fact{
		events.ToolCompleted{Call: "call_01", Output: output},
		events.UsageReported{
			Turn:         "turn_01",
			Model:        "a-model",
			Tokens:       events.Tokens{Input: 1200, CacheRead: 90000, Output: 350},
			ContextLimit: 200000,
		},
		events.ToolStarted{
			Call:  "call_02",
			Turn:  "turn_01",
			Name:  "bash",
			Title: "go test ./...",
			Input: json.RawMessage(`{"command":"go test ./..."}`),
		},
	}
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New("01JD5ZK3Q2W8E7R6T5Y4U3I2O"+string(rune('0'+i)), source, r, 3, at, f)
	}
	return evs
}

func BenchmarkEncodeBatch(b *testing.B) {
	evs := typicalCommit(events.Ref{Harness: "laptop-1", Session: "ses_0123456789abcdef"})
	body, err := events.EncodeBatch(evs)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.EncodeBatch(evs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	r := events.Ref{Harness: "laptop-1", Session: "ses_0123456789abcdef"}
	body, err := events.EncodeBatch(typicalCommit(r))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := events.DecodeBatch(r, body); err != nil {
			b.Fatal(err)
		}
	}
}

// The ledger reads every commit. This limit keeps the cost of an ordinary one from growing unnoticed.
func TestAllocationsOfATypicalCommit(t *testing.T) {
	// allocations; the race detector adds some
	const decodeMax, encodeMax = 55, 14
	r := events.Ref{Harness: "laptop-1", Session: "ses_0123456789abcdef"}
	evs := typicalCommit(r)
	body := encode(t, evs...)
	if n := testing.AllocsPerRun(100, func() { _, _ = events.DecodeBatch(r, body) }); n > decodeMax {
		t.Errorf("decoding takes %v allocations, at most %d", n, decodeMax)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = events.EncodeBatch(evs) }); n > encodeMax {
		t.Errorf("encoding takes %v allocations, at most %d", n, encodeMax)
	}
}
