package core

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrTLS means that no trusted connection to the broker was made: the text names the wrong certificate. It comes with
// [ErrUnreachable], because certificates are replaced while programs run.
var ErrTLS = errors.New("no trusted connection")

// ofTLS adds a plain reason to an error of a TLS handshake; other errors are returned unchanged.
func ofTLS(cfg *Config, err error) error {
	if why := whyTLS(cfg, err); why != "" {
		return fmt.Errorf("%w: %s: %w", ErrTLS, why, err)
	}
	return err
}

// whyTLS returns why a handshake failed, "" for other errors. The broker says little about a certificate that it
// refuses, so this client's own is checked first.
func whyTLS(cfg *Config, err error) string {
	own := ownCertificate(cfg)
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var alert tls.AlertError
	switch {
	case errors.As(err, &unknown) && cfg.TLSCA == "":
		return "the broker's certificate is of an authority that this system does not know: name its file (tls-ca)"
	case errors.As(err, &unknown):
		return "the broker's certificate is not of an authority in " + cfg.TLSCA + " (tls-ca)"
	case errors.As(err, &host):
		return "the broker's certificate is for other names than " + host.Host
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the broker's certificate is not valid now: it is for " +
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339) + " to " +
			invalid.Cert.NotAfter.UTC().Format(time.RFC3339)
	case errors.As(err, &invalid):
		return "the broker's certificate is not valid"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the broker has no TLS, and this client sends its login over TLS only"
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls: "),
		strings.Contains(err.Error(), "closed by remote"):
		// the broker checks it after this client's part of the handshake, and may only close the connection
		return own
	case errors.Is(err, nats.ErrTLS), errors.As(err, new(tls.RecordHeaderError)):
		return "the handshake failed"
	}
	return ""
}

// ownCertificate returns why a broker may have refused this client's certificate.
func ownCertificate(cfg *Config) string {
	if cfg.TLSCert == "" {
		return "the broker wants a certificate of this client: name its files (tls-cert, tls-key)"
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	switch {
	case err != nil:
		return "the certificate " + cfg.TLSCert + " cannot be read"
	case time.Now().After(pair.Leaf.NotAfter):
		return "the certificate " + cfg.TLSCert + " has expired at " + pair.Leaf.NotAfter.UTC().Format(time.RFC3339)
	}
	return "the broker does not accept the certificate " + cfg.TLSCert +
		": it is of another authority, or not for clients"
}
