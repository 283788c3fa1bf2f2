package consumer_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// TestStrangers: durables that no service made, and consumers that push elsewhere than to an inbox, are strangers. A
// reader's own consumer is not.
func TestStrangers(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	for name, cfg := range map[string]string{
		"ours":   `{"durable_name":"ours","ack_policy":"explicit"}`,
		"theirs": `{"durable_name":"theirs","ack_policy":"explicit"}`,
		"pusher": `{"name":"pusher","ack_policy":"none","deliver_subject":"hf.svc.ledger.close"}`,
		"reader": `{"name":"reader","ack_policy":"none"}`,
		"screen": `{"name":"screen","ack_policy":"none","deliver_subject":"_INBOX.x"}`,
	} {
		m, err := nc.Request("$JS.API.CONSUMER.CREATE.HF_LOG."+name,
			[]byte(`{"stream_name":"HF_LOG","config":`+cfg+`}`), bustest.Patience)
		if err != nil || strings.Contains(string(m.Data), `"error"`) {
			t.Fatalf("%s: %v, %s", name, err, m.Data)
		}
	}
	found, err := b.Consumers.Strangers(bustest.Within(t, bustest.Patience),
		[]consumer.Source{{Stream: consumer.LogStream, Durable: "ours"}})
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
