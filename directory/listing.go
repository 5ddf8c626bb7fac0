package directory

import (
	"fmt"
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Bounds of a site's own publishing.
const (
	placesMax = 8  // cells in which copies of its quote may be, per attribute
	hopsMax   = 64 // redirections it follows for one quote
	triesMax  = 4  // times a message is sent to a holder
)

// listing is a site's own quote under one attribute: the cells in which copies of
// it may be. One is its home, where it belongs. While that one is closing, another
// has it as a guest. From the others it is withdrawn once it is at home.
type listing struct {
	places []place
	retry  grid.Time // when an unanswered message is due again; grid.Never if none is
	hops   int       // redirections followed for the quote
	close  grid.Time // until when its home is known to be closing
	leave  grid.Time // it does not leave a closed home before then again
	again  bool      // a copy that is being withdrawn is wanted again, so it must be newer
}

// role is what a place is to a listing.
type role uint8

const (
	leaving role = iota
	guest
	home
)

// voice says which of the holders who have the quote before are to answer.
type voice uint8

const (
	loud  voice = iota // all: something other than load has changed
	half               // every other one, next time the others: it is renewed
	quiet              // none: it differs in load only
)

// SetQuote publishes what the site offers from now on. Everything up to Foreign is
// the caller's, the rest is filled in here. A changed price, speed or size goes out
// at once; what differs in load only goes out if it matters, at a bounded rate, and
// else with the next renewal (pace). A quote that violates its bounds is the
// caller's bug: it panics.
func (d *Directory) SetQuote(now grid.Time, q Quote, out *grid.Outbox) {
	q.Site, q.Withdrawn = d.cfg.Self, false
	if err := q.checkOffer(); err != nil {
		panic(fmt.Sprintf("directory: own quote: %v", err))
	}
	q.Issued = now
	d.pace.offer = q
	if d.own == nil || d.own.Withdrawn || !d.own.sameTerms(&q) {
		d.issue(now)
		d.publish(now, loud, out)
		d.post(out)
		return
	}
	d.pace.flushAt = grid.Never
	if d.own.sameLoad(now, &q) {
		return
	}
	d.pace.changed(now, d.own, d.cfg.LoadInterval)
	if d.pace.flushAt <= now {
		d.flush(now, out)
		d.post(out)
	}
}

// flush publishes a quote that differs in load only.
func (d *Directory) flush(now grid.Time, out *grid.Outbox) {
	republish := d.republishAt
	d.pace.slow(now, d.cfg.LoadInterval, min(paceMax, d.cfg.Lifetime/16))
	d.issue(now)
	d.republishAt = republish // nobody need have seen this one
	d.publish(now, quiet, out)
}

// renew publishes the offer as it is now, before what was published last expires.
func (d *Directory) renew(now grid.Time, out *grid.Outbox) {
	d.issue(now)
	d.renewals++
	d.publish(now, half, out)
}

// Withdraw takes the site's quote out of the directory. SetQuote puts it back.
func (d *Directory) Withdraw(now grid.Time, out *grid.Outbox) {
	if d.own == nil || d.own.Withdrawn {
		return
	}
	d.pace.offer.Withdrawn = true
	d.issue(now)
	d.republishAt = grid.Never
	for a := range d.listings {
		l := &d.listings[a]
		for i := range l.places {
			l.places[i].turn(leaving)
		}
		d.send(now, l, loud, out)
	}
	d.post(out)
}

// issue makes the site's offer its newest quote.
func (d *Directory) issue(now grid.Time) {
	q := d.pace.offer
	q.Wait = q.waitLeft(now)
	q.Sequence = uint64(max(now, 1))
	if d.own != nil {
		q.Sequence = max(q.Sequence, d.own.Sequence+1)
	}
	q.Issued, q.Lifetime, q.Sealed, q.spread = now, d.cfg.Lifetime, nil, d.spread
	if d.cfg.Seal != nil {
		if err := q.seal(d.cfg.Seal); err != nil {
			panic(fmt.Sprintf("directory: own quote: %v", err))
		}
	}
	if d.own == nil || !d.own.sameTerms(&q) || !d.own.sameLoad(now, &q) {
		d.changed = q.Sequence
	}
	d.own = &q
	d.learn(d.own)
	d.pace.flushAt = grid.Never
	d.republishAt = now + d.cfg.Lifetime/2 - d.jitter(d.cfg.Lifetime/16)
}

// publish brings the newest quote to where it belongs under every attribute.
func (d *Directory) publish(now grid.Time, how voice, out *grid.Outbox) {
	for a := range d.listings {
		l := &d.listings[a]
		l.hops = 0
		if l.close < now {
			l.evict(guest)
		}
		d.settle(now, Attribute(a))
		d.send(now, l, how, out)
	}
}

// settle makes the place where the quote belongs, as far as known, its home.
func (d *Directory) settle(now grid.Time, a Attribute) {
	d.maps[a].Refresh(now, 4*d.cfg.Lifetime)
	l := &d.listings[a]
	at := d.own.at(a)
	c := cell{a, d.maps[a].Find(at, nil).Prefix}
	if h := l.in(home); h != nil && h.cell.Contains(at) && h.cell.Length >= c.Length {
		return // the map may have been forgotten; its holders would know of a longer one
	}
	l.evict(home)
	l.evict(guest)
	l.enter(c).turn(home)
}

// lodge makes the cell above a closing one, as far as known, the guest's.
func (d *Directory) lodge(a Attribute, closing trie.Prefix) {
	l := &d.listings[a]
	m := &d.maps[a]
	f := m.Find(d.own.at(a), nil)
	for f.Length >= closing.Length && f.Length > 0 {
		f = m.Get(f.Above)
	}
	c := cell{a, f.Prefix}
	if g := l.in(guest); g != nil && g.cell == c {
		return
	}
	l.evict(guest)
	p := l.enter(c)
	p.turn(guest)
	p.skip = closing
}

// in returns the place in a role other than leaving, or nil.
func (l *listing) in(r role) *place {
	for i := range l.places {
		if l.places[i].role == r {
			return &l.places[i]
		}
	}
	return nil
}

// evict makes the place in a role one to leave.
func (l *listing) evict(r role) {
	if p := l.in(r); p != nil {
		p.turn(leaving)
	}
}

// enter returns the place of a cell, which may be a new one.
func (l *listing) enter(c cell) *place {
	i := slices.IndexFunc(l.places, func(p place) bool { return p.cell == c })
	if i >= 0 {
		p := &l.places[i]
		l.again = l.again || p.role == leaving && slices.ContainsFunc(p.copies, func(c replica) bool { return c.tries > 0 })
		return p
	}
	if len(l.places) == placesMax { // the copies in the one left first will expire
		i := slices.IndexFunc(l.places, func(p place) bool { return p.role == leaving })
		l.places = slices.Delete(l.places, i, i+1)
	}
	l.places = append(l.places, place{cell: c})
	return &l.places[len(l.places)-1]
}

// onReceipt takes a holder's answer to Publish or Withdraw, or its unasked word
// that the quote belongs elsewhere.
func (d *Directory) onReceipt(now grid.Time, from grid.SiteID, sequence uint64, m *Receipt, out *grid.Outbox) {
	l := &d.listings[m.Cell.attribute]
	i := slices.IndexFunc(l.places, func(p place) bool { return p.cell == m.Cell })
	if i < 0 || sequence > d.own.Sequence {
		return
	}
	p := &l.places[i]
	if !p.answered(from, sequence, m) {
		return
	}
	if r := d.rings[p.cell]; r != nil && p.role != leaving {
		d.compareRing(now, r, from, m.Ring)
	}
	if sequence == d.own.Sequence && !d.own.Withdrawn && l.hops < hopsMax {
		d.follow(now, l, p, m, out)
	}
	d.send(now, l, loud, out)
}

// follow does what a holder says. Of several who say that the quote belongs
// elsewhere, the one counts that leads furthest, even if it holds a cell that the
// quote has left.
func (d *Directory) follow(now grid.Time, l *listing, p *place, m *Receipt, out *grid.Outbox) {
	a := p.cell.attribute
	at := d.own.at(a)
	if m.Moved && p.cell.Covers(m.To) && m.To.Contains(at) {
		l.hops++
		d.maps[a].Learn(p.cell.Prefix, m.Fences)
		d.maps[a].Add(m.To)
		d.hint(now, cell{a, m.To}, m.Holders)
		if p.role == guest {
			d.lodge(a, p.skip)
			return
		}
		if p.role == home {
			p.moved, p.to = true, m.To
		}
		d.settle(now, a)
		return
	}
	switch {
	case p.role != home || p.cell.IsRoot():
	case m.Closed && l.close >= now && now >= l.leave:
		l.leave = now + d.cfg.Lifetime
		d.maps[a].Forget(p.cell.Prefix)
		l.evict(home)
		d.issue(now) // what is withdrawn must be older than what is published
		d.publish(now, loud, out)
	case m.Closing || m.Closed:
		l.close = now + d.cfg.Lifetime
		d.lodge(a, p.cell.Prefix)
	}
}
