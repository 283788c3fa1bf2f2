package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/clock"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/bus/log"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/terminal"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	progressAfterMS = 2_000 // after which a command reports that it still works
	progressEveryMS = 2_000
	candidatesMax   = 5 // sessions named if a name fits several
)

// checkLogin reports a login file that cannot be read, before a connection is tried with it.
func (a *app) checkLogin(cmd *cobra.Command) error {
	for _, f := range []struct{ flag, path string }{
		{"creds", a.creds}, {"password-file", a.passwordFile}, {"nkey", a.nkey},
		{"tls-ca", a.tlsCA}, {"tls-cert", a.tlsCert}, {"tls-key", a.tlsKey}} {
		if f.path == "" || cmd.Flags().Lookup(f.flag) == nil {
			continue
		}
		file, err := os.Open(f.path)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return usage(cmd, "--%s: %v", f.flag, err)
		}
	}
	return nil
}

// connect opens the connection of a command, within --timeout.
func (a *app) connect(ctx context.Context) (*bus.Bus, error) { return a.connectAs(ctx, "cli") }

// connectAs is connect under a name that the broker shows.
func (a *app) connectAs(ctx context.Context, name string) (*bus.Bus, error) {
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	var b *bus.Bus
	err := a.whileTrying(func() (err error) {
		b, err = bus.Open(limited, a.busConfig(name))
		return err
	})
	if err != nil && ctx.Err() == nil {
		err = a.noBroker(err)
	}
	return b, err
}

// with runs a command's work on a connection of its own.
func (a *app) with(ctx context.Context, do func(ctx context.Context, b *bus.Bus) error) error {
	b, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	return a.explain(do(ctx, b), b.Connected())
}

// withSession is with for commands about one session, which is looked up by its name.
func (a *app) withSession(ctx context.Context, name string,
	do func(ctx context.Context, b *bus.Bus, r events.Ref) error) error {
	return a.with(ctx, func(ctx context.Context, b *bus.Bus) error {
		r, err := a.resolve(ctx, b, name)
		if err != nil {
			return err
		}
		return do(ctx, b, r)
	})
}

// resolve returns the session of a name: harness/session, or the session alone if only one harness has it.
func (a *app) resolve(ctx context.Context, b *bus.Bus, name string) (events.Ref, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	// a session's own id may hold a slash, too
	for i := range name {
		if name[i] != '/' {
			continue
		}
		r := events.Ref{Harness: name[:i], Session: name[i+1:]}
		known, err := knows(ctx, b, r)
		if known || err != nil {
			return r, err
		}
	}
	var found []events.Ref
	var err error
	// else no session has this name
	if _, wrong := events.Token(name); wrong == nil {
		err = b.KV.List(ctx, kv.State, events.SessionKeysNamed(name), func(e kv.Entry) error {
			found = addNamed(found, e.Key)
			return nil
		})
	}
	switch {
	case err != nil:
		return events.Ref{}, fmt.Errorf("look for session %s: %w", name, err)
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return events.Ref{}, noSession(ctx, b.KV, name)
	}
	var names []string
	for _, r := range found[:min(len(found), candidatesMax)] {
		names = append(names, r.String())
	}
	return events.Ref{}, &events.Refusal{Code: http.StatusConflict,
		Message: fmt.Sprintf("%d harnesses have a session %s: say which: %s", len(found), name,
			strings.Join(names, ", "))}
}

// errFound ends a list at its first entry.
var errFound = errors.New("found")

// noSession is the refusal of a name that no session has. A harness of that name is a hint at what was meant.
func noSession(ctx context.Context, buckets *kv.Buckets, name string) error {
	hint := "`holdfast sessions --all` lists them"
	if _, wrong := events.Token(name); wrong == nil {
		err := buckets.List(ctx, kv.State, events.SessionKeys(name), func(kv.Entry) error { return errFound })
		if errors.Is(err, errFound) {
			hint = fmt.Sprintf("%[1]s is a harness: `holdfast sessions --all --harness %[1]s` lists its sessions",
				quoted(name))
		}
	}
	return &events.Refusal{Code: http.StatusNotFound, What: "session",
		Message: fmt.Sprintf("no such session: %s; %s", name, hint)}
}

