// Package backup writes a cell to a file, and restores a cell that does not exist from such a file.
//
// A file has the log, the objects, the alarms and the leases, each message with its place and its time. Documents,
// views and the feed follow from the log. A backup reads as any reader does, through consumers, and needs no right to
// write. Snapshots of the broker would need one: the broker publishes them to whatever subject the request names.
//
// The log is read first, up to its end at that time, and then the objects: so they include all that these commits name.
// Retention may remove messages while they are read. Then the file would have the beginning of a session without its
// middle, so the stream is read again until nothing was removed meanwhile, and what has gone is left out.
package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/pull"
	"github.com/holdfast-dev/holdfast/internal/bus/object"
)

// passesMax is how often a stream is read again because messages were removed meanwhile.
const passesMax = 10

// ErrMoving means that messages were removed from a stream each time while it was read: try again.
var ErrMoving = errors.New("messages are removed faster than they are read")

// Backups writes and restores a cell. Its methods may be called concurrently.
type Backups struct {
	conn    *core.Conn
	configs func() []jetstream.StreamConfig
}

// New returns the backups of the cell of a connection. configs returns the configurations of its streams.
func New(conn *core.Conn, configs func() []jetstream.StreamConfig) *Backups {
	return &Backups{conn: conn, configs: configs}
}

// Info is what a file has.
type Info struct {
	Prefix  string    `json:"prefix"` // of the cell
	At      time.Time `json:"at"`     // when the backup began, by the broker's clock
	Streams []Stream  `json:"streams"`
}

// Stream is what a file has of one stream.
type Stream struct {
	Name     string `json:"name"`
	First    uint64 `json:"first"` // the place of the first message, or behind the last one
	Last     uint64 `json:"last"`  // the end of the stream, also if that message was removed
	Messages int    `json:"messages"`
}

// Stream returns what the file has of a stream.
func (i *Info) Stream(name string) Stream {
	for _, s := range i.Streams {
		if s.Name == name {
			return s
		}
	}
	return Stream{}
}

// source is a stream that belongs to a backup.
type source struct {
	name  string
	moves bool // its messages are replaced all the time: leases, and alarms
}

// sources returns the streams of a backup in the order in which they are read.
func (b *Backups) sources() []source {
	c := b.conn.Cell
	return []source{{c.LogStream(), false}, {object.Stream(c.ObjectBucket()), false}, {c.TimerStream(), true},
		{core.KVStream(c.LeaseBucket()), true}}
}

// Began returns the broker's time, for the name of a file.
func (b *Backups) Began(ctx context.Context) (time.Time, error) {
	info, err := b.conn.StreamInfo(ctx, b.conn.Cell.LogStream())
	if err != nil {
		return time.Time{}, err
	}
	return info.TimeStamp.UTC(), nil
}

// Write writes the cell. It may run while everything else does. A file is a backup only if Write returned nil.
func (b *Backups) Write(ctx context.Context, w io.Writer) (Info, error) {
	info := Info{Prefix: b.conn.Cell.Prefix()}
	var err error
	if info.At, err = b.Began(ctx); err != nil {
		return info, err
	}
	out := newWriter(w)
	err = out.control(recordHead, head{Format: formatVersion, Prefix: info.Prefix, At: info.At})
	for _, s := range b.sources() {
		if err != nil {
			return info, fmt.Errorf("back up: %w", err)
		}
		var read Stream
		if read, err = b.stream(ctx, out, s); err == nil {
			info.Streams = append(info.Streams, read)
		}
	}
	if err == nil {
		err = out.control(recordEnd, end{Streams: info.Streams, SHA256: hex.EncodeToString(out.sum.Sum(nil))})
	}
	if err = errors.Join(err, out.out.Close()); err != nil {
		return info, fmt.Errorf("back up: %w", err)
	}
	return info, nil
}

// stream writes one stream up to its present end.
func (b *Backups) stream(ctx context.Context, out *writer, s source) (Stream, error) {
	read := Stream{Name: s.name}
	before, err := b.conn.StreamInfo(ctx, s.name)
	if err != nil {
		return read, err
	}
	if err := out.control(recordStream, read); err != nil {
		return read, err
	}
	read.Last = before.State.LastSeq
	var seen spans
	scan := func(fn func(*core.Raw) error) error {
		return pull.Replay(ctx, b.conn, pull.Span{Stream: s.name, Filter: ">", From: 1, Last: read.Last,
			Open: s.moves}, fn)
	}
	err = scan(func(m *core.Raw) error {
		seen.add(m.Seq)
		return out.write(message(m))
	})
	if err != nil {
		return read, err
	}
	if s.moves {
		if n := len(seen); n > 0 {
			read.Last = max(read.Last, seen[n-1].To)
		}
	} else if seen, err = b.left(ctx, out, s, before, seen, scan); err != nil {
		return read, err
	}
	read.Messages, read.First = seen.count(), read.Last+1
	if len(seen) > 0 {
		read.First = seen[0].From
	}
	return read, nil
}

// left returns which of the messages are still there after nothing was removed while they were read, and notes the
// others in the file.
func (b *Backups) left(ctx context.Context, out *writer, s source, before *jetstream.StreamInfo, seen spans,
	scan func(func(*core.Raw) error) error) (spans, error) {
	now := seen
	for range passesMax {
		after, err := b.conn.StreamInfo(ctx, s.name)
		if err != nil {
			return nil, err
		}
		if removed(before) == removed(after) {
			if gone := seen.without(now); len(gone) > 0 {
				return now, out.control(recordGone, gone)
			}
			return now, nil
		}
		before, now = after, nil
		if err := scan(func(m *core.Raw) error {
			if seen.has(m.Seq) {
				now.add(m.Seq)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrMoving, s.name)
}

// removed returns how many messages of a stream were removed in its life.
func removed(info *jetstream.StreamInfo) uint64 { return info.State.LastSeq - info.State.Msgs }
