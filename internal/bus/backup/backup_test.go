package backup_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/backup"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/timer"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// open connects to a broker, and sets nothing up.
func open(t testing.TB, s *embed.Server, prefix string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(bustest.Background(t), bus.Config{URL: s.URL(), Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// taken returns a backup.
func taken(t testing.TB, b *bus.Bus) ([]byte, backup.Info) {
	t.Helper()
	var file bytes.Buffer
	info, err := b.Backups.Write(bustest.Background(t), &file)
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes(), info
}

// restored restores a file on a broker of its own.
func restored(t testing.TB, file []byte) (*embed.Server, *bus.Bus) {
	t.Helper()
	s := natstest.Start(t)
	b := open(t, s, "")
	if _, err := b.Backups.Restore(bustest.Background(t), bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	return s, b
}

// stored is one message of a stream.
type stored struct {
	Seq     uint64
	At      time.Time
	Subject string
	Header  nats.Header
	Body    string
}

// content returns all messages of a stream, and its end.
func content(t testing.TB, s *embed.Server, stream string) (all []stored, last uint64) {
	t.Helper()
	_, js := bustest.Outsider(t, s)
	ctx := bustest.Within(t, bustest.Patience)
	st, err := js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	state := st.CachedInfo().State
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		m, err := st.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stored{m.Sequence, m.Time, m.Subject, m.Header, string(m.Data)})
	}
	return all, state.LastSeq
}

// TestRestore: what a backup has is in a new cell at the same places, with the same times and headers. Places without a
// message stay without one, also at the end. The next writer continues behind its last commit.
func TestRestore(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Background(t)
	kept, purged := bustest.Session, events.Ref{Harness: "h", Session: "purged"}
	last := bustest.MustAppend(t, b, kept, 0, "e1", "e2")
	end := bustest.MustAppend(t, b, purged, 0, "p1", "p2", "p3")
	if err := b.Log.PurgeSession(ctx, purged, end); err != nil {
		t.Fatal(err)
	}
	last = bustest.MustAppend(t, b, kept, last, "e3")
	_, js := bustest.Outsider(t, s)
	ack, err := js.Publish(ctx, "hf.log.h.gone.harness", []byte("gone"))
	if err == nil {
		var log jetstream.Stream
		if log, err = js.Stream(ctx, "HF_LOG"); err == nil {
			err = log.DeleteMsg(ctx, ack.Sequence)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := b.Objects.Put(ctx, kept, bytes.Repeat([]byte("large "), 100_000))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Timers.Set(ctx, timer.Timer{What: "retry", Ref: kept, Due: time.Now().Add(time.Hour),
		Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Leases.Ticket(ctx, "h", 0); err != nil {
		t.Fatal(err)
	}
	file, info := taken(t, b)
	if again, err := backup.Check(bytes.NewReader(file)); err != nil || !reflect.DeepEqual(again, info) {
		t.Fatalf("%+v, %v, want %+v", again, err, info)
	}
	to, r := restored(t, file)
	for _, stream := range []string{"HF_LOG", "OBJ_hf_objects", "HF_TIMERS", "KV_hf_leases"} {
		want, wantLast := content(t, s, stream)
		got, gotLast := content(t, to, stream)
		if len(want) == 0 || gotLast != wantLast || !reflect.DeepEqual(got, want) {
			t.Errorf("%s ends at %d, want %d:\n%+v\n%+v", stream, gotLast, wantLast, got, want)
		}
	}
	if err := r.Layout.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Objects.Get(ctx, name); err != nil || len(got) != 600_000 {
		t.Errorf("%d bytes of the object, %v", len(got), err)
	}
	if got := bustest.MustAppend(t, r, kept, last, "e4"); got != ack.Sequence+1 {
		t.Errorf("the next commit is at %d, want %d", got, ack.Sequence+1)
	}
	found, err := r.Layout.Inspect(ctx)
	if err != nil || !found.Streams[0].RestoredFrom.Equal(info.At) || found.Streams[0].RestoredLast != ack.Sequence {
		t.Errorf("%+v, %v", found.Streams[0], err)
	}
}

// TestRestoreNothing: an empty cell can be backed up, and is restored as an empty one.
func TestRestoreNothing(t *testing.T) {
	file, _ := taken(t, natstest.Bus(t, natstest.Start(t)))
	_, r := restored(t, file)
	if err := r.Layout.Ensure(bustest.Background(t)); err != nil {
		t.Fatal(err)
	}
	if seq := bustest.MustAppend(t, r, bustest.Session, 0, "e1"); seq != 1 {
		t.Errorf("the first commit is at %d", seq)
	}
}

// TestADamagedFile: a file that was cut off anywhere, that has one wrong byte anywhere, or that continues behind its
// end, is no backup, and nothing of it is restored.
func TestADamagedFile(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	bustest.MustAppend(t, b, bustest.Session, 0, "e1", "e2")
	file, _ := taken(t, b)
	for i := range file {
		if _, err := backup.Check(bytes.NewReader(file[:i])); !errors.Is(err, backup.ErrDamaged) {
			t.Fatalf("cut off at %d of %d: %v", i, len(file), err)
		}
		wrong := slices.Clone(file)
		wrong[i] ^= 1
		if _, err := backup.Check(bytes.NewReader(wrong)); !errors.Is(err, backup.ErrDamaged) {
			t.Fatalf("byte %d of %d: %v", i, len(file), err)
		}
	}
	for what, wrong := range map[string][]byte{"twice": append(slices.Clone(file), file...),
		"text": []byte("not a backup"), "longer": append(slices.Clone(file), 'x')} {
		if _, err := backup.Check(bytes.NewReader(wrong)); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s := natstest.Start(t)
	to := open(t, s, "")
	_, err := to.Backups.Restore(bustest.Background(t), bytes.NewReader(file[:len(file)-1]))
	if _, js := bustest.Outsider(t, s); !errors.Is(err, backup.ErrDamaged) || len(streams(t, js)) > 0 {
		t.Errorf("%v, and there are %q", err, streams(t, js))
	}
}

func streams(t testing.TB, js jetstream.JetStream) (names []string) {
	t.Helper()
	all := js.StreamNames(bustest.Within(t, bustest.Patience))
	for name := range all.Name() {
		names = append(names, name)
	}
	if all.Err() != nil {
		t.Fatal(all.Err())
	}
	return names
}

// TestRestoreRefuses: a backup of another cell, and a cell that exists, also in part, change nothing.
func TestRestoreRefuses(t *testing.T) {
	ctx := bustest.Background(t)
	b := natstest.Bus(t, natstest.Start(t))
	bustest.MustAppend(t, b, bustest.Session, 0, "e1")
	file, _ := taken(t, b)
	for name, c := range map[string]struct {
		prefix, stream string
		want           error
	}{"of another cell": {"dev", "", backup.ErrOther}, "onto a part": {"", "HF_PARKED", backup.ErrNotEmpty},
		"onto a cell": {"", "HF_LOG", backup.ErrNotEmpty}} {
		s := natstest.Start(t)
		_, js := bustest.Outsider(t, s)
		if c.stream != "" {
			if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: c.stream}); err != nil {
				t.Fatal(err)
			}
		}
		before := streams(t, js)
		_, err := open(t, s, c.prefix).Backups.Restore(ctx, bytes.NewReader(file))
		if after := streams(t, js); !errors.Is(err, c.want) || !slices.Equal(before, after) {
			t.Errorf("%s: %v, and there are %q", name, err, after)
		}
	}
	_, r := restored(t, file)
	if _, err := r.Backups.Restore(ctx, bytes.NewReader(file)); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("a second time: %v", err)
	}
}

// cutting is a file of which the end cannot be read a second time.
type cutting struct {
	*bytes.Reader
	seeks, whole int
}

// errCut is the error of a file that is gone.
var errCut = errors.New("the file is gone")

func (c *cutting) Seek(offset int64, whence int) (int64, error) {
	c.seeks++
	return c.Reader.Seek(offset, whence)
}

func (c *cutting) Read(p []byte) (int, error) {
	if c.seeks > c.whole {
		return 0, errCut
	}
	return c.Reader.Read(p)
}

// TestTheLogIsLast: when the file is gone in the middle of a restore, the log is what is missing.
func TestTheLogIsLast(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	bustest.MustAppend(t, b, bustest.Session, 0, "e1", "e2")
	file, info := taken(t, b)
	to := open(t, natstest.Start(t), "")
	ctx := bustest.Background(t)
	from := &cutting{Reader: bytes.NewReader(file), whole: len(info.Streams) - 1}
	if _, err := to.Backups.Restore(ctx, from); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	found, err := to.Layout.Inspect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found.Streams {
		if i := slices.IndexFunc(info.Streams, func(x backup.Stream) bool { return x.Name == s.Name }); i >= 0 &&
			s.Missing != (i == 0) {
			t.Errorf("%s is missing: %v", s.Name, s.Missing)
		}
	}
}

// TestHalfRestored: services do not start on a log of which a part is missing.
func TestHalfRestored(t *testing.T) {
	s := natstest.Start(t)
	_, js := bustest.Outsider(t, s)
	ctx := bustest.Background(t)
	cfg := jetstream.StreamConfig{Name: "HF_LOG", Subjects: []string{"hf.log.*.*.*"},
		Metadata: map[string]string{"hf.restored": `{"backup":"2026-01-02T03:04:05Z","last":2}`}}
	if _, err := js.CreateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	b := open(t, s, "")
	for n, want := range []error{bus.ErrHalfRestored, bus.ErrHalfRestored, nil} {
		if err := b.Layout.Ensure(ctx); !errors.Is(err, want) {
			t.Errorf("with %d of 2 commits: %v", n, err)
		}
		if _, err := js.Publish(ctx, "hf.log.h.s.harness", []byte("[]")); err != nil {
			t.Fatal(err)
		}
	}
}

// failing is a disk that is full after some bytes.
type failing struct{ left int }

var errFull = errors.New("no space left on device")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestAFullDisk: a backup that could not be written is an error, wherever the disk becomes full.
func TestAFullDisk(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	bustest.MustAppend(t, b, bustest.Session, 0, "e1", "e2")
	file, _ := taken(t, b)
	for _, n := range []int{0, 10, len(file) / 2} {
		if _, err := b.Backups.Write(bustest.Background(t), &failing{left: n}); !errors.Is(err, errFull) {
			t.Errorf("%d of %d bytes: %v", n, len(file), err)
		}
	}
}

// acting is a file during whose first write something happens.
type acting struct {
	bytes.Buffer
	once sync.Once
	act  func()
}

func (a *acting) Write(p []byte) (int, error) {
	a.once.Do(a.act)
	return a.Buffer.Write(p)
}

// TestRetentionRunsMeanwhile: commits that are removed while the log is read leave no session with a gap.
func TestRetentionRunsMeanwhile(t *testing.T) {
	// more than is read ahead
	const fillers, bytesEach = 80, 400 << 10
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	body := noise(t, bytesEach)
	put := func(session string) {
		if _, err := nc.Request("hf.log.h."+session+".harness", body, bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	put("cut")
	put("cut")
	for range fillers {
		put("filler")
	}
	put("cut")
	put("cut")
	file := &acting{act: func() {
		if err := b.Log.PurgeSession(bustest.Background(t), events.Ref{Harness: "h", Session: "cut"},
			fillers+4); err != nil {
			t.Error(err)
		}
	}}
	info, err := b.Backups.Write(bustest.Background(t), file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Stream("HF_LOG"); got.Messages != fillers+1 || got.First != 3 || got.Last != fillers+4 {
		t.Errorf("%+v", got)
	}
	to, _ := restored(t, file.Bytes())
	got, _ := content(t, to, "HF_LOG")
	if want, _ := content(t, s, "HF_LOG"); !reflect.DeepEqual(got, want) {
		t.Errorf("%d commits, want %d", len(got), len(want))
	}
}

// TestStoredMeanwhile: what is stored while a backup is read leaves it whole: each object that one of its commits names
// is in it.
func TestStoredMeanwhile(t *testing.T) {
	// more than one block of the file, in each stream
	const stored, bytesEach = 8, 400 << 10
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	ctx := bustest.Background(t)
	nc, _ := bustest.Outsider(t, s)
	put := func() {
		for range stored {
			content := noise(t, bytesEach)
			name, err := b.Objects.Put(ctx, bustest.Session, content)
			if err == nil {
				_, err = nc.Request("hf.log.h.s.harness", append([]byte(name+" "), content...), bustest.Patience)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	put()
	file := &acting{act: put}
	info, err := b.Backups.Write(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	to, r := restored(t, file.Bytes())
	all, _ := content(t, to, "HF_LOG")
	if len(all) != stored || info.Stream("HF_LOG").Last != stored {
		t.Fatalf("%d commits, %+v", len(all), info)
	}
	for _, m := range all {
		name, _, _ := strings.Cut(m.Body, " ")
		if err := r.Objects.Has(ctx, name); err != nil {
			t.Errorf("commit %d names what is not there: %v", m.Seq, err)
		}
	}
}

// noise returns bytes that cannot be compressed.
func noise(t testing.TB, n int) []byte {
	t.Helper()
	all := make([]byte, n)
	if _, err := io.ReadFull(rand.Reader, all); err != nil {
		t.Fatal(err)
	}
	return all
}
