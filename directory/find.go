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

// query is a Find under way. It walks through the order from at to limit: it asks
// a holder of the cell that at lies in, goes on behind what that one covers, and
// so on.
//
// A mature holder's word is enough. Without one, all holders of the cell are asked
// and their answers united. Then the cell is new, or about to go, or has lost its
// holders, and some of its quotes may still be, or be already, in a cell above it.
// So these are asked as well, up to a mature one.
type query struct {
	id       QueryID
	ask      Query
	from     trie.Position // first position wanted
	at       trie.Position // first position not covered yet
	limit    trie.Position // last position wanted
	found    []candidate   // in order, each site once
	end      bool          // everything up to limit is covered
	failed   bool          // a cell's holders did not answer
	unsure   bool          // no holder of some cell was mature
	messages int32
	visits   int
	deadline grid.Time

	leaf   trie.Prefix   // the cell at lies in, as far as known
	asking bool          // leaf is being asked, or a cell above it
	edge   trie.Position // how far the answers of these reach
	chain  []asked       // these cells, as far as they have been asked
	known  []trie.Prefix // cells whose copies from at on are all among found
	gone   []trie.Prefix // cells that no holder knew
	barren []trie.Prefix // cells that have nothing for the query
	viewed []trie.Prefix // cells whose holders have said which of those below them are barren
	view   bool          // the visit is to the cell above at's, before that one
	hinted trie.Prefix   // the leaf for which that was done last
	visit  visit
}

// visit is the conversation of a query with the holders of one cell.
type visit struct {
	cell    trie.Prefix // the query's leaf or one above it
	idle    bool        // nothing was found yet
	number  uint32      // rises with every visit of the query
	asked   []grid.SiteID
	mirror  grid.SiteID   // the one of them that was asked in a holder's stead
	via     grid.SiteID   // which one's
	open    int           // scans unanswered
	heard   bool          // a holder answered
	young   bool          // one other than this site answered that is not mature
	held    bool          // one that knows the cell
	mature  bool          // one that is mature
	cut     bool          // the answer goes on behind edge
	edge    trie.Position // how far it reaches, if cut
	renewed bool          // nobody was mature, and the router was asked anew
	agreed  int           // others that answered and hold the cell together with those that this site knows of
}

// asked is a cell that has been asked, and whether a mature holder answered.
type asked struct {
	cell   trie.Prefix
	mature bool
}

// candidate is a quote found so far.
type candidate struct {
	at    trie.Position
	quote *Quote
}

// Find begins a query. The answer, a *Found, comes among the outbox's Locals, in
// this call or a later Step, within 8 × Config.Timeout. A query whose fields are
// out of bounds is the caller's bug: it panics.
func (d *Directory) Find(now grid.Time, ask Query, out *grid.Outbox) QueryID {
	if err := ask.Check(); err != nil {
		panic(err)
	}
	d.lastQuery++
	if len(d.queries) >= queriesMax {
		out.Local(&Found{ID: d.lastQuery, Err: ErrBusy})
		return d.lastQuery
	}
	if ask.Limit == 0 {
		ask.Limit = LimitMax
	}
	d.maps[ask.Attribute].Refresh(now, 4*d.cfg.Lifetime)
	q := d.newQuery()
	q.id, q.ask, q.deadline = d.lastQuery, ask, now+queryTimeout*d.cfg.Timeout
	q.begin()
	d.queries[q.id] = q
	d.deadlines = append(d.deadlines, q.id)
	d.run(now, q, out)
	return q.id
}

// newQuery returns an empty query, if possible with the memory of a finished one.
func (d *Directory) newQuery() *query {
	if d.queries == nil {
		d.queries = make(map[QueryID]*query)
	}
	n := len(d.spareQueries)
	if n == 0 {
		return &query{}
	}
	q := d.spareQueries[n-1]
	d.spareQueries = d.spareQueries[:n-1]
	*q = query{
		found: q.found[:0], chain: q.chain[:0], known: q.known[:0], gone: q.gone[:0], barren: q.barren[:0], viewed: q.viewed[:0],
		visit: visit{asked: q.visit.asked[:0]},
	}
	return q
}

