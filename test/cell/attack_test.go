package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/kv"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A permitted client can harm its own sessions and no others.
func TestAttacks(t *testing.T) {
	w := start(t)
	w.unharmed("reply subjects", w.replies)
	w.unharmed("deliveries by the broker", w.deliveries)
	w.unharmed("deliveries to services", w.deliveriesToServices)
	w.unharmed("resets by the broker", w.resets)
	w.unharmed("in another's name", w.inAnothersName)
	w.unharmed("roll-ups", w.rollUps)
	w.unharmed("what others hear", w.eavesdrop)
	w.unharmed("facts that are not the user's to say", w.kinds)
	w.unharmed("the broker's API", w.brokersAPI)
	w.unharmed("acknowledgements", w.acknowledgements)
	w.unharmed("bounds", w.bounds)
	w.unharmed("floods", w.floods)
	w.unharmed("addresses of nodes", w.addresses)
	w.unharmed("without a certificate", w.uncertified)
}

// targets returns subjects at which a message of another user would do harm.
func targets() []string {
	all := []string{"hf.log.other.s.harness", "hf.log.other.s.ledger", "$KV.hf_state.session.other.s",
		"$KV.hf_leases.harness.other.1", "$KV.hf_leases.ticket.other",
		"$O.hf_objects.M.person.bob.x", "hf.timer.retry.other.s", "hf.due.retry.other.s", "hf.feed.session.closed",
		"hf.parked.x.other.s",
		"hf.progress.other.s", "hf.nudge.other", "$JS.ACK.HF_LOG.ledger.1.1.1.1.0",
		"$JS.ACK.KV_hf_state.retry.1.1.1.1.0", "$SRV.PING", "_R_.x"}
	for _, s := range streams {
		all = append(all, "$JS.API.STREAM.PURGE."+s, "$JS.API.STREAM.DELETE."+s, "$JS.API.STREAM.UPDATE."+s)
	}
	for _, who := range []string{"", ".bob", ".root", ".harness.other"} {
		all = append(all, "hf.svc.ledger.close"+who, "hf.svc.ledger.rebuild"+who, "hf.svc.compaction.send"+who)
	}
	return all
}

// attempt is a request that a user may send, and that gets a reply.
type attempt struct{ subject, body string }

// asks returns requests of a user that the broker or a service answers.
func asks(class string) []attempt {
	all := []attempt{{"$JS.API.INFO", ""}, {"$JS.API.STREAM.INFO.HF_LOG", ""},
		{"$JS.API.STREAM.MSG.GET.HF_LOG", `{"seq":1}`},
		{"$JS.API.STREAM.MSG.GET.KV_hf_state", `{"last_by_subj":"$KV.hf_state.session.other.s"}`}}
	if class == events.ClassHarness {
		return append(all, attempt{"hf.log.my-agent.replies.harness", `[]`},
			attempt{"$KV.hf_leases.harness.my-agent.9", `{}`},
			attempt{"hf.svc.compaction.send.harness.my-agent",
				`{"harness":"my-agent","session":"s","message":"m","content":"x"}`})
	}
	return append(all, attempt{"hf.svc.ledger.get.ann", `{"harness":"other","session":"s"}`}, attempt{"$SRV.INFO", ""},
		attempt{"$SRV.PING.holdfast-ledger", ""},
		attempt{"hf.svc.ledger.configure.ann",
			`{"harness":"my-agent","session":"s","policy":{"auto_retry":true},"by":"ann"}`})
}

// replies: nothing is published to the reply subject of a request unless its sender could publish there.
func (w *world) replies(t *testing.T) {
	for a, class := range map[*account]string{w.harness(): events.ClassHarness, w.ann(): events.ClassPerson} {
		for _, ask := range asks(class) {
			if _, err := a.Request(ask.subject, []byte(ask.body), patience); err != nil {
				t.Errorf("%s may not ask %s: %v", a.name, ask.subject, err)
			}
			for _, to := range targets() {
				a.send(t, ask.subject, to, ask.body)
			}
		}
		a.done(t)
	}
}

