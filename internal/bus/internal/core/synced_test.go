package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// question is a question about a sync that a test answers.
type question struct {
	core.SyncRequest
	answer func(core.SyncReply)
}

// grouped is a broker that syncs in groups, as far as its clients know, with a stream S. The test says when it has
// synced.
func grouped(t *testing.T) (*embed.Server, jetstream.JetStream, <-chan question) {
	t.Helper()
	s := natstest.Start(t, natstest.Lazy(), func(c *embed.Config) { c.Name = core.GroupPrefix + "test" })
	nc, js := bustest.Outsider(t, s)
	questions := make(chan question, 100)
	if _, err := nc.Subscribe(core.SyncSubject, func(m *nats.Msg) {
		q := question{answer: func(r core.SyncReply) {
			body, err := json.Marshal(r)
			if err == nil {
				err = m.Respond(body)
			}
			if err != nil {
				t.Error(err)
			}
		}}
		if err := json.Unmarshal(m.Data, &q.SyncRequest); err != nil {
			t.Error(err)
		}
		questions <- q
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(bustest.Within(t, bustest.Patience), jetstream.StreamConfig{Name: "S",
		Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	return s, js, questions
}

// written begins a write to S whose result depends on its sync. It returns the channels of its looks and of its result.
func written(t *testing.T, c *core.Conn, js jetstream.JetStream) (reads <-chan uint64, result <-chan error) {
	t.Helper()
	ctx := bustest.Within(t, bustest.Patience)
	seen, done := make(chan uint64, 100), make(chan error, 1)
	go func() {
		_, err := c.Begin(ctx, &core.Write{Op: "write", Synced: "S",
			Msg: &nats.Msg{Subject: "s", Header: nats.Header{}},
			Verify: func(ctx context.Context) (core.Verdict, uint64, error) {
				st, err := js.Stream(ctx, "S")
				if err != nil {
					return core.Undecided, 0, err
				}
				last := st.CachedInfo().State.LastSeq
				seen <- last
				return core.Stored, last, nil
			}}).Wait(ctx)
		done <- err
	}()
	return seen, done
}

// TestAWriteWaitsForItsSync: the acknowledgement of a broker that syncs in groups is not the result of a write. Its
// result comes when a mark includes it, and not after a refused sync.
func TestAWriteWaitsForItsSync(t *testing.T) {
	s, js, questions := grouped(t)
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	if !c.Syncs.InGroups() {
		t.Fatal("the client does not know that the broker syncs in groups")
	}
	_, result := written(t, c, js)
	q := bustest.Receive(t, questions, "the question about the first write")
	if q.Stream != "S" || q.Seq != 1 {
		t.Errorf("asked for %+v", q.SyncRequest)
	}
	// a sync that began before
	q.answer(core.SyncReply{})
	q = bustest.Receive(t, questions, "the same question again")
	select {
	case err := <-result:
		t.Errorf("before the sync: %v", err)
	default:
	}
	q.answer(core.SyncReply{Seq: 1})
	if err := bustest.Receive(t, result, "the result"); err != nil {
		t.Error(err)
	}

	reads, result := written(t, c, js)
	bustest.Receive(t, questions, "the question about the second write").answer(core.SyncReply{Error: "no"})
	bustest.Receive(t, reads, "a look after the refused sync")
	select {
	case err := <-result:
		t.Errorf("after a refused sync: %v", err)
	default:
	}
	bustest.Receive(t, questions, "the question after the look").answer(core.SyncReply{Seq: 2})
	if err := bustest.Receive(t, result, "the result"); err != nil {
		t.Error(err)
	}
}

// TestAMarkIsOfOneConnection: the connection is lost before the sync of a write. The broker behind the next one may
// have another message in its place, so a mark of it says nothing: the stream is looked at first.
func TestAMarkIsOfOneConnection(t *testing.T) {
	s, js, questions := grouped(t)
	p := bustest.NewProxy(t, s)
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: p.Addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	reads, result := written(t, c, js)
	q := bustest.Receive(t, questions, "the question about the write")
	n := c.Reconnects()
	p.Cut()
	natstest.Until(t, "the connection to be restored", func() bool { return c.Reconnects() > n && c.Connected() })
	// it reaches no client: its inbox was of the lost connection
	q.answer(core.SyncReply{Seq: 1})
	bustest.Receive(t, reads, "a look")
	for {
		select {
		case q := <-questions:
			q.answer(core.SyncReply{Seq: 1})
			continue
		case err := <-result:
			if err != nil {
				t.Error(err)
			}
		}
		break
	}

	ctx := bustest.Within(t, bustest.Patience)
	life := c.Syncs.Uptime()
	if err := c.Syncs.Await(ctx, life, "S", 1); err != nil {
		t.Errorf("a mark of this connection: %v", err)
	}
	n = c.Reconnects()
	p.Cut()
	natstest.Until(t, "the connection to be restored", func() bool { return c.Reconnects() > n && c.Connected() })
	if err := c.Syncs.Await(ctx, life, "S", 1); !errors.Is(err, core.ErrUnreachable) {
		t.Errorf("a sequence of the earlier connection: %v", err)
	}
	if err := c.Syncs.Await(ctx, life, "S", 0); err != nil {
		t.Errorf("no sequence: %v", err)
	}
}

// cutting is an embedded server that loses its connection while it syncs.
type cutting struct {
	*embed.Server
	synced func() // called before the mark is returned
}

func (cutting) SyncsInGroups() bool { return true }

// Synced implements the question about a sync.
func (c cutting) Synced(_ context.Context, _ string, seq uint64) (uint64, error) {
	c.synced()
	return seq, nil
}

// TestAConnectionLostInTheSync: the connection is lost after the question and before the mark.
func TestAConnectionLostInTheSync(t *testing.T) {
	s, _, _ := grouped(t)
	var c *core.Conn
	server := cutting{s, func() {
		n := c.Reconnects()
		if err := c.NC.ForceReconnect(); err != nil {
			t.Error(err)
		}
		natstest.Until(t, "the connection to be restored", func() bool { return c.Reconnects() > n })
	}}
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	err = c.Syncs.Await(bustest.Within(t, bustest.Patience), c.Syncs.Uptime(), "S", 1)
	if !errors.Is(err, core.ErrUnreachable) {
		t.Errorf("a mark of the next connection: %v", err)
	}
}

// TestABrokerThatSyncsAnotherWay: the broker comes back and syncs in groups. Its marks say nothing about a sequence of
// the one before.
func TestABrokerThatSyncsAnotherWay(t *testing.T) {
	s := natstest.Start(t, natstest.Synced())
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	life, cfg := c.Syncs.Uptime(), s.Config()
	s.Shutdown()
	cfg.Name = core.GroupPrefix + "test"
	again := natstest.Start(t, func(c *embed.Config) { *c = cfg })
	nc, _ := bustest.Outsider(t, again)
	if _, err := nc.Subscribe(core.SyncSubject, func(m *nats.Msg) {
		if err := m.Respond([]byte(`{"seq":1}`)); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the connection to be restored", func() bool { return c.Connected() && c.Syncs.InGroups() })
	ctx := bustest.Within(t, bustest.Patience)
	if err := c.Syncs.Await(ctx, life, "S", 1); !errors.Is(err, core.ErrUnreachable) {
		t.Errorf("a sequence of the earlier broker: %v", err)
	}
	if err := c.Syncs.Await(ctx, c.Syncs.Uptime(), "S", 1); err != nil {
		t.Error(err)
	}
}

// TestABrokerThatSyncsEach: no write and no read waits, whether the connection was restored or not.
func TestABrokerThatSyncsEach(t *testing.T) {
	s := natstest.Start(t, natstest.Synced())
	p := bustest.NewProxy(t, s)
	c, err := core.Open(bustest.Within(t, bustest.Patience), core.Config{URL: p.Addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.NC.Close)
	life, ctx := c.Syncs.Uptime(), bustest.Within(t, bustest.Patience)
	if err := c.Syncs.Await(ctx, life, "S", 1); err != nil {
		t.Error(err)
	}
	n := c.Reconnects()
	p.Cut()
	natstest.Until(t, "the connection to be restored", func() bool { return c.Reconnects() > n && c.Connected() })
	if err := c.Syncs.Await(ctx, life, "S", 1); err != nil {
		t.Errorf("after another connection: %v", err)
	}
}
