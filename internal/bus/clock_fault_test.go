package bus_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// clockScript is a broker that says what time it is from its own clock, and what the log has of each instant.
type clockScript struct {
	ahead []time.Duration // of each answer in turn; the last one stays. Less than -24 h: an error
	last  []int           // the log's last commit, of each answer in turn; the last one stays
	get   func(seq int) []said
	n     int
}

const noAnswer = -1000 * time.Hour

func (c *clockScript) answer(a asked) []said {
	if a.is("STREAM.MSG.GET") {
		var q question
		_ = json.Unmarshal([]byte(a.body), &q) // the requests themselves are not tested
		return c.get(q.Seq)
	}
	ahead, last := c.ahead[min(c.n, len(c.ahead)-1)], c.last[min(c.n, len(c.last)-1)]
	c.n++
	if ahead == noAnswer {
		return trouble
	}
	return says(fmt.Sprintf(`{"ts":%q,"state":{"last_seq":%d}}`, time.Now().Add(ahead).UTC().Format(time.RFC3339Nano),
		last))
}

// TestAnOldClockIsMeasuredFirst: a clock that was not used for long is measured before it is believed.
func TestAnOldClockIsMeasuredFirst(t *testing.T) {
	c := &clockScript{ahead: []time.Duration{0, 2 * time.Hour}, last: []int{3}}
	b := scripted(t, c.answer).open()
	ctx := within(t, patience)
	if _, err := b.Clock(ctx); err != nil {
		t.Fatal(err)
	}
	b.ClockAged(time.Minute)
	if now, err := b.Clock(ctx); err != nil || len(now.Steps) != 1 || time.Until(now.Now) < time.Hour {
		t.Errorf("%+v, %v; want the step of two hours", now, err)
	}
}

// TestOneAnswerIsNoStep: the broker has to say twice that its clock was set. Where it does not answer a second time,
// nothing is noted.
func TestOneAnswerIsNoStep(t *testing.T) {
	for name, second := range map[string]time.Duration{"as before": 0, "no answer": noAnswer} {
		t.Run(name, func(t *testing.T) {
			c := &clockScript{ahead: []time.Duration{0, 2 * time.Hour, second, 0}, last: []int{3}}
			b := scripted(t, c.answer).open()
			ctx := within(t, patience)
			for range 3 {
				now, err := b.Clock(ctx)
				if err != nil || len(now.Steps) != 0 || time.Until(now.Now).Abs() > time.Minute {
					t.Fatalf("%+v, %v; want no step", now, err)
				}
				b.ClockAged(time.Minute)
			}
		})
	}
}

// TestWhereAStepLies: the last commit before a step is looked for by the commits' instants. Where that cannot be found
// out, it is the commit with which what was set meanwhile comes late rather than early.
func TestWhereAStepLies(t *testing.T) {
	at := func(seq int, ahead time.Duration) []said {
		return stored("hf.log.h.s.harness", seq, "", "[]", time.Now().Add(ahead))
	}
	for _, c := range []struct {
		name  string
		ahead time.Duration
		get   func(seq int) []said
		want  uint64
	}{
		{"forward, 6 is the first after it", 2 * time.Hour, func(seq int) []said {
			if seq < 6 {
				return at(seq, 0)
			}
			return at(seq, 2*time.Hour)
		}, 5},
		{"back, 6 is the first after it", -2 * time.Hour, func(seq int) []said {
			if seq < 6 {
				return at(seq, 0)
			}
			return at(seq, -2*time.Hour)
		}, 5},
		{"forward, the log is shorter", 2 * time.Hour, func(seq int) []said {
			if seq < 6 {
				return at(seq, 0)
			}
			return notFound
		}, 5},
		{"back, the log is shorter", -2 * time.Hour, func(seq int) []said {
			if seq < 6 {
				return at(seq, 0)
			}
			return notFound
		}, 5},
		{"forward, the next one is younger than the measurement", 2 * time.Hour, func(seq int) []said {
			if seq < 6 {
				return at(seq, 0)
			}
			return at(20, 0)
		}, 5},
		{"forward, no answer", 2 * time.Hour, func(int) []said { return trouble }, 10},
		{"back, no answer", -2 * time.Hour, func(int) []said { return trouble }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker := &clockScript{ahead: []time.Duration{0, c.ahead}, last: []int{2, 10}, get: c.get}
			b := scripted(t, broker.answer).open()
			ctx := within(t, patience)
			if _, err := b.Clock(ctx); err != nil {
				t.Fatal(err)
			}
			b.ClockAged(time.Minute)
			now, err := b.Clock(ctx)
			if err != nil || len(now.Steps) != 1 || now.Steps[0].Seq != c.want {
				t.Errorf("%+v, %v; want a step after %d", now.Steps, err, c.want)
			}
		})
	}
}
