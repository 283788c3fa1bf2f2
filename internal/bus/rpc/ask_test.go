package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/rpc"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A service handles what was asked of it, and nothing that the broker was made to send in a client's place; it replies
// to inboxes, and to no stream, bucket, service or call of the broker.
func TestServiceHandlesOnlyRequests(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	mine := events.Ref{Harness: "h", Session: "s"}
	if _, err := b.Log.Append(bustest.Background(t), mine, events.WriterHarness, 0,
		[]events.Event{bustest.Fact("e", mine)}); err != nil {
		t.Fatal(err)
	}
	handled := make(chan string, 100)
	serve(t, b, endpoint("close", func(_ context.Context, body []byte) ([]byte, error) {
		handled <- string(body)
		return []byte(`{"seq":1}`), nil
	}))
	const ended, purge = "hf.svc.ledger.close", "$JS.API.STREAM.PURGE.HF_LOG"
	ask := func(subject, reply, body string) {
		t.Helper()
		if err := nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	for len(handled) > 0 {
		// those that waited for the service
		<-handled
	}
	for _, reply := range []string{purge, "$KV.hf_state.session.o.s", "hf.log.o.s.harness", "$KV.hf_leases.harness.o.1",
		"hf.svc.ledger.answer",
		"$JS.API.INFO", "anything", "_INBOXES.x", ""} {
		ask(ended, reply, `{"reply":"`+reply+`"}`)
		ask(ended+".ann", reply, `{"reply":"`+reply+`"}`)
	}
	// as a stream that republishes sets them
	for _, header := range []string{jetstream.StreamHeader, jetstream.SequenceHeader} {
		m := &nats.Msg{Subject: ended, Reply: nc.NewInbox(), Data: []byte(header), Header: nats.Header{header: {"1"}}}
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	ask("$JS.API.STREAM.MSG.GET.HF_LOG", ended, `{"seq":1}`)
	ask("$JS.API.DIRECT.GET.KV_hf_state", ended, `{"seq":1}`)
	// its acknowledgement
	ask(b.Cell().LogSubject(mine, events.WriterHarness), ended, `[]`)
	deliver(t, nc, js, ended)
	// A later request on the same subject: the earlier ones are handled by then, or concurrently.
	if _, err := nc.Request(ended, []byte("last"), bustest.Patience); err != nil {
		t.Fatal(err)
	}
	for body := range handled {
		if body == "last" {
			break
		}
		t.Errorf("handled: %s", body)
	}
	info, err := b.Layout.Inspect(bustest.Background(t))
	if err != nil || info.Streams[0].Msgs != 2 {
		t.Errorf("the log has %d messages, want the 2 that were written: %v", info.Streams[0].Msgs, err)
	}
}

// deliver lets the broker deliver the log to a subject, by a consumer and as the reply to a pull.
func deliver(t *testing.T, nc *nats.Conn, js jetstream.JetStream, to string) {
	t.Helper()
	// The broker delivers, because this subscription has exactly the subject. The service receives a copy.
	if _, err := nc.SubscribeSync(to); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	pushed, err := js.CreatePushConsumer(bustest.Background(t), "HF_LOG",
		jetstream.ConsumerConfig{Name: "push", DeliverSubject: to, AckPolicy: jetstream.AckNonePolicy})
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := js.CreateConsumer(bustest.Background(t), "HF_LOG",
		jetstream.ConsumerConfig{Name: "pull", AckPolicy: jetstream.AckNonePolicy})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.HF_LOG.pull", to, []byte(`{"batch":10}`)); err != nil {
		t.Fatal(err)
	}
	for name, info := range map[string]func(context.Context) (*jetstream.ConsumerInfo, error){"push": pushed.Info,
		"pull": pulled.Info} {
		natstest.Until(t, name+" to deliver", func() bool {
			i, err := info(bustest.Background(t))
			return err == nil && i.Delivered.Stream > 0 && i.NumPending == 0
		})
	}
}

// The broker begins no delivery to a service: a consumer that names a subject of it as its delivery subject, with or
// without the queue group, stays inactive, also if it is created before the service begins.
func TestNoDeliveryBeginsToAService(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	mine := events.Ref{Harness: "h", Session: "s"}
	if _, err := b.Log.Append(bustest.Background(t), mine, events.WriterHarness, 0,
		[]events.Event{bustest.Fact("e", mine)}); err != nil {
		t.Fatal(err)
	}
	consumers := map[string]jetstream.PushConsumer{}
	consume := func(to, group string) {
		t.Helper()
		c, err := js.CreatePushConsumer(bustest.Background(t), "HF_LOG", jetstream.ConsumerConfig{
			Name: fmt.Sprintf("c%d", len(consumers)), DeliverSubject: to, DeliverGroup: group,
			AckPolicy: jetstream.AckNonePolicy})
		if err != nil {
			t.Fatal(err)
		}
		consumers[fmt.Sprintf("%s in group %q, number %d", to, group, len(consumers))] = c
	}
	to := []string{"hf.svc.ledger.get", "hf.svc.ledger.get.ann", "hf.svc.ledger.get.harness.h", "hf.svc.ledger.other"}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		to = append(to, "$SRV."+verb, "$SRV."+verb+".holdfast-ledger")
	}
	both := func(subjects []string) {
		for _, subject := range subjects {
			consume(subject, "")
			consume(subject, micro.DefaultQueueGroup)
		}
	}
	both(to)
	serve(t, b, endpoint("get", echo))
	both(append(to, "$SRV.PING.holdfast-ledger."+identity(t, nc)))
	received := make(chan *nats.Msg, 1)
	if _, err := nc.ChanSubscribe("received", received); err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	// this one is active
	consume("received", "")
	bustest.Receive(t, received, "the delivery to a subscription without a wildcard")
	for name, c := range consumers {
		i, err := c.Info(bustest.Background(t))
		if err != nil {
			t.Fatal(err)
		}
		if active := i.PushBound || i.Delivered.Consumer > 0; active != strings.HasPrefix(name, "received") {
			t.Errorf("to %s: active is %v, %d delivered", name, active, i.Delivered.Consumer)
		}
	}
}

