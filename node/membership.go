package node

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/internal/wire/wirepb"
	"gridnode/node/member"
	"gridnode/node/p2p"
	"gridnode/node/site"
	"gridnode/node/visit"
	"gridnode/node/witness"
)

// Card is what makes a node a member of a federation.
type Card struct {
	Federation *member.Federation
	Proof      member.Proof
}

// admissionProtocol is how an invited site asks to be certified, a frame each way.
// Everybody may speak it.
const admissionProtocol = "/gridnode/admission/1"

// admissionMax bounds the time of one admission.
const admissionMax = 10 * time.Second

// ErrRefused is wrapped by what an inviting site says to who applies, and by what a site
// says of members whom it cannot invite or revoke.
var ErrRefused = errors.New("refused")

// membership is the host's side of membership: it verifies what the site's roll is told,
// and signs for it.
type membership struct {
	h    *Host
	id   grid.SiteID
	key  ed25519.PrivateKey
	card atomic.Pointer[Card] // it changes when the certificate is renewed
	me   *member.Member       // what the card said at the start
	own  *x509.Certificate    // of this site, with the right to invite; nil: it has not
	out  sync.Once            // it was said that this site was revoked
}

// sayOut tells the owner that this site was revoked.
func (m *membership) sayOut() {
	m.out.Do(func() {
		m.h.log.Error("this site was revoked: it is a member of the federation no longer, and speaks to nobody; a new invitation makes it one again")
	})
}

// isOut reports whether this site was revoked.
func (m *membership) isOut(ctx context.Context) (out bool, err error) {
	err = m.h.Do(ctx, func(s *site.Site) { out = s.Roll().Excluded() })
	return out, err
}

// newMembership returns nil without a card. The error says why the card is not good.
func newMembership(h *Host) (*membership, error) {
	if h.cfg.Member == nil {
		return nil, nil
	}
	key, err := ed25519Of(h.cfg.Key)
	if err != nil {
		return nil, err
	}
	m := &membership{h: h, id: h.id, key: key}
	card := h.cfg.Member
	m.card.Store(card)
	certificates, err := card.Proof.Certificates()
	if err != nil {
		return nil, fmt.Errorf("this site's proof of membership: %w", err)
	}
	me, err := card.Federation.Verify(card.Proof, h.id, h.loop.clock.now())
	if err != nil {
		return nil, fmt.Errorf("this site's proof of membership: %w", err)
	}
	m.me = me
	h.cfg.Site.Name = me.Name // a member is called what its certificate says
	if me.Rights.Has(member.MayInvite) {
		m.own = certificates[0]
	}
	return m, nil
}

func ed25519Of(key crypto.PrivKey) (ed25519.PrivateKey, error) {
	raw, err := key.Raw()
	if err != nil || len(raw) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("members have Ed25519 keys: this one is of type %v", key.Type())
	}
	return raw, nil
}

// issuer returns this site as one that certifies others; nil if it may not.
func (m *membership) issuer() *member.Issuer {
	if m.own == nil {
		return nil
	}
	return &member.Issuer{Certificate: m.own, Key: m.key}
}

// roll returns what the site needs to know members.
func (m *membership) roll() member.RollConfig {
	k, _ := m.h.cfg.Profile.Kademlia()
	c := member.RollConfig{Name: m.h.cfg.Site.Name, Federation: m.card.Load().Federation, Own: m.me, Named: cmp.Or(m.h.cfg.BucketSize, k)}
	if i := m.issuer(); i != nil {
		c.Issue = func(g member.Grant) ([]byte, error) { return i.Issue(rand.Reader, g) }
	}
	return c
}

// gate returns how the network tells members from strangers.
func (m *membership) gate() *p2p.Membership {
	return &p2p.Membership{
		Proof: func() []byte { return m.card.Load().Proof }, Admit: m.admit, Strangers: []string{admissionProtocol, witness.AskProtocol},
	}
}

