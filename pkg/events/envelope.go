// Package events is the vocabulary of Holdfast: the facts, their encoding, and the names on the wire.
//
// A [Fact] is what happened, in the past tense. An [Event] is a fact in its CloudEvents 1.0 envelope. A [Commit] is one
// append to the log: a CloudEvents JSON batch of 1 to [CommitFactsMax] events of one session. [Table] lists the writers
// of each kind; the fold enforces it. [Cell] builds every name on the wire.
//
// Decoding is tolerant and loses nothing. A body that is not a batch is an error for the whole message. Within a batch
// each event is decoded on its own: an unreadable event has its reason in Event.Err, an event of an unknown kind has no
// Fact, and the others count. The package has no side effects: it reads no clock, no random numbers and no I/O.
package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits of commits and events.
const (
	CommitFactsMax = 2000      // facts in a commit
	CommitBytesMax = 512 << 10 // bytes of a commit's body and headers
	DataBytesMax   = 256 << 10 // bytes of one fact's data

	// CommitBodyMax is the most bytes that the body of a commit takes, envelopes included.
	CommitBodyMax = CommitBytesMax - commitOverhead

	dataFieldsBytes = 512     // for the ids that stand beside the content of a message
	commitOverhead  = 1 << 10 // bytes reserved for subject and headers
	specVersion     = "1.0"   // of CloudEvents
	jsonType        = "application/json"
)

// Content types of what travels.
const (
	BatchContentType = "application/cloudevents-batch+json"
	EventContentType = "application/cloudevents+json"
)

// Event is a fact in its envelope. Fact is nil for a kind that this build does not know, and for unreadable data. Err
// is the reason why an event cannot be read. A prompt with unreadable questions has both: it is open, and the error is
// reported.
type Event struct {
	ID      string
	Source  string
	Kind    Kind // without [TypePrefix]; a foreign type is unchanged
	Foreign bool // the type has no [TypePrefix]: an event of another system
	Subject string
	Time    time.Time
	Session string // unencoded
	Epoch   uint64
	Trace   string          // W3C traceparent
	Data    json.RawMessage // as received; encoding prefers it to Fact
	Derived bool            // in the feed: closed by containment, not by an event of a writer
	Fact    Fact
	Err     error
}

// Commit is one append to a session's log.
type Commit struct {
	Ref     Ref
	Writer  Writer
	Seq     uint64    // place in the log
	Guard   uint64    // the session's previous commit as the writer knew it, 0 for none
	Guarded bool      // whether the writer set a guard
	At      time.Time // by the broker's clock
	Events  []Event
	Err     error // the body is not a batch
}

