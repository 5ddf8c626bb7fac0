package chaos

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/node/member"
	"gridnode/node/site"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
	"gridnode/testnet/scenario/federation"
)

// roster is who belongs to a federation whose sites are members, with real certificates of a
// root that is at no site. They are renewed in time, or late, and some are revoked. It also
// looks for jobs that a site has to do with whose other side it knows to be an outcast:
//
//   - none is placed at one;
//   - none of one is started, but on processors that it has borrowed already;
//
// for members that do not tell each other all the time which lists they have: who has missed the news
// of one hears of it in no other way; and for those that expel who is revoked and do not tell it why:
// it hears no gossip about itself.
type roster struct {
	n      *testnet.Network
	home   *member.Household
	random io.Reader // of certificates
	papers io.Reader // … that members give to strangers out of a run
	keys   []ed25519.PublicKey
	ids    []grid.SiteID
	latest []*member.Member // what the root says of each site
	all    [][]member.Serial
	issuer []*member.Issuer // by which sites invite others; nil: none does
	poor   *member.Member   // may offer only, and is no site of the run
	list   *member.List     // of those that are revoked; nil: nobody is yet
	gone   map[int]grid.Time
	told   []grid.Time // when a site last told which lists it has, was down, or had nobody to tell
	timed  bool        // no clock of a machine is set or stands still
	counts rosterCounts
}

// rosterCounts is what a run has seen of memberships.
type rosterCounts struct {
	Renewed  int64 `json:"renewed"`  // certificates, before they ended
	Late     int64 `json:"late"`     // renewed after that
	Revoked  int64 `json:"revoked"`  // sites
	Expelled int64 `json:"expelled"` // by others, as they learned of it
}

// lasts is for how long a certificate is good that does not end within a run.
const lasts = 1000 * grid.Day

// members reports whether the sites of a run are members of a federation with a root.
func (f features) members() bool { return f["expire"] > 0 || f["revoke"] > 0 || f["invite"] > 0 }

// newRoster certifies the sites of a script; nil: its federation is open.
func newRoster(s *Script, uses features) (*roster, error) {
	if !uses.members() {
		return nil, nil
	}
	root := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("chaos root "), s.Seed))
	random := rand.NewChaCha8(root)
	home, err := member.NewHousehold(random, ed25519.NewKeyFromSeed(root[:]), "virtual", 0, lasts)
	if err != nil {
		return nil, err
	}
	r := &roster{home: home, random: random, papers: rand.NewChaCha8(sha256.Sum256(root[:])), gone: make(map[int]grid.Time), told: make([]grid.Time, s.Sites), timed: !s.sets(), all: make([][]member.Serial, s.Sites)}
	var privates []ed25519.PrivateKey
	for i := range s.Sites {
		seed := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("chaos member "), s.Seed), uint64(i)))
		private := ed25519.NewKeyFromSeed(seed[:])
		key := private.Public().(ed25519.PublicKey)
		id, err := wire.SiteOf(key)
		if err != nil {
			return nil, err
		}
		privates = append(privates, private)
		r.keys, r.ids, r.latest = append(r.keys, key), append(r.ids, id), append(r.latest, nil)
		rights := member.Usual
		if i < chaosBanks(s.Sites) {
			rights |= member.MayBank
		}
		if err := r.certify(i, member.Grant{Name: fmt.Sprintf("site-%d", i+1), Rights: rights, Expires: uses.ends(s.Seed, i, s.span())}); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(privates) && uses["invite"] > 0; i++ {
		if err := r.mayInvite(privates[i], fmt.Sprintf("site-%d", i+1)); err != nil {
			return nil, err
		}
	}
	seed := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("chaos poor member "), s.Seed))
	key := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	id, err := wire.SiteOf(key)
	if err != nil {
		return nil, err
	}
	proof, err := home.Issue(member.Grant{Key: key, Name: "poor", Rights: member.MayOffer, Expires: lasts})
	if err != nil {
		return nil, err
	}
	r.poor, err = home.Federation.Verify(proof, id, 0)
	return r, err
}

// certify gives a site a certificate.
func (r *roster) certify(at int, g member.Grant) error {
	g.Key = r.keys[at]
	proof, err := r.home.Issue(g)
	if err != nil {
		return err
	}
	m, err := r.home.Federation.Verify(proof, r.ids[at], g.From)
	if err != nil {
		return err
	}
	r.latest[at] = m
	r.all[at] = append(r.all[at], m.Serial)
	return nil
}

