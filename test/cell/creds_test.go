package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// credsLive is how long the first credentials of the test are valid. The broker counts in seconds.
const credsLive = 8 * time.Second

// authority is an operator with one account. It signs the credentials of users.
type authority struct {
	t        *testing.T
	operator nkeys.KeyPair
	account  nkeys.KeyPair
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	operator, err1 := nkeys.CreateOperator()
	account, err2 := nkeys.CreateAccount()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return &authority{t, operator, account}
}

// settings returns the broker's configuration: it trusts the operator, and has the claims of two accounts in memory.
func (a *authority) settings() string {
	a.t.Helper()
	system, err := nkeys.CreateAccount()
	if err != nil {
		a.t.Fatal(err)
	}
	root := jwt.NewOperatorClaims(public(a.t, a.operator))
	root.SystemAccount = public(a.t, system)
	cell := jwt.NewAccountClaims(public(a.t, a.account))
	cell.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit,
		Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	return fmt.Sprintf("operator: %q\nresolver: MEMORY\nresolver_preload: { %s: %q, %s: %q }\n",
		a.sign(root, a.operator), cell.Subject, a.sign(cell, a.operator), root.SystemAccount,
		a.sign(jwt.NewAccountClaims(root.SystemAccount), a.operator))
}

func (a *authority) sign(claims jwt.Claims, by nkeys.KeyPair) string {
	a.t.Helper()
	token, err := claims.Encode(by)
	if err != nil {
		a.t.Fatal(err)
	}
	return token
}

// creds returns the credentials of a new user as the text of a file. A zero time does not end.
func (a *authority) creds(until time.Time) []byte {
	a.t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		a.t.Fatal(err)
	}
	claims := jwt.NewUserClaims(public(a.t, user))
	if !until.IsZero() {
		claims.Expires = until.Unix()
	}
	seed, err1 := user.Seed()
	text, err2 := jwt.FormatUserConfig(a.sign(claims, a.account), seed)
	if err := errors.Join(err1, err2); err != nil {
		a.t.Fatal(err)
	}
	return text
}

func public(t *testing.T, pair nkeys.KeyPair) string {
	t.Helper()
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Credentials are replaced while a process runs: the broker ends a connection whose credentials have expired, and the
// client reads its file again. Expired credentials are refused.
func TestCredsAreReadAgain(t *testing.T) {
	a := newAuthority(t)
	conf := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(conf, []byte(a.settings()), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "nats://" + runServer(t, conf, t.TempDir(), "--jetstream", "--store_dir", t.TempDir())
	path, old := filepath.Join(t.TempDir(), "user.creds"), filepath.Join(t.TempDir(), "old.creds")
	if err := errors.Join(os.WriteFile(path, a.creds(time.Now().Add(credsLive)), 0o600),
		os.WriteFile(old, a.creds(time.Now().Add(-time.Minute)), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(within(t), bus.Config{URL: url, Creds: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := os.WriteFile(path, a.creds(time.Time{}), 0o600); err != nil {
		t.Fatal(err)
	}
	natstest.Until(t, "the client to be back with its new credentials", func() bool {
		return b.Reconnects() > 0 && b.Connected()
	})
	if err := b.Layout.Ensure(within(t)); err != nil {
		t.Errorf("after the credentials were replaced: %v", err)
	}
	again, err := bus.Open(within(t), bus.Config{URL: url, Creds: old})
	if !errors.Is(err, bus.ErrForbidden) {
		t.Errorf("expired credentials: %v", err)
	}
	if err == nil {
		again.Close()
	}
}

// within returns a context that ends after a minute.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
