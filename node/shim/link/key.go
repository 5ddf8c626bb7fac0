package link

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"

	"gridnode/internal/atomicfile"
)

// Key is what both ends have.
type Key struct{ pair tls.Certificate }

// keyMax bounds the file of a key.
const keyMax = 64 << 10

// OpenKey returns the key in a file, and makes it first if there is none.
func OpenKey(path string) (*Key, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	text, err := newKey()
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return nil, err
	}
	return ReadKey(path)
}

// ReadKey returns the key in a file.
func ReadKey(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > keyMax || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: %d bytes, mode %v: want a key that only its owner can read (remove it to have a new one)", path, info.Size(), info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Key{pair}, nil
}

// newKey returns a key pair and a certificate of it, signed by itself.
func newKey() ([]byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}

// config is that of either end.
func (k *Key) config() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{k.pair}, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true, // instead of by names:
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, k.pair.Certificate[0]) {
				return errors.New("the other end has another key")
			}
			return nil
		},
	}
}
