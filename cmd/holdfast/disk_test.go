package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
	"github.com/holdfast-dev/holdfast/services/ledger"
)

const (
	diskSessions = 8
	diskCommits  = 3 * diskSessions
)

// diskRef returns one of the sessions in the damaged directory.
func diskRef(i int) events.Ref { return events.Ref{Harness: "h1", Session: fmt.Sprintf("s%02d", i)} }

// healthyDir returns the data directory of a `holdfast up` that ended cleanly, with folded sessions of three commits
// each; and the last commit of each.
func healthyDir(t *testing.T) (string, map[events.Ref]uint64) {
	t.Helper()
	dir := t.TempDir()
	c := startUp(t, dir)
	for i := range diskSessions {
		c.asks(diskRef(i))
		c.append(diskRef(i), events.SessionReleased{})
	}
	for i := range diskSessions {
		c.folded(diskRef(i))
	}
	last, err := c.bus.Log.LastSeq(t.Context())
	if err != nil || last != diskCommits {
		t.Fatalf("%d commits, %v", last, err)
	}
	natstest.Until(t, "all to be acknowledged", func() bool {
		n, err := c.bus.Consumers.Acked(t.Context(), ledger.Source(ledger.Default()))
		return err == nil && n == last
	})
	if code, output := c.stop(); code != exitDone {
		t.Fatalf("up ended with %d: %s", code, output)
	}
	return dir, c.seq
}

// harm is a way to damage a file.
type harm struct {
	name    string
	crashed bool // the broker has no index of the stream's messages, as after a crash
	do      func([]byte) []byte
}

var harms = []harm{
	{"torn", false, torn},
	{"emptied", false, func([]byte) []byte { return nil }},
	{"one byte", false, flipped},
	{"one byte, after a crash", true, flipped},
}

// torn cuts a file in its middle, but not between two records of a block of messages: a block may end there. A record
// begins with its length, whose highest bit says that it has headers.
func torn(b []byte) []byte {
	half := len(b) / 2
	for at := 0; at+4 <= half; {
		size := int(binary.LittleEndian.Uint32(b[at:]) &^ (1 << 31))
		if size == 0 {
			break
		}
		if at += size; at == half {
			return b[:half-1]
		}
	}
	return b[:half]
}

func flipped(b []byte) []byte {
	b[len(b)/2] ^= 1
	return b
}

// fate is the result of a damage. In each case nothing else is lost: each session is known as far as before, by the
// log, by its document or by the note of a loss.
type fate struct {
	file, harm string // patterns
	refused    bool   // up does not start, and reports the reason
	damaged    bool   // up reports the damaged file, and has kept a copy
	either     bool   // the damaged state may be a possible one, which up does not report
	truth      bool   // the doctor reports that the log has lost commits
	commits    func(left int) bool
}

// fates is the table: the first matching row holds. A damage without a row is not noticed and has no effect.
var fates = []fate{
	{file: "holdfast.json", harm: "*", refused: true},
	{file: "*/HF_LOG/msgs/*.blk", harm: "torn", damaged: true, truth: true, commits: func(n int) bool {
		return n > 0 && n < diskCommits-1
	}},
	{file: "*/HF_LOG/msgs/*.blk", harm: "emptied", truth: true, commits: func(n int) bool { return n == 0 }},
	{file: "*/HF_LOG/msgs/*.blk", harm: "one byte*", damaged: true, truth: true, commits: func(n int) bool {
		return n == diskCommits-1
	}},
	{file: "*/OBJ_*", harm: "*"},
	{file: "*/msgs/*.blk", harm: "torn", damaged: true},
	{file: "*/msgs/*.blk", harm: "one byte*", damaged: true},
	{file: "*/o.dat", harm: "torn", damaged: true},
	{file: "*/o.dat", harm: "one byte*", either: true},
	{file: "*", harm: "*"},
}

