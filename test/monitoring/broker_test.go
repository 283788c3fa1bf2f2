//go:build monitoring

package monitoring

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/test/child"
	"github.com/holdfast-dev/holdfast/test/program"
)

const (
	exporterPackage = "github.com/nats-io/prometheus-nats-exporter"
	exporterModule  = "exporter" // the folder of a module of its own, which requires it
	brokerNodes     = 3
)

var natsServer, exporter string // paths of programs

// buildExporter builds the exporter into a folder.
func buildExporter(dir string) error {
	exporter = filepath.Join(dir, "prometheus-nats-exporter")
	cmd := exec.Command("go", "build", "-C", exporterModule, "-o", exporter, exporterPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// broker is a cluster of nats-server, each node with an exporter beside it.
type broker struct {
	nodes   []*child.Process
	clients []string // URLs
	metrics []string // host:port of the exporters
}

// startBroker starts the nodes and their exporters, with the arguments of the manifest.
func startBroker(t *testing.T) *broker {
	t.Helper()
	ports := free(t, 4*brokerNodes)
	var routes []string
	for i := range brokerNodes {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[4*i+1]))
	}
	b := &broker{}
	for i := range brokerNodes {
		client, route, monitor, metrics := ports[4*i], ports[4*i+1], ports[4*i+2], ports[4*i+3]
		name, dir := fmt.Sprintf("nats-%d", i), t.TempDir()
		conf := filepath.Join(dir, "nats.conf")
		text := fmt.Sprintf("server_name: %s\nlisten: 127.0.0.1:%d\nhttp: 127.0.0.1:%d\n"+
			"jetstream {store_dir: %q, max_file_store: 16GB}\ncluster {name: holdfast, listen: 127.0.0.1:%d, "+
			"routes: [%s], ping_interval: 2s, ping_max: 2}\n", name, client, monitor, dir, route,
			strings.Join(routes, ", "))
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.nodes = append(b.nodes, startProgram(t, name, natsServer, "--config", conf))
		var args []string
		for _, arg := range exporterArgs(t) {
			arg = strings.Replace(arg, "8222", fmt.Sprint(monitor), 1)
			args = append(args, strings.Replace(arg, "7777", fmt.Sprint(metrics), 1))
		}
		startProgram(t, name+"-exporter", exporter, args...)
		b.clients = append(b.clients, fmt.Sprintf("nats://127.0.0.1:%d", client))
		b.metrics = append(b.metrics, fmt.Sprintf("127.0.0.1:%d", metrics))
	}
	return b
}

// exporterArgs are the arguments of the exporter in deploy/k8s.
func exporterArgs(t *testing.T) []string {
	t.Helper()
	body, err := os.ReadFile("../../deploy/k8s/exporter/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(body), "args: [")
	list, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		t.Fatal("the manifest has no arguments of the exporter")
	}
	return strings.Split(strings.ReplaceAll(list, `"`, ""), ", ")
}

// free returns ports that no one listens on.
func free(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		// held until all are chosen, so that they differ
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// startProgram runs a program until the test ends. It ends with this process.
func startProgram(t *testing.T, name, path string, args ...string) *child.Process {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c, err := child.Run(name, filepath.Join(t.TempDir(), "log"), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			t.Logf("the log of %s:\n%s", name, c.Tail())
		}
	})
	return c
}

// TestFiguresOfTheBroker: with exporters beside the nodes of a broker, each query of the dashboard about the broker has
// a result, and so has what the alerts about it select; none fires. A node that is killed, and a broker without a
// majority, are what their alerts find.
func TestFiguresOfTheBroker(t *testing.T) {
	b := startBroker(t)
	var pods []pod
	for i, at := range b.metrics {
		pods = append(pods, pod{fmt.Sprintf("nats-%d", i), at})
	}
	w := watch(t, pods)
	program.Run(t, binary, nil, "ledger", "--nats", strings.Join(b.clients, ","), "--replicas", "3",
		"--http", "127.0.0.1:0")
	t.Run("work", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		work(ctx, t, strings.Join(b.clients, ","))
		w.showsAll(ofBroker)
	})
	expr := map[string]string{}
	_, alerts := rules(t, t.TempDir())
	for _, a := range alerts {
		expr[a.Alert] = a.Expr
	}
	for _, c := range []struct {
		node  int // that is killed
		alert string
	}{{2, "HoldfastBrokerNodeAway"}, {1, "HoldfastBrokerNoLeader"}} {
		if expr[c.alert] == "" {
			t.Fatalf("there is no alert %s", c.alert)
		}
		natstest.Until(t, fmt.Sprintf("no %s before node %d is killed", c.alert, c.node), func() bool {
			found, err := w.finds(expr[c.alert])
			return !found && err == nil
		})
		b.nodes[c.node].Kill()
		w.shows(c.alert, expr[c.alert])
	}
}
