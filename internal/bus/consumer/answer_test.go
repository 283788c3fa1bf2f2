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
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// consumerAnswer is a broker that answers questions about the consumers of an account, and closes a connection that
// has more than 1 MiB waiting.
const consumerAnswer = `
	max_payload: 262144
	max_pending: 1048576
	accounts {
		CELL {
			jetstream: enabled
			users: [
				{ user: cell, password: secret }
				{ user: old, password: secret, permissions: { publish: { deny: "$JS.API.CONSUMER.INFO.>" } } }
			]
			imports: [{ service: { account: "$SYS", subject: "$SYS.REQ.ACCOUNT.CELL.*" }, to: "hf.broker.account.*" }]
		}
		"$SYS" {
			exports: [{ service: "$SYS.REQ.ACCOUNT.CELL.*", response_type: stream, accounts: ["CELL"] }]
		}
	}
	no_auth_user: cell
`

// TestALongAnswerOfABroker: users decide how long the answer about consumers is, by their configurations. A broker
// closes the connection to which it sends more than it keeps for one, and that is not the connection on which a service
// works. A person learns the direct consumers nevertheless, and why not all is known.
func TestALongAnswerOfABroker(t *testing.T) {
	for name, x := range map[string]struct {
		text func() string
		want error
	}{
		"usual":                {func() string { return strings.Repeat("a", longConfig) }, nil},
		"not to be compressed": {func() string { return noise(t, longConfig) }, bus.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			s := natstest.Start(t, natstest.Settings(t, consumerAnswer))
			b := natstest.Bus(t, s)
			nc, _ := bustest.Outsider(t, s)
			for i := range longConfigs {
				makeConsumer(t, nc, fmt.Sprint("usual-", i), map[string]any{"inactive_threshold": time.Hour,
					"metadata": map[string]string{"x": x.text()}})
			}
			makeConsumer(t, nc, "direct", direct("unheard"))
			found, err := b.Consumers.Uncounted(t.Context())
			if !errors.Is(err, x.want) || len(found) != 1 || found[0].Name != "direct" {
				t.Fatalf("%+v, %v", found, err)
			}
			if x.want != nil && !strings.Contains(err.Error(), "max_pending") {
				t.Errorf("the error does not say why: %v", err)
			}
			if x.want == nil && found[0].To != "unheard" {
				t.Errorf("%+v", found[0])
			}
			if _, err := b.Layout.Inspect(t.Context()); err != nil || b.Reconnects() > 0 || !b.Connected() {
				t.Fatalf("the connection that works was restored %d times: %v", b.Reconnects(), err)
			}
		})
	}
}

// TestUncountedConsumersAreDeleted: one broker, and three. Consumers that no limit counts are deleted by their names,
// whatever the length of their configurations and of those of other consumers. The others stay, and direct ones with a
// subscription as long as they are few.
func TestUncountedConsumersAreDeleted(t *testing.T) {
	for name, nodes := range map[string]func() []*embed.Server{
		"one": func() []*embed.Server {
			return []*embed.Server{natstest.Start(t, natstest.Settings(t, consumerAnswer))}
		},
		"three": func() []*embed.Server { return natstest.Cluster(t, natstest.Settings(t, consumerAnswer)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := nodes()
			b := natstest.Bus(t, s[0])
			nc, js := bustest.Outsider(t, s[0])
			usual := map[string]any{"inactive_threshold": time.Hour, "num_replicas": 1}
			makeConsumer(t, nc, "usual", usual)
			usual["metadata"] = map[string]string{"x": noise(t, longConfig)}
			for i := range longConfigs {
				makeConsumer(t, nc, fmt.Sprint("long-", i), usual)
				config := direct("unheard")
				config["metadata"] = usual["metadata"]
				makeConsumer(t, nc, fmt.Sprint("direct-", i), config)
			}
			makeConsumer(t, nc, "sourcing", map[string]any{"sourcing": true, "durable_name": "sourcing",
				"ack_policy": "explicit"})
			if _, err := nc.SubscribeSync("heard"); err != nil || nc.Flush() != nil {
				t.Fatal(err)
			}
			for i := range consumer.ActiveMax {
				makeConsumer(t, nc, fmt.Sprint("heard-", i), direct("heard"))
			}
			end := func(ended, left int) {
				t.Helper()
				all, stay, err := b.Consumers.EndUncounted(t.Context())
				if len(all) != ended || stay != left || err != nil {
					t.Fatalf("%d ended and %d left, %v, want %d and %d: %v", len(all), stay, err, ended, left, all)
				}
			}
			end(longConfigs+1, consumer.ActiveMax)
			before := apiRequests(t, js)
			end(0, consumer.ActiveMax)
			if n := apiRequests(t, js) - before; n >= longConfigs {
				t.Errorf("%d requests, and only the first search asks about each usual consumer", n)
			}
			makeConsumer(t, nc, "heard", direct("heard"))
			end(consumer.ActiveMax+1, 0)
			end(0, 0)
			if found, err := b.Consumers.Uncounted(t.Context()); len(found) > 0 {
				t.Errorf("there are %v, %v", found, err)
			}
			stream, err := js.Stream(t.Context(), "HF_LOG")
			if err != nil {
				t.Fatal(err)
			}
			if n := stream.CachedInfo().State.Consumers; n != longConfigs+1 {
				t.Errorf("%d consumers stay, want %d", n, longConfigs+1)
			}
		})
	}
}

