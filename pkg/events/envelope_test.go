package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/events"
)

func TestBatchRoundTrip(t *testing.T) {
	sent := sampleEvents()
	sent[1].Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	// optional
	sent[2].Time = time.Time{}
	body := encode(t, sent...)
	got := decode(t, body)
	if len(got) != len(sent) {
		t.Fatalf("%d events, sent %d", len(got), len(sent))
	}
	for i, e := range got {
		if e.Err != nil {
			t.Fatalf("%s: %v", sent[i].Kind, e.Err)
		}
		if !reflect.DeepEqual(e.Fact, sent[i].Fact) {
			t.Errorf("%s: the fact came back as %+v", e.Kind, e.Fact)
		}
		if len(e.Data) == 0 {
			t.Errorf("%s: its data was not kept", e.Kind)
		}
		e.Data = nil
		if !reflect.DeepEqual(e, sent[i]) {
			t.Errorf("%s: the envelope came back as %+v, sent %+v", e.Kind, e, sent[i])
		}
	}
	if again := encode(t, got...); !bytes.Equal(again, body) {
		t.Errorf("encoded again it is\n%s\nnot\n%s", again, body)
	}
}

func TestEnvelopeOnTheWire(t *testing.T) {
	e := events.New("e1", source(), ref, 3, at, events.TurnCompleted{Turn: "t1"})
	e.Trace = "00-1"
	want := `[{"specversion":"1.0","id":"e1","source":"/harness/laptop/17","type":"holdfast.turn.completed",` +
		`"subject":"t1",` +
		`"time":"2026-11-20T12:30:00.005Z","session":"ses_1","epoch":3,"traceparent":"00-1",` +
		`"datacontenttype":"application/json","data":{"turn":"t1"}}]`
	if got := encode(t, e); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSubjectOfTheSessionItself(t *testing.T) {
	for _, f := range []events.Fact{events.SessionReleased{}, events.UsageReported{}} {
		if e := events.New("e1", source(), ref, 1, at, f); e.Subject != ref.Session {
			t.Errorf("%s: subject %q, want the session's id", e.Kind, e.Subject)
		}
	}
}

// An invalid attribute is an error of its event, and the error names the attribute.
func TestBadAttributes(t *testing.T) {
	for _, c := range []struct {
		name     string
		override map[string]any
		field    string // "" : sound
	}{
		{"sound as it is", nil, ""},
		{"no time", map[string]any{"time": nil}, ""},
		{"no content type", map[string]any{"datacontenttype": nil}, ""},
		{"a content type with parameters", map[string]any{"datacontenttype": "Application/JSON; charset=utf-8"}, ""},
		{"a content type with suffix", map[string]any{"datacontenttype": "application/vnd.x+json"}, ""},
		{"an extension that is not known", map[string]any{"tracestate": "a=b", "partitionkey": "x"}, ""},
		{"a time with an offset", map[string]any{"time": "2026-11-20T13:30:00.000005+01:00"}, ""},
		{"usage is about the turn", map[string]any{
			"type": "holdfast.usage.reported", "subject": "t1", "data": map[string]any{"turn": "t1"}}, ""},
		{"or about the session", map[string]any{
			"type": "holdfast.usage.reported", "subject": ref.Session, "data": map[string]any{"turn": "t1"}}, ""},
		{"another CloudEvents version", map[string]any{"specversion": "0.3"}, "specversion"},
		{"no CloudEvents version", map[string]any{"specversion": nil}, "specversion"},
		{"no id", map[string]any{"id": nil}, "id"},
		{"an empty id", map[string]any{"id": ""}, "id"},
		{"no source", map[string]any{"source": nil}, "source"},
		{"no type", map[string]any{"type": nil}, "type"},
		{"a type that is the prefix alone", map[string]any{"type": "holdfast."}, "type"},
		{"no session", map[string]any{"session": nil}, "session"},
		{"another harness's session", map[string]any{"session": "ses_2"}, "session"},
		{"a session of another case", map[string]any{"session": "SES_1"}, "session"},
		{"no epoch", map[string]any{"epoch": nil}, "epoch"},
		{"epoch 0", map[string]any{"epoch": 0}, "epoch"},
		{"an invalid time", map[string]any{"time": "yesterday"}, "time"},
		{"a time without a zone", map[string]any{"time": "2026-11-20T12:30:00"}, "time"},
		{"a time beyond the year 9999", map[string]any{"time": "9999-12-31T23:30:00-01:00"}, "time"},
		{"a time before the year 0", map[string]any{"time": "0000-01-01T00:30:00+01:00"}, "time"},
		{"XML", map[string]any{"datacontenttype": "text/xml"}, "datacontenttype"},
		{"binary data", map[string]any{"data": nil, "data_base64": "e30="}, "data_base64"},
		{"data over 256 KiB", map[string]any{
			"data": map[string]any{"call": "c1", "input": strings.Repeat("x", events.DataBytesMax)}}, "data"},
		{"data over 256 KiB of a type that is not known", map[string]any{
			"type": "holdfast.tool.danced", "data": strings.Repeat("x", events.DataBytesMax)}, "data"},
		{"the subject says another call", map[string]any{"subject": "c2"}, "subject"},
		{"no subject", map[string]any{"subject": nil}, "subject"},
		{"a session's fact about something else", map[string]any{
			"type": "holdfast.session.released", "subject": "c1"}, "subject"},
		{"no id in the data", map[string]any{"data": map[string]any{"turn": "t1"}}, "call"},
		{"no data", map[string]any{"data": nil}, "call"},
		{"an id over 128 bytes", map[string]any{
			"subject": strings.Repeat("x", 129), "data": map[string]any{"call": strings.Repeat("x", 129)}}, "call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := decode(t, raw(t, c.override))[0]
			wantField(t, e.Err, c.field)
			if (e.Fact == nil) != (c.field != "") {
				t.Errorf("fact %+v with error %v", e.Fact, e.Err)
			}
		})
	}
}

