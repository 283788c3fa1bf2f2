package cell

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// A person's watch shows all of 20,000 entries. The broker pauses after 2 MB without an acknowledgement: a client
// without the permission to acknowledge would see only a part.
func TestAPersonsWatchIsWhole(t *testing.T) {
	nc, err := nats.Connect(watched(t), nats.CustomInboxPrefix(events.Inbox("hf", events.ClassPerson, "ann")))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "hf_state")
	if err != nil {
		t.Fatal(err)
	}
	w, err := kv.WatchAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	natstest.Until(t, "the watcher to say that this is all", func() bool {
		for {
			select {
			case e := <-w.Updates():
				if e == nil {
					return true
				}
				seen[e.Key()] = true
			default:
				return false
			}
		}
	})
	if len(seen) != entries {
		t.Errorf("saw %d of %d entries", len(seen), entries)
	}
}

// A watch that lost its connection in the middle of its deliveries is whole after the client has connected again. A
// watch whose client is gone leaves no consumer: a delivery to no one must not make it active again.
func TestWatchesThatLoseTheirConnection(t *testing.T) {
	url := watched(t)
	const gone = 30
	for range gone {
		nc, _, _ := watch(t, url)
		nc.Close()
	}
	nc, first, w := watch(t, url)
	if err := nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{first: true}
	natstest.Until(t, "a watch to show every entry", func() bool {
		for {
			select {
			case e := <-w.Updates():
				// nil: all that was there at the beginning
				if e != nil {
					seen[e.Key()] = true
				}
			default:
				return len(seen) == entries
			}
		}
	})
	js, err := nc.JetStream(nats.MaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the consumers of watches that are gone to be removed", func() bool {
		info, err := js.StreamInfo("KV_hf_state")
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Consumers <= 1
	})
}

// watch connects as ann, watches all entries, and returns when the first one is there.
func watch(t *testing.T, url string) (nc *nats.Conn, first string, w nats.KeyWatcher) {
	t.Helper()
	nc, err := nats.Connect(url, nats.CustomInboxPrefix(events.Inbox("hf", events.ClassPerson, "ann")),
		nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := nc.JetStream(nats.MaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := js.KeyValue("hf_state")
	if err != nil {
		t.Fatal(err)
	}
	if w, err = bucket.WatchAll(); err != nil {
		t.Fatal(err)
	}
	e := <-w.Updates()
	if e == nil {
		t.Fatal("a watch shows nothing")
	}
	return nc, e.Key(), w
}

// entries is how many entries a watcher has to see.
const entries = 20_000

// watched runs a broker with the printed permissions and the entries, and returns the URL at which ann connects.
func watched(t *testing.T) (url string) {
	t.Helper()
	printed, err := exec.Command(binary, "permissions", "--person", "ann").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range regexp.MustCompile(`\$(HOLDFAST_PASSWORD_\w+)`).FindAllStringSubmatch(string(printed), -1) {
		t.Setenv(v[1], "secret")
	}
	s := natstest.Start(t, natstest.Settings(t, string(printed)))
	as := func(user string) string { return strings.Replace(s.URL(), "//", "//"+user+":secret@", 1) }
	ledger, err := bus.Open(t.Context(),
		bus.Config{URL: as("holdfast-ledger"), Inbox: events.Inbox("hf", events.ClassService, "ledger")})
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	if err := ledger.Layout.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	fill(t, as("holdfast-ledger"))
	return as("ann")
}

// fill stores entries of the size of a small document.
func fill(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url, nats.CustomInboxPrefix(events.Inbox("hf", events.ClassService, "ledger")))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000), jetstream.WithPublishAsyncErrHandler(
		func(_ jetstream.JetStream, m *nats.Msg, err error) { t.Errorf("%s is not stored: %v", m.Subject, err) }))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"title": strings.Repeat("x", 600)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		// the default of 200 ms is short for a busy disk
		if _, err := js.PublishAsync(fmt.Sprintf("$KV.hf_state.session.h.s%d", i), body,
			jetstream.WithStallWait(patience)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
}
