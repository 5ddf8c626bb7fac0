// Package directory is the federation directory (Grid-Federation §2: subscribe,
// quote, unsubscribe, query): signed quotes, a range index over them, and gossiped
// load. A Directory is a core; its driver
//
//  1. calls SetQuote whenever the site's offer changes, Withdraw when it ends, and
//     SetLoad for its siblings;
//  2. calls Find, and takes the *Found that comes among the outbox's Locals;
//  3. hands it messages of Protocol and Gossip, *grid.Closest, *grid.Undelivered,
//     and a grid.Tick when NextTimer has come.
//
// # Index
//
// Under each attribute a quote has a position: its value, then a hash of its site,
// which spreads equal values. Positions with a common prefix make a cell, held by
// the r sites nearest to SHA-256(cell). A cell with more than B quotes is split: the
// prefix that about half of them share becomes a cell of its own (a prefix hash
// tree, Ramabhadran et al. 2004, but cut where the quotes are). The root keeps the
// lowest and the highest quotes, which most queries want. Cells with few quotes
// become part of the one above them again (closing).
//
//	Publish    site → holders     keep my quote in these cells, one message to each holder;
//	                              Published: done, or it belongs into To
//	Withdraw   site → holders     drop your copy; Published
//	Scan       anyone → holder    the next quotes from a position on; Page
//	Report     holder → holders   of the cell above: this cell exists; Reported
//	LoadReport site → topic       gossip
//
// With its report a holder says what no quote in its cell or below exceeds (summary),
// so that scans with a filter are told which cells to pass over. Of a cell that many
// ask, images are at mirrors, the sites next to its holders, each fetched when a
// question comes and the old one has aged (Scan.Via, Scan.Image).
//
// All is soft state: sites publish again at half a lifetime, holders report as
// often, and what is not renewed expires. There is no hand-over.
//
// # Why answers are complete
//
// A query believes a holder alone if it is mature: it then has every live quote of
// the cell. It knows so once all other holders had the same quotes and no cell
// above had strays; from then on whoever publishes here learns of it, as answers
// carry a digest of who holds the cell. It doubts again as soon as a copy or fence
// expires or another site turns out to hold the cell as well (upkeep).
//
// It believes a mature holder's summaries of cells below, too: more than half of the
// holders of such a cell have told them, and tell at once when a quote exceeds them.
//
// Without a mature holder a query unites what all of them have, and asks the cells
// above too. A quote can be in cells of its own prefixes only, so that finds it,
// whoever has split what meanwhile. As long as one of the holders that a site has
// published to lives, its quote is found; if all die at once, after half a lifetime.
// Until then such a query misses quotes without an error, as nobody is left who
// could know.
//
// # Invariants
//
//   - An answer holds valid, unexpired quotes, each site once, in order: by value,
//     then by hash of the site, the same everywhere.
//   - Sequences of a site never go back at a holder; quotes that have expired, are
//     from the future, or are not signed by their site are rejected.
//   - A change of terms goes out at once, of load if it matters, at a bounded rate,
//     else with the renewal at half a lifetime (pace).
//   - Whatever other sites can make grow is bounded by a constant.
//
// What it does not do: it promises nothing (a quote is no commitment), decides no
// membership, and keeps nothing across a restart.
package directory
