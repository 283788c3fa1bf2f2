//go:build unix

package acp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
	t.Parallel() // it waits for the end of processes
	endless := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n"),
		io.LimitReader(zeros{}, agent.LineBytesMax+(1<<20)), silence())
	endlessInATurn := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt",`+
		`"params":{"sessionId":"s1","prompt":[]}}`+"\n"), io.LimitReader(zeros{}, agent.LineBytesMax+(1<<20)), silence())
	var said strings.Builder // is read after the run
	t.Cleanup(func() {
		if !strings.Contains(said.String(), `"id":"turn","error":`) {
			t.Errorf("the open request gets no error: %q", said.String())
		}
	})
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
		"an endless line in a turn":      {`cat >/dev/null; exit 0`, endlessInATurn, &said, agent.ErrLineTooLong.Error()},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := &Runner{Command: agent.Command{Path: "/bin/sh", Args: []string{"-c", c.script}, Dir: dir},
				Harness: harness.Config{ID: "h", URL: "nats://127.0.0.1:1"}, Wait: time.Millisecond, Linger: time.Hour,
				In: c.in, Out: c.out, Say: func(string) {}}
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
			select {
			case err := <-ended:
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("the end: %v, want %q", err, c.want)
				}
			case <-time.After(patience):
				t.Error("the run does not end")
			}
		})
	}
}

// TestAFullQueue: an agent does not read. What waits for it is limited: the editor is not read any more.
func TestAFullQueue(t *testing.T) {
	t.Parallel() // it waits for the end of a process
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"x","params":%q}`+"\n", strings.Repeat("x", 1<<20))
	in := &counted{r: io.MultiReader(strings.NewReader(strings.Repeat(request, 40)), silence())}
	r := &Runner{Command: agent.Command{Path: "/bin/sh", Args: []string{"-c", `exec sleep 600`}, Dir: t.TempDir()},
		Harness: harness.Config{ID: "h", URL: "nats://127.0.0.1:1"}, Wait: time.Millisecond, Linger: time.Hour,
		In: in, Out: io.Discard, Say: func(string) {}}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	natstest.Until(t, "the queue is full", func() bool { return in.n.Load() > outboxBytesMax })
	time.Sleep(2 * time.Second) // a reader without a limit takes less for the rest
	if n := in.n.Load(); n > outboxBytesMax+(4<<20) {
		t.Errorf("%d MiB are read", n>>20)
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

// counted counts the bytes that are read.
type counted struct {
	r io.Reader
	n atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
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
