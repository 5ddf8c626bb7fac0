package directory

import "gridnode/grid"

// guide asks a holder of the lowest cell above that is known for the holders of a cell
// of which nothing is known, and so on downwards: a few messages instead of the router's
// tens, as a quote whose value changes comes into ever new cells. Who leads no further
// is not asked again; then the router is.
func (d *Directory) guide(now grid.Time, c cell, out *grid.Outbox) {
	r := d.aRing(now, c)
	if c.IsRoot() || len(r.peers) > 0 || r.asked != grid.Never {
		return
	}
	m := &d.maps[c.attribute]
	above := m.Find(c.Bits, nil)
	for above.Length > 0 && (above.Length >= c.Length || !d.knows(cell{c.attribute, above.Prefix})) {
		above = m.Get(above.Above)
	}
	from := d.rings[cell{c.attribute, above.Prefix}]
	if from == nil || len(from.peers) == 0 || int(above.Length) < r.guided {
		return
	}
	r.guided = int(above.Length) + 1
	if h := d.holding(from.cell); h != nil {
		for _, hint := range h.hints(c.Bits, false, nil) {
			d.hint(now, cell{c.attribute, hint.Cell}, hint.Holders)
		}
		d.guide(now, c, out)
		return
	}
	d.sites = d.holders(now, from, d.sites[:0])
	site := d.choice(from, d.sites)
	if site == d.cfg.Self {
		return
	}
	token := d.requests.add(request{purpose: forHint, site: site, cell: c, deadline: now + d.cfg.Timeout})
	if token == 0 {
		return
	}
	r.asked = now // whoever wants to know waits for it
	s := d.scans.New()
	*s = Scan{Token: token, Cell: from.cell, At: c.Bits, Limit: 1}
	out.Send(site, s)
}

// onGuided takes the answer, or, with none, goes on without it.
func (d *Directory) onGuided(now grid.Time, c cell, p *Page, out *grid.Outbox) {
	r := d.rings[c]
	if r == nil {
		return
	}
	r.asked = grid.Never
	if p != nil && p.Cell.attribute == c.attribute {
		d.maps[c.attribute].Learn(p.Cell.Prefix, p.Fences)
		for i := range p.Hints {
			d.hint(now, cell{c.attribute, p.Hints[i].Cell}, p.Hints[i].Holders)
		}
	}
	if len(r.peers) == 0 {
		d.guide(now, c, out)
	}
	switch {
	case len(r.peers) > 0:
		d.goOn(now, r, out)
	case r.asked == grid.Never:
		d.lookUp(now, r, out)
	}
}
