package directory

import (
	"cmp"
	"slices"

	"gridnode/grid"
)

// rings are what this site knows of who holds which cell. They take the router's answers
// and what other sites say, and put out look-ups. They have no timer: whoever needs to
// know asks again.
type rings struct {
	*shared
	list     map[cell]*ring
	lookups  map[grid.Key]*ring // look-ups under way
	waits    map[cell][]QueryID // queries that wait for the first answer about a cell
	began    grid.Time          // when this site first had to do with a cell; grid.Never before
	fewPeers bool               // some ring is of fewer sites than are to hold its cell
	suspects suspects
	sites    []grid.SiteID // reused
}

func newRings(sh *shared) rings {
	return rings{
		shared: sh, began: grid.Never,
		suspects: suspects{span: sh.cfg.Lifetime / 4, strict: sh.cfg.Witnesses > 0},
	}
}

// get returns what is known of a cell's holders, and asks the router if that is
// nothing or out of date.
func (rs *rings) get(now grid.Time, c cell, out *grid.Outbox) *ring {
	r := rs.at(now, c)
	switch {
	case now < r.until:
	case rs.trusts(now, r):
		r.until = now + rs.cfg.Lifetime/2
	default:
		rs.lookUp(now, r, out)
	}
	return r
}

// trusts reports whether holders that were not dealt with for long are tried before the
// router is asked: their answers show whether they still are the holders. A site that
// has just come up does not, nor do holders themselves.
func (rs *rings) trusts(now grid.Time, r *ring) bool {
	return len(r.peers) >= rs.cfg.Replicas && r.until > 0 && !r.doubted && !rs.isHolder(r) &&
		!rs.isYoung(now) && now-r.confirmed < spanMax*rs.cfg.Lifetime
}

// forPublishing is get for who publishes to a cell. A young site asks a holder who else
// holds the cell (confirm says that this is due), for two messages, and not the router, for
// tens. A holder knows: it asks the router itself, and the more often the younger it is.
func (rs *rings) forPublishing(now grid.Time, c cell, out *grid.Outbox) (r *ring, confirm bool) {
	r = rs.at(now, c)
	if now < r.until || len(r.peers) < rs.cfg.Replicas || r.until == 0 || r.doubted || rs.isHolder(r) || !rs.isYoung(now) {
		return rs.get(now, c, out), false
	}
	r.until = now + max(now-rs.began, rs.cfg.Timeout)
	return r, true
}

// at returns what is known of a cell's holders, if anything.
func (rs *rings) at(now grid.Time, c cell) *ring {
	r := rs.list[c]
	if r == nil {
		if len(rs.list) >= ringsMax {
			rs.shrink()
		}
		if rs.list == nil {
			rs.list = make(map[cell]*ring)
		}
		r = &ring{cell: c, key: c.key(rs.cfg.Federation), span: rs.spanFirst(now), begun: grid.Never}
		rs.list[c] = r
	}
	r.usedAt = now
	return r
}

// spanFirst returns for how long the first answer about a cell is believed: the
// longer, the longer this site has been up. Its federation is at least as old.
func (rs *rings) spanFirst(now grid.Time) grid.Time {
	if rs.began == grid.Never {
		rs.began = now
	}
	return min(max((now-rs.began)/2, 2*rs.cfg.Timeout), spanMax*rs.cfg.Lifetime)
}

// isYoung reports whether this site has been up for less than a lifetime. Then its
// federation may be as young, and the router may still find new holders at any time.
func (rs *rings) isYoung(now grid.Time) bool { return now-rs.began < rs.cfg.Lifetime }

// forQuery returns what is known of a cell's holders for a query, which sees for
// itself whether they hold it: the router is asked only if nothing is known.
func (rs *rings) forQuery(now grid.Time, c cell, out *grid.Outbox) *ring {
	r := rs.at(now, c)
	if len(r.peers) == 0 && now >= r.until || r.doubted || now >= r.until && rs.isHolder(r) || now >= r.until.Add(spanQuery) {
		rs.lookUp(now, r, out)
	}
	return r
}