// admit has the site decide on a peer whose proof is good.
//
// A peer may tell instead that this site was revoked: whoever was down when that was gossiped
// hears it from nobody else.
func (m *membership) admit(from grid.SiteID, proof []byte) error {
	switch told, err := m.card.Load().Federation.ReadWords(proof); {
	case err != nil:
		return err
	case told != nil:
		return m.told(from, told)
	}
	who, err := m.card.Load().Federation.Verify(proof, from, m.h.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(m.h.ctx, admissionMax)
	defer cancel()
	answer, err := m.h.Ask(ctx, func(token uint64) grid.Input { return &member.Introduce{Token: token, Member: who} })
	if err != nil {
		return err
	}
	introduced := answer.(*member.Introduced)
	if introduced.Why != nil {
		return &p2p.Barred{Err: introduced.Err, Words: introduced.Why.Words()}
	}
	return introduced.Err
}

// told has the site read a list that a peer has shown in place of a proof.
func (m *membership) told(from grid.SiteID, list *member.Revocations) error {
	answer, err := m.h.Ask(m.h.ctx, func(token uint64) grid.Input { return &member.Learn{Token: token, List: list.List, Heard: true} })
	if err != nil {
		return err
	}
	if err := answer.(*member.Learned).Err; err != nil {
		return err
	}
	out, err := m.isOut(m.h.ctx)
	if err != nil {
		return err
	}
	if !out {
		return wire.Malformed("%s shows a list of revoked certificates, and no proof", from)
	}
	m.sayOut() // it has met nobody, perhaps, whose connections end now
	return fmt.Errorf("%s says that this site was revoked: %w", from, member.ErrRevoked)
}

// serve answers a site that was invited.
func (m *membership) serve(from grid.SiteID, s network.Stream) error {
	_ = s.SetDeadline(time.Now().Add(admissionMax))
	var p wirepb.MemberApplication
	if err := wire.ReadProto(bufio.NewReaderSize(s, 512), &p); err != nil {
		return err
	}
	in, err := applicationOf(from, &p)
	if err != nil {
		return err
	}
	answer := &wirepb.MemberAdmission{}
	if certificate, err := m.certify(in); err != nil {
		m.h.log.Warn("an application to be certified was refused", "site", from, "error", err)
		answer.Refusal = err.Error()
	} else {
		m.h.log.Info("a site was certified", "site", from)
		answer.Proof, answer.Roots = append(bytes.Clone(certificate), m.card.Load().Proof...), m.card.Load().Federation.PEM()
	}
	return wire.WriteProto(s, answer)
}

func (m *membership) certify(a *member.Application) ([]byte, error) {
	ctx, cancel := context.WithTimeout(m.h.ctx, admissionMax)
	defer cancel()
	answer, err := m.h.Ask(ctx, func(token uint64) grid.Input {
		if a.ID == (member.InvitationID{}) {
			return &member.Renew{Token: token, Site: a.Site, Key: a.Key}
		}
		return &member.Apply{Token: token, Application: *a}
	})
	if err != nil {
		return nil, err
	}
	applied := answer.(*member.Applied)
	return applied.Certificate, applied.Err
}

// applicationOf reads what a site asks for; without an invitation it asks for a new
// certificate in place of its own. Errors wrap wire.ErrMalformed.
func applicationOf(from grid.SiteID, p *wirepb.MemberApplication) (*member.Application, error) {
	if p.Renew {
		p.Id, p.Secret = make([]byte, len(member.InvitationID{})), make([]byte, len(member.Secret{}))
	} else if len(p.Id) != len(member.InvitationID{}) || len(p.Secret) != len(member.Secret{}) || [len(member.InvitationID{})]byte(p.Id) == (member.InvitationID{}) {
		return nil, wire.Malformed("application with an ID of %d bytes and a secret of %d", len(p.Id), len(p.Secret))
	}
	if p.Name != "" && member.CheckName(p.Name) != nil {
		return nil, wire.Malformed("application of a site called %.80q", p.Name)
	}
	id, err := peer.Decode(string(from))
	if err != nil {
		return nil, wire.Malformed("application of %q: %v", from, err)
	}
	public, err := id.ExtractPublicKey()
	if err != nil {
		return nil, wire.Malformed("application of %s: %v", from, err)
	}
	key, err := public.Raw()
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, wire.Malformed("application of %s, whose key is of type %v: want Ed25519", from, public.Type())
	}
	return &member.Application{ID: member.InvitationID(p.Id), Secret: member.Secret(p.Secret), Name: p.Name, Site: from, Key: key}, nil
}

// askCertificate sends an application and reads the answer.
func askCertificate(s network.Stream, a *wirepb.MemberApplication, answer *wirepb.MemberAdmission) error {
	if err := wire.WriteProto(s, a); err != nil {
		return err
	}
	return wire.ReadProto(bufio.NewReaderSize(s, 4096), answer)
}

