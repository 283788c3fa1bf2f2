package harness_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
	"github.com/holdfast-dev/holdfast/pkg/request"
	"github.com/holdfast-dev/holdfast/pkg/session"
)

const (
	me       = "laptop"
	patience = time.Minute     // no test waits longer for anything
	ttl      = 6 * time.Second // a process that stands still for less keeps its lease
)

// world is a broker, and a connection for the parts that services and people play.
type world struct {
	t      testing.TB
	server *embed.Server
	bus    *bus.Bus
	ctx    context.Context

	mu     sync.Mutex
	folded map[string]*session.State // as last read
}

func newWorld(t testing.TB, change ...natstest.BusOption) *world {
	t.Helper()
	s := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	t.Cleanup(cancel)
	return &world{t: t, server: s, bus: natstest.Bus(t, s, change...), ctx: ctx, folded: map[string]*session.State{}}
}

// smallLog gives the cell a log that is soon full.
func smallLog(c *bus.Config) { c.LogBytesMax = 128 << 10 }

func (w *world) connect(change ...func(*harness.Config)) *harness.Harness {
	w.t.Helper()
	cfg := harness.Config{ID: me, URL: w.server.URL(), TTL: ttl}
	for _, c := range change {
		c(&cfg)
	}
	h, err := harness.Connect(w.ctx, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			// tests that close for a reason look at the error themselves
			w.t.Logf("close: %v", err)
		}
	})
	return h
}

func pool(c *harness.Config) { c.Pool = true }

func ref(id string) events.Ref { return events.Ref{Harness: me, Session: id} }

// state is the fold of the log.
func (w *world) state(id string) *session.State {
	w.t.Helper()
	w.mu.Lock()
	st := w.folded[id]
	if st == nil {
		st = session.New(ref(id))
	}
	st = st.Clone()
	w.mu.Unlock()
	cs, err := w.bus.Log.Read(w.ctx, ref(id), st.Seq+1)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range cs {
		st.Fold(&cs[i])
	}
	w.mu.Lock()
	w.folded[id] = st
	w.mu.Unlock()
	return st.Clone()
}

func (w *world) source(seq uint64) (*events.Commit, error) {
	c, err := w.bus.Log.Commit(w.ctx, seq)
	return &c, err
}