// The subject names the asker: a body that names another one is refused, and one without a name gets it.
func TestSubjectNamesTheAsker(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	serve(t, b, endpoint("answer", echo))
	for _, c := range []struct {
		below, body, want string
		code              string
	}{
		{"", `{"by":"anyone"}`, `{"by":"anyone"}`, ""},
		{".ann", `{"by":"ann"}`, `{"by":"ann","by":"ann"}`, ""},
		{".ann", `{"x":{"by":"bob"}}`, `{"x":{"by":"bob"},"by":"ann"}`, ""},
		{".ann", ``, `{"by":"ann"}`, ""},
		{".ann", ` { } `, `{ "by":"ann"}`, ""},
		{".ann=20b", `{"text":"a<b"}`, `{"text":"a<b","by":"ann b"}`, ""},
		{".ann", `{"by":"bob"}`, "", "403"},
		{".ann", `{"BY":"bob"}`, "", "403"},
		{".ann", `{"by":"ann","By":"bob"}`, "", "403"},
		{".ann", `{"by":7}`, "", "400"},
		{".ann", `[`, `[`, ""}, // the handler refuses it
		{".ann", `null`, `null`, ""},
		{".harness.h=201", `{"harness":"h 1","by":"x"}`, `{"harness":"h 1","by":"x","harness":"h 1"}`, ""},
		{".harness.h", `{}`, `{"harness":"h"}`, ""},
		{".harness.h", `{"harness":"other"}`, "", "403"},
		{".harness.h", `{"HARNESS":"other"}`, "", "403"},
		{".harness.h", `{"harneſs":"other"}`, "", "403"}, // encoding/json takes it for the field
	} {
		m, err := nc.Request("hf.svc.ledger.answer"+c.below, []byte(c.body), bustest.Patience)
		if err != nil {
			t.Errorf("%s %s: %v", c.below, c.body, err)
			continue
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); code != c.code || c.code == "" && string(m.Data) != c.want {
			t.Errorf("%s %s: code %q, want %q; %s, want %s", c.below, c.body, code, c.code, m.Data, c.want)
		}
		var got struct{ By string }
		if asks := strings.HasPrefix(c.below, ".ann") && strings.HasPrefix(c.want, "{"); asks &&
			(json.Unmarshal(m.Data, &got) != nil || !strings.HasPrefix(got.By, "ann")) {
			t.Errorf("%s %s: read as asked by %q", c.below, c.body, got.By)
		}
	}
	// no asker has such a subject
	for _, below := range []string{".a.b", ".harness.h.x", ".harness.=zz"} {
		m, err := nc.Request("hf.svc.ledger.answer"+below, []byte(`{}`), bustest.Patience)
		if err != nil || m.Header.Get(errorCode) != "400" || !strings.Contains(string(m.Data), `"field":"subject"`) {
			t.Errorf("%s: %v, %v", below, m, err)
		}
	}
}

// A broker that has users is asked as the user, and one that has none on the bare verb.
func TestAsksAsItsUser(t *testing.T) {
	who := events.Asker{Class: events.ClassPerson, ID: "ann"}
	for text, want := range map[string]string{"": `{}`,
		"authorization: { users: [ { user: ann, password: pw } ] }": `{"by":"ann"}`} {
		s := natstest.Start(t, natstest.Settings(t, text))
		b, err := bus.Open(bustest.Background(t), bus.Config{URL: strings.Replace(s.URL(), "//", "//ann:pw@", 1),
			Asker: who})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Abort)
		serve(t, b, endpoint("get", echo))
		var got json.RawMessage
		if err := b.Services.Request(bustest.Background(t), "ledger", "get", struct{}{}, &got); err != nil ||
			string(got) != want {
			t.Errorf("settings %q: asked with %s, want %s: %v", text, got, want, err)
		}
		var no *events.Refusal
		if err := b.Services.Request(bustest.Background(t), "ledger", "get", map[string]string{"by": "bob"},
			nil); want != `{}` &&
			(!errors.As(err, &no) || no.Code != 403) {
			t.Errorf("settings %q: asked as bob: %v", text, err)
		}
	}
}

// A handler knows the asker from its context, not from the body.
func TestAHandlerKnowsTheAsker(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := bustest.Outsider(t, s)
	serve(t, b, endpoint("list", func(ctx context.Context, _ []byte) ([]byte, error) {
		return json.Marshal(rpc.AskerOf(ctx))
	}))
	for below, want := range map[string]events.Asker{"": {}, ".ann=20b": {Class: events.ClassPerson, ID: "ann b"},
		".harness.h": {Class: events.ClassHarness, ID: "h"}} {
		m, err := nc.Request("hf.svc.ledger.list"+below, nil, bustest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		var got events.Asker
		if err := json.Unmarshal(m.Data, &got); err != nil || got != want {
			t.Errorf("%q: %+v, want %+v: %v", below, got, want, err)
		}
	}
}
