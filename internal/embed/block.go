package embed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/minio/highwayhash"
)

// The layout of a record in a block of nats-server's file store:
//
//	length(4) seq(8) time(8) subject length(2) subject [header length(4) header] body checksum(8)
//
// The highest bit of the length marks a header. The two highest bits of seq mark a record that only deletes.
const (
	recordHead      = 22
	recordSum       = 8
	recordMin       = recordHead + recordSum
	recordMax       = 32 << 20 // bytes; nats-server writes no longer record
	fileMax         = 64 << 20 // bytes; nats-server ends a block at 8 MiB, or after one record
	headerFlag      = 1 << 31
	headerLength    = 4
	erasedFlag      = 1 << 63
	tombstoneFlag   = 1 << 62
	seqGapMax       = 1 << 24    // a record with a larger gap before its seq is invalid
	keptDir         = "damaged"  // below the data directory: copies of damaged blocks
	blockPattern    = "*.blk"    // below a stream's directory of messages
	indexFile       = "index.db" // beside the blocks
	consumerFile    = "o.dat"    // in a consumer's directory
	consumerMagic   = 22
	consumerVersion = 2
	keptNameDigits  = 16   // of the digest in a kept block's name
	yearMin         = 2015 // an earlier time is invalid
	yearMax         = 2200 // a later time is invalid
)

// Record is one message in a stream's files.
type Record struct {
	Seq     uint64
	At      time.Time
	Subject string
	Header  []byte // as on the wire; nil without headers
	Body    []byte
}

// Damage is an unreadable part of a block.
type Damage struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"` // bytes from the start of the block
	Bytes  int    `json:"bytes"`
	// Reason why nothing of the file was read; empty for a part that is not readable.
	Reason string `json:"reason,omitempty"`
}

// String returns the place of the damage.
func (d Damage) String() string {
	if d.Reason != "" {
		return d.Path + ": " + d.Reason
	}
	return fmt.Sprintf("%s: %d bytes from %d on", d.Path, d.Bytes, d.Offset)
}

// ReadStream calls fn with the messages of a stream, in the order of their sequences, and returns the unreadable parts.
// It reads the files below a data directory without a broker: a broker cuts a block at the first unreadable record, and
// ReadStream also reads the records after it. It includes the kept copies of damaged blocks, and omits messages that
// the files mark as deleted. An error of fn ends it and is returned unchanged.
func ReadStream(dir, stream string, fn func(Record) error) ([]Damage, error) {
	paths, err := blocks(dir, stream)
	if err != nil {
		return nil, err
	}
	var damages []Damage
	all, gone := map[uint64]Record{}, map[uint64]bool{}
	for _, p := range paths {
		body, err := readRegular(p)
		if errors.Is(err, errForeign) {
			damages = append(damages, Damage{Path: p, Reason: err.Error()})
			continue
		}
		if err != nil {
			return damages, fmt.Errorf("read block: %w", err)
		}
		damages = append(damages, readBlock(p, stream, body, func(r Record, erases bool, _ []byte) {
			if erases {
				gone[r.Seq] = true
				return
			}
			all[r.Seq] = r
		})...)
	}
	seqs := make([]uint64, 0, len(all))
	for seq := range all {
		if !gone[seq] {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		if err := fn(all[seq]); err != nil {
			return damages, err
		}
	}
	return damages, nil
}

// Files that nats-server did not write are foreign.
var (
	errForeign = errors.New("not a file of the broker")
	// a read of a FIFO blocks, a read of a device may never end
	errNotRegular = fmt.Errorf("%w: not a regular file", errForeign)
	// a sparse file can have any size
	errFileTooLarge = fmt.Errorf("%w: larger than %d MiB", errForeign, fileMax>>20)
)

// readRegular reads a regular file up to the size that it has at the start. It fails with [errForeign] on larger files
// than nats-server writes, on other files, and on symbolic links.
func readRegular(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if info.Size() > fileMax {
		return nil, errFileTooLarge
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(f, info.Size()))
	return body, errors.Join(err, f.Close())
}

// blocks returns the files of a stream's messages: the kept copies, then the files in use.
func blocks(dir, stream string) ([]string, error) {
	var all []string
	for _, pattern := range []string{filepath.Join(dir, keptDir, stream, blockPattern),
		filepath.Join(dir, "jetstream", "*", "streams", stream, "msgs", blockPattern)} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("blocks of %s: %w", stream, err)
		}
		slices.SortFunc(found, func(a, b string) int { return int(blockIndex(a)) - int(blockIndex(b)) })
		all = append(all, found...)
	}
	return all, nil
}

