package core

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// TestASilentConnectionIsLeft: a read fails when no byte has arrived for 3 s, and at no other time.
func TestASilentConnectionIsLeft(t *testing.T) {
	const minute = 60_000
	// in ms from the start; to 0: none
	type deadline struct{ at, to int }
	for name, x := range map[string]struct {
		bytes     []int      // when a byte arrives
		write     [2]int     // when a write begins to wait, and for how long
		deadlines []deadline // of the caller
		want      error
		at        int // when the read fails
	}{
		"no byte":             {want: errSilent, at: 3_000},
		"a byte in the third": {bytes: []int{2_900}, want: errSilent, at: 5_900},
		"a byte now and then": {bytes: []int{2_900, 5_800, 8_700, 11_600}, want: errSilent, at: 14_600},
		"a write waits":       {write: [2]int{100, 8_500}, want: errSilent, at: 11_000},
		"a write waited":      {write: [2]int{1_100, 1_000}, want: errSilent, at: 4_000},
		"short writes":        {write: [2]int{1_900, 101}, want: errSilent, at: 3_000},
		"a deadline":          {deadlines: []deadline{{0, 5_000}}, want: os.ErrDeadlineExceeded, at: 5_000},
		"a short deadline":    {deadlines: []deadline{{100, 200}}, want: os.ErrDeadlineExceeded, at: 200},
		"a deadline is moved": {deadlines: []deadline{{0, 500}, {400, minute}}, want: os.ErrDeadlineExceeded,
			at: minute},
		"a passed deadline":    {deadlines: []deadline{{700, 100}}, want: os.ErrDeadlineExceeded, at: 700},
		"no deadline again":    {deadlines: []deadline{{0, 5_000}, {4_000, 0}}, want: errSilent, at: 7_000},
		"a deadline, not ours": {deadlines: []deadline{{2_500, 9_000}}, want: os.ErrDeadlineExceeded, at: 9_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				inner, broker := net.Pipe()
				conn := &audible{Conn: inner}
				at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
				go func() {
					for _, ms := range x.bytes {
						<-time.After(time.Until(at(ms)))
						if _, err := broker.Write([]byte{'.'}); err != nil {
							t.Error(err)
						}
					}
				}()
				go func() {
					if x.write[1] == 0 {
						return
					}
					<-time.After(time.Until(at(x.write[0])))
					if err := conn.SetWriteDeadline(at(x.write[0] + x.write[1])); err != nil {
						t.Error(err)
					}
					if _, err := conn.Write([]byte{'.'}); err == nil {
						t.Error("written, and nothing reads it")
					}
				}()
				go func() {
					for _, d := range x.deadlines {
						<-time.After(time.Until(at(d.at)))
						set, to := conn.SetDeadline, time.Time{}
						if d.to > 0 {
							set, to = conn.SetReadDeadline, at(d.to)
						}
						if err := set(to); err != nil {
							t.Error(err)
						}
					}
				}()
				// a setting of the start is kept
				synctest.Wait()
				n, err := 0, error(nil)
				for buf := make([]byte, 8); err == nil; {
					var got int
					got, err = conn.Read(buf)
					n += got
				}
				if took := time.Since(begin); !errors.Is(err, x.want) || took != at(x.at).Sub(begin) {
					t.Errorf("after %s: %v; want %v after %d ms", took, err, x.want, x.at)
				}
				if n != len(x.bytes) {
					t.Errorf("%d bytes read of %d", n, len(x.bytes))
				}
				_, _ = conn.Close(), broker.Close()
				synctest.Wait()
			})
		})
	}
}

// sleeper is a connection of a process that is stopped for a minute in its first read. The broker answers what it is
// sent afterwards.
type sleeper struct {
	net.Conn
	reads, silent int // reads until now, and of how many nothing is read
}

func (s *sleeper) SetReadDeadline(time.Time) error { return nil }

func (s *sleeper) Read(b []byte) (int, error) {
	s.reads++
	if s.reads == 1 {
		<-time.After(time.Minute)
	}
	if s.reads <= s.silent {
		return 0, os.ErrDeadlineExceeded
	}
	return copy(b, "PONG\r\n"), nil
}

// TestAProcessThatWasAsleepReads: a process that was stopped for a minute keeps a connection that lives.
func TestAProcessThatWasAsleepReads(t *testing.T) {
	for silent := range 3 {
		synctest.Test(t, func(t *testing.T) {
			conn := &audible{Conn: &sleeper{silent: silent}}
			if n, err := conn.Read(make([]byte, 8)); err != nil || n == 0 {
				t.Errorf("after %d reads without a byte: %v", silent, err)
			}
		})
	}
	conn := &audible{Conn: &sleeper{reads: 1, silent: silenceTries + 1}}
	if _, err := conn.Read(make([]byte, 8)); !errors.Is(err, errSilent) {
		t.Errorf("without a byte: %v", err)
	}
}

// piped is an embedded server that says nothing.
type piped struct{ t *testing.T }

func (p piped) InProcessConn() (net.Conn, error) {
	client, server := net.Pipe()
	p.t.Cleanup(func() { _ = server.Close() })
	return client, nil
}

// TestASilentEmbeddedBrokerIsLeft: the connections to an embedded server have the same rule.
func TestASilentEmbeddedBrokerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Conn{Config: Config{Server: piped{t}}}
		var o nats.Options
		for _, option := range c.options(nil) {
			if err := option(&o); err != nil {
				t.Fatal(err)
			}
		}
		conn, err := o.InProcessServer.InProcessConn()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		began := time.Now()
		if _, err := conn.Read(make([]byte, 8)); !errors.Is(err, errSilent) || time.Since(began) != 3*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// endless is a connection on which no deadline can be set, so that a read from it could last for ever.
type endless struct {
	net.Conn
	reads int
}

var errNoDeadline = errors.New("no deadline")

func (e *endless) SetReadDeadline(time.Time) error { return errNoDeadline }

func (e *endless) Read(b []byte) (int, error) {
	e.reads++
	return copy(b, "PONG\r\n"), nil
}

// TestNothingIsReadWithoutALimit: a read whose deadline cannot be set fails, instead of waiting for ever.
func TestNothingIsReadWithoutALimit(t *testing.T) {
	inner := &endless{}
	if _, err := (&audible{Conn: inner}).Read(make([]byte, 8)); !errors.Is(err, errNoDeadline) || inner.reads != 0 {
		t.Errorf("%v after %d reads", err, inner.reads)
	}
}

// ended is an embedded server that has ended.
type ended struct{}

func (ended) InProcessConn() (net.Conn, error) { return nil, net.ErrClosed }

// TestAnEmbeddedBrokerThatHasEnded: there is no connection to it, and none is returned.
func TestAnEmbeddedBrokerThatHasEnded(t *testing.T) {
	if conn, err := (audibly{ended{}}).InProcessConn(); conn != nil || !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, %v", conn, err)
	}
}
