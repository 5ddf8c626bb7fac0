package directory

import (
	"slices"

	"gridnode/directory/trie"
	"gridnode/grid"
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

	leaf      trie.Prefix   // the cell at lies in, as far as known
	asking    bool          // leaf is being asked, or a cell above it
	edge      trie.Position // how far the answers of these reach
	chain     []step        // these cells, as far as they have been asked
	exhausted []trie.Prefix // cells whose copies from at on are all among found
	gone      []trie.Prefix // cells that no holder knew
	barren    []trie.Prefix // cells that have nothing for the query
	glanced   []trie.Prefix // cells whose holders have said which of those below them are barren
	glance    bool          // the visit is to the cell above at's, before that one
	hinted    trie.Prefix   // the leaf for which that was done last
	visit     visit
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
	answers int           // sites that have answered
	holders int           // those among them that know the cell
	fences  []trie.Prefix // that these have told; with Config.Witnesses
	words   int           // mature holders among them
	alone   bool          // the word of the one asked first is enough
	leaned  bool          // … as witnesses have agreed with it lately, if it says the same again
	first   grid.SiteID   // of those, the one that was first
	asks    uint64        // digest of what they were asked
	said    uint64        // digest of what the last of them told
	differ  bool          // they have not all told the same
	barren  []trie.Prefix // cells below that all of these have called barren; with Config.Witnesses
	agreed  int           // others that answered and hold the cell together with those that this site knows of
}

// step is a cell that has been asked, and whether a mature holder answered.
type step struct {
	cell   trie.Prefix
	mature bool
}

// candidate is a quote found so far.
type candidate struct {
	at    trie.Position
	quote *Quote
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

// turnTo begins a visit to a cell.
func (q *query) turnTo(x trie.Prefix) {
	q.visits++
	q.visit = visit{cell: x, number: q.visit.number + 1, asked: q.visit.asked[:0], idle: true}
	// What it has is known already: it was asked before about an earlier stretch.
	if q.visit.mature = slices.Contains(q.exhausted, x); q.visit.mature {
		q.visit.words = replicasMax
	}
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

// next returns the cell to ask next about the leaf, if any: the lowest one that was
// not asked, of those that are not above a mature one.
func (q *query) next(m *trie.Map) (x trie.Prefix, left bool) {
	for x = q.leaf; ; {
		i := slices.IndexFunc(q.chain, func(a step) bool { return a.cell == x })
		switch f := m.Get(x); {
		case i < 0:
			return x, true
		case q.chain[i].mature || x.Length == 0:
			return x, false
		case f != nil:
			x = f.Above()
		default:
			x = trie.Prefix{}
		}
	}
}