func fateOf(t *testing.T, file, harm string) fate {
	t.Helper()
	fits := func(pattern, name string) bool {
		ok, err := path.Match(strings.ReplaceAll(pattern, "/", "|"), strings.ReplaceAll(name, "/", "|"))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for _, f := range fates {
		if fits(f.file, file) && fits(f.harm, harm) {
			if f.commits == nil {
				f.commits = func(n int) bool { return n == diskCommits }
			}
			return f
		}
	}
	t.Fatalf("no fate for %s", file)
	return fate{}
}

// TestDamagedFiles truncates, empties and changes one byte of every file of a data directory. Each row of fates
// lists the reported damage and the data that stays readable.
func TestDamagedFiles(t *testing.T) {
	base, seqs := healthyDir(t)
	err := filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := filepath.Rel(base, p)
		if err != nil {
			return err
		}
		whole, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, h := range harms {
			harmed := []byte(nil)
			if len(whole) > 0 {
				harmed = h.do(bytes.Clone(whole))
			}
			if bytes.Equal(harmed, whole) || h.crashed && path.Ext(file) != ".blk" {
				continue
			}
			t.Run(strings.ReplaceAll(file, "/", ":")+" "+h.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), harmed, 0o600); err != nil {
					t.Fatal(err)
				}
				if h.crashed {
					if err := os.Remove(filepath.Join(dir, filepath.Dir(file), "index.db")); err != nil {
						t.Fatal(err)
					}
				}
				suffer(t, dir, fateOf(t, file, h.name), seqs)
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// suffer starts on a damaged directory and compares the result with the table.
func suffer(t *testing.T, dir string, want fate, seqs map[events.Ref]uint64) {
	t.Helper()
	c, output := tryUp(t, dir)
	if c == nil || want.refused {
		if c != nil || !want.refused || !strings.Contains(output, "cannot be read as a marker") {
			t.Fatalf("up started: %v, said %s", c != nil, output)
		}
		return
	}
	level := levelOK
	if want.truth {
		level = levelWrong
	}
	natstest.Until(t, "the doctor to see it", func() bool { return c.doctor()["truth"].Level == level })
	n := 0
	if err := c.bus.Log.Scan(t.Context(), 0, func(events.Commit) error { n++; return nil }); err != nil ||
		!want.commits(n) {
		t.Errorf("the log has %d commits of %d, %v", n, diskCommits, err)
	}
	c.keeps(seqs)
	code := exitDone
	if c.stands() {
		code = exitFailed
	}
	if text := runAs(t, c.note.NATS, code, "rebuild"); code == exitFailed && !strings.Contains(text, "--accept-loss") {
		t.Errorf("rebuild says %s", text)
	}
	c.keeps(seqs)
	c.goesOn(seqs)
	_, output = c.stop()
	kept, err := filepath.Glob(filepath.Join(dir, "damaged", "*", "*"))
	reported := strings.Contains(output, "holdfast: damaged: ")
	if err != nil || reported != (len(kept) > 0) || reported != want.damaged && !want.either {
		t.Errorf("kept %v, %v; up said:\n%s", kept, err, output)
	}
	if strings.Contains(output, "holdfast: the log has lost commits") && !want.truth {
		t.Errorf("up said:\n%s", output)
	}
}

// stands reports whether a document is ahead of the log.
func (c *upCell) stands() bool {
	c.t.Helper()
	found, err := ledger.Inspect(c.t.Context(), c.bus)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, x := range found.Lost {
		if len(x.Document) == 0 {
			return true
		}
	}
	return false
}

// keeps checks that each session is known as far as before.
func (c *upCell) keeps(seqs map[events.Ref]uint64) {
	c.t.Helper()
	known := map[events.Ref]uint64{}
	err := c.bus.KV.List(c.t.Context(), kv.State, ">", func(e kv.Entry) error {
		doc := e.Value
		var note ledger.Lost
		if _, err := events.ParseLostKey(e.Key); err == nil && json.Unmarshal(e.Value, &note) == nil {
			doc = note.Document
		} else if !strings.HasPrefix(e.Key, "session.") {
			return nil
		}
		if st, err := session.Decode(doc); err == nil {
			known[st.Ref()] = max(known[st.Ref()], st.Seq)
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for r, seq := range seqs {
		if known[r] < seq {
			c.t.Errorf("%s is known up to %d, and was up to %d", r, known[r], seq)
		}
	}
}

// goesOn writes to every session: a complete one accepts it, one without its last commits refuses it at once.
func (c *upCell) goesOn(seqs map[events.Ref]uint64) {
	c.t.Helper()
	for r, seq := range seqs {
		head, err := c.bus.Log.Head(c.t.Context(), r)
		if err != nil {
			c.t.Fatal(err)
		}
		began := time.Now()
		e := events.New(c.bus.NewID(), events.HarnessSource(r.Harness, "2"), r, 2, time.Unix(0, 0),
			events.SessionClaimed{Incarnation: "2"})
		_, err = c.bus.Log.Append(c.t.Context(), r, events.WriterHarness, seq, []events.Event{e})
		if head >= seq && err != nil || head < seq && !errors.Is(err, bus.ErrLogBehind) {
			c.t.Errorf("%s: written behind %d, where the log ends with %d: %v after %s", r, seq, head, err,
				time.Since(began))
		}
		if head >= seq {
			// at least
			c.seq[r] = head + 1
			c.folded(r)
		}
	}
}
