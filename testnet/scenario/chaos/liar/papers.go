package liar

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/libp2p/go-libp2p/core/crypto"

	"gridnode/directory"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market/bank"
	"gridnode/node/member"
)

// Papers plays a federation of members on paper, drawn from a seed, and compares what its
// documents are taken for with what was certified: how many roots vouch, with which rights, who
// has used an invitation, who was revoked, in whatever order lists come and whatever daemon dies
// in between, whose certificate was renewed; and whose signature a quote and a cheque have (D-3, R-1). A seed plays one of
// these.
func Papers(seed uint64) error {
	p := &papers{seed: seed, rng: rand.New(rand.NewPCG(seed, 0x7061706572))}
	p.random = rand.NewChaCha8(sha256.Sum256(binary.BigEndian.AppendUint64([]byte("papers "), seed)))
	plays := []func() error{p.vouched, p.delegated, p.invited, p.revoked, p.renewed, p.signed}
	return plays[p.rng.IntN(len(plays))]()
}

type papers struct {
	seed   uint64
	rng    *rand.Rand
	random *rand.ChaCha8
	keys   uint64
}

// party is who has a key.
type party struct {
	key ed25519.PrivateKey
	id  grid.SiteID
}

func (p *papers) party() party {
	p.keys++
	seed := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("party "), p.seed), p.keys))
	key := ed25519.NewKeyFromSeed(seed[:])
	id, err := wire.SiteOf(key.Public().(ed25519.PublicKey))
	if err != nil {
		panic(err) // the key is a good one
	}
	return party{key, id}
}

func (a *party) public() ed25519.PublicKey { return a.key.Public().(ed25519.PublicKey) }

// lasts is for how long what is certified is good.
const lasts = 100 * grid.Day

// federation makes one of roots, of which quorum must agree.
func (p *papers) federation(roots, quorum int) (f *member.Federation, all []*member.Root, err error) {
	var certificates []*x509.Certificate
	for range roots {
		of := p.party()
		root, err := member.NewRoot(p.random, of.key, "papers", quorum, 0)
		if err != nil {
			return nil, nil, err
		}
		all, certificates = append(all, root), append(certificates, root.Certificate)
	}
	f, err = member.NewFederation(certificates)
	return f, all, err
}

// rights draws some.
func (p *papers) rights() member.Rights {
	return member.MayOffer | member.Rights(p.rng.IntN(int(member.All)+1))&member.Usual
}

// vouched: as many roots as must agree have to, and all that do give each right.
func (p *papers) vouched() error {
	roots := 1 + p.rng.IntN(3)
	quorum := 1 + p.rng.IntN(roots)
	f, all, err := p.federation(roots, quorum)
	if err != nil {
		return err
	}
	_, strangers, err := p.federation(1, 1)
	if err != nil {
		return err
	}
	for agreed := max(quorum-1, 0); agreed <= min(quorum, roots); agreed++ {
		site, rights := p.party(), member.All
		issuers := append([]*member.Root{strangers[0]}, all[:agreed]...)
		var proof member.Proof
		for i, root := range issuers {
			given := p.rights()
			if i > 0 {
				rights &= given
			}
			der, err := root.Issue(p.random, member.Grant{Key: site.public(), Name: "site", Rights: given, Expires: lasts})
			if err != nil {
				return err
			}
			proof = append(proof, der...)
		}
		m, err := f.Verify(proof, site.id, grid.Hour)
		switch {
		case err == nil && agreed < quorum:
			return fmt.Errorf("%d of %d roots vouch for a site, %d must, and it is a member", agreed, roots, quorum)
		case err != nil && agreed >= quorum:
			return fmt.Errorf("%d of %d roots vouch for a site, %d must, and it is none: %w", agreed, roots, quorum, err)
		case err == nil && m.Rights != rights:
			return fmt.Errorf("all roots give a site %v, and it has %v", rights, m.Rights)
		}
	}
	return nil
}

// delegated: who was let invite gives what it has, and not more, whatever it signs.
func (p *papers) delegated() error {
	f, roots, err := p.federation(1, 1)
	if err != nil {
		return err
	}
	delegate, site := p.party(), p.party()
	has := p.rights()
	der, err := roots[0].Issue(p.random, member.Grant{Key: delegate.public(), Name: "delegate", Rights: has | member.MayInvite, Expires: lasts})
	if err != nil {
		return err
	}
	above, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	// What it signs itself says what a root would say: that has all rights.
	all, err := roots[0].Issue(p.random, member.Grant{Key: site.public(), Name: "site", Rights: member.Usual | member.MayBank, Expires: lasts})
	if err != nil {
		return err
	}
	like, err := x509.ParseCertificate(all)
	if err != nil {
		return err
	}
	like.ExtraExtensions = like.Extensions
	forged, err := x509.CreateCertificate(p.random, like, above, site.public(), delegate.key)
	if err != nil {
		return err
	}
	m, err := f.Verify(append(bytes.Clone(forged), der...), site.id, grid.Hour)
	if err == nil && m.Rights&^has != 0 {
		return fmt.Errorf("a delegate that has %v gives a site %v", has, m.Rights)
	}
	return nil
}