// JSON that does not fit the shape of an event, or of its data, is malformed, too.
func TestBadShapes(t *testing.T) {
	for name, override := range map[string]map[string]any{
		"an id that is a number":      {"id": 5},
		"an epoch that is text":       {"epoch": "3"},
		"an epoch below 0":            {"epoch": -1},
		"an epoch with a fraction":    {"epoch": 1.5},
		"a session that is an object": {"session": map[string]any{}},
		"data that is a list":         {"data": []int{1}},
		"data that is text":           {"data": "call c1"},
		"a call that is a number":     {"data": map[string]any{"call": 1}},
		"a policy of the wrong type": {
			"type": "holdfast.session.configured", "subject": ref.Session,
			"data": map[string]any{"policy": map[string]any{"retry_max": "many"}}},
		"a policy that is a list": {
			"type": "holdfast.session.configured", "subject": ref.Session, "data": map[string]any{"policy": []int{}}},
		"a due time that is no time": {
			"type": "holdfast.retry.scheduled", "subject": "t1",
			"data": map[string]any{"turn": "t1", "due_at": "soon"}},
		"a prompt that is no object": {"type": "holdfast.prompt.requested", "subject": "p1", "data": 7},
		"a prompt with a number as id": {
			"type": "holdfast.prompt.requested", "subject": "p1", "data": map[string]any{"prompt": 7}},
	} {
		t.Run(name, func(t *testing.T) {
			e := decode(t, raw(t, override))[0]
			if !events.IsMalformed(e.Err) || e.Fact != nil || len(e.Data) == 0 {
				t.Errorf("fact %+v, error %v, data %.100s: want none, malformed, kept", e.Fact, e.Err, e.Data)
			}
		})
	}
}

// One bad event does not affect the other events of its batch.
func TestOneBadEventAmongGoodOnes(t *testing.T) {
	good := string(encode(t, events.New("good", source(), ref, 3, at, events.TurnCompleted{Turn: "t1"})))
	good = strings.Trim(good, "[]")
	for name, strange := range map[string]string{
		"an epoch that is text": strings.Trim(string(raw(t, map[string]any{"epoch": "x"})), "[]"),
		"a wrong attribute":     strings.Trim(string(raw(t, map[string]any{"session": "ses_2"})), "[]"),
		"null":                  "null",
		"a number":              "42",
		"text":                  `"hello"`,
		"a list":                "[]",
		"an empty object":       "{}",
	} {
		t.Run(name, func(t *testing.T) {
			evs := decode(t, []byte("["+good+","+strange+","+good+"]"))
			if len(evs) != 3 || evs[0].Err != nil || evs[2].Err != nil || evs[0].Fact == nil || evs[2].Fact == nil {
				t.Fatalf("the good ones are spoilt: %+v", evs)
			}
			if !events.IsMalformed(evs[1].Err) || evs[1].Fact != nil {
				t.Errorf("the bad one: fact %+v, error %v", evs[1].Fact, evs[1].Err)
			}
		})
	}
}

