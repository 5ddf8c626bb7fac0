package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// plan finds out when the earliest round is due.
func (k *holder) plan() {
	k.upkeepAt = grid.Never
	for _, h := range k.holdings {
		k.upkeepAt = min(k.upkeepAt, h.upkeep.next)
	}
}

// tick does the rounds that are due.
func (k *holder) tick(now grid.Time, out *grid.Outbox) {
	if k.upkeepAt > now {
		return
	}
	due := k.due[:0] // holdings come and go meanwhile
	for _, h := range k.holdings {
		if h.upkeep.next <= now {
			due = append(due, h)
		}
	}
	for _, h := range due {
		k.expire(now, h)
		if len(h.records) > 0 || h.fences.Len() > 0 {
			k.inspect(now, h, out)
		} else if i, ok := k.seek(h.cell); ok {
			k.holdings = slices.Delete(k.holdings, i, i+1)
		}
	}
	clear(due)
	k.due = due
	k.plan()
}

// inspect does one round for a cell.
func (k *holder) inspect(now grid.Time, h *holding, out *grid.Outbox) {
	u := &h.upkeep
	u.begin(now, k.shared)
	k.wonder(now, h)
	r := k.rings.get(now, h.cell, out)
	if !r.usable(now) {
		u.next = now + k.cfg.Timeout
		return
	}
	k.peers = k.rings.holders(now, r, k.peers[:0])
	holders := k.peers
	if !slices.Contains(holders, k.cfg.Self) {
		if u.standing != displaced {
			k.retire(now, h, r, out)
		}
		u.standing, u.since, u.eager = displaced, now, eagerMax
		return
	}
	switch {
	case u.standing == displaced:
		u.standing = proving
	case u.standing == mature && k.standsIn(h):
		k.doubt(now, h)
	}
	h.reconsider(now, k.cfg.CellMax, k.cfg.Lifetime)
	k.chase(now, h, out)
	u.round = round{number: u.round.number + 1, open: 1, ring: r.digest, asks: k.rings.isAsked(now, r)}
	if u.round.asks {
		u.round.open++
	}
	u.round.differs = k.standsIn(h)
	if u.standing != mature {
		if u.round.differs {
			k.rings.knock(now, r, out)
		} else {
			there := len(k.peers)
			k.peers = k.rings.unheard(now, r, k.peers)
			u.wait(len(k.peers) > there, k.shared)
		}
		for _, site := range k.peers {
			k.compare(now, h, site, out)
		}
		k.displace(h, r, k.peers, out)
	}
	if !h.cell.IsRoot() && !h.life.Leaves() {
		if u.round.rests = u.standing == proving && now < u.due && u.told == r.digest; !u.round.rests {
			u.route.begin(now, k.shared)
			k.report(now, h, out)
			u.told = r.digest
		}
	}
	k.conclude(now, h)
}

// wonder has the router asked again if others have had other quotes for some rounds: perhaps
// others hold the cell by now.
func (k *holder) wonder(now grid.Time, h *holding) {
	u := &h.upkeep
	if r := k.rings.list[h.cell]; r != nil && u.standing == proving && u.eager == wonderAfter && u.round.differs && r.named < u.since {
		r.until = min(r.until, now)
	}
}

// chase tells the sites of strays where their quotes belong.
func (k *holder) chase(now grid.Time, h *holding, out *grid.Outbox) {
	if h.fences.Len() == 0 {
		return
	}
	fences, _ := h.fences.List()
	k.tell(now, h, out, func(e *record) (r Receipt, due bool) {
		to, moved := h.fences.Way(e.at, trie.Prefix{})
		return Receipt{Cell: h.cell, Moved: true, To: to, Fences: fences}, moved && !e.spare
	})
}

// retire tells who publishes here that there are other holders.
func (k *holder) retire(now grid.Time, h *holding, ring *ring, out *grid.Outbox) {
	k.tell(now, h, out, func(*record) (r Receipt, due bool) {
		return Receipt{Cell: h.cell, Ring: ring.digest, Holders: ring.show(k.cfg.Replicas)}, true
	})
}

// tell sends receipts about live copies unasked. This site is told last, as its own quote
// may leave the cell at that.
func (k *holder) tell(now grid.Time, h *holding, out *grid.Outbox, receipt func(*record) (r Receipt, due bool)) {
	var own *Receipt
	var sequence uint64
	for i := range h.records {
		e := &h.records[i]
		if now >= e.expires {
			continue
		}
		r, due := receipt(e)
		switch {
		case !due:
		case e.quote.Site == k.cfg.Self:
			own, sequence = &r, e.quote.Sequence
		default:
			k.answerOne(e.quote.Site, e.quote.Sequence, r, out)
		}
	}
	if own != nil {
		k.own(now, sequence, own, out)
	}
}

