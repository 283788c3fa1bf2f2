package secret

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"time"
)

const (
	authorityYears = 10
	serialBits     = 120
	backdated      = time.Hour // clocks of machines differ
	renewedAt      = 3         // a certificate with less than a third of its time is made again
)

// signer is a certificate with its key.
type signer struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte // of the certificate
}

// authority reads the authority of that name from dir, or makes it. Its key stays in dir and belongs to no secret.
func (c *Cell) authority(dir, name string) (*signer, error) {
	cert, key := filepath.Join(dir, name+".ca.crt"), filepath.Join(dir, name+".ca.key")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if errors.Is(err, fs.ErrNotExist) {
		err = c.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "holdfast " + name},
			NotAfter: c.Now.AddDate(authorityYears, 0, 0),
			IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}, nil,
			cert, key)
		if err == nil {
			pair, err = tls.LoadX509KeyPair(cert, key)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	by, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("authority %s: its key cannot sign", name)
	}
	return &signer{cert: pair.Leaf, key: by, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: pair.Leaf.Raw})}, nil
}

// certificate makes a certificate for clients and, with hosts, for servers, unless the folder has one that will do.
func (c *Cell) certificate(folder string, by *signer, name string, hosts ...string) error {
	want := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: c.Now.Add(c.Valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if len(hosts) > 0 {
		want.ExtKeyUsage = append(want.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			want.IPAddresses = append(want.IPAddresses, ip)
		} else {
			want.DNSNames = append(want.DNSNames, h)
		}
	}
	cert, key := filepath.Join(folder, CertFile), filepath.Join(folder, KeyFile)
	if pair, err := tls.LoadX509KeyPair(cert, key); err == nil && c.keeps(pair.Leaf, want, by) {
		return write(filepath.Join(folder, CAFile), by.pem)
	}
	return errors.Join(c.sign(want, by, cert, key), write(filepath.Join(folder, CAFile), by.pem))
}

// keeps is whether a certificate that is there will do.
func (c *Cell) keeps(found, want *x509.Certificate, by *signer) bool {
	left, whole := found.NotAfter.Sub(c.Now), found.NotAfter.Sub(found.NotBefore)
	return left > whole/renewedAt && found.CheckSignatureFrom(by.cert) == nil &&
		slices.Equal(found.DNSNames, want.DNSNames) &&
		slices.EqualFunc(found.IPAddresses, want.IPAddresses, net.IP.Equal)
}

// sign makes a key and a certificate for it, signed by an authority, or by the key itself.
func (c *Cell) sign(cert *x509.Certificate, by *signer, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return err
	}
	cert.NotBefore = c.Now.Add(-backdated)
	if by == nil {
		by = &signer{cert: cert, key: key}
	}
	body, err := x509.CreateCertificate(rand.Reader, cert, by.cert, &key.PublicKey, by.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(write(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		write(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: body})))
}
