package owner

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/member"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// Invitations has owners invite sites, and these, others, and some without the secret ask to be
// certified. It sees to it that
//
//   - only who brings the secret of an invitation in time is, and of all who do one only, with its
//     name and rights, for as long as it says;
//   - who asks again is given the same;
//   - an invitation that was confirmed is good until it expires, whatever dies.
type Invitations struct {
	Sight
	check     func(at int, certificate []byte, stranger grid.SiteID, now grid.Time) (*member.Member, error)
	strangers []stranger
	latest    map[slot]*invitation
	invited   map[uint64]*invitation // by token
	applied   map[uint64]*application
	counts    InvitationCounts
}

// InvitationCounts is what a run has seen of invitations.
type InvitationCounts struct {
	Invited   int64 `json:"invited"`
	Certified int64 `json:"certified"`
	Refused   int64 `json:"refused"` // who were not
}

// stranger may become a member.
type stranger struct {
	id  grid.SiteID
	key ed25519.PublicKey
}

// newStranger returns one of several.
func newStranger(of string, seed, number uint64) stranger {
	secret := make([]byte, ed25519.SeedSize)
	bytesOf(secret, of, seed+number)
	key := ed25519.NewKeyFromSeed(secret).Public().(ed25519.PublicKey)
	id, err := wire.SiteOf(key)
	if err != nil {
		panic(err) // the key is a good one
	}
	return stranger{id, key}
}

// slot is one of a few invitations that a site has given last.
type slot struct {
	at     int
	number uint64
}

// invitation is one that a site was told to give.
type invitation struct {
	member.Invitation
	at        int
	secret    member.Secret
	confirmed bool
	by        map[int]bool // strangers who have asked with its secret, and were not refused
	asked     int          // times that somebody has asked with it
	given     []byte       // certificate
	to        int          // stranger
}

// application is one that was made.
type application struct {
	of    *invitation // nil: none was given
	who   int
	name  string
	right bool // with the secret
}

// The bounds of Invitations.
const (
	strangers = 4
	slots     = 3
)

// NewInvitations begins to watch; check verifies what a site has certified.
func NewInvitations(s Sight, check func(at int, certificate []byte, stranger grid.SiteID, now grid.Time) (*member.Member, error)) *Invitations {
	w := &Invitations{
		Sight: s, check: check, latest: make(map[slot]*invitation), invited: make(map[uint64]*invitation), applied: make(map[uint64]*application),
	}
	for number := range uint64(strangers) {
		w.strangers = append(w.strangers, newStranger("stranger", s.N.Seed(), number))
	}
	s.N.Observe(testnet.Observer{Answer: w.answer, Fault: w.fault})
	return w
}

// Counts returns what was seen.
func (w *Invitations) Counts() InvitationCounts { return w.counts }

// Do has a site's owner invite somebody, or somebody ask it to be certified, as a number says.
func (w *Invitations) Do(now grid.Time, at int, which uint64) {
	s, up := scenario.SiteAt(w.N, at)
	if !up || s.Roll() == nil {
		return
	}
	local, where := w.N.Clock(at).Local(now), slot{at, part(&which, slots)}
	if part(&which, 3) == 0 {
		w.invite(local, where, which)
	} else {
		w.apply(where, which)
	}
}

// invite gives another invitation.
func (w *Invitations) invite(local grid.Time, where slot, which uint64) {
	number := uint64(len(w.invited))
	i := &invitation{at: where.at, by: make(map[int]bool)}
	bytesOf(i.ID[:], "invitation", number)
	bytesOf(i.secret[:], "secret", number)
	i.Hash = sha256.Sum256(i.secret[:])
	if part(&which, 2) == 0 {
		i.Name = numbered("invited", number)
	}
	i.Rights = [...]member.Rights{member.Usual, member.MaySubmit, member.MayHold | member.MayOffer, member.MayInvite}[part(&which, 4)]
	i.Expires = local + [...]grid.Time{20 * grid.Second, 10 * grid.Minute, grid.Hour, 0}[part(&which, 4)]
	i.Valid = [...]grid.Time{grid.Minute, grid.Hour}[part(&which, 2)]
	w.latest[where] = i
	token := invitationTokens + number
	w.invited[token] = i
	w.N.Step(where.at, &member.Invite{Token: token, Invitation: i.Invitation})
}

