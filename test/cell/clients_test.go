//go:build clients

package cell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/harness"
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
		if !buildsNATS(t, dir) {
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

// buildsNATS builds the nats CLI into a folder. false: it cannot, and has said so.
func buildsNATS(t *testing.T, dir string) bool {
	t.Helper()
	install := exec.Command("go", "install", natsCLI)
	install.Env = append(os.Environ(), "GOBIN="+dir)
	out, err := install.CombinedOutput()
	if err != nil {
		t.Logf("NOT RUN: the nats CLI cannot be built: %v\n%s", err, out)
	}
	return err == nil
}

const operatorsGuide = "../../docs/guide/operate.md"

// TestOtherClientsSetTheTicket: processes of an exclusive harness are refused, because the bucket of leases is older
// than their last owner, and the broker's clock is behind it. The guide's command, with the number of that owner, lets
// the next process in.
func TestOtherClientsSetTheTicket(t *testing.T) {
	dir := t.TempDir()
	if !buildsNATS(t, dir) {
		return
	}
	guide, err := os.ReadFile(operatorsGuide)
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^nats kv put (\S+) (ticket\.my-agent) '\{"incarnation":"(\d+)"\}'$`).
		FindStringSubmatch(string(guide))
	if command == nil {
		t.Fatal("the guide has no command about a ticket")
	}
	s := natstest.Start(t)
	natstest.Bus(t, s)
	conn, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := js.KeyValue(t.Context(), command[1])
	if err != nil {
		t.Fatal(err)
	}
	set := func(number int64) {
		t.Helper()
		text := fmt.Sprintf(`{"incarnation":"%d"}`, number)
		if _, err := leases.PutString(t.Context(), command[2], text); err != nil {
			t.Fatal(err)
		}
	}
	claims := func() error { return claimsAlone(t, s.URL()) }
	ahead := time.Now().Add(time.Hour).UnixMicro()
	set(ahead)
	if err := claims(); err != nil {
		t.Fatal(err)
	}
	set(1)
	if err := claims(); !errors.As(err, new(*harness.ReplacedError)) {
		t.Fatalf("a process with a lower number than the owner: %v", err)
	}
	// the owner drew one more than the ticket before it
	run := exec.Command("sh", "-ec", strings.Replace(command[0], command[3], strconv.FormatInt(ahead+1, 10), 1))
	run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "NATS_URL="+s.URL(), "HOME="+dir,
		"XDG_CONFIG_HOME="+dir)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := claims(); err != nil {
		t.Errorf("after the guide's command: %v", err)
	}
}

// claimsAlone starts a process of the exclusive harness my-agent, and returns why it cannot have its session.
func claimsAlone(t *testing.T, url string) error {
	t.Helper()
	h, err := harness.Connect(t.Context(), harness.Config{ID: "my-agent", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if _, err = h.Open(t.Context(), "s", harness.OpenOptions{}); err != nil {
		_, err = h.Claim(t.Context(), "s")
	}
	return err
}
