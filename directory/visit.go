package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// inquire asks the holders of the cell visited as far as that is necessary, and
// reports whether the visit is over.
func (d *Directory) inquire(now grid.Time, q *query, out *grid.Outbox) (over bool) {
	v := &q.visit
	for !v.mature {
		before := len(out.Keys)
		r := d.knownRing(now, cell{q.ask.Attribute, v.cell}, out)
		d.QueryLookups += int64(len(out.Keys) - before)
		if len(r.peers) == 0 {
			r.wait(q.id)
			return false
		}
		d.sites = d.holders(now, r, d.sites[:0])
		if slices.Contains(d.sites, d.cfg.Self) && !slices.Contains(v.asked, d.cfg.Self) {
			v.asked = append(v.asked, d.cfg.Self)
			scan := d.scan(q, r)
			p := d.onScan(now, d.cfg.Self, &scan)
			d.onPage(now, q, p, p.Mature)
			continue // before anybody else is asked: it costs nothing
		}
		left := slices.DeleteFunc(d.sites, func(s grid.SiteID) bool { return slices.Contains(v.asked, s) })
		switch {
		case q.view && (v.heard || v.open == 0 && len(v.asked) > 0):
			return true
		case v.open > 0 && (len(left) == 0 || !v.young):
			return false
		case len(left) > 0 && v.young: // one was not enough: all others at once
			for _, site := range left {
				d.sendScan(now, q, r, site, out)
			}
		case len(left) > 0:
			site, via, isMirror := d.mirror(now, q, r)
			if isMirror {
				v.mirror, v.via = site, via
			} else {
				site = d.choice(r, left)
			}
			d.sendScan(now, q, r, site, out)
		case v.renewed || v.held && now-r.heard < 2*d.cfg.Timeout || v.agreed > 0 && v.agreed == d.others(v.asked):
			return true
		default: // nobody is mature: perhaps others hold the cell by now
			v.renewed = true
			if !v.held {
				v.asked = v.asked[:0]
			}
			r.wait(q.id)
			before := len(out.Keys)
			d.lookUp(now, r, out)
			d.QueryLookups += int64(len(out.Keys) - before)
			return false
		}
	}
	return true
}

// others returns how many of some sites are not this one.
func (d *Directory) others(sites []grid.SiteID) int {
	if slices.Contains(sites, d.cfg.Self) {
		return len(sites) - 1
	}
	return len(sites)
}

// choice returns the holder to ask first: the one that answered last, or else one
// that other sites do not choose as well.
func (d *Directory) choice(r *ring, holders []grid.SiteID) grid.SiteID {
	if slices.Contains(holders, r.preferred) {
		return r.preferred
	}
	return holders[d.spread%uint64(len(holders))]
}

// scan returns the question of a query to a holder.
func (d *Directory) scan(q *query, r *ring) Scan {
	s := Scan{Cell: r.cell, At: q.at, Descending: q.ask.Descending, Filter: q.ask.Filter, Ring: r.digest}
	s.Limit = int32(min(q.ask.Limit-q.covered(), PageMax))
	if f := d.maps[q.ask.Attribute].Get(r.cell.Prefix); f != nil && !q.view {
		s.Fences = f.Digest
	}
	return s
}

// sendScan asks a holder.
func (d *Directory) sendScan(now grid.Time, q *query, r *ring, site grid.SiteID, out *grid.Outbox) {
	v := &q.visit
	v.asked = append(v.asked, site)
	token := d.requests.add(request{purpose: forScan, site: site, query: q.id, round: v.number, deadline: now + d.cfg.Timeout})
	if token == 0 {
		return
	}
	m := d.scans.New()
	*m = d.scan(q, r)
	m.Token = token
	if site == v.mirror {
		m.Via = v.via
	}
	out.Send(site, m)
	v.open++
	q.messages++
}

// onPage takes the answer of a holder of the cell visited. enough says that its word
// alone is enough, if it is credible.
func (d *Directory) onPage(now grid.Time, q *query, p *Page, enough bool) (credible, honest bool) {
	v := &q.visit
	m := &d.maps[q.ask.Attribute]
	if p.HasFences {
		m.Learn(v.cell, p.Fences)
		for i := range p.Hints {
			d.hint(now, cell{q.ask.Attribute, p.Hints[i].Cell}, p.Hints[i].Holders)
		}
	}
	cut, edge := false, trie.Position{}
	credible, honest = true, true
	for _, quote := range p.Quotes {
		at := quote.at(q.ask.Attribute)
		if q.before(at, q.at) || cut && !q.before(edge, at) || !q.ask.Filter.Match(quote) || quote.impossible(now) {
			d.Rejected++ // a holder that does not keep to the question
			honest = false
			continue
		}
		cut, edge = true, at
		v.idle = false
		switch newest := d.learn(quote); {
		case newest == nil:
			q.add(candidate{at, quote})
		case newest.Withdrawn || newest.at(q.ask.Attribute) != at:
			d.Outdated++
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
		if !slices.Contains(q.viewed, v.cell) {
			q.viewed = append(q.viewed, v.cell)
		}
		q.barren = append(q.barren, p.Barren[:min(len(p.Barren), barrenQueryMax-len(q.barren))]...)
	}
	cut = cut && p.More
	if mature || !v.heard {
		v.cut, v.edge = cut, edge
	} else if cut && (!v.cut || q.before(edge, v.edge)) {
		v.cut, v.edge = true, edge
	}
	v.heard, v.held, v.mature = true, v.held || p.Held, v.mature || mature
	return credible, honest
}

// wants reports whether a quote belongs into the answer.
func (q *query) wants(quote *Quote) bool {
	at := quote.at(q.ask.Attribute)
	return !quote.Withdrawn && q.ask.Filter.Match(quote) && !q.before(at, q.from) && !q.before(q.limit, at)
}