// wire is the CloudEvents JSON form of an event, for reading.
type wire struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject"`
	Time            string          `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	Session         string          `json:"session"`
	Epoch           uint64          `json:"epoch"`
	Trace           string          `json:"traceparent"`
	Derived         bool            `json:"derived"`
	Data            json.RawMessage `json:"data"`
	DataBase64      json.RawMessage `json:"data_base64"`
}

// New returns a fact in its envelope for a session. No other field has to be set before [EncodeBatch].
func New(id, source string, r Ref, epoch uint64, at time.Time, f Fact) Event {
	e := Event{
		ID:      id,
		Source:  source,
		Kind:    f.Kind(),
		Subject: f.Subject(),
		Time:    at,
		Session: r.Session,
		Epoch:   epoch,
		Fact:    f,
	}
	if e.Subject == "" {
		e.Subject = r.Session
	}
	return e
}

// HarnessSource returns the source attribute of a harness process.
func HarnessSource(harness, incarnation string) string {
	return "/harness/" + tok(harness) + "/" + tok(incarnation)
}

// IsHarnessSource reports whether a source attribute names this harness process. Writers in other languages may leave
// the ids unencoded, as in the session attribute. Both forms are equal for ids that need no encoding.
func IsHarnessSource(source, harness, incarnation string) bool {
	return source == HarnessSource(harness, incarnation) || source == "/harness/"+harness+"/"+incarnation
}

// ServiceSource returns the source attribute of a service process.
func ServiceSource(service, instance string) string {
	return "/service/" + service + "/" + tok(instance)
}

// PersonSource returns the source attribute of a person's request.
func PersonSource(by string) string { return personSource + tok(by) }

const personSource = "/person/"

// Person returns the name in the source attribute of a person's request; false for any other source.
func Person(source string) (by string, ok bool) {
	token, ok := strings.CutPrefix(source, personSource)
	if !ok || token == "" {
		return "", false
	}
	if name, err := ID(token); err == nil {
		token = name
	}
	return token, true
}

// DeriveID returns the id of an entity that a decision creates. It is the same each time the decision is made: a
// readable prefix and 20 letters from the parts.
func DeriveID(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// Type returns the CloudEvents type attribute.
func (e *Event) Type() string {
	if e.Foreign {
		return string(e.Kind)
	}
	return TypePrefix + string(e.Kind)
}

// DecodeEvent decodes one structured CloudEvent, the form of the feed. As in a batch, an error is in Event.Err.
func DecodeEvent(body []byte) Event {
	var w wire
	if err := ReadJSON(body, &w); err != nil {
		return Event{Err: fmt.Errorf("%w: not a CloudEvent: %v", ErrMalformed, err)}
	}
	return w.event(w.Session)
}

// DecodeBatch decodes the body of a commit of this session. An error, which wraps [ErrMalformed], means that the body
// is not a batch. Errors of single events are in their Err. The body must not change afterwards: Data points into it.
func DecodeBatch(r Ref, body []byte) ([]Event, error) {
	if evs, ok := decodeQuickly(r, body); ok {
		return evs, nil
	}
	return decodeThoroughly(r, body)
}

// decodeThoroughly decodes any batch, with an error for each event that cannot be read.
func decodeThoroughly(r Ref, body []byte) ([]Event, error) {
	// an estimate of the capacity
	ws := make([]wire, 0, min(bytes.Count(body, []byte(eventMark)), CommitFactsMax))
	if err := json.Unmarshal(body, &ws); err == nil {
		if err := batchFits(len(ws)); err != nil {
			return nil, err
		}
		evs := make([]Event, len(ws))
		for i := range ws {
			evs[i] = ws[i].event(r.Session)
			// only the feed may set it
			evs[i].Derived = false
		}
		return evs, nil
	}
	return decodeOneByOne(r, body)
}

// eventMark is in every event. Its count is nearly always the number of events in a body.
const eventMark = `"specversion"`

// decodeOneByOne is the slow decoder, for a batch with an event that is not an object of the right shape.
func decodeOneByOne(r Ref, body []byte) ([]Event, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(body, &raws); err != nil {
		return nil, fmt.Errorf("%w: not a CloudEvents JSON batch: %v", ErrMalformed, err)
	}
	if err := batchFits(len(raws)); err != nil {
		return nil, err
	}
	evs := make([]Event, len(raws))
	for i, raw := range raws {
		var w wire
		if err := ReadJSON(raw, &w); err != nil {
			evs[i] = Event{
				ID:   w.ID,
				Kind: kindOf(w.Type),
				Data: raw,
				Err:  fmt.Errorf("%w: not a CloudEvent: %v", ErrMalformed, err),
			}
			continue
		}
		evs[i] = w.event(r.Session)
		evs[i].Derived = false
	}
	return evs, nil
}

func batchFits(n int) error {
	if n == 0 || n > CommitFactsMax {
		return fmt.Errorf("%w: a batch of %d facts: want 1 to %d", ErrMalformed, n, CommitFactsMax)
	}
	return nil
}

func kindOf(typ string) Kind { return Kind(strings.TrimPrefix(typ, TypePrefix)) }

func (w *wire) event(session string) Event {
	e := Event{ID: w.ID, Source: w.Source, Kind: kindOf(w.Type), Subject: w.Subject, Session: w.Session, Epoch: w.Epoch,
		Trace: w.Trace, Derived: w.Derived, Data: w.Data}
	e.Foreign = w.Type == string(e.Kind)
	e.Err = w.attributes(&e, session)
	s := byKind[e.Kind]
	if e.Err != nil || e.Foreign || s == nil {
		return e
	}
	var err error
	e.Fact, err = s.decode(w.dataOrEmpty())
	if e.Fact == nil {
		e.Err = err
		return e
	}
	if verr := checkFact(&e, session); verr != nil {
		e.Fact, err = nil, verr
	}
	e.Err = err
	return e
}

func (w *wire) dataOrEmpty() json.RawMessage {
	if len(w.Data) == 0 || string(w.Data) == "null" {
		return json.RawMessage(`{}`)
	}
	return w.Data
}

// attributes checks the attributes and the size of an event of any kind.
func (w *wire) attributes(e *Event, session string) error {
	switch {
	case w.SpecVersion != specVersion:
		return bad("specversion", "%.20q: want 1.0", w.SpecVersion)
	case len(w.DataBase64) > 0:
		return bad("data_base64", "want JSON in data")
	case w.DataContentType != "" && !isJSON(w.DataContentType):
		return bad("datacontenttype", "%.100q: want application/json", w.DataContentType)
	}
	if w.Time != "" {
		t, err := time.Parse(time.RFC3339Nano, w.Time)
		if err != nil || !hasRFC3339(t.UTC()) {
			return bad("time", "%.60q: want RFC 3339", w.Time)
		}
		e.Time = t
	}
	return first(e.envelope(session), dataFits(e.Kind, len(w.Data)))
}

// envelope checks the attributes of an event of any kind.
func (e *Event) envelope(session string) error {
	switch {
	case e.ID == "":
		return bad("id", "missing")
	case e.Source == "":
		return bad("source", "missing")
	case e.Kind == "":
		return bad("type", "missing")
	case e.Session == "":
		return bad("session", "missing")
	case e.Session != session:
		return bad("session", "%.100q, but the subject says %.100q", e.Session, session)
	case e.Epoch < 1:
		return bad("epoch", "missing or 0: want 1 or more")
	}
	return nil
}

// dataFits checks the size of data. The content of a message has its own limit.
func dataFits(k Kind, n int) error {
	most := DataBytesMax
	if k == (MessageAccepted{}).Kind() {
		most = ContentBytesMax + dataFieldsBytes
	}
	if n > most {
		return bad("data", "%d bytes: at most %d are allowed, larger content goes by reference", n, most)
	}
	return nil
}

// hasRFC3339 reports whether an instant in UTC has an RFC 3339 form: years have four digits.
func hasRFC3339(at time.Time) bool { return at.Year() >= 0 && at.Year() <= 9999 }

func isJSON(contentType string) bool {
	base, _, _ := strings.Cut(contentType, ";")
	base = strings.ToLower(strings.TrimSpace(base))
	return base == jsonType || strings.HasSuffix(base, "+json")
}

// checkFact checks the data, and that envelope and data name the same entity.
func checkFact(e *Event, session string) error {
	if err := e.Fact.Validate(); err != nil {
		return err
	}
	want := e.Fact.Subject()
	switch {
	case want == "" && strings.HasPrefix(string(e.Kind), "session."):
		want = session
	case strings.HasPrefix(string(e.Kind), "usage."):
		// it is about the session and about a turn: both are valid subjects
		return nil
	}
	if e.Subject != want {
		return bad("subject", "%.100q, but the data says %.100q", e.Subject, want)
	}
	return nil
}

func needID(field, id string) error {
	if id == "" {
		return bad(field, "missing")
	}
	return mayID(field, id)
}

func mayID(field, id string) error {
	if id == "" {
		return nil
	}
	return isID(field, id)
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// IsMalformed reports whether an error is about input that cannot be read.
func IsMalformed(err error) bool { return errors.Is(err, ErrMalformed) }