// begin finds out from which to which position the query goes.
func (q *query) begin() {
	low, high := trie.First(), trie.Last()
	switch f := &q.ask.Filter; q.ask.Attribute {
	case Price:
		if f.PriceMax > 0 {
			high = trie.PositionOf(int64(f.PriceMax), ^uint64(0))
		}
	case Speed:
		low = trie.PositionOf(f.SpeedMin, 0)
	case Free:
		low = trie.PositionOf(f.FreeMin, 0)
	}
	if q.ask.Descending {
		low, high = high, low
	}
	q.at, q.limit = low, high
	if after := q.ask.After; after != nil && !q.before(after.at, q.at) {
		q.cover(after.at)
	}
	q.from = q.at
}

// before reports whether a comes before b in the order of the query.
func (q *query) before(a, b trie.Position) bool {
	if q.ask.Descending {
		return b.Less(a)
	}
	return a.Less(b)
}

// cover moves on to behind edge.
func (q *query) cover(edge trie.Position) {
	q.end = !q.before(edge, q.limit)
	if q.ask.Descending {
		q.at = edge.Prev()
	} else {
		q.at = edge.Next()
	}
}

// covered returns how many of the candidates are certainly the next ones.
func (q *query) covered() int {
	if q.end {
		return len(q.found)
	}
	n := len(q.found)
	for n > 0 && !q.before(q.found[n-1].at, q.at) {
		n--
	}
	return n
}

// enough reports whether no more quotes are wanted.
func (q *query) enough() bool {
	n := q.covered()
	return n >= q.ask.Limit || q.ask.Tie > 0 && n >= q.ask.Tie && Equal(q.found[0].quote, q.found[n-1].quote, q.ask.Attribute)
}

// run goes on with a query until it waits or is finished.
func (d *Directory) run(now grid.Time, q *query, out *grid.Outbox) {
	for {
		if !q.asking {
			q.skip()
			if q.end || q.visits >= visitsMax || q.enough() {
				d.finish(now, q, out)
				return
			}
			d.choose(q)
		}
		if !d.inquire(now, q, out) {
			return
		}
		d.judge(q)
	}
}

// skip passes over the cells that have nothing for the query.
func (q *query) skip() {
	for i := 0; i < len(q.barren) && !q.end; i++ {
		x := q.barren[i]
		if !x.Contains(q.at) {
			continue
		}
		if q.ask.Descending {
			q.cover(x.Bits)
		} else {
			q.cover(x.End())
		}
		i = -1 // one of those before may be next
	}
}

// choose begins with the cell that at lies in, or first takes a view from the cell
// above it: if its holders are not known, to learn them for one question instead of
// a look-up; or if the cell asked before had nothing, and many may have to be asked, to
// learn which of them are barren.
func (d *Directory) choose(q *query) {
	m := &d.maps[q.ask.Attribute]
	f := m.Find(q.at, q.gone)
	q.leaf = f.Prefix
	q.asking, q.view, q.chain = true, false, q.chain[:0]
	if above, ok := d.overlook(q, f); ok {
		strange := q.hinted != q.leaf && !d.knows(cell{q.ask.Attribute, q.leaf})
		if strange || q.visits > 0 && q.visit.idle && q.ask.Filter.need().Selective() && !slices.Contains(q.viewed, above) {
			q.view, q.hinted = true, q.leaf
			q.viewed = append(q.viewed, above)
			q.turnTo(above)
			q.visit.mature = false
			return
		}
	}
	q.edge = m.Edge(q.leaf, q.at, q.ask.Descending, q.gone)
	q.turnTo(q.leaf)
}

// overlook returns the lowest cell above a leaf whose holders are known.
func (d *Directory) overlook(q *query, f *trie.Known) (above trie.Prefix, ok bool) {
	for f.Length > 0 {
		f = d.maps[q.ask.Attribute].Get(f.Above)
		if d.knows(cell{q.ask.Attribute, f.Prefix}) && !slices.Contains(q.gone, f.Prefix) {
			return f.Prefix, true
		}
	}
	return trie.Prefix{}, false
}

