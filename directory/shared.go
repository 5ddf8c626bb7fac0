package directory

import (
	"math"
	"math/rand/v2"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// shared is what all parts of a directory have in common: how it is configured, its
// random numbers, the questions it has open, and the newest quotes it has seen. What a
// part decides by itself is in the part.
type shared struct {
	cfg    Config
	rng    *rand.Rand
	spread uint64 // of Config.Self
	*Slabs        // what is handed out is the driver's

	requests requests
	maps     [attributes]trie.Map // the cells that this site knows of
	known    newest[*Quote]       // the newest quote of each site
	bars     bool                 // some of these stand for sites that are not to be believed
	counts   *Counts
}

// Counts are numbers of a Directory for whoever watches it. They only rise.
type Counts struct {
	// Rejected counts what other sites sent and should not have: quotes that have
	// expired or come from the future, or that do not answer the question.
	Rejected int64

	// Outdated counts quotes that a holder had and whose site has published elsewhere
	// or withdrawn since. Just after a change that is no fault.
	Outdated int64

	// QueryLookups counts the look-ups of holders that queries asked for; all others
	// are for keeping the index.
	QueryLookups int64
}

// jitter returns a random span below max, so that sites that began together do not
// stay together.
func (sh *shared) jitter(max grid.Time) grid.Time {
	if max <= 0 {
		return 0
	}
	return grid.Time(sh.rng.Int64N(int64(max)))
}

// knownMax bounds the sites whose newest quote is remembered.
const knownMax = 4096

// learn remembers a quote if it is the newest of its site, and else returns the one
// that is newer.
func (sh *shared) learn(q *Quote) (newer *Quote) {
	v, fresh := sh.known.put(q.Site)
	if fresh || (*v).Sequence < q.Sequence {
		*v = q
	}
	if (*v).Sequence == q.Sequence {
		return nil
	}
	return *v
}

// barred is the sequence of the word that stands for all quotes of a site that is not to
// be believed.
const barred = math.MaxUint64

// Bar takes a site's quotes for withdrawn from now on, those that come later too.
func (d *Directory) Bar(site grid.SiteID) {
	d.bars = true
	v, _ := d.known.put(site)
	*v = &Quote{Site: site, Sequence: barred, Withdrawn: true}
}

// Barred reports whether Bar was the last word about a site.
func (d *Directory) Barred(site grid.SiteID) bool { return d.isBarred(site) }

// isBarred reports whether a site's quotes are not to be believed.
func (sh *shared) isBarred(site grid.SiteID) bool {
	if !sh.bars {
		return false
	}
	q := sh.known.get(site)
	return q != nil && (*q).Sequence == barred
}

// Unbar ends that.
func (d *Directory) Unbar(site grid.SiteID) {
	if v := d.known.get(site); v != nil && (*v).Sequence == barred {
		*v = &Quote{Site: site, Withdrawn: true}
	}
}

// Slabs are what messages and answers are cut from, a chunk of each type at a time.
// Directories that take turns, as those of one virtual network, may share one: a chunk
// for each of thousands of sites would be most of their memory. The zero value is
// ready. Not safe for concurrent use.
type Slabs struct {
	scans        grid.Slab[Scan]
	pages        grid.Slab[Page]
	publishes    grid.Slab[Publish]
	answers      grid.Slab[Published]
	withdraws    grid.Slab[Withdraw]
	reports      grid.Slab[Report]
	reporteds    grid.Slab[Reported]
	founds       grid.Slab[Found]
	quoteSpace   []*Quote
	receiptSpace []Receipt
	copySpace    []Copy
	foundSpace   []Quote
}

// foundChunk returns an empty slice with room for n quotes, cut from a larger one.
func (s *Slabs) foundChunk(n int) []Quote {
	if len(s.foundSpace) < n {
		s.foundSpace = make([]Quote, max(n, PageMax))
	}
	return s.foundSpace[:0:n]
}

// receiptChunk returns an empty slice with room for an answer, cut from a larger one.
func (s *Slabs) receiptChunk() []Receipt {
	if len(s.receiptSpace) < CopiesMax {
		s.receiptSpace = make([]Receipt, 16*CopiesMax)
	}
	return s.receiptSpace[:0:CopiesMax]
}

// quoteChunk returns an empty slice with room for a page, cut from a larger one.
func (s *Slabs) quoteChunk() []*Quote {
	if len(s.quoteSpace) < PageMax {
		s.quoteSpace = make([]*Quote, 4*PageMax)
	}
	return s.quoteSpace[:0:PageMax]
}

// newest keeps one value per site for a bounded number of sites. When it is full,
// the site that came first makes room.
type newest[V sited] struct {
	max    int
	index  grid.SiteIndex // of values
	values []V
	oldest int
}

// sited is what is of one site.
type sited interface{ of() grid.SiteID }

func (q *Quote) of() grid.SiteID { return q.Site }
func (l Load) of() grid.SiteID   { return l.Site }

// get returns the place of a site's value, or nil.
func (n *newest[V]) get(site grid.SiteID) *V {
	if i, ok := n.index.Find(site, func(i int32) grid.SiteID { return n.values[i].of() }); ok {
		return &n.values[i]
	}
	return nil
}

// put returns the place for a site's value and whether it is new and zero; then the caller
// fills it.
func (n *newest[V]) put(site grid.SiteID) (v *V, fresh bool) {
	if v := n.get(site); v != nil {
		return v, false
	}
	if len(n.values) < n.max {
		n.index.Add(site, int32(len(n.values)))
		var zero V
		n.values = grid.AppendOne(n.values, zero)
		return &n.values[len(n.values)-1], true
	}
	i := n.oldest
	n.oldest = (i + 1) % n.max
	n.index.Remove(n.values[i].of(), int32(i))
	n.index.Add(site, int32(i))
	var zero V
	n.values[i] = zero
	return &n.values[i], true
}

// remap has the map of an attribute's cells begun anew if that is due.
func (sh *shared) remap(now grid.Time, a Attribute) { sh.maps[a].Refresh(now, 4*sh.cfg.Lifetime) }
