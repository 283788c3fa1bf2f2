// Package board shows the board in a real browser: what people see and answer, what becomes of the page when everything
// under it is killed, and what it refuses.
package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	root     = "../.."
	patience = 2 * time.Minute            // for anything that has to happen; a limit for a test that hangs
	poll     = 25 * time.Millisecond      // between two looks at the page
	rebound  = "rebound.holdfast.example" // a name that the browser resolves to this machine
)

var (
	binary  string          // path of the binary holdfast
	browser context.Context // of the one browser
)

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// run builds the program, starts a browser, and runs the tests. Without a browser it fails: nothing is skipped.
func run(m *testing.M) (status int, err error) {
	chromium, err := findBrowser()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "holdfast-board")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary = filepath.Join(dir, "holdfast")
	build := exec.Command("go", "build", "-o", binary, "./cmd/holdfast")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("board: build: %w\n%s", err, out)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("host-resolver-rules", "MAP "+rebound+" 127.0.0.1"),
		chromedp.UserDataDir(filepath.Join(dir, "profile")))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	tab, end := chromedp.NewContext(allocator)
	defer end()
	browser = tab //nolint:fatcontext // One browser for all tests; the rule takes the function for a loop.
	if err := chromedp.Do(browser); err != nil {
		return 1, fmt.Errorf("board: start %s: %w", chromium, err)
	}
	return m.Run(), nil
}

// findBrowser returns the path of a Chromium: that of the variable CHROMIUM, or one by its usual names.
func findBrowser() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", errors.New("board: these tests need a browser, and none is installed: apt-get install -y chromium, " +
		"or name one in the variable CHROMIUM")
}
