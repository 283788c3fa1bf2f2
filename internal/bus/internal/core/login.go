package core

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// errNoCertificate means that a file of authorities has none.
var errNoCertificate = errors.New("no certificate in PEM")

// checkFiles refuses unusable login files before the broker is asked repeatedly.
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

// consumerKeyBytesMin is the least length of a key: 128 bits in hexadecimal.
const consumerKeyBytesMin = 32

// consumerKey reads the key of the durable consumers' names. A file that is missing means no key, so that a cell whose
// secrets are older than this file works; it is logged.
func consumerKey(cfg Config) ([]byte, error) {
	if cfg.ConsumerKeyFile == "" {
		return nil, nil
	}
	body, err := os.ReadFile(cfg.ConsumerKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		cfg.Log.Warn().AnErr("err", err).Msg("no consumer key: users can guess the names of this service's consumers " +
			"and delay it; make the file with `holdfast secrets`, then start all processes of this service again")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: consumer key: %w", ErrForbidden, err)
	}
	key := bytes.TrimSpace(body)
	if len(key) < consumerKeyBytesMin {
		return nil, fmt.Errorf("%w: consumer key %s has %d bytes: want at least %d, as `holdfast secrets` makes them",
			ErrForbidden, cfg.ConsumerKeyFile, len(key), consumerKeyBytesMin)
	}
	return key, nil
}

// loginOptions returns the options for the login and for trust. Files are read again at each new connection, so a
// password, an nkey, credentials or a certificate can be replaced while a process runs. nkey is nil without one.
func loginOptions(cfg Config, nkey *nkeyLogin) []nats.Option {
	var opts []nats.Option
	if cfg.Creds != "" {
		opts = append(opts, nats.UserCredentials(cfg.Creds))
	}
	if cfg.PasswordFile != "" {
		opts = append(opts, nats.UserInfoHandler(func() (user, password string) {
			body, err := os.ReadFile(cfg.PasswordFile)
			// the broker refuses, and it is tried again
			if err != nil {
				return LoginOf(cfg), ""
			}
			return LoginOf(cfg), strings.TrimSpace(string(body))
		}))
	}
	if cfg.TLSCA != "" {
		opts = append(opts, nats.RootCAs(cfg.TLSCA))
	}
	if cfg.TLSCert != "" {
		opts = append(opts, nats.ClientCert(cfg.TLSCert, cfg.TLSKey))
	}
	if nkey != nil {
		return append(opts, nkey.option, nats.SetCustomDialer(nkey))
	}
	return append(opts, nats.SetCustomDialer(newDialer()))
}

// nkeyLogin logs in with the nkey whose seed a file has at the time of each connection. nats.go takes the public key
// only once, with the options. It calls the dialer before each connection, under the lock of the connection and in the
// goroutine that logs in afterwards, so the dialer replaces the public key.
type nkeyLogin struct {
	path   string
	dialer *dialer
	nc     atomic.Pointer[nats.Conn] // nil until the first connection is made
}

// newNKeyLogin returns nil if there is no file.
func newNKeyLogin(path string) *nkeyLogin {
	if path == "" {
		return nil
	}
	return &nkeyLogin{path: path, dialer: newDialer()}
}

// connected names the connection whose public key has to follow the file.
func (l *nkeyLogin) connected(nc *nats.Conn) {
	if l != nil {
		l.nc.Store(nc)
	}
}

// option is the login at the first connection.
func (l *nkeyLogin) option(o *nats.Options) error {
	public, err := l.public()
	if err != nil {
		return err
	}
	return nats.Nkey(public, l.sign)(o)
}

// Dial implements [nats.CustomDialer].
func (l *nkeyLogin) Dial(network, address string) (net.Conn, error) {
	if nc := l.nc.Load(); nc != nil {
		// else the signature fails, and it is tried again
		if public, err := l.public(); err == nil {
			nc.Opts.Nkey = public
		}
	}
	return l.dialer.Dial(network, address)
}

// public returns the public key of the seed.
func (l *nkeyLogin) public() (public string, err error) {
	err = l.with(func(pair nkeys.KeyPair) error {
		public, err = pair.PublicKey()
		return err
	})
	return public, err
}

// sign signs what the broker sends to a client that logs in.
func (l *nkeyLogin) sign(nonce []byte) (signature []byte, err error) {
	err = l.with(func(pair nkeys.KeyPair) error {
		signature, err = pair.Sign(nonce)
		return err
	})
	return signature, err
}

// with reads the seed, and removes it from memory after its use.
func (l *nkeyLogin) with(use func(pair nkeys.KeyPair) error) error {
	body, err := os.ReadFile(l.path)
	if err != nil {
		return fmt.Errorf("nkey: %w", err)
	}
	defer clear(body)
	pair, err := nkeys.ParseDecoratedNKey(body)
	if err != nil {
		return fmt.Errorf("nkey %s: %w", l.path, err)
	}
	defer pair.Wipe()
	return use(pair)
}

// dialed returns the broker's URL for the connection. A user in it would be taken for a token, or in place of the nkey,
// so it is removed if a file has the login.
func dialed(cfg Config) string {
	if !hasLoginFile(cfg) {
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

// hasLoginFile reports whether a file has the login, so that the URL has no secret that is sent.
func hasLoginFile(cfg Config) bool {
	return cfg.PasswordFile != "" || cfg.NKey != "" || cfg.Creds != ""
}

// LoginOf returns the name of the user that logs in: the user in the broker's URL, the first of several. A user without
// a password is a token, a secret, and no name, unless a file has the login.
func LoginOf(cfg Config) string {
	first, _, _ := strings.Cut(cfg.URL, ",")
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.User == nil {
		return ""
	}
	if _, ok := u.User.Password(); !ok && !hasLoginFile(cfg) {
		return ""
	}
	return u.User.Username()
}
