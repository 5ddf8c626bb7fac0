// Command gridnode runs one site of a federation, and talks to it.
//
// One file per verb holds its flags and its printing; the work is done by the
// daemon (gridnode start), to which the other verbs speak HTTP over the Unix
// socket api.sock in the site's home directory. Nothing here decides where a job
// runs.
//
//   - exit.go: the exit codes, which are part of the interface.
//   - settings.go, config.go: the keys of config.yaml and where their values come
//     from (flag, then GRIDNODE_*, then file, then default).
//   - span.go, size.go, indices.go, script.go: what users may write, read into
//     values; each error says what was wrong and what is wanted.
//   - table.go, job.go: what is printed, in every output format.
//
// With the tag client only the verbs that ask the daemon are built (clientVerbs): nothing of
// the network, the store or the engines is in that program, so it starts cheaply. Whatever
// else is wanted it leaves to the whole program, which it starts in its own place
// (handover.go). Files that only the whole program needs begin with the build constraint
// !client.
//
// Data goes to stdout, talk to stderr. A verb that waits makes one request that
// returns when it is over; nothing polls.
package main
