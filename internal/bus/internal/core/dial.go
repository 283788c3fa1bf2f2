package core

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// dialAgainMS is the time without an answer after which a further attempt begins beside the earlier ones.
const dialAgainMS = 500

// dialer connects to the address of a broker. Behind one name or one address there may be several nodes, and the one
// that an attempt reaches may be cut off: its packets are dropped, and the attempt does not end. So a further attempt
// begins each [dialAgainMS], at the next address of the name, and the first connection counts. A slow network is no
// reason to fail: earlier attempts continue.
type dialer struct {
	lookup func(ctx context.Context, host string) ([]string, error)
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

func newDialer() *dialer {
	return &dialer{lookup: net.DefaultResolver.LookupHost, dial: (&net.Dialer{}).DialContext}
}

// Dial implements [nats.CustomDialer].
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeoutMS*time.Millisecond)
	// ends the attempts that lost
	defer cancel()
	all, err := d.addresses(ctx, address)
	if err != nil {
		return nil, err
	}
	type result struct {
		conn net.Conn
		err  error
	}
	results, open, begun := make(chan result), 0, 0
	begin := func() {
		to := all[begun%len(all)]
		open, begun = open+1, begun+1
		go func() {
			conn, err := d.dial(ctx, network, to)
			select {
			case results <- result{conn, err}:
			case <-ctx.Done():
				if err == nil {
					// another attempt was first
					_ = conn.Close()
				}
			}
		}()
	}
	again := time.NewTicker(dialAgainMS * time.Millisecond)
	defer again.Stop()
	for begin(); ; {
		select {
		case <-again.C:
			begin()
		case r := <-results:
			if r.err == nil {
				return &audible{Conn: r.conn}, nil
			}
			open--
			switch err = r.err; {
			case begun < len(all):
				begin()
			case open == 0:
				return nil, err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("dial %s %s: no answer within %d ms: %w", network, address, connectTimeoutMS,
				ctx.Err())
		}
	}
}

// addresses returns the addresses of a name in any order, so that clients spread over the nodes.
func (d *dialer) addresses(ctx context.Context, address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	all, err := d.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	for i, one := range all {
		all[i] = net.JoinHostPort(one, port)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}
