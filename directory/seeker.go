package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// Bounds of the queries of one site.
const (
	queriesMax   = 4096 // under way
	visitsMax    = 256  // cells one query asks
	queryTimeout = 8    // times Config.Timeout, for a query as a whole
)

// seeker answers this site's queries. It takes Find, pages and the news that holders of a
// cell are known; it puts out scans, look-ups and *Found. Its timer is when the oldest
// query under way is given up.
type seeker struct {
	*shared
	rings  *rings
	holder *holder // for the cells that this site holds itself

	queries   map[QueryID]*query
	deadlines []QueryID // in order of their deadlines, from overdueAt on; some are finished
	overdueAt int
	spare     []*query
	last      QueryID
	sites     []grid.SiteID // reused
}

// find begins a query; the answer comes in this call or a later one.
func (sk *seeker) find(now grid.Time, ask Query, out *grid.Outbox) QueryID {
	if err := ask.Check(); err != nil {
		panic(err)
	}
	sk.last++
	if len(sk.queries) >= queriesMax {
		out.Local(&Found{ID: sk.last, Err: ErrBusy})
		return sk.last
	}
	if ask.Limit == 0 {
		ask.Limit = LimitMax
	}
	sk.remap(now, ask.Attribute)
	q := sk.newQuery()
	q.id, q.ask, q.deadline = sk.last, ask, now+queryTimeout*sk.cfg.Timeout
	q.begin()
	sk.queries[q.id] = q
	sk.deadlines = append(sk.deadlines, q.id)
	sk.run(now, q, out)
	return q.id
}

// newQuery returns an empty query, if possible with the memory of a finished one.
func (sk *seeker) newQuery() *query {
	if sk.queries == nil {
		sk.queries = make(map[QueryID]*query)
	}
	n := len(sk.spare)
	if n == 0 {
		return &query{}
	}
	q := sk.spare[n-1]
	sk.spare = sk.spare[:n-1]
	*q = query{
		found: q.found[:0], chain: q.chain[:0], exhausted: q.exhausted[:0], gone: q.gone[:0], barren: q.barren[:0], glanced: q.glanced[:0],
		visit: visit{asked: q.visit.asked[:0]},
	}
	return q
}

// next returns when the oldest query is given up.
func (sk *seeker) next() grid.Time {
	if q := sk.oldest(); q != nil {
		return q.deadline
	}
	return grid.Never
}

// oldest returns the query under way that began first, or nil.
func (sk *seeker) oldest() *query {
	for ; sk.overdueAt < len(sk.deadlines); sk.overdueAt++ {
		if q := sk.queries[sk.deadlines[sk.overdueAt]]; q != nil {
			if sk.overdueAt > queriesMax {
				sk.deadlines = slices.Delete(sk.deadlines, 0, sk.overdueAt)
				sk.overdueAt = 0
			}
			return q
		}
	}
	sk.deadlines, sk.overdueAt = sk.deadlines[:0], 0
	return nil
}

// tick gives up the queries that have taken too long.
func (sk *seeker) tick(now grid.Time, out *grid.Outbox) {
	for q := sk.oldest(); q != nil && q.deadline <= now; q = sk.oldest() {
		q.failed = true
		sk.finish(now, q, out)
	}
}

// goOn lets the queries go on that wait for the holders of a cell.
func (sk *seeker) goOn(now grid.Time, r *ring, out *grid.Outbox) {
	queries := sk.rings.waits[r.cell]
	delete(sk.rings.waits, r.cell)
	for _, id := range queries {
		if q := sk.queries[id]; q != nil {
			sk.run(now, q, out)
		}
	}
}

// run goes on with a query until it waits or is finished.
func (sk *seeker) run(now grid.Time, q *query, out *grid.Outbox) {
	for {
		if !q.asking {
			q.skip()
			if q.end || q.visits >= visitsMax || q.enough() {
				sk.finish(now, q, out)
				return
			}
			sk.choose(q)
		}
		if !sk.inquire(now, q, out) {
			return
		}
		if r := sk.rings.list[cell{q.ask.Attribute, q.visit.cell}]; r != nil && !q.visit.mature {
			sk.rings.knock(now, r, out)
		}
		sk.judge(q)
	}
}

