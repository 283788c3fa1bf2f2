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
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/test/child"
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
	os.Exit(program.Main(m.Run, map[string]*string{program.Holdfast: &binary}))
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

// watch starts a Prometheus with the alerts. It scrapes one process as if it were a pod of each service.
func watch(t *testing.T, target string) *watcher {
	t.Helper()
	dir := t.TempDir()
	file, _ := rules(t, dir)
	at, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [" + file + "]\nscrape_configs:\n"
	for _, service := range []string{"ledger", "retry", "compaction", "reconciler"} {
		config += fmt.Sprintf("  - job_name: %s\n    static_configs:\n      - targets: [%q]\n"+
			"        labels: {namespace: holdfast, pod: holdfast-%s-0}\n", service, at.Host, service)
	}
	configFile := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(configFile, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// the program does not say which port the system gave it
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool(t, prometheus), "--config.file", configFile, "--storage.tsdb.path",
		filepath.Join(dir, "tsdb"), "--web.listen-address", address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c, err := child.Run(prometheus, filepath.Join(dir, "log"), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			t.Logf("the log of Prometheus:\n%s", c.Tail())
		}
	})
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
		body, err := w.read("/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			w.t.Fatalf("%s: %s: %v", what, query, err)
		}
		var got struct {
			Data struct{ Result []any }
		}
		return json.Unmarshal([]byte(body), &got) == nil && len(got.Data.Result) > 0
	})
}

// selector matches what a query selects.
var selector = regexp.MustCompile(`holdfast_[a-z_]+(\{[^}]*\})?`)

// TestFiguresOfACell: each query of the dashboard has a result in a cell that works, and so has what the alerts select
// of its figures.
func TestFiguresOfACell(t *testing.T) {
	up := program.Run(t, binary, nil, "up", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	w := watch(t, up.HTTP)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	work(ctx, t, up.NATS)

	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	body, err := os.ReadFile(manifests + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &board); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$namespace", "holdfast", "$__rate_interval", "10s")
	n := 0
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			n++
			w.shows("panel "+p.Title, variables.Replace(q.Expr))
		}
	}
	if n < 10 {
		t.Errorf("the dashboard has %d queries", n)
	}
	_, alerts := rules(t, t.TempDir())
	for _, a := range alerts {
		for _, s := range selector.FindAllString(a.Expr, -1) {
			w.shows(a.Alert, s)
		}
	}
	got, err := w.read("/api/v1/rules")
	if err != nil || strings.Count(got, `"health":"ok"`) != len(alerts) || strings.Contains(got, `"state":"firing"`) {
		t.Errorf("the rules of %d alerts in a cell in which nothing is wrong: %s, %v", len(alerts), got, err)
	}
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
