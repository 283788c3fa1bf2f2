package cell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Bounds of the longest pause of acknowledged writes, in each session: those of docs/guide/kubernetes.md, with room for
// a machine under load.
const (
	rollMax   = 20 * time.Second // a node ends: an election takes 4 to 9 s if it led
	serveMax  = 10 * time.Second // services end: writes do not need them
	silentMax = 30 * time.Second // a node is silent: clients leave within 9 s, then an election follows
	backMax   = 40 * time.Second // there is room again: a node is started, and an election follows
)

// silence is how long a node is frozen or cut off: longer than an election, and longer than a client takes to leave an
// isolated node.
const silence = 11 * time.Second

// form is the form of the test in which a phase is played: the long or the short one.
type form int

const (
	onlyLong form = iota
	always
	byTurns // in the short form one of these, by the seed
)

// phase is an event of the cell during use.
type phase struct {
	name     string
	form     form
	pauseMax time.Duration
	play     func(d *deployment, w *writer) (apart time.Duration) // apart: how long no write is possible
}

var phases = []phase{
	{"each process of each service ends and dies in turn", always, serveMax, rollServices},
	{"each node ends or dies in turn", always, rollMax, rollNodes},
	{"the log's leader is frozen", byTurns, silentMax, freezeLeader},
	{"a follower is frozen", onlyLong, silentMax, freezeFollower},
	{"the log's leader is cut off from nodes and clients", byTurns, silentMax, cutLeader},
	{"a follower is cut off from the other nodes", onlyLong, silentMax, cutFollower},
	{"one disk is full", always, silentMax, fillOne},
	{"all disks are nearly full", always, backMax, nearlyFillAll},
	{"all disks are full", onlyLong, backMax, fillAll},
}

// TestTheCellOutlives: after failures of nodes, services, network and disks, each acknowledged fact is stored, the
// documents are the fold of the log, no living process is called dead, and the pauses are bounded.
func TestTheCellOutlives(t *testing.T) {
	seed := seedOf(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	d := deployCell(t, briefly)
	t.Cleanup(func() { d.report(t) })
	w := d.write()
	w.proceeds(t)
	for round := range rounds() {
		order := rnd.Perm(len(phases))
		if round == 0 {
			for i := range order {
				order[i] = i
			}
		}
		for _, i := range order {
			if t.Failed() {
				break
			}
			if !long() && !phases[i].short(i, seed) {
				continue
			}
			t.Run(phases[i].name, func(t *testing.T) { d.play(t, w, &phases[i]) })
		}
	}
	// after a failure it may wait without end
	if !t.Failed() {
		w.end()
	}
	w.verify(d.as("holdfast-ledger", events.ClassService, "ledger"))
	natstest.Until(t, "the doctor to find nothing wrong", func() bool { _, err := d.doctor(); return err == nil })
}

// long reports whether all phases are played, several times.
func long() bool { return os.Getenv("HOLDFAST_LONG") != "" }

// rounds returns how often the phases are played.
func rounds() int {
	if long() {
		return 5
	}
	return 1
}

// seedOf returns the seed of the order of phases; HOLDFAST_SEED sets it, to repeat a run.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HOLDFAST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HOLDFAST_SEED=%d", seed)
	return seed
}

// briefly shortens the time that nodes take to end: in production clients have half a minute to move. The long form
// keeps that time.
func briefly(conf string) string {
	if long() {
		return conf
	}
	return strings.NewReplacer("lame_duck_grace_period: 5s", "lame_duck_grace_period: 500ms").Replace(conf)
}

// short reports whether the phase at this place is played in the short form.
func (p *phase) short(place int, seed uint64) bool {
	return p.form == always || p.form == byTurns && uint64(place/2)%2 == seed%2
}

// play plays a phase and checks its pauses.
func (d *deployment) play(t *testing.T, w *writer, p *phase) {
	defer func(whole *testing.T) { d.t = whole }(d.t)
	d.t = t
	w.begin()
	began := time.Now()
	apart := p.play(d, w)
	w.proceeds(t)
	writes, reads := w.pauses()
	t.Logf("%.1f s; the longest pause of acknowledged writes %.1f s, of what a person waits for %.1f s",
		time.Since(began).Seconds(), writes.Seconds(), reads.Seconds())
	// A service that is killed takes a request with it, which a person waits for.
	if bound := p.pauseMax + apart; writes > bound || reads > max(bound, refusalMax+serveMax/2) {
		t.Errorf("a pause of more than %s", bound)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for text, n := range w.refused {
		t.Logf("%d replies to a person: %s", n, text)
	}
	clear(w.refused)
}

// rollServices ends each process, once with SIGTERM and once with SIGKILL.
func rollServices(d *deployment, _ *writer) time.Duration {
	for i, s := range d.services {
		s.end([]syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2], true)
		d.until(s.pod, s.fit)
	}
	return 0
}

