package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// place is a cell and those of its holders who may have a copy of the own quote.
type place struct {
	cell   cell
	role   role
	copies []replica
	skip   trie.Prefix // of a guest: the closing home
	moved  bool        // of a place to leave: the cell to was split off it
	to     trie.Prefix
}

// replica is one holder's copy.
type replica struct {
	site     grid.SiteID
	has      uint64    // sequence of the newest quote it is known to have; 0 if none
	sent     uint64    // sequence of the newest quote sent to it; 0 if none
	tries    int       // of that one, or of the withdrawal, without an answer
	deadline grid.Time // for the answer; 0 if none is outstanding
	absent   bool      // it has answered the newest quote sent that it has none
	until    grid.Time // 0 while it is one of the holders; else those who do not know better may ask it until then
}

// turn gives a place a role.
func (p *place) turn(r role) {
	if p.role == r && r == leaving {
		return
	}
	p.role = r
	if r != leaving {
		p.moved = false
	}
	for i := range p.copies {
		p.copies[i].tries, p.copies[i].deadline = 0, 0
	}
}

// due reports whether the quote of a sequence is to be sent; changed is the
// sequence since which the offer is the same.
func (r *replica) due(sequence, changed uint64) bool {
	if r.until != 0 {
		return r.has < changed
	}
	return r.has < sequence && (r.sent < sequence || r.deadline == 0 && r.tries < triesMax)
}

// note notes that the quote of a sequence goes out.
func (r *replica) note(sequence uint64, deadline grid.Time) {
	if r.sent != sequence {
		r.sent, r.tries = sequence, 0
	}
	r.tries++
	r.deadline, r.absent = deadline, false
}

// settled reports whether a holder has the quote of a sequence and no answer is
// outstanding.
func (p *place) settled(sequence uint64) bool {
	has := false
	for i := range p.copies {
		c := &p.copies[i]
		if c.deadline != 0 {
			return false
		}
		has = has || c.until == 0 && c.has >= sequence
	}
	return has
}

// safe reports whether a holder has some copy.
func (p *place) safe() bool {
	return p != nil && slices.ContainsFunc(p.copies, func(c replica) bool { return c.until == 0 && c.has > 0 })
}

// answered takes notice of an answer, and reports whether it was to be expected.
func (p *place) answered(from grid.SiteID, sequence uint64, m *Receipt) bool {
	i := slices.IndexFunc(p.copies, func(c replica) bool { return c.site == from })
	if i < 0 {
		return false
	}
	c := &p.copies[i]
	c.absent = m.Absent && sequence >= c.sent
	switch {
	case m.Gone:
		if p.role == leaving {
			p.copies = slices.Delete(p.copies, i, i+1)
		}
	case p.role == leaving: // it answers what was published before
	case m.Refused:
		if sequence == c.sent {
			c.deadline, c.tries = 0, triesMax
		}
	default:
		c.has = max(c.has, sequence)
		if c.has >= c.sent {
			c.deadline, c.tries = 0, 0
		}
	}
	return true
}

// send sends what is due: the newest quote to the holders of home and guest, and
// once one of home's has it and no answer is outstanding, withdrawals to those of
// the other places.
func (d *Directory) send(now grid.Time, l *listing, how voice, out *grid.Outbox) {
	if l.again {
		l.again = false
		d.issue(now)
		d.publish(now, loud, out)
		return
	}
	var replies [2]Receipt // of this site itself
	var kept [2]bool
	sequence := d.own.Sequence
	safe := l.in(guest).safe()
	for r := range replies {
		if p := l.in(role(r) + guest); p != nil {
			kept[r] = d.sendPlace(now, p, how, safe, &replies[r], out)
		}
	}
	if h := l.in(home); h == nil || h.settled(d.own.Sequence) {
		d.leave(now, l, out)
	}
	d.schedule(now, l)
	for r := range replies {
		if kept[r] {
			d.onReceipt(now, d.cfg.Self, sequence, &replies[r], out)
		}
	}
}

// letter is a copy on its way to a holder.
type letter struct {
	to   grid.SiteID
	copy Copy
}

// write puts a copy into the letter to a holder; of two about one cell the later counts.
func (d *Directory) write(to grid.SiteID, c Copy) {
	for i := range d.mail {
		if l := &d.mail[i]; l.to == to && l.copy.Cell == c.Cell {
			l.copy = c
			return
		}
	}
	d.mail = append(d.mail, letter{to, c})
}

// post sends what was written, one message to each holder.
func (d *Directory) post(out *grid.Outbox) {
	d.postVoids(out)
	for i := range d.mail {
		to := d.mail[i].to
		if to == "" {
			continue
		}
		if len(d.copySpace) < CopiesMax {
			d.copySpace = make([]Copy, 16*CopiesMax)
		}
		copies := d.copySpace[:0:CopiesMax]
		for j := i; j < len(d.mail) && len(copies) < CopiesMax; j++ {
			if l := &d.mail[j]; l.to == to {
				copies = append(copies, l.copy)
				l.to = ""
			}
		}
		d.copySpace = d.copySpace[len(copies):]
		m := d.publishes.New()
		*m = Publish{Quote: d.own, Copies: copies}
		out.Send(to, m)
	}
	d.mail = d.mail[:0]
}

