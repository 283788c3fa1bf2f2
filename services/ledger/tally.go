package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Limits of a tally.
const (
	tallyPauseMin = 5 * time.Second  // between two readings
	tallyPauseMax = time.Minute      // the same
	tallyPauses   = 30               // the pause, in multiples of the time that a reading took
	tallyKept     = 30 * time.Second // an unchanged tally is stored again after this time
	tallyNames    = 20               // sessions that it names of each kind
	tallyPerOwner = 2                // of one harness among them, while there are others
	tallyStrays   = 20               // subjects that it names
	untakenMin    = time.Minute      // that work waits for its harness before it is counted
	goneOwnersMax = 64               // owners without a lease that are looked at again
)

// Tally is what the ledger has counted in the documents. It is stored under [events.TallyKey].
type Tally struct {
	At       time.Time `json:"at"` // when it was counted, by the broker's clock
	Sessions int       `json:"sessions"`
	Waiting  int       `json:"waiting"` // with an open question
	Parked   int       `json:"parked"`  // events that could not be read
	Ignored  int       `json:"ignored"` // events that changed nothing
	Unread   int       `json:"unread"`  // documents that cannot be read
	Ahead    Some      `json:"ahead"`   // whose documents have folded commits beyond the end of the log
	Odd      Some      `json:"odd"`     // sessions with events that could not be read, or changed nothing
	Orphans  Some      `json:"orphans"` // owned by a process that is gone
	Untaken  Some      `json:"untaken"` // that wait for their harness for more than a minute
	Stuck    Some      `json:"stuck"`   // that wait for a person, after a failure
	// the last comparison of all documents with the log; nil: none yet
	Compared *Compared `json:"compared,omitempty"`
}

// Some is how many sessions there are of a kind, and the names of some of them, in order.
type Some struct {
	Count int      `json:"count"`
	Names []string `json:"names,omitempty"`
}

// Compared is a comparison of all documents with the log that came to its end.
type Compared struct {
	At        time.Time `json:"at"` // its end, by the broker's clock
	TookMS    int64     `json:"took_ms"`
	Documents int       `json:"documents"`
	Wrong     Some      `json:"wrong"` // damaged, missing or older than what was folded, and not rebuilt since
	// subjects of the log that belong to no session and that no filter selects, with the place of the last message
	Strays     map[string]uint64 `json:"strays,omitempty"`
	StraysLeft int               `json:"strays_left,omitempty"` // that are not named
}

