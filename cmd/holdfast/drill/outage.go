package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Limits of the outage act.
const (
	actOutage    = "outage"
	retryAfterMS = 4_000       // the provider's Retry-After: time to kill everything and start it again
	readyMaxS    = 20          // seconds until the act's own cell is ready
	readyPollMS  = 20          // interval of the checks for the ready file
	lateMax      = time.Second // from the instant of a retry to its request, on a busy machine
	earlyMaxMS   = 50          // a service knows the broker's time to half a round trip
	modelOfTurn  = "small"
)

// outage lets a turn fail, and kills its agent, the retry service and the broker before the retry. It does so in a cell
// of its own, so that no other broker is killed.
func (d *drill) outage(ctx context.Context) (err error) {
	d.report(actOutage, "", "SIGKILL to everything while a failed turn waits to be tried again")
	dir, err := os.MkdirTemp("", "holdfast-drill-")
	if err != nil {
		return fmt.Errorf("outage: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &cell{d: d, dir: dir, listen: "127.0.0.1:0"}
	if err := c.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	b, err := bus.Open(ctx, bus.Config{URL: c.url, Prefix: d.Prefix, Name: "drill-outage"})
	if err != nil {
		return fmt.Errorf("outage: %w", err)
	}
	defer b.Close()
	sub := &drill{Config: d.Config, bus: b, began: d.began, reporting: d.reporting,
		names: map[string]string{actOutage: "drill-" + actOutage}}
	sub.URL, sub.Login = c.url, Login{}
	sub.world = newWorld(sub)
	watching, stop := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- sub.world.watch(watching) }()
	err = errors.Join(sub.failAndDie(ctx, c), sub.endChildren())
	stop()
	d.verdicts = append(d.verdicts, sub.verdicts...)
	return errors.Join(err, <-watched)
}

// failAndDie is the act within that cell.
func (d *drill) failAndDie(ctx context.Context, c *cell) error {
	agent, err := d.onStage(ctx, actOutage, roleFails,
		func(s *session.State) bool { return s.Retry.State == session.RetryScheduled })
	if err != nil {
		return err
	}
	before, _, err := d.world.until(ctx, actOutage, "scheduled", soonMax, func(*session.State) bool { return true })
	if err != nil {
		return err
	}
	if err := agent.signal(syscall.SIGKILL, "while its turn waits to be tried again"); err != nil {
		return err
	}
	if err := c.kill("the broker, the retry service and all others are in it"); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	e, err := d.bus.KV.Load(ctx, kv.State, events.SessionKey(before.Ref()))
	var after *session.State
	if err == nil {
		after, err = session.Decode(e.Value)
	}
	if err != nil {
		return fmt.Errorf("outage: %w", err)
	}
	v := Verdict{Act: actOutage, Promise: "a retry outlives the broker", Expected: due(before),
		Seen: due(after), TookMS: -1}
	v.OK = v.Seen == v.Expected
	d.verify(v)
	next, err := d.start(actOutage, roleRetries)
	if err != nil {
		return err
	}
	r, _, err := next.expect(ctx, wordTook, retryAfterMS*time.Millisecond+startMaxS*time.Second)
	if err != nil {
		d.verify(Verdict{Act: actOutage, Promise: "the next process takes it", Expected: wordTook, Seen: err.Error(),
			TookMS: -1})
		return ctx.Err()
	}
	if _, _, err := d.world.until(ctx, actOutage, "completed", soonMax,
		func(s *session.State) bool { return s.Turn == nil && s.Retry.State == "" }); err != nil {
		return fmt.Errorf("outage: %w", err)
	}
	return errors.Join(d.once(ctx, before, r), d.dismiss(ctx, next))
}

// due returns the number of the scheduled attempt, and its instant.
func due(s *session.State) string {
	return fmt.Sprintf("#%d %s", s.Retry.Attempt, terminal.Clock(s.Retry.DueAt))
}

// once returns verdicts from the log: the retry was requested once, at its instant, and taken once as the same request.
func (d *drill) once(ctx context.Context, planned *session.State, took Report) error {
	commits, err := d.bus.Log.Read(ctx, planned.Ref(), 0)
	if err != nil {
		return err
	}
	var scheduled, wanted, started int
	var late time.Duration
	for i := range commits {
		for j := range commits[i].Events {
			switch f := commits[i].Events[j].Fact.(type) {
			case events.RetryScheduled:
				scheduled++
			case events.TurnRequested:
				wanted++
				late = commits[i].At.Sub(planned.Retry.DueAt)
			case events.TurnStarted:
				if f.Cause == events.CauseRetry {
					started++
				}
			}
		}
	}
	d.verify(Verdict{Act: actOutage, Promise: "it is asked for at its instant",
		Expected: fmt.Sprintf("≤ %s late", seconds(lateMax)), Seen: terminal.Took(late.Milliseconds()) + " late",
		TookMS: -1, OK: late >= -earlyMaxMS*time.Millisecond && late <= lateMax})
	v := Verdict{Act: actOutage, Promise: "once, as the same request",
		Expected: "1 plan, 1 turn", TookMS: -1}
	v.Seen = terminal.Plural(scheduled, "plan") + ", " + terminal.Plural(started, "turn")
	if wanted != 1 {
		v.Seen += ", " + terminal.Plural(wanted, "request")
	}
	if !strings.Contains(took.Text, modelOfTurn) {
		v.Seen += ", other options"
	}
	v.OK = v.Seen == v.Expected
	d.verify(v)
	return nil
}

// cell is the act's own cell: one process with the broker and all services, on data that outlive it.
type cell struct {
	d           *drill
	dir, listen string
	url         string
	cmd         *exec.Cmd
	in          io.Closer     // closing it ends the cell, so the cell does not outlive the drill
	ended       chan struct{} // closed when the cell has ended
	err         error         // the result of the process, after ended is closed
}

// start starts the cell and returns when it is ready.
func (c *cell) start(ctx context.Context) error {
	note := filepath.Join(c.dir, "ready.json")
	c.cmd = c.d.Cell(filepath.Join(c.dir, "data"), c.listen, note)
	in, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("outage: start a cell: %w", err)
	}
	c.in = in
	c.d.report(actOutage, whoDrill, "starts process %d: a cell of its own, with the broker and all services",
		c.cmd.Process.Pid)
	c.ended = make(chan struct{})
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	tick := time.NewTicker(readyPollMS * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(readyMaxS * time.Second)
	defer late.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.ended:
			return fmt.Errorf("outage: the cell ended: %w", c.err)
		case <-late.C:
			return errors.Join(fmt.Errorf("outage: %w: the cell is not ready", errLate), c.end())
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), c.end())
		}
		var n health.Note
		if body, err := os.ReadFile(note); err != nil || json.Unmarshal(body, &n) != nil || n.PID != c.cmd.Process.Pid {
			continue
		}
		c.url, c.listen = n.NATS, strings.TrimPrefix(n.NATS, "nats://")
		return nil
	}
}

// kill ends the cell with SIGKILL.
func (c *cell) kill(why string) error {
	c.d.report(actOutage, whoDrill, "SIGKILL to process %d: %s", c.cmd.Process.Pid, why)
	if err := c.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("outage: kill the cell: %w", err)
	}
	// its result is that of a kill
	<-c.ended
	return nil
}

// end ends the cell gracefully, if it runs.
func (c *cell) end() error {
	if err := c.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("outage: end the cell: %w", err)
	}
	late := time.NewTimer(2 * endMaxS * time.Second)
	defer late.Stop()
	select {
	case <-c.ended:
		return nil
	case <-late.C:
		err := c.cmd.Process.Kill()
		<-c.ended
		return err
	}
}
