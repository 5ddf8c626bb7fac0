// Package shim runs jobs as processes and watches over them from outside the
// daemon, so that they outlive its restarts and it learns how they ended.
//
// One shim process serves one home. It is the same program started with another
// verb, which calls Main. The daemon's side:
//
//  1. Connect finds the home's shim, or starts one.
//  2. Adopt lists what the shim runs, and what has ended but is not acknowledged. A
//     task the daemon has on record as started, and that is not listed, never ran.
//  3. Start and Kill order; Events delivers every end, again after each Connect
//     until it is acknowledged.
//  4. Save the result, then Ack it.
//  5. When Events is closed, the shim or the connection is gone: begin at 1.
//
// An end is reported when nothing is left of the task: the first process, its
// process group, and every process that left the group but was found (below).
//
// A task has its own session, stdin from /dev/null, stdout and stderr in files that
// keep their first Spec.Log bytes, exactly the environment given plus MarkEnv, and a limit
// on its wall-clock time, at which it is asked to stop (SIGTERM) and, a grace later,
// killed. Exit codes are the shell's: 127 command not found, 126 not executable,
// 128+signal. 125 means that the shim itself could not start it.
//
// What is known survives the shim, too. Its journal has a record before each start
// and after each end. A killed shim takes the first process of each task with it
// (Pdeathsig); the next shim kills what these left behind, then reports the tasks
// as ended with CauseLost. A record reaches the disk within syncEvery, and what the task
// printed before its end is noted at all: after a power cut a finished task may be reported
// as lost, but nothing runs any more; one reported as done has its output.
//
// Descendants are found by process group and session, as orphans (the shim is their
// subreaper) and by the mark in their environment. Without control groups this does
// not find a process that left the session and cleared its environment: it is killed
// when it is an orphan and no task is running, but not with its own task. A process
// that changed its user id cannot be killed at all.
//
// A service manager that kills all processes of the daemon's unit kills the shim:
// use KillMode=process.
package shim
