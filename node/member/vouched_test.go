package member

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
)

// TestProofsOfOthers: what others show counts for those that were asked for, if the roots vouch for them,
// until it ends or is taken back; and what was asked is shown to others.
func TestProofsOfOthers(t *testing.T) {
	w := newTown(t, "beta", "gamma", "delta")
	beta, gamma, delta := w.members["beta"], w.members["gamma"], w.members["delta"]
	o := newOffice(t, w.fed, "me", nil)
	var out grid.Outbox
	ask := func(sites ...grid.SiteID) { o.roll.Ask("friend", sites, &out) }
	shown := func(proofs ...Proof) { o.step(start, &grid.Delivery{From: "friend", Message: &Inform{proofs}}) }
	known := func(what string, want ...*Member) {
		t.Helper()
		for _, m := range []*Member{beta, gamma, delta} {
			got := o.roll.Known(m.Site, start)
			if (got != nil) != slices.Contains(want, m) || got != nil && (got.Name != m.Name || got.Rights != m.Rights) {
				t.Errorf("%s: %s is known as %+v", what, m.Name, got)
			}
		}
	}
	shown(beta.proof)
	known("nobody was asked for")
	ask(beta.Site, gamma.Site)
	if q := out.Sends[0]; q.To != "friend" || !slices.Equal(q.Message.(*Inquire).Sites, []grid.SiteID{beta.Site, gamma.Site}) {
		t.Errorf("%+v is sent to %s", q.Message, q.To)
	}
	shown(Proof{0x30, 0xff}, delta.proof, beta.proof[:len(beta.proof)/2], gamma.proof)
	known("one was asked for, of four", gamma)
	shown(beta.proof)
	known("the other one follows", beta, gamma)
	if m := o.roll.Known(beta.Site, beta.Expires); m != nil {
		t.Errorf("at its end it is known as %+v", m)
	}

	// It shows them to others, as far as it knows them.
	o.step(start, &grid.Delivery{From: "other", Message: &Inquire{[]grid.SiteID{delta.Site, beta.Site, "nobody", gamma.Site}}})
	if answer, is := o.sent[0].Message.(*Inform); !is || o.sent[0].To != "other" || len(answer.Proofs) != 2 ||
		!bytes.Equal(answer.Proofs[0], beta.proof) || !bytes.Equal(answer.Proofs[1], gamma.proof) {
		t.Errorf("it shows %+v", o.sent[0].Message)
	}

	list := w.revoked(nil, "beta")
	o.step(start, &Learn{List: list})
	known("one is revoked", gamma)
	ask(beta.Site)
	shown(beta.proof)
	known("it is shown again", gamma)
}

// TestProofsAreBounded: those of others, and what is asked for.
func TestProofsAreBounded(t *testing.T) {
	v := newVouched()
	name := func(i int) grid.SiteID { return grid.SiteID(fmt.Sprint("site", i)) }
	for i := range vouchedMax + 10 {
		v.put(&Member{Site: name(i), Depth: 1})
		v.put(&Member{Site: name(i), Depth: 2}) // anew
	}
	if len(v.members) != vouchedMax || len(v.order) != vouchedMax || v.members[name(9)] != nil || v.members[name(10)] == nil || v.members[name(10)].Depth != 2 {
		t.Errorf("%d are kept, in an order of %d", len(v.members), len(v.order))
	}
	v.drop(name(20))
	v.drop(name(20))
	v.drop("nobody")
	if len(v.members) != vouchedMax-1 || len(v.order) != vouchedMax-1 || slices.Contains(v.order, name(20)) {
		t.Errorf("%d are kept after one was dropped, in an order of %d", len(v.members), len(v.order))
	}

	w := newTown(t)
	o := newOffice(t, w.fed, "me", nil)
	var many []grid.SiteID
	for i := range inquireMax + 5 {
		many = append(many, name(i))
	}
	var out grid.Outbox
	if o.roll.Ask("friend", many, &out); len(out.Sends[0].Message.(*Inquire).Sites) != inquireMax || len(o.roll.vouched.wanted) != inquireMax {
		t.Errorf("%d are asked for, and %d remembered", len(out.Sends[0].Message.(*Inquire).Sites), len(o.roll.vouched.wanted))
	}
	for i := inquireMax; i < wantedMax; i++ {
		o.roll.vouched.wanted[name(1000+i)] = true
	}
	if o.roll.Ask("friend", many[:1], &out); len(o.roll.vouched.wanted) != 1 {
		t.Errorf("%d are remembered, want what is asked for after all others were forgotten", len(o.roll.vouched.wanted))
	}
	for i := range inquireMax {
		o.roll.vouched.put(&Member{Site: name(i), Expires: grid.Never, proof: make(Proof, passedMax)})
	}
	o.step(start, &grid.Delivery{From: "other", Message: &Inquire{many[:inquireMax]}})
	size := 0
	for _, p := range o.sent[0].Message.(*Inform).Proofs {
		size += len(p)
	}
	if size > informMax || size+passedMax <= informMax {
		t.Errorf("%d bytes of proofs are shown, want as many as fit %d", size, informMax)
	}
}

