// Package cgroup holds tasks to limits with control groups, of version 2 or 1.
//
//  1. Find says which groups this process may make: below its own, under systemd's
//     delegation or as root. Its error says why there are none.
//  2. Place.Open makes the home of the groups of one shim, and kills and removes what an
//     earlier one left there.
//  3. Home.Make makes a group. Version 1: a thread joins it (Join) and what it forks is
//     born there. Version 2: a process is cloned into Group.FD.
//  4. Set limits it, Kill ends all that is in it, Remove removes it when it is empty.
//
// Joining a group waits for a grace period of the kernel, about ten milliseconds, unless
// another process has just joined one: it is done ahead of the job that needs it.
//
// Own code rather than a library: those at hand do not move single threads (version 1),
// and the files to write are five.
package cgroup
