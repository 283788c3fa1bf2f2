package kube

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	chartFolder = root + "deploy/helm/holdfast"
	namespace   = "holdfast"
)

var update = flag.Bool("update", false, "copy the files that the chart shares with deploy/k8s")

// TestChartEqualsManifests: the chart makes the objects of deploy/k8s, for each overlay and with each part that can be
// beside one.
func TestChartEqualsManifests(t *testing.T) {
	permissions := read(t, manifests+"/nats/permissions.conf")
	for _, c := range []struct {
		name, values string   // values: beside those of the overlay
		overlay      string   // small or production
		components   []string // of the overlay
		beside       []string // kustomizations that are applied, too
	}{
		{name: "production", overlay: "production"},
		{name: "small", overlay: "small", values: "{image: {repository: holdfast}}"},
		{name: "board", overlay: "production", components: []string{"../../board"},
			values: "{board: {enabled: true}, ingress: {enabled: true}}"},
		{name: "board of small", overlay: "small", components: []string{"../../board"},
			values: "{image: {repository: holdfast}, board: {enabled: true}, ingress: {enabled: true}}"},
		{name: "exporter", overlay: "production", components: []string{"../../exporter"},
			values: "{monitoring: {exporter: {enabled: true}}}"},
		{name: "beside", overlay: "small", components: []string{"../../exporter"},
			beside: []string{"backup", "monitoring", "cert-manager"},
			values: "{image: {repository: holdfast}, backup: {enabled: true}, monitoring: {enabled: true, " +
				"exporter: {enabled: true}}, tls: {certManager: {enabled: true}}}"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			want := fields(t, overlay(t, c.overlay, c.components...))
			for _, folder := range c.beside {
				maps.Copy(want, fields(t, build(t, folder)))
			}
			values := merged(t, presets[c.overlay], c.values)
			values["users"] = map[string]any{"permissions": permissions}
			got := fields(t, render(t, values))
			if len(want) < 19 {
				t.Fatalf("the manifests have %q", slices.Sorted(maps.Keys(want)))
			}
			for _, finding := range differences(got, want) {
				t.Error(finding)
			}
		})
	}
}

// presets are the values that stand for an overlay.
var presets = map[string]string{
	"production": "",
	"small":      "values-small.yaml",
}

// differences names what the chart and the manifests do not have in common. The namespace is the user's in both.
func differences(got, want map[string]any) (findings []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if strings.HasPrefix(name, "Namespace ") {
			continue
		}
		if _, found := got[name]; !found {
			findings = append(findings, name+": the chart does not have it")
			continue
		}
		findings = append(findings, different(name, got[name], want[name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, found := want[name]; !found {
			findings = append(findings, name+": the manifests do not have it")
		}
	}
	return findings
}

// different compares two values, and names the places at which they differ.
func different(at string, got, want any) (findings []string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %v, want %v", at, got, want)}
		}
		keys := map[string]bool{}
		for k := range w {
			keys[k] = true
		}
		for k := range g {
			keys[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			findings = append(findings, different(at+"."+k, g[k], w[k])...)
		}
		return findings
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s: %v, want %v", at, got, want)}
		}
		for i := range w {
			findings = append(findings, different(fmt.Sprintf("%s[%d]", at, i), g[i], w[i])...)
		}
		return findings
	}
	if got != want {
		return []string{fmt.Sprintf("%s: %v, want %v", at, got, want)}
	}
	return nil
}

// generated is a name that follows from the content of a config map.
var generated = regexp.MustCompile(`\bnats-[0-9a-z]{10}\b`)

// remark is what a configuration of the broker says to people.
var remark = regexp.MustCompile(`(?m)(^|\s)#.*$|^\s*\n`)

