package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

var quickRef = Ref{Harness: "h", Session: "s"}

func quickSeeds(t testing.TB) [][]byte {
	t.Helper()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	e := New(
		"e1",
		"/harness/h/1",
		quickRef,
		3,
		at,
		ToolStarted{Call: "c", Turn: "t", Name: "bash", Input: json.RawMessage(`{"a":"}]\\\"","b":[[{}]]}`)},
	)
	e.Trace = "00-1"
	one, err := EncodeBatch([]Event{e})
	if err != nil {
		t.Fatal(err)
	}
	two, err := EncodeBatch([]Event{e, e})
	if err != nil {
		t.Fatal(err)
	}
	var wide bytes.Buffer
	if err := json.Indent(&wide, two, " ", "\t"); err != nil {
		t.Fatal(err)
	}
	return [][]byte{one, two, wide.Bytes()}
}

// Ordinary batches are decoded quickly.
func TestOrdinaryBatchesAreReadQuickly(t *testing.T) {
	for _, body := range quickSeeds(t) {
		quick, ok := decodeQuickly(quickRef, body)
		if !ok {
			t.Errorf("not quickly: %s", body)
		}
		slow, err := decodeThoroughly(quickRef, body)
		if err != nil || !reflect.DeepEqual(quick, slow) {
			t.Errorf("quickly   %+v\nthoroughly %+v, %v", quick, slow, err)
		}
	}
}

// Unusual batches are left to decodeThoroughly, even if it accepts them.
func TestTheRestIsReadThoroughly(t *testing.T) {
	body := string(quickSeeds(t)[0])
	for name, change := range map[string][2]string{
		"an escaped attribute":       {`"e1"`, `"e\u0031"`},
		"an attribute beyond ASCII":  {`"e1"`, `"é"`},
		"an attribute it knows not":  {`"id"`, `"x":1,"id"`},
		"a name in other letters":    {`"id"`, `"ID"`},
		"a derived one":              {`"id"`, `"derived":true,"id"`},
		"an unknown kind":            {`tool.started`, `tool.danced`},
		"an event with a fault":      {`"epoch":3`, `"epoch":0`},
		"an epoch with a fraction":   {`"epoch":3`, `"epoch":3.5`},
		"an epoch like Go's octal":   {`"epoch":3`, `"epoch":03`},
		"an epoch that is too long":  {`"epoch":3`, `"epoch":3000000000000000003`},
		"an epoch that is missing":   {`"epoch":3`, `"epoch":`},
		"data that is null":          {`"data":{`, `"data":null,"x":{`},
		"data that is no JSON":       {`"call"`, `call`},
		"data that fits no brackets": {`[[{}]]`, `[[{]}]`},
		"a control character":        {`"e1"`, "\"e\x01\""},
	} {
		changed := strings.Replace(body, change[0], change[1], 1)
		if changed == body {
			t.Fatalf("%s: nothing is changed", name)
		}
		if evs, ok := decodeQuickly(quickRef, []byte(changed)); ok {
			t.Errorf("%s was read quickly: %+v", name, evs)
		}
	}
	for name, changed := range map[string]string{
		"something behind the batch": body + "]",
		"a comma too many":           strings.TrimSuffix(body, "]") + ",]",
		"two commas":                 strings.Replace(body, `,"id"`, `,,"id"`, 1),
		"data nested deeply": strings.Replace(body, `[[{}]]`,
			strings.Repeat("[", 1001)+strings.Repeat("]", 1001), 1),
	} {
		if evs, ok := decodeQuickly(quickRef, []byte(changed)); ok || changed == body {
			t.Errorf("%s was read quickly: %+v", name, evs)
		}
	}
	for n := range body {
		if evs, ok := decodeQuickly(quickRef, []byte(body[:n])); ok {
			t.Errorf("the first %d bytes were read quickly: %+v", n, evs)
		}
	}
	many := "[" + strings.Repeat(body[1:len(body)-1]+",", CommitFactsMax) + body[1:]
	if _, ok := decodeQuickly(quickRef, []byte(many)); ok {
		t.Error("2001 facts were read quickly")
	}
}

// FuzzDecodeQuickly: a batch that decodeQuickly accepts has the same events with decodeThoroughly.
func FuzzDecodeQuickly(f *testing.F) {
	for _, body := range quickSeeds(f) {
		f.Add(body)
	}
	f.Add(
		[]byte(
			`[{"specversion":"1.0","id":"e","source":"x","type":"holdfast.session.released","subject":"s",` +
				`"session":"s","epoch":1,"data":{"reason":1,"reason":"x"}}]`,
		),
	)
	f.Add(
		[]byte(
			`[{"specversion":"1.0","id":"e","id":"f","source":"x","type":"holdfast.session.released",` +
				`"subject":"s","session":"s","epoch":1}]`,
		),
	)
	f.Fuzz(func(t *testing.T, body []byte) {
		quick, ok := decodeQuickly(quickRef, body)
		if !ok {
			return
		}
		slow, err := decodeThoroughly(quickRef, body)
		if err != nil || !reflect.DeepEqual(quick, slow) {
			t.Fatalf("quickly   %+v\nthoroughly %+v, %v", quick, slow, err)
		}
	})
}

