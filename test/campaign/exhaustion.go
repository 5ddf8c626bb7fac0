package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// exhaustions takes descriptors and memory from daemons for some seconds.
func exhaustions(ctx context.Context, p *plan) (*outcome, error) {
	w, err := newWorld(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer os.Remove(w.group())
	return w.round(ctx, w.exhaust)
}

// exhaust does so with one of them.
func (w *world) exhaust(ctx context.Context) error {
	s := w.sites[w.random.IntN(len(w.sites))]
	if !s.alive() {
		return w.again()
	}
	take := w.fewDescriptors
	if w.random.IntN(2) == 0 {
		take = w.littleMemory
	}
	if err := take(ctx, s); err != nil {
		return err
	}
	if !s.alive() {
		w.out.note("it ended and was started again")
	}
	return w.again()
}

// fewDescriptors leaves a daemon hardly more descriptors than it has open.
func (w *world) fewDescriptors(ctx context.Context, s *site) error {
	pid := s.daemon.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	var before unix.Rlimit
	few := unix.Rlimit{Cur: uint64(len(open) + w.random.IntN(8))}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return err
	}
	few.Max = before.Max
	w.out.note("few descriptors")
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		return err
	}
	if err := w.busy(ctx); err != nil {
		return err
	}
	if s.alive() {
		return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil)
	}
	return nil
}

// littleMemory leaves a daemon less memory than it has: what the kernel then ends is the daemon.
func (w *world) littleMemory(ctx context.Context, s *site) error {
	group, limit, procs := w.group(), "memory.limit_in_bytes", "cgroup.procs"
	if filepath.Base(filepath.Dir(group)) != "memory" { // version 2
		limit = "memory.max"
	}
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	pid := s.daemon.Process.Pid
	put := func(file, text string) error { return os.WriteFile(filepath.Join(group, file), []byte(text), 0o644) }
	if err := put(limit, strconv.Itoa(512<<20)); err != nil {
		return err
	}
	if err := put(procs, strconv.Itoa(pid)); err != nil {
		return err
	}
	w.out.note("little memory")
	_ = put(limit, strconv.Itoa(1<<20*(2+w.random.IntN(30)))) // of which what is in use already goes on
	if err := w.busy(ctx); err != nil {
		return err
	}
	if s.alive() {
		_ = put(limit, strconv.Itoa(512<<20))
		_ = os.WriteFile(filepath.Join(filepath.Dir(group), procs), []byte(strconv.Itoa(pid)), 0o644)
	}
	return nil
}

// group is the control group of a daemon that has little memory.
func (w *world) group() string {
	dir := "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(dir, "memory")); err == nil {
		dir = filepath.Join(dir, "memory")
	}
	return filepath.Join(dir, filepath.Base(w.plan.dir))
}

// busy gives the sites jobs for some seconds, in which a daemon that lacks something may say so.
func (w *world) busy(ctx context.Context) error {
	for end := time.Now().Add(time.Duration((1 + 2*w.random.Float64()) * float64(time.Second))); time.Now().Before(end); {
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := w.submit(short)
		cancel()
		if err != nil && ctx.Err() != nil {
			return err
		}
		pause(ctx, 200*time.Millisecond)
	}
	return nil
}

// usage returns what a process has in memory, in bytes, and descriptors.
func usage(pid int) (memory int64, descriptors int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	if fields := strings.Fields(rest); len(fields) > 0 {
		kib, _ := strconv.ParseInt(fields[0], 10, 64)
		memory = kib << 10
	}
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return memory, len(open)
}
