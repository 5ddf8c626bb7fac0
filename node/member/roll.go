package member

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gridnode/grid"
)

// ListPrefix begins the keys of stored revocation lists.
const ListPrefix = "revoked/"

// Bounds and times of a Roll.
const (
	membersMax  = 8192             // members remembered, besides invitations
	DigestEvery = 20 * grid.Second // who missed what was gossiped hears of it within a minute
)

// Errors of a Roll, wrapped by what it answers.
var (
	ErrRevoked    = errors.New("its membership was revoked")
	ErrName       = errors.New("another member has that name")
	ErrInvitation = errors.New("the invitation is not good")
	ErrNoInviter  = errors.New("this site may not invite")
)

// RollConfig describes a Roll.
type RollConfig struct {
	Self       grid.SiteID
	Name       string                      // of this site's certificate
	Federation *Federation                 // nil: an open federation
	Own        *Member                     // what the roots say of this site
	Named      int                         // sites that a router names at most, as is the same for all sites; 0: 20
	Issue      func(Grant) ([]byte, error) // certifies a member; nil: this site may not
}

// Roll is what a site knows of the members of its federation: those that it has met,
// what was revoked, and whom it has invited. It is a core: Step with inputs that the
// driver verified, and effects.
//
//	Introduce   a peer has shown a proof, which Federation.Verify found good
//	Learn       this site's owner has revoked somebody
//	Invite      its owner invites somebody
//	Apply       somebody who was invited asks for a certificate
//
// News of revocations are gossiped on Topic, and found again by digests: to everybody
// that is met, and to a member now and then.
type Roll struct {
	cfg      RollConfig
	rng      *rand.Rand
	members  map[grid.SiteID]*Member
	names    map[string]grid.SiteID
	order    []grid.SiteID // of members, by when they were met
	revoked  *Revoked
	invited  map[InvitationID]*Invitation
	vouched  vouched
	met      map[grid.SiteID]*met // members and others, also before this site's last start
	metOrder []grid.SiteID        // by when they were met
	judged   grid.Time            // when the next of them may become an outcast
	digest   grid.Time            // when the next is sent
	expiry   grid.Time            // when the first certificate of those that were met ends
	changed  []Change
}

// Change says that a site was taken in, or out; or that it is an outcast, see Roll.Outcast. That
// this site was taken in says that it is a member again.
type Change struct {
	Site    grid.SiteID
	In      bool
	Outcast bool
}

// Changes returns what has changed since it was last asked. The slice is good until the
// next Step.
func (r *Roll) Changes() []Change {
	all := r.changed
	r.changed = r.changed[:0]
	return all
}

// NewRoll returns a Roll that knows nobody.
func NewRoll(cfg RollConfig, rng *rand.Rand) *Roll {
	return &Roll{
		cfg: cfg, rng: rng, members: make(map[grid.SiteID]*Member), names: make(map[string]grid.SiteID),
		revoked: NewRevoked(), invited: make(map[InvitationID]*Invitation), vouched: newVouched(), digest: grid.Never, expiry: grid.Never,
		met: make(map[grid.SiteID]*met), judged: grid.Never,
	}
}

// Introduce says that a peer has shown that it is a member. Answer: *Introduced.
type Introduce struct {
	Token  uint64
	Member *Member
}

// Introduced answers Introduce: whether the peer is let in.
type Introduced struct {
	Err error
	Why *Revocations // what to tell a peer that was revoked; else nil
}

// Learn tells the roll of a list. Answer: *Learned.
type Learn struct {
	Token uint64
	List  *List
	Heard bool // of a peer, and not signed here: it is not gossiped
}

// Learned answers Learn: who is a member no longer, among those that were met.
type Learned struct {
	Gone []Member
	Err  error
}

// Invite keeps an invitation. Answer: *Invited.
type Invite struct {
	Token      uint64
	Invitation Invitation
}

// Invited answers Invite.
type Invited struct{ Err error }

// Apply asks for the certificate that was promised. Answer: *Applied.
type Apply struct {
	Token       uint64
	Application Application
}

// Renew asks for a new certificate in place of one that will end. Answer: *Applied.
type Renew struct {
	Token uint64
	Site  grid.SiteID
	Key   ed25519.PublicKey // of Site
}

