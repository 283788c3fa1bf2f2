package log

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
)

// Limits of one removal of strays.
const (
	straySubjectsMax = 50_000
	strayAtOnceMax   = 16 // subjects at the same time
	straySinglesMax  = 4  // messages of a subject that are read one by one
)

// PurgeStrays removes the messages whose subjects name no session, and returns the number of subjects. It calls keep
// with each message before. keep is called concurrently; after an error of keep the subject of the message stays.
// Strays that are written meanwhile stay, and so do those that no filter can select: left is the number of their
// subjects.
func (l *Log) PurgeStrays(ctx context.Context, keep func(context.Context, core.Message) error) (removed, left int,
	err error) {
	strays, odd, err := l.strays(ctx)
	if err != nil {
		return 0, 0, err
	}
	var all errgroup.Group
	all.SetLimit(strayAtOnceMax)
	for subject, last := range strays {
		all.Go(func() error { return l.purgeStray(ctx, subject, last, keep) })
	}
	if err := all.Wait(); err != nil {
		return 0, 0, err
	}
	return len(strays), len(odd), nil
}

// Unselectable returns the subjects without a session that no filter can select, each with the place of its last
// message. Retention cannot remove these messages.
func (l *Log) Unselectable(ctx context.Context) (map[string]uint64, error) {
	_, odd, err := l.strays(ctx)
	return odd, err
}

// strays returns the subjects that name no session, each with the place of its last message; odd are those that no
// filter can select.
func (l *Log) strays(ctx context.Context) (strays, odd map[string]uint64, err error) {
	strays, odd = map[string]uint64{}, map[string]uint64{}
	err = l.ends(ctx, l.conn.Cell.LogSubjects(), func(subject string, seq uint64) bool {
		r, _, err := l.conn.Cell.ParseLog(subject)
		if r.Validate() == nil && err == nil {
			// else a log with an unreadable part has news in every pass
			return false
		}
		found := strays
		if !selectable(subject) {
			found = odd
		}
		last, known := found[subject]
		if !known && len(found) >= straySubjectsMax {
			// else, too
			return false
		}
		found[subject] = max(last, seq)
		return !known
	})
	return strays, odd, err
}

// selectable reports whether a subject, as a filter, selects the messages of this subject and no others. The broker
// lets a client publish to a subject with the token * or >, and as a filter such a subject selects the commits of
// sessions. A request to the broker is JSON, which has no text of another encoding.
func selectable(subject string) bool {
	return utf8.ValidString(subject) && !slices.ContainsFunc(strings.Split(subject, "."), func(token string) bool {
		return token == "*" || token == ">"
	})
}

// purgeStray removes the messages of one subject, up to its last one.
func (l *Log) purgeStray(ctx context.Context, subject string, last uint64,
	keep func(context.Context, core.Message) error) error {
	stream := l.conn.Cell.LogStream()
	s := pull.Span{Stream: stream, Filter: subject, From: 1, Last: last}
	take := func(m *core.Raw) error {
		s.From = m.Seq + 1
		return keep(ctx, core.Message{Subject: m.Subject, Header: m.Header, Body: m.Data, Seq: m.Seq, At: m.Time})
	}
	for n := 0; n < straySinglesMax && s.From <= last; n++ {
		m, err := l.conn.Get(ctx, stream, core.GetRequest{Seq: s.From, Next: subject})
		if errors.Is(err, core.ErrNotFound) {
			break
		}
		if err == nil {
			err = take(m)
		}
		if err != nil {
			return fmt.Errorf("purge %.100q: %w", subject, err)
		}
	}
	if s.From <= last {
		if err := pull.Replay(ctx, l.conn, s, take); err != nil {
			return fmt.Errorf("purge %.100q: %w", subject, err)
		}
	}
	var resp struct{}
	return l.conn.Call(ctx, "purge messages of no session", "STREAM.PURGE."+stream,
		map[string]any{"filter": subject, "seq": last + 1}, &resp)
}
