package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

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

With --drive compaction Holdfast decides when a conversation is compacted, by its policy and the limit of the model, and
holdfast compact does it at once. OpenCode's own compactions have to be switched off: compaction.auto in its
configuration, or `+opencode.AutoCompactVar+`=1 in its environment, which a server that the bridge starts has.

With --drive queue a message that a person types in OpenCode while it runs waits in the queue of its session, and gets a
turn of its own. That needs --plugin, and HOLDFAST_PLUGIN_QUEUE=1 in the environment of a server that the bridge did not
start.

With --plugin the bridge replies to the plugin in OpenCode: a call runs when it is stored, and not before, and nothing
runs in a process of OpenCode that the bridge does not follow. holdfast bridge opencode plugin prints the plugin. The
server and the bridge need the same secret in `+opencode.PluginTokenVar+`, and the server the bridge's address in
`+opencode.PluginURLVar+`. A server that the bridge starts gets both from the bridge.

One bridge serves one server. A second bridge with the same --harness takes the place of the first one, which ends.`,
		"holdfast bridge opencode", "holdfast bridge opencode --url http://127.0.0.1:4096 --harness laptop",
		"holdfast bridge opencode --spawn -- opencode serve --port 4096")
	cmd := &cobra.Command{Use: "opencode [-- SERVER [ARG...]]", Short: "Keep the sessions of an OpenCode server",
		Long: long, Example: example, GroupID: groupRun, Args: arguments(0, -1)}
	a.addFlags(cmd, []string{"nats", "context"}, optionsBroker, []string{"timeout"})
	var o opencodeOptions
	f := cmd.Flags()
	f.StringVar(&o.url, "url", opencodeURL, "address of the OpenCode server; a password in it is used")
	f.StringVar(&o.id, "harness", "opencode", "the harness `id` of this server: one for each server")
	f.StringVar(&o.content, "content", string(agent.ContentTitles),
		"how much of the user's content is stored, a `level`: none, titles or full")
	f.BoolVar(&o.spawn, "spawn", false, "start the server, and start it again when it ends")
	f.StringSliceVar(&o.drive, "drive", nil,
		"what Holdfast decides in place of OpenCode, a `list` of\ncompaction, queue and retry")
	f.StringVar(&o.plugin, "plugin", "", "reply to the plugin in OpenCode at this `address`, host:port on loopback")
	cmd.AddGroup(&cobra.Group{ID: groupRun, Title: "Run:"})
	cmd.AddCommand(pluginCommand(a))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case o.spawn && (len(args) == 0 || cmd.ArgsLenAtDash() != 0):
			return usage(cmd, "--spawn: write the server's command behind --")
		case !o.spawn && len(args) > 0:
			return usage(cmd, "a server's command needs --spawn")
		}
		b, err := o.bridge(a)
		if err != nil {
			return usage(cmd, "%v", err)
		}
		err = runWith(cmd.Context(), b.Run, spawned(a, o.spawn, args, b.ServerEnv(), b.Log))
		if err != nil && errors.Is(err, harness.ErrClosed) && cmd.Context().Err() != nil {
			return nil
		}
		return err
	}
	return cmd
}

// opencodeOptions are the flags of a bridge.
type opencodeOptions struct {
	url, id, content, plugin string
	spawn                    bool
	drive                    []string
}

// bridge returns the bridge that the flags ask for. An error names the flag.
func (o *opencodeOptions) bridge(a *app) (b *opencode.Bridge, err error) {
	b = &opencode.Bridge{URL: o.url, Cell: a.prefix, Log: slog.New(slog.NewTextHandler(a.beside, nil)),
		Connect: func(ctx context.Context) (*harness.Harness, error) {
			ctx, cancel := context.WithTimeout(ctx, a.timeout)
			defer cancel()
			cfg := a.sidecarConfig(false).Harness
			cfg.ID = o.id
			return harness.Connect(ctx, cfg)
		}}
	if b.Content, err = agent.ParseContent(o.content); err != nil {
		return nil, fmt.Errorf("--content: %w", err)
	}
	if b.Drive, err = opencode.ParseDrive(o.drive); err != nil {
		return nil, fmt.Errorf("--drive: %w", err)
	}
	switch {
	case o.plugin == "" && b.Drive.Queue:
		return nil, errors.New("--drive queue: the plugin holds the messages: write --plugin, too")
	case o.plugin == "":
		return b, nil
	}
	if b.Plugin, err = listenForPlugin(o.plugin, o.spawn); err != nil {
		return nil, fmt.Errorf("--plugin: %w", err)
	}
	return b, nil
}

// spawned returns what runs the server of a bridge; nil: it is run elsewhere.
// env is added to the environment of this process.
func spawned(a *app, on bool, args, env []string, log *slog.Logger) func(context.Context) error {
	if !on {
		return nil
	}
	s := &opencode.Server{Command: agent.Command{Path: args[0], Args: args[1:], Stderr: a.beside,
		Env: append(os.Environ(), env...)}, Log: log,
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

// listenForPlugin listens for the plugin in OpenCode. A server that is not spawned has the token from its user.
func listenForPlugin(address string, spawned bool) (*opencode.Plugin, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%.100q: want host:port: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%.100q: want an address of the loopback interface, such as 127.0.0.1:4097", address)
	}
	token := os.Getenv(opencode.PluginTokenVar)
	if token == "" && !spawned {
		return nil, fmt.Errorf("set %s to a secret, here and in the environment of OpenCode", opencode.PluginTokenVar)
	}
	if token == "" {
		token = rand.Text()
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &opencode.Plugin{Listener: l, Token: token}, nil
}

func pluginCommand(a *app) *cobra.Command {
	long, example := describe(`Print the plugin for OpenCode, a module in JavaScript. OpenCode loads it from the folder
plugin of its configuration, or of .opencode in a project.`, "holdfast bridge opencode plugin",
		"holdfast bridge opencode plugin >~/.config/opencode/plugin/holdfast.js")
	cmd := &cobra.Command{Use: "plugin", Short: "Print the plugin for OpenCode", Long: long, Example: example,
		GroupID: groupRun, Args: arguments(0, 0)}
	cmd.RunE = func(*cobra.Command, []string) error {
		_, err := a.Stdout.Write(opencode.PluginSource)
		return err
	}
	return cmd
}
