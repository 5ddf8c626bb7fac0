package member

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gridnode/grid"
	"gridnode/internal/corpus"
	"gridnode/internal/wire"
)

// office is a roll with what its driver would do.
type office struct {
	t       *testing.T
	fed     *Federation
	issuer  *Issuer
	roll    *Roll
	records map[string][]byte
	sent    []grid.Send
	gone    []grid.SiteID
	last    grid.Message // to the last of them
	answer  any
}

func newOffice(t *testing.T, f *Federation, self grid.SiteID, issuer *Issuer) *office {
	o := &office{t: t, fed: f, issuer: issuer, records: make(map[string][]byte)}
	o.restart(self)
	return o
}

func (o *office) restart(self grid.SiteID) {
	o.t.Helper()
	cfg := RollConfig{Self: self, Federation: o.fed}
	if o.issuer != nil {
		cfg.Issue = func(g Grant) ([]byte, error) { return o.issuer.Issue(rand.Reader, g) }
	}
	o.roll = NewRoll(cfg, mathrand.New(mathrand.NewPCG(1, 2)))
	for key, value := range o.records {
		if err := o.roll.Recover(start, key, value); err != nil {
			o.t.Fatal(err)
		}
	}
}

// step gives the roll an input and carries out what it orders.
func (o *office) step(now grid.Time, in grid.Input) any {
	var out grid.Outbox
	o.roll.Step(now, in, &out)
	o.sent, o.gone, o.last, o.answer = nil, nil, nil, nil
	for _, e := range out.Effects {
		switch e.Kind {
		case grid.EffectSave:
			r := out.Records[e.Index]
			o.records[r.RecordKey()] = r.AppendRecord(nil)
		case grid.EffectDelete:
			delete(o.records, out.Records[e.Index].RecordKey())
		case grid.EffectSend, grid.EffectPublish:
			o.sent = append(o.sent, out.Sends[e.Index])
		case grid.EffectExpel:
			o.gone = append(o.gone, out.Expelled[e.Index].Site)
			o.last = out.Expelled[e.Index].Last
		case grid.EffectAnswer:
			o.answer = out.Answers[e.Index].Value
		default:
			o.t.Errorf("effect %v", e)
		}
	}
	o.audit(now)
	return o.answer
}

// audit fails if something is wrong with the roll, or it is not what is stored.
func (o *office) audit(now grid.Time) {
	o.t.Helper()
	if len(o.roll.met)+len(o.roll.invited) > 64 { // as many are met, or invited, as may be
		return
	}
	if err := o.roll.Audit(now); err != nil && o.roll.NextTimer() > now {
		o.t.Error(err)
	}
	for r := range o.roll.Records {
		if !bytes.Equal(o.records[r.RecordKey()], r.AppendRecord(nil)) {
			o.t.Errorf("%s is not stored as it is", r.RecordKey())
		}
	}
	if kept := len(o.roll.met) + len(o.roll.invited) + len(o.roll.revoked.lists); kept != len(o.records) {
		o.t.Errorf("%d records, and %d are to be stored", len(o.records), kept)
	}
}

