// Package power cuts the power of the machine on which a broker runs. It checks that everything that the broker
// acknowledged is there when the power is back.
//
// The machine's disk is a FUSE file with a volatile cache. A loop device makes a block device of it, with a real file
// system. A cut first stops the disk and then kills the processes, so there is no acknowledgement after the cut.
// Flushed data survives. Of the other data a random part survives, torn at 512 bytes.
package power

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/test/child"
)

const (
	root           = "../.."
	insideVariable = "HOLDFAST_POWER_INSIDE" // this process has its own mount namespace
	roleBroker     = "broker"
)

var binary string // path of the binary holdfast

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := main(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func main(m *testing.M) (int, error) {
	switch {
	case child.Role() == roleBroker:
		return 0, broker()
	case os.Getenv(insideVariable) != "":
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			return 1, fmt.Errorf("power: a mount namespace: %w", err)
		}
		dir, err := os.MkdirTemp("", "holdfast-power")
		if err != nil {
			return 1, err
		}
		binary = filepath.Join(dir, "holdfast")
		build := exec.Command("go", "build", "-o", binary, "./cmd/holdfast")
		build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("power: build: %w\n%s", err, out)
		}
		return m.Run(), os.RemoveAll(dir)
	}
	if err := permitted(); err != nil {
		fmt.Printf("NOT RUN: test/power needs root, /dev/fuse, loop devices, mkfs.ext4 and mkfs.xfs, and this "+
			"machine has not got them: %v\n", err)
		return 0, nil
	}
	inside := exec.Command(os.Args[0], os.Args[1:]...)
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := inside.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// permitted returns nil if the tests may mount a disk of their own on this machine.
func permitted() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("not root"))
	}
	for _, device := range []string{"/dev/fuse", "/dev/loop-control"} {
		f, err := os.OpenFile(device, os.O_RDWR, 0)
		if err == nil {
			err = f.Close()
		}
		errs = append(errs, err)
	}
	for _, name := range []string{"losetup", "mount", "mkfs.ext4", "mkfs.xfs"} {
		_, err := exec.LookPath(name)
		errs = append(errs, err)
	}
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	return errors.Join(append(errs, probe.Run())...)
}

// broker is one broker of several, or one whose writes are not synced.
func broker() error {
	var n struct{ Config embed.Config }
	if err := child.Settings(&n); err != nil {
		return err
	}
	cfg := n.Config
	cfg.Log = zerolog.New(os.Stderr)
	srv, err := embed.Start(context.Background(), cfg)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	b, err := bus.Open(ctx, bus.Config{Server: srv, Name: "syncs"})
	if err != nil {
		return err
	}
	go func() {
		if err := b.ServeSyncs(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := child.Print(srv.URL()); err != nil {
		return err
	}
	<-child.Orders(context.Background())
	return nil
}
