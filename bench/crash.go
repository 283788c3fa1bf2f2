package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	roleEnv       = "HOLDFAST_BENCH_ROLE"
	dirEnv        = "HOLDFAST_BENCH_DIR"
	listenEnv     = "HOLDFAST_BENCH_LISTEN"
	countEnv      = "HOLDFAST_BENCH_COUNT"
	longEnv       = "HOLDFAST_BENCH_LONG"
	pendingCount  = 10_000
	claimersMax   = 256
	answerersMax  = 64 // concurrent answers
	deliveredAllS = 4  // after all processes were killed and started again, all prompts are answered and delivered
)

// process is this program in another role.
type process struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

// spawn starts a role in a process of its own, with more variables of its environment.
func spawn(role, dir, listen string, count int, more ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir, listenEnv+"="+listen,
		fmt.Sprintf("%s=%d", countEnv, count))
	cmd.Env = append(cmd.Env, more...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, bufio.NewReader(out)}, cmd.Start()
}

// expect reads lines until one begins with this word, and returns the rest of that line.
func (p *process) expect(word string) (string, error) {
	for {
		line, err := p.out.ReadString('\n')
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word); ok {
			return strings.TrimSpace(rest), nil
		}
		if err != nil {
			return "", fmt.Errorf("waiting for %q: %w", word, err)
		}
	}
}

