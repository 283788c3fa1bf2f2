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

// overlaid returns the pod of an object of a kind as an overlay patches it, with components. It knows the operations
// that they use: replace, remove, and add at the end of a list.
func overlaid(t *testing.T, overlay, file, kind string, components ...string) *spec {
	t.Helper()
	var object map[string]any
	for dec := yaml.NewDecoder(strings.NewReader(read(t, file))); object["kind"] != kind; {
		object = nil
		if err := dec.Decode(&object); err != nil {
			t.Fatalf("%s has no %s: %v", file, kind, err)
		}
	}
	for _, folder := range append([]string{"overlays/" + overlay}, components...) {
		patched(t, folder, object)
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

// patched patches an object as a kustomization does.
func patched(t *testing.T, folder string, object map[string]any) {
	t.Helper()
	var k struct {
		Patches []struct {
			Target map[string]any
			Patch  string
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(folder, "kustomization.yaml"))), &k); err != nil {
		t.Fatal(err)
	}
	for _, p := range k.Patches {
		if !selects(p.Target, object) {
			continue
		}
		var ops []operation
		if err := yaml.Unmarshal([]byte(p.Patch), &ops); err != nil {
			t.Fatal(err)
		}
		for _, o := range ops {
			if err := o.apply(object); err != nil {
				t.Fatalf("%s: %s: %v", folder, o.Path, err)
			}
		}
	}
}

// operation is one of a JSON patch.
type operation struct {
	Op, Path string
	Value    any
}

// apply changes an object.
func (o *operation) apply(object map[string]any) error {
	path, last := filepath.Split(o.Path)
	at, put := any(object), func(any) {}
	for step := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		switch x := at.(type) {
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(x) {
				return fmt.Errorf("the manifest has no %q", step)
			}
			at, put = x[i], func(v any) { x[i] = v }
		case map[string]any:
			at, put = x[step], func(v any) { x[step] = v }
		default:
			return fmt.Errorf("the manifest has no %q", step)
		}
	}
	if list, ok := at.([]any); ok && o.Op == "add" && last == "-" {
		put(append(list, o.Value))
		return nil
	}
	m, ok := at.(map[string]any)
	if _, there := m[last]; !ok || !there {
		return fmt.Errorf("the manifest has no %q", last)
	}
	switch o.Op {
	case "replace":
		m[last] = o.Value
	case "remove":
		delete(m, last)
	default:
		return fmt.Errorf("the operation %s is not known here", o.Op)
	}
	return nil
}
