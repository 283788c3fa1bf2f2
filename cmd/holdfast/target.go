package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/control"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
)

// Limits of starting and stopping.
const (
	stopMaxS       = 10  // for a clean end
	readyPollMS    = 20  // interval of the checks of a starting process
	surveyMaxS     = 30  // to compare the log with documents at the start
	probeTimeoutMS = 500 // for one request to find out whether a service answers
)

// service is what a target runs.
type service interface {
	// Run works until ctx ends, then hands over its consumers and returns nil.
	Run(ctx context.Context) error
}

// target is one service of this program. up runs all of them in one process.
type target struct {
	name      string
	short     string
	options   []string                // in addition to those of every service
	probe     string                  // a verb that answers at once, to check that the service answers
	check     func(s *settings) error // reports wrong options
	make      func(b *bus.Bus, s *settings, log zerolog.Logger) (service, error)
	consumers func(b *bus.Bus, s *settings) []consumer.Source
}

// targets is the table of services. CONTRIBUTING.md says how to add one. up makes each with the default of every
// option: make must accept that.
var targets = []target{
	{
		name: ledger.Name, short: "Run the ledger: it folds the log into documents and views, and carries out " +
			"requests of people",
		options: []string{"settled-prompts-kept-for", "closed-sessions-kept-for"}, probe: "get",
		check: func(s *settings) error { return ledgerConfig(s).Validate() },
		make: func(b *bus.Bus, s *settings, log zerolog.Logger) (service, error) {
			return ledger.New(b, ledgerConfig(s), log)
		},
		consumers: func(_ *bus.Bus, s *settings) []consumer.Source {
			return []consumer.Source{ledger.Source(ledgerConfig(s))}
		},
	},
	{
		name: reconciler.Name, short: "Run the reconciler: it recovers sessions of dead owners, and expires prompts " +
			"at their deadline",
		options: []string{"grace", "adoption-grace", "disconnect-grace"}, probe: "report",
		check: func(s *settings) error { return reconcilerConfig(s).Validate() },
		make: func(b *bus.Bus, s *settings, log zerolog.Logger) (service, error) {
			return reconciler.New(b, reconcilerConfig(s), log)
		},
		consumers: func(b *bus.Bus, _ *settings) []consumer.Source { return reconciler.Sources(b) },
	},
	{
		name: compaction.Name, short: "Run compaction: it accepts messages, hands them out in order, and requests " +
			"compactions",
		options: []string{"idle-compactions-max"}, probe: "check",
		check: func(s *settings) error { return compactionConfig(s).Validate() },
		make: func(b *bus.Bus, s *settings, log zerolog.Logger) (service, error) {
			return compaction.New(b, compactionConfig(s), log)
		},
		consumers: func(b *bus.Bus, _ *settings) []consumer.Source { return compaction.Sources(b) },
	},
	{
		name: retry.Name, short: "Run the retry service: it retries failed turns, and fails turns that have stalled",
		options: []string{"retry-jitter"}, probe: "now",
		check: func(s *settings) error { return retryConfig(s).Validate() },
		make: func(b *bus.Bus, s *settings, log zerolog.Logger) (service, error) {
			return retry.New(b, retryConfig(s), log)
		},
		consumers: func(b *bus.Bus, _ *settings) []consumer.Source { return retry.Sources(b) },
	},
}

func ledgerConfig(s *settings) ledger.Config {
	cfg := ledger.Default()
	cfg.SettledKeptFor, cfg.ClosedKeptFor, cfg.Version = s.settledKeptFor, s.closedKeptFor, version
	return cfg
}

func reconcilerConfig(s *settings) reconciler.Config {
	cfg := reconciler.Default()
	cfg.Grace, cfg.AdoptionGrace, cfg.DisconnectGrace = s.grace, s.adoptionGrace, s.disconnectGrace
	cfg.Version = version
	return cfg
}

func compactionConfig(s *settings) compaction.Config {
	cfg := compaction.Default()
	cfg.IdleCompactionsMax, cfg.Version = s.idleCompactionsMax, version
	return cfg
}

func retryConfig(s *settings) retry.Config {
	cfg := retry.Default()
	cfg.Jitter, cfg.Version = s.retryJitter, version
	return cfg
}

