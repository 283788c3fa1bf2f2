//go:build unix

package embed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// stored returns a data directory in which a server has stored messages 1 to n in a stream named DATA and deleted the
// second one.
func stored(t *testing.T, n int) string {
	t.Helper()
	return storedBeside(t, n, "", 0)
}

// storedBeside adds settings of the stream, and so many bytes to each body.
func storedBeside(t *testing.T, n int, settings string, more int) string {
	t.Helper()
	dir := t.TempDir()
	s := mustStart(t, Config{Dir: dir, Listen: "127.0.0.1:0", SyncAlways: true})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	lines := bufio.NewReader(conn)
	pub := func(subject, body string) {
		t.Helper()
		if _, err := fmt.Fprintf(conn, "HPUB %s inbox %d %d\r\nNATS/1.0\r\nA: b\r\n\r\n%s\r\n", subject,
			len("NATS/1.0\r\nA: b\r\n\r\n"), len("NATS/1.0\r\nA: b\r\n\r\n")+len(body), body); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "MSG ") || strings.HasPrefix(line, "HMSG ") {
				if _, err := lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	if _, err := fmt.Fprint(conn, "CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB inbox 1\r\n"); err != nil {
		t.Fatal(err)
	}
	pub("$JS.API.STREAM.CREATE.DATA",
		`{"name":"DATA","subjects":["data.*"],"storage":"file","retention":"limits"`+settings+`}`)
	for i := range n {
		pub(fmt.Sprintf("data.%d", i+1), fmt.Sprintf("body %d", i+1)+strings.Repeat("x", more))
	}
	pub("$JS.API.STREAM.MSG.DELETE.DATA", `{"seq":2}`)
	s.Shutdown()
	return dir
}

// read returns the readable messages, one string each.
func read(t *testing.T, dir string) (found []string, damages []Damage) {
	t.Helper()
	damages, err := ReadStream(dir, "DATA", func(r Record) error {
		if r.Subject != fmt.Sprintf("data.%d", r.Seq) || string(r.Body) != fmt.Sprintf("body %d", r.Seq) ||
			!bytes.HasPrefix(r.Header, []byte("NATS/1.0\r\nA: b")) || r.At.IsZero() {
			t.Errorf("%+v", r)
		}
		found = append(found, fmt.Sprint(r.Seq))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, damages
}

func block(dir string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", "DATA", "msgs", "1.blk")
}

// without returns the numbers from 1 to n except these and the deleted one.
func without(n int, missing ...int) (left []string) {
	for i := 1; i <= n; i++ {
		if i != 2 && !slices.Contains(missing, i) {
			left = append(left, fmt.Sprint(i))
		}
	}
	return left
}

// TestReadStreamReadsWhatABrokerWouldCut: an unreadable record is lost, and the records after it are not.
func TestReadStreamReadsWhatABrokerWouldCut(t *testing.T) {
	const n = 20
	dir := stored(t, n)
	whole, err := os.ReadFile(block(dir))
	if err != nil {
		t.Fatal(err)
	}
	ten := bytes.Index(whole, []byte("data.10"))
	length := bytes.Index(whole, []byte("data.11")) - ten
	if ten < 0 || length < 0 {
		t.Fatal("the block is not as expected")
	}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		left   []string
		places int
	}{
		{"as it is", func(b []byte) []byte { return b }, without(n), 0},
		{"one bit of a body", func(b []byte) []byte { b[ten+length/2] ^= 1; return b }, without(n, 10), 1},
		{"one bit of a length", func(b []byte) []byte { b[ten-recordHead+1] ^= 1; return b }, without(n, 10), 1},
		{"one bit of a sequence", func(b []byte) []byte { b[ten-recordHead+4] ^= 1; return b }, without(n, 10), 1},
		{"zeroes over two records", func(b []byte) []byte { clear(b[ten : ten+length+10]); return b },
			without(n, 10, 11), 1},
		{"a piece cut out", func(b []byte) []byte { return append(b[:ten:ten], b[ten+20:]...) }, without(n, 10), 1},
		{"torn", func(b []byte) []byte { return b[:ten+length/2] }, without(9), 1},
		{"emptied", func([]byte) []byte { return nil }, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(block(dir), c.change(bytes.Clone(whole)), 0o600); err != nil {
				t.Fatal(err)
			}
			found, damages := read(t, dir)
			// the deletion of the second lies behind the cut
			if c.name == "torn" {
				found = slices.DeleteFunc(found, func(s string) bool { return s == "2" })
			}
			if !slices.Equal(found, c.left) || len(damages) != c.places {
				t.Errorf("read %v, damages %v; want %v, %d places", found, damages, c.left, c.places)
			}
		})
	}
}

// TestDamagedBlocksAreMendedBeforeTheBrokerCutsThem: the broker has all records but the unreadable one, whether it
// reads the block or its index. One unchanged copy of the block is kept.
func TestDamagedBlocksAreMendedBeforeTheBrokerCutsThem(t *testing.T) {
	const n = 20
	for _, crashed := range []bool{false, true} {
		t.Run(fmt.Sprintf("crashed %v", crashed), func(t *testing.T) {
			dir := stored(t, n)
			damaged, err := os.ReadFile(block(dir))
			if err != nil {
				t.Fatal(err)
			}
			damaged[bytes.Index(damaged, []byte("data.10"))] ^= 1
			write(t, block(dir), string(damaged))
			if crashed {
				if err := os.Remove(filepath.Join(filepath.Dir(block(dir)), indexFile)); err != nil {
					t.Fatal(err)
				}
			}
			for try := range 2 {
				s := mustStart(t, Config{Dir: dir, Mend: []string{"DATA"}})
				if got := len(s.Damages()); got != 1-try {
					t.Errorf("start %d: %d damages", try+1, got)
				}
				info, err := s.srv.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
				if err != nil || len(info.AccountDetails) != 1 || len(info.AccountDetails[0].Streams) != 1 {
					t.Fatalf("%+v, %v", info, err)
				}
				if got := info.AccountDetails[0].Streams[0].State; got.Msgs != n-2 || got.LastSeq != n {
					t.Errorf("the broker has %d messages up to %d", got.Msgs, got.LastSeq)
				}
				s.Shutdown()
			}
			kept, err := filepath.Glob(filepath.Join(dir, keptDir, "DATA", "*"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept %v, %v", kept, err)
			}
			if body, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(body, damaged) {
				t.Errorf("the copy differs: %v", err)
			}
			if found, _ := read(t, dir); !slices.Equal(found, without(n, 10)) {
				t.Errorf("read %v", found)
			}
		})
	}
}

// TestATornEndIsLeftToTheBroker: the broker cuts the torn end of the last block, and its index has the last sequence,
// so the sequence is not assigned again.
func TestATornEndIsLeftToTheBroker(t *testing.T) {
	const n = 5
	dir := stored(t, n)
	whole, err := os.ReadFile(block(dir))
	if err != nil {
		t.Fatal(err)
	}
	write(t, block(dir), string(whole[:bytes.Index(whole, []byte("data.5"))]))
	s := mustStart(t, Config{Dir: dir, Mend: []string{"DATA"}})
	defer s.Shutdown()
	if len(s.Damages()) != 1 {
		t.Errorf("damages: %v", s.Damages())
	}
	info, err := s.srv.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil || len(info.AccountDetails) != 1 || len(info.AccountDetails[0].Streams) != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	if got := info.AccountDetails[0].Streams[0].State; got.LastSeq != n {
		t.Errorf("the broker has messages up to %d, want %d", got.LastSeq, n)
	}
}

// TestATornBlockBeforeOthers: only the end of the last block is left to the broker. A block that is torn before others
// is replaced, and what the others have stays.
func TestATornBlockBeforeOthers(t *testing.T) {
	const n = 20
	// blocks of 32 kB
	dir := storedBeside(t, n, `,"max_bytes":120000`, 5_000)
	if all, err := filepath.Glob(filepath.Join(filepath.Dir(block(dir)), "*.blk")); err != nil || len(all) < 2 {
		t.Fatalf("blocks %v, %v", all, err)
	}
	whole, err := os.ReadFile(block(dir))
	if err != nil {
		t.Fatal(err)
	}
	write(t, block(dir), string(whole[:bytes.LastIndex(whole, []byte("data."))]))
	s := mustStart(t, Config{Dir: dir, Mend: []string{"DATA"}})
	defer s.Shutdown()
	if len(s.Damages()) != 1 {
		t.Errorf("damages: %v", s.Damages())
	}
	mended, err := os.ReadFile(block(dir))
	if err != nil {
		t.Fatal(err)
	}
	if damages := readBlock(block(dir), "DATA", mended, func(Record, bool, []byte) {}); len(damages) > 0 {
		t.Errorf("the first block is still damaged: %v", damages)
	}
	info, err := s.srv.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil || len(info.AccountDetails) != 1 || len(info.AccountDetails[0].Streams) != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	if got := info.AccountDetails[0].Streams[0].State; got.LastSeq != n {
		t.Errorf("the broker has messages up to %d, want %d", got.LastSeq, n)
	}
}

// TestConsumerReadable: it agrees with nats-server about the state of a consumer.
func TestConsumerReadable(t *testing.T) {
	for _, c := range []struct {
		name string
		body []byte
		want bool
	}{
		{"a new one", nil, true},
		{"another file", []byte("x"), false},
		{"of a later version", []byte{22, 3, 1, 1, 1, 1, 0, 0}, false},
		{"nothing pending", []byte{22, 2, 1, 1, 1, 1, 0, 0}, true},
		{"more acknowledged than delivered", []byte{22, 2, 2, 1, 1, 1, 0, 0}, false},
		{"more acknowledged than the stream delivered", []byte{22, 2, 1, 2, 1, 1, 0, 0}, false},
		{"the first version, which counts on", []byte{22, 1, 9, 9, 1, 1, 0, 0}, true},
		{"torn in its places", []byte{22, 2, 1, 1}, false},
		{"torn within a number", []byte{22, 2, 1, 1, 1, 0x80}, false},
		{"one pending", []byte{22, 2, 1, 1, 1, 1, 1, 9, 1, 1, 2, 0}, true},
		{"torn in what is pending", []byte{22, 2, 1, 1, 1, 1, 2, 9, 1, 1, 2}, false},
		{"more pending than there is", []byte{22, 2, 1, 1, 1, 1, 0xff, 0xff, 0x7f, 9}, false},
	} {
		if got := consumerReadable(c.body); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestToItsFloor: pending entries are dropped, because a damage in them cannot be detected. Acknowledged messages stay
// acknowledged.
func TestToItsFloor(t *testing.T) {
	for _, c := range []struct {
		name       string
		body, want []byte
	}{
		{"a new one", nil, nil},
		{"nothing pending", []byte{22, 2, 1, 3, 1, 3, 0, 0}, nil},
		{"one pending", []byte{22, 2, 1, 3, 2, 4, 1, 9, 1, 1, 0, 0}, []byte{22, 2, 1, 3, 1, 3, 0, 0}},
		{"a count that is damaged", []byte{22, 2, 1, 3, 2, 4, 0, 9, 1, 1, 0, 0}, []byte{22, 2, 1, 3, 1, 3, 0, 0}},
		{"long numbers", []byte{22, 2, 0x80, 1, 0x81, 1, 0x82, 1, 0x83, 1, 1, 9, 1, 1, 0, 0},
			[]byte{22, 2, 0x80, 1, 0x81, 1, 0x80, 1, 0x81, 1, 0, 0}},
		{"the first version", []byte{22, 1, 1, 3, 2, 4, 1, 9, 1, 1, 0, 0}, nil},
	} {
		if got := toItsFloor(c.body); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestConsumersStartAtTheirFloor: before the server starts, the pending entries of a readable consumer are dropped, and
// nothing is kept as damaged.
func TestConsumersStartAtTheirFloor(t *testing.T) {
	home, kept := t.TempDir(), filepath.Join(t.TempDir(), keptDir)
	path := filepath.Join(home, "obs", "ledger", consumerFile)
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		t.Fatal(err)
	}
	write(t, path, string([]byte{22, 2, 1, 3, 2, 4, 1, 9, 1, 1, 0, 0}))
	damages, err := mendConsumers(kept, home)
	if err != nil || len(damages) > 0 {
		t.Errorf("%v, %v", damages, err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, []byte{22, 2, 1, 3, 1, 3, 0, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a healthy consumer is kept as damaged: %v", err)
	}
}

// TestAnUnreadableConsumerIsMovedAway: before the server starts, the directory of a consumer whose state is unreadable
// is kept as damaged. The server would neither use nor replace it.
func TestAnUnreadableConsumerIsMovedAway(t *testing.T) {
	home, kept := t.TempDir(), filepath.Join(t.TempDir(), keptDir)
	path := filepath.Join(home, "obs", "ledger", consumerFile)
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		t.Fatal(err)
	}
	write(t, path, "no state")
	damages, err := mendConsumers(kept, home)
	if err != nil || len(damages) != 1 || damages[0].Path != path || damages[0].Bytes != len("no state") {
		t.Errorf("%v, %v", damages, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the consumer is in its place: %v", err)
	}
	found, err := filepath.Glob(filepath.Join(kept, "consumer-ledger.*", consumerFile))
	if err != nil || len(found) != 1 {
		t.Errorf("kept: %v, %v", found, err)
	}
}

// TestADamagedBlockThatCannotBeKeptIsNotCut: the server does not start then.
func TestADamagedBlockThatCannotBeKeptIsNotCut(t *testing.T) {
	dir := stored(t, 20)
	damaged, err := os.ReadFile(block(dir))
	if err != nil {
		t.Fatal(err)
	}
	damaged[len(damaged)/2] ^= 1
	write(t, block(dir), string(damaged))
	write(t, filepath.Join(dir, keptDir), "in the way")
	if _, err := start(t, Config{Dir: dir, Mend: []string{"DATA"}}); err == nil ||
		!strings.Contains(err.Error(), "keep") {
		t.Fatalf("Start = %v", err)
	}
	if left, err := os.ReadFile(block(dir)); err != nil || !bytes.Equal(left, damaged) {
		t.Errorf("the block was changed: %v", err)
	}
}

// TestBlocksThatAreNoRegularFiles: a FIFO and symbolic links in place of blocks are reported and not read; the messages
// of all other blocks are read.
func TestBlocksThatAreNoRegularFiles(t *testing.T) {
	dir := stored(t, 5)
	msgs := filepath.Dir(block(dir))
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(msgs, "0.blk"), 0o600),
		os.Symlink("/dev/null", filepath.Join(msgs, "2.blk")),
		os.Symlink(block(dir), filepath.Join(msgs, "3.blk")),
		os.Mkdir(filepath.Join(msgs, "4.blk"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	found, damages := read(t, dir)
	if !slices.Equal(found, []string{"1", "3", "4", "5"}) {
		t.Errorf("read %v, want all messages", found)
	}
	var reported []string
	for _, d := range damages {
		if d.String() != d.Path+": not a file of the broker: not a regular file" {
			t.Errorf("reported as %q", d)
		}
		reported = append(reported, filepath.Base(d.Path))
	}
	if !slices.Equal(reported, []string{"0.blk", "2.blk", "3.blk", "4.blk"}) {
		t.Errorf("reported %v", reported)
	}
}

// TestForeignFilesEndTheStart: a server does not start with a FIFO, a device, a directory or a file that is too large
// among the files that it mends. The error names the file, and what to do. Nothing is changed.
func TestForeignFilesEndTheStart(t *testing.T) {
	huge := func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, fileMax+1))
	}
	for _, c := range []struct {
		put  func(path string) error
		want string
	}{
		{func(path string) error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		{func(path string) error { return os.Symlink("/dev/zero", path) }, "not a regular file"},
		{func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		{huge, "larger than 64 MiB"},
	} {
		for _, file := range []string{"0.blk", filepath.Join("..", "obs", "odd", "o.dat")} {
			dir := stored(t, 3)
			path := filepath.Join(filepath.Dir(block(dir)), file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), c.put(path)); err != nil {
				t.Fatal(err)
			}
			_, err := start(t, Config{Dir: dir, Mend: []string{"DATA"}})
			if !errors.Is(err, ErrForeignFile) || !strings.Contains(err.Error(), path+": ") ||
				!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "move it") {
				t.Errorf("%s: Start = %v", path, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if found, damages := read(t, dir); !slices.Equal(found, []string{"1", "3"}) || len(damages) != 0 {
				t.Errorf("%s: read %v, %v", path, found, damages)
			}
		}
	}
}

// TestAForeignMarker: a data directory whose marker is no regular file is refused as another program's.
func TestAForeignMarker(t *testing.T) {
	dir := stored(t, 1)
	path := filepath.Join(dir, markerFile)
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t, Config{Dir: dir}); !errors.Is(err, ErrNotOurs) {
		t.Errorf("Start = %v, want ErrNotOurs", err)
	}
}
