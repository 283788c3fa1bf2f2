package harness_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/failure"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// reports are the usage facts in the log, the kinds of all facts in order, and how many are in the last commit.
func (w *world) reports(id string) (used []int64, kinds []string, last int) {
	w.t.Helper()
	cs, err := w.bus.Log.Read(w.ctx, ref(id), 0)
	check(w.t, err)
	for _, c := range cs {
		last = len(c.Events)
		for _, e := range c.Events {
			kinds = append(kinds, string(e.Kind))
			if f, ok := e.Fact.(events.UsageReported); ok {
				used = append(used, f.Used())
			}
		}
	}
	return used, kinds, last
}

func input(n int64) harness.Usage {
	return harness.Usage{Model: "m", Tokens: events.Tokens{Input: n}, ContextLimit: 100_000}
}

// Reports that change little cost at most one fact a second; the last one before the turn's end is never lost, and is
// in the commit that ends the turn.
func TestUsageCostsLittle(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	// below one percent of the limit, all together
	const reports = 900
	began := time.Now()
	for i := range int64(reports) {
		check(t, turn.Usage(w.ctx, input(50_000+i)))
	}
	check(t, turn.Complete(w.ctx, "stop"))
	st := w.state("s")
	used, kinds, last := w.reports("s")
	if st.Usage == nil || st.Usage.Used != 50_000+reports-1 || st.Ignored.Count != 0 {
		t.Errorf("the last report is lost: %+v, %+v", st.Usage, st.Ignored.Last)
	}
	// one at once, one before the end, one a second
	if most := 2 + int(time.Since(began)/time.Second); len(used) > most {
		t.Errorf("%d reports cost %d facts, more than %d", reports, len(used), most)
	}
	// it may just have been stored by itself
	second := time.Since(began) > time.Second
	if !strings.HasSuffix(strings.Join(kinds, " "), "usage.reported turn.completed") || last < 2 && !second {
		t.Errorf("%d facts in the last commit, %v", last, kinds)
	}
}

// TestUsageIsReportedInTime: a change by a percent of the limit is stored at once; a smaller one within a second.
func TestUsageIsReportedInTime(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	best := time.Hour
	for i := range int64(5) {
		start := time.Now()
		check(t, turn.Usage(w.ctx, input(10_000+1000*i)))
		w.until("s", "a percent more to be stored at once", func(st *session.State) bool {
			return st.Usage != nil && st.Usage.Used == 10_000+1000*i
		})
		if i > 0 {
			best = min(best, time.Since(start))
		}
	}
	// one a second
	if best > 700*time.Millisecond {
		t.Errorf("a report that changes much was stored after %s at best", best)
	}
	began := time.Now()
	check(t, turn.Usage(w.ctx, input(15_000)))
	check(t, turn.Usage(w.ctx, input(15_001)))
	w.until("s", "a percent more to be stored", func(st *session.State) bool { return st.Usage.Used >= 15_000 })
	if got := w.state("s").Usage.Used; got != 15_000 && time.Since(began) < time.Second {
		t.Errorf("a token more is stored at once: %d", got)
	}
	w.until("s", "what was held back to be stored by itself", func(st *session.State) bool {
		return st.Usage.Used == 15_001
	})
	check(t, turn.Usage(w.ctx, harness.Usage{Model: "another", Tokens: events.Tokens{Input: 14_001}}))
	w.until("s", "another model to be reported", func(st *session.State) bool { return st.Model == "another" })
	wantErr(t, turn.Usage(w.ctx, harness.Usage{Tokens: events.Tokens{Input: -1}}), events.ErrMalformed)
}