// hint takes another site's word of who holds a cell, if nothing is known of it. Where
// members may lie only the router's counts: else one of them could name its friends, and
// all witnesses would be of their sort.
func (rs *rings) hint(now grid.Time, c cell, from grid.SiteID, holders []grid.SiteID) {
	if len(holders) == 0 || rs.cfg.Witnesses > 0 && from != rs.cfg.Self {
		return
	}
	if r := rs.at(now, c); len(r.peers) == 0 {
		rs.fill(r, holders)
		r.confirmed = now
		r.until = now + r.span/2 + rs.jitter(r.span/2)
	}
}

// compare compares what this site knows of a cell's holders with what one of
// them knows: if that is the same it is good for longer, unless this site is one of
// them, else the router is asked again, or the word of the other, who it says they are, is
// taken (adopt). It reports whether they agree, or the other does not say.
func (rs *rings) compare(now grid.Time, r *ring, from grid.SiteID, digest uint64, holders []grid.SiteID) (same bool) {
	switch {
	case digest == 0 || from == rs.cfg.Self:
	case digest != r.digest:
		lately := r.named > 0 && now-r.named <= rs.cfg.Timeout || r.words > 0 && now-r.adopted <= rs.cfg.Timeout
		if !lately && !rs.adopt(now, r, from, holders) { // else that was just done, perhaps for this reason
			r.until, r.doubted = min(r.until, now), true
		}
		return false
	case !rs.isHolder(r):
		span := rs.spanFirst(now)
		if !rs.isYoung(now) {
			span = min(spanConfirmed*span, spanMax*rs.cfg.Lifetime)
		}
		r.until, r.confirmed = max(r.until, now+span/2+rs.jitter(span/2)), now
	}
	return true
}

// adopt takes a holder's word of who the others are in place of what this site knows, and
// reports whether it did. Of all who deal with a cell whose holders change each would have to
// ask the router otherwise, as its holders do. After wordsMax words it is asked all the same, and
// at once by the holders themselves, by a site that has just come up, and where members may lie.
func (rs *rings) adopt(now grid.Time, r *ring, from grid.SiteID, holders []grid.SiteID) bool {
	if len(holders) < rs.cfg.Replicas || rs.cfg.Witnesses > 0 || rs.isYoung(now) || rs.isHolder(r) || !slices.Contains(holders, from) && !slices.Contains(r.peers, from) ||
		slices.Contains(holders, rs.cfg.Self) || r.words >= wordsMax {
		return false
	}
	peers := append([]grid.SiteID(nil), holders...)
	for _, p := range r.peers {
		if !slices.Contains(holders, p) {
			peers = append(peers, p) // to take the place of dead ones
		}
	}
	rs.fill(r, peers)
	r.words++
	r.adopted, r.confirmed, r.doubted = now, now, false
	r.until = now + r.span/2 + rs.jitter(r.span/2)
	return true
}

// knows reports whether anybody is known who may hold a cell.
func (rs *rings) knows(c cell) bool {
	r := rs.list[c]
	return r != nil && len(r.peers) > 0
}

// isHolder reports whether this site holds the cell, as far as it knows.
func (rs *rings) isHolder(r *ring) bool {
	return slices.Contains(r.nearest(rs.cfg.Replicas), rs.cfg.Self)
}

// lookUp asks the router unless it is being asked.
func (rs *rings) lookUp(now grid.Time, r *ring, out *grid.Outbox) {
	if rs.isAsked(now, r) {
		return
	}
	r.begun = now
	if rs.lookups == nil {
		rs.lookups = make(map[grid.Key]*ring)
	}
	rs.lookups[r.key] = r
	out.Closest(r.key)
}

// wait makes a query go on at the router's next answer about a cell.
func (rs *rings) wait(c cell, id QueryID) {
	if slices.Contains(rs.waits[c], id) {
		return
	}
	if rs.waits == nil {
		rs.waits = make(map[cell][]QueryID)
	}
	rs.waits[c] = append(rs.waits[c], id)
}

