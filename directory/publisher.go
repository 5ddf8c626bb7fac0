package directory

import (
	"fmt"
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// publisher keeps the site's own quote at the holders of the cells in which it belongs. It
// takes offers and receipts; it puts out publications and withdrawals. Its timer is the
// next change of load, renewal or repetition.
type publisher struct {
	*shared
	rings  *rings
	guide  *guide
	holder *holder // for the cells that this site holds itself

	own         *Quote // nil before the first
	changed     uint64 // sequence since which the own quote says what it says
	pace        pace
	renewals    uint32 // of the own quote
	silent      bool   // some holder was given up
	republishAt grid.Time
	listings    [attributes]listing
	mail        []letter      // copies that go out at the end of the call
	sites       []grid.SiteID // reused
}

// A quote is renewed after renewAfter sixteenths of its lifetime: the later, the fewer
// messages, and the sooner one whose site has died expires. A holder answers two renewals
// within closeSpan lifetimes, so that word of a closing cell counts until the next comes.
const (
	renewAfter = 13
	closeSpan  = 2
)

func newPublisher(sh *shared, rings *rings, guide *guide, holder *holder) publisher {
	p := publisher{shared: sh, rings: rings, guide: guide, holder: holder, pace: pace{flushAt: grid.Never}, republishAt: grid.Never}
	for a := range p.listings {
		p.listings[a].retry = grid.Never
	}
	return p
}

// next returns when something is due.
func (pub *publisher) next() grid.Time {
	t := min(pub.pace.flushAt, pub.republishAt)
	for a := range pub.listings {
		t = min(t, pub.listings[a].retry)
	}
	return t
}

// tick does what is due.
func (pub *publisher) tick(now grid.Time, out *grid.Outbox) {
	if pub.pace.flushAt <= now {
		pub.flush(now, out)
	}
	if pub.republishAt <= now {
		pub.renew(now, out)
	}
	for a := range pub.listings {
		if l := &pub.listings[a]; l.retry <= now {
			pub.lapse(now, l, out)
		}
	}
}

// hasten makes the listing under an attribute be looked at again.
func (pub *publisher) hasten(now grid.Time, a Attribute) {
	l := &pub.listings[a]
	l.retry = min(l.retry, now)
}

// goOn sends what waited for the holders of a cell.
func (pub *publisher) goOn(now grid.Time, c cell, out *grid.Outbox) {
	l := &pub.listings[c.attribute]
	if slices.ContainsFunc(l.places, func(p place) bool { return p.cell == c && p.role != former }) {
		pub.send(now, l, loud, out)
	}
}

// set takes what the site offers from now on.
func (pub *publisher) set(now grid.Time, q Quote, out *grid.Outbox) {
	q.Site, q.Withdrawn = pub.cfg.Self, false
	if err := q.checkOffer(); err != nil {
		panic(fmt.Sprintf("directory: own quote: %v", err))
	}
	q.Issued = now
	pub.pace.offer = q
	if pub.own == nil || pub.own.Withdrawn || !pub.own.sameTerms(&q) {
		pub.issue(now)
		pub.publish(now, loud, out)
		return
	}
	pub.pace.flushAt = grid.Never
	if pub.own.sameLoad(now, &q) {
		return
	}
	pub.pace.changed(now, pub.own, pub.cfg.LoadInterval)
	if pub.pace.flushAt <= now {
		pub.flush(now, out)
	}
}

// flush publishes a quote that differs in load only. All holders are sent it, so that it is the
// renewal, too, if that is due before long: more than half of the time to it has gone by.
func (pub *publisher) flush(now grid.Time, out *grid.Outbox) {
	republish := pub.republishAt
	pub.pace.slow(now, pub.cfg.LoadInterval, min(paceMax, pub.cfg.Lifetime/16))
	if republish-now < renewAfter*pub.cfg.Lifetime/32 {
		pub.renew(now, out)
		return
	}
	pub.issue(now)
	pub.republishAt = republish // nobody need have seen this one
	pub.publish(now, quiet, out)
}

// renew publishes the offer as it is now, before what was published last expires.
func (pub *publisher) renew(now grid.Time, out *grid.Outbox) {
	pub.issue(now)
	pub.renewals++
	pub.publish(now, half, out)
}

// again publishes the offer before it is to be renewed.
func (pub *publisher) again(now grid.Time, out *grid.Outbox) {
	if pub.own != nil && !pub.own.Withdrawn {
		pub.issue(now)
		pub.publish(now, loud, out)
	}
}

// withdraw takes the offer back.
func (pub *publisher) withdraw(now grid.Time, out *grid.Outbox) {
	if pub.own == nil || pub.own.Withdrawn {
		return
	}
	pub.pace.offer.Withdrawn = true
	pub.issue(now)
	pub.republishAt = grid.Never
	for a := range pub.listings {
		l := &pub.listings[a]
		for i := range l.places {
			l.places[i].turn(former)
		}
		pub.send(now, l, loud, out)
	}
}

// issue makes the site's offer its newest quote.
func (pub *publisher) issue(now grid.Time) {
	q := pub.pace.offer
	q.Wait = q.waitLeft(now)
	q.Sequence = uint64(max(now, 1))
	if pub.own != nil {
		q.Sequence = max(q.Sequence, pub.own.Sequence+1)
	}
	q.Issued, q.Lifetime, q.Sealed, q.spread = now, pub.cfg.Lifetime, nil, pub.spread
	if pub.cfg.Seal != nil {
		if err := q.seal(pub.cfg.Seal); err != nil {
			panic(fmt.Sprintf("directory: own quote: %v", err))
		}
	}
	if pub.own == nil || !pub.own.sameTerms(&q) || !pub.own.sameLoad(now, &q) {
		pub.changed = q.Sequence
	}
	pub.own = &q
	pub.learn(pub.own)
	pub.pace.flushAt = grid.Never
	pub.republishAt = now + renewAfter*pub.cfg.Lifetime/16 - pub.jitter(pub.cfg.Lifetime/16)
}

// publish brings the newest quote to where it belongs under every attribute.
func (pub *publisher) publish(now grid.Time, how voice, out *grid.Outbox) {
	for a := range pub.listings {
		l := &pub.listings[a]
		l.hops = 0
		if l.close < now {
			l.evict(spare)
		}
		pub.settle(now, Attribute(a))
		pub.send(now, l, how, out)
	}
}

// settle makes the place where the quote belongs, as far as known, its proper one.
func (pub *publisher) settle(now grid.Time, a Attribute) {
	pub.remap(now, a)
	l := &pub.listings[a]
	at := pub.own.at(a)
	c := cell{a, pub.maps[a].Find(at, nil).Prefix}
	if h := l.in(proper); h != nil && h.cell.Contains(at) && h.cell.Length >= c.Length {
		return // the map may have been forgotten; its holders would know of a longer one
	}
	l.evict(proper)
	l.evict(spare)
	l.enter(c).turn(proper)
}

// lodge makes the cell above a closing one, as far as known, the one that has a spare.
func (pub *publisher) lodge(a Attribute, closing trie.Prefix) {
	l := &pub.listings[a]
	m := &pub.maps[a]
	f := m.Find(pub.own.at(a), nil)
	for f.Length >= closing.Length && f.Length > 0 {
		f = m.Get(f.Above())
	}
	c := cell{a, f.Prefix}
	if g := l.in(spare); g != nil && g.cell == c {
		return
	}
	l.evict(spare)
	p := l.enter(c)
	p.turn(spare)
	p.skip = closing
}

// onReceipt takes a holder's answer to Publish or Withdraw, or its unasked word
// that the quote belongs elsewhere.
func (pub *publisher) onReceipt(now grid.Time, from grid.SiteID, sequence uint64, m *Receipt, out *grid.Outbox) {
	l := &pub.listings[m.Cell.attribute]
	i := slices.IndexFunc(l.places, func(p place) bool { return p.cell == m.Cell })
	if i < 0 || sequence > pub.own.Sequence {
		return
	}
	p := &l.places[i]
	if !p.answered(from, sequence, m) {
		return
	}
	if r := pub.rings.list[p.cell]; r != nil && p.role != former {
		var holders []grid.SiteID
		if !m.Moved {
			holders = m.Holders
		}
		pub.rings.compare(now, r, from, m.Ring, holders)
	}
	if sequence == pub.own.Sequence && !pub.own.Withdrawn && l.hops < hopsMax {
		pub.follow(now, l, p, from, m, out)
	}
	pub.send(now, l, loud, out)
}

// follow does what a holder says. Of several who say that the quote belongs
// elsewhere, the one counts that leads furthest, even if it holds a cell that the
// quote has left.
func (pub *publisher) follow(now grid.Time, l *listing, p *place, from grid.SiteID, m *Receipt, out *grid.Outbox) {
	a := p.cell.attribute
	at := pub.own.at(a)
	if m.Moved && p.cell.Covers(m.To) && m.To.Contains(at) {
		l.hops++
		pub.maps[a].Learn(p.cell.Prefix, m.Fences)
		pub.maps[a].Add(m.To)
		pub.rings.hint(now, cell{a, m.To}, from, m.Holders)
		if p.role == spare {
			pub.lodge(a, p.skip)
			return
		}
		if p.role == proper {
			p.moved, p.to = true, m.To
		}
		pub.settle(now, a)
		return
	}
	switch {
	case p.role != proper || p.cell.IsRoot():
	case m.Closed && l.close >= now && now >= l.leave:
		l.leave = now + pub.cfg.Lifetime
		pub.maps[a].Forget(p.cell.Prefix)
		l.evict(proper)
		pub.issue(now) // what is withdrawn must be older than what is published
		pub.publish(now, loud, out)
	case m.Closing || m.Closed:
		l.close = now + closeSpan*pub.cfg.Lifetime
		pub.lodge(a, p.cell.Prefix)
	}
}

// audit looks at the site's own quote.
func (pub *publisher) audit(now grid.Time) error {
	if pub.own == nil || pub.own.Withdrawn {
		return nil
	}
	if at := pub.republishAt; at > pub.own.Expires() || at+auditLate < now {
		return fmt.Errorf("its own quote runs out at %v, and is to be renewed at %v", pub.own.Expires(), at)
	}
	return nil
}