// turnTo begins a visit to a cell.
func (q *query) turnTo(x trie.Prefix) {
	q.visits++
	q.visit = visit{cell: x, number: q.visit.number + 1, asked: q.visit.asked[:0], idle: true}
	// What it has is known already: it was asked before about an earlier stretch.
	q.visit.mature = slices.Contains(q.known, x)
}

// add puts a quote among the candidates; of two of one site the newer one stays.
func (q *query) add(c candidate) {
	for i := range q.found {
		if f := &q.found[i]; f.quote.spread == c.quote.spread && f.quote.Site == c.quote.Site {
			if f.quote.Sequence >= c.quote.Sequence {
				return
			}
			q.found = slices.Delete(q.found, i, i+1)
			break
		}
	}
	i := len(q.found)
	for i > 0 && (q.before(c.at, q.found[i-1].at) || c.at == q.found[i-1].at && c.quote.Site < q.found[i-1].quote.Site) {
		i--
	}
	q.found = slices.Insert(q.found, i, c)
}

// judge draws the conclusion from a visit that is over: another visit, or
// everything up to some edge is covered.
func (d *Directory) judge(q *query) {
	v := &q.visit
	m := &d.maps[q.ask.Attribute]
	if q.view { // whether it was heard or not, the cells below it are asked next
		q.asking = false
		if v.mature && !v.cut && !slices.Contains(q.known, v.cell) {
			q.known = append(q.known, v.cell)
		}
		return
	}
	q.failed = q.failed || !v.heard && !v.mature
	switch {
	case v.cut && q.before(v.edge, q.edge):
		q.edge = v.edge
	case !v.cut && v.mature && !slices.Contains(q.known, v.cell):
		q.known = append(q.known, v.cell)
	}
	if v.cell == q.leaf && v.cell.Length > 0 && v.heard && !v.held {
		// Nobody holds it: it has gone, or all of its holders have. What else the map
		// says may be out of date as well.
		q.gone = append(q.gone, v.cell)
		q.known = q.known[:0] // they are to tell their fences again
		m.Reset()
		q.asking = false
		return
	}
	q.chain = append(q.chain, asked{v.cell, v.mature})
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

// next returns the cell to ask next about the leaf, if any: the lowest one that was
// not asked, of those that are not above a mature one.
func (q *query) next(m *trie.Map) (x trie.Prefix, left bool) {
	for x = q.leaf; ; {
		i := slices.IndexFunc(q.chain, func(a asked) bool { return a.cell == x })
		switch f := m.Get(x); {
		case i < 0:
			return x, true
		case q.chain[i].mature || x.Length == 0:
			return x, false
		case f != nil:
			x = f.Above
		default:
			x = trie.Prefix{}
		}
	}
}

// finish hands out the answer.
func (d *Directory) finish(now grid.Time, q *query, out *grid.Outbox) {
	n := q.covered()
	f := d.founds.New()
	*f = Found{ID: q.id, End: q.end && n <= q.ask.Limit, Messages: q.messages}
	if q.failed || !q.end && n == 0 {
		f.Err = ErrUnreachable
	}
	f.Certain = f.Err == nil && !q.unsure
	if n = min(n, q.ask.Limit); n > 0 {
		f.Quotes = d.foundChunk(n)
	}
	for _, c := range q.found[:n] {
		if now < c.quote.Expires() && !c.quote.Withdrawn {
			f.Quotes = append(f.Quotes, *c.quote)
		}
	}
	d.foundSpace = d.foundSpace[len(f.Quotes):]
	delete(d.queries, q.id)
	clear(q.found)
	d.spareQueries = append(d.spareQueries, q)
	out.Local(f)
}

// foundChunk returns an empty slice with room for n quotes, cut from a larger one.
func (d *Directory) foundChunk(n int) []Quote {
	if len(d.foundSpace) < n {
		d.foundSpace = make([]Quote, max(n, PageMax))
	}
	return d.foundSpace[:0:n]
}
