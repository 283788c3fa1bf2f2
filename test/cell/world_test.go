// Package cell attacks a cell as the manifests start it: three nodes with the printed permissions, two processes of
// each service with the manifests' arguments and variables. A permitted user could try each attack. After each attack
// the test compares what others have with the state before.
package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/test/program"
)

const (
	deploy   = "../../deploy/k8s"
	attacker = "my-agent" // the harness that the manifests name
	victim   = "other"
	patience = 90 * time.Second
)

var (
	services = []string{"ledger", "retry", "compaction", "reconciler"}
	mine     = events.Ref{Harness: attacker, Session: "s"}
	theirs   = events.Ref{Harness: victim, Session: "s"}
)

// world is a running cell.
type world struct {
	t       *testing.T
	nodes   []*embed.Server
	env     []string // for services, in addition to those of the manifests
	dir     string   // configuration and secrets, in folders as in the pods
	victim  *bus.Bus
	object  string   // of the victim
	service *account // the ledger's user: it may read every stream
	nkeys   []string // users that log in with nkeys
}

func read(t *testing.T, file string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(deploy, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// start runs the cell, with additional variables for its services, and a victim's harness.
func start(t *testing.T, env ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), env: env}
	w.secrets()
	w.nodes = natstest.Cluster(t, w.node(t.TempDir()))
	for _, s := range services {
		w.run(s)
		w.run(s)
	}
	w.service = w.login("holdfast-ledger", events.ClassService, "ledger")
	w.settle()
	return w
}

// secrets makes passwords, certificates and permissions as the guide describes. nodes are the addresses of routes; by
// default the nodes are on this machine and know their routes already.
func (w *world) secrets(nodes ...string) {
	w.t.Helper()
	if len(nodes) == 0 {
		nodes = []string{"127.0.0.1:1"}
	}
	users := []string{"--harness", attacker, "--harness", victim, "--person", "ann", "--person", "bob", "--operator",
		"root", "--backup", "keeper", "--restore", "restorer"}
	for _, name := range w.nkeys {
		users = append(users, "--nkey-user", name)
	}
	args := append([]string{"secrets", w.dir}, users...)
	for _, n := range nodes {
		args = append(args, "--node", n)
	}
	if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	printed, err := exec.Command(binary,
		append([]string{"permissions", "--passwords", "../nats-users/users.conf"}, users...)...).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("nats/permissions.conf", string(printed))
}

