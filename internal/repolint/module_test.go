package repolint

import (
	"os/exec"
	"testing"
)

// The bench is a module of its own, so go build ./... at the root does not compile it. This test does: a change of an
// API that the bench calls, or of a version that its go.mod repeats, fails here.
func TestBenchCompiles(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
	cmd.Dir = "../../bench"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet ./... in bench: %v\n%s", err, out)
	}
}
