package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/embed"
)

// ErrInUse says that another sidecar serves a socket.
var ErrInUse = errors.New("another sidecar serves this socket")

const (
	socketMode = 0o600 // only the user of the sidecar connects
	lockSuffix = ".lock"

	asideFolder = ".s*"            // of the socket until it is ready
	asideName   = "s"              // of the socket in it
	asideMax    = ".s4294967295/s" // the longest of both
)

// pathBytesMax is the longest path of a socket that the system takes; a zero byte follows it.
const pathBytesMax = len(syscall.RawSockaddrUnix{}.Path) - 1

// Socket is a unix socket that agents connect to.
type Socket struct {
	path string
	l    *net.UnixListener
	lock *os.File
}

// Listen makes the socket at a path, in place of one that a dead sidecar left. The lock of the file beside it ends with
// the process, so a socket that is served is not replaced: ErrInUse.
func Listen(path string) (*Socket, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is there, and is no socket", path)
	}
	if most := max(len(path), len(filepath.Join(filepath.Dir(path), asideMax))); most > pathBytesMax {
		return nil, fmt.Errorf("the path of the socket is %d bytes too long: name one in a folder with a "+
			"shorter path: %s", most-pathBytesMax, path)
	}
	lock, err := os.OpenFile(path+lockSuffix, os.O_CREATE|os.O_RDWR, socketMode)
	if err != nil {
		return nil, err
	}
	locked, err := embed.LockAlone(lock)
	if err == nil && !locked {
		err = fmt.Errorf("%w: %s", ErrInUse, path)
	}
	var l *net.UnixListener
	if err == nil {
		l, err = listenAside(path)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Socket{path: path, l: l, lock: lock}, nil
}

// listenAside makes the socket in a folder of its own, which only this user can enter, and then moves it to its path:
// at no time can another user connect.
func listenAside(path string) (*net.UnixListener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), asideFolder)
	if err != nil {
		return nil, err
	}
	aside := filepath.Join(dir, asideName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: aside, Net: "unix"})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	l.SetUnlinkOnClose(false)
	err = errors.Join(os.Chmod(aside, socketMode), os.Rename(aside, path), os.RemoveAll(dir))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Serve serves each connection, until ctx ends and all connections have ended. Each is one process of a harness.
func (s *Socket) Serve(ctx context.Context, cfg Config) error {
	// Accept reports it
	stop := context.AfterFunc(ctx, func() { _ = s.l.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		c, err := s.l.AcceptUnix()
		if ctx.Err() != nil {
			if err == nil {
				err = c.Close()
			}
			return errors.Join(ignoreClosed(err), os.Remove(s.path), s.lock.Close())
		}
		if err != nil {
			return errors.Join(err, s.l.Close(), os.Remove(s.path), s.lock.Close())
		}
		running.Go(func() {
			if err := Serve(ctx, cfg, c, c); err != nil && cfg.Harness.Log != nil {
				cfg.Harness.Log.Warn("a connection has ended", "err", err)
			}
		})
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
