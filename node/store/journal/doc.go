// Package journal is an append-only file of records that survives being killed
// in the middle of a write. node/store keeps its second copy in such files, the
// shim its list of tasks.
//
//  1. Create makes a new file, Open continues an old one after handing its records to
//     the caller in the order they were appended. Read only reads.
//  2. Append writes one record. After it returned, the record survives the death of
//     the process; after Sync returned, it survives the death of the machine.
//  3. After an error of Append or Sync the journal is of no use any more: what is
//     on disk is known again only after the next Open.
//
// A record is stored as a mark, its length, a CRC-32C of its place, length and
// content, and the content. What follows the last whole record is the tail. A tail without any
// whole record in it was torn by a crash: Open cuts it off. A tail with whole
// records in it means that the file was damaged later (Tail.Damaged): the records
// behind the damage are not handed out, as what they follow is lost, and Open refuses.
//
// The file is extended with zeros ahead of the records, so that Sync need not
// wait for the file system's own log: appending 650 bytes and syncing took
// 148 µs this way and 215 µs without, on ext4 on a virtual disk.
//
// The package does not know what a record means, and does not rotate files.
package journal
