package consumer_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// tellsOfConsumers is a broker that answers questions about the consumers of an account, and closes a connection that
// has more than 1 MiB waiting.
const tellsOfConsumers = `
	max_payload: 262144
	max_pending: 1048576
	accounts {
		CELL {
			jetstream: enabled
			users: [{ user: cell, password: secret }]
			imports: [{ service: { account: "$SYS", subject: "$SYS.REQ.ACCOUNT.CELL.*" }, to: "hf.broker.account.*" }]
		}
		"$SYS" {
			exports: [{ service: "$SYS.REQ.ACCOUNT.CELL.*", response_type: stream, accounts: ["CELL"] }]
		}
	}
	no_auth_user: cell
`

// TestALongAnswerOfABroker: users decide how long the answer about consumers is. A broker closes the connection to
// which it sends more than it keeps for one, and that is not the connection on which a service works. An answer that is
// long because there are many usual consumers arrives.
func TestALongAnswerOfABroker(t *testing.T) {
	const (
		many = 20
		long = 100_000 // bytes of each configuration
	)
	for name, x := range map[string]struct {
		text func() string
		want error
	}{
		"usual": {func() string { return strings.Repeat("a", long) }, nil},
		"not to be compressed": {func() string {
			return base64.StdEncoding.EncodeToString(noise(t, long*3/4))
		}, bus.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t, natstest.Settings(t, tellsOfConsumers))
			b := natstest.Bus(t, s)
			nc, _ := bustest.Outsider(t, s)
			for i := range many {
				makeConsumer(t, nc, fmt.Sprint("usual-", i), map[string]any{"inactive_threshold": time.Hour,
					"metadata": map[string]string{"x": x.text()}})
			}
			makeConsumer(t, nc, "direct", map[string]any{"direct": true, "deliver_subject": "unheard",
				"num_replicas": 1, "ack_policy": "none", "inactive_threshold": time.Hour})
			found, err := b.Consumers.Uncounted(t.Context(), true)
			if !errors.Is(err, x.want) || x.want == nil && len(found) != 1 {
				t.Fatalf("%d found, %v", len(found), err)
			}
			if x.want != nil && !strings.Contains(err.Error(), "max_pending") {
				t.Errorf("the error does not say why: %v", err)
			}
			if _, err := b.Layout.Inspect(t.Context()); err != nil || b.Reconnects() > 0 || !b.Connected() {
				t.Fatalf("the connection that works was restored %d times: %v", b.Reconnects(), err)
			}
			if x.want != nil {
				return
			}
			if n, err := b.Consumers.EndUncounted(t.Context(), found); n != 1 || err != nil {
				t.Errorf("%d ended, %v", n, err)
			}
			if found, err = b.Consumers.Uncounted(t.Context(), true); len(found) > 1 || err != nil ||
				len(found) == 1 && found[0].Idle > 10*time.Second {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// noise returns bytes that no compression makes fewer.
func noise(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// makeConsumer has a user of the broker make a consumer of the log.
func makeConsumer(t *testing.T, nc *nats.Conn, name string, config map[string]any) {
	t.Helper()
	config["name"] = name
	body, err := json.Marshal(map[string]any{"stream_name": "HF_LOG", "action": "create", "config": config})
	if err != nil {
		t.Fatal(err)
	}
	m, err := nc.Request("$JS.API.CONSUMER.CREATE.HF_LOG."+name, body, bustest.Patience)
	if err != nil || strings.Contains(string(m.Data), `"error"`) {
		t.Fatalf("%v %+v", err, m)
	}
}
