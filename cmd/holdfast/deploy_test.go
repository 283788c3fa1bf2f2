package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/internal/health"
	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/internal/secret"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	deployFolder = "../../deploy/k8s"
	loginFolder  = "/etc/holdfast" // folder of a pod's login files
)

// manifest has the fields of a Kubernetes object that concern this program.
type manifest struct {
	APIVersion string
	Kind       string
	Metadata   struct {
		Name   string
		Labels map[string]string
	}
	Data map[string]string
	Spec struct {
		Replicas     int
		MinAvailable int
		Selector     struct{ MatchLabels map[string]string }
		Template     struct {
			Metadata struct{ Labels map[string]string }
			Spec     pod
		}
	}
	Resources, Files []string
}

type pod struct {
	TerminationGracePeriodSeconds int
	AutomountServiceAccountToken  *bool
	EnableServiceLinks            *bool
	SecurityContext               struct{ RunAsNonRoot bool }
	TopologySpreadConstraints     []spread
	Containers                    []container
	Volumes                       []volume
}

type spread struct {
	MaxSkew                        int
	TopologyKey, WhenUnsatisfiable string
	LabelSelector                  struct{ MatchLabels map[string]string }
}

type volume struct {
	Name   string
	Secret struct{ SecretName string }
}

type mount struct{ Name, MountPath string }

type container struct {
	Name, Image   string
	Command, Args []string
	Env           []struct {
		Name, Value string
		ValueFrom   struct{ SecretKeyRef struct{ Name, Key string } }
	}
	Ports []struct {
		Name          string
		ContainerPort int
	}
	VolumeMounts    []mount
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	LivenessProbe, ReadinessProbe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
		Exec    struct{ Command []string }
	}
}

