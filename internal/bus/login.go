package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// errNoCertificate says that a file of authorities has none.
var errNoCertificate = errors.New("no certificate in PEM")

// checkFiles refuses files for a login that cannot be used, before the broker is asked again and again.
func checkFiles(cfg Config) error {
	var errs []error
	check := func(what, path string, read func(body []byte) error) {
		if path == "" {
			return
		}
		body, err := os.ReadFile(path)
		if err == nil {
			err = read(body)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s %s: %w", ErrForbidden, what, path, err))
		}
	}
	check("password file", cfg.PasswordFile, func([]byte) error { return nil })
	check("nkey", cfg.NKey, func(body []byte) error {
		_, err := nkeys.ParseDecoratedNKey(body)
		return err
	})
	check("authorities", cfg.TLSCA, func(body []byte) error {
		if !x509.NewCertPool().AppendCertsFromPEM(body) {
			return errNoCertificate
		}
		return nil
	})
	check("certificate", cfg.TLSCert, func([]byte) error {
		_, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
		return err
	})
	if cfg.TLSCert == "" && cfg.TLSKey != "" {
		errs = append(errs, fmt.Errorf("%w: the key %s has no certificate beside it", ErrForbidden, cfg.TLSKey))
	}
	return errors.Join(errs...)
}

// loginOptions are how a client proves who it is, and whom it talks to. Files are read again at each new connection, so a
// password or a certificate can be replaced while a process runs.
func loginOptions(cfg Config) []nats.Option {
	var opts []nats.Option
	if cfg.PasswordFile != "" {
		opts = append(opts, nats.UserInfoHandler(func() (user, password string) {
			body, err := os.ReadFile(cfg.PasswordFile)
			if err != nil { // the broker refuses, and it is tried again
				return LoginOf(cfg.URL), ""
			}
			return LoginOf(cfg.URL), strings.TrimSpace(string(body))
		}))
	}
	if cfg.TLSCA != "" {
		opts = append(opts, nats.RootCAs(cfg.TLSCA))
	}
	if cfg.TLSCert != "" {
		opts = append(opts, nats.ClientCert(cfg.TLSCert, cfg.TLSKey))
	}
	if cfg.NKey != "" {
		opts = append(opts, func(o *nats.Options) error {
			nkey, err := nats.NkeyOptionFromSeed(cfg.NKey)
			if err != nil {
				return err
			}
			return nkey(o)
		})
	}
	return opts
}

// dialed is the broker's URL as it is connected to: a user without a password in it would be taken for a token.
func dialed(cfg Config) string {
	if cfg.PasswordFile == "" {
		return cfg.URL
	}
	all := strings.Split(cfg.URL, ",")
	for i, one := range all {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil {
			u.User = nil
			all[i] = u.String()
		}
	}
	return strings.Join(all, ",")
}

// LoginOf is the user in a broker's URL, the first of several.
func LoginOf(urls string) string {
	first, _, _ := strings.Cut(urls, ",")
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.User == nil {
		return ""
	}
	return u.User.Username()
}
