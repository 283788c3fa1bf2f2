package power

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// sectorBytes is the size of an atomic write: a longer write can be torn between two sectors.
const sectorBytes = 512

// disk is a disk with a volatile cache, as one file of a FUSE file system. A write goes to the cache. A flush writes
// the whole cache to the medium. After a power cut, each sector in the cache has one of its contents since the last
// flush, or the content on the medium.
type disk struct {
	fs.Inode

	mu      sync.Mutex
	powered *sync.Cond
	shows   []byte             // what a read returns
	medium  []byte             // what survives a cut
	cache   map[int64][][]byte // by sector: its contents since the last flush, oldest first
	used    map[int64]bool     // pages that were written; the others are zero
	frozen  bool               // the power is cut: all operations wait
	removed bool               // the machine has ended: all operations fail
	flushes int
}

// newDisk returns an empty disk. A page takes memory only after a write.
func newDisk(size int) (*disk, error) {
	d := &disk{cache: map[int64][][]byte{}, used: map[int64]bool{}}
	d.powered = sync.NewCond(&d.mu)
	for _, b := range []*[]byte{&d.shows, &d.medium} {
		m, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
		if err != nil {
			return nil, fmt.Errorf("power: a disk of %d bytes: %w", size, err)
		}
		*b = m
	}
	return d, nil
}

func (d *disk) free() error {
	for _, b := range [][]byte{d.shows, d.medium} {
		if err := syscall.Munmap(b); err != nil {
			return err
		}
	}
	return nil
}

// alive waits while the power is cut, and reports whether the machine still exists. The caller holds the disk's lock.
func (d *disk) alive() bool {
	for d.frozen && !d.removed {
		d.powered.Wait()
	}
	return !d.removed
}

// Getattr implements [fs.NodeGetattrer].
func (d *disk) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(len(d.shows))
	return 0
}

// Setattr implements [fs.NodeSetattrer]: it ignores times, and the size does not change.
func (d *disk) Setattr(ctx context.Context, f fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return d.Getattr(ctx, f, out)
}

// Open implements [fs.NodeOpener].
func (d *disk) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) { return nil, 0, 0 }

// Read implements [fs.NodeReader].
func (d *disk) Read(_ context.Context, _ fs.FileHandle, to []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.alive() {
		return nil, syscall.EIO
	}
	if off >= int64(len(d.shows)) {
		return fuse.ReadResultData(nil), 0
	}
	n := copy(to, d.shows[off:])
	return fuse.ReadResultData(to[:n]), 0
}

// Write implements [fs.NodeWriter].
func (d *disk) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !d.alive():
		return 0, syscall.EIO
	case off%sectorBytes != 0 || len(data)%sectorBytes != 0 || off+int64(len(data)) > int64(len(d.shows)):
		return 0, syscall.EINVAL
	}
	copy(d.shows[off:], data)
	for at := 0; at < len(data); at += sectorBytes {
		n := (off + int64(at)) / sectorBytes
		d.used[n*sectorBytes/pageBytes] = true
		d.cache[n] = append(d.cache[n], slices.Clone(data[at:at+sectorBytes]))
	}
	return uint32(len(data)), 0
}

// Fsync implements [fs.NodeFsyncer]: it flushes the disk.
func (d *disk) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.alive() {
		return syscall.EIO
	}
	for n, contents := range d.cache {
		copy(d.medium[n*sectorBytes:], contents[len(contents)-1])
	}
	clear(d.cache)
	d.flushes++
	return 0
}

// freeze cuts the power: from this instant no read, write or flush returns.
func (d *disk) freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = true
}

// remove lets all waiting operations fail. The machine's processes must have been killed.
func (d *disk) remove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removed = true
	d.powered.Broadcast()
}

// survivor returns the disk after the power is back. It keeps a random part of the cache, sector by sector. It returns
// the number of sectors in the cache, and of those that differ from their last write.
func (d *disk) survivor(rnd *rand.Rand) (after *disk, cached, lost int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if after, err = newDisk(len(d.medium)); err != nil {
		return nil, 0, 0, err
	}
	d.copyUsed(after, after.medium, d.medium)
	sectors := make([]int64, 0, len(d.cache))
	for n := range d.cache {
		sectors = append(sectors, n)
	}
	// the order makes the result depend only on the seed
	slices.Sort(sectors)
	most := []float64{0, 0.1, 0.5, 0.9, 1}[rnd.IntN(5)]
	for _, n := range sectors {
		contents := d.cache[n]
		switch {
		case rnd.Float64() >= most:
			lost++
		default:
			i := len(contents) - 1
			if rnd.IntN(4) == 0 {
				i = rnd.IntN(len(contents))
			}
			if i < len(contents)-1 {
				lost++
			}
			copy(after.medium[n*sectorBytes:], contents[i])
		}
	}
	d.copyUsed(after, after.shows, after.medium)
	return after, len(sectors), lost, nil
}

// pageBytes is the size of a page.
const pageBytes = 4 << 10

// copyUsed copies the pages that were written.
func (d *disk) copyUsed(after *disk, to, from []byte) {
	for page := range d.used {
		after.used[page] = true
		copy(to[page*pageBytes:(page+1)*pageBytes], from[page*pageBytes:])
	}
}

// directory is the file system's only directory. It has the disk in it.
type directory struct {
	fs.Inode
	disk *disk
}

// diskName is the name of the disk's file.
const diskName = "disk"

// OnAdd implements [fs.NodeOnAdder].
func (r *directory) OnAdd(ctx context.Context) {
	r.AddChild(diskName, r.NewPersistentInode(ctx, r.disk, fs.StableAttr{Mode: syscall.S_IFREG}), false)
}

// serve mounts the disk's file system.
func (d *disk) serve(at string) (*fuse.Server, error) {
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, err
	}
	return fs.Mount(at, &directory{disk: d}, &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, FsName: "holdfast-disk", MaxWrite: 1 << 20,
	}})
}