// mayInvite lets the next site certify others.
func (r *roster) mayInvite(key ed25519.PrivateKey, name string) error {
	proof, err := r.home.Issue(member.Grant{Key: key.Public().(ed25519.PublicKey), Name: name, Rights: member.Usual | member.MayInvite, Expires: lasts})
	if err != nil {
		return err
	}
	all, err := proof.Certificates()
	if err != nil {
		return err
	}
	r.issuer = append(r.issuer, &member.Issuer{Certificate: all[0], Key: key})
	return nil
}

// invites tells a site how it certifies whom it invites.
func (r *roster) invites(at int, c *site.Config) {
	if r != nil && r.issuer != nil {
		c.Members.Issue = func(g member.Grant) ([]byte, error) { return r.issuer[at].Issue(r.random, g) }
	}
}

// invited returns what a site has made of a stranger by a certificate.
func (r *roster) invited(at int, certificate []byte, id grid.SiteID, now grid.Time) (*member.Member, error) {
	return r.home.Federation.Verify(append(slices.Clone(certificate), r.issuer[at].Certificate.Raw...), id, now)
}

// certifies returns what a member makes of a stranger, as a site sees it whose clock shows now.
func (r *roster) certifies(by int, g member.Grant, stranger grid.SiteID, now grid.Time) (*member.Member, error) {
	certificate, err := r.issuer[by].Issue(r.papers, g)
	if err != nil {
		return nil, err
	}
	return r.invited(by, certificate, stranger, now)
}

// id returns how a site is called by others: by its key, if it has one.
func (r *roster) id(at int) grid.SiteID {
	if r == nil {
		return grid.SiteID(fmt.Sprintf("site-%d", at+1))
	}
	return r.ids[at]
}

// join makes a federation one of members.
func (r *roster) join(f *federation.Builder) {
	if r != nil {
		f.Federation, f.IDs = r.home.Federation, r.ids
		f.Members = func(at int) *member.Member { return r.latest[at] }
	}
}

// watch begins to look at the sites of a network.
func (r *roster) watch(n *testnet.Network, c *testnet.Checker) {
	if r == nil {
		return
	}
	r.n = n
	for i := range n.Len() {
		n.Subscribe(member.Topic, i)
	}
	n.Observe(testnet.Observer{
		Send: func(now grid.Time, from int, _ grid.SiteID, m grid.Message) {
			if _, yes := m.(*member.Digest); yes {
				r.told[from] = now
			}
		},
		Turn: func(now grid.Time, at int) {
			if s, up := scenario.SiteAt(n, at); !up || !s.Roll().Has() {
				r.told[at] = now
			} else if silent := now - r.told[at]; silent > tellMost && r.timed {
				c.Violated("%s has told no member for %v which lists of what is revoked it has", n.ID(at), silent)
			}
		},
		Fault: func(now grid.Time, f *testnet.Fault) {
			if f.Kind.Kills() {
				r.told[f.Sites[0]] = now
			}
		},
		Expel: func(_ grid.Time, at int, x grid.Expulsion) {
			if r.untold(at, x) {
				c.Violated("%s expels %s, which is revoked, and does not show it the list", n.ID(at), x.Site)
			}
		},
		Event: func(_ grid.Time, at int, e *grid.Event) {
			if e.Kind == grid.JobPlaced && e.Site != n.ID(at) && r.knows(at, e.Site) {
				c.Violated("job %s is placed at %s, and its home knows that this is a member no longer", e.Job.ID, e.Site)
			}
		},
		Start: func(_ grid.Time, x *testnet.Execution) {
			if x.Pilot.Key == 0 && x.Squad == nil && x.Job.Home != n.ID(x.Site) && r.knows(x.Site, x.Job.Home) {
				c.Violated("job %s starts at %s, which knows that its home is a member no longer", x.Job.ID, n.ID(x.Site))
			}
		},
	})
}

// untold reports whether a site of which another one has just learned that it is revoked is expelled
// without a word: to who is revoked itself nobody is a member, and nobody hears it.
func (r *roster) untold(at int, x grid.Expulsion) bool {
	of, known := r.n.Index(x.Site)
	s, up := scenario.SiteAt(r.n, at)
	if !known || !up || s.Roll().Excluded() || !s.Roll().Revoked().Has(r.latest[of]) {
		return false
	}
	r.counts.Expelled++
	return !shows(x.Last, r.latest[of])
}

