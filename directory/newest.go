package directory

import "gridnode/grid"

// newest keeps one value per site for a bounded number of sites. When it is full,
// the site that came first makes room.
type newest[V any] struct {
	max    int
	index  map[grid.SiteID]int32
	values []V
	sites  []grid.SiteID
	oldest int
}

// get returns the place of a site's value, or nil.
func (n *newest[V]) get(site grid.SiteID) *V {
	if i, ok := n.index[site]; ok {
		return &n.values[i]
	}
	return nil
}

// put returns the place for a site's value and whether it is new and zero.
func (n *newest[V]) put(site grid.SiteID) (v *V, fresh bool) {
	if v := n.get(site); v != nil {
		return v, false
	}
	if n.index == nil {
		n.index = make(map[grid.SiteID]int32)
	}
	if len(n.values) < n.max {
		n.index[site] = int32(len(n.values))
		var zero V
		n.values = append(n.values, zero)
		n.sites = append(n.sites, site)
		return &n.values[len(n.values)-1], true
	}
	i := n.oldest
	n.oldest = (i + 1) % n.max
	delete(n.index, n.sites[i])
	n.index[site], n.sites[i] = int32(i), site
	var zero V
	n.values[i] = zero
	return &n.values[i], true
}
