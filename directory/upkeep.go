package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// upkeep is what a holder does for a cell at intervals that double up to half a
// lifetime. It drops what has expired, and tells the sites of strays where their
// quotes belong. It reports the cell to the holders of the one above it, its
// parent, so that those keep the fence. And as long as it is not mature, it
// compares its quotes with the other holders'.
//
// A holder is mature if it has every live quote of the cell. It knows so when, in
// one round, all other holders had the same quotes and no cell above had strays:
// then every site that publishes here knows all the holders, since it has published
// to each. If some holder never agrees, say because another site has a wrong idea
// of who holds the cell, age does instead: by then every site must have looked the
// holders up again and published to them. A site that is no longer among the
// holders stops being mature.
type upkeep struct {
	next    grid.Time // when the next round is due
	span    grid.Time // from the last one to then
	round   uint32
	eager   int         // rounds since the holder began to prove that it is mature
	open    int         // questions of this round unanswered
	amiss   bool        // another holder did not answer, or has other quotes
	stray   bool        // a cell above had strays, or did not answer
	noted   bool        // a holder of the parent has taken the report
	clear   bool        // in the last round none above had strays
	routed  bool        // parent is known
	reroute grid.Time   // when it is looked for from the root again
	routing grid.Time   // the span until then
	parent  trie.Prefix // the longest cell that covers this one
	way     trie.Prefix // the cell that is to be asked next for it
	hops    int         // of the way in this round

	last    grid.Time    // when the last round began
	said    bool         // the holders of the parent have a summary of this site
	summary trie.Summary // what it said
	retries int          // times it is said again at once if one does not answer
}

const (
	matureAge = 2*spanMax + 1 // halves of a lifetime after which a holder counts as mature
	routeMin  = 4             // lifetimes after which a holder looks for its cell's parent from the root again, at first
	eagerMax  = 16            // rounds that follow quickly if the holder is not mature before
)

// begin plans the first round: soon, so that whoever this site displaces learns it,
// but after those who publish to a new cell had time to.
func (u *upkeep) begin(now grid.Time, sh *shared) {
	u.span, u.eager = 2*sh.cfg.Timeout, 0
	u.next = now + sh.cfg.Timeout/4 + sh.jitter(sh.cfg.Timeout/4)
}

// plan finds out when the earliest round is due.
func (k *keeper) plan() {
	k.upkeepAt = grid.Never
	for _, h := range k.holdings {
		k.upkeepAt = min(k.upkeepAt, h.upkeep.next)
	}
}