func TestNoBatchAtAll(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":        "",
		"no JSON":        "hello",
		"cut short":      `[{"specversion":"1.0"`,
		"a lone event":   strings.Trim(string(raw(t, nil)), "[]"),
		"null":           "null",
		"an empty batch": "[]",
		"2001 facts":     "[" + strings.Repeat("{},", events.CommitFactsMax) + "{}]",
		"2001 oddities":  "[" + strings.Repeat("1,", events.CommitFactsMax) + "1]",
		"two batches":    "[{}][{}]",
		"binary":         "\x00\x01\xff",
	} {
		if evs, err := events.DecodeBatch(ref, []byte(body)); !errors.Is(err, events.ErrMalformed) || evs != nil {
			t.Errorf("%s: %d events, error %v: want ErrMalformed", name, len(evs), err)
		}
	}
	if evs := decode(t, []byte("["+strings.Repeat("{},",
		events.CommitFactsMax-1)+"{}]")); len(evs) != events.CommitFactsMax {
		t.Errorf("2000 facts are a batch, got %d", len(evs))
	}
}

// A kind of a newer build, or of another system, is kept unchanged.
func TestUnknownTypeIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		typ     string
		kind    events.Kind
		foreign bool
	}{
		"of a newer build":             {"holdfast.tool.danced", "tool.danced", false},
		"of another system":            {"com.example.thing", "com.example.thing", true},
		"of another system, same name": {"tool.started", "tool.started", true},
	} {
		t.Run(name, func(t *testing.T) {
			e := decode(t, raw(t, map[string]any{
				"type": c.typ, "subject": "whatever", "data": map[string]any{"steps": []int{1, 2}}}))[0]
			if e.Err != nil || e.Fact != nil || e.Kind != c.kind || e.Foreign != c.foreign ||
				string(e.Data) != `{"steps":[1,2]}` {
				t.Fatalf("%+v", e)
			}
			again := decode(t, encode(t, e))[0]
			if !reflect.DeepEqual(again, e) {
				t.Errorf("sent on, it is %+v, not %+v", again, e)
			}
		})
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	data := map[string]any{"call": "c1", "turn": "t1", "name": "bash", "zeal": map[string]any{"deep": true}}
	e := decode(t, raw(t, map[string]any{"data": data}))[0]
	if e.Err != nil || !strings.Contains(string(e.Data), `"zeal":{"deep":true}`) {
		t.Fatalf("error %v, data %s", e.Err, e.Data)
	}
	if body := encode(t, e); !strings.Contains(string(body), `"zeal":{"deep":true}`) {
		t.Errorf("sent on without it: %s", body)
	}
}

func TestEncodeBatchRefuses(t *testing.T) {
	sound := func(change func(*events.Event)) []events.Event {
		e := events.New("e1", source(), ref, 3, at, events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash"})
		change(&e)
		return []events.Event{e}
	}
	big := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }
	many := func(n int, output json.RawMessage) []events.Event {
		evs := make([]events.Event, n)
		for i := range evs {
			evs[i] = events.New("e", source(), ref, 3, at, events.ToolCompleted{Call: "c1", Output: output})
		}
		return evs
	}
	for _, c := range []struct {
		name, field string
		evs         []events.Event
	}{
		{"sound as it is", "", sound(func(*events.Event) {})},
		{"2000 facts", "", many(events.CommitFactsMax, nil)},
		{"no id", "id", sound(func(e *events.Event) { e.ID = "" })},
		{"no source", "source", sound(func(e *events.Event) { e.Source = "" })},
		{"no kind", "type", sound(func(e *events.Event) { e.Kind, e.Fact = "", nil })},
		{"no session", "session", sound(func(e *events.Event) { e.Session = "" })},
		{"a session too long", "session", sound(func(e *events.Event) { e.Session = strings.Repeat("x", 129) })},
		{"a session that is no text", "session", sound(func(e *events.Event) { e.Session = "\xff" })},
		{"two sessions", "session", append(sound(func(*events.Event) {}),
			sound(func(e *events.Event) { e.Session = "ses_2" })...)},
		{"no epoch", "epoch", sound(func(e *events.Event) { e.Epoch = 0 })},
		{"another subject", "subject", sound(func(e *events.Event) { e.Subject = "c2" })},
		{"another kind", "type", sound(func(e *events.Event) { e.Kind = "tool.completed" })},
		{"an invalid fact", "call", sound(func(e *events.Event) { e.Fact = events.ToolStarted{} })},
		{"a year without a form", "time", sound(func(e *events.Event) { e.Time = at.AddDate(10000, 0, 0) })},
		{"data that is no JSON", "data", sound(func(e *events.Event) { e.Data = json.RawMessage(`{"call":`) })},
		{"a field that is no JSON", "data", sound(func(e *events.Event) {
			e.Fact = events.ToolStarted{Call: "c1", Turn: "t1", Name: "bash", Input: json.RawMessage(`{`)}
		})},
		{"data over 256 KiB", "data", many(1, big(events.DataBytesMax))},
		{"a commit over its limit", "commit", many(3, big(events.CommitBytesMax/3))},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := events.EncodeBatch(c.evs)
			wantField(t, err, c.field)
		})
	}
	for name, n := range map[string]int{"no facts": 0, "2001 facts": events.CommitFactsMax + 1} {
		if _, err := events.EncodeBatch(many(n, nil)); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: %v: want ErrMalformed", name, err)
		}
	}
}

