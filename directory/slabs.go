package directory

import "gridnode/grid"

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
