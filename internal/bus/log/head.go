package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Head returns the place of a session's last commit in the log, from its leader; 0 when the log has none.
func (l *Log) Head(ctx context.Context, r events.Ref) (uint64, error) {
	if err := r.Validate(); err != nil {
		return 0, fmt.Errorf("last commit of %s: %w", r, err)
	}
	m, err := l.conn.Get(ctx, l.conn.Cell.LogStream(), core.GetRequest{Last: l.conn.Cell.LogGuard(r)})
	switch {
	case errors.Is(err, core.ErrNotFound) && !core.NoStream(err):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return m.Seq, nil
}

// Heads returns the place of each session's last commit in the log, of one harness or, without one, of all. It reads no
// bodies. A lagging replica may answer, so a head can be older than the result of [Log.Head], never newer. It starts
// again after an interruption, until ctx ends; if a damaged file of the stream interrupts it repeatedly, it returns
// what it has.
func (l *Log) Heads(ctx context.Context, harness string) (map[events.Ref]uint64, error) {
	filter := l.conn.Cell.LogSubjects()
	if harness != "" {
		filter = l.conn.Cell.LogOf(harness)
	}
	heads := map[events.Ref]uint64{}
	err := l.ends(ctx, filter, func(subject string, seq uint64) bool {
		r, _, err := l.conn.Cell.ParseLog(subject)
		// a token can decode to an id that no session has
		if err != nil || r.Validate() != nil {
			return false
		}
		_, known := heads[r]
		heads[r] = max(heads[r], seq)
		return !known
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}

// ends calls fn with each subject of the filter and the place of its last message. fn reports whether it was new.
func (l *Log) ends(ctx context.Context, filter string, fn func(subject string, seq uint64) bool) error {
	for pace, silent := core.NewBackoff(), 0; ; {
		news := false
		err := l.endsOnce(ctx, filter, func(subject string, seq uint64) {
			news = fn(subject, seq) || news
		})
		if silent++; news || errors.Is(err, core.ErrUnreachable) {
			silent = 0
		}
		switch {
		case err == nil, silent == headsSilentMax && ctx.Err() == nil:
			return nil
		case ctx.Err() != nil:
			return l.conn.Late("read the ends of sessions", ctx.Err())
		case !errors.Is(err, core.ErrUnreachable) && !errors.Is(err, pull.ErrInterrupted):
			return err
		case !core.Pause(ctx, pace.NextBackOff()):
			return l.conn.Late("read the ends of sessions", ctx.Err())
		}
	}
}

// headsSilentMax is how often a reader may be silent, although the broker reports more, until the rest counts as
// unreadable.
const headsSilentMax = 2

func (l *Log) endsOnce(ctx context.Context, filter string, fn func(subject string, seq uint64)) error {
	stream := l.conn.Cell.LogStream()
	cfg := jetstream.ConsumerConfig{
		Name:              "read-" + core.NewSecret(),
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     filter,
		HeadersOnly:       true,
		InactiveThreshold: pull.IdleMax,
		MemoryStorage:     true,
		Replicas:          1,
	}
	var info jetstream.ConsumerInfo
	create := pull.CreateConsumer{Stream: stream, Config: cfg, Action: "create"}
	if err := l.conn.Call(ctx, "read "+stream, "CONSUMER.CREATE."+stream+"."+cfg.Name+"."+filter, create,
		&info); err != nil {
		return err
	}
	defer pull.Forget(l.conn, stream, cfg.Name)
	if info.NumPending == 0 {
		return nil
	}
	f := pull.Start(l.conn, pull.Source{Stream: stream, Consumer: cfg.Name, Filters: []string{filter}, Newest: true},
		pull.ReplayWindowMax, 1, pull.Request{})
	defer f.Close()
	for {
		soon, cancel := context.WithTimeout(ctx, pull.SilentMS*time.Millisecond)
		ds, err := f.Take(soon, pull.ReplayWindowMax)
		cancel()
		if err != nil {
			return fmt.Errorf("%w: %s", pull.ErrInterrupted, err)
		}
		for _, d := range ds {
			fn(d.Msg.Subject, d.Seq)
			if d.Pending == 0 {
				return nil
			}
		}
	}
}
