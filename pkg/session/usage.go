package session

import (
	"math"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

// usageReported applies the report of the open turn, or of the one that ended last while none is open. It does not open
// or end a turn. Counts from before a compaction of the conversation no longer hold.
func (f *fold) usageReported(fact events.UsageReported) string {
	last, l := f.LastTurn, f.LastCompaction
	switch {
	case fact.Turn == "" || f.openTurn(fact.Turn) != "":
	case !f.turnEnded(fact.Turn):
		return WhyUnknown
	case f.Turn != nil || last == nil || last.ID != fact.Turn:
		return WhyTurnEnded
	case l != nil && l.Outcome == OutcomeCompleted && last.Seq <= l.Seq:
		return WhyTurnEnded
	}
	if fact.Model != "" {
		f.Model = cut(fact.Model, NameBytesMax)
	}
	if fact.ContextLimit > 0 {
		f.ContextLimit = fact.ContextLimit
	}
	switch used := fact.Used(); {
	case l == nil:
	// a report of nothing is not the least there was
	case f.Usage == nil, used > 0 && (l.UsedLeast == 0 || used < l.UsedLeast):
		l.UsedLeast = used
	}
	f.Usage = &Usage{Tokens: fact.Tokens, Used: fact.Used(), At: f.c.At}
	f.recount()
	return ""
}

// warnBelow is how far below the threshold, as a part of the limit, people are warned.
const warnBelow = 0.10

// warnExact: a threshold of 0.8 warns at 0.7, not at the 0.7000000000000001 that the subtraction gives.
const warnExact = 1e9

// recount derives what usage means under the present limit and policy.
func (f *fold) recount() {
	u := f.Usage
	if u == nil {
		return
	}
	u.Limit, u.Percent, u.Warn = f.Limit(), 0, false
	if u.Limit <= 0 {
		return
	}
	u.Percent = float64(u.Used*1000/u.Limit) / 10
	t := f.Policy.CompactionThreshold
	u.Warn = t < 1 && float64(u.Used) >= math.Round((t-warnBelow)*warnExact)/warnExact*float64(u.Limit)
}

// Limit returns how many tokens fit: the policy's, else the reported one, else the session's; 0 is unknown.
func (s *State) Limit() int64 {
	if s.Policy.ContextLimit > 0 {
		return s.Policy.ContextLimit
	}
	return max(s.ContextLimit, 0)
}

// thresholdExact is the precision of a threshold: 0.7 + 0.05 is 0.75.
const thresholdExact = 1e9

// UsageOver reports whether usage is at the threshold plus this part of the limit. It is false while usage or the limit
// is unknown, and with a threshold of 1.
func (s *State) UsageOver(more float64) bool {
	limit, t := s.Limit(), s.Policy.CompactionThreshold
	if s.Usage == nil || limit <= 0 || t >= 1 {
		return false
	}
	return float64(s.Usage.Used) >= math.Round((t+more)*thresholdExact)/thresholdExact*float64(limit)
}
