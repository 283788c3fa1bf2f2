package cell

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const kubernetesGuide = "../../docs/guide/kubernetes.md"

// TestCommandsOfTheKubernetesGuide: a cell with the secrets and permissions that the guide's commands make is ready,
// and the guide's check of it finds nothing wrong, once with passwords and once with nkeys for all users.
func TestCommandsOfTheKubernetesGuide(t *testing.T) {
	for name, nkeys := range map[string]bool{"passwords": false, "nkeys": true} {
		t.Run(name, func(t *testing.T) {
			programs(t)
			g := guided(t)
			login := strings.NewReplacer()
			// the guide's example gives one user an nkey, and says what gives one to all
			if nkeys {
				for _, command := range g.commands(`--nkey-user harness-my-agent`, 2) {
					g.run(strings.ReplaceAll(command, "--nkey-user harness-my-agent", "--nkey-user '*'"))
				}
				login = strings.NewReplacer("HOLDFAST_PASSWORD_FILE", "HOLDFAST_NKEY", "/password", "/nkey")
			} else {
				users := `--harness my-agent --person screen --operator operator`
				g.run(g.commands(`^holdfast secrets \./secrets `+users+`$`, 2)[0])
				g.run(g.commands(`^holdfast permissions `+users+` --passwords \S+ > \S+/permissions\.conf$`, 1)[0])
			}
			d := g.deploy(login)
			check := g.commands(`^(me=|export HOLDFAST_|holdfast doctor$)`, 4)
			if last := check[len(check)-1]; last != "holdfast doctor" {
				t.Fatalf("the check ends with %q", last)
			}
			at := strings.NewReplacer("127.0.0.1:4222", d.net.clients())
			t.Log(g.run(login.Replace(at.Replace(strings.Join(check, "\n")))))
		})
	}
}

// guide is the page, and a directory in which its commands run.
type guide struct {
	t    *testing.T
	dir  string
	page []string // its commands
}

func guided(t *testing.T) *guide {
	t.Helper()
	body, err := os.ReadFile(kubernetesGuide)
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{t: t, dir: t.TempDir()}
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(body), -1) {
		text := strings.ReplaceAll(block[1], "\\\n", " ")
		g.page = append(g.page, strings.Split(strings.TrimSpace(text), "\n")...)
	}
	if err := os.MkdirAll(filepath.Join(g.dir, "deploy/k8s/nats"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(strings.Split(os.Getenv("PATH"), ":")[0], "holdfast")); err != nil {
		t.Fatal(err)
	}
	return g
}

// commands returns the page's commands that match, and fails unless it has so many.
func (g *guide) commands(pattern string, want int) []string {
	g.t.Helper()
	other := func(c string) bool { return !regexp.MustCompile(pattern).MatchString(c) }
	all := slices.DeleteFunc(slices.Clone(g.page), other)
	if len(all) != want {
		g.t.Fatalf("the page has %d commands like %q, want %d: %q", len(all), pattern, want, all)
	}
	return all
}

// run runs commands in the guide's directory and returns what they print.
func (g *guide) run(commands string) string {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "sh", "-ec", commands)
	cmd.Dir = g.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("%s\n%v\n%s", commands, err, out)
	}
	return string(out)
}

// deploy starts a cell of one node with what the commands made, and returns when all of it is ready. login changes the
// variables of services.
func (g *guide) deploy(login *strings.Replacer) *deployment {
	g.t.Helper()
	d := &deployment{t: g.t, net: newNetwork(g.t), secrets: &world{t: g.t, dir: filepath.Join(g.dir, "secrets")}}
	printed, err := os.ReadFile(filepath.Join(g.dir, "deploy/k8s/nats/permissions.conf"))
	if err != nil {
		g.t.Fatal(err)
	}
	d.secrets.write("nats/permissions.conf", string(printed))
	d.pod = overlaid(g.t, "small", "nats/nats.yaml", "StatefulSet")
	d.change = login.Replace
	d.node(0, read(g.t, "overlays/small/nats.conf"))
	d.until(d.nodes[0], d.nodes[0].ready)
	for _, s := range services {
		d.service(s, s)
	}
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}
	return d
}
