package session_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/story"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// fuzzLog reads bytes as a log: one commit a line, its first byte says who wrote it, the second how far it moved on.
func fuzzLog(data []byte) []*events.Commit {
	writers := append(events.Writers(), "stranger")
	var log []*events.Commit
	seq := uint64(0)
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) < 2 {
			continue
		}
		c := &events.Commit{Ref: storyRef, Writer: writers[int(line[0])%len(writers)], Guard: seq,
			Guarded: line[1]&1 == 0, At: storyBegin.Add(time.Duration(seq) * time.Second)}
		seq += 1 + uint64(line[1]>>1&3)
		c.Seq = seq
		c.Events, c.Err = events.DecodeBatch(storyRef, line[2:])
		log = append(log, c)
	}
	return log
}

// FuzzFold: whatever is appended, folding neither fails nor panics, a document can be stored, and folding on from it is
// folding on.
func FuzzFold(f *testing.F) {
	for _, seed := range storySeeds(f) {
		f.Add(seed)
	}
	// fall out of the calendar in UTC
	for _, instant := range []string{"9999-12-31T23:59:59.999999999-23:59", "0000-01-01T00:00:00+23:59"} {
		f.Add([]byte(`00[{"specversion":"1.0","id":"a","source":"/harness/h/17","type":"holdfast.session.opened",` +
			`"subject":"s","session":"s","epoch":1,"data":{"incarnation":"17"}},` +
			`{"specversion":"1.0","id":"b","source":"/harness/h/17","type":"holdfast.prompt.requested",` +
			`"subject":"p1","session":"s","epoch":1,"data":{"prompt":"p1","deadline":"` + instant + `"}},` +
			`{"specversion":"1.0","id":"c","source":"/harness/h/17","type":"holdfast.prompt.requested",` +
			`"subject":"p2","session":"s","epoch":1,"data":{"prompt":"p2","delivery":"message",` +
			`"questions":[{"id":"<","question":"\u2028"}]}}]` + "\n" +
			`11[{"specversion":"1.0","id":"d","source":"/service/ledger/a","type":"holdfast.message.accepted",` +
			`"subject":"m1","session":"s","epoch":1,"data":{"message":"m1","content":{"a":"<&>"}}}]`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		log := fuzzLog(data)
		src := sourceOf(log)
		at, on := session.New(storyRef), session.New(storyRef)
		for _, c := range log {
			if !at.Fold(c).Folded || !on.Fold(c).Folded {
				t.Fatalf("commit %d was not folded", c.Seq)
			}
			doc := encoded(t, at)
			if len(doc) > session.DocumentBytesMax {
				t.Fatalf("the document takes %d bytes", len(doc))
			}
			var err error
			if on, err = session.Decode(encoded(t, on)); err != nil {
				t.Fatal(err)
			}
			if again := encoded(t, on); !bytes.Equal(doc, again) {
				t.Fatalf("folded on\n%s\nfolded at once\n%s", again, doc)
			}
		}
		for _, id := range at.BlockerPrompts(time.Time{}) {
			if b, err := at.Blocker(id, src); err != nil || b == nil {
				t.Fatalf("prompt %s: %v %v", id, b, err)
			} else if _, err := session.EncodeView(b); err != nil {
				t.Fatalf("prompt %s: %v", id, err)
			}
			if _, err := at.Answer(request.Answer{Prompt: id}, src); err != nil && !isRefusal(err) {
				t.Fatal(err)
			}
		}
		w, err := at.Work(src)
		if err != nil || (w != nil) != at.HasWork() {
			t.Fatalf("work: %v %v", w, err)
		}
	})
}

// FuzzDecode: what is read quickly is read as encoding/json reads it, whatever it is.
func FuzzDecode(f *testing.F) {
	for _, seed := range storySeeds(f) {
		s := session.New(storyRef)
		for _, c := range fuzzLog(seed) {
			s.Fold(c)
		}
		f.Add(encoded(f, s))
	}
	for n := range 5 {
		var s session.State
		filled(reflect.ValueOf(&s).Elem(), func(of int) int { return n % of })
		s.V = session.Version
		f.Add(encoded(f, &s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		quick, ok := session.DecodeQuickly(doc)
		if !ok {
			return
		}
		var thorough session.State
		if err := json.Unmarshal(doc, &thorough); err != nil || !reflect.DeepEqual(quick, &thorough) {
			t.Fatalf("read quickly as\n%+v\nthoroughly: %v\n%+v", quick, err, thorough)
		}
	})
}

// storySeeds are the logs of all stories, in the form of fuzzLog.
func storySeeds(f *testing.F) [][]byte {
	f.Helper()
	var seeds [][]byte
	for _, file := range story.Files(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		y := story.New(f)
		y.Use(requests(y))
		y.Run(string(text))
		commits, bodies := y.Bodies()
		var lines []string
		for i, body := range bodies {
			by := 5
			for j, writer := range events.Writers() {
				if writer == commits[i].Writer {
					by = j
				}
			}
			lines = append(lines, string(rune('0'+by))+"0"+body)
		}
		seeds = append(seeds, []byte(strings.Join(lines, "\n")))
	}
	return seeds
}