// Applied answers Apply and Renew.
type Applied struct {
	Certificate []byte // in DER
	Err         error
}

// Step applies one input.
func (r *Roll) Step(now grid.Time, in grid.Input, out *grid.Outbox) {
	switch in := in.(type) {
	case grid.Tick:
		r.tick(now, out)
	case *grid.Delivery:
		switch m := in.Message.(type) {
		case *Revocations:
			_, _ = r.learn(now, m.List, out) // one list too many of issuers is left
		case *Digest:
			r.answer(in.From, m, out)
		case *Inquire:
			r.show(now, in.From, m, out)
		case *Inform:
			r.shown(now, m)
		}
	case *grid.Undelivered: // who cannot be reached is told when it is met again
	case *Introduce:
		err := r.introduce(now, in.Member, out)
		out.Answer(in.Token, &Introduced{err, r.why(in.Member)})
	case *Learn:
		gone, err := r.learn(now, in.List, out)
		if err == nil && !in.Heard {
			out.Publish(Topic, &Revocations{in.List})
		}
		out.Answer(in.Token, &Learned{gone, err})
	case *Invite:
		out.Answer(in.Token, &Invited{r.invite(now, &in.Invitation, out)})
	case *Apply:
		certificate, err := r.apply(now, &in.Application, out)
		out.Answer(in.Token, &Applied{certificate, err})
	case *Renew:
		certificate, err := r.renew(now, in, out)
		out.Answer(in.Token, &Applied{certificate, err})
	default:
		panic(fmt.Sprintf("member: unknown input %T", in))
	}
}

// NextTimer returns when Step next needs a Tick.
func (r *Roll) NextTimer() grid.Time { return min(r.digest, r.expiry, r.judged) }

// introduce takes a member in, unless it was revoked or its name is another's.
func (r *Roll) introduce(now grid.Time, m *Member, out *grid.Outbox) error {
	if r.revoked.Has(m) {
		return fmt.Errorf("%s: %w", m.Name, ErrRevoked)
	}
	if r.Excluded() {
		return fmt.Errorf("this site is a member no longer: %w", ErrRevoked)
	}
	if other, taken := r.names[m.Name]; taken && other != m.Site {
		if before := r.members[other]; before.Expires > now && before.Prior(m) {
			return fmt.Errorf("%s: %w, site %s", m.Name, ErrName, other)
		}
		r.remove(other, nil, out)
	}
	if old := r.members[m.Site]; old != nil {
		delete(r.names, old.Name)
	} else {
		if len(r.members) >= membersMax {
			r.forget(r.order[0])
		}
		r.order = append(r.order, m.Site)
	}
	r.members[m.Site], r.names[m.Name] = m, m.Site
	r.vouched.drop(m.Site)
	r.remember(m, out)
	r.expiry = min(r.expiry, m.Expires)
	r.changed = append(r.changed, Change{Site: m.Site, In: true})
	out.Send(m.Site, r.newest())
	if r.digest == grid.Never {
		r.digest = now + DigestEvery
	}
	return nil
}

// remove takes somebody out and has the driver end its connections, after a last message
// unless that is nil.
func (r *Roll) remove(site grid.SiteID, last grid.Message, out *grid.Outbox) {
	if k := r.met[site]; k != nil {
		r.judged = min(r.judged, k.expires.Add(outcastAfter))
	}
	r.forget(site)
	r.changed = append(r.changed, Change{Site: site})
	out.Expel(site, last)
}

func (r *Roll) forget(site grid.SiteID) {
	m := r.members[site]
	delete(r.members, site)
	if r.names[m.Name] == site {
		delete(r.names, m.Name)
	}
	r.order = slices.DeleteFunc(r.order, func(s grid.SiteID) bool { return s == site })
}

// learn keeps a list if it is news, and takes out whom it revokes.
func (r *Roll) learn(now grid.Time, l *List, out *grid.Outbox) (gone []Member, err error) {
	news, err := r.revoked.Add(l)
	if err != nil || !news {
		return nil, err
	}
	out.Save((*listRecord)(l))
	r.disown()
	for _, site := range slices.Clone(r.order) {
		switch m := r.members[site]; {
		case r.Excluded(): // which the others know, or will
			gone = append(gone, *m)
			r.remove(site, nil, out)
		case r.revoked.Has(m):
			gone = append(gone, *m)
			r.remove(site, &Revocations{l}, out)
		}
	}
	r.judge(now)
	return gone, nil
}

