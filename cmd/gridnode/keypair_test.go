package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writePair writes a certificate of its own and its key.
func writePair(t *testing.T, certificate, key string, c *x509.Certificate, at time.Time) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: raw}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCertificateIsRenewed: files that have changed count without a restart, once both fit.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "site.pem"), filepath.Join(dir, "site.key")
	if _, err := openKeyPair(certificate, key, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a certificate that is not there is good")
	}
	begin := time.Now().Add(-time.Hour)
	write := func(serial int64, at time.Time) {
		writePair(t, certificate, key, &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"*.example.org", "grid.example.org"}}, at)
	}
	write(1, begin)
	p, err := openKeyPair(certificate, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	write(2, begin.Add(time.Minute))
	serial := func() int64 { return p.now().Leaf.SerialNumber.Int64() }
	if n := serial(); n != 1 {
		t.Errorf("the files were looked at again at once: certificate %d", n)
	}
	p.look = 0
	if n := serial(); n != 2 {
		t.Errorf("certificate %d, want the new one", n)
	}
	old, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	write(3, begin.Add(2*time.Minute))
	renewed, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int64{string(old): 2, "": 2} { // the key is still that of before, or half written
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := serial(); n != want {
			t.Errorf("certificate %d with a key that is not its own", n)
		}
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if n := serial(); n != 2 {
		t.Errorf("certificate %d without a key", n)
	}
	if err := os.WriteFile(key, renewed, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := serial(); n != 3 {
		t.Errorf("certificate %d once the key has come", n)
	}
	if !p.names("any.example.org") || p.names("example.com") || p.name() != "grid.example.org" {
		t.Errorf("it is called %q", p.name())
	}
}

// TestCertificateNamesAnAddress: who has no name has an address.
func TestCertificateNamesAnAddress(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "site.pem"), filepath.Join(dir, "site.key")
	for want, c := range map[string]*x509.Certificate{
		"192.0.2.7": {SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}},
		"":          {SerialNumber: big.NewInt(1), DNSNames: []string{"*.invalid"}, Subject: pkix.Name{CommonName: "x"}},
	} {
		writePair(t, certificate, key, c, time.Now())
		p, err := openKeyPair(certificate, key, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.name(); got != want {
			t.Errorf("called %q, want %q", got, want)
		}
	}
}
