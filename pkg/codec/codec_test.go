package codec_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/codec"
)

// sample has a field of each sort.
type sample struct {
	Text   string             `json:"text"`
	Word   string             `json:"word"`
	Some   string             `json:"some,omitempty"`
	N      int64              `json:"n"`
	U      uint64             `json:"u,omitempty"`
	Yes    bool               `json:"yes"`
	Sure   bool               `json:"sure,omitempty"`
	F      float64            `json:"f"`
	At     time.Time          `json:"at"`
	Until  time.Time          `json:"until,omitzero"`
	Due    *time.Time         `json:"due"`
	Part   *part              `json:"part,omitempty"`
	Parts  []part             `json:"parts,omitempty"`
	Table  map[string]*part   `json:"table,omitempty"`
	Opaque json.RawMessage    `json:"opaque,omitempty"`
	Whole  part               `json:"whole,omitzero"`
	Rare   map[string]float64 `json:"rare,omitempty"`
}

type part struct {
	ID string `json:"id"`
}

func fields(c *codec.Codec, s *sample) {
	codec.Text(c, `{"text":`, &s.Text)
	codec.Word(c, `,"word":`, &s.Word, []string{"idle", "id", "waiting"})
	codec.Some(c, `,"some":`, &s.Some)
	codec.Number(c, `,"n":`, &s.N)
	codec.SomeNumber(c, `,"u":`, &s.U)
	codec.Flag(c, `,"yes":`, &s.Yes)
	codec.SomeFlag(c, `,"sure":`, &s.Sure)
	codec.Float(c, `,"f":`, &s.F)
	codec.Time(c, `,"at":`, &s.At)
	codec.SomeTime(c, `,"until":`, &s.Until)
	codec.Nullable(c, `,"due":`, &s.Due, codec.Instant)
	codec.Object(c, `,"part":`, &s.Part, partFields)
	codec.List(c, `,"parts":`, `{"id":`, &s.Parts, partFields)
	codec.Table(c, `,"table":`, &s.Table, partFields)
	codec.Opaque(c, `,"opaque":`, &s.Opaque)
	codec.Struct(c, `,"whole":{`, s.Whole != part{}, &s.Whole, wholeFields)
	codec.Rest(c, `,"rare":`, len(s.Rare) > 0, &s.Rare)
	c.Mark(`}`)
}

func partFields(c *codec.Codec, p *part) {
	codec.Text(c, `{"id":`, &p.ID)
	c.Mark(`}`)
}

func wholeFields(c *codec.Codec, p *part) {
	codec.Text(c, `"id":`, &p.ID)
	c.Mark(`}`)
}

func full() sample {
	at := time.Date(2026, 11, 20, 8, 7, 6, 120_000_000, time.UTC)
	return sample{
		Text:  "t",
		Word:  "waiting",
		Some:  "s",
		N:     -12,
		U:     7,
		Yes:   true,
		Sure:  true,
		F:     0.25,
		At:    at,
		Until: at.Add(time.Nanosecond),
		Due:   &at,
		Part:  &part{"a"},
		Parts: []part{
			{"b"},
			{"c"},
		},
		Table:  map[string]*part{"y": {"d"}, "x": {"e"}},
		Opaque: json.RawMessage(`{"k":[1,"]"]}`),
		Whole:  part{"f"},
		Rare:   map[string]float64{"r": 1},
	}
}

func written(t testing.TB, s *sample) []byte {
	t.Helper()
	c := codec.Writer([]byte("before "))
	fields(c, s)
	b, err := c.Written()
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(b, []byte("before "))
	if !ok {
		t.Fatalf("the writer changed the bytes before it: %.20s", b)
	}
	return rest
}

func asJSON(t testing.TB, s *sample) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// read reports whether a reader accepts doc. A document that it accepts must decode as with encoding/json.
func read(t testing.TB, doc []byte) bool {
	t.Helper()
	var quick, thorough sample
	c := codec.Reader(doc)
	fields(c, &quick)
	if !c.Ended() {
		return false
	}
	if err := json.Unmarshal(doc, &thorough); err != nil || !reflect.DeepEqual(quick, thorough) {
		t.Errorf("%s\nis read as\n%+v\nand by encoding/json, %v, as\n%+v", doc, quick, err, thorough)
	}
	return true
}

