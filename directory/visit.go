package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// inquire asks the holders of the cell visited as far as that is necessary, and
// reports whether the visit is over.
func (sk *seeker) inquire(now grid.Time, q *query, out *grid.Outbox) (over bool) {
	v := &q.visit
	for !sk.sure(now, q) {
		before := len(out.Keys)
		r := sk.rings.forQuery(now, cell{q.ask.Attribute, v.cell}, out)
		sk.counts.QueryLookups += int64(len(out.Keys) - before)
		if len(r.peers) == 0 {
			sk.rings.wait(r.cell, q.id)
			return false
		}
		sk.sites = sk.rings.holders(now, r, sk.sites[:0])
		if slices.Contains(sk.sites, sk.cfg.Self) && !slices.Contains(v.asked, sk.cfg.Self) {
			v.asked = append(v.asked, sk.cfg.Self)
			scan := sk.scan(q, r)
			p := sk.holder.onScan(now, sk.cfg.Self, &scan)
			if sk.weigh(now, q, sk.cfg.Self, p, p.Mature); p.Mature {
				v.words = replicasMax // this site believes itself
			}
			continue // before anybody else is asked: it costs nothing
		}
		left := slices.DeleteFunc(sk.sites, func(s grid.SiteID) bool { return slices.Contains(v.asked, s) })
		switch {
		case q.glance && (v.heard || v.open == 0 && len(v.asked) > 0):
			return true
		case v.mature && v.open == 0 && len(left) == 0:
			v.mature = sk.carries(v, r)
			return true
		case v.mature && (len(left) == 0 || v.words+v.open > sk.cfg.Witnesses):
			return false
		case v.mature:
			sk.sendScan(now, q, r, sk.rings.choice(r, left), out)
		case v.open > 0 && (len(left) == 0 || !v.young):
			return false
		case len(left) > 0 && v.young: // one was not enough: all others at once
			v.alone = false
			for _, site := range left {
				sk.sendScan(now, q, r, site, out)
			}
		case len(left) > 0:
			site := sk.rings.choice(r, left)
			if len(v.asked) == 0 {
				if mirror, via, ok := sk.rings.mirror(now, r); ok {
					site, v.mirror, v.via = mirror, mirror, via
				}
			}
			v.asks = sk.asks(q, r)
			v.leaned = sk.cfg.Witnesses > 0 && !q.glance && r.vouches(now, site, v.asks)
			v.alone = q.glance || sk.cfg.Witnesses == 0 || v.leaned
			sk.sendScan(now, q, r, site, out)
			for _, other := range left { // at the same time, as their answers are waited for anyway
				if !v.alone && v.open <= sk.cfg.Witnesses && !slices.Contains(v.asked, other) {
					sk.sendScan(now, q, r, other, out)
				}
			}
		case v.renewed || v.held && now-r.named < 2*sk.cfg.Timeout || v.agreed > 0 && v.agreed == sk.others(v.asked):
			return true
		case sk.cfg.Witnesses > 0 && r.named > 0 && now-r.named < sk.cfg.Lifetime/vouchShare:
			return true // it may be one that a liar has told of: the router was asked lately
		default: // nobody is mature: perhaps others hold the cell by now
			v.renewed = true
			if !v.held {
				v.asked = v.asked[:0]
			}
			sk.rings.wait(r.cell, q.id)
			before := len(out.Keys)
			sk.rings.lookUp(now, r, out)
			sk.counts.QueryLookups += int64(len(out.Keys) - before)
			return false
		}
	}
	sk.vouch(now, q)
	return true
}

// sure reports whether a visit has told enough: a mature holder has answered, and as many
// witnesses as are wanted, unless its word is enough.
func (sk *seeker) sure(now grid.Time, q *query) bool {
	v := &q.visit
	if v.leaned && v.words > 0 {
		r := sk.rings.list[cell{q.ask.Attribute, v.cell}]
		v.leaned, v.alone = false, r != nil && r.vouches(now, v.first, v.asks) && r.vouched.said == v.said
	}
	return v.mature && (q.glance || v.alone || v.words > sk.cfg.Witnesses)
}

