package acp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	fold "github.com/holdfast-dev/holdfast/pkg/session"
)

// fuse is a context that ends when it was asked so often whether it has ended.
type fuse struct {
	context.Context
	left atomic.Int64
	blow context.CancelFunc
}

func newFuse(ctx context.Context, n int) *fuse {
	f := &fuse{}
	f.Context, f.blow = context.WithCancel(ctx)
	f.left.Store(int64(n))
	return f
}

// Done implements [context.Context].
func (f *fuse) Done() <-chan struct{} {
	if f.left.Add(-1) == 0 {
		f.blow()
	}
	return f.Context.Done()
}

// fuses has an attempt to take a session over end at each point at which it can end, in a session each, and the next
// attempt succeed. An earlier process leaves the sessions. meanwhile is called before the attempt, and check when the
// session was taken.
func fuses(t *testing.T, takes bool, leave func(s *stored, id string), meanwhile, check func(s *stored, r *record)) {
	t.Helper()
	// more than an attempt has
	const points = 60
	before := newStored(t)
	if err := before.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range points {
		leave(before, fmt.Sprint("s", n))
	}
	before.leave(patience, "")
	s := before.next()
	failed := 0
	for n := range points {
		r := newRecord(fmt.Sprint("s", n))
		meanwhile(s, r)
		s.mu.Lock()
		s.records[r.id] = r
		s.mu.Unlock()
		e := &entryOf{open: &events.SessionOpened{}, takes: takes, done: make(chan struct{})}
		ctx := newFuse(t.Context(), n+1)
		_, err := s.commit(ctx, r, e, nil)
		ctx.blow()
		if err != nil {
			failed++
			if _, err = s.commit(t.Context(), r, e, nil); err != nil {
				t.Fatalf("the attempt after %d: %v", n, err)
			}
		}
		check(s, r)
	}
	if failed < 5 || failed == points {
		t.Errorf("%d of %d attempts failed", failed, points)
	}
}

// grants has a person grant a permission, and the owner read it.
func (s *stored) grants(id, prompt string) {
	s.t.Helper()
	yes := []events.Answer{{Question: events.PermissionQuestion, Selected: []string{"yes"}}}
	natstest.Until(s.t, "a person is first", func() bool {
		st := s.state(id)
		facts := []events.Fact{events.PromptAnswered{Prompt: prompt, By: "ada", Answers: yes, Owed: true}}
		facts = append(facts, st.Settlement(prompt, fold.Answered, nil, yes, "")...)
		evs := make([]events.Event, len(facts))
		for i, f := range facts {
			evs[i] = events.New(s.bus.NewID(), events.PersonSource("ada"), st.Ref(), st.Epoch, time.Now(), f)
		}
		seq, err := s.bus.Log.Append(s.t.Context(), st.Ref(), events.WriterLedger, st.Seq, evs)
		if err != nil && !errors.Is(err, bus.ErrLostRace) {
			s.t.Fatal(err)
		}
		s.bus.Hints.Nudge(st.Ref(), seq)
		return err == nil
	})
}

// TestTakesAgainAfterAnyEnd: a process takes its session again, in which another process has begun a turn meanwhile. An
// attempt ends at any point. After the next one the turn has failed, once, and the process has the decision about its
// prompt.
func TestTakesAgainAfterAnyEnd(t *testing.T) {
	t.Parallel()
	fuses(t, false, func(s *stored, id string) {
		s.opens(id, starts("t2")...)
		s.adds(id, permission("p1", ""))
	}, func(_ *stored, r *record) {
		r.taken, r.turn, r.prompts = 1, "t1", map[string]events.PromptRequested{"p1": permission("p1", "")}
	}, func(s *stored, r *record) {
		s.grants(r.id, "p1")
		if d := s.decides(); d.r != r || d.prompt != "p1" || d.err != nil || d.answer.By != "ada" {
			t.Errorf("%s: %+v", r.id, d)
		}
		st := s.state(r.id)
		if st.Turn != nil || st.LastTurn.ID != "t2" || st.LastTurn.Outcome != fold.OutcomeFailed ||
			st.Ignored.Count > 0 {
			t.Errorf("%s: turn %+v, the last one %+v, ignored %+v", r.id, st.Turn, st.LastTurn, st.Ignored)
		}
	})
}

// TestTakesOverAfterAnyEnd: a process takes over the turn that waits for a person, or the one that was requested when
// the person had decided. An attempt ends at any point. After the next one the turn is handed over once, and the
// decision is there.
func TestTakesOverAfterAnyEnd(t *testing.T) {
	t.Parallel()
	for name, decided := range map[string]bool{"waits": false, "decided": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fuses(t, true, func(s *stored, id string) {
				s.opens(id, starts("t1")...)
				s.adds(id, permission("p1", "t1"))
				s.adds(id, permission("p2", "t1"))
			}, func(s *stored, r *record) {
				s.grants(r.id, "p1")
				if decided {
					s.grants(r.id, "p2")
				}
			}, func(s *stored, r *record) {
				in, prompts := s.given(), 0
				for _, d := range in.Decisions {
					if d.Answers == nil {
						t.Errorf("%s: %+v", r.id, d)
					}
				}
				if !decided {
					s.grants(r.id, "p2")
					for prompts = range 2 {
						if d := s.decides(); d.r != r || d.err != nil || d.answer.By != "ada" {
							t.Errorf("%s: %+v", r.id, d)
						}
					}
					prompts++
				}
				if len(in.Prompts) != prompts || len(in.Decisions) != 2-prompts || decided == (in.Turn == "t1") {
					t.Errorf("%s: %+v", r.id, in)
				}
				s.adds(r.id, events.TurnCompleted{Turn: in.Turn})
				st := s.until(r.id, "the receipts", func(st *fold.State) bool { return len(st.Prompts) == 0 })
				if st.Turn != nil || st.LastTurn.ID != in.Turn || st.LastTurn.Outcome != fold.OutcomeCompleted ||
					st.Pending.Turn != nil || st.Ignored.Count > 0 {
					t.Errorf("%s: turn %+v, the last one %+v, %+v, ignored %+v", r.id, st.Turn, st.LastTurn, st.Pending,
						st.Ignored)
				}
				natstest.Until(t, r.id+" is handed over once", func() bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return r.handing == 0
				})
			})
		})
	}
}
