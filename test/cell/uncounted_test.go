package cell

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const (
	uncounted     = 3_000 // consumers of one user
	createdAtOnce = 250   // of them, before the user waits for the broker
	uncountedFor  = 365 * 24 * time.Hour
)

// TestConsumersThatNoLimitCounts: nats-server neither counts nor lists consumers that a request calls direct. A user
// creates very many of them, which match each commit. No append of another session is delayed by more than a second,
// and the services answer.
func TestConsumersThatNoLimitCounts(t *testing.T) {
	w := start(t)
	root := w.root()
	for _, x := range []struct {
		user   *account
		filter string
	}{{w.harness(), "hf.log.my-agent.>"}, {w.ann(), "hf.log.>"}} {
		t.Run(x.user.name, func(t *testing.T) {
			before, listed := memory(), len(consumers(t, root, "HF_LOG"))
			pulse, began := natstest.Feel(t), time.Now()
			stop := w.appends(t)
			w.direct(t, x.user, x.filter)
			n, longest := stop()
			t.Logf("%d consumers in %s, %d MiB; %d appends of another session, the longest took %s; the machine lost "+
				"%s", uncounted, time.Since(began), (max(memory(), before)-before)>>20, n, longest, pulse.Lost())
			if n < 3 || longest > delayedMost+pulse.Lost() {
				t.Errorf("%d appends, the longest took %s", n, longest)
			}
			if more := len(consumers(t, root, "HF_LOG")) - listed; more >= uncounted {
				t.Errorf("the broker lists %d of them: docs/guide/security.md says that it does not", more)
			}
			w.works(t)
		})
	}
}

// direct creates consumers of the log that stay for a year, without a store.
func (w *world) direct(t *testing.T, u *account, filter string) {
	t.Helper()
	inbox := u.NewInbox()
	replies, err := u.SubscribeSync(inbox + ".*")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uncounted {
		name := fmt.Sprint("direct-", u.name, "-", n)
		req, err := json.Marshal(map[string]any{"stream_name": "HF_LOG", "action": "create",
			"config": map[string]any{"name": name, "direct": true, "filter_subject": filter, "deliver_policy": "new",
				"ack_policy": "none", "num_replicas": 1, "deliver_subject": u.NewInbox(),
				"inactive_threshold": int64(uncountedFor)}})
		if err != nil {
			t.Fatal(err)
		}
		u.send(t, "$JS.API.CONSUMER.CREATE.HF_LOG."+name+"."+filter, fmt.Sprint(inbox, ".", n), string(req))
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