// roll is a site's roll, and what it has saved.
type roll struct {
	*member.Roll
	cfg   member.RollConfig
	saved map[string][]byte
}

func (p *papers) roll(cfg member.RollConfig) *roll {
	r := &roll{cfg: cfg, saved: make(map[string][]byte)}
	r.Roll = member.NewRoll(cfg, p.rng)
	return r
}

// step has the roll take an input, and returns what it answers.
func (r *roll) step(now grid.Time, in grid.Input) (answer any) {
	var out grid.Outbox
	r.Step(now, in, &out)
	for key, value := range changes(&out) {
		if r.saved[key] = value; value == nil {
			delete(r.saved, key)
		}
	}
	for _, a := range out.Answers {
		answer = a.Value
	}
	return answer
}

// restart has the daemon die, and come up with what was saved.
func (p *papers) restart(r *roll, now grid.Time) error {
	r.Roll = member.NewRoll(r.cfg, p.rng)
	for key, value := range r.saved {
		if err := r.Recover(now, key, value); err != nil {
			return err
		}
	}
	return nil
}

// invited: one site uses an invitation, and gets the same answer as often as it asks.
func (p *papers) invited() error {
	f, roots, err := p.federation(1, 1)
	if err != nil {
		return err
	}
	host := p.party()
	r := p.roll(member.RollConfig{Self: host.id, Name: "host", Federation: f, Issue: func(g member.Grant) ([]byte, error) { return roots[0].Issue(p.random, g) }})
	var secret member.Secret
	_, _ = p.random.Read(secret[:])
	id := member.InvitationID{1}
	r.step(grid.Hour, &member.Invite{Token: 1, Invitation: member.Invitation{
		ID: id, Hash: sha256.Sum256(secret[:]), Rights: member.Usual, Expires: grid.Day, Valid: grid.Day,
	}})
	sites := [2]party{p.party(), p.party()}
	first := -1
	for range 6 {
		if p.rng.IntN(3) == 0 {
			if err := p.restart(r, grid.Hour); err != nil {
				return err
			}
		}
		at := p.rng.IntN(2)
		a, _ := r.step(grid.Hour, &member.Apply{Token: 2, Application: member.Application{
			ID: id, Secret: secret, Name: fmt.Sprintf("site-%d", at), Site: sites[at].id, Key: sites[at].public(),
		}}).(*member.Applied)
		switch {
		case a == nil || first < 0 && a.Err != nil:
			return fmt.Errorf("who was invited is not let in: %+v", a)
		case first < 0:
			first = at
		case at != first && a.Err == nil:
			return errors.New("two sites have used one invitation")
		case at == first && a.Err != nil:
			return fmt.Errorf("who was invited, and asks again, is not let in: %w", a.Err)
		}
	}
	return nil
}

