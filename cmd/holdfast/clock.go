package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/control"
)

// Limits of the report about clocks.
const (
	clockApartMin = 5 * time.Second // smaller differences between two machines' clocks are not reported
	clockStepAge  = 24 * time.Hour  // how long a step of the broker's clock is reported
)

// clock compares the broker's clock with this machine's, and reports recent steps of the broker's clock.
func (p *patient) clock(ctx context.Context) {
	const do = "keep the clocks of all machines synchronised (NTP); what was planned before a step is done as long " +
		"after it as was planned"
	now, err := p.bus.Clock.Read(ctx)
	if err != nil {
		p.add("clock", levelWrong, "", "%v", err)
		return
	}
	steps, _, err := control.LoadSteps(ctx, p.bus.KV)
	if err != nil {
		p.add("clock", levelWrong, "", "%v", err)
		return
	}
	var notes []string
	if apart := time.Until(now.Now); apart.Abs() > clockApartMin {
		notes = append(notes, fmt.Sprintf("the broker's clock is %s this machine's",
			apart.Abs().Round(time.Second).String()+" "+word(apart, "ahead of", "behind")))
	}
	for _, s := range steps {
		if now.Now.Sub(s.At).Abs() < clockStepAge {
			notes = append(notes, fmt.Sprintf("the broker's clock was set %s by %s, at %s, after commit %d",
				word(s.By(), "forward", "back"), s.By().Abs().Round(time.Second), s.At.UTC().Format(time.RFC3339),
				s.Seq))
		}
	}
	if len(notes) > 0 {
		p.add("clock", levelNote, do, "%s", strings.Join(notes[max(0, len(notes)-namesMax):], "; "))
		return
	}
	p.add("clock", levelOK, "", "the broker's clock agrees with this machine's, and was not set within a day")
}

// word returns more or less, by the sign.
func word(d time.Duration, more, less string) string {
	if d < 0 {
		return less
	}
	return more
}
