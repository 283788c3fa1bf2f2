package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// chunkBytes is what the broker gets at once.
const chunkBytes = 128 << 10

// archiveMagic begins an archive of nats-server 2.15 and later.
const archiveMagic = "NATSARC1"

// ErrOther means that a backup is of another cell.
var ErrOther = errors.New("the backup is of another cell")

// ErrNotEmpty means that the cell exists. A backup is never put on top of a cell.
var ErrNotEmpty = errors.New("the cell exists")

// Restore makes the streams of a file. It reads the whole file first and changes nothing if it is damaged or of another
// cell, or if any stream of the cell exists. The log is the last stream: services refuse to start on a part of it.
func (b *Backups) Restore(ctx context.Context, from io.ReadSeeker) (Info, error) {
	f, err := check(from)
	if err != nil {
		return f.Info, err
	}
	if own := b.conn.Cell.Prefix(); f.Prefix != own {
		return f.Info, fmt.Errorf("%w: its prefix is %q, not %q", ErrOther, f.Prefix, own)
	}
	configs := b.configs()
	for i := range configs {
		_, err := b.conn.StreamInfo(ctx, configs[i].Name)
		switch {
		case err == nil:
			return f.Info, fmt.Errorf("%w: it has the stream %s", ErrNotEmpty, configs[i].Name)
		case !errors.Is(err, core.ErrNotFound):
			return f.Info, err
		}
	}
	sources := b.sources()
	slices.Reverse(sources)
	for _, s := range sources {
		i := slices.IndexFunc(configs, func(c jetstream.StreamConfig) bool { return c.Name == s.name })
		if s.name == b.conn.Cell.LogStream() {
			note, err := json.Marshal(core.Restored{Backup: f.At, Last: f.Stream(s.name).Last})
			if err != nil {
				return f.Info, err
			}
			configs[i].Metadata[core.RestoredKey] = string(note)
		}
		if err := b.put(ctx, from, &f, &configs[i]); err != nil {
			return f.Info, fmt.Errorf("restore %s: %w", s.name, err)
		}
	}
	return f.Info, nil
}

// put makes one stream.
func (b *Backups) put(ctx context.Context, from io.ReadSeeker, f *file, cfg *jetstream.StreamConfig) error {
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var at struct {
		Subject string `json:"deliver_subject"`
	}
	body, err := json.Marshal(map[string]any{"config": cfg, "state": map[string]any{}})
	if err != nil {
		return err
	}
	if err := b.conn.CallOnce(ctx, "restore", core.APIPrefix+"STREAM.RESTORE."+cfg.Name, body, &at); err != nil {
		return err
	}
	to := &chunks{ctx: ctx, conn: b.conn, subject: at.Subject}
	buf := bufio.NewWriterSize(to, chunkBytes)
	out := s2.NewWriter(buf, s2.WriterConcurrency(1))
	if err := archive(out, newReader(from), f, cfg.Name); err != nil {
		return err
	}
	if err := errors.Join(out.Close(), buf.Flush()); err != nil {
		return err
	}
	var made jetstream.StreamInfo
	if err := b.conn.CallOnce(ctx, "restore", at.Subject, nil, &made); err != nil {
		return err
	}
	if want := f.Stream(cfg.Name); made.State.LastSeq != want.Last {
		return fmt.Errorf("%w: the broker has it up to %d, not %d", core.ErrUnreachable, made.State.LastSeq, want.Last)
	}
	return nil
}

// archive writes the messages of a stream in the broker's format.
func archive(w io.Writer, in *reader, f *file, stream string) error {
	s := f.Stream(stream)
	state, err := json.Marshal(map[string]any{"messages": s.Messages, "first_seq": s.First, "last_seq": s.Last})
	if err != nil {
		return err
	}
	head := &record{name: "state.json", at: time.Now().UnixNano(), body: state}
	if _, err := w.Write(head.append([]byte(archiveMagic))); err != nil {
		return err
	}
	for ours := false; ; {
		m, err := in.next()
		switch {
		case err != nil:
			// also io.EOF: the last record is read before
			return err
		case m.seq == 0 && m.name == recordEnd:
			_, err := w.Write((&record{}).append(nil))
			return err
		case m.seq == 0 && m.name == recordStream:
			var at Stream
			if err := json.Unmarshal(m.body, &at); err != nil {
				return err
			}
			ours = at.Name == stream
		case m.seq > 0 && ours && !f.gone[stream].has(m.seq):
			if _, err := w.Write(m.append(nil)); err != nil {
				return err
			}
		}
	}
}

// chunks sends what is written to the broker, and waits until the broker has it.
type chunks struct {
	ctx     context.Context
	conn    *core.Conn
	subject string
}

// Write implements io.Writer.
func (c *chunks) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), chunkBytes)
		if err := c.conn.Chunk(c.ctx, "restore", c.subject, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}
