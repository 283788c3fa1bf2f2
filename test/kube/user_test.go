package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// TestUserCommandsFitTheCell: what `holdfast user` prints names the config map, the secrets, the files, the pods and
// the process of a cell that kustomize has made, and of one that Helm has made.
func TestUserCommandsFitTheCell(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "holdfast")
	compile := exec.Command("go", "build", "-o", binary, "./cmd/holdfast")
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, c := range map[string]struct {
		manifests []byte
		configMap string // "": that of the flag's default
	}{
		"kustomize": {manifests: build(t, "overlays/production")},
		"Helm":      {manifests: render(t, merged(t, "", ""))},
		"Helm, with another config map": {configMap: "who-may-what",
			manifests: render(t, merged(t, "", "{users: {permissionsConfigMap: who-may-what}}"))},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			permissions := filepath.Join(dir, "permissions.conf")
			if err := os.WriteFile(permissions, []byte("include ../nats-users/users.conf\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			run := func(args ...string) string {
				out, err := exec.Command(binary, args...).CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v: %s", args, err, out)
				}
				return string(out)
			}
			run("secrets", dir, "--harness", "my-agent")
			args := []string{"user", "rotate", dir, "holdfast-ledger", "--permissions", permissions}
			if c.configMap != "" {
				args = append(args, "--config-map", c.configMap)
			}
			fits(t, c.manifests, run(args...))
		})
	}
}

// fits compares printed commands with the objects of a cell.
func fits(t *testing.T, manifests []byte, printed string) {
	t.Helper()
	var broker, ledger core.PodTemplateSpec
	var confs []string
	objects, err := decode(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *apps.StatefulSet:
			broker = o.Spec.Template
		case *apps.Deployment:
			if o.Name == "holdfast-ledger" {
				ledger = o.Spec.Template
			}
		case *core.ConfigMap:
			confs = append(confs, o.Data["nats.conf"])
		}
	}
	files := filesOf(broker)
	one := func(pattern string) string {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(printed, -1)
		if len(all) != 1 {
			t.Fatalf("%d times %q in\n%s", len(all), pattern, printed)
		}
		return all[0][1]
	}
	if name := one(`create configmap (\S+) --from-file=permissions\.conf=`); files["config map "+name] != "/etc/nats" {
		t.Errorf("the broker does not read the config map %s: %v", name, files)
	}
	if files["secret nats-users"] != "/etc/nats-users" ||
		!strings.Contains(printed, "create secret generic nats-users ") {
		t.Errorf("the broker reads %v", files)
	}
	if filesOf(ledger)["secret "+one(`create secret generic (holdfast-\S+) `)] != "/etc/holdfast" {
		t.Errorf("the ledger reads %v", filesOf(ledger))
	}
	one(`cat (/etc/nats-users/users\.conf) `)
	one(`cat (/etc/nats/permissions\.conf) `)
	key, value, _ := strings.Cut(one(`get pods -l (\S+) -o name`), "=")
	if broker.Labels[key] != value {
		t.Errorf("no pod of the broker has the label %s=%s: %v", key, value, broker.Labels)
	}
	pid := "pid_file: " + one(`--signal reload=(\S+)`)
	if !slices.ContainsFunc(confs, func(conf string) bool { return strings.Contains(conf, pid) }) {
		t.Errorf("no configuration has %s", pid)
	}
}

// filesOf returns where the first container of a pod has each secret and config map.
func filesOf(pod core.PodTemplateSpec) map[string]string {
	all := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if v.Name != m.Name {
				continue
			}
			if v.Secret != nil {
				all["secret "+v.Secret.SecretName] = m.MountPath
			}
			if v.Projected != nil {
				for _, s := range v.Projected.Sources {
					all["config map "+s.ConfigMap.Name] = m.MountPath
				}
			}
		}
	}
	return all
}
