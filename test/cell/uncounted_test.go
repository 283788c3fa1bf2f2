package cell

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	uncounted     = 3_000 // consumers of one user
	createdAtOnce = 250   // of them, before the user waits for the broker
	uncountedFor  = 365 * 24 * time.Hour
)

// TestConsumersThatNoLimitCounts: nats-server neither counts nor lists consumers that a request calls direct. A user
// creates very many of them, which match each commit. No append of another session is delayed by more than a second
// beyond what as many requests that create nothing delay it, and the services answer. The brokers tell an operator
// which consumers these are, and the reconciler ends them.
func TestConsumersThatNoLimitCounts(t *testing.T) {
	w := start(t)
	root := w.root()
	operator, err := bus.Open(t.Context(), w.config("root", events.ClassPerson, "root"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	for _, x := range []struct {
		user   *account
		filter string
	}{{w.harness(), "hf.log.my-agent.>"}, {w.ann(), "hf.log.>"}} {
		t.Run(x.user.name, func(t *testing.T) {
			before, listed := memory(), len(consumers(t, root, "HF_LOG"))
			stop := w.appends(t)
			w.many(t, x.user, func(int) (string, any) {
				return "$JS.API.STREAM.MSG.GET.HF_LOG", map[string]int{"seq": 1}
			})
			_, usual := stop()
			pulse, began := natstest.Feel(t), time.Now()
			stop = w.appends(t)
			w.direct(t, x.user, x.filter)
			n, longest := stop()
			t.Logf("%d consumers in %s, %d MiB; %d appends of another session, the longest took %s, beside requests "+
				"that create nothing %s; the machine lost %s", uncounted, time.Since(began),
				(max(memory(), before)-before)>>20, n, longest, usual, pulse.Lost())
			if n < 3 || longest > delayedMost+usual+pulse.Lost() {
				t.Errorf("%d appends, the longest took %s", n, longest)
			}
			if found := uncountedNow(t, operator); found < uncounted {
				t.Errorf("the brokers tell an operator of %d of them", found)
			}
			out, err := doctor(t.Context(), w.config("root", events.ClassPerson, "root"))
			named := strings.Contains(out, "of HF_LOG delivers to _INBOX.hf.")
			// the reconciler has not ended them before doctor looked
			if !named && uncountedNow(t, operator) > 0 {
				t.Errorf("doctor does not name them: %v\n%s", err, out)
			}
			if more := len(consumers(t, root, "HF_LOG")) - listed; more >= uncounted {
				t.Errorf("the broker lists %d of them: docs/guide/security.md says that it does not", more)
			}
			w.works(t)
			natstest.Until(t, "the reconciler to end them", func() bool { return uncountedNow(t, operator) == 0 })
		})
	}
}

// uncountedNow returns how many consumers no limit counts, at all nodes; -1 if a node has not answered.
func uncountedNow(t *testing.T, operator *bus.Bus) int {
	t.Helper()
	found, err := operator.Consumers.Uncounted(t.Context())
	if err != nil {
		t.Log(err)
		return -1
	}
	return len(found)
}

// direct creates consumers of the log that stay for a year, without a store.
func (w *world) direct(t *testing.T, u *account, filter string) {
	t.Helper()
	w.many(t, u, func(n int) (string, any) {
		name := fmt.Sprint("direct-", u.name, "-", n)
		return "$JS.API.CONSUMER.CREATE.HF_LOG." + name + "." + filter, map[string]any{"stream_name": "HF_LOG",
			"action": "create", "config": map[string]any{"name": name, "direct": true, "filter_subject": filter,
				"deliver_policy": "new", "ack_policy": "none", "num_replicas": 1, "deliver_subject": u.NewInbox(),
				"inactive_threshold": int64(uncountedFor)}}
	})
}

// many sends as many requests as there will be consumers.
func (w *world) many(t *testing.T, u *account, request func(n int) (subject string, body any)) {
	t.Helper()
	inbox := u.NewInbox()
	replies, err := u.SubscribeSync(inbox + ".*")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uncounted {
		subject, body := request(n)
		req, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		u.send(t, subject, fmt.Sprint(inbox, ".", n), string(req))
		if (n+1)%createdAtOnce != 0 {
			continue
		}
		for range createdAtOnce {
			m, err := replies.NextMsg(patience)
			if err != nil || strings.Contains(string(m.Data), `"error"`) {
				t.Fatalf("%v %+v", err, m)
			}
		}
	}
}

// TestSourcingConsumers: nats-server counts no consumer that a request calls sourcing, either, but has it in its lists.
// An operator sees which they are, and the reconciler deletes them, also durable ones, those that have a subscription,
// and those on streams that no service consumes.
func TestSourcingConsumers(t *testing.T) {
	w := start(t)
	operator, err := bus.Open(t.Context(), w.config("root", events.ClassPerson, "root"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	gone := func() bool { return uncountedNow(t, operator) == 0 }
	// a round of the reconciler between the first and the last one deletes some
	for try := 1; ; try++ {
		made := w.sourcing(t, try)
		found := uncountedNow(t, operator)
		if found == made {
			break
		}
		if found > made || try == 3 {
			t.Fatalf("the brokers tell an operator of %d of %d", found, made)
		}
		natstest.Until(t, "the reconciler to delete the others", gone)
	}
	natstest.Until(t, "the reconciler to delete them", gone)
	w.works(t)
}

// sourcing has users make consumers that their requests call sourcing, under names of this try, and returns how many.
func (w *world) sourcing(t *testing.T, try int) (made int) {
	t.Helper()
	for _, x := range []struct {
		user           *account
		stream, filter string
	}{
		{w.harness(), "HF_LOG", "hf.log.my-agent.>"}, {w.ann(), "HF_LOG", "hf.log.>"},
		{w.ann(), "HF_FEED", ">"}, {w.ann(), "KV_hf_state", ">"}, {w.ann(), "KV_hf_leases", ">"},
	} {
		inbox := x.user.NewInbox()
		if _, err := x.user.SubscribeSync(inbox); err != nil {
			t.Fatal(err)
		}
		for _, config := range []map[string]any{
			{"durable_name": "DURABLE", "ack_policy": "explicit", "num_replicas": 3},
			{"ack_policy": "none", "num_replicas": 1, "deliver_subject": inbox,
				"inactive_threshold": int64(uncountedFor)},
			{"ack_policy": "explicit", "num_replicas": 1, "inactive_threshold": int64(uncountedFor)},
		} {
			name := fmt.Sprintf("sourcing-%d-%d", try, made)
			if config["durable_name"] != nil {
				config["durable_name"] = name
			}
			config["name"], config["sourcing"], config["filter_subject"] = name, true, x.filter
			config["deliver_policy"] = "new"
			body, err := json.Marshal(map[string]any{"stream_name": x.stream, "action": "create", "config": config})
			if err != nil {
				t.Fatal(err)
			}
			reply, err := x.user.Request("$JS.API.CONSUMER.CREATE."+x.stream+"."+name+"."+x.filter, body, patience)
			if err != nil || strings.Contains(string(reply.Data), `"error"`) {
				t.Fatalf("%s of %s: %v %+v", config, x.stream, err, reply)
			}
			made++
		}
	}
	return made
}
