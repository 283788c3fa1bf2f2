package cell

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Bounds of the only node of the overlay small.
const (
	aloneMax = 4 * time.Second // from the end of the process until the first commit that is acknowledged after it
	probeMax = time.Second     // between two probes of a node that starts
)

// TestTheOnlyNodeEndsAtOnce: clients of the overlay small have no other node to move to, so the end of its node is not
// delayed for them, and its probes find within a second that it is back.
func TestTheOnlyNodeEndsAtOnce(t *testing.T) {
	programs(t)
	d := &deployment{t: t, net: newNetwork(t), secrets: &world{t: t, dir: t.TempDir()}}
	d.secrets.secrets(d.net.routes()...)
	d.pod = overlaid(t, "small", "nats/nats.yaml", "StatefulSet")
	d.node(0, read(t, "overlays/small/nats.conf"))
	d.until(d.nodes[0], d.nodes[0].ready)
	d.scaleUp("ledger")
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}
	cfg := d.config("harness-"+attacker, events.ClassHarness, attacker)
	h, err := harness.Connect(t.Context(), harness.Config{ID: attacker, URL: cfg.URL, PasswordFile: cfg.PasswordFile,
		TLSCA: cfg.TLSCA, TLSCert: cfg.TLSCert, TLSKey: cfg.TLSKey})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(t.Context(), "s", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := d.nodes[0].probes
	for name, p := range map[string]*check{"startup": c.StartupProbe, "readiness": c.ReadinessProbe} {
		if every := time.Duration(p.PeriodSeconds) * time.Second; every > probeMax {
			t.Errorf("the %s probe runs every %s", name, every)
		}
	}
	if room := c.StartupProbe.PeriodSeconds * c.StartupProbe.failures(); room < startupMinS {
		t.Errorf("a node that starts is killed after %d s", room)
	}
	natstest.RetryStalled(t, standstill, func() error {
		began := time.Now()
		d.nodes[0].end(syscall.SIGTERM, true)
		ended := time.Since(began)
		if _, err := s.StartTurn(t.Context(), harness.StartOptions{Content: "go"}); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		t.Logf("the node ended after %s, the next commit was acknowledged after %s", ended, took)
		if took > aloneMax {
			return fmt.Errorf("no commit was acknowledged for %s, want at most %s", took, aloneMax)
		}
		return nil
	})
}

// startupMinS is the least time that a node has to read its streams.
const startupMinS = 300

// selects reports whether the target of a patch is this object.
func selects(target, object map[string]any) bool {
	meta := object["metadata"].(map[string]any)
	if name := target["name"]; target["kind"] != object["kind"] || name != nil && name != meta["name"] {
		return false
	}
	label, labelled := target["labelSelector"].(string)
	key, value, _ := strings.Cut(label, "=")
	return !labelled || meta["labels"].(map[string]any)[key] == value
}

// TestGoKnowsItsMemory: each container tells Go nine tenths of its limit, in each overlay. With all of it the kernel
// would kill the process before Go frees memory.
func TestGoKnowsItsMemory(t *testing.T) {
	files := map[string]string{"nats/nats.yaml": "StatefulSet"}
	for _, s := range services {
		files["base/"+s+".yaml"] = "Deployment"
	}
	units := map[string]int{"Mi": 1, "Gi": 1 << 10}
	for _, overlay := range []string{"small", "production"} {
		for file, kind := range files {
			c := overlaid(t, overlay, file, kind).Containers[0]
			text := c.Resources.Limits.Memory
			limit, err := strconv.Atoi(text[:len(text)-2])
			if limit *= units[text[len(text)-2:]]; err != nil || limit == 0 {
				t.Fatalf("%s: a limit of %q: %v", file, text, err)
			}
			want := fmt.Sprintf("%dMiB", limit*9/10)
			at := slices.IndexFunc(c.Env, func(v variable) bool { return v.Name == "GOMEMLIMIT" })
			if at < 0 || c.Env[at].Value != want {
				t.Errorf("%s of %s: a limit of %s wants GOMEMLIMIT=%s: %+v", file, overlay, text, want, c.Env)
			}
		}
	}
}

// overlaid returns the pod of an object of a kind as an overlay patches it. It knows the operations that the overlays
// use: replace and remove.
func overlaid(t *testing.T, overlay, file, kind string) *spec {
	t.Helper()
	var object, k map[string]any
	for dec := yaml.NewDecoder(strings.NewReader(read(t, file))); object["kind"] != kind; {
		object = nil
		if err := dec.Decode(&object); err != nil {
			t.Fatalf("%s has no %s: %v", file, kind, err)
		}
	}
	patches := read(t, filepath.Join("overlays", overlay, "kustomization.yaml"))
	if err := yaml.Unmarshal([]byte(patches), &k); err != nil {
		t.Fatal(err)
	}
	for _, one := range k["patches"].([]any) {
		p := one.(map[string]any)
		if !selects(p["target"].(map[string]any), object) {
			continue
		}
		var ops []struct {
			Op, Path string
			Value    any
		}
		if err := yaml.Unmarshal([]byte(p["patch"].(string)), &ops); err != nil {
			t.Fatal(err)
		}
		for _, o := range ops {
			steps := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
			at := any(object)
			for _, step := range steps[:len(steps)-1] {
				if list, ok := at.([]any); ok {
					i, err := strconv.Atoi(step)
					if err != nil || i >= len(list) {
						t.Fatalf("%s: %q", o.Path, step)
					}
					at = list[i]
					continue
				}
				at = at.(map[string]any)[step]
			}
			last, m := steps[len(steps)-1], at.(map[string]any)
			if _, there := m[last]; !there {
				t.Fatalf("%s: the manifest has no such field", o.Path)
			}
			switch o.Op {
			case "replace":
				m[last] = o.Value
			case "remove":
				delete(m, last)
			default:
				t.Fatalf("the operation %s is not known here", o.Op)
			}
		}
	}
	body, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Spec struct{ Template struct{ Spec spec } }
	}
	if err := yaml.Unmarshal(body, &whole); err != nil {
		t.Fatal(err)
	}
	return &whole.Spec.Template.Spec
}
