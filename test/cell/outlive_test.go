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

	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// Bounds of the longest pause of acknowledged writes, in each session: what docs/guide/kubernetes.md says, with room
// for a machine that does much else.
const (
	rollMax   = 20 * time.Second // a node goes: an election takes 4 to 9 s, where it led
	serveMax  = 10 * time.Second // services go: they are not asked for a write
	silentMax = 30 * time.Second // a node is silent: clients find out within 9 s, then an election
	backMax   = 40 * time.Second // there is room again: a node is started, and an election follows
)

// silence is how long a node is frozen or cut off: longer than an election, and than it takes to leave an isolated
// node.
const silence = 11 * time.Second

// form says in which form of the test a phase is played.
type form int

const (
	onlyLong form = iota
	always
	byTurns // in the short form one of these, by the seed
)

// phase is something that happens to the cell while it is used.
type phase struct {
	name     string
	form     form
	pauseMax time.Duration
	play     func(d *deployment, w *writer) (apart time.Duration) // apart: for so long nothing can be written
}

var phases = []phase{
	{"each process of each service ends and dies in turn", always, serveMax, rollServices},
	{"each node ends or dies in turn", always, rollMax, rollNodes},
	{"the log's leader is frozen", byTurns, silentMax, freezeLeader},
	{"a follower is frozen", onlyLong, silentMax, freezeFollower},
	{"the log's leader is cut off from nodes and clients", byTurns, silentMax, cutLeader},
	{"a follower is cut off from the other nodes", onlyLong, silentMax, cutFollower},
	{"one disk is full", always, silentMax, fillOne},
	{"all disks are full", onlyLong, backMax, fillAll},
}

// TestTheCellOutlives: whatever happens to nodes, services, network and disks, each acknowledged fact stays, the
// documents are the fold of the log, no living process is taken for dead, and the pauses are bounded.
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
	if !t.Failed() { // else it may wait for what does not happen
		w.end()
	}
	w.verify(d.as("holdfast-ledger", events.ClassService, "ledger"))
	natstest.Until(t, "the doctor to find nothing wrong", func() bool { _, err := d.doctor(); return err == nil })
}

// long is whether all phases are played, several times.
func long() bool { return os.Getenv("HOLDFAST_LONG") != "" }

// rounds is how often the phases are played.
func rounds() int {
	if long() {
		return 5
	}
	return 1
}

// seedOf is what the order of phases follows from; HOLDFAST_SEED says which, to see a run again.
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

// briefly makes nodes leave sooner than in production, where clients are given half a minute to move, unless the test
// has that time.
func briefly(conf string) string {
	if long() {
		return conf
	}
	return strings.NewReplacer("lame_duck_grace_period: 5s", "lame_duck_grace_period: 500ms").Replace(conf)
}

// short is whether the phase at this place is played in the short form.
func (p *phase) short(place int, seed uint64) bool {
	return p.form == always || p.form == byTurns && uint64(place/2)%2 == seed%2
}

// play plays a phase and judges its pauses.
func (d *deployment) play(t *testing.T, w *writer, p *phase) {
	defer func(whole *testing.T) { d.t = whole }(d.t)
	d.t = t
	w.begin()
	began := time.Now()
	apart := p.play(d, w)
	w.proceeds(t)
	writes, reads := w.pauses()
	t.Logf("%.1f s; the longest pause of acknowledged writes %.1f s, of a person's readings %.1f s",
		time.Since(began).Seconds(), writes.Seconds(), reads.Seconds())
	if bound := p.pauseMax + apart; writes > bound || reads > bound {
		t.Errorf("a pause of more than %s", bound)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for text, n := range w.refused {
		t.Logf("%d times a person was told: %s", n, text)
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

// follower is a node that does not lead the log.
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

// fillOne takes the room of the log's leader.
func fillOne(d *deployment, w *writer) time.Duration {
	return d.fill(w, d.leader("HF_LOG"))
}

// fillAll takes the room of all nodes.
func fillAll(d *deployment, w *writer) time.Duration { return d.fill(w, 0, 1, 2) }

// fill takes the room of some nodes, waits until their probes had them killed, and gives it back. With a majority of
// nodes the cell is used meanwhile.
func (d *deployment) fill(w *writer, nodes ...int) time.Duration {
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
		d.disks[i].fill(d.t)
	}
	for _, i := range nodes {
		n := d.nodes[i]
		d.until(n, func() bool { return len(n.killed()) > before[i] })
		at("%s is killed: %s", n.name, n.killed()[before[i]])
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

// report shows, after a failure, what the nodes and the services have logged last.
func (d *deployment) report(t *testing.T) {
	if !t.Failed() {
		return
	}
	for _, n := range d.nodes {
		t.Logf("%s says:\n%s", n.name, n.tail())
		has, err := n.ask([]string{"http://127.0.0.1:" + watchPort + "/jsz?accounts=true&streams=true&raft=true"})
		t.Logf("%s has: %v\n%s", n.name, err, has)
	}
	for _, s := range d.services {
		t.Logf("%s says:\n%s", s.name, s.tail())
	}
}

// doctor is what `holdfast doctor` prints to the operator.
func (d *deployment) doctor() (string, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	cfg := d.config("root", events.ClassPerson, "root")
	out, err := exec.CommandContext(ctx, binary, "doctor", "--nats", cfg.URL, "--password-file", cfg.PasswordFile,
		"--tls-ca", cfg.TLSCA, "--tls-cert", cfg.TLSCert, "--tls-key", cfg.TLSKey, "--timeout", "4s").CombinedOutput()
	return string(out), err
}
