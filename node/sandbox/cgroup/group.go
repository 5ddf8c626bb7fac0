package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Home holds the groups of one shim.
type Home struct {
	place *Place
	dirs  map[string]string // by controller
	made  atomic.Int64
}

// Sweep kills and removes what is in the home of that name, and the home: its shim is dead.
func (p *Place) Sweep(name string) error { return p.home(name).Close() }

func (p *Place) home(name string) *Home {
	h := &Home{place: p, dirs: make(map[string]string)}
	for controller, dir := range p.dirs {
		h.dirs[controller] = filepath.Join(dir, prefix+name)
	}
	return h
}

// Open makes the home of that name, after a Sweep.
func (p *Place) Open(name string) (*Home, error) {
	h := p.home(name)
	if err := h.Close(); err != nil {
		return nil, err
	}
	for _, dir := range h.unique() {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make a control group: %w", err)
		}
	}
	if p.Version == 2 {
		if err := h.enable(name); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// enable has the groups to come hold limits (version 2).
func (h *Home) enable(name string) error {
	var words []string
	for controller := range h.dirs {
		words = append(words, "+"+controller)
	}
	slices.Sort(words)
	on := []byte(strings.Join(words, " "))
	dir := h.unique()[0]
	up := filepath.Join(filepath.Dir(dir), "cgroup.subtree_control")
	err := write(up, on)
	if errors.Is(err, syscall.EBUSY) { // it holds processes: ourselves, and the daemon
		leaf := filepath.Join(filepath.Dir(dir), prefix+name+aside)
		if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a control group: %w", err)
		}
		for _, pid := range pids(filepath.Dir(dir)) {
			_ = write(filepath.Join(leaf, "cgroup.procs"), []byte(strconv.Itoa(pid))) // one that has just ended
		}
		err = write(up, on)
	}
	if err == nil {
		err = write(filepath.Join(dir, "cgroup.subtree_control"), on)
	}
	if err != nil {
		return fmt.Errorf("have control groups hold limits: %w", err)
	}
	return nil
}

// Close kills and removes every group of the home, and the home.
func (h *Home) Close() error {
	var errs []error
	for _, dir := range h.unique() {
		entries, _ := os.ReadDir(dir) // none: nothing to remove
		for _, e := range entries {
			if e.IsDir() {
				g := &Group{version: h.place.Version, dirs: map[string]string{"": filepath.Join(dir, e.Name())}}
				errs = append(errs, g.Close())
			}
		}
		errs = append(errs, remove(dir))
	}
	return errors.Join(errs...)
}

func (h *Home) unique() []string {
	var list []string
	for _, dir := range h.dirs {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	slices.Sort(list)
	return list
}

// Group is one control group.
type Group struct {
	version int
	dirs    map[string]string // by controller
	fd      *os.File          // version 2
}

// Make makes a group that limits nothing yet. It may be called concurrently.
func (h *Home) Make() (*Group, error) {
	name := strconv.FormatInt(h.made.Add(1), 10)
	g := &Group{version: h.place.Version, dirs: make(map[string]string)}
	for controller, dir := range h.dirs {
		g.dirs[controller] = filepath.Join(dir, name)
	}
	for _, dir := range g.unique() {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("make a control group: %w", err), g.Remove())
		}
	}
	if g.version == 2 {
		var err error
		if g.fd, err = os.Open(g.unique()[0]); err != nil {
			return nil, errors.Join(err, g.Remove())
		}
	}
	return g, nil
}

func (g *Group) unique() []string { return (&Home{dirs: g.dirs}).unique() }

// FD returns the descriptor to clone a process into, -1 under version 1.
func (g *Group) FD() int {
	if g.fd == nil {
		return -1
	}
	return int(g.fd.Fd())
}

// Join moves the calling thread into the group; only under version 1. Its process stays
// where it is, and so does what is charged for its memory.
func (g *Group) Join() error {
	if g.version != 1 {
		return nil
	}
	tid := []byte(strconv.Itoa(syscall.Gettid()))
	for _, dir := range g.unique() {
		if err := write(filepath.Join(dir, "tasks"), tid); err != nil {
			return fmt.Errorf("join a control group: %w", err)
		}
	}
	return nil
}

// Limits of a group; 0: none.
type Limits struct {
	Memory     int64 // bytes, files in memory included
	Processes  int64 // processes and threads
	Processors int64 // thousandths of one
}

// period over which processor time is counted, in microseconds; the kernel's own default.
const period = 100_000

