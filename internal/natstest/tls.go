package natstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates makes an authority and a certificate of it for loopback and further names, for servers and clients, in a
// folder: ca.crt, tls.crt and tls.key, the names that Kubernetes uses.
func Certificates(t testing.TB, names ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	write := func(name, kind string, body []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: body}),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotAfter:  time.Now().Add(time.Hour),
		NotBefore: time.Now().Add(-time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caKey, body := sign(t, authority, authority, nil)
	write("ca.crt", "CERTIFICATE", body)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"},
		NotAfter: authority.NotAfter, NotBefore: authority.NotBefore,
		DNSNames: append([]string{"localhost"}, names...), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	key, body := sign(t, leaf, authority, caKey)
	write("tls.crt", "CERTIFICATE", body)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write("tls.key", "PRIVATE KEY", private)
	return folder
}

// sign makes a key and a certificate for it, signed with the authority's key, or with its own if that is nil.
func sign(t testing.TB, cert, authority *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	body, err := x509.CreateCertificate(rand.Reader, cert, authority, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return key, body
}
