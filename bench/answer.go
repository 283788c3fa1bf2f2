package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const answerSeconds = 10 // of each measurement in parts c and h

// sample is one measurement of parts c and h: three processes that are connected over TCP.
type sample struct {
	perS  float64 // rounds or turns a second
	p50MS float64 // of an answer, from the person's request to the return of Ask
	p99MS float64
	cpuMS float64 // CPU of `holdfast up` for each round or turn
	upMB  float64 // its maximum resident memory
	busy  float64 // share of the machine's cores that worked, 0 to 1
}

// answers is part c.
func answers(ctx context.Context, r *report, size float64) error {
	for _, n := range []int{1, 64, 512} {
		if err := compare(ctx, r, "c", "rounds", n, size); err != nil {
			return err
		}
	}
	return crashed(ctx, r, size)
}

// wholeTurns is part h.
func wholeTurns(ctx context.Context, r *report, size float64) error {
	for _, n := range []int{1, 64, 256} {
		if err := compare(ctx, r, "h", "turns", n, size); err != nil {
			return err
		}
	}
	return nil
}

// compare measures each program with n sessions at work, in turn, and reports medians. Ratios are the medians of the
// ratios to the first program in the same turn.
func compare(ctx context.Context, r *report, part, what string, n int, size float64) error {
	all := make([][]sample, len(r.programs))
	long := time.Duration(max(answerSeconds*size, 3) * float64(time.Second))
	for range r.times {
		for i, program := range r.programs {
			measured := measureCell
			if isRestate(program) {
				measured = measureRestate
			}
			s, err := measured(ctx, program, what, n, long)
			if err != nil {
				return err
			}
			all[i] = append(all[i], s)
		}
	}
	for i, samples := range all {
		name := fmt.Sprintf("%d at once: ", n)
		if len(all) > 1 {
			name = fmt.Sprintf("%s, %s", filepath.Base(r.programs[i]), name)
		}
		show := func(row, unit string, figure func(sample) float64) {
			r.add(part, name+row, medianOf(samples, figure), unit)
		}
		show(what, what+"/s", func(s sample) float64 { return s.perS })
		show("answer → Ask returns, p50", "ms", func(s sample) float64 { return s.p50MS })
		show("answer → Ask returns, p99", "ms", func(s sample) float64 { return s.p99MS })
		show("CPU of up for each of the "+what, "ms", func(s sample) float64 { return s.cpuMS })
		show("memory of up", "MB", func(s sample) float64 { return s.upMB })
		show("machine busy", "of 1", func(s sample) float64 { return s.busy })
		if i == 0 {
			continue
		}
		ratio := func(row string, figure func(sample) float64) {
			ratios := make([]float64, len(samples))
			for k := range samples {
				ratios[k] = figure(samples[k]) / figure(all[0][k])
			}
			r.add(part, name+row+" / "+filepath.Base(r.programs[0]), median(ratios), "×")
		}
		ratio(what, func(s sample) float64 { return s.perS })
		ratio("p50", func(s sample) float64 { return s.p50MS })
		ratio("p99", func(s sample) float64 { return s.p99MS })
		ratio("CPU", func(s sample) float64 { return s.cpuMS })
	}
	return nil
}

func medianOf(samples []sample, figure func(sample) float64) float64 {
	fs := make([]float64, len(samples))
	for i, s := range samples {
		fs[i] = figure(s)
	}
	return median(fs)
}

// measureCell starts a cell, a person and an agent, and measures the agent's work.
func measureCell(ctx context.Context, program, what string, n int, long time.Duration) (s sample, err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	c, err := startCell(ctx, program, dir, "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	defer c.kill()
	person, err := spawn("person", "", c.url, n)
	if err != nil {
		return s, err
	}
	defer person.kill()
	if _, err := person.expect("ready"); err != nil {
		return s, err
	}
	return c.work(person, what, n, long)
}

// work starts the agent, in a role, and measures its work. Then it stops the cell.
func (c *cell) work(person *process, role string, n int, long time.Duration, more ...string) (s sample, err error) {
	agent, err := spawn(role, "", c.url, n, append(more, longEnv+"="+long.String())...)
	if err != nil {
		return s, err
	}
	defer agent.kill()
	defer time.AfterFunc(long+readyMax, agent.interrupt).Stop()
	// without a person, or a cell, the agent would wait forever
	go func() {
		person.awaitEnd()
		agent.interrupt()
	}()
	go func() {
		c.awaitEnd()
		agent.interrupt()
	}()
	if s, err = c.sample(agent); err != nil {
		return s, err
	}
	return s, c.stop()
}

// sample measures from an agent's first line to its second, and reads its tally.
func (c *cell) sample(agent *process) (s sample, err error) {
	if _, err := agent.expect(lineWarm); err != nil {
		return s, err
	}
	cpu, err := c.cpu()
	if err != nil {
		return s, err
	}
	before, err := machineBusy()
	if err != nil {
		return s, err
	}
	if _, err := agent.expect(lineCool); err != nil {
		return s, err
	}
	after, err := machineBusy()
	if err != nil {
		return s, err
	}
	used, err := c.cpu()
	if err != nil {
		return s, err
	}
	line, err := agent.expect(lineResult)
	if err != nil {
		return s, err
	}
	var t tally
	if err := json.Unmarshal([]byte(line), &t); err != nil {
		return s, err
	}
	if t.Count == 0 {
		return s, errors.New("the agent has measured nothing")
	}
	slices.Sort(t.MS)
	at := func(p float64) float64 { return t.MS[min(int(float64(len(t.MS))*p), len(t.MS)-1)] }
	return sample{perS: float64(t.Count) / t.Seconds, p50MS: at(0.50), p99MS: at(0.99),
		cpuMS: float64((used - cpu).Microseconds()) / 1000 / float64(t.Count),
		upMB:  memoryMB(c.cmd.Process.Pid), busy: after.since(before)}, nil
}
