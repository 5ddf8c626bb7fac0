//go:build !client

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// keyPairLook is how often the files of a certificate are looked at, at most.
const keyPairLook = 10 * time.Second

// keyPair is the certificate of the daemon's ports for people, with its key. Whoever renews it
// replaces the files: they are read again then, without a restart. It may be used concurrently.
type keyPair struct {
	certificate, key string // files
	look             time.Duration
	log              *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	files   [2]time.Time // when those that were read last, or tried, had changed
	looked  time.Time
}

// openKeyPair reads a certificate and its key.
func openKeyPair(certificate, key string, log *slog.Logger) (*keyPair, error) {
	p := &keyPair{certificate: certificate, key: key, look: keyPairLook, log: log, looked: time.Now()}
	p.files, _ = p.changed() // reading says what is wrong
	return p, p.read()
}

func (p *keyPair) read() error {
	pair, err := tls.LoadX509KeyPair(p.certificate, p.key)
	if err != nil {
		return fmt.Errorf("api.certificate, api.key: %w", err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("api.certificate: %w", err)
		}
	}
	p.current = &pair
	return nil
}

// changed returns when the files have changed.
func (p *keyPair) changed() (at [2]time.Time, err error) {
	for i, path := range []string{p.certificate, p.key} {
		info, err := os.Stat(path)
		if err != nil {
			return at, err
		}
		at[i] = info.ModTime()
	}
	return at, nil
}

// now returns the certificate as it is now. If what the files have become is none, that of before
// goes on.
func (p *keyPair) now() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.looked) < p.look {
		return p.current
	}
	p.looked = time.Now()
	at, err := p.changed()
	if err != nil || at == p.files {
		return p.current // one of them is being replaced, or nothing has happened
	}
	before := p.current.Leaf.NotAfter
	if err := p.read(); err != nil { // perhaps the other file comes in a moment
		p.log.Warn("the certificate was renewed, and cannot be read; the one of before is used", "err", err, "until", before)
		return p.current
	}
	p.files = at
	p.log.Info("the certificate was renewed", "before", before, "until", p.current.Leaf.NotAfter)
	return p.current
}

// config returns how connections are encrypted.
func (p *keyPair) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.now(), nil }}
}

// names reports whether the certificate is for a host.
func (p *keyPair) names(host string) bool { return p.now().Leaf.VerifyHostname(host) == nil }

// name returns by which name people call the host that the certificate is for, empty if it does
// not say.
func (p *keyPair) name() string {
	leaf := p.now().Leaf
	if host, err := os.Hostname(); err == nil && leaf.VerifyHostname(host) == nil {
		return host
	}
	for _, name := range leaf.DNSNames {
		if !strings.Contains(name, "*") {
			return name
		}
	}
	for _, ip := range leaf.IPAddresses {
		return ip.String()
	}
	return ""
}