// TestHeldUsageGoesFirst: a held report goes before the end of the turn; for a turn that another writer has ended it is
// no error.
func TestHeldUsageGoesFirst(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	for name, end := range map[string]func(*harness.Session, *harness.Turn) error{
		"fails":     func(_ *harness.Session, u *harness.Turn) error { return u.FailWith(w.ctx, errors.New("no")) },
		"stops":     func(_ *harness.Session, u *harness.Turn) error { return u.Stop(w.ctx, events.ActorPerson, "") },
		"is left":   func(s *harness.Session, _ *harness.Turn) error { return s.Release(w.ctx, "") },
		"continues": func(s *harness.Session, u *harness.Turn) error { return next(w, s, u.ID()) },
		"is ended":  func(s *harness.Session, u *harness.Turn) error { return endedByOthers(w, s, u) },
	} {
		s := must[*harness.Session](t)(h.Open(w.ctx, "s-"+name, harness.OpenOptions{}))
		turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
		check(t, turn.Usage(w.ctx, input(500)))
		check(t, turn.Usage(w.ctx, input(501)))
		if err := end(s, turn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if st := w.state("s-" + name); st.Usage.Used != 501 || st.Ignored.Count != 0 {
			t.Errorf("%s: %+v, %+v", name, st.Usage, st.Ignored.Last)
		}
	}
}

// TestRefusedUsage: the log is full and refuses a report. The report is stored when the log has room again. A newer
// report takes its place.
func TestRefusedUsage(t *testing.T) {
	w := newWorld(t, smallLog)
	ctx, b := w.ctx, w.bus
	h := w.connect(pool)
	filler := must[*harness.Session](t)(h.Open(ctx, "f", harness.OpenOptions{}))
	turns := map[string]*harness.Turn{}
	for _, id := range []string{"one", "newer"} {
		s := must[*harness.Session](t)(h.Open(ctx, id, harness.OpenOptions{}))
		turns[id] = must[*harness.Turn](t)(s.StartTurn(ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	}
	w.fills(filler)
	for id, turn := range turns {
		check(t, turn.Usage(ctx, input(50_000)))
		natstest.Until(t, "the report to be refused and held back", func() bool {
			return harness.Reported(turn.Session()) == 50_000
		})
		if id == "newer" {
			check(t, turn.Usage(ctx, input(70_000)))
			natstest.Until(t, "the newer report to be refused and held back", func() bool {
				return harness.Reported(turn.Session()) == 70_000
			})
		}
	}
	if raised := must[bool](t)(b.Log.RaiseLimit(ctx)); !raised {
		t.Fatal("the limit of the log was not raised")
	}
	w.until("one", "the report", func(st *session.State) bool { return st.Usage != nil && st.Usage.Used == 50_000 })
	w.until("newer", "the newer report", func(st *session.State) bool {
		return st.Usage != nil && st.Usage.Used == 70_000
	})
	if used, _, _ := w.reports("newer"); len(used) != 1 {
		t.Errorf("reports %v are stored, want the newer one", used)
	}
}

// TestHeldUsageWithAFullBuffer: the end of a turn takes the last room of the buffer. The report that is held back goes
// before it all the same.
func TestHeldUsageWithAFullBuffer(t *testing.T) {
	w := newWorld(t)
	h := w.connect(func(c *harness.Config) { c.BufferFactsMax = 1 })
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1"}))
	check(t, turn.Usage(w.ctx, input(500)))
	w.until("s", "the first report", func(st *session.State) bool { return st.Usage != nil && st.Usage.Used == 500 })
	for n := int64(501); ; n++ {
		natstest.Until(t, "room for the end", func() bool { return harness.Waiting(s) == 0 })
		check(t, turn.Usage(w.ctx, input(n)))
		err := turn.Complete(w.ctx, "stop")
		if errors.Is(err, harness.ErrBufferFull) {
			// a second was over, and the report is being stored by itself
			continue
		}
		check(t, err)
		if st := w.state("s"); st.Usage.Used != n {
			t.Errorf("%+v, want the report of %d tokens", st.Usage, n)
		}
		return
	}
}

func next(w *world, s *harness.Session, of string) error {
	_, err := s.StartTurn(w.ctx, harness.StartOptions{Content: "y", OfTurn: of})
	return err
}

func endedByOthers(w *world, s *harness.Session, u *harness.Turn) error {
	w.append(s.ID(), events.WriterRetry, events.TurnFailed{Turn: u.ID(), Error: events.Failure{Kind: failure.Stalled}})
	_, err := s.StartTurn(w.ctx, harness.StartOptions{Content: "y"})
	return err
}

// T17: a stream without its finish mark is truncated, one without anything is empty, whatever else was right.
func TestStreams(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	text := func(m *harness.Stream) { m.Delta(true) }
	finish := func(reason string) func(*harness.Stream) { return func(m *harness.Stream) { m.Finish(reason) } }
	for _, tt := range []struct {
		name   string
		steps  []func(*harness.Stream)
		read   error
		want   string // kind; "" for a whole stream
		output bool
	}{
		{"whole", []func(*harness.Stream){text, finish("stop")}, nil, "", true},
		{"whole, and cut behind its finish", []func(*harness.Stream){text, finish("stop")}, io.ErrUnexpectedEOF, "",
			true},
		{"nothing at all", nil, io.EOF, failure.StreamTruncated, false},
		{"signs of life, then a finish",
			[]func(*harness.Stream){func(m *harness.Stream) { m.Delta(false) }, finish("stop")}, nil,
			failure.EmptyOutput, false},
		{"words, no finish", []func(*harness.Stream){text}, nil, failure.StreamTruncated, true},
		{"words, cut", []func(*harness.Stream){text}, io.ErrUnexpectedEOF, failure.StreamTruncated, true},
		{"filtered", []func(*harness.Stream){text, finish("content_filter")}, nil, failure.ModelRefusal, true},
		{"words, reset", []func(*harness.Stream){text}, errors.New("read: connection reset by peer"), failure.Network,
			true},
		{"an error of the provider's", []func(*harness.Stream){text},
			&harness.ProviderError{Raw: failure.Raw{Code: "overloaded_error"}}, failure.ServerError, true},
	} {
		m := turn.Stream()
		for _, step := range tt.steps {
			step(m)
		}
		err := m.Err(tt.read)
		f, is := errors.AsType[*harness.FailureError](err)
		if tt.want == "" && err != nil || tt.want != "" &&
			(!is || f.Failure.Kind != tt.want || f.HadOutput != tt.output) || m.HadOutput() != tt.output {
			t.Errorf("%s: %v (%+v)", tt.name, err, f)
		}
	}
}

// T18: a stream that delivers tells that the turn is alive, at most once a second.
func TestStreamsPing(t *testing.T) {
	w := newWorld(t)
	h := w.connect()
	s := must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
	turn := must[*harness.Turn](t)(s.StartTurn(w.ctx, harness.StartOptions{ID: "t1", Content: "x"}))
	pings := make(chan time.Time, 100)
	check(t, w.bus.Hints.OnProgress(w.ctx, func(r events.Ref) {
		if r == ref("s") {
			pings <- time.Now()
		}
	}))
	m, commits := turn.Stream(), w.state("s").Commits
	began := time.Now()
	natstest.Until(t, "three pings", func() bool {
		m.Delta(true)
		return len(pings) == 3
	})
	<-pings
	<-pings
	if took := (<-pings).Sub(began); took < 2*time.Second {
		t.Errorf("three pings in %s", took)
	}
	if w.state("s").Commits != commits {
		t.Error("pings cost facts")
	}
}

// C17.
func TestValidateSummary(t *testing.T) {
	for summary, ok := range map[string]bool{
		"The user wants red paint.": true, "{a} is a set, not JSON": true, "`{}`": true, "[1]": true,
		"see:\n```json\n{\"a\":1}\n```": true,
		"":                              false, " \n\t": false, "{}": false, ` {"tool":"read","path":"x"} `: false,
		"```json\n{\"a\":1}\n```": false,
		"```\n{\"a\":1}\n```":     false, "```\n```": false,
	} {
		err := harness.ValidateSummary(summary)
		f, is := errors.AsType[*harness.FailureError](err)
		if ok != (err == nil) || !ok && (!is || f.Failure.Kind != failure.BadSummary) {
			t.Errorf("%q: %v", summary, err)
		}
	}
}

// TestWhoStops (C5, T18): the handler gets the actor of a stop; for a stalled turn only the receipt is left to append.
func TestWhoStops(t *testing.T) {
	for _, actor := range []string{events.ActorPerson, events.ActorCompaction, events.ActorStall} {
		w := newWorld(t)
		h := w.connect()
		must[*harness.Session](t)(h.Open(w.ctx, "s", harness.OpenOptions{}))
		running, result := make(chan struct{}), make(chan error, 1)
		w.work(h, harness.Worker{Turn: func(ctx context.Context, turn *harness.Turn) error {
			close(running)
			result <- ended(t, ctx)
			return ctx.Err()
		}})
		w.request("s", "t1", "x")
		<-running
		stop := events.TurnStopRequested{Turn: "t1", Actor: actor, Reason: "because"}
		by, outcome, facts := events.WriterLedger, session.OutcomeStopped, []events.Fact{stop}
		switch actor {
		case events.ActorStall:
			by, outcome = events.WriterRetry, session.OutcomeFailed
			facts = append(facts, events.TurnFailed{Turn: "t1",
				Error: events.Failure{Kind: failure.Stalled, Text: "nothing came"}})
		case events.ActorCompaction:
			by = events.WriterCompaction
		}
		w.append("s", by, facts...)
		cause := <-result
		e, is := errors.AsType[*harness.StopError](cause)
		if !is || e.Actor != actor || e.Reason != "because" || !errors.Is(cause, harness.ErrStopped) ||
			errors.Is(cause, harness.ErrEnded) != (actor == events.ActorStall) {
			t.Errorf("%s: %v", actor, cause)
		}
		st := w.until("s", "the stop to be confirmed", func(st *session.State) bool {
			return st.Turn == nil && st.Pending.Stop == nil
		})
		if st.LastTurn.Outcome != outcome || st.Ignored.Count != 0 {
			t.Errorf("%s: %+v, %+v", actor, st.LastTurn, st.Ignored.Last)
		}
	}
}
