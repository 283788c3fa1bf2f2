package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/bridges/opencode"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
)

// opencodeURL is the default address of `opencode serve`.
const opencodeURL = "http://127.0.0.1:4096"

func bridgeCommand(a *app) *cobra.Command {
	long, example := describe(`Keep the sessions of an agent that knows nothing of Holdfast.

Each subcommand follows one kind of agent, stores what it does, and brings decisions of people to it.`,
		"holdfast bridge opencode")
	cmd := &cobra.Command{Use: "bridge", Short: "Keep the sessions of a foreign agent", Long: long,
		Example: example, GroupID: groupRun, Args: cobra.ArbitraryArgs}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return usage(cmd, "there is no bridge %q", args[0])
	}
	cmd.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"})
	cmd.AddCommand(opencodeCommand(a))
	return cmd
}

func opencodeCommand(a *app) *cobra.Command {
	var url, id, content string
	var spawn bool
	var drive []string
	long, example := describe(`Keep the sessions of a living OpenCode server: what it does is stored as it happens, and
questions and permissions can be answered with holdfast answer or on the board as well as in OpenCode.

The bridge follows the server until it is ended, and connects again when the connection or the server was lost. A
restart of the server differs from a lost connection by a mark in the server's memory: an MCP entry that is switched
off and starts nothing. After a restart everything that the old process held is closed at once. When the bridge itself
is started again while the server runs, it continues what is open.

With --spawn the bridge starts the server, too: its command stands behind --, and it listens where --url says. A server
that ends is started again, and ends with the bridge.

With --drive retry a run that waits for OpenCode's own retry is aborted, and the turn is tried again by Holdfast's
rules: its attempts and instants outlive both processes.

One bridge serves one server. A second bridge with the same --harness takes the place of the first one, which ends.`,
		"holdfast bridge opencode", "holdfast bridge opencode --url http://127.0.0.1:4096 --harness laptop",
		"holdfast bridge opencode --spawn -- opencode serve --port 4096")
	cmd := &cobra.Command{Use: "opencode [-- SERVER [ARG...]]", Short: "Keep the sessions of an OpenCode server",
		Long: long, Example: example, GroupID: groupRun, Args: arguments(0, -1)}
	a.addFlags(cmd, []string{"nats", "context"}, optionsBroker, []string{"timeout"})
	cmd.Flags().StringVar(&url, "url", opencodeURL, "address of the OpenCode server; a password in it is used")
	cmd.Flags().StringVar(&id, "harness", "opencode", "the harness `id` of this server: one for each server")
	cmd.Flags().StringVar(&content, "content", string(agent.ContentTitles),
		"how much of the user's content is stored, a `level`: none, titles or full")
	cmd.Flags().BoolVar(&spawn, "spawn", false, "start the server, and start it again when it ends")
	cmd.Flags().StringSliceVar(&drive, "drive", nil, "what Holdfast decides in place of OpenCode, a `list`: retry")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case spawn && (len(args) == 0 || cmd.ArgsLenAtDash() != 0):
			return usage(cmd, "--spawn: write the server's command behind --")
		case !spawn && len(args) > 0:
			return usage(cmd, "a server's command needs --spawn")
		}
		level, err := agent.ParseContent(content)
		if err != nil {
			return usage(cmd, "--content: %v", err)
		}
		driven, err := opencode.ParseDrive(drive)
		if err != nil {
			return usage(cmd, "--drive: %v", err)
		}
		log := slog.New(slog.NewTextHandler(a.beside, nil))
		b := opencode.Bridge{URL: url, Cell: a.prefix, Content: level, Drive: driven, Log: log,
			Connect: func(ctx context.Context) (*harness.Harness, error) {
				ctx, cancel := context.WithTimeout(ctx, a.timeout)
				defer cancel()
				cfg := a.sidecarConfig(false).Harness
				cfg.ID = id
				return harness.Connect(ctx, cfg)
			}}
		err = runWith(cmd.Context(), b.Run, spawned(a, spawn, args, log))
		if err != nil && errors.Is(err, harness.ErrClosed) && cmd.Context().Err() != nil {
			return nil
		}
		return err
	}
	return cmd
}

// spawned returns what runs the server of a bridge; nil: it is run elsewhere.
func spawned(a *app, on bool, args []string, log *slog.Logger) func(context.Context) error {
	if !on {
		return nil
	}
	s := &opencode.Server{Command: agent.Command{Path: args[0], Args: args[1:], Stderr: a.beside}, Log: log,
		Line: func(line []byte) { _, _ = a.beside.Write(append(line, '\n')) }}
	return s.Run
}

// runWith runs a bridge beside its server. The server ends after the bridge, and the bridge ends if the server cannot
// be started.
func runWith(ctx context.Context, bridge, server func(context.Context) error) error {
	if server == nil {
		return bridge(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ofServer, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		err := server(ofServer)
		if err != nil {
			cancel(err)
		}
		ended <- err
	}()
	err := bridge(ctx)
	end()
	if failed := <-ended; failed != nil {
		return failed
	}
	return err
}