// compare asks another holder how the cell stands there.
func (k *holder) compare(now grid.Time, h *holding, site grid.SiteID, out *grid.Outbox) {
	if site == k.cfg.Self {
		return
	}
	token := k.question(now, h, forSum, site)
	if token == 0 {
		return
	}
	m := k.scans.New()
	*m = Scan{Token: token, Cell: h.cell, Fences: h.fences.Edges()}
	out.Send(site, m)
}

// displace lets the site know that was a holder if this one is new: it gets no new
// quotes any more. Nobody waits for an answer, so it is told twice that the holders are these.
func (k *holder) displace(h *holding, r *ring, holders []grid.SiteID, out *grid.Outbox) {
	u := &h.upkeep
	if u.displaced != r.digest {
		u.displaced, u.displaces = r.digest, 0
	}
	i := slices.IndexFunc(r.peers, func(p grid.SiteID) bool { return p != k.cfg.Self && !slices.Contains(holders, p) })
	if i >= 0 && u.displaces < displacesMax {
		m := k.scans.New()
		*m = Scan{Cell: h.cell} // the answer has token 0, and nobody waits for it
		out.Send(r.peers[i], m)
		u.displaces++
	}
}

// compared takes notice that another site thinks that it holds a cell, too. If this
// one did not know, it may not be a holder any more.
func (k *holder) compared(now grid.Time, from grid.SiteID, c cell, out *grid.Outbox) {
	h, r := k.holding(c), k.rings.list[c]
	if h == nil || r == nil || slices.Contains(r.nearest(k.cfg.Replicas), from) {
		return
	}
	if h.upkeep.standing == mature {
		k.doubt(now, h)
	}
	r.until = min(r.until, now)
	k.rings.get(now, c, out)
}

// report reports the cell to a holder of the cell that the route leads to, or, once
// that is known to be the parent, to all of them.
func (k *holder) report(now grid.Time, h *holding, out *grid.Outbox) {
	u := &h.upkeep
	r := k.rings.get(now, cell{h.cell.attribute, u.route.way}, out)
	if !r.usable(now) {
		u.round.strays = true
		k.hurry(h, now+k.cfg.Timeout)
		return
	}
	holders := k.rings.holders(now, r, nil)
	purpose := forKeep
	if u.route.bearing != settled {
		purpose = forWay
		site := k.rings.choice(r, holders)
		if slices.Contains(holders, k.cfg.Self) {
			site = k.cfg.Self
		}
		holders = []grid.SiteID{site}
	}
	shown := k.rings.list[h.cell].show(k.cfg.Replicas)
	var says *trie.Summary
	if u.word.summary, u.word.given = h.summary(now); u.word.given {
		s := u.word.summary // the message's own
		says = &s
	}
	for _, site := range holders {
		m := Report{Cell: r.cell, Child: h.cell.Prefix, Holders: shown, Summary: says}
		if site == k.cfg.Self {
			reply := k.note(now, k.cfg.Self, &m)
			u.round.open++
			k.onReported(now, request{purpose: purpose, site: site, cell: h.cell, round: u.round.number}, &reply, out)
			continue
		}
		if m.Token = k.question(now, h, purpose, site); m.Token != 0 {
			sent := k.reports.New()
			*sent = m
			out.Send(site, sent)
		}
	}
}

// question enters a question of the round among the requests.
func (k *holder) question(now grid.Time, h *holding, why purpose, site grid.SiteID) (token uint64) {
	token = k.requests.add(request{purpose: why, site: site, cell: h.cell, round: h.upkeep.round.number, deadline: now + k.cfg.Timeout})
	if token == 0 {
		h.upkeep.round.differs, h.upkeep.round.strays = true, true
	} else {
		h.upkeep.round.open++
	}
	return token
}

// asker returns the holding that a request was made for, if that round goes on.
func (k *holder) asker(q request) *holding {
	h := k.holding(q.cell)
	if h == nil || h.upkeep.round.number != q.round || h.upkeep.round.open == 0 {
		return nil
	}
	return h
}

// onSum takes another holder's word of how the cell stands there.
func (k *holder) onSum(now grid.Time, q request, p *Page, out *grid.Outbox) {
	h := k.asker(q)
	if h == nil {
		return
	}
	u := &h.upkeep
	count, sum := h.stand(now)
	alike := p.Held && p.Count == count && p.Sum == sum && !p.HasFences
	if !alike || u.copied && p.Ring != u.round.ring {
		u.round.differs = true
	}
	from, lacks := trie.First(), p.Count >= count
	if p.HasFences { // first the cells below: the quotes inside them belong elsewhere
		from, lacks = trie.Last(), u.fresh
	}
	if p.Held && !alike && lacks && u.eager >= copyAfter && k.cfg.Witnesses == 0 && !u.round.copies {
		u.round.copies, u.pages = true, 0
		k.fetch(now, h, q.site, from, out)
	}
	k.conclude(now, h)
}

