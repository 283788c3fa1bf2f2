package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/sidecar"
)

func sidecarCommand(a *app) *cobra.Command {
	var socket string
	var parent int
	var verbose bool
	long, example := describe(`Serve the client for agents to a program in another language: JSON-RPC 2.0, one message a
line, on standard input and output. The agent starts it and talks to it; docs/reference/sidecar.json has the methods.

The end of standard input is the death of the agent: the sidecar stores nothing more, and recovery follows as for a
killed process. So is the end of the process that started the sidecar, except on Windows: a child of the agent may keep
the input open. An agent that names itself with --parent may end at any time, also before the sidecar runs. An agent
that leaves calls close first. On SIGTERM the sidecar cancels the turns, waits at most 10 s for them, and releases the
sessions.

With --socket it serves a unix socket: each connection is one agent. Only the user of the sidecar can connect.`,
		"holdfast sidecar --parent $$", "holdfast sidecar --socket /run/deployer/holdfast.sock")
	cmd := &cobra.Command{Use: "sidecar", Short: "Serve the client for agents to another language", Long: long,
		Example: example, GroupID: groupRun, Args: arguments(0, 0)}
	a.addFlags(cmd, []string{"nats", "context"}, optionsBroker, []string{"timeout"})
	cmd.Flags().StringVar(&socket, "socket", "", "serve this unix socket, a `path`, in place of standard input")
	cmd.Flags().IntVar(&parent, "parent", 0, "the process `id` of the agent, which starts this program itself; by "+
		"default the parent that this process has when it begins")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also log decisions about leases and owners")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg := a.sidecarConfig(verbose)
		named := cmd.Flags().Changed("parent")
		switch {
		case named && socket != "":
			return usage(cmd, "--parent names the agent on standard input, and --socket serves others")
		case named && parent <= 0:
			return usage(cmd, "--parent %d: want the id of a process", parent)
		case named && parent != a.parent:
			return fmt.Errorf("process %d has ended, or did not start this sidecar: its parent is %d: start "+
				"holdfast sidecar from the agent itself", parent, a.parent)
		case socket != "":
			s, err := sidecar.Listen(socket)
			if err != nil {
				return err
			}
			return s.Serve(cmd.Context(), cfg)
		}
		return a.serveAgent(cmd.Context(), cfg)
	}
	return cmd
}

// serveAgent serves the agent that started this process. A write to an agent that has closed its end is an error of the
// connection, and no signal that ends this process.
func (a *app) serveAgent(ctx context.Context, cfg sidecar.Config) error {
	signal.Ignore(syscall.SIGPIPE)
	cfg.Orphaned = orphaned(a.parent)
	err := sidecar.Serve(ctx, cfg, a.Stdin, a.Stdout)
	if ctx.Err() != nil && errors.Is(err, sidecar.ErrGone) {
		// both were asked to end
		return nil
	}
	return err
}

// sidecarConfig returns the connection that the options describe.
func (a *app) sidecarConfig(verbose bool) sidecar.Config {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	return sidecar.Config{ConnectTimeout: a.timeout, Harness: harness.Config{URL: a.nats, Creds: a.creds,
		PasswordFile: a.passwordFile, NKey: a.nkey, TLSCA: a.tlsCA, TLSCert: a.tlsCert, TLSKey: a.tlsKey,
		Prefix: a.prefix, Log: slog.New(slog.NewTextHandler(a.beside, &slog.HandlerOptions{Level: level}))}}
}

// parentPollMS is the interval of the checks whether the process that started this one lives.
const parentPollMS = 250

// orphaned returns a channel that is closed after the process that started this one, its parent, has ended. It is one
// interval late, so that a close that the agent has sent before its end is read first. On Windows the parent never
// changes.
func orphaned(parent int) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		for alive := true; alive; {
			alive = os.Getppid() == parent
			time.Sleep(parentPollMS * time.Millisecond)
		}
		close(gone)
	}()
	return gone
}
