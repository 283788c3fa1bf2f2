package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/replay"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
)

// Drill and replay need short times, to detect deaths soon.
const (
	shortTTL   = 2 * time.Second // of a lease
	shortGrace = time.Second     // of the reconciler in the command's own cell
)

// seenMin is how much of what was seen the table of promises keeps on a terminal, in cells. A broken promise is also
// printed whole.
const seenMin = 12

// foreignGrace is the assumed grace of the reconciler of another cell: the default of its flag.
const foreignGrace = 5 * time.Second

func drillCommand(a *app) *cobra.Command {
	var ttl, within time.Duration
	var keep, verbose bool
	long, example := describe(
		`Kill, freeze, restart and end real agent processes, and compare the outcome of their work with the promises.

It takes half a minute. The processes are this program, as an agent that uses the harness client, and for the
last act as a broker with all services and its own data. The drill signals only these processes, and ends all
of them. -v prints each event. With --nats the drill runs on that cell, beside other work; otherwise the cell
runs in this process until the drill ends. Exit code 1 after a broken promise.`,
		"holdfast drill", "holdfast drill --nats nats://broker:4222 --ttl 5s --within 12s", "holdfast drill --json")
	cmd := &cobra.Command{Use: "drill", Short: "Kill real agents and check every promise", Long: long, Example: example,
		GroupID: groupRepair, Args: arguments(0, 0)}
	a.addFlags(cmd, optionsCommand)
	cmd.Flags().DurationVar(&ttl, "ttl", shortTTL, "how long a lease outlives its process, 1s or more")
	cmd.Flags().DurationVar(&within, "within", 0,
		"how long a death may go unnoticed (default: --ttl, the grace, and a second; the grace is 1s, with --nats 5s)")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the sessions open at the end, to look at them")
	verboseFlag(cmd, &verbose)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		named := cmd.Flags().Changed("nats")
		if ttl < time.Second {
			return usage(cmd, "--ttl %s: want 1s or more", ttl)
		}
		if within == 0 {
			within = ttl + shortGrace + time.Second
			if named {
				within = ttl + foreignGrace + time.Second
			}
		}
		return a.bounded(cmd.Context(), func(ctx context.Context) error {
			return a.somewhere(ctx, named, func(ctx context.Context, url string) error {
				return a.drill(ctx, drill.Config{URL: url, TTL: ttl, Within: within, Keep: keep}, verbose, false)
			})
		})
	}
	return cmd
}

// login returns the login files for agents that a command starts.
func (a *app) login() drill.Login {
	return drill.Login{Creds: a.creds, PasswordFile: a.passwordFile, NKey: a.nkey, TLSCA: a.tlsCA, TLSCert: a.tlsCert,
		TLSKey: a.tlsKey}
}

// errBroken means that a drill observed a broken promise.
var errBroken = errors.New("drill: a promise was broken")

// verboseFlag adds the flag for a line for each event.
func verboseFlag(cmd *cobra.Command, verbose *bool) {
	cmd.Flags().BoolVarP(verbose, "verbose", "v", false, "print a line for each event")
}

// drill runs a drill and prints the promises and what was seen, for a tour the main ones. On a terminal a line shows
// the present act; with verbose each event has a line.
func (a *app) drill(ctx context.Context, cfg drill.Config, verbose, tour bool) error {
	b, err := a.connectTo(ctx, cfg.URL, "drill")
	if err != nil {
		return err
	}
	defer b.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	cfg.Login, cfg.Prefix = a.login(), a.prefix
	cfg.Command = func() *exec.Cmd {
		return &exec.Cmd{Path: self, Args: []string{"holdfast", agentUse}, Env: a.Env, Stderr: a.Stderr}
	}
	cfg.Cell = func(dir, listen, readyFile string) *exec.Cmd {
		return &exec.Cmd{Path: self, Env: a.Env, Stderr: a.Stderr,
			Args: []string{"holdfast", cellUse, "--data", dir, "--listen", listen, "--http", "127.0.0.1:0",
				"--ready-file", readyFile, "--prefix", a.prefix, "--grace", shortGrace.String(), "--log-level",
				"error"}}
	}
	var unsaid error
	sent := map[string]int{}
	cfg.OnMoment = func(m drill.Moment) {
		if signal, _, is := strings.Cut(m.What, " to process "); is && m.Who == drill.Director {
			sent[signal]++
		}
		switch {
		case verbose || a.json:
			unsaid = errors.Join(unsaid, a.printMoment(m))
		case m.Who == "":
			a.progressLine(m.What)
		}
	}
	res, err := drill.Run(ctx, b, cfg)
	a.progressLine("")
	if err = errors.Join(err, unsaid); err != nil && (ctx.Err() != nil || len(res.Verdicts) == 0) {
		// a partial table would look like broken promises
		return err
	}
	if printErr := a.printVerdicts(res, sent, tour); printErr != nil || err != nil {
		return errors.Join(err, printErr)
	}
	if !res.OK {
		return errBroken
	}
	return nil
}

