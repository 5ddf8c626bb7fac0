package directory

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// Bounds of what is remembered of other sites.
const (
	ringsMax    = 2048 // cells whose holders are remembered
	spares      = 4    // sites remembered beyond the holders, to take the place of dead ones
	suspectsMax = 64   // sites remembered not to answer
	strikesMax  = 2    // requests in a row without an answer that make a site suspect
)

// For how long holders are believed.
const (
	spanMax = 8 // lifetimes

	// spanConfirmed is how many times as long as a look-up a holder's word is good that
	// it knows the same holders: whoever deals with them hears when that changes.
	spanConfirmed = 4

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
	peers     []grid.SiteID // nearest first; empty before the first answer
	digest    uint64        // of the first Config.Replicas of them
	fresh     grid.Time     // instant until which peers are believed
	span      grid.Time     // for which the next answer will be believed
	heard     grid.Time     // when the router answered last; 0 if it has not
	sure      grid.Time     // when the router, a holder or a hint last said the same
	copied    []grid.SiteID // the first Config.Replicas of peers, as messages share them; nil after a change
	doubted   bool          // a holder has other ideas since then
	asked     grid.Time     // when the look-up under way began; grid.Never if none is
	used      grid.Time
	preferred grid.SiteID   // the holder that answered last and was mature
	mirrors   []grid.SiteID // who may be asked in the stead of a holder; shared with a message

	instructed bool // a holder has said who the mirrors are, or a mirror did not answer

	queries []QueryID // that wait for the first answer
	guided  int       // bits of the longest cell above whose holder was asked for them, and one
}

// suspect is a site that did not answer.
type suspect struct {
	site    grid.SiteID
	strikes int
	lied    bool      // hearing from it does not help it
	until   grid.Time // it is passed over until then, if it has strikesMax strikes
}

// ring returns what is known of a cell's holders, and asks the router if that is
// nothing or out of date.
func (d *Directory) ring(now grid.Time, c cell, out *grid.Outbox) *ring {
	r := d.aRing(now, c)
	switch {
	case now < r.fresh:
	case d.trusts(now, r):
		r.fresh = now + d.cfg.Lifetime/2
	default:
		d.lookUp(now, r, out)
	}
	return r
}

// trusts reports whether holders that were not dealt with for long are tried before the
// router is asked: their answers show whether they still are the holders. A site that
// has just come up does not, nor do holders themselves.
func (d *Directory) trusts(now grid.Time, r *ring) bool {
	return len(r.peers) >= d.cfg.Replicas && r.fresh > 0 && !r.doubted && !d.isHolder(r) &&
		!d.isYoung(now) && now-r.sure < spanMax*d.cfg.Lifetime
}

// aRing returns what is known of a cell's holders, if anything.
func (d *Directory) aRing(now grid.Time, c cell) *ring {
	r := d.rings[c]
	if r == nil {
		if len(d.rings) >= ringsMax {
			d.dropRings()
		}
		if d.rings == nil {
			d.rings = make(map[cell]*ring)
		}
		r = &ring{cell: c, key: c.key(d.cfg.Federation), span: d.spanFirst(now), asked: grid.Never}
		d.rings[c] = r
	}
	r.used = now
	return r
}

// spanFirst returns for how long the first answer about a cell is believed: the
// longer, the longer this site has been up. Its federation is at least as old.
func (d *Directory) spanFirst(now grid.Time) grid.Time {
	if d.began == grid.Never {
		d.began = now
	}
	return min(max((now-d.began)/2, 2*d.cfg.Timeout), spanMax*d.cfg.Lifetime)
}

// isYoung reports whether this site has been up for less than a lifetime. Then its
// federation may be as young, and the router may still find new holders at any time.
func (d *Directory) isYoung(now grid.Time) bool { return now-d.began < d.cfg.Lifetime }

// knownRing returns what is known of a cell's holders for a query, which sees for
// itself whether they hold it: the router is asked only if nothing is known.
func (d *Directory) knownRing(now grid.Time, c cell, out *grid.Outbox) *ring {
	r := d.aRing(now, c)
	if len(r.peers) == 0 || r.doubted || now >= r.fresh && d.isHolder(r) || now >= r.fresh.Add(spanQuery) {
		d.lookUp(now, r, out)
	}
	return r
}

// hint takes another site's word of who holds a cell, if nothing is known of it.
func (d *Directory) hint(now grid.Time, c cell, holders []grid.SiteID) {
	if len(holders) == 0 {
		return
	}
	if r := d.aRing(now, c); len(r.peers) == 0 {
		d.fill(r, holders)
		r.sure = now
		r.fresh = now + r.span/2 + d.jitter(r.span/2)
	}
}

