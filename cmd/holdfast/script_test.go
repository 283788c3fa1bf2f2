package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/drill"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/lease"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	scriptWaitMaxS = 120 // for each wait of a script
	scriptPollMS   = 20
)

// Scripts start the same program as the operator, in processes.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"holdfast": main})
}

// TestScripts runs every command with every exit code against a real `holdfast up`. A script opens with its purpose.
// Beside holdfast it has the commands of [scriptCommands]. These lines start a fresh broker:
//
//	holdfast up --data data --listen 127.0.0.1:0 --http 127.0.0.1:0 --ready-file ready.json &up&
//	ready
func TestScripts(t *testing.T) {
	noAccount := natstest.Start(t,
		natstest.Settings(t, `accounts { A { users: [{user: a, password: a}] } }`+"\nno_auth_user: a\n"))
	// it accepts connections, and says nothing
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	brokers := map[string]string{
		"SILENT":       "nats://" + silent.Addr().String(),
		"TOO_OLD":      natstest.Impostor{Version: "2.12.9", JetStream: true}.Start(t),
		"EXPIRED":      natstest.Impostor{Refusal: "User Authentication Expired"}.Start(t),
		"NO_JETSTREAM": noAccount.URL(),
	}
	traces, err := filepath.Abs("../../bridges/opencode/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("USER", "ann")
			// a longer wait never ends
			env.Setenv("HOLDFAST_TIMEOUT", "1m")
			env.Setenv("TRACES", traces)
			for name, url := range brokers {
				env.Setenv(name, url)
			}
			return nil
		},
		Cmds: scriptCommandsWithRetry(t),
	})
}

// scriptCommandsWithRetry returns all commands of scripts.
//
// calm COMMAND…: run a command that has limits of seconds for real processes. After a failure it runs again, a few
// times, if the machine or its disk stood still meanwhile; otherwise the script fails, and says which promises broke.
func scriptCommandsWithRetry(t *testing.T) map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	const standstill, tries = 300 * time.Millisecond, 5
	all := maps.Clone(scriptCommands)
	disk := natstest.FeelDisk(t)
	all["calm"] = func(ts *testscript.TestScript, _ bool, args []string) {
		for try := 1; ; try++ {
			pulse, before := natstest.Feel(t), disk()
			err := ts.Exec(args[0], args[1:]...)
			lost := pulse.Lost() + disk() - before
			if err == nil {
				return
			}
			why := fmt.Sprintf("%q: %v; the machine or its disk stood still for %s%s", args, err, lost,
				brokenPromises(ts.ReadFile("stdout")))
			if lost <= standstill || try == tries {
				ts.Fatalf("%s", why)
			}
			ts.Logf("%s; again", why)
		}
	}
	return all
}

// brokenPromises returns the lines of a drill's output that name a broken promise, each after a line break.
func brokenPromises(out string) string {
	var broken strings.Builder
	for line := range strings.Lines(out) {
		var res drill.Result
		switch {
		case strings.HasPrefix(line, "broken"):
			broken.WriteString("\n" + strings.TrimSpace(line))
		case json.Unmarshal([]byte(line), &res) == nil:
			for _, v := range res.Verdicts {
				if !v.OK {
					fmt.Fprintf(&broken, "\n%s: %s: want %s, got %s", v.Act, v.Promise, v.Expected, v.Seen)
				}
			}
		}
	}
	return broken.String()
}

var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"ready":      scriptReady,
	"lease":      scriptLease,
	"seed":       scriptSeed,
	"eventually": scriptEventually,
	"fetch":      scriptFetch,
	"exits":      scriptExits,
	"term":       scriptTerm,
	"start":      scriptStart,
	"broker":     scriptBroker,
	"seen":       scriptSeen,
	"large":      scriptLarge,
}

