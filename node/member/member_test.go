package member

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"math/big"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
)

const start = grid.Time(1_800_000_000) * grid.Second

// newKey returns the same key for the same number.
func newKey(n uint64) ed25519.PrivateKey {
	var seed [ed25519.SeedSize]byte
	binary.BigEndian.PutUint64(seed[:], n)
	return ed25519.NewKeyFromSeed(seed[:])
}

func idOf(t testing.TB, key ed25519.PrivateKey) grid.SiteID {
	t.Helper()
	id, err := wire.SiteOf(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newRoot(t testing.TB, n uint64, quorum int) *Root {
	t.Helper()
	r, err := NewRoot(rand.Reader, newKey(n), "physics", quorum, start)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func federationOf(t testing.TB, roots ...*Root) *Federation {
	t.Helper()
	var all []*x509.Certificate
	for _, r := range roots {
		all = append(all, r.Certificate)
	}
	f, err := NewFederation(all)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// parsed takes what makes a certificate.
func parsed(t testing.TB) func(der []byte, err error) *x509.Certificate {
	return func(der []byte, err error) *x509.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func certify(t testing.TB, i *Issuer, key ed25519.PrivateKey, name string, rights Rights) *x509.Certificate {
	t.Helper()
	return parsed(t)(i.Issue(rand.Reader, Grant{
		Key: key.Public().(ed25519.PublicKey), Name: name, Org: "org of " + name, Rights: rights,
		From: start, Expires: start + 90*grid.Day,
	}))
}

func TestRights(t *testing.T) {
	for _, text := range []string{"none", "offer", "offer,submit", "offer,submit,lend,hold,bank,invite"} {
		r, err := ParseRights(text)
		if err != nil || r.String() != text {
			t.Errorf("%q is %v, %v", text, r, err)
		}
	}
	if r, err := ParseRights("usual, bank"); err != nil || r != Usual|MayBank {
		t.Errorf("usual, bank: %v, %v", r, err)
	}
	if _, err := ParseRights("root"); err == nil || !strings.Contains(err.Error(), "offer, submit") {
		t.Errorf("root: %v", err)
	}
}

func TestMembers(t *testing.T) {
	root := newRoot(t, 1, 1)
	f := federationOf(t, root)
	alpha, beta, gamma := newKey(10), newKey(11), newKey(12)
	alphaOwn := certify(t, &root.Issuer, alpha, "alpha", All&^MayBank)
	delegate := &Issuer{alphaOwn, alpha}
	betaOwn := certify(t, delegate, beta, "beta", Usual|MayBank)

	m, err := f.Verify(NewProof(alphaOwn), idOf(t, alpha), start)
	if err != nil || m.Name != "alpha" || m.Org != "org of alpha" || m.Rights != All&^MayBank || m.Depth != 0 || m.Issuer != "physics" {
		t.Fatalf("alpha: %+v, %v", m, err)
	}
	m, err = f.Verify(NewProof(betaOwn, alphaOwn), idOf(t, beta), start)
	if err != nil || m.Name != "beta" || m.Depth != 1 || m.Issuer != "alpha" {
		t.Fatalf("beta: %+v, %v", m, err)
	}
	if m.Rights != Usual {
		t.Errorf("beta has %v: alpha gave the right to keep a bank, which it has not", m.Rights)
	}
	if m.Expires != alphaEnd(alphaOwn) || m.Issued != start {
		t.Errorf("beta from %v to %v", m.Issued, m.Expires)
	}

	stranger := newRoot(t, 2, 1)
	forged := certify(t, &stranger.Issuer, gamma, "gamma", All)
	late := start + 91*grid.Day
	for _, tt := range []struct {
		name  string
		proof Proof
		site  grid.SiteID
		at    grid.Time
		want  string
	}{
		{"of another federation's root", NewProof(forged), idOf(t, gamma), start, "0 of 1 roots"},
		{"with that root in it", NewProof(forged, stranger.Certificate), idOf(t, gamma), start, "0 of 1 roots"},
		{"of somebody else", NewProof(alphaOwn), idOf(t, beta), start, "no certificate is of the key"},
		{"without the delegate", NewProof(betaOwn), idOf(t, beta), start, "0 of 1 roots"},
		{"that has ended", NewProof(alphaOwn), idOf(t, alpha), late, "ended"},
		{"that has not begun", NewProof(alphaOwn), idOf(t, alpha), start - grid.Hour, "has not come"},
		{"by a clock an hour ahead, in its last hour", NewProof(alphaOwn), idOf(t, alpha), alphaEnd(alphaOwn) - 30*grid.Minute + grid.Hour, "ended"},
		{"signed by its own key, as if by the root", NewProof(imitation(t, root, gamma, "gamma")), idOf(t, gamma), start, "0 of 1 roots"},
		{"changed after it was signed", damaged(t, NewProof(alphaOwn), "alpha", "alphb"), idOf(t, alpha), start, "0 of 1 roots"},
		{"of a root itself", NewProof(root.Certificate), idOf(t, newKey(1)), start, "no rights"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := f.Verify(tt.proof, tt.site, tt.at)
			if m != nil || !errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, %v; want a stranger: %s", m, err, tt.want)
			}
		})
	}
}

// imitation is a certificate that names the root and is signed by the key it is about.
func imitation(t *testing.T, root *Root, key ed25519.PrivateKey, name string) *x509.Certificate {
	t.Helper()
	extension, err := rightsExtension(All)
	if err != nil {
		t.Fatal(err)
	}
	parent := *root.Certificate
	parent.PublicKey = key.Public()
	return parsed(t)(x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: subject(name, ""), NotBefore: instant(start), NotAfter: instant(start + grid.Day),
		ExtraExtensions: []pkix.Extension{extension}, BasicConstraintsValid: true,
	}, &parent, key.Public(), key))
}

// damaged changes a word of a proof.
func damaged(t *testing.T, p Proof, word, into string) Proof {
	t.Helper()
	if !bytes.Contains(p, []byte(word)) {
		t.Fatalf("no %s in it", word)
	}
	return bytes.ReplaceAll(p, []byte(word), []byte(into))
}

// TestMalformedProofs: what is too long, or no certificates, is not looked into further.
func TestMalformedProofs(t *testing.T) {
	root := newRoot(t, 1, 1)
	f := federationOf(t, root)
	alpha := certify(t, &root.Issuer, newKey(10), "alpha", All)
	var many []*x509.Certificate
	for range proofMax + 1 {
		many = append(many, alpha)
	}
	for name, p := range map[string]Proof{
		"nothing": nil, "too many": NewProof(many...), "too long": make(Proof, ProofMax+1), "cut": NewProof(alpha)[:99], "noise": Proof("certificate"),
	} {
		if m, err := f.Verify(p, idOf(t, newKey(10)), start); m != nil || !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// TestProofOfAnotherKey: a certificate about a key that is no site's names nobody.
func TestProofOfAnotherKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := parsed(t)(x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(7)}, &x509.Certificate{}, key.Public(), newKey(1)))
	if site, err := NewProof(c).Site(); site != "" || !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("it is of %q, %v", site, err)
	}
	if site, err := NewProof(certify(t, &newRoot(t, 1, 1).Issuer, newKey(10), "alpha", All)).Site(); site != idOf(t, newKey(10)) || err != nil {
		t.Errorf("alpha's is of %q, %v", site, err)
	}
}