// choose begins with the cell that at lies in, or first takes a view from the cell
// above it: if its holders are not known, to learn them for one question instead of
// a look-up; or if the cell asked before had nothing, and many may have to be asked, to
// learn which of them are barren.
func (sk *seeker) choose(q *query) {
	m := &sk.maps[q.ask.Attribute]
	f := m.Find(q.at, q.gone)
	q.leaf = f.Prefix
	q.asking, q.glance, q.chain = true, false, q.chain[:0]
	if above, ok := sk.overlook(q, f); ok && sk.cfg.Witnesses == 0 { // one word is no help where members may lie
		strange := q.hinted != q.leaf && !sk.rings.knows(cell{q.ask.Attribute, q.leaf})
		if strange || q.visits > 0 && q.visit.idle && q.ask.Filter.need().Selective() && !slices.Contains(q.glanced, above) {
			q.glance, q.hinted = true, q.leaf
			q.glanced = append(q.glanced, above)
			q.turnTo(above)
			q.visit.mature, q.visit.words = false, 0
			return
		}
	}
	q.edge = m.Edge(q.leaf, q.at, q.ask.Descending, q.gone)
	q.turnTo(q.leaf)
}

// overlook returns the lowest cell above a leaf whose holders are known.
func (sk *seeker) overlook(q *query, f *trie.Known) (above trie.Prefix, ok bool) {
	for f.Length > 0 {
		f = sk.maps[q.ask.Attribute].Get(f.Above())
		if sk.rings.knows(cell{q.ask.Attribute, f.Prefix}) && !slices.Contains(q.gone, f.Prefix) {
			return f.Prefix, true
		}
	}
	return trie.Prefix{}, false
}

// judge draws the conclusion from a visit that is over: another visit, or
// everything up to some edge is covered.
func (sk *seeker) judge(q *query) {
	v := &q.visit
	m := &sk.maps[q.ask.Attribute]
	if v.mature { // else a liar may be the only one that calls itself mature
		q.barren = append(q.barren, v.barren[:min(len(v.barren), barrenQueryMax-len(q.barren))]...)
	}
	if q.glance { // whether it was heard or not, the cells below it are asked next
		q.asking = false
		if v.mature && !v.cut && !slices.Contains(q.exhausted, v.cell) {
			q.exhausted = append(q.exhausted, v.cell)
		}
		return
	}
	q.failed = q.failed || !v.heard && !v.mature
	sk.chart(q)
	switch {
	case v.cut && q.before(v.edge, q.edge):
		q.edge = v.edge
	case !v.cut && v.mature && !slices.Contains(q.exhausted, v.cell):
		q.exhausted = append(q.exhausted, v.cell)
	}
	if v.cell == q.leaf && v.cell.Length > 0 && v.heard && sk.cfg.Witnesses > 0 && !v.known() {
		q.gone = append(q.gone, v.cell)
		m.Forget(v.cell)
		q.asking = false
		return
	}
	if v.cell == q.leaf && v.cell.Length > 0 && v.heard && !v.held {
		// Nobody holds it: it has gone, or all of its holders have. What else the map
		// says may be out of date as well.
		q.gone = append(q.gone, v.cell)
		q.exhausted = q.exhausted[:0] // they are to tell their fences again
		m.Reset()
		q.asking = false
		return
	}
	q.chain = append(q.chain, step{v.cell, v.mature})
	if m.Find(q.at, q.gone).Prefix != q.leaf {
		q.asking = false // it was split
		return
	}
	if x, left := q.next(m); left {
		q.turnTo(x)
		return
	}
	q.asking = false
	q.unsure = q.unsure || !q.chain[0].mature
	if edge := m.Edge(q.leaf, q.at, q.ask.Descending, q.gone); q.before(edge, q.edge) {
		q.edge = edge
	}
	q.cover(q.edge)
}

// known reports whether at least half of those who were asked about a cell know it.
func (v *visit) known() bool { return v.answers == 0 || 2*v.holders >= v.answers }

// chart takes over what witnesses have told of the fences of a cell, if there is such a cell:
// a liar that could tell of cells, and then of cells below those, would have every query
// look for them.
func (sk *seeker) chart(q *query) {
	v := &q.visit
	if len(v.fences) == 0 || !v.known() {
		return
	}
	slices.SortFunc(v.fences, trie.Prefix.Compare)
	sk.maps[q.ask.Attribute].Learn(v.cell, slices.Compact(v.fences))
	v.fences = nil
}

// finish hands out the answer.
func (sk *seeker) finish(now grid.Time, q *query, out *grid.Outbox) {
	n := q.covered()
	f := sk.founds.New()
	*f = Found{ID: q.id, End: q.end && n <= q.ask.Limit, Messages: q.messages}
	if q.failed || !q.end && n == 0 {
		f.Err = ErrUnreachable
	}
	f.Certain = f.Err == nil && !q.unsure
	if n = min(n, q.ask.Limit); n > 0 {
		f.Quotes = sk.foundChunk(n)
	}
	for _, c := range q.found[:n] {
		if now < c.quote.Expires() && !c.quote.Withdrawn {
			f.Quotes = append(f.Quotes, *c.quote)
		}
	}
	sk.foundSpace = sk.foundSpace[len(f.Quotes):]
	delete(sk.queries, q.id)
	clear(q.found)
	sk.spare = append(sk.spare, q)
	out.Local(f)
}