// addNamed adds the session of a key, once: a key that changes while the keys are listed is listed again.
func addNamed(found []events.Ref, key string) []events.Ref {
	if r, err := events.ParseSessionKey(key); err == nil && !slices.Contains(found, r) {
		found = append(found, r)
	}
	return found
}

// knows reports whether a session of this name exists: as a document, or as a log that no ledger has folded yet.
func knows(ctx context.Context, b *bus.Bus, r events.Ref) (bool, error) {
	if r.Validate() != nil {
		return false, nil
	}
	_, err := b.KV.Load(ctx, kv.State, events.SessionKey(r))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, bus.ErrNotFound) {
		return false, fmt.Errorf("look for session %s: %w", r, err)
	}
	commits, err := b.Log.Read(ctx, r, 0)
	if errors.Is(err, bus.ErrNotFound) {
		return false, nil
	}
	return len(commits) > 0, err
}

// current returns a session as the log has it now, with or without a running ledger; behind is the number of commits
// that the stored document lacks.
func (a *app) current(ctx context.Context, b *bus.Bus, r events.Ref) (st *session.State, behind int, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	st = session.New(r)
	e, err := b.KV.Load(ctx, kv.State, events.SessionKey(r))
	if err == nil {
		st, err = session.Decode(e.Value)
	}
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return nil, 0, fmt.Errorf("session %s: %w", r, err)
	}
	tail, err := b.Log.Read(ctx, r, st.Seq+1)
	if err != nil {
		return nil, 0, fmt.Errorf("session %s: %w", r, err)
	}
	for i := range tail {
		st.Fold(&tail[i])
	}
	return st, len(tail), nil
}

// source returns a reader of commits for the views of a session.
func (a *app) source(ctx context.Context, commits *log.Log) session.Source {
	return func(seq uint64) (*events.Commit, error) {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		c, err := commits.Commit(ctx, seq)
		return &c, err
	}
}

// rememberedMax is how many commits a reader remembers.
const rememberedMax = 10_000

// remembered returns a reader that reads each commit once, unless that is long ago. It is for one goroutine.
func remembered(read session.Source) session.Source {
	known := map[uint64]*events.Commit{}
	return func(seq uint64) (*events.Commit, error) {
		if c := known[seq]; c != nil {
			return c, nil
		}
		c, err := read(seq)
		if err == nil {
			if len(known) >= rememberedMax {
				clear(known)
			}
			known[seq] = c
		}
		return c, err
	}
}

// call sends a request to a service. If that takes longer than two seconds, it says so beside the result.
func call[Q request.Checked, R any](ctx context.Context, a *app, services *rpc.Services, v request.Verb[Q, R],
	doing string, q Q) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, max(a.timeout, a.patience))
	defer cancel()
	var r R
	err := a.progress(doing, func() (err error) {
		r, err = rpc.Call(ctx, services, v, q)
		return err
	})
	return r, err
}

// progress runs a function and reports from the second second on that it still runs.
func (a *app) progress(doing string, run func() error) error {
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- run() }()
	wait := time.NewTimer(progressAfterMS * time.Millisecond)
	defer wait.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-wait.C:
			a.printError("%s … %s", terminal.Clean(doing), terminal.Age(time.Since(began)))
			wait.Reset(progressEveryMS * time.Millisecond)
		}
	}
}

// now returns the broker's time; without a log, this machine's time, which is good enough to show ages.
func (a *app) now(ctx context.Context, broker *clock.Clock) time.Time {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	now, err := broker.Now(ctx)
	if err != nil {
		return time.Now()
	}
	return now
}

// lines reads the lines that a person types or a script pipes in.
type lines struct{ scanner *bufio.Scanner }

func newLines(r io.Reader) *lines {
	if r == nil {
		r = strings.NewReader("")
	}
	return &lines{scanner: bufio.NewScanner(r)}
}

// next returns the next line; [io.EOF] at the end. The end of ctx ends it at once.
func (l *lines) next(ctx context.Context) (string, error) {
	return input(ctx, func() (string, error) {
		if l.scanner.Scan() {
			return strings.TrimSpace(l.scanner.Text()), nil
		}
		if err := l.scanner.Err(); err != nil {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		return "", io.EOF
	})
}

// input reads what a person types or a script pipes in. A read of a terminal or a pipe cannot be interrupted: at the
// end of ctx it is abandoned, and the process ends with it.
func input(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", errInterrupted
	}
}