// rollNodes restarts each node as an upgrade does, the one in the middle by SIGKILL.
func rollNodes(d *deployment, _ *writer) time.Duration {
	for i, n := range d.nodes {
		n.end([]syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM}[i], true)
		d.until(n, n.ready)
	}
	return 0
}

func freezeLeader(d *deployment, _ *writer) time.Duration   { return d.freeze(d.leader("HF_LOG")) }
func freezeFollower(d *deployment, _ *writer) time.Duration { return d.freeze(d.follower()) }

// follower returns a node that does not lead the log.
func (d *deployment) follower() int { return (d.leader("HF_LOG") + 1) % nodesMax }

func (d *deployment) freeze(i int) time.Duration {
	d.nodes[i].freeze()
	<-time.After(silence)
	d.nodes[i].thaw()
	return 0
}

func cutLeader(d *deployment, _ *writer) time.Duration   { return d.cut(d.leader("HF_LOG"), true) }
func cutFollower(d *deployment, _ *writer) time.Duration { return d.cut(d.follower(), false) }

func (d *deployment) cut(i int, all bool) time.Duration {
	d.net.cut(i, all)
	<-time.After(silence)
	d.net.heal(i)
	return 0
}

// fillOne fills the disk of the log's leader.
func fillOne(d *deployment, w *writer) time.Duration {
	return d.fill(w, disk.fill, d.leader("HF_LOG"))
}

// nearlyFillAll takes the reserve of all nodes, and leaves them room to leave in good order.
func nearlyFillAll(d *deployment, w *writer) time.Duration {
	return d.fill(w, func(d disk, t *testing.T) { d.leave(t, reserveBytes/2) }, 0, 1, 2)
}

// fillAll fills the disks of all nodes.
func fillAll(d *deployment, w *writer) time.Duration { return d.fill(w, disk.fill, 0, 1, 2) }

// fill fills the disks of some nodes, waits until their probes have killed them, and frees the disks. With a majority
// of nodes the cell is used meanwhile.
func (d *deployment) fill(w *writer, take func(disk, *testing.T), nodes ...int) time.Duration {
	if !d.limited {
		d.t.Log("NOT RUN: a full disk: this machine does not permit file systems of a limited size")
		return 0
	}
	began, before := time.Now(), map[int]int{}
	at := func(what string, args ...any) {
		d.t.Logf("%5.1f s: %s", time.Since(began).Seconds(), fmt.Sprintf(what, args...))
	}
	for _, i := range nodes {
		before[i] = len(d.nodes[i].killed())
		take(d.disks[i], d.t)
	}
	for _, i := range nodes {
		n := d.nodes[i]
		d.until(n, func() bool { return len(n.killed()) > before[i] })
		why := n.killed()[before[i]]
		at("%s is killed: %s", n.name, why)
		// not by the end of JetStream, which means that the disk is full
		if !strings.Contains(why, "is nearly full") {
			d.t.Errorf("%s is killed for another reason than its reserve: %s", n.name, why)
		}
	}
	var out string
	natstest.Until(d.t, "the doctor to say what to do", func() bool {
		out, _ = d.doctor()
		return strings.Contains(out, "disk")
	})
	at("the doctor says:\n%s", out)
	if len(nodes) < nodesMax/2+1 {
		w.proceeds(d.t)
	}
	took := time.Since(began)
	for _, i := range nodes {
		d.disks[i].empty(d.t)
	}
	at("there is room")
	for _, i := range nodes {
		d.until(d.nodes[i], d.nodes[i].ready)
		at("%s is ready", d.nodes[i].name)
	}
	if len(nodes) < nodesMax/2+1 {
		return 0
	}
	return took
}

// report logs, after a failure, the last log lines of the nodes and the services.
func (d *deployment) report(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, n := range d.nodes {
		if n == nil {
			continue
		}
		t.Logf("%s says:\n%s", n.name, n.tail())
		has, err := n.ask([]string{"wget", "-q", "-O", "-",
			"http://127.0.0.1:" + watchPort + "/jsz?accounts=true&streams=true&raft=true"})
		t.Logf("%s has: %v\n%s", n.name, err, has)
	}
	for _, s := range d.services {
		t.Logf("%s says:\n%s", s.name, s.tail())
	}
}

// doctor returns what `holdfast doctor` prints to the operator.
func (d *deployment) doctor() (string, error) {
	return doctor(d.t.Context(), d.config("root", events.ClassPerson, "root"))
}

func doctor(ctx context.Context, cfg bus.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "doctor", "--nats", cfg.URL, "--password-file", cfg.PasswordFile,
		"--tls-ca", cfg.TLSCA, "--tls-cert", cfg.TLSCert, "--tls-key", cfg.TLSKey, "--timeout", "4s").CombinedOutput()
	return string(out), err
}