// blockIndex returns the number at the start of a block's name.
func blockIndex(path string) uint32 {
	number, _, _ := strings.Cut(filepath.Base(path), ".")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// readBlock calls fn with every readable record of a block, also after an unreadable one.
func readBlock(path, stream string, body []byte, fn func(r Record, erases bool, raw []byte)) []Damage {
	key := sha256.Sum256([]byte(fmt.Sprintf("%s-%d", stream, blockIndex(path))))
	var damages []Damage
	last, bad := uint64(0), -1
	for at := 0; at < len(body); {
		r, flags, n, ok := readRecord(body[at:], key[:])
		if ok && bad >= 0 && last > 0 && (r.Seq <= last || r.Seq > last+seqGapMax) {
			// found by chance after a damage
			ok = false
		}
		if !ok {
			if bad < 0 {
				bad = at
			}
			at++
			continue
		}
		if bad >= 0 {
			damages, bad = append(damages, Damage{Path: path, Offset: bad, Bytes: at - bad}), -1
		}
		if flags == 0 {
			last = max(last, r.Seq)
		}
		if r.Seq > 0 {
			fn(r, flags != 0, body[at:at+n])
		}
		at += n
	}
	if bad >= 0 {
		damages = append(damages, Damage{Path: path, Offset: bad, Bytes: len(body) - bad})
	}
	return damages
}

// readRecord reads the record at the start of b. n is its length; ok is false if b starts with no valid record.
func readRecord(b, key []byte) (r Record, flags uint64, n int, ok bool) {
	if len(b) < recordMin {
		return r, 0, 0, false
	}
	length := binary.LittleEndian.Uint32(b)
	n, r.Seq = int(length&^headerFlag), binary.LittleEndian.Uint64(b[4:])
	r.At = time.Unix(0, int64(binary.LittleEndian.Uint64(b[12:]))).UTC()
	subject := int(binary.LittleEndian.Uint16(b[20:]))
	// of header and body
	from := recordHead + subject
	if length&headerFlag != 0 {
		from += headerLength
	}
	flags = r.Seq & (erasedFlag | tombstoneFlag)
	r.Seq &^= flags
	if n < recordMin || n > recordMax || n > len(b) || from > n-recordSum || flags == 0 &&
		(r.At.Year() < yearMin || r.At.Year() > yearMax) {
		return r, 0, 0, false
	}
	h, err := highwayhash.New64(key)
	// the key has the right length
	if err != nil {
		return r, 0, 0, false
	}
	for _, part := range [][]byte{b[4:20], b[recordHead : recordHead+subject], b[from : n-recordSum]} {
		// a hash never fails
		_, _ = h.Write(part)
	}
	if binary.LittleEndian.Uint64(b[n-recordSum:]) != binary.LittleEndian.Uint64(h.Sum(nil)) {
		return r, 0, 0, false
	}
	r.Subject, r.Body = string(b[recordHead:recordHead+subject]), b[from:n-recordSum]
	if length&headerFlag == 0 {
		return r, flags, n, true
	}
	header := int(binary.LittleEndian.Uint32(b[from-headerLength:]))
	if header > len(r.Body) {
		return r, 0, 0, false
	}
	r.Header, r.Body = r.Body[:header], r.Body[header:]
	return r, flags, n, true
}

// Salvage is [ReadStream] for the directory of a server that does not run. It fails with [ErrDirInUse] if a server
// runs, and with [ErrNotOurs] for another directory. It changes no data.
func Salvage(dir, stream string, fn func(Record) error) ([]Damage, error) {
	if _, err := os.Stat(filepath.Join(dir, markerFile)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNotOurs, dir, err)
	}
	l, err := takeLock(dir)
	if err != nil {
		return nil, err
	}
	damages, err := ReadStream(dir, stream, fn)
	return damages, errors.Join(err, l.release())
}