// TestUncountedConsumersWithOldPermissions: a service that may not ask about listed consumers reports that, and deletes
// those that are in no list.
func TestUncountedConsumersWithOldPermissions(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, consumerAnswer))
	nc, _ := bustest.Outsider(t, s)
	natstest.Bus(t, s)
	b := natstest.Bus(t, s, func(c *bus.Config) { c.URL = strings.Replace(c.URL, "//", "//old:secret@", 1) })
	makeConsumer(t, nc, "usual", map[string]any{"inactive_threshold": time.Hour})
	makeConsumer(t, nc, "direct", direct("unheard"))
	ended, left, err := b.Consumers.EndUncounted(t.Context())
	if len(ended) != 1 || ended[0].Name != "direct" || left != 0 || !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("%v ended, %d left, %v", ended, left, err)
	}
	if ended, _, err = b.Consumers.EndUncounted(t.Context()); len(ended) > 0 || !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("then %v ended, %v", ended, err)
	}
}

// TestConsumersWhoseNamesAreNotText: the broker takes any bytes for a name and lists them as U+FFFD, so no request
// names such a consumer. The error says which node has it, and the others are deleted, whatever their names are.
func TestConsumersWhoseNamesAreNotText(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, consumerAnswer))
	nc, _ := bustest.Outsider(t, s)
	b := natstest.Bus(t, s)
	makeConsumer(t, nc, "bytes\xff", direct("unheard"))
	names := []string{"line\u2028", "<&", "control\x01", `quote"`, "é", "usual"}
	for _, name := range names {
		makeConsumer(t, nc, name, direct("unheard"))
	}
	for _, want := range []int{len(names), 0} {
		ended, left, err := b.Consumers.EndUncounted(t.Context())
		if len(ended) != want || left != 0 || err == nil ||
			!strings.Contains(err.Error(), "restart the node "+nc.ConnectedServerName()) {
			t.Errorf("%d of %d ended, %d left: %v", len(ended), want, left, err)
		}
	}
	found, err := b.Consumers.Uncounted(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	want := "bytes\ufffd of HF_LOG delivers to unheard, and ends when the node " + nc.ConnectedServerName() +
		" is restarted"
	if output := found[0].String(); output != want {
		t.Errorf("%s, want %s", output, want)
	}
}

const (
	longConfigs = 20
	longConfig  = 100_000 // bytes of each configuration
)

// apiRequests returns how many requests of the account the broker has handled.
func apiRequests(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	info, err := js.AccountInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.API.Total
}

// direct returns the configuration of a consumer that no limit counts, and no list has.
func direct(to string) map[string]any {
	return map[string]any{"direct": true, "deliver_subject": to, "num_replicas": 1, "ack_policy": "none",
		"deliver_policy": "new", "inactive_threshold": time.Hour}
}

// noise returns a text of so many bytes that cannot be compressed much.
func noise(t *testing.T, n int) string {
	t.Helper()
	b := make([]byte, n*3/4)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b)
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
