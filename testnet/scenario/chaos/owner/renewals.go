package owner

import (
	"crypto/sha256"
	"fmt"

	"gridnode/grid"
	"gridnode/node/member"
	"gridnode/testnet"
	"gridnode/testnet/scenario"
)

// Renewals has strangers be invited by a site, and have what they are given renewed there, some of them
// for long, as members do whose certificates are short. Some come as it ends, at that very instant. It
// sees to it that
//
//   - a member is let in with what it was given, and has it renewed: for as long again, with the
//     name, the rights and the lot that it has, as often as it comes, if not too many last at once;
//   - nothing is renewed that has ended.
type Renewals struct {
	Sight
	check   func(at int, certificate []byte, stranger grid.SiteID, now grid.Time) (*member.Member, error)
	all     []*candidate
	asked   map[uint64]*candidate // by token
	renewed map[uint64]*candidate
	shown   map[uint64]*candidate
	counts  RenewalCounts
}

// RenewalCounts is what a run has seen of renewals.
type RenewalCounts struct {
	Renewed int64 `json:"renewed"`
	Refused int64 `json:"refused"`
	Ended   int64 `json:"ended"` // refused as what was to be renewed had ended
}

// candidate is a stranger who wants to be a member, and remain one.
type candidate struct {
	stranger
	at     int
	valid  grid.Time
	pause  grid.Time      // between two renewals
	left   int            // renewals, before it comes as its certificate ends
	first  *member.Member // what it was given; nil: nothing yet
	latest *member.Member // … last
	met    bool           // it has just shown that, and was let in
	ends   []grid.Time    // when each that it may have been given ends at the latest
	over   bool           // the site has lost what it knew of it
}

// Bounds of Renewals.
const (
	renewalsMost = 32               // certificates of one member that last at once, those that ended a while ago included
	renewalsLate = 10 * grid.Minute // that while
	renewalsLong = 48               // of who goes on for long: more than last at once
)

// NewRenewals begins to watch; check verifies what a site has certified.
func NewRenewals(s Sight, check func(at int, certificate []byte, stranger grid.SiteID, now grid.Time) (*member.Member, error)) *Renewals {
	w := &Renewals{Sight: s, check: check, asked: make(map[uint64]*candidate), renewed: make(map[uint64]*candidate), shown: make(map[uint64]*candidate)}
	s.N.Observe(testnet.Observer{Answer: w.answer, Fault: w.fault})
	return w
}

// Counts returns what was seen.
func (w *Renewals) Counts() RenewalCounts { return w.counts }

// Do has a site invite somebody who comes at once, and again later, as a number says.
func (w *Renewals) Do(at int, which uint64) {
	if _, up := scenario.SiteAt(w.N, at); !up {
		return
	}
	number := uint64(len(w.all))
	c := &candidate{stranger: newStranger("candidate", w.N.Seed(), number), at: at}
	w.all = append(w.all, c)
	if c.valid, c.left = grid.Minute, renewalsLong; part(&which, 3) > 0 {
		c.valid, c.left = [...]grid.Time{grid.Minute, 10 * grid.Minute}[part(&which, 2)], int(part(&which, 3))
	}
	c.pause = c.valid/2 - grid.Time(part(&which, uint64(5*grid.Second)))
	local := w.local(at)
	i := member.Invitation{Name: numbered("candidate", number), Org: "strangers", Expires: local + grid.Minute, Valid: c.valid}
	i.Rights = [...]member.Rights{member.Usual, member.MaySubmit, member.MayHold | member.MayOffer}[part(&which, 3)]
	var secret member.Secret
	bytesOf(i.ID[:], "candidate's invitation", number)
	bytesOf(secret[:], "candidate's secret", number)
	i.Hash = sha256.Sum256(secret[:])
	token := renewalTokens + number
	w.asked[token] = c
	w.N.Step(at, &member.Invite{Token: token, Invitation: i})
	c.ends = append(c.ends, local+c.valid)
	w.N.Step(at, &member.Apply{Token: token, Application: member.Application{ID: i.ID, Secret: secret, Site: c.id, Key: c.key}})
	if c.first == nil {
		return // the site has died of it
	}
	if c.first.Name != i.Name || c.first.Org != i.Org || c.first.Rights != i.Rights {
		w.Checks.Violated("%s certifies %s as %s of %s, which may %v, and was to be %s of %s, which may %v", w.N.ID(at), c.id, c.first.Name, c.first.Org, c.first.Rights, i.Name, i.Org, i.Rights)
	}
	w.show(c)
	w.wait(c)
}

