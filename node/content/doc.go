// Package content keeps and moves files by what is in them.
//
// A [Tree] lists files, folders and links under names relative to a directory. The content
// of all its files, one after the other, is cut into chunks where the content says so: a file
// that changes in one place has all chunks but those around it in common with what it was,
// and many small files share a chunk. A chunk, and a tree, is named by its SHA-256.
//
// A [Store] keeps chunks and trees of one site up to a bound, many to a file, which are only
// appended to; what was not used for the longest time goes first, but nothing that is needed. [Serve] gives them to others over a
// stream, [Peer] gets them: a chunk is verified when it arrives, before it is kept, and what
// has arrived need not come again when the stream breaks.
//
// [Scan] finds the files below a directory, [Build] cuts them, [Lay] writes a tree into a
// directory. None of them leaves that directory, whatever names and links say.
//
// Invariants: what is read from a Store has the digest it was asked for; a Tree that was
// decoded is within its bounds and names nothing outside; no transfer holds more than a few
// chunks in memory.
package content