// Apply has the site that sent an invitation certify the one whose key that is. The
// result is what a Card says.
func Apply(ctx context.Context, t *member.Token, key crypto.PrivKey, name string) (*Card, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	answer := &wirepb.MemberAdmission{}
	err = p2p.Call(ctx, key, t.Addresses, admissionProtocol, func(s network.Stream) error {
		return askCertificate(s, &wirepb.MemberApplication{Id: t.ID[:], Secret: t.Secret[:], Name: name}, answer)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the site that sent the invitation: %w", err)
	case answer.Refusal != "":
		return nil, fmt.Errorf("%w: %.400s", ErrRefused, answer.Refusal)
	}
	f, err := member.ParseFederation(answer.Roots)
	if err != nil {
		return nil, fmt.Errorf("the roots that the inviting site has sent: %w", err)
	}
	if f.Fingerprint() != t.Fingerprint {
		return nil, fmt.Errorf("%w: the inviting site has sent other roots than the invitation names", ErrRefused)
	}
	card := &Card{Federation: f, Proof: answer.Proof}
	if _, err := f.Verify(card.Proof, grid.SiteID(id.String()), grid.Time(time.Now().UnixMicro())); err != nil {
		return nil, fmt.Errorf("what the inviting site has sent: %w", err)
	}
	return card, nil
}

// Invitation is what an owner says of whom it invites.
type Invitation struct {
	Name    string // empty: the invited site says
	Org     string
	Rights  member.Rights
	Expires grid.Time // span for which the invitation is good
	Valid   grid.Time // span for which the certificate will be
}

// Invite keeps an invitation and returns what the invited site is to be given.
func (h *Host) Invite(ctx context.Context, i Invitation) (*member.Token, error) {
	if h.member == nil || h.member.own == nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, member.ErrNoInviter)
	}
	t := &member.Token{
		Federation: h.member.card.Load().Federation.Name, Fingerprint: h.member.card.Load().Federation.Fingerprint(), Addresses: h.Addrs(), Name: i.Name,
	}
	_, _ = rand.Read(t.ID[:]) // never fails
	_, _ = rand.Read(t.Secret[:])
	answer, err := h.Ask(ctx, func(token uint64) grid.Input {
		return &member.Invite{Token: token, Invitation: member.Invitation{
			ID: t.ID, Hash: sha256.Sum256(t.Secret[:]), Name: i.Name, Org: i.Org, Rights: i.Rights, Expires: h.Now() + i.Expires, Valid: i.Valid,
		}}
	})
	if err != nil {
		return nil, err
	}
	if err := answer.(*member.Invited).Err; err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return t, nil
}

// Revoke takes back the certificate of a member that this site has certified, by its
// name or ID, and tells the federation.
func (h *Host) Revoke(ctx context.Context, who string) (grid.SiteID, error) {
	if h.member == nil || h.member.own == nil {
		return "", fmt.Errorf("%w: only who invites may revoke, and this site may not invite", ErrRefused)
	}
	if who == string(h.id) || who == h.cfg.Site.Name {
		return "", fmt.Errorf("%w: %s is this site itself", ErrRefused, who)
	}
	i := h.member.issuer()
	var found *member.Member
	var serials []member.Serial
	var before *member.List
	err := h.Do(ctx, func(s *site.Site) {
		roll := s.Roll()
		if found = roll.Member(grid.SiteID(who)); found == nil {
			found = roll.Named(who)
		}
		if found == nil {
			found = invitedAs(roll, who, i.Certificate.Subject.CommonName)
		}
		if found != nil {
			serials = append(serials, found.Serial)
			if by := roll.Invited(found.Site); by != nil {
				serials = append(serials, by.Serials...)
			}
		}
		before = roll.Revoked().Of(i)
	})
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", fmt.Errorf("%w: no member %q is known here; 'gridnode members' lists those that are", ErrRefused, who)
	case found.Issuer != i.Certificate.Subject.CommonName:
		return "", fmt.Errorf("%w: %s was certified by %s, which has to revoke it", ErrRefused, who, found.Issuer)
	}
	signed, err := i.Revoke(rand.Reader, before, h.Now(), serials...)
	if err != nil {
		return "", err
	}
	list, err := h.member.card.Load().Federation.OpenList(signed, h.member.card.Load().Proof)
	if err != nil {
		return "", err
	}
	answer, err := h.Ask(ctx, func(token uint64) grid.Input { return &member.Learn{Token: token, List: list} })
	if err != nil {
		return "", err
	}
	return found.Site, answer.(*member.Learned).Err
}

// invitedAs returns a member that was certified here and was not met since this site
// started.
func invitedAs(roll *member.Roll, who, issuer string) *member.Member {
	for _, i := range roll.Invitations() {
		if len(i.Serials) > 0 && (i.Took == who || string(i.Site) == who) {
			return &member.Member{Site: i.Site, Name: i.Took, Issuer: issuer, Serial: i.Serials[0]}
		}
	}
	return nil
}

