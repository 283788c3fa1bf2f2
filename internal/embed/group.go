package embed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	sweepMS    = 1_000 // interval of the syncs that no client waits for
	copySweeps = 5     // of these, one copies small files
	linkSweeps = 30    // of these, one links blocks that the broker has written again
	scanBytes  = 64 << 10
	bootID     = "/proc/sys/kernel/random/boot_id"
)

// GroupPrefix begins the name of a server that acknowledges a write before it is synced. The name reaches each client
// with the connection itself, so none can take such an acknowledgement for another.
const GroupPrefix = "holdfast-group-"

// ErrSyncFailed reports that the disk has refused a sync: what was written since the last one may be lost, and the
// system may not report it again. The server acknowledges nothing more.
var ErrSyncFailed = errors.New("the disk has refused a sync")

// CanGroup reports whether this system can sync in groups: it has hard links, and syncs directories.
func CanGroup() bool { return runtime.GOOS != "windows" }

// group syncs the files of a store in groups, outside of the broker's write path.
type group struct {
	mirror mirror
	fail   func(error) // called once

	mu      sync.Mutex
	waiting []waiter
	err     error // final
	marks   map[string]uint64
	signal  chan struct{}

	// of the goroutine in run alone
	streams map[string]*files
	marked  map[string]uint64 // the marks in the mirror
	sweeps  uint64
	log     zerolog.Logger
}

// waiter waits until a stream is synced up to a sequence.
type waiter struct {
	stream string
	seq    uint64
	done   chan struct{}
}

// prepare makes the store readable before the broker starts. If the power was cut since the last clean end, it restores
// what the cut took of the synced files. It reports whether it did, or has to be asked again after the blocks were
// mended.
func (m mirror) prepare() (cut bool, err error) {
	s, exists, err := m.state()
	if err != nil || !exists || s.Clean {
		return false, err
	}
	if boot := boot(); boot != "" && boot == s.Boot {
		// the process was killed, the system still has what it wrote
		return false, nil
	}
	return true, m.restore()
}

// boot returns the id of the machine's present life, "" if the system has none.
func boot() string {
	body, err := os.ReadFile(bootID)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(body))
}