// serviceCommand runs one target against a broker.
func (a *app) serviceCommand(t *target) *cobra.Command {
	long, example := describe(t.short+
		".\n\nSeveral may run at once: one of them is active, and another takes over when it ends. It waits for the "+
		"broker without a limit.",
		"holdfast "+t.name+" --nats nats://broker:4222 --creds me.creds --replicas 3")
	cmd := &cobra.Command{Use: t.name, Short: t.short, Long: long, Example: example, GroupID: groupRun,
		Args: arguments(0, 0)}
	a.addFlags(cmd, optionsBroker, optionsService, t.options)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.bounded(cmd.Context(), func(ctx context.Context) error { return a.runService(ctx, t) })
	}
	return cmd
}

// runService runs a process with one service.
func (a *app) runService(ctx context.Context, t *target) error {
	log, err := a.logger()
	if err != nil {
		return err
	}
	if err := health.RemoveStaleNote(a.readyFile); err != nil {
		return err
	}
	h, err := health.Listen(ctx, a.http, version)
	if err != nil {
		return err
	}
	p := &process{app: a, health: h, log: log, nats: bus.Redacted(a.nats),
		connect: func(ctx context.Context, name string) (*bus.Bus, error) {
			cfg := a.busConfig(name)
			cfg.Log = log
			cfg, err := a.limit(cfg, 0)
			if err != nil {
				return nil, err
			}
			return bus.Open(ctx, cfg)
		}}
	return p.run(ctx, []target{*t})
}

// process is a process that runs services.
type process struct {
	app     *app
	health  *health.Server
	log     zerolog.Logger
	nats    string // address of the broker for other processes
	connect func(ctx context.Context, name string) (*bus.Bus, error)
	onReady func(health.Note) error // receives the ready note; nil: it is printed and written to the ready file
}

// run runs these targets until ctx ends or one of them fails; then it ends all and returns the failure.
func (p *process) run(ctx context.Context, ts []target) error {
	parts := []func(context.Context) error{p.health.Run,
		func(ctx context.Context) error { return p.whenReady(ctx, ts) }}
	added := make(chan struct{}, len(ts))
	for i := range ts {
		parts = append(parts, func(ctx context.Context) error { return p.serve(ctx, &ts[i], added) })
	}
	parts = append(parts, func(ctx context.Context) error {
		for range ts {
			select {
			case <-added:
			case <-ctx.Done():
				return nil
			}
		}
		p.health.Started()
		return nil
	})
	err := control.Together(ctx, parts...)
	if gone := health.RemoveNote(p.app.readyFile); gone != nil {
		err = errors.Join(err, gone)
	}
	return err
}

// serve connects one service, creates the missing streams and buckets, and runs it.
func (p *process) serve(ctx context.Context, t *target, added chan<- struct{}) error {
	b, err := p.connect(ctx, t.name)
	if err != nil {
		return stopped(ctx, p.app.noBroker(err))
	}
	defer b.Close()
	if err := b.Layout.Ensure(ctx); err != nil {
		return stopped(ctx, err)
	}
	s, err := t.make(b, &p.app.settings, p.log)
	if err != nil {
		return err
	}
	part := health.Part{Name: t.name, Connected: b.Connected, ReadyLagMax: p.app.readyLagMax}
	for _, src := range t.consumers(b, &p.app.settings) {
		part.Consumers = append(part.Consumers,
			health.Consumer{Name: src.Durable, Lag: func(ctx context.Context) (uint64, string, error) {
				return b.Consumers.Lag(ctx, src)
			}})
	}
	if c, ok := s.(interface{ Counts() map[string]uint64 }); ok {
		part.Counts = c.Counts
	}
	p.health.Add(part)
	added <- struct{}{}
	return s.Run(ctx)
}

// stopped returns nil for an error that is only the effect of a requested end.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// bounded runs a function that must end within [stopMaxS] after ctx. A function that does not is reported and
// abandoned.
func (a *app) bounded(ctx context.Context, run func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(stopMaxS * time.Second)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("stop: not done within %d s; what was acknowledged is stored, nothing else is lost",
			stopMaxS)
	}
}