// TestWrittenAsJSON: every kind of value is written as encoding/json writes it, edge cases included.
func TestWrittenAsJSON(t *testing.T) {
	cases := map[string]func(*sample){
		"all":                   func(*sample) {},
		"nothing":               func(s *sample) { *s = sample{} },
		"escapes":               func(s *sample) { s.Text, s.Some = "\"\\\n\x00<&>\u2028\x7f", "ä\xff" },
		"another word":          func(s *sample) { s.Word = "idler" },
		"an escaped word":       func(s *sample) { s.Word = "id\"le" },
		"a word at the end":     func(s *sample) { s.Word = "id" },
		"keys":                  func(s *sample) { s.Table = map[string]*part{"": {}, "\n": {}, "ä": {}, "b": {}} },
		"numbers":               func(s *sample) { s.N, s.U = math.MinInt64, math.MaxUint64 },
		"a small float":         func(s *sample) { s.F = 1e-7 },
		"a large float":         func(s *sample) { s.F = -1e21 },
		"negative zero":         func(s *sample) { s.F = math.Copysign(0, -1) },
		"another zone":          func(s *sample) { s.At = s.At.In(time.FixedZone("", -3600)) },
		"the end of a month":    func(s *sample) { s.At = time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.UTC) },
		"an early year":         func(s *sample) { s.At = time.Date(7, 1, 2, 3, 4, 5, 0, time.UTC) },
		"opaque, white space":   func(s *sample) { s.Opaque = json.RawMessage("{ \"a\" :\t[ ] }") },
		"opaque, null":          func(s *sample) { s.Opaque = json.RawMessage(`null`) },
		"opaque, only for HTML": func(s *sample) { s.Opaque = json.RawMessage("{\"<&>\u2028\":\"<\"}") },
		"opaque, not an object": func(s *sample) { s.Opaque = json.RawMessage(`"},"`) },
		"many words": func(s *sample) {
			s.Parts = make([]part, 300)
			s.Parts[9].ID = strings.Repeat("x", 99)
		},
	}
	for name, change := range cases {
		s := full()
		change(&s)
		doc, want := written(t, &s), asJSON(t, &s)
		if !bytes.Equal(doc, want) {
			t.Errorf("%s: written as\n%s\nwant\n%s", name, doc, want)
		}
		// encoding/json reads numbers of more than 18 digits
		if !read(t, doc) && name != "numbers" {
			t.Errorf("%s: not read back: %s", name, doc)
		}
	}
}

// TestEveryByteEverywhere: a byte that JSON escapes is escaped at every offset of a string, and no other byte is.
func TestEveryByteEverywhere(t *testing.T) {
	for b := range 256 {
		for at := range 20 {
			s := full()
			text := []byte("the quick brown fox ~!")
			text[at] = byte(b)
			s.Text = string(text)
			doc, want := written(t, &s), asJSON(t, &s)
			if !bytes.Equal(doc, want) {
				t.Fatalf("%q is written as %s, want %s", text, doc, want)
			}
			if !read(t, doc) {
				t.Errorf("not read back: %s", doc)
			}
		}
	}
}

// TestNoJSON: a value that cannot be encoded is an error, and no partial document is returned.
func TestNoJSON(t *testing.T) {
	for name, change := range map[string]func(*sample){
		"no number":   func(s *sample) { s.F = math.NaN() },
		"no year":     func(s *sample) { s.At = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) },
		"no document": func(s *sample) { s.Opaque = json.RawMessage(`{`) },
	} {
		s := full()
		change(&s)
		c := codec.Writer(nil)
		fields(c, &s)
		if b, err := c.Written(); err == nil {
			t.Errorf("%s: %s", name, b)
		}
	}
}

