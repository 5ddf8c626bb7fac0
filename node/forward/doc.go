// Package forward connects the tasks of one job that runs on several sites at once
// (processor co-allocation): tasks speak TCP to addresses on their own machine, and
// the nodes carry the bytes between the sites over libp2p. So tasks reach each other
// even if their sites cannot, and nothing is open to the network but the node.
//
// A Forwarder serves all such jobs of one node. Its owner
//
//  1. registers Serve for streams of Protocol;
//  2. calls Add when the tasks of a job are about to start here, and gives each task
//     the addresses that it returns;
//  3. calls Claim for tasks that an earlier node has started here;
//  4. calls Remove when the job is over, and Close at the end.
//
// Ranks number the tasks of a job over all sites. A connection to a rank elsewhere
// ends at a listener of this node, which opens a stream to that rank's site and
// names home, job, epoch and rank (ForwardOpen); the node there accepts it only from a
// site of the same group, and dials the task. Either end may shut down its
// direction, as with TCP.
//
// Everything is bounded: ranks of a job, jobs, connections, and how long a task has
// until it listens.
package forward
