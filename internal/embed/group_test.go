//go:build unix

package embed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
)

// talk connects to a server. It returns a function that sends a message and returns the reply.
func talk(t *testing.T, s *Server) func(subject, body string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	lines := bufio.NewReader(conn)
	if _, err := fmt.Fprint(conn, "CONNECT {\"verbose\":false}\r\nSUB inbox 1\r\n"); err != nil {
		t.Fatal(err)
	}
	return func(subject, body string) string {
		t.Helper()
		if _, err := fmt.Fprintf(conn, "PUB %s inbox %d\r\n%s\r\n", subject, len(body), body); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "MSG ") {
				reply, err := lines.ReadString('\n')
				if err != nil || strings.Contains(reply, `"error"`) {
					t.Fatalf("%s: %s, %v", subject, reply, err)
				}
				return reply
			}
		}
	}
}

const (
	createData = `{"name":"DATA","subjects":["data.*"],"storage":"file","retention":"limits"}`
	createWork = `{"stream_name":"DATA","config":{"durable_name":"work","ack_policy":"explicit"}}`
)

// written runs a server that syncs in groups, with messages 1 to n that are synced.
func written(t *testing.T, n int) (*Server, func(subject, body string) string) {
	t.Helper()
	s := mustStart(t, Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Group: true})
	pub := talk(t, s)
	pub("$JS.API.STREAM.CREATE.DATA", createData)
	pub("$JS.API.CONSUMER.DURABLE.CREATE.DATA.work", createWork)
	for i := range n {
		pub(fmt.Sprintf("data.%d", i+1), fmt.Sprintf("body %d", i+1))
	}
	synced(t, s, uint64(n))
	return s, pub
}

func synced(t *testing.T, s *Server, seq uint64) {
	t.Helper()
	for {
		mark, err := s.Synced(t.Context(), "DATA", seq)
		if err != nil {
			t.Fatal(err)
		}
		if mark >= seq {
			return
		}
	}
}

