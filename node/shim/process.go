package shim

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// process is what /proc says about one.
type process struct {
	pid     int
	state   byte // as in ps: R, S, D, Z, …
	parent  int
	group   int
	session int
	started uint64 // clock ticks since boot
	bare    bool   // it has no environment yet, as it is just executing another program, or shows nothing of it
}

// gone reports whether p runs no more and only waits to be collected.
func (p process) gone() bool { return p.state == 'Z' || p.state == 'X' }

// readProcess reads /proc/PID/stat; ok is false if there is no such process.
func readProcess(pid int) (p process, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	return parseStat(b)
}

// parseStat reads "pid (command) state ppid pgrp session … starttime …"; the
// command may hold spaces and brackets (proc(5)).
func parseStat(b []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return p, false
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return p, false
	}
	number := func(b []byte) int {
		n, err := strconv.Atoi(string(b))
		if err != nil {
			ok = false
		}
		return n
	}
	ok = true
	p = process{pid: number(bytes.TrimSpace(b[:open])), state: fields[0][0], parent: number(fields[1]), group: number(fields[2]), session: number(fields[3])}
	started, err := strconv.ParseUint(string(fields[19]), 10, 64)
	p.started = started
	const envEnd = 48 // where its environment ends in its memory
	p.bare = len(fields) > envEnd && string(fields[envEnd]) == "0"
	return p, ok && err == nil
}

// mark returns the value of MarkEnv that a process was started with, empty if it
// has none or its environment may not be read.
func mark(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(MarkEnv+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// How often to look whose a process is that shows no mark, as one that cleared its environment has
// none, and for how long at most what is bare is not counted: a busy machine may leave it so.
const (
	looksMax = 5
	bareMax  = 5 * time.Second
)

// looks counts looks at a process that showed no mark.
type looks struct {
	count int
	first time.Time
}

// another counts one.
func (l *looks) another(p process) {
	if l.first.IsZero() {
		l.first = time.Now()
	}
	if !p.bare || time.Since(l.first) > bareMax {
		l.count++
	}
}

// enough reports whether it will never show one.
func (l *looks) enough() bool { return l.count >= looksMax }

// processes calls each for every process there is.
func processes(each func(process)) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			each(p)
		}
	}
}

// orphans returns the children of this process's main thread. As tasks are
// started from another thread, these are processes whose parents died: the kernel
// gives them to the first thread of their subreaper.
func orphans(buf []int) []int {
	pid := strconv.Itoa(os.Getpid())
	b, err := os.ReadFile("/proc/self/task/" + pid + "/children")
	if err != nil {
		return orphansSlowly(buf) // a kernel without CONFIG_PROC_CHILDREN
	}
	for field := range bytes.FieldsSeq(b) {
		if n, err := strconv.Atoi(string(field)); err == nil {
			buf = append(buf, n)
		}
	}
	return buf
}

// orphansSlowly returns all children, those that are no orphans included.
func orphansSlowly(buf []int) []int {
	self := os.Getpid()
	processes(func(p process) {
		if p.parent == self {
			buf = append(buf, p.pid)
		}
	})
	return buf
}

// bootID names this run of the kernel.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// ticksAt returns how many clock ticks after boot the wall clock showed t. Steps of
// the clock since then are not known.
func ticksAt(t time.Time) uint64 {
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	text, _, _ := bytes.Cut(b, []byte(" "))
	up, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0
	}
	return uint64(max(up-time.Since(t).Seconds(), 0) * ticks)
}

// ticks per second in /proc (USER_HZ): 100 on every architecture that Go runs Linux on.
const ticks = 100