// deliveries: a consumer on a user's own messages, or a pull, may name any subject as its delivery subject.
func (w *world) deliveries(t *testing.T) {
	for a, filter := range map[*account]string{w.harness(): "hf.log.my-agent.>", w.ann(): "hf.log.my-agent.s.*"} {
		for i, to := range targets() {
			for j, group := range []string{"", "q"} {
				name := fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(a.name, ".", ""), i, j)
				config := map[string]any{"name": name, "filter_subject": filter, "ack_policy": "none",
					"deliver_subject": to, "inactive_threshold": int64(time.Minute)}
				if group != "" {
					config["deliver_group"] = group
				}
				req, err := json.Marshal(map[string]any{"stream_name": "HF_LOG", "action": "create", "config": config})
				if err != nil {
					t.Fatal(err)
				}
				a.send(t, "$JS.API.CONSUMER.CREATE.HF_LOG."+name+"."+filter, a.NewInbox(), string(req))
			}
		}
		pull := strings.ReplaceAll(a.name, ".", "") + "-pull"
		config := map[string]any{"name": pull, "filter_subject": filter, "ack_policy": "none",
			"inactive_threshold": int64(time.Minute)}
		var made struct{ Name string }
		if err := a.api(t, "CONSUMER.CREATE.HF_LOG."+pull+"."+filter,
			map[string]any{"stream_name": "HF_LOG", "action": "create", "config": config}, &made); err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		for _, to := range targets() {
			a.send(t, "$JS.API.CONSUMER.MSG.NEXT.HF_LOG."+pull, to, `{"batch":1,"no_wait":true}`)
		}
		a.done(t)
	}
	h := w.harness() // a message to deliver, which would be a request to a service
	for range 20 {
		if _, err := h.Request("hf.log.my-agent.replies.harness",
			[]byte(`{"harness":"other","session":"s","reason":"archived","by":"bob"}`), patience); err != nil {
			t.Fatal(err)
		}
	}
}

// deliveriesToServices: no consumer of a harness delivers to the subscriptions of services. The broker begins a
// delivery only to a subscription that has exactly the delivery subject and the group.
func (w *world) deliveriesToServices(t *testing.T) {
	h, root := w.harness(), w.root()
	const filter = "hf.log.my-agent.flood.harness"
	if _, err := h.Request(filter, []byte(`{}`), patience); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{} // of the consumers that the operator has seen
	for _, service := range services {
		for _, to := range []string{"hf.svc." + service + ".get", "hf.svc." + service + ".send", "hf.svc." + service +
			".report", "hf.svc." + service + ".now", "hf.svc." + service + ".get.ann", "$SRV.PING", "$SRV.STATS",
			"$SRV.INFO.holdfast-" + service} {
			for _, group := range []string{"", "q"} {
				name := fmt.Sprint("to-services-", len(names))
				config := map[string]any{"name": name, "filter_subject": filter, "ack_policy": "none",
					"deliver_subject": to, "deliver_group": group, "inactive_threshold": int64(time.Minute)}
				var made struct{ Name string }
				if err := h.api(t, "CONSUMER.CREATE.HF_LOG."+name+"."+filter,
					map[string]any{"stream_name": "HF_LOG", "action": "create", "config": config}, &made); err != nil {
					t.Fatal(err)
				}
				names[name] = false
			}
		}
	}
	natstest.Until(t, "all consumers to be listed", func() bool {
		for offset, total := 0, 1; offset < total; {
			list := consumers(t, root, offset)
			for _, c := range list.Consumers {
				if _, own := names[c.Name]; own {
					names[c.Name] = true
					if c.PushBound || c.Delivered.Consumer > 0 {
						t.Fatalf("%s is active: it delivers to %s, group %q", c.Name, c.Config.DeliverSubject,
							c.Config.DeliverGroup)
					}
				}
			}
			if len(list.Consumers) == 0 {
				return false
			}
			offset, total = offset+len(list.Consumers), list.Total
		}
		return !slices.Contains(slices.Collect(maps.Values(names)), false)
	})
}

// listed is a page of the consumers of the log.
type listed struct {
	Total     int
	Consumers []jetstream.ConsumerInfo
}