// isAsked reports whether the router is being asked about a ring.
func (rs *rings) isAsked(now grid.Time, r *ring) bool {
	return r.begun != grid.Never && now < r.begun.Add(rs.lookupMax())
}

// lookupMax is the span after which a look-up without an answer is begun again.
func (rs *rings) lookupMax() grid.Time { return 10 * rs.cfg.Timeout }

// shrink forgets the half of the rings that was not used for longest, except
// those that queries wait for.
func (rs *rings) shrink() {
	list := make([]*ring, 0, len(rs.list))
	for _, r := range rs.list {
		if len(rs.waits[r.cell]) == 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *ring) int {
		return cmp.Or(cmp.Compare(a.usedAt, b.usedAt), a.cell.compare(b.cell))
	})
	for _, r := range list[:len(list)/2] {
		delete(rs.list, r.cell)
		delete(rs.lookups, r.key)
	}
}

// onClosest takes the router's answer and returns the ring that it is about, or nil if
// nobody had asked.
func (rs *rings) onClosest(now grid.Time, in *grid.Closest) *ring {
	r := rs.lookups[in.Key]
	if r == nil {
		return nil
	}
	delete(rs.lookups, in.Key)
	r.begun = grid.Never
	if len(in.Peers) == 0 && len(r.peers) == 0 { // it failed, which does not say that nobody else is there
		r.until = now + rs.cfg.Timeout
		return r
	}
	r.named, r.confirmed, r.doubted, r.words = now, now, false, 0
	changed := rs.fill(r, in.Peers)
	if changed {
		r.span = max(r.span/4, 2*rs.cfg.Timeout)
	}
	r.until = now + r.span/2 + rs.jitter(r.span/2)
	switch {
	case changed:
	case rs.isHolder(r) && rs.isYoung(now):
		r.span = min(2*r.span, rs.longest(r))
	default:
		r.span = min(4*r.span, rs.longest(r))
	}
	return r
}

// longest returns for how long a ring is believed at most.
func (rs *rings) longest(r *ring) grid.Time {
	if len(r.peers) == 1 && r.peers[0] == rs.cfg.Self {
		return min(spanAlone, rs.cfg.Lifetime)
	}
	return spanMax * rs.cfg.Lifetime
}

// fill replaces the peers and reports whether the holders changed.
func (rs *rings) fill(r *ring, peers []grid.SiteID) (changed bool) {
	if len(peers) == 0 {
		return true // better old holders than none; ask again soon
	}
	keep := rs.cfg.Replicas + spares
	if r.cell.IsRoot() || slices.Contains(peers[:min(len(peers), rs.cfg.Replicas)], rs.cfg.Self) {
		keep = rs.cfg.Replicas + mirrorsMax
	}
	peers = peers[:min(len(peers), keep)]
	changed = !slices.Equal(r.nearest(rs.cfg.Replicas), peers[:min(len(peers), rs.cfg.Replicas)])
	if changed {
		r.vouched = nil
	}
	if !slices.Equal(r.peers, peers) {
		r.peers = slices.Clone(peers)
	}
	rs.fewPeers = rs.fewPeers || r.few(rs.cfg.Replicas)
	r.digest = 0
	for _, p := range r.nearest(rs.cfg.Replicas) {
		r.digest = r.digest*0x9e3779b97f4a7c15 + spreadOf(p)
	}
	return changed
}

// holders appends the sites that hold a cell: the nearest ones that are not suspect, or the
// nearest if all others are. Who hears nobody does not know that nobody is there.
func (rs *rings) holders(now grid.Time, r *ring, sites []grid.SiteID) []grid.SiteID {
	begin, others := len(sites), false
	for _, p := range r.peers {
		if len(sites)-begin < rs.cfg.Replicas && !rs.suspects.has(now, p) {
			sites = append(sites, p)
			others = others || p != rs.cfg.Self
		}
	}
	if !others {
		sites = append(sites[:begin], r.nearest(rs.cfg.Replicas)...)
	}
	return sites
}

