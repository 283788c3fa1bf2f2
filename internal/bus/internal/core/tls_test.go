package core_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-dev/holdfast/internal/bus"
	"github.com/holdfast-dev/holdfast/internal/bus/internal/core"
	"github.com/holdfast-dev/holdfast/internal/embed"
	"github.com/holdfast-dev/holdfast/internal/natstest"
	"github.com/holdfast-dev/holdfast/internal/permission"
	"github.com/holdfast-dev/holdfast/internal/secret"
)

// secrets makes certificates that are valid from now on for a time, which may be over: the broker's is in nats-tls,
// that of a client in holdfast-x.
func secrets(t *testing.T, dir string, valid time.Duration, hosts ...string) string {
	t.Helper()
	users := []permission.User{{Name: "x", Password: permission.PasswordPrefix + "X"}}
	err := secret.Make(dir, secret.Cell{Users: users, Hosts: hosts, Nodes: []string{"n:1"}, Valid: valid,
		Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func guarded(t *testing.T, dir string) *embed.Server {
	t.Helper()
	f := dir + "/nats-tls"
	conf := `tls { cert_file: "` + f + `/tls.crt", key_file: "` + f + `/tls.key", ca_file: "` + f +
		`/ca.crt", verify: true }`
	return natstest.Start(t, natstest.Settings(t, conf))
}

func files(url, ca, own string) bus.Config {
	cfg := bus.Config{URL: url}
	if ca != "" {
		cfg.TLSCA = ca + "/holdfast-x/ca.crt"
	}
	if own != "" {
		cfg.TLSCert, cfg.TLSKey = own+"/holdfast-x/tls.crt", own+"/holdfast-x/tls.key"
	}
	return cfg
}

// TestTLSErrorsNameTheirCause: the error of a failed connection names the wrong certificate.
func TestTLSErrorsNameTheirCause(t *testing.T) {
	dir := secrets(t, t.TempDir(), time.Hour, "127.0.0.1")
	foreign := secrets(t, t.TempDir(), time.Hour, "127.0.0.1")
	// the same authority; the client's certificate has ended
	old := t.TempDir()
	for _, name := range []string{"clients.ca.crt", "clients.ca.key"} {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(old, name), body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	secrets(t, old, -time.Minute, "127.0.0.1")
	s, plain := guarded(t, dir), natstest.Start(t)
	ended := secrets(t, t.TempDir(), -time.Minute, "127.0.0.1")
	named := secrets(t, t.TempDir(), time.Hour, "broker.example")
	expired, elsewhere := guarded(t, ended), guarded(t, named)
	for _, c := range []struct {
		name string
		cfg  bus.Config
		want string
	}{
		{"the wrong authority", files(s.URL(), foreign, dir), "not of an authority in " + foreign},
		{"no authority", files(s.URL(), "", dir), "authority that this system does not know"},
		{"no certificate", files(s.URL(), dir, ""), "wants a certificate of this client"},
		{"another authority's certificate", files(s.URL(), dir, foreign), "does not accept the certificate " + foreign},
		{"an expired certificate", files(s.URL(), dir, old), "has expired at "},
		{"no TLS at the broker", files(plain.URL(), dir, dir), "the broker has no TLS"},
		{"an expired certificate of the broker", files(expired.URL(), ended, ""), "not valid now"},
		{"another name", files(elsewhere.URL(), named, named), "for other names than 127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := refusal(t, c.cfg); !errors.Is(err, bus.ErrTLS) || !errors.Is(err, bus.ErrUnreachable) ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// refusal tries to connect for a second.
func refusal(t *testing.T, cfg bus.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	b, err := bus.Open(ctx, cfg)
	if err == nil {
		b.Abort()
	}
	return err
}

// A client whose certificate and authority are exchanged on the disk connects with the new ones, without a restart.
func TestCertificatesAreReadAgain(t *testing.T) {
	dir := secrets(t, t.TempDir(), time.Hour, "127.0.0.1")
	s := guarded(t, dir)
	b, err := bus.Open(t.Context(), files(s.URL(), dir, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	// a new authority signs everything again
	for _, name := range []string{"clients.ca.crt", "clients.ca.key"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	secrets(t, dir, time.Hour, "127.0.0.1")
	natstest.Restart(t, s)
	natstest.Until(t, "the client to be back", func() bool { return b.Reconnects() > 0 && b.Connected() })
}

// TestErrorsOfAHandshake: the reason of each failed handshake is a plain sentence; other errors have none.
func TestErrorsOfAHandshake(t *testing.T) {
	own := files("", "", secrets(t, t.TempDir(), time.Hour, "127.0.0.1"))
	unreadable := own
	unreadable.TLSKey += ".none"
	for _, c := range []struct {
		name string
		cfg  bus.Config
		err  error
		want string
	}{
		{"not valid for this use", own, x509.CertificateInvalidError{Reason: x509.IncompatibleUsage},
			"the broker's certificate is not valid"},
		{"an alert", own, tls.AlertError(42), "does not accept the certificate"},
		{"an alert in words", own, errors.New("remote error: tls: bad certificate"), "does not accept the certificate"},
		{"it hangs up", own, errors.New("connection closed by remote"), "does not accept the certificate"},
		{"it hangs up, no certificate", bus.Config{}, errors.New("connection closed by remote"), "wants a certificate"},
		{"it hangs up, unreadable files", unreadable, errors.New("connection closed by remote"), "cannot be read"},
		{"no TLS", own, tls.RecordHeaderError{Msg: "x"}, "the handshake failed"},
		{"the library's error", own, nats.ErrTLS, "the handshake failed"},
		{"another error", own, nats.ErrTimeout, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if why := core.WhyTLS(c.cfg, c.err); !strings.Contains(why, c.want) || (why == "") != (c.want == "") {
				t.Errorf("%q, want %q", why, c.want)
			}
		})
	}
}
