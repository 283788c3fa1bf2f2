// Package race runs concurrent requests of people and services on a real broker: two answers, an answer and an expiry,
// a retry and its cancellation, an answer and a message, a message's withdrawal and its delivery, two messages, a stop
// and a compaction. Exactly one wins, and every caller gets the winner in its reply (P9, P10, P14, T16, C5, C7, C18).
package race

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

var rounds = flag.Int("rounds", quickOrLong(2_000, 10_000), "races of each sort")

// quickOrLong is the first for everybody, the second where a test may take long.
func quickOrLong(quick, long int) int {
	if os.Getenv("HOLDFAST_LONG") != "" {
		return long
	}
	return quick
}

const (
	lanes   = 16               // concurrent sessions
	timeout = 20 * time.Minute // for all rounds
)

// asked is one caller's input for a prompt: an answer, or its expiry ("").
type asked struct {
	prompt string
	value  string
}

// outcome is a caller's output: it won, or the value that stands.
type outcome struct {
	won    bool
	stands string
}

const expired = "expired"

// register models a prompt as a write-once register.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			by[op.Input.(asked).prompt] = append(by[op.Input.(asked).prompt], op)
		}
		parts := make([][]porcupine.Operation, 0, len(by))
		for _, ops := range by {
			parts = append(parts, ops)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		stands, w, t := state.(string), input.(asked), output.(outcome)
		if t.won {
			return stands == "" || stands == w.value, w.value
		}
		return stands != "" && stands == t.stands, stands
	},
}

// lane is one session with one prompt after the other.
type lane struct {
	bus *bus.Bus
	ref events.Ref
	st  *session.State
	ops []porcupine.Operation
	aim aiming // the delay of the first caller; negative: of the second
}

func open(t *testing.T, b *bus.Bus, name string) *lane {
	t.Helper()
	l := &lane{bus: b, ref: events.Ref{Harness: "h1", Session: name}}
	l.st = session.New(l.ref)
	l.mustAppend(t, events.WriterHarness, 1, events.SessionOpened{Incarnation: "1"})
	return l
}

// mustAppend appends facts. There is no other writer at that moment.
func (l *lane) mustAppend(t *testing.T, w events.Writer, epoch uint64, facts ...events.Fact) {
	// it may run on any goroutine
	t.Helper()
	if err := l.append(t.Context(), w, epoch, facts...); err != nil {
		t.Error(err)
	}
}

func (l *lane) append(ctx context.Context, w events.Writer, epoch uint64, facts ...events.Fact) error {
	source := events.HarnessSource("h1", "1")
	if w != events.WriterHarness {
		source = events.ServiceSource(string(w), "race")
	}
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(l.bus.NewID(), source, l.ref, epoch, time.Unix(0, 0), f)
	}
	if _, err := l.bus.Log.Append(ctx, l.ref, w, l.st.Seq, evs); err != nil {
		return err
	}
	return l.fold(ctx)
}

func (l *lane) fold(ctx context.Context) error {
	tail, err := l.bus.Log.Read(ctx, l.ref, l.st.Seq+1)
	for i := range tail {
		l.st.Fold(&tail[i])
	}
	return err
}

// answer sends one person's answer.
func (l *lane) answer(ctx context.Context, prompt, value string) (outcome, error) {
	err := l.bus.Services.Request(ctx, ledger.Name, "answer", request.Answer{Ref: l.ref, Prompt: prompt, By: value,
		Answers: []events.Answer{{Question: "q", Selected: []string{value}}}}, nil)
	refusal, refused := errors.AsType[*events.Refusal](err)
	switch {
	case err == nil:
		return outcome{won: true}, nil
	case !refused || refusal.Stands == nil:
		return outcome{}, err
	case refusal.Code == 409 && refusal.Stands.Status == string(session.Answered):
		return outcome{stands: refusal.Stands.Answers[0].Selected[0]}, nil
	case refusal.Code == 410:
		return outcome{stands: refusal.Stands.Status}, nil
	}
	return outcome{}, err
}

// expire does what the reconciler does: it decides on its state, and decides again if another writer was first.
func (l *lane) expire(ctx context.Context, prompt string) (outcome, error) {
	mine := &lane{bus: l.bus, ref: l.ref, st: l.st.Clone()}
	// This takes about as long as an answer.
	if err := l.bus.Services.Request(ctx, ledger.Name, "get", l.ref, nil); err != nil {
		return outcome{}, err
	}
	for {
		if p := mine.st.Prompts[prompt]; p == nil || p.Status != session.Awaiting {
			// the only answer in that race
			return outcome{stands: "a"}, nil
		}
		err := mine.append(ctx, events.WriterReconciler,
			1, events.PromptExpired{Prompt: prompt, Reason: events.ReasonDeadline})
		if err == nil {
			return outcome{won: true}, nil
		}
		if !errors.Is(err, bus.ErrLostRace) {
			return outcome{}, err
		}
		if err := mine.fold(ctx); err != nil {
			return outcome{}, err
		}
	}
}

