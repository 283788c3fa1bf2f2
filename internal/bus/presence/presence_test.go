package presence_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/bus/presence"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// settings are those of a cell with users: the account of the services imports the connections of all accounts.
const settings = `
accounts {
  "$SYS" { exports: [ { service: "$SYS.REQ.SERVER.*.CONNZ", response_type: stream, accounts: [CELL] } ] }
  CELL {
    jetstream: enabled
    users: [ { user: u, password: pw } ]
    imports: [ { service: { account: "$SYS", subject: "$SYS.REQ.SERVER.*.CONNZ" }, to: "hf.broker.connections.*" } ]
  }
  OTHER { users: [ { user: o, password: pw } ] }
}
`

// watcher gets ended connections alone.
func watcher(ended func([]presence.Connection)) presence.Watcher {
	return presence.Watcher{Ended: ended, Asks: func() bool { return false }}
}

// cells are brokers with the options of a service and the login of a harness.
var cells = map[string]func(t *testing.T) (*embed.Server, natstest.BusOption, nats.Option){
	"embedded": func(t *testing.T) (*embed.Server, natstest.BusOption, nats.Option) {
		s := natstest.Start(t)
		return s, func(c *bus.Config) { c.Server = s }, nats.Name("x")
	},
	"one account": func(t *testing.T) (*embed.Server, natstest.BusOption, nats.Option) {
		s := natstest.Start(t, natstest.Settings(t,
			`accounts { CELL { jetstream: enabled, users: [ { user: u, password: pw } ] } }`))
		return s, func(c *bus.Config) { c.URL = strings.Replace(c.URL, "//", "//u:pw@", 1) },
			nats.UserInfo("u", "pw")
	},
	"with users": func(t *testing.T) (*embed.Server, natstest.BusOption, nats.Option) {
		s := natstest.Start(t, natstest.Settings(t, settings))
		return s, func(c *bus.Config) { c.URL = strings.Replace(c.URL, "//", "//u:pw@", 1) },
			nats.UserInfo("o", "pw")
	},
}

// TestEndedConnections: connections that their clients ended are named, those that live are not.
func TestEndedConnections(t *testing.T) {
	// it mostly waits
	t.Parallel()
	for name, start := range cells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, option, login := start(t)
			b := natstest.Bus(t, s, option)
			living := nameOf(t, connect(t, s, login))
			ended := make(chan presence.Connection, 100_000)
			natstest.Background(t, func(ctx context.Context) error {
				return b.Presence.Watch(ctx, 20*time.Millisecond, watcher(func(all []presence.Connection) {
					for _, c := range all {
						ended <- c
					}
				}))
			})
			await := func(wanted []presence.Connection) {
				t.Helper()
				for len(wanted) > 0 {
					got := bustest.Receive(t, ended, "an ended connection")
					if got == living || got == b.Presence.Own() {
						t.Fatalf("%v is said to have ended, and lives", got)
					}
					wanted = slices.DeleteFunc(wanted, func(c presence.Connection) bool { return c == got })
				}
			}
			one := connect(t, s, login)
			wanted := []presence.Connection{nameOf(t, one)}
			one.Close()
			await(wanted)
			var all []*nats.Conn
			wanted = nil
			// more than a usual answer has
			for range 200 {
				all = append(all, connect(t, s, login))
				wanted = append(wanted, nameOf(t, all[len(all)-1]))
			}
			for _, nc := range all {
				nc.Close()
			}
			await(wanted)
		})
	}
}

// TestOpenConnections: of many open connections the newest are named, if they are asked for. One that has ended is not.
func TestOpenConnections(t *testing.T) {
	// it mostly waits
	t.Parallel()
	for name, start := range cells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, option, login := start(t)
			b := natstest.Bus(t, s, option)
			// more than an answer has
			for range 300 {
				connect(t, s, login)
			}
			left, living := connect(t, s, login, nats.Name("left")), connect(t, s, login, nats.Name("living"))
			var asks atomic.Bool
			open := make(chan []string, 100_000)
			natstest.Background(t, func(ctx context.Context) error {
				return b.Presence.Watch(ctx, 20*time.Millisecond, presence.Watcher{
					Ended: func([]presence.Connection) {},
					Asks:  asks.Load,
					Open: func(names []string) {
						if !asks.Load() {
							t.Error("not asked for")
						}
						open <- names
					}})
			})
			until := func(what string, ok func(names []string) bool) {
				t.Helper()
				for !ok(bustest.Receive(t, open, what)) {
				}
			}
			asks.Store(true)
			until("both connections", func(names []string) bool {
				return slices.Contains(names, "left") && slices.Contains(names, "living")
			})
			left.Close()
			until("one connection", func(names []string) bool {
				return !slices.Contains(names, "left") && slices.Contains(names, "living")
			})
			if !living.IsConnected() {
				t.Error("the other connection was lost")
			}
		})
	}
}