// newGroup syncs everything below a data directory whose broker does not run yet, and mirrors it.
func newGroup(dir string, fail func(error), log zerolog.Logger) (*group, error) {
	g := &group{mirror: mirror{dir}, fail: fail, log: log, marks: map[string]uint64{}, signal: make(chan struct{}, 1),
		streams: map[string]*files{}}
	was, _, err := g.mirror.state()
	if err != nil {
		return nil, err
	}
	if err := syncTree(filepath.Join(dir, storeDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("sync %s: %w", dir, err)
	}
	homes, err := streamHomes(dir)
	if err != nil {
		return nil, err
	}
	for _, home := range homes {
		if err := g.mirror.refresh(home); err != nil {
			return nil, err
		}
		index, last, err := newestRecord(home)
		if err != nil {
			return nil, err
		}
		g.streams[filepath.Base(home)] = &files{home: home, index: index, seen: last.Seq, mark: last.Seq}
		g.marks[filepath.Base(home)] = last.Seq
	}
	g.marked = was.Marks
	return g, g.mirror.note(mirrorState{Boot: boot(), Marks: was.Marks})
}

// end notes that the broker has ended cleanly, after everything is synced.
func (g *group) end() error {
	if err := syncTree(filepath.Join(g.mirror.dir, storeDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	homes, err := streamHomes(g.mirror.dir)
	if err != nil {
		return err
	}
	for _, home := range homes {
		if err := g.mirror.refresh(home); err != nil {
			return err
		}
	}
	return g.mirror.note(mirrorState{Boot: boot(), Clean: true})
}

// run syncs until ctx ends. The broker must run until then.
func (g *group) run(ctx context.Context) {
	sweep := time.NewTicker(sweepMS * time.Millisecond)
	defer sweep.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			g.stop(fmt.Errorf("%w: the server has ended", context.Canceled))
			return
		case <-g.signal:
			err = g.round()
		case <-sweep.C:
			err = g.sweep()
		}
		if err != nil {
			g.stop(fmt.Errorf("%w: %w", ErrSyncFailed, err))
			g.fail(err)
			return
		}
	}
}

// stop lets all waiters fail from now on. The first error stays.
func (g *group) stop(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
	for _, w := range g.waiting {
		close(w.done)
	}
	g.waiting = nil
}

// synced waits until a stream is synced up to a sequence, or, for one that the files do not have yet, until one sync
// has ended. It returns how far the stream is synced.
func (g *group) synced(ctx context.Context, stream string, seq uint64) (mark uint64, err error) {
	g.mu.Lock()
	if mark, err = g.marks[stream], g.err; err != nil || mark >= seq {
		g.mu.Unlock()
		return mark, err
	}
	w := waiter{stream: stream, seq: seq, done: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case g.signal <- struct{}{}:
	default:
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.marks[stream], g.err
}

// round syncs what is waited for.
func (g *group) round() error {
	g.mu.Lock()
	now := g.waiting
	g.waiting = nil
	want := map[string]uint64{}
	for _, w := range now {
		want[w.stream] = max(want[w.stream], w.seq)
	}
	g.mu.Unlock()
	for stream, seq := range want {
		if err := g.sync(stream, seq); err != nil {
			g.mu.Lock()
			// stop ends them with the error
			g.waiting = append(g.waiting, now...)
			g.mu.Unlock()
			return err
		}
	}
	for _, w := range now {
		close(w.done)
	}
	return nil
}

// sync syncs a stream. A stream that does not exist has no mark.
func (g *group) sync(stream string, want uint64) error {
	g.mu.Lock()
	mark := g.marks[stream]
	g.mu.Unlock()
	if mark >= want {
		return nil
	}
	return g.syncStream(stream, want)
}

// syncStream syncs what the files of a stream have, and more, as far as want needs it.
func (g *group) syncStream(stream string, want uint64) error {
	b, err := g.blocksOf(stream)
	if err != nil || b == nil {
		return err
	}
	if err := b.sync(g.mirror, want); err != nil {
		return fmt.Errorf("%s: %w", stream, err)
	}
	g.mu.Lock()
	g.marks[stream] = b.mark
	g.mu.Unlock()
	return nil
}

// blocksOf returns the files of a stream, nil if it has none.
func (g *group) blocksOf(stream string) (*files, error) {
	if b := g.streams[stream]; b != nil {
		return b, nil
	}
	homes, err := streamHomes(g.mirror.dir)
	if err != nil {
		return nil, err
	}
	for _, home := range homes {
		if filepath.Base(home) == stream {
			b := &files{home: home}
			g.streams[stream] = b
			return b, nil
		}
	}
	return nil, nil
}

// sweep syncs all streams, so that none is far behind. At times it brings the mirror up to date: no client waits for
// that, and an error of it is no reason to end.
func (g *group) sweep() error {
	homes, err := streamHomes(g.mirror.dir)
	if err != nil {
		return err
	}
	g.sweeps++
	var stale []outdated
	if g.sweeps%copySweeps == 0 {
		for _, home := range homes {
			o, err := g.mirror.compare(home, g.sweeps%linkSweeps == 0)
			if g.warn(filepath.Base(home), err); err == nil {
				stale = append(stale, o)
			}
		}
	}
	there := map[string]bool{}
	for _, home := range homes {
		stream := filepath.Base(home)
		there[stream] = true
		if err := g.syncStream(stream, 0); err != nil {
			return err
		}
	}
	for stream, b := range g.streams {
		// it was deleted; one of the same name begins from nothing
		if !there[stream] {
			g.warn(stream, g.drop(stream, b))
		}
	}
	if len(stale) == 0 {
		return nil
	}
	for _, o := range stale {
		g.warn(filepath.Base(o.home), g.mirror.keep(o))
	}
	g.warn("marks", g.note())
	return nil
}

func (g *group) warn(entity string, err error) {
	if err != nil {
		g.log.Warn().Str("service", "broker").Str("entity", entity).AnErr("err", err).Msg("not mirrored: tried again")
	}
}

// drop forgets a stream that was deleted.
func (g *group) drop(stream string, b *files) error {
	b.close()
	delete(g.streams, stream)
	g.mu.Lock()
	delete(g.marks, stream)
	g.mu.Unlock()
	links, err := g.mirror.of(b.home)
	if err != nil {
		return err
	}
	return os.RemoveAll(links)
}

// note keeps the marks in the mirror.
func (g *group) note() error {
	g.mu.Lock()
	marks := maps.Clone(g.marks)
	g.mu.Unlock()
	if maps.Equal(marks, g.marked) {
		return nil
	}
	if err := g.mirror.note(mirrorState{Boot: boot(), Marks: marks}); err != nil {
		return err
	}
	g.marked = marks
	return nil
}

// files are those of one stream, as far as they are synced.
type files struct {
	home  string
	index uint32   // of the newest known block; 0: none
	file  *os.File // that block
	at    int64    // bytes of it whose records are known
	size  int64    // bytes of it that are synced
	mark  uint64   // highest sequence in the synced records
	seen  uint64   // highest sequence in the known records
	meta  os.FileInfo
}

// sync syncs the records that the files have, and returns when the mark includes them. If they do not have want, it
// looks for blocks that do not follow the newest known one.
func (b *files) sync(m mirror, want uint64) error {
	if has, err := b.syncMeta(m); err != nil || !has {
		return err
	}
	if b.file == nil {
		if err := b.newest(m); err != nil || b.file == nil {
			return err
		}
	}
	for {
		if err := b.same(m); err != nil {
			return err
		}
		_, err := os.Stat(b.path(b.index + 1))
		following := err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// after the comparison: a block with a successor is complete
		if err := b.scan(); err != nil {
			return err
		}
		if err := b.flush(); err != nil {
			return err
		}
		if following {
			if err := b.open(m, b.index+1); err != nil {
				return err
			}
			continue
		}
		if b.seen >= want {
			break
		}
		next, err := b.highest()
		if err != nil {
			return err
		}
		if next <= b.index {
			// it is not stored
			break
		}
		if err := b.open(m, next); err != nil {
			return err
		}
	}
	b.mark = max(b.mark, b.seen)
	return nil
}

func (b *files) path(index uint32) string {
	return filepath.Join(b.home, msgsDir, fmt.Sprintf("%d.blk", index))
}

// highest returns the number of the newest block, 0 without one.
func (b *files) highest() (index uint32, err error) {
	paths, err := filepath.Glob(filepath.Join(b.home, msgsDir, blockPattern))
	for _, p := range paths {
		index = max(index, blockIndex(p))
	}
	return index, err
}

// newest begins with the block that was the newest one when all was synced, and continues to the newest one.
func (b *files) newest(m mirror) error {
	paths, err := filepath.Glob(filepath.Join(b.home, msgsDir, blockPattern))
	if err != nil || len(paths) == 0 {
		return err
	}
	slices.SortFunc(paths, func(a, b string) int { return int(blockIndex(a)) - int(blockIndex(b)) })
	from := b.index
	for _, p := range paths {
		if blockIndex(p) < from {
			continue
		}
		if err := b.open(m, blockIndex(p)); err != nil {
			return err
		}
	}
	return nil
}

// syncMeta keeps a copy of the configuration when it has changed. It reports whether there is one.
func (b *files) syncMeta(m mirror) (bool, error) {
	at, err := os.Stat(filepath.Join(b.home, metaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return b.meta != nil, nil
	}
	if err != nil {
		return false, err
	}
	if b.meta != nil && os.SameFile(at, b.meta) && at.ModTime().Equal(b.meta.ModTime()) && at.Size() == b.meta.Size() {
		return true, nil
	}
	has, err := m.copyMeta(b.home, filepath.Base(b.home))
	if err != nil || !has {
		return has, err
	}
	// of a new stream nothing is synced yet
	if b.meta == nil {
		for dir := b.home; dir != m.dir && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if err := syncPath(dir); err != nil {
				return false, err
			}
		}
		if err := syncPath(m.dir); err != nil {
			return false, err
		}
	}
	b.meta = at
	return true, nil
}

// open continues with a block: it is synced with its name, and linked in the mirror, before anything rests on it.
func (b *files) open(m mirror, index uint32) error {
	f, err := os.Open(b.path(index))
	if errors.Is(err, fs.ErrNotExist) {
		// the broker has removed it: all of its messages are removed
		return nil
	}
	if err != nil {
		return err
	}
	b.close()
	b.index, b.file, b.at, b.size = index, f, 0, -1
	if err := b.scan(); err != nil {
		return err
	}
	if err := errors.Join(b.flush(), syncPath(filepath.Dir(b.path(index)))); err != nil {
		return err
	}
	to, err := m.of(b.path(index))
	if err != nil {
		return err
	}
	if _, err := os.Stat(to); err == nil {
		// the earlier version: the sweep replaces it
		return nil
	}
	return m.link(b.path(index), nil)
}

// same reopens the newest block if its path is another file now: the broker has written it again.
func (b *files) same(m mirror) error {
	at, err := os.Stat(b.path(b.index))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	opened, err := b.file.Stat()
	if err != nil || os.SameFile(at, opened) {
		return err
	}
	return b.open(m, b.index)
}

// flush syncs the newest block, if it has records that are not synced.
func (b *files) flush() error {
	if b.at == b.size {
		return nil
	}
	at := b.at
	if err := b.file.Sync(); err != nil {
		return err
	}
	b.size = at
	return nil
}

// scan reads the records that were added to the newest block. The last one may not be complete yet. Behind what is no
// record, nothing is known.
func (b *files) scan() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size-b.at < recordMin {
		return nil
	}
	buf := make([]byte, min(size-b.at, scanBytes))
	for b.at+recordMin <= size {
		n, err := b.file.ReadAt(buf[:min(size-b.at, int64(len(buf)))], b.at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		used, ok := b.records(buf[:n], size)
		if !ok {
			b.at = size
			return nil
		}
		if used == 0 {
			return nil
		}
	}
	return nil
}

// records reads the heads of the records in a part of the block that begins at b.at, and moves it behind them. It
// returns how many complete records there were, and false at the first bytes that are no record.
func (b *files) records(part []byte, size int64) (n int, ok bool) {
	for at := int64(0); at+recordHead <= int64(len(part)); n++ {
		length := int64(binary.LittleEndian.Uint32(part[at:]) &^ headerFlag)
		if length < recordMin || length > recordMax {
			return n, false
		}
		if b.at+length > size {
			return n, true
		}
		b.seen = max(b.seen, binary.LittleEndian.Uint64(part[at+4:])&^(erasedFlag|tombstoneFlag))
		b.at, at = b.at+length, at+length
	}
	return n, true
}

func (b *files) close() {
	if b.file != nil {
		// it was only read and synced
		_ = b.file.Close()
		b.file = nil
	}
}