func consumers(t *testing.T, operator *account, offset int) listed {
	t.Helper()
	var page listed
	if err := operator.api(t, "CONSUMER.LIST.HF_LOG", map[string]int{"offset": offset}, &page); err != nil {
		t.Fatal(err)
	}
	return page
}

// resets: the broker delivers messages of a harness to the literal subjects of the consumers of services. A push
// consumer is active only if a subscription has exactly its delivery subject, so these are the ones that arrive. The
// services move their consumers back: a commit of another harness is folded, and each consumer is within its stream.
func (w *world) resets(t *testing.T) {
	h := w.harness()
	for i, body := range []string{`{"seq":1000000}`, `{"seq":1}`, `{"group":"active"}`,
		`{"batch":1,"expires":1000000000,"group":"active"}`} {
		subject := fmt.Sprintf("hf.log.my-agent.resets%d.harness", i)
		if _, err := h.Request(subject, []byte(body), patience); err != nil {
			t.Fatal(err)
		}
		for j, d := range durables {
			for k, verb := range []string{"RESET", "UNPIN", "MSG.NEXT"} {
				name := fmt.Sprintf("resets-%d-%d-%d", i, j, k)
				config := map[string]any{"name": name, "filter_subject": subject, "ack_policy": "none",
					"deliver_subject": "$JS.API.CONSUMER." + verb + "." + d, "inactive_threshold": int64(time.Minute)}
				var made struct{ Name string }
				if err := h.api(t, "CONSUMER.CREATE.HF_LOG."+name+"."+subject,
					map[string]any{"stream_name": "HF_LOG", "action": "create", "config": config}, &made); err != nil {
					t.Fatal(err)
				}
			}
		}
		r := events.Ref{Harness: attacker, Session: fmt.Sprint("after-resets", i)}
		if _, err := h.Request("hf.log."+r.Harness+"."+r.Session+".harness", []byte(fact(&events.Table()[0], r)),
			patience); err != nil {
			t.Fatal(err)
		}
		natstest.Until(t, r.String()+" to have a document", func() bool {
			_, err := w.victim.KV.Load(t.Context(), kv.State, events.SessionKey(r))
			return err == nil
		})
	}
}

// durables are the consumers of services.
var durables = []string{"HF_LOG.ledger", "KV_hf_state.retry", "KV_hf_state.compaction", "KV_hf_state.reconciler",
	"HF_TIMERS.retry-due", "HF_TIMERS.compaction-due", "HF_TIMERS.reconciler-due"}

// inAnothersName: the subject names the asker, and no user may publish to the subject of another asker.
func (w *world) inAnothersName(t *testing.T) {
	ann, h := w.ann(), w.harness()
	for a, subjects := range map[*account][]string{
		ann: {"hf.svc.ledger.close", "hf.svc.ledger.close.bob", "hf.svc.ledger.close.root", "hf.svc.ledger.rebuild.ann",
			"hf.svc.reconciler.sweep.ann",
			"hf.svc.ledger.rebuild.root", "hf.svc.compaction.send.harness.other"},
		h: {"hf.svc.ledger.close", "hf.svc.ledger.close.ann", "hf.svc.ledger.close.harness.my-agent",
			"hf.svc.compaction.send", "hf.svc.compaction.send.harness.other",
			"hf.svc.compaction.send.my-agent"},
	} {
		before := a.denied.Load()
		for _, s := range subjects {
			a.send(t, s, a.NewInbox(), `{"harness":"other","session":"s","reason":"archived","by":"`+a.name+`"}`)
		}
		a.done(t)
		w.refused(t, a, before, len(subjects))
	}
	for _, c := range []struct {
		a             *account
		subject, body string
	}{
		{ann, "hf.svc.ledger.close.ann", `{"harness":"other","session":"s","reason":"archived","by":"bob"}`},
		{ann, "hf.svc.compaction.send.ann", `{"harness":"other","session":"s","message":"m","content":"x","by":"bob"}`},
		{h, "hf.svc.compaction.send.harness.my-agent",
			`{"harness":"other","session":"s","message":"m","content":"x","by":"bob"}`},
	} {
		m, err := c.a.Request(c.subject, []byte(c.body), patience)
		if err != nil || m.Header.Get("Nats-Service-Error-Code") != "403" {
			t.Errorf("%s %s: %v %+v", c.subject, c.body, err, m)
		}
	}
}

