package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// eventBytesTypical is the typical size of an event, in bytes.
const eventBytesTypical = 400

// EncodeBatch returns the body of a commit. It fails with [ErrMalformed] when an envelope or a fact is invalid, when
// the events are of several sessions, or above a limit: every reader can decode the result. (Data without a Fact is not
// checked, so that unknown events can be forwarded.)
func EncodeBatch(evs []Event) ([]byte, error) {
	if err := batchFits(len(evs)); err != nil {
		return nil, err
	}
	if err := needID("session", evs[0].Session); err != nil {
		return nil, err
	}
	enc := newEncoder(len(evs))
	for i := range evs {
		if err := evs[i].mayTravel(evs[0].Session); err != nil {
			return nil, fmt.Errorf("%s: %w", evs[i].Kind, err)
		}
		enc.buf.WriteByte("[,"[min(i, 1)])
		if err := enc.event(&evs[i]); err != nil {
			return nil, err
		}
	}
	enc.buf.WriteByte(']')
	if n := enc.buf.Len(); n > CommitBodyMax {
		return nil, bad(
			"commit",
			"%d bytes: at most %d are allowed; put large content in the object store and send its reference",
			n,
			CommitBodyMax,
		)
	}
	return enc.buf.Bytes(), nil
}

// mayTravel checks what [DecodeBatch] checks.
func (e *Event) mayTravel(session string) error {
	if err := e.envelope(session); err != nil || e.Fact == nil {
		return err
	}
	if e.Fact.Kind() != e.Kind {
		return bad("type", "%s, but the fact is %s", e.Kind, e.Fact.Kind())
	}
	return checkFact(e, session)
}

// MarshalJSON is [EncodeEvent].
func (e Event) MarshalJSON() ([]byte, error) { return EncodeEvent(&e) }

// EncodeEvent returns the structured CloudEvents form, as in the feed. It fails with [ErrMalformed] when the data is
// not JSON or too large, or when the time has no RFC 3339 form.
func EncodeEvent(e *Event) ([]byte, error) {
	enc := newEncoder(1)
	if err := enc.event(e); err != nil {
		return nil, err
	}
	return enc.buf.Bytes(), nil
}

// encoder appends events. It copies existing data without white space: json.Marshal would escape it again, and could
// make it larger than readers accept.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

func newEncoder(events int) *encoder {
	enc := &encoder{}
	enc.buf.Grow(eventBytesTypical * events)
	enc.json = json.NewEncoder(&enc.buf)
	enc.json.SetEscapeHTML(false)
	return enc
}

func (enc *encoder) event(e *Event) error {
	enc.buf.WriteString(`{"specversion":"` + specVersion + `"`)
	enc.text("id", e.ID)
	enc.text("source", e.Source)
	enc.text("type", e.Type())
	if e.Subject != "" {
		enc.text("subject", e.Subject)
	}
	if !e.Time.IsZero() {
		at := e.Time.UTC()
		if !hasRFC3339(at) {
			return bad("time", "the year %d has no RFC 3339 form", at.Year())
		}
		enc.buf.WriteString(`,"time":"`)
		enc.buf.Write(at.AppendFormat(enc.buf.AvailableBuffer(), time.RFC3339Nano))
		enc.buf.WriteByte('"')
	}
	if e.Session != "" {
		enc.text("session", e.Session)
	}
	if e.Epoch > 0 {
		enc.buf.WriteString(`,"epoch":`)
		enc.buf.Write(strconv.AppendUint(enc.buf.AvailableBuffer(), e.Epoch, 10))
	}
	if e.Trace != "" {
		enc.text("traceparent", e.Trace)
	}
	if e.Derived {
		enc.buf.WriteString(`,"derived":true`)
	}
	if err := enc.data(e); err != nil {
		return fmt.Errorf("%s: %w", e.Kind, err)
	}
	enc.buf.WriteByte('}')
	return nil
}

func (enc *encoder) data(e *Event) error {
	if len(e.Data) == 0 && e.Fact == nil {
		return nil
	}
	enc.buf.WriteString(`,"datacontenttype":"` + jsonType + `","data":`)
	start := enc.buf.Len()
	if len(e.Data) > 0 {
		if err := json.Compact(&enc.buf, e.Data); err != nil {
			return bad("data", "%v", err)
		}
		return dataFits(e.Kind, enc.buf.Len()-start)
	}
	if err := enc.value(e.Fact); err != nil {
		return bad("data", "%v", err)
	}
	n := enc.buf.Len() - start
	return first(dataFits(e.Kind, n), listFits(e.Fact, n))
}

// listFits checks the size of questions and answers. It encodes them only if the data is large enough.
func listFits(f Fact, dataBytes int) error {
	if dataBytes <= QuestionsBytesMax {
		return nil
	}
	var field string
	var list any
	switch f := f.(type) {
	case PromptRequested:
		field, list = "questions", f.Questions
	case PromptAnswered:
		field, list = "answers", f.Answers
	default:
		return nil
	}
	raw, err := marshal(list)
	if err != nil {
		return bad(field, "%v", err)
	}
	if len(raw) > QuestionsBytesMax {
		return bad(field, "%d bytes: at most %d are allowed", len(raw), QuestionsBytesMax)
	}
	return nil
}

// marshal is json.Marshal without HTML escaping.
func marshal(v any) ([]byte, error) {
	enc := newEncoder(1)
	err := enc.value(v)
	return enc.buf.Bytes(), err
}

