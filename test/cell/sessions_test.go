package cell

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

// Numbers of what one harness has.
const (
	manyNames     = 20_000 // objects
	manyChildren  = 2_000  // sessions below one call, or each below the one before
	writtenAtOnce = 64     // of them, before it waits for the broker
	askers        = 16     // connections that ask for the subjects of a stream
	askFor        = 8 * time.Second
)

// TestManyOfOneHarness: one harness has very many objects and sessions, and asks the broker for the list of them
// without a pause. Other harnesses are not delayed by more than a second, and the deaths of their processes are
// noticed.
func TestManyOfOneHarness(t *testing.T) {
	w := start(t)
	h := w.harness()
	t.Run("object names", func(t *testing.T) {
		before := w.slowestObject(t)
		w.store(t, h, manyNames, func(n int) (subject, body string) {
			return fmt.Sprintf("$O.hf_objects.M.harness.my-agent.name-%d", n), "{}"
		})
		pulse := natstest.Feel(t)
		after := w.slowestObject(t)
		t.Logf("storing and reading an object takes %s, with %d names of another harness %s", before, manyNames, after)
		if after > before+delayedMost+pulse.Lost() {
			t.Errorf("it took %s and then %s; the machine lost %s", before, after, pulse.Lost())
		}
	})
	t.Run("questions for all names", func(t *testing.T) {
		pulse := natstest.Feel(t)
		stop := w.appends(t)
		asked, bytes := w.askForSubjects(t, "OBJ_hf_objects")
		n, longest := stop()
		t.Logf("%d questions with %d MiB of answers; %d appends of another session, the longest took %s; the machine "+
			"lost %s", asked, bytes>>20, n, longest, pulse.Lost())
		if n < 3 || longest > delayedMost+pulse.Lost() {
			t.Errorf("%d appends, the longest took %s", n, longest)
		}
		w.works(t)
	})
	t.Run("children of one call", func(t *testing.T) {
		w.children(t, h, "wide", func(int) string { return "-0" }, func(n int) bool { return n > 1 })
	})
	t.Run("children of children", func(t *testing.T) {
		w.children(t, h, "deep", func(n int) string { return fmt.Sprint("-", n-1) }, func(int) bool { return false })
	})
}