// carries reports whether enough of those who have answered call themselves mature. Where
// members may lie, most must: else one could say of a cell that is not there, or that others
// have just taken over, that it has all quotes in it. In a federation of two there is only
// one other to ask, whose word is enough for a site that has just started.
func (sk *seeker) carries(v *visit, r *ring) bool {
	return sk.cfg.Witnesses == 0 || v.words == replicasMax || 2*v.words > v.answers || v.words == sk.others(r.peers)
}

// asks returns a digest of what a holder is asked.
func (sk *seeker) asks(q *query, r *ring) uint64 {
	s := sk.scan(q, r)
	h := s.At.Hi
	for _, x := range []uint64{
		s.At.Lo, uint64(s.Limit), uint64(s.Filter.PriceMax), uint64(s.Filter.SpeedMin), uint64(s.Filter.FreeMin), uint64(s.Filter.ProcessorsMin),
	} {
		h = h*0x9e3779b97f4a7c15 ^ x
	}
	if s.Descending {
		h++
	}
	if s.Filter.ForeignOnly {
		h += 2
	}
	if s.Filter.GPUs.Count > 0 {
		h = h*0x9e3779b97f4a7c15 ^ spreadOf(grid.SiteID(s.Filter.GPUs.String()))
	}
	return h
}

// vouchShare of a lifetime is how long a holder's word is enough once witnesses have said
// the same, if it is asked the same and says the same. A liar may hide for as long what is new.
const vouchShare = 8

// vouch notes that witnesses have said what the first holder did: for a while its word is
// enough, as far as they have heard it.
func (sk *seeker) vouch(now grid.Time, q *query) {
	v := &q.visit
	r := sk.rings.list[cell{q.ask.Attribute, v.cell}]
	if r == nil || v.alone || v.differ || v.young || v.first == "" || v.words <= sk.cfg.Witnesses || v.words >= replicasMax {
		return
	}
	r.vouched = &vouched{v.first, now + sk.cfg.Lifetime/vouchShare, v.asks, v.said}
	if v.first != v.mirror {
		r.preferred = v.first
	}
}

// others returns how many of some sites are not this one.
func (sk *seeker) others(sites []grid.SiteID) int {
	if slices.Contains(sites, sk.cfg.Self) {
		return len(sites) - 1
	}
	return len(sites)
}

// scan returns the question of a query to a holder.
func (sk *seeker) scan(q *query, r *ring) Scan {
	s := Scan{Cell: r.cell, At: q.at, Descending: q.ask.Descending, Filter: q.ask.Filter, Ring: r.digest}
	s.Limit = int32(min(q.ask.Limit-q.covered(), PageMax))
	if f := sk.maps[q.ask.Attribute].Get(r.cell.Prefix); f != nil && !q.glance {
		s.Fences = f.Digest
	}
	return s
}

// sendScan asks a holder.
func (sk *seeker) sendScan(now grid.Time, q *query, r *ring, site grid.SiteID, out *grid.Outbox) {
	v := &q.visit
	v.asked = append(v.asked, site)
	token := sk.requests.add(request{purpose: forScan, site: site, query: q.id, round: v.number, deadline: now + sk.cfg.Timeout})
	if token == 0 {
		return
	}
	m := sk.scans.New()
	*m = sk.scan(q, r)
	m.Token = token
	if site == v.mirror {
		m.Via = v.via
	}
	out.Send(site, m)
	v.open++
	q.messages++
}

// onPage takes a page that a query has asked for.
func (sk *seeker) onPage(now grid.Time, r request, p *Page, out *grid.Outbox) {
	q := sk.queries[r.query]
	if q == nil {
		return
	}
	q.messages++
	if q.visit.number != r.round {
		return // the visit ended without it
	}
	q.visit.open--
	enough := p.Mature
	ring := sk.rings.list[cell{q.ask.Attribute, q.visit.cell}]
	if ring != nil && p.Held {
		same := sk.rings.compare(now, ring, r.site, p.Ring, p.Holders)
		enough = enough && same // else one of the two knows better who holds the cell
		if same && p.Ring != 0 {
			q.visit.agreed++
		}
	}
	credible, honest := sk.weigh(now, q, r.site, p, enough)
	switch {
	case !honest:
		sk.rings.suspects.distrust(now, r.site)
	case enough && credible && ring != nil:
		ring.heed(r.site, r.site == q.visit.mirror, p.Mirrors)
		if q.visit.first == "" {
			q.visit.first = r.site
		}
	}
	if r.site == q.visit.mirror {
		if !enough || !honest {
			ring.forgo(r.site) // a holder is asked next
		}
	} else {
		q.visit.young = q.visit.young || !enough || !credible
	}
	sk.run(now, q, out)
}