// compareRing compares what this site knows of a cell's holders with what one of
// them knows: if that is the same it is good for longer, unless this site is one of
// them, else the router is asked again. It reports whether they agree, or the other
// does not say.
func (d *Directory) compareRing(now grid.Time, r *ring, from grid.SiteID, digest uint64) (same bool) {
	switch {
	case digest == 0 || from == d.cfg.Self:
	case digest != r.digest:
		if now-r.heard > d.cfg.Timeout || r.heard == 0 { // else that was just done, perhaps for this reason
			r.fresh, r.doubted = min(r.fresh, now), true
		}
		return false
	case !d.isHolder(r):
		span := d.spanFirst(now)
		if !d.isYoung(now) {
			span = min(spanConfirmed*span, spanMax*d.cfg.Lifetime)
		}
		r.fresh, r.sure = max(r.fresh, now+span/2+d.jitter(span/2)), now
	}
	return true
}

// doubtRing notes what another site knows of who holds a cell that is held here. If
// that is not the same, the router is asked again soon, but not for each such word.
func (d *Directory) doubtRing(now grid.Time, c cell, digest uint64) {
	if r := d.rings[c]; r != nil && digest != 0 && digest != r.digest && now-r.heard > max(d.cfg.Timeout, d.cfg.Lifetime/64) {
		r.fresh = min(r.fresh, now)
		if h := d.holding(c); h != nil {
			h.upkeep.next = min(h.upkeep.next, now+d.cfg.Timeout/4)
			d.upkeepAt = min(d.upkeepAt, h.upkeep.next)
		}
	}
}

// knows reports whether anybody is known who may hold a cell.
func (d *Directory) knows(c cell) bool {
	r := d.rings[c]
	return r != nil && len(r.peers) > 0
}

// isHolder reports whether this site holds the cell, as far as it knows.
func (d *Directory) isHolder(r *ring) bool {
	return slices.Contains(r.peers[:min(len(r.peers), d.cfg.Replicas)], d.cfg.Self)
}

// told returns who holds a cell, for messages.
func (r *ring) told(replicas int) []grid.SiteID {
	if r == nil {
		return nil
	}
	if r.copied == nil {
		r.copied = slices.Clone(r.peers[:min(len(r.peers), replicas)])
	}
	return r.copied
}

// usable reports whether the peers are as good as any: they are out of date for no
// longer than they were believed. Then the router is asked again, but nobody waits.
func (r *ring) usable(now grid.Time) bool { return len(r.peers) > 0 && now < r.fresh.Add(r.span) }

// known returns the digest, or 0 if nothing is known.
func (r *ring) known() uint64 {
	if r == nil {
		return 0
	}
	return r.digest
}

// wait makes a query go on at the router's next answer.
func (r *ring) wait(id QueryID) {
	if !slices.Contains(r.queries, id) {
		r.queries = append(r.queries, id)
	}
}

// lookUp asks the router unless it is being asked.
func (d *Directory) lookUp(now grid.Time, r *ring, out *grid.Outbox) {
	if r.asked != grid.Never && now < r.asked.Add(d.lookupMax()) {
		return
	}
	r.asked = now
	if d.lookups == nil {
		d.lookups = make(map[grid.Key]*ring)
	}
	d.lookups[r.key] = r
	out.Closest(r.key)
}

// lookupMax is the span after which a look-up without an answer is begun again.
func (d *Directory) lookupMax() grid.Time { return 10 * d.cfg.Timeout }

// dropRings forgets the half of the rings that was not used for longest, except
// those that queries wait for.
func (d *Directory) dropRings() {
	list := make([]*ring, 0, len(d.rings))
	for _, r := range d.rings {
		if len(r.queries) == 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *ring) int {
		return cmp.Or(cmp.Compare(a.used, b.used), a.cell.compare(b.cell))
	})
	for _, r := range list[:len(list)/2] {
		delete(d.rings, r.cell)
		delete(d.lookups, r.key)
	}
}

// onClosest takes the router's answer.
func (d *Directory) onClosest(now grid.Time, in *grid.Closest, out *grid.Outbox) {
	r := d.lookups[in.Key]
	if r == nil {
		return
	}
	delete(d.lookups, in.Key)
	r.asked, r.heard, r.sure, r.doubted = grid.Never, now, now, false
	changed := d.fill(r, in.Peers)
	if changed {
		r.span = max(r.span/4, 2*d.cfg.Timeout)
	}
	r.fresh = now + r.span/2 + d.jitter(r.span/2)
	switch {
	case changed:
	case d.isHolder(r) && d.isYoung(now):
		r.span = min(2*r.span, d.longest(r))
	default:
		r.span = min(4*r.span, d.longest(r))
	}
	d.goOn(now, r, out)
}

// goOn lets those who wait for the holders of a cell go on.
func (d *Directory) goOn(now grid.Time, r *ring, out *grid.Outbox) {
	l := &d.listings[r.cell.attribute]
	if slices.ContainsFunc(l.places, func(p place) bool { return p.cell == r.cell && p.role != leaving }) {
		d.send(now, l, loud, out)
	}
	queries := r.queries
	r.queries = nil
	for _, id := range queries {
		if q := d.queries[id]; q != nil {
			d.run(now, q, out)
		}
	}
}