// Renew has this site's certificate renewed by the member that has given it, shows the
// new one to every peer, and returns until when it is good.
func (h *Host) Renew(ctx context.Context) (grid.Time, error) {
	if h.member == nil {
		return 0, fmt.Errorf("%w: the federation is open, there is nothing to renew", ErrRefused)
	}
	card := h.member.card.Load()
	issuer := card.Proof.Issuer(h.id)
	if issuer == "" {
		return 0, fmt.Errorf("%w: a root key has certified this site: 'gridnode federation sign' renews it", ErrRefused)
	}
	if out, err := h.member.isOut(ctx); err != nil {
		return 0, err
	} else if out {
		return 0, fmt.Errorf("%w: this site was revoked, and only a new invitation makes it a member again ('gridnode init --join')", ErrRefused)
	}
	s, err := h.net.Open(ctx, issuer, admissionProtocol)
	if err != nil {
		return 0, fmt.Errorf("ask %s, which has certified this site: %w", issuer, err)
	}
	_ = s.SetDeadline(time.Now().Add(admissionMax))
	answer := &wirepb.MemberAdmission{}
	if err := askCertificate(s, &wirepb.MemberApplication{Renew: true}, answer); err != nil {
		s.Reset()
		return 0, fmt.Errorf("ask %s, which has certified this site: %w", issuer, err)
	}
	s.Close()
	if answer.Refusal != "" {
		return 0, fmt.Errorf("%w: %.400s", ErrRefused, answer.Refusal)
	}
	renewed := &Card{card.Federation, answer.Proof}
	me, err := card.Federation.Verify(renewed.Proof, h.id, h.Now())
	if err != nil {
		return 0, fmt.Errorf("what %s has sent: %w", issuer, err)
	}
	if h.cfg.Renewed != nil {
		if err := h.cfg.Renewed(renewed); err != nil {
			return 0, fmt.Errorf("keep the new certificate: %w", err)
		}
	}
	h.member.card.Store(renewed)
	if err := h.Do(ctx, func(s *site.Site) { s.Roll().Renewed(me) }); err != nil {
		return 0, err
	}
	h.net.Greet()
	return me.Expires, nil
}

// How often a site looks whether its certificate is to be renewed, when two thirds of its
// time are over: six times in what is left of it, within these bounds.
const renewLeast, renewMost = 10 * time.Second, time.Hour

// stayMember renews the certificate in time.
func (m *membership) stayMember() {
	if out, err := m.isOut(m.h.ctx); err == nil && out { // it has learned that when it ran before
		m.sayOut()
	}
	for {
		pause := renewMost
		if card := m.card.Load(); card != nil {
			if me, err := card.Federation.Verify(card.Proof, m.id, m.h.Now()); err == nil {
				pause = max(renewLeast, min(pause, ((me.Expires-m.h.Now())/6).Duration()))
			}
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-m.h.ctx.Done():
			t.Stop()
			return
		}
		card := m.card.Load()
		me, err := card.Federation.Verify(card.Proof, m.id, m.h.Now())
		if err == nil && m.h.Now() < me.Issued+(me.Expires-me.Issued)*2/3 {
			continue
		}
		if err == nil {
			_, err = m.h.Renew(m.h.ctx)
		}
		if err != nil {
			m.h.log.Warn("the certificate of this site is not renewed; see 'gridnode federation show'", "error", err)
		}
	}
}

// Visits is how people of other members come to look at this site's page, and those of this
// site at theirs.
type Visits struct{ h *Host }

// VisitsOf returns the visits of a node.
func VisitsOf(h *Host) Visits { return Visits{h} }

// Welcome returns the name of a member that may look at this site's page; an error says why it
// may not, or no longer.
func (v Visits) Welcome(ctx context.Context, who grid.SiteID) (name string, err error) {
	h := v.h
	if h.member == nil {
		return "", member.ErrStranger
	}
	failed := h.Do(ctx, func(s *site.Site) {
		m := s.Roll().Member(who)
		switch desk := s.GuestDesk(); {
		case m == nil || !s.Roll().May(who, 0, h.Now()):
			err = member.ErrStranger
		case desk != nil && desk.Shuns(h.Now(), who):
			err = fmt.Errorf("%w by this site's owner", ErrRefused)
		default:
			name = m.Name
		}
	})
	return name, cmp.Or(failed, err)
}

// Handle answers members that want to look at this site's page: open makes a ticket for
// a user of theirs. An open federation has no members.
func (v Visits) Handle(open func(from grid.SiteID, name, user string) (*visit.Ticket, error)) {
	if v.h.member == nil {
		return
	}
	v.h.net.Handle(visit.Protocol, func(from grid.SiteID, s network.Stream) error {
		return visit.Serve(s, func(user string) (*visit.Ticket, error) {
			name, err := v.Welcome(v.h.ctx, from)
			if err != nil {
				return nil, err
			}
			return open(from, name, user)
		})
	})
}

// Ask asks another member for a ticket to look at its page.
func (v Visits) Ask(ctx context.Context, to grid.SiteID, user string) (*visit.Ticket, error) {
	s, err := v.h.net.Open(ctx, to, visit.Protocol)
	if err != nil {
		return nil, err
	}
	defer s.Reset()
	return visit.Ask(s, user)
}

// Membership returns the card of this node, nil in an open federation.
func (h *Host) Membership() *Card {
	if h.member == nil {
		return nil
	}
	return h.member.card.Load()
}
