package directory

import (
	"errors"
	"fmt"

	"gridnode/directory/trie"
	"gridnode/grid"
)

// QueryID names one Find of a Directory. It is never 0.
type QueryID uint64

// LimitMax is the most quotes one Find returns.
const LimitMax = 1024

// Query asks for quotes in the order of one attribute. The zero value asks for the
// cheapest LimitMax sites.
type Query struct {
	Attribute  Attribute
	Descending bool    // from the highest value downwards
	Filter     Filter  // evaluated by the holders
	Limit      int     // most quotes wanted; 0 means LimitMax
	Tie        int     // so many are enough if all have the same value; 0 means Limit
	After      *Cursor // goes on behind it; nil begins at the end of the order
}

// ErrQuery is wrapped by every error of Query.Check.
var ErrQuery = errors.New("bad query")

// Check returns an error wrapping ErrQuery that names the first field that is out
// of bounds.
func (q *Query) Check() error {
	switch {
	case q.Attribute >= attributes:
		return fmt.Errorf("%w: %v", ErrQuery, q.Attribute)
	case q.Limit < 0 || q.Limit > LimitMax:
		return fmt.Errorf("%w: limit %d, want 0 to %d", ErrQuery, q.Limit, LimitMax)
	case q.Tie < 0:
		return fmt.Errorf("%w: tie of %d", ErrQuery, q.Tie)
	case q.After != nil && q.After.attribute != q.Attribute:
		return fmt.Errorf("%w: by %v, but goes on behind a quote by %v", ErrQuery, q.Attribute, q.After.attribute)
	}
	if err := q.Filter.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return nil
}

// Filter leaves out quotes. The zero value lets everything through.
type Filter struct {
	PriceMax      grid.Price // 0 means any price
	SpeedMin      int64
	FreeMin       int64     // idle processors
	ProcessorsMin int64     // of the whole site
	ForeignOnly   bool      // only sites that run jobs of other sites
	GPUs          grid.GPUs // that the site has, free or not
}

// Match reports whether a quote passes the filter.
func (f *Filter) Match(q *Quote) bool {
	return (f.PriceMax == 0 || q.Price <= f.PriceMax) && q.Speed >= f.SpeedMin && q.Free >= f.FreeMin &&
		q.Processors >= f.ProcessorsMin && (q.Foreign || !f.ForeignOnly) && q.GPUs.Has(f.GPUs)
}

// need returns what of the filter summaries of cells can tell.
func (f *Filter) need() trie.Need {
	return trie.Need{Processors: f.ProcessorsMin, Free: f.FreeMin, Speed: f.SpeedMin, Price: f.PriceMax}
}

// check returns an error that names the first field that is out of bounds.
func (f *Filter) check() error {
	switch {
	case f.PriceMax < 0 || f.PriceMax > grid.CreditsMax:
		return fmt.Errorf("price limit of %d micro-credits", int64(f.PriceMax))
	case f.SpeedMin < 0 || f.SpeedMin > grid.RatingMax:
		return fmt.Errorf("least speed of %d", f.SpeedMin)
	case f.FreeMin < 0 || f.FreeMin > processorsMax:
		return fmt.Errorf("at least %d free processors", f.FreeMin)
	case f.ProcessorsMin < 0 || f.ProcessorsMin > processorsMax:
		return fmt.Errorf("at least %d processors", f.ProcessorsMin)
	}
	return f.GPUs.Check()
}

// Cursor is a place behind a quote in the order of an attribute.
type Cursor struct {
	attribute Attribute
	at        trie.Position
}

// Behind returns the cursor behind q in the order of an attribute, in either direction.
func Behind(q *Quote, a Attribute) *Cursor { return &Cursor{a, q.at(a)} }

// Passed reports whether q stands before c: a query from c on does not find it.
func (c *Cursor) Passed(q *Quote, descending bool) bool {
	at := q.at(c.attribute)
	return at == c.at || at.Less(c.at) != descending
}

// Amid returns a cursor amid the quotes whose value of an attribute is that of q: the
// query goes on with those on one side of spread, a place in the order that equal
// quotes have (Spread), and then with other values. Where many quotes are equal, this
// lets askers begin at different ones of them.
func Amid(q *Quote, a Attribute, spread uint64) *Cursor {
	return &Cursor{a, trie.PositionOf(q.value(a), spread)}
}

// Equal reports whether two quotes have the same value of an attribute.
func Equal(q, other *Quote, a Attribute) bool { return q.value(a) == other.value(a) }

// Spread returns where a site's quote stands among those of equal value: any value
// from 1 on, evenly distributed, the same for every attribute.
func Spread(site grid.SiteID) uint64 { return spreadOf(site) }

// Errors of Found.
var (
	// ErrUnreachable says that no holder of a part of the index answered. The quotes
	// found elsewhere are there; asking again later may find the rest.
	ErrUnreachable = errors.New("directory: no holder of a cell answered")
	// ErrBusy says that too many queries are under way at this site. Ask again later.
	ErrBusy = errors.New("directory: too many queries under way")
)

// Found is the answer to Find: a local input.
type Found struct {
	ID       QueryID
	Quotes   []Quote // valid, unexpired, each site once, in order; the receiver's own
	End      bool    // there is nothing behind them
	Certain  bool    // holders who have every quote of their cells have answered; else, just after holders died, some may be missing
	Messages int32   // scans sent and pages received for it; the router's are counted apart
	Err      error   // ErrUnreachable or ErrBusy; nil if the answer is complete
}