func alphaEnd(c *x509.Certificate) grid.Time { return since(c.NotAfter) }

func TestDelegatesCannotMakeDelegates(t *testing.T) {
	root := newRoot(t, 1, 1)
	f := federationOf(t, root)
	alpha, beta, gamma := newKey(10), newKey(11), newKey(12)
	alphaOwn := certify(t, &root.Issuer, alpha, "alpha", All)
	if _, err := (&Issuer{alphaOwn, alpha}).Issue(rand.Reader, Grant{
		Key: beta.Public().(ed25519.PublicKey), Name: "beta", Rights: MayInvite, From: start, Expires: start + grid.Day,
	}); err == nil {
		t.Error("a delegate gave the right to invite")
	}
	if _, err := (&Issuer{certify(t, &root.Issuer, beta, "beta", Usual), beta}).Issue(rand.Reader, Grant{
		Key: gamma.Public().(ed25519.PublicKey), Name: "gamma", From: start, Expires: start + grid.Day,
	}); err == nil {
		t.Error("who may not invite has certified somebody")
	}

	// One whose program does not mind makes a delegate all the same.
	extension, err := rightsExtension(All)
	if err != nil {
		t.Fatal(err)
	}
	rogue := &Issuer{alphaOwn, alpha}
	sign := func(by *Issuer, key ed25519.PrivateKey, name string) *x509.Certificate {
		return parsed(t)(by.sign(rand.Reader, &x509.Certificate{
			Subject: subject(name, ""), NotBefore: instant(start), NotAfter: instant(start + grid.Day), IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign, MaxPathLen: 5, ExtraExtensions: append(alphaOwn.ExtraExtensions, extension),
		}, key.Public().(ed25519.PublicKey), Lot{}))
	}
	betaOwn := sign(rogue, beta, "beta")
	m, err := f.Verify(NewProof(betaOwn, alphaOwn), idOf(t, beta), start)
	if err != nil || m.Rights.Has(MayInvite) {
		t.Errorf("beta: %+v, %v; want a member that may not invite", m, err)
	}
	gammaOwn := sign(&Issuer{betaOwn, beta}, gamma, "gamma")
	if m, err := f.Verify(NewProof(gammaOwn, betaOwn, alphaOwn), idOf(t, gamma), start); !errors.Is(err, ErrStranger) {
		t.Errorf("gamma, whom a delegate's delegate certified: %+v, %v", m, err)
	}
}

