package cell

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	nodesMax   = 3
	clientPort = "4222" // of the manifests
	routePort  = "6222"
	watchPort  = "8222" // for probes, within the pod
	socketPort = "8443" // for websockets of the board
)

// network connects the nodes with each other and with clients. It can cut a node off: its packets are dropped, and its
// connections stay open.
type network interface {
	// clients returns host:port at which a client reaches any node.
	clients() string
	// sockets returns host:port at which the board reaches the websockets of a node.
	sockets() string
	// routes returns host:port at which the nodes reach each other.
	routes() []string
	// local replaces addresses of the manifests in a text for node i if this network has others.
	local(i int, text string) string
	// within returns a command that runs where node i runs.
	within(i int, args ...string) *exec.Cmd
	// cut separates node i from the other nodes, and with all from clients too.
	cut(i int, all bool)
	// heal connects node i again.
	heal(i int)
}

func newNetwork(t *testing.T) network {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return newWires(t)
	}
	return newRelays(t)
}

// wires is a network of namespaces: each node has one, with a device for clients and a device for routes, and the names
// of the manifests in /etc/hosts.
type wires struct {
	t *testing.T
}

const (
	clientNet = "10.99.1."
	routeNet  = "10.99.2."
	hub       = "254" // of the clients
)

func newWires(t *testing.T) *wires {
	t.Helper()
	w := &wires{t}
	w.ip("link add clients type bridge")
	w.ip("link add routes type bridge")
	w.ip("addr add " + clientNet + hub + "/24 dev clients")
	w.ip("link set clients up")
	w.ip("link set routes up")
	hosts := "127.0.0.1 localhost\n"
	for i := range nodesMax {
		name := nodeName(i)
		w.ip("netns add " + name)
		for device, net := range map[string]string{"clients": clientNet, "routes": routeNet} {
			outer := fmt.Sprintf("%s-%d", device, i)
			w.ip("link add " + outer + " type veth peer name " + device + " netns " + name)
			w.ip("link set " + outer + " master " + device + " up")
			w.ip(fmt.Sprintf("-n %s addr add %s%d/24 dev %s", name, net, i+1, device))
			w.ip("-n " + name + " link set " + device + " up")
		}
		w.ip("-n " + name + " link set lo up")
		hosts += fmt.Sprintf("%s%d nats\n%s%d %s.nats-nodes\n", clientNet, i+1, routeNet, i+1, name)
	}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(hosts), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(file, "/etc/hosts", "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.remove)
	w.known()
	return w
}

// known returns when this process resolves the names of the manifests. Package net reads /etc/hosts again only when its
// copy is five seconds old, and an earlier test may have let it read the file without these names.
func (w *wires) known() {
	w.t.Helper()
	end := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := net.DefaultResolver.LookupHost(w.t.Context(), "nats")
		if err == nil && len(all) == nodesMax {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			w.t.Fatalf("nats: %v, %v", all, err)
		}
	}
}

