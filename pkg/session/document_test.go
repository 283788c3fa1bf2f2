package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// odd are values of each sort that JSON has its ways with.
var (
	oddTexts = []string{"", "x", "prompt", `a "quoted" \ text`, "ä…", "\x00\x1f\x7f", "<&>", "\u2028", "line\nfeed",
		"\xff", strings.Repeat("long", 20)}
	oddTimes = []time.Time{{}, storyBegin, storyBegin.Add(123456789), storyBegin.Add(120 * time.Millisecond),
		time.Date(2024, 2, 29, 23, 59, 59, 0, time.UTC),
		time.Date(2026, 1, 1, 0, 0, 0, 5000, time.FixedZone("", 5400)), time.Date(33, 12, 31, 0, 0, 0, 1, time.UTC)}
	oddNumbers = []int64{0, 1, -1, 9, 1e18 - 1, 1e18, math.MaxInt64, math.MinInt64}
	oddFloats  = []float64{0, 1, 0.7, 100.0 / 3, -2.5, 1e-7, 1e21, math.Copysign(0, -1), math.MaxFloat64}
	oddRaws    = []string{`null`, `1`, `"a ] b"`, `{"a":[1,{"b":"}\""}],"c":null}`, `[]`, "{\"a\" : \t1}"}
)

// filled makes a value whose every field is what draw picks among so many.
func filled(v reflect.Value, draw func(n int) int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(oddTimes[draw(len(oddTimes))]))
		return
	case json.RawMessage:
		v.SetBytes([]byte(oddRaws[draw(len(oddRaws))]))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i), draw)
		}
	case reflect.Pointer:
		if v.SetZero(); draw(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			filled(v.Elem(), draw)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), draw(4), 4))
		for i := range v.Len() {
			filled(v.Index(i), draw)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range draw(4) {
			x := reflect.New(v.Type().Elem().Elem())
			filled(x.Elem(), draw)
			v.SetMapIndex(reflect.ValueOf(oddTexts[draw(len(oddTexts))]), x)
		}
	case reflect.String:
		v.SetString(oddTexts[draw(len(oddTexts))])
	case reflect.Bool:
		v.SetBool(draw(2) > 0)
	case reflect.Float64:
		v.SetFloat(oddFloats[draw(len(oddFloats))])
	case reflect.Uint64:
		v.SetUint(uint64(oddNumbers[draw(len(oddNumbers))]))
	default:
		v.SetInt(oddNumbers[draw(len(oddNumbers))])
	}
}

// TestDocumentsAreWrittenAsJSON: what Encode writes by its own list of fields is what encoding/json writes, and Decode
// reads what it reads. A field that is forgotten in the list is found here.
func TestDocumentsAreWrittenAsJSON(t *testing.T) {
	check := func(t rapid.TB, draw func(n int) int) {
		t.Helper()
		var s session.State
		filled(reflect.ValueOf(&s).Elem(), draw)
		s.V = session.Version
		doc := encoded(t, &s)
		h := s.Head()
		head, err := session.EncodeView(&h)
		if err != nil {
			t.Fatal(err)
		}
		want, err := session.EncodeView(&s)
		if err != nil {
			t.Fatal(err)
		}
		want = bytes.Replace(want, []byte(`{"v":1,`), fmt.Appendf(nil, `{"v":1,"head":%s,`, head), 1)
		if !bytes.Equal(doc, want) {
			t.Fatalf("the document is\n%s, want\n%s\n(each field of State and of what is in it has a line in "+
				"document.go, in its order)", doc, want)
		}
		var thorough session.State
		if err := json.Unmarshal(doc, &thorough); err != nil {
			t.Fatal(err)
		}
		if back, err := session.Decode(doc); err != nil || !reflect.DeepEqual(back, &thorough) {
			t.Fatalf("read back as\n%+v, %v, want\n%+v", back, err, thorough)
		}
	}
	// every field has something in it
	check(t, func(n int) int { return min(1, n-1) })
	// none has
	check(t, func(int) int { return 0 })
	rapid.Check(t, func(t *rapid.T) {
		check(t, func(n int) int { return below(t, "value", n) })
	})
}