// mend makes the files of streams readable before the broker starts. The broker would cut a block at the first
// unreadable record and assign the later sequences again, and a damage that it has not found yet would block readers.
// mend keeps a copy of a damaged block and writes the block again without the unreadable parts. It moves the unreadable
// state of a consumer away: the broker would neither use nor replace it. It fails with [ErrForeignFile] on a file that
// the broker did not write. After a cut of the power there is no index, so a block that ends too early is mended, too.
func mend(dir string, streams []string, cut bool) ([]Damage, error) {
	var damages []Damage
	for _, stream := range streams {
		homes, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream))
		if err != nil {
			return nil, fmt.Errorf("files of %s: %w", stream, err)
		}
		for _, home := range homes {
			found, err := mendBlocks(filepath.Join(dir, keptDir, stream), stream, home, cut)
			damages = append(damages, found...)
			if err != nil {
				return damages, err
			}
			found, err = mendConsumers(filepath.Join(dir, keptDir, stream), home)
			damages = append(damages, found...)
			if err != nil {
				return damages, err
			}
		}
	}
	return damages, nil
}

// notRead returns the error of a file that cannot be read. The broker would read a foreign file, too, so it does not
// start.
func notRead(path string, err error) error {
	if errors.Is(err, errForeign) {
		return fmt.Errorf("%w: %s: %w: move it out of the data directory", ErrForeignFile, path, err)
	}
	return fmt.Errorf("read %s: %w", path, err)
}

