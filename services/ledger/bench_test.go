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

// BenchmarkBatch folds one commit of each of 500 sessions at a time and stores everything, as the active ledger does.
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
		return events.ToolStarted{Call: call, Turn: "turn_1", Name: "bash", Title: "go test ./...",
			Input: []byte(`{"command":"go test ./..."}`)}
	default:
		return events.ToolCompleted{Call: fmt.Sprintf("call_%024d", (round-1)/2),
			Output: []byte(`{"exit":0,"text":"ok"}`)}
	}
}

func message(b *testing.B, conn *bus.Bus, r events.Ref, seq, guard uint64, f events.Fact) bus.Message {
	b.Helper()
	return framed(b, conn, r, seq, guard,
		[]events.Event{events.New(conn.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(0, 0), f)})
}

// framed returns a commit as it is delivered.
func framed(b *testing.B, conn *bus.Bus, r events.Ref, seq, guard uint64, evs []events.Event) bus.Message {
	b.Helper()
	body, err := events.EncodeBatch(evs)
	if err != nil {
		b.Fatal(err)
	}
	cell := conn.Cell()
	return bus.Message{Subject: cell.LogSubject(r, events.WriterHarness), Seq: seq, At: time.Unix(0, int64(seq)).UTC(),
		Body: body, Header: map[string][]string{
			"Nats-Expected-Last-Subject-Sequence":         {fmt.Sprint(guard)},
			"Nats-Expected-Last-Subject-Sequence-Subject": {cell.LogGuard(r)}}}
}

// BenchmarkManyOpenCalls folds one commit of a session with the greatest number of open calls, and stores everything.
func BenchmarkManyOpenCalls(b *testing.B) {
	conn := natstest.Bus(b, natstest.Start(b))
	f := newFolder(conn, Default(), zerolog.Nop())
	r := events.Ref{Harness: "bench", Session: "many"}
	seq := uint64(0)
	next := func(facts ...events.Fact) bus.Message {
		seq++
		evs := make([]events.Event, len(facts))
		for i, x := range facts {
			evs[i] = events.New(conn.NewID(), events.HarnessSource(r.Harness, "1"), r, 1, time.Unix(0, 0), x)
		}
		return framed(b, conn, r, seq, seq-1, evs)
	}
	begin := []events.Fact{events.SessionOpened{Incarnation: "1"},
		events.TurnStarted{Turn: "t", Cause: events.CauseMessage}}
	for i := range 999 {
		begin = append(begin, events.ToolStarted{Call: fmt.Sprintf("call_%024d", i), Turn: "t", Name: "bash",
			Title: "go test ./..."})
	}
	fold := func(m bus.Message) {
		if _, err := f.Batch(context.Background(), []bus.Message{m}); err != nil {
			b.Fatal(err)
		}
	}
	fold(next(begin...))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		call := fmt.Sprintf("more_%024d", i/2)
		if i%2 == 0 {
			fold(next(events.ToolStarted{Call: call, Turn: "t", Name: "bash", Title: "go test ./..."}))
		} else {
			fold(next(events.ToolCompleted{Call: call}))
		}
	}
}
