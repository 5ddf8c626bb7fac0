package directory

import (
	"slices"

	"gridnode/grid"
)

// send sends what is due: the newest quote to the holders of the proper and the spare place,
// and once one of the proper has it and no answer is outstanding, withdrawals to those of
// the other places.
func (pub *publisher) send(now grid.Time, l *listing, how voice, out *grid.Outbox) {
	if l.again {
		l.again = false
		pub.issue(now)
		pub.publish(now, loud, out)
		return
	}
	var replies [2]Receipt // of this site itself
	var kept [2]bool
	sequence := pub.own.Sequence
	safe := l.in(spare).safe()
	for r := range replies {
		if p := l.in(role(r) + spare); p != nil {
			kept[r] = pub.sendPlace(now, p, how, safe, &replies[r], out)
		}
	}
	if h := l.in(proper); h == nil || h.settled(pub.own.Sequence) {
		pub.leave(now, l, out)
	}
	pub.schedule(now, l)
	for r := range replies {
		if kept[r] {
			pub.onReceipt(now, pub.cfg.Self, sequence, &replies[r], out)
		}
	}
}

// sendPlace sends the newest quote to those of a place's holders who are due for
// it. If this site is among them it fills in its reply and returns true.
func (pub *publisher) sendPlace(now grid.Time, p *place, how voice, safe bool, reply *Receipt, out *grid.Outbox) (kept bool) {
	pub.guide.lead(now, p.cell, out)
	pub.appoint(now, p, out)
	probe, probing := pub.probe(p)
	for i := range p.copies {
		c := &p.copies[i]
		if !c.due(pub.own.Sequence, pub.changed) || probing && i != probe {
			continue
		}
		m := Copy{Cell: p.cell, Spare: p.role == spare, Safe: p.role == proper && safe, Ring: pub.rings.list[p.cell].holdersDigest()}
		if m.Spare {
			m.Skip = p.skip
		}
		m.Quiet = c.until != 0 || c.has != 0 && (how == quiet || how == half && pub.rests(c.site))
		c.note(pub.own.Sequence, now+pub.cfg.Timeout)
		if m.Quiet {
			c.has, c.deadline = c.sent, 0
		}
		if c.site == pub.cfg.Self {
			*reply, kept = pub.holder.keep(now, pub.own, &m), true
			continue
		}
		pub.write(c.site, m)
	}
	return kept
}

// rests reports whether a holder need not answer this renewal. It answers the next one:
// so for every one of its cells at a time, as they come in one message.
func (pub *publisher) rests(site grid.SiteID) bool {
	return (uint32(site[len(site)-1])+pub.renewals)%2 == 0
}

// probe returns which holder of a new proper place is to have the quote before the others. Where
// there are cells below the root, the quote may well belong into one that this site has
// not heard of: then one answer says so, where all holders would. Whoever does not answer
// is not waited for.
func (pub *publisher) probe(p *place) (copy int, probing bool) {
	if p.role != proper || len(p.copies) == 0 || p.cell.IsRoot() && !pub.maps[p.cell.attribute].Branches() {
		return 0, false
	}
	for i := range p.copies {
		if c := &p.copies[i]; c.site == pub.cfg.Self || c.has > 0 || c.tries > 0 && c.deadline == 0 {
			return 0, false
		} else if c.deadline != 0 {
			return i, true
		}
	}
	return int(pub.spread % uint64(len(p.copies))), true
}

// appoint makes the holders of a place's cell those who are to have a copy: as many
// as there are to be, and whoever is nearer but suspect, since he may be alive and
// others may ask him.
func (pub *publisher) appoint(now grid.Time, p *place, out *grid.Outbox) {
	r, confirm := pub.rings.forPublishing(now, p.cell, out)
	if !r.usable(now) {
		return
	}
	pub.sites = pub.sites[:0]
	for good, i := 0, 0; good < pub.cfg.Replicas && i < len(r.peers); i++ {
		pub.sites = append(pub.sites, r.peers[i])
		if !pub.rings.suspects.has(now, r.peers[i]) {
			good++
		}
	}
	for i := range p.copies {
		c := &p.copies[i]
		if slices.Contains(pub.sites, c.site) {
			c.until = 0
		} else if c.until == 0 {
			c.until, c.deadline = now+pub.cfg.Lifetime, 0
		}
	}
	p.copies = slices.DeleteFunc(p.copies, func(c replica) bool { return c.until != 0 && (c.until <= now || c.sent == 0) })
	if confirm {
		pub.confirm(p)
	}
	for _, site := range pub.sites {
		if !slices.ContainsFunc(p.copies, func(c replica) bool { return c.site == site }) {
			p.copies = append(p.copies, replica{site: site})
		}
	}
}

// confirm has the quote sent once more to a holder that has it: the answer says whether it
// knows the same holders.
func (pub *publisher) confirm(p *place) {
	for i := range p.copies {
		c := &p.copies[(uint64(i)+pub.spread)%uint64(len(p.copies))]
		if c.until == 0 && c.has > 0 && c.deadline == 0 && c.site != pub.cfg.Self {
			c.has, c.sent = 0, 0
			return
		}
	}
}

