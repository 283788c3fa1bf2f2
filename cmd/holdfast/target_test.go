package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// slowService refuses its first requests: it is not ready to answer.
type slowService struct {
	bus   *bus.Bus
	asked atomic.Int32
	fail  error // error with which it ends at once
}

const refusalsFirst = 3

func (s *slowService) Run(ctx context.Context) error {
	if s.fail != nil {
		return s.fail
	}
	return s.bus.Services.Serve(ctx, "slow", version, "a service of a test",
		[]rpc.Endpoint{{Verb: "probe", Handle: func(context.Context, []byte) ([]byte, error) {
			if s.asked.Add(1) <= refusalsFirst {
				return nil, events.Unavailable("not yet")
			}
			return nil, events.NotFound("anything", "at all")
		}}})
}

// runTarget runs a process of one target until the test has seen enough.
func runTarget(t *testing.T, s *slowService) (readyFile string, stop func() error) {
	t.Helper()
	srv := natstest.Start(t)
	h, err := health.Listen(t.Context(), "127.0.0.1:0", version)
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(&Program{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
	a.readyFile = filepath.Join(t.TempDir(), "ready.json")
	p := &process{app: a, health: h, nats: srv.URL(),
		connect: func(ctx context.Context, name string) (*bus.Bus, error) {
			return bus.Open(ctx, bus.Config{URL: srv.URL(), Name: name})
		}}
	slow := target{name: "slow", probe: "probe", consumers: func(*bus.Bus, *settings) []consumer.Source { return nil },
		make: func(b *bus.Bus, _ *settings, _ zerolog.Logger) (service, error) { s.bus = b; return s, nil }}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, []target{slow}) }()
	return a.readyFile, func() error { cancel(); return <-ended }
}

// The ready file is written when every service answers, and removed when the process ends.
func TestReadyOnlyWhenServicesAnswer(t *testing.T) {
	s := &slowService{}
	file, stop := runTarget(t, s)
	exists := func() bool { _, err := os.Stat(file); return err == nil }
	natstest.Until(t, "the ready file", exists)
	if n := s.asked.Load(); n <= refusalsFirst {
		t.Errorf("ready after %d requests, of which the first %d were refused", n, refusalsFirst)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if exists() {
		t.Error("the ready file outlived the process")
	}
}

// TestReadyFileOfAKilledProcess checks that the ready file of a process that was killed is removed before the next one
// does anything else, so that a script cannot take it for the new one's, and that the file of a living process stays.
func TestReadyFileOfAKilledProcess(t *testing.T) {
	killed := exec.CommandContext(t.Context(), "true")
	if err := killed.Run(); err != nil {
		t.Fatal(err)
	}
	// the start fails later: the file must be gone by then
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	up := func(a *app) error { return a.everything(t.Context(), func(health.Note) error { return nil }) }
	service := func(a *app) error { return a.runService(t.Context(), &targets[0]) }
	for name, c := range map[string]struct {
		run   func(*app) error
		body  string
		stays bool
	}{
		"up, killed":      {up, fmt.Sprintf(`{"pid":%d}`, killed.Process.Pid), false},
		"service, killed": {service, fmt.Sprintf(`{"pid":%d}`, killed.Process.Pid), false},
		"up, own number":  {up, fmt.Sprintf(`{"pid":%d}`, os.Getpid()), false},
		"up, alive":       {up, fmt.Sprintf(`{"pid":%d}`, os.Getppid()), true},
		"up, no number":   {up, `{}`, true},
		"up, no note":     {up, `x`, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(&Program{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}})
			a.data, a.http, a.logLevel = t.TempDir(), busy.Addr().String(), "error"
			a.readyFile = filepath.Join(t.TempDir(), "ready.json")
			if err := os.WriteFile(a.readyFile, []byte(c.body), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.run(a); err == nil {
				t.Fatal("it started, though its port is taken")
			}
			if _, err := os.Stat(a.readyFile); (err == nil) != c.stays {
				t.Errorf("the ready file: %v", err)
			}
		})
	}
}

// A service that fails ends the process with its error; the other services do not continue.
func TestServiceThatFailsEndsTheProcess(t *testing.T) {
	boom := errors.New("boom")
	srv := natstest.Start(t)
	h, err := health.Listen(t.Context(), "127.0.0.1:0", version)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{app: newApp(&Program{}), health: h,
		connect: func(ctx context.Context, name string) (*bus.Bus, error) {
			return bus.Open(ctx, bus.Config{URL: srv.URL(), Name: name})
		}}
	bad := target{name: "bad", consumers: func(*bus.Bus, *settings) []consumer.Source { return nil },
		make: func(*bus.Bus, *settings, zerolog.Logger) (service, error) { return &slowService{fail: boom}, nil }}
	if err := p.run(t.Context(), []target{bad}); !errors.Is(err, boom) {
		t.Errorf("%v, want %v", err, boom)
	}
}

// output is what a program writes. A program that does not end in time is abandoned, so it may still write while it is
// read.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns what was written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// runProgram runs the program as the operator does, until stop, which returns the exit code and stderr.
func runProgram(args ...string) (stop func() (int, string)) {
	var stderr output
	p := &Program{Args: args, Stdout: &output{}, Stderr: &stderr}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx) }()
	return func() (int, string) {
		cancel()
		code := <-ended
		return code, stderr.String()
	}
}

// A service waits for its broker without a limit, and leaves cleanly while it waits.
func TestServiceLeavesWhileItWaitsForTheBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ledger", "reconciler"} {
		stop := runProgram(name, "--nats", "nats://"+l.Addr().String(), "--http", "127.0.0.1:0")
		// the first attempt has failed
		for range 2 {
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if code, errs := stop(); code != exitDone {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A service whose broker is gone leaves cleanly, too.
func TestServiceLeavesWhileTheBrokerIsAway(t *testing.T) {
	for _, name := range []string{"ledger", "reconciler"} {
		srv := natstest.Start(t)
		ready := filepath.Join(t.TempDir(), "ready.json")
		stop := runProgram(name, "--nats", srv.URL(), "--http", "127.0.0.1:0", "--ready-file", ready)
		natstest.Until(t, "the ready file", func() bool { _, err := os.Stat(ready); return err == nil })
		srv.Shutdown()
		began := time.Now()
		if code, errs := stop(); code != exitDone {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
		t.Logf("%s left after %s", name, time.Since(began))
	}
}
