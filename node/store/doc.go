// Package store keeps a site's records: what was committed is there after any
// crash, of the process or of the machine.
//
//  1. Open takes the directory for this process, checks that the store belongs to
//     this site, compares the two copies it keeps and repairs one from the other.
//  2. All hands out every record, for the cores to recover from.
//  3. Once per turn of the event loop: fill a Batch, Commit it, and only then let
//     out what it reveals. Commit returns when the batch is durable.
//  4. Before a submission is accepted: Space says whether there is room for more.
//  5. An error of Commit other than SpaceError is final: what is on disk is known
//     again only after the next Open. Leave the process and start anew.
//
// Two complete copies are kept, since one flipped bit in Badger's log silently
// drops every record behind it, and a truncated manifest makes it delete whole tables.
//
//   - The mirror (directory "mirror"): a state file with every record at one moment
//     and log files with every batch since, in the checksummed form of package
//     journal. A batch is written and synced here first; that is what makes it durable.
//   - Badger (directory "badger-N"): what reads go to. It follows unsynced, unless
//     Options.SyncBadger says so, and counts batches in a record of its own.
//
// Open brings Badger's content to exactly what the mirror says, record by record.
// If Badger cannot be opened it is rebuilt from the mirror; if the mirror is damaged
// or behind, it is rewritten from Badger. If both are damaged Open says so and
// changes nothing further.
//
// A file beside the directory, the anchor, names a batch that the store has, moved up
// every 256 batches (sooner at first) and when the store is closed. Open refuses a store that is behind
// it: somebody has brought back an older copy, or removed the directory.
//
// Invariants: batches are applied in order, a batch of up to batchMax bytes as a
// whole or not at all; after a Commit that returned nil every record is in the mirror
// on disk, whatever happens to the process; a store is open in one process at most
// and never belongs to two sites.
//
// Badger can end the process while it opens damaged files (a panic in a goroutine of
// its own, log.Fatal, SIGBUS). With Options.Check a child process tries first.
//
// Not covered: damage to both copies at once; a disk that acknowledges what it did
// not write; an older copy of anchor and directory together, for which there is package
// witness. The store knows nothing of what the records mean.
package store
