// Package chaos is a federation under faults: messages are lost, doubled and reordered,
// clocks drift, daemons and machines die, the network parts. While that lasts and once
// it has healed, watchers look for violations of what must always hold: of jobs and
// processors (testnet.Checker, histories), of what runs elsewhere (aliveWatch), of money
// (books), leases (leaseWatch) and gangs (gangWatch), of what is saved (twinWatch), promised
// (promiseWatch) and said of quotes (quoteWatch), of what lasts (boundWatch), of clocks
// (clockWatch), of what is forged (package forge), and of what sites fall for (package liar). One run
// is of one seed (Run); RunSeeds has many, and adds up what they see.
package chaos
