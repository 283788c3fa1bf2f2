package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	diskBytes    = 192 << 20 // of each node's store
	reserveBytes = 32 << 20  // in place of what node.sh wants to be free
	reserveInKiB = "reserve_kib=1048576"
	people       = "ann"
	routesFile   = "nats-users/routes.conf"
)

// deployment is the cell as the manifests start it; each part is a process.
type deployment struct {
	t        *testing.T
	secrets  *world // for its secrets
	net      network
	pod      *spec                        // of a node; nil: that of the manifests
	beside   map[string]string            // further files of a node's configuration
	from     string                       // what the disk of a node has when it starts; "": nothing
	store    string                       // of the only node
	change   func(variable string) string // of services: NAME=value; nil: none
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

// programs puts what the manifests call by name in front of PATH: nats-server, and wget, which is this binary.
func programs(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wget := "#!/bin/sh\nfor url; do :; done\n" + probeVariable + `="$url" exec ` + self + "\n"
	err = os.WriteFile(filepath.Join(dir, "wget"), []byte(wget), 0o700)
	if err = errors.Join(err, os.Symlink(natsServer, filepath.Join(dir, "nats-server"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// deployCell starts all parts and returns when they are ready.
func deployCell(t *testing.T, change func(conf string) string) *deployment {
	t.Helper()
	d := deployNodes(t, change)
	for _, s := range services {
		d.scaleUp(s)
	}
	for _, s := range d.services {
		d.until(s.pod, s.fit)
	}
	return d
}

// deployNodes makes the secrets, starts the nodes and returns when they are ready.
func deployNodes(t *testing.T, change func(conf string) string) *deployment {
	t.Helper()
	programs(t)
	d := &deployment{t: t, net: newNetwork(t), secrets: &world{t: t, dir: t.TempDir()}}
	d.secrets.secrets(d.net.routes()...)
	conf := change(read(t, "nats/nats.conf"))
	for i := range nodesMax {
		d.node(i, conf)
	}
	for _, n := range d.nodes {
		d.until(n, n.ready)
	}
	return d
}

// scaleUp starts two processes of a service.
func (d *deployment) scaleUp(service string) {
	for _, name := range []string{service + "-a", service + "-b"} {
		d.service(service, name)
	}
}

// scaleDown ends all processes of a service and returns when they have ended.
func (d *deployment) scaleDown(service string) {
	var left []*replica
	var ending sync.WaitGroup
	for _, s := range d.services {
		if strings.HasPrefix(s.name, service+"-") {
			ending.Go(func() { s.halt(syscall.SIGTERM) })
		} else {
			left = append(left, s)
		}
	}
	ending.Wait()
	d.services = left
}

// until waits for a condition of a pod.
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

// node starts a node of the broker, with files of its own in place of /etc, /var/run and /data.
func (d *deployment) node(i int, conf string) {
	d.t.Helper()
	manifest := podOf(d.t, "nats/nats.yaml")
	if d.pod != nil {
		manifest = *d.pod
	}
	c, dir, name := manifest.Containers[0], d.t.TempDir(), nodeName(i)
	d.disks[i], d.limited = newDisk(d.t, diskBytes)
	if d.from != "" {
		if err := os.CopyFS(d.disks[i].dir, os.DirFS(d.from)); err != nil {
			d.t.Fatal(err)
		}
	}
	settle := func(s string) string {
		paths := strings.NewReplacer("/var/run/nats", dir, "/etc/", dir+"/", "/data", d.disks[i].dir,
			reserveInKiB, fmt.Sprint("reserve_kib=", reserveBytes>>10))
		return d.net.local(i, paths.Replace(s))
	}
	if err := os.CopyFS(dir, os.DirFS(d.secrets.dir)); err != nil {
		d.t.Fatal(err)
	}
	routes, err := os.ReadFile(filepath.Join(dir, routesFile))
	if err != nil {
		d.t.Fatal(err)
	}
	script := read(d.t, "nats/node.sh")
	if !strings.Contains(script, reserveInKiB) {
		d.t.Fatalf("node.sh has no %s", reserveInKiB)
	}
	files := map[string]string{"nats/nats.conf": conf, "nats/node.sh": script, routesFile: string(routes)}
	maps.Copy(files, d.beside)
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(settle(text)), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	p := &pod{t: d.t, name: name, probes: c, grace: time.Duration(manifest.Grace) * time.Second, settle: settle,
		command: func(args ...string) *exec.Cmd { return d.net.within(i, args...) }}
	p.args = p.here(c.Command)
	p.env = p.here(c.environment(d.t, name))
	d.nodes[i] = p
	p.start()
}

// service starts a process of a service.
func (d *deployment) service(service, name string) {
	d.t.Helper()
	manifest := podOf(d.t, "base/"+service+".yaml")
	c, r := manifest.Containers[0], &replica{readyFile: filepath.Join(d.t.TempDir(), "ready")}
	r.pod = &pod{t: d.t, name: name, grace: time.Duration(manifest.Grace) * time.Second,
		settle:  func(s string) string { return s },
		command: func(args ...string) *exec.Cmd { return exec.Command(args[0], args[1:]...) }}
	r.args = append(append([]string{binary}, c.Args...), "--http", "127.0.0.1:0", "--ready-file", r.readyFile)
	here := strings.NewReplacer("nats:"+clientPort, d.net.clients(), "/etc/holdfast", d.secrets.folder(service))
	for _, e := range c.environment(d.t, name) {
		r.env = append(r.env, here.Replace(e))
	}
	for i := range r.env {
		if d.change != nil {
			r.env[i] = d.change(r.env[i])
		}
	}
	// of the overlay with one node
	if d.nodes[1] == nil {
		r.env = append(r.env, "HOLDFAST_REPLICAS=1")
	}
	d.services = append(d.services, r)
	r.start()
}

// fit reports whether /readyz of the process answers with success.
func (r *replica) fit() bool {
	var reply struct {
		HTTP string
		PID  int
	}
	body, err := os.ReadFile(r.readyFile)
	if err != nil || json.Unmarshal(body, &reply) != nil {
		return false
	}
	r.mu.Lock()
	mine := r.cmd != nil && r.cmd.Process.Pid == reply.PID
	r.mu.Unlock()
	if !mine {
		return false
	}
	resp, err := http.Get(reply.HTTP + "/readyz")
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// config returns the configuration with which a user reaches any node.
func (d *deployment) config(user, class, id string) bus.Config {
	f := d.secrets.folder(user)
	return bus.Config{URL: "tls://" + url.User(user).String() + "@" + d.net.clients(), PasswordFile: f + "/password",
		TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key",
		Inbox: events.Inbox("hf", class, id), Asker: events.Asker{Class: class, ID: id}}
}

// as returns a connection of a user.
func (d *deployment) as(user, class, id string) *bus.Bus {
	d.t.Helper()
	b, err := bus.Open(d.t.Context(), d.config(user, class, id))
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(b.Close)
	return b
}

// login connects as a user with a plain client.
func (d *deployment) login(user, class, id string) *account {
	d.t.Helper()
	login := nats.UserInfo(user, d.secrets.password(user))
	nc, err := nats.Connect("tls://"+d.net.clients(), append(d.secrets.files(user), login,
		nats.CustomInboxPrefix(events.Inbox("hf", class, id)))...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(nc.Close)
	return &account{Conn: nc, name: user}
}

// leader waits until a stream has a leader, and returns the node.
func (d *deployment) leader(stream string) (leader int) {
	d.t.Helper()
	nc := d.login("holdfast-ledger", events.ClassService, "ledger")
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
