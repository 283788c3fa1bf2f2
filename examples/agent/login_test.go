package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/pkg/events"
)

// The agent logs in to a broker with users and TLS, by flags or by the variables of the program holdfast.
func TestLogin(t *testing.T) {
	dir := natstest.Certificates(t)
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err1 := pair.PublicKey()
	seed, err2 := pair.Seed()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password, wrong, nkey := file("password", "pw\n"), file("wrong", "other"), file("seed", string(seed))
	ca, cert, key := dir+"/ca.crt", dir+"/tls.crt", dir+"/tls.key"
	server := natstest.Start(t, natstest.Settings(t, `
tls { cert_file: "`+cert+`", key_file: "`+key+`", ca_file: "`+ca+`", verify: true }
authorization: { users: [ { user: ann, password: pw }, { nkey: `+public+` } ] }`))
	url := strings.Replace(server.URL(), "//", "//ann@", 1)
	observer, err := bus.Open(t.Context(), bus.Config{URL: url, PasswordFile: password, TLSCA: ca, TLSCert: cert,
		TLSKey: key})
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	if err := observer.Layout.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	trust := " --nats " + url + " --tls-ca " + ca + " --tls-cert " + cert + " --tls-key " + key
	env := func(password string) map[string]string {
		return map[string]string{"NATS": url, "PASSWORD_FILE": password, "TLS_CA": ca, "TLS_CERT": cert, "TLS_KEY": key}
	}
	for name, c := range map[string]struct {
		flags string
		env   map[string]string
		ok    bool
	}{
		"password":                     {"--password-file " + password + trust, nil, true},
		"nkey":                         {"--nkey " + nkey + trust, nil, true},
		"environment":                  {"", env(password), true},
		"flags before the environment": {"--password-file " + password, env(wrong), true},
		"wrong password":               {"--password-file " + wrong + trust, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv("HOLDFAST_"+name, value)
			}
			// the model is not called
			t.Setenv("OPENAI_API_KEY", "secret")
			session := strings.ReplaceAll(name, " ", "-")
			args := append(strings.Fields(c.flags), "--session", session, "--dir", t.TempDir())
			if opened := opens(t, observer, session, args); opened != c.ok {
				t.Errorf("the session was opened: %v, want %v", opened, c.ok)
			}
		})
	}
}

// opens runs the agent until it has opened the session, or has ended by itself.
func opens(t *testing.T, observer *bus.Bus, session string, args []string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- program(ctx, args, io.Discard, io.Discard) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the agent ended without an error")
			}
			return false
		case <-tick.C:
		}
		commits, err := observer.Log.Read(ctx, events.Ref{Harness: me, Session: session}, 0)
		if err == nil && len(commits) > 0 {
			cancel()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the agent ended with %v", err)
			}
			return true
		}
	}
}
