package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/park"
)

// Limits of parked input. The log has what they leave out, at the place that the parked message names.
const (
	parkedBytesMax   = 4 << 20 // bodies of one batch
	parkedReasonsMax = 2 << 10 // bytes of the reasons of one commit
	parkedRangesMax  = 2 << 10 // bytes of the list of facts
	parkPatience     = 500 * time.Millisecond
)

// parked is one fact, or one whole commit, that could not be read.
type parked struct {
	seq   uint64
	index int // of the fact; -1: the whole commit
	why   string
	err   error
}

// park sends unreadable input to the operator's stream: one message for each kind of problem of a commit, with its
// facts and the reason. It does not wait.
func (f *folder) park(ctx context.Context, ts []*touched, strays []park.Parked) []bus.Pending {
	for _, t := range ts {
		strays = append(strays, t.together()...)
	}
	under, size := make([]bus.Pending, 0, len(strays)), 0
	for _, p := range strays {
		if size += len(p.Body); size > parkedBytesMax {
			p.Body, p.Bytes = nil, len(p.Body)
		}
		f.log.Warn().Str("session", p.Ref.String()).Uint64("seq", p.Seq).Str("reason", p.Reason).Msg("parked")
		under = append(under, f.bus.Parking.ParkAsync(ctx, p))
	}
	return under
}

// together merges the items of one commit and one kind, in the order in which they were found.
func (t *touched) together() []park.Parked {
	type sort struct {
		seq uint64
		why string
	}
	of := map[sort][]parked{}
	var order []sort
	for _, p := range t.parked {
		k := sort{p.seq, p.why}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], p)
	}
	all := make([]park.Parked, 0, len(order))
	for _, k := range order {
		p := park.Parked{Why: k.why, Ref: t.ref, Seq: k.seq, Reason: reasons(of[k]), Facts: ranges(of[k])}
		for _, m := range t.msgs {
			if m.Seq == k.seq {
				p.Header, p.Body = m.Header, m.Body
			}
		}
		all = append(all, p)
	}
	return all
}

// reasons returns the reasons, fact by fact, as far as there is room.
func reasons(all []parked) string {
	var text strings.Builder
	for i, p := range all {
		one := p.err.Error()
		if p.index >= 0 {
			one = fmt.Sprintf("fact %d: %v", p.index, p.err)
		}
		if i > 0 && text.Len()+len(one) > parkedReasonsMax {
			fmt.Fprintf(&text, "; and %d more", len(all)-i)
			break
		}
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(one)
	}
	return strings.ToValidUTF8(text.String()[:min(text.Len(), 2*parkedReasonsMax)], "")
}

// ranges returns the facts' indexes, "" for the whole commit.
func ranges(all []parked) string {
	var text []byte
	for i := 0; i < len(all) && all[i].index >= 0; i++ {
		first := all[i].index
		for i+1 < len(all) && all[i+1].index == all[i].index+1 {
			i++
		}
		if len(text) > parkedRangesMax {
			return string(append(text, ",..."...))
		}
		if len(text) > 0 {
			text = append(text, ',')
		}
		if text = strconv.AppendInt(text, int64(first), 10); all[i].index > first {
			text = strconv.AppendInt(append(text, '-'), int64(all[i].index), 10)
		}
	}
	return string(text)
}

// parked waits, for a limited time, until parked input is stored: it is in the log as well, and no session is delayed
// by input that cannot be parked.
func (f *folder) parked(ctx context.Context, under []bus.Pending) {
	ctx, cancel := context.WithTimeout(ctx, parkPatience)
	defer cancel()
	failed, why := 0, error(nil)
	for _, p := range under {
		if _, err := p.Wait(ctx); err != nil {
			failed, why = failed+1, err
		}
	}
	if failed > 0 {
		f.count.parkFailed.Add(uint64(failed))
		f.log.Error().AnErr("err", why).Msgf("%d commits that cannot be read were not parked, or the broker did not "+
			"confirm it within %s: they are in the log", failed, parkPatience)
	}
}
