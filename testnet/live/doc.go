// Package live is a network of real nodes in one process: libp2p over loopback or
// within memory, stores on disk or none. Up starts them, Replay has them work through
// the jobs of table 1 faster than they were, Compare sets what they say to each other
// beside virtual networks of the same sites and jobs.
package live