// until polls, and fails the script at the time limit. try returns what is missing, nil for nothing.
func until(ts *testscript.TestScript, try func() error) {
	tick := time.NewTicker(scriptPollMS * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(scriptWaitMaxS * time.Second)
	defer late.Stop()
	for err := try(); err != nil; err = try() {
		select {
		case <-tick.C:
		case <-late.C:
			ts.Fatalf("waited %d s: %v", scriptWaitMaxS, err)
		}
	}
}

// ready [FILE]: wait for the ready file (ready.json), and set its broker in HOLDFAST_NATS and its URL in HTTP.
func scriptReady(ts *testscript.TestScript, _ bool, args []string) {
	file := "ready.json"
	if len(args) > 0 {
		file = args[0]
	}
	var note health.Note
	until(ts, func() error {
		body, err := os.ReadFile(ts.MkAbs(file))
		if err != nil {
			return err
		}
		// it is there as a whole or not at all
		ts.Check(json.Unmarshal(body, &note))
		return nil
	})
	ts.Setenv("HOLDFAST_NATS", note.NATS)
	ts.Setenv("HTTP", note.HTTP)
	ts.Setenv("ADDRESS", strings.TrimPrefix(note.HTTP, "http://"))
	ts.Setenv("BROKER", strings.TrimPrefix(note.NATS, "nats://"))
	ts.Setenv("PID", fmt.Sprint(note.PID))
}

func scriptBus(ts *testscript.TestScript) *bus.Bus {
	ctx, cancel := context.WithTimeout(context.Background(), scriptWaitMaxS*time.Second)
	defer cancel()
	b, err := bus.Open(ctx, bus.Config{URL: ts.Getenv("HOLDFAST_NATS"), Name: "script"})
	ts.Check(err)
	ts.Defer(b.Close)
	return b
}

// lease HARNESS [TTL]: create a lease of this harness, with its incarnation in INC; for the rest of the script, or,
// without renewal, for the TTL.
func scriptLease(ts *testscript.TestScript, _ bool, args []string) {
	b, ctx := scriptBus(ts), context.Background()
	ttl := time.Hour
	if len(args) > 1 {
		var err error
		ttl, err = time.ParseDuration(args[1])
		ts.Check(err)
	}
	n, err := b.Leases.Ticket(ctx, args[0], 0)
	ts.Check(err)
	inc := fmt.Sprint(n)
	value, err := json.Marshal(lease.Record{ID: args[0], Incarnation: inc, Exclusive: true, State: lease.Ready,
		TTLMS: ttl.Milliseconds()})
	ts.Check(err)
	_, err = b.Leases.Acquire(ctx, events.HarnessLeaseKey(args[0], inc), value, ttl)
	ts.Check(err)
	ts.Setenv("INC", inc)
}

// seed FILE: append facts. The file's paragraphs are commits:
//
//	HARNESS/SESSION WRITER SOURCE EPOCH
//	KIND DATA
//
// with variables of the environment in it. Unknown kinds are appended unchanged.
func scriptSeed(ts *testscript.TestScript, _ bool, args []string) {
	b, ctx := scriptBus(ts), context.Background()
	text := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	for _, commit := range strings.Split(strings.TrimSpace(text), "\n\n") {
		head, facts, _ := strings.Cut(commit, "\n")
		var name, writer, source string
		var epoch uint64
		_, err := fmt.Sscan(head, &name, &writer, &source, &epoch)
		ts.Check(err)
		harness, session, _ := strings.Cut(name, "/")
		r := events.Ref{Harness: harness, Session: session}
		var evs []events.Event
		for _, l := range strings.Split(facts, "\n") {
			kind, data, _ := strings.Cut(strings.TrimSpace(l), " ")
			evs = append(evs, events.Event{ID: b.NewID(), Source: source, Kind: events.Kind(kind),
				Subject: subject(ts, kind, data, session),
				Session: session, Epoch: epoch, Time: time.Now(), Data: json.RawMessage(data)})
		}
		commits, err := b.Log.Read(ctx, r, 0)
		ts.Check(err)
		after := uint64(0)
		if len(commits) > 0 {
			after = commits[len(commits)-1].Seq
		}
		seq, err := b.Log.Append(ctx, r, events.Writer(writer), after, evs)
		ts.Check(err)
		ts.Setenv("SEQ", fmt.Sprint(seq))
	}
}

// subject returns the subject's id of a fact.
func subject(ts *testscript.TestScript, kind, data, session string) string {
	entity, _, _ := strings.Cut(kind, ".")
	var fields map[string]any
	ts.Check(json.Unmarshal([]byte(data), &fields))
	switch entity {
	case "tool":
		entity = "call"
	case "retry", "usage":
		entity = "turn"
	}
	if id, ok := fields[entity].(string); ok && entity != "session" {
		return id
	}
	return session
}

// eventually REGEX [unwell] COMMAND…: run the command until it succeeds (unwell: or fails) and its output matches.
func scriptEventually(ts *testscript.TestScript, neg bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	unwell := args[1] == "unwell"
	if unwell {
		args = args[1:]
	}
	until(ts, func() error {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout")
		if (err == nil || unwell) && want.MatchString(out) != neg {
			return nil
		}
		return fmt.Errorf("%q: %v\n%s%s", args[1:], err, out, ts.ReadFile("stderr"))
	})
}

// fetch PATH STATUS [REGEX]: get a path from the HTTP server of the ready file.
func scriptFetch(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(ts.Getenv("HTTP") + args[0])
	ts.Check(err)
	body, err := io.ReadAll(resp.Body)
	ts.Check(errors.Join(err, resp.Body.Close()))
	if fmt.Sprint(resp.StatusCode) != args[1] {
		ts.Fatalf("%s: %s: %s", args[0], resp.Status, body)
	}
	if len(args) > 2 && !regexp.MustCompile("(?m)"+args[2]).Match(body) {
		ts.Fatalf("%s: no %s in %s", args[0], args[2], body)
	}
}

// term: send SIGTERM to the process of the ready file.
func scriptTerm(ts *testscript.TestScript, _ bool, _ []string) {
	pid, err := strconv.Atoi(ts.Getenv("PID"))
	ts.Check(err)
	up, err := os.FindProcess(pid)
	ts.Check(err)
	ts.Check(up.Signal(syscall.SIGTERM))
}

// start FILE ARGUMENT…: run holdfast in the background until the script ends, its output in FILE.
func scriptStart(ts *testscript.TestScript, _ bool, args []string) {
	out, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*scriptWaitMaxS*time.Second)
	ended := make(chan int, 1)
	p := &Program{Args: args[1:], Env: []string{"HOLDFAST_NATS=" + ts.Getenv("HOLDFAST_NATS")}, Stdout: out,
		Stderr: io.Discard}
	go func() { ended <- p.Run(ctx) }()
	ts.Defer(func() {
		cancel()
		code := <-ended
		ts.Check(out.Close())
		if code != exitDone {
			ts.Fatalf("%q ended with exit code %d", args[1:], code)
		}
	})
}