// why returns the list that revokes a member, nil if none does.
func (r *Roll) why(m *Member) *Revocations {
	for _, l := range r.revoked.Lists() {
		if l.has(m.chain) {
			return &Revocations{l}
		}
	}
	return nil
}

// newest returns the digest of all lists.
func (r *Roll) newest() *Digest {
	d := &Digest{Newest: make(map[[sha256.Size]byte]uint64)}
	for _, l := range r.revoked.Lists() {
		d.Newest[l.Issuer] = l.Number
	}
	return d
}

// answer sends the lists that are newer than a site's, and asks for those of it that are
// newer.
func (r *Roll) answer(to grid.SiteID, d *Digest, out *grid.Outbox) {
	own := r.newest()
	for _, l := range r.revoked.Lists() {
		if d.Newest[l.Issuer] < l.Number {
			out.Send(to, &Revocations{l})
		}
	}
	if d.Reply {
		return
	}
	for issuer, number := range d.Newest {
		if own.Newest[issuer] < number {
			own.Reply = true
			out.Send(to, own)
			return
		}
	}
}

// tick takes out whose certificate has ended, and tells one member which lists there are.
func (r *Roll) tick(now grid.Time, out *grid.Outbox) {
	if now >= r.expiry {
		r.expiry = grid.Never
		for _, site := range slices.Clone(r.order) {
			if m := r.members[site]; m.Expires <= now {
				r.remove(site, nil, out)
			} else {
				r.expiry = min(r.expiry, m.Expires)
			}
		}
	}
	if now >= r.judged {
		r.judge(now)
	}
	if now < r.digest {
		return
	}
	r.digest = grid.Never
	if len(r.order) > 0 {
		out.Send(r.order[r.rng.IntN(len(r.order))], r.newest())
		r.digest = now + DigestEvery
	}
}

// invite keeps an invitation, and drops those that nobody can use any more.
func (r *Roll) invite(now grid.Time, i *Invitation, out *grid.Outbox) error {
	if r.cfg.Issue == nil {
		return ErrNoInviter
	}
	for _, old := range r.Invitations() {
		if old.over(now) {
			delete(r.invited, old.ID)
			out.Delete(old)
		}
	}
	switch other, taken := r.names[i.Name]; {
	case len(r.invited) >= invitationsMax:
		return fmt.Errorf("%d invitations are open: want at most %d", len(r.invited), invitationsMax)
	case i.Expires <= now:
		return fmt.Errorf("%w: it would have expired", ErrInvitation)
	case i.Rights.Has(MayInvite):
		return errDelegate
	case taken && i.Name != "":
		return fmt.Errorf("%s: %w, site %s", i.Name, ErrName, other)
	}
	kept := *i
	r.invited[i.ID] = &kept
	out.Save(&kept)
	return nil
}

// apply certifies who brings the secret of an invitation. Asked again by the same site,
// it answers the same: the first answer may not have come.
func (r *Roll) apply(now grid.Time, a *Application, out *grid.Outbox) ([]byte, error) {
	i := r.invited[a.ID]
	if r.cfg.Issue == nil || i == nil {
		return nil, fmt.Errorf("%w: nobody here has given it, or it has expired", ErrInvitation)
	}
	hash := sha256.Sum256(a.Secret[:])
	switch {
	case subtle.ConstantTimeCompare(hash[:], i.Hash[:]) != 1:
		return nil, fmt.Errorf("%w: nobody here has given it, or it has expired", ErrInvitation)
	case i.Expires <= now:
		return nil, fmt.Errorf("%w: it has expired", ErrInvitation)
	case i.Site == a.Site:
		return i.Certificate, nil
	case i.Site != "":
		return nil, fmt.Errorf("%w: it was used by %s", ErrInvitation, i.Took)
	}
	name := i.Name
	if name == "" {
		name = a.Name
	}
	if other, taken := r.names[name]; taken && other != a.Site {
		return nil, fmt.Errorf("%s: %w, site %s", name, ErrName, other)
	}
	for _, other := range r.invited {
		if other.Took == name && other.Site != a.Site {
			return nil, fmt.Errorf("%s: %w, site %s", name, ErrName, other.Site)
		}
	}
	certificate, err := r.cfg.Issue(Grant{Key: a.Key, Name: name, Org: i.Org, Rights: i.Rights, From: now, Expires: now + i.Valid})
	if err != nil {
		return nil, err
	}
	if err := i.gave(certificate); err != nil {
		return nil, err
	}
	i.Site, i.Took, i.Certificate = a.Site, name, certificate
	out.Save(i)
	return certificate, nil
}

