//go:build unix

package acp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/agent"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestDeaf: a peer does not read, or closes its output and lives, or writes a line without an end. The run ends when it
// is asked to, and ends the agent.
func TestDeaf(t *testing.T) {
	// it waits for the end of processes
	t.Parallel()
	endless := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n"),
		io.LimitReader(zeros{}, agent.LineBytesMax+(1<<20)), silence())
	inATurn := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt",`+
		`"params":{"sessionId":"s1","prompt":[]}}`+"\n"), io.LimitReader(zeros{}, agent.LineBytesMax+(1<<20)),
		silence())
	var output kept
	for what, c := range map[string]struct {
		script string
		in     io.Reader
		out    io.Writer
		want   string // the error; "": none, after ctx has ended
	}{
		"an agent that closes its output": {`exec >&-; exec sleep 600`, silence(), io.Discard, agent.ErrMute.Error()},
		"an editor that does not read": {`line=$(head -c 65536 /dev/zero | tr '\0' x); n=0; ` +
			`while [ $n -lt 300 ]; do echo "$line"; n=$((n+1)); done; touch ready; ` +
			`while :; do echo "$line"; done`, silence(), deaf{}, ""},
		"an editor with an endless line": {`touch ready; exec cat`, endless, io.Discard, agent.ErrLineTooLong.Error()},
		"an endless line in a turn":      {`cat >/dev/null; exit 0`, inATurn, &output, agent.ErrLineTooLong.Error()},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := &Runner{Command: agent.Command{Path: "/bin/sh", Args: []string{"-c", c.script}, Dir: dir},
				Harness: harness.Config{ID: "h", URL: "nats://127.0.0.1:1"}, Wait: time.Millisecond, Linger: time.Hour,
				In: c.in, Out: c.out, Warn: func(string) {}}
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			if c.want == "" && strings.Contains(c.script, "ready") {
				natstest.Until(t, "the agent has written", func() bool {
					_, err := os.Stat(filepath.Join(dir, "ready"))
					return err == nil
				})
			}
			if c.want == "" {
				cancel()
			}
			if c.out == &output {
				output.until(t, `"id":"turn","error":`)
			}
			select {
			case err := <-ended:
				if c.want == "" && err != nil ||
					c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("the end: %v, want %q", err, c.want)
				}
			case <-time.After(patience):
				t.Error("the run does not end")
			}
		})
	}
}

// TestAFullQueue: an agent does not read. The lines that wait for it are limited: the editor is not read any more.
func TestAFullQueue(t *testing.T) {
	// it waits for the end of a process
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"x","params":%q}`+"\n", strings.Repeat("x", 1<<20))
	in := &counted{limit: outboxBytesMax + (4 << 20), over: make(chan struct{}),
		r: io.MultiReader(strings.NewReader(strings.Repeat(request, 40)), silence())}
	r := &Runner{Command: agent.Command{Path: "/bin/sh", Args: []string{"-c", `exec sleep 600`}, Dir: t.TempDir()},
		Harness: harness.Config{ID: "h", URL: "nats://127.0.0.1:1"}, Wait: time.Millisecond, Linger: time.Hour,
		In: in, Out: io.Discard, Warn: func(string) {}}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	natstest.Until(t, "the queue is full", func() bool { return in.n.Load() > outboxBytesMax })
	select {
	case <-in.over:
		t.Error("more is read")
	case <-time.After(2 * time.Second):
		// a reader without a limit takes less
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the run does not end")
	}
}

// dying is a run of an agent that ends with status 7 behind its first reply. Its next process runs the other script.
func dying(t *testing.T, next string, out io.Writer, warn func(string)) (r *Runner, dir string) {
	t.Helper()
	dir = t.TempDir()
	script := `read line; if [ -e again ]; then ` + next + `; fi; touch again
		id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
		echo '{"jsonrpc":"2.0","id":'$id',"result":{"agentCapabilities":{"loadSession":true}}}'
		read line; exit 7`
	in := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{}}`+"\n"+
		`{"jsonrpc":"2.0","id":"x","method":"x","params":{}}`+"\n"), silence())
	return &Runner{Command: agent.Command{Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir},
		Harness: harness.Config{ID: "h", URL: "nats://127.0.0.1:1"}, Wait: time.Millisecond, Linger: time.Hour,
		In: in, Out: out, Warn: warn, Restarts: 1, restoreWait: 100 * time.Millisecond}, dir
}