// knock asks those holders of a cell that are passed over for a sign of life. Who knows no
// holder that has all of the cell does so: they may be back, and would be passed over as long
// as nobody asks them.
func (rs *rings) knock(now grid.Time, r *ring, out *grid.Outbox) {
	for _, p := range r.nearest(rs.cfg.Replicas) {
		if p == rs.cfg.Self || !rs.suspects.knock(now, p, knockPause*rs.cfg.Timeout) {
			continue
		}
		token := rs.requests.add(request{purpose: forSign, site: p, deadline: now + rs.cfg.Timeout})
		if token == 0 {
			return
		}
		m := rs.scans.New()
		*m = Scan{Token: token, Cell: r.cell, Limit: 1} // with limit 0 it would think that this site holds the cell
		out.Send(p, m)
	}
}

// unheard appends those of a cell's holders that are passed over only because they do not answer:
// what others have published to them may be nowhere else.
func (rs *rings) unheard(now grid.Time, r *ring, sites []grid.SiteID) []grid.SiteID {
	for _, p := range r.nearest(rs.cfg.Replicas) {
		if rs.suspects.has(now, p) && !rs.suspects.lies(p) && !slices.Contains(sites, p) {
			sites = append(sites, p)
		}
	}
	return sites
}

// short reports whether fewer sites are left than are to hold a cell.
func (rs *rings) short(now grid.Time, r *ring) bool {
	rs.sites = rs.holders(now, r, rs.sites[:0])
	return len(rs.sites) < rs.cfg.Replicas
}

// heard notes that a site is alive. If the router knew too few holders of some cells, and
// not this one, it is to be asked again: heard returns the attributes of these cells.
func (rs *rings) heard(now grid.Time, site grid.SiteID) (again []Attribute) {
	rs.suspects.heard(site)
	if !rs.fewPeers {
		return nil
	}
	rs.fewPeers = false
	for _, r := range rs.list {
		if !r.few(rs.cfg.Replicas) {
			continue
		}
		rs.fewPeers = true
		if !slices.Contains(r.peers, site) && now-r.named > rs.cfg.Timeout {
			r.until = min(r.until, now)
			again = append(again, r.cell.attribute)
		}
	}
	return again
}

// choice returns the holder to ask first: the one that answered last, or else one
// that other sites do not choose as well.
func (rs *rings) choice(r *ring, holders []grid.SiteID) grid.SiteID {
	if slices.Contains(holders, r.preferred) {
		return r.preferred
	}
	return holders[rs.spread%uint64(len(holders))]
}

// likelyMirrors returns who probably are the mirrors of an attribute's root, of which no
// holder has said: as many of the sites next to its holders as the cells known make likely.
func (rs *rings) likelyMirrors(now grid.Time, r *ring) []grid.SiteID {
	if !r.cell.IsRoot() || r.named == 0 || now-r.named > spanMax*rs.cfg.Lifetime || rs.isHolder(r) || len(r.peers) < rs.cfg.Replicas {
		return nil
	}
	next := r.peers[rs.cfg.Replicas:]
	cells := 0
	for a := range rs.maps { // all orders have the same quotes, but this site has not come to know all equally well
		cells = max(cells, rs.maps[a].Size())
	}
	likely := even(cells/mirrorCells-rs.cfg.Replicas, rs.cfg.Replicas)
	return next[:min(likely, len(next))]
}

// mirror returns whom a query that has asked nobody yet asks first instead of a holder,
// if the cell is hot, and in which holder's stead.
func (rs *rings) mirror(now grid.Time, r *ring) (site, via grid.SiteID, ok bool) {
	mirrors := r.mirrors
	if !r.instructed {
		mirrors = rs.likelyMirrors(now, r)
	}
	if len(mirrors) == 0 {
		return "", "", false
	}
	slot := int(mixSpread(rs.spread, r.key) % uint64(rs.cfg.Replicas+mirrorShare*len(mirrors)))
	if slot < rs.cfg.Replicas {
		return "", "", false
	}
	i := (slot - rs.cfg.Replicas) / mirrorShare
	rs.sites = rs.holders(now, r, rs.sites[:0])
	site, via = mirrors[i], rs.sites[i%len(rs.sites)]
	return site, via, site != rs.cfg.Self && site != via && !rs.suspects.has(now, site)
}

