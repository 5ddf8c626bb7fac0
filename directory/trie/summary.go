package trie

import (
	"math/bits"

	"gridnode/grid"
)

// Summary says of the quotes of a cell, and of all cells below it, that none offers
// more: so a query with a filter need not ask a cell that has nothing for it.
//
// A mature holder tells it with its reports to the holders of the cell above, which
// name the cells that cannot answer a scan. A quote that exceeds it makes the holder
// report at once, so the quote is found as soon as that report has arrived. What has
// gone makes it lower only with the next report in turn.
type Summary struct {
	Processors, Free, Speed int64      // most
	Price                   grid.Price // least
}

// Nothing returns the summary of no quotes.
func Nothing() Summary { return Summary{Price: grid.CreditsMax} }

// Significant bits to which the most of a cell are rounded up: what changes little
// is not reported again before its turn. Load changes all the time.
const (
	summaryBits     = 4
	summaryBitsFree = 1
)

// SummaryOf returns the summary of one quote.
func SummaryOf(processors, free, speed int64, price grid.Price) Summary {
	return Summary{roundUp(processors, summaryBits), roundUp(free, summaryBitsFree), roundUp(speed, summaryBits), price}
}

// Merge extends the summary to what another one is of.
func (s *Summary) Merge(o Summary) {
	s.Processors = max(s.Processors, o.Processors)
	s.Free = max(s.Free, o.Free)
	s.Speed = max(s.Speed, o.Speed)
	s.Price = min(s.Price, o.Price)
}

// Covers reports whether s says nothing less than o.
func (s Summary) Covers(o Summary) bool {
	merged := s
	merged.Merge(o)
	return merged == s
}

// Need is what a query wants of a quote at least.
type Need struct {
	Processors, Free, Speed int64
	Price                   grid.Price // most; 0 means any
}

// Selective reports whether a need may leave out whole cells.
func (n Need) Selective() bool { return n != Need{} }

// Barren reports whether no quote that s is of can have what is needed.
func (s Summary) Barren(n Need) bool {
	return s.Processors < n.Processors || s.Free < n.Free || s.Speed < n.Speed || n.Price > 0 && s.Price > n.Price
}

// roundUp returns the least number from v on that has at most n significant bits.
func roundUp(v int64, n int) int64 {
	drop := max(bits.Len64(uint64(v))-n, 0)
	return (v + 1<<drop - 1) >> drop << drop
}
