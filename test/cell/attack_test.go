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
	w.unharmed("deliveries to a harness", w.deliveriesToAHarness)
	w.unharmed("deliveries that move", w.deliveriesThatMove)
	w.unharmed("deliveries of a person that move", w.deliveriesOfAPersonThatMove)
	w.unharmed("resets by the broker", w.resets)
	w.unharmed("resets with the names", w.resetsWithTheNames)
	w.unharmed("traces", w.traces)
	w.unharmed("in another's name", w.inAnothersName)
	w.unharmed("roll-ups", w.rollUps)
	w.unharmed("what others hear", w.eavesdrop)
	w.unharmed("facts that are not the user's to say", w.kinds)
	w.unharmed("the broker's API", w.brokersAPI)
	w.unharmed("acknowledgements", w.acknowledgements)
	w.unharmed("bounds", w.bounds)
	w.unharmed("lists of filters", w.filters)
	w.unharmed("floods", w.floods)
	w.unharmed("addresses of nodes", w.addresses)
	w.unharmed("without a certificate", w.uncertified)
	t.Run("then a death is noticed", func(t *testing.T) {
		if took := w.noticed(t); took > noticedMax {
			t.Errorf("it took %s", took)
		}
	})
}

// targets returns subjects at which a message of another user would do harm.
func targets() []string {
	all := []string{"hf.log.other.s.harness", "hf.log.other.s.ledger", "$KV.hf_state.session.other.s",
		"$KV.hf_leases.harness.other.1", "$KV.hf_leases.ticket.other",
		"$O.hf_objects.M.person.bob.x", "hf.timer.retry.other.s", "hf.due.retry.other.s", "hf.feed.session.closed",
		"hf.parked.x.other.s",
		"hf.progress.other.s", "hf.nudge.other", "$JS.ACK.HF_LOG.ledger.1.1.1.1.0",
		"$JS.ACK.KV_hf_state.retry.1.1.1.1.0", "$SRV.PING", "_R_.x", "hf.broker.connections.PING",
		"hf.broker.account.JSZ", "hf.broker.account.INFO",
		"$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.ACCOUNT.PING.STATZ", "$SYS.REQ.SERVER.PING.CONNZ",
		"$SYS.REQ.USER.INFO"}
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

// reads returns requests of every user that the broker answers.
func reads() []attempt {
	return []attempt{{"$JS.API.INFO", ""}, {"$JS.API.STREAM.INFO.HF_LOG", ""},
		{"$JS.API.STREAM.MSG.GET.HF_LOG", `{"seq":1}`}}
}

// asks returns requests of a user that the broker or a service answers.
func asks(class string) []attempt {
	all := append(reads(),
		attempt{"$JS.API.STREAM.MSG.GET.KV_hf_state", `{"last_by_subj":"$KV.hf_state.session.other.s"}`})
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
	for a, asks := range map[*account][]attempt{w.harness(): asks(events.ClassHarness),
		w.ann(): asks(events.ClassPerson), w.keeper(): reads()} {
		for _, ask := range asks {
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
	for a, filter := range map[*account]string{w.harness(): "hf.log.my-agent.>", w.ann(): "hf.log.my-agent.s.*",
		w.keeper(): "hf.log.my-agent.>"} {
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
	// a message to deliver, which would be a request to a service
	h := w.harness()
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
	// of the consumers that the operator has seen
	names := map[string]bool{}
	for _, service := range services {
		for _, to := range []string{"hf.svc." + service + ".get", "hf.svc." + service + ".send", "hf.svc." + service +
			".report", "hf.svc." + service + ".now", "hf.svc." + service + ".get.ann", "$SRV.PING", "$SRV.STATS",
			"$SRV.INFO.holdfast-" + service, "hf.broker.connections.PING", "hf.broker.account.JSZ"} {
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
		for _, c := range consumers(t, root, "HF_LOG") {
			if _, own := names[c.Name]; own {
				names[c.Name] = true
				if c.PushBound || c.Delivered.Consumer > 0 {
					t.Fatalf("%s is active: it delivers to %s, group %q", c.Name, c.Config.DeliverSubject,
						c.Config.DeliverGroup)
				}
			}
		}
		return !slices.Contains(slices.Collect(maps.Values(names)), false)
	})
}

// deliveriesToAHarness: no consumer of a harness delivers to another harness, in whose account the nudges arrive.
func (w *world) deliveriesToAHarness(t *testing.T) {
	const filter = "hf.log.my-agent.nudges.harness"
	h, root, other := w.harness(), w.root(), w.login("harness-"+victim, events.ClassHarness, victim)
	if _, err := h.Request(filter, []byte(`{}`), patience); err != nil {
		t.Fatal(err)
	}
	nudged := make(chan *nats.Msg, 10)
	if _, err := other.ChanSubscribe("hf.*."+victim, nudged); err != nil {
		t.Fatal(err)
	}
	other.done(t)
	var made jetstream.ConsumerInfo
	if err := h.api(t, "CONSUMER.CREATE.HF_LOG.to-a-harness."+filter,
		map[string]any{"stream_name": "HF_LOG", "action": "create", "config": map[string]any{"name": "to-a-harness",
			"filter_subject": filter, "ack_policy": "none", "deliver_subject": "hf.nudge." + victim,
			"inactive_threshold": int64(time.Minute)}}, &made); err != nil {
		t.Fatal(err)
	}
	ledger := w.login(events.ServiceName("ledger"), events.ClassService, "ledger")
	// a subscription reaches the other nodes a little later
	natstest.Until(t, "the nudge of a service", func() bool {
		ledger.send(t, "hf.nudge."+victim, "", `{"session":"s","seq":1}`)
		ledger.done(t)
		return len(nudged) > 0
	})
	natstest.Until(t, "the consumer to be listed", func() bool {
		all := consumers(t, root, "HF_LOG")
		i := slices.IndexFunc(all, func(c jetstream.ConsumerInfo) bool { return c.Name == made.Name })
		if i >= 0 && (all[i].PushBound || all[i].Delivered.Consumer > 0) {
			t.Errorf("active: it delivers to %s", all[i].Config.DeliverSubject)
		}
		return i >= 0
	})
	for len(nudged) > 0 {
		if m := <-nudged; string(m.Data) != `{"session":"s","seq":1}` || m.Reply != "" {
			t.Errorf("a stream delivered %q to %s, reply %q", m.Data, m.Subject, m.Reply)
		}
	}
}

// deliveriesThatMove: a consumer that is active can move to another delivery subject while messages are pending, and
// there the broker takes any subscription, also one with a wildcard, for a reason to deliver. So no subscription of a
// harness makes a consumer active in the first place, whatever its text is. The broker also refuses to move a consumer
// from a subject that the cell's account imports.
func (w *world) deliveriesThatMove(t *testing.T) {
	const filter = "hf.log.my-agent.moves.harness"
	h, root := w.harness(), w.root()
	for range 4 {
		if _, err := h.Request(filter, []byte(strings.Repeat(" ", 300<<10)+"[]"), patience); err != nil {
			t.Fatal(err)
		}
	}
	literal := []string{"hf.a.my-agent", "hf.nudge.my-agent", "_INBOX.hf.harness.my-agent.x", "hf.svc.my-agent"}
	moved := []string{"hf.svc.ledger.get", "hf.nudge." + victim, "hf.timer.retry.other.s",
		"$KV.hf_leases.harness.other.2"}
	names := map[string]bool{}
	move := func(name, to string) error {
		return h.api(t, "CONSUMER.CREATE.HF_LOG."+name+"."+filter,
			map[string]any{"stream_name": "HF_LOG", "config": map[string]any{"name": name, "filter_subject": filter,
				"ack_policy": "none", "deliver_subject": to, "num_replicas": 1, "rate_limit_bps": 80_000,
				"inactive_threshold": int64(time.Minute)}}, new(struct{ Name string }))
	}
	for i, from := range literal {
		sub, err := h.SubscribeSync(from)
		if err != nil {
			t.Fatal(err)
		}
		h.done(t)
		for j, to := range moved {
			name := fmt.Sprintf("moves-%d-%d", i, j)
			names[name] = false
			if err := move(name, from); err != nil {
				t.Fatal(err)
			}
			w.never(t, root, name)
			if err := sub.Unsubscribe(); err != nil {
				t.Fatal(err)
			}
			h.done(t)
			if err := move(name, to); err != nil && !strings.Contains(err.Error(), "already in use") {
				t.Fatalf("%s to %s: %v", name, to, err)
			}
			if sub, err = h.SubscribeSync(from); err != nil {
				t.Fatal(err)
			}
			h.done(t)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
	for name := range names {
		w.never(t, root, name)
	}
}

// deliveriesOfAPersonThatMove: a watch is a push consumer to the inbox of a person, so it becomes active there. While
// messages are pending, it cannot move to another delivery subject, even if the person has unsubscribed.
func (w *world) deliveriesOfAPersonThatMove(t *testing.T) {
	const filter = "hf.log.my-agent.watched.harness"
	h, ann, root := w.harness(), w.ann(), w.root()
	const stored = 6
	for range stored {
		if _, err := h.Request(filter, []byte(strings.Repeat(" ", 300<<10)+"{}"), patience); err != nil {
			t.Fatal(err)
		}
	}
	for i, to := range []string{"hf.nudge." + victim, "hf.timer.retry.other.s", "$KV.hf_leases.harness.other.2",
		"$JS.API.STREAM.PURGE.KV_hf_leases"} {
		name, inbox := fmt.Sprint("watch-", i), ann.NewInbox()
		// the first MiB at once, then each message after some seconds
		deliver := func(to string) error {
			return ann.api(t, "CONSUMER.CREATE.HF_LOG."+name+"."+filter,
				map[string]any{"stream_name": "HF_LOG", "config": map[string]any{"name": name, "filter_subject": filter,
					"ack_policy": "none", "deliver_subject": to, "num_replicas": 1, "rate_limit_bps": 800_000,
					"inactive_threshold": int64(time.Minute)}}, new(struct{ Name string }))
		}
		first := make(chan *nats.Msg, stored)
		sub, err := ann.ChanSubscribe(inbox, first)
		if err != nil {
			t.Fatal(err)
		}
		ann.done(t)
		if err := deliver(inbox); err != nil {
			t.Fatal(err)
		}
		natstest.Until(t, "the first delivery to "+inbox, func() bool { return len(first) > 0 })
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		ann.done(t)
		if err := deliver(to); err == nil {
			t.Errorf("a person's consumer moves to %s", to)
			w.delivers(t, root, name, stored)
		} else if !strings.Contains(err.Error(), "already in use") {
			t.Fatalf("%s to %s: %v", name, to, err)
		}
	}
}

// delivers waits until a consumer has delivered so many messages.
func (w *world) delivers(t *testing.T, operator *account, name string, want uint64) {
	t.Helper()
	natstest.Until(t, name+" to have delivered", func() bool {
		all := consumers(t, operator, "HF_LOG")
		i := slices.IndexFunc(all, func(c jetstream.ConsumerInfo) bool { return c.Name == name })
		return i >= 0 && all[i].Delivered.Consumer >= want
	})
}

// never checks that a consumer is listed, not bound to a subscription, and has delivered nothing.
func (w *world) never(t *testing.T, operator *account, name string) {
	t.Helper()
	natstest.Until(t, name+" to be listed", func() bool {
		all := consumers(t, operator, "HF_LOG")
		i := slices.IndexFunc(all, func(c jetstream.ConsumerInfo) bool { return c.Name == name })
		if i >= 0 && (all[i].PushBound || all[i].Delivered.Consumer > 0) {
			t.Fatalf("%s is active: it delivers to %s", name, all[i].Config.DeliverSubject)
		}
		return i >= 0
	})
}

// consumers returns the consumers of a stream. The list has pages, and it is not complete while consumers come and go.
func consumers(t *testing.T, operator *account, stream string) []jetstream.ConsumerInfo {
	t.Helper()
	var all []jetstream.ConsumerInfo
	for {
		var page struct {
			Total     int
			Consumers []jetstream.ConsumerInfo
		}
		if err := operator.api(t, "CONSUMER.LIST."+stream, map[string]int{"offset": len(all)}, &page); err != nil {
			t.Fatal(err)
		}
		if all = append(all, page.Consumers...); len(page.Consumers) == 0 || len(all) >= page.Total {
			return all
		}
	}
}

// resets: the broker delivers messages of a harness to the literal subjects of the consumers of services. A push
// consumer is active only if a subscription has exactly its delivery subject, so these are the ones that arrive. (UNPIN
// has a subscription with a wildcard in nats-server 2.15.2.) A harness knows the services, but not the key from which
// the names of their consumers follow, so none of its consumers is active.
func (w *world) resets(t *testing.T) {
	h, root := w.harness(), w.root()
	for i, body := range resetting {
		w.resetAll(t, h, fmt.Sprint("guessed", i), body, durables)
	}
	natstest.Until(t, "all consumers to be listed", func() bool {
		seen := 0
		for _, c := range consumers(t, root, "HF_LOG") {
			if !strings.HasPrefix(c.Name, "guessed") {
				continue
			}
			if seen++; c.PushBound || c.Delivered.Consumer > 0 {
				t.Fatalf("%s is active: it delivers to %s", c.Name, c.Config.DeliverSubject)
			}
		}
		return seen == len(resetting)*len(durables)*len(resettingVerbs)
	})
}

// resetsWithTheNames: also if a harness learns the names of the services' consumers, the services move them back: a
// commit of another harness is folded, and each consumer is within its stream.
func (w *world) resetsWithTheNames(t *testing.T) {
	h, root := w.harness(), w.root()
	var names []string
	for _, d := range durables {
		stream, durable, _ := strings.Cut(d, ".")
		for _, c := range consumers(t, root, stream) {
			if digits, ours := strings.CutPrefix(c.Name, durable+"-"); ours && len(digits) == 24 {
				names = append(names, stream+"."+c.Name)
			}
		}
	}
	if len(names) != len(durables) {
		t.Fatalf("the consumers of services are %q", names)
	}
	for i, body := range resetting {
		w.resetAll(t, h, fmt.Sprint("known", i), body, names)
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

// resetAll stores a message and makes consumers that deliver it to these consumers of services.
func (w *world) resetAll(t *testing.T, h *account, name, body string, to []string) {
	t.Helper()
	subject := "hf.log.my-agent." + name + ".harness"
	if _, err := h.Request(subject, []byte(body), patience); err != nil {
		t.Fatal(err)
	}
	for j, d := range to {
		for k, verb := range resettingVerbs {
			made := fmt.Sprintf("%s-%d-%d", name, j, k)
			config := map[string]any{"name": made, "filter_subject": subject, "ack_policy": "none",
				"deliver_subject": "$JS.API.CONSUMER." + verb + "." + d, "inactive_threshold": int64(time.Minute)}
			if err := h.api(t, "CONSUMER.CREATE.HF_LOG."+made+"."+subject,
				map[string]any{"stream_name": "HF_LOG", "action": "create", "config": config},
				new(struct{ Name string })); err != nil {
				t.Fatal(err)
			}
		}
	}
}

var (
	// durables are the consumers of services, without the part of the name that follows from a key.
	durables = []string{"HF_LOG.ledger", "KV_hf_state.retry", "KV_hf_state.compaction", "KV_hf_state.reconciler",
		"HF_TIMERS.retry-due", "HF_TIMERS.compaction-due", "HF_TIMERS.reconciler-due"}
	// resetting are messages that are requests to a consumer, and resettingVerbs what they request.
	resetting = []string{`{"seq":1000000}`, `{"seq":1}`, `{"group":"active"}`,
		`{"batch":1,"expires":1000000000,"group":"active"}`}
	resettingVerbs = []string{"RESET", "UNPIN", "MSG.NEXT"}
)

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
		{h, "hf.svc.compaction.send.harness.my-agent",
			`{"harness":"other","session":"s","message":"m","content":"x","by":"my-agent"}`},
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
	for _, a := range []*account{w.harness(), w.ann(), w.root(), w.keeper(), w.restorer()} {
		subjects := []string{">", "_INBOX.>", "_INBOX.hf.>", "_INBOX.hf.person.bob.>", "_INBOX.hf.harness.other.>",
			"_INBOX.hf.service.ledger.>", "_R_.>", "hf.>", "hf.log.>",
			"hf.nudge.other", "hf.nudge.*", "hf.*.other", "hf.*.*", "hf.progress.>", "hf.svc.>",
			"hf.svc.ledger.answer", "$KV.>", "$O.>",
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
	users := map[*account]events.Writer{w.harness(): events.WriterHarness, w.ann(): "", w.root(): "",
		w.keeper(): "", w.restorer(): ""}
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
		// a fact of the table always encodes
		panic(err)
	}
	return string(body)
}

// brokersAPI: no user changes streams, or the consumers of services. An operator may remove a consumer. The user of a
// restore may restore streams, and the broker restores none that exists.
func (w *world) brokersAPI(t *testing.T) {
	for _, a := range []*account{w.harness(), w.ann(), w.root(), w.keeper(), w.restorer()} {
		var subjects []string
		for _, s := range streams {
			for _, verb := range []string{"CREATE", "UPDATE", "DELETE", "PURGE", "MSG.DELETE", "SNAPSHOT", "RESTORE",
				"LEADER.STEPDOWN", "PEER.REMOVE"} {
				if a.name == "restorer" && verb == "RESTORE" && slices.Contains(restored, s) {
					w.restoresNothing(t, a, s)
					continue
				}
				subjects = append(subjects, "$JS.API.STREAM."+verb+"."+s)
			}
		}
		for _, d := range []string{"HF_LOG.ledger", "KV_hf_state.retry", "KV_hf_state.compaction",
			"KV_hf_state.reconciler", "HF_TIMERS.retry-due"} {
			for _, verb := range []string{"CREATE", "DURABLE.CREATE", "MSG.NEXT", "RESET", "UNPIN", "PAUSE",
				"LEADER.STEPDOWN"} {
				subjects = append(subjects, "$JS.API.CONSUMER."+verb+"."+d)
			}
			if a.name != "root" {
				subjects = append(subjects, "$JS.API.CONSUMER.DELETE."+d)
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

// restored are the streams that a backup has.
var restored = []string{"HF_LOG", "OBJ_hf_objects", "HF_TIMERS", "KV_hf_leases"}

// restoresNothing: the broker refuses to restore a stream that exists.
func (w *world) restoresNothing(t *testing.T, a *account, stream string) {
	err := a.api(t, "STREAM.RESTORE."+stream, map[string]any{"config": map[string]any{"name": stream,
		"subjects": []string{"mine"}, "storage": "file", "num_replicas": 1}, "state": map[string]any{}}, new(struct{}))
	if err == nil || !strings.Contains(err.Error(), "stream name already in use") {
		t.Errorf("a restore of %s over the one that exists: %v", stream, err)
	}
}

// acknowledgements: no user speaks to the consumer of a service. An acknowledgement can pull messages (+NXT), and take
// others from its service (+ACK, +TERM). A person acknowledges messages of the feed: a subject of that grant's pattern
// must not be one of another consumer.
func (w *world) acknowledgements(t *testing.T) {
	for _, a := range []*account{w.harness(), w.ann(), w.root(), w.keeper(), w.restorer()} {
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
	// the pin, with which the ledger's messages can be pulled
	for _, a := range []*account{w.harness(), w.ann(), w.keeper(), w.restorer()} {
		before := a.denied.Load()
		a.send(t, "$JS.API.CONSUMER.INFO.HF_LOG.ledger", a.NewInbox(), "")
		a.done(t)
		w.refused(t, a, before, 1)
	}
}

// bounds: the streams of a deployed cell have limits, and a user's messages and connections have limits.
func (w *world) bounds(t *testing.T) {
	for stream, limits := range map[string]struct{ bytes, message, consumers, ids bool }{
		"HF_LOG": {true, true, true, true}, "OBJ_hf_objects": {true, true, false, true},
		"HF_FEED": {true, false, false, false}, "HF_PARKED": {true, false, false, false},
		"KV_hf_leases": {false, true, true, true}, "KV_hf_state": {false, true, true, true},
		"HF_TIMERS": {false, true, false, true}} {
		var info struct {
			Config struct {
				MaxBytes     int64         `json:"max_bytes"`
				MaxMsgSize   int32         `json:"max_msg_size"`
				MaxConsumers int           `json:"max_consumers"`
				IDsFor       time.Duration `json:"duplicate_window"` // the broker keeps them in memory
			}
		}
		if err := w.service.api(t, "STREAM.INFO."+stream, struct{}{}, &info); err != nil ||
			limits.bytes && info.Config.MaxBytes <= 0 || limits.message && info.Config.MaxMsgSize <= 0 ||
			limits.consumers && info.Config.MaxConsumers <= 0 ||
			limits.ids && info.Config.IDsFor > 100*time.Millisecond {
			t.Errorf("%s: %+v %v", stream, info.Config, err)
		}
	}
	w.connections(t)
	for a, subjects := range map[*account][]string{w.harness(): {"$KV.hf_leases.harness.my-agent.9",
		"hf.log.my-agent.s.harness"}, w.ann(): {"$O.hf_objects.M.person.ann.x"}} {
		for _, s := range subjects {
			m, err := a.Request(s, make([]byte, 560<<10), patience)
			if err != nil || !strings.Contains(string(m.Data), "message size exceeds maximum") {
				t.Errorf("%s: 560 KiB are taken: %v %+v", s, err, m)
			}
		}
	}
}

// connections: a user has so many connections at most, and another user connects after that.
func (w *world) connections(t *testing.T) {
	// of the printed permissions
	const most = 256
	user := "harness-" + attacker
	var refused error
	var open []*nats.Conn
	for len(open) <= most && refused == nil {
		nc, err := nats.Connect(w.url(user), w.files(user)...)
		if err != nil {
			refused = err
			continue
		}
		open = append(open, nc)
	}
	if refused == nil || !strings.Contains(refused.Error(), "maximum account active connections exceeded") {
		t.Errorf("a user has %d connections, then %v", len(open), refused)
	}
	w.login("ann", events.ClassPerson, "ann").Close()
	for _, nc := range open {
		nc.Close()
	}
}

// filters: the broker compares each filter of a consumer with each other, in the few workers of its API. No user can
// send a list of them, with or without a filter in the subject of the request.
func (w *world) filters(t *testing.T) {
	many := make([]string, 2000)
	for _, a := range []*account{w.harness(), w.ann(), w.root()} {
		before, refused := a.denied.Load(), 0
		for _, s := range streams {
			filter := strings.NewReplacer("KV_", "$KV.", "OBJ_", "$O.", "HF_", "hf.").Replace(s)
			for i := range many {
				many[i] = fmt.Sprintf("%s.my-agent.%d", strings.ToLower(filter), i)
			}
			config := map[string]any{"name": "many", "filter_subjects": many, "ack_policy": "none", "num_replicas": 1,
				"inactive_threshold": int64(time.Minute)}
			req, err := json.Marshal(map[string]any{"stream_name": s, "action": "create", "config": config})
			if err != nil {
				t.Fatal(err)
			}
			a.send(t, "$JS.API.CONSUMER.CREATE."+s+".many", a.NewInbox(), string(req))
			a.send(t, "$JS.API.CONSUMER.CREATE."+s, a.NewInbox(), string(req))
			refused += 2
		}
		a.done(t)
		w.refused(t, a, before, refused)
		config := map[string]any{"name": "many", "filter_subjects": many, "filter_subject": "hf.log.my-agent.>"}
		err := a.api(t, "CONSUMER.CREATE.HF_LOG.many.hf.log.my-agent.>",
			map[string]any{"stream_name": "HF_LOG", "action": "create", "config": config}, new(struct{}))
		if err == nil || !strings.Contains(err.Error(), "multiple subject filters") {
			t.Errorf("%s: a list beside the filter in the subject: %v", a.name, err)
		}
	}
}

// floods: keys of one harness do not fill the store, which all sessions share: leases, deletions of leases that never
// were, and keys that cannot be read. The leases of others stay.
func (w *world) floods(t *testing.T) {
	// than a harness may have
	const more = 3000
	h, before := w.harness(), w.leases(t)
	for _, flood := range []struct {
		key, header string
		readable    bool
	}{{"flood%d", "", true}, {"gone%d", "KV-Operation", false}, {"marker%d", "Nats-Marker-Reason", false},
		{"a!%d", "", false}} {
		key := func(n int) *nats.Msg {
			m := &nats.Msg{Subject: "$KV.hf_leases.harness.my-agent." + fmt.Sprintf(flood.key, n), Data: []byte("{}")}
			if flood.header != "" {
				m.Header = nats.Header{flood.header: []string{"DEL"}}
			}
			return m
		}
		for n := range leasesMax + more {
			if err := h.PublishMsg(key(n)); err != nil {
				t.Fatal(err)
			}
		}
		m, err := h.RequestMsg(key(leasesMax+more), patience)
		if err != nil || strings.Contains(string(m.Data), `"error"`) {
			t.Fatalf("%s: %v %+v", flood.key, err, m)
		}
		natstest.Until(t, "the oldest of "+flood.key+" to be removed", func() bool {
			return w.leases(t) <= before+leasesMax
		})
		if _, err := w.victim.KV.Load(t.Context(), kv.Leases, events.HarnessLeaseKey(victim, "1")); err != nil {
			t.Errorf("%s: the lease of another harness: %v", flood.key, err)
		}
		for n, want := range map[int]error{0: bus.ErrNotFound, leasesMax + more: nil} {
			key := events.HarnessLeaseKey(attacker, fmt.Sprintf(flood.key, n))
			if _, err := w.victim.KV.Load(t.Context(), kv.Leases, key); flood.readable && !errors.Is(err, want) {
				t.Errorf("lease %d of the flood: %v, want %v", n, err, want)
			}
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
