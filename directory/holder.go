package directory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Bounds of what a site holds for others.
const (
	holdingsMax  = 4096   // cells
	recordsMax   = 10_000 // copies of quotes in all cells
	publisherMax = 64     // copies of one site's quotes
	crowdFactor  = 4      // a cell keeps at most this many times Config.CellMax copies
)

// holder holds cells for others. It takes publications, scans and reports of cells below,
// and answers them; it puts out what upkeep asks and reports itself. Its timer is the
// next round of upkeep of one of its cells.
type holder struct {
	*shared
	rings *rings
	own   func(now grid.Time, sequence uint64, r *Receipt, out *grid.Outbox) // what it has to tell this site about its own quote

	holdings []*holding // ordered by cell
	recorded int        // copies in all of them
	perSite  map[grid.SiteID]int32
	upkeepAt grid.Time
	voids    []voidLetter  // go out at the end of the call
	peers    []grid.SiteID // reused by inspect
	due      []*holding    // reused by tick
}

func newHolder(sh *shared, rings *rings, own func(grid.Time, uint64, *Receipt, *grid.Outbox)) holder {
	return holder{shared: sh, rings: rings, own: own, upkeepAt: grid.Never}
}

// holding returns a cell held here, or nil.
func (k *holder) holding(c cell) *holding {
	if i, ok := k.seek(c); ok {
		return k.holdings[i]
	}
	return nil
}

func (k *holder) seek(c cell) (int, bool) {
	return slices.BinarySearchFunc(k.holdings, c, func(h *holding, c cell) int { return h.cell.compare(c) })
}

// hold returns a cell, which this site holds from now on, or nil if it holds as
// many as it can.
func (k *holder) hold(now grid.Time, c cell) *holding {
	i, ok := k.seek(c)
	if ok {
		return k.holdings[i]
	}
	if len(k.holdings) >= holdingsMax {
		return nil
	}
	h := &holding{cell: c, lapse: grid.Never}
	h.upkeep.fresh = true
	h.upkeep.prove(now, k.shared)
	k.holdings = slices.Insert(k.holdings, i, h)
	k.upkeepAt = min(k.upkeepAt, h.upkeep.next)
	return h
}

// doubt makes the holder of a cell prove anew that it has all of its quotes, as a copy has
// expired: who left it may be gone, or have other holders since the network was parted.
func (k *holder) doubt(now grid.Time, h *holding) {
	h.upkeep.doubt(now, k.shared)
	k.upkeepAt = min(k.upkeepAt, h.upkeep.next)
	if r := k.rings.list[h.cell]; r != nil {
		r.until = min(r.until, max(now, r.named+min(r.span/4, k.cfg.Lifetime/16)))
	}
}

// standsIn reports whether this site is none of those who hold a cell, and answers at most in the
// place of one that it cannot reach, which publishers may.
func (k *holder) standsIn(h *holding) bool {
	r := k.rings.list[h.cell]
	return r != nil && !k.rings.isHolder(r)
}

// hurry brings the next round of a cell forward.
func (k *holder) hurry(h *holding, at grid.Time) {
	h.upkeep.soon(at)
	k.upkeepAt = min(k.upkeepAt, h.upkeep.next)
}

// count notes one more copy of a site's quotes, unless there are too many.
func (k *holder) count(site grid.SiteID) bool {
	if k.recorded >= recordsMax || k.perSite[site] >= publisherMax {
		return false
	}
	if k.perSite == nil {
		k.perSite = make(map[grid.SiteID]int32)
	}
	k.recorded++
	k.perSite[site]++
	return true
}

func (k *holder) uncount(site grid.SiteID) {
	k.recorded--
	if k.perSite[site]--; k.perSite[site] == 0 {
		delete(k.perSite, site)
	}
}

// contradicted notes what another site knows of who holds a cell that is held here. If
// that is not the same, the router is asked again soon, but not for each such word: the
// less often, the longer it has always said the same. A holder that is new makes itself known.
func (k *holder) contradicted(now grid.Time, c cell, digest uint64) {
	r := k.rings.list[c]
	if r != nil && digest != 0 && digest != r.digest && now-r.named > max(k.cfg.Timeout, k.cfg.Lifetime/64, min(r.span/8, k.cfg.Lifetime)) {
		r.until = min(r.until, now)
		if h := k.holding(c); h != nil {
			k.hurry(h, now+k.cfg.Timeout/4)
		}
	}
}

// Attribute is a field of the quote by which the directory is ordered.
type Attribute uint8

const (
	Price Attribute = iota // micro-credits per hour
	Speed                  // MIPS rating

	attributes = 2
)

var attributeNames = [attributes]string{"price", "speed"}

// String returns the attribute's name.
func (a Attribute) String() string {
	if a >= attributes {
		return fmt.Sprintf("attribute %d", uint8(a))
	}
	return attributeNames[a]
}

// cell names a part of the order of one attribute: that of the positions with a prefix.
type cell struct {
	attribute Attribute
	trie.Prefix
}

func (c cell) compare(d cell) int {
	return cmp.Or(cmp.Compare(c.attribute, d.attribute), c.Prefix.Compare(d.Prefix))
}

// root returns the cell that exists always: whoever knows nothing begins there.
func root(a Attribute) cell { return cell{attribute: a} }

// String prints the attribute and the prefix.
func (c cell) String() string { return c.attribute.String() + "/" + c.Prefix.String() }

// RootKey returns the key by which the sites that hold an attribute's root cell are
// looked up: the replicas nearest to it hold the lowest and highest quotes, and
// where there are few quotes, all of them.
func RootKey(federation string, a Attribute) grid.Key { return root(a).key(federation) }

// key returns the point of the DHT's key space whose nearest sites hold the cell.
func (c cell) key(federation string) grid.Key {
	name := make([]byte, 0, 128)
	name = append(name, "gridnode/cell/"...)
	name = append(name, byte(c.attribute), c.Length)
	name = binary.BigEndian.AppendUint64(name, c.Bits.Hi)
	name = binary.BigEndian.AppendUint64(name, c.Bits.Lo)
	name = append(name, federation...)
	return sha256.Sum256(name)
}

// audit looks at the cells that are held for others.
func (k *holder) audit(now grid.Time) error {
	sum, each := 0, make(map[grid.SiteID]int32)
	for _, h := range k.holdings {
		if sum += len(h.records); len(h.records) > crowdFactor*k.cfg.CellMax {
			return fmt.Errorf("%d copies of quotes are kept in one cell, want %d at most", len(h.records), crowdFactor*k.cfg.CellMax)
		}
		if next := h.upkeep.next; next < k.upkeepAt || next+auditLate < now {
			return fmt.Errorf("cell %v is to be looked at by %v, and the timer is for %v", h.cell, next, k.upkeepAt)
		}
		for i := range h.records {
			if err := h.audit(now, i, k.cfg.Lifetime); err != nil {
				return fmt.Errorf("quote %d of %s in cell %v %w", h.records[i].quote.Sequence, h.records[i].quote.Site, h.cell, err)
			}
			each[h.records[i].quote.Site]++
		}
	}
	if sum != k.recorded || sum > recordsMax || len(k.holdings) > holdingsMax {
		return fmt.Errorf("%d copies of quotes are kept in %d cells, and count as %d", sum, len(k.holdings), k.recorded)
	}
	for site, count := range k.perSite {
		if count > publisherMax || count != each[site] {
			return fmt.Errorf("%d copies of quotes of %s are kept and count as %d, want %d at most", each[site], site, count, publisherMax)
		}
	}
	return nil
}
