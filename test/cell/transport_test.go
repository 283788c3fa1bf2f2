package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// notes is a log that can be read while it is written.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// A node joins only with a certificate of the routes' authority and the routes' password. A refused node receives
// nothing.
func TestForeignNodes(t *testing.T) {
	w, cell := &world{t: t, dir: t.TempDir()}, new(notes)
	w.secrets()
	w.nodes = natstest.Cluster(t, w.node(t.TempDir()), func(c *embed.Config) { c.Log = zerolog.New(cell) })
	foreign, own, client := natstest.Certificates(t), w.dir+"/nats-routes-tls", w.folder("holdfast-ledger")
	with := func(folder string) string {
		return fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q }", folder+"/tls.crt", folder+"/tls.key",
			own+"/ca.crt")
	}
	right := "node:" + w.password("routes") + "@"
	// a node shows no certificate of an authority that was not asked for; neighbours in the list have different
	// errors: one that is logged late is not taken for the next one's
	const noCertificate = "client didn't provide a certificate"
	for _, c := range []struct{ name, login, tls, want string }{
		{"no certificate", right, fmt.Sprintf("tls { ca_file: %q }", own+"/ca.crt"), noCertificate},
		{"another authority's certificate", right, with(foreign), noCertificate},
		{"no TLS", right, "", "first record does not look like a TLS handshake"},
		{"a client's certificate", right, with(client), noCertificate},
		{"no password", "", with(own), "authentication error"},
		{"a wrong password", "node:wrong@", with(own), "authentication error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if joined, output := w.joins(t, cell, c.login, c.tls, c.want); joined {
				t.Errorf("the node joined: it heard what the cell says\n%s", output)
			}
		})
	}
	if joined, output := w.joins(t, cell, right, with(own), "no such word"); !joined {
		t.Errorf("a node of the cell does not join: this test sees nothing\n%s", output)
	}
}