// sendPlace sends the newest quote to those of a place's holders who are due for
// it. If this site is among them it fills in its reply and returns true.
func (d *Directory) sendPlace(now grid.Time, p *place, how voice, safe bool, reply *Receipt, out *grid.Outbox) (kept bool) {
	d.guide(now, p.cell, out)
	d.appoint(now, p, out)
	probe, probing := d.probe(p)
	for i := range p.copies {
		c := &p.copies[i]
		if !c.due(d.own.Sequence, d.changed) || probing && i != probe {
			continue
		}
		m := Copy{Cell: p.cell, Guest: p.role == guest, Safe: p.role == home && safe, Ring: d.rings[p.cell].known()}
		if m.Guest {
			m.Skip = p.skip
		}
		m.Quiet = c.until != 0 || c.has != 0 && (how == quiet || how == half && d.rests(c.site))
		c.note(d.own.Sequence, now+d.cfg.Timeout)
		if m.Quiet {
			c.has, c.deadline = c.sent, 0
		}
		if c.site == d.cfg.Self {
			*reply, kept = d.keep(now, d.own, &m), true
			continue
		}
		d.write(c.site, m)
	}
	return kept
}

// rests reports whether a holder need not answer this renewal. It answers the next one:
// so for every one of its cells at a time, as they come in one message.
func (d *Directory) rests(site grid.SiteID) bool {
	return (uint32(site[len(site)-1])+d.renewals)%2 == 0
}

// probe returns which holder of a new home is to have the quote before the others. Where
// there are cells below the root, the quote may well belong into one that this site has
// not heard of: then one answer says so, where all holders would. Whoever does not answer
// is not waited for.
func (d *Directory) probe(p *place) (copy int, probing bool) {
	if p.role != home || len(p.copies) == 0 || p.cell.IsRoot() && !d.maps[p.cell.attribute].Branches() {
		return 0, false
	}
	for i := range p.copies {
		if c := &p.copies[i]; c.site == d.cfg.Self || c.has > 0 || c.tries > 0 && c.deadline == 0 {
			return 0, false
		} else if c.deadline != 0 {
			return i, true
		}
	}
	return int(d.spread % uint64(len(p.copies))), true
}

// appoint makes the holders of a place's cell those who are to have a copy: as many
// as there are to be, and whoever is nearer but suspect, since he may be alive and
// others may ask him.
func (d *Directory) appoint(now grid.Time, p *place, out *grid.Outbox) {
	r := d.ring(now, p.cell, out)
	if !r.usable(now) {
		return
	}
	d.sites = d.sites[:0]
	for good, i := 0, 0; good < d.cfg.Replicas && i < len(r.peers); i++ {
		d.sites = append(d.sites, r.peers[i])
		if !d.isSuspect(now, r.peers[i]) {
			good++
		}
	}
	for i := range p.copies {
		c := &p.copies[i]
		if slices.Contains(d.sites, c.site) {
			c.until = 0
		} else if c.until == 0 {
			c.until, c.deadline = now+d.cfg.Lifetime, 0
		}
	}
	p.copies = slices.DeleteFunc(p.copies, func(c replica) bool { return c.until != 0 && (c.until <= now || c.sent == 0) })
	for _, site := range d.sites {
		if !slices.ContainsFunc(p.copies, func(c replica) bool { return c.site == site }) {
			p.copies = append(p.copies, replica{site: site})
		}
	}
}

// leave sends the withdrawals that are due.
func (d *Directory) leave(now grid.Time, l *listing, out *grid.Outbox) {
	for i := range l.places {
		p := &l.places[i]
		if p.role != leaving {
			continue
		}
		p.copies = slices.DeleteFunc(p.copies, func(c replica) bool {
			return c.sent == 0 || c.absent && c.deadline == 0 || c.deadline == 0 && (c.tries >= triesMax || c.site == d.cfg.Self && d.withdrawOwn(now, p))
		})
		for j := range p.copies {
			c := &p.copies[j]
			if c.deadline != 0 {
				continue
			}
			m := d.withdraws.New()
			*m = Withdraw{Cell: p.cell, Quote: d.own, Moved: p.moved, To: p.to}
			out.Send(c.site, m)
			c.tries++
			c.deadline = now + d.cfg.Timeout
		}
	}
	l.places = slices.DeleteFunc(l.places, func(p place) bool { return p.role == leaving && len(p.copies) == 0 })
}

// withdrawOwn drops the copy that this site has of its own quote.
func (d *Directory) withdrawOwn(now grid.Time, p *place) bool {
	d.onWithdraw(now, &Withdraw{Cell: p.cell, Quote: d.own, Moved: p.moved, To: p.to})
	return true
}

// schedule finds out when a listing is due again.
func (d *Directory) schedule(now grid.Time, l *listing) {
	l.retry = grid.Never
	for i := range l.places {
		p := &l.places[i]
		for j := range p.copies {
			if c := &p.copies[j]; c.deadline != 0 {
				l.retry = min(l.retry, c.deadline)
			}
		}
		if p.role == leaving {
			continue
		}
		if r := d.rings[p.cell]; r == nil {
			l.retry = now
		} else if r.asked == grid.Never {
			l.retry = min(l.retry, max(r.fresh, now+1))
		} else {
			// A look-up may have been begun for peers that are still believed: the
			// router is not asked again before they are not.
			l.retry = min(l.retry, max(r.fresh, r.asked.Add(d.lookupMax())))
		}
	}
}

// lapse notes which answers did not come in time, and goes on without them.
func (d *Directory) lapse(now grid.Time, l *listing, out *grid.Outbox) {
	for i := range l.places {
		for j := range l.places[i].copies {
			if c := &l.places[i].copies[j]; c.deadline != 0 && c.deadline <= now {
				d.miss(now, &l.places[i], c, false)
			}
		}
	}
	d.send(now, l, loud, out)
}

// miss notes that a holder did not answer. In place of one that never does, the
// router may by now name another.
func (d *Directory) miss(now grid.Time, p *place, c *replica, certain bool) {
	c.deadline = 0
	if certain {
		c.tries = triesMax
	}
	d.strike(now, c.site, certain)
	if r := d.rings[p.cell]; r != nil && p.role != leaving && c.tries >= triesMax {
		r.fresh = 0
	}
}