// TestReaderStepsAside: a reader rejects every form that a writer does not write, and never decodes differently from
// encoding/json.
func TestReaderStepsAside(t *testing.T) {
	s := full()
	doc := string(written(t, &s))
	for _, c := range []struct{ old, new string }{
		{`{"text"`, ` {"text"`}, {`}}`, `}} `}, {`"n":-12`, `"n": -12`}, {`"n":-12`, `"n":-0`},
		{`"n":-12`, `"n":012`}, {`"n":-12`, `"n":1e3`}, {`"n":-12`, `"n":"12"`},
		{`"n":-12`, `"n":-12,"n":13`}, {`"n":-12`, `"N":-12`}, {`"u":7`, `"u":-7`},
		{`"u":7`, `"u":18446744073709551616`}, {`"u":7`, `"new":1,"u":7`},
		{`"text":"t"`, `"text":null`}, {`"text":"t"`, "\"text\":\"\n\""}, {`"text":"t"`, `"text":"\x"`},
		{`"text":"t"`, `"text":"t`},
		{`"word":"waiting"`, `"word":waiting`}, {`"word":"waiting"`, `"word":"waiting`},
		{`"word":"waiting"`, `"word":7`},
		{`"yes":true`, `"yes":null`}, {`"yes":true`, `"yes":tru`}, {`"f":0.25`, `"f":.25`}, {`"f":0.25`, `"f":`},
		{`"f":0.25`, `"f":00.25`}, {`"f":0.25`, `"f":0.`}, {`"f":0.25`, `"f":0_2`}, {`"f":0.25`, `"f":0x1p-2`},
		{`"f":0.25`, `"f":inf`}, {`"f":0.25`, `"f":+1`},
		{`T08:07:06.12Z`, `T24:07:06.12Z`}, {`T08:07:06.12Z`, `T08:07:60Z`}, {`-20T`, `-31T`}, {`-11-`, `-13-`},
		{`06.12Z"`, `06.Z"`}, {`06.12Z"`, `06.12"`},
		{`"part":{"id":"a"}`, `"part":null`}, {`"part":{"id":"a"}`, `"part":{}`}, {`[{"id":"b"},{"id":"c"}]`, `[]`},
		{`[{"id":"b"},{"id":"c"}]`, `[{"id":"b"},]`}, {`[{"id":"b"},{"id":"c"}]`, `[null]`},
		{`{"x":{"id":"e"},"y":{"id":"d"}}`, `{}`}, {`{"x":{"id":"e"},"y":{"id":"d"}}`, `{"x":null}`},
		{`{"x":{"id":"e"},"y":{"id":"d"}}`, `{"x":{"id":"e"},}`},
		{`{"k":[1,"]"]}`, `{"k":[1,"]"}]`}, {`{"k":[1,"]"]}`, `{"k":[1,"]"]`}, {`{"k":[1,"]"]}`, ``},
		{`{"k":[1,"]"]}`, `{"k":01}`}, {`"whole":{"id":"f"}`, `"whole":{}`},
		{`"whole":{"id":"f"}`, `"whole":null`}, {`{"k":[1,"]"]}`,
			strings.Repeat(`[`, 2000) + strings.Repeat(`]`, 2000)},
		{`{"r":1}`, `{"r":"1"}`}, {`{"r":1}}`, `{"r":1}`}, {doc, ``}, {doc, `null`},
	} {
		changed := strings.Replace(doc, c.old, c.new, 1)
		if changed == doc {
			t.Errorf("%s is not in %s", c.old, doc)
		}
		if read(t, []byte(changed)) {
			t.Errorf("%s in place of %s is accepted", c.new, c.old)
		}
	}
	// unusual forms that a reader accepts
	for _, c := range []struct{ old, new string }{
		{`06.12Z"`, `06.120000000Z"`}, {`06.12Z"`, `06.1234567891Z"`}, {`06.12Z"`, `06+02:00"`},
		{`"text":"t"`, `"text":"\u0074\ud83d\ude00"`}, {`"x":{`, `"y":{`},
		{`"some":"s"`, `"some":""`}, {`{"k":[1,"]"]}`, ` [ 1 ]`}, {`0.25`, `25e-2`},
	} {
		changed := strings.Replace(doc, c.old, c.new, 1)
		if !read(t, []byte(changed)) {
			t.Errorf("%s in place of %s is not accepted", c.new, c.old)
		}
	}
}

// FuzzRead: a reader decodes what it accepts as encoding/json does.
func FuzzRead(f *testing.F) {
	s := full()
	f.Add(written(f, &s))
	f.Add(written(f, &sample{}))
	f.Fuzz(func(t *testing.T, doc []byte) { read(t, doc) })
}