// wait has a member come again, before its certificate ends or as it does.
func (w *Renewals) wait(c *candidate) {
	again := w.N.Now() + c.pause
	if c.left == 0 {
		w.show(c)
		again = w.N.Clock(c.at).True(c.latest.Expires)
	}
	w.N.Call(again, c.at, func() {
		if c.over {
			return
		}
		before := c.latest
		c.met = false // the site may have been down since
		if w.local(c.at) < c.latest.Expires {
			w.show(c)
		}
		w.renew(c)
		if c.left--; c.left >= 0 && (c.latest != before || w.local(c.at) < c.latest.Expires) {
			w.wait(c)
		}
	})
}

// show has a member show what it was given last.
func (w *Renewals) show(c *candidate) {
	token := renewalTokens + 1<<32 + uint64(len(w.shown))
	w.shown[token] = c
	c.met = false
	w.N.Step(c.at, &member.Introduce{Token: token, Member: c.latest})
}

// renew has it ask for another certificate.
func (w *Renewals) renew(c *candidate) {
	token := renewalTokens + 2<<32 + uint64(len(w.renewed))
	w.renewed[token] = c
	w.N.Step(c.at, &member.Renew{Token: token, Site: c.id, Key: c.key})
	c.ends = append(c.ends, w.local(c.at)+c.valid)
}

// fault has a site whose store is brought back know nothing for sure.
func (w *Renewals) fault(_ grid.Time, f *testnet.Fault) {
	if f.Kind != testnet.FaultOld {
		return
	}
	for _, c := range w.all {
		c.over = c.over || c.at == f.Sites[0]
	}
}

func (w *Renewals) answer(now grid.Time, at int, a grid.Answer) {
	local := w.N.Clock(at).Local(now)
	switch v := a.Value.(type) {
	case *member.Introduced:
		if c := w.shown[a.Token]; c != nil && !w.excluded(at) {
			if c.met = v.Err == nil; !c.met {
				w.Checks.Violated("%s does not let %s in, which it has certified until %v: %w", w.N.ID(at), c.latest.Name, c.latest.Expires, v.Err)
			}
		}
	case *member.Applied:
		c, first := w.renewed[a.Token], w.asked[a.Token]
		var err error
		switch {
		case first != nil && v.Err == nil:
			c, err = first, w.given(first, local, v.Certificate)
		case first != nil:
			c, err = first, fmt.Errorf("it was just invited, and is refused: %w", v.Err)
		case c != nil && v.Err == nil:
			w.counts.Renewed++
			if err = c.mayBe(local); err == nil {
				err = w.given(c, local, v.Certificate)
			}
		case c != nil:
			err = w.refused(c, local, v.Err)
		}
		if err != nil {
			w.Checks.Violated("%s certifies %s: %w", w.N.ID(at), c.id, err)
		}
	}
}

// mayBe says why a certificate must not be renewed.
func (c *candidate) mayBe(local grid.Time) error {
	if local >= c.latest.Expires {
		return fmt.Errorf("the certificate that it has shown has ended at %v", c.latest.Expires)
	}
	return nil
}

// given says what is wrong with a certificate.
func (w *Renewals) given(c *candidate, local grid.Time, certificate []byte) error {
	m, err := w.check(c.at, certificate, c.id, local)
	if err != nil {
		return err
	}
	if c.latest = m; c.first == nil {
		c.first = m
	}
	return c.differs(local)
}

// differs says what a certificate says that it should not.
func (c *candidate) differs(local grid.Time) error {
	switch m, first := c.latest, c.first; {
	case m.Name != first.Name || m.Org != first.Org || m.Rights != first.Rights || m.Lot() != first.Lot():
		return fmt.Errorf("as %s of %s, which may %v, and it was %s of %s, which may %v (lots %x and %x)", m.Name, m.Org, m.Rights, first.Name, first.Org, first.Rights, m.Lot(), first.Lot())
	case m.Expires > local+c.valid || m.Expires <= local+c.valid-grid.Second:
		return fmt.Errorf("until %v, and was to do so for %v", m.Expires, c.valid)
	}
	return nil
}

// refused looks whether a member in good standing was refused.
func (w *Renewals) refused(c *candidate, local grid.Time, why error) error {
	w.counts.Refused++
	if local >= c.latest.Expires {
		w.counts.Ended++
	}
	if c.met && !w.Set(c.at) && c.last(local) < renewalsMost {
		return fmt.Errorf("it is a member until %v, has %d certificates, and is refused: %w", c.latest.Expires, c.last(local), why)
	}
	return nil
}

// last returns how many certificates it has at most that have not ended, by any clock.
func (c *candidate) last(local grid.Time) (count int) {
	for _, end := range c.ends {
		if local < end+renewalsLate {
			count++
		}
	}
	return count
}
