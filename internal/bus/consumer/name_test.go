package consumer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/consumer"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

const otherKeyed = "ledger-0123456789abcdef01234567"

// keyFile returns a file with a key of n bytes.
func keyFile(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "consumer-key")
	if err := os.WriteFile(path, []byte(strings.Repeat("k", n)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withKey opens a bus whose consumers' names follow from this key.
func withKey(t *testing.T, s *embed.Server, path string) *bus.Bus {
	t.Helper()
	return natstest.Bus(t, s, func(c *bus.Config) { c.ConsumerKeyFile = path })
}

// names returns the durables of the log.
func names(t *testing.T, js jetstream.JetStream) []string {
	t.Helper()
	log, err := js.Stream(t.Context(), "HF_LOG")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	found := log.ConsumerNames(t.Context())
	for name := range found.Name() {
		all = append(all, name)
	}
	if found.Err() != nil {
		t.Fatal(found.Err())
	}
	return all
}

// With a key the name of a durable cannot be guessed, so a reset by a user, whom the broker would deliver it for,
// reaches nothing. Two processes with the key share one durable. A reader without the key finds it.
func TestAKeyedName(t *testing.T) {
	s := natstest.Start(t)
	path := keyFile(t, 32)
	a, b, reader := withKey(t, s, path), withKey(t, s, path), natstest.Bus(t, s)
	nc, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	if _, _, err := reader.Consumers.Lag(t.Context(), bustest.LedgerSource); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("before it was made: %v", err)
	}
	stopA := l.Run(a, "a", bustest.LedgerSource, nil)
	bustest.Publish(t, js, 3, bustest.Subjects...)
	l.All(3)
	stopB := l.Run(b, "b", bustest.LedgerSource, nil)
	defer stopB()
	if m, err := nc.Request("$JS.API.CONSUMER.INFO.HF_LOG.ledger", nil, bustest.Patience); err != nil ||
		!strings.Contains(string(m.Data), "consumer not found") {
		t.Errorf("the plain name is taken: %v %s", err, m.Data)
	}
	all := names(t, js)
	if len(all) != 1 || !strings.HasPrefix(all[0], "ledger-") || len(all[0]) != len(otherKeyed) ||
		all[0] == otherKeyed {
		t.Fatalf("durables %q", all)
	}
	stopA()
	bustest.Publish(t, js, 3, bustest.Subjects...)
	l.All(6)
	if again := names(t, js); len(again) != 1 || again[0] != all[0] {
		t.Errorf("durables %q, want %q", again, all)
	}
	natstest.Until(t, "a reader without the key to see that nothing waits", func() bool {
		pending, active, err := reader.Consumers.Lag(t.Context(), bustest.LedgerSource)
		return err == nil && pending == 0 && active != ""
	})
	acked, err := reader.Consumers.Acked(t.Context(), bustest.LedgerSource)
	at, err2 := reader.Consumers.Place(t.Context(), bustest.LedgerSource)
	if err != nil || err2 != nil || acked != 6 || at.Delivered != 6 || at.End != 6 {
		t.Errorf("acknowledged %d, %v; at %+v, %v", acked, err, at, err2)
	}
}

// A durable with a name like that of a service's is a stranger, and a reader without the key says that there are two.
func TestAFalseKeyedName(t *testing.T) {
	s := natstest.Start(t)
	a, reader := withKey(t, s, keyFile(t, 32)), natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	defer l.Run(a, "a", bustest.LedgerSource, nil)()
	bustest.Publish(t, js, 1, bustest.Subjects...)
	l.All(1)
	ours := []consumer.Source{bustest.LedgerSource}
	if found, err := reader.Consumers.Strangers(t.Context(), ours); err != nil || len(found) > 0 {
		t.Errorf("strangers %v, %v", found, err)
	}
	cfg := jetstream.ConsumerConfig{Durable: otherKeyed, DeliverSubject: "hf.x", FilterSubject: "hf.log.h.s.harness"}
	if _, err := js.CreatePushConsumer(t.Context(), "HF_LOG", cfg); err != nil {
		t.Fatal(err)
	}
	found, err := reader.Consumers.Strangers(t.Context(), ours)
	if err != nil || len(found) != 1 || found[0].Why != "pushes to hf.x" {
		t.Errorf("strangers %v, %v", found, err)
	}
	cfg.Durable, cfg.DeliverSubject = "ledger-0123456789abcdef0123456a", ""
	if _, err := js.CreateConsumer(t.Context(), "HF_LOG", cfg); err != nil {
		t.Fatal(err)
	}
	// a process that stood still uses its consumer again with its next request
	natstest.Until(t, "the pushing stranger, and the two pulling ones, the used one first", func() bool {
		found, err = reader.Consumers.Strangers(t.Context(), ours)
		return err == nil && len(found) == 3 && found[1].Used && !found[2].Used && found[2].Name == cfg.Durable &&
			found[2].Durable == "ledger"
	})
	natstest.Until(t, "a reader without the key to look at the used one", func() bool {
		pending, active, err := reader.Consumers.Lag(t.Context(), bustest.LedgerSource)
		return err == nil && pending == 0 && active != ""
	})
	if _, _, err := a.Consumers.Lag(t.Context(), bustest.LedgerSource); err != nil {
		t.Errorf("the service itself: %v", err)
	}
}

// A service that was given a key leaves its earlier durable behind. A reader without the key looks at the one that a
// process uses, and fails if no process uses either.
func TestAnEarlierName(t *testing.T) {
	s := natstest.Start(t)
	plain, keyed, reader := natstest.Bus(t, s), withKey(t, s, keyFile(t, 32)), natstest.Bus(t, s)
	_, js := bustest.Outsider(t, s)
	before, after := bustest.NewLedgers(t), bustest.NewLedgers(t)
	stopBefore := before.Run(plain, "before", bustest.LedgerSource, nil)
	bustest.Publish(t, js, 3, bustest.Subjects...)
	before.All(3)
	stopAfter := after.Run(keyed, "after", bustest.LedgerSource, nil)
	// from the first message on
	after.All(3)
	ours := []consumer.Source{bustest.LedgerSource}
	natstest.Until(t, "two consumers that processes use", func() bool {
		found, err := reader.Consumers.Strangers(t.Context(), ours)
		return err == nil && len(found) == 2 && found[0].Used && found[1].Used
	})
	stopBefore()
	bustest.Publish(t, js, 3, bustest.Subjects...)
	after.All(6)
	natstest.Until(t, "the reader to look at the durable that a process uses", func() bool {
		pending, active, err := reader.Consumers.Lag(t.Context(), bustest.LedgerSource)
		return err == nil && pending == 0 && active != ""
	})
	stopAfter()
	natstest.Until(t, "the reader to find two unused durables", func() bool {
		_, _, err := reader.Consumers.Lag(t.Context(), bustest.LedgerSource)
		return err != nil && strings.Contains(err.Error(), "processes use 0 of them")
	})
}

// A service without a key, which may not list consumers, reads that its own consumer is not made yet.
func TestAServiceMayNotList(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: s, password: s, permissions: { publish: { deny: ["$JS.API.CONSUMER.LIST.>"] } }} ] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
	b, err := bus.Open(bustest.Within(t, bustest.Patience), bus.Config{URL: bustest.As(s, "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, _, err := b.Consumers.Lag(t.Context(), bustest.LedgerSource); !errors.Is(err, bus.ErrNotFound) {
		t.Error(err)
	}
}

// A key file that is missing is no key; one that is too short is refused.
func TestKeyFiles(t *testing.T) {
	s := natstest.Start(t)
	b := withKey(t, s, filepath.Join(t.TempDir(), "missing"))
	_, js := bustest.Outsider(t, s)
	l := bustest.NewLedgers(t)
	defer l.Run(b, "a", bustest.LedgerSource, nil)()
	bustest.Publish(t, js, 1, bustest.Subjects...)
	l.All(1)
	if all := names(t, js); len(all) != 1 || all[0] != "ledger" {
		t.Errorf("durables %q", all)
	}
	for _, path := range []string{keyFile(t, 31), t.TempDir()} {
		if b, err := bus.Open(t.Context(), bus.Config{URL: s.URL(), ConsumerKeyFile: path}); !errors.Is(err,
			bus.ErrForbidden) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, b, err)
		}
	}
}