// whoColours maps each actor to its colour.
var whoColours = map[string]terminal.Colour{"drill": terminal.Busy, "agent": terminal.Plain, "holdfast": terminal.Good}

// printMoment prints one event.
func (a *app) printMoment(m drill.Moment) error {
	if a.json {
		return a.printJSON(m)
	}
	st := a.style(a.Stdout)
	if m.Who == "" {
		return a.print("\n" + st.Coloured(m.What, terminal.Strong) + "\n")
	}
	at := st.Coloured(fmt.Sprintf("%7.2fs", float64(m.AtMS)/1000), terminal.Faint)
	return a.print(fmt.Sprintf("%s  %s %s %s\n", at,
		st.Coloured(m.Act, terminal.Faint)+strings.Repeat(" ", max(0, drill.ActBytesMax-len(m.Act))),
		st.Coloured(m.Who, whoColours[m.Who])+strings.Repeat(" ", max(0, len("holdfast")-len(m.Who))),
		terminal.Clean(m.What)))
}

// progressLine shows on a terminal what happens, in a line that the next one takes the place of; "" removes it.
func (a *app) progressLine(text string) {
	if st := a.style(a.Stderr); st.Width > 0 && !a.json {
		_, _ = fmt.Fprint(a.beside, "\r\x1b[K"+st.Coloured(terminal.Cut(text, st.Width-1), terminal.Faint))
	}
}

// printVerdicts prints what was promised and what was observed.
func (a *app) printVerdicts(res drill.Result, sent map[string]int, tour bool) error {
	if a.json {
		return a.printJSON(res)
	}
	return a.print(verdicts(res, sent, tour, a.style(a.Stdout)))
}

// verdicts returns what was promised and what was observed; a tour shows the main promises, and all broken ones.
func verdicts(res drill.Result, sent map[string]int, tour bool, st terminal.Style) string {
	var rows [][]terminal.Cell
	kept, broken := 0, ""
	for _, v := range res.Verdicts {
		mark := terminal.Cell{Text: "NO", Colour: terminal.Alarm}
		if v.OK {
			mark = terminal.Cell{Text: "yes", Colour: terminal.Good}
			kept++
		} else {
			broken += st.Coloured(fmt.Sprintf("broken: %s: expected %s; seen: %s", v.Promise, v.Expected, v.Seen),
				terminal.Alarm) + "\n"
		}
		if tour && v.OK && !v.Main {
			continue
		}
		took := "–"
		if v.TookMS >= 0 {
			took = terminal.Took(v.TookMS)
		}
		rows = append(rows, []terminal.Cell{mark, {Text: took, Colour: terminal.Faint}, {Text: v.Promise},
			{Text: v.Expected}, {Text: v.Seen}})
	}
	text := fmt.Sprintf("\n%d processes killed, %d frozen, %d asked to leave.\n\n", sent["SIGKILL"], sent["SIGSTOP"],
		sent["SIGTERM"])
	text += terminal.Table([]terminal.Column{{Name: "KEPT"}, {Name: "TOOK"}, {Name: "PROMISE"},
		{Name: "EXPECTED"}, {Name: "SEEN", Min: seenMin}}, rows, st) + broken
	more := ""
	if tour && len(rows) < len(res.Verdicts) {
		more = " `holdfast drill` shows all of them."
	}
	return text + fmt.Sprintf("\n%d of %d promises kept, in %s.%s\n", kept, len(res.Verdicts),
		terminal.Age(time.Duration(res.TookMS)*time.Millisecond), more)
}

// agentUse is the command of a drill's child processes.
const agentUse = "drill-agent"

// agentCommand is started by the drill, not by people.
func agentCommand(a *app) *cobra.Command {
	long, example := describe("Be an agent of a drill. Its role and its instructions arrive on standard input.",
		"holdfast drill")
	cmd := &cobra.Command{Use: agentUse, Short: "An agent of a drill", Long: long, Example: example,
		GroupID: groupRepair, Hidden: true, Args: arguments(0, 0)}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return drill.Agent(cmd.Context(), a.Stdin, a.Stdout) }
	return cmd
}