// renew certifies a member for as long again as before, if it is one that was certified
// here and was not revoked.
func (r *Roll) renew(now grid.Time, in *Renew, out *grid.Outbox) ([]byte, error) {
	m := r.members[in.Site]
	switch {
	case r.cfg.Issue == nil:
		return nil, ErrNoInviter
	case m == nil || now >= m.Expires:
		return nil, fmt.Errorf("%w: it has to be one, and have met this site, to have its certificate renewed", ErrStranger)
	case m.Depth == 0 || m.Issuer != r.cfg.Name:
		return nil, fmt.Errorf("%s was certified by %s, which has to renew it", m.Name, m.Issuer)
	}
	i := r.Invited(in.Site)
	if i == nil {
		return nil, fmt.Errorf("%w: nothing is known here of how %s was invited", ErrInvitation, m.Name)
	}
	if i.forget(now); len(i.Serials) >= renewalsMax {
		return nil, fmt.Errorf("%w: %s has %d certificates that have not ended", ErrInvitation, m.Name, len(i.Serials))
	}
	certificate, err := r.cfg.Issue(Grant{Key: in.Key, Name: m.Name, Org: m.Org, Rights: m.Rights, From: now, Expires: now + i.Valid, Lot: m.Lot()})
	if err != nil {
		return nil, err
	}
	if err := i.gave(certificate); err != nil {
		return nil, err
	}
	out.Save(i)
	return certificate, nil
}

// Invited returns the invitation that a site has used, nil if there is none; of several the one whose
// certificates last the longest.
func (r *Roll) Invited(site grid.SiteID) (latest *Invitation) {
	for _, i := range r.Invitations() {
		if i.Site == site && (latest == nil || i.Until > latest.Until) {
			latest = i
		}
	}
	return latest
}

// Member returns a member that was met, or nil.
func (r *Roll) Member(site grid.SiteID) *Member { return r.members[site] }

// Is reports whether a site is this one, or a member that was met.
func (r *Roll) Is(site grid.SiteID) bool { return site == r.cfg.Self || r.members[site] != nil }

// Has reports whether it knows any other member.
func (r *Roll) Has() bool { return len(r.order) > 0 }

// Named returns the member of that name that was met, or nil.
func (r *Roll) Named(name string) *Member { return r.members[r.names[name]] }

// Members returns those that were met, in the order of their names.
func (r *Roll) Members() []*Member {
	all := make([]*Member, 0, len(r.members))
	for _, m := range r.members {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Invitations returns those that are kept, in the order of their IDs.
func (r *Roll) Invitations() []*Invitation {
	all := make([]*Invitation, 0, len(r.invited))
	for _, i := range r.invited {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b *Invitation) int { return strings.Compare(string(a.ID[:]), string(b.ID[:])) })
	return all
}

// Revoked returns what was revoked. It must not be changed.
func (r *Roll) Revoked() *Revoked { return r.revoked }

// May reports whether a site was met and has those rights.
func (r *Roll) May(site grid.SiteID, rights Rights, now grid.Time) bool {
	m := r.members[site]
	return site == r.cfg.Self || m != nil && m.Rights.Has(rights) && now < m.Expires
}

// Recover takes up a stored record, whose key has one of the prefixes.
func (r *Roll) Recover(now grid.Time, key string, value []byte) error {
	switch {
	case strings.HasPrefix(key, InvitationPrefix):
		i, err := decodeInvitation(value)
		if err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		r.invited[i.ID] = i
	case strings.HasPrefix(key, MetPrefix):
		k, err := decodeMet(value)
		if err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		r.met[k.site], r.judged = k, 0
		r.metOrder = append(r.metOrder, k.site)
	case strings.HasPrefix(key, ListPrefix):
		l, err := r.cfg.Federation.decodeRevoked(value)
		if err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
		if _, err := r.revoked.Add(l.(*Revocations).List); err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
	}
	return nil
}