// Set limits the group, as far as its controllers can.
func (g *Group) Set(l Limits) error {
	var errs []error
	set := func(controller, file string, value int64) {
		if dir := g.dirs[controller]; dir != "" && value > 0 {
			errs = append(errs, write(filepath.Join(dir, file), strconv.AppendInt(nil, value, 10)))
		}
	}
	set("pids", "pids.max", l.Processes)
	if g.version == 1 {
		set("memory", "memory.limit_in_bytes", l.Memory)
		set("cpu", "cpu.cfs_quota_us", l.Processors*period/1000)
		if dir := g.dirs["memory"]; dir != "" && l.Memory > 0 { // swap counts, where it is counted
			_ = write(filepath.Join(dir, "memory.memsw.limit_in_bytes"), strconv.AppendInt(nil, l.Memory, 10))
		}
		return errors.Join(errs...)
	}
	set("memory", "memory.max", l.Memory)
	if dir := g.dirs["memory"]; dir != "" && l.Memory > 0 {
		_ = write(filepath.Join(dir, "memory.swap.max"), []byte("0")) // there may be no swap
		_ = write(filepath.Join(dir, "memory.oom.group"), []byte("1"))
	}
	if dir := g.dirs["cpu"]; dir != "" && l.Processors > 0 {
		errs = append(errs, write(filepath.Join(dir, "cpu.max"), fmt.Appendf(nil, "%d %d", l.Processors*period/1000, period)))
	}
	return errors.Join(errs...)
}

// Killed reports whether the kernel killed a process because the group had no memory left.
func (g *Group) Killed() bool {
	file := "memory.events"
	if g.version == 1 {
		file = "memory.oom_control"
	}
	return g.count("memory", file, "oom_kill") > 0
}

// Refused reports whether a process could not be made because there were too many.
func (g *Group) Refused() bool { return g.count("pids", "pids.events", "max") > 0 }

// count returns the number behind a word in a file of a controller, 0 if there is none.
func (g *Group) count(controller, file, word string) int64 {
	dir := g.dirs[controller]
	if dir == "" {
		return 0
	}
	text, err := read(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) == 2 && string(fields[0]) == word {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return n
		}
	}
	return 0
}

// Processes returns the processes in the group, other than this one.
func (g *Group) Processes() []int {
	var list []int
	for _, dir := range g.unique() {
		for _, pid := range pids(dir) {
			if pid != os.Getpid() && !slices.Contains(list, pid) {
				list = append(list, pid)
			}
		}
	}
	return list
}

// Kill kills every process in the group and reports whether there was one.
func (g *Group) Kill() (some bool) {
	list := g.Processes()
	if len(list) == 0 {
		return false
	}
	if g.version != 2 || write(filepath.Join(g.unique()[0], "cgroup.kill"), []byte("1")) != nil {
		for _, pid := range list {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	return true
}

// Remove removes the group, which must be empty.
func (g *Group) Remove() error {
	if g.fd != nil {
		g.fd.Close()
		g.fd = nil
	}
	var errs []error
	for _, dir := range g.unique() {
		errs = append(errs, remove(dir))
	}
	return errors.Join(errs...)
}

// closeMax is how long Close waits for killed processes to be gone.
const closeMax = 5 * time.Second

// Close kills what is in the group and removes it.
func (g *Group) Close() error {
	deadline := time.Now().Add(closeMax)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := g.Remove() // mostly nothing is left in it
		if err == nil || time.Now().After(deadline) {
			return err
		}
		g.Kill()
		<-time.After(pause)
	}
}

// remove removes the directory of a group, if it is there.
func remove(dir string) error {
	_, err := again(func() (int, error) { return 0, unix.Rmdir(dir) }) // os.Remove would take it for a file first
	if err != nil && err != unix.ENOENT {
		return fmt.Errorf("remove a control group: %w", &fs.PathError{Op: "rmdir", Path: dir, Err: err})
	}
	return nil
}

// pids returns the processes in one directory.
func pids(dir string) (list []int) {
	text, err := read(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	for field := range bytes.FieldsSeq(text) {
		if pid, err := strconv.Atoi(string(field)); err == nil && pid > 0 {
			list = append(list, pid)
		}
	}
	return list
}

// Not with package os: it would hand each of these files to the poller of the process, which
// takes longer than what is to be done, and wakes another thread.

// write writes to a file that is there.
func write(path string, b []byte) error {
	fd, err := open(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := again(func() (int, error) { return unix.Write(fd, b) }); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// read returns what a file holds.
func read(path string) ([]byte, error) {
	fd, err := open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 512)
	for {
		n, err := again(func() (int, error) { return unix.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return text, nil
		}
		if text = text[:len(text)+n]; len(text) == cap(text) {
			text = slices.Grow(text, len(text))
		}
	}
}

func open(path string, mode int) (fd int, err error) {
	fd, err = again(func() (int, error) { return unix.Open(path, mode|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// again calls f as long as signals interrupt it.
func again(f func() (int, error)) (n int, err error) {
	for {
		if n, err = f(); err != unix.EINTR {
			return n, err
		}
	}
}

// Has reports whether a limit of this kind is held: memory, pids or cpu.
func (h *Home) Has(controller string) bool { return h != nil && h.dirs[controller] != "" }
