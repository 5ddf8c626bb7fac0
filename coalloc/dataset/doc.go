// Package dataset is what a site knows of data sets: those that it holds, which it
// announces, and who holds those that its jobs read. Package coalloc places jobs close
// to them (Close-to-Files; Mohamed and Epema 2004, section III of the co-allocation
// paper), by "the locations of the input files" and what it would take to bring them.
//
// The caller does this:
//
//  1. Recover a Catalog from the records that begin with RecordPrefix;
//  2. Step it with every message of Protocol, with grid.Provided and grid.Providers
//     whose key is one of its own, with what its users want (Hold, Drop, Find), and with a
//     grid.Tick at NextTimer;
//  3. carry the effects out in order, and answer EffectProvide and EffectProviders;
//  4. Want what a job reads; Learnt comes when Known says something new.
//
// Whoever holds a data set puts a provider record into the DHT, under a key that follows
// from the federation and the name of the data set, and again before the record
// expires. Who looks for one asks the DHT for such records, and then everybody whom they
// name, as anybody may put one there and nobody can take one away:
//
//	Inquire  who looks for a data set → who has a provider record: do you hold it?
//	Inform   the answer: whether, how large it is, and whether others may copy it
//
// A holder's answer is believed: if it lies, a job finds nothing there when it comes.
// What its lie costs is bounded: a data set has at most HoldersMax holders, the size
// that most of them give counts, and whoever gives another does not hold what is meant.
//
// Files that jobs bring along are announced and found in the same way, by sites that have got
// them from elsewhere, for a while: whoever needs them next may get them there (Lend).
//
// It moves no bytes and opens no file: package node does.
package dataset