// whenReady waits until everything is ready, and reports it once.
func (p *process) whenReady(ctx context.Context, ts []target) error {
	// of a process that was killed
	if err := health.RemoveNote(p.app.readyFile); err != nil {
		return err
	}
	tick := time.NewTicker(readyPollMS * time.Millisecond)
	defer tick.Stop()
	for !p.health.Report(ctx).OK {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	if err := p.answering(ctx, ts, tick.C); err != nil || ctx.Err() != nil {
		return stopped(ctx, err)
	}
	return p.ready()
}

// answering waits until every service answers requests. The request is empty, and any reply will do.
func (p *process) answering(ctx context.Context, ts []target, tick <-chan time.Time) error {
	// with the login of a service, which this process has
	b, err := p.connect(ctx, ts[0].name)
	if err != nil {
		return err
	}
	defer b.Close()
	for i := range ts {
		for !answers(ctx, b.Services, &ts[i]) {
			select {
			case <-ctx.Done():
				return nil
			case <-tick:
			}
		}
	}
	return nil
}

func answers(ctx context.Context, services *rpc.Services, t *target) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeoutMS*time.Millisecond)
	defer cancel()
	err := services.Request(ctx, t.name, t.probe, struct{}{}, nil)
	refusal, refused := errors.AsType[*events.Refusal](err)
	return err == nil || refused && refusal.Code != http.StatusServiceUnavailable
}

// ready reports that all is ready: first in the file, because scripts wait for it.
func (p *process) ready() error {
	note := health.Note{NATS: p.nats, HTTP: p.health.URL(), PID: os.Getpid()}
	if err := note.Write(p.app.readyFile); err != nil {
		return err
	}
	p.log.Info().Str("service", "holdfast").Str("id", note.NATS).Msg("ready")
	if p.onReady != nil {
		return p.onReady(note)
	}
	return p.app.ready(note, "")
}

func upCommand(a *app) *cobra.Command {
	long, example := describe(
		`Run everything in one process: an embedded broker that syncs every write before it is acknowledged, and all
services.

It listens on loopback unless --listen says otherwise. There is no log-in, so every host that reaches it can read
and write everything. It needs no account and no configuration, and keeps its data in one directory. Only one process
can have a directory at a time. SIGTERM and SIGINT end it cleanly within 10 s.`,
		"holdfast up", "holdfast up --data /var/lib/holdfast --listen 127.0.0.1:0 --http 127.0.0.1:0 \\\n"+
			"    --ready-file /run/holdfast.json")
	cmd := &cobra.Command{Use: "up", Short: "Run everything in one process", Long: long, Example: example,
		GroupID: groupRun, Args: arguments(0, 0)}
	a.addFlags(cmd, optionsUp)
	for i := range targets {
		a.addFlags(cmd, targets[i].options)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.checkAlone(cmd); err != nil {
			return err
		}
		return a.bounded(cmd.Context(), a.up)
	}
	return cmd
}

// checkAlone refuses several copies, because the embedded broker is one node, and an unknown way of syncing.
func (a *app) checkAlone(cmd *cobra.Command) error {
	if a.replicas > 1 {
		return usage(cmd, "--replicas %d: this command runs one broker, which keeps one copy; run the services on a "+
			"cluster of brokers for more (`holdfast ledger --help`)", a.replicas)
	}
	switch a.sync {
	case "", syncEach:
		return nil
	case syncGroup:
		if embed.CanGroup() {
			return nil
		}
		return usage(cmd, "--sync %s: this system cannot sync directories; use --sync %s", syncGroup, syncEach)
	}
	return usage(cmd, "--sync %q: want %s or %s", a.sync, syncEach, syncGroup)
}

// up runs the broker and all targets until ctx ends.
func (a *app) up(ctx context.Context) error {
	return a.everything(ctx, func(note health.Note) error { return a.ready(note, a.data) })
}