// shows reports whether a message is a list that revokes a member.
func shows(last grid.Message, m *member.Member) bool {
	told, yes := last.(*member.Revocations)
	if !yes {
		return false
	}
	list := member.NewRevoked()
	_, err := list.Add(told.List)
	return err == nil && list.Has(m)
}

// tellMost is for how long a member says nothing at most, by a clock that is slewed and drifts.
const tellMost = member.DigestEvery + grid.Second

// giveUp has users end their jobs where these would wait for ever: at sites that nobody hears,
// and at those without a bank, which can pay for nothing.
func (r *roster) giveUp(healed grid.Time) {
	if r == nil {
		return
	}
	bankOf := chaosBank(r.n.Len(), r.id)
	for i := range r.n.Len() {
		r.n.Call(healed+grid.Hour, i, func() {
			s, up := scenario.SiteAt(r.n, i)
			if !up || !r.out(i) && !r.outID(bankOf(i).Bank) {
				return
			}
			var wait []grid.JobID
			s.Jobs(func(v site.View) bool {
				if !v.State.Terminal() && v.Job.Home == r.id(i) {
					wait = append(wait, v.Job.ID)
				}
				return true
			})
			slices.SortFunc(wait, grid.JobID.Compare)
			for _, id := range wait {
				r.n.Step(i, &site.Cancel{Token: wishTokens - 2, Job: id, Cause: "nobody can pay for it"})
			}
		})
	}
}

// knows reports whether a site knows that another one is an outcast.
func (r *roster) knows(at int, other grid.SiteID) bool {
	s, up := scenario.SiteAt(r.n, at)
	return up && s.Roll().Outcast(other)
}

// out reports whether a site is revoked, or will be.
func (r *roster) out(at int) bool {
	if r == nil {
		return false
	}
	_, yes := r.gone[at]
	return yes
}

// apart reports whether what two sites owe each other need not be the same to both: one of
// them is out, or the bank is, from which one pays.
func (r *roster) apart(i, j int) bool {
	if r == nil {
		return false
	}
	banks := chaosBank(r.n.Len(), r.id)
	return r.out(i) || r.out(j) || r.outID(banks(i).Bank) || r.outID(banks(j).Bank)
}

// outID is out for a site by its ID.
func (r *roster) outID(id grid.SiteID) bool {
	if r == nil {
		return false
	}
	at, known := r.n.Index(id)
	return known && r.out(at)
}

// member reports whether a site's certificate is good now, and was for a span.
func (r *roster) member(at int, span grid.Time) bool {
	return r == nil || !r.out(at) && r.latest[at].Issued <= r.n.Now()-span && r.n.Now() < r.latest[at].Expires-clocksApart
}

// clocksApart is how far the clocks of two sites differ at most.
const clocksApart = grid.Minute

// renew gives a site a new certificate, which it shows whoever it speaks to from then on.
func (r *roster) renew(at int, span grid.Time) error {
	if when, ever := r.gone[at]; ever && when <= r.n.Now() {
		return nil
	}
	now, before := r.n.Now(), r.latest[at]
	if now < before.Expires {
		r.counts.Renewed++
	} else {
		r.counts.Late++
	}
	g := member.Grant{Name: before.Name, Org: before.Org, Rights: before.Rights, From: now, Expires: now + span, Lot: before.Lot()}
	if err := r.certify(at, g); err != nil {
		return err
	}
	if s, up := scenario.SiteAt(r.n, at); up {
		s.Roll().Renewed(r.latest[at])
	}
	return nil
}

// revoke takes back all certificates that a site has had.
func (r *roster) revoke(at int) (err error) {
	r.counts.Revoked++
	r.list, err = r.home.Revoke(r.list, r.n.Now(), r.all[at]...)
	return err
}

// learn tells a site which are revoked, if it is up.
func (r *roster) learn(at int) {
	if _, up := scenario.SiteAt(r.n, at); up {
		r.n.Step(at, &member.Learn{Token: wishTokens - 1, List: r.list})
	}
}

// ends draws when the first certificate of a site ends.
func (f features) ends(seed uint64, at int, span grid.Time) grid.Time {
	if !f.hits(seed, "expire", uint64(at)) {
		return lasts
	}
	return federation.Warmup + grid.Time(roll(seed, "expire", uint64(at), uint64(span)))
}

