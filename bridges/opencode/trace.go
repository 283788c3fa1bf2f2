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

// lineBytesMax is the maximum length of a line. OpenCode's events carry whole tool outputs, which are much smaller.
const lineBytesMax = 256 << 20

// Record is one event as OpenCode sent it, with the instant at which it was received.
type Record struct {
	At    time.Time
	Event json.RawMessage
}

// Trace is a recording: its records in the order of the file, and the lines that could not be read.
type Trace struct {
	Records  []Record
	Skipped  int      // lines that are not records
	Problems []string // the texts for the first of these
}

func (t *Trace) skip(line int, format string, args ...any) {
	t.Skipped++
	if len(t.Problems) < problemsMax {
		t.Problems = append(t.Problems, fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)))
	}
}

// ReadTrace reads a recording. Each line is a JSON object: {"at", "event"}, the bare event, or the form of
// `/global/event`. Other lines, also a truncated last line, are skipped and counted. A record without a valid instant
// gets the instant of the previous one. The error is the reader's; ReadTrace returns the records before it.
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
			return t, fmt.Errorf("read a trace, line %d: %w", n, err)
		}
	}
}

// readLine reads through the next line feed. It reads a line beyond the limit to its end and drops it.
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

// parseAt parses an instant: RFC 3339 text, or milliseconds since 1970. An instant beyond the year 9999 in UTC is not
// valid: it has no RFC 3339 form, so no event can have it.
func parseAt(raw json.RawMessage, before time.Time) time.Time {
	const lastYear = 9999
	var at time.Time
	var ms int64
	switch {
	case json.Unmarshal(raw, &at) == nil && !at.IsZero():
	case json.Unmarshal(raw, &ms) == nil && ms > 0:
		at = time.UnixMilli(ms)
	default:
		return before
	}
	if at = at.UTC(); at.Year() > lastYear {
		return before
	}
	return at
}

// Order returns a copy of the records in the order of translation: by time, then, if both records have a sequence, by
// sequence, and otherwise by event id. If only some records of an instant have a sequence, no pairwise comparison is
// consistent ("a sequence sorts last" left prompts open for ever). So ids determine the places, and the places of the
// sequenced records are filled by sequence. Records without an id come first, in their order.
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

// key is the sort key of a record.
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

// bySequence sorts the sequenced records of one instant among the places that they occupy.
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