// mirrored ends the syncs of a server, and mirrors what it has stored.
func mirrored(t *testing.T, s *Server) {
	t.Helper()
	s.endGroup()
	homes, err := streamHomes(s.cfg.Dir)
	if err == nil {
		err = syncTree(filepath.Join(s.cfg.Dir, storeDir))
	}
	for _, home := range homes {
		err = errors.Join(err, s.group.mirror.refresh(home))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// taken is a copy of a data directory at this moment, as the disk of a machine that has another boot from now on.
// Files that are one file are one file in the copy.
func taken(t *testing.T, from string) string {
	t.Helper()
	to, links := t.TempDir(), map[uint64]string{}
	err := filepath.WalkDir(from, func(p string, e fs.DirEntry, err error) error {
		if filepath.Base(p) == lockFile || strings.HasSuffix(p, ".tmp") {
			// the second is renamed at any moment
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if e.IsDir() {
			return os.MkdirAll(at, dirMode)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		id := info.Sys().(*syscall.Stat_t).Ino
		if first := links[id]; first != "" {
			return os.Link(first, at)
		}
		links[id] = at
		body, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(at, body, fileMode)
	})
	if err != nil {
		t.Fatal(err)
	}
	var state mirrorState
	path := filepath.Join(to, mirrorDir, stateFile)
	body, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(body, &state) != nil {
		t.Fatalf("%s, %v", body, err)
	}
	if state.Clean {
		t.Fatal("a running server has noted a clean end")
	}
	state.Boot = "an earlier one"
	if body, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(body))
	return to
}

// lastSeq returns the last sequence of the stream.
func lastSeq(t *testing.T, pub func(subject, body string) string) (last uint64, msgs int) {
	t.Helper()
	var info struct {
		State struct {
			LastSeq  uint64 `json:"last_seq"`
			Messages int    `json:"messages"`
		} `json:"state"`
	}
	if err := json.Unmarshal([]byte(pub("$JS.API.STREAM.INFO.DATA", "")), &info); err != nil {
		t.Fatal(err)
	}
	return info.State.LastSeq, info.State.Messages
}

// TestSyncedInGroups: the mark includes what was stored, and nothing else.
func TestSyncedInGroups(t *testing.T) {
	s, pub := written(t, 3)
	if !s.SyncsInGroups() || s.SyncsEach() || !strings.HasPrefix(s.srv.Name(), GroupPrefix) {
		t.Errorf("groups %t, each %t, name %q", s.SyncsInGroups(), s.SyncsEach(), s.srv.Name())
	}
	if mark, err := s.Synced(t.Context(), "DATA", 1_000); err != nil || mark != 3 {
		t.Errorf("a sequence that was not stored: synced up to %d, %v; want 3", mark, err)
	}
	if mark, err := s.Synced(t.Context(), "NONE", 1); err != nil || mark != 0 {
		t.Errorf("a stream that is not there: synced up to %d, %v; want 0", mark, err)
	}
	// a new block says only how far the stream was
	pub("$JS.API.STREAM.PURGE.DATA", "")
	pub("data.4", "4")
	synced(t, s, 4)
	s.Shutdown()
	if _, err := s.Synced(t.Context(), "DATA", 5); err == nil {
		t.Error("a server that has ended answers")
	}
}

// TestBlocksThatFollow: the mark passes to later blocks only when the earlier ones are synced and linked.
func TestBlocksThatFollow(t *testing.T) {
	s, pub := written(t, 1)
	const n = 20
	for range n {
		pub("data.1", strings.Repeat("x", 900<<10))
	}
	synced(t, s, n+1)
	for i := 1; i <= 2; i++ {
		link := filepath.Join(s.cfg.Dir, mirrorDir, "$G", "streams", "DATA", msgsDir, fmt.Sprintf("%d.blk", i))
		same, err := sameFile(link, filepath.Join(filepath.Dir(block(s.cfg.Dir)), filepath.Base(link)))
		if err != nil || !same {
			t.Errorf("block %d is not linked: %v", i, err)
		}
	}
}

// cuts are what a cut of the power may leave of the files of the stream and its consumer that no client waited for.
var cuts = map[string]func(t *testing.T, home string){
	"nothing": func(*testing.T, string) {},
	"the new version of a block, renamed": func(t *testing.T, home string) {
		at := filepath.Join(home, msgsDir, "1.blk")
		write(t, at+".new", "")
		if err := os.Rename(at+".new", at); err != nil {
			t.Fatal(err)
		}
	},
	"a block": func(t *testing.T, home string) { remove(t, filepath.Join(home, msgsDir, "1.blk")) },
	"the end of a block": func(t *testing.T, home string) {
		f, err := os.OpenFile(filepath.Join(home, msgsDir, "1.blk"), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("half a record")
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	},
	"the stream's configuration": func(t *testing.T, home string) { write(t, filepath.Join(home, metaFile), "") },
	"its checksum":               func(t *testing.T, home string) { write(t, filepath.Join(home, metaSum), "") },
	"the consumer's configuration": func(t *testing.T, home string) {
		write(t, consumerAt(home, metaFile), "")
	},
	"the consumer's state": func(t *testing.T, home string) { write(t, consumerAt(home, consumerFile), "x") },
	"a later state of the consumer": func(t *testing.T, home string) {
		write(t, consumerAt(home, consumerFile), string([]byte{consumerMagic, consumerVersion, 3, 3, 3, 3, 0, 0}))
	},
	"an index that knows more": func(t *testing.T, home string) {
		write(t, filepath.Join(home, msgsDir, indexFile), "x")
	},
}

func consumerAt(home, file string) string { return filepath.Join(home, "obs", "work", file) }

// TestAfterACut: whatever a cut takes of the files that were not synced, what was acknowledged is there, and the
// consumer delivers from the place up to which the results of its messages were synced.
func TestAfterACut(t *testing.T) {
	const n = 5
	s, _ := written(t, n)
	mirrored(t, s)
	for name, change := range cuts {
		for _, group := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, then in groups: %t", name, group), func(t *testing.T) {
				dir := taken(t, s.cfg.Dir)
				change(t, filepath.Join(dir, "jetstream", "$G", "streams", "DATA"))
				again := mustStart(t, Config{Dir: dir, Listen: "127.0.0.1:0", Group: group, SyncAlways: !group,
					Mend: []string{"DATA"}})
				pub := talk(t, again)
				last, msgs := lastSeq(t, pub)
				if msgs != n || last != n+cutStride {
					t.Errorf("%d messages up to %d, want %d up to %d", msgs, last, n, n+cutStride)
				}
				if info := pub("$JS.API.CONSUMER.INFO.DATA.work", ""); !strings.Contains(info, `"num_pending":5`) {
					t.Errorf("the consumer: %s", info)
				}
				pub("data.1", "after the cut")
				again.Shutdown()
				third := mustStart(t, Config{Dir: dir, Listen: "127.0.0.1:0", Group: group, SyncAlways: !group})
				if last, msgs := lastSeq(t, talk(t, third)); msgs != n+1 || last != n+cutStride+1 {
					t.Errorf("after a clean end: %d messages up to %d", msgs, last)
				}
				if _, err := os.Stat(filepath.Join(dir, mirrorDir)); group == errors.Is(err, fs.ErrNotExist) {
					t.Errorf("in groups %t, and the mirror: %v", group, err)
				}
			})
		}
	}
}

// TestMirrorOfAMoment: the mirror gets what was there at the look. Something later may rest on writes to other streams
// that were not synced since.
func TestMirrorOfAMoment(t *testing.T) {
	s, _ := written(t, 3)
	mirrored(t, s)
	dir := taken(t, s.cfg.Dir)
	m, home := mirror{dir}, filepath.Join(dir, "jetstream", "$G", "streams", "DATA")
	at := filepath.Join(home, msgsDir, "1.blk")
	again := func(body string) {
		write(t, at+".new", body)
		if err := os.Rename(at+".new", at); err != nil {
			t.Fatal(err)
		}
	}
	state := func(seq byte) string { return string([]byte{consumerMagic, consumerVersion, seq, seq, seq, seq, 0, 0}) }
	write(t, consumerAt(home, consumerFile), state(1))
	again("first")
	o, err := m.compare(home, true)
	if err != nil {
		t.Fatal(err)
	}
	write(t, consumerAt(home, consumerFile), state(2))
	again("second")
	if err := m.keep(o); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, mirrorDir, "$G", "streams", "DATA")
	if body, err := os.ReadFile(consumerAt(kept, consumerFile)); err != nil || string(body) != state(1) {
		t.Errorf("state %x, %v", body, err)
	}
	if body, err := os.ReadFile(filepath.Join(kept, msgsDir, "1.blk")); err != nil || string(body) == "second" {
		t.Errorf("block %q, %v", body, err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestACutOfAnUnfinishedStream: a stream whose configuration was never synced has nothing that was acknowledged. It is
// kept aside, and can be made again.
func TestACutOfAnUnfinishedStream(t *testing.T) {
	s, pub := written(t, 1)
	pub("$JS.API.STREAM.CREATE.MORE", `{"name":"MORE","subjects":["more"],"storage":"file"}`)
	dir := taken(t, s.cfg.Dir)
	for _, at := range []string{filepath.Join("jetstream", "$G", "streams", "MORE", metaFile),
		filepath.Join(mirrorDir, "$G", "streams", "MORE")} {
		if err := os.RemoveAll(filepath.Join(dir, at)); err != nil {
			t.Fatal(err)
		}
	}
	again := mustStart(t, Config{Dir: dir, Listen: "127.0.0.1:0", Group: true})
	talk(t, again)("$JS.API.STREAM.CREATE.MORE", `{"name":"MORE","subjects":["more"],"storage":"file"}`)
	kept, err := filepath.Glob(filepath.Join(dir, keptDir, "unfinished-MORE-*", "MORE"))
	if err != nil || len(kept) != 1 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// TestKilledIsNoCut: of a process that was killed the system has everything, also what was not synced.
func TestKilledIsNoCut(t *testing.T) {
	s, _ := written(t, 3)
	dir := taken(t, s.cfg.Dir)
	m := mirror{dir}
	if err := m.note(mirrorState{Boot: boot()}); err != nil {
		t.Fatal(err)
	}
	again := mustStart(t, Config{Dir: dir, Listen: "127.0.0.1:0", Group: true})
	if last, msgs := lastSeq(t, talk(t, again)); boot() != "" && (msgs != 3 || last != 3) {
		t.Errorf("%d messages up to %d, want 3 up to 3", msgs, last)
	}
	synced(t, again, 3)
}

// TestMergeBlocks: the records of the synced version come first, then what the later one has beside them.
func TestMergeBlocks(t *testing.T) {
	path := filepath.Join("DATA", msgsDir, "1.blk")
	var all []byte
	ends := []int{0}
	for seq := uint64(1); seq <= 4; seq++ {
		all = append(all, tombstone(path, "DATA", Record{Seq: seq})...)
		ends = append(ends, len(all))
	}
	old, later := all[:ends[3]], append(append([]byte(nil), all[:ends[1]]...), all[ends[2]:]...)
	if got := mergeBlocks(path, old, append(later, "torn"...)); string(got) != string(all) {
		t.Errorf("%d bytes, want all %d", len(got), len(all))
	}
}

// TestARefusedSyncIsFinal: nothing is acknowledged after it, although the next sync might succeed.
func TestARefusedSyncIsFinal(t *testing.T) {
	s, _ := written(t, 3)
	dir := taken(t, s.cfg.Dir)
	failed := make(chan error, 2)
	g, err := newGroup(dir, func(err error) { failed <- err }, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	b, err := g.blocksOf("DATA")
	if err == nil {
		err = b.sync(g.mirror, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(block(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(tombstone(block(dir), "DATA", Record{Seq: 4}))
	}
	if err = errors.Join(err, f.Close(), b.file.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go g.run(ctx)
	for range 2 {
		if _, err := g.synced(ctx, "DATA", 4); !errors.Is(err, ErrSyncFailed) {
			t.Errorf("after a refused sync: %v", err)
		}
	}
	if err := <-failed; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("reported: %v", err)
	}
	select {
	case err := <-failed:
		t.Errorf("reported again: %v", err)
	default:
	}
}