// everything is up; onReady is called when all is ready.
func (a *app) everything(ctx context.Context, onReady func(health.Note) error) error {
	log, err := a.logger()
	if err != nil {
		return err
	}
	// before the broker starts, which may take long
	if err := health.RemoveStaleNote(a.readyFile); err != nil {
		return err
	}
	if host, _, err := net.SplitHostPort(a.listen); err == nil && !isLoopback(host) {
		a.printError("--listen %s: the broker has no log-in, so every host that reaches it can read and write "+
			"everything", terminal.Clean(a.listen))
	}
	h, err := health.Listen(ctx, a.http, version)
	if err != nil {
		return err
	}
	cell, err := events.NewCell(a.prefix)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	srv, err := embed.Start(ctx, embed.Config{Dir: a.data, Listen: a.listen, SyncAlways: a.sync != syncGroup,
		Group: a.sync == syncGroup, Log: log,
		WebsocketOrigins: a.boardOrigins(h),
		Mend: []string{cell.LogStream(), "KV_" + cell.StateBucket(), "KV_" + cell.LeaseBucket(), cell.TimerStream(),
			cell.ParkedStream(), cell.FeedStream()}})
	if err != nil {
		return errors.Join(err, h.Close())
	}
	defer srv.Shutdown()
	p := &process{app: a, health: h, log: log, nats: srv.URL(),
		connect: func(ctx context.Context, name string) (*bus.Bus, error) {
			cfg := a.busConfig(name)
			cfg = bus.Config{Server: srv, Name: cfg.Name, Prefix: cfg.Prefix, Inbox: cfg.Inbox, Replicas: cfg.Replicas,
				FeedKeptFor: cfg.FeedKeptFor, Log: log}
			cfg, err := a.limit(cfg, srv.StoreBytesMax())
			if err != nil {
				return nil, err
			}
			return bus.Open(ctx, cfg)
		}}
	if err := a.mountBoard(h, srv, p.connect); err != nil {
		return errors.Join(err, h.Close())
	}
	p.onReady = func(note health.Note) error {
		a.trouble(ctx, p, srv.Damages())
		return onReady(note)
	}
	return control.Together(ctx,
		func(ctx context.Context) error { return p.run(ctx, targets) },
		func(ctx context.Context) error { return serveSyncs(ctx, p, srv) })
}

// serveSyncs answers clients that ask when their writes are synced. It fails when the disk has refused a sync.
func serveSyncs(ctx context.Context, p *process, srv *embed.Server) error {
	b, err := p.connect(ctx, "sync")
	if err != nil {
		return stopped(ctx, err)
	}
	defer b.Close()
	return control.Together(ctx, b.ServeSyncs, func(ctx context.Context) error {
		select {
		case err := <-srv.SyncFailed():
			return fmt.Errorf("%w: %w: nothing more is acknowledged; look at the disk, then start again",
				embed.ErrSyncFailed, err)
		case <-ctx.Done():
			return nil
		}
	})
}

// trouble reports on stderr what the log has lost and which files are damaged. The process still starts, for the
// sessions that are complete.
func (a *app) trouble(ctx context.Context, p *process, damages []embed.Damage) {
	for _, d := range damages {
		a.printError("holdfast: damaged: %s; the file is kept as it was, below %s", terminal.Clean(d.String()),
			filepath.Join(a.data, "damaged"))
	}
	ctx, cancel := context.WithTimeout(ctx, surveyMaxS*time.Second)
	defer cancel()
	b, err := p.connect(ctx, ledger.Name)
	if err != nil {
		// the process is about to end
		return
	}
	defer b.Close()
	found, err := ledger.Inspect(ctx, b)
	switch {
	case err != nil:
		a.printError("holdfast: the log was not compared with documents: %s: `holdfast doctor` does the same",
			terminal.Clean(plain(err.Error())))
	case len(found.Lost) > 0:
		names := make([]string, len(found.Lost))
		for i := range found.Lost {
			names[i] = found.Lost[i].String()
		}
		a.printError("holdfast: the log has lost commits of %s: %s\n  %s", terminal.Plural(len(names), "session"),
			terminal.Clean(shorten(names)), lossAdvice)
	}
}

// ready prints the addresses for a person or a program; data is the embedded broker's directory, "" without one.
func (a *app) ready(note health.Note, data string) error {
	if a.json {
		return a.printJSON(note)
	}
	text := fmt.Sprintf("holdfast %s is ready (process %d)\n  broker  %s\n  health  %s/readyz\n", version, note.PID,
		note.NATS, note.HTTP)
	if data != "" {
		text += a.boardLine()
		how := "every write synced"
		if a.sync == syncGroup {
			how += ", in groups"
		}
		text += fmt.Sprintf("  data    %s, %s\n", data, how)
		label := "next"
		for _, line := range append(a.elsewhere(note.NATS), a.self()+" watch", a.self()+" doctor") {
			text += fmt.Sprintf("  %-7s %s\n", label, line)
			label = ""
		}
	}
	return a.print(text)
}

// elsewhere returns the command with which a shell finds a broker that is not at its default address, or that a context
// of the nats CLI hides.
func (a *app) elsewhere(nats string) []string {
	if name, _ := a.implicitContext(); nats == natsDefault && name == "" {
		return nil
	}
	return []string{"export " + envName("nats") + "=" + nats}
}
