package core

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// A client leaves a connection on which no byte arrives for silenceTries times silenceMS, although it sends a ping each
// [pingIntervalMS]. A ping that is answered late is no reason: on a slow link the answer waits behind other data.
const (
	silenceMS    = 1_000 // at least pingIntervalMS, so that each try contains a ping
	silenceTries = 3
	blockedMS    = 500 // a write that has lasted this long waits for the broker to read
)

// errSilent is the reason for the end of a connection on which nothing arrives.
var errSilent = errors.New("no byte from the broker")

// audible is a connection that fails when the broker is silent. The time is counted in tries of a read, so that a
// process that was asleep reads what has arrived meanwhile, and sends pings before it gives up. A try during which a
// write waits does not count: the client library sends no ping then, and the write has a time limit of its own.
//
// A deadline of the caller has priority: it replaces the tries.
type audible struct {
	net.Conn

	mu       sync.Mutex
	deadline time.Time // of the caller for reads; zero: none
	writes   int       // in progress
	since    time.Time // when the oldest of them began
}

// Read implements [net.Conn].
func (a *audible) Read(b []byte) (int, error) {
	for silent := 0; ; {
		if err := a.arm(); err != nil {
			return 0, err
		}
		n, err := a.Conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		expired, counts := a.timedOut(time.Now())
		if expired {
			return n, err
		}
		if counts {
			silent++
		}
		if silent == silenceTries {
			return 0, fmt.Errorf("%w for %d ms", errSilent, silenceTries*silenceMS)
		}
	}
}

// arm sets the deadline of one try.
func (a *audible) arm() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.deadline
	if at.IsZero() {
		at = time.Now().Add(silenceMS * time.Millisecond)
	}
	return a.Conn.SetReadDeadline(at)
}

// timedOut reports, of a try that ended at now without a byte, whether the caller's deadline has passed, and whether
// the try counts.
func (a *audible) timedOut(now time.Time) (expired, counts bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.deadline.IsZero() {
		return !now.Before(a.deadline), false
	}
	return false, a.writes == 0 || now.Sub(a.since) < blockedMS*time.Millisecond
}

// Write implements [net.Conn].
func (a *audible) Write(b []byte) (int, error) {
	a.mu.Lock()
	if a.writes++; a.writes == 1 {
		a.since = time.Now()
	}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.writes--
	}()
	return a.Conn.Write(b)
}

// SetReadDeadline implements [net.Conn].
func (a *audible) SetReadDeadline(t time.Time) error {
	a.mu.Lock()
	a.deadline = t
	a.mu.Unlock()
	return a.arm()
}

// SetDeadline implements [net.Conn].
func (a *audible) SetDeadline(t time.Time) error {
	return errors.Join(a.SetReadDeadline(t), a.SetWriteDeadline(t))
}

// audibly is an embedded server whose connections fail when it is silent.
type audibly struct{ InProcess }

// InProcessConn implements [InProcess].
func (s audibly) InProcessConn() (net.Conn, error) {
	conn, err := s.InProcess.InProcessConn()
	if err != nil {
		return nil, err
	}
	return &audible{Conn: conn}, nil
}
