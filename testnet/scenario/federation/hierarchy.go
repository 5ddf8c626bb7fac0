package federation

import (
	"gridnode/grid"
	"gridnode/lease"
)

// Hierarchy returns the links of delegation of a site among n: the first one is above
// all, and so many sites are below each. Those below the same one are siblings.
func Hierarchy(n, below int, id func(site int) grid.SiteID) func(site int) []lease.Link {
	return func(site int) (links []lease.Link) {
		parent := (site - 1) / below
		if site > 0 {
			links = append(links, lease.Link{Site: id(parent), Relation: lease.Parent})
		}
		for other := 1; other < n; other++ {
			switch {
			case other == site:
			case (other-1)/below == site:
				links = append(links, lease.Link{Site: id(other), Relation: lease.Child})
			case site > 0 && (other-1)/below == parent:
				links = append(links, lease.Link{Site: id(other), Relation: lease.Sibling})
			}
		}
		return links
	}
}
