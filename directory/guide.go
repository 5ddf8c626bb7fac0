package directory

import "gridnode/grid"

// guide finds who holds a cell without the router. It takes the pages that it has asked
// for; it puts out scans, and when they lead nowhere a look-up.
type guide struct {
	*shared
	rings  *rings
	holder *holder       // for the cells that this site holds itself
	sites  []grid.SiteID // reused
}

// lead asks a holder of the lowest cell above that is known for the holders of a cell
// of which nothing is known, and so on downwards: a few messages instead of the router's
// tens, as a quote whose value changes comes into ever new cells. Who leads no further
// is not asked again; then the router is. Where members may lie the router is at once.
func (g *guide) lead(now grid.Time, c cell, out *grid.Outbox) {
	r := g.rings.at(now, c)
	if c.IsRoot() || len(r.peers) > 0 || r.begun != grid.Never {
		return
	}
	m := &g.maps[c.attribute]
	above := m.Find(c.Bits, nil)
	for above.Length > 0 && (above.Length >= c.Length || !g.rings.knows(cell{c.attribute, above.Prefix})) {
		above = m.Get(above.Above())
	}
	from := g.rings.list[cell{c.attribute, above.Prefix}]
	if from == nil || len(from.peers) == 0 || above.Length < r.guided {
		return
	}
	r.guided = above.Length + 1
	if h := g.holder.holding(from.cell); h != nil {
		for _, hint := range h.hints(c.Bits, false, nil) {
			g.rings.hint(now, cell{c.attribute, hint.Cell}, g.cfg.Self, hint.Holders)
		}
		g.lead(now, c, out)
		return
	}
	g.sites = g.rings.holders(now, from, g.sites[:0])
	site := g.rings.choice(from, g.sites)
	if site == g.cfg.Self || g.cfg.Witnesses > 0 {
		return
	}
	token := g.requests.add(request{purpose: forHint, site: site, cell: c, deadline: now + g.cfg.Timeout})
	if token == 0 {
		return
	}
	r.begun = now // whoever wants to know waits for it
	s := g.scans.New()
	*s = Scan{Token: token, Cell: from.cell, At: c.Bits, Limit: 1}
	out.Send(site, s)
}

// onPage takes the answer, or, with none, goes on without it. If the holders are known
// now it returns their ring.
func (g *guide) onPage(now grid.Time, c cell, from grid.SiteID, p *Page, out *grid.Outbox) *ring {
	r := g.rings.list[c]
	if r == nil {
		return nil
	}
	r.begun = grid.Never
	if p != nil && p.Cell.attribute == c.attribute {
		g.maps[c.attribute].Learn(p.Cell.Prefix, p.Fences)
		for i := range p.Hints {
			g.rings.hint(now, cell{c.attribute, p.Hints[i].Cell}, from, p.Hints[i].Holders)
		}
	}
	if len(r.peers) == 0 {
		g.lead(now, c, out)
	}
	switch {
	case len(r.peers) > 0:
		return r
	case r.begun == grid.Never:
		g.rings.lookUp(now, r, out)
	}
	return nil
}