// kept returns how many records are stored whose keys have a prefix.
func (o *office) kept(prefix string) (n int) {
	for key := range o.records {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

// town is a federation with a delegate and sites that it has certified.
type town struct {
	t        *testing.T
	root     *Root
	fed      *Federation
	delegate *Issuer
	proof    Proof
	members  map[string]*Member
}

func newTown(t *testing.T, names ...string) *town {
	w := &town{t: t, root: newRoot(t, 1, 1), members: make(map[string]*Member)}
	w.fed = federationOf(t, w.root)
	alpha := newKey(10)
	own := certify(t, &w.root.Issuer, alpha, "alpha", All)
	w.delegate, w.proof = &Issuer{own, alpha}, NewProof(own)
	for i, name := range names {
		w.add(uint64(20+i), name)
	}
	return w
}

func (w *town) add(key uint64, name string) *Member {
	w.t.Helper()
	c := certify(w.t, w.delegate, newKey(key), name, Usual)
	m, err := w.fed.Verify(append(NewProof(c), w.proof...), idOf(w.t, newKey(key)), start)
	if err != nil {
		w.t.Fatal(err)
	}
	w.members[name] = m
	return m
}

// revoked returns the delegate's list after before, with those serials.
func (w *town) revoked(before *List, names ...string) *List {
	w.t.Helper()
	var serials []Serial
	for _, name := range names {
		serials = append(serials, w.members[name].Serial)
	}
	der, err := w.delegate.Revoke(rand.Reader, before, start, serials...)
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := w.fed.OpenList(der, w.proof)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func TestRollForgetsWhoWasRevoked(t *testing.T) {
	w := newTown(t, "beta", "gamma")
	self := idOf(t, newKey(99))
	o := newOffice(t, w.fed, self, nil)
	for _, name := range []string{"beta", "gamma"} {
		if a := o.step(start, &Introduce{Token: 1, Member: w.members[name]}).(*Introduced); a.Err != nil {
			t.Fatal(a.Err)
		}
		if len(o.sent) != 1 || o.sent[0].To != w.members[name].Site || o.sent[0].Message.MessageKind() != wire.MemberDigest {
			t.Fatalf("to %s: %v, want a digest", name, o.sent)
		}
	}
	beta := w.members["beta"].Site
	if got, want := o.roll.Changes(), []Change{{Site: beta, In: true}, {Site: w.members["gamma"].Site, In: true}}; !slices.Equal(got, want) {
		t.Errorf("it has changed that %v, want %v", got, want)
	}
	if !o.roll.May(beta, MaySubmit, start) || o.roll.May(beta, MayBank, start) || o.roll.May(beta, MaySubmit, start+91*grid.Day) || !o.roll.May(self, All, start) {
		t.Error("rights are not those of the certificate")
	}

	first := w.revoked(nil, "beta")
	o.step(start, &grid.Delivery{From: w.members["gamma"].Site, Message: &Revocations{first}})
	if len(o.gone) != 1 || o.gone[0] != beta || o.roll.May(beta, 0, start) || o.roll.Named("beta") != nil {
		t.Fatalf("expelled %v; beta may %v", o.gone, o.roll.May(beta, 0, start))
	}
	if m, told := o.last.(*Revocations); !told || *m != (Revocations{first}) {
		t.Errorf("beta is told %v, want the list that revokes it", o.last)
	}
	if o.step(start, &grid.Delivery{From: w.members["gamma"].Site, Message: &Revocations{first}}); len(o.gone) > 0 {
		t.Error("expelled again by the same list")
	}
	if a := o.step(start, &Introduce{Token: 2, Member: w.members["beta"]}).(*Introduced); !errors.Is(a.Err, ErrRevoked) {
		t.Errorf("beta comes back: %v", a.Err)
	}
	o.restart(self)
	if a := o.step(start, &Introduce{Token: 3, Member: w.members["beta"]}).(*Introduced); !errors.Is(a.Err, ErrRevoked) {
		t.Errorf("beta comes back after a restart: %v", a.Err)
	}

	// Somebody with no list hears of it, and somebody with a newer one is not told.
	gamma := w.members["gamma"].Site
	o.step(start, &grid.Delivery{From: gamma, Message: &Digest{}})
	if len(o.sent) != 1 || o.sent[0].To != gamma {
		t.Errorf("gamma has no list: %v", o.sent)
	}
	o.step(start, &grid.Delivery{From: gamma, Message: &Digest{Newest: map[[sha256.Size]byte]uint64{first.Issuer: 1}}})
	if len(o.sent) != 0 {
		t.Errorf("gamma has that list: %v", o.sent)
	}

	// One that this site's owner has signed is gossiped.
	a := o.step(start, &Learn{Token: 4, List: w.revoked(first, "gamma")}).(*Learned)
	if a.Err != nil || len(o.sent) != 1 || o.sent[0].To != Topic {
		t.Errorf("%v, sent %v", a.Err, o.sent)
	}
}

func TestRollTellsAMemberNowAndThen(t *testing.T) {
	w := newTown(t, "beta")
	o := newOffice(t, w.fed, idOf(t, newKey(99)), nil)
	if o.roll.NextTimer() != grid.Never {
		t.Error("a timer, and nobody to tell")
	}
	o.step(start, &Introduce{Token: 1, Member: w.members["beta"]})
	at := o.roll.NextTimer()
	o.step(at-1, grid.Tick{})
	if len(o.sent) > 0 {
		t.Error("told too early")
	}
	o.step(at, grid.Tick{})
	if len(o.sent) != 1 || o.roll.NextTimer() != at+DigestEvery {
		t.Errorf("sent %v, next at %v", o.sent, o.roll.NextTimer())
	}
}

// TestMembershipEnds: whose certificate has ended is expelled, and not before.
func TestMembershipEnds(t *testing.T) {
	w := newTown(t, "beta", "gamma")
	o := newOffice(t, w.fed, idOf(t, newKey(99)), nil)
	beta, gamma := w.members["beta"], w.members["gamma"]
	gamma.Expires += grid.Day
	for _, m := range []*Member{beta, gamma} {
		o.step(start, &Introduce{Token: 1, Member: m})
	}
	if o.step(beta.Expires-1, grid.Tick{}); len(o.gone) > 0 {
		t.Errorf("expelled too early: %v", o.gone)
	}
	if at := o.roll.NextTimer(); at != beta.Expires {
		t.Errorf("looks again at %v, beta ends at %v", at, beta.Expires)
	}
	if o.step(beta.Expires, grid.Tick{}); len(o.gone) != 1 || o.gone[0] != beta.Site || o.roll.Member(beta.Site) != nil {
		t.Errorf("expelled %v, want beta", o.gone)
	}
	if o.step(gamma.Expires, grid.Tick{}); len(o.gone) != 1 || o.gone[0] != gamma.Site {
		t.Errorf("expelled %v, want gamma", o.gone)
	}
}

// TestLateRenewalIsAReturn: a site whose certificate ended before it had the next one is a member
// again; one that renewed it in time has been one all along.
func TestLateRenewalIsAReturn(t *testing.T) {
	w := newTown(t, "beta")
	own := w.members["beta"]
	for _, tt := range []struct {
		issued grid.Time
		back   bool
	}{{own.Expires - 1, false}, {own.Expires, true}} {
		o := newOffice(t, w.fed, own.Site, nil)
		o.roll.Renewed(own)
		next := *own
		next.Issued = tt.issued
		if o.roll.Renewed(&next); slices.Contains(o.roll.Changes(), Change{Site: own.Site, In: true}) != tt.back {
			t.Errorf("a certificate of %v after one until %v: a member again %v, want %v", tt.issued, own.Expires, !tt.back, tt.back)
		}
	}
}

// TestInvitationIsForOne: the first site that brings the secret is certified, as often as it
// asks, and no other one, not even after a restart.
func TestInvitationIsForOne(t *testing.T) {
	w := newTown(t)
	self := idOf(t, w.delegate.Key.(ed25519.PrivateKey))
	o := newOffice(t, w.fed, self, w.delegate)
	secret := Secret{1, 2, 3}
	i := Invitation{ID: InvitationID{7}, Hash: sha256.Sum256(secret[:]), Rights: Usual, Expires: start + grid.Hour, Valid: grid.Day}
	if a := o.step(start, &Invite{Token: 1, Invitation: i}).(*Invited); a.Err != nil {
		t.Fatal(a.Err)
	}
	ask := func(key uint64, name string, secret Secret, now grid.Time) *Applied {
		k := newKey(key)
		a := Application{ID: i.ID, Secret: secret, Name: name, Site: idOf(t, k), Key: k.Public().(ed25519.PublicKey)}
		return o.step(now, &Apply{Token: 2, Application: a}).(*Applied)
	}
	if a := ask(30, "beta", Secret{9}, start); !errors.Is(a.Err, ErrInvitation) {
		t.Errorf("without the secret: %v", a.Err)
	}
	first := ask(30, "beta", secret, start)
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	for _, when := range []string{"at once", "after a restart"} {
		if a := ask(30, "beta", secret, start); a.Err != nil || !bytes.Equal(a.Certificate, first.Certificate) {
			t.Errorf("the same site again, %s: %v", when, a.Err)
		}
		if a := ask(31, "gamma", secret, start); !errors.Is(a.Err, ErrInvitation) || a.Certificate != nil {
			t.Errorf("another site, %s: %v", when, a.Err)
		}
		o.restart(self)
	}
	if a := ask(30, "beta", secret, start+grid.Hour); !errors.Is(a.Err, ErrInvitation) {
		t.Errorf("when it has expired: %v", a.Err)
	}
}

// TestNobodyIsRenewedAfterTheEnd: who was certified here and is a member no more is not certified
// again, also if that was not noticed yet.
func TestNobodyIsRenewedAfterTheEnd(t *testing.T) {
	w := newTown(t, "beta")
	beta := w.members["beta"]
	for _, now := range []grid.Time{beta.Expires - 1, beta.Expires} {
		o := newOffice(t, w.fed, idOf(t, w.delegate.Key.(ed25519.PrivateKey)), w.delegate)
		o.step(start, &Introduce{Token: 1, Member: beta})
		_, err := o.roll.renew(now, &Renew{Site: beta.Site}, new(grid.Outbox))
		if over := errors.Is(err, ErrStranger); over != (now == beta.Expires) {
			t.Errorf("%v before its end: %v", beta.Expires-now, err)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	w := newTown(t, "beta")
	o := newOffice(t, w.fed, idOf(t, newKey(99)), nil)
	o.step(start, &Introduce{Token: 1, Member: w.members["beta"]})
	later := *w.add(30, "beta")
	later.Issued++
	if a := o.step(start, &Introduce{Token: 2, Member: &later}).(*Introduced); !errors.Is(a.Err, ErrName) {
		t.Errorf("the second beta: %v", a.Err)
	}
	nearer := later
	nearer.Depth = 0
	if a := o.step(start, &Introduce{Token: 3, Member: &nearer}).(*Introduced); a.Err != nil || len(o.gone) != 1 || o.roll.Named("beta").Site != later.Site {
		t.Errorf("a beta that a root has certified: %v, expelled %v", a.Err, o.gone)
	}
}

// TestNameOfWhoIsGone: the name of a member whose certificate has ended is another's that asks for it
// after, also where nothing has looked at certificates since.
func TestNameOfWhoIsGone(t *testing.T) {
	w := newTown(t, "beta")
	o := newOffice(t, w.fed, idOf(t, newKey(99)), nil)
	beta := w.members["beta"]
	later := *w.add(30, "beta")
	o.step(start, &Introduce{Token: 1, Member: beta})
	later.Issued, later.Expires = beta.Expires, beta.Expires+grid.Day
	if a := o.step(beta.Expires, &Introduce{Token: 2, Member: &later}).(*Introduced); a.Err != nil || o.roll.Named("beta") != &later || o.roll.Member(beta.Site) != nil {
		t.Errorf("the next beta: %v, and %v has the name", a.Err, o.roll.Named("beta").Site)
	}
}

func TestRollIsBounded(t *testing.T) {
	w := newTown(t)
	o := newOffice(t, w.fed, idOf(t, newKey(99)), w.delegate)
	for i := range membersMax + 10 {
		o.step(start, &Introduce{Token: 1, Member: &Member{Site: grid.SiteID(fmt.Sprint("site ", i)), Name: fmt.Sprint(i), Expires: grid.Never}})
	}
	if n := len(o.roll.Members()); n != membersMax || len(o.roll.order) != n || len(o.roll.names) != n {
		t.Errorf("%d members, %d in order, %d names", n, len(o.roll.order), len(o.roll.names))
	}
	var err error
	for i := range invitationsMax + 1 {
		id := InvitationID{byte(i), byte(i >> 8), 1}
		err = o.step(start, &Invite{Token: 1, Invitation: Invitation{ID: id, Rights: Usual, Expires: start + grid.Hour, Valid: grid.Day}}).(*Invited).Err
	}
	if err == nil || len(o.roll.Invitations()) != invitationsMax {
		t.Errorf("%v with %d invitations", err, len(o.roll.Invitations()))
	}
	if a := o.step(start+2*grid.Hour, &Invite{Token: 1, Invitation: Invitation{Rights: Usual, Expires: start + grid.Day}}).(*Invited); a.Err != nil || o.kept(InvitationPrefix) != 1 || o.kept(MetPrefix) != membersMax {
		t.Errorf("when all have expired: %v, %d invitations and %d members are stored", a.Err, o.kept(InvitationPrefix), o.kept(MetPrefix))
	}
}

func TestToken(t *testing.T) {
	want := &Token{
		ID: InvitationID{1}, Secret: Secret{2}, Federation: "physics", Fingerprint: [sha256.Size]byte{3},
		Addresses: []string{"/ip4/127.0.0.1/tcp/1/p2p/x"}, Name: "beta",
	}
	got, err := ParseToken(" " + want.String() + "\n")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range len(want.String()) {
		cut := want.String()[:i]
		if got, err := ParseToken(cut); err == nil {
			t.Fatalf("%q is %+v", cut, got)
		}
	}
	none := *want
	none.Addresses = nil
	if _, err := ParseToken(none.String()); err == nil {
		t.Error("a token without addresses")
	}
}

func TestMessagesOfMembers(t *testing.T) {
	w := newTown(t, "beta")
	p := NewProtocol(w.fed)
	for _, m := range []wire.Message{&Revocations{w.revoked(nil, "beta")}, &Digest{Newest: map[[sha256.Size]byte]uint64{{1}: 7}}, &Digest{}} {
		frame, err := wire.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		r := bytes.NewReader(frame)
		body, err := wire.ReadFrame(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Decode("x", body)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := wire.Encode(again.(wire.Message)); err != nil || !bytes.Equal(a, frame) {
			t.Errorf("%T is not what it was, %v", m, err)
		}
	}
	// A list of another federation's delegate is no message.
	other := newRoot(t, 7, 1)
	der, err := other.Revoke(rand.Reader, nil, start, Serial{0x41})
	if err != nil {
		t.Fatal(err)
	}
	frame, err := wire.Encode(&Revocations{&List{Signed: der}})
	if err != nil {
		t.Fatal(err)
	}
	body, _ := wire.ReadFrame(bytes.NewReader(frame))
	if m, err := p.Decode("x", body); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("%v, %v", m, err)
	}
}

func FuzzMessages(f *testing.F) {
	root := newRoot(f, 1, 1)
	p := NewProtocol(federationOf(f, root))
	list, err := root.Revoke(rand.Reader, nil, start, Serial{0x41})
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []wire.Message{&Revocations{&List{Signed: list}}, &Digest{Newest: map[[sha256.Size]byte]uint64{{1}: 7}}} {
		frame, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		body, _ := wire.ReadFrame(bytes.NewReader(frame))
		f.Add(body)
	}
	f.Add([]byte("token"))
	corpus.Fuzz(f, func(t *testing.T, body []byte) {
		if _, err := p.Decode("x", body); err != nil && !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("an error of no kind: %v", err)
		}
		_, _ = ParseToken(string(body))
		_, _ = ParsePEM(body)
		_, _ = decodeInvitation(body)
	})
}

// TestDigestsPull: who hears that another has newer lists asks for them, and that ends it.
func TestDigestsPull(t *testing.T) {
	w := newTown(t, "beta", "gamma")
	a, b := newOffice(t, w.fed, "a", nil), newOffice(t, w.fed, "b", nil)
	list := w.revoked(nil, "gamma")
	a.step(start, &Learn{Token: 1, List: list})
	offices := map[grid.SiteID]*office{"a": a, "b": b}
	type letter struct {
		from, to grid.SiteID
		message  grid.Message
	}
	queue := []letter{{"a", "b", a.roll.newest()}}
	steps := 0
	for ; len(queue) > 0 && steps < 20; steps++ {
		l := queue[0]
		queue = queue[1:]
		to := offices[l.to]
		to.step(start, &grid.Delivery{From: l.from, Message: l.message})
		for _, s := range to.sent {
			queue = append(queue, letter{l.to, s.To, s.Message})
		}
	}
	if !b.roll.Revoked().Has(w.members["gamma"]) || steps != 3 {
		t.Errorf("after %d messages b knows: %v", steps, b.roll.Revoked().Has(w.members["gamma"]))
	}
}

// TestRenamedMember: the name that a member had before is free.
func TestRenamedMember(t *testing.T) {
	w := newTown(t, "beta")
	o := newOffice(t, w.fed, idOf(t, newKey(99)), nil)
	renamed := *w.members["beta"]
	renamed.Name = "gamma"
	o.step(start, &Introduce{Token: 1, Member: w.members["beta"]})
	o.step(start, &Introduce{Token: 2, Member: &renamed})
	if o.roll.Named("beta") != nil || o.roll.Named("gamma") != &renamed || len(o.roll.names) != 1 {
		t.Errorf("names are %v, want gamma", o.roll.names)
	}
}
