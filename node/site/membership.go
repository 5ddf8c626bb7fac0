package site

import (
	"fmt"
	"slices"

	"gridnode/directory"
	"gridnode/directory/record"
	"gridnode/grid"
	"gridnode/internal/wire"
	"gridnode/market"
	"gridnode/node/member"
)

// membership is the part that knows who is a member of the federation, and hears nobody
// else. A site of an open federation has none: it hears everybody.
type membership struct {
	*base
	gangs   *gangs // nil: no job of this site runs at several
	roll    *member.Roll
	quotes  *quotes       // nil: this site has no directory
	names   *names        // nil: nor does it look for names
	guests  *guests       // nil: the owner has no rules
	agent   *market.Agent // nil: the site has no part in the market
	payment *payment      // nil: it has nothing to do with banks
	fees    *fees         // nil: it neither lends nor borrows, or pays for nothing
	refused int64         // messages of those who may not send them
	doubted int64         // quotes and records that nobody has shown to be of members
	held    []held        // messages that wait for proofs, the oldest first
}

// held is a message about sites that this one does not know, until whoever has sent it has
// shown their proofs.
type held struct {
	from    grid.SiteID
	message grid.Message
	until   grid.Time
}

// Bounds of what waits for proofs.
const (
	heldMax  = 64
	heldSpan = grid.Second // shorter than the directory waits for an answer
)

func (*membership) takes(b *board) {
	of := func(s *Site) *membership { return s.membership }
	hear(b, of, (*membership).message, wire.MemberRevoked, wire.MemberDigest, wire.MemberInquire)
	hear(b, of, (*membership).proven, wire.MemberInform)
	take(b, of, enrolled[*member.Introduce])
	take(b, of, enrolled[*member.Learn])
	take(b, of, enrolled[*member.Invite])
	take(b, of, enrolled[*member.Apply])
	take(b, of, enrolled[*member.Renew])
}

// enrolled gives the roll an input that is for it alone.
func enrolled[I grid.Input](m *membership, now grid.Time, in I, out *grid.Outbox) {
	m.step(now, in, out)
}

func (m *membership) message(now grid.Time, in grid.Input, out *grid.Outbox) {
	m.step(now, in, out)
}

// step has the roll take an input, and lets the directory know who is not to be believed.
func (m *membership) step(now grid.Time, in grid.Input, out *grid.Outbox) {
	m.roll.Step(now, in, out)
	for _, c := range m.roll.Changes() {
		if c.Site == m.cfg.ID && c.In {
			m.back(now, out)
			continue
		}
		if m.guests != nil && !c.In {
			m.guests.gone(now, c.Site, out)
		}
		switch {
		case c.In:
			m.takeIn(c.Site)
		case c.Outcast:
			m.castOut(now, c.Site, out)
		}
		switch {
		case m.quotes == nil:
		case c.In:
			m.quotes.dir.Unbar(c.Site)
		default:
			m.quotes.dir.Bar(c.Site)
		}
	}
}

// back has others hear again what they refused as long as this site's certificate had ended.
func (m *membership) back(now grid.Time, out *grid.Outbox) {
	if m.quotes != nil {
		m.quotes.dir.Republish(now, out)
	}
}

// castOut has settled what is under way with a site of which nothing will be heard any more.
// The desk comes first, as the others have it present what it has.
func (m *membership) castOut(now grid.Time, site grid.SiteID, out *grid.Outbox) {
	if m.payment != nil {
		m.payment.desk.Outcasts().Add(now, site, out)
	}
	if m.agent != nil {
		m.agent.CastOut(now, site, out)
	}
	if m.fees != nil {
		m.fees.tab.CastOut(now, site, out)
	}
	if m.gangs != nil {
		m.gangs.castOut(now, out)
	}
}

// takeIn undoes that: the site is a member again.
func (m *membership) takeIn(site grid.SiteID) {
	if m.payment != nil {
		m.payment.desk.Outcasts().Remove(site)
	}
	if m.agent != nil {
		m.agent.TakeIn(site)
	}
}

// outcast reports whether nothing will be heard of a site any more.
func (m *membership) outcast(site grid.SiteID) bool { return m != nil && m.roll.Outcast(site) }

// audit returns what is wrong with the roll, or whom one of the parts of a site that settle with outcasts
// takes for one, and is none, or does not take for one; nil: nothing, and nobody.
func (m *membership) audit(now grid.Time) error {
	if m == nil {
		return nil
	}
	if err := m.roll.Audit(now); err != nil {
		return err
	}
	count := 0
	for site := range m.roll.Outcasts {
		if site == m.cfg.ID {
			continue
		}
		count++
		if m.payment != nil && !m.payment.desk.Outcasts().Has(site) || m.agent != nil && !m.agent.Outcasts()[site] {
			return fmt.Errorf("%s is a member of the federation no longer, and its word is waited for", site)
		}
	}
	if m.payment != nil && m.payment.desk.Outcasts().Len() != count || m.agent != nil && len(m.agent.Outcasts()) != count {
		return fmt.Errorf("%d sites are members of the federation no longer, and others are taken for it", count)
	}
	return nil
}