// TestDecodersOfMembersRefuse bytes that are no message, and what is beyond bounds.
func TestDecodersOfMembersRefuse(t *testing.T) {
	w := newTown(t, "beta")
	p := NewProtocol(w.fed)
	list := w.revoked(nil, "beta")
	sites := func(n int, site string) *wirepb.MemberInquire {
		return &wirepb.MemberInquire{Sites: slices.Repeat([]string{site}, n)}
	}
	proofs := func(n, size int) *wirepb.MemberInform {
		return &wirepb.MemberInform{Proofs: slices.Repeat([][]byte{make([]byte, size)}, n)}
	}
	digest := func(n, size int) *wirepb.MemberDigest {
		return &wirepb.MemberDigest{Newest: slices.Repeat([]*wirepb.MemberNewest{{Issuer: make([]byte, size), Number: 1}}, n)}
	}
	for i, tt := range []struct {
		kind grid.Kind
		p    proto.Message
		good bool
	}{
		{wire.MemberInquire, sites(0, ""), false}, {wire.MemberInquire, sites(1, "x"), true}, {wire.MemberInquire, sites(inquireMax, "x"), true},
		{wire.MemberInquire, sites(inquireMax+1, "x"), false}, {wire.MemberInquire, sites(1, ""), false},
		{wire.MemberInquire, sites(1, strings.Repeat("x", siteMax)), true}, {wire.MemberInquire, sites(1, strings.Repeat("x", siteMax+1)), false},
		{wire.MemberInform, proofs(0, 0), true}, {wire.MemberInform, proofs(inquireMax, 1), true}, {wire.MemberInform, proofs(inquireMax+1, 1), false},
		{wire.MemberInform, proofs(1, 0), false}, {wire.MemberInform, proofs(1, ProofMax), true}, {wire.MemberInform, proofs(1, ProofMax+1), false},
		{wire.MemberDigest, digest(issuersMax+rootsMax, sha256.Size), true}, {wire.MemberDigest, digest(issuersMax+rootsMax+1, sha256.Size), false},
		{wire.MemberDigest, digest(1, sha256.Size-1), false}, {wire.MemberDigest, digest(1, 0), false},
		{wire.MemberRevoked, (&Revocations{list}).Proto(), true}, {wire.MemberRevoked, &wirepb.MemberRevoked{Signed: list.Signed}, false},
	} {
		body, err := proto.Marshal(tt.p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Decoders[tt.kind]("x", body)
		if (err == nil) != tt.good || (m == nil) == tt.good {
			t.Errorf("case %d, %s: %v", i, wire.KindName(tt.kind), err)
			continue
		}
		if tt.good {
			if again, err := proto.Marshal(m.(wire.Message).Proto()); m.MessageKind() != tt.kind || tt.kind != wire.MemberDigest && (err != nil || !bytes.Equal(again, body)) {
				t.Errorf("case %d, %s: it became %T, %v", i, wire.KindName(tt.kind), m, err)
			}
		}
	}
	for kind, decode := range p.Decoders {
		if m, err := decode("x", []byte{0xff}); err == nil || m != nil {
			t.Errorf("%s: of no message it makes %v", wire.KindName(kind), m)
		}
	}

	words := (&Revocations{list}).Words()
	if m, err := w.fed.ReadWords(words); err != nil || m == nil || m.List.Number != list.Number {
		t.Errorf("words are read as %+v, %v", m, err)
	}
	for _, other := range [][]byte{nil, {}, w.members["beta"].proof} {
		if m, err := w.fed.ReadWords(other); err != nil || m != nil {
			t.Errorf("what are no words is read as %+v, %v", m, err)
		}
	}
	if m, err := w.fed.ReadWords(words[:len(words)/2]); err == nil || m != nil {
		t.Errorf("half of the words are read as %+v", m)
	}
}

// TestListsAreBounded: as long a list as there may be is parsed, a longer one is not looked at.
func TestListsAreBounded(t *testing.T) {
	w := newTown(t)
	for _, size := range []int{ListMax, ListMax + 1} {
		_, err := w.fed.OpenList(make([]byte, size-1), make(Proof, 1))
		if err == nil || strings.Contains(err.Error(), "at most") != (size > ListMax) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestListOfWhoMayNotRevoke: a list that is signed by a member who may not invite counts for nothing, nor one
// whose issuer only says to be somebody that may.
func TestListOfWhoMayNotRevoke(t *testing.T) {
	w := newTown(t)
	key, other := newKey(31), newKey(32)
	plain := certify(t, &w.root.Issuer, key, "plain", Usual)
	for name, i := range map[string]*Issuer{
		"who may not invite":       {plain, key},
		"with another key":         {w.delegate.Certificate, other},
		"who is certified by none": {imitation(t, w.root, other, "alpha"), other},
	} {
		parent := *i.Certificate
		parent.IsCA, parent.KeyUsage, parent.PublicKey = true, x509.KeyUsageCRLSign|x509.KeyUsageCertSign, i.Key.Public()
		if parent.SubjectKeyId == nil {
			parent.SubjectKeyId = []byte{1}
		}
		der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(5), ThisUpdate: instant(start), NextUpdate: instant(start + grid.Day)}, &parent, i.Key)
		if err != nil {
			t.Fatal(err)
		}
		if l, err := w.fed.OpenList(der, NewProof(i.Certificate, w.delegate.Certificate)); err == nil {
			t.Errorf("a list of somebody %s is taken: %+v", name, l)
		}
	}
}

// TestRootsAreRoots: certificates of a federation must be signed by themselves, may sign others, and are of
// one key each.
func TestRootsAreRoots(t *testing.T) {
	root := newRoot(t, 1, 1)
	key := newKey(40)
	make509 := func(ca bool, by ed25519.PrivateKey, parent *x509.Certificate) *x509.Certificate {
		quorum, err := asn1.Marshal(1)
		if err != nil {
			t.Fatal(err)
		}
		tmpl := &x509.Certificate{
			SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "physics", SerialNumber: "x"}, NotBefore: instant(start), NotAfter: instant(start + grid.Day),
			IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, ExtraExtensions: []pkix.Extension{{Id: quorumID, Value: quorum}},
		}
		if parent == nil {
			parent = tmpl
		}
		return parsed(t)(x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), by))
	}
	for name, tt := range map[string]struct {
		c    *x509.Certificate
		good bool
	}{
		"a root":                    {make509(true, key, nil), true},
		"one that may not sign":     {make509(false, key, nil), false},
		"signed by another":         {make509(true, newKey(1), root.Certificate), false},
		"a member who may not sign": {certify(t, &root.Issuer, key, "physics", Usual), false},
	} {
		if f, err := NewFederation([]*x509.Certificate{tt.c}); (err == nil) != tt.good || (f == nil) == tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewFederation([]*x509.Certificate{root.Certificate, root.Certificate}); err == nil {
		t.Error("one root is two")
	}
	for _, n := range []int{0, rootsMax, rootsMax + 1} {
		var text []byte
		for i := range n {
			text = append(text, PEM(newRoot(t, uint64(100+i), 1).Certificate.Raw)...)
		}
		all, err := ParsePEM(text)
		if good := n > 0 && n <= rootsMax; (err == nil) != good || good && len(all) != n {
			t.Errorf("of %d certificates %d are read: %v", n, len(all), err)
		}
		if f, err := ParseFederation(text); (err == nil) != (n > 0 && n <= rootsMax) {
			t.Errorf("%d roots: %+v, %v", n, f, err)
		}
	}
	bad := append(PEM(root.Certificate.Raw), PEM([]byte{1, 2})...)
	if _, err := ParsePEM(bad); err == nil || !strings.Contains(err.Error(), "certificate 2") {
		t.Errorf("the second one is damaged: %v", err)
	}
	if _, err := ParsePEM([]byte("-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n")); err == nil {
		t.Error("a key is a certificate")
	}
	if r, err := NewRoot(rand.Reader, newKey(1), "no name", 1, start); err == nil || r != nil {
		t.Error("a federation has a name that no site may have")
	}
}