// longest returns for how long a ring is believed at most.
func (d *Directory) longest(r *ring) grid.Time {
	if len(r.peers) == 1 && r.peers[0] == d.cfg.Self {
		return min(spanAlone, d.cfg.Lifetime)
	}
	return spanMax * d.cfg.Lifetime
}

// fill replaces the peers and reports whether the holders changed. Without an
// answer this site is all there is.
func (d *Directory) fill(r *ring, peers []grid.SiteID) (changed bool) {
	if len(peers) == 0 {
		if len(r.peers) > 0 {
			return true // better old holders than none; ask again soon
		}
		r.peers = append(r.peers, d.cfg.Self)
		return true
	}
	keep := d.cfg.Replicas + spares
	if r.cell.IsRoot() || slices.Contains(peers[:min(len(peers), d.cfg.Replicas)], d.cfg.Self) {
		keep = d.cfg.Replicas + mirrorsMax
	}
	peers = peers[:min(len(peers), keep)]
	changed = !slices.Equal(r.peers[:min(len(r.peers), d.cfg.Replicas)], peers[:min(len(peers), d.cfg.Replicas)])
	r.peers = append(r.peers[:0], peers...)
	d.fewPeers = d.fewPeers || r.few(d.cfg.Replicas)
	r.copied, r.digest = nil, 0
	for _, p := range r.peers[:min(len(r.peers), d.cfg.Replicas)] {
		r.digest = r.digest*0x9e3779b97f4a7c15 + spreadOf(p)
	}
	return changed
}

// holders appends the sites that hold a cell: the nearest ones that are not
// suspect, or, if all are, the nearest.
func (d *Directory) holders(now grid.Time, r *ring, sites []grid.SiteID) []grid.SiteID {
	begin := len(sites)
	for _, p := range r.peers {
		if len(sites)-begin < d.cfg.Replicas && !d.isSuspect(now, p) {
			sites = append(sites, p)
		}
	}
	if len(sites) == begin {
		sites = append(sites, r.peers[:min(len(r.peers), d.cfg.Replicas)]...)
	}
	return sites
}

func (d *Directory) isSuspect(now grid.Time, site grid.SiteID) bool {
	for i := range d.suspects {
		if s := &d.suspects[i]; s.site == site {
			return s.strikes >= strikesMax && now < s.until
		}
	}
	return false
}

// strike notes that a site did not answer in time, or, if certain, that it cannot
// be reached at all.
func (d *Directory) strike(now grid.Time, site grid.SiteID, certain bool) {
	i := slices.IndexFunc(d.suspects, func(s suspect) bool { return s.site == site })
	if i < 0 {
		if len(d.suspects) >= suspectsMax {
			d.suspects = slices.Delete(d.suspects, 0, 1)
		}
		d.suspects = append(d.suspects, suspect{site: site})
		i = len(d.suspects) - 1
	}
	s := &d.suspects[i]
	if now >= s.until {
		s.strikes, s.lied = 0, false
	}
	s.strikes++
	if certain {
		s.strikes = max(s.strikes, strikesMax)
	}
	s.until = now + d.cfg.Lifetime/4
}

// distrust notes that a site has said what cannot be true.
func (d *Directory) distrust(now grid.Time, site grid.SiteID) {
	d.strike(now, site, true)
	i := slices.IndexFunc(d.suspects, func(s suspect) bool { return s.site == site })
	d.suspects[i].lied = true
}

// heard notes that a site is alive.
func (d *Directory) heard(now grid.Time, site grid.SiteID) {
	if len(d.suspects) > 0 {
		d.suspects = slices.DeleteFunc(d.suspects, func(s suspect) bool { return s.site == site && !s.lied })
	}
	if d.fewPeers {
		d.widen(now, site)
	}
}

// widen makes the router be asked again for the cells that seemed to have too few
// sites to hold them, as here is one that it did not know.
func (d *Directory) widen(now grid.Time, site grid.SiteID) {
	d.fewPeers = false
	for _, r := range d.rings {
		if !r.few(d.cfg.Replicas) {
			continue
		}
		d.fewPeers = true
		if !slices.Contains(r.peers, site) && now-r.heard > d.cfg.Timeout {
			r.fresh = min(r.fresh, now)
			l := &d.listings[r.cell.attribute]
			l.retry = min(l.retry, now)
		}
	}
}

// few reports whether the router has named fewer sites than are to hold a cell.
func (r *ring) few(replicas int) bool { return len(r.peers) > 0 && len(r.peers) < replicas }

// jitter returns a random span below max, so that sites that began together do not
// stay together.
func (d *Directory) jitter(max grid.Time) grid.Time {
	if max <= 0 {
		return 0
	}
	return grid.Time(d.rng.Int64N(int64(max)))
}