// manifests reads all documents of a file.
func manifests(t *testing.T, file string) []manifest {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(deployFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	var all []manifest
	for dec := yaml.NewDecoder(bytes.NewReader(body)); ; {
		// first as Kubernetes reads it: every field, in JSON
		var fields any
		err := dec.Decode(&fields)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var m manifest
		if err := yaml.Unmarshal(lowerKeys(t, text), &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, m)
	}
}

// lowerKeys writes the fields of a document in lower case, as the library wants the fields of a struct. Keys of maps
// that are data keep their case.
func lowerKeys(t *testing.T, text []byte) []byte {
	t.Helper()
	keys := regexp.MustCompile(`"([a-z][A-Za-z]*)":`)
	return keys.ReplaceAllFunc(text, func(k []byte) []byte {
		if bytes.Equal(k, []byte(`"httpGet":`)) {
			return k
		}
		return bytes.ToLower(k)
	})
}

// ofKind returns the only object of a kind.
func ofKind(t *testing.T, file, kind string) *manifest {
	t.Helper()
	var found *manifest
	for _, m := range manifests(t, file) {
		if m.Kind == kind {
			if found != nil {
				t.Fatalf("%s: two of kind %s", file, kind)
			}
			found = &m
		}
	}
	if found == nil {
		t.Fatalf("%s: no %s", file, kind)
	}
	return found
}

// Every file is YAML with objects in it, and every file that a kustomization names is there.
func TestManifestsParse(t *testing.T) {
	n := 0
	err := fs.WalkDir(os.DirFS(deployFolder), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".yaml" {
			return err
		}
		for _, m := range manifests(t, file) {
			n++
			if m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" &&
				m.Kind != "Kustomization" && m.Kind != "Component" {
				t.Errorf("%s: an object without apiVersion, kind or name: %+v", file, m)
			}
			for _, r := range append(m.Resources, m.Files...) {
				if _, err := os.Stat(filepath.Join(deployFolder, path.Dir(file), r)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
		return nil
	})
	if err != nil || n < 15 {
		t.Errorf("%d objects, %v", n, err)
	}
}

// Each service of the table of targets has a file. The file runs the same image with the service's name as argument,
// existing flags, answered probe paths, and a user with permissions.
func TestEachServiceIsDeployed(t *testing.T) {
	cell, err := events.NewCell(events.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	users, err := permission.Users(cell, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := ofKind(t, "base/kustomization.yaml", "Kustomization")
	// namespace, configuration, network
	if more := 3; len(base.Resources) != len(targets)+more {
		t.Errorf("%d files for %d services and %d others", len(base.Resources), len(targets), more)
	}
	for i := range targets {
		name := targets[i].name
		file := "base/" + name + ".yaml"
		if !slices.Contains(base.Resources, name+".yaml") {
			t.Errorf("base/kustomization.yaml does not name %s.yaml", name)
		}
		d := ofKind(t, file, "Deployment")
		checkPod(t, file, &d.Spec.Template.Spec)
		labels := map[string]string{"app.kubernetes.io/name": "holdfast", "app.kubernetes.io/component": name}
		for what, got := range map[string]map[string]string{"labels": d.Metadata.Labels,
			"selector": d.Spec.Selector.MatchLabels, "pod": d.Spec.Template.Metadata.Labels,
			"budget": ofKind(t, file, "PodDisruptionBudget").Spec.Selector.MatchLabels} {
			if !sameLabels(got, labels) {
				t.Errorf("%s: %s: %v, want %v", file, what, got, labels)
			}
		}
		if budget := ofKind(t, file, "PodDisruptionBudget"); d.Spec.Replicas < 2 || budget.Spec.MinAvailable < 1 ||
			budget.Spec.MinAvailable >= d.Spec.Replicas {
			t.Errorf("%s: %d replicas of which %d stay: one could not take over from another", file, d.Spec.Replicas,
				budget.Spec.MinAvailable)
		}
		c := d.Spec.Template.Spec.Containers[0]
		if c.Image != "holdfast" || len(c.Args) == 0 || c.Args[0] != name {
			t.Errorf("%s: runs %s %v", file, c.Image, c.Args)
		}
		checkFlags(t, file, &targets[i], c.Args)
		at := slices.IndexFunc(users, func(u permission.User) bool { return u.Name == events.ServiceName(name) })
		env := map[string]string{}
		for _, e := range c.Env {
			env[e.Name] = e.Value
			if e.ValueFrom.SecretKeyRef.Key != "" {
				t.Errorf("%s: %s is a secret in the environment", file, e.Name)
			}
		}
		volumes := d.Spec.Template.Spec.Volumes
		if at < 0 || len(volumes) != 1 ||
			volumes[0].Secret.SecretName != secret.Folder(users[at]) || len(c.VolumeMounts) != 1 ||
			c.VolumeMounts[0].MountPath != loginFolder ||
			env["HOLDFAST_NATS"] != "tls://"+events.ServiceName(name)+"@$(NATS_HOST)" {
			t.Errorf("%s: logs in with %v and %+v", file, env, volumes)
		}
	}
}

// Pods of one kind are spread over machines and over zones. A cluster with one zone runs them all the same.
func TestPodsAreSpread(t *testing.T) {
	files := map[string]string{"nats/nats.yaml": "StatefulSet"}
	for i := range targets {
		files["base/"+targets[i].name+".yaml"] = "Deployment"
	}
	for file, kind := range files {
		m := ofKind(t, file, kind)
		all := m.Spec.Template.Spec.TopologySpreadConstraints
		if len(all) != 2 || all[0].TopologyKey != "kubernetes.io/hostname" ||
			all[1].TopologyKey != "topology.kubernetes.io/zone" || all[1].WhenUnsatisfiable != "ScheduleAnyway" {
			t.Errorf("%s: %+v", file, all)
		}
		for _, s := range all {
			if s.MaxSkew != 1 || !sameLabels(s.LabelSelector.MatchLabels, m.Spec.Selector.MatchLabels) {
				t.Errorf("%s: %+v", file, s)
			}
		}
	}
}

func sameLabels(got, want map[string]string) bool {
	for k, v := range want {
		if got[k] != v {
			return false
		}
	}
	return len(got) == len(want)
}

// checkPod checks what every pod of the manifests must have.
func checkPod(t *testing.T, file string, p *pod) {
	t.Helper()
	c := p.Containers[0]
	if !p.SecurityContext.RunAsNonRoot || c.SecurityContext.AllowPrivilegeEscalation == nil ||
		*c.SecurityContext.AllowPrivilegeEscalation ||
		!c.SecurityContext.ReadOnlyRootFilesystem || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") {
		t.Errorf("%s: may do more than it needs: %+v %+v", file, p.SecurityContext, c.SecurityContext)
	}
	if p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken || p.EnableServiceLinks == nil ||
		*p.EnableServiceLinks {
		t.Errorf("%s: gets a token, or variables that look like flags", file)
	}
	if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
		t.Errorf("%s: resources %+v", file, c.Resources)
	}
	if p.TerminationGracePeriodSeconds <= stopMaxS {
		t.Errorf("%s: is killed after %d s, a clean end may take %d", file, p.TerminationGracePeriodSeconds, stopMaxS)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || len(c.Ports) != 1 {
		t.Errorf("%s: probes %+v %+v, ports %v", file, c.LivenessProbe, c.ReadinessProbe, c.Ports)
	}
}

// checkFlags runs the command line as far as its flags, with the variables of the config map.
func checkFlags(t *testing.T, file string, target *target, args []string) {
	t.Helper()
	cmd := newApp(&Program{}).serviceCommand(target)
	if err := cmd.ParseFlags(args[1:]); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if at := cmd.Flags().Lookup("http"); at.Value.String() != ":8480" {
		t.Errorf("%s: health is at %s, the probes look at port 8480", file, at.Value)
	}
	for name, value := range ofKind(t, "base/config.yaml", "ConfigMap").Data {
		flag, ours := strings.CutPrefix(name, envPrefix)
		if f := cmd.Flags().Lookup(strings.ToLower(strings.ReplaceAll(flag, "_", "-"))); ours && f != nil {
			if err := f.Value.Set(value); err != nil {
				t.Errorf("config.yaml: %s for %s: %v", name, target.name, err)
			}
		}
	}
}

// Every variable that services share is a flag of at least one of them, and the paths of the probes are answered.
func TestDeployedConfiguration(t *testing.T) {
	known := map[string]bool{"NATS_HOST": true}
	config := ofKind(t, "base/config.yaml", "ConfigMap").Data
	for name, file := range map[string]string{
		"PASSWORD_FILE": secret.PasswordFile, "TLS_CA": secret.CAFile, "TLS_CERT": secret.CertFile,
		"TLS_KEY": secret.KeyFile, "CONSUMER_KEY_FILE": secret.ConsumerKey,
	} {
		if config[envPrefix+name] != path.Join(loginFolder, file) {
			t.Errorf("%s: %s, want %s of the secret", name, config[envPrefix+name], file)
		}
	}
	for i := range targets {
		newApp(&Program{}).serviceCommand(&targets[i]).Flags().VisitAll(func(f *pflag.Flag) {
			known[envName(f.Name)] = true
		})
	}
	for name := range config {
		if !known[name] {
			t.Errorf("config.yaml: no service has a flag for %s", name)
		}
	}
	h, err := health.Listen(t.Context(), "127.0.0.1:0", version)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.Run(t.Context()) }()
	for _, p := range []string{"/healthz", "/readyz", "/metrics"} {
		resp, err := http.Get(h.URL() + p)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode == http.StatusNotFound {
			t.Errorf("%s: %s, %v", p, resp.Status, err)
		}
	}
}

// The deployed broker has the printed permissions, and syncs each write before it acknowledges.
func TestDeployedBroker(t *testing.T) {
	var out bytes.Buffer
	p := &Program{Args: []string{"permissions", "--harness", "my-agent", "--person", "screen", "--operator", "operator",
		"--passwords", "../nats-users/users.conf"}, Stdout: &out, Stderr: &out}
	if code := p.Run(t.Context()); code != exitDone {
		t.Fatal(out.String())
	}
	golden(t, deployFolder+"/nats/permissions.conf", out.String())
	guide, err := os.ReadFile("../../docs/guide/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "holdfast "+strings.Join(p.Args, " ")+" > deploy/k8s/nats/permissions.conf") {
		t.Error("the guide prints other permissions")
	}
	cell, err := events.NewCell(events.DefaultPrefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"nats/nats.conf", "overlays/small/nats.conf"} {
		body, err := os.ReadFile(filepath.Join(deployFolder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"include ./permissions.conf", "sync_interval: always", "store_dir: /data",
			"  request_queue_limit: 1024 ", "  info_queue_limit: 1024\n",
			"pid_file: /var/run/nats/nats.pid",
			`http: "127.0.0.1:8222"`, "/etc/nats-tls/ca.crt"} {
			if !strings.Contains(string(body), want) {
				t.Errorf("%s: no %s", file, want)
			}
		}
		of := func(text string) int { return strings.Count(string(body), text) }
		if of("\ntls {") != 1 || of("\n  verify: true") != 1 {
			t.Errorf("%s: a client needs a certificate", file)
		}
		if n := of("cluster {"); of("\n  tls {") != n || of("/etc/nats-routes-tls/ca.crt") != n ||
			of("no_advertise: true") != n {
			t.Errorf("%s: a node needs a certificate, and clients do not learn the addresses of nodes", file)
		}
		for _, subject := range permission.RouteDeny(cell) {
			if of("        "+strconv.Quote(subject)+"\n") != of("cluster {") {
				t.Errorf("%s: a node reports traced messages to %s", file, subject)
			}
		}
		bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(string(body), "")
		if secret := regexp.MustCompile(`\$[A-Z]\w*`).FindAllString(bare, -1); !slices.Equal(secret,
			[]string{"$SERVER_NAME"}) {
			t.Errorf("%s: %v come from the environment", file, secret)
		}
	}
	config := ofKind(t, "base/config.yaml", "ConfigMap").Data
	log, err1 := bytesOf(config["HOLDFAST_LOG_MAX"], 0)
	objects, err2 := bytesOf(config["HOLDFAST_OBJECTS_MAX"], 0)
	if store := int64(16 << 30); err1 != nil || err2 != nil || log < store/4 || objects < store/8 ||
		log+objects > store*3/4 {
		t.Errorf("of a store of %d bytes the log takes %d and objects %d: %v %v", store, log, objects, err1, err2)
	}
	set := ofKind(t, "nats/nats.yaml", "StatefulSet")
	for _, name := range []string{secret.NodesFolder, secret.ServerFolder, secret.RoutesFolder} {
		at := slices.IndexFunc(set.Spec.Template.Spec.Volumes, func(v volume) bool {
			return v.Secret.SecretName == name
		})
		if at < 0 || !slices.Contains(set.Spec.Template.Spec.Containers[0].VolumeMounts,
			mount{set.Spec.Template.Spec.Volumes[at].Name, "/etc/" + name}) {
			t.Errorf("the secret %s is not mounted at /etc/%s", name, name)
		}
	}
	checkRoom(t, &set.Spec.Template.Spec.Containers[0])
	if !strings.HasPrefix(set.Spec.Template.Spec.Containers[0].Image, "nats:2.15") || set.Spec.Replicas != 3 {
		t.Errorf("%d of %s", set.Spec.Replicas, set.Spec.Template.Spec.Containers[0].Image)
	}
}

// checkRoom: a node does not start without its reserve, its liveness probe ends it without that, and its store and the
// reserve fit into its volume.
func checkRoom(t *testing.T, c *container) {
	t.Helper()
	if !slices.Equal(c.Command, []string{"sh", "/etc/nats/node.sh", "start"}) ||
		!slices.Equal(c.LivenessProbe.Exec.Command, []string{"sh", "/etc/nats/node.sh", "live"}) {
		t.Errorf("a node starts with %q and lives by %q", c.Command, c.LivenessProbe.Exec.Command)
	}
	read := func(file, pattern string) int64 {
		body, err := os.ReadFile(filepath.Join(deployFolder, file))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(body)
		if m == nil {
			t.Fatalf("%s has no %s", file, pattern)
		}
		n, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	volume := read("nats/nats.yaml", `storage: (\d+)Gi`) << 30
	reserve := read("nats/node.sh", `reserve_kib=(\d+)`) << 10
	for _, file := range []string{"nats/nats.conf", "overlays/small/nats.conf"} {
		if store := read(file, `max_file_store: (\d+)GB`) << 30; store+reserve > volume*9/10 {
			t.Errorf("%s: a store of %d bytes and a reserve of %d leave too little of %d", file, store, reserve, volume)
		}
	}
}

// The image is built with the Go version of go.mod, and runs this program.
func TestDockerfile(t *testing.T) {
	read := func(file string) string {
		body, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read("go.mod"))[1]
	file := read("deploy/Dockerfile")
	for _, want := range []string{"FROM golang:" + wants + " AS build", "CGO_ENABLED=0 go build", "./cmd/holdfast\n",
		"FROM scratch", "USER 65532:65532", `ENTRYPOINT ["/holdfast"]`} {
		if !strings.Contains(file, want) {
			t.Errorf("no %q", want)
		}
	}
}

// The operator's guide names existing metrics, and commands that parse.
func TestOperatorsGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	h, err := health.Listen(t.Context(), "127.0.0.1:0", version)
	if err != nil {
		t.Fatal(err)
	}
	h.Add(health.Part{Name: "x", Connected: func() bool { return true }, Counts: func() map[string]uint64 {
		return map[string]uint64{"n": 1}
	},
		Consumers: []health.Consumer{{Name: "c", Lag: func(context.Context) (uint64, string, error) {
			return 0, "", nil
		}}}})
	go func() { _ = h.Run(t.Context()) }()
	resp, err := http.Get(h.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(holdfast_[a-z_]+)`").FindAllSubmatch(guide, -1)
	for _, m := range named {
		if !bytes.Contains(body, append([]byte("\n"), m[1]...)) {
			t.Errorf("there is no %s", m[1])
		}
	}
	exported := regexp.MustCompile(`(?m)^# TYPE (holdfast_[a-z_]+)`).FindAllSubmatch(body, -1)
	for _, m := range exported {
		if !bytes.Contains(guide, m[1]) {
			t.Errorf("the guide does not say what %s is good for", m[1])
		}
	}
	if len(named) == 0 || len(exported) == 0 {
		t.Errorf("%d named, %d exported", len(named), len(exported))
	}
	root := newApp(&Program{}).root()
	for _, m := range regexp.MustCompile("`holdfast ([^`]+)`").FindAllSubmatch(guide, -1) {
		cmd, rest, err := root.Find(strings.Fields(string(m[1])))
		if err != nil || cmd == root || cmd.ParseFlags(rest) != nil {
			t.Errorf("holdfast %s: there is no such command: %v", m[1], err)
		}
	}
}

// TestNetworkIsClosed: a pod without a policy of its own talks to no one, and a service of an overlay to the broker and
// the name server alone.
func TestNetworkIsClosed(t *testing.T) {
	var policies []map[string]any
	body, err := os.ReadFile(filepath.Join(deployFolder, "base/network.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for dec := yaml.NewDecoder(bytes.NewReader(body)); ; {
		var p struct{ Spec map[string]any }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p.Spec)
	}
	both := []any{"Ingress", "Egress"}
	deny := map[string]any{"podSelector": map[string]any{}, "policyTypes": both}
	if len(policies) != 2 || !reflect.DeepEqual(policies[0], deny) {
		t.Errorf("the policies are %v, want %v first", policies, deny)
	}
	ports := regexp.MustCompile(`port:(\d+)`).FindAllString(fmt.Sprint(policies[1]["egress"]), -1)
	if want := []string{"port:4222", "port:53", "port:53"}; !slices.Equal(ports, want) {
		t.Errorf("a service may talk to %v, want %v", ports, want)
	}
	for _, overlay := range []string{"small", "production"} {
		body, err := os.ReadFile(filepath.Join(deployFolder, "overlays", overlay, "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		const broker = "path: /spec/egress/0/to\n        value: " +
			"[{podSelector: {matchLabels: {app.kubernetes.io/name: nats}}}]\n"
		if !bytes.Contains(body, []byte(broker)) {
			t.Errorf("%s: services may talk to any host at the broker's port", overlay)
		}
	}
}

// TestMonitoring: each figure that the operator's guide calls worth an alert is in one, each alert has its place in the
// guide, and every process of a service is scraped. The alerts and the dashboard themselves are tested with Prometheus,
// see test/monitoring.
func TestMonitoring(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(filepath.Join(deployFolder, "monitoring/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(body, &rules); err != nil || len(rules.Spec.Groups) != 2 {
		t.Fatalf("%v: %+v", err, rules)
	}
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(string(guide), -1) {
		anchors[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	all := ""
	for _, r := range slices.Concat(rules.Spec.Groups[0].Rules, rules.Spec.Groups[1].Rules) {
		all += r.Expr
		_, anchor, found := strings.Cut(r.Annotations["runbook_url"], "/docs/guide/operate.md#")
		if !found || !anchors[anchor] {
			t.Errorf("%s: its page is %q", r.Alert, r.Annotations["runbook_url"])
		}
	}
	table := string(guide[bytes.Index(guide, []byte("| metric | worth an alert |")):])
	table, _, _ = strings.Cut(table, "\n\n")
	named := regexp.MustCompile(`(?:holdfast_|")[a-z_]+`).FindAllString(table, -1)
	for _, name := range named {
		if name = strings.TrimPrefix(name, `"`); !strings.Contains(all, name) {
			t.Errorf("no alert is about %s", name)
		}
	}
	if len(named) < 12 {
		t.Errorf("the guide names %q", named)
	}
	monitor, err := os.ReadFile(filepath.Join(deployFolder, "monitoring/podmonitor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range targets {
		pod := ofKind(t, "base/"+targets[i].name+".yaml", "Deployment").Spec.Template
		in := regexp.MustCompile(`values: \[.*\b` + pod.Metadata.Labels["app.kubernetes.io/component"] + `\b`)
		if !in.Match(monitor) || len(pod.Spec.Containers[0].Ports) != 1 ||
			pod.Spec.Containers[0].Ports[0].Name != "http" {
			t.Errorf("%s is not scraped", targets[i].name)
		}
	}
}

// Sizes are read as written; a share of a store of unknown size is no limit.
func TestBytesOf(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "17B": 17, "2KiB": 2048, "3MiB": 3 << 20,
		"8GiB": 8 << 30, "1TiB": 1 << 40, "50%": 500, "100%": 1000} {
		if got, err := bytesOf(text, 1000); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1.5GiB", "8GB", "8 GiB", "101%", "%", "9999999999999TiB", "KiB"} {
		if got, err := bytesOf(text, 1000); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	if got, err := bytesOf("50%", 0); err != nil || got != 0 {
		t.Errorf("of an unknown store: %d %v", got, err)
	}
}
