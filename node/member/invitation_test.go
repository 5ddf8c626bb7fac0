package member

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// TestInvitationLastsAsItsCertificates: what is known of how a member was invited is kept, over restarts, for as
// long as it has a certificate, and so it is renewed long after the invitation has expired; but it has no more than
// so many that have not ended.
func TestInvitationLastsAsItsCertificates(t *testing.T) {
	w := newTown(t)
	self := idOf(t, newKey(10))
	o := newOffice(t, w.fed, self, w.delegate)
	restart := func() {
		o.restart(self)
		o.roll.cfg.Name = "alpha"
	}
	restart()
	key := newKey(30)
	public, site := key.Public().(ed25519.PublicKey), idOf(t, key)
	secret := Secret{1}
	invite := func(now grid.Time, n byte) {
		t.Helper()
		i := Invitation{ID: InvitationID{n}, Hash: sha256.Sum256(secret[:]), Rights: Usual, Expires: now + grid.Hour, Valid: grid.Day}
		if a := o.step(now, &Invite{Invitation: i}).(*Invited); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	invite(start, 1)
	a := o.step(start, &Apply{Application: Application{ID: InvitationID{1}, Secret: secret, Name: "beta", Site: site, Key: public}}).(*Applied)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	restart()
	introduce := func(now grid.Time, der []byte) {
		t.Helper()
		m, err := w.fed.Verify(append(Proof(der), w.proof...), site, now)
		if err == nil {
			err = o.step(now, &Introduce{Member: m}).(*Introduced).Err
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	introduce(start, a.Certificate)
	now := start + 20*grid.Hour
	invite(now, 2) // clears away what nobody can use any more
	for n := 1; n < renewalsMax; n++ {
		if a = o.step(now, &Renew{Site: site, Key: public}).(*Applied); a.Err != nil {
			t.Fatalf("renewal %d: %v", n, a.Err)
		}
	}
	if a := o.step(now, &Renew{Site: site, Key: public}).(*Applied); !errors.Is(a.Err, ErrInvitation) {
		t.Errorf("after %d certificates: %v", renewalsMax, a.Err)
	}
	last := a.Certificate
	for _, renewed := range []grid.Time{start + grid.Day + skew - 1, start + grid.Day + skew} { // the first one ends in between
		restart()
		introduce(renewed, last)
		for _, want := range []bool{renewed == start+grid.Day+skew, false} {
			if a := o.step(renewed, &Renew{Site: site, Key: public}).(*Applied); (a.Err == nil) != want {
				t.Errorf("%v after the first one another certificate is given: %v", renewed-start, a.Err)
			} else if want {
				now = renewed
			}
		}
	}
	for _, tt := range []struct {
		now  grid.Time
		kept bool
	}{{now + grid.Day - 1, true}, {now + grid.Day, false}} {
		restart()
		invite(tt.now, 3)
		if kept := o.roll.Invited(site) != nil; kept != tt.kept {
			t.Errorf("%v after the last renewal the invitation is kept: %v", tt.now-now, kept)
		}
	}
}

// TestInvitationOfAFormerRelease: its certificates may last as long as the last of them.
func TestInvitationOfAFormerRelease(t *testing.T) {
	i := &Invitation{Serials: []Serial{{1}, {2}}, Ends: []grid.Time{5, 7}, Until: 7}
	for _, tt := range []struct{ written, read []grid.Time }{{i.Ends, i.Ends}, {nil, []grid.Time{7, 7}}} {
		var p wirepb.MemberInvitation
		if err := proto.Unmarshal(i.AppendRecord(nil), &p); err != nil {
			t.Fatal(err)
		}
		if tt.written == nil {
			p.Ends = nil
		}
		value, err := proto.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeInvitation(value); err != nil || !slices.Equal(got.Ends, tt.read) || !slices.Equal(got.Serials, i.Serials) {
			t.Errorf("%+v, %v: want ends %v", got, err, tt.read)
		}
	}
}

// TestRepliesAreNotRepliedTo: what shows newer lists is asked for them, once.
func TestRepliesAreNotRepliedTo(t *testing.T) {
	o := newOffice(t, newTown(t).fed, "a", nil)
	for _, reply := range []bool{false, true} {
		o.step(start, &grid.Delivery{From: "b", Message: &Digest{Newest: map[[sha256.Size]byte]uint64{{1}: 9}, Reply: reply}})
		if asked := len(o.sent) == 1 && o.sent[0].Message.(*Digest).Reply; asked == reply || len(o.sent) > 1 {
			t.Errorf("a digest, a reply: %v, has these sent: %v", reply, o.sent)
		}
	}
}

// TestNewerListCounts: what it does not name is not revoked any more.
func TestNewerListCounts(t *testing.T) {
	w := newTown(t, "beta", "gamma")
	r := NewRevoked()
	first := w.revoked(nil, "beta")
	der, err := w.delegate.Revoke(rand.Reader, &List{Number: first.Number}, start, w.members["gamma"].Serial)
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.fed.OpenList(der, w.proof)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*List{first, second} {
		if news, err := r.Add(l); err != nil || !news {
			t.Fatal(news, err)
		}
	}
	if r.Has(w.members["beta"]) || !r.Has(w.members["gamma"]) {
		t.Errorf("revoked: beta %v, gamma %v; want what the newer list names", r.Has(w.members["beta"]), r.Has(w.members["gamma"]))
	}
}

// TestLatestInvitation: of several invitations that a site has used the one counts whose certificates
// last the longest, whatever their IDs are.
func TestLatestInvitation(t *testing.T) {
	o := newOffice(t, newTown(t).fed, "self", nil)
	for number, until := range []grid.Time{20, 40, 40, 30} {
		id := InvitationID{byte(number)}
		o.roll.invited[id] = &Invitation{ID: id, Site: "a", Until: until}
	}
	o.roll.invited[InvitationID{9}] = &Invitation{ID: InvitationID{9}, Site: "b", Until: 90}
	for range 20 {
		if got := o.roll.Invited("a"); got == nil || got.ID != (InvitationID{1}) {
			t.Fatalf("%+v, want the first of those that last until 40", got)
		}
	}
	if got := o.roll.Invited("c"); got != nil {
		t.Errorf("%+v of who has used none", got)
	}
}
