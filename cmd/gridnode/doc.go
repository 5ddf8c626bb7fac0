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
// Data goes to stdout, talk to stderr. A verb that waits makes one request that
// returns when it is over; nothing polls.
package main