// vet returns a message without what it says of sites that are no members, or under names
// that are not theirs; nil if nothing is left of it, or as long as their proofs are
// asked for. Everything else it returns as it is.
func (m *membership) vet(now grid.Time, d *grid.Delivery, out *grid.Outbox) grid.Input {
	switch msg := d.Message.(type) {
	case *directory.Publish:
		if !m.isCalled(now, d.From, msg.Quote.Name) {
			m.refused++
			return nil
		}
	case *record.Enter:
		if !m.isCalled(now, d.From, msg.Record.Name) {
			m.refused++
			return nil
		}
	case *directory.Page, *record.Inform:
		unknown := m.unknown(now, msg)
		if len(unknown) == 0 {
			return m.cleared(now, d)
		}
		if len(m.held) == heldMax {
			m.release(now, 1, out)
		}
		m.held = append(m.held, held{d.From, msg, now + heldSpan})
		m.roll.Ask(d.From, unknown, out)
		return nil
	}
	return d
}

// isCalled reports whether a name is what the roots call a site.
func (m *membership) isCalled(now grid.Time, site grid.SiteID, name string) bool {
	known := m.roll.Known(site, now)
	return site == m.cfg.ID || known != nil && known.Name == name
}

// unknown returns the sites that a message speaks of and that this one does not know.
func (m *membership) unknown(now grid.Time, message grid.Message) (sites []grid.SiteID) {
	add := func(site grid.SiteID) {
		if site != m.cfg.ID && m.roll.Known(site, now) == nil && !slices.Contains(sites, site) {
			sites = append(sites, site)
		}
	}
	switch msg := message.(type) {
	case *directory.Page:
		for _, q := range msg.Quotes {
			add(q.Site)
		}
	case *record.Inform:
		for _, r := range msg.Records {
			add(r.Site)
		}
	}
	return sites
}

// cleared returns a message with what members say of themselves, and without the rest.
func (m *membership) cleared(now grid.Time, d *grid.Delivery) *grid.Delivery {
	switch msg := d.Message.(type) {
	case *directory.Page:
		page := msg.Without(func(q *directory.Quote) bool {
			return q.Site == m.cfg.ID || m.isCalled(now, q.Site, q.Name) && m.roll.Known(q.Site, now).Rights.Has(member.MayOffer)
		})
		m.doubted += int64(len(msg.Quotes) - len(page.Quotes))
		if page != msg {
			return &grid.Delivery{From: d.From, Message: page}
		}
	case *record.Inform:
		kept := make([]*record.Record, 0, len(msg.Records))
		for _, r := range msg.Records {
			if m.isCalled(now, r.Site, r.Name) {
				kept = append(kept, r)
			}
		}
		m.doubted += int64(len(msg.Records) - len(kept))
		if len(kept) < len(msg.Records) {
			return &grid.Delivery{From: d.From, Message: &record.Inform{Token: msg.Token, Records: kept}}
		}
	}
	return d
}

// proven takes proofs, and lets what waited for them go on.
func (m *membership) proven(now grid.Time, in grid.Input, out *grid.Outbox) {
	m.step(now, in, out)
	d, ok := in.(*grid.Delivery)
	if !ok {
		return
	}
	// One answer to each question: what else of that site is held waits for another.
	if i := slices.IndexFunc(m.held, func(h held) bool { return h.from == d.From }); i >= 0 {
		h := m.held[i]
		m.held = slices.Delete(m.held, i, i+1)
		m.hand(now, h, out)
	}
}

// release lets the first so many go on as they are known now.
func (m *membership) release(now grid.Time, n int, out *grid.Outbox) {
	for range n {
		h := m.held[0]
		m.held = slices.Delete(m.held, 0, 1)
		m.hand(now, h, out)
	}
}

// hand gives what was held to the part that it is for.
func (m *membership) hand(now grid.Time, h held, out *grid.Outbox) {
	d := m.cleared(now, &grid.Delivery{From: h.from, Message: h.message})
	switch d.Message.(type) {
	case *directory.Page:
		if m.quotes != nil {
			m.quotes.message(now, d, out)
		}
	case *record.Inform:
		if m.names != nil {
			m.names.message(now, d, out)
		}
	}
}

func (m *membership) tick(now grid.Time, out *grid.Outbox) {
	for len(m.held) > 0 && m.held[0].until <= now {
		m.release(now, 1, out)
	}
	if m.roll.NextTimer() <= now {
		m.step(now, grid.Tick{}, out)
	}
}

func (m *membership) nextTimer() grid.Time {
	if len(m.held) > 0 {
		return min(m.roll.NextTimer(), m.held[0].until)
	}
	return m.roll.NextTimer()
}

func (m *membership) keeps() []string {
	return []string{member.InvitationPrefix, member.ListPrefix, member.MetPrefix}
}

func (m *membership) recover(now grid.Time, stored records, _ *grid.Outbox) error {
	for key, value := range stored.each {
		if err := m.roll.Recover(now, key, value); err != nil {
			return err
		}
	}
	return nil
}

// hears reports whether a message is of a member that may send such ones, and counts
// those that are not.
func (m *membership) hears(now grid.Time, d *grid.Delivery) bool {
	if d.Message.MessageKind() == wire.MemberRevoked {
		return true // signed by who may revoke, whoever passes it on
	}
	if rights, known := member.RightToSend(d.Message.MessageKind()); known && m.roll.May(d.From, rights, now) {
		return true
	}
	m.refused++
	return false
}