// tick does the rounds that are due.
func (k *keeper) tick(now grid.Time, out *grid.Outbox) {
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
		if len(h.entries) > 0 || h.fences.Len() > 0 {
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
func (k *keeper) inspect(now grid.Time, h *holding, out *grid.Outbox) {
	u := &h.upkeep
	if u.eager++; h.mature || u.eager > eagerMax {
		u.span = min(2*u.span, k.cfg.Lifetime/2)
	}
	u.next, u.last = now+u.span-k.jitter(u.span/8), now
	r := k.rings.ring(now, h.cell, out)
	if !r.usable(now) {
		u.next = now + k.cfg.Timeout
		return
	}
	k.peers = k.rings.holders(now, r, k.peers[:0])
	holders := k.peers
	if !slices.Contains(holders, k.cfg.Self) {
		h.since, h.mature, u.eager = now, false, eagerMax
		return
	}
	h.reconsider(now, k.cfg.CellMax, k.cfg.Lifetime)
	k.chase(now, h, out)
	u.round++
	u.open, u.hops = 1, 0 // the round itself, until all questions are asked
	u.amiss, u.stray, u.noted = false, false, false
	if !h.mature {
		for _, site := range holders {
			k.compare(now, h, site, out)
		}
		k.displace(h, r, holders, out)
	}
	if !h.cell.IsRoot() && !h.life.Leaves() {
		if !u.routed || now >= u.reroute {
			u.way = trie.Prefix{}
			u.routing = min(max(2*u.routing, routeMin*k.cfg.Lifetime), spanMax*k.cfg.Lifetime)
			u.reroute = now + u.routing - k.jitter(u.routing/4)
		} else {
			u.way = u.parent
		}
		k.report(now, h, u.routed && u.way == u.parent, out)
	}
	k.conclude(now, h)
}

// chase tells the sites of strays where their quotes belong.
func (k *keeper) chase(now grid.Time, h *holding, out *grid.Outbox) {
	if h.fences.Len() == 0 {
		return
	}
	fences, _ := h.fences.List()
	for i := range h.entries {
		e := &h.entries[i]
		to, moved := h.fences.Way(e.at, trie.Prefix{})
		if !moved || now >= e.expires || e.guest {
			continue
		}
		r := Receipt{Cell: h.cell, Moved: true, To: to, Fences: fences}
		if e.quote.Site == k.cfg.Self {
			k.own(now, e.quote.Sequence, &r, out)
		} else {
			k.answerOne(e.quote.Site, e.quote.Sequence, r, out)
		}
	}
}

// compare asks another holder how the cell stands there.
func (k *keeper) compare(now grid.Time, h *holding, site grid.SiteID, out *grid.Outbox) {
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
// quotes any more.
func (k *keeper) displace(h *holding, r *ring, holders []grid.SiteID, out *grid.Outbox) {
	i := slices.IndexFunc(r.peers, func(p grid.SiteID) bool { return p != k.cfg.Self && !slices.Contains(holders, p) })
	if i >= 0 {
		m := k.scans.New()
		*m = Scan{Cell: h.cell} // the answer has token 0, and nobody waits for it
		out.Send(r.peers[i], m)
	}
}

// compared takes notice that another site thinks that it holds a cell, too. If this
// one did not know, it may not be a holder any more.
func (k *keeper) compared(now grid.Time, from grid.SiteID, c cell, out *grid.Outbox) {
	h, r := k.holding(c), k.rings.list[c]
	if h == nil || r == nil || slices.Contains(r.peers[:min(len(r.peers), k.cfg.Replicas)], from) {
		return
	}
	if h.mature {
		k.doubt(now, h)
	}
	r.fresh = min(r.fresh, now)
	k.rings.ring(now, c, out)
}

// report reports the cell to a holder of the cell that u.way leads to, or, once
// that is known to be the parent, to all of them.
func (k *keeper) report(now grid.Time, h *holding, all bool, out *grid.Outbox) {
	u := &h.upkeep
	r := k.rings.ring(now, cell{h.cell.attribute, u.way}, out)
	if !r.usable(now) {
		u.next, u.stray = min(u.next, now+k.cfg.Timeout), true
		return
	}
	holders := k.rings.holders(now, r, nil)
	if !all {
		site := k.rings.choice(r, holders)
		if slices.Contains(holders, k.cfg.Self) {
			site = k.cfg.Self
		}
		holders = []grid.SiteID{site}
	}
	purpose := forWay
	if all {
		purpose = forKeep
	}
	told := k.rings.list[h.cell].told(k.cfg.Replicas)
	var says *trie.Summary
	if u.summary, u.said = h.summary(now); u.said {
		s := u.summary // the message's own
		says = &s
	}
	for _, site := range holders {
		m := Report{Cell: r.cell, Child: h.cell.Prefix, Holders: told, Summary: says}
		if site == k.cfg.Self {
			reply := k.note(now, k.cfg.Self, &m)
			u.open++
			k.onReported(now, request{purpose: purpose, site: site, cell: h.cell, round: u.round}, &reply, out)
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
func (k *keeper) question(now grid.Time, h *holding, why purpose, site grid.SiteID) (token uint64) {
	token = k.requests.add(request{purpose: why, site: site, cell: h.cell, round: h.upkeep.round, deadline: now + k.cfg.Timeout})
	if token == 0 {
		h.upkeep.amiss, h.upkeep.stray = true, true
	} else {
		h.upkeep.open++
	}
	return token
}

// asker returns the holding that a request was made for, if that round goes on.
func (k *keeper) asker(q request) *holding {
	h := k.holding(q.cell)
	if h == nil || h.upkeep.round != q.round || h.upkeep.open == 0 {
		return nil
	}
	return h
}

// onSum takes another holder's word of how the cell stands there.
func (k *keeper) onSum(now grid.Time, q request, p *Page) {
	if h := k.asker(q); h != nil {
		count, sum := h.stand(now)
		h.upkeep.amiss = h.upkeep.amiss || !p.Held || p.Count != count || p.Sum != sum || p.HasFences
		k.conclude(now, h)
	}
}

// onReported takes the answer to a report.
func (k *keeper) onReported(now grid.Time, q request, p *Reported, out *grid.Outbox) {
	h := k.asker(q)
	if h == nil {
		return
	}
	u := &h.upkeep
	switch {
	case p.Moved && u.way.Covers(p.To) && p.To.Covers(h.cell.Prefix) && u.hops < hopsMax:
		u.hops++
		u.way, u.routed = p.To, false
		k.rings.hint(now, cell{h.cell.attribute, p.To}, p.Holders)
		k.report(now, h, false, out)
	case p.Moved: // somebody else has said so already
	case q.purpose == forWay:
		u.routed, u.parent = true, u.way
		k.report(now, h, true, out)
	default:
		if r := k.rings.list[cell{h.cell.attribute, u.parent}]; r != nil {
			k.rings.compareRing(now, r, q.site, p.Ring)
		}
		u.noted = true
		u.stray = u.stray || p.Strays > 0
		for _, f := range p.Fences {
			if h.cell.Covers(f) {
				h.fences.Add(f, now+k.cfg.Lifetime)
			}
		}
	}
	k.conclude(now, h)
}

// unanswered notes that a question went unanswered.
func (k *keeper) unanswered(now grid.Time, q request) {
	if h := k.asker(q); h != nil {
		if q.purpose == forSum {
			h.upkeep.amiss = true
		} else {
			h.upkeep.stray = true
			if h.upkeep.retries > 0 {
				h.upkeep.retries--
				k.hurry(h, now+k.cfg.Timeout/4)
			}
		}
		k.conclude(now, h)
	}
}

// conclude notes that a question of the round is done with, and with the last one
// draws the conclusion.
func (k *keeper) conclude(now grid.Time, h *holding) {
	u := &h.upkeep
	if u.open--; u.open > 0 {
		return
	}
	u.clear = !u.stray && (u.noted || h.cell.IsRoot())
	if u.clear && !u.amiss || now-h.since >= matureAge*k.cfg.Lifetime/2 {
		h.mature = true
	}
}