// awaitEnd reads what the process prints until it ends.
func (p *process) awaitEnd() {
	if _, err := io.Copy(io.Discard, p.out); err != nil && !errors.Is(err, fs.ErrClosed) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// interrupt sends SIGKILL to a process that may have ended. The caller of expect gets the end of its output.
func (p *process) interrupt() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// kill sends SIGKILL and waits. The exit status of a killed process is not an error.
func (p *process) kill() {
	if p == nil {
		return
	}
	err := p.cmd.Process.Kill()
	if err == nil {
		err = p.cmd.Wait()
	}
	if _, killed := errors.AsType[*exec.ExitError](err); err != nil && !killed && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// play runs a spawned role until it is killed.
func play(role string) int {
	ctx := context.Background()
	var err error
	switch role {
	case "person":
		err = playPerson(ctx)
	case "rounds":
		err = playAgent(ctx, rounds)
	case "turns":
		err = playAgent(ctx, turns)
	case "restate-person":
		err = playRestatePerson(ctx)
	case "restate-rounds", "restate-turns":
		err = playRestateAgent(ctx, strings.TrimPrefix(role, "restate-"))
	case "asker":
		err = playAsker(ctx)
	case "ledger":
		err = playLedger(ctx)
	case "retrying", "broker":
		err = playRetrying(ctx, role == "retrying")
	default:
		err = fmt.Errorf("no such role: %s", role)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", role, err)
		return 1
	}
	return 0
}

func count() int {
	n := 0
	if _, err := fmt.Sscan(os.Getenv(countEnv), &n); err != nil {
		return 0
	}
	return n
}

// playAsker holds many prompts open, each in its own session. If the sessions exist, it claims them and asks the same
// prompts again. It prints a line when all are open, and when all are answered.
func playAsker(ctx context.Context) error {
	h, err := harness.Connect(ctx, harness.Config{ID: "asker", URL: os.Getenv(listenEnv)})
	if err != nil {
		return err
	}
	known, _, err := h.Sessions(ctx)
	if err != nil {
		return err
	}
	var open, settled sync.WaitGroup
	slots := make(chan struct{}, claimersMax)
	var once sync.Once
	var failed error
	for i := range count() {
		slots <- struct{}{}
		open.Add(1)
		settled.Go(func() {
			t, err := askerTurn(ctx, h, fmt.Sprintf("s%d", i), len(known) > 0)
			<-slots
			open.Done()
			if err == nil {
				_, err = t.Ask(ctx, harness.Prompt{ID: "p", Kind: events.PromptQuestion, Questions: yesNo})
			}
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	open.Wait()
	if err := h.Ready(ctx); err != nil {
		return err
	}
	fmt.Println("open")
	settled.Wait()
	fmt.Println("settled")
	if failed != nil {
		return failed
	}
	// until it is killed: its memory is read first
	select {}
}

func askerTurn(ctx context.Context, h *harness.Harness, id string, again bool) (*harness.Turn, error) {
	if !again {
		s, err := h.Open(ctx, id, harness.OpenOptions{})
		if err != nil {
			return nil, err
		}
		return s.StartTurn(ctx, harness.StartOptions{ID: "t", Content: "go"})
	}
	s, err := h.Claim(ctx, id, harness.Adopt{Turn: true, Prompts: []harness.Prompt{{ID: "p"}}})
	if err != nil {
		return nil, err
	}
	if t := s.OpenTurn(); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("claim %s: its turn was recovered before it was claimed", id)
}

// crashed opens 10,000 prompts of Holdfast, kills all processes, and starts them again.
func crashed(ctx context.Context, r *report, size float64) error {
	n := scaled(pendingCount, size, 200)
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := r.holdfast()
	up, asker, err := begin(ctx, program, dir, "127.0.0.1:0", n)
	defer func() { asker.kill(); up.kill() }()
	if err != nil {
		return err
	}
	if _, err := asker.expect("open"); err != nil {
		return err
	}
	b, err := bus.Open(ctx, bus.Config{URL: up.url})
	if err != nil {
		return err
	}
	if err := waitDocs(ctx, b, n); err != nil {
		return err
	}
	b.Close()
	asker.kill()
	up.kill()
	restarted := time.Now()
	listen := strings.TrimPrefix(up.url, "nats://")
	if up, asker, err = begin(ctx, program, dir, listen, n); err != nil {
		return err
	}
	if b, err = bus.Open(ctx, bus.Config{URL: up.url}); err != nil {
		return err
	}
	defer b.Close()
	first, err := answerAll(ctx, b, n)
	if err != nil {
		return err
	}
	if _, err := asker.expect("settled"); err != nil {
		return err
	}
	accepted, delivered := first.Sub(restarted).Seconds(), time.Since(restarted).Seconds()
	what := fmt.Sprintf("%d pending, all killed: first answer accepted after", n)
	all := "… all answered and delivered after"
	r.add("c", what, accepted, "s")
	if n == pendingCount {
		r.atMost("c", all, delivered, "s", deliveredAllS)
	} else {
		// the start of the services takes its time for few prompts too
		r.add("c", all, delivered, "s")
	}
	r.add("c", "… memory of the process that asks", memoryMB(asker.cmd.Process.Pid), "MB")
	r.add("c", "… memory of the broker with its services", memoryMB(up.cmd.Process.Pid), "MB")
	return nil
}

// begin starts the cell, with the default adoption grace, and the asking process.
func begin(ctx context.Context, program, dir, listen string, n int) (up *cell, asker *process, err error) {
	if up, err = startCell(ctx, program, dir, listen); err != nil {
		return nil, nil, err
	}
	asker, err = spawn("asker", dir, up.url, n)
	return up, asker, err
}

func waitDocs(ctx context.Context, b *bus.Bus, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	seen := 0
	return ignoreDone(b.KV.Watch(ctx, kv.State, []string{events.BlockerKeys("asker", "")}, func(u kv.Update) error {
		if !u.Ready {
			seen++
		}
		if seen >= n {
			return errDone
		}
		return nil
	}))
}

var errDone = errors.New("done")

func ignoreDone(err error) error {
	if errors.Is(err, errDone) {
		return nil
	}
	if err == nil {
		return context.DeadlineExceeded
	}
	return err
}

// answerAll answers every prompt with a request to any ledger, and returns the instant at which the first was accepted.
func answerAll(ctx context.Context, b *bus.Bus, n int) (first time.Time, err error) {
	var all errgroup.Group
	var once sync.Once
	all.SetLimit(answerersMax)
	for i := range n {
		all.Go(func() error {
			for {
				e := postAnswer(ctx, b, asked{events.Ref{Harness: "asker", Session: fmt.Sprintf("s%d", i)}, "p"})
				refusal, refused := errors.AsType[*events.Refusal](e)
				switch {
				case e == nil:
					once.Do(func() { first = time.Now() })
					return nil
				case refused && refusal.Code == 503 && ctx.Err() == nil:
					// the service is starting
					continue
				}
				return e
			}
		})
	}
	err = all.Wait()
	return first, err
}