// drawMembers has certificates be renewed, a fourth of them late, and sites be revoked, at
// most half of them.
func (f features) drawMembers(seed uint64, count int, span grid.Time) (drawn []Wish) {
	end := federation.Warmup + span
	for i := range count {
		at, before := f.ends(seed, i, span), grid.Time(0)
		for round := uint64(0); at < end; round++ {
			of := uint64(i)<<32 | round
			next := grid.Minute + grid.Time(roll(seed, "valid", of, uint64(span)))
			pause := grid.Time(roll(seed, "renewed", of, uint64(20*grid.Minute)))
			w := Wish{Kind: WishCertify, Site: i, At: max(at-pause/2, before+grid.Second)}
			if roll(seed, "late", of, 4) == 0 {
				w.At = at + pause
			}
			before = w.At
			if at = w.At + next; at >= end || w.At >= end {
				next = lasts
				at = end
			}
			w.Span = next
			drawn = append(drawn, w)
		}
	}
	revoked := 0
	for i := range count {
		if f.hits(seed, "revoke", uint64(i)) && 2*(revoked+1) <= count {
			revoked++
			at := federation.Warmup + span/8 + grid.Time(roll(seed, "revoked", uint64(i), uint64(span/4*3)))
			drawn = append(drawn, Wish{Kind: WishRevoke, Site: i, At: at, Lender: int(roll(seed, "revoker", uint64(i), uint64(count))), Which: roll(seed, "missed", uint64(i), 2)})
		}
	}
	return drawn
}

// stays returns a site that is never revoked, the first from one on.
func (r *roster) stays(at int) int {
	for range r.n.Len() {
		if !r.out(at) {
			break
		}
		at = (at + 1) % r.n.Len()
	}
	return at
}

// tells is how long after a revocation an owner tells his site of it, again and again in case that
// it has died of it. No gossip arrives at the one that it is about, which hears it at last.
var tells = [...]grid.Time{0, grid.Second, 30 * grid.Second, 5 * grid.Minute, 20 * grid.Minute}

// expelled is how long after that nobody takes the connections of a revoked site any more, be
// it of sessions of pilots.
const expelled = grid.Minute

// missedFor is how long a site is cut off that is to miss the news of a revocation: others know by
// then, and tell it by digests only.
const missedFor = 3 * grid.Minute

// say has a certificate be renewed or revoked when its time comes; the outcome of errors is
// told to fail. At the instant healed, when everybody is up, the member that was told is so once
// more, and so are those whom nobody tells anything: the others hear it of that one (unheard).
func (r *roster) say(w *Wish, healed grid.Time, fail func(error)) {
	if r == nil {
		return // of a script whose features were left out
	}
	if w.Kind == WishCertify {
		r.n.Call(w.At, w.Site, func() { fail(r.renew(w.Site, w.Span)) })
		return
	}
	r.gone[w.Site] = w.At
	r.n.Call(w.At, w.Site, func() { fail(r.revoke(w.Site)) })
	if w.Which > 0 && w.At < healed-missedFor {
		cut := w.At - grid.Second
		r.n.Call(cut, w.Site, func() {
			missed := r.stays((w.Lender + 1) % r.n.Len())
			fail(r.n.Schedule(testnet.Fault{Kind: testnet.FaultPartition, At: cut, For: missedFor, Sites: []int{missed}}))
		})
	}
	for _, later := range tells {
		r.n.Call(min(w.At+later, healed), w.Site, func() { r.learn(r.stays(w.Lender)) })
	}
	r.n.Call(min(w.At+tells[len(tells)-1], healed), w.Site, func() { r.learn(w.Site) })
	r.n.Call(healed, w.Site, func() {
		r.learn(r.stays(w.Lender))
		for at := range r.n.Len() {
			if r.out(at) {
				r.learn(at)
			}
		}
	})
	fail(r.n.Schedule(testnet.Fault{Kind: testnet.FaultPartition, At: min(w.At+expelled, healed), For: grid.Never, Sites: []int{w.Site}}))
}

// unheard says which member has never heard of a revocation of which another has; nil: none.
// Digests tell it.
func (r *roster) unheard() error {
	if r == nil || r.list == nil {
		return nil
	}
	heard, missed := false, -1
	for at := range r.n.Len() {
		s, up := scenario.SiteAt(r.n, at)
		switch {
		case !up || r.out(at):
		case slices.ContainsFunc(s.Roll().Revoked().Lists(), func(l *member.List) bool { return l.Issuer == r.list.Issuer && l.Number == r.list.Number }):
			heard = true
		default:
			missed = at
		}
	}
	if heard && missed >= 0 {
		return fmt.Errorf("%s has not heard of list %d of what is revoked, and another member has", r.n.ID(missed), r.list.Number)
	}
	return nil
}