// race runs two callers on a new prompt and records their outcomes.
func (l *lane) race(t *testing.T, prompt string, callers ...func(context.Context) (asked, outcome, error)) {
	t.Helper()
	l.mustAppend(t, events.WriterHarness, 1, events.PromptRequested{Prompt: prompt, PromptKind: events.PromptQuestion,
		Delivery:  events.DeliverMessage,
		Questions: []events.Question{{ID: "q", Question: "?", Options: []events.Option{{Label: "a"}, {Label: "b"}}}}})
	var wg sync.WaitGroup
	ops := make([]porcupine.Operation, len(callers))
	for i, call := range callers {
		wg.Go(func() {
			l.aim.hold(i)
			start := time.Now().UnixNano()
			w, out, err := call(t.Context())
			if err != nil {
				t.Errorf("%s: caller %d: %v", prompt, i, err)
			}
			ops[i] = porcupine.Operation{ClientId: i, Input: w, Call: start, Output: out, Return: time.Now().UnixNano()}
		})
	}
	wg.Wait()
	if first, ok := ops[0].Output.(outcome); ok {
		l.aim.next(first.won)
	}
	l.ops = append(l.ops, ops...)
	if err := l.fold(t.Context()); err != nil {
		t.Error(err)
	}
	l.mustAppend(t, events.WriterHarness, 1, events.PromptDelivered{Prompt: prompt})
}

// run races in all lanes concurrently and checks the recorded outcomes, and the log, against the register.
func run(t *testing.T, callers func(l *lane, prompt string) []func(context.Context) (asked, outcome, error)) {
	b := natstest.Bus(t, natstest.Start(t))
	led, err := ledger.New(b, ledger.Default(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	ended := make(chan error, 1)
	go func() { ended <- led.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	ready(t, b)
	var wg sync.WaitGroup
	all := make([]*lane, lanes)
	for n := range all {
		all[n] = open(t, b, fmt.Sprintf("s%d", n))
		wg.Go(func() {
			for i := range *rounds / lanes {
				prompt := fmt.Sprintf("p%d-%d", n, i)
				all[n].race(t, prompt, callers(all[n], prompt)...)
			}
		})
	}
	wg.Wait()
	var history []porcupine.Operation
	settled := 0
	for _, l := range all {
		history = append(history, l.ops...)
		settled += l.settlements(t)
	}
	if settled != *rounds/lanes*lanes {
		t.Errorf("%d prompts were settled in %d rounds", settled, *rounds)
	}
	if !porcupine.CheckOperations(register, history) {
		t.Error("a caller got a value that does not stand")
	}
	won := map[string]int{}
	for _, op := range history {
		if op.Output.(outcome).won {
			won[op.Input.(asked).value]++
		}
	}
	t.Logf("%d rounds, won: %v", settled, won)
	if len(won) < 2 {
		t.Errorf("there was no race: %v", won)
	}
}

// settlements counts the facts in the log that settled prompts. Each of them must count.
func (l *lane) settlements(t *testing.T) int {
	t.Helper()
	commits, err := l.bus.Log.Read(t.Context(), l.ref, 0)
	if err != nil {
		t.Fatal(err)
	}
	st, n := session.New(l.ref), 0
	for i := range commits {
		for _, e := range st.Fold(&commits[i]).Feed {
			if events.Lookup(e.Kind).Ends == "prompt" {
				n++
			}
		}
	}
	if st.Ignored.Count > 0 {
		t.Errorf("%s: an appended fact did not count: %+v", l.ref, st.Ignored.Last)
	}
	return n
}

func ready(t *testing.T, b *bus.Bus) {
	t.Helper()
	natstest.Until(t, "the ledger answers", func() bool {
		return b.Services.Request(t.Context(), ledger.Name, "list", struct{}{}, nil) == nil
	})
}

func TestTwoPeopleAnswer(t *testing.T) {
	run(t, func(l *lane, prompt string) []func(context.Context) (asked, outcome, error) {
		by := func(value string) func(context.Context) (asked, outcome, error) {
			return func(ctx context.Context) (asked, outcome, error) {
				out, err := l.answer(ctx, prompt, value)
				return asked{prompt, value}, out, err
			}
		}
		return []func(context.Context) (asked, outcome, error){by("a"), by("b")}
	})
}

func TestAnswerAndExpiry(t *testing.T) {
	run(t, func(l *lane, prompt string) []func(context.Context) (asked, outcome, error) {
		return []func(context.Context) (asked, outcome, error){
			func(ctx context.Context) (asked, outcome, error) {
				out, err := l.answer(ctx, prompt, "a")
				return asked{prompt, "a"}, out, err
			},
			func(ctx context.Context) (asked, outcome, error) {
				out, err := l.expire(ctx, prompt)
				return asked{prompt, expired}, out, err
			},
		}
	})
}
