package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	readyMax  = 2 * time.Minute       // for `holdfast up`
	readyPoll = 20 * time.Millisecond // interval of the checks for its ready file
	stopMax   = 15 * time.Second      // for its clean end
	tickHz    = 100                   // USER_HZ: clock ticks a second in /proc/<pid>/stat
)

// cell is a running `holdfast up`: a broker that syncs every write, and all four services, in a process of its own.
type cell struct {
	cmd  *exec.Cmd
	dir  string
	url  string
	done chan error
}

// startCell runs a program's `up` with its data in a directory, and waits until all services are ready.
func startCell(ctx context.Context, program, dir, listen string) (*cell, error) {
	note := filepath.Join(dir, "ready.json")
	if err := os.Remove(note); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	args := []string{"up", "--data", filepath.Join(dir, "data"), "--listen", listen, "--http", "127.0.0.1:0",
		"--ready-file", note, "--log-level", "error"}
	c := &cell{cmd: exec.Command(program, args...), dir: dir, done: make(chan error, 1)}
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { c.done <- c.cmd.Wait() }()
	if err := c.awaitReady(ctx, note); err != nil {
		c.kill()
		return nil, fmt.Errorf("%s up: %w", program, err)
	}
	return c, nil
}

// awaitReady waits for the ready file and reads the address of the broker.
func (c *cell) awaitReady(ctx context.Context, note string) error {
	return c.await(ctx, func(context.Context) (bool, error) {
		body, err := os.ReadFile(note)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var n struct {
			NATS string `json:"nats"`
		}
		err = json.Unmarshal(body, &n)
		c.url = n.NATS
		return true, err
	})
}

// await calls a function again and again until it reports true, or fails, or the process ends.
func (c *cell) await(ctx context.Context, ready func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, readyMax)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if done, err := ready(ctx); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case err := <-c.done:
			c.done <- err
			return fmt.Errorf("it has ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop ends the process cleanly, and kills it if that takes too long.
func (c *cell) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		c.done <- err
		return err
	case <-time.After(stopMax):
		c.kill()
		return fmt.Errorf("%s up did not end within %v", c.cmd.Path, stopMax)
	}
}

// awaitEnd waits for the end of the process.
func (c *cell) awaitEnd() {
	err := <-c.done
	c.done <- err
}

// kill sends SIGKILL and waits for the end of the process. It may be called again.
func (c *cell) kill() {
	if c == nil {
		return
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	c.awaitEnd()
}

// cpu returns the CPU time that the process has used, user and system.
func (c *cell) cpu() (time.Duration, error) {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The fields behind the name, which is in brackets and may have spaces: utime is the 12th, stime the 13th.
	const utime, stime = 11, 12
	_, rest, _ := strings.Cut(string(body), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= stime {
		return 0, fmt.Errorf("unexpected form of /proc/%d/stat", c.cmd.Process.Pid)
	}
	var ticks int64
	for _, f := range []string{fields[utime], fields[stime]} {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / tickHz, nil
}

// memoryMB returns the maximum resident memory of a process.
func memoryMB(pid int) float64 {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(body)) {
		var kb float64
		if n, err := fmt.Sscanf(line, "VmHWM: %f kB", &kb); n == 1 && err == nil {
			return kb / 1024
		}
	}
	return 0
}

// busy is how long the cores of the machine worked, and how long all of them could have.
type busy struct{ worked, all float64 }

// machineBusy reads the state of the machine's cores since its start.
func machineBusy() (busy, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return busy{}, err
	}
	defer f.Close()
	// "cpu user nice system idle iowait …"
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return busy{}, err
	}
	const idle, iowait, guest = 4, 5, 9
	var b busy
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseFloat(field, 64)
		// guests are within user
		if i == 0 || i >= guest {
			continue
		}
		if err != nil {
			return busy{}, err
		}
		b.all += n
		if i != idle && i != iowait {
			b.worked += n
		}
	}
	return b, nil
}

// since returns the share of the cores' time that was worked since an earlier state.
func (b busy) since(before busy) float64 {
	if b.all == before.all {
		return 0
	}
	return (b.worked - before.worked) / (b.all - before.all)
}

// machineLoad returns the load averages of the machine: how many processes run or wait for a disk.
func machineLoad() string {
	body, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	const averages = 3
	fields := strings.Fields(string(body))
	return strings.Join(fields[:min(averages, len(fields))], " ")
}
