package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/internal/wire/wirepb"
)

// Bounds of what is remembered of other sites.
const (
	ringsMax = 2048 // cells whose holders are remembered
	spares   = 4    // sites remembered beyond the holders, to take the place of dead ones
)

// For how long holders are believed.
const (
	spanMax = 8 // lifetimes

	// spanConfirmed is how many times as long as a look-up a holder's word is good that
	// it knows the same holders: whoever deals with them hears when that changes.
	spanConfirmed = 4

	wordsMax = 4 // of who holds a cell that are taken from its holders until the router is asked

	spanQuery = grid.Day         // by queries, as long as one of them says that it has all quotes
	spanAlone = 15 * grid.Second // by a site that finds nobody else; asking then costs no message
)

// ring is what the router says of who holds a cell: the sites nearest to its key.
// It is used without asking again for a span that grows each time the answer is the
// same as before, up to spanMax lifetimes of quotes. So a young federation finds its
// holders quickly, and an old one seldom looks them up: the first of the many sites
// that have to do with a cell to find a new holder publishes there or asks, the new
// holder makes itself known to the others, and those tell all who publish there.
type ring struct {
	cell      cell
	key       grid.Key
	peers     []grid.SiteID // nearest first; empty before the first answer; never changed, as messages share them
	digest    uint64        // of the first Config.Replicas of them
	until     grid.Time     // instant until which peers are believed
	span      grid.Time     // for which the next answer will be believed
	named     grid.Time     // when the router answered last; 0 if it has not
	confirmed grid.Time     // when the router, a holder or a hint last said the same
	adopted   grid.Time     // when a holder's word of who the others are was taken last
	begun     grid.Time     // when the look-up under way began; grid.Never if none is
	usedAt    grid.Time
	preferred grid.SiteID   // the holder that answered last and was mature
	mirrors   []grid.SiteID // who may be asked in the stead of a holder; shared with a message
	vouched   *vouched      // nil: witnesses have agreed with nobody

	// Small ones together: a site of a large federation has dozens of rings.
	words      int32 // of holders about who the others are that were taken since the router answered
	guided     uint8 // bits of the longest cell above whose holder was asked for them, and one
	doubted    bool  // a holder has other ideas since confirmed
	instructed bool  // a holder has said who the mirrors are, or a mirror did not answer
}

// vouched is the holder or mirror that witnesses agreed with last. Its word is enough for a
// while about what they agreed on.
type vouched struct {
	site  grid.SiteID
	until grid.Time
	asked uint64 // digest of the question
	said  uint64 // … and of the answer
}

// show returns who holds a cell, for messages.
func (r *ring) show(replicas int) []grid.SiteID {
	if r == nil {
		return nil
	}
	shown := r.nearest(replicas)
	return shown[:len(shown):len(shown)]
}

// usable reports whether the peers are as good as any: they are out of date for no
// longer than they were believed. Then the router is asked again, but nobody waits.
func (r *ring) usable(now grid.Time) bool { return len(r.peers) > 0 && now < r.until.Add(r.span) }

// holdersDigest returns the digest, or 0 if nothing is known.
func (r *ring) holdersDigest() uint64 {
	if r == nil {
		return 0
	}
	return r.digest
}

// heed takes notice of who a holder, or a mirror in its stead, says may be asked.
func (r *ring) heed(site grid.SiteID, mirror bool, mirrors []grid.SiteID) {
	if !mirror {
		r.preferred = site
	}
	r.mirrors, r.instructed = mirrors, true
}

// forgo makes a holder be asked next time instead of a mirror, and say who its mirrors are.
func (r *ring) forgo(mirror grid.SiteID) {
	if r != nil && (slices.Contains(r.mirrors, mirror) || !r.instructed) {
		r.mirrors, r.instructed = nil, true
	}
}

// vouches reports whether a site's word may be enough, as witnesses have agreed with it
// lately about the same question. It is if it says the same.
func (r *ring) vouches(now grid.Time, site grid.SiteID, asked uint64) bool {
	v := r.vouched
	return v != nil && now < v.until && site == v.site && asked == v.asked
}

// few reports whether the router has named fewer sites than are to hold a cell.
func (r *ring) few(replicas int) bool { return len(r.peers) > 0 && len(r.peers) < replicas }

// nearest returns the sites that hold the cell, as far as is known.
func (r *ring) nearest(replicas int) []grid.SiteID { return r.peers[:min(len(r.peers), replicas)] }

// Ring is what a directory remembers over a restart of who holds a cell: with it a site knows
// whom to publish to and to ask without the router.
type Ring struct {
	Attribute Attribute
	Cell      trie.Prefix
	Holders   []grid.SiteID // nearest first, then those who take their places
}

// RingsMax bounds the rings that are remembered: of each attribute the root's, and that of the cell in
// which the site's own quote is.
const RingsMax = 2 * attributes

// Proto returns the stored form.
func (r *Ring) Proto() *wirepb.RememberedRing {
	return &wirepb.RememberedRing{Cell: cell{r.Attribute, r.Cell}.proto(), Holders: siteTexts(r.Holders)}
}

// OpenRing is the inverse of Proto. What no directory remembers is an error.
func OpenRing(p *wirepb.RememberedRing) (Ring, error) {
	c, err := openCell(p.GetCell())
	if err != nil {
		return Ring{}, err
	}
	holders, err := openHolders(p.GetHolders())
	return Ring{c.attribute, c.Prefix, holders}, err
}

// remembered returns the rings that the site is to know again after a restart.
func (pub *publisher) remembered() (known []Ring) {
	for a := range Attribute(attributes) {
		cells := []cell{root(a)}
		if p := pub.listings[a].in(proper); p != nil && !p.cell.IsRoot() {
			cells = append(cells, p.cell)
		}
		for _, c := range cells {
			if r := pub.rings.list[c]; r != nil && len(r.peers) > 0 {
				known = append(known, Ring{a, c.Prefix, slices.Clone(r.nearest(pub.cfg.Replicas + spares))})
			}
		}
	}
	return known
}
