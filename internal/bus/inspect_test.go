package bus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// An operator sees the broker and the cell as they are, and looking sets nothing up.
func TestInspect(t *testing.T) {
	s := natstest.Start(t)
	ctx := within(t, patience)
	b, err := bus.Open(ctx, bus.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for range 2 { // it is still not there
		found, err := b.Inspect(ctx)
		if err != nil || !strings.HasPrefix(found.Version, "2.") || found.RTT <= 0 || len(found.Streams) < 6 {
			t.Fatalf("%+v, %v", found, err)
		}
		for _, st := range found.Streams {
			if !st.Missing || st.LayoutWanted != 1 {
				t.Errorf("%+v", st)
			}
		}
	}
	b = natstest.Bus(t, s)
	mustAppend(t, b, session, 0, "e1")
	found, err := b.Inspect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range found.Streams {
		wantMsgs := map[string]uint64{"HF_LOG": 1}[st.Name]
		if st.Missing || st.Layout != st.LayoutWanted || st.Replicas != 1 ||
			(st.BytesMax > 0) != (st.Name == "HF_PARKED") || st.Msgs != wantMsgs || st.LastSeq != wantMsgs ||
			(st.Bytes > 0) != (wantMsgs > 0) {
			t.Errorf("%+v", st)
		}
	}
}

// Replies arrive on the configured inbox, those of requests, pulls and acknowledgements alike: no other subject is
// used.
func TestInbox(t *testing.T) {
	s := natstest.Start(t)
	inbox := events.Inbox("hf", events.ClassHarness, "h 1")
	if inbox != "_INBOX.hf.harness.h=201" {
		t.Errorf("inbox %s", inbox)
	}
	nc, _ := outsider(t, s)
	elsewhere, at := make(chan *nats.Msg, 100), make(chan *nats.Msg, 100)
	for subject, ch := range map[string]chan *nats.Msg{"_INBOX.*": elsewhere, "_INBOX.*.*": elsewhere,
		inbox + ".>": at} {
		if _, err := nc.ChanSubscribe(subject, ch); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	b := natstest.Bus(t, s, func(c *bus.Config) { c.Inbox = inbox })
	mustAppend(t, b, session, 0, "e1")
	if err := b.Scan(within(t, patience), 0, func(events.Commit) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(at) < 8 { // looking, appending, pulling
		t.Errorf("%d answers came to the inbox", len(at))
	}
	for len(elsewhere) > 0 {
		if m := <-elsewhere; !strings.Contains(string(m.Data), "consumer_delete_response") { // which no call waits for
			t.Errorf("an answer came to %s: %s", m.Subject, m.Data)
		}
	}
}

// TestStrangers: durables that no service made, and consumers that push elsewhere than to an inbox, are strangers. A
// reader's own consumer is not.
func TestStrangers(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := outsider(t, s)
	for name, cfg := range map[string]string{
		"ours":   `{"durable_name":"ours","ack_policy":"explicit"}`,
		"theirs": `{"durable_name":"theirs","ack_policy":"explicit"}`,
		"pusher": `{"name":"pusher","ack_policy":"none","deliver_subject":"hf.svc.ledger.close"}`,
		"reader": `{"name":"reader","ack_policy":"none"}`,
		"screen": `{"name":"screen","ack_policy":"none","deliver_subject":"_INBOX.x"}`,
	} {
		m, err := nc.Request("$JS.API.CONSUMER.CREATE.HF_LOG."+name,
			[]byte(`{"stream_name":"HF_LOG","config":`+cfg+`}`), patience)
		if err != nil || strings.Contains(string(m.Data), `"error"`) {
			t.Fatalf("%s: %v, %s", name, err, m.Data)
		}
	}
	found, err := b.Strangers(within(t, patience), []bus.Source{{Stream: bus.LogStream, Durable: "ours"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range found {
		got[x.Stream+" "+x.Name] = x.Why
	}
	if len(got) != 2 || got["HF_LOG theirs"] != "is durable" ||
		got["HF_LOG pusher"] != "pushes to hf.svc.ledger.close" {
		t.Errorf("found %v", got)
	}
}
