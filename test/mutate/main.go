// Command mutate removes guards one by one, by machine, and reports those whose removal no test notices.
//
// A guard is the condition of an if statement or of a case of a switch without a tag. The tests are compiled once, with
// go test's -overlay and a switch behind each guard, so no file of the repository changes. An environment variable
// makes one guard false. Each test runs once alone and notes the guards that were true in it. A mutant is tried with
// these tests only, quickest first. A guard that is true in no test has survived.
//
// With -operands, the operands of && and || are removed instead: one of || is false, one of && is true.
//
// Survivors that do not matter are listed in survivors.txt with the reason; any other survivor makes the command fail.
//
//	go run ./test/mutate -pkg ./services/reconciler -files pass.go,plan.go
//	go run ./test/mutate -pkg ./harness -part 2/4 -cache /tmp/guards
//	go run ./test/mutate -pkg ./harness -files step.go -operands
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed survivors.txt
var survivors string

func main() {
	if mutate() > 0 {
		os.Exit(1)
	}
}

// mutate reads the flags, tries the mutants, and returns how many survived without a reason.
func mutate() (lived int) {
	pkg := flag.String("pkg", "", "package `folder` whose guards are removed, as ./harness")
	files := flag.String("files", "", "only these `files` of it, separated by commas")
	packages := flag.String("tests", "",
		"packages whose tests are run, separated by spaces; default: the package itself")
	run := flag.String("run", ".", "only tests whose name matches this `pattern`")
	only := flag.String("only", "", "only guards that match this `pattern`, as harness/ownership.go:12: err != nil")
	parts := flag.Bool("operands", false, "remove each operand of && and ||, instead of whole guards")
	limit := flag.Duration("limit", 5*time.Minute,
		"how long tests may take for one mutant; one that hangs has noticed it")
	part := flag.String("part", "1/1", "which `part` of the guards, as 2/4")
	jobs := flag.Int("jobs", 1, "how many mutants are tried at the same time")
	cache := flag.String("cache", "",
		"`folder`, of this package and run alone, that keeps which test reaches which guard")
	flag.Parse()
	if *pkg == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	var nth, of int
	if _, err := fmt.Sscanf(*part, "%d/%d", &nth, &of); err != nil || nth < 1 || nth > of {
		fatal(fmt.Errorf("-part %s: want n/m with n from 1 to m", *part))
	}
	// the folder's name is in the binaries, by whose content the cache finds them again
	dir := *cache
	if dir == "" {
		made, err := os.MkdirTemp("", "mutate")
		fatal(err)
		defer os.RemoveAll(made)
		dir = made
	}
	fatal(os.MkdirAll(dir, 0o700))
	find := finder(guards)
	if *parts {
		find = operands
	}
	overlay, all, err := switchable(dir, *pkg, find)
	fatal(err)
	listed := reasons(survivors)
	maps.DeleteFunc(listed, func(key, _ string) bool { return isOperand(key) != *parts })
	for _, key := range stale(listed, all) {
		fmt.Printf("stale     %s: no such guard\n", key)
	}
	if *packages == "" {
		*packages = *pkg
	}
	var tests []one
	for _, name := range strings.Fields(*packages) {
		bin, err := build(dir, overlay, name)
		fatal(err)
		found, err := bin.reach(dir, regexp.MustCompile(*run), *jobs, *limit)
		fatal(err)
		for i := range found {
			found[i].bin = bin
		}
		tests = append(tests, found...)
	}
	if *files != "" {
		names := strings.Split(*files, ",")
		all = slices.DeleteFunc(all, func(g guard) bool { return !slices.Contains(names, path.Base(g.file)) })
	}
	chosen := []guard{}
	for i, g := range all {
		if i%of == nth-1 && regexp.MustCompile(*only).MatchString(g.String()) {
			chosen = append(chosen, g)
		}
	}
	return report(chosen, *jobs, func(g guard) outcome { return try(g, tests, *limit) })
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// report prints what happens to each mutant and returns how many survived without a reason.
func report(all []guard, jobs int, try func(guard) outcome) (lived int) {
	listed := reasons(survivors)
	known := 0
	var lock sync.Mutex
	each(jobs, len(all), func(i int) {
		o := try(all[i])
		reason, ok := listed[all[i].key()]
		lock.Lock()
		defer lock.Unlock()
		switch {
		case o.killed:
			fmt.Printf("killed    %s (%s)\n", all[i], o.by)
		case ok:
			known++
			fmt.Printf("known     %s (%s)\n", all[i], reason)
		default:
			lived++
			fmt.Printf("SURVIVED  %s (%s)\n", all[i], o.by)
		}
	})
	fmt.Printf("%d mutants, %d survived, %d of them known\n", len(all), lived+known, known)
	return lived
}

// stale returns the entries of the list that name a file with guards but match no guard of it.
func stale(listed map[string]string, all []guard) (keys []string) {
	files, there := map[string]bool{}, map[string]bool{}
	for _, g := range all {
		files[g.file], there[g.key()] = true, true
	}
	for key := range listed {
		if file, _, _ := strings.Cut(key, " "); files[file] && !there[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// reasons reads the list: a guard's key, a tab, the reason.
func reasons(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		if key, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			found[key] = reason
		}
	}
	return found
}