// TestOwnDocumentsAreReadQuickly: the thorough way, which takes five times as long, is for documents of others.
func TestOwnDocumentsAreReadQuickly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := session.New(storyRef)
		for _, c := range history(t, longLived) {
			s.Fold(c)
		}
		doc := encoded(t, s)
		quick, ok := session.DecodeQuickly(doc)
		var thorough session.State
		if err := json.Unmarshal(doc, &thorough); err != nil || !ok || !reflect.DeepEqual(quick, &thorough) {
			t.Fatalf("read quickly: %v, %+v; thoroughly: %v, %+v", ok, quick, err, thorough)
		}
	})
}

// TestReader: one reader decodes documents of each sort, one after the other, as Decode does.
func TestReader(t *testing.T) {
	full := newFeeder(t).s
	full.Title, full.WaitsFor = "full", []events.WaitFor{{Call: "a", Child: "b"}}
	doc := string(encoded(t, full))
	var r session.Reader
	for range 2 {
		for _, doc := range []string{doc, string(encoded(t, session.New(storyRef))), ``, doc[:len(doc)-1],
			strings.Replace(doc, `"v":1`, `"v": 1`, 1), strings.Replace(doc, `{"v":1`, `{"v":2`, 1),
			strings.Replace(doc, `"commits":`, `"new":1,"commits":`, 1)} {
			want, wantErr := session.Decode([]byte(doc))
			got, err := r.Decode([]byte(doc))
			if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
				t.Errorf("%.60s: %+v, %v, want %+v, %v", doc, got, err, want, wantErr)
			}
			if h, err := r.Head([]byte(doc)); want != nil && (err != nil || h != want.Head()) {
				t.Errorf("%.60s: head %+v, %v", doc, h, err)
			}
		}
	}
}

// TestDecodeRefuses: what is no document of ours is not folded on from.
func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		want error
	}{
		"no JSON":              {`hello`, events.ErrMalformed},
		"no object":            {`[]`, events.ErrMalformed},
		"null":                 {`null`, events.ErrMalformed},
		"no version":           {`{}`, events.ErrMalformed},
		"another shape":        {`{"v":1,"tools":[]}`, events.ErrMalformed},
		"newer":                {`{"v":2}`, session.ErrNewerLayout},
		"newer, another shape": {`{"v":2,"tools":[]}`, session.ErrNewerLayout},
	} {
		if s, err := session.Decode([]byte(c.doc)); !errors.Is(err, c.want) || s != nil {
			t.Errorf("%s: %v %v, want %v", name, s, err, c.want)
		}
	}
	doc, err := session.New(storyRef).Encode()
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(doc, []byte(`{"v":1,`), []byte(`{"v":2,`), 1)
	if s, err := session.Decode(newer); !errors.Is(err, session.ErrNewerLayout) {
		t.Errorf("newer, of the very same shape: %+v %v", s, err)
	}
	s, err := session.Decode([]byte(`{"v":1,"epoch":1,"session":"s1","tools":{"c1":null},"prompts":{"p1":null}}`))
	if err != nil || len(s.Tools)+len(s.Prompts) > 0 {
		t.Errorf("entries that are nothing are kept: %v %v", s, err)
	}
}

// TestClone: folding one copy changes nothing in the other.
func TestClone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := history(t, oneOf(t, "model", "", longLived))
		cut := below(t, "cut", len(log))
		s := session.New(storyRef)
		for _, c := range log[:cut] {
			s.Fold(c)
		}
		before := encoded(t, s)
		c := s.Clone()
		for _, commit := range log[cut:] {
			c.Fold(commit)
		}
		if after := encoded(t, s); !bytes.Equal(after, before) {
			t.Fatalf("the copy was folded, and the original changed:\n%s\n%s", before, after)
		}
		for _, commit := range log[cut:] {
			s.Fold(commit)
		}
		if !bytes.Equal(encoded(t, s), encoded(t, c)) {
			t.Fatal("the copy was folded otherwise than the original")
		}
	})
}

