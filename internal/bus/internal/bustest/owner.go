package bustest

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// WithUsers is a broker that requires a login, and a connection to it as each of these users. The first one is a
// service, which sets the cell up.
func WithUsers(t *testing.T, people ...string) (*embed.Server, []*bus.Bus) {
	t.Helper()
	s := natstest.Start(t, natstest.Settings(t, "authorization: { user: u, password: pw }"))
	var all []*bus.Bus
	for i, name := range append([]string{""}, people...) {
		cfg := bus.Config{URL: strings.Replace(s.URL(), "//", "//u:pw@", 1),
			Asker: events.Asker{Class: events.ClassPerson, ID: name}}
		if i == 0 {
			cfg.Asker = events.Asker{}
		}
		b, err := bus.Open(Background(t), cfg)
		if err == nil && i == 0 {
			err = b.Layout.Ensure(Background(t))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Abort)
		all = append(all, b)
	}
	return s, all
}

// LoggedIn is a client of a broker of [WithUsers], without this package.
func LoggedIn(t *testing.T, s *embed.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(s.URL(), nats.UserInfo("u", "pw"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}
