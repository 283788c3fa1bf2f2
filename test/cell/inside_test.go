package cell

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/test/program"
)

// Variables of a process of this binary.
const (
	insideVariable = "HOLDFAST_CELL_INSIDE" // it has namespaces of its own; the value is the paths of the programs
	probeVariable  = "HOLDFAST_CELL_PROBE"  // it asks this URL and prints the answer
	probeTimeout   = 5 * time.Second
)

var (
	binary     string // the path of holdfast
	natsServer string // the path of nats-server
)

// TestMain runs the tests in network and mount namespaces of their own where the machine permits it, so that nodes
// have the addresses and ports of the manifests, can be cut off, and have file systems of a limited size.
func TestMain(m *testing.M) {
	if url := os.Getenv(probeVariable); url != "" {
		os.Exit(probe(url))
	}
	if paths := os.Getenv(insideVariable); paths != "" {
		binary, natsServer, _ = strings.Cut(paths, ":")
		if err := settleInside(); err != nil {
			fmt.Fprintln(os.Stderr, "cell:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	os.Exit(program.Main(func() int {
		if !isolated {
			return m.Run()
		}
		if err := namespaces(exec.Command("true")).Run(); err != nil {
			fmt.Printf("NOT RUN in namespaces, but on loopback: %v\n", err)
			return m.Run()
		}
		return again()
	}, map[string]*string{program.Holdfast: &binary, program.NATSServer: &natsServer}))
}

// namespaces gives a command network and mount namespaces of its own; a process that is not root becomes root in a
// user namespace for that.
func namespaces(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return cmd
}

// again runs this binary in namespaces and returns its exit status.
func again() int {
	cmd := namespaces(exec.Command(os.Args[0], os.Args[1:]...))
	cmd.Env = append(os.Environ(), insideVariable+"="+binary+":"+natsServer)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cell:", err)
		return 1
	}
	return 0
}

// settleInside makes the namespaces usable: mounts stay in them, the loopback device is up, names of network
// namespaces and the table of hosts are this process's own.
func settleInside() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("a mount namespace: %w", err)
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	_, err := run("ip", "link", "set", "lo", "up")
	return err
}

// run runs a command and returns what it prints.
func run(args ...string) (string, error) {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// probe prints what a URL answers. Its exit status is 0 if that is a success, as wget's is.
func probe(url string) int {
	client := http.Client{Timeout: probeTimeout}
	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	body, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	fmt.Printf("%s\n", body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		return 1
	}
	return 0
}

// disk is a file system of a limited size.
type disk struct {
	dir    string
	filler string // the file that takes the rest of it
}

// newDisk mounts a file system of so many bytes. mounted is false where the machine does not permit it; then dir is
// an ordinary directory.
func newDisk(t *testing.T, bytes int) (d disk, mounted bool) {
	t.Helper()
	d.dir = t.TempDir()
	d.filler = filepath.Join(d.dir, "other-data")
	if os.Getenv(insideVariable) == "" {
		return d, false
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return d, true
}

// leave takes the room of the file system but for so many bytes.
func (d disk) leave(t *testing.T, bytes int64) {
	t.Helper()
	var s syscall.Statfs_t
	err := syscall.Statfs(d.dir, &s)
	if err == nil {
		err = os.WriteFile(d.filler, make([]byte, max(0, int64(s.Bavail)*s.Bsize-bytes)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes until the file system has no room.
func (d disk) fill(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(d.filler, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := 1 << 20; chunk > 0; {
		n, err := f.Write(make([]byte, chunk))
		switch {
		case errors.Is(err, syscall.ENOSPC) && n == 0:
			chunk /= 2
		case err != nil && !errors.Is(err, syscall.ENOSPC):
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// empty gives the room back.
func (d disk) empty(t *testing.T) {
	t.Helper()
	if err := os.Remove(d.filler); err != nil {
		t.Fatal(err)
	}
}
