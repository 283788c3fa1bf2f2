// Package events is the vocabulary of Holdfast: the facts, the names on the wire, and how facts travel.
//
// A fact is what happened, in the past tense ([Fact]); an [Event] is a fact in its CloudEvents 1.0 envelope; a
// [Commit] is one append to the log, the CloudEvents JSON batch of 1 to [CommitFactsMax] events of one session that
// stand together. [Table] says who may say what; the fold enforces it. [Cell] builds every name on the wire.
//
// Reading is tolerant and loses nothing. A batch that is none is an error for the whole message. Within a batch each
// event stands for itself: what cannot be read carries its reason in Event.Err, an unknown kind has no Fact, and the
// others count. Everything here is pure: no clock, no chance, no I/O.
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

// Limits of what travels.
const (
	CommitFactsMax = 2000      // facts in a commit
	CommitBytesMax = 512 << 10 // bytes of a commit's body and headers
	DataBytesMax   = 256 << 10 // bytes of one fact's data

	// CommitBodyMax is the most bytes that the body of a commit takes, envelopes included.
	CommitBodyMax = CommitBytesMax - commitOverhead

	dataFieldsBytes = 512     // for the ids that stand beside the content of a message
	commitOverhead  = 1 << 10 // bytes kept for subject and headers
	specVersion     = "1.0"   // of CloudEvents
	jsonType        = "application/json"
)

// Content types of what travels.
const (
	BatchContentType = "application/cloudevents-batch+json"
	EventContentType = "application/cloudevents+json"
)

// Event is a fact in its envelope. Fact is nil for a kind this build does not know and for data beyond reading; Err says
// why an event cannot be read. A prompt with unreadable questions has both: it stands, and is reported.
type Event struct {
	ID      string
	Source  string
	Kind    Kind // without [TypePrefix]; a foreign type as it came
	Foreign bool // the type has no [TypePrefix]: somebody else's event
	Subject string
	Time    time.Time
	Session string // unencoded
	Epoch   uint64
	Trace   string          // W3C traceparent
	Data    json.RawMessage // as it travelled; encoding prefers it to Fact
	Derived bool            // in the feed: closed by containment, not said by anybody
	Fact    Fact
	Err     error
}

// Commit is one append to a session's log.
type Commit struct {
	Ref     Ref
	Writer  Writer
	Seq     uint64    // place in the log
	Guard   uint64    // the session's previous commit as its writer knew it, 0 for none
	Guarded bool      // whether the writer gave a guard at all
	At      time.Time // the broker's
	Events  []Event
	Err     error // the whole body is no batch
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

// New wraps a fact for a session. The caller sets nothing else before [EncodeBatch].
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

// HarnessSource is the source attribute of a harness process.
func HarnessSource(harness, incarnation string) string {
	return "/harness/" + tok(harness) + "/" + tok(incarnation)
}

// IsHarnessSource says whether a source attribute names this harness process. Writers in other languages may write the ids
// as they are, as in the session attribute; both forms are the same for ids that need no encoding.
func IsHarnessSource(source, harness, incarnation string) bool {
	return source == HarnessSource(harness, incarnation) || source == "/harness/"+harness+"/"+incarnation
}

// ServiceSource is the source attribute of a service process.
func ServiceSource(service, instance string) string {
	return "/service/" + service + "/" + tok(instance)
}

// PersonSource is the source attribute of a person's wish.
func PersonSource(by string) string { return personSource + tok(by) }

const personSource = "/person/"

// Person is the name in the source attribute of a person's wish; false for any other source.
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

// DeriveID makes the id of something a decision calls for, the same each time it is decided: a readable prefix and 20
// letters from the parts.
func DeriveID(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:20])
}

// Type is the CloudEvents type attribute.
func (e *Event) Type() string {
	if e.Foreign {
		return string(e.Kind)
	}
	return TypePrefix + string(e.Kind)
}

// DecodeEvent reads one structured CloudEvent, as the feed carries them. Like in a batch, what is wrong is in Event.Err.
func DecodeEvent(body []byte) Event {
	var w wire
	if err := ReadJSON(body, &w); err != nil {
		return Event{Err: fmt.Errorf("%w: not a CloudEvent: %v", ErrMalformed, err)}
	}
	return w.event(w.Session)
}

// DecodeBatch reads the body of a commit of this session. The error, which wraps [ErrMalformed], means the whole body is
// no batch; what is wrong with single events is in their Err. The body must not change afterwards: Data points into it.
func DecodeBatch(r Ref, body []byte) ([]Event, error) {
	if evs, ok := decodeQuickly(r, body); ok {
		return evs, nil
	}
	return decodeThoroughly(r, body)
}

// decodeThoroughly reads anything, and says what is wrong with what.
func decodeThoroughly(r Ref, body []byte) ([]Event, error) {
	ws := make([]wire, 0, min(bytes.Count(body, []byte(eventMark)), CommitFactsMax)) // a hint, not more
	if err := json.Unmarshal(body, &ws); err == nil {
		if err := batchFits(len(ws)); err != nil {
			return nil, err
		}
		evs := make([]Event, len(ws))
		for i := range ws {
			evs[i] = ws[i].event(r.Session)
			evs[i].Derived = false // the feed's word, nobody else's
		}
		return evs, nil
	}
	return decodeOneByOne(r, body)
}

// eventMark is in every event, so that counting it tells how many a body holds, nearly always.
const eventMark = `"specversion"`

// decodeOneByOne is the slow way, for a batch in which one event cannot even be taken apart.
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

// attributes checks what travelled around the data of an event of any kind.
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

// dataFits checks the size of data. A message's content may have as much for itself.
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

// hasRFC3339 says whether an instant in UTC can be written: RFC 3339 has years of four digits.
func hasRFC3339(at time.Time) bool { return at.Year() >= 0 && at.Year() <= 9999 }

func isJSON(contentType string) bool {
	base, _, _ := strings.Cut(contentType, ";")
	base = strings.ToLower(strings.TrimSpace(base))
	return base == jsonType || strings.HasSuffix(base, "+json")
}

// checkFact checks the data, and that envelope and data are about the same thing.
func checkFact(e *Event, session string) error {
	if err := e.Fact.Validate(); err != nil {
		return err
	}
	want := e.Fact.Subject()
	switch {
	case want == "" && strings.HasPrefix(string(e.Kind), "session."):
		want = session
	case strings.HasPrefix(string(e.Kind), "usage."):
		return nil // about the session as much as about a turn: either is a fair subject
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

// IsMalformed says whether an error is about input that cannot be read.
func IsMalformed(err error) bool { return errors.Is(err, ErrMalformed) }
