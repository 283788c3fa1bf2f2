package core_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/bustest"
	"github.com/holdfast-dev/holdfast/internal/natstest"
)

// A client proves who it is with files, and talks to no broker that its authority does not know.
func TestLogins(t *testing.T) {
	own, foreign := natstest.Certificates(t), natstest.Certificates(t)
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password, wrong, nkey := file("password", "pw\n"), file("password", "other"), file("seed", string(seed))
	s := natstest.Start(t, natstest.Settings(t, `tls { cert_file: "`+own+`/tls.crt", key_file: "`+own+`/tls.key",
			ca_file: "`+own+`/ca.crt", verify: true }
authorization: { users: [ { user: ann, password: pw }, { nkey: `+public+` } ] }`))
	ann := strings.Replace(s.URL(), "//", "//ann@", 1)
	with := func(cfg bus.Config, folder string) bus.Config {
		cfg.TLSCA, cfg.TLSCert, cfg.TLSKey = own+"/ca.crt", folder+"/tls.crt", folder+"/tls.key"
		return cfg
	}
	for name, c := range map[string]struct {
		cfg bus.Config
		ok  bool
		is  error
	}{
		"password in a file": {with(bus.Config{URL: ann, PasswordFile: password}, own), true, nil},
		"nkey":               {with(bus.Config{URL: s.URL(), NKey: nkey}, own), true, nil},
		"nkey and a user":    {with(bus.Config{URL: ann, NKey: nkey}, own), true, nil},
		"wrong password":     {with(bus.Config{URL: ann, PasswordFile: wrong}, own), false, bus.ErrForbidden},
		"no login":           {with(bus.Config{URL: s.URL()}, own), false, bus.ErrForbidden},
		"foreign certificate": {with(bus.Config{URL: ann, PasswordFile: password}, foreign), false,
			bus.ErrUnreachable},
		"no certificate": {bus.Config{URL: ann, PasswordFile: password, TLSCA: own + "/ca.crt"}, false,
			bus.ErrUnreachable},
		"foreign authority": {bus.Config{URL: ann, PasswordFile: password, TLSCA: foreign + "/ca.crt",
			TLSCert: own + "/tls.crt", TLSKey: own + "/tls.key"}, false, bus.ErrUnreachable},
		"the system's authority": {bus.Config{URL: ann, PasswordFile: password, TLSCert: own + "/tls.crt",
			TLSKey: own + "/tls.key"}, false, bus.ErrUnreachable},
		"no password file":      {bus.Config{URL: ann, PasswordFile: own + "/none"}, false, bus.ErrForbidden},
		"no seed":               {bus.Config{URL: ann, NKey: password}, false, bus.ErrForbidden},
		"no authority":          {bus.Config{URL: ann, TLSCA: password}, false, bus.ErrForbidden},
		"a certificate, no key": {bus.Config{URL: ann, TLSCert: own + "/tls.crt"}, false, bus.ErrForbidden},
		"a key, no certificate": {bus.Config{URL: ann, TLSKey: own + "/tls.key"}, false, bus.ErrForbidden},
		"another's key": {bus.Config{URL: ann, TLSCert: own + "/tls.crt", TLSKey: foreign + "/tls.key"}, false,
			bus.ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
			if errors.Is(c.is, bus.ErrUnreachable) {
				cancel()
				// it is tried until then
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			b, err := bus.Open(ctx, c.cfg)
			if err == nil {
				b.Abort()
			}
			if c.ok != (err == nil) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v, want %v", err, c.is)
			}
		})
	}
}
