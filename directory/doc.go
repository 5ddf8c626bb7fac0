// Package directory is the federation directory (Grid-Federation §2: subscribe,
// quote, unsubscribe, query): signed quotes, a range index over them, and gossiped
// load. A Directory is one site's part of it. It is a core: it reads no clock and does
// no I/O. Its driver
//
//  1. makes it with New, and asks it for nothing else before;
//  2. calls SetQuote whenever the site's offer changes, Withdraw when it ends, and
//     SetLoad for its siblings;
//  3. calls Find, and takes the *Found that comes among the outbox's Locals;
//  4. gives Step what comes: *grid.Delivery with a message of Protocol or Gossip,
//     *grid.Closest with what the router answers to the outbox's Keys, *grid.Undelivered,
//     and a grid.Tick when NextTimer has come;
//  5. after each call carries out the outbox in order, and asks NextTimer again.
//
// # Index
//
// Under each attribute a quote has a position: its value, then a hash of its site.
// Positions with a common prefix make a cell, held by the r sites nearest to
// SHA-256(cell). A cell with more than B quotes is split, and one with few becomes part
// of the one above it again; package trie says how. The root keeps the lowest and the
// highest quotes, which most queries want.
//
//	message     who, to whom        what it asks; the answer
//	Publish     site → holders      keep my quote in these cells; Published, if that is
//	                                wanted: done, or it belongs into a cell further down
//	Withdraw    site → holders      drop your copy; Published
//	Scan        anyone → holder     the next quotes from a position on, or, with limit 0,
//	                                how the cell stands; Page
//	Report      holder → holders    of the cell above: this cell exists, and no quote in or
//	                                below it exceeds this summary; Reported
//	Page        holder → mirror     without a token: what you have of this cell is out of date
//	LoadReport  site → topic        my load
//
// A page names cells that cannot pass the filter, who holds those ahead, and, of a cell
// that many ask, mirrors: sites next to its holders that fetch all of it from one of
// them when they are asked and what they have is old (Scan.Via, Scan.Image).
//
// All is soft state: sites publish again at 13/16 of a lifetime, holders report
// twice in one, and what is not renewed expires. There is no hand-over: who becomes a
// holder copies what the others have.
//
// # Why answers are complete
//
// A query believes a holder alone if it is mature: it then has every live quote of
// the cell. It knows so once all other holders had the same quotes and no cell
// above had strays, quotes that belong further down; from then on whoever publishes
// here learns of it, as answers carry a digest of who holds the cell. A new holder does
// not wait for all of them: it copies what another one has, and is mature once the others
// know that it holds the cell. Where members may lie it waits. It doubts again as soon as
// a copy or fence expires or another site turns out to hold the cell as well.
// It is believed about the cells below, too: more than half of the holders of such a
// cell have told their summary, and tell at once when a quote exceeds it.
//
// Without a mature holder a query unites what all of them have, and asks the cells
// above too. A quote can be in cells of its own prefixes only, so that finds it,
// whoever has split what meanwhile. As long as one of the holders that a site has
// published to lives, its quote is found; if all die at once, after 13/16 of one.
// Until then such a query misses quotes without an error, as nobody is left who
// could know; Found.Certain is false.
//
// # Invariants
//
//   - An answer holds valid, unexpired quotes, each site once, in order: by value,
//     then by hash of the site, the same everywhere.
//   - Sequences of a site never go back at a holder; quotes that have expired, are
//     from the future, or are not signed by their site are rejected.
//   - A change of terms goes out at once, of load if it matters, at a bounded rate,
//     else with the renewal at 13/16 of a lifetime.
//   - Whatever other sites can make grow is bounded by a constant.
//
// What it does not do: it promises nothing (a quote is no commitment), decides no
// membership, and keeps nothing across a restart.
//
// Papers: Grid-Federation (Ranjan, Buyya, Harwood 2004), which assumes such a directory
// and leaves it open; prefix hash trees (Ramabhadran et al. 2004).
package directory