// refused waits until the broker has refused this many messages of an account.
func (w *world) refused(t *testing.T, a *account, before int64, want int) {
	t.Helper()
	natstest.Until(t, fmt.Sprintf("%s to be refused %d times", a.name, want), func() bool {
		return a.denied.Load()-before >= int64(want)
	})
	if n := a.denied.Load() - before; n != int64(want) {
		t.Errorf("%s was refused %d times, want %d", a.name, n, want)
	}
}

// rollUps: a roll-up header on a user's own subject affects no other subject.
func (w *world) rollUps(t *testing.T) {
	for a, subjects := range map[*account][]string{
		w.harness(): {"$KV.hf_leases.harness.my-agent.9", "$KV.hf_leases.ticket.my-agent", "hf.log.my-agent.s.harness",
			"$O.hf_objects.C.harness.my-agent.x", "$O.hf_objects.M.harness.my-agent.x"},
		w.ann(): {"$O.hf_objects.C.person.ann.x", "$O.hf_objects.M.person.ann.x"},
	} {
		for _, s := range subjects {
			for _, h := range [][]string{{"Nats-Rollup", "all"}, {"Nats-Rollup", "sub"},
				{"KV-Operation", "PURGE", "Nats-Rollup", "all"},
				{"Nats-Schedule", "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target",
					"$KV.hf_leases.harness.other.1"}} {
				m := &nats.Msg{Subject: s, Header: nats.Header{}}
				for i := 0; i < len(h); i += 2 {
					m.Header[h[i]] = []string{h[i+1]}
				}
				answer, err := a.RequestMsg(m, patience)
				if err != nil || !strings.Contains(string(answer.Data), `"error"`) {
					t.Errorf("%s with %v: %v %+v", s, h, err, answer)
				}
			}
		}
	}
}

// eavesdrop: no user receives messages to others.
func (w *world) eavesdrop(t *testing.T) {
	for _, a := range []*account{w.harness(), w.ann(), w.root()} {
		subjects := []string{">", "_INBOX.>", "_INBOX.hf.>", "_INBOX.hf.person.bob.>", "_INBOX.hf.harness.other.>",
			"_INBOX.hf.service.ledger.>", "_R_.>", "hf.>", "hf.log.>",
			"hf.nudge.other", "hf.nudge.*", "hf.progress.>", "hf.svc.>", "hf.svc.ledger.answer", "$KV.>", "$O.>",
			"$JS.>", "$JS.EVENT.>", "$SRV.PING", "$SYS.>"}
		before := a.denied.Load()
		for _, s := range subjects {
			if _, err := a.SubscribeSync(s); err != nil {
				t.Fatal(err)
			}
		}
		a.done(t)
		w.refused(t, a, before, len(subjects))
	}
}

// kinds takes from the table of kinds every fact that a user may not append. The broker refuses it under the name of a
// writer that may append it; under the user's own name, if it has one, the fact does not count.
func (w *world) kinds(t *testing.T) {
	users := map[*account]events.Writer{w.harness(): events.WriterHarness, w.ann(): "", w.root(): ""}
	for _, s := range services {
		users[w.login(events.ServiceName(s), events.ClassService, s)] = events.Writer(s)
	}
	n := 0
	for a, own := range users {
		before, want := a.denied.Load(), 0
		for _, spec := range events.Table() {
			for _, writer := range events.Writers() {
				for _, r := range []events.Ref{mine, theirs} {
					if writer == own && (own != events.WriterHarness || r == mine) {
						continue
					}
					a.send(t, "hf.log."+r.Harness+"."+r.Session+"."+string(writer), "", fact(&spec, r))
					want++
				}
			}
		}
		a.done(t)
		w.refused(t, a, before, want)
		n += want
	}
	h, wrong := w.harness(), 0
	for _, spec := range events.Table() {
		if !slices.Contains(spec.By, events.WriterHarness) {
			wrong++
			if _, err := h.Request("hf.log."+attacker+".roles.harness",
				[]byte(fact(&spec, events.Ref{Harness: attacker, Session: "roles"})), patience); err != nil {
				t.Fatal(err)
			}
		}
	}
	ann := w.ann()
	natstest.Until(t, fmt.Sprintf("%d facts to be parked", wrong), func() bool {
		m, err := ann.Request("hf.svc.ledger.get.ann", []byte(`{"harness":"my-agent","session":"roles"}`), patience)
		var doc struct {
			Document struct{ Commits, Parked int }
		}
		return err == nil && json.Unmarshal(m.Data, &doc) == nil && doc.Document.Commits == wrong &&
			doc.Document.Parked == wrong
	})
	if n < 1000 || wrong < 10 {
		t.Errorf("%d acts, and %d kinds: want what the table has", n, wrong)
	}
}