// fetch asks another holder for quotes that this one may lack.
func (k *holder) fetch(now grid.Time, h *holding, site grid.SiteID, at trie.Position, out *grid.Outbox) {
	token := k.requests.add(request{purpose: forCopy, site: site, cell: h.cell, deadline: now + k.cfg.Timeout})
	if token == 0 {
		return
	}
	_, digest := h.fences.List()
	m := k.scans.New()
	*m = Scan{Token: token, Cell: h.cell, At: at, Limit: PageMax, Fences: digest}
	out.Send(site, m)
}

// onCopies takes quotes that another holder has. They come from their sites, whose seals they have,
// so it does not matter who passes them on; but these may not know that this one holds the cell.
func (k *holder) onCopies(now grid.Time, q request, p *Page, out *grid.Outbox) {
	h := k.holding(q.cell)
	if h == nil || p.Cell != q.cell || h.upkeep.standing != proving {
		return
	}
	u := &h.upkeep
	for _, f := range p.Fences {
		if u.fresh && h.cell.Covers(f) && h.fences.Get(f) == nil {
			u.copied = h.fences.Add(f, now+k.cfg.Lifetime) || u.copied
		}
	}
	for _, quote := range p.Quotes {
		if k.adopt(now, h, quote) {
			u.copied = true
		}
	}
	if u.pages++; p.More && len(p.Quotes) > 0 && u.pages < copyPagesMax {
		k.fetch(now, h, q.site, p.Quotes[len(p.Quotes)-1].at(h.cell.attribute).Next(), out)
		return
	}
	k.hurry(h, now+k.cfg.Timeout/4)
}

// onReported takes the answer to a report.
func (k *holder) onReported(now grid.Time, q request, p *Reported, out *grid.Outbox) {
	h := k.asker(q)
	if h == nil {
		return
	}
	u := &h.upkeep
	switch {
	case p.Moved && u.route.moved(p.To, h.cell.Prefix):
		k.rings.hint(now, cell{h.cell.attribute, p.To}, q.site, p.Holders)
		k.report(now, h, out)
	case p.Moved: // somebody else has said so already
	case q.purpose == forWay:
		u.route.arrived()
		k.report(now, h, out)
	default:
		if r := k.rings.list[cell{h.cell.attribute, u.route.parent}]; r != nil && k.rings.compare(now, r, q.site, p.Ring, nil) {
			u.round.noted = u.round.noted || slices.Contains(r.nearest(k.cfg.Replicas), q.site) // else it stands in for one
		}
		u.round.strays = u.round.strays || p.Strays > 0
		for _, f := range p.Fences {
			if h.cell.Covers(f) {
				h.fences.Add(f, now+k.cfg.Lifetime)
			}
		}
	}
	k.conclude(now, h)
}

// unanswered notes that a question went unanswered.
func (k *holder) unanswered(now grid.Time, q request) {
	if h := k.asker(q); h != nil {
		if q.purpose == forSum {
			h.upkeep.round.differs = true
		} else {
			h.upkeep.round.strays = true
			if h.upkeep.word.retries > 0 {
				h.upkeep.word.retries--
				k.hurry(h, now+k.cfg.Timeout/4)
			}
		}
		k.conclude(now, h)
	}
}

// named takes notice that the router has answered who holds a cell: it has named so many sites.
// Who has proved with fewer holders than there are now proves anew: others may have been out of reach.
func (k *holder) named(now grid.Time, c cell, sites int) {
	h := k.holding(c)
	if h == nil {
		return
	}
	u := &h.upkeep
	if u.standing == mature && len(k.rings.list[c].nearest(k.cfg.Replicas)) > u.known {
		k.doubt(now, h)
	}
	if !u.round.asks {
		return
	}
	u.round.asks = false
	u.round.differs = u.round.differs || sites == 0
	k.conclude(now, h)
}

// conclude notes that a question of the round is done with. With other holders than it began
// with, or while the router is asked once more who they are, the round proves nothing.
func (k *holder) conclude(now grid.Time, h *holding) {
	u, r := &h.upkeep, k.rings.list[h.cell]
	if r != nil && (r.digest != u.round.ring || k.rings.isAsked(now, r) && !u.round.asks) {
		u.round.differs = true
	}
	before := u.standing
	if u.conclude(now, h.cell.IsRoot(), k.cfg.Lifetime) {
		u.pause = 2 * k.cfg.Timeout
		k.hurry(h, now+u.pause)
	}
	if r != nil && before != mature && u.standing == mature {
		u.known = len(r.nearest(k.cfg.Replicas))
	}
}