// mixSpread makes a site's place among a cell's holders and mirrors another one for
// each cell.
func mixSpread(spread uint64, key grid.Key) uint64 {
	x := spread ^ uint64(key[0])<<56 ^ uint64(key[1])<<48 ^ uint64(key[2])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>27
}

const (
	suspectsMax = 64 // sites remembered not to answer
	strikesMax  = 2  // requests in a row without an answer that make a site suspect
	knockPause  = 2  // timeouts between two questions to a suspect whether it answers again
)

// suspects are the sites that did not answer, or lied. A suspect is passed over for a
// while if there are others to ask.
type suspects struct {
	list   []suspect
	span   grid.Time // for which a strike counts
	strict bool      // who does not answer is not helped by saying something else
}

// suspect is one of them.
type suspect struct {
	site    grid.SiteID
	strikes int
	lied    bool      // hearing from it does not help it
	mute    bool      // nor does it here, but an answer
	until   grid.Time // it is passed over until then, if it has strikesMax strikes
	knocked grid.Time // when it was asked last whether it answers again; 0 if it was not
}

// has reports whether a site is to be passed over.
func (s *suspects) has(now grid.Time, site grid.SiteID) bool {
	for i := range s.list {
		if x := &s.list[i]; x.site == site {
			return x.strikes >= strikesMax && now < x.until
		}
	}
	return false
}

// knock reports whether a site is passed over and may be asked whether it answers again, which
// takes place then.
func (s *suspects) knock(now grid.Time, site grid.SiteID, pause grid.Time) bool {
	i := slices.IndexFunc(s.list, func(x suspect) bool { return x.site == site })
	if i < 0 || !s.has(now, site) || s.list[i].lied || s.list[i].knocked > 0 && now < s.list[i].knocked.Add(pause) {
		return false
	}
	s.list[i].knocked = now
	return true
}

// strike notes that a site did not answer in time, or, if certain, that it cannot
// be reached at all.
func (s *suspects) strike(now grid.Time, site grid.SiteID, certain bool) *suspect {
	i := slices.IndexFunc(s.list, func(x suspect) bool { return x.site == site })
	if i < 0 {
		if len(s.list) >= suspectsMax {
			s.list = slices.Delete(s.list, 0, 1)
		}
		s.list = append(s.list, suspect{site: site})
		i = len(s.list) - 1
	}
	x := &s.list[i]
	if now >= x.until {
		x.strikes, x.lied, x.mute = 0, false, false
	}
	x.strikes++
	x.mute = x.mute || s.strict && !certain
	if certain || s.strict {
		x.strikes = max(x.strikes, strikesMax)
	}
	x.until = now + s.span
	return x
}

// distrust notes that a site has said what cannot be true.
func (s *suspects) distrust(now grid.Time, site grid.SiteID) { s.strike(now, site, true).lied = true }

// lies reports whether a site is a suspect because it has said what cannot be true.
func (s *suspects) lies(site grid.SiteID) bool {
	return slices.ContainsFunc(s.list, func(x suspect) bool { return x.site == site && x.lied })
}

// heard notes that a site is alive.
func (s *suspects) heard(site grid.SiteID) {
	if len(s.list) > 0 {
		s.list = slices.DeleteFunc(s.list, func(x suspect) bool { return x.site == site && !x.lied && !x.mute })
	}
}

// answered notes that a site has answered a question.
func (s *suspects) answered(site grid.SiteID) {
	if len(s.list) > 0 {
		s.list = slices.DeleteFunc(s.list, func(x suspect) bool { return x.site == site && !x.lied })
	}
}
