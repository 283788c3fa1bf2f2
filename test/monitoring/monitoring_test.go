//go:build monitoring

// Package monitoring checks the alerts and the dashboard of deploy/k8s/monitoring with Prometheus and its promtool, on
// the figures of a real cell.
package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/test/program"
)

const manifests = "../../deploy/k8s/monitoring/"

// Programs that the tests run. The environment variable names a folder that has both; default: the PATH.
const (
	folderVar  = "HOLDFAST_PROMETHEUS"
	prometheus = "prometheus"
	promtool   = "promtool"
)

var binary string // path of holdfast

func TestMain(m *testing.M) {
	run := func() int {
		dir, err := os.MkdirTemp("", "holdfast-exporter-")
		if err == nil {
			defer os.RemoveAll(dir)
			err = buildExporter(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	os.Exit(program.Main(run, map[string]*string{program.Holdfast: &binary, program.NATSServer: &natsServer}))
}

// tool returns the path of a program of Prometheus.
func tool(t *testing.T, name string) string {
	t.Helper()
	if folder := os.Getenv(folderVar); folder != "" {
		name = filepath.Join(folder, name)
	}
	found, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: Debian's package prometheus has it; %s names the folder", err, folderVar)
	}
	return found
}

// rule is an alert.
type rule struct{ Alert, Expr string }

// rules writes the rules of the manifest for Prometheus into a folder. It returns their path and the alerts.
func rules(t *testing.T, dir string) (file string, alerts []rule) {
	t.Helper()
	body, err := os.ReadFile(manifests + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Spec map[string]any }
	var typed struct {
		Spec struct{ Groups []struct{ Rules []rule } }
	}
	err = errors.Join(yaml.Unmarshal(body, &manifest), yaml.Unmarshal(body, &typed))
	if err != nil || len(typed.Spec.Groups) == 0 {
		t.Fatalf("%v: %+v", err, typed)
	}
	text, err := yaml.Marshal(manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, g := range typed.Spec.Groups {
		alerts = append(alerts, g.Rules...)
	}
	return file, alerts
}

// TestAlerts: each alert fires in a case, with the text that people read, and is silent in another one.
func TestAlerts(t *testing.T) {
	dir := t.TempDir()
	_, alerts := rules(t, dir)
	body, err := os.ReadFile("testdata/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Tests []struct {
			Cases []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	err = errors.Join(yaml.Unmarshal(body, &cases), os.WriteFile(filepath.Join(dir, "rules_test.yaml"), body, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, one := range cases.Tests {
		for _, c := range one.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Fires) > 0
			silent[c.Alert] = silent[c.Alert] || len(c.Fires) == 0
		}
	}
	for _, a := range alerts {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s fires in a case: %v; is silent in one: %v", a.Alert, fires[a.Alert], silent[a.Alert])
		}
	}
	if len(alerts) == 0 {
		t.Error("there is no alert")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), tool(t, promtool), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// watcher is a Prometheus that scrapes a cell.
type watcher struct {
	t    *testing.T
	base string
}

// pod is what is scraped: its name, and host:port of its figures.
type pod struct{ name, at string }

// watch starts a Prometheus with the alerts, which scrapes these pods.
func watch(t *testing.T, pods []pod) *watcher {
	t.Helper()
	dir := t.TempDir()
	file, _ := rules(t, dir)
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [" + file + "]\nscrape_configs:\n"
	for _, p := range pods {
		config += fmt.Sprintf("  - job_name: %s\n    static_configs:\n      - targets: [%q]\n"+
			"        labels: {namespace: holdfast, pod: %s}\n", p.name, p.at, p.name)
	}
	configFile := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(configFile, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// the program does not say which port the system gave it
	address := fmt.Sprintf("127.0.0.1:%d", free(t, 1)[0])
	c := startProgram(t, prometheus, tool(t, prometheus), "--config.file", configFile, "--storage.tsdb.path",
		filepath.Join(dir, "tsdb"), "--web.listen-address", address)
	w := &watcher{t, "http://" + address}
	natstest.Until(t, "Prometheus to be ready", func() bool {
		if err := c.Fallen(); err != nil {
			t.Fatal(err)
		}
		_, err := w.read("/-/ready")
		return err == nil
	})
	return w
}

func (w *watcher) read(path string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return string(body), nil
}

// shows waits until a query has a result.
func (w *watcher) shows(what, query string) {
	w.t.Helper()
	natstest.Until(w.t, what+": a result of "+query, func() bool {
		found, err := w.finds(query)
		if err != nil {
			w.t.Fatalf("%s: %s: %v", what, query, err)
		}
		return found
	})
}

// finds reports whether a query has a result now.
func (w *watcher) finds(query string) (bool, error) {
	body, err := w.read("/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return false, err
	}
	var got struct {
		Data struct{ Result []any }
	}
	err = json.Unmarshal([]byte(body), &got)
	return len(got.Data.Result) > 0, err
}

// Selections of a query: of the figures of services, and of those of the broker.
var (
	ofServices = regexp.MustCompile(`(holdfast|process)_[a-z_]+(\{[^}]*\})?`)
	ofBroker   = regexp.MustCompile(`(gnatsd|jetstream)_[a-z_]+(\{[^}]*\})?`)
)

// showsAll waits until each query of the dashboard with such a selection has a result, and each such selection of an
// alert. Then no alert fires.
func (w *watcher) showsAll(selection *regexp.Regexp) {
	w.t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	body, err := os.ReadFile(manifests + "dashboard.json")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(body, &board); err != nil {
		w.t.Fatal(err)
	}
	variables := strings.NewReplacer("$namespace", "holdfast", "$__rate_interval", "10s")
	n := 0
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			if ofServices.MatchString(q.Expr) == ofBroker.MatchString(q.Expr) {
				w.t.Errorf("panel %s: no test runs %s", p.Title, q.Expr)
			}
			if selection.MatchString(q.Expr) {
				n++
				w.shows("panel "+p.Title, variables.Replace(q.Expr))
			}
		}
	}
	_, alerts := rules(w.t, w.t.TempDir())
	selected := 0
	for _, a := range alerts {
		for _, s := range selection.FindAllString(a.Expr, -1) {
			selected++
			w.shows(a.Alert, s)
		}
	}
	if n < 10 || selected < 7 {
		w.t.Errorf("the dashboard has %d such queries, and the alerts have %d selections", n, selected)
	}
	got, err := w.read("/api/v1/rules")
	if err != nil || strings.Count(got, `"health":"ok"`) != len(alerts) || strings.Contains(got, `"state":"firing"`) {
		w.t.Errorf("the rules of %d alerts in a cell in which nothing is wrong: %s, %v", len(alerts), got, err)
	}
}

// TestFiguresOfACell: each query of the dashboard about services has a result in a cell that works, and so has what the
// alerts select of its figures.
func TestFiguresOfACell(t *testing.T) {
	up := program.Run(t, binary, nil, "up", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	at, err := url.Parse(up.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	var pods []pod
	for _, service := range []string{"ledger", "retry", "compaction", "reconciler"} {
		// one process stands for a pod of each
		pods = append(pods, pod{"holdfast-" + service + "-0", at.Host})
	}
	w := watch(t, pods)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	work(ctx, t, up.NATS)
	w.showsAll(ofServices)
}

// work is what a harness does, for the rest of the test: turns that complete, and turns that are tried again.
func work(ctx context.Context, t *testing.T, nats string) {
	t.Helper()
	h, err := harness.Connect(ctx, harness.Config{ID: "agent", URL: nats})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	s, err := h.Open(ctx, "s", harness.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	go func() {
		for ctx.Err() == nil {
			if err := turns(ctx, s); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
}

// turns runs a turn that completes and a turn that fails in a way that is tried again.
func turns(ctx context.Context, s *harness.Session) error {
	turn, err := s.StartTurn(ctx, harness.StartOptions{Content: "x"})
	if err == nil {
		err = turn.Complete(ctx, "")
	}
	if err != nil {
		return err
	}
	if turn, err = s.StartTurn(ctx, harness.StartOptions{Content: "y"}); err != nil {
		return err
	}
	if err := turn.Fail(ctx, events.Failure{Kind: "rate_limit", Text: "slow down"}, false); err != nil {
		return err
	}
	select {
	case <-time.After(200 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}