// TestNamesOfConnections: the broker knows the name of a connection, which is the same after it was restored.
func TestNamesOfConnections(t *testing.T) {
	s := natstest.Start(t)
	one, other := natstest.Bus(t, s), natstest.Bus(t, s)
	if one.Presence.Name() == other.Presence.Name() {
		t.Errorf("two connections have the name %s", one.Presence.Name())
	}
	for range 2 {
		natstest.Until(t, "the broker to name both", func() bool {
			names, err := s.OpenConnections(10)
			return err == nil && slices.Contains(names, one.Presence.Name()) &&
				slices.Contains(names, other.Presence.Name())
		})
		s = natstest.Restart(t, s)
	}
}

// TestTheGlobalAccountIsNotAsked: a broker without accounts is asked for the user's account, and not for connections.
func TestTheGlobalAccountIsNotAsked(t *testing.T) {
	s := natstest.Start(t)
	asked := make(chan string, 1_000)
	if _, err := connect(t, s).Subscribe("$SYS.REQ.>", func(m *nats.Msg) { asked <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	b := natstest.Bus(t, s)
	natstest.Background(t, func(ctx context.Context) error {
		return b.Presence.Watch(ctx, time.Millisecond, presence.Watcher{
			Ended: func(all []presence.Connection) { t.Errorf("%v has ended", all) },
			Asks:  func() bool { return true },
			Open:  func(names []string) { t.Errorf("%v are open", names) },
		})
	})
	if got := bustest.Receive(t, asked, "a question"); got != "$SYS.REQ.USER.INFO" {
		t.Errorf("%s was asked", got)
	}
	// connections that begin and end beside it
	for range 100 {
		connect(t, s).Close()
	}
	for len(asked) > 0 {
		if got := <-asked; got != "$SYS.REQ.USER.INFO" {
			t.Fatalf("%s was asked", got)
		}
	}
}

// TestOwnConnection: a connection has a name, another one after it was restored, and none at its end.
func TestOwnConnection(t *testing.T) {
	s := natstest.Start(t)
	b := bustest.BusAt(t, s.URL())
	first := b.Presence.Own()
	if first.Server == "" || first.Client == 0 {
		t.Fatalf("the connection has the name %v", first)
	}
	s.Shutdown()
	natstest.Until(t, "the connection to be lost", func() bool { return b.Presence.Own().Server == "" })
	if own := b.Presence.Own(); own != (presence.Connection{}) {
		t.Errorf("a lost connection has the name %v", own)
	}
	natstest.Restart(t, s)
	natstest.Until(t, "the connection to be restored", func() bool {
		own := b.Presence.Own()
		return own.Server != "" && own.Server != first.Server
	})
	b.Abort()
	if own := b.Presence.Own(); own != (presence.Connection{}) {
		t.Errorf("an ended connection has the name %v", own)
	}
}

// TestClosedWhileAsking: with a closed connection it is an error to ask.
func TestClosedWhileAsking(t *testing.T) {
	b := natstest.Bus(t, natstest.Start(t))
	b.Abort()
	err := b.Presence.Watch(bustest.Within(t, bustest.Patience), time.Hour, watcher(nil))
	if err == nil {
		t.Error("no error")
	}
}

// TestMayNotAsk: a user without the permission learns so.
func TestMayNotAsk(t *testing.T) {
	s := natstest.Start(t, natstest.Settings(t,
		`authorization: { users: [ { user: u, password: pw, permissions: { publish: { deny: "hf.broker.>" } } } ] }`))
	b := natstest.Bus(t, s, func(c *bus.Config) { c.URL = strings.Replace(c.URL, "//", "//u:pw@", 1) })
	err := b.Presence.Watch(bustest.Within(t, bustest.Patience), time.Millisecond, watcher(nil))
	if !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("got %v", err)
	}
}

func connect(t *testing.T, s *embed.Server, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func nameOf(t *testing.T, nc *nats.Conn) presence.Connection {
	t.Helper()
	client, err := nc.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	return presence.Connection{Server: nc.ConnectedServerId(), Client: client}
}
