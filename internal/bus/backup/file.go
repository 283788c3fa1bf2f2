package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
)

// ErrDamaged means that a file is no whole backup: it was cut off, or changed, or another program wrote it.
var ErrDamaged = errors.New("the file is not a whole backup")

// The records of a file that are not messages. A message has the number of its place in the stream, these have 0.
const (
	recordHead   = "holdfast-backup"
	recordStream = "stream"
	recordGone   = "gone" // places of the stream before it that were removed while the stream was read
	recordEnd    = "end"
)

const (
	formatVersion = 1
	nameBytesMax  = 64 << 10 // of a subject
	partBytesMax  = 64 << 20 // of the headers, or of the body, of a record
)

// record is one record of a file, and one of the broker's format of restored streams.
type record struct {
	name         string // of a message: its subject
	seq          uint64
	at           int64 // Unix nanoseconds
	header, body []byte
}

// append appends the record in the format of nats-server's archives (version 2 of its snapshots).
func (r *record) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.name)))
	b = binary.AppendVarint(b, r.at)
	b = binary.AppendUvarint(b, r.seq)
	b = binary.AppendUvarint(b, uint64(len(r.header)))
	b = binary.AppendUvarint(b, uint64(len(r.body)))
	b = append(b, r.name...)
	return append(append(b, r.header...), r.body...)
}

// message returns the record of a stored message. Headers are written in the order of their keys.
func message(m *core.Raw) *record {
	r := &record{name: m.Subject, seq: m.Seq, at: m.Time.UnixNano(), body: m.Data}
	if len(m.Header) == 0 {
		return r
	}
	keys := make([]string, 0, len(m.Header))
	for key := range m.Header {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	r.header = []byte("NATS/1.0\r\n")
	for _, key := range keys {
		for _, value := range m.Header[key] {
			r.header = append(r.header, key+": "+value+"\r\n"...)
		}
	}
	r.header = append(r.header, "\r\n"...)
	return r
}

// writer writes records, and sums them up.
type writer struct {
	out *s2.Writer
	sum hash.Hash
	buf []byte
}

func newWriter(w io.Writer) *writer {
	return &writer{out: s2.NewWriter(w, s2.WriterConcurrency(1)), sum: sha256.New()}
}

func (w *writer) write(r *record) error {
	w.buf = r.append(w.buf[:0])
	w.sum.Write(w.buf)
	_, err := w.out.Write(w.buf)
	return err
}

// control writes a record that is not a message.
func (w *writer) control(name string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.write(&record{name: name, body: body})
}

// reader reads records, and sums them up.
type reader struct {
	in  *bufio.Reader
	sum hash.Hash
}

func newReader(r io.Reader) *reader {
	return &reader{in: bufio.NewReader(s2.NewReader(r)), sum: sha256.New()}
}

// next returns the next record, and [io.EOF] at the end of the file.
func (r *reader) next() (*record, error) {
	if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	var errs [5]error
	var name, header, body uint64
	m := &record{}
	name, errs[0] = binary.ReadUvarint(r.in)
	m.at, errs[1] = binary.ReadVarint(r.in)
	m.seq, errs[2] = binary.ReadUvarint(r.in)
	header, errs[3] = binary.ReadUvarint(r.in)
	body, errs[4] = binary.ReadUvarint(r.in)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if name > nameBytesMax || header > partBytesMax || body > partBytesMax {
		return nil, fmt.Errorf("%w: a record of %d bytes", ErrDamaged, name+header+body)
	}
	text := make([]byte, name+header+body)
	if _, err := io.ReadFull(r.in, text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	m.name, m.header, m.body = string(text[:name]), text[name:name+header], text[name+header:]
	r.sum.Write(m.append(nil))
	return m, nil
}

// head is the first record of a file.
type head struct {
	Format int       `json:"format"`
	Prefix string    `json:"prefix"`
	At     time.Time `json:"at"` // by the broker's clock
}

// end is the last record of a file.
type end struct {
	Streams []Stream `json:"streams"`
	SHA256  string   `json:"sha256"` // of all records before it
}

// file is what a whole file has beside its messages.
type file struct {
	Info
	gone map[string]spans // of each stream
}

// Check reads a file to its end, and fails with [ErrDamaged] unless it is a whole backup.
func Check(r io.Reader) (Info, error) {
	f, err := check(r)
	return f.Info, err
}

func check(r io.Reader) (f file, err error) {
	f.gone = map[string]spans{}
	in := newReader(r)
	var at *string
	for first := true; ; first = false {
		before := hex.EncodeToString(in.sum.Sum(nil))
		m, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return f, fmt.Errorf("%w: it ends too early", ErrDamaged)
		case err != nil:
			return f, err
		case first != (m.seq == 0 && m.name == recordHead):
			return f, fmt.Errorf("%w: it does not begin as one", ErrDamaged)
		case m.seq > 0 && at != nil:
			continue
		}
		var h head
		var e end
		var s Stream
		var gone spans
		switch to := map[string]any{recordHead: &h, recordStream: &s, recordGone: &gone, recordEnd: &e}[m.name]; {
		case to == nil || m.seq > 0 || m.name == recordGone && at == nil:
			return f, fmt.Errorf("%w: a record %.40q of an unknown kind", ErrDamaged, m.name)
		default:
			if err := json.Unmarshal(m.body, to); err != nil {
				return f, fmt.Errorf("%w: record %s: %w", ErrDamaged, m.name, err)
			}
		}
		switch m.name {
		case recordHead:
			if h.Format != formatVersion {
				return f, fmt.Errorf("%w: format %d, this program reads %d", ErrDamaged, h.Format, formatVersion)
			}
			f.Prefix, f.At = h.Prefix, h.At
		case recordStream:
			at = &s.Name
		case recordGone:
			f.gone[*at] = gone
		case recordEnd:
			f.Streams = e.Streams
			if _, err := in.next(); !errors.Is(err, io.EOF) {
				return f, fmt.Errorf("%w: it continues behind its end", ErrDamaged)
			}
			if e.SHA256 != before {
				return f, fmt.Errorf("%w: its sum differs", ErrDamaged)
			}
			return f, nil
		}
	}
}
