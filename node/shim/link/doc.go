// Package link connects a shim on a compute node to its daemon, over the cluster's network.
//
// The shim calls, as nobody listens on a compute node. Both ends have the same key pair: it
// is in a file that only the site's account can read, on a file system that both see. Each
// shows the pair's certificate and takes nobody who shows another one (TLS 1.3), so
// whoever cannot read the file is neither a daemon nor a shim, and reads nothing on the way.
// Names, authorities and clocks do not count.
//
// There is one way, TCP, also where both are on one machine: a socket in the file system
// would be another way with rights of its own, for what costs a millisecond once.
package link