// write stores a file of the configuration.
func (w *world) write(file, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// node returns the manifests' configuration of a node with the paths of this machine. All nodes would share the port
// for probes, so that is replaced too. Ports and routes are given to each node, with the routes' password.
func (w *world) node(run string) natstest.Option {
	w.t.Helper()
	conf := strings.NewReplacer("/etc/", w.dir+"/", "/var/run/nats/", run+"/").Replace(read(w.t, "nats/nats.conf"))
	w.write("nats/nats.conf", regexp.MustCompile(`(?m)^http:.*$`).ReplaceAllString(conf, ""))
	w.t.Setenv("SERVER_NAME", "node")
	return func(c *embed.Config) {
		c.File = filepath.Join(w.dir, "nats/nats.conf")
		routes := make([]string, len(c.Cluster.Routes))
		for i, r := range c.Cluster.Routes {
			routes[i] = strings.Replace(r, "//", "//node:"+w.password("routes")+"@", 1)
		}
		c.Cluster.Name, c.Cluster.Routes = "holdfast", routes
	}
}

// folder returns the folder with the files with which a user logs in.
func (w *world) folder(user string) string {
	switch user {
	case "ann", "bob", "root", "keeper", "restorer":
		user = "person-" + user
	}
	return filepath.Join(w.dir, "holdfast-"+strings.TrimPrefix(user, "holdfast-"))
}

// password returns the password of a user, or of the routes.
func (w *world) password(user string) string {
	w.t.Helper()
	file := filepath.Join(w.folder(user), "password")
	if user == "routes" {
		file = filepath.Join(w.dir, "routes.password")
	}
	body, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

// config returns how a user of the cell connects: with files, as in a pod.
func (w *world) config(user, class, id string) bus.Config {
	f := w.folder(user)
	return bus.Config{URL: w.urlOf(user), PasswordFile: f + "/password", TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt",
		TLSKey: f + "/tls.key",
		Inbox:  events.Inbox("hf", class, id)}
}

// run starts a process of a service as its manifest does, and returns when it is ready.
func (w *world) run(service string) {
	w.t.Helper()
	manifest := read(w.t, "base/"+service+".yaml")
	var args []string
	if err := json.Unmarshal([]byte(regexp.MustCompile(`args: (\[.*\])`).FindStringSubmatch(manifest)[1]),
		&args); err != nil {
		w.t.Fatal(err)
	}
	env := []string{"HOLDFAST_NATS=" + w.urlOf(events.ServiceName(service))}
	for _, v := range regexp.MustCompile(`(?m)^  (HOLDFAST_\w+): "?([^"\n]*)"?$`).FindAllStringSubmatch(read(w.t,
		"base/config.yaml"), -1) {
		env = append(env, v[1]+"="+strings.Replace(v[2], "/etc/holdfast", w.folder(service), 1))
	}
	args = append(args, "--http", "127.0.0.1:0", "--log-level", "error")
	p := program.Run(w.t, binary, append(env, w.env...), args...)
	w.t.Cleanup(func() {
		if err := p.Terminate(context.Background()); err != nil {
			w.t.Errorf("%s: %v", service, err)
		}
	})
}

// urlOf returns the URL at which a user reaches all nodes, without a password.
func (w *world) urlOf(user string) string {
	var all []string
	for _, n := range w.nodes {
		all = append(all, strings.Replace(n.URL(), "nats://", "tls://"+url.User(user).String()+"@", 1))
	}
	return strings.Join(all, ",")
}

// settle gives the victim a session with a document, a lease, a ticket and an object, and the attacker a session.
func (w *world) settle() {
	w.t.Helper()
	ctx := w.t.Context()
	for _, r := range []events.Ref{mine, theirs} {
		cfg := w.config("harness-"+r.Harness, events.ClassHarness, r.Harness)
		cfg.Asker = events.Asker{Class: events.ClassHarness, ID: r.Harness}
		b, err := bus.Open(ctx, cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(b.Close)
		_, err1 := b.Leases.Ticket(ctx, r.Harness, 0)
		_, err2 := b.Leases.Acquire(ctx, events.HarnessLeaseKey(r.Harness, "1"),
			[]byte(`{"incarnation":"1","state":"ready","exclusive":true,"ttl_ms":3600000}`), time.Hour)
		opened := events.New("e", events.HarnessSource(r.Harness, "1"), r, 1, time.Now(),
			events.SessionOpened{Incarnation: "1"})
		_, err3 := b.Log.Append(ctx, r, events.WriterHarness, 0, []events.Event{opened})
		if err := errors.Join(err1, err2, err3); err != nil {
			w.t.Fatal(err)
		}
		if r == theirs {
			w.victim = b
			if w.object, err = b.Objects.Put(ctx, r, []byte("kept")); err != nil {
				w.t.Fatal(err)
			}
		}
		natstest.Until(w.t, r.String()+" to have a document", func() bool {
			_, err := b.KV.Load(ctx, kv.State, events.SessionKey(r))
			return err == nil
		})
	}
}

// account is a user's connection, by a plain client.
type account struct {
	*nats.Conn
	name   string
	denied atomic.Int64 // what the broker refused
}

// url returns the URL at which a plain client reaches all nodes, with the user's password.
func (w *world) url(user string) string {
	name := url.User(user).String()
	return strings.ReplaceAll(w.urlOf(user), name+"@", name+":"+w.password(user)+"@")
}

// files returns the certificates of a user.
func (w *world) files(user string) []nats.Option {
	f := w.folder(user)
	return []nats.Option{nats.RootCAs(f + "/ca.crt"), nats.ClientCert(f+"/tls.crt", f+"/tls.key")}
}

// login connects as a user.
func (w *world) login(user, class, id string) *account {
	w.t.Helper()
	a := &account{name: user}
	nc, err := nats.Connect(w.url(user), append(w.files(user), nats.CustomInboxPrefix(events.Inbox("hf", class, id)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				a.denied.Add(1)
			}
		}))...)
	if err != nil {
		w.t.Fatal(err)
	}
	a.Conn = nc
	w.t.Cleanup(nc.Close)
	return a
}

func (w *world) harness() *account {
	return w.login("harness-"+attacker, events.ClassHarness, attacker)
}
func (w *world) ann() *account  { return w.login("ann", events.ClassPerson, "ann") }
func (w *world) root() *account { return w.login("root", events.ClassPerson, "root") }

// keeper backs the cell up, and restorer restores it.
func (w *world) keeper() *account   { return w.login("keeper", events.ClassPerson, "keeper") }
func (w *world) restorer() *account { return w.login("restorer", events.ClassPerson, "restorer") }

// send publishes without waiting.
func (a *account) send(t *testing.T, subject, reply, body string, header ...string) {
	t.Helper()
	m := &nats.Msg{Subject: subject, Reply: reply, Data: []byte(body), Header: nats.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		m.Header[header[i]] = []string{header[i+1]}
	}
	if err := a.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
}

// done returns when the broker has handled all earlier messages.
func (a *account) done(t *testing.T) {
	t.Helper()
	if err := a.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
}

// api sends a request to the broker's API.
func (a *account) api(t *testing.T, subject string, req, to any) error {
	t.Helper()
	body, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.Request("$JS.API."+subject, body, patience)
	if err != nil {
		return err
	}
	var failed struct {
		Error *struct{ Description string }
	}
	if err := json.Unmarshal(m.Data, &failed); err != nil {
		return err
	}
	if failed.Error != nil {
		return errors.New(failed.Error.Description)
	}
	return json.Unmarshal(m.Data, to)
}

var streams = []string{"HF_LOG", "KV_hf_state", "KV_hf_leases", "OBJ_hf_objects", "HF_TIMERS", "HF_FEED", "HF_PARKED"}

// facts returns the state of others in the cell: every subject that is not the attackers' own, with its last message,
// or with the number of messages if the message cannot be read.
func (w *world) facts() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, s := range streams {
		var info struct {
			Config struct{ Subjects []string }
			State  struct{ Subjects map[string]int }
		}
		if err := w.service.api(w.t, "STREAM.INFO."+s, map[string]string{"subjects_filter": ">"}, &info); err != nil {
			w.t.Fatalf("%s: %v", s, err)
		}
		all[s] = fmt.Sprint(info.Config.Subjects)
		for subject, n := range info.State.Subjects {
			own := strings.Contains(subject, "."+attacker+".") || strings.HasSuffix(subject, "."+attacker) ||
				strings.Contains(subject, ".person.ann.") ||
				strings.Contains(subject, ".person.root.") || strings.Contains(subject, ".service.") ||
				strings.HasPrefix(subject, "hf.feed.")
			if own {
				continue
			}
			all[s+" "+subject] = fmt.Sprint(n, " messages")
			var last struct{ Message struct{ Seq uint64 } }
			if strings.HasPrefix(s, "HF_") && s != "HF_LOG" {
				continue
			}
			if err := w.service.api(w.t, "STREAM.MSG.GET."+s, map[string]string{"last_by_subj": subject},
				&last); err == nil {
				all[s+" "+subject] += fmt.Sprint(", the last one is ", last.Message.Seq)
			}
		}
	}
	return all
}

