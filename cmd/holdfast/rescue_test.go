package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// rescueTo runs a rescue and returns what it wrote.
func rescueTo(t *testing.T, args ...string) (log, docs []rescuedMessage, report rescueFound) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rescued")
	var out, errs bytes.Buffer
	p := &Program{Args: append([]string{"rescue", dir}, args...), Stdout: &out, Stderr: &errs}
	if code := p.Run(t.Context()); code != exitDone {
		t.Fatalf("rescue: %d: %s%s", code, &out, &errs)
	}
	for name, to := range map[string]*[]rescuedMessage{rescueLog: &log, rescueDocuments: &docs} {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			var m rescuedMessage
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			*to = append(*to, m)
		}
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, rescueLog): 0o600} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("%s is not for its owner alone: %+v, %v", path, info, err)
		}
	}
	body, err := os.ReadFile(filepath.Join(dir, rescueReport))
	if err == nil {
		err = json.Unmarshal(body, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	again := &Program{Args: append([]string{"rescue", dir}, args...), Stdout: &out, Stderr: &errs}
	if code := again.Run(t.Context()); code != exitFailed || !strings.Contains(errs.String(), "is empty or not there") {
		t.Errorf("a rescue into the same directory: %d: %s", code, &errs)
	}
	return log, docs, report
}

// TestARescueKeepsWhatIsDamaged: documents and commits that no program can read are written as well, and so are the
// notes of losses, which have the last copies of documents. The cell stays as it was.
func TestARescueKeepsWhatIsDamaged(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	want := map[string]string{}
	store := func(key, body string) {
		want[key] = body
		if _, err := b.KV.Store(t.Context(), kv.State, key, []byte(body), 0); err != nil {
			t.Fatal(err)
		}
	}
	lost := events.Ref{Harness: "h1", Session: "lost"}
	store("session.h1.cut", `{"v":1,"seq":`)
	store("session.h1.bytes", "\x00\xff")
	store("session.h1.json", `[{}]`)
	store(events.LostKey(lost), `{"harness":"h1","session":"lost","known":7,"last":3,"document":{"v":1}}`)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for _, subject := range []string{"hf.log.h1.s.harness", "hf.log.h1.=FF.harness"} {
		if _, err := nc.Request(subject, []byte("[{\xff"), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	before, err := b.Layout.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, docs, report := rescueTo(t, "--nats", s.URL())
	got := map[string]string{}
	for _, m := range docs {
		got[m.Key] = string(m.JSON) + string(m.Body)
	}
	if !maps.Equal(got, want) {
		t.Errorf("the documents are %q, want %q", got, want)
	}
	if len(log) != 2 || string(log[0].Body) != "[{\xff" || string(log[1].Body) != "[{\xff" {
		t.Errorf("the log is %+v", log)
	}
	if len(report.Lost) != 1 || report.Lost[0].Ref != lost || report.Lost[0].Document != nil {
		t.Errorf("the losses are %+v: the documents of notes are among the documents", report.Lost)
	}
	after, err := b.Layout.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range after.Streams {
		if x, y := before.Streams[i], after.Streams[i]; x.Msgs != y.Msgs || x.LastSeq != y.LastSeq {
			t.Errorf("%s has changed: %+v, before %+v", x.Name, y, x)
		}
	}
}

// TestWhatTheFilesOfABucketHold: of each key the newest entry is rescued, and of a deleted document none. A note of a
// loss is rescued although it was deleted: it may be the last copy of a document.
func TestWhatTheFilesOfABucketHold(t *testing.T) {
	newest := newestEntries{}
	for i, e := range [][2]string{{"session.h.old", "1"}, {"session.h.gone", "1"}, {"lost.h.gone", "1"},
		{"session.h.old", "2"}, {"blocker.h.s.s.p", "1"}, {"session.h.back", "1"}, {"session.h.gone", ""},
		{"lost.h.gone", ""}, {"session.h.back", ""}, {"session.h.back", "2"}, {"never.was", ""}} {
		newest.add(e[0], embed.Record{Seq: uint64(i + 1), Body: []byte(e[1])})
	}
	got := map[string]string{}
	for key, r := range newest {
		got[key] = fmt.Sprint(r.Seq, " ", string(r.Body))
	}
	want := map[string]string{"session.h.old": "4 2", "lost.h.gone": "3 1", "session.h.back": "10 2"}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRescueWithoutABroker: a rescue misses its broker as soon as other commands do, says that it can read files
// instead, and leaves DIR for that.
func TestRescueWithoutABroker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rescued")
	var out output
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &Program{Args: []string{"rescue", dir, "--nats", "nats://127.0.0.1:1"}, Stdout: &out, Stderr: &out}
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx) }()
	natstest.Until(t, "trying for 10s", func() bool { return strings.Contains(out.String(), "yet: trying for 10s") })
	cancel()
	<-ended

	p.Args = append(p.Args, "--timeout", "200ms")
	if code := p.Run(t.Context()); code != exitUnreachable || !strings.Contains(out.String(), "--from DIRECTORY") {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
	if files, err := os.ReadDir(dir); err == nil {
		t.Errorf("%d files are in %s, so another rescue refuses it", len(files), dir)
	}
}

// TestRescue: the log and the documents are written to files, from a running cell and from the files of a stopped one;
// of a damaged file, only the records that cannot be read are missing.
func TestRescue(t *testing.T) {
	dir := t.TempDir()
	c := startUp(t, dir)
	a, b := events.Ref{Harness: "h1", Session: "a"}, events.Ref{Harness: "h1", Session: "b"}
	c.asks(a)
	c.asks(b)
	c.folded(a)
	c.folded(b)
	log, docs, report := rescueTo(t, "--nats", c.note.NATS)
	if len(log) != 4 || len(docs) != 2 || report.Commits != 4 || report.FirstSeq != 1 || report.LastSeq != 4 ||
		len(report.Lost)+len(report.Damages) != 0 {
		t.Fatalf("%d commits, %d documents, %+v", len(log), len(docs), report)
	}
	c.rescuesLost()
	if code := (&Program{Args: []string{"rescue", t.TempDir(), "--from", dir}, Stdout: &bytes.Buffer{},
		Stderr: &bytes.Buffer{}}).Run(t.Context()); code != exitFailed {
		t.Errorf("the files of a cell that runs were read: %d", code)
	}
	c.stop()

	path := filepath.Join(dir, "jetstream", "$G", "streams", "HF_LOG", "msgs", "1.blk")
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := bytes.Index(body[bytes.Index(body, []byte("hf.log.h1.a.harness"))+1:], []byte("hf.log.h1.a.harness"))
	if second < 0 {
		t.Fatal("the block is not as expected")
	}
	body[second+100] ^= 1
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	// a file that the broker did not write is reported, among those of the documents as well
	if err := os.Mkdir(filepath.Join(dir, "jetstream", "$G", "streams", "KV_hf_state", "msgs", "0.blk"),
		0o700); err != nil {
		t.Fatal(err)
	}
	fileLog, fileDocs, report := rescueTo(t, "--from", dir)
	if len(fileLog) != 3 || len(fileDocs) != 2 || len(report.Damages) != 2 ||
		!strings.Contains(report.Damages[0].Path, "HF_LOG") || !strings.Contains(report.Damages[1].Path, "hf_state") {
		t.Fatalf("%d commits, %d documents, %+v", len(fileLog), len(fileDocs), report)
	}
	for _, m := range fileLog {
		same := false
		for _, want := range log {
			same = same || want.Seq == m.Seq && want.Subject == m.Subject && bytes.Equal(want.JSON, m.JSON) &&
				want.At.Equal(m.At) &&
				strings.Join(want.Header["Nats-Expected-Last-Subject-Sequence"],
					"") == strings.Join(m.Header["Nats-Expected-Last-Subject-Sequence"], "")
		}
		if !same {
			t.Errorf("not as the broker gave it: %+v", m)
		}
	}
	for _, m := range fileDocs {
		if r, err := events.ParseSessionKey(m.Key); err != nil {
			t.Errorf("%s: %v", m.Key, err)
		} else if st, err := session.Decode(m.JSON); err != nil || st.Ref() != r || st.Seq == 0 {
			t.Errorf("%s: %v, %+v", m.Key, err, st)
		}
	}
}

// rescuesLost rescues a cell with a document that is ahead of the log, and deletes the document.
func (c *upCell) rescuesLost() {
	c.t.Helper()
	ahead := session.New(events.Ref{Harness: "h1", Session: "ahead"})
	ahead.Epoch, ahead.Seq = 1, 1000
	doc, err := ahead.Encode()
	if err != nil {
		c.t.Fatal(err)
	}
	rev, err := c.bus.KV.Store(c.t.Context(), kv.State, events.SessionKey(ahead.Ref()), doc, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	_, docs, report := rescueTo(c.t, "--nats", c.note.NATS)
	if len(docs) != 3 || len(report.Lost) != 1 || report.Lost[0].Ref != ahead.Ref() || report.Lost[0].Known != 1000 {
		c.t.Errorf("%d documents, %+v", len(docs), report)
	}
	if text := report.text("DIR"); !strings.Contains(text, "the log has lost commits of 1 session") {
		c.t.Errorf("a person reads %q", text)
	}
	if err := c.bus.KV.Delete(c.t.Context(), kv.State, events.SessionKey(ahead.Ref()), rev); err != nil {
		c.t.Fatal(err)
	}
}
