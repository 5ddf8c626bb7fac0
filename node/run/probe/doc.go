// Package probe tries to leave a sandbox and to break its limits.
//
// Run starts baits on the machine, as a daemon would have them: a key, sockets, a process,
// memory that others may attach. Then it runs each probe as a guest's job, through the
// real shim and plan, and looks at both ends: what the probe says from inside (Main, in the
// process of the guest) and what has become of the baits. A probe that cannot tell is a failure.
package probe
