package harness_test

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// cell is a substitute of `holdfast up`: a broker with a cell, and a service that answers. Examples have no testing.T.
type cell struct {
	url    string
	bus    *bus.Bus
	server *embed.Server
	dir    string
}

func startCell(ctx context.Context) *cell {
	dir, err := os.MkdirTemp("", "holdfast-example-")
	fatal(err)
	server, err := embed.Start(ctx, embed.Config{Dir: dir, Listen: "127.0.0.1:0"})
	fatal(err)
	b, err := bus.Open(ctx, bus.Config{URL: server.URL()})
	fatal(err)
	fatal(b.Layout.Ensure(ctx))
	return &cell{url: server.URL(), bus: b, server: server, dir: dir}
}

func (c *cell) stop() {
	c.bus.Close()
	c.server.Shutdown()
	fatal(os.RemoveAll(c.dir))
}

func fatal(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// waits returns when a prompt is open; "": when any is.
func (c *cell) waits(ctx context.Context, r events.Ref, prompt string) *session.State {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		st := c.state(ctx, r)
		if p := st.Prompts[prompt]; p != nil && p.Status == session.Awaiting || prompt == "" && st.BlockedBy() != "" {
			return st
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			fatal(ctx.Err())
		}
	}
}

// person answers a prompt as soon as it is open; "": the first that is.
func (c *cell) person(ctx context.Context, r events.Ref, prompt, text string) {
	st := c.waits(ctx, r, prompt)
	if prompt == "" {
		prompt = st.BlockedBy()
	}
	d, err := st.Answer(request.Answer{Ref: r, Prompt: prompt, By: "ada",
		Answers: []events.Answer{{Question: "colour", Text: text}}}, func(seq uint64) (*events.Commit, error) {
		commit, err := c.bus.Log.Commit(ctx, seq)
		return &commit, err
	})
	fatal(err)
	c.append(ctx, r, events.WriterLedger, d.Facts...)
}

func (c *cell) state(ctx context.Context, r events.Ref) *session.State {
	st := session.New(r)
	commits, err := c.bus.Log.Read(ctx, r, 0)
	fatal(err)
	for i := range commits {
		st.Fold(&commits[i])
	}
	return st
}

// append appends facts as a service does.
func (c *cell) append(ctx context.Context, r events.Ref, by events.Writer, facts ...events.Fact) {
	st := c.state(ctx, r)
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(c.bus.NewID(), events.ServiceSource(string(by), "example"), r, st.Epoch, time.Now(), f)
	}
	seq, err := c.bus.Log.Append(ctx, r, by, st.Seq, evs)
	fatal(err)
	c.bus.Hints.Nudge(r, seq)
}

// request asks for a turn and shows it in the work view, as services do.
func (c *cell) request(ctx context.Context, r events.Ref, turn string) {
	c.append(ctx, r, events.WriterCompaction,
		events.MessageAccepted{Message: "m-" + turn, Content: json.RawMessage(`"sum it up"`), By: "ada"},
		events.TurnRequested{Turn: turn, Cause: events.CauseMessage, Message: "m-" + turn})
	work, err := c.state(ctx, r).Work(func(seq uint64) (*events.Commit, error) {
		commit, err := c.bus.Log.Commit(ctx, seq)
		return &commit, err
	})
	fatal(err)
	view, err := json.Marshal(work)
	fatal(err)
	_, err = c.bus.KV.Store(ctx, kv.State, events.WorkKey(r), view, 0)
	fatal(err)
}
