package member

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"gridnode/grid"
)

// namedUsual is how many sites a router names, if RollConfig.Named does not say.
const namedUsual = 20

// window returns how many of the sites that a router names come by turns: those at the edge
// are not the same for everybody, as look-ups that have begun elsewhere miss other ones.
func (r *Roll) window() int { return cmp.Or(r.cfg.Named, namedUsual) * 4 / 5 }

// turn returns when a member has its turn to hold something, among those near it: the least
// comes first. It follows from its lot: a site chooses its key, and could choose one next to
// a cell, but not this. To be nearer than others is of no use.
func (m *Member) turn(key grid.Key) uint64 {
	lot := m.Lot()
	h := sha256.Sum256(append(key[:], lot[:]...))
	return binary.BigEndian.Uint64(h[:])
}

// seat is what decides on a member's place among those who may hold something.
type seat struct {
	site  grid.SiteID
	org   string
	round int // how many of its organisation come before it
	turn  uint64
}

// Seat puts the sites that are nearest to a key, as a router names them, nearest first, into
// the order in which they are to hold it. Of each organisation comes the first one before
// the second one of any other: none has more of the first seats than it must. Among these,
// members come in the order of their turns, and those at the edge last. Sites of which nothing is known
// come behind all these, as they were; members without the right to hold are left out. The
// result is a new slice.
func (r *Roll) Seat(now grid.Time, key grid.Key, sites []grid.SiteID) []grid.SiteID {
	seats := make([]seat, 0, len(sites))
	var unknown []grid.SiteID
	for i, site := range sites {
		m := r.Known(site, now)
		if site == r.cfg.Self {
			m = r.cfg.Own
		}
		switch {
		case m == nil:
			unknown = append(unknown, site)
		case !m.Rights.Has(MayHold):
		case i < r.window():
			seats = append(seats, seat{site: site, org: m.organisation(), turn: m.turn(key)})
		default: // it is needed if there are too few organisations in the window
			seats = append(seats, seat{site: site, org: m.organisation(), turn: math.MaxUint64})
		}
	}
	slices.SortStableFunc(seats, func(a, b seat) int { return cmp.Compare(a.turn, b.turn) })
	seen := make(map[string]int)
	for i := range seats {
		seats[i].round = seen[seats[i].org]
		seen[seats[i].org]++
	}
	slices.SortStableFunc(seats, func(a, b seat) int { return a.round - b.round })
	seated := make([]grid.SiteID, 0, len(sites))
	for _, s := range seats {
		seated = append(seated, s.site)
	}
	return append(seated, unknown...)
}

// organisation returns who answers for a member: its organisation, or, if it has none, the
// member itself.
func (m *Member) organisation() string {
	if m.Org != "" {
		return "org " + m.Org
	}
	return "site " + string(m.Site)
}

// Renewed takes this site's own certificate when it is a new one. If the one before had ended,
// it is a member again from the next Step on.
func (r *Roll) Renewed(own *Member) {
	if before := r.cfg.Own; before != nil && before.Expires <= own.Issued {
		r.changed = append(r.changed, Change{Site: own.Site, In: true})
	}
	r.cfg.Own = own
}
