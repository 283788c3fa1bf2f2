package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	hub        = "10.70.0.1" // the API server, the name server, the tests
	services   = "10.96.0.0/16"
	startsMax  = 2 * time.Minute // until every node is Ready
	endsMax    = 10 * time.Second
	poll       = 100 * time.Millisecond
	pauseImage = "localhost/pause:1"
)

// cluster is a Kubernetes with its nodes. Tests run at the hub of its network.
type cluster struct {
	t     *testing.T
	dir   string
	nodes []string // their names; the address of number i, from 1, is 10.70.0.1i
}

// startCluster starts a cluster, and ends it with the test.
func startCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: filepath.Join(folder, t.Name())}
	for i := range nodes {
		c.nodes = append(c.nodes, fmt.Sprintf("node-%d", i+1))
	}
	for _, name := range []string{"log", "etcd"} {
		if err := os.MkdirAll(c.file(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.identities(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", c.file("admin.conf"))
	t.Setenv("PATH", program("")+":"+os.Getenv("PATH"))
	t.Setenv("KUBECACHEDIR", c.file("cache"))
	t.Cleanup(c.end)
	began := time.Now()
	c.network()
	c.control()
	for i := range c.nodes {
		c.startNode(i + 1)
	}
	c.run("ip", "route", "add", services, "via", address(1))
	c.until(startsMax, "every node is Ready", func() error {
		out, err := output(".", "kubectl", "get", "nodes", "--no-headers")
		if err == nil && strings.Count(out, " Ready ") != nodes {
			err = errors.New(out)
		}
		return err
	})
	t.Logf("a cluster of %d nodes is Ready after %v", nodes, time.Since(began).Round(poll))
	return c
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// address of node i.
func address(i int) string { return fmt.Sprintf("10.70.0.1%d", i) }

// pods of node i have addresses of this network.
func podNetwork(i int) string { return fmt.Sprintf("10.244.%d.0/24", i) }

// run runs a command, and ends the test if it fails.
func (c *cluster) run(name string, args ...string) string {
	c.t.Helper()
	out, err := output(".", name, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *cluster) ip(args string) { c.t.Helper(); c.run("ip", strings.Fields(args)...) }

// start starts a part of the cluster. It ends with the cluster; its log is a file.
func (c *cluster) start(name string, cmd *exec.Cmd) {
	c.t.Helper()
	log, err := os.OpenFile(c.file("log/"+name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	// it is killed at the end
	go func() { _ = cmd.Wait() }()
}

// until waits for something to be true.
func (c *cluster) until(most time.Duration, what string, check func() error) {
	c.t.Helper()
	late := time.After(most)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			c.t.Fatalf("not true after %v: %s: %v", most, what, err)
		}
	}
}

// network makes the hub, to which nodes are connected.
func (c *cluster) network() {
	c.t.Helper()
	c.ip("link set lo up")
	c.ip("link add hub type bridge")
	c.ip("addr add " + hub + "/24 dev hub")
	c.ip("link set hub up")
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// identities makes the certificate of the API server, the key of service accounts, and a token for each client.
func (c *cluster) identities() error {
	err := certify(c.file("apiserver"), hub, "127.0.0.1", "10.96.0.1")
	if err != nil {
		return err
	}
	if err := accountKey(c.file("accounts")); err != nil {
		return err
	}
	users := map[string]string{"admin": `admin,admin,"system:masters"`}
	for _, part := range []string{"kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		users[part] = fmt.Sprintf("system:%s,%s", part, part)
	}
	for _, node := range c.nodes {
		users[node] = fmt.Sprintf(`system:node:%s,%s,"system:nodes"`, node, node)
	}
	var tokens strings.Builder
	for name, user := range users {
		random := make([]byte, 16)
		if _, err := rand.Read(random); err != nil {
			return err
		}
		token := hex.EncodeToString(random)
		fmt.Fprintf(&tokens, "%s,%s\n", token, user)
		conf := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "x",
"clusters": [{"name": "c", "cluster": {"server": "https://%s:6443", "certificate-authority": %q}}],
"users": [{"name": "u", "user": {"token": %q}}],
"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]}`, hub, c.file("apiserver.crt"), token)
		if err := os.WriteFile(c.file(name+".conf"), []byte(conf), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(c.file("tokens.csv"), []byte(tokens.String()), 0o600)
}

// control starts what runs at the hub.
func (c *cluster) control() {
	c.t.Helper()
	part := func(name string, args ...string) {
		c.start(name, exec.Command(program("kube"), append([]string{name}, args...)...))
	}
	part("etcd", "--data-dir="+c.file("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379")
	part("apiserver", "--etcd-servers=http://127.0.0.1:2379", "--advertise-address="+hub, "--secure-port=6443",
		"--tls-cert-file="+c.file("apiserver.crt"), "--tls-private-key-file="+c.file("apiserver.key"),
		"--token-auth-file="+c.file("tokens.csv"), "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction", "--allow-privileged", "--service-cluster-ip-range="+services,
		"--service-account-key-file="+c.file("accounts.pub"),
		"--service-account-signing-key-file="+c.file("accounts.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--kubelet-preferred-address-types=InternalIP")
	c.until(startsMax, "the API server is ready", func() error {
		_, err := output(".", "kubectl", "get", "--raw=/readyz")
		return err
	})
	part("manager", "--kubeconfig="+c.file("kube-controller-manager.conf"), "--leader-elect=false",
		"--service-account-private-key-file="+c.file("accounts.key"), "--root-ca-file="+c.file("apiserver.crt"),
		"--use-service-account-credentials")
	part("scheduler", "--kubeconfig="+c.file("kube-scheduler.conf"), "--leader-elect=false")
	part("dns", "-listen="+hub+":53", "-kubeconfig="+c.file("admin.conf"))
	c.run("kubectl", "create", "clusterrolebinding", "kube-proxy", "--clusterrole=system:node-proxier",
		"--user=system:kube-proxy")
}

// startNode starts node i in namespaces of its own, and connects it to the hub and to the other nodes.
func (c *cluster) startNode(i int) {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=node", nodeVariable+"="+fmt.Sprint(i), clusterVariable+"="+c.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	connected, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.start(c.nodes[i-1], cmd)
	c.ip(fmt.Sprintf("link add n%d type veth peer name eth0 netns %d", i, cmd.Process.Pid))
	c.ip(fmt.Sprintf("link set n%d master hub up", i))
	c.ip("route add " + podNetwork(i) + " via " + address(i))
	if err := connected.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// cut takes a node its network, until heal.
func (c *cluster) cut(i int) { c.t.Helper(); c.ip(fmt.Sprintf("link set n%d down", i)) }

func (c *cluster) heal(i int) { c.t.Helper(); c.ip(fmt.Sprintf("link set n%d up", i)) }

// end kills every process of the PID namespace but this one and the first, and removes what they made.
func (c *cluster) end() {
	if c.t.Failed() {
		c.report()
	}
	// there may be no process
	_ = syscall.Kill(-1, syscall.SIGKILL)
	c.until(endsMax, "all processes of the cluster have ended", func() error {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			return err
		}
		var left []string
		for _, file := range all {
			line, err := os.ReadFile(file)
			if pid := filepath.Base(filepath.Dir(file)); err == nil && pid != "1" && pid != fmt.Sprint(os.Getpid()) {
				left = append(left, pid+": "+string(line))
			}
		}
		if len(left) > 0 {
			err = fmt.Errorf("%q", left)
		}
		return err
	})
	c.until(endsMax, "the control groups are removed", removeGroups)
	if out, err := output(".", "ip", "link", "del", "hub"); err != nil {
		c.t.Error(err, out)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		c.t.Error(err)
	}
}

// report prints what an operator would look at.
func (c *cluster) report() {
	for _, args := range []string{"get pods,pvc,nodes -A -o wide", "get events -A --sort-by=.lastTimestamp",
		"-n holdfast describe pods"} {
		out, err := output(".", "kubectl", strings.Fields(args)...)
		c.t.Logf("kubectl %s: %v\n%s", args, err, tail(out, 12<<10))
	}
	logs, err := filepath.Glob(c.file("log/*"))
	if err != nil {
		c.t.Error(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		c.t.Logf("%s: %v\n%s", filepath.Base(log), err, tail(string(text), 2<<10))
	}
}

func tail(text string, most int) string { return text[max(0, len(text)-most):] }
