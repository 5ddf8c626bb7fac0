// Package sibling decides with which sites a site gossips: its siblings. A Circle is
// one site's view of that; it is a core that reads no clock and does no I/O. Its owner
//
//  1. makes it with New, and says with SetKin which sites it is to gossip with in any
//     case: its links of the hierarchy of delegation, the site that heads it;
//  2. gives Step what comes: *grid.Delivery and *grid.Undelivered with a message of
//     Protocol, *grid.Closest for which Asked is true, *grid.Providers for which Named is,
//     *grid.Provided, *grid.Probed, *grid.Parted, and a grid.Tick when NextTimer has come;
//  3. calls Heard for whatever a site gossips, Alive for any other message, and Lost if
//     gossip does not reach one;
//  4. sends what it gossips to each of Members, soon again to Watchers, and says how soon;
//  5. takes *Changed, *Greeted and *Sampled out of the outbox's Locals.
//
// # The rule
//
// Sites of one authority are siblings: the name is in their configuration, and they find
// each other by provider records under its hash. Sites without an authority are
// siblings of those near them; they find each other by looking up random keys in the DHT,
// which gives sites drawn at random, and by what those whom they greet tell of others.
// Nobody has more than Config.Size-1 siblings, kin apart, of whom there are KinMax at
// most. So an authority of up to Size sites is one group in which everybody hears
// everybody, and in a larger one, or in none, each site hears the nearest.
//
//	message  who, to whom       what it says
//	Greet    site → site        will you be my sibling?
//	Reply    site → site        yes; or no, and who else may be. Unasked: not any more; or,
//	                            with Missed, that a sibling seems to have died
//
// A site that is full takes another only in two cases. It is nearer by half than the
// farthest sibling, as measured from here: circles drift towards what is near, and do not
// flap, as a difference of less than half moves nobody, and only the shortest latency
// ever measured of a site counts. Or who asks has less than half of the siblings that it
// may have: then the farthest sibling makes room and is told to turn to the
// newcomer, which puts that one between two others, so that everybody keeps as many as
// before. That happens once in yieldPause at most.
//
// Look-ups cost more than all that siblings say to each other, so they end where they are
// of no use. A circle that is poor looks at spans that double from lookMin to lookMax, one
// that has half of its siblings at spans that grow by lookSlower. One that is full looks at
// spans that grow so to lookFull, for nearer sites, and with an authority not at all:
// newcomers find it. A sibling that is lost is replaced by a site that is known already, if
// one will; only after lookAgain others are looked for, and only once in lookMax by a circle
// that is not poor: where all sites of an authority are siblings there is nobody to find.
// Config.Samples costs a look-up at 0, 10, 90 and 730 s, and so on to lookFull, where
// siblings are not found by random keys anyway.
//
// A group agreed by all its members, with a name and a list, would need rules for who
// founds one, how one that grows is split, how two small ones become one, and what
// happens when halves of the federation cannot reach each other. Here each
// pair of sites agrees for itself, no site has to agree with more than one other, and what
// is lost is found again by the same rule that found it at first.
//
// # Invariants
//
//   - Members are at most Size-1 others and KinMax kin: what a site gossips costs
//     it, and brings it, a number of messages that does not depend on the federation.
//   - Of an authority of more than announcedMax sites that many announce themselves; the
//     others are named by those.
//   - Being siblings is mutual but for messages under way: who gossips to a site that does
//     not know it as one is told.
//   - A sibling that does not answer for two thirds of Config.Silence after it was missed, or
//     cannot be reached, is none. Who is connected with it misses it soon, and warns the others (watch).
//
// A site can lie about being poor or kin. That costs others one sibling in yieldPause;
// kin are taken of those only that the site itself has named, or, by a site that heads
// others, up to KinMax.
//
// What it does not do: it gossips nothing itself, and keeps nothing across a restart but what
// its owner has saved for it (Memory).
package sibling