// keyedName is the name of a durable of these tests at the broker.
var keyedName = regexp.MustCompile(`ledger-[0-9a-f]+`)

// textLog keeps what is logged.
type textLog struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (l *textLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// has reports whether a text was logged.
func (l *textLog) has(part string) bool { return strings.Contains(l.String(), part) }

// String returns all lines.
func (l *textLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Each request of a keyed consumer fails in turn. The errors and the log name the durable, not its name at the broker.
func TestTextsNameTheDurable(t *testing.T) {
	const notDone = "consume ledger: 0 of 1 messages done"
	for verb, c := range map[string]struct {
		until string // what is logged before the stop
		want  string // what is logged after it, too
		info  string // the consumer's state; empty: of an active process
	}{
		"CREATE": {until: "consume ledger: nats: "},
		"INFO":   {until: "look at consumer ledger: nats: "},
		"RESET":  {until: "reset consumer ledger: nats: "},
		"UNPIN":  {until: notDone, want: "consumer not handed over"},
		// the process stands by, and its check of the place finds the consumer beyond the stream's end
		"RESET by the check": {until: "reset consumer ledger: nats: ", want: "the consumer was not moved back",
			info: `{"delivered":{"stream_seq":9}}`},
	} {
		t.Run(verb, func(t *testing.T) {
			verb, _, _ := strings.Cut(verb, " ")
			p := &pinScript{t: t, deliver: func(n int) []bustest.Reply {
				if n == 1 {
					return []bustest.Reply{nthDelivery(1)}
				}
				return bustest.Silence
			}}
			script := bustest.Scripted(t, func(a bustest.Asked) []bustest.Reply {
				switch {
				case a.Is("CONSUMER." + verb + ".HF_LOG.ledger-"):
					return bustest.Trouble
				case c.info != "" && a.Is("CONSUMER.INFO"):
					return bustest.OneReply(c.info)
				case c.info != "" && a.Is("CONSUMER.MSG.NEXT"):
					return bustest.Silence
				case a.Is("STREAM.INFO"):
					return bustest.OneReply(`{}`)
				}
				return p.answer(a)
			})
			log := &textLog{}
			b, err := bus.Open(bustest.Background(t), bus.Config{URL: script.Url, Log: zerolog.New(log),
				ConsumerKeyFile: keyFile(t, 32)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Abort)
			stop := consuming(t, b, losing{batch: func(context.Context, []bus.Message) (int, error) { return 0, nil }})
			natstest.Until(t, c.until, func() bool { return log.has(c.until) })
			stop()
			if !log.has(c.want) || !log.has(`"service":"ledger"`) || keyedName.MatchString(log.String()) {
				t.Errorf("want %q and the durable's name only:\n%s", c.want, log)
			}
		})
	}
}

// A refusal by the broker names the subject that is not permitted, with the durable in place of the secret name.
func TestARefusalNamesTheDurable(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t, `
		accounts { A { jetstream: enabled, users: [ {user: a, password: a},
			{user: s, password: s, permissions: { publish: { deny: ["$JS.API.CONSUMER.INFO.>"] } }} ] } }`))
	natstest.Bus(t, s, func(c *bus.Config) { c.URL = bustest.As(s, "a") })
	b, err := bus.Open(bustest.Within(t, bustest.Patience),
		bus.Config{URL: bustest.As(s, "s"), ConsumerKeyFile: keyFile(t, 32)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, _, err := b.Consumers.Lag(t.Context(), bustest.LedgerSource); !errors.Is(err, bus.ErrForbidden) ||
		!strings.Contains(err.Error(), "$JS.API.CONSUMER.INFO.HF_LOG.ledger: ") {
		t.Error(err)
	}
}