// leave sends the withdrawals that are due.
func (pub *publisher) leave(now grid.Time, l *listing, out *grid.Outbox) {
	for i := range l.places {
		p := &l.places[i]
		if p.role != former {
			continue
		}
		p.copies = slices.DeleteFunc(p.copies, func(c replica) bool {
			return c.sent == 0 || c.absent && c.deadline == 0 || c.deadline == 0 && (c.tries >= triesMax || c.site == pub.cfg.Self && pub.withdrawOwn(now, p))
		})
		for j := range p.copies {
			c := &p.copies[j]
			if c.deadline != 0 {
				continue
			}
			m := pub.withdraws.New()
			*m = Withdraw{Cell: p.cell, Quote: pub.own, Moved: p.moved, To: p.to}
			out.Send(c.site, m)
			c.tries++
			c.deadline = now + pub.cfg.Timeout
		}
	}
	l.places = slices.DeleteFunc(l.places, func(p place) bool { return p.role == former && len(p.copies) == 0 })
}

// withdrawOwn drops the copy that this site has of its own quote.
func (pub *publisher) withdrawOwn(now grid.Time, p *place) bool {
	pub.holder.drop(now, &Withdraw{Cell: p.cell, Quote: pub.own, Moved: p.moved, To: p.to})
	return true
}

// schedule finds out when a listing is due again.
func (pub *publisher) schedule(now grid.Time, l *listing) {
	l.retry = grid.Never
	for i := range l.places {
		p := &l.places[i]
		for j := range p.copies {
			if c := &p.copies[j]; c.deadline != 0 {
				l.retry = min(l.retry, c.deadline)
			}
		}
		if p.role == former {
			continue
		}
		if r := pub.rings.list[p.cell]; r == nil {
			l.retry = now
		} else if r.begun == grid.Never {
			l.retry = min(l.retry, max(r.until, now+1))
		} else {
			// A look-up may have been begun for peers that are still believed: the
			// router is not asked again before they are not.
			l.retry = min(l.retry, max(r.until, r.begun.Add(pub.rings.lookupMax())))
		}
	}
}

// lapse notes which answers did not come in time, and goes on without them.
func (pub *publisher) lapse(now grid.Time, l *listing, out *grid.Outbox) {
	for i := range l.places {
		for j := range l.places[i].copies {
			if c := &l.places[i].copies[j]; c.deadline != 0 && c.deadline <= now {
				pub.miss(now, &l.places[i], c, false)
			}
		}
	}
	pub.send(now, l, loud, out)
}

// miss notes that a holder did not answer. In place of one that never does, another one
// that is known has the quote, or else the router may by now name one.
func (pub *publisher) miss(now grid.Time, p *place, c *replica, certain bool) {
	c.deadline = 0
	if certain {
		c.tries = triesMax
	}
	if c.tries >= triesMax {
		c.silent, pub.silent = true, true
	}
	pub.rings.suspects.strike(now, c.site, certain)
	if r := pub.rings.list[p.cell]; r != nil && p.role != former && c.tries >= triesMax && pub.rings.short(now, r) {
		r.until = 0
	}
}

// heard has the quote sent again to a holder that was given up: it was cut off, or restarted.
func (pub *publisher) heard(now grid.Time, from grid.SiteID, out *grid.Outbox) {
	if !pub.silent {
		return
	}
	pub.silent = false
	for a := range pub.listings {
		l, again := &pub.listings[a], false
		for i := range l.places {
			for j := range l.places[i].copies {
				c := &l.places[i].copies[j]
				if c.silent && c.site == from {
					c.silent, c.tries, again = false, 0, true
				}
				pub.silent = pub.silent || c.silent
			}
		}
		if again {
			pub.send(now, l, loud, out)
		}
	}
}

// undelivered goes on without a holder of the own quote.
func (pub *publisher) undelivered(now grid.Time, to grid.SiteID, c cell, out *grid.Outbox) {
	l := &pub.listings[c.attribute]
	for i := range l.places {
		p := &l.places[i]
		for j := range p.copies {
			if r := &p.copies[j]; p.cell == c && r.site == to && (r.deadline != 0 || p.role != former && r.has == r.sent && r.sent != 0) {
				pub.miss(now, p, r, true)
				pub.send(now, l, loud, out)
				return
			}
		}
	}
}

// letter is a copy on its way to a holder.
type letter struct {
	to   grid.SiteID
	copy Copy
}

// write puts a copy into the letter to a holder; of two about one cell the later counts.
func (pub *publisher) write(to grid.SiteID, c Copy) {
	for i := range pub.mail {
		if l := &pub.mail[i]; l.to == to && l.copy.Cell == c.Cell {
			l.copy = c
			return
		}
	}
	pub.mail = append(pub.mail, letter{to, c})
}

// post sends what was written, one message to each holder.
func (pub *publisher) post(out *grid.Outbox) {
	for i := range pub.mail {
		to := pub.mail[i].to
		if to == "" {
			continue
		}
		if len(pub.copySpace) < CopiesMax {
			pub.copySpace = make([]Copy, 16*CopiesMax)
		}
		copies := pub.copySpace[:0:CopiesMax]
		for j := i; j < len(pub.mail) && len(copies) < CopiesMax; j++ {
			if l := &pub.mail[j]; l.to == to {
				copies = append(copies, l.copy)
				l.to = ""
			}
		}
		pub.copySpace = pub.copySpace[len(copies):]
		m := pub.publishes.New()
		*m = Publish{Quote: pub.own, Copies: copies}
		out.Send(to, m)
	}
	pub.mail = pub.mail[:0]
}
