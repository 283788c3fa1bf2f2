package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of a survey.
const (
	headsAtOnceMax = 16    // sessions whose last commit is read concurrently
	missingMax     = 1_000 // sessions without a document that are checked: most of them are tombstones
)

// Lost is a session whose document has commits that the log lacks. It is also the ledger's note of the loss in the
// state bucket ([events.LostKey]).
type Lost struct {
	events.Ref
	Known   uint64    `json:"known"`             // the last commit that the document has folded
	Last    uint64    `json:"last"`              // the session's last commit in the log, 0 for none
	Missing uint64    `json:"missing,omitempty"` // a commit that is missing before the last one
	At      time.Time `json:"at"`                // when it was found, by the broker's clock
	// Document is the document before it was rebuilt from a shorter log. Empty while the document is kept.
	Document json.RawMessage `json:"document,omitempty"`
}

// String describes the loss for people.
func (x *Lost) String() string {
	if x.Missing > 0 {
		return fmt.Sprintf("%s (commit %d is missing)", x.Ref, x.Missing)
	}
	return fmt.Sprintf("%s (known up to %d, the log ends with %d)", x.Ref, x.Known, x.Last)
}

// Survey is the result of comparing all documents with the log's last commits.
type Survey struct {
	Documents int
	Lost      []Lost       // found now, and noted before
	Wrong     []events.Ref // whose document is damaged, missing, or older than what was acknowledged as folded
}

// seen has the fields of a document that a survey needs.
type seen struct {
	seq     uint64
	damaged bool // or folded by older rules: the log has more
	newer   bool // of a newer layout: only a newer build can read it
}

// Inspect compares the documents with the log, and changes nothing. It reads each document's place and each session's
// last commit, not the commits: the ledger's slow walk finds a hole within a session and notes it.
// A person may not read how far the log was folded: then a document that is behind the log is not reported.
func Inspect(ctx context.Context, b *bus.Bus) (Survey, error) {
	return InspectEach(ctx, b, func(kv.Entry, *session.State, error) {})
}

// InspectEach is [Inspect], and calls fn with each document that it reads, or with the error of its decoding. A
// document that changes meanwhile may come twice, the newest last. With an error and no Documents, not all were read.
func InspectEach(ctx context.Context, b *bus.Bus, fn func(kv.Entry, *session.State, error)) (Survey, error) {
	var found Survey
	// first: documents and heads can only be newer
	acked, err := b.Consumers.Acked(ctx, Source(Default()))
	if err != nil && !errors.Is(err, bus.ErrNotFound) && !errors.Is(err, bus.ErrForbidden) {
		return found, fmt.Errorf("survey: %w", err)
	}
	docs := map[events.Ref]seen{}
	err = b.KV.List(ctx, kv.State, events.SessionKeys(""), func(e kv.Entry) error {
		st, failed := session.Decode(e.Value)
		if r, err := events.ParseSessionKey(e.Key); err == nil {
			docs[r] = see(r, st, failed)
		}
		fn(e, st, failed)
		return nil
	})
	if err != nil {
		return found, fmt.Errorf("survey: %w", err)
	}
	found.Documents = len(docs)
	heads, err := b.Log.Heads(ctx, "")
	if err != nil {
		return found, fmt.Errorf("survey: %w", err)
	}
	if found.Lost, err = notes(ctx, b.KV); err != nil {
		return found, err
	}
	behind, err := setAside(ctx, b.KV)
	if err != nil {
		return found, err
	}
	var doubtful []events.Ref
	missing := 0
	for r, d := range docs {
		// it is being made from the log
		if d.seq <= heads[r] && behind[r] {
			continue
		}
		if head := heads[r]; !d.newer && (d.damaged || d.seq > head || d.seq < head && head <= acked) {
			doubtful = append(doubtful, r)
		}
	}
	for r, head := range heads {
		if _, ok := docs[r]; !ok && !behind[r] && head <= acked && missing < missingMax {
			doubtful, missing = append(doubtful, r), missing+1
		}
	}
	return found, found.confirm(ctx, b, doubtful, acked)
}

// see returns the place of a document that was decoded, or could not be.
func see(r events.Ref, st *session.State, err error) seen {
	if err != nil || st.Ref() != r {
		newer := errors.Is(err, session.ErrNewerLayout)
		return seen{damaged: !newer, newer: newer}
	}
	return seen{seq: st.Seq, damaged: st.Outdated()}
}

// setAside returns the sessions whose documents are behind by design, because they are folded apart.
func setAside(ctx context.Context, buckets *kv.Buckets) (map[events.Ref]bool, error) {
	behind := map[events.Ref]bool{}
	err := buckets.List(ctx, kv.State, events.AsideKeys(), func(e kv.Entry) error {
		var x Aside
		if r, err := events.ParseAsideKey(e.Key); err == nil && json.Unmarshal(e.Value, &x) == nil {
			behind[r] = x.Behind
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("survey: notes: %w", err)
	}
	return behind, nil
}

// notes returns the losses that the ledger has noted.
func notes(ctx context.Context, buckets *kv.Buckets) ([]Lost, error) {
	var all []Lost
	err := buckets.List(ctx, kv.State, events.LostKeys(""), func(e kv.Entry) error {
		var x Lost
		if r, err := events.ParseLostKey(e.Key); err == nil && json.Unmarshal(e.Value, &x) == nil && x.Ref == r {
			all = append(all, x)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("survey: notes: %w", err)
	}
	return all, nil
}

// confirm checks sessions that seem wrong once more, with reads from the leaders.
func (s *Survey) confirm(ctx context.Context, b *bus.Bus, doubtful []events.Ref, acked uint64) error {
	noted := map[events.Ref]bool{}
	for i := range s.Lost {
		noted[s.Lost[i].Ref] = true
	}
	var mu sync.Mutex
	err := each(ctx, headsAtOnceMax, doubtful, func(ctx context.Context, r events.Ref) error {
		e, err := b.KV.Load(ctx, kv.State, events.SessionKey(r))
		none := errors.Is(err, bus.ErrNotFound)
		if err != nil && !none {
			return fmt.Errorf("survey: %w", err)
		}
		head, err := b.Log.Head(ctx, r)
		if err != nil {
			return fmt.Errorf("survey: %w", err)
		}
		d := seen{}
		if !none {
			st, err := session.Decode(e.Value)
			d = see(r, st, err)
		}
		wrong := !d.newer && (d.damaged || d.seq < head && head <= acked)
		if wrong && none {
			if wrong, err = hasLog(ctx, b.Log, r); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case d.seq > head && !noted[r]:
			s.Lost = append(s.Lost, Lost{Ref: r, Known: d.seq, Last: head})
		case wrong:
			s.Wrong = append(s.Wrong, r)
		}
		return nil
	})
	slices.SortFunc(s.Lost, func(a, b Lost) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	slices.SortFunc(s.Wrong, func(a, b events.Ref) int { return strings.Compare(a.String(), b.String()) })
	return err
}

// hasLog reports whether the log has more of a session than its tombstone.
func hasLog(ctx context.Context, commits *log.Log, r events.Ref) (bool, error) {
	all, err := commits.Read(ctx, r, 0)
	if err != nil {
		return false, fmt.Errorf("survey: %w", err)
	}
	return len(all) > 0 && (!all[0].Guarded || all[0].Guard == 0), nil
}