// seen FILE REGEX: wait until the file matches; with ! in front, check that it does not.
func scriptSeen(ts *testscript.TestScript, neg bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	read := func() string {
		body, err := os.ReadFile(ts.MkAbs(args[0]))
		ts.Check(err)
		return string(body)
	}
	if neg {
		if text := read(); want.MatchString(text) {
			ts.Fatalf("%s matches %s:\n%s", args[0], want, text)
		}
		return
	}
	until(ts, func() error {
		if text := read(); !want.MatchString(text) {
			return fmt.Errorf("%s: no %s in:\n%s", args[0], want, text)
		}
		return nil
	})
}

// large FILE BYTES: write a text of so many bytes.
func scriptLarge(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte("x"), n), 0o600))
}

// broker: run a broker without services, with its URL in HOLDFAST_NATS.
func scriptBroker(ts *testscript.TestScript, _ bool, _ []string) {
	ctx, cancel := context.WithTimeout(context.Background(), scriptWaitMaxS*time.Second)
	defer cancel()
	srv, err := embed.Start(ctx, embed.Config{Dir: ts.MkAbs("broker"), Listen: "127.0.0.1:0"})
	ts.Check(err)
	ts.Defer(srv.Shutdown)
	ts.Setenv("HOLDFAST_NATS", srv.URL())
}

// exits CODE COMMAND…: run the command and compare its exit code.
func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// Every script begins with a comment that has its purpose.
func TestScriptsBeginWithTheirPurpose(t *testing.T) {
	files, err := fs.Glob(os.DirFS("testdata/script"), "*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	for _, f := range files {
		body, err := os.ReadFile("testdata/script/" + f)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(body, []byte("# ")) {
			t.Errorf("%s: the first line does not say why it exists", f)
		}
	}
}

// A run whose output cannot be written fails.
func TestOutputThatCannotBeWritten(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	var stderr bytes.Buffer
	a := newApp(&Program{Stdout: w, Stderr: &stderr})
	if err := a.print("x"); err == nil || !errors.Is(err, fs.ErrClosed) &&
		!strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("written into a closed pipe: %v", err)
	}
}