// unanswered goes on without a page.
func (sk *seeker) unanswered(now grid.Time, r request, out *grid.Outbox) {
	if q := sk.queries[r.query]; q != nil && q.visit.number == r.round {
		if r.site == q.visit.mirror {
			sk.rings.list[cell{q.ask.Attribute, q.visit.cell}].forgo(r.site)
		}
		q.visit.open--
		sk.run(now, q, out)
	}
}

// weigh takes the answer of a holder of the cell visited. enough says that its word
// alone is enough, if it is credible.
func (sk *seeker) weigh(now grid.Time, q *query, from grid.SiteID, p *Page, enough bool) (credible, honest bool) {
	v := &q.visit
	m := &sk.maps[q.ask.Attribute]
	if p.HasFences {
		if sk.cfg.Witnesses == 0 || from == sk.cfg.Self {
			m.Learn(v.cell, p.Fences)
		} else if p.Held {
			v.fences = append(v.fences, p.Fences...)
		}
		for i := range p.Hints {
			sk.rings.hint(now, cell{q.ask.Attribute, p.Hints[i].Cell}, from, p.Hints[i].Holders)
		}
	}
	cut, edge := false, trie.Position{}
	credible, honest = true, true
	for _, quote := range p.Quotes {
		at := quote.at(q.ask.Attribute)
		if q.before(at, q.at) || cut && !q.before(edge, at) || !q.ask.Filter.Match(quote) || quote.impossible(now) {
			sk.counts.Rejected++ // a holder that does not keep to the question
			honest = false
			continue
		}
		cut, edge = true, at
		v.idle = false
		if now+sk.cfg.Timeout >= quote.Expires() {
			credible = false // it was renewed long ago, if its site lives: others may have heard of that
		}
		switch newest := sk.learn(quote); {
		case newest == nil:
			q.add(candidate{at, quote})
		case newest.Withdrawn || newest.at(q.ask.Attribute) != at:
			sk.counts.Outdated++
			credible = false
			fallthrough
		default:
			if q.wants(newest) {
				q.add(candidate{newest.at(q.ask.Attribute), newest})
			}
		}
	}
	credible = credible && honest
	mature := enough && credible
	if mature {
		if !slices.Contains(q.glanced, v.cell) {
			q.glanced = append(q.glanced, v.cell)
		}
		sk.passOver(q, p)
	}
	cut = cut && p.More
	if mature && !v.mature || !v.heard {
		v.cut, v.edge = cut, edge
	} else if cut && (!v.cut || q.before(edge, v.edge)) {
		v.cut, v.edge = true, edge
	}
	if v.answers++; p.Held {
		v.holders++
	}
	v.heard, v.held, v.mature = true, v.held || p.Held, v.mature || mature
	return credible, honest
}

// passOver takes notice of the cells that a mature holder calls barren. Where witnesses are
// asked only what all say counts.
func (sk *seeker) passOver(q *query, p *Page) {
	v := &q.visit
	switch {
	case sk.cfg.Witnesses == 0:
		q.barren = append(q.barren, p.Barren[:min(len(p.Barren), barrenQueryMax-len(q.barren))]...)
	case q.glance:
	case v.words == 0:
		v.barren = slices.Clone(p.Barren)
	default:
		v.barren = slices.DeleteFunc(v.barren, func(x trie.Prefix) bool { return !slices.Contains(p.Barren, x) })
	}
	v.words++
	if sk.cfg.Witnesses == 0 {
		return
	}
	said := trie.Digest(p.Barren)
	if p.More {
		said++
	}
	for _, quote := range p.Quotes {
		at := quote.at(q.ask.Attribute) // not its sequence: a newer load that changes no order is no lie
		said = said*0x9e3779b97f4a7c15 + at.Hi ^ at.Lo
	}
	v.differ = v.differ || v.words > 1 && said != v.said
	v.said = said
}

// wants reports whether a quote belongs into the answer.
func (q *query) wants(quote *Quote) bool {
	at := quote.at(q.ask.Attribute)
	return !quote.Withdrawn && q.ask.Filter.Match(quote) && !q.before(at, q.from) && !q.before(q.limit, at)
}
