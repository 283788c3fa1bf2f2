package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/bridges/opencode"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/replay"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// while runs everything, and do when all is ready; when do returns, everything ends. If a service ends before that, do
// ends.
func (a *app) while(ctx context.Context, do func(ctx context.Context, note health.Note) error) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // it outlives do, which may release sessions
	defer stop()
	doing, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan health.Note, 1), make(chan error, 1)
	go func() {
		err := a.everything(running, func(n health.Note) error { ready <- n; return nil })
		cancel()
		ended <- err
	}()
	var err error
	select {
	case note := <-ready:
		err = do(doing, note)
	case <-doing.Done():
	}
	stop()
	return errors.Join(err, <-ended)
}

// suite is while in a temporary directory.
func (a *app) suite(ctx context.Context, do func(ctx context.Context, url string) error) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-")
	if err != nil {
		return fmt.Errorf("holdfast: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own := *a
	own.data, own.listen, own.http, own.readyFile = dir, "127.0.0.1:0", "127.0.0.1:0", ""
	own.grace, own.logLevel = shortGrace, "error"
	a.creds = "" // this broker has no users
	return own.while(ctx, func(ctx context.Context, note health.Note) error { return do(ctx, note.NATS) })
}

// Pieces of the tour.
const (
	crashFile   = "h-kill9-parallel.jsonl"
	painterID   = "painter"
	wallSession = "wall"
	paintingS   = 3
	tourSlack   = 3 * time.Second // a slow machine breaks no promise
)

func tryCommand(a *app) *cobra.Command {
	var fast, once bool
	long, example := describe(`Start everything, play a recorded crash, run a drill, and stay up.

It is up with all its flags, and a tour of a minute: what an agent's crash leaves open, how it is recovered,
and a question of an agent for you to answer from another terminal. Ctrl-C ends it; the data stays. The
default of --grace is 1s here, to shorten the tour.`,
		"holdfast try", "holdfast try --data /tmp/tour --listen 127.0.0.1:0 --http 127.0.0.1:0 --once")
	cmd := &cobra.Command{Use: "try", Short: "Start everything and watch a recovery", Long: long, Example: example,
		GroupID: groupRun, Args: arguments(0, 0)}
	a.addFlags(cmd, optionsUp)
	for i := range targets {
		a.addFlags(cmd, targets[i].options)
	}
	cmd.Flags().BoolVar(&fast, "fast", false, "play the recorded crash without its pauses")
	cmd.Flags().BoolVar(&once, "once", false, "end after the tour")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("grace") {
			a.grace = shortGrace
		}
		if !cmd.Flags().Changed("log-level") {
			a.logLevel = "error"
		}
		return a.bounded(cmd.Context(), func(ctx context.Context) error {
			return a.while(ctx, func(ctx context.Context, note health.Note) error {
				t := &tour{app: a, note: note, fast: fast, once: once}
				err := t.run(ctx)
				if err != nil && ctx.Err() != nil {
					return nil // a requested end
				}
				return err
			})
		})
	}
	return cmd
}

// tour is the parts of try.
type tour struct {
	*app
	note       health.Note
	fast, once bool
}

