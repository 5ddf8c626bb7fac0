package lease

import (
	"fmt"

	"gridnode/grid"
)

// Relation is what a neighbour is to a site (Delegated MatchMaking §4.1).
type Relation uint8

// Relations. In this order a site looks for processors: what is near comes first
// ("the load is kept local as much as possible", §2.1).
const (
	Sibling Relation = iota // under the same parent
	Child                   // below this site
	Parent                  // above it
)

var relationNames = [...]string{"sibling", "child", "parent"}

// String returns the relation's name in configuration files and tables.
func (r Relation) String() string { return relationNames[r] }

// ParseRelation is the inverse of String.
func ParseRelation(s string) (Relation, error) {
	for r, name := range relationNames {
		if s == name {
			return Relation(r), nil
		}
	}
	return 0, fmt.Errorf("relation %q: want sibling, child or parent", s)
}

// Link is a neighbour: a site that requests may be delegated to.
type Link struct {
	Site grid.SiteID
	Relation
}

// LinksMax bounds the links of a site.
const LinksMax = 1024

// CheckLinks returns an error that names the first link that self cannot have: to
// itself, to one site twice, or to a second parent.
func CheckLinks(self grid.SiteID, links []Link) error {
	if len(links) > LinksMax {
		return fmt.Errorf("lease: %d links, at most %d: %w", len(links), LinksMax, ErrBounds)
	}
	known := make(map[grid.SiteID]Relation, len(links))
	var parent grid.SiteID
	for _, l := range links {
		switch before, twice := known[l.Site]; {
		case l.Site == "" || l.Relation > Parent:
			return fmt.Errorf("lease: link to %q as %d: want a site and a relation: %w", l.Site, l.Relation, ErrBounds)
		case l.Site == self:
			return fmt.Errorf("lease: %s cannot be its own %s: %w", self, l.Relation, ErrLoop)
		case twice:
			return fmt.Errorf("lease: %s is linked as %s and as %s: %w", l.Site, before, l.Relation, ErrLoop)
		case l.Relation == Parent && parent != "":
			return fmt.Errorf("lease: both %s and %s are linked as parent: %w", parent, l.Site, ErrLoop)
		}
		known[l.Site] = l.Relation
		if l.Relation == Parent {
			parent = l.Site
		}
	}
	return nil
}
