// Package trie is the range index of the federation directory as a data structure: how
// an order of quotes is cut into cells, and what those who hold and those who ask
// remember of them. It sends nothing and knows no quotes, only their positions; the
// protocol over it is package directory's. It reads no clock and is not safe for
// concurrent use.
//
// # Cells
//
// A quote has a Position in an order: the code of its value, then a hash of its site.
// Positions with a common Prefix make a cell. It is a prefix hash tree (Ramabhadran et
// al. 2004), but cut where the quotes are: the prefix of a cell may be many bits longer
// than that of the one above. The root has no bits, contains everything and always
// exists. A quote belongs into the longest cell that contains its position.
//
//	   root                 x covers y: y is a cell below x
//	  /    \                x is above y: the longest one that covers y
//	0101   011              0101, 011 are the root's outer fences;
//	      /   \             01100, 0111 are fences of 011, and of the root as
//	  01100   0111          well if its holders have heard of them
//
// # What there is
//
//   - Position, Prefix: the order and its cells.
//   - Fences: the cells that were split off one cell, as a holder of that one knows
//     them until they expire: where a position belongs (Way), what is left of the cell
//     itself (Sieve), what a scan comes to (Ahead). Split makes new ones when a cell has
//     more quotes than it keeps, Group when it has too many fences.
//   - Summary: what no quote of a cell exceeds; more than half of its holders have to
//     say so (Fence.Testify).
//   - Life: how a cell with few quotes becomes part of the one above again.
//   - Map: the cells that a site has heard of, to guess where to ask.
//
// # How a holder uses it
//
//  1. A quote comes: ask Fences.Way whether it belongs into a cell below. If not, keep
//     it, tell Life.Published, and if there are more than Prefix.Room, Fences.Split.
//  2. A cell below is reported: Fences.Add, Fence.Testify, Fences.Group.
//  3. From time to time: Fences.Lapsed and Expire, then Life.Reconsider with a Census.
//
// # Invariants
//
//   - Whoever splits where, cells nest: of two prefixes one covers the other or they
//     have no position in common. So holders need not agree about a split, and a quote
//     can only be in cells whose prefixes it begins with.
//   - A cell stays, or what closes has all its quotes in the cell above before it goes.
//   - A Summary never says less than a quote it is of; a cell of which nothing is known
//     has none.
//   - A Map is only a guess; all but the root is forgotten in time.
//   - Fences and maps are bounded by constants.
//
// What it does not do: it holds no quotes, decides nothing about who holds a cell, and
// does not say how those who do hear of each other's fences.
package trie