// Data that fits can be forwarded any number of times: encoding it again does not make it too large.
func TestDataDoesNotGrow(t *testing.T) {
	data := map[string]any{"call": "c1", "turn": "t1", "name": "bash", "input": strings.Repeat("<&>\u2028", 28_000)}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		t.Fatal(err)
	}
	body := bytes.Replace(raw(t, map[string]any{"data": "DATA"}), []byte(`"DATA"`), bytes.TrimSpace(b.Bytes()), 1)
	e := decode(t, body)[0]
	if e.Err != nil {
		t.Fatal(e.Err)
	}
	again := decode(t, encode(t, e))[0]
	if again.Err != nil || !bytes.Equal(again.Data, e.Data) {
		t.Errorf("sent on: error %v, %d bytes that were %d", again.Err, len(again.Data), len(e.Data))
	}
	e.Data = nil
	if again := decode(t, encode(t, e))[0]; again.Err != nil || len(again.Data) > b.Len() {
		t.Errorf("from the fact: error %v, %d bytes that were %d", again.Err, len(again.Data), b.Len())
	}
}

func TestDerivedIsTheFeedsWord(t *testing.T) {
	evs := decode(t, raw(t, map[string]any{"derived": true}))
	if evs[0].Derived {
		t.Error("a harness can say that containment closed something")
	}
	body := strings.Replace(string(raw(t, map[string]any{"derived": true})), "[", "[1,", 1)
	if evs := decode(t, []byte(body)); evs[1].Derived || evs[1].Err != nil {
		t.Errorf("beside a bad event it gets through: %+v", evs[1])
	}
	e := events.New(
		"e1",
		"/service/ledger/i1",
		ref,
		3,
		at,
		events.PromptWithdrawn{Prompt: "p1", Reason: events.ReasonTurnEnded},
	)
	e.Derived = true
	fed, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if got := events.DecodeEvent(fed); got.Err != nil || !got.Derived || !reflect.DeepEqual(got.Fact, e.Fact) {
		t.Errorf("the feed carries %+v", got)
	}
}

func TestDecodeEventRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":    "",
		"a batch":    "[]",
		"no session": strings.Trim(string(raw(t, map[string]any{"session": nil})), "[]"),
		"no subject": strings.Trim(string(raw(t, map[string]any{"subject": nil})), "[]"),
	} {
		if e := events.DecodeEvent([]byte(body)); !events.IsMalformed(e.Err) || e.Fact != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestEncodeEventRefusesWhatIsNoJSON(t *testing.T) {
	e := events.New("e1", source(), ref, 3, at, events.TurnCompleted{Turn: "t1"})
	e.Data = json.RawMessage("{")
	_, err := events.EncodeEvent(&e)
	wantField(t, err, "data")
}

// The limit of data is exact to the byte; the ids beside a message's content are not counted.
func TestDataAtItsLimit(t *testing.T) {
	tool := func(n int) map[string]any {
		return map[string]any{
			"data": json.RawMessage(
				`{"call":"c1","input":"` + strings.Repeat("x", n-len(`{"call":"c1","input":""}`)) + `"}`,
			),
		}
	}
	message := func(n int) map[string]any {
		return map[string]any{
			"type":    "holdfast.message.accepted",
			"subject": "m1",
			"data": json.RawMessage(
				`{"message":"m1","synthetic":false,"by":"ada","content":"` + strings.Repeat("x", n-len(`""`)) + `"}`,
			),
		}
	}
	for name, c := range map[string]struct {
		override map[string]any
		field    string
	}{
		"a call's":                         {tool(events.DataBytesMax), ""},
		"a call's and a byte":              {tool(events.DataBytesMax + 1), "data"},
		"a message's content":              {message(events.ContentBytesMax), ""},
		"a message's content and far more": {message(events.ContentBytesMax + 600), "data"},
	} {
		e := decode(t, raw(t, c.override))[0]
		t.Run(name, func(t *testing.T) { wantField(t, e.Err, c.field) })
	}
}