// TestExpect: what is expected of a commit is what comes of it.
func TestExpect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folded, expected := session.New(storyRef), session.New(storyRef)
		for _, c := range history(t, "") {
			folded.Fold(c)
			if expected.Expect(c); !bytes.Equal(encoded(t, folded), encoded(t, expected)) {
				t.Fatalf("%d: expected\n%s\nfolded\n%s", c.Seq, encoded(t, expected), encoded(t, folded))
			}
		}
	})
}

// TestOlder: incarnations are numbers; what is no number is older than all of them.
func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"abc", "1", true}, {"1", "abc", false},
		{"abc", "abd", true}, {"abd", "abc", false},
		{"", "1", true}, {"18446744073709551615", "18446744073709551616", false}, {"-1", "0", true},
	} {
		if got := session.Older(c.a, c.b); got != c.want {
			t.Errorf("Older(%q, %q) is %v", c.a, c.b, got)
		}
	}
}

// TestFoldIsTotal: events that no decoder makes are parked, and do no harm.
func TestFoldIsTotal(t *testing.T) {
	f := newFeeder(t)
	source := events.HarnessSource(storyRef.Harness, "17")
	c := &events.Commit{Ref: storyRef, Writer: events.WriterHarness, Seq: 9, Events: []events.Event{
		{Kind: "turn.completed", Source: source, Epoch: 1},
		{Kind: "turn.completed", Source: source, Epoch: 1, Fact: events.ToolStarted{Call: "c1"}},
		{Kind: "tool.started", Source: source, Epoch: 1, Fact: events.ToolStarted{Call: "c2"}},
	}}
	res := f.s.Fold(c)
	if len(res.Parked) != 2 || f.s.Parked != 2 || len(res.Feed) != 1 || f.s.Tools["c1"] != nil ||
		f.s.Tools["c2"] == nil {
		t.Errorf("parked %v, counted %d, open %v", res.Parked, len(res.Feed), keys(f.s.Tools))
	}
	if res := new(session.State).Fold(c); !res.Folded {
		t.Error("a session without a name was not folded")
	}
}

// TestSourceAsItIs: a harness may write its ids in its source encoded or as they are; another's count in neither form.
func TestSourceAsItIs(t *testing.T) {
	ref := events.Ref{Harness: "lap.top", Session: "s1"}
	s := session.New(ref)
	add := func(source string, epoch uint64, facts ...events.Fact) {
		c := &events.Commit{Ref: ref, Writer: events.WriterHarness, Seq: s.Seq + 1, At: storyBegin}
		for _, f := range facts {
			c.Events = append(c.Events, events.New("e", source, ref, epoch, storyBegin, f))
		}
		s.Fold(c)
	}
	add("/harness/lap.top/a.1", 1, events.SessionOpened{Incarnation: "a.1"})
	add("/harness/lap=2Etop/a=2E1", 1, events.ToolStarted{Call: "c1"})
	add("/harness/lap.top/a.1", 1, events.ToolStarted{Call: "c2"})
	add("/harness/lap.top/a.2", 1, events.ToolStarted{Call: "c3"})
	add("/harness/lap=2Etop/a=2E2", 1, events.ToolStarted{Call: "c4"})
	add("/harness/desktop/a.1", 1, events.ToolStarted{Call: "c5"})
	add("/harness/lap.top/a.2", 2, events.SessionClaimed{Incarnation: "a.2"}, events.ToolStarted{Call: "c6"})
	if got := keys(s.Tools); !slices.Equal(got, []string{"c1", "c2", "c6"}) || s.Ignored.Count != 3 {
		t.Errorf("open are %v, ignored %d", got, s.Ignored.Count)
	}
}

// TestEncodeFails: what cannot be written is said, and an empty list is left out.
func TestEncodeFails(t *testing.T) {
	s := session.New(storyRef)
	if doc := string(encoded(t, s)); strings.Contains(doc, "recent") || !strings.HasSuffix(doc, "}") {
		t.Errorf("a new session is written as %s", doc)
	}
	s.Turn = &session.Turn{ID: "t1", Options: []byte(`{"half":`)}
	if doc, err := s.Encode(); err == nil {
		t.Errorf("it was written as %s", doc)
	}
}
