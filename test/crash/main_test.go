// Package crash kills real processes at random instants while they work, on a real disk, and compares the resulting
// state with the log: the invariants V1–V5 and V7–V14.
package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/services/compaction"
	"github.com/holdfast-dev/holdfast/services/ledger"
	"github.com/holdfast-dev/holdfast/services/reconciler"
	"github.com/holdfast-dev/holdfast/services/retry"
	"github.com/holdfast-dev/holdfast/test/child"
)

// Times of the processes. They are short, so that recovery happens often.
const (
	leaseTTL       = 2 * time.Second
	grace          = time.Second
	adoptionGrace  = time.Second
	walk           = 5 * time.Second
	settledKeptFor = time.Hour // longer than any run: every entry of the people's view stays
	startMax       = 60 * time.Second
)

// Roles of this binary.
const (
	roleBroker     = "broker"
	roleLedger     = ledger.Name
	roleReconciler = reconciler.Name
	roleRetry      = retry.Name
	roleCompaction = compaction.Name
	roleHarness    = "harness"
	rolePerson     = "person"
	roleAsker      = "asker"
)

// Lines between the test and its children.
const (
	lineReady = "ready" // it works; a broker adds its URL
	lineIdle  = "idle"  // it is at rest
	sendRest  = "rest"  // begin nothing new
)

// settings are what a child receives at its start.
type settings struct {
	Name     string
	URL      string
	Replicas int
	Seed     uint64

	Dir     string         // of a broker
	Listen  string         // of a broker
	Cluster *embed.Cluster // of a broker
	Monitor string         // host:port of a broker's monitor; "" for none

	ID       string // of a harness
	Pool     bool   // of a harness
	Sessions int    // of a harness, at once
	Journal  string // of a harness, or a person
}

func TestMain(m *testing.M) {
	flag.Parse()
	if child.Role() == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := play(ctx, child.Role())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play runs the role of a child until ctx ends.
func play(ctx context.Context, role string) error {
	var s settings
	if err := child.Settings(&s); err != nil {
		return err
	}
	log := zerolog.New(os.Stderr).Level(zerolog.InfoLevel).With().Timestamp().Str("entity", s.Name).Int("pid",
		os.Getpid()).Logger()
	rest := make(chan struct{})
	go func() {
		for order := range child.Orders(ctx) {
			if order == sendRest {
				close(rest)
			}
		}
	}()
	switch role {
	case roleBroker:
		return playBroker(ctx, s, log)
	case roleLedger, roleReconciler, roleRetry, roleCompaction:
		return playService(ctx, role, s, log)
	case roleHarness:
		return playHarness(ctx, s, slogTo(s.Name), rest)
	case roleAsker:
		return playAsker(ctx, s, slogTo(s.Name))
	case rolePerson:
		return playPerson(ctx, s, log, rest)
	}
	return fmt.Errorf("crash: no such role: %q", role)
}

// slogTo returns the logger of a harness, which writes the same fields as the services do.
func slogTo(name string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("entity", name, "pid", os.Getpid())
}

func playBroker(ctx context.Context, s settings, log zerolog.Logger) error {
	cfg := embed.Config{Dir: s.Dir, Listen: s.Listen, Name: s.Name, SyncAlways: true, Cluster: s.Cluster, Log: log}
	if s.Monitor != "" {
		cfg.File = s.Dir + ".conf"
		if err := os.WriteFile(cfg.File, []byte(fmt.Sprintf("http: %q\n", s.Monitor)), journalMode); err != nil {
			return err
		}
	}
	srv, err := embed.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if err := child.Print(lineReady + " " + srv.URL()); err != nil {
		return err
	}
	<-ctx.Done()
	srv.Shutdown()
	return nil
}

// playService runs a service as cmd/holdfast does.
func playService(ctx context.Context, role string, s settings, log zerolog.Logger) error {
	b, err := bus.Open(ctx, bus.Config{URL: s.URL, Name: s.Name, Replicas: s.Replicas, Log: log})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Layout.Ensure(ctx); err != nil {
		return err
	}
	service, err := makeService(role, b, log)
	if err != nil {
		return err
	}
	if err := child.Print(lineReady); err != nil {
		return err
	}
	err = service.Run(ctx)
	if err == nil && ctx.Err() == nil {
		err = errors.New("crash: the service ended unexpectedly")
	}
	return err
}

func makeService(role string, b *bus.Bus, log zerolog.Logger) (interface{ Run(context.Context) error }, error) {
	switch role {
	case roleLedger:
		return ledger.New(b, ledgerConfig(), log)
	case roleRetry:
		cfg := retry.Default()
		cfg.Walk = walk
		return retry.New(b, cfg, log)
	case roleCompaction:
		cfg := compaction.Default()
		cfg.Walk = walk
		return compaction.New(b, cfg, log)
	}
	cfg := reconciler.Default()
	cfg.Grace, cfg.AdoptionGrace, cfg.Walk = grace, adoptionGrace, walk
	return reconciler.New(b, cfg, log)
}

func ledgerConfig() ledger.Config {
	cfg := ledger.Default()
	cfg.SettledKeptFor = settledKeptFor
	return cfg
}