// TestRetryAfterIsTakenAsItComes: a failed turn has ended, whatever JSON its retry_after_ms is.
func TestRetryAfterIsTakenAsItComes(t *testing.T) {
	const most = 1 << 53
	for text, want := range map[string]int64{
		`1500`: 1500, `-5`: -5, `1.7`: 1, `1e3`: 1000, `1e400`: most, `-1e400`: -most, `99999999999999999999`: most,
		`null`: 0, `"12"`: 0, `true`: 0, `{}`: 0,
	} {
		body := `[{"specversion":"1.0","id":"e","source":"/harness/h/1","type":"holdfast.turn.failed",` +
			`"subject":"t","time":"2026-01-01T00:00:00Z","session":"s","epoch":1,` +
			`"data":{"turn":"t","had_output":false,"error":{"kind":"rate_limit","text":"x","retry_after_ms":` + text +
			`}}}]`
		evs, err := DecodeBatch(Ref{Harness: "h", Session: "s"}, []byte(body))
		if err != nil || evs[0].Err != nil {
			t.Errorf("%s: %v %v", text, err, evs[0].Err)
			continue
		}
		if f := evs[0].Fact.(TurnFailed); f.Error.RetryAfterMS != want || f.Error.Kind != "rate_limit" {
			t.Errorf("%s is read as %+v, want %d", text, f.Error, want)
		}
	}
}

// TestErrorsOfAllSorts: a failed turn has ended, whatever JSON its error is. A string alone is an error, too.
func TestErrorsOfAllSorts(t *testing.T) {
	for text, want := range map[string]Failure{
		`"boom"`:                     {Text: "boom"},
		`null`:                       {},
		`5`:                          {Text: "5"},
		`["a"]`:                      {Text: `["a"]`},
		`{}`:                         {},
		`{"kind":5,"text":{"a":1}}`:  {Kind: "5", Text: `{"a":1}`},
		`{"kind":"x","status":"on"}`: {Kind: "x"},
		`{"kind":"x","text":"y","status":503.0,"retry_after_ms":2.5e3}`: {
			Kind: "x", Text: "y", Status: 503, RetryAfterMS: 2500},
	} {
		for _, kind := range []string{`tool.failed","subject":"c`, `turn.failed","subject":"t`,
			`compaction.failed","subject":"k`} {
			body := `[{"specversion":"1.0","id":"e","source":"x","type":"holdfast.` + kind +
				`","session":"s","epoch":1,"data":{"call":"c","turn":"t","compaction":"k","error":` + text + `}}]`
			evs, err := DecodeBatch(Ref{Harness: "h", Session: "s"}, []byte(body))
			if err != nil || evs[0].Err != nil {
				t.Errorf("%s: %v %v", body, err, evs[0].Err)
				continue
			}
			var got Failure
			switch f := evs[0].Fact.(type) {
			case ToolFailed:
				got = f.Error
			case TurnFailed:
				got = f.Error
			case CompactionFailed:
				got = f.Error
			}
			if got != want {
				t.Errorf("%s: read as %+v, want %+v", body, got, want)
			}
		}
	}
}

// TestWholeNumbers: languages with one number type write 2.0 for 2. A number that is not whole is malformed.
func TestWholeNumbers(t *testing.T) {
	decode := func(epoch, attempt, options string) Event {
		body := `[{"specversion":"1.0","id":"e","source":"x","type":"holdfast.turn.started","subject":"t",` +
			`"session":"s","epoch":` + epoch + `,"data":{"turn":"t","attempt":` + attempt + `,"options":` + options +
			`}}]`
		evs, err := DecodeBatch(Ref{Harness: "h", Session: "s"}, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return evs[0]
	}
	const options = `{"t":0.5,"n":1.50e1,"s":"1.0 \" 2.0","big":1e30}`
	for _, two := range []string{"2", "2.0", "2e0", "0.2E+1", "20e-1"} {
		e := decode(two, two, options)
		f, ok := e.Fact.(TurnStarted)
		if !ok || e.Epoch != 2 || f.Attempt != 2 {
			t.Errorf("%s: %+v", two, e)
			continue
		}
		var got, want map[string]any
		if err := errors.Join(json.Unmarshal(f.Options, &got), json.Unmarshal([]byte(options), &want)); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%s: options are %s: %v", two, f.Options, err)
		}
	}
	for _, odd := range []string{"2.5", "1e300", `"2"`} {
		if e := decode("1", odd, options); !errors.Is(e.Err, ErrMalformed) {
			t.Errorf("attempt %s: %+v", odd, e)
		}
		if e := decode(odd, "1", options); !errors.Is(e.Err, ErrMalformed) {
			t.Errorf("epoch %s: %+v", odd, e)
		}
	}
}
