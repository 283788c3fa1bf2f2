//go:build clients

package cell

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const natsCLI = "github.com/nats-io/natscli/nats@v0.5.1"

// TestOtherClients: a person's watch shows all entries in other clients, too. A client that cannot be installed is
// skipped with a message.
func TestOtherClients(t *testing.T) {
	url, inbox := watched(t), events.Inbox("hf", events.ClassPerson, "ann")
	t.Run("nats.js", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/js")); err != nil {
			t.Fatal(err)
		}
		install := exec.Command("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			t.Logf("NOT RUN: nats.js cannot be installed: %v\n%s", err, out)
			return
		}
		watch := exec.Command("timeout", "90", "node", "watch.js", url, inbox, "hf_state")
		watch.Dir = dir
		out, err := watch.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(entries) {
			t.Errorf("saw %s of %d entries: %v", out, entries, err)
		}
	})
	t.Run("nats CLI", func(t *testing.T) {
		dir := t.TempDir()
		install := exec.Command("go", "install", natsCLI)
		install.Env = append(os.Environ(), "GOBIN="+dir)
		if out, err := install.CombinedOutput(); err != nil {
			t.Logf("NOT RUN: the nats CLI cannot be built: %v\n%s", err, out)
			return
		}
		cmd := exec.Command(filepath.Join(dir, "nats"), "--server", url, "--inbox-prefix", inbox, "kv", "watch",
			"hf_state")
		logged := new(notes)
		cmd.Stdout, cmd.Stderr = logged, logged
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); !errors.As(err, new(*exec.ExitError)) {
				t.Error(err)
			}
		}()
		key := regexp.MustCompile(`session\.h\.s\d+`)
		natstest.Until(t, "the nats CLI to show all entries", func() bool {
			seen := map[string]bool{}
			for _, k := range key.FindAllString(logged.String(), -1) {
				seen[k] = true
			}
			return len(seen) == entries
		})
	})
}
