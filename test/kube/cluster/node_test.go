package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Variables of a process that is a node.
const (
	nodeVariable    = "HOLDFAST_KUBE_NODE"    // its number
	clusterVariable = "HOLDFAST_KUBE_CLUSTER" // the folder of its cluster
	plugins         = "/usr/lib/cni"          // Debian's folder
)

// node is a machine of the cluster: namespaces with containerd, a kubelet and a kube-proxy.
type node struct {
	number  int
	name    string
	cluster string // folder
	dir     string
}

// runNode runs a node until it is killed. It begins when its parent has connected it.
func runNode() error {
	i, err := strconv.Atoi(os.Getenv(nodeVariable))
	if err != nil {
		return err
	}
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	n := &node{number: i, name: fmt.Sprintf("node-%d", i), cluster: os.Getenv(clusterVariable)}
	n.dir = filepath.Join(n.cluster, n.name)
	for _, step := range []func() error{n.mounts, n.network, n.configure} {
		if err := step(); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	if err := makeGroups(n.name); err != nil {
		return err
	}
	return n.run()
}

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

// mounts gives the node its own folders where its programs write to.
func (n *node) mounts() error {
	errs := []error{syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")}
	for _, path := range []string{"/run", "/var/lib"} {
		errs = append(errs, syscall.Mount("tmpfs", path, "tmpfs", 0, "mode=755"))
	}
	for path, name := range map[string]string{"/var/lib/kubelet": "kubelet", "/var/lib/cni": "cni", "/var/log": "log"} {
		errs = append(errs, os.MkdirAll(path, 0o755), os.MkdirAll(n.file(name), 0o755),
			syscall.Mount(n.file(name), path, "", syscall.MS_BIND, ""))
	}
	// A kubelet wants mounts that its containers see.
	return errors.Join(append(errs, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""))...)
}

func (n *node) network() error {
	commands := []string{"link set lo up", "addr add " + address(n.number) + "/24 dev eth0", "link set eth0 up",
		"route add default via " + hub}
	for j := range nodesMax {
		if j+1 != n.number {
			commands = append(commands, "route add "+podNetwork(j+1)+" via "+address(j+1))
		}
	}
	for _, args := range commands {
		if _, err := output(".", "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// nodesMax is how many nodes a cluster has at most.
const nodesMax = 3

func (n *node) configure() error {
	for name, text := range map[string]string{
		"cni/10-pods.conflist": `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "mtu": 1500,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + podNetwork(n.number) + `"}]],
    "routes": [{"dst": "0.0.0.0/0"}]}}]}`,
		// Without CAP_SYS_RESOURCE, as on a machine that is a container, no process may lower its OOM score.
		"containerd.toml": fmt.Sprintf(`version = 2
root = %q
state = %q
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
`, n.file("containerd"), n.file("state"), n.socket(), pauseImage, plugins, n.file("conf/cni")),
		"kubelet.yaml": fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: %s
clusterDNS: [%q]
clusterDomain: cluster.local
resolvConf: %s
containerRuntimeEndpoint: unix://%s
failSwapOn: false
imageGCHighThresholdPercent: 100
syncFrequency: 5s
evictionHard: {memory.available: 100Mi}
`, groupOf(n.name), hub, n.file("conf/resolv.conf"), n.socket()),
		"resolv.conf": "nameserver " + hub + "\n",
		"proxy.yaml": fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %s/kube-proxy.conf}
clusterCIDR: 10.244.0.0/16
mode: iptables
conntrack: {maxPerCore: 0, min: 0}
hostnameOverride: %s
`, n.cluster, n.name),
	} {
		file := n.file("conf/" + name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) socket() string { return n.file("containerd.sock") }

// run starts the programs of the node, and ends if one of them ends.
func (n *node) run() error {
	ended := make(chan error)
	start := func(name string, args ...string) error {
		cmd := exec.Command(name, args...)
		part := strings.TrimLeft(filepath.Base(name)+"-"+args[0], "-")
		log, err := os.Create(filepath.Join(n.cluster, "log", n.name+"-"+part))
		if err != nil {
			return err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() { ended <- fmt.Errorf("%s has ended: %w", cmd, cmd.Wait()) }()
		return nil
	}
	if err := start("containerd", "--config", n.file("conf/containerd.toml")); err != nil {
		return err
	}
	if err := n.load(); err != nil {
		return err
	}
	err := errors.Join(
		start(program("kube"), "proxy", "--config", n.file("conf/proxy.yaml")),
		start(program("kube"), "policies", "-kubeconfig", filepath.Join(n.cluster, "admin.conf"), "-node", n.name),
		start(program("kube"), "kubelet", "--config", n.file("conf/kubelet.yaml"), "--hostname-override", n.name,
			"--kubeconfig", filepath.Join(n.cluster, n.name+".conf"), "--node-ip", address(n.number)))
	if err != nil {
		return err
	}
	return <-ended
}

// load waits for containerd, and gives it the images.
func (n *node) load() error {
	ctr := func(args ...string) error {
		_, err := output(".", "ctr", append([]string{"-a", n.socket(), "-n", "k8s.io"}, args...)...)
		return err
	}
	late := time.After(startsMax)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for ctr("version") != nil {
		select {
		case <-tick.C:
		case <-late:
			return errors.New("containerd does not answer")
		}
	}
	all, err := filepath.Glob(image("*"))
	if err != nil {
		return err
	}
	for _, archive := range all {
		if err := ctr("images", "import", archive); err != nil {
			return err
		}
	}
	return nil
}
