package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// binary is the compiled tests of one package.
type binary struct {
	pkg, file, dir string // dir: where its tests run
	overlay        string // programs that its tests build get the switches too
}

// one is a test, how long it takes alone, and the guards that were true while it ran.
type one struct {
	Name    string
	Took    time.Duration
	Reached []int
	bin     *binary
}

// build compiles the tests of a package with the switches.
func build(dir, overlay, pkg string) (*binary, error) {
	f, err := list(pkg)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, strings.NewReplacer("/", "_", ".", "").Replace(pkg)+".test")
	b := &binary{pkg: pkg, dir: f.Dir, overlay: overlay, file: file}
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.file, pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
	}
	return b, nil
}

// result of tests that ran.
type result struct {
	red  bool
	hung bool
	test string // the first that failed, if it is known
	out  []byte
}

// run runs these tests. All processes that they started end with them.
func (b *binary) run(tests []string, limit time.Duration, env ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	pattern := "^(" + strings.Join(tests, "|") + ")$"
	// most of them wait
	cmd := exec.CommandContext(ctx, b.file, "-test.run", pattern, "-test.failfast",
		"-test.timeout", limit.String(), "-test.paniconexit0", "-test.parallel", "6")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, b.dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-overlay="+b.overlay), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = group, time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = group()
	}
	r := verdict(out.Bytes(), err != nil)
	r.hung = r.hung || ctx.Err() != nil
	return r
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// verdict reads what the tests printed.
func verdict(out []byte, red bool) result {
	r := result{red: red, out: out, hung: bytes.Contains(out, []byte("panic: test timed out"))}
	if m := failed.FindSubmatch(out); red && m != nil {
		r.test = string(m[1])
	}
	return r
}

// reach runs each test alone and notes which guards it reaches, or finds that noted in cache.
func (b *binary) reach(cache string, run *regexp.Regexp, jobs int, limit time.Duration) (tests []one, err error) {
	text, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	known := filepath.Join(cache, fmt.Sprintf("%x.json", sha256.Sum256(append(text, run.String()...))))
	if text, err := os.ReadFile(known); err == nil {
		err = json.Unmarshal(text, &tests)
		return tests, err
	}
	cmd := exec.Command(b.file, "-test.list", run.String())
	cmd.Dir = b.dir
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", b.pkg, err)
	}
	for name := range strings.Lines(string(listed)) {
		if name = strings.TrimSpace(name); !strings.HasPrefix(name, "Benchmark") {
			tests = append(tests, one{Name: name})
		}
	}
	var lock sync.Mutex
	var green []one
	each(jobs, len(tests), func(i int) {
		t := tests[i]
		start, note := time.Now(), filepath.Join(filepath.Dir(b.file), t.Name+".reached")
		r := b.run([]string{t.Name}, limit, reachedVariable+"="+note)
		t.Took = time.Since(start)
		t.Reached = numbers(note)
		lock.Lock()
		defer lock.Unlock()
		if r.red {
			fmt.Printf("unusable  %s %s: it is red with all guards\n%s", b.pkg, t.Name, r.out)
			return
		}
		green = append(green, t)
	})
	body, err := json.Marshal(green)
	if err != nil {
		return nil, err
	}
	return green, os.WriteFile(known, body, 0o600)
}

// numbers reads and removes the file in which a test's processes noted the guards.
func numbers(note string) (all []int) {
	text, err := os.ReadFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	fatal(err)
	fatal(os.Remove(note))
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		fatal(err)
		all = append(all, n)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// each calls do for 0 to n-1, several at a time.
func each(jobs, n int, do func(int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range jobs {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// outcome says what happened to a mutant.
type outcome struct {
	killed bool
	by     string
}

// try runs the tests that reach a guard without it, quickest first. A slow machine must not kill a mutant: a test that
// fails and takes longer than it should runs again, alone, and counts if it fails twice in at most three runs. A test
// that hangs counts if it does not hang with all guards.
func try(g guard, tests []one, limit time.Duration) outcome {
	var reaching []one
	for _, t := range tests {
		if slices.Contains(t.Reached, g.n) {
			reaching = append(reaching, t)
		}
	}
	if len(reaching) == 0 {
		return outcome{by: "true in no test"}
	}
	off := offVariable + "=" + strconv.Itoa(g.n)
	once := ""
	for _, group := range groups(reaching) {
		names, span := []string{}, time.Duration(0)
		for _, t := range group {
			names, span = append(names, t.Name), span+t.Took
		}
		bin, start := group[0].bin, time.Now()
		first := bin.run(names, min(limit, 3*span+5*time.Second), off)
		switch {
		case !first.red:
			continue
		case first.hung && !bin.run(names, min(limit, 3*span+5*time.Second)).red:
			// the machine is quick enough
			return outcome{killed: true, by: strings.Join(names, " ") + ", which hung"}
		case !first.hung && first.test != "" && time.Since(start) < 2*span+time.Second:
			// it waited for nothing
			return outcome{killed: true, by: first.test}
		}
		// the one that failed goes first
		slices.SortStableFunc(group, func(a, b one) int {
			return cmp.Compare(bool2int(b.Name == first.test), bool2int(a.Name == first.test))
		})
		for _, t := range group {
			if twice(bin, t, first, min(limit, 5*t.Took+10*time.Second), off) {
				return outcome{killed: true, by: t.Name}
			}
		}
		once = first.test
	}
	if once != "" {
		return outcome{by: "red once, and not again: " + once}
	}
	return outcome{by: fmt.Sprintf("true in %d tests", len(reaching))}
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

// twice runs a test alone until it has been red twice, the run before included if it named this test.
func twice(bin *binary, t one, before result, limit time.Duration, off string) bool {
	red := bool2int(before.test == t.Name)
	for runs := red; runs < 3 && red+3-runs >= 2; runs++ {
		red += bool2int(bin.run([]string{t.Name}, limit, off).red)
		if red == 2 {
			return true
		}
	}
	return false
}

// groups divides tests, quickest first, into runs of one package each: 1, 2, 4 … tests. A guard that a test notices is
// found soon, and many tests share a run for a guard that no test notices.
func groups(tests []one) (all [][]one) {
	slices.SortStableFunc(tests, func(a, b one) int { return cmp.Compare(a.Took, b.Took) })
	size := map[*binary]int{}
	open := map[*binary]int{}
	for _, t := range tests {
		at, ok := open[t.bin]
		if !ok || len(all[at]) == size[t.bin] {
			size[t.bin] = max(1, 2*size[t.bin])
			at = len(all)
			open[t.bin], all = at, append(all, nil)
		}
		all[at] = append(all[at], t)
	}
	return all
}
