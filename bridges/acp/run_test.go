//go:build unix

package acp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"x","params":%q}`+"\n", strings.Repeat("x", 1<<20))
	endless := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n"),
		io.LimitReader(zeros{}, agent.LineBytesMax+(1<<20)), silence())
	for what, c := range map[string]struct {
		script string
		in     io.Reader
		out    io.Writer
		want   string // the error; "": none, after ctx has ended
	}{
		"an agent that closes its output": {`exec >&-; exec sleep 600`, silence(), io.Discard, agent.ErrMute.Error()},
		"an agent that does not read": {`exec sleep 600`, strings.NewReader(strings.Repeat(request, 40)), io.Discard,
			""},
		"an editor that does not read": {`line=$(head -c 65536 /dev/zero | tr '\0' x); n=0; ` +
			`while [ $n -lt 300 ]; do echo "$line"; n=$((n+1)); done; touch ready; ` +
			`while :; do echo "$line"; done`, silence(), deaf{}, ""},
		"an editor with an endless line": {`touch ready; exec cat`, endless, io.Discard, agent.ErrLineTooLong.Error()},
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
