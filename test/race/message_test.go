package race

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/test/invariants"
)

const (
	clockSlack = 20 * time.Millisecond  // the service's estimate of the broker's time may be ahead by this
	checkEvery = 100 * time.Millisecond // the harness's interval without a nudge
	limit      = 100_000                // the context size in tokens
)

// site is a lane with services: its harness reads its view after a nudge.
type site struct {
	*lane
	nudged chan struct{}
	won    map[string]int // number of outcomes by name
	later  time.Duration  // the delay of one of the two requests, so that they meet
}

// contend races in all sites concurrently, and then checks each log against the invariants of deciders.
func contend(t *testing.T, rounds int, outcomes int,
	round func(ctx context.Context, s *site, n int) (outcome string, err error)) {
	t.Helper()
	b := natstest.Bus(t, natstest.Start(t))
	services(t, b)
	sites := map[string]*site{}
	for n := range lanes {
		l := open(t, b, fmt.Sprintf("s%d", n))
		sites[l.ref.Session] = &site{lane: l, nudged: make(chan struct{}, 1), won: map[string]int{}}
	}
	if err := b.Hints.OnNudge(t.Context(), "h1", func(session string, _ uint64) {
		select {
		case sites[session].nudged <- struct{}{}:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, s := range sites {
		all.Go(func() {
			for n := range max(rounds/lanes, 1) {
				outcome, err := round(t.Context(), s, n)
				if err != nil {
					t.Errorf("%s, round %d: %v", s.ref, n, err)
					return
				}
				s.won[outcome]++
			}
		})
	}
	all.Wait()
	sum := map[string]int{}
	for _, s := range sites {
		s.checkLog(t)
		for outcome, n := range s.won {
			sum[outcome] += n
		}
	}
	t.Logf("outcomes: %v", sum)
	if len(sum) < outcomes && !t.Failed() {
		t.Errorf("there was no race: %v", sum)
	}
}

// checkLog checks that each writer appended only allowed facts, and that each fact counted.
func (s *site) checkLog(t *testing.T) {
	t.Helper()
	commits, err := s.bus.Log.Read(t.Context(), s.ref, 0)
	if err != nil {
		t.Fatal(err)
	}
	st, rules := session.New(s.ref), invariants.New(clockSlack)
	for i := range commits {
		before := st.Clone()
		for _, wrong := range rules.Commit(before, &commits[i], st.Fold(&commits[i]).Feed) {
			t.Errorf("%s at %d: %s", s.ref, commits[i].Seq, wrong)
		}
	}
	if st.Ignored.Count > 0 || st.Parked > 0 {
		t.Errorf("%s: an appended fact did not count: %+v, parked %d", s.ref, st.Ignored, st.Parked)
	}
}

// until folds commits until ok returns true.
func (s *site) until(ctx context.Context, what string, ok func(st *session.State) bool) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		if err := s.fold(ctx); err != nil || ok(s.st) {
			return err
		}
		select {
		case <-s.nudged:
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("waited for %s: %+v %+v", what, s.st.Pending, s.st.Queue)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// does appends facts of the harness. If another writer was first, it folds that commit and tries again. facts returns
// nil if there is nothing left to append.
func (s *site) does(ctx context.Context, facts func(st *session.State) []events.Fact) error {
	for {
		fs := facts(s.st)
		if fs == nil {
			return nil
		}
		err := s.append(ctx, events.WriterHarness, 1, fs...)
		if !errors.Is(err, bus.ErrLostRace) {
			return err
		}
		if err := s.fold(ctx); err != nil {
			return err
		}
	}
}

// takes takes the next requested turn, which must have this message, and completes it.
func (s *site) takes(ctx context.Context, message string) error {
	asked := func(st *session.State) bool { return st.Pending.Turn != nil && st.Pending.Turn.Message == message }
	if err := s.until(ctx, "the turn for "+message, asked); err != nil {
		return err
	}
	turn := s.st.Pending.Turn.ID
	return s.does(ctx, func(*session.State) []events.Fact {
		return []events.Fact{events.TurnStarted{Turn: turn}, events.TurnCompleted{Turn: turn}}
	})
}

// reply is a caller's reply.
type reply struct {
	seq    uint64
	code   int    // 0: success, at seq
	stands string // status of what stands instead
	err    error
}

func (s *site) ask(ctx context.Context, service, verb string, request any) (r reply) {
	var body struct {
		Seq uint64 `json:"seq"`
	}
	err := s.bus.Services.Request(ctx, service, verb, request, &body)
	refusal, refused := errors.AsType[*events.Refusal](err)
	switch {
	case err == nil:
		r.seq = body.Seq
	case refused && refusal.Stands != nil:
		r.code, r.stands = refusal.Code, refusal.Stands.Status
	default:
		r.err = fmt.Errorf("the reply is %w", err)
	}
	return r
}

func (s *site) send(ctx context.Context, message, content string) reply {
	body, err := json.Marshal(content)
	if err != nil {
		return reply{err: err}
	}
	return s.ask(ctx, compaction.Name, "send",
		request.Send{Ref: s.ref, Message: message, Content: body, By: "ada"})
}

// both runs two functions concurrently.
func both(a, b func() reply) (x, y reply, err error) {
	var all sync.WaitGroup
	all.Go(func() { x = a() })
	y = b()
	all.Wait()
	return x, y, errors.Join(x.err, y.err)
}

// TestSendAndAnswer: a person answers a question while another one sends a message. The question is either answered or
// superseded. The message is accepted in both cases, and the caller of the answer gets the result.
func TestSendAndAnswer(t *testing.T) {
	contend(t, *rounds, 2, func(ctx context.Context, s *site, n int) (string, error) {
		p, m := fmt.Sprint("p", n), fmt.Sprint("m", n)
		if err := s.does(ctx, func(*session.State) []events.Fact {
			return []events.Fact{events.PromptRequested{Prompt: p, PromptKind: events.PromptQuestion,
				Delivery: events.DeliverMessage, Questions: []events.Question{{ID: "q", Question: "?", Custom: true}}}}
		}); err != nil {
			return "", err
		}
		answered, sent, err := both(func() reply {
			s.aim.hold(0)
			return s.ask(ctx, ledger.Name, "answer", request.Answer{Ref: s.ref, Prompt: p, By: "ada",
				Answers: []events.Answer{{Question: "q", Text: "yes"}}})
		}, func() reply {
			s.aim.hold(1)
			return s.send(ctx, m, "never mind")
		})
		if err != nil {
			return "", err
		}
		s.aim.next(answered.code == 0)
		if err := s.fold(ctx); err != nil {
			return "", err
		}
		status := s.st.Prompts[p].Status
		switch {
		case sent.code != 0:
			return "", fmt.Errorf("the message was refused: %+v", sent)
		case answered.code == 0 && status == session.Answered && answered.seq < sent.seq:
		case answered.code == 410 && answered.stands == string(session.Superseded) && status == session.Superseded:
		default:
			return "", fmt.Errorf("the prompt is %s; the replies are %+v and %+v", status, answered, sent)
		}
		delivered := func(*session.State) []events.Fact { return []events.Fact{events.PromptDelivered{Prompt: p}} }
		if err := s.does(ctx, delivered); err != nil {
			return "", err
		}
		return string(status), s.takes(ctx, m)
	})
}

// TestWithdrawAndHandOut: a person withdraws a message while the harness takes it. The log has one of the two, and both
// callers get that result.
func TestWithdrawAndHandOut(t *testing.T) {
	contend(t, *rounds, 2, func(ctx context.Context, s *site, n int) (string, error) {
		m := fmt.Sprint("m", n)
		if sent := s.send(ctx, m, "do it"); sent.err != nil || sent.code != 0 {
			return "", fmt.Errorf("sent: %+v", sent)
		}
		if err := s.until(ctx, "the turn for "+m,
			func(st *session.State) bool { return st.Pending.Turn != nil }); err != nil {
			return "", err
		}
		turn, taken := s.st.Pending.Turn.ID, false
		withdrawn, _, err := both(func() reply {
			return s.ask(ctx, compaction.Name, "withdraw", request.Withdraw{Ref: s.ref, Message: m, By: "bob"})
		}, func() reply {
			// This takes about as long as a withdrawal.
			if n%2 == 0 {
				if err := s.bus.Services.Request(ctx, ledger.Name, "get", s.ref, nil); err != nil {
					return reply{err: err}
				}
			}
			return reply{err: s.does(ctx, func(st *session.State) []events.Fact {
				if taken = st.Pending.Turn != nil && st.Pending.Turn.ID == turn; !taken {
					return nil
				}
				return []events.Fact{events.TurnStarted{Turn: turn}}
			})}
		})
		if err != nil {
			return "", err
		}
		if err := s.fold(ctx); err != nil {
			return "", err
		}
		e, _ := s.st.Ended(session.EntityMessage, m)
		switch {
		case !taken && withdrawn.code == 0 && e.Outcome == string(session.Withdrawn) && withdrawn.seq == e.Seq &&
			s.st.Turn == nil && len(s.st.Queue) == 0:
			return "withdrawn", nil
		case taken && withdrawn.code == 409 && withdrawn.stands == session.OutcomeDelivered &&
			e.Outcome == session.OutcomeDelivered:
			return "delivered", s.does(ctx,
				func(*session.State) []events.Fact { return []events.Fact{events.TurnCompleted{Turn: turn}} })
		}
		return "", fmt.Errorf("the message was %s; taken: %v; the reply to the person is %+v", e.Outcome, taken,
			withdrawn)
	})
}

// TestTwoPeopleSend: two people send concurrently. Each reply has the message's seq in the log, and messages are
// delivered in this order. One id has only one content.
func TestTwoPeopleSend(t *testing.T) {
	contend(t, *rounds, 2, func(ctx context.Context, s *site, n int) (string, error) {
		ids, contents := [2]string{fmt.Sprint("a", n), fmt.Sprint("b", n)}, [2]string{"x", "y"}
		same := n%4 == 0
		if same {
			ids[1] = ids[0]
		}
		x, y, err := both(func() reply { return s.send(ctx, ids[0], contents[0]) },
			func() reply { return s.send(ctx, ids[1], contents[1]) })
		if err != nil {
			return "", err
		}
		switch {
		case same && x.code == 0 && y.code == 409:
			return "one of one id", s.takes(ctx, ids[0])
		case same && x.code == 409 && y.code == 0:
			return "other of one id", s.takes(ctx, ids[0])
		case same || x.code != 0 || y.code != 0 || x.seq == y.seq:
			return "", fmt.Errorf("the replies are %+v and %+v", x, y)
		}
		first, second, outcome := ids[0], ids[1], "first"
		if y.seq < x.seq {
			first, second, outcome = second, first, "second"
		}
		if err := s.takes(ctx, first); err != nil {
			return "", err
		}
		return outcome, s.takes(ctx, second)
	})
}

// compactAndStopPart reduces the rounds of this race, because a round has many steps.
const compactAndStopPart = 5

// laterStep is the change of a stop's delay from one round to the next.
const laterStep = 500 * time.Microsecond

// TestCompactAndStop: a person stops a turn while a compaction stops it. In either order, the turn does not continue
// after the compaction, and the reply has the seq of the stop.
func TestCompactAndStop(t *testing.T) {
	contend(t, *rounds/compactAndStopPart, 2, func(ctx context.Context, s *site, n int) (string, error) {
		turn := fmt.Sprint("t", n)
		if err := s.does(ctx, func(*session.State) []events.Fact {
			return []events.Fact{events.TurnStarted{Turn: turn, Cause: events.CauseMessage},
				events.UsageReported{Turn: turn, Tokens: events.Tokens{Input: limit}, ContextLimit: limit}}
		}); err != nil {
			return "", err
		}
		select {
		case <-time.After(s.later):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		stopped := s.ask(ctx, ledger.Name, "stop", request.Stop{Ref: s.ref, By: "ada"})
		if stopped.err != nil || stopped.code != 0 {
			return "", fmt.Errorf("the stop was refused: %+v", stopped)
		}
		if err := s.fold(ctx); err != nil {
			return "", err
		}
		p := s.st.Pending.Stop
		if p == nil || p.Turn != turn || p.Actor != events.ActorPerson || p.Seq != stopped.seq {
			return "", fmt.Errorf("the reply is that the stop stands at %d: %+v", stopped.seq, p)
		}
		compacting := false
		err := s.does(ctx, func(st *session.State) []events.Fact {
			facts := []events.Fact{}
			if st.Turn != nil {
				facts = append(facts, events.TurnStopped{Turn: turn, Actor: events.ActorPerson})
			}
			if c := st.Pending.Compaction; c != nil {
				compacting = true
				facts = append(facts, events.CompactionStarted{Compaction: c.ID},
					events.CompactionCompleted{Compaction: c.ID, UsedAfter: 1})
			}
			return facts
		})
		if err != nil {
			return "", err
		}
		if s.later += laterStep; compacting {
			s.later = max(s.later-4*laterStep, 0)
		}
		m := fmt.Sprint("m", n)
		if sent := s.send(ctx, m, "go on"); sent.err != nil || sent.code != 0 {
			return "", fmt.Errorf("sent: %+v", sent)
		}
		return fmt.Sprintf("compacting %v", compacting), s.endsWith(ctx, m)
	})
}

// endsWith takes every requested turn until the turn of this message has completed.
func (s *site) endsWith(ctx context.Context, message string) error {
	for {
		if err := s.until(ctx, "work", func(st *session.State) bool {
			return st.Pending.Turn != nil ||
				st.Pending.Compaction != nil
		}); err != nil {
			return err
		}
		done := false
		err := s.does(ctx, func(st *session.State) []events.Fact {
			if c := st.Pending.Compaction; c != nil {
				return []events.Fact{events.CompactionStarted{Compaction: c.ID},
					events.CompactionCompleted{Compaction: c.ID, UsedAfter: 1}}
			}
			p := st.Pending.Turn
			if p == nil {
				return nil
			}
			done = p.Message == message
			// The compaction has reduced the conversation.
			few := events.UsageReported{Turn: p.ID, Tokens: events.Tokens{Input: 1}}
			return []events.Fact{events.TurnStarted{Turn: p.ID}, few, events.TurnCompleted{Turn: p.ID}}
		})
		if err != nil || done {
			return err
		}
	}
}
