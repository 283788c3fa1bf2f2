package opencode

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// lineBytesMax is the longest line that is read; OpenCode's events carry whole tool outputs, never this much.
const lineBytesMax = 256 << 20

// Record is one event as OpenCode sent it, and when it was received.
type Record struct {
	At    time.Time
	Event json.RawMessage
}

// Trace is a recording: its records in the order of the file, and how much of it could not be read.
type Trace struct {
	Records  []Record
	Skipped  int      // lines that are no record
	Problems []string // why, for the first of these
}

func (t *Trace) skip(line int, format string, args ...any) {
	t.Skipped++
	if len(t.Problems) < problemsMax {
		t.Problems = append(t.Problems, fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)))
	}
}

// ReadTrace reads a recording: one JSON object a line, {"at", "event"}, or the bare event, or what `/global/event`
// sends. A line that is none is skipped and reported, a cut last line too. A record without a readable instant happened
// when the one before it did. The error is the reader's own; what was read until then is returned with it.
func ReadTrace(r io.Reader) (Trace, error) {
	var t Trace
	var at time.Time
	br := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, tooLong, err := readLine(br, lineBytesMax)
		line = bytes.TrimSpace(line)
		switch {
		case tooLong:
			t.skip(n, "longer than %d bytes", lineBytesMax)
		case len(line) > 0:
			if rec, rerr := parseRecord(line, at); rerr != nil {
				t.skip(n, "%v", rerr)
			} else {
				at = rec.At
				t.Records = append(t.Records, rec)
			}
		}
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("opencode: read a trace, line %d: %w", n, err)
		}
	}
}

// readLine reads up to and including the next line feed. A line beyond the limit is read to its end and dropped.
func readLine(br *bufio.Reader, bytesMax int) (line []byte, tooLong bool, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if len(line)+len(part) > bytesMax {
			line, tooLong = nil, true
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

func parseRecord(line []byte, before time.Time) (Record, error) {
	var w struct {
		At      json.RawMessage `json:"at"`
		Event   json.RawMessage `json:"event"`
		Payload json.RawMessage `json:"payload"`
		Type    string          `json:"type"`
	}
	if err := json.Unmarshal(line, &w); err != nil && !misshapen(err) {
		return Record{}, err
	}
	rec := Record{At: parseAt(w.At, before), Event: w.Event}
	if !isObject(w.Event) {
		if w.Payload == nil && w.Type == "" {
			return Record{}, errors.New("neither a record nor an event")
		}
		rec.Event = slices.Clone(line)
	}
	return rec, nil
}

// parseAt reads an instant: RFC 3339 text, or milliseconds since 1970.
func parseAt(raw json.RawMessage, before time.Time) time.Time {
	var at time.Time
	if json.Unmarshal(raw, &at) == nil && !at.IsZero() {
		return at.UTC()
	}
	var ms int64
	if json.Unmarshal(raw, &ms) == nil && ms > 0 {
		return time.UnixMilli(ms).UTC()
	}
	return before
}

// Order is a copy of the records in the order in which they are translated: by time; at equal times, records that both
// have a sequence by it, all others by their event's id. Where only some have a sequence no comparison of two at a time
// is consistent ("has a sequence sorts last" left prompts open for ever), so ids give the places, and those places that
// sequenced records got are filled by sequence. Records without an id keep their order, before the others.
func Order(records []Record) []Record {
	ks := make([]key, len(records))
	for i, r := range records {
		ks[i] = keyOf(r)
	}
	slices.SortStableFunc(ks, func(a, b key) int {
		return cmp.Or(a.rec.At.Compare(b.rec.At), cmp.Compare(a.id, b.id))
	})
	for from := 0; from < len(ks); {
		to := from + 1
		for to < len(ks) && ks[to].rec.At.Equal(ks[from].rec.At) {
			to++
		}
		bySequence(ks[from:to])
		from = to
	}
	out := make([]Record, len(ks))
	for i := range ks {
		out[i] = ks[i].rec
	}
	return out
}

// key is what a record is ordered by.
type key struct {
	rec       Record
	id        string
	seq       int64
	sequenced bool
}

func keyOf(r Record) key {
	k := key{rec: r}
	ev, err := unwrap(r.Event)
	if err != nil {
		return k
	}
	k.id = ev.ID
	if ev.Seq != nil {
		k.seq, k.sequenced = *ev.Seq, true
	}
	return k
}

// bySequence puts the sequenced ones of records of one instant in their order, each at a place that one of them had.
func bySequence(ks []key) {
	var places []int
	var sequenced []key
	for i, k := range ks {
		if k.sequenced {
			places, sequenced = append(places, i), append(sequenced, k)
		}
	}
	slices.SortStableFunc(sequenced, func(a, b key) int { return cmp.Compare(a.seq, b.seq) })
	for i, place := range places {
		ks[place] = sequenced[i]
	}
}