func (t *tour) run(ctx context.Context) error {
	if err := t.ready(t.note, t.data); err != nil {
		return err
	}
	t.nats = t.note.NATS
	for _, part := range []func(context.Context) error{t.crash, t.drills, t.yours} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// heading prints the title of a part and its purpose.
func (t *tour) heading(title, text string) error {
	if t.json {
		return nil
	}
	return t.print("\n" + t.style(t.Stdout).Coloured("── "+title+" ──", terminal.Strong) + "\n\n" + text + "\n")
}

// crash plays the recorded crash.
func (t *tour) crash(ctx context.Context) error {
	if err := t.heading("1 of 3: a real crash, played again",
		`What a real OpenCode server said until it was killed, with one command done, one running, and one waiting for
a permission. OpenCode itself shows them as running for ever. Here the process holds a lease; watch what
becomes of them.
`); err != nil {
		return err
	}
	trace, err := opencode.ReadTrace(bytes.NewReader(opencode.RecordedCrash))
	if err != nil {
		return fmt.Errorf("holdfast: try: %w", err)
	}
	return t.replay(ctx, replay.Config{URL: t.note.NATS, TTL: shortTTL, Fast: t.fast},
		[]replay.Recording{{Name: crashFile, Trace: trace}})
}

// drills runs the drill.
func (t *tour) drills(ctx context.Context) error {
	if err := t.heading("2 of 3: a drill with real processes",
		`Agents (this program, with the harness client) are killed, frozen, restarted and asked to leave. The drill
compares the promises with the observations.`); err != nil {
		return err
	}
	return t.drill(ctx, drill.Config{URL: t.note.NATS, TTL: shortTTL, Within: shortTTL + t.grace + tourSlack,
		Keep: true})
}

// yours makes an agent ask the person, shows what watch would show, and stays up.
func (t *tour) yours(ctx context.Context) (err error) {
	if err := t.heading("3 of 3: your turn",
		"This is what `holdfast watch` shows now: who was lost, who is alive, and what waits for you.\n"); err != nil {
		return err
	}
	return t.with(ctx, func(ctx context.Context, b *bus.Bus) error {
		name, err := drill.FreeName(ctx, b, painterID)
		if err != nil {
			return err
		}
		p := &painter{tour: t, ref: events.Ref{Harness: name, Session: wallSession}, asks: make(chan struct{}, 1),
			ended: make(chan error, 1)}
		work, stop := context.WithCancel(ctx)
		defer stop()
		go func() { p.ended <- p.run(work) }()
		select {
		case <-p.asks:
		case err := <-p.ended:
			return err
		}
		if err = t.printNext(ctx, b, p.ref); err == nil && !t.once {
			<-ctx.Done()
		}
		stop()
		return errors.Join(err, <-p.ended)
	})
}

// printNext shows the table and the next commands.
func (t *tour) printNext(ctx context.Context, b *bus.Bus, r events.Ref) error {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	err := b.KV.Watch(limited, kv.State, []string{events.BlockerKeys(r.Harness, "")}, func(u kv.Update) error {
		if u.Ready || u.Deleted {
			return nil
		}
		return errEnough
	})
	switch {
	case err == nil:
		return fmt.Errorf("holdfast: try: the question of %s is not in the people's view within %s", r, t.timeout)
	case !errors.Is(err, errEnough):
		return err
	}
	if t.json {
		docs, err := t.documents(ctx, b, &sessionFilter{})
		return errors.Join(err, t.printSessions(ctx, b, docs))
	}
	if err := t.watchOnce(ctx, b, &sessionFilter{}); err != nil {
		return err
	}
	return t.next(r)
}

// next prints the next commands.
func (t *tour) next(r events.Ref) error {
	self, in := "holdfast", strings.TrimSuffix(elsewhere(t.note.NATS), "; ")
	if len(os.Args) > 0 && strings.Contains(os.Args[0], "/") {
		self = os.Args[0]
	}
	text := "\nFrom another terminal:\n\n"
	if in != "" {
		text += "  " + in + "\n"
	}
	for _, line := range [][2]string{
		{"answer " + r.String() + " colour-1 blue", "the agent continues at once"},
		{"watch", "all sessions, live"},
		{"show drill-crash/crash", "what became of the agent that was killed"},
		{"events drill-crash/crash", "and every fact of it"},
		{"doctor", "is everything well?"},
	} {
		text += fmt.Sprintf("  %s %-36s # %s\n", self, line[0], line[1])
	}
	if !t.once {
		text += "\nCtrl-C ends it; the data stays in " + t.data + ".\n\n"
	}
	return t.print(text)
}

// painter is an agent that asks for a colour, paints, and asks again.
type painter struct {
	*tour
	ref   events.Ref
	asks  chan struct{} // holds one: it asks for the first time
	ended chan error
}

// run paints until ctx ends, and closes its session.
func (p *painter) run(ctx context.Context) error {
	h, err := harness.Connect(ctx,
		harness.Config{ID: p.ref.Harness, URL: p.note.NATS, Prefix: p.prefix, TTL: shortTTL, Version: version})
	if err != nil {
		return err
	}
	open := func() (*harness.Session, error) {
		return h.Open(ctx, p.ref.Session, harness.OpenOptions{Title: "Paint the wall", Agent: painterID})
	}
	s, err := open()
	if err == nil {
		err = h.Ready(ctx)
	}
	for n := 1; err == nil; n++ {
		if n == 1 {
			p.asks <- struct{}{}
		}
		err = p.coat(ctx, s, fmt.Sprintf("colour-%d", n))
		if errors.Is(err, harness.ErrFenced) { // the machine slept: claim again
			s, err = open()
		}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMaxS/2*time.Second)
	defer cancel()
	if ctx.Err() != nil { // asked to leave
		err = s.Close(late, "finished")
	}
	return errors.Join(err, h.Close(late))
}

// coat is one turn: a question to a person, and work with the answer.
func (p *painter) coat(ctx context.Context, s *harness.Session, id string) error {
	turn, err := s.StartTurn(ctx, harness.StartOptions{Content: "paint the wall"})
	if err != nil {
		return err
	}
	call, err := turn.Tool(ctx, harness.ToolOptions{Name: "ask_user"})
	if err != nil {
		return err
	}
	answer, err := turn.Ask(ctx, harness.Prompt{ID: id, Call: call.ID(), Questions: []events.Question{
		{ID: "colour", Question: "Which colour shall the wall be?",
			Options: []events.Option{{Label: "red"}, {Label: "blue"}}, Custom: true}}})
	if err != nil {
		return err
	}
	if err := p.print(terminal.Clean(fmt.Sprintf("painter: %s by %s; painting …", answer.Status, answer.By)) +
		"\n"); err != nil {
		return err
	}
	if err := call.Complete(ctx, answer.Answers); err != nil {
		return err
	}
	brush, err := turn.Tool(ctx, harness.ToolOptions{Name: "paint"})
	if err != nil {
		return err
	}
	work := time.NewTimer(paintingS * time.Second)
	defer work.Stop()
	select {
	case <-work.C:
	case <-turn.Context().Done(): // a person stopped it, or the command ends
	}
	if err := brush.Complete(ctx, "painted"); err != nil {
		return err
	}
	return turn.Complete(ctx, "stop")
}