// append appends facts to the newest state of the session, as a service does, and nudges.
func (w *world) append(id string, by events.Writer, facts ...events.Fact) uint64 {
	w.t.Helper()
	seq, err := w.decide(id, by, func(*session.State) ([]events.Fact, error) { return facts, nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return seq
}

func (w *world) decide(id string, by events.Writer, decide func(*session.State) ([]events.Fact, error)) (uint64,
	error) {
	for {
		st := w.state(id)
		facts, err := decide(st)
		if err != nil || len(facts) == 0 {
			return st.Seq, err
		}
		evs := make([]events.Event, len(facts))
		for i, f := range facts {
			evs[i] = events.New(w.bus.NewID(), events.ServiceSource(string(by), "test"), ref(id), st.Epoch, time.Now(),
				f)
		}
		seq, err := w.bus.Log.Append(w.ctx, ref(id), by, st.Seq, evs)
		if errors.Is(err, bus.ErrLostRace) {
			continue
		}
		if err == nil {
			w.bus.Hints.Nudge(ref(id), seq)
		}
		return seq, err
	}
}

// appendFrom appends as the ledger, in the name of an author.
func (w *world) appendFrom(id, source string, facts ...events.Fact) {
	w.t.Helper()
	st := w.state(id)
	evs := make([]events.Event, len(facts))
	for i, f := range facts {
		evs[i] = events.New(w.bus.NewID(), source, ref(id), st.Epoch, time.Now(), f)
	}
	if _, err := w.bus.Log.Append(w.ctx, ref(id), events.WriterLedger, st.Seq, evs); err != nil {
		w.t.Fatal(err)
	}
}

// answer answers as a person does, through the very decision that the ledger makes.
func (w *world) answer(id, prompt, text string) error {
	_, err := w.decide(id, events.WriterLedger, func(st *session.State) ([]events.Fact, error) {
		d, err := st.Answer(request.Answer{Ref: ref(id), Prompt: prompt, By: "ada",
			Answers: []events.Answer{{Question: "q", Text: text}}}, w.source)
		return d.Facts, err
	})
	return err
}

func (w *world) mustAnswer(id, prompt, text string) {
	w.t.Helper()
	if err := w.answer(id, prompt, text); err != nil {
		w.t.Fatal(err)
	}
}

// show stores the session's document and its work view, as the ledger would.
func (w *world) show(id string) {
	w.t.Helper()
	st := w.state(id)
	doc, err := st.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(events.SessionKey(ref(id)), doc)
	work, err := st.Work(w.source)
	if err != nil {
		w.t.Fatal(err)
	}
	if work == nil {
		return
	}
	view, err := json.Marshal(work)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(events.WorkKey(ref(id)), view)
}

// forget removes the work view of a session, as the ledger does when nothing is asked any more.
func (w *world) forget(id string) {
	w.t.Helper()
	key := events.WorkKey(ref(id))
	e, err := w.bus.KV.Load(w.ctx, kv.State, key)
	check(w.t, err)
	check(w.t, w.bus.KV.Delete(w.ctx, kv.State, key, e.Rev))
}

func (w *world) put(key string, value []byte) {
	w.t.Helper()
	e, err := w.bus.KV.Load(w.ctx, kv.State, key)
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		w.t.Fatal(err)
	}
	if _, err := w.bus.KV.Store(w.ctx, kv.State, key, value, e.Rev); err != nil {
		w.t.Fatal(err)
	}
}

// until waits until the session's log says so.
func (w *world) until(id, what string, ok func(*session.State) bool) *session.State {
	w.t.Helper()
	var st *session.State
	natstest.Until(w.t, what, func() bool {
		st = w.state(id)
		return ok(st)
	})
	return st
}

func (w *world) awaiting(id, prompt string) {
	w.t.Helper()
	w.until(id, "prompt "+prompt+" to be open", func(st *session.State) bool {
		p := st.Prompts[prompt]
		return p != nil && p.Status == session.Awaiting && p.Epoch == st.Epoch
	})
}

// dropLease has the broker refuse the next renewal. A harness that starts over shows its new incarnation after its
// sessions are claimed: until then there is no lease to delete.
func (w *world) dropLease(h *harness.Harness) {
	w.t.Helper()
	natstest.Until(w.t, "the lease to be deleted", func() bool {
		key := events.HarnessLeaseKey(me, h.Incarnation())
		e, err := w.bus.KV.Load(w.ctx, kv.Leases, key)
		if err == nil {
			err = w.bus.KV.Delete(w.ctx, kv.Leases, key, e.Rev)
		}
		if err != nil && !errors.Is(err, bus.ErrNotFound) && !errors.Is(err, bus.ErrLostRace) {
			w.t.Fatal(err)
		}
		return err == nil
	})
}

// drawn returns the newest incarnation that was drawn.
func (w *world) drawn() string {
	w.t.Helper()
	n, _, err := w.bus.Leases.Drawn(w.ctx, me)
	check(w.t, err)
	return strconv.FormatUint(n, 10)
}

// inTheWay takes the keys of the leases of the next n incarnations, so that a process that starts over needs several
// attempts. The ticket is moved ahead of the broker's clock, so that they follow each other; it stays that of the same
// process. It returns the incarnation before them.
func (w *world) inTheWay(n uint64) (ahead string) {
	w.t.Helper()
	const century = 100 * 366 * 24 * time.Hour
	e := must[kv.Entry](w.t)(w.bus.KV.Load(w.ctx, kv.Leases, events.TicketKey(me)))
	was, _, err := w.bus.Leases.Drawn(w.ctx, me)
	check(w.t, err)
	last := was + uint64(century.Microseconds())
	value := bytes.Replace(e.Value, []byte(strconv.FormatUint(was, 10)), []byte(strconv.FormatUint(last, 10)), 1)
	must[uint64](w.t)(w.bus.KV.Store(w.ctx, kv.Leases, e.Key, value, e.Rev))
	for i := range n {
		key := events.HarnessLeaseKey(me, strconv.FormatUint(last+i+1, 10))
		must[uint64](w.t)(w.bus.KV.Store(w.ctx, kv.Leases, key, []byte("{}"), 0))
	}
	return strconv.FormatUint(last, 10)
}

func question() []events.Question { return []events.Question{{ID: "q", Question: "Which colour?"}} }

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// asked is an Ask under way.
type asked struct {
	answer harness.Answer
	err    error
}

// asker is a turn, or a session outside of a turn.
type asker interface {
	Ask(ctx context.Context, p harness.Prompt) (harness.Answer, error)
}

func ask(ctx context.Context, by asker, p harness.Prompt) chan asked {
	out := make(chan asked, 1)
	go func() {
		a, err := by.Ask(ctx, p)
		out <- asked{a, err}
	}()
	return out
}

func got(t testing.TB, out chan asked) asked {
	t.Helper()
	select {
	case a := <-out:
		return a
	case <-time.After(patience):
		t.Fatal("Ask did not return")
		return asked{}
	}
}

func ended(t testing.TB, ctx context.Context) error {
	t.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		t.Fatal("the context did not end")
		return nil
	}
}

// sendsFirst has a fact under way that no broker takes: what is said next waits behind it, and was not sent.
func (w *world) sendsFirst(s *harness.Session) {
	w.t.Helper()
	go func() {
		_ = s.Append(w.ctx, events.MessageAccepted{Message: "first", Synthetic: true, Content: []byte(`"x"`)})
	}()
	natstest.Until(w.t, "a fact to be sent", func() bool { return harness.HandedOver(s) == 1 })
}

// back starts the broker again, on the same data and port.
func (w *world) back() {
	w.t.Helper()
	w.server = natstest.Restart(w.t, w.server)
}

// short is a context that ends soon.
func short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Second/2)
}
