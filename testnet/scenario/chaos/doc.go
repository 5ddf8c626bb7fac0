// Package chaos is a federation under faults: messages are lost, doubled and reordered,
// clocks drift, daemons and machines die, the network parts. While that lasts and once
// it has healed, watchers look for violations of what must always hold: of jobs and
// processors (testnet.Checker), of money (books) and of leases (leaseWatch).
package chaos