func (w *wires) ip(args string) {
	w.t.Helper()
	if _, err := run(append([]string{"ip"}, strings.Fields(args)...)...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wires) remove() {
	if err := syscall.Unmount("/etc/hosts", syscall.MNT_DETACH); err != nil {
		w.t.Error(err)
	}
	for i := range nodesMax {
		// The kernel removes the devices of a namespace later than the namespace, and the next network has their names.
		w.ip(fmt.Sprintf("link del clients-%d", i))
		w.ip(fmt.Sprintf("link del routes-%d", i))
		w.ip("netns del " + nodeName(i))
	}
	w.ip("link del clients")
	w.ip("link del routes")
}

func (*wires) routes() (all []string) {
	for i := range nodesMax {
		all = append(all, nodeName(i)+".nats-nodes:"+routePort)
	}
	return all
}

func (*wires) clients() string              { return "nats:" + clientPort }
func (*wires) sockets() string              { return "nats:" + socketPort }
func (*wires) local(_ int, s string) string { return s }

func (*wires) within(i int, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=/run/netns/" + nodeName(i), "--"}, args...)...)
}

func (w *wires) cut(i int, all bool) {
	w.t.Helper()
	w.ip(fmt.Sprintf("link set routes-%d down", i))
	if all {
		w.ip(fmt.Sprintf("link set clients-%d down", i))
	}
}

func (w *wires) heal(i int) {
	w.t.Helper()
	w.ip(fmt.Sprintf("link set routes-%d up", i))
	w.ip(fmt.Sprintf("link set clients-%d up", i))
}

// relays is a network on loopback: each node has ports of its own, and every connection to it passes a relay that can
// stop.
type relays struct {
	t     *testing.T
	ports [nodesMax]struct{ client, route, watch, socket string }
	entry string                     // of the clients, at the nodes in turn
	route [nodesMax][nodesMax]string // from one node to another
	mu    sync.Mutex
	apart [nodesMax]struct{ routes, clients chan struct{} } // if not nil: packets wait until it is closed
	next  int
}

func newRelays(t *testing.T) *relays {
	t.Helper()
	r := &relays{t: t}
	// all at once, so that they differ
	var held []net.Listener
	port := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		_, p, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range nodesMax {
		r.ports[i].client, r.ports[i].route, r.ports[i].watch, r.ports[i].socket = port(), port(), port(), port()
	}
	for _, l := range held {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.entry = r.listen(func() (string, func() []chan struct{}) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.next = (r.next + 1) % nodesMax
		i := r.next
		return r.ports[i].client, func() []chan struct{} { return []chan struct{}{r.apart[i].clients} }
	})
	for i := range nodesMax {
		for j := range nodesMax {
			r.route[i][j] = r.listen(func() (string, func() []chan struct{}) {
				return r.ports[j].route, func() []chan struct{} {
					return []chan struct{}{r.apart[i].routes, r.apart[j].routes}
				}
			})
		}
	}
	return r
}

// listen relays connections to the port that to returns. The second result of to is what the bytes wait for.
func (r *relays) listen(to func() (port string, gates func() []chan struct{})) string {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			r.t.Error(err)
		}
	})
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			port, gates := to()
			go r.relay(from, port, gates)
		}
	}()
	return l.Addr().String()
}

// relay copies both ways until one side ends.
func (r *relays) relay(from net.Conn, port string, gates func() []chan struct{}) {
	to, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		_ = from.Close()
		return
	}
	both := func(a io.Writer, b io.Reader) {
		// either may have ended it
		defer func() { _ = errors.Join(from.Close(), to.Close()) }()
		buf := make([]byte, 32<<10)
		for {
			n, err := b.Read(buf)
			r.mu.Lock()
			closed := gates()
			r.mu.Unlock()
			for _, g := range closed {
				if g != nil {
					<-g
				}
			}
			if _, werr := a.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}
	go both(to, from)
	both(from, to)
}

func (r *relays) clients() string { return r.entry }
func (r *relays) sockets() string { return "127.0.0.1:" + r.ports[0].socket }

func (r *relays) routes() (all []string) {
	for i := range nodesMax {
		all = append(all, "127.0.0.1:"+r.ports[i].route)
	}
	return all
}

func (r *relays) local(i int, s string) string {
	p := r.ports[i]
	for j := range nodesMax {
		s = strings.ReplaceAll(s, "127.0.0.1:"+r.ports[j].route, r.route[i][j])
	}
	for from, to := range map[string]string{
		"\nport: " + clientPort:  "\nlisten: \"127.0.0.1:" + p.client + `"`,
		"  port: " + routePort:   "  listen: \"127.0.0.1:" + p.route + "\"\n  advertise: \"127.0.0.1:1\"",
		"  port: " + socketPort:  "  listen: \"127.0.0.1:" + p.socket + `"`,
		"--http=:8480":           "--http=127.0.0.1:0",
		"127.0.0.1:" + watchPort: "127.0.0.1:" + p.watch} {
		s = strings.ReplaceAll(s, from, to)
	}
	return s
}

func (*relays) within(_ int, args ...string) *exec.Cmd { return exec.Command(args[0], args[1:]...) }

func (r *relays) cut(i int, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apart[i].routes = make(chan struct{})
	if all {
		r.apart[i].clients = make(chan struct{})
	}
}

func (r *relays) heal(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range []chan struct{}{r.apart[i].routes, r.apart[i].clients} {
		if g != nil {
			close(g)
		}
	}
	r.apart[i].routes, r.apart[i].clients = nil, nil
}

func nodeName(i int) string { return fmt.Sprint("nats-", i) }