func TestQuorum(t *testing.T) {
	a, b, c := newRoot(t, 1, 2), newRoot(t, 2, 2), newRoot(t, 3, 2)
	f := federationOf(t, a, b, c)
	alpha := newKey(10)
	one, two := certify(t, &a.Issuer, alpha, "alpha", All), certify(t, &b.Issuer, alpha, "alpha", Usual)
	if m, err := f.Verify(NewProof(one), idOf(t, alpha), start); !errors.Is(err, ErrStranger) {
		t.Errorf("one root of the two that must agree: %+v, %v", m, err)
	}
	if m, err := f.Verify(NewProof(one, one), idOf(t, alpha), start); !errors.Is(err, ErrStranger) {
		t.Errorf("one root twice: %+v, %v", m, err)
	}
	m, err := f.Verify(NewProof(one, two), idOf(t, alpha), start)
	if err != nil || m.Rights != Usual {
		t.Errorf("two roots: %+v, %v; want what both give", m, err)
	}
	other := certify(t, &c.Issuer, alpha, "omega", Usual)
	if m, err := f.Verify(NewProof(one, other), idOf(t, alpha), start); !errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), "disagree") {
		t.Errorf("two roots with two names: %+v, %v", m, err)
	}
}

func TestFederationText(t *testing.T) {
	a, b := newRoot(t, 1, 1), newRoot(t, 2, 1)
	f := federationOf(t, b, a)
	again, err := ParseFederation(f.PEM())
	if err != nil || again.Fingerprint() != f.Fingerprint() || again.Name != "physics" || again.Quorum != 1 {
		t.Fatalf("%+v, %v", again, err)
	}
	if federationOf(t, a, b).Fingerprint() != f.Fingerprint() {
		t.Error("the fingerprint depends on the order of the roots")
	}
	leaf := certify(t, &a.Issuer, newKey(10), "alpha", All)
	for _, tt := range []struct {
		name  string
		roots []*x509.Certificate
	}{
		{"none", nil},
		{"a root twice", []*x509.Certificate{a.Certificate, a.Certificate}},
		{"a member's certificate", []*x509.Certificate{a.Certificate, leaf}},
		{"roots that differ in the quorum", []*x509.Certificate{a.Certificate, newRoot(t, 3, 2).Certificate}},
		{"a quorum that cannot be", []*x509.Certificate{newRoot(t, 3, 2).Certificate}},
	} {
		if f, err := NewFederation(tt.roots); err == nil {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
	for _, text := range []string{"", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if f, err := ParseFederation([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

func TestRevocation(t *testing.T) {
	root := newRoot(t, 1, 1)
	f := federationOf(t, root)
	alpha, beta, gamma := newKey(10), newKey(11), newKey(12)
	alphaOwn := certify(t, &root.Issuer, alpha, "alpha", All)
	delegate := &Issuer{alphaOwn, alpha}
	betaOwn, gammaOwn := certify(t, delegate, beta, "beta", Usual), certify(t, delegate, gamma, "gamma", Usual)
	proofs := map[grid.SiteID]Proof{
		idOf(t, alpha): NewProof(alphaOwn), idOf(t, beta): NewProof(betaOwn, alphaOwn), idOf(t, gamma): NewProof(gammaOwn, alphaOwn),
	}
	revoked := NewRevoked()
	members := func() (n int) {
		for id, p := range proofs {
			if m, err := f.Verify(p, id, start); err == nil && !revoked.Has(m) {
				n++
			}
		}
		return n
	}
	revoke := func(by *Issuer, proof Proof, c *x509.Certificate) *List {
		t.Helper()
		serial, _ := serialOf(c.SerialNumber)
		der, err := by.Revoke(rand.Reader, revoked.Of(by), start, serial)
		if err != nil {
			t.Fatal(err)
		}
		l, err := f.OpenList(der, proof)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if n := members(); n != 3 {
		t.Fatalf("%d members", n)
	}
	first := revoke(delegate, NewProof(alphaOwn), betaOwn)
	for range 2 {
		if _, err := revoked.Add(first); err != nil {
			t.Fatal(err)
		}
	}
	if n := members(); n != 2 {
		t.Errorf("%d members when beta was revoked by who had certified it", n)
	}
	second := revoke(delegate, NewProof(alphaOwn), gammaOwn)
	kept := revoked.Clone()
	if news, err := revoked.Add(second); !news || err != nil {
		t.Fatalf("the second list: %v, %v", news, err)
	}
	if news, _ := revoked.Add(first); news || members() != 1 {
		t.Errorf("an old list again: news %v, %d members", news, members())
	}
	if len(kept.Lists()) != 1 || kept.Lists()[0].Number != 1 || len(revoked.Lists()) != 1 {
		t.Errorf("copies share what they hold")
	}
	if _, err := revoked.Add(revoke(&root.Issuer, nil, alphaOwn)); err != nil || members() != 0 {
		t.Errorf("alpha was revoked by the root: %v, %d members", err, members())
	}

	// Who did not certify somebody cannot take that back.
	delta := newKey(13)
	deltaOwn := certify(t, &root.Issuer, delta, "delta", All)
	proofs[idOf(t, delta)] = NewProof(deltaOwn)
	if _, err := revoked.Add(revoke(delegate, NewProof(alphaOwn), deltaOwn)); err != nil || members() != 1 {
		t.Errorf("delta was revoked by alpha: %v, %d members", err, members())
	}
	outsider := newRoot(t, 7, 1)
	serial, _ := serialOf(deltaOwn.SerialNumber)
	der, err := outsider.Revoke(rand.Reader, nil, start, serial)
	if err != nil {
		t.Fatal(err)
	}
	for _, proof := range []Proof{nil, NewProof(outsider.Certificate), NewProof(deltaOwn)} {
		if l, err := f.OpenList(der, proof); err == nil {
			t.Errorf("a list of a stranger: %+v", l)
		}
	}
	// One in the name of who may, signed by another key.
	for _, c := range []*x509.Certificate{root.Certificate, alphaOwn} {
		if der, err = (&Issuer{c, newKey(77)}).Revoke(rand.Reader, nil, start, serial); err != nil {
			t.Fatal(err)
		}
		if l, err := f.OpenList(der, NewProof(alphaOwn)); !errors.Is(err, ErrStranger) {
			t.Errorf("a forged list of %s: %+v, %v", c.Subject.CommonName, l, err)
		}
	}
}

func TestPrior(t *testing.T) {
	near, far := &Member{Depth: 0, Issued: 9, Site: "c"}, &Member{Depth: 1, Issued: 1, Site: "a"}
	early, late := &Member{Depth: 1, Issued: 0, Site: "d"}, &Member{Depth: 1, Issued: 1, Site: "b"}
	for _, tt := range []struct{ first, second *Member }{{near, far}, {early, late}, {far, late}} {
		if !tt.first.Prior(tt.second) || tt.second.Prior(tt.first) {
			t.Errorf("%+v and %+v", tt.first, tt.second)
		}
	}
}

// FuzzVerify feeds what strangers may send.
func FuzzVerify(f *testing.F) {
	root := newRoot(f, 1, 1)
	fed := federationOf(f, root)
	alpha := newKey(10)
	own := certify(f, &root.Issuer, alpha, "alpha", All)
	id := idOf(f, newKey(11))
	list, err := root.Revoke(rand.Reader, nil, start)
	if err != nil {
		f.Fatal(err)
	}
	proof := []byte(NewProof(own, root.Certificate))
	f.Add([]byte(NewProof(own)))
	f.Add(proof)
	f.Add(list)
	corpus.Fuzz(f, func(t *testing.T, input []byte) {
		if m, err := fed.Verify(input, id, start); err == nil {
			t.Fatalf("a forged member: %+v", m)
		} else if !errors.Is(err, ErrStranger) && !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("an error of no kind: %v", err)
		}
		if l, err := fed.OpenList(input, proof); err == nil && len(l.serials) > 0 {
			t.Fatalf("a forged list: %+v", l)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	root := newRoot(b, 1, 1)
	f := federationOf(b, root)
	alpha, beta := newKey(10), newKey(11)
	alphaOwn := certify(b, &root.Issuer, alpha, "alpha", All)
	p := NewProof(certify(b, &Issuer{alphaOwn, alpha}, beta, "beta", Usual), alphaOwn)
	id := idOf(b, beta)
	b.ReportMetric(float64(len(p)), "bytes")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Verify(p, id, start); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(p)), "bytes")
}
