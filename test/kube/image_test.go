package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	root          = "../../"
	imageWorkflow = root + ".github/workflows/image.yml"
)

// workflow has the fields of a GitHub workflow that concern the image.
type workflow struct {
	On          struct{ Push struct{ Tags []string } }
	Permissions map[string]string
	Jobs        map[string]struct{ Steps []step }
}

type step struct {
	ID, Uses, Run string
	With, Env     map[string]string
}

// TestImageWorkflow: the workflow builds the image of a tag for both systems, with an SBOM, and signs what it pushed.
// It runs in a fork.
func TestImageWorkflow(t *testing.T) {
	for _, finding := range imageFindings(workflowText(t)) {
		t.Error(finding)
	}
}

// TestImageWorkflowMistakes: each mistake in the workflow is found.
func TestImageWorkflowMistakes(t *testing.T) {
	good := workflowText(t)
	for _, c := range []struct{ name, from, to, want string }{
		{"field", "timeout-minutes: 60", "timeout-minutes: 60\n    timeout-minutes: 60", "already defined"},
		{"tags", `tags: ["v*"]`, `tags: ["*"]`, "on.push.tags"},
		{"branch of an action", "actions/checkout@v4.2.2", "actions/checkout@main", "actions/checkout@main"},
		{"moving version", "docker/login-action@v3.4.0", "docker/login-action@v3", "docker/login-action@v3"},
		{"secret", "secrets.GITHUB_TOKEN", "secrets.REGISTRY_PASSWORD", "REGISTRY_PASSWORD"},
		{"all permissions", "contents: read", "contents: write", "permissions"},
		{"one system", "linux/amd64,linux/arm64", "linux/amd64", "platforms"},
		{"SBOM", "sbom: true", "sbom: false", "sbom"},
		{"provenance", "provenance: mode=max", "provenance: false", "provenance"},
		{"not pushed", "push: true", "push: false", "push"},
		{"file", "file: deploy/Dockerfile", "file: Dockerfile", "Dockerfile"},
		{"other tag", "tags: ${{ steps.name.outputs.tag }}", "tags: latest", "tags"},
		{"owner", "ghcr.io/${GITHUB_REPOSITORY,,}", "ghcr.io/holdfast-dev/holdfast", "fork"},
		{"signs the tag", "steps.push.outputs.digest", "steps.name.outputs.tag", "sign"},
		{"another id", "id: push", "id: build", "the id"},
		{"unsigned", "cosign sign", "cosign version", "sign"},
		{"expression in a script", "${GITHUB_REF_NAME#v}", "${{ github.ref_name }}", "expression"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			if !strings.Contains(good, c.from) {
				t.Fatalf("the workflow has no %q", c.from)
			}
			findings := imageFindings(strings.Replace(good, c.from, c.to, 1))
			if !slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, c.want) }) {
				t.Errorf("%q in place of %q: found %q, want %q", c.to, c.from, findings, c.want)
			}
		})
	}
}

// TestImageName runs the step that names the image as the runner does, for a fork whose owner has upper case.
func TestImageName(t *testing.T) {
	w, err := parseWorkflow(workflowText(t))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(w.Jobs["image"].Steps, func(s step) bool { return s.ID == "name" })
	if i < 0 {
		t.Fatal("no step has the id name")
	}
	output := filepath.Join(t.TempDir(), "output")
	run := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", w.Jobs["image"].Steps[i].Run)
	run.Env = append(os.Environ(), "GITHUB_OUTPUT="+output, "GITHUB_REPOSITORY=An-Owner/Holdfast",
		"GITHUB_REF_NAME=v1.2.3-rc.1")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	want := "image=ghcr.io/an-owner/holdfast\ntag=ghcr.io/an-owner/holdfast:1.2.3-rc.1\n"
	if string(got) != want {
		t.Errorf("outputs\n%swant\n%s", got, want)
	}
}

func workflowText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(imageWorkflow)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parseWorkflow(text string) (w workflow, err error) {
	err = yaml.Unmarshal([]byte(text), &w)
	return w, err
}

var (
	pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@v\d+\.\d+\.\d+$`)
	secret = regexp.MustCompile(`secrets\.(\w+)|secrets\[`)
)

// imageFindings returns what is wrong with the workflow of the image.
func imageFindings(text string) []string {
	w, err := parseWorkflow(text)
	if err != nil {
		return []string{err.Error()}
	}
	var findings []string
	find := func(ok bool, format string, args ...any) {
		if !ok {
			findings = append(findings, fmt.Sprintf(format, args...))
		}
	}
	find(slices.Equal(w.On.Push.Tags, []string{"v*"}), "on.push.tags is %q, want v*", w.On.Push.Tags)
	permissions := fmt.Sprint(w.Permissions)
	find(permissions == "map[contents:read id-token:write packages:write]",
		"permissions are %s: want those that read the source, push the image and sign it", permissions)
	for _, m := range secret.FindAllStringSubmatch(text, -1) {
		find(m[1] == "GITHUB_TOKEN", "%q: a fork has no secret but GITHUB_TOKEN", m[0])
	}
	find(!strings.Contains(text, "holdfast-dev"), "the owner is fixed: a fork cannot push there")
	var push step
	signed := false
	for _, s := range w.Jobs["image"].Steps {
		find(s.Uses == "" || pinned.MatchString(s.Uses), "%s is not pinned: name its whole version", s.Uses)
		find(!strings.Contains(s.Run, "${{"), "an expression in a script can be a command, give it by env: %q", s.Run)
		if strings.HasPrefix(s.Uses, "docker/build-push-action@") {
			push = s
		}
		signed = signed || s.Run == `cosign sign --yes "$IMAGE"` &&
			s.Env["IMAGE"] == "${{ steps.name.outputs.image }}@${{ steps.push.outputs.digest }}"
	}
	find(signed, "no step signs the digest that was pushed")
	find(push.ID == "push", "the step that builds has the id %q, want push", push.ID)
	for key, want := range map[string]string{"platforms": "linux/amd64,linux/arm64", "push": "true", "sbom": "true",
		"provenance": "mode=max", "tags": "${{ steps.name.outputs.tag }}", "context": "."} {
		find(push.With[key] == want, "%s is %q, want %q", key, push.With[key], want)
	}
	_, err = os.Stat(root + push.With["file"])
	find(push.With["file"] != "" && err == nil, "file %q: %v", push.With["file"], err)
	return findings
}
