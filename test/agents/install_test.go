//go:build agents

package agents

import (
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/test/program"
)

var (
	binary   string // path of holdfast
	opencode string // path of OpenCode
)

func TestMain(m *testing.M) {
	if tape := os.Getenv(tapeVar); tape != "" {
		os.Exit(tap(tape, os.Args[1:]))
	}
	path, err := OpenCode()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents: OpenCode is needed, and is not here:", err)
		os.Exit(1)
	}
	opencode = path
	os.Exit(program.Main(m.Run, map[string]*string{program.Holdfast: &binary}))
}
