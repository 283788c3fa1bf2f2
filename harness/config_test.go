package harness_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// Everything that is wrong is reported at once, each with what is wanted.
func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  harness.Config
		want []string // fields
	}{
		{"an id is all it needs", harness.Config{ID: "a"}, nil},
		{"no id", harness.Config{}, []string{"ID"}},
		{"an id that is too long", harness.Config{ID: strings.Repeat("x", 129)}, []string{"ID"}},
		{"all at once", harness.Config{ID: "a", Prefix: "Hf", TTL: time.Millisecond, OnLeaseLoss: 9, BufferFactsMax: -1,
			BufferBytesMax: -1},
			[]string{"Prefix", "TTL", "OnLeaseLoss", "BufferFactsMax", "BufferBytesMax"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cfg.Validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatal(err)
			}
			for _, field := range c.want {
				if !strings.Contains(err.Error(), "config: "+field+": want ") {
					t.Errorf("%s is not reported: %v", field, err)
				}
			}
			if err != nil && strings.Count(err.Error(), "want ") != len(c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestConnectRefused: an error of Connect is one sentence with the address, the cause and what to do, and has the
// reason in its chain.
func TestConnectRefused(t *testing.T) {
	// no cell on it
	s := natstest.Start(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	mute := silent.Addr().String()
	talker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = talker.Close() })
	go func() {
		for {
			c, err := talker.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		}
	}()
	const mutely = ": a program listens there, but does not answer as a broker"
	const start = ": start one with `holdfast up`, or give the address of another one"
	for url, want := range map[string]struct {
		err  error
		text string
	}{
		s.URL(): {harness.ErrNoCell, "the broker at " + s.URL() + ` has no cell "hf": ` +
			"`holdfast up`, or the first service that runs there, makes it; else correct the prefix"},
		"nats://ann:secret@127.0.0.1:1": {harness.ErrUnreachable,
			"no broker answers at nats://127.0.0.1:1: nothing listens there" + start},
		"nats://127.0.0.1:1,nats://127.0.0.1:2": {harness.ErrUnreachable,
			"no broker answers at nats://127.0.0.1:1,nats://127.0.0.1:2" + start},
		"nats://nowhere.invalid:4222": {harness.ErrUnreachable,
			`no broker answers at nats://nowhere.invalid:4222: there is no host "nowhere.invalid"` + start},
		"nats://" + mute: {harness.ErrUnreachable,
			"no broker answers at nats://" + mute + mutely + start},
		"nats://" + talker.Addr().String(): {harness.ErrUnreachable, "no broker answers at nats://" +
			talker.Addr().String() + mutely + start},
		"nats://127.0.0.1:x": {harness.ErrUnreachable,
			`"nats://127.0.0.1:x" is no address of a broker: invalid port ":x" after host: want nats://host:port`},
		"tls" + strings.TrimPrefix(s.URL(), "nats"): {harness.ErrUnreachable, "no trusted connection to tls" +
			strings.TrimPrefix(s.URL(), "nats") + ": the broker has no TLS, and this client sends its login over TLS " +
			"only: secure connection not available"},
	} {
		t.Run(want.text, func(t *testing.T) {
			t.Parallel()
			// an attempt that gets no answer takes 2 s
			long := 2500 * time.Millisecond
			if errors.Is(want.err, harness.ErrNoCell) {
				long = patience
			}
			ctx, cancel := context.WithTimeout(context.Background(), long)
			defer cancel()
			_, err := harness.Connect(ctx, harness.Config{ID: me, URL: url, Log: slog.New(slog.DiscardHandler)})
			wantErr(t, err, want.err)
			if got := err.Error(); got != "harness: connect "+me+": "+want.text {
				t.Errorf("%s\nwant %s", got, want.text)
			}
		})
	}
}

// linesOf is a logger that keeps the lines with their levels.
func linesOf(t *testing.T) (*slog.Logger, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var logged []string
	h := slog.NewTextHandler(writerFunc(func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, strings.TrimSpace(string(p)))
	}), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "id" || a.Key == "entity" {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(h), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), logged...)
	}
}

// TestConnectLogsWhatItWaitsFor: a program without a logger of its own says after a second what it waits for, once, and
// that it was connected. A broker without a cell is waited for, too: `holdfast up` makes it a moment after it listens.
func TestConnectLogsWhatItWaitsFor(t *testing.T) {
	log, logged := linesOf(t)
	was := slog.Default()
	slog.SetDefault(log)
	defer slog.SetDefault(was)
	s := natstest.Start(t)
	s.Shutdown()
	connected := make(chan *harness.Harness, 1)
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		h, err := harness.Connect(t.Context(), harness.Config{ID: me, URL: s.URL()})
		connected <- h
		ended <- err
	}()
	want := []string{fmt.Sprintf("level=WARN msg=\"still trying: no broker answers at %s: nothing listens there: "+
		"start one with `holdfast up`, or give the address of another one\"", s.URL())}
	natstest.Until(t, "the first line", func() bool { return len(logged()) > 0 })
	if took := time.Since(began); took < time.Second {
		t.Errorf("said after %s: a broker that starts at the same time is no trouble", took)
	}
	natstest.Restart(t, s)
	want = append(want, fmt.Sprintf("level=WARN msg=\"still trying: the broker at %s has no cell \\\"hf\\\": "+
		"`holdfast up`, or the first service that runs there, makes it; else correct the prefix\"", s.URL()))
	natstest.Until(t, "the second line", func() bool { return len(logged()) > 1 })
	// makes the cell
	natstest.Bus(t, s)
	h := <-connected
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want = append(want, fmt.Sprintf("level=INFO msg=\"connected to %s\"", s.URL()))
	natstest.Until(t, "the last line", func() bool { return len(logged()) > 2 })
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := logged(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