// unharmed runs an attack, then checks that the state of others is unchanged and that the cell works.
func (w *world) unharmed(name string, attack func(t *testing.T)) {
	w.t.Run(name, func(t *testing.T) {
		before := w.facts()
		attack(t)
		w.works(t)
		after := w.facts()
		for what, was := range before {
			if after[what] != was {
				t.Errorf("%s: was %q, is %q", what, was, after[what])
			}
		}
		for what, is := range after {
			if _, was := before[what]; !was {
				t.Errorf("new: %s: %s", what, is)
			}
		}
	})
}

// works checks that the victim's session is open, its lease and its object exist, and every service answers.
func (w *world) works(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ann := w.ann()
	for subject, want := range map[string]string{"ledger.get": `"phase":"idle"`, "reconciler.report": `{`,
		"compaction.check": `{`, "retry.cancel": ""} {
		m, err := ann.RequestWithContext(ctx, "hf.svc."+subject+".ann",
			[]byte(`{"harness":"`+victim+`","session":"s","by":"ann"}`))
		if err != nil || !strings.Contains(string(m.Data), want) {
			t.Errorf("%s: %v %+v", subject, err, m)
		}
	}
	content, err := w.victim.Objects.Get(ctx, w.object)
	if err != nil || string(content) != "kept" {
		t.Errorf("the victim's object: %q %v", content, err)
	}
	if _, err := w.victim.KV.Load(ctx, kv.Leases, events.HarnessLeaseKey(victim, "1")); err != nil {
		t.Errorf("the victim's lease: %v", err)
	}
}
