// Command bench measures what a user notices, together with the floor that the broker sets, in one run on one machine.
// It has these parts:
//
//	a  ledger throughput            against fetch, group, one document a session and batch, ack
//	b  append → document seen       against publish → consume → put → watch
//	c  answer → a waiting harness   at 1, 64 and 512 prompts at once; and 10,000 prompts across a SIGKILL of all
//	d  recovery of 100,000 calls    against the same commits appended by themselves
//	f  how late retries fire        against raw message schedules; memory; across a restart and a failover
//	e  memory of the ledger at 100,000 sessions; restart to ready
//	g  send → its work is seen      against append → put → watch; 10,000 sessions that cross the threshold together
//	h  whole turns                  1, 64 and 256 sessions at work: started, two tools, a question of the second
//	                                tool, completed
//
// Parts c and h measure three processes that are connected over TCP, as users run them: `holdfast up` with all
// services and every write synced; an agent; and a person who watches the view and answers through the service. With
// two programs (-up one,two) they measure them in turn, and report ratios to the first: a commit and the one before
// it, for instance. If there is a restate-server, in PATH or named by -restate, it is the first. Its package is
// @restatedev/restate-server of npm. A short look at all: -only ch -size 0.1.
//
// Use the ratios of two measurements of one run. The absolute figures depend on the machine.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	Part    string  `json:"part"`
	What    string  `json:"what"`
	Figure  float64 `json:"figure"`
	Unit    string  `json:"unit"`
	Target  string  `json:"target,omitempty"`
	Reached *bool   `json:"reached,omitempty"`
}

// report is the result of a run.
type report struct {
	Machine string `json:"machine"`
	Cores   int    `json:"cores"`
	Go      string `json:"go"`
	Load    string `json:"load"` // of the machine at the start: averages of 1, 5 and 15 minutes
	Rows    []row  `json:"rows"`

	programs []string // of parts c, h and i: a restate-server, if there is one, and holdfast programs
	times    int      // measurements of each of them
}

func (r *report) add(part, what string, figure float64, unit string) {
	r.Rows = append(r.Rows, row{Part: part, What: what, Figure: figure, Unit: unit})
	r.progress()
}

func (r *report) atLeast(part, what string, figure float64, unit string, least float64) {
	ok := figure >= least
	r.Rows = append(r.Rows, row{part, what, figure, unit, fmt.Sprintf("≥ %g", least), &ok})
	r.progress()
}

func (r *report) atMost(part, what string, figure float64, unit string, most float64) {
	ok := figure <= most
	r.Rows = append(r.Rows, row{part, what, figure, unit, fmt.Sprintf("≤ %g", most), &ok})
	r.progress()
}

// progress prints a measurement to the error stream: a whole run takes minutes.
func (r *report) progress() {
	last := r.Rows[len(r.Rows)-1]
	fmt.Fprintf(os.Stderr, "%s  %s: %.4g %s\n", last.Part, last.What, last.Figure, last.Unit)
}

// holdfast returns the first holdfast program.
func (r *report) holdfast() string {
	return r.programs[slices.IndexFunc(r.programs, func(p string) bool { return !isRestate(p) })]
}

func (r *report) print() {
	fmt.Printf("%s, %d cores, %s, load %s\n\n", r.Machine, r.Cores, r.Go, r.Load)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "part\twhat\tfigure\tunit\ttarget\t")
	for _, x := range r.Rows {
		verdict := ""
		if x.Reached != nil {
			verdict = map[bool]string{true: "reached", false: "MISSED"}[*x.Reached]
		}
		fmt.Fprintf(w, "%s\t%s\t%.4g\t%s\t%s\t%s\n", x.Part, x.What, x.Figure, x.Unit, x.Target, verdict)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// profiled begins a CPU profile if the flag is set, and returns the function that ends it.
func profiled(file string) (end func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, nil
}

var parts = []struct {
	name string
	run  func(context.Context, *report, float64) error
}{
	{"a", throughput}, {"b", latency}, {"c", answers}, {"d", recovery}, {"e", scale}, {"f", retries}, {"g", sends},
	{"h", wholeTurns}, {"i", atRest},
}

func main() {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	file := flag.String("json", "", "save the table to this file")
	only := flag.String("only", "abcdefghi", "the parts to run")
	size := flag.Float64("size", 1, "how much of the full size, 0.01 to 1: for a quick look")
	up := flag.String("up", "bin/holdfast", "the holdfast programs of parts c, h and i, separated by commas")
	restate := flag.String("restate", "", "the restate-server of parts c and h; default: that of PATH, if there is one")
	times := flag.Int("times", 1, "how often parts c and h measure each program; medians count")
	profile := flag.String("profile", "", "write a CPU profile of the run to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	unprofiled, err := profiled(*profile)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
	defer unprofiled()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &report{Machine: host + " " + runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(),
		Go: runtime.Version(), Load: machineLoad(), programs: strings.Split(*up, ","), times: max(*times, 1)}
	if path, err := exec.LookPath(cmp.Or(*restate, restateServer)); err == nil {
		r.programs = append([]string{path}, r.programs...)
	} else if *restate != "" {
		fmt.Fprintf(os.Stderr, "bench: -restate: %v\n", err)
		os.Exit(2)
	} else {
		fmt.Fprintln(os.Stderr, "bench: no restate-server in PATH: parts c and h measure Holdfast alone")
	}
	for _, p := range parts {
		if !strings.Contains(*only, p.name) {
			continue
		}
		if err := p.run(ctx, r, *size); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", p.name, err)
			os.Exit(1)
		}
	}
	r.print()
	if *file == "" {
		return
	}
	body, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(*file, append(body, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}
