package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// TestEndingsAreWrittenAsJSON: what Encode writes by hand is what encoding/json would have written, field by field.
func TestEndingsAreWrittenAsJSON(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "x", "prompt", `a "quoted" \ text`, "ä…", "\x00\x1f\x7f", "<&>", "\u2028", "line\nfeed"})
	at := rapid.SampledFrom([]time.Time{{}, storyBegin, storyBegin.Add(123456789), time.Date(2026, 1, 1, 0, 0, 0, 5000, time.FixedZone("", 5400))})
	number := rapid.SampledFrom([]uint64{0, 1, 1 << 63})
	rapid.Check(t, func(t *rapid.T) {
		e := session.Ending{Entity: text.Draw(t, "entity"), ID: text.Draw(t, "id"), Name: text.Draw(t, "name"), Outcome: text.Draw(t, "outcome"),
			Reason: text.Draw(t, "reason"), At: at.Draw(t, "at"), Seq: number.Draw(t, "seq"), OpenedSeq: number.Draw(t, "opened"), Since: at.Draw(t, "since"),
			DeliveredAt: at.Draw(t, "delivered"), Epoch: number.Draw(t, "epoch"), Call: text.Draw(t, "call"), Tool: text.Draw(t, "tool")}
		if chance(t, "late", 50) {
			e.Late = &session.Late{Seq: number.Draw(t, "late seq"), At: at.Draw(t, "late at")}
		}
		want, err := session.EncodeView(e)
		if err != nil {
			t.Fatal(err)
		}
		s := session.New(storyRef)
		s.Recent = []session.Ending{e, e}
		doc := encoded(t, s)
		if list := fmt.Sprintf(`,"recent":[%s,%s]}`, want, want); !strings.HasSuffix(string(doc), list) {
			t.Fatalf("the document ends with\n%s, want\n%s", doc, list)
		}
		back, err := session.Decode(doc)
		if err != nil || !bytes.Equal(encoded(t, back), doc) {
			t.Fatalf("read back: %v", err)
		}
	})
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

// TestOlder: incarnations are numbers; what is no number is older than all of them.
func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"abc", "1", true}, {"1", "abc", false}, {"abc", "abd", true}, {"abd", "abc", false},
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
	if len(res.Parked) != 2 || f.s.Parked != 2 || len(res.Feed) != 1 || f.s.Tools["c1"] != nil || f.s.Tools["c2"] == nil {
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
	say := func(source string, epoch uint64, facts ...events.Fact) {
		c := &events.Commit{Ref: ref, Writer: events.WriterHarness, Seq: s.Seq + 1, At: storyBegin}
		for _, f := range facts {
			c.Events = append(c.Events, events.New("e", source, ref, epoch, storyBegin, f))
		}
		s.Fold(c)
	}
	say("/harness/lap.top/a.1", 1, events.SessionOpened{Incarnation: "a.1"})
	say("/harness/lap=2Etop/a=2E1", 1, events.ToolStarted{Call: "c1"})
	say("/harness/lap.top/a.1", 1, events.ToolStarted{Call: "c2"})
	say("/harness/lap.top/a.2", 1, events.ToolStarted{Call: "c3"})
	say("/harness/lap=2Etop/a=2E2", 1, events.ToolStarted{Call: "c4"})
	say("/harness/desktop/a.1", 1, events.ToolStarted{Call: "c5"})
	say("/harness/lap.top/a.2", 2, events.SessionClaimed{Incarnation: "a.2"}, events.ToolStarted{Call: "c6"})
	if got := keys(s.Tools); !slices.Equal(got, []string{"c1", "c2", "c6"}) || s.Ignored.Count != 3 {
		t.Errorf("open are %v, ignored %d", got, s.Ignored.Count)
	}
}

// TestEncodeFails: what cannot be written is said, and an empty list is left out.
func TestEncodeFails(t *testing.T) {
	s := session.New(storyRef)
	if doc := string(mustEncode(t, s)); strings.Contains(doc, "recent") || !strings.HasSuffix(doc, "}") {
		t.Errorf("a new session is written as %s", doc)
	}
	s.Turn = &session.Turn{ID: "t1", Options: []byte(`{"half":`)}
	if doc, err := s.Encode(); err == nil {
		t.Errorf("it was written as %s", doc)
	}
}
