package clock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// clockScript is a broker that says what time it is from its own clock, and what the log has of each instant.
type clockScript struct {
	ahead []time.Duration // of each answer in turn; the last one stays. Less than -24 h: an error
	last  []int           // the log's last commit, of each answer in turn; the last one stays
	get   func(seq int) []bustest.Reply
	n     int
}

const noAnswer = -1000 * time.Hour

func (c *clockScript) answer(a bustest.Asked) []bustest.Reply {
	if a.Is("STREAM.MSG.GET") {
		var q bustest.Question
		// the requests themselves are not tested
		_ = json.Unmarshal([]byte(a.Body), &q)
		return c.get(q.Seq)
	}
	ahead, last := c.ahead[min(c.n, len(c.ahead)-1)], c.last[min(c.n, len(c.last)-1)]
	c.n++
	if ahead == noAnswer {
		return bustest.Trouble
	}
	return bustest.OneReply(fmt.Sprintf(`{"ts":%q,"state":{"last_seq":%d}}`,
		time.Now().Add(ahead).UTC().Format(time.RFC3339Nano),
		last))
}

// TestAnOldClockIsMeasuredFirst: a clock that was not used for long is measured before it is believed.
func TestAnOldClockIsMeasuredFirst(t *testing.T) {
	c := &clockScript{ahead: []time.Duration{0, 2 * time.Hour}, last: []int{3}}
	b := bustest.Scripted(t, c.answer).Open()
	ctx := bustest.Within(t, bustest.Patience)
	if _, err := b.Clock.Read(ctx); err != nil {
		t.Fatal(err)
	}
	b.Clock.Aged(time.Minute)
	if now, err := b.Clock.Read(ctx); err != nil || len(now.Steps) != 1 || time.Until(now.Now) < time.Hour {
		t.Errorf("%+v, %v; want the step of two hours", now, err)
	}
}

// TestOneAnswerIsNoStep: the broker has to say twice that its clock was set. Where it does not answer a second time,
// nothing is noted.
func TestOneAnswerIsNoStep(t *testing.T) {
	for name, second := range map[string]time.Duration{"as before": 0, "no answer": noAnswer} {
		t.Run(name, func(t *testing.T) {
			c := &clockScript{ahead: []time.Duration{0, 2 * time.Hour, second, 0}, last: []int{3}}
			b := bustest.Scripted(t, c.answer).Open()
			ctx := bustest.Within(t, bustest.Patience)
			for range 3 {
				now, err := b.Clock.Read(ctx)
				if err != nil || len(now.Steps) != 0 || time.Until(now.Now).Abs() > time.Minute {
					t.Fatalf("%+v, %v; want no step", now, err)
				}
				b.Clock.Aged(time.Minute)
			}
		})
	}
}

// TestWhereAStepLies: the last commit before a step is looked for by the commits' instants. Where that cannot be found
// out, it is the commit with which what was set meanwhile comes late rather than early.
func TestWhereAStepLies(t *testing.T) {
	at := func(seq int, ahead time.Duration) []bustest.Reply {
		return bustest.Stored("hf.log.h.s.harness", seq, "", "[]", time.Now().Add(ahead))
	}
	for _, c := range []struct {
		name  string
		ahead time.Duration
		get   func(seq int) []bustest.Reply
		want  uint64
	}{
		{"forward, 6 is the first after it", 2 * time.Hour, func(seq int) []bustest.Reply {
			if seq < 6 {
				return at(seq, 0)
			}
			return at(seq, 2*time.Hour)
		}, 5},
		{"back, 6 is the first after it", -2 * time.Hour, func(seq int) []bustest.Reply {
			if seq < 6 {
				return at(seq, 0)
			}
			return at(seq, -2*time.Hour)
		}, 5},
		{"forward, the log is shorter", 2 * time.Hour, func(seq int) []bustest.Reply {
			if seq < 6 {
				return at(seq, 0)
			}
			return bustest.NotFound
		}, 5},
		{"back, the log is shorter", -2 * time.Hour, func(seq int) []bustest.Reply {
			if seq < 6 {
				return at(seq, 0)
			}
			return bustest.NotFound
		}, 5},
		{"forward, the next one is younger than the measurement", 2 * time.Hour, func(seq int) []bustest.Reply {
			if seq < 6 {
				return at(seq, 0)
			}
			return at(20, 0)
		}, 5},
		{"forward, no answer", 2 * time.Hour, func(int) []bustest.Reply { return bustest.Trouble }, 10},
		{"back, no answer", -2 * time.Hour, func(int) []bustest.Reply { return bustest.Trouble }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker := &clockScript{ahead: []time.Duration{0, c.ahead}, last: []int{2, 10}, get: c.get}
			b := bustest.Scripted(t, broker.answer).Open()
			ctx := bustest.Within(t, bustest.Patience)
			if _, err := b.Clock.Read(ctx); err != nil {
				t.Fatal(err)
			}
			b.Clock.Aged(time.Minute)
			now, err := b.Clock.Read(ctx)
			if err != nil || len(now.Steps) != 1 || now.Steps[0].Seq != c.want {
				t.Errorf("%+v, %v; want a step after %d", now.Steps, err, c.want)
			}
		})
	}
}

// TestClockGivesUp: a request whose context ends before the broker has answered says so, for the clock as well.
func TestClockGivesUp(t *testing.T) {
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.Silence }).Open()
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	go func() { _, err := b.Clock.Now(ctx); done <- err }()
	if err := bustest.Receive(t, done, "the clock"); !errors.Is(err, bus.ErrUnreachable) {
		t.Errorf("%v, want ErrUnreachable", err)
	}
	if _, err := b.Log.LastSeq(ctx); !errors.Is(err, bus.ErrUnreachable) || strings.Contains(err.Error(), "%!") {
		t.Errorf("%v, want ErrUnreachable", err)
	}
}

// TestNowIsNeverAhead: however long the way to the broker takes, what is due by Now is due by the broker's clock.
func TestNowIsNeverAhead(t *testing.T) {
	s := natstest.Start(t)
	witness := natstest.Bus(t, s)
	p := bustest.NewProxy(t, s)
	b := bustest.BusAt(t, p.Addr)
	p.Hold(true, false)
	on := time.AfterFunc(200*time.Millisecond, func() { p.Hold(false, false) })
	defer on.Stop()
	now, err := b.Clock.Now(bustest.Within(t, bustest.Patience))
	if err != nil {
		t.Fatal(err)
	}
	seq := bustest.MustAppend(t, witness, bustest.Session, 0, "a")
	c, err := witness.Log.Commit(bustest.Within(t, bustest.Patience), seq)
	if err != nil || c.At.Before(now) {
		t.Errorf("what was stored after %s is of %s, %v", now, c.At, err)
	}
}
