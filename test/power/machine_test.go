package power

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// kind is a file system.
type kind struct {
	name    string
	size    int      // of the disk, in bytes
	make    []string // the command that creates it on a device
	options string   // mount options
}

// diskBytes is the size of a disk: the broker reserves room for its streams. Unwritten pages take no memory.
const diskBytes = 16 << 30

// kinds are the tested file systems.
var kinds = []kind{
	{"ext4", diskBytes, []string{"mkfs.ext4", "-q", "-F", "-N", "4096", "-J", "size=16", "-E",
		"nodiscard,lazy_itable_init=0,lazy_journal_init=0"}, "rw"},
	{"xfs", diskBytes, []string{"mkfs.xfs", "-q", "-f", "-K"}, "nouuid"},
}

// machine is a disk with a mounted file system, until its power is cut.
type machine struct {
	dir    string
	kind   kind
	disk   *disk
	served *fuse.Server
	loop   string
	at     string // the mount point
	powers int
	cuts   int // after which the power came back
}

// newMachine returns a machine with an empty file system.
func newMachine(t *testing.T, k kind) *machine {
	t.Helper()
	d, err := newDisk(k.size)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{dir: t.TempDir(), kind: k, disk: d}
	if err := m.on(true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.disk.freeze()
		if err := m.off(); err != nil {
			t.Error(err)
		}
		if err := m.disk.free(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// on serves the disk and mounts its file system. If fresh is set, it creates the file system first.
func (m *machine) on(fresh bool) (err error) {
	m.powers++
	if err := m.boot(); err != nil {
		return err
	}
	fused := filepath.Join(m.dir, fmt.Sprintf("fuse-%d", m.powers))
	m.at = filepath.Join(m.dir, fmt.Sprintf("mnt-%d", m.powers))
	if m.served, err = m.disk.serve(fused); err != nil {
		return fmt.Errorf("power: FUSE: %w", err)
	}
	loop, err := run("losetup", "--find", "--show", filepath.Join(fused, diskName))
	if err != nil {
		return err
	}
	m.loop = strings.TrimSpace(loop)
	if fresh {
		if _, err := run(append(m.kind.make, m.loop)...); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(m.at, 0o700); err != nil {
		return err
	}
	_, err = run("mount", "-t", m.kind.name, "-o", m.kind.options, m.loop, m.at)
	return err
}

// boot gives the machine another boot id: the system's own is covered, in the mount namespace of this process.
func (m *machine) boot() error {
	const at = "/proc/sys/kernel/random/boot_id"
	for syscall.Unmount(at, syscall.MNT_DETACH) == nil {
	}
	path := filepath.Join(m.dir, fmt.Sprintf("boot-%d", m.powers))
	if err := os.WriteFile(path, []byte(m.dir+strconv.Itoa(m.powers)+"\n"), 0o600); err != nil {
		return err
	}
	if err := syscall.Mount(path, at, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("power: another boot id: %w", err)
	}
	return nil
}

// off removes the rest of a machine after a cut. Its processes must have been killed. The file system cannot write any
// more, so its errors are expected.
func (m *machine) off() error {
	m.disk.remove()
	var errs []error
	if err := syscall.Unmount(m.at, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
		errs = append(errs, fmt.Errorf("power: unmount %s: %w", m.at, err))
	}
	if _, err := run("losetup", "--detach", m.loop); err != nil {
		errs = append(errs, err)
	}
	// The loop device may still use it.
	if err := m.served.Unmount(); err != nil {
		if err := syscall.Unmount(filepath.Join(m.dir, fmt.Sprintf("fuse-%d", m.powers)),
			syscall.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("power: unmount the disk: %w", err))
		}
	}
	return errors.Join(errs...)
}

// back restores the machine's power, with the surviving part of its disk.
func (m *machine) back(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	after, cached, lost, err := m.disk.survivor(rnd)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.off(), m.disk.free()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d flushes, %d sectors in the cache, %d of them not as last written", m.kind.name, m.disk.flushes,
		cached, lost)
	m.disk, m.cuts = after, m.cuts+1
	if err := m.on(false); err != nil {
		t.Fatalf("the power is back: %v", err)
	}
}

// run runs a command and returns its output.
func run(args ...string) (string, error) {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("power: %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