// runs returns the end of a run.
func (r *Runner) runs(t *testing.T, ctx context.Context) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatal("the run does not end")
		return nil
	}
}

const repeatLine = "(exit status 7): it is started again in 250ms (1 of 1)"

// TestHangsWhenRestored: the next process of an agent does not reply to its first request. It is ended, and the request
// of the editor has an error.
func TestHangsWhenRestored(t *testing.T) {
	// it waits for the end of processes
	t.Parallel()
	var out kept
	// is written in the loop of the run
	again := false
	r, _ := dying(t, "exec sleep 600", &out, func(s string) {
		if strings.Contains(s, repeatLine) {
			again = true
		}
	})
	if err := r.runs(t, t.Context()); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the end: %v", err)
	}
	if !again {
		t.Errorf("%q is not said", repeatLine)
	}
	out.until(t, `"id":"x","error"`)
}

// TestEndsInThePause: the run is asked to end after the agent's process has ended, and before the next one is started.
// It ends, and starts none.
func TestEndsInThePause(t *testing.T) {
	// it waits for the end of processes
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, dir := dying(t, "touch more; exec sleep 600", io.Discard, func(s string) {
		if strings.Contains(s, repeatLine) {
			cancel()
		}
	})
	if err := r.runs(t, ctx); err != nil {
		t.Errorf("the end: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "more")); err == nil {
		t.Error("the agent is started again")
	}
}

// TestCannotBeStartedAgain: the agent's program is gone when it is to be started again. The run ends with the reason.
func TestCannotBeStartedAgain(t *testing.T) {
	// it waits for the end of processes
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.Symlink("/bin/sh", path); err != nil {
		t.Fatal(err)
	}
	r, _ := dying(t, "exit 9", io.Discard, func(s string) {
		if strings.Contains(s, repeatLine) {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	})
	r.Command.Path = path
	if err := r.runs(t, t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("the end: %v", err)
	}
}

// TestFormsByContent: initialize says to the agent of an editor without forms that forms are shown, unless the cell
// stores no questions: then no person could read them.
func TestFormsByContent(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Lazy())
	// with a cell
	natstest.Bus(t, srv)
	for content, want := range map[agent.Content]bool{
		agent.ContentNone: false, agent.ContentTitles: true, agent.ContentFull: true} {
		var out kept
		ctx, cancel := context.WithCancel(t.Context())
		hello := strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}` + "\n")
		r := &Runner{Command: agent.Command{Path: "/bin/sh", Dir: t.TempDir(),
			Args: []string{"-c", `read line; echo '{"method":"said","params":'"$line"'}'; cat >/dev/null`}},
			Harness: harness.Config{ID: "h", URL: srv.URL()}, Wait: patience, Linger: time.Hour, Content: content,
			In: io.MultiReader(hello, silence()), Out: &out, Warn: func(string) {}}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		out.until(t, `"said"`)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := out.all.String(); strings.Contains(got, `"form":{}`) != want {
			t.Errorf("at %s the agent got %s", content, got)
		}
	}
}

// kept is what an editor reads.
type kept struct {
	mu  sync.Mutex
	all strings.Builder
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all.Write(b)
}

func (k *kept) until(t *testing.T, text string) {
	t.Helper()
	natstest.Until(t, "the editor reads "+text, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return strings.Contains(k.all.String(), text)
	})
}

// counted counts the bytes that are read.
type counted struct {
	r     io.Reader
	limit int64
	n     atomic.Int64
	over  chan struct{} // more than the limit is read
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if all := c.n.Add(int64(n)); all > c.limit && all-int64(n) <= c.limit {
		close(c.over)
	}
	return n, err
}

// zeros is an endless line.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// silence is an editor that says nothing, and does not leave.
func silence() io.Reader {
	r, _ := io.Pipe()
	return r
}

// deaf is an editor that does not read.
type deaf struct{}

func (deaf) Write([]byte) (int, error) { select {} }
