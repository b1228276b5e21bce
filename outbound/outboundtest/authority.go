package outboundtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority is a certificate authority that issues valid certificates for all hosts. An invalid
// certificate would hide a missing check in the tested code.
type Authority struct {
	// Roots contains the root certificate of the authority. Clients that use Roots trust all certificates of the authority.
	Roots *x509.CertPool

	key    *ecdsa.PrivateKey
	root   *x509.Certificate
	mu     sync.Mutex
	issued map[string]*tls.Certificate
}

// NewAuthority returns a new certificate authority.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	root, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	a := &Authority{Roots: x509.NewCertPool(), key: key, root: root, issued: map[string]*tls.Certificate{}}
	a.Roots.AddCert(root)
	return a
}

// ServerConfig returns the TLS configuration of a server that has a certificate for every host.
func (a *Authority) ServerConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return a.issueCertificate(hello.ServerName)
	}}
}

// issueCertificate returns the certificate for a host. It creates the certificate at the first call for the host.
func (a *Authority) issueCertificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.issued[host]; ok {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a.issued) + 2)), NotBefore: a.root.NotBefore, NotAfter: a.root.NotAfter, DNSNames: []string{host},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	a.issued[host] = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
	return a.issued[host], nil
}
