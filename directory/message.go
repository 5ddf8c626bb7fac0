package directory

import (
	"gridnode/directory/trie"
	"gridnode/grid"
	"gridnode/internal/wire"
)

// PageMax is the most quotes in one page: with quotes of typical size it fills a
// third of a frame.
const PageMax = 64

// imagePageMax is the most quotes in a page for a mirror, which wants all of the cell: the
// root's in one.
const imagePageMax = 2 * PageMax

// CopiesMax is the most cells that one Publish is about: the quote's copy and a
// spare under each attribute.
const CopiesMax = 2 * attributes

// Publish asks a holder to keep copies of a quote until it expires: one in each of
// the cells that it holds of those in which the quote belongs. A site sends it for
// itself only.
type Publish struct {
	Quote  *Quote
	Copies []Copy // 1 to CopiesMax
}

// Copy is one cell's part of Publish.
type Copy struct {
	Cell  cell
	Quiet bool        // answer only if the site has to do something about it
	Spare bool        // keep a spare although the quote belongs into the cell Skip, which is closing
	Skip  trie.Prefix // covered by Cell
	Safe  bool        // Cell is closing, and the cell above it has a spare
	Ring  uint64      // digest of who holds the cell, as far as the sender knows
}

// Published answers Publish and Withdraw.
type Published struct {
	Sequence uint64    // of the quote it answers
	Receipts []Receipt // 1 to CopiesMax
}

// Receipt is one cell's part of Published.
type Receipt struct {
	Cell    cell
	Gone    bool // it answers Withdraw
	Refused bool // the holder has no room, or the quote is void
	Closing bool // the cell wants to become part of the one above it: put a spare there
	Closed  bool // it has become so: withdraw from here
	Absent  bool // Moved, and the holder has no copy, so none need be withdrawn
	Moved   bool // the quote, or spare, belongs into the cell To, which Cell covers
	To      trie.Prefix
	Fences  []trie.Prefix // all cells that the holder knows to be split off this one, if Moved
	Ring    uint64        // digest of who holds the cell, as far as the holder knows; 0 if it does not

	Holders []grid.SiteID // of To, if known and Moved; else of Cell, if the sender of the quote had another digest
}

// Withdraw asks a holder to drop its copy of the sender's quote: the quote given,
// which is the site's newest, is elsewhere now, or it says that the site has
// withdrawn.
type Withdraw struct {
	Cell  cell
	Quote *Quote
	Moved bool // to the cell To, which was split off this one
	To    trie.Prefix
}

// Scan asks a holder for the next quotes of a cell from a position on.
type Scan struct {
	Token      uint64
	Cell       cell
	At         trie.Position // first one wanted
	Descending bool
	Limit      int32 // 0 to PageMax; 0 asks how the cell stands
	Filter     Filter
	Fences     uint64 // digest of the fences the asker knows of this cell; with Limit 0, of those that no other one covers
	Ring       uint64 // digest of who holds the cell, as far as the asker knows; 0 if it does not say

	Via   grid.SiteID // the holder in whose stead this site is asked, as a mirror; else empty
	Image bool        // a mirror asks, which wants everything from At on

	// Answered is how many scans the mirror has answered in the holder's stead since it
	// said so last, 0 to mirroredScansMax; with Copy only.
	Answered int32
}

// Page answers Scan. One without a token says that a mirror's image is out of date.
type Page struct {
	Token  uint64
	Cell   cell
	Quotes []*Quote // copies this site has, in order, from Scan.At on
	More   bool     // there are more behind them
	Held   bool     // this site knows the cell
	Mature bool     // this site has every live quote of the cell
	Ring   uint64   // digest of who holds the cell, as far as this site knows; 0 if it does not
	Count  int32    // live quotes in the cell, if Scan.Limit is 0
	Sum    uint64   // of their sites' spreads: holders with the same quotes have the same sum

	Fences    []trie.Prefix // the cells that were split off this one, in order
	HasFences bool          // Fences is given, as the asker's digest differed; if Scan.Limit is 0 it only did
	Hints     []Hint        // of the first fences in the direction of the scan that may have something, at most HintsMax; with HasFences only

	// Barren are cells that were split off this one and have nothing that passes the
	// filter, nor has any cell below them; at most 64, before the last of Quotes if there are More.
	Barren []trie.Prefix

	Holders   []grid.SiteID   // of the cell, nearest first, if the asker has another digest
	Mirrors   []grid.SiteID   // who may be asked in the holder's stead, at most 16
	Summaries []*trie.Summary // of the cells in Fences, where known; if Scan.Image
}

// HintsMax is the most hints in a page.
const HintsMax = 16

// Hint says who holds a cell, as one of them has reported. Whoever has asked nobody
// yet may begin with these: if they do not hold it they say so, and if they are not
// all of them their receipts show it.
type Hint struct {
	Cell    trie.Prefix
	Holders []grid.SiteID // nearest to the cell's key first, at least 1
}

// Report tells a holder of a cell about a cell that was split off it.
type Report struct {
	Token uint64
	Cell  cell
	Child trie.Prefix // whose holder the sender is; Cell covers it

	Holders []grid.SiteID // of Child, as far as the sender knows
	Summary *trie.Summary // of Child; nil if the sender may not have all of its quotes
}

// Reported answers Report.
type Reported struct {
	Token  uint64
	Moved  bool // there is a cell between, To: report there
	To     trie.Prefix
	Strays int32         // quotes kept here, or possibly further up, that belong into the child
	Fences []trie.Prefix // cells that the child covers, unless Moved
	Ring   uint64        // digest of who holds Report.Cell, as far as the holder knows; 0 if it does not

	Holders []grid.SiteID // of To, if known
}

func (*Publish) MessageKind() grid.Kind   { return wire.DirectoryPublish }
func (*Published) MessageKind() grid.Kind { return wire.DirectoryPublished }
func (*Withdraw) MessageKind() grid.Kind  { return wire.DirectoryWithdraw }
func (*Scan) MessageKind() grid.Kind      { return wire.DirectoryScan }
func (*Page) MessageKind() grid.Kind      { return wire.DirectoryPage }
func (*Report) MessageKind() grid.Kind    { return wire.DirectoryReport }
func (*Reported) MessageKind() grid.Kind  { return wire.DirectoryReported }