// SomeOf counts names, and keeps some of them: at most two of a harness while there are others.
func SomeOf(names []string) Some {
	all := slices.Sorted(slices.Values(names))
	var first, rest []string
	of := map[string]int{}
	for _, name := range all {
		harness, _, _ := strings.Cut(name, "/")
		if of[harness]++; of[harness] <= tallyPerOwner {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	if first = append(first, rest...); len(first) == 0 {
		return Some{}
	}
	return Some{Count: len(first), Names: first[:min(len(first), tallyNames)]}
}

// And returns it with further sessions, of other names.
func (x Some) And(names []string) Some {
	all := SomeOf(append(slices.Clone(x.Names), names...))
	all.Count = x.Count + len(names)
	return all
}

// Tally counts, at an instant of the broker. end is the last commit of the log, from after the documents were read.
// gone reports whether an owner has no lease, by the lease's key.
func (x *Rolls) Tally(now time.Time, end uint64, gone func(leaseKey string) bool) Tally {
	t := Tally{At: now, Sessions: len(x.of) - x.unread, Waiting: x.waiting, Parked: x.parked, Ignored: x.ignored,
		Unread: x.unread, Odd: SomeOf(namesOf(maps.Keys(x.odd))), Stuck: SomeOf(namesOf(maps.Keys(x.stuck))),
		Ahead: x.ahead(end)}
	t.Untaken = SomeOf(namesOf(func(yield func(string) bool) {
		for key, at := range x.asked {
			if now.Sub(at) > untakenMin && !yield(key) {
				return
			}
		}
	}))
	dead := map[unique.Handle[string]]bool{}
	for owner := range x.owned {
		if gone(owner.Value()) {
			dead[owner] = true
		}
	}
	if len(dead) == 0 {
		return t
	}
	t.Orphans = SomeOf(namesOf(func(yield func(string) bool) {
		for key, r := range x.of {
			if dead[r.owner] && !yield(key) {
				return
			}
		}
	}))
	return t
}

// ahead returns the sessions whose documents have folded commits behind the end of the log.
func (x *Rolls) ahead(end uint64) Some {
	if x.last <= end {
		return Some{}
	}
	// of documents that were replaced since, too
	x.last = 0
	return SomeOf(namesOf(func(yield func(string) bool) {
		for key, r := range x.of {
			if x.last = max(x.last, r.seq); r.seq > end && !yield(key) {
				return
			}
		}
	}))
}

// namesOf returns the names of sessions, by the keys of their documents.
func namesOf(keys func(yield func(string) bool)) []string {
	var names []string
	for key := range keys {
		name := key
		if r, err := events.ParseSessionKey(key); err == nil {
			name = r.String()
		}
		names = append(names, name)
	}
	return names
}

// LoadTally returns the stored tally; [bus.ErrNotFound] if no ledger has stored one.
func LoadTally(ctx context.Context, buckets *kv.Buckets) (Tally, error) {
	t, _, err := loadTally(ctx, buckets)
	return t, err
}

func loadTally(ctx context.Context, buckets *kv.Buckets) (Tally, uint64, error) {
	var t Tally
	e, err := buckets.Load(ctx, kv.State, events.TallyKey)
	if err != nil {
		return t, 0, fmt.Errorf("tally: %w", err)
	}
	if err := json.Unmarshal(e.Value, &t); err != nil {
		return t, e.Rev, fmt.Errorf("tally: %w: %w", events.ErrMalformed, err)
	}
	return t, e.Rev, nil
}

// tallies counts, again and again, in the active process, or in any while none is active. It begins after the first
// comparison with the log, which reads all documents. A reading takes at most a thirtieth of the time.
func (l *Ledger) tallies(ctx context.Context) error {
	select {
	case <-l.surveyed:
	case <-ctx.Done():
		return nil
	}
	for {
		began := time.Now()
		if l.mayWalk(ctx) {
			if err := l.storeTally(ctx); err != nil && ctx.Err() == nil {
				l.log.Warn().AnErr("err", err).Msg("the sessions were not counted")
			}
		}
		if !wait(ctx, min(max(tallyPauses*time.Since(began), tallyPauseMin), tallyPauseMax)) {
			return nil
		}
	}
}

// storeTally counts, and stores the tally if it has changed, or was stored some time ago.
func (l *Ledger) storeTally(ctx context.Context) error {
	old, rev, err := loadTally(ctx, l.bus.KV)
	if err != nil && !errors.Is(err, bus.ErrNotFound) && !errors.Is(err, events.ErrMalformed) {
		return err
	}
	t, err := l.tally(ctx)
	if err != nil {
		return err
	}
	if t.Compared = l.compared.Load(); t.Compared == nil {
		t.Compared = old.Compared
	}
	body, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("tally: %w", err)
	}
	since := t.At.Sub(old.At)
	old.At = t.At
	if same, err := json.Marshal(old); err == nil && bytes.Equal(same, body) && since >= 0 && since < tallyKept {
		return nil
	}
	_, err = l.bus.KV.Store(ctx, kv.State, events.TallyKey, body, rev)
	if errors.Is(err, bus.ErrLostRace) {
		// another ledger has counted
		return nil
	}
	return err
}

// tally reads what has changed, and counts.
func (l *Ledger) tally(ctx context.Context) (Tally, error) {
	gone, err := l.goneOwners(ctx)
	if err != nil {
		return Tally{}, err
	}
	return l.count(ctx, gone)
}

// count is tally for which these owners had no lease. A session of one of them may have been released since its
// document was read, or its owner may be a process that has just begun: so it reads the documents again that have
// changed, and then the lease.
func (l *Ledger) count(ctx context.Context, gone map[string]bool) (Tally, error) {
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return Tally{}, err
	}
	var t Tally
	err = l.known.with(ctx, l.bus.KV, func(x *Rolls) error {
		end, err := l.bus.Log.LastSeq(ctx)
		if err != nil {
			return err
		}
		n := 0
		t = x.Tally(now, end, func(key string) bool {
			if !gone[key] {
				return false
			}
			if n++; n > goneOwnersMax {
				return true
			}
			_, err := l.bus.KV.Load(ctx, kv.Leases, key)
			return errors.Is(err, bus.ErrNotFound)
		})
		return nil
	})
	return t, err
}

// goneOwners returns the owners of sessions that have no lease, by the leases' keys.
func (l *Ledger) goneOwners(ctx context.Context) (map[string]bool, error) {
	gone := map[string]bool{}
	err := l.known.with(ctx, l.bus.KV, func(x *Rolls) error {
		for owner := range x.owned {
			gone[owner.Value()] = true
		}
		return nil
	})
	if err != nil || len(gone) == 0 {
		return gone, err
	}
	err = l.bus.KV.List(ctx, kv.Leases, events.HarnessLeaseKeys(""), func(e kv.Entry) error {
		delete(gone, e.Key)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("leases: %w", err)
	}
	return gone, nil
}

// finishedSurvey remembers a comparison with the log for the next tally.
func (l *Ledger) finishedSurvey(ctx context.Context, began time.Time, documents int, wrong []string) error {
	strays, err := l.bus.Log.Unselectable(ctx)
	if err != nil {
		return fmt.Errorf("subjects of no session: %w", err)
	}
	now, err := l.bus.Clock.Now(ctx)
	if err != nil {
		return err
	}
	c := &Compared{At: now, TookMS: time.Since(began).Milliseconds(), Documents: documents, Wrong: SomeOf(wrong)}
	for _, subject := range slices.Sorted(maps.Keys(strays))[:min(len(strays), tallyStrays)] {
		if c.Strays == nil {
			c.Strays = map[string]uint64{}
		}
		c.Strays[subject] = strays[subject]
	}
	c.StraysLeft = len(strays) - len(c.Strays)
	l.compared.Store(c)
	return nil
}
