package opencode

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-dev/holdfast/internal/agent"
)

// Limits of a supervised server.
const (
	spawnMin = 250 * time.Millisecond // before the server is started again; then longer each time
	spawnMax = 8 * time.Second
	spawnOK  = time.Minute // a server that lived for so long begins with the shortest pause again
)

// Server supervises an OpenCode server: a process that ends is started again until the context ends. The bridge follows
// the server by its address, as it follows any other one.
type Server struct {
	Command agent.Command
	// Line gets each line that the server writes to its standard output.
	Line func(line []byte)
	Log  *slog.Logger

	first time.Duration // default: spawnMin
}

// Run runs until ctx ends. Then it ends the server with its process group. The error says that the server cannot be
// started at all.
func (s *Server) Run(ctx context.Context) error {
	first := cmp.Or(s.first, spawnMin)
	pace := backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMaxInterval(spawnMax),
		backoff.WithMaxElapsedTime(0))
	for began := false; ; began = true {
		p, err := agent.Start(s.Command)
		if err != nil && !began {
			return err
		}
		var why string
		if err == nil {
			at := time.Now()
			s.follow(ctx, p)
			if why = p.Exit(); time.Since(at) > spawnOK {
				pace.Reset()
			}
		} else {
			why = err.Error()
		}
		if ctx.Err() != nil {
			return nil
		}
		wait := pace.NextBackOff()
		s.Log.Warn("the OpenCode server ended: it is started again", "why", why, "in", wait.String())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// follow takes in the lines of a process until it has ended. It ends the process when ctx ends.
func (s *Server) follow(ctx context.Context, p *agent.Process) {
	defer context.AfterFunc(ctx, p.Kill)()
	for line := range p.Lines() {
		s.Line(line)
	}
	<-p.Done()
}
