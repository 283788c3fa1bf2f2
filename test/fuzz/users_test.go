package fuzz

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

const (
	prefix   = "hf"
	password = "secret" // of each user of the secured cell
	asks     = "ada"    // the person who asks beside the attacks
)

// users are how the processes of a cell log in: each as its own user in a secured cell, and without a name in a cell
// without users.
type users struct {
	*testing.T
	server  *embed.Server
	secured bool
	key     string // the file of the key of the consumers' names
}

// open starts the broker of a cell without users.
func open(t *testing.T) *users { return &users{T: t, server: natstest.Start(t)} }

// secured starts a broker with the permissions that `holdfast permissions` prints.
func secured(t *testing.T) *users {
	t.Helper()
	c, err := events.NewCell(prefix)
	if err != nil {
		t.Fatal(err)
	}
	harnesses := []string{probeRef.Harness}
	for i := range attackers {
		harnesses = append(harnesses, attackerName(i))
	}
	all, err := permission.Users(c, harnesses, []string{asks}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var passwords strings.Builder
	for _, u := range all {
		fmt.Fprintf(&passwords, "%s: %s\n", u.Password, password)
	}
	key := filepath.Join(t.TempDir(), "consumer-key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	return &users{t, natstest.Start(t, natstest.Settings(t, passwords.String()+permission.Conf(all))), true, key}
}

// url returns the URL at which a user reaches the broker.
func (u *users) url(user string) string {
	if !u.secured {
		return u.server.URL()
	}
	at, err := url.Parse(u.server.URL())
	if err != nil {
		u.Fatal(err)
	}
	at.User = url.UserPassword(user, password)
	return at.String()
}

// service returns a connection of a service. The first one creates the streams and buckets.
func (u *users) service(name string) *bus.Bus {
	u.Helper()
	return natstest.Bus(u, u.server, func(cfg *bus.Config) {
		cfg.URL, cfg.ConsumerKeyFile = u.url(events.ServiceName(name)), u.key
		if u.secured {
			cfg.Inbox = events.Inbox(prefix, events.ClassService, name)
		}
	})
}

// login returns a connection of a harness or of a person.
func (u *users) login(class, id string) *bus.Bus {
	u.Helper()
	cfg := bus.Config{URL: u.server.URL()}
	if u.secured {
		cfg.URL, cfg.Inbox = u.url(userOf(class, id)), events.Inbox(prefix, class, id)
		cfg.Asker = events.Asker{Class: class, ID: id}
	}
	b, err := bus.Open(u.Context(), cfg)
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(b.Close)
	return b
}

// userOf returns the name that a harness or a person logs in with.
func userOf(class, id string) string {
	if class == events.ClassHarness {
		return "harness-" + id
	}
	return id
}

// attackerName returns the harness of an attacker.
func attackerName(i int) string { return fmt.Sprint("fuzz", i) }
