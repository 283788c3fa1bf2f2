package core

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Limits of the search for another node.
const (
	isolatedMinMS = 3_000  // without a reply of JetStream for so long, a client connects to another node
	isolatedMaxMS = 30_000 // the pause before the next attempt doubles up to this
)

// isolation detects that the node of this connection cannot reach the others, or does not reply at all: the connection
// stays, and JetStream does not reply. Without it a client would wait on that node until the network is whole again,
// while the other nodes serve all other clients.
type isolation struct {
	mu    sync.Mutex
	since time.Time     // the first request without a reply since the last reply or move; zero: none
	pause time.Duration // until the next move; zero: the shortest
}

// move takes the result of a request to JetStream, and reports whether to connect to another node now.
func (i *isolation) move(now time.Time, err error) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case err == nil || !errors.Is(err, ErrUnreachable):
		i.since, i.pause = time.Time{}, 0
		return false
	case i.since.IsZero():
		i.since = now
		return false
	}
	pause := max(i.pause, isolatedMinMS*time.Millisecond)
	if now.Sub(i.since) < pause {
		return false
	}
	i.since, i.pause = time.Time{}, min(2*pause, isolatedMaxMS*time.Millisecond)
	return true
}

// observe takes the result of a request to JetStream, and connects to another node of a cluster when this one is
// isolated. A request that its caller cancelled proves nothing. A broker without a cluster is the only one there is.
// Even so, a connection that it never answered is made again: it may have been made while the broker read its files.
func (c *Conn) observe(ctx context.Context, err error) {
	if ctx.Err() != nil || !c.NC.IsConnected() || c.answered && c.NC.ConnectedClusterName() == "" ||
		!c.isolation.move(time.Now(), err) {
		return
	}
	c.Log.Warn().Str("service", c.Config.Name).AnErr("err", err).Msg("this node does not answer: connecting again")
	if err := c.NC.ForceReconnect(); err != nil {
		c.Log.Debug().Str("service", c.Config.Name).AnErr("err", err).Msg("the connection was closed meanwhile")
	}
}
