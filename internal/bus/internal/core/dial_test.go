package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// network is a network of one name: how each attempt ends, in the order in which they begin.
type network struct {
	mu     sync.Mutex
	begun  []string // addresses
	at     []time.Duration
	closed int
	start  time.Time
}

type fakeConn struct {
	net.Conn
	n    *network
	name string
}

func (c *fakeConn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.closed++
	return nil
}

// TestDial: an attempt that is not answered does not hold up the next one, one that is slow still counts, and a refusal
// is the end when every address has refused. Connections that are too late are closed.
func TestDial(t *testing.T) {
	const silent = time.Hour
	refused := errors.New("refused")
	type end struct {
		after time.Duration
		err   error
	}
	ok, no := end{}, end{err: refused}
	for _, tt := range []struct {
		name   string
		hosts  int
		ends   []end // of the attempts; the last one repeats
		took   time.Duration
		begun  int
		closed int
		err    string
	}{
		{"at once", 3, []end{ok}, 0, 1, 0, ""},
		{"a node is cut off", 3, []end{{after: silent}, ok}, 500 * time.Millisecond, 2, 0, ""},
		{"behind one address a node is cut off", 1, []end{{after: silent}, ok}, 500 * time.Millisecond, 2, 0, ""},
		{"two nodes are cut off", 3, []end{{after: silent}, {after: silent}, ok}, time.Second, 3, 0, ""},
		{"all are cut off", 3, []end{{after: silent}}, 2 * time.Second, 4, 0, "no answer within 2000 ms"},
		{"a slow network", 1, []end{{after: 1800 * time.Millisecond}}, 1800 * time.Millisecond, 4, 0, ""},
		{"a node refuses", 3, []end{no, ok}, 0, 2, 0, ""},
		{"all refuse", 3, []end{no}, 0, 3, 0, "refused"},
		{"one address refuses", 1, []end{no}, 0, 1, 0, "refused"},
		{"one is cut off, the others refuse", 3, []end{{after: silent}, no, no, ok}, time.Second, 4, 0, ""},
		{"two connect at one instant", 1, []end{{after: 700 * time.Millisecond}, {after: 200 * time.Millisecond}},
			700 * time.Millisecond, 2, 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &network{start: time.Now()}
				d := &dialer{
					lookup: func(_ context.Context, host string) (all []string, err error) {
						for i := range tt.hosts {
							all = append(all, fmt.Sprintf("10.0.0.%d", i))
						}
						return all, nil
					},
					dial: func(ctx context.Context, _, address string) (net.Conn, error) {
						n.mu.Lock()
						e := tt.ends[min(len(n.begun), len(tt.ends)-1)]
						n.begun, n.at = append(n.begun, address), append(n.at, time.Since(n.start))
						n.mu.Unlock()
						if tt.closed == 0 {
							select {
							case <-time.After(e.after):
							case <-ctx.Done():
								return nil, ctx.Err()
							}
						} else {
							// it connects at the instant at which it is cancelled
							<-time.After(e.after)
						}
						if e.err != nil {
							return nil, e.err
						}
						return &fakeConn{n: n, name: address}, nil
					}}
				c, err := d.Dial("tcp", "nats:4222")
				took := time.Since(n.start)
				// the attempts that lost have ended
				<-time.After(time.Minute)
				synctest.Wait()
				n.mu.Lock()
				defer n.mu.Unlock()
				switch {
				case tt.err == "" && (err != nil || c == nil):
					t.Errorf("not connected: %v", err)
				case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
					t.Errorf("error %v, want %q", err, tt.err)
				}
				// at the end either order is right
				if n.at[len(n.at)-1] == connectTimeoutMS*time.Millisecond {
					n.begun, n.at = n.begun[:len(n.begun)-1], n.at[:len(n.at)-1]
				}
				if took != tt.took || len(n.begun) != tt.begun || n.closed != tt.closed {
					t.Errorf("took %s, %d attempts at %v, %d closed; want %s, %d, %d", took, len(n.begun), n.at,
						n.closed, tt.took, tt.begun, tt.closed)
				}
				first := slices.Clone(n.begun[:min(len(n.begun), tt.hosts)])
				slices.Sort(first)
				if len(slices.Compact(first)) != min(len(n.begun), tt.hosts) {
					t.Errorf("attempts at %v: an address was tried again before the others", n.begun)
				}
				for _, to := range n.begun {
					if !strings.HasSuffix(to, ":4222") {
						t.Errorf("an attempt at %s", to)
					}
				}
			})
		})
	}
}

// TestDialSpreads: clients of one name spread over its addresses.
func TestDialSpreads(t *testing.T) {
	two := []string{"10.0.0.1", "10.0.0.2"}
	d := &dialer{lookup: func(context.Context, string) ([]string, error) { return slices.Clone(two), nil }}
	first := map[string]int{}
	for range 200 {
		all, err := d.addresses(t.Context(), "nats:4222")
		if err != nil {
			t.Fatal(err)
		}
		first[all[0]]++
	}
	if len(first) != 2 {
		t.Errorf("the first attempts are all at %v", first)
	}
	for _, wrong := range []string{"nats", "", "[::1"} {
		if _, err := d.addresses(t.Context(), wrong); err == nil {
			t.Errorf("%q is an address", wrong)
		}
	}
}