// fields returns objects by kind and name, without what differs by design.
func fields(t *testing.T, text []byte) map[string]any {
	t.Helper()
	all := map[string]any{}
	for dec := yaml.NewDecoder(bytes.NewReader(generated.ReplaceAll(text, []byte("nats-CONTENT")))); ; {
		var o map[string]any
		if err := dec.Decode(&o); err != nil {
			return all
		}
		if o == nil {
			continue
		}
		meta := o["metadata"].(map[string]any)
		if meta["namespace"] == nil && o["kind"] != "Namespace" && o["kind"] != "PriorityClass" {
			t.Errorf("%v %v has no namespace", o["kind"], meta["name"])
		}
		if labels, ok := meta["labels"].(map[string]any); ok {
			delete(labels, "helm.sh/chart")
			delete(labels, "app.kubernetes.io/managed-by")
			if len(labels) == 0 {
				delete(meta, "labels")
			}
		}
		if notes, ok := meta["annotations"].(map[string]any); ok {
			delete(notes, "helm.sh/resource-policy")
			if len(notes) == 0 {
				delete(meta, "annotations")
			}
		}
		if spec, ok := o["spec"].(map[string]any); ok {
			if template, ok := spec["template"].(map[string]any); ok {
				if notes, ok := template["metadata"].(map[string]any)["annotations"].(map[string]any); ok {
					delete(notes, "checksum/config")
				}
			}
		}
		if data, ok := o["data"].(map[string]any); ok {
			for name, content := range data {
				if name == "nats.conf" || name == "board.conf" {
					data[name] = strings.TrimSpace(remark.ReplaceAllString(content.(string), ""))
				}
			}
		}
		name := fmt.Sprintf("%v %v", o["kind"], meta["name"])
		if _, twice := all[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		all[name] = o
	}
}

// overlay returns the documents of an overlay, with components in it.
func overlay(t *testing.T, name string, components ...string) []byte {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	for _, folder := range []string{"base", "nats", "board", "exporter", "overlays/small", "overlays/production"} {
		files, err := os.ReadDir(filepath.Join(manifests, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			body := read(t, filepath.Join(manifests, folder, f.Name()))
			if folder == "overlays/"+name && f.Name() == "kustomization.yaml" {
				body += "components: [" + strings.Join(components, ", ") + "]\n"
			}
			if err := fs.WriteFile("/"+folder+"/"+f.Name(), []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/overlays/"+name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := list.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func read(t *testing.T, file string) string {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// merged returns the values of a file of the chart with further ones in YAML. Each text may be empty.
func merged(t *testing.T, file, more string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if file != "" {
		if err := yaml.Unmarshal([]byte(read(t, filepath.Join(chartFolder, file))), &values); err != nil {
			t.Fatal(err)
		}
	}
	var extra map[string]any
	if err := yaml.Unmarshal([]byte(more), &extra); err != nil {
		t.Fatal(err)
	}
	return loader.MergeMaps(values, extra)
}

// templated returns the documents of the chart, as `helm template` prints them.
func templated(values map[string]any) (string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return "", err
	}
	release := common.ReleaseOptions{Name: "cell", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		documents := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(files[name]), "---"))
		if strings.HasSuffix(name, ".yaml") && documents != "" {
			text.WriteString("---\n" + documents + "\n")
		}
	}
	return text.String(), nil
}

func render(t *testing.T, values map[string]any) []byte {
	t.Helper()
	text, err := templated(values)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// sets are values that a user might set.
var sets = map[string]string{
	"production": "",
	"all parts": "{board: {enabled: true}, ingress: {enabled: true, className: nginx, annotations: {}}, " +
		"backup: {enabled: true, storage: {size: 1Gi, class: slow}}, " +
		"monitoring: {enabled: true, labels: {release: p}, exporter: {enabled: true, image: 'host:5000/exporter:1'}}}",
	"existing broker": "{broker: {enabled: false, existing: 'nats.example.com:4333'}, users: {login: creds, " +
		"consumerKeys: false}, tls: {clientCertificates: false}}",
	"plain broker": "{broker: {enabled: false, existing: 'nats:4222'}, tls: {enabled: false}}",
	"five nodes": "{broker: {replicas: 5, storage: {size: 101Gi, class: fast}, nodeSelector: {disk: nvme}, " +
		"tolerations: [{key: disk, operator: Exists}]}, users: {login: nkey}}",
	"no policies": "{networkPolicies: {enabled: false}, priorityClass: {create: false, name: ''}}",
	"image": "{image: {repository: 'host:5000/a/holdfast', tag: v1.2.3_x, pullPolicy: Always, pullSecrets: [pull]}, " +
		"backup: {enabled: true}}",
	"retention": "{config: {logMax: 30GiB, closedSessionsKeptFor: 24h, extra: {HOLDFAST_READY_LAG_MAX: '5'}}}",
}

// TestChartIsAccepted: for several sets of values the API server would accept each object, and each pod is allowed by
// the Pod Security level `restricted`. The set of values has its effect.
func TestChartIsAccepted(t *testing.T) {
	effects := map[string][]string{
		"production": {"image: registry.example.com/holdfast:0.1.0", "whenUnsatisfiable: DoNotSchedule"},
		"all parts": {"ingressClassName: nginx", "storageClassName: \"slow\"", "release: p", "--origin=https://",
			"image: host:5000/exporter:1"},
		"existing broker": {"NATS_HOST: \"nats.example.com:4333\"", "port: 4333", "HOLDFAST_CREDS: ", "value: tls://"},
		"plain broker":    {"value: nats://holdfast-ledger@"},
		"five nodes": {"replicas: 5", "HOLDFAST_REPLICAS: \"3\"", "max_file_store: 82739MB",
			"HOLDFAST_LOG_MAX: 41369MiB",
			"storageClassName: \"fast\"", "disk: nvme", "key: disk", "HOLDFAST_NKEY: "},
		"no policies": {"kind: StatefulSet"},
		"image":       {"image: host:5000/a/holdfast:v1.2.3_x", "imagePullPolicy: Always", "- name: pull"},
		"retention": {"HOLDFAST_LOG_MAX: 30GiB", "HOLDFAST_CLOSED_SESSIONS_KEPT_FOR: \"24h\"",
			"HOLDFAST_READY_LAG_MAX: \"5\""},
	}
	absent := map[string][]string{
		"production":      {"kind: Ingress", "kind: CronJob", "holdfast-board", "permissions.conf: ", "7777"},
		"existing broker": {"kind: StatefulSet", "HOLDFAST_TLS_CERT", "CONSUMER_KEY", "PASSWORD_FILE", "name: nats"},
		"plain broker":    {"HOLDFAST_TLS", "tls://"},
		"five nodes":      {"PASSWORD_FILE"},
		"no policies":     {"kind: NetworkPolicy", "kind: PriorityClass", "priorityClassName"},
		"all parts":       {"backend-protocol: x"},
		"image":           {"registry.example.com"},
		"retention":       {"8GiB"},
	}
	for name, values := range sets {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			text := string(render(t, merged(t, "", values)))
			for _, finding := range findingsOf(t, text) {
				t.Error(finding)
			}
			for _, want := range effects[name] {
				if !strings.Contains(text, want) {
					t.Errorf("no %q", want)
				}
			}
			for _, bad := range absent[name] {
				if strings.Contains(text, bad) {
					t.Errorf("has %q", bad)
				}
			}
			if len(effects[name]) == 0 || len(absent[name]) == 0 {
				t.Error("nothing says what these values do")
			}
		})
	}
}

// TestChangedConfigStartsServicesAgain: services read their variables at the start only, so an upgrade that changes one
// changes their pods. Another upgrade changes none.
func TestChangedConfigStartsServicesAgain(t *testing.T) {
	pods := func(values string) map[string]string {
		objects, err := decode(render(t, merged(t, "", values)))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, object := range objects {
			if d, ok := object.(*appsv1.Deployment); ok && d.Name != "holdfast-board" {
				all[d.Name] = d.Spec.Template.String()
			}
		}
		return all
	}
	before, changed, beside := pods(""), pods("{config: {logLevel: debug}}"), pods("{board: {enabled: true}}")
	if len(before) != 4 || !maps.Equal(before, beside) {
		t.Errorf("%d services; a board changes their pods: %v", len(before), !maps.Equal(before, beside))
	}
	for name, pod := range before {
		if changed[name] == pod {
			t.Errorf("%s: another log level does not change its pods", name)
		}
	}
}

// TestChartRefuses: values that would make no cell are refused, and the message names them.
func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"{replica: 3}":                                              "replica",
		"{broker: {replicas: 2}}":                                   "replicas",
		"{broker: {storage: {size: 20G}}}":                          "size",
		"{broker: {enabled: false}}":                                "set broker.existing",
		"{broker: {existing: 'n:4222'}}":                            "set broker.enabled to false",
		"{broker: {enabled: false, existing: 'tls://n:1'}}":         "existing",
		"{tls: {enabled: false}}":                                   "no connection without TLS",
		"{ingress: {enabled: true}}":                                "board.enabled is false",
		"{board: {origin: 'http://board.example.com'}}":             "origin",
		"{services: {resources: {ledger: {limits: {memory: 4G}}}}}": "memory",
		"{services: {resources: {ledger: {limits: null}}}}":         "limits",
		"{config: {extra: {PATH: x}}}":                              "PATH",
		"{config: {closedSessionsKeptFor: 30d}}":                    "closedSessionsKeptFor",
		"{users: {login: token}}":                                   "login",
		"{priorityClass: {name: ''}}":                               "priorityClass.name is empty",
		"{broker: {enabled: false, existing: 'n:1'}, tls: {certManager: {enabled: true}}}":     "broker.enabled is",
		"{broker: {enabled: false, existing: 'n:1'}, board: {enabled: true}}":                  "board.enabled needs",
		"{broker: {enabled: false, existing: 'n:1'}, monitoring: {exporter: {enabled: true}}}": "monitoring.exporter",
	} {
		if _, err := templated(merged(t, "", values)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

// TestChartLints: `helm lint` finds nothing in the chart, for each set of values.
func TestChartLints(t *testing.T) {
	slog.SetLogLoggerLevel(slog.LevelError)
	for name, values := range sets {
		for _, m := range lint.RunAll(chartFolder, merged(t, "", values), namespace).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
	broken := t.TempDir()
	if err := os.CopyFS(broken, os.DirFS(chartFolder)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "Chart.yaml"), []byte("name: x\nversion: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lint.RunAll(broken, nil, namespace).HighestSeverity < support.ErrorSev {
		t.Error("a chart without an API version lints")
	}
}

// TestChartFiles: the files that the chart has in common with deploy/k8s are the same. `-update` copies them.
func TestChartFiles(t *testing.T) {
	shared := map[string]string{"node.sh": "nats/node.sh", "rules.yaml": "monitoring/rules.yaml",
		"dashboard.json": "monitoring/dashboard.json"}
	there, err := os.ReadDir(chartFolder + "/files")
	if err != nil || len(there) != len(shared) {
		t.Fatalf("the chart has %d files, want %d: %v", len(there), len(shared), err)
	}
	for name, of := range shared {
		file, want := filepath.Join(chartFolder, "files", name), read(t, filepath.Join(manifests, of))
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if read(t, file) != want {
			t.Errorf("files/%s differs from %s: run `go test -run TestChartFiles -update .` in test/kube", name, of)
		}
	}
}
