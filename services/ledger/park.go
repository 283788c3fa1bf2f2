package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	parkFullPause    = time.Second
	parkLateMax      = 1_024    // messages that the broker has not confirmed in time
	parkLateBytesMax = 16 << 20 // of their bodies
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
func (f *folder) park(ctx context.Context, ts []*touched, strays []park.Parked) []parking {
	for _, t := range ts {
		strays = append(strays, t.together()...)
	}
	under, size := make([]parking, 0, len(strays)), 0
	for _, p := range strays {
		if size += len(p.Body); size > parkedBytesMax {
			p.Body, p.Bytes = nil, len(p.Body)
		}
		f.log.Warn().Str("session", p.Ref.String()).Uint64("seq", p.Seq).Str("reason", p.Reason).Msg("parked")
		under = append(under, parking{p, f.bus.Parking.ParkAsync(ctx, p)})
	}
	return under
}

// parking is a message that was sent to the operator's stream.
type parking struct {
	park.Parked
	bus.Pending
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
			one = fmt.Sprintf("event %d: %v", p.index, p.err)
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
// by input that cannot be parked. [folder.parkLate] parks the rest.
func (f *folder) parked(ctx context.Context, under []parking) {
	ctx, cancel := context.WithTimeout(ctx, parkPatience)
	defer cancel()
	late, why := 0, error(nil)
	for _, p := range under {
		if _, err := p.Wait(ctx); err != nil {
			f.late.add(p.Parked)
			late, why = late+1, err
		}
	}
	if late > 0 {
		f.count.parkedLate.Add(uint64(late))
		f.log.Warn().AnErr("err", why).Msgf("%d commits that cannot be read were not parked within %s: they are in "+
			"the log, and are parked later", late, parkPatience)
	}
}

// lateParked are messages that wait to be parked. Its methods may be called concurrently.
type lateParked struct {
	mu      sync.Mutex
	waiting []park.Parked
	size    int           // bytes of their bodies
	lost    int           // messages for which there was no room
	grown   chan struct{} // holds one token
}

func newLateParked() *lateParked { return &lateParked{grown: make(chan struct{}, 1)} }

// add keeps a message, if there is room.
func (l *lateParked) add(p park.Parked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == parkLateMax || l.size+len(p.Body) > parkLateBytesMax {
		l.lost++
	} else {
		l.waiting, l.size = append(l.waiting, p), l.size+len(p.Body)
	}
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

// take returns the first message, false for none, and how many had no room since the last call.
func (l *lateParked) take() (p park.Parked, ok bool, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, l.lost = l.lost, 0
	if len(l.waiting) == 0 {
		return p, false, lost
	}
	p = l.waiting[0]
	l.waiting, l.size = slices.Delete(l.waiting, 0, 1), l.size-len(p.Body)
	return p, true, lost
}

// parkLate parks what the broker did not confirm in time, one message at a time, until ctx ends. A message that was
// stored all the same is not stored again: its id says so.
func (f *folder) parkLate(ctx context.Context) error {
	for {
		p, ok, lost := f.late.take()
		if lost > 0 {
			f.parkFailed(lost, fmt.Errorf("more than %d messages, or %d bytes, wait to be parked", parkLateMax,
				parkLateBytesMax))
		}
		if ok {
			if err := f.parkOne(ctx, p); err != nil {
				f.parkFailed(1, err)
			}
			continue
		}
		select {
		case <-f.late.grown:
		case <-ctx.Done():
			return nil
		}
	}
}

// parkOne parks a message, and waits for room while the store is full.
func (f *folder) parkOne(ctx context.Context, p park.Parked) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("park %s: %w", p.Ref, err)
		}
		err := f.bus.Parking.Park(ctx, p)
		if !errors.Is(err, bus.ErrFull) {
			return err
		}
		select {
		case <-time.After(parkFullPause):
		case <-ctx.Done():
			return err
		}
	}
}

// parkFailed counts and reports messages that will not be parked by this process.
func (f *folder) parkFailed(n int, why error) {
	f.count.parkFailed.Add(uint64(n))
	f.log.Error().AnErr("err", why).Msgf("%d commits that cannot be read are not parked: they are in the log", n)
}