// fact returns a commit of one fact of this kind.
func fact(spec *events.Spec, r events.Ref) string {
	body, err := json.Marshal([]map[string]any{{"specversion": "1.0", "id": "x-" + string(spec.Kind),
		"source": "/harness/" + r.Harness + "/1", "type": "holdfast." + string(spec.Kind),
		"subject": "s", "time": time.Now().UTC(), "session": r.Session, "epoch": 1, "data": spec.Zero}})
	if err != nil {
		panic(err) // a fact of the table always encodes
	}
	return string(body)
}

// brokersAPI: no user changes streams, or the consumers of services.
func (w *world) brokersAPI(t *testing.T) {
	for _, a := range []*account{w.harness(), w.ann(), w.root()} {
		var subjects []string
		for _, s := range streams {
			for _, verb := range []string{"CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE", "SNAPSHOT", "RESTORE",
				"LEADER.STEPDOWN", "PEER.REMOVE"} {
				subjects = append(subjects, "$JS.API.STREAM."+verb+"."+s)
			}
		}
		for _, d := range []string{"HF_LOG.ledger", "KV_hf_state.retry", "KV_hf_state.compaction",
			"KV_hf_state.reconciler", "HF_TIMERS.retry-due"} {
			for _, verb := range []string{"CREATE", "DURABLE.CREATE", "DELETE", "MSG.NEXT", "RESET", "UNPIN", "PAUSE",
				"LEADER.STEPDOWN"} {
				subjects = append(subjects, "$JS.API.CONSUMER."+verb+"."+d)
			}
		}
		subjects = append(subjects, "$JS.API.ACCOUNT.PURGE.HOLDFAST", "$JS.API.META.LEADER.STEPDOWN",
			"$SYS.REQ.SERVER.PING", "$JS.API.STREAM.CREATE.MINE")
		before := a.denied.Load()
		for _, s := range subjects {
			a.send(t, s, a.NewInbox(), `{}`)
		}
		a.done(t)
		w.refused(t, a, before, len(subjects))
	}
}

// acknowledgements: no user speaks to the consumer of a service. An acknowledgement can pull messages (+NXT), and take
// others from its service (+ACK, +TERM). A person acknowledges messages of the feed: a subject of that grant's pattern
// must not be one of another consumer.
func (w *world) acknowledgements(t *testing.T) {
	for _, a := range []*account{w.harness(), w.ann(), w.root()} {
		before, want := a.denied.Load(), 0
		for _, d := range durables {
			for _, at := range []string{d + ".HF_FEED.1.1.1.1", d + ".1.1.1.1.1", "_.HF_FEED." + d + ".1.1.1.1.1",
				"HF_FEED.x." + d + ".1.1.1.1.1", "_.x." + d + ".HF_FEED.1.1.1.1"} {
				for _, body := range []string{`+NXT {"batch":100,"expires":3600000000000,"group":"active"}`, "+ACK",
					"+TERM"} {
					a.send(t, "$JS.ACK."+at, a.NewInbox(), body)
					want++
				}
			}
		}
		a.done(t)
		w.refused(t, a, before, want)
	}
	for _, a := range []*account{w.harness(), w.ann()} { // the pin, with which the ledger's messages can be pulled
		before := a.denied.Load()
		a.send(t, "$JS.API.CONSUMER.INFO.HF_LOG.ledger", a.NewInbox(), "")
		a.done(t)
		w.refused(t, a, before, 1)
	}
}