// slowestObject returns how long the slowest of some objects took to be stored and read.
func (w *world) slowestObject(t *testing.T) (slowest time.Duration) {
	t.Helper()
	for range 5 {
		began := time.Now()
		name, err := w.victim.Objects.Put(t.Context(), theirs, []byte(w.victim.NewID()))
		if err == nil {
			_, err = w.victim.Objects.Get(t.Context(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}

// store publishes many messages and waits until the last one is stored.
func (w *world) store(t *testing.T, a *account, many int, message func(n int) (subject, body string)) {
	t.Helper()
	for n := range many {
		subject, body := message(n)
		if n < many-1 && n%500 != 0 {
			a.send(t, subject, "", body)
			continue
		}
		// so that the broker has room for the next ones
		w.stored(t, a, subject, body)
	}
}

// stored publishes a message and waits until it is stored.
func (w *world) stored(t *testing.T, a *account, subject, body string) {
	t.Helper()
	m, err := a.Request(subject, []byte(body), patience)
	if err != nil || strings.Contains(string(m.Data), `"error"`) {
		t.Errorf("%s: %v %+v", subject, err, m)
	}
}

// askForSubjects asks for all subjects of a stream without a pause, on many connections.
func (w *world) askForSubjects(t *testing.T, stream string) (asked, bytes int) {
	t.Helper()
	var done sync.WaitGroup
	var mu sync.Mutex
	until := time.Now().Add(askFor)
	for range askers {
		h := w.harness()
		done.Go(func() {
			for time.Now().Before(until) {
				m, err := h.Request("$JS.API.STREAM.INFO."+stream, []byte(`{"subjects_filter":">"}`), patience)
				if err != nil {
					t.Errorf("stream info: %v", err)
					return
				}
				mu.Lock()
				asked, bytes = asked+1, bytes+len(m.Data)
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return asked, bytes
}

// children opens many sessions of the attacker, each below a call of its parent, and replaces their process. Meanwhile
// they are written, and processes of the victim die: each death is noticed in time.
func (w *world) children(t *testing.T, h *account, name string, parent func(n int) string, settled func(n int) bool) {
	t.Helper()
	w.store(t, h, manyChildren, func(n int) (subject, body string) {
		opened := events.SessionOpened{Incarnation: "1"}
		if n > 0 {
			opened.Parent, opened.ParentCall, opened.Root = name+parent(n), "c", name+"-0"
		}
		facts := []events.Fact{opened, events.TurnStarted{Turn: "t", Cause: events.CauseMessage},
			events.ToolStarted{Call: "c", Turn: "t", Name: "agent"}}
		if settled(n) {
			facts = facts[:1]
		}
		return w.commit(t, fmt.Sprint(name, "-", n), 1, facts...)
	})
	last := events.Ref{Harness: attacker, Session: fmt.Sprint(name, "-", manyChildren-1)}
	natstest.UntilSession(t, w.victim, last, "its document", (*session.State).Opened)
	before := w.noticed(t)
	w.stored(t, h, "$KV.hf_leases.harness."+attacker+".2",
		`{"incarnation":"2","state":"ready","exclusive":true,"ttl_ms":3600000}`)
	first := events.Ref{Harness: attacker, Session: name + "-0"}
	natstest.UntilSession(t, w.victim, first, "without an owner", func(st *session.State) bool { return !st.Owned })
	pulse, halt, written, slowest := natstest.Feel(t), make(chan struct{}), 0, time.Duration(0)
	var done sync.WaitGroup
	// each change of a child is a reason to look at its parent
	done.Go(func() {
		for ; !t.Failed(); written++ {
			select {
			case <-halt:
				return
			default:
			}
			subject, body := w.commit(t, fmt.Sprint(name, "-", 2+written%(manyChildren-2)), 2,
				events.UsageReported{Turn: "t", Model: "m"})
			if written%writtenAtOnce > 0 {
				h.send(t, subject, "", body)
			} else {
				w.stored(t, h, subject, body)
			}
		}
	})
	for range 3 {
		slowest = max(slowest, w.noticed(t))
	}
	close(halt)
	done.Wait()
	t.Logf("a death is noticed after %s, and after %s while %d sessions are recovered and written %d times; the "+
		"machine lost %s", before, slowest, manyChildren, written, pulse.Lost())
	if slowest > noticedMax+pulse.Lost() {
		t.Errorf("a death is noticed after %s, want at most %s", slowest, noticedMax)
	}
	w.works(t)
}

// commit returns a commit of the attacker's process with this incarnation, and its subject.
func (w *world) commit(t *testing.T, id string, incarnation int, facts ...events.Fact) (subject, body string) {
	t.Helper()
	r := events.Ref{Harness: attacker, Session: id}
	var all []events.Event
	for _, f := range facts {
		all = append(all, events.New(w.victim.NewID(), events.HarnessSource(attacker, fmt.Sprint(incarnation)), r,
			uint64(incarnation), time.Now(), f))
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Error(err)
	}
	return "hf.log." + attacker + "." + id + ".harness", string(text)
}

// noticed kills a process of the victim and returns how long its session stays as it was.
func (w *world) noticed(t *testing.T) time.Duration {
	t.Helper()
	f := w.folder("harness-" + victim)
	h, err := harness.Connect(t.Context(), harness.Config{ID: victim, URL: w.urlOf("harness-" + victim),
		PasswordFile: f + "/password", TLSCA: f + "/ca.crt", TLSCert: f + "/tls.crt", TLSKey: f + "/tls.key"})
	if err != nil {
		t.Fatal(err)
	}
	r := events.Ref{Harness: victim, Session: "dies-" + w.victim.NewID()}
	s, err := h.Open(t.Context(), r.Session, harness.OpenOptions{})
	if err == nil {
		_, err = s.StartTurn(t.Context(), harness.StartOptions{Content: "go"})
	}
	if err == nil {
		err = h.Ready(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	natstest.UntilSession(t, w.victim, r, "the turn", func(st *session.State) bool { return st.Turn != nil })
	began := time.Now()
	h.Abandon()
	natstest.UntilSession(t, w.victim, r, "its end", func(st *session.State) bool { return st.Turn == nil })
	return time.Since(began)
}
