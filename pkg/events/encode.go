package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// eventBytesTypical is what an event usually takes, in bytes.
const eventBytesTypical = 400

// EncodeBatch is the body of a commit. It fails with [ErrMalformed] when an envelope or a fact is invalid, the events are
// of several sessions, or a limit is passed: what this returns, every reader can read. (Data given without a Fact is not
// looked into: that is how what is strange is handed on.)
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
	if n := enc.buf.Len(); n > CommitBytesMax-commitOverhead {
		return nil, bad("commit", "%d bytes: at most %d are allowed; put large content in the object store and send its reference", n, CommitBytesMax-commitOverhead)
	}
	return enc.buf.Bytes(), nil
}

// mayTravel checks what [DecodeBatch] will check.
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

// EncodeEvent is the structured CloudEvents form, as the feed carries it. It fails with [ErrMalformed] when the data is
// no JSON, or too large, or the time has no RFC 3339 form.
func EncodeEvent(e *Event) ([]byte, error) {
	enc := newEncoder(1)
	if err := enc.event(e); err != nil {
		return nil, err
	}
	return enc.buf.Bytes(), nil
}

// encoder writes events one after the other. Data that is there goes out as it came, without white space: escaping it
// anew, as json.Marshal does, would make it grow beyond what readers take.
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
		return dataFits(enc.buf.Len() - start)
	}
	if err := enc.value(e.Fact); err != nil {
		return bad("data", "%v", err)
	}
	n := enc.buf.Len() - start
	return first(dataFits(n), listFits(e.Fact, n))
}

// listFits checks the size of questions and answers. It measures only what is in data that is large enough.
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

// marshal is json.Marshal without the escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	enc := newEncoder(1)
	err := enc.value(v)
	return enc.buf.Bytes(), err
}

// text writes one more attribute.
func (enc *encoder) text(name, value string) {
	enc.buf.WriteString(`,"`)
	enc.buf.WriteString(name)
	enc.buf.WriteString(`":`)
	if strings.IndexFunc(value, needsEscape) >= 0 {
		if err := enc.value(value); err != nil {
			panic(err) // no string can fail to encode
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
	enc.buf.Truncate(enc.buf.Len() - 1) // the line feed that Encode ends with
	return nil
}
