//go:build agents

package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/test/program"
)

// version is that of OpenCode for which the bridge was made.
const version = "1.18.33"

var (
	binary   string // path of holdfast
	opencode string // path of OpenCode
)

func TestMain(m *testing.M) {
	if tape := os.Getenv(tapeVar); tape != "" {
		os.Exit(tap(tape, os.Args[1:]))
	}
	path, err := install()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents: OpenCode is needed, and is not here:", err)
		os.Exit(1)
	}
	opencode = path
	os.Exit(program.Main(m.Run, map[string]*string{program.Holdfast: &binary}))
}

// install returns the path of OpenCode.
func install() (path string, err error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return fetch("opencode-ai@"+version, "opencode-"+version,
		filepath.Join("opencode-"+runtime.GOOS+"-"+arch, "bin", "opencode"))
}

// fetch returns the path of a program in a package. npm puts the package into a folder of the user's cache, once; its
// install scripts do not run. The folder is whole: it is renamed to its place.
func fetch(pkg, folder, program string) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	all := filepath.Join(cache, "holdfast-agents")
	place := filepath.Join(all, folder)
	path = filepath.Join(place, "node_modules", program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(all, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(all, "install-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	npm := exec.Command("npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", pkg)
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w\n%s", pkg, err, out)
	}
	if err := os.Rename(dir, place); err != nil && !errors.Is(err, os.ErrExist) {
		if _, there := os.Stat(path); there != nil { // another run has not put it there meanwhile
			return "", err
		}
	}
	_, err = os.Stat(path)
	return path, err
}