// revoked: what was revoked by its issuer is, for ever, and what was not is not.
func (p *papers) revoked() error {
	f, roots, err := p.federation(1, 1)
	if err != nil {
		return err
	}
	self, stranger := p.party(), p.party()
	var members []*member.Member
	for i := range 3 {
		site := p.party()
		der, err := roots[0].Issue(p.random, member.Grant{Key: site.public(), Name: fmt.Sprintf("site-%d", i), Rights: member.Usual, Expires: lasts})
		if err != nil {
			return err
		}
		m, err := f.Verify(der, site.id, grid.Hour)
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	var lists []*member.List
	for i := range 2 {
		var before *member.List
		if i > 0 {
			before = lists[i-1]
		}
		signed, err := roots[0].Revoke(p.random, before, grid.Hour, members[i].Serial)
		if err != nil {
			return err
		}
		l, err := f.OpenList(signed, nil)
		if err != nil {
			return err
		}
		lists = append(lists, l)
	}
	forger := member.Issuer{Certificate: roots[0].Certificate, Key: stranger.key}
	if forged, err := forger.Revoke(p.random, lists[1], grid.Hour, members[2].Serial); err == nil {
		if _, err := f.OpenList(forged, nil); err == nil {
			return errors.New("a list counts that a stranger has signed")
		}
	}
	r := p.roll(member.RollConfig{Self: self.id, Name: "self", Federation: f})
	known := [3]bool{}
	for range 8 {
		if p.rng.IntN(3) == 0 {
			if err := p.restart(r, grid.Hour); err != nil {
				return err
			}
		}
		if p.rng.IntN(2) == 0 {
			i := p.rng.IntN(2)
			r.step(grid.Hour, &grid.Delivery{From: members[2].Site, Message: &member.Revocations{List: lists[i]}})
			known[0], known[1] = true, known[1] || i == 1
			continue
		}
		i := p.rng.IntN(3)
		a, _ := r.step(grid.Hour, &member.Introduce{Token: 3, Member: members[i]}).(*member.Introduced)
		if a == nil || (a.Err != nil) != known[i] || r.Is(members[i].Site) == known[i] {
			return fmt.Errorf("a site of which it is known that it is revoked (%t) is shown: %+v, and is a member: %t", known[i], a, r.Is(members[i].Site))
		}
	}
	return nil
}

// renewed: a site whose certificate has ended is an outcast a day later, and before that it is none;
// of several that it has shown the last one counts.
func (p *papers) renewed() error {
	f, roots, err := p.federation(1, 1)
	if err != nil {
		return err
	}
	r := p.roll(member.RollConfig{Self: p.party().id, Name: "self", Federation: f})
	sites, ends := [3]party{p.party(), p.party(), p.party()}, [3]grid.Time{}
	for day := range grid.Time(24) {
		now := day * grid.Day
		if p.rng.IntN(4) == 0 {
			if err := p.restart(r, now); err != nil {
				return err
			}
		}
		r.step(now, grid.Tick{})
		for i := range sites {
			if over := ends[i] > 0 && ends[i]+grid.Day <= now; r.Outcast(sites[i].id) != over {
				return fmt.Errorf("the certificate that a site has shown last ends on day %v, and on day %d it is an outcast: %t", ends[i].Seconds()/86400, day, !over)
			}
		}
		i := p.rng.IntN(2 * len(sites))
		if i >= len(sites) {
			continue
		}
		ends[i] = now + grid.Hour + grid.Time(p.rng.IntN(6))*grid.Day
		grant := member.Grant{Key: sites[i].public(), Name: fmt.Sprintf("site-%d", i), Rights: member.Usual, Expires: ends[i]}
		der, err := roots[0].Issue(p.random, grant)
		if err != nil {
			return err
		}
		m, err := f.Verify(der, sites[i].id, now)
		if err != nil {
			return err
		}
		if a, _ := r.step(now, &member.Introduce{Token: 4, Member: m}).(*member.Introduced); a == nil || a.Err != nil {
			return fmt.Errorf("a member that shows a new certificate is not taken in: %+v", a)
		}
	}
	return nil
}

// sealer signs as a party.
func sealer(a *party) (func(domain string, payload []byte) ([]byte, error), error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(a.key)
	return func(domain string, payload []byte) ([]byte, error) { return wire.Seal(key, domain, payload) }, err
}

// signed: a quote is its site's, and a cheque its bank's.
func (p *papers) signed() error {
	self, other := p.party(), p.party()
	for _, signer := range []*party{&self, &other} {
		seal, err := sealer(signer)
		if err != nil {
			return err
		}
		var out grid.Outbox
		d := directory.New(directory.Config{Self: self.id, Seal: func(payload []byte) ([]byte, error) { return seal(directory.Domain, payload) }}, p.rng)
		d.SetQuote(grid.Hour, directory.Quote{
			Name: "papers", Resources: grid.Resources{Processors: 8}, Rating: grid.Rating{Speed: 900, Bandwidth: 1600}, Price: 5, Free: 8, Widest: 8,
		}, &out)
		if q, there := d.Known(self.id); there {
			if _, err := directory.OpenQuote(q.Sealed); (err == nil) != (signer == &self) {
				return fmt.Errorf("a quote of %s that %s has signed: %v", self.id, signer.id, err)
			}
		}
		l := bank.NewLedger(self.id, seal)
		l.Grant(grid.Hour, &bank.Grant{ID: grid.JobID{Lo: 1}, To: "payer", Amount: 10}, &out)
		c, refused := l.Draw(grid.Hour, "payer", &bank.Draw{Task: grid.TaskID{Job: grid.JobID{Lo: 2}, Epoch: 1}, Payee: "payee", Ceiling: 5, Lifetime: grid.Hour}, &out)
		if refused != bank.Done {
			return fmt.Errorf("a bank writes no cheque: %v", refused)
		}
		if _, err := bank.OpenCheque(c.Sealed); (err == nil) != (signer == &self) {
			return fmt.Errorf("a cheque of %s that %s has signed: %v", self.id, signer.id, err)
		}
	}
	return nil
}