// TestNamesOfMembers: as long as they may be, and of what they are made.
func TestNamesOfMembers(t *testing.T) {
	for name, good := range map[string]bool{
		"": false, "a": true, "A-b_c.9": true, "a b": false, "ä": false, "a/b": false, strings.Repeat("x", nameMax): true, strings.Repeat("x", nameMax+1): false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for org, good := range map[string]bool{
		"": true, "Institute of X": true, "Ä": true, "a\nb": false, "a\x7f": false, "\xff": false, strings.Repeat("x", orgMax): true, strings.Repeat("x", orgMax+1): false,
	} {
		if err := CheckOrg(org); (err == nil) != good {
			t.Errorf("organisation %q: %v", org, err)
		}
	}
	if r, known := RightToSend(1<<8 - 1); r != 0 || known {
		t.Errorf("a kind that there is not may be sent by %v", r)
	}
}

// TestRecordsOfMet: names of certificates that are cut short are an error.
func TestRecordsOfMet(t *testing.T) {
	issuer, serial := make([]byte, sha256.Size), make([]byte, len(Serial{}))
	for name, tt := range map[string]struct {
		issuer, serial []byte
		good           bool
	}{"whole": {issuer, serial, true}, "no issuer": {issuer[1:], serial, false}, "no serial": {issuer, serial[1:], false}, "nothing": {nil, nil, false}} {
		value, err := proto.Marshal(&wirepb.MemberMet{Site: "x", Expires: 5, Chain: []*wirepb.MemberCertificate{{Issuer: tt.issuer, Serial: tt.serial}}})
		if err != nil {
			t.Fatal(err)
		}
		if k, err := decodeMet(value); (err == nil) != tt.good || tt.good && (k.site != "x" || k.expires != 5 || len(k.chain) != 1) {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
	if _, err := decodeMet([]byte{0xff}); err == nil {
		t.Error("no record, and no error")
	}
}

// TestGrantsAreCutDown: what a delegate gives ends with its own certificate, and goes no further than its rights.
func TestGrantsAreCutDown(t *testing.T) {
	w := newTown(t)
	for _, span := range []grid.Time{grid.Day, 90 * grid.Day, 400 * grid.Day} {
		c := parsed(t)(w.delegate.Issue(rand.Reader, Grant{Key: newKey(50).Public().(ed25519.PublicKey), Name: "x", Rights: Usual, From: start, Expires: start + span}))
		if want := min(start+span, since(w.delegate.Certificate.NotAfter)); since(c.NotAfter) != want {
			t.Errorf("for %v: it ends at %v, want %v", span, since(c.NotAfter), want)
		}
	}
	for name, g := range map[string]Grant{
		"no name": {Key: newKey(50).Public().(ed25519.PublicKey), Rights: Usual, From: start, Expires: start + grid.Day},
		"no end":  {Key: newKey(50).Public().(ed25519.PublicKey), Name: "x", Rights: Usual, From: start, Expires: start - grid.Day},
	} {
		if der, err := w.delegate.Issue(rand.Reader, g); err == nil || der != nil {
			t.Errorf("%s: it is certified", name)
		}
	}
	plain := &Issuer{certify(t, &w.root.Issuer, newKey(51), "plain", Usual), newKey(51)}
	if der, err := plain.Issue(rand.Reader, Grant{Key: newKey(50).Public().(ed25519.PublicKey), Name: "x", Rights: Usual, From: start, Expires: start + grid.Day}); err == nil || der != nil {
		t.Error("who may not invite has certified somebody")
	}
}

// TestRootsAgreeOnTheLeast: what several roots say of a member counts as far as all say it.
func TestRootsAgreeOnTheLeast(t *testing.T) {
	one, two := newRoot(t, 1, 2), newRoot(t, 2, 2)
	f := federationOf(t, one, two)
	key := newKey(60)
	issue := func(r *Root, rights Rights, span grid.Time) *x509.Certificate {
		return parsed(t)(r.Issue(rand.Reader, Grant{Key: key.Public().(ed25519.PublicKey), Name: "x", Rights: rights, From: start, Expires: start + span}))
	}
	for _, days := range [][2]grid.Time{{10, 20}, {20, 10}} {
		m, err := f.Verify(NewProof(issue(one, MaySubmit|MayLend, days[0]*grid.Day), issue(two, MayLend|MayOffer, days[1]*grid.Day)), idOf(t, key), start)
		if err != nil {
			t.Fatal(err)
		}
		if m.Rights != MayLend || m.Expires != start+10*grid.Day || len(m.chain) != 2 {
			t.Errorf("it may %v until %v, %d certificates", m.Rights, m.Expires, len(m.chain))
		}
	}
}

// TestVouchers: only what a root has signed, and of the length of a fingerprint, vouches for other roots.
func TestVouchers(t *testing.T) {
	for n, good := range map[int]bool{sha256.Size - 1: false, sha256.Size: true, sha256.Size + 1: false, 0: false} {
		value, err := asn1.Marshal(make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := vouchedFor(&x509.Certificate{Extensions: []pkix.Extension{{Id: successionID, Value: value}}}); ok != good {
			t.Errorf("%d bytes: %t", n, ok)
		}
		if _, ok := vouchedFor(&x509.Certificate{Extensions: []pkix.Extension{{Id: successionID, Value: append(value, 0)}}}); ok {
			t.Errorf("%d bytes, and more behind them, vouch for roots", n)
		}
	}
	if _, ok := vouchedFor(&x509.Certificate{Extensions: []pkix.Extension{{Id: successionID, Value: []byte{0xff}}}}); ok {
		t.Error("what cannot be read vouches for roots")
	}
}
