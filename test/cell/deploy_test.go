package cell

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	diskBytes = 192 << 20 // of each node's store
	people    = "ann"
)

// deployment is the cell as the manifests start it, each part a process of its own.
type deployment struct {
	t        *testing.T
	net      network
	nodes    [nodesMax]*pod
	disks    [nodesMax]disk
	limited  bool // the disks have a size
	services []*replica
}

// replica is one process of a service.
type replica struct {
	*pod
	readyFile string
}

// deployCell starts everything and returns when all of it is ready.
func deployCell(t *testing.T, change func(conf string) string) *deployment {
	t.Helper()
	d := &deployment{t: t, net: newNetwork(t)}
	printed, err := exec.Command(binary, "permissions", "--harness", attacker, "--harness", victim, "--person", people, "--operator", "root").Output()
	if err != nil {
		t.Fatal(err)
	}
	var passwords []string
	for _, v := range regexp.MustCompile(`\$(HOLDFAST_PASSWORD_\w+)`).FindAllStringSubmatch(string(printed), -1) {
		passwords = append(passwords, v[1]+"="+passwordOfAll)
	}
	conf := change(read(t, "nats/nats.conf"))
	for i := range nodesMax {
		d.node(i, conf, string(printed), passwords)
	}
	for _, n := range d.nodes {
		d.until(n, n.ready)
	}
	for _, s := range services {
		for _, name := range []string{s + "-a", s + "-b"} {
			d.service(s, name)
		}
	}
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}
	return d
}

// until waits for something of a pod.
func (d *deployment) until(p *pod, ok func() bool) {
	d.t.Helper()
	end := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			d.t.Fatalf("%s is not ready:\n%s", p.name, p.tail())
		}
	}
}

// node starts a node of the broker.
func (d *deployment) node(i int, conf, permissions string, passwords []string) {
	d.t.Helper()
	manifest := podOf(d.t, "nats/nats.yaml")
	c, dir, name := manifest.Containers[0], d.t.TempDir(), nodeName(i)
	d.disks[i], d.limited = newDisk(d.t, diskBytes)
	settle := func(s string) string {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "/var/run/nats", dir), "/etc/nats", dir)
		return d.net.local(i, strings.ReplaceAll(s, "store_dir: /data", "store_dir: "+d.disks[i].dir))
	}
	for file, text := range map[string]string{"nats.conf": settle(conf), "permissions.conf": permissions} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	p := &pod{t: d.t, name: name, probes: c, grace: time.Duration(manifest.Grace) * time.Second, settle: settle, args: []string{natsServer}, env: passwords,
		command: func(args ...string) *exec.Cmd { return d.net.within(i, args...) }}
	for _, a := range c.Args {
		p.args = append(p.args, settle(a))
	}
	for _, e := range c.environment(d.t, name) {
		p.env = append(p.env, settle(e))
	}
	d.nodes[i] = p
	p.start()
}

// service starts a process of a service.
func (d *deployment) service(service, name string) {
	d.t.Helper()
	manifest := podOf(d.t, "base/"+service+".yaml")
	c, r := manifest.Containers[0], &replica{readyFile: filepath.Join(d.t.TempDir(), "ready")}
	r.pod = &pod{t: d.t, name: name, grace: time.Duration(manifest.Grace) * time.Second, settle: func(s string) string { return s },
		command: func(args ...string) *exec.Cmd { return exec.Command(args[0], args[1:]...) }}
	r.args = append(append([]string{binary}, c.Args...), "--http", "127.0.0.1:0", "--ready-file", r.readyFile)
	for _, e := range c.environment(d.t, name) {
		r.env = append(r.env, strings.ReplaceAll(e, "nats:"+clientPort, d.net.clients()))
	}
	d.services = append(d.services, r)
	r.start()
}

// fit is whether the process says on /readyz that it is.
func (r *replica) fit() bool {
	var said struct {
		HTTP string
		PID  int
	}
	body, err := os.ReadFile(r.readyFile)
	if err != nil || json.Unmarshal(body, &said) != nil {
		return false
	}
	r.mu.Lock()
	mine := r.cmd != nil && r.cmd.Process.Pid == said.PID
	r.mu.Unlock()
	if !mine {
		return false
	}
	resp, err := http.Get(said.HTTP + "/readyz")
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// url is where a user reaches any node.
func (d *deployment) url(user string) string {
	return "nats://" + url.UserPassword(user, passwordOfAll).String() + "@" + d.net.clients()
}

// as is a connection of a user.
func (d *deployment) as(user, class, id string) *bus.Bus {
	d.t.Helper()
	b, err := bus.Open(d.t.Context(), bus.Config{URL: d.url(user), Inbox: events.Inbox("hf", class, id), Asker: events.Asker{Class: class, ID: id}})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(b.Close)
	return b
}

// leader waits until a stream has a leader, and returns the node.
func (d *deployment) leader(stream string) (leader int) {
	d.t.Helper()
	nc, err := nats.Connect(d.url("holdfast-ledger"), nats.CustomInboxPrefix(events.Inbox("hf", events.ClassService, "ledger")))
	if err != nil {
		d.t.Fatal(err)
	}
	defer nc.Close()
	natstest.Until(d.t, stream+" to have a leader", func() bool {
		var info struct{ Cluster struct{ Leader string } }
		m, err := nc.Request("$JS.API.STREAM.INFO."+stream, nil, probeTimeout)
		if err != nil || json.Unmarshal(m.Data, &info) != nil {
			return false
		}
		leader = slices.IndexFunc(d.nodes[:], func(p *pod) bool { return p.name == info.Cluster.Leader })
		return leader >= 0
	})
	return leader
}
