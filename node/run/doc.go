// Package run holds the engines that run tasks, and the files of tasks.
//
// [Processes] is the engine of production: every task is a process under the home's
// shim (package gridnode/node/shim), which outlives the daemon; tasks of lent processors
// run under a shim of their own, their pilot. Below this folder are the engines whose
// processors are another scheduler's. An [Engine] starts tasks, ends them, reports each end
// once, and takes up again after a restart of the daemon what an earlier one has started.
//
// [Files] says where a task's files lie; [Tail] reads an output while it is written,
// [Keep] keeps one that comes from another site. The engine decides nothing about jobs:
// what runs, where and for how long is the site's to say.
package run
