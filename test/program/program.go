// Package program builds the programs that the tests of a package start as processes.
package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Packages of the programs, as the go command knows them.
const (
	Holdfast   = "github.com/holdfast-dev/holdfast/cmd/holdfast"
	NATSServer = "github.com/nats-io/nats-server/v2" // of the version in go.mod
)

// Main builds programs into a temporary directory, stores the path of each where programs says, calls run and removes
// the directory. It returns the exit status for TestMain: that of run, usually [testing.M.Run].
func Main(run func() int, programs map[string]*string) int {
	dir, err := os.MkdirTemp("", "holdfast-program-")
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fail(err)
		}
	}()
	for pkg, path := range programs {
		*path = filepath.Join(dir, filepath.Base(filepath.Dir(pkg))+"-"+filepath.Base(pkg))
		build := exec.Command("go", "build", "-o", *path, pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fail(errors.Join(fmt.Errorf("build %s: %w", pkg, err), errors.New(string(out))))
		}
	}
	return run()
}

// fail prints an error and returns the exit status for it.
func fail(err error) int {
	fmt.Fprintln(os.Stderr, "program:", err)
	return 1
}