func mendBlocks(kept, stream, home string, cut bool) ([]Damage, error) {
	paths, err := filepath.Glob(filepath.Join(home, "msgs", blockPattern))
	if err != nil {
		return nil, fmt.Errorf("blocks of %s: %w", stream, err)
	}
	slices.SortFunc(paths, func(a, b string) int { return int(blockIndex(a)) - int(blockIndex(b)) })
	var damages []Damage
	for i, p := range paths {
		body, err := readRegular(p)
		if err != nil {
			return damages, notRead(p, err)
		}
		good := make([]byte, 0, len(body))
		found := readBlock(p, stream, body, func(_ Record, _ bool, raw []byte) { good = append(good, raw...) })
		if len(found) == 0 {
			continue
		}
		damages = append(damages, found...)
		if err := keep(kept, p, body); err != nil {
			return damages, err
		}
		if torn := !cut && i == len(paths)-1 && len(found) == 1 && found[0].Offset+found[0].Bytes == len(body); torn {
			// the broker cuts here, and its index still has the last sequence
			continue
		}
		if err := replace(p, good); err != nil {
			return damages, err
		}
		if err := os.Remove(filepath.Join(home, "msgs", indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return damages, fmt.Errorf("mend %s: %w", p, err)
		}
		if err := syncPath(filepath.Join(home, "msgs")); err != nil {
			return damages, fmt.Errorf("mend %s: %w", p, err)
		}
	}
	return damages, nil
}

// mendConsumers moves away the consumers of a stream whose state is unreadable. Their acknowledged messages are
// delivered again.
func mendConsumers(kept, home string) ([]Damage, error) {
	paths, err := filepath.Glob(filepath.Join(home, "obs", "*", consumerFile))
	if err != nil {
		return nil, fmt.Errorf("consumers: %w", err)
	}
	var damages []Damage
	for _, p := range paths {
		body, err := readRegular(p)
		if err != nil {
			return damages, notRead(p, err)
		}
		if consumerReadable(body) {
			if floor := toItsFloor(body); floor != nil {
				if err := replace(p, floor); err != nil {
					return damages, err
				}
			}
			continue
		}
		damages = append(damages, Damage{Path: p, Bytes: len(body)})
		if err := os.MkdirAll(kept, dirMode); err != nil {
			return damages, fmt.Errorf("keep %s: %w", p, err)
		}
		sum := sha256.Sum256(body)
		to := filepath.Join(
			kept,
			"consumer-"+filepath.Base(filepath.Dir(p))+"."+hex.EncodeToString(sum[:])[:keptNameDigits],
		)
		err = errors.Join(
			os.RemoveAll(to),
			os.Rename(filepath.Dir(p), to),
			syncPath(filepath.Join(home, "obs")),
			syncPath(kept),
		)
		if err != nil {
			return damages, fmt.Errorf("keep %s: %w", p, err)
		}
	}
	return damages, nil
}

// toItsFloor returns the state of a consumer at its last acknowledgement without a gap, nil if that is the state
// already. Everything delivered after that is delivered again at once. A damaged pending entry cannot be detected: with
// a wrong time it is never delivered again, or keeps the broker busy, and the consumer's service is never ready.
func toItsFloor(b []byte) []byte {
	if len(b) < 2 || b[1] != consumerVersion {
		return nil
	}
	rest, floor := b[2:], []byte{consumerMagic, consumerVersion}
	var acknowledged []byte
	for i := range 4 {
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil
		}
		if i < 2 {
			acknowledged = append(acknowledged, rest[:n]...)
		}
		rest = rest[n:]
	}
	if len(bytes.Trim(rest, "\x00")) == 0 {
		// nothing is pending or redelivered
		return nil
	}
	floor = append(append(floor, acknowledged...), acknowledged...)
	return append(floor, 0, 0)
}

// consumerReadable reports whether nats-server can read the state of a consumer, and whether the state is plausible.
// The state has two bytes of a head, then numbers of variable length: four places, and the pending entries, each with
// its own place and its time. An empty state is valid: it is that of a new consumer. A consumer with more acknowledged
// than delivered messages would ignore later acknowledgements.
func consumerReadable(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if len(b) < 2 || b[0] != consumerMagic || b[1] < 1 || b[1] > consumerVersion {
		return false
	}
	// numbers of one pending entry
	each := int(b[1]) + 1
	b = b[2:]
	number := func() (uint64, bool) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	// as counted by the consumer, and in the stream
	var acknowledged, delivered [2]uint64
	for _, place := range []*uint64{&acknowledged[0], &acknowledged[1], &delivered[0], &delivered[1]} {
		var ok bool
		if *place, ok = number(); !ok {
			return false
		}
	}
	// the first version stores delivered relative to acknowledged
	absolute := each > consumerVersion
	if absolute && (acknowledged[0] > delivered[0] || acknowledged[1] > delivered[1]) {
		return false
	}
	pending, ok := number()
	if !ok || pending == 0 {
		// the server reads a missing end as zero
		return true
	}
	if _, ok := number(); !ok || pending > uint64(len(b)) {
		return false
	}
	for range pending {
		for range each {
			if _, ok := number(); !ok {
				return false
			}
		}
	}
	return true
}

// replace replaces a file atomically.
func replace(path string, body []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(body)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// keep stores a copy under a name that begins with the block's name.
func keep(dir, path string, body []byte) error {
	sum := sha256.Sum256(body)
	name := fmt.Sprintf("%d.%s.blk", blockIndex(path), hex.EncodeToString(sum[:])[:keptNameDigits])
	to := filepath.Join(dir, name)
	if _, err := os.Stat(to); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	if err := replace(to, body); err != nil {
		return err
	}
	if err := syncPath(dir); err != nil {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	return nil
}