// apply has a stranger ask to be certified.
func (w *Invitations) apply(where slot, which uint64) {
	a := &application{of: w.latest[where], who: int(part(&which, strangers)), right: part(&which, 6) > 0}
	by := w.strangers[a.who]
	a.name = numbered("stranger", uint64(a.who))
	said := member.Application{Name: a.name, Site: by.id, Key: by.key}
	switch i := a.of; {
	case i == nil:
		a.right = false
	case a.right:
		said.ID, said.Secret, i.by[a.who] = i.ID, i.secret, true
		i.asked++
	default:
		said.ID, said.Secret = i.ID, i.secret
		said.Secret[which%uint64(len(said.Secret))]++
	}
	token := invitationTokens + 1<<32 + uint64(len(w.applied))
	w.applied[token] = a
	w.N.Step(where.at, &member.Apply{Token: token, Application: said})
}

// fault has a site whose store is brought back know nothing for sure.
func (w *Invitations) fault(_ grid.Time, f *testnet.Fault) {
	if f.Kind != testnet.FaultOld {
		return
	}
	for where, i := range w.latest {
		if i.at == f.Sites[0] {
			delete(w.latest, where)
		}
	}
}

func (w *Invitations) answer(now grid.Time, at int, a grid.Answer) {
	if i := w.invited[a.Token]; i != nil {
		if v, yes := a.Value.(*member.Invited); yes && v.Err == nil {
			i.confirmed = true
			w.counts.Invited++
		}
		return
	}
	of, v := w.applied[a.Token], (*member.Applied)(nil)
	if of != nil {
		v, _ = a.Value.(*member.Applied)
	}
	switch local := w.N.Clock(at).Local(now); {
	case v == nil:
	case v.Err != nil:
		w.counts.Refused++
		w.refused(local, at, of, v.Err)
	default:
		w.counts.Certified++
		if err := w.certified(local, at, of, v.Certificate); err != nil {
			w.Checks.Violated("%s certifies %s: %w", w.N.ID(at), w.strangers[of.who].id, err)
		}
	}
}

// certified says what is wrong with a certificate that was given.
func (w *Invitations) certified(local grid.Time, at int, a *application, certificate []byte) error {
	i := a.of
	switch {
	case i == nil || !a.right:
		return fmt.Errorf("it does not have the secret of an invitation")
	case i.Expires <= local:
		return fmt.Errorf("its invitation has expired at %v", i.Expires)
	case i.given != nil && i.to != a.who:
		return fmt.Errorf("its invitation was used by %s", w.strangers[i.to].id)
	case i.given != nil && !bytes.Equal(i.given, certificate):
		return fmt.Errorf("it had another certificate before")
	case i.given != nil:
		return nil // it may have ended by now
	}
	first := i.asked == 1 // else it may have been given before, unheard, and have ended
	i.given, i.to = certificate, a.who
	m, err := w.check(at, certificate, w.strangers[a.who].id, local)
	name := i.Name
	if name == "" {
		name = a.name
	}
	switch {
	case err != nil && first:
		return err
	case err != nil:
	case m.Name != name || m.Rights != i.Rights:
		return fmt.Errorf("as %s, which may %v, and was to be %s, which may %v", m.Name, m.Rights, name, i.Rights)
	case first && m.Expires > local+i.Valid+grid.Second:
		return fmt.Errorf("until %v, and was to do so for %v", m.Expires, i.Valid)
	}
	return nil
}

// refused looks whether somebody was refused who has a good invitation.
func (w *Invitations) refused(local grid.Time, at int, a *application, why error) {
	i := a.of
	if i == nil || !a.right {
		return
	}
	mine := i.given != nil && i.to == a.who || i.given == nil && len(i.by) == 1
	if i.given == nil || i.to != a.who {
		delete(i.by, a.who)
	}
	if mine && i.confirmed && local < i.Expires && !w.Set(at) {
		w.Checks.Violated("%s does not certify %s, whose invitation is good until %v: %w", w.N.ID(at), w.strangers[a.who].id, i.Expires, why)
	}
}
