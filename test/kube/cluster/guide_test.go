package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// commands returns the commands of a page that contain a text: the only block of shell with it.
func commands(t *testing.T, page, text string) string {
	t.Helper()
	body, err := os.ReadFile(guides + page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i, part := range strings.Split(string(body), "```") {
		if code, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 && strings.Contains(code, text) {
			found = append(found, code)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of commands with %q, want 1", page, len(found), text)
	}
	return found[0]
}

// checkout returns the folder of a checkout in which an operator works, as far as the guide needs it.
func checkout(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	update(t, dir, from)
	return dir
}

// update brings a checkout to another version.
func update(t *testing.T, dir, from string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(from+"/deploy")); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(from + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), makefile, 0o600); err != nil {
		t.Fatal(err)
	}
}

// at runs commands of a page in the checkout, and returns what they print. They end at the first error. The network
// of the test reaches no module proxy; the modules were fetched before.
func (c *cell) at(script string, env ...string) (string, error) {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = c.folder
	cmd.Env = append(append(os.Environ(), "GOPROXY=file://"+c.modules+"/cache/download", "GOSUMDB=off"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do runs commands of a page, and ends the test if one fails.
func (c *cell) do(script string, env ...string) string {
	c.t.Helper()
	out, err := c.at(script, env...)
	if err != nil {
		c.t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return out
}
