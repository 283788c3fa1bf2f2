package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/bridges/opencode"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/replay"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// while runs everything, and do when all is ready; when do returns, everything ends. If a service ends before that, do
// ends.
func (a *app) while(ctx context.Context, do func(ctx context.Context, note health.Note) error) error {
	// it outlives do, which may release sessions
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
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

// anyPort says which addresses may have another port than their own: those that a person did not choose.
type anyPort struct{ listen, http bool }

// loopback is any free port.
const loopback = "127.0.0.1:0"

// whileAt is while. It takes another port in the place of one that is in use, and says so.
func (a *app) whileAt(ctx context.Context, free anyPort, do func(ctx context.Context, note health.Note) error) error {
	for {
		err := a.while(ctx, do)
		switch {
		case errors.Is(err, embed.ErrPortInUse) && free.listen:
			a.printError("%s is in use: the broker takes another port", a.listen)
			a.listen, free.listen = loopback, false
		case errors.Is(err, health.ErrPortInUse) && free.http:
			a.printError("%s is in use: health and the board take another port", a.http)
			a.http, free.http = loopback, false
		default:
			return err
		}
	}
}

// suite is while in a temporary directory.
func (a *app) suite(ctx context.Context, do func(ctx context.Context, url string) error) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own := *a
	own.data, own.listen, own.http, own.readyFile = dir, loopback, loopback, ""
	own.grace, own.logLevel, own.board = shortGrace, "error", false
	// this broker has no users
	a.creds = ""
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
	var fast, once, verbose bool
	long, example := describe(`Start everything, play a recorded crash, run a drill, and stay up.

It is up with all its flags, and a tour of half a minute: what was open when an agent was killed, what closed it
and when, what is promised and what is seen, and a question of an agent for you to answer from another terminal.
-v prints each event. Ctrl-C ends it; the data stays.

The default of --grace is 1s here, to shorten the tour. If the default port of --listen or --http is in use, the
tour takes another one.`,
		"holdfast try", "holdfast try --data /tmp/tour --listen 127.0.0.1:0 --http 127.0.0.1:0 --once")
	cmd := &cobra.Command{Use: "try", Short: "Start everything and watch a recovery", Long: long, Example: example,
		GroupID: groupRun, Args: arguments(0, 0)}
	a.addFlags(cmd, optionsUp)
	for i := range targets {
		a.addFlags(cmd, targets[i].options)
	}
	cmd.Flags().BoolVar(&fast, "fast", false, "play the recorded crash without its pauses")
	cmd.Flags().BoolVar(&once, "once", false, "end after the tour")
	verboseFlag(cmd, &verbose)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.checkAlone(cmd); err != nil {
			return err
		}
		if !cmd.Flags().Changed("grace") {
			a.grace = shortGrace
		}
		if !cmd.Flags().Changed("log-level") {
			a.logLevel = "error"
		}
		return a.bounded(cmd.Context(), func(ctx context.Context) error {
			free := anyPort{listen: !cmd.Flags().Changed("listen"), http: !cmd.Flags().Changed("http")}
			return a.whileAt(ctx, free, func(ctx context.Context, note health.Note) error {
				t := &tour{app: a, note: note, fast: fast, once: once, verbose: verbose}
				err := t.run(ctx)
				if err != nil && ctx.Err() != nil {
					// a requested end
					return nil
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
	note                health.Note
	fast, once, verbose bool
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
	return t.print("\n" + t.style(t.Stdout).Coloured(title, terminal.Strong) + "\n" + text)
}

// crash plays the recorded crash.
func (t *tour) crash(ctx context.Context) error {
	err := t.heading("1 of 3: a real crash, played again", "An OpenCode server was killed at work. It shows for ever "+
		"that this runs;\nhere it is closed:\n\n")
	if err != nil {
		return err
	}
	trace, err := opencode.ReadTrace(bytes.NewReader(opencode.RecordedCrash))
	if err != nil {
		return fmt.Errorf("try: %w", err)
	}
	cfg := replay.Config{URL: t.note.NATS, TTL: shortTTL, Fast: t.fast, Close: true,
		OnLine: func(line string) error { t.progressLine(line); return nil }}
	if t.verbose {
		// the default prints
		cfg.OnLine = nil
	}
	return t.replay(ctx, cfg, []replay.Recording{{Name: crashFile, Trace: trace}}, func(p *replay.Played) string {
		t.progressLine("")
		return t.played(p)
	})
}

// played returns what became of the recorded crash: in short, unless it went wrong.
func (t *tour) played(p *replay.Played) string {
	if !p.OK || t.verbose {
		return p.Text(t.style(t.Stdout))
	}
	return p.LeftOpen(t.style(t.Stdout))
}

// drills runs the drill.
func (t *tour) drills(ctx context.Context) error {
	if err := t.heading("2 of 3: a drill with real processes",
		"Agents, and once a broker with all services, are killed at work."); err != nil {
		return err
	}
	return t.drill(ctx, drill.Config{URL: t.note.NATS, TTL: shortTTL, Within: shortTTL + t.grace + tourSlack},
		t.verbose, true)
}

// yours makes an agent ask the person, shows what watch would show, and stays up.
func (t *tour) yours(ctx context.Context) (err error) {
	if err := t.heading("3 of 3: your turn",
		"An agent asks you. This is what `holdfast watch` shows:\n\n"); err != nil {
		return err
	}
	return t.with(ctx, func(ctx context.Context, b *bus.Bus) error {
		name, err := drill.FreeName(ctx, b.KV, painterID)
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
		return fmt.Errorf("try: the question of %s is not in the people's view within %s", r, t.timeout)
	case !errors.Is(err, errEnough):
		return err
	}
	if t.json {
		docs, err := t.documents(ctx, b.KV, &sessionFilter{})
		return errors.Join(err, t.printSessions(ctx, b.Clock, docs))
	}
	if err := t.watchOnce(ctx, b, newBoard(&sessionFilter{harness: r.Harness}, watchBeginsWith)); err != nil {
		return err
	}
	return t.next(r)
}

// next prints the next commands.
func (t *tour) next(r events.Ref) error {
	text := "\nFrom another terminal:\n\n"
	for _, line := range t.elsewhere(t.note.NATS) {
		text += "  " + line + "\n"
	}
	for _, line := range [][2]string{
		{"answer " + r.String() + " colour-1 blue", "it continues at once"},
		{"watch", "all sessions, live"},
		{"show drill-crash/crash", "the agent that died"},
		{"events drill-crash/crash", "every event of it"},
		{"doctor", "is everything well?"},
	} {
		text += fmt.Sprintf("  %s %-36s # %s\n", t.self(), line[0], line[1])
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
		harness.Config{ID: p.ref.Harness, URL: p.note.NATS, Prefix: p.prefix, TTL: shortTTL, Version: version,
			Log: slog.New(slog.DiscardHandler)})
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
		// the machine slept: claim again
		if errors.Is(err, harness.ErrFenced) {
			s, err = open()
		}
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMaxS/2*time.Second)
	defer cancel()
	// asked to leave
	if ctx.Err() != nil {
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
	case <-turn.Context().Done():
		// a person stopped it, or the command ends
	}
	if err := brush.Complete(ctx, "painted"); err != nil {
		return err
	}
	return turn.Complete(ctx, "stop")
}