// bounds: the streams of a deployed cell have limits, and a user's messages have limits.
func (w *world) bounds(t *testing.T) {
	for stream, bytes := range map[string]bool{"HF_LOG": true, "OBJ_hf_objects": true, "HF_FEED": true,
		"KV_hf_leases": false, "KV_hf_state": false, "HF_TIMERS": false} {
		var info struct {
			Config struct {
				MaxBytes   int64 `json:"max_bytes"`
				MaxMsgSize int32 `json:"max_msg_size"`
			}
		}
		if err := w.service.api(t, "STREAM.INFO."+stream, struct{}{}, &info); err != nil ||
			bytes && info.Config.MaxBytes <= 0 || stream != "HF_FEED" && info.Config.MaxMsgSize <= 0 {
			t.Errorf("%s: %+v %v", stream, info.Config, err)
		}
	}
	for a, subjects := range map[*account][]string{w.harness(): {"$KV.hf_leases.harness.my-agent.9",
		"hf.log.my-agent.s.harness"}, w.ann(): {"$O.hf_objects.M.person.ann.x"}} {
		for _, s := range subjects {
			m, err := a.Request(s, make([]byte, 600<<10), patience)
			if err != nil || !strings.Contains(string(m.Data), "message size exceeds maximum") {
				t.Errorf("%s: 600 KiB are taken: %v %+v", s, err, m)
			}
		}
	}
}

// floods: leases of one harness do not fill the store, which all sessions share. The leases of others stay.
func (w *world) floods(t *testing.T) {
	const more = 3000 // than a harness may have
	h, before := w.harness(), w.leases(t)
	for n := range leasesMax + more {
		if err := h.Publish(fmt.Sprintf("$KV.hf_leases.harness.my-agent.flood%d", n), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	last := fmt.Sprintf("$KV.hf_leases.harness.my-agent.flood%d", leasesMax+more)
	if m, err := h.Request(last, []byte("{}"), patience); err != nil || strings.Contains(string(m.Data), `"error"`) {
		t.Fatalf("%v %+v", err, m)
	}
	natstest.Until(t, "the oldest leases to be removed", func() bool { return w.leases(t) <= before+leasesMax })
	if _, err := w.victim.KV.Load(t.Context(), kv.Leases, events.HarnessLeaseKey(victim, "1")); err != nil {
		t.Errorf("the lease of another harness: %v", err)
	}
	for n, want := range map[int]error{0: bus.ErrNotFound, leasesMax + more: nil} {
		key := events.HarnessLeaseKey(attacker, fmt.Sprint("flood", n))
		if _, err := w.victim.KV.Load(t.Context(), kv.Leases, key); !errors.Is(err, want) {
			t.Errorf("lease %d of the flood: %v, want %v", n, err, want)
		}
	}
}

// leasesMax is how many leases the reconciler leaves to a harness.
const leasesMax = 10_000

// leases returns how many keys the bucket of leases has.
func (w *world) leases(t *testing.T) int {
	t.Helper()
	var info struct{ State struct{ Messages int } }
	if err := w.service.api(t, "STREAM.INFO.KV_hf_leases", struct{}{}, &info); err != nil {
		t.Fatal(err)
	}
	return info.State.Messages
}

// addresses: a client that knows one node does not learn the addresses of the others.
func (w *world) addresses(t *testing.T) {
	one, _, _ := strings.Cut(w.url("ann"), ",")
	nc, err := nats.Connect(one,
		append(w.files("ann"), nats.CustomInboxPrefix(events.Inbox("hf", events.ClassPerson, "ann")))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if found := nc.DiscoveredServers(); len(found) > 0 {
		t.Errorf("a client received the addresses %v", found)
	}
}

// uncertified: a password is not enough to log in.
func (w *world) uncertified(t *testing.T) {
	nc, err := nats.Connect(w.url("ann"), nats.RootCAs(w.folder("ann")+"/ca.crt"))
	if err == nil {
		nc.Close()
		t.Error("a client without a certificate is connected")
	}
}
