package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A service handles what was asked of it, and nothing that the broker was made to send in a client's place; it replies
// to inboxes, and to no stream, bucket, service or call of the broker.
func TestServiceHandlesOnlyRequests(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := outsider(t, s)
	mine := events.Ref{Harness: "h", Session: "s"}
	if _, err := b.Append(background(t), mine, events.WriterHarness, 0, []events.Event{fact("e", mine)}); err != nil {
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
		<-handled // those that waited for the service
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
	ask(b.Cell().LogSubject(mine, events.WriterHarness), ended, `[]`) // its acknowledgement
	pushed, err := js.CreatePushConsumer(background(t), "HF_LOG",
		jetstream.ConsumerConfig{Name: "push", DeliverSubject: ended, DeliverGroup: "q",
			AckPolicy: jetstream.AckNonePolicy})
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := js.CreateConsumer(background(t), "HF_LOG",
		jetstream.ConsumerConfig{Name: "pull", AckPolicy: jetstream.AckNonePolicy})
	if err != nil {
		t.Fatal(err)
	}
	ask("$JS.API.CONSUMER.MSG.NEXT.HF_LOG.pull", ended, `{"batch":10}`)
	for name, info := range map[string]func(context.Context) (*jetstream.ConsumerInfo, error){"push": pushed.Info,
		"pull": pulled.Info} {
		natstest.Until(t, name+" to deliver", func() bool {
			i, err := info(background(t))
			return err == nil && i.Delivered.Stream > 0 && i.NumPending == 0
		})
	}
	// A later request on the same subject: the earlier ones are handled by then, or concurrently.
	if _, err := nc.Request(ended, []byte("last"), patience); err != nil {
		t.Fatal(err)
	}
	for body := range handled {
		if body == "last" {
			break
		}
		t.Errorf("handled: %s", body)
	}
	info, err := b.Inspect(background(t))
	if err != nil || info.Streams[0].Msgs != 2 {
		t.Errorf("the log has %d messages, want the 2 that were written: %v", info.Streams[0].Msgs, err)
	}
}

// The subject names the asker: a body that names another one is refused, and one without a name gets it.
func TestSubjectSaysWhoAsks(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, _ := outsider(t, s)
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
		m, err := nc.Request("hf.svc.ledger.answer"+c.below, []byte(c.body), patience)
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
	for _, below := range []string{".a.b", ".harness.h.x", ".harness.=zz"} { // no asker has such a subject: dropped
		short, cancel := context.WithTimeout(background(t), 200*time.Millisecond)
		if m, err := nc.RequestWithContext(short, "hf.svc.ledger.answer"+below, []byte(`{}`)); err == nil {
			t.Errorf("%s: answered %s", below, m.Data)
		}
		cancel()
	}
}

// A broker that has users is asked as the user, and one that has none on the bare verb.
func TestAsksAsItsUser(t *testing.T) {
	who := events.Asker{Class: events.ClassPerson, ID: "ann"}
	for text, want := range map[string]string{"": `{}`,
		"authorization: { users: [ { user: ann, password: pw } ] }": `{"by":"ann"}`} {
		s := natstest.Start(t, natstest.Settings(t, text))
		b, err := bus.Open(background(t), bus.Config{URL: strings.Replace(s.URL(), "//", "//ann:pw@", 1), Asker: who})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Kill)
		serve(t, b, endpoint("get", echo))
		var got json.RawMessage
		if err := b.Request(background(t), "ledger", "get", struct{}{}, &got); err != nil || string(got) != want {
			t.Errorf("settings %q: asked with %s, want %s: %v", text, got, want, err)
		}
		var no *events.Refusal
		if err := b.Request(background(t), "ledger", "get", map[string]string{"by": "bob"}, nil); want != `{}` &&
			(!errors.As(err, &no) || no.Code != 403) {
			t.Errorf("settings %q: asked as bob: %v", text, err)
		}
	}
}

// Hints count only from who may give them: a consumer can deliver to their subjects, too.
func TestHintsThatAStreamDeliversDoNotCount(t *testing.T) {
	s := natstest.Start(t)
	b := natstest.Bus(t, s)
	nc, js := outsider(t, s)
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	others := events.Ref{Harness: "o", Session: "s"}
	alive, nudged := make(chan events.Ref, 100), make(chan uint64, 100)
	err := errors.Join(b.OnProgress(ctx, func(r events.Ref) { alive <- r }),
		b.OnNudge(ctx, "o", func(_ string, seq uint64) {
			nudged <- seq
		}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "X", Subjects: []string{"x.>"},
		AllowDirect: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "x.y", []byte(`{"session":"s","seq":5}`)); err != nil {
		t.Fatal(err)
	}
	for i, to := range []string{b.Cell().ProgressSubject(others), b.Cell().NudgeSubject("o")} {
		c, err := js.CreateConsumer(ctx, "X",
			jetstream.ConsumerConfig{Name: []string{"a", "b"}[i], AckPolicy: jetstream.AckNonePolicy})
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.X."+c.CachedInfo().Name, to,
			[]byte(`{"batch":1}`)); err != nil {
			t.Fatal(err)
		}
		natstest.Until(t, "the consumer to deliver", func() bool {
			info, err := c.Info(ctx)
			return err == nil && info.Delivered.Stream > 0
		})
	}
	// A direct get delivers with the hint's own subject: its headers show that a stream sent it.
	for _, to := range []string{b.Cell().ProgressSubject(others), b.Cell().NudgeSubject("o")} {
		if err := nc.PublishRequest("$JS.API.DIRECT.GET.X", to, []byte(`{"seq":1}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Request("$JS.API.DIRECT.GET.X", []byte(`{"seq":1}`), patience); err != nil {
			t.Fatal(err)
		}
	}
	b.Progress(others)
	b.Nudge(others, 9)
	if r, seq := <-alive, <-nudged; r != others || seq != 9 || len(alive)+len(nudged) > 0 {
		t.Errorf("alive: %v and %d more; nudged about %d and %d more", r, len(alive), seq, len(nudged))
	}
}
