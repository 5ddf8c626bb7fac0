// Package sandbox puts walls around the processes of tasks, and holds them to limits.
//
// Rule is what one job may do: whoever decides about jobs says it, nobody else. Find says
// what this machine has for walls (Means); Means.Plan turns a rule into a Plan, or says why
// the machine cannot hold such a job: a rule with walls never yields a plan without. A plan
// travels to the shim, where a Launcher starts the process by it:
//
//  1. Open a Launcher. Leftovers of one that died are killed.
//  2. Start gives a Running.
//  3. Check it now and then: it says which limit is broken, if any. The caller ends the task.
//  4. Ask and Kill reach everything of the task that can be found.
//  5. Release it when the first process was collected and nothing is left.
//
// There are two kinds of walls. Bubblewrap makes a machine of its own for the task: all
// namespaces, a system that is read-only, a folder of bounded size in memory, no network,
// no capabilities; a seccomp filter refuses what tears down such walls. Without it Landlock and
// a stricter seccomp filter hold the process where it is. As root the task runs as an
// account of its own under either.
//
// Limits are held by control groups (package cgroup). Without them each process has
// limits of its own (setrlimit), and Check adds up what they take.
//
// The thread that starts a task inside walls is inside its walls itself: it starts nothing
// else, and ends when the task is released; or at once where the task could signal it.
package sandbox
