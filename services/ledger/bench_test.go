package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// BenchmarkBatch folds one commit of each of 500 sessions at a time, everything stored: what the active ledger does.
func BenchmarkBatch(b *testing.B) {
	const sessions = 500
	conn := natstest.Bus(b, natstest.Start(b))
	f := newFolder(conn, Default(), zerolog.Nop())
	last := make([]uint64, sessions)
	seq := uint64(0)
	round := 0
	next := func() []bus.Message {
		ms := make([]bus.Message, sessions)
		for k := range ms {
			r := events.Ref{Harness: "bench", Session: fmt.Sprintf("s%03d", k)}
			seq++
			ms[k] = message(b, conn, r, seq, last[k], fact(round))
			last[k] = seq
		}
		round++
		return ms
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		ms := next()
		b.StartTimer()
		if _, err := f.Batch(context.Background(), ms); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*sessions)/b.Elapsed().Seconds(), "events/s")
}

func fact(round int) events.Fact {
	call := fmt.Sprintf("call_%024d", round/2)
	switch {
	case round == 0:
		return events.SessionOpened{Incarnation: "1", Title: "a session"}
	case round == 1:
		return events.TurnStarted{Turn: "turn_1", Cause: events.CauseMessage}
	case round%2 == 0:
		return events.ToolStarted{Call: call, Turn: "turn_1", Name: "bash", Title: "go test ./...", Input: []byte(`{"command":"go test ./..."}`)}
	default:
		return events.ToolCompleted{Call: fmt.Sprintf("call_%024d", (round-1)/2), Output: []byte(`{"exit":0,"text":"ok"}`)}
	}
}

func message(b *testing.B, conn *bus.Bus, r events.Ref, seq, guard uint64, f events.Fact) bus.Message {
	b.Helper()
	body, err := events.EncodeBatch([]events.Event{events.New(conn.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(0, 0), f)})
	if err != nil {
		b.Fatal(err)
	}
	cell := conn.Cell()
	return bus.Message{Subject: cell.LogSubject(r, events.WriterHarness), Seq: seq, At: time.Unix(0, int64(seq)), Body: body, Header: map[string][]string{
		"Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(guard)}, "Nats-Expected-Last-Subject-Sequence-Subject": {cell.LogGuard(r)}}}
}
