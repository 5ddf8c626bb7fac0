// Package measure turns what happens in a network into figures.
//
// A Collector observes a testnet.Network and adds up, for each site, what became of
// its jobs and what its processors did; its Result has a Stats for each site and one
// for all, and the messages by type. Figures are integers or decimals of a fixed
// number of places, so that they print the same on every machine; sums that may
// exceed 64 bits are kept in a Sum.
//
// Who counts by himself, as live nodes do, adds executions to a Tally with Account.
package measure
