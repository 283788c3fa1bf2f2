package layout_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/layout"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestInspectWithoutACluster: a broker that says nothing of a cluster has no nodes.
func TestInspectWithoutACluster(t *testing.T) {
	b := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply {
		return bustest.OneReply(
			`{"config":{"metadata":{"hf.layout":"1"}}}`)
	}).Open()
	found, err := b.Layout.Inspect(bustest.Within(t, bustest.Patience))
	if err != nil || len(found.Streams) == 0 || len(found.Streams[0].Nodes) != 0 || found.Streams[0].Layout != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestEnsureWithoutARead: after a refused update it is not known how a stream stands, so setting up fails.
func TestEnsureWithoutARead(t *testing.T) {
	reads, updates := 0, 0
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		switch {
		case a.Is("STREAM.CREATE"):
			return bustest.OneReply(`{}`)
		case a.Is("STREAM.UPDATE"):
			if updates++; updates == 1 {
				return bustest.Trouble
			}
		case a.Is("STREAM.INFO.HF_LOG"):
			if reads++; reads == 2 {
				return bustest.Trouble
			}
		}
		return bustest.OneReply(`{"config":{"name":"x","num_replicas":1}}`)
	}).Open()
	if err := b.Layout.Ensure(bustest.Within(t, bustest.Patience)); err == nil {
		t.Error("it is set up")
	}
}

// TestEnsureRaisesTheLimit: a larger limit of the log is applied to a log that is there.
func TestEnsureRaisesTheLimit(t *testing.T) {
	s := natstest.Start(t)
	for _, most := range []int64{1 << 20, 3 << 20, 2 << 20} {
		natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = most })
	}
	_, js := bustest.Outsider(t, s)
	if c := bustest.Config(t, js, "HF_LOG"); c.MaxBytes != 3<<20 {
		t.Errorf("the log may have %d bytes, want 3 MiB", c.MaxBytes)
	}
}

// TestTheFeedHasALimit: where the log has a limit, the feed has a part of it; elsewhere it has none.
func TestTheFeedHasALimit(t *testing.T) {
	for most, want := range map[int64]int64{0: -1, 64 << 20: 64 << 20 / layout.FeedPart} {
		s := natstest.Start(t)
		natstest.Bus(t, s, func(c *bus.Config) { c.LogBytesMax = most })
		_, js := bustest.Outsider(t, s)
		if c := bustest.Config(t, js, "HF_FEED"); c.MaxBytes != want {
			t.Errorf("a log of %d bytes: the feed may have %d, want %d", most, c.MaxBytes, want)
		}
	}
}

// TestEnsureWithoutTheFirstRead: while it is unknown whether a stream exists, none is created.
func TestEnsureWithoutTheFirstRead(t *testing.T) {
	b := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
		if !a.Is("STREAM.INFO") {
			t.Errorf("asked for more than the streams: %+v", a)
		}
		return bustest.Trouble
	}).Open()
	if err := b.Layout.Ensure(bustest.Within(t, bustest.Patience)); err == nil {
		t.Error("it is set up")
	}
	if _, err := b.Layout.Inspect(bustest.Within(t, bustest.Patience)); err == nil {
		t.Error("it is inspected")
	}
}

// TestOnlyASyncedLogTakesBatches: the setting of a log that takes batches is kept only with the note that its broker
// syncs each write; objects have the configured limit.
func TestOnlyASyncedLogTakesBatches(t *testing.T) {
	const limit = 64 << 20
	s := natstest.Start(t)
	natstest.Bus(t, s, bustest.Together, func(c *bus.Config) { c.ObjectBytesMax = limit })
	_, js := bustest.Outsider(t, s)
	if c := bustest.Config(t, js, "OBJ_hf_objects"); c.MaxBytes != limit {
		t.Errorf("objects may have %d bytes, want %d", c.MaxBytes, limit)
	}
	c := bustest.Config(t, js, "HF_LOG")
	if !c.AllowAtomicPublish || c.Metadata["hf.together"] == "" {
		t.Errorf("a synced log takes no batches: %+v", c)
	}
	natstest.Bus(t, s)
	if !bustest.Config(t, js, "HF_LOG").AllowAtomicPublish {
		t.Error("a synced log takes no batches any more")
	}
	delete(c.Metadata, "hf.together")
	if _, err := js.UpdateStream(bustest.Within(t, bustest.Patience), c); err != nil {
		t.Fatal(err)
	}
	natstest.Bus(t, s)
	if bustest.Config(t, js, "HF_LOG").AllowAtomicPublish {
		t.Error("a log that is not known as synced takes batches")
	}
}

// TestALogThatIsSyncedInGroupsTakesNoBatches: what an earlier start of the same store has allowed is taken back: a cut
// of the power between the parts of a batch would leave some of them.
func TestALogThatIsSyncedInGroupsTakesNoBatches(t *testing.T) {
	s := natstest.Start(t, natstest.Grouped())
	_, js := bustest.Outsider(t, s)
	if _, err := js.CreateStream(bustest.Within(t, bustest.Patience), jetstream.StreamConfig{Name: "HF_LOG",
		Subjects: []string{"hf.log.*.*.*"}, AllowAtomicPublish: true,
		Metadata: map[string]string{"hf.layout": "1", "hf.together": "1"}}); err != nil {
		t.Fatal(err)
	}
	natstest.Bus(t, s)
	if c := bustest.Config(t, js, "HF_LOG"); c.AllowAtomicPublish || c.Metadata["hf.together"] != "" {
		t.Errorf("batches %v, noted %q", c.AllowAtomicPublish, c.Metadata["hf.together"])
	}
}

// TestInspectWithoutTheAccount: what the account holds is not guessed.
func TestInspectWithoutTheAccount(t *testing.T) {
	s := bustest.Scripted(t, func(bustest.Asked) []bustest.Reply { return bustest.NoStream })
	b := s.Open()
	s.Mu.Lock()
	s.Account = bustest.Trouble
	s.Mu.Unlock()
	if found, err := b.Layout.Inspect(bustest.Within(t, bustest.Patience)); err == nil {
		t.Errorf("%+v", found)
	}
}