// cellUse is the command of a drill's own cell.
const cellUse = "drill-cell"

// cellCommand is up for the drill: the drill kills it, and it ends when its parent ends.
func cellCommand(a *app) *cobra.Command {
	cmd := upCommand(a)
	cmd.Use, cmd.Short, cmd.Long, cmd.Hidden = cellUse, "A cell of a drill",
		"Be a cell of a drill: up, until standard input ends.", true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.bounded(cmd.Context(), func(ctx context.Context) error {
			ctx, cancel := context.WithCancelCause(ctx)
			go func() {
				_, err := io.Copy(io.Discard, a.Stdin)
				cancel(err)
			}()
			return a.everything(ctx, func(health.Note) error { return nil })
		})
	}
	return cmd
}

func replayCommand(a *app) *cobra.Command {
	var fast bool
	var ttl time.Duration
	long, example := describe(
		`Play recordings of an OpenCode server's events, and show how recovery ends what they left open.

Each FILE is what GET /event sent, one JSON object {"at", "event"} a line. It is translated into events and
appended through a real harness lease; at a recorded death the process ends without a release, so that its
lease must expire. Unknown lines, events and fields are counted and skipped.

With --nats it is played on that cell; otherwise the cell runs in this process. It fails when something stays
open without a running process.`,
		"holdfast replay session.jsonl", "holdfast replay --fast --nats nats://broker:4222 traces/*.jsonl --json")
	cmd := &cobra.Command{Use: "replay FILE…", Short: "Play recorded crashes and watch the recovery", Long: long,
		Example: example, GroupID: groupRepair,
		Args: arguments(1, -1, "a recording FILE")}
	a.addFlags(cmd, optionsCommand)
	cmd.Flags().BoolVar(&fast, "fast", false, "leave out the pauses of the recording")
	cmd.Flags().DurationVar(&ttl, "ttl", shortTTL, "how long a lease outlives its process, 1s or more")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if ttl < time.Second {
			return usage(cmd, "--ttl %s: want 1s or more", ttl)
		}
		var all []replay.Recording
		for _, file := range args {
			rec, err := replay.Read(file)
			if err != nil {
				return usage(cmd, "%v", err)
			}
			all = append(all, rec)
		}
		return a.bounded(cmd.Context(), func(ctx context.Context) error {
			return a.somewhere(ctx, cmd.Flags().Changed("nats"), func(ctx context.Context, url string) error {
				return a.replay(ctx, replay.Config{URL: url, TTL: ttl, Fast: fast}, all, func(p *replay.Played) string {
					return p.Text(a.style(a.Stdout))
				})
			})
		})
	}
	return cmd
}

// replay plays one recording after the other, each as a separate harness, and prints the text of each result.
func (a *app) replay(ctx context.Context, cfg replay.Config, all []replay.Recording,
	text func(*replay.Played) string) error {
	b, err := a.connectTo(ctx, cfg.URL, "replay")
	if err != nil {
		return err
	}
	defer b.Close()
	cfg.Login, cfg.Prefix, cfg.Version = a.login(), a.prefix, version
	if !a.json && cfg.OnLine == nil {
		cfg.OnLine = func(line string) error { return a.print(line + "\n") }
	}
	var broken []string
	for _, rec := range all {
		p, err := replay.Play(ctx, b, cfg, rec)
		if err != nil {
			return fmt.Errorf("replay %s: %w", rec.Name, err)
		}
		if !p.OK {
			broken = append(broken, p.File)
		}
		if a.json {
			err = a.printJSON(p)
		} else {
			err = a.print(text(p))
		}
		if err != nil {
			return err
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("replay: left open without a running process, in %s", strings.Join(broken, ", "))
	}
	return nil
}

// somewhere runs do against the broker that was named, or against a complete cell in this process.
func (a *app) somewhere(ctx context.Context, named bool, do func(ctx context.Context, url string) error) error {
	var err error
	if named {
		err = do(ctx, a.nats)
	} else {
		err = a.suite(ctx, do)
	}
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// connectTo opens a connection to a broker within --timeout.
func (a *app) connectTo(ctx context.Context, url, name string) (*bus.Bus, error) {
	at := *a
	at.nats = url
	return at.connectAs(ctx, name)
}
