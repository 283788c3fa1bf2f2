// Package clock sets the clock of a real broker forward and back, by seconds and by hours, while sessions are at work.
package clock

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/test/program"
)

// The program is built with a standard library whose time.Now can be moved, like a step of the system's clock: the wall
// clock changes; the monotonic reading and all timers do not.
const (
	nowBefore = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	nowAfter  = "sec, nsec, mono := runtimeNow()\n\tsec += StepOfTest.Load()\n\tif mono == 0 {"
	declared  = "\n// StepOfTest is the step of Now, in seconds.\nvar StepOfTest atomic.Int64\n"
	imports   = "import (\n"
	root      = "../.."
	loopback  = "127.0.0.1:0" // any free port

	clockVariable = "HOLDFAST_TEST_CLOCK=" // before the file that has the step
)

var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// binary returns the path of the program whose clock can be set.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() { built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "holdfast")
}

func build() error {
	dir, err := os.MkdirTemp("", "holdfast-clock")
	if err != nil {
		return err
	}
	built.dir = dir
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	body, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	text := string(body)
	if strings.Count(text, nowBefore) != 1 || strings.Count(text, imports) != 1 {
		return fmt.Errorf("%s: time.Now has changed: adapt this test to this version of Go", original)
	}
	text = strings.Replace(strings.Replace(text, nowBefore, nowAfter, 1), imports, imports+"\t\"sync/atomic\"\n",
		1) + declared
	moved := filepath.Join(dir, "time.go")
	if err := os.WriteFile(moved, []byte(text), 0o600); err != nil {
		return err
	}
	step, err := filepath.Abs("testdata/step.go.txt")
	if err != nil {
		return err
	}
	added, err := filepath.Abs(filepath.Join(root, "cmd", "holdfast", "clock_that_steps.go"))
	if err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: moved, added: step}})
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-overlay", list, "-o", filepath.Join(dir, "holdfast"), "./cmd/holdfast")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// addresses counts those that ownAddress has returned.
var addresses atomic.Uint32

// ownAddress returns an address of loopback, with any free port, at which nothing else listens. A port of it that was
// closed is free until it is taken again: connections and other listeners are at 127.0.0.1.
func ownAddress() string { return fmt.Sprintf("127.0.1.%d:0", addresses.Add(1)) }

// set sets a clock to an offset from the machine's.
func set(t *testing.T, clock string, by time.Duration) {
	t.Helper()
	temp := clock + ".new"
	if err := os.WriteFile(temp, []byte(strconv.Itoa(int(by/time.Second))), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, clock); err != nil {
		t.Fatal(err)
	}
}

// up runs everything in one process, whose clock follows the file.
func up(t *testing.T, dir, clock, listen string) *program.Process {
	t.Helper()
	return program.Run(t, binary(t), []string{clockVariable + clock}, "up", "--data", filepath.Join(dir, "data"),
		"--listen", listen, "--http", loopback, "--grace", grace.String(), "--adoption-grace", grace.String())
}