// text appends a string attribute.
func (enc *encoder) text(name, value string) {
	enc.buf.WriteString(`,"`)
	enc.buf.WriteString(name)
	enc.buf.WriteString(`":`)
	if strings.IndexFunc(value, needsEscape) >= 0 {
		if err := enc.value(value); err != nil {
			// encoding a string cannot fail
			panic(err)
		}
		return
	}
	enc.buf.WriteByte('"')
	enc.buf.WriteString(value)
	enc.buf.WriteByte('"')
}

func needsEscape(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

func (enc *encoder) value(v any) error {
	if err := enc.json.Encode(v); err != nil {
		return err
	}
	// Encode appends a line feed
	enc.buf.Truncate(enc.buf.Len() - 1)
	return nil
}

// decodeQuickly decodes the usual batches: known attributes in plain ASCII, and valid facts of known kinds. It returns
// false for any other batch, which [decodeThoroughly] decodes. Both return the same events. Data points into the body.
func decodeQuickly(r Ref, body []byte) ([]Event, bool) {
	s := &scanner{body: body, words: [...]string{specVersion, jsonType, r.Session, ""}}
	if !s.next('[') {
		return nil, false
	}
	evs := make([]Event, 0, min(bytes.Count(body, []byte(eventMark)), CommitFactsMax))
	for {
		var w wire
		if len(evs) == CommitFactsMax || !s.event(&w) {
			return nil, false
		}
		e := w.event(r.Session)
		if e.Fact == nil {
			return nil, false
		}
		evs = append(evs, e)
		if !s.next(',') {
			return evs, s.next(']') && s.atEnd()
		}
	}
}

// scanner reads JSON. A method returns false at the first unusual form; then the scanner cannot be used any more.
type scanner struct {
	body  []byte
	at    int
	words [4]string // strings that the events of a batch share; the last is the source of the previous event
}

func (s *scanner) space() {
	for s.at < len(s.body) && (s.body[s.at] == ' ' || s.body[s.at] == '\n' || s.body[s.at] == '\r' ||
		s.body[s.at] == '\t') {
		s.at++
	}
}

func (s *scanner) atEnd() bool {
	s.space()
	return s.at == len(s.body)
}

// next skips white space and the byte c, if c is next.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.at >= len(s.body) || s.body[s.at] != c {
		return false
	}
	s.at++
	return true
}

// event reads one object.
func (s *scanner) event(w *wire) bool {
	if !s.next('{') {
		return false
	}
	for {
		name, ok := s.text()
		if !ok || !s.next(':') || !s.attribute(w, name) {
			return false
		}
		if !s.next(',') {
			return s.next('}')
		}
	}
}

// attribute reads one value. It returns false for an unknown attribute, whose name may differ only in case.
func (s *scanner) attribute(w *wire, name []byte) (ok bool) {
	var to *string
	switch string(name) {
	case "specversion":
		to = &w.SpecVersion
	case "id":
		to = &w.ID
	case "source":
		to = &w.Source
	case "type":
		to = &w.Type
	case "subject":
		to = &w.Subject
	case "time":
		to = &w.Time
	case "datacontenttype":
		to = &w.DataContentType
	case "session":
		to = &w.Session
	case "traceparent":
		to = &w.Trace
	case "epoch":
		w.Epoch, ok = s.number()
		return ok
	case "data":
		w.Data, ok = s.object()
		return ok
	default:
		return false
	}
	value, ok := s.text()
	*to = s.word(value)
	if to == &w.Source {
		s.words[len(s.words)-1] = w.Source
	}
	return ok
}

// word returns value as a string, from words if it is there.
func (s *scanner) word(value []byte) string {
	for _, w := range s.words {
		if string(value) == w {
			return w
		}
	}
	return string(value)
}

// text reads a string without escapes.
func (s *scanner) text() ([]byte, bool) {
	if !s.next('"') {
		return nil, false
	}
	for start := s.at; s.at < len(s.body); s.at++ {
		switch c := s.body[s.at]; {
		case c == '"':
			s.at++
			return s.body[start : s.at-1], true
		case c < ' ' || c > '~' || c == '\\':
			return nil, false
		}
	}
	return nil, false
}

// epochDigitsMax is the number of decimal digits that always fit 64 bits.
const epochDigitsMax = 18

func (s *scanner) number() (n uint64, ok bool) {
	s.space()
	start := s.at
	for ; s.at < len(s.body) && s.body[s.at] >= '0' && s.body[s.at] <= '9'; s.at++ {
		n = 10*n + uint64(s.body[s.at]-'0')
	}
	digits := s.at - start
	return n, digits >= 1 && digits <= epochDigitsMax && s.body[start] != '0'
}

// quickDepthMax is the maximum number of open brackets; the limit of encoding/json is far higher.
const quickDepthMax = 1000

// object skips one object by counting brackets and returns its bytes. The caller checks that they are JSON: object is
// certain only that no JSON object ends elsewhere.
func (s *scanner) object() (json.RawMessage, bool) {
	s.space()
	start, depth := s.at, 0
	if s.at >= len(s.body) || s.body[s.at] != '{' {
		return nil, false
	}
	for ; s.at < len(s.body); s.at++ {
		switch s.body[s.at] {
		case '{', '[':
			if depth++; depth > quickDepthMax {
				return nil, false
			}
		case '}', ']':
			depth--
		case '"':
			if !s.skipString() {
				return nil, false
			}
		}
		if depth == 0 {
			s.at++
			return s.body[start:s.at:s.at], true
		}
	}
	return nil, false
}

// skipString moves from the opening quote of a string to the closing one.
func (s *scanner) skipString() bool {
	for s.at++; s.at < len(s.body); s.at++ {
		switch s.body[s.at] {
		case '"':
			return true
		case '\\':
			s.at++
		}
	}
	return false
}
