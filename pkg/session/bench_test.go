package session_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

var benchRef = events.Ref{Harness: "laptop-1", Session: "ses_0123456789abcdef"}

// benchCommit is one commit of the owning harness, as it was read from the log.
func benchCommit(tb testing.TB, seq uint64, facts ...events.Fact) *events.Commit {
	tb.Helper()
	evs := make([]events.Event, len(facts))
	at := time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	for i, f := range facts {
		evs[i] = events.New(fmt.Sprintf("01JD5ZK3Q2W8E7R6T5Y4U3-%d-%d", seq, i),
			events.HarnessSource(benchRef.Harness, "17"), benchRef, 1, at, f)
	}
	body, err := events.EncodeBatch(evs)
	if err != nil {
		tb.Fatal(err)
	}
	if evs, err = events.DecodeBatch(benchRef, body); err != nil {
		tb.Fatal(err)
	}
	return &events.Commit{Ref: benchRef, Writer: events.WriterHarness, Seq: seq,
		At: at.Add(time.Duration(seq) * time.Second), Events: evs}
}

// benchState is a session in the middle of its work: a turn, three calls, a question, usage, and a past.
func benchState(tb testing.TB) (*session.State, map[uint64]*events.Commit) {
	tb.Helper()
	s, log := session.New(benchRef), map[uint64]*events.Commit{}
	seq := uint64(0)
	fold := func(facts ...events.Fact) {
		seq++
		log[seq] = benchCommit(tb, seq, facts...)
		if res := s.Fold(log[seq]); len(res.Feed) < len(facts) {
			tb.Fatalf("commit %d: %d of %d facts count: %+v", seq, len(res.Feed), len(facts), s.Ignored.Last)
		}
	}
	fold(events.SessionOpened{Incarnation: "17", Title: "Fix the flaky test", Agent: "build", Model: "a-model",
		ContextLimit: 200000})
	for i := range 12 {
		turn := fmt.Sprintf("turn_%02d", i)
		fold(events.TurnStarted{Turn: turn, Cause: events.CauseMessage, Message: fmt.Sprintf("msg_%02d", i)})
		for j := range 3 {
			call := fmt.Sprintf("call_%02d_%d", i, j)
			fold(events.ToolStarted{Call: call, Turn: turn, Name: "bash", Title: "go test ./..."})
			if i < 11 {
				fold(events.ToolCompleted{Call: call})
			}
		}
		if i < 11 {
			fold(events.TurnCompleted{Turn: turn})
		}
	}
	fold(events.UsageReported{Turn: "turn_11", Model: "a-model",
		Tokens: events.Tokens{Input: 1200, CacheRead: 90000, Output: 350}, ContextLimit: 200000})
	fold(events.PromptRequested{Prompt: "prm_1", Turn: "turn_11", Call: "call_11_0", PromptKind: events.PromptQuestion,
		Title:    "Which database?",
		Delivery: events.DeliverToolResult, Questions: []events.Question{{ID: "db", Question: "Which?",
			Options: []events.Option{{Label: "postgres"}, {Label: "sqlite"}}}}})
	return s, log
}

// BenchmarkFold takes in what a harness appends most: a call ends, the next one starts, usage is counted.
func BenchmarkFold(b *testing.B) {
	s, _ := benchState(b)
	output := json.RawMessage(`{"stdout":"ok  \tgithub.com/x/y\t0.123s\n","exit":0}`)
	c := [2]*events.Commit{}
	for i := range c {
		c[i] = benchCommit(b, 1, events.ToolCompleted{Call: fmt.Sprintf("call_x_%d", i), Output: output},
			events.UsageReported{Turn: "turn_11", Model: "a-model",
				Tokens: events.Tokens{Input: 1200, CacheRead: 90000}, ContextLimit: 200000},
			events.ToolStarted{Call: fmt.Sprintf("call_x_%d", 1-i), Turn: "turn_11", Name: "bash",
				Title: "go test ./..."})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c[i%2].Seq = s.Seq + 1
		// the ids come again
		s.Recent = s.Recent[:min(len(s.Recent), 40)]
		s.Fold(c[i%2])
	}
}

func BenchmarkEncode(b *testing.B) {
	s, _ := benchState(b)
	doc, err := s.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	s, _ := benchState(b)
	doc, err := s.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := session.Decode(doc); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadHead returns what a decider pays for a document that needs nothing; compare it with BenchmarkDecode.
func BenchmarkReadHead(b *testing.B) {
	s, _ := benchState(b)
	doc, err := s.Encode()
	if err != nil {
		b.Fatal(err)
	}
	var r session.Reader
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Head(doc); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHead is the part of BenchmarkEncode that computes the head.
func BenchmarkHead(b *testing.B) {
	s, _ := benchState(b)
	b.ReportAllocs()
	for b.Loop() {
		if s.Head().V != session.HeadRules {
			b.Fatal("no head")
		}
	}
}

func BenchmarkClone(b *testing.B) {
	s, _ := benchState(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Clone()
	}
}

// BenchmarkViews renders what the ledger renders after a question was asked.
func BenchmarkViews(b *testing.B) {
	s, log := benchState(b)
	src := func(seq uint64) (*events.Commit, error) { return log[seq], nil }
	b.ReportAllocs()
	for b.Loop() {
		for _, id := range s.PendingPrompts() {
			if _, err := s.Blocker(id, src); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Work(src); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChanged returns what every commit costs that changes no view.
func BenchmarkChanged(b *testing.B) {
	s, _ := benchState(b)
	before := s.Clone()
	b.ReportAllocs()
	for b.Loop() {
		if len(session.BlockersChanged(before, s)) > 0 || session.WorkChanged(before, s) {
			b.Fatal("nothing has changed")
		}
	}
}