// joins starts a node that wants to join the cell, and subscribes there until it receives a message of the ledger, or
// until the cell's log has the reason of the refusal.
func (w *world) joins(t *testing.T, cell *notes, login, transport, refused string) (joined bool, output string) {
	t.Helper()
	before := len(cell.String())
	settings := natstest.Settings(t,
		"accounts { HOLDFAST { jetstream: enabled, users: [ { user: spy, password: spy } ] } }\ncluster { "+transport+
			" }")
	spy := natstest.Start(t, settings, func(c *embed.Config) {
		c.Name = "spy"
		c.Cluster = &embed.Cluster{Name: "holdfast", Listen: "127.0.0.1:0"}
		for _, n := range w.nodes {
			c.Cluster.Routes = append(c.Cluster.Routes, "nats://"+login+n.Config().Cluster.Listen)
		}
	})
	defer spy.Shutdown()
	nc, err := nats.Connect(spy.URL(), nats.UserInfo("spy", "spy"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ear, err := nc.SubscribeSync("hf.>")
	if err != nil {
		t.Fatal(err)
	}
	ledger := w.login("holdfast-ledger", events.ClassService, "ledger")
	defer ledger.Close()
	natstest.Until(t, "the node to join or to be refused", func() bool {
		output = cell.String()[before:]
		ledger.send(t, "hf.nudge.other", "", "{}")
		ledger.done(t)
		if err := nc.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		n, _, err := ear.Pending()
		joined = n > 0
		return err != nil || joined || strings.Contains(output, refused)
	})
	return joined, output
}

// The broker's certificate, a user's password and users' nkeys are replaced while everything runs: the broker reads its
// files at a signal, clients read theirs at each connection. The broker is nats-server itself, as in the manifests.
func TestReload(t *testing.T) {
	w := &world{t: t, dir: t.TempDir(), nkeys: []string{"holdfast-retry", "harness-" + attacker}}
	w.secrets()
	run := t.TempDir()
	address := w.server(run)
	clients := w.loginsAt(address)
	old, serial := w.kept("holdfast-ledger", "password"), w.serial(t, address)
	oldKey := w.kept("holdfast-retry", "nkey")
	for _, file := range []string{"holdfast-ledger/password", "holdfast-retry/nkey", "holdfast-harness-my-agent/nkey",
		"nats-tls/tls.crt"} {
		if err := os.Remove(filepath.Join(w.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	w.secrets()
	if again := w.serial(t, address); again != serial {
		t.Errorf("the broker has its new certificate before it is asked to read it: %s, %s", serial, again)
	}
	w.reload(run)
	natstest.Until(t, "the broker to show its new certificate", func() bool {
		now, err := w.shown(address)
		return err == nil && now != serial
	})
	for name, b := range clients.buses {
		natstest.Until(t, name+" to be back with its new secret", func() bool {
			return b.Reconnects() > 0 && b.Connected()
		})
		if err := b.Layout.Ensure(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := clients.harness.Open(t.Context(), "after", harness.OpenOptions{}); err != nil {
		t.Errorf("a harness after its nkey was replaced: %v", err)
	}
	for name, cfg := range map[string]bus.Config{
		"the old password": {URL: "tls://holdfast-ledger@" + address, PasswordFile: old},
		"the old nkey":     {URL: "tls://" + address, NKey: oldKey},
	} {
		f := w.folder("holdfast-ledger")
		cfg.TLSCA, cfg.TLSCert, cfg.TLSKey = f+"/ca.crt", f+"/tls.crt", f+"/tls.key"
		b, err := bus.Open(t.Context(), cfg)
		if !errors.Is(err, bus.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			b.Close()
		}
	}
}

// clients are connections of users: services with a password and with an nkey, and a harness with an nkey.
type clients struct {
	buses   map[string]*bus.Bus
	harness *harness.Harness
}

// loginsAt connects users to the broker, until the test ends.
func (w *world) loginsAt(address string) clients {
	w.t.Helper()
	all := clients{buses: map[string]*bus.Bus{}}
	for _, service := range []string{"ledger", "retry"} {
		name := "holdfast-" + service
		cfg := w.config(name, events.ClassService, service)
		cfg.URL = "tls://" + name + "@" + address
		if service == "retry" {
			cfg.PasswordFile, cfg.NKey = "", w.folder(name)+"/nkey"
		}
		b, err := bus.Open(w.t.Context(), cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(b.Close)
		if err := b.Layout.Ensure(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		all.buses[name] = b
	}
	f := w.folder("harness-" + attacker)
	h, err := harness.Connect(w.t.Context(), harness.Config{ID: attacker,
		URL: "tls://harness-" + attacker + "@" + address, NKey: f + "/nkey",
		TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key"})
	if err == nil {
		_, err = h.Open(w.t.Context(), "before", harness.OpenOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), probeTimeout)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
	all.harness = h
	return all
}

// kept copies a user's secret, and returns the path of the copy.
func (w *world) kept(user, file string) string {
	w.t.Helper()
	body, err := os.ReadFile(filepath.Join(w.folder(user), file))
	path := filepath.Join(w.t.TempDir(), file)
	if err = errors.Join(err, os.WriteFile(path, body, 0o600)); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// server runs nats-server with the configuration for one node, on a port of the system's choice, until the test ends.
func (w *world) server(run string) (address string) {
	w.t.Helper()
	conf := strings.NewReplacer("/etc/", w.dir+"/", "/var/run/nats/", run+"/", "/data", w.t.TempDir(), "127.0.0.1:8222",
		"127.0.0.1:-1").
		Replace(read(w.t, "overlays/small/nats.conf"))
	w.write("nats/nats.conf", conf)
	return runServer(w.t, filepath.Join(w.dir, "nats/nats.conf"), run)
}

// runServer runs nats-server with a configuration file, on a port of the system's choice, until the test ends. The
// directory run gets the file with its port.
func runServer(t *testing.T, conf, run string, args ...string) (address string) {
	t.Helper()
	cmd := exec.Command(natsServer, append([]string{"--config", conf, "--addr", "127.0.0.1", "--port", "-1",
		"--ports_file_dir", run}, args...)...)
	cmd.Env = append(os.Environ(), "SERVER_NAME=node")
	log := new(notes)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil && t.Failed() {
			t.Logf("nats-server: %v\n%s", err, log)
		}
	})
	ports := filepath.Join(run, filepath.Base(natsServer)+"_"+strconv.Itoa(cmd.Process.Pid)+".ports")
	client := regexp.MustCompile(`"nats": *\[\s*"(?:nats|tls)://([^"]+)"`)
	natstest.Until(t, "nats-server to listen", func() bool {
		body, err := os.ReadFile(ports)
		if m := client.FindSubmatch(body); err == nil && m != nil {
			address = string(m[1])
		}
		return address != ""
	})
	return address
}

// serial returns the serial number of the certificate that a broker shows.
func (w *world) serial(t *testing.T, address string) string {
	t.Helper()
	serial, err := w.shown(address)
	if err != nil {
		t.Fatal(err)
	}
	return serial
}

// shown is serial with the error of the connection: a broker that reloads its files may end connections.
func (w *world) shown(address string) (string, error) {
	nc, err := nats.Connect("tls://"+address, append(w.files("ann"), nats.UserInfo("ann", w.password("ann")))...)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	state, err := nc.TLSConnectionState()
	if err != nil {
		return "", err
	}
	return state.PeerCertificates[0].SerialNumber.String(), nil
}
